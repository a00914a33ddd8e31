"""Calls of torch and NumPy as ops of the registry: what `rows` call beside the ops themselves."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

from flexor.frontend.cpython.arrays import Arrays
from flexor.frontend.cpython.composites import Composites
from flexor.frontend.cpython.guards import Guards
from flexor.frontend.cpython.layers import Layers
from flexor.frontend.cpython.losses import Losses
from flexor.frontend.cpython.masked import Masked
from flexor.frontend.cpython.matrices import Matrices
from flexor.frontend.cpython.nans import Nans
from flexor.frontend.cpython.orders import Orders
from flexor.frontend.cpython.placement import Placement
from flexor.frontend.cpython.ranges import Ranges
from flexor.frontend.cpython.values import Dynamic, Known, ListValue, RunList, TupleValue, Value, is_int, is_none, is_number
from flexor.frontend.cpython.windows import Windows
from flexor.frontend.cpython.writer import NotWritten, Writer, dtype_name, plain, registry


def lifted(value: Any) -> Any:
    """A literal of a row as an abstract value."""
    return value if isinstance(value, (Value, list)) else Known(value)


class Lowering(Arrays, Composites, Layers, Losses, Matrices, Masked, Nans, Orders, Placement, Ranges, Windows):
    """The names that an expression of a row may call. Ops of the registry are attributes."""

    def __init__(self, writer: Writer, guards: Guards, framework: str, assume: Callable[..., None], has_acted: Callable[[], bool]) -> None:
        self.writer, self.guards, self.framework, self.assume = writer, guards, framework, assume
        self.has_acted = has_acted  # whether what is written stands behind an effect
        self.writes = 0  # written so far, to memory that others may see
        self.has_written = False  # anything, to any memory
        self.targets: set[str | None] = set()  # the inputs whose memory that is; None: one that is not known

    @property
    def has_writes(self) -> bool:
        """Whether the program writes to tensors."""
        return self.writes > 0

    def __getattr__(self, op: str) -> Callable[..., Any]:
        if op not in registry():
            raise AttributeError(op)

        def call(*operands: Any, **attributes: Any) -> Any:
            values = list(operands)
            needed = sum(1 for _, kind, _ in registry()[op]["operands"] if not kind.startswith("optional"))
            if any("list" in kind for _, kind, _ in registry()[op]["operands"]):
                needed = len(values)
            while len(values) > needed and is_none(values[-1]):
                values.pop()
            if any(is_none(v) for v in values[:needed]):
                raise NotWritten("None in the place of a tensor")
            results = self.writer.ops(op, [_operand(v) for v in values], attributes)
            return results[0] if len(results) == 1 else TupleValue(results)

        return call

    # --------------------------------------------------------------------------------------------------- arguments

    def axes(self, dim: Any) -> Any:
        """Axes as an attribute: none for all of them, which torch's older reductions also take for no axes."""
        dim = plain(dim)
        if dim is None or (dim in ((), []) and self.framework == "torch"):
            return None
        return self.some_axes(dim)

    def some_axes(self, dim: Any) -> Any:
        """Axes as an attribute, none for all; not where none of them are named."""
        dim = plain(dim)
        axes = list(dim) if isinstance(dim, (tuple, list)) else [dim]
        if dim is None:
            return None
        if not axes or not all(type(axis) is int for axis in axes):
            raise NotWritten("axes that are no integers, or none")
        return axes

    def axes_of(self, x: Any, dim: Any) -> Any:
        """As `some_axes`; a tensor without axes has none to be named."""
        return None if plain(dim) in ((), []) and plain(self.rank(x)) == 0 else self.some_axes(dim)

    def one_axis(self, dim: Any) -> Any:
        """One axis as an attribute of axes; none for all."""
        if plain(dim) is not None and type(plain(dim)) is not int:
            raise NotWritten("an axis that is no integer")
        return self.axes(dim)

    def sizes(self, given: Any) -> Any:
        """Sizes given as one sequence or one by one."""
        items = list(given) if isinstance(given, (tuple, list)) else [given]
        if len(items) == 1 and isinstance(items[0], (TupleValue, ListValue)):
            items = list(items[0].items)
        elif len(items) == 1 and isinstance(items[0], Known) and isinstance(items[0].object, (tuple, list)):
            items = list(items[0].object)
        for item in items:
            value = item.object if isinstance(item, Known) else item
            if not (type(value) is int or (isinstance(value, Dynamic) and value.kind == "int")):
                raise NotWritten("a size that is no integer")
        return items

    def parts(self, sequence: Any) -> list[Any]:
        """The elements of a list or tuple of tensors."""
        if not isinstance(sequence, (TupleValue, ListValue)):
            raise NotWritten("a sequence of unknown length")
        return list(sequence.items)

    def list_joined(self, sequence: Any, op: str, axis: Any) -> Any:
        """concat or stack of a list or tuple of tensors; also of a list whose length only the run knows."""
        if not isinstance(sequence, RunList):
            parts = self.parts(sequence)
            if not parts:  # refused in the run, and on this way alone: others may come here with a list
                raise NotWritten("nothing to join")
            return getattr(self, op)(*parts, axis=axis)
        axis = plain(axis)
        if type(axis) is not int or not isinstance(sequence.content, Dynamic):
            raise NotWritten("an axis that is no integer")
        self.assume(self._compared("gt", self.writer.length(sequence.content), Known(0)), "a list that is not empty", RuntimeError)
        return self.writer.join(op, sequence.content, axis, sequence.element)

    def is_tensor(self, value: Any) -> bool:
        """Whether a value is a tensor of the run."""
        return isinstance(value, Dynamic) and value.kind == "tensor"

    def tensor(self, value: Any) -> Dynamic:
        """The tensor that a row works on."""
        if not isinstance(value, Dynamic) or value.kind != "tensor":
            raise NotWritten("no tensor")
        return value

    # ------------------------------------------------------------------------------------------------------ values

    def same(self, value: Any) -> Any:
        """The value itself."""
        return value

    def view_of(self, value: Any) -> Any:
        """Another tensor object over the same memory."""
        if self.tensor(value).rank == 0:
            return self.writer.op("reshape", value, shape=[])
        return self.writer.op("slice", value, axis=0)

    def item(self, value: Any) -> Any:
        """The element as a number."""
        return self.writer.item(self.tensor(value))

    def rank(self, value: Any) -> Any:
        """The number of axes."""
        rank = self.tensor(value).rank
        if rank < 0:
            raise NotWritten("a rank that only the run knows")
        return Known(rank)

    def size(self, value: Any, dim: Any) -> Any:
        """One size, or all."""
        axis = plain(dim)
        if axis is None:
            return self.shape(value)
        rank = plain(self.rank(value))
        if not -rank <= axis < rank:
            raise NotWritten("an axis that is not there")
        return self.writer.size(self.tensor(value), axis)

    def shape(self, value: Any) -> TupleValue:
        """torch.Size, or NumPy's tuple."""
        torch = sys.modules.get("torch")
        cls = torch.Size if torch is not None and self.framework == "torch" else tuple
        return TupleValue(self.shape_of(value), cls)

    def shape_of(self, value: Any) -> list[Any]:
        """The sizes of a tensor."""
        rank = plain(self.rank(value))
        return [self.writer.size(self.tensor(value), axis) for axis in range(rank)]

    def count(self, value: Any) -> Any:
        """The number of elements."""
        total: Any = Known(1)
        for size in self.shape_of(value):
            total = self.multiplied(total, size)
        return total

    def multiplied(self, x: Value, y: Value) -> Value:
        """The product of two sizes."""
        if isinstance(x, Known) and isinstance(y, Known):
            return Known(x.object * y.object)
        if isinstance(x, Known) and x.object == 1:
            return y
        return x if isinstance(y, Known) and y.object == 1 else self.writer.scalar("mul", x, y)

    # ------------------------------------------------------------------------------------------------------ dtypes

    def dtype_of(self, value: Any) -> str:
        """Name of a tensor's dtype."""
        dtype = self.tensor(value).dtype
        if dtype is None:
            raise NotWritten("a dtype that only the run knows")
        return dtype

    def is_floating_point(self, value: Any) -> Any:
        """Whether the dtype is one of floats."""
        return Known("float" in self.dtype_of(value))

    def to(self, value: Any, dtype: Any) -> Any:
        """Another dtype; the tensor itself where it has it."""
        dtype = plain(dtype)
        if dtype is None:
            return value
        name = dtype if isinstance(dtype, str) else dtype_name(dtype)
        if name is None:
            raise NotWritten(f"the dtype {dtype}")
        return value if self.dtype_of(value) == name else self.writer.op("cast", value, dtype=name)

    def to_copy(self, value: Any, dtype: Any, copy: Any = True) -> Any:
        """A new array of that dtype; the array itself where it has it and no `copy` is asked for."""
        converted = self.to(value, dtype)
        return self.writer.op("clone", value) if converted is value and plain(copy) else converted

    device = "cpu"  # where the program runs: the device of the tensors that it is called with

    def check_device(self, device: Any) -> None:
        """Refuses another device than the program's."""
        if str(device) == "cuda" and self.device != "cpu":
            torch: Any = sys.modules["torch"]
            device = self.device if torch.cuda.device_count() == 1 else device
        if str(device) != self.device:
            raise NotWritten(f"the device {device}")

    def on_device(self, dtype: Any, device: Any) -> Any:
        """The dtype, if the device is the program's. By default tensors are made on the CPU: another default device is a
        function mode, under which no program runs."""
        self.check_device("cpu" if plain(device) is None else plain(device))
        return plain(dtype)

    def beside(self, dtype: Any, device: Any) -> Any:
        """The dtype, if the device is the program's, which it is by default."""
        if plain(device) is not None:
            self.check_device(plain(device))
        return plain(dtype)

    def float_dtype(self, dtype: Any, device: Any) -> Any:
        """The dtype, by default that of the framework."""
        dtype = self.on_device(dtype, device)
        if dtype is None:
            torch: Any = sys.modules["torch"]
            dtype = torch.get_default_dtype()
            self.guards.call(torch.get_default_dtype, dtype)
        return dtype

    def fill_dtype(self, value: Any, dtype: Any, device: Any) -> Any:
        """The dtype of torch.full."""
        dtype = self.on_device(dtype, device)
        if dtype is not None:
            return dtype
        kind = value.kind if isinstance(value, Dynamic) else type(plain(value)).__name__
        named = {"bool": "bool", "int": "int64"}
        return named[kind] if kind in named else self.float_dtype(None, self.device)

    def own_dtype(self, value: Any, dtype: Any, device: Any) -> Any:
        """The dtype, by default that of a tensor."""
        self.beside(dtype, device)
        return plain(dtype) if plain(dtype) is not None else self.dtype_of(value)

    def summed(self, value: Any, dtype: Any) -> Any:
        """An operand of NumPy's sums and products, which make unsigned integers of 64 bits of unsigned ones."""
        if plain(dtype) is None and self.dtype_of(value).startswith("uint"):
            raise NotWritten("unsigned integers of 64 bits")
        return value

    def or_float64(self, dtype: Any) -> Any:
        """NumPy's default."""
        return plain(dtype) if plain(dtype) is not None else "float64"

    def of_type(self, value: Any, dtype: Any) -> Any:
        """Tensor.type of a dtype; of a text it is the framework's."""
        if isinstance(plain(dtype), str):
            raise NotWritten("a dtype by its old name")
        return self.to(value, dtype)

    def number_tensor(self, data: Any, dtype: Any, device: Any) -> Any:
        """torch.tensor of one number."""
        if not is_number(data):
            raise NotWritten("data that is no number")
        # A tensor without axes may lie on the CPU beside those of any device.
        where = self.device if plain(device) is None else device
        return self.writer.op("full", data, shape=[], dtype=self.fill_dtype(data, dtype, where))

    def number_kind(self, value: Any) -> str:
        """The kind of a number: "bool", "int" or "float"."""
        kind = value.kind if isinstance(value, Dynamic) else type(plain(value)).__name__
        if kind not in ("bool", "int", "float"):
            raise NotWritten("data that are no numbers")
        return kind

    def lifted_lists(self, data: Any) -> Any:
        """A known tuple as a tuple of values."""
        known = data.object if isinstance(data, Known) else data
        return TupleValue([self.lifted_lists(lifted(item)) for item in known]) if type(known) is tuple else data

    def as_tensor(self, data: Any, dtype: Any, device: Any) -> Any:
        """torch.as_tensor: a tensor itself where it has the dtype."""
        if is_number(data):
            return self.number_tensor(data, dtype, device)
        return self.converted(self.tensor(data), (), dtype, device)

    def converted(self, value: Any, target: Sequence[Any], dtype: Any, device: Any) -> Any:
        """Tensor.to."""
        wanted, where = plain(dtype), plain(device)
        if [plain(given) for given in target if not isinstance(given, Dynamic)].count(True) and len(target) > 2:
            raise NotWritten("a copy that is asked for by place")
        for given in target:
            if isinstance(given, Dynamic):
                wanted = self.dtype_of(given)
                continue
            given = plain(given)
            if dtype_name(given) is not None:
                wanted = given
            elif not isinstance(given, bool):
                where = given
        if where is not None:
            self.check_device(where)
        return self.to(value, wanted)

    # --------------------------------------------------------------------------------------------------------- ops

    def operated(self, op: str, x: Any, y: Any) -> Any:
        """An operator of two operands. Torch refuses negative numbers as powers of integers, and floats as none of their operands."""
        if op in ("pow", "pow_") and self.framework == "torch" and "int" in self._kinds(x) and is_int(y):
            self.assume(self._compared("ge", y, Known(0)), "a power that is not negative", RuntimeError)
        return self.written(x, op, y) if op.endswith("_") else self.writer.op(op, _operand(x), _operand(y))

    def factor(self, alpha: Any, *values: Any) -> Any:
        """A factor of an operand; of integers it is no float."""
        if "float" not in self._kinds(*values) and not is_int(alpha):
            raise NotWritten("a factor of floats for integers")
        return alpha

    def not_below(self, low: Any, high: Any) -> Any:
        """An upper bound that is not below the lower one."""
        self.assume(self._compared("le", low, high), "bounds in their order")
        return high

    def _kinds(self, *values: Any) -> str:
        """Names of dtypes and of kinds of numbers."""
        tensors = [self.dtype_of(v) for v in values if isinstance(v, Dynamic) and v.kind == "tensor"]
        numbers = [v.kind if isinstance(v, Dynamic) else type(plain(v)).__name__ for v in values]
        return " ".join(tensors + numbers)

    def normalized(self, x: Any, shape: Any, weight: Any) -> int:
        """How many axes layer_norm works on. A weight has the shape; without one the sizes of x have to."""
        sizes = self.sizes(shape)
        own = self.shape_of(x)
        held = self.shape_of(weight) if not is_none(weight) else []
        if not sizes or len(sizes) > len(own):
            raise NotWritten("a shape that does not fit")
        if [v.object if isinstance(v, Known) else None for v in held] != [plain(v) if not isinstance(v, Dynamic) else v for v in sizes]:
            for mine, given in zip(own[-len(sizes) :], map(lifted, sizes)):
                self.assume_equal(mine, given, "sizes of the normalized shape")
        return len(sizes)

    def in_place_if(self, in_place: Any, op: str, x: Any, *operands: Any, **attributes: Any) -> Any:
        """An op that torch also has as a write."""
        if plain(in_place):
            return self.written(x, op + "_", *operands, **attributes)
        return self.writer.op(op, _operand(x), *map(_operand, operands), **attributes)

    def written(self, target: Any, op: str, *operands: Any, **attributes: Any) -> Any:
        """A write; gives the target."""
        values = [_operand(v) for v in operands]
        while values and is_none(values[-1]):
            values.pop()
        self.writer.ops(op, [self.tensor(target), *values], attributes)
        self.has_written = True
        if not target.is_fresh:  # what nobody else sees is no effect
            self.writes += 1
            self.targets.add(target.root)
        return target

    def dropout(self, x: Any, p: Any, training: Any) -> Any:
        """Nothing, out of training."""
        if plain(training) and plain(p) != 0:
            raise NotWritten("random numbers")
        return x

    def extreme(self, x: Any, dim: Any, keepdim: Any, which: str) -> Any:
        """torch.max and torch.min in their three forms."""
        if isinstance(dim, Dynamic) and dim.kind == "tensor":
            return self.writer.op(which + "imum", x, dim)
        axis = plain(dim)
        if axis is None:
            return self.writer.op("reduce_" + which, x)
        if type(axis) is not int:
            raise NotWritten("an axis that is no integer")
        torch: Any = sys.modules["torch"]
        if plain(self.rank(x)) == 0 and axis in (0, -1):
            values, indices = self.writer.op("clone", x), self.writer.op("zeros", shape=[], dtype="int64")
        else:
            values = self.writer.op("reduce_" + which, x, axes=[axis], keepdim=keepdim)
            ordered = self.to(x, "uint8") if self.dtype_of(x) == "bool" else x
            indices = self.writer.op("arg" + which, ordered, axes=[axis], keepdim=keepdim)
        return TupleValue([values, indices], getattr(torch.return_types, which))

    def correction_of(self, unbiased: Any, correction: Any) -> int:
        """Degrees of freedom."""
        correction = plain(correction)
        if correction is None:
            return int(plain(unbiased))
        if correction != int(correction):
            raise NotWritten("a correction that is no integer")
        return int(correction)

    def named(self, name: str, results: TupleValue) -> TupleValue:
        """Results in torch's named tuple."""
        torch: Any = sys.modules["torch"]
        return TupleValue(results.items, getattr(torch.return_types, name))

    def found(self, x: Any, as_tuple: Any) -> Any:
        """torch.nonzero; as a tuple one row of indices an axis."""
        indices = self.writer.op("nonzero", self.tensor(x))
        if not plain(as_tuple):
            return indices
        if self.tensor(x).rank < 1:
            raise NotWritten("nonzero of a tensor without axes, or of unknown rank, as a tuple")
        return TupleValue([self.writer.op("select", indices, axis=1, index=axis) for axis in range(self.tensor(x).rank)])

    def chosen(self, condition: Any, x: Any, y: Any) -> Any:
        """where, with one argument or three."""
        if is_none(x) and is_none(y):
            return self.found(condition, True)
        if is_none(x) or is_none(y):
            raise NotWritten("where of two arguments")
        return self.writer.op("where", _operand(condition), _operand(x), _operand(y))

    def selected(self, x: Any, mask: Any) -> Any:
        """torch.masked_select, both broadcast to one shape."""
        if self.dtype_of(mask) != "bool":
            raise NotWritten("a mask of numbers")
        return self.writer.op("mask_select", *(self.at_least(part, 1) for part in self.broadcast_all([x, mask]).items))

    def transposed(self, x: Any) -> Any:
        """Tensor.t."""
        rank = plain(self.rank(x))
        if rank > 2:
            raise NotWritten("t() of more than 2 axes")
        return self.view_of(x) if rank < 2 else self.writer.op("transpose", x, a=0, b=1)

    def reordered(self, x: Any, axes: Sequence[Any]) -> Any:
        """np.transpose."""
        order = self.sizes(axes) if axes and not is_none(axes[0]) else list(range(plain(self.rank(x))))[::-1]
        return self.writer.op("permute", x, axes=order)

    def squeezed(self, x: Any, dim: Any) -> Any:
        """torch.squeeze and np.squeeze, where the sizes say what the rank is."""
        axes = self.some_axes(dim)
        is_strict = self.framework == "numpy" and axes is not None
        rank = plain(self.rank(x))
        places = range(rank) if axes is None else axes
        if not is_strict and not all(isinstance(self.size(x, Known(axis)), Known) for axis in places):
            raise NotWritten("a rank that only the run knows")
        return self.writer.op("squeeze", x, axes=axes, strict=is_strict)

    def split_by(self, x: Any, sections: Any, dim: Any) -> Any:
        """torch.split."""
        axis = plain(dim)
        if not isinstance(sections, (TupleValue, ListValue)) and isinstance(plain(sections), int):
            size, total = plain(sections), self.size(x, Known(axis))
            if not isinstance(total, Known):
                raise NotWritten("a split into a number of parts that only the run knows")
            sections = [min(size, total.object - at) for at in range(0, total.object, size)]
        else:
            sections = self.sizes(sections)
            if any(isinstance(size, Dynamic) for size in sections):
                return self._narrowed(x, sections, axis)
        return TupleValue(self.writer.ops("split", [x], {"sizes": sections, "axis": axis}))

    def _narrowed(self, x: Any, sections: list[Any], axis: int) -> TupleValue:
        views, start = [], lifted(0)
        for size in map(lifted, sections):
            views.append(self.writer.op("narrow", x, axis=axis, start=start, length=size))
            start = self.sum_of_sizes(start, size)
        self.assume(self._same_size(start, self.size(x, Known(axis))), "parts that make up the whole", RuntimeError)
        return TupleValue(views)

    def sum_of_sizes(self, x: Value, y: Value) -> Value:
        """The sum of two sizes."""
        if isinstance(x, Known) and isinstance(y, Known):
            return Known(x.object + y.object)
        return self.writer.scalar("add", x, y)

    def _same_size(self, x: Value, y: Value) -> Value:
        return self._compared("eq", x, y)

    def _compared(self, op: str, x: Value, y: Value) -> Value:
        if isinstance(x, Dynamic) or isinstance(y, Dynamic):
            return self.writer.scalar(op, x, y)
        return Known(getattr(operator, op)(plain(x), plain(y)))

    def unflattened(self, x: Any, dim: Any, sizes: Any) -> Any:
        """Tensor.unflatten."""
        rank = plain(self.rank(x))
        axis = plain(dim) % rank
        own = self.shape_of(x)
        return self.writer.op("reshape", x, shape=[*own[:axis], *self.sizes(sizes), *own[axis + 1 :]])

    def chunked(self, x: Any, chunks: Any, dim: Any) -> Any:
        """torch.chunk."""
        total, count = self.size(x, dim), plain(chunks)
        if not isinstance(total, Known):
            scalar = self.writer.scalar
            part = scalar("floor_div", scalar("add", total, Known(count - 1)), Known(count))
            start = scalar("mul", part, Known(count - 1))
            self.assume(scalar("lt", start, total), f"a size of which there are {count} parts")
            starts = [scalar("mul", part, Known(i)) for i in range(count - 1)]
            views = [self.writer.op("narrow", x, axis=dim, start=at, length=part) for at in starts]
            views.append(self.writer.op("narrow", x, axis=dim, start=start, length=scalar("sub", total, start)))
            return TupleValue(views)
        return self.split_by(x, Known(max(1, math.ceil(total.object / plain(chunks)))), dim)

    def unbound(self, x: Any, dim: Any) -> Any:
        """torch.unbind."""
        total = self.size(x, dim)
        if not isinstance(total, Known):
            raise NotWritten("rows of a number that only the run knows")
        return TupleValue([self.writer.op("select", x, axis=dim, index=i) for i in range(total.object)])

    def _equal(self, x: Value, y: int) -> Value:
        return Known(x.object == y) if isinstance(x, Known) else self.writer.scalar("eq", x, Known(y))

    def even_parts(self, x: Any, sections: Any, axis: Any) -> Any:
        """torch.hsplit, vsplit and dsplit into one number of parts; `axis` counts for tensors of two and more axes."""
        count, rank = plain(sections), plain(self.rank(x))
        if isinstance(count, (tuple, list)) and rank >= (2 if axis == 0 else axis):
            return self.cut_at(x, count, 0 if rank == 1 else axis)
        if type(count) is not int or count < 1 or rank < (2 if axis == 0 else axis):
            raise NotWritten("sections that are no number")
        axis = 0 if rank == 1 else axis
        return TupleValue(self.equal_parts(x, count, axis))

    def equal_parts(self, x: Any, count: int, axis: int) -> list[Any]:
        """Views of as many parts of one size."""
        total = self.shape_of(x)[axis]
        if isinstance(total, Known):
            if total.object % count:
                raise NotWritten("parts of several sizes")
            part: Any = Known(total.object // count)
        else:
            self.assume(self._equal(self.writer.scalar("mod", total, Known(count)), 0), f"a size that {count} divides")
            part = self.writer.scalar("floor_div", total, Known(count))
        starts = [self.multiplied(part, Known(i)) for i in range(count)]
        return [self.writer.op("narrow", x, axis=axis, start=start, length=part) for start in starts]

    def cut_at(self, x: Any, places: Sequence[Any], axis: int) -> TupleValue:
        """Views of what lies between places along an axis."""
        if not all(type(place) is int and place >= 0 for place in places) or list(places) != sorted(places):
            raise NotWritten("places out of order")
        bounds = zip((None, *places), (*places, None))
        return TupleValue([self.writer.op("slice", x, axis=axis, start=start, stop=stop) for start, stop in bounds])

    def padded(self, x: Any, pad: Any, value: Any) -> Any:
        """F.pad: pairs from the last axis on."""
        amounts, rank = self.sizes(pad), plain(self.rank(x))
        if isinstance(value, Dynamic):
            return self._padded_by(x, pad, value)
        value = plain(value) or 0
        if len(amounts) % 2 or len(amounts) > 2 * rank or abs(value) > 2**53:
            raise NotWritten("a padding that does not fit")
        before: list[Any] = [0] * rank
        after: list[Any] = [0] * rank
        for i in range(len(amounts) // 2):
            before[rank - 1 - i], after[rank - 1 - i] = amounts[2 * i], amounts[2 * i + 1]
        return self.writer.op("pad", x, before=before, after=after, value=float(value))

    def _padded_by(self, x: Any, pad: Any, value: Dynamic) -> Any:
        """`padded` with a number of the run."""
        if "float" not in self.dtype_of(x) and (value.kind, self.dtype_of(x)) not in (("int", "int64"), ("bool", "bool")):
            raise NotWritten("a padding of another kind")
        inside = self.padded(self.writer.op("full_like", x, Known(True), dtype="bool"), pad, Known(0))
        return self.writer.op("where", inside, self.padded(x, pad, Known(0)), value)

    def stepped(self, bounds: Sequence[Any], dtype: Any) -> Any:
        """arange."""
        kinds = {b.kind if isinstance(b, Dynamic) else type(plain(b)).__name__ for b in bounds}
        if kinds != {"int"}:
            return self.stepped_floats(bounds, dtype)
        start, stop, step = (Known(0), bounds[0], Known(1)) if len(bounds) == 1 else (*bounds, Known(1))[:3]
        if self.framework == "torch":
            if dtype_name(plain(dtype)) == "bool" or not plain(step):
                raise NotWritten("a range that torch refuses")
            if not (_is_zero(start) and plain(step) > 0 and (getattr(stop, "anywhere", None) or "").startswith("size")):
                self.assume(self._compared("ge" if plain(step) > 0 else "le", stop, start), "a range that its step leads through", RuntimeError)
        return self.writer.op("arange", start=start, stop=stop, step=step, dtype=plain(dtype) or "int64")

    def product(self, x: Any, y: Any) -> Any:
        """np.dot where it is np.matmul."""
        if max(self.tensor(x).rank, self.tensor(y).rank) > 2 or min(self.tensor(x).rank, self.tensor(y).rank) < 1:
            raise NotWritten("a product of other ranks than 1 and 2")
        return self.writer.op("matmul", x, y)



def _is_zero(value: Any) -> bool:
    return isinstance(value, Known) and value.object == 0


def _operand(value: Any) -> Any:
    value = lifted(value)
    if isinstance(value, Known) and isinstance(value.object, str):
        raise NotWritten("a text as an operand")
    return value


__all__ = ["Lowering", "lifted", "plain"]
