"""Calls of torch and NumPy as ops of the registry: what the rows of `signatures` call beside the ops themselves."""

from __future__ import annotations

import ast
import functools
import inspect
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from flexor import _flexor
from flexor.frontend.cpython import signatures
from flexor.frontend.cpython.guards import Guards
from flexor.frontend.cpython.values import Dynamic, Known, ListValue, MethodValue, TupleValue, Value
from flexor.frontend.cpython.writer import NotWritten, Writer, dtype_name


def lifted(value: Any) -> Any:
    """A literal of a row as an abstract value."""
    return value if isinstance(value, (Value, list)) else Known(value)


def plain(value: Any) -> Any:
    """What a value is in Python, where that is known whole; raises NotWritten otherwise."""
    if isinstance(value, Known):
        return value.object
    if isinstance(value, TupleValue):
        return tuple(plain(item) for item in value.items)
    if isinstance(value, ListValue):
        return [plain(item) for item in value.items]
    if isinstance(value, Value):
        raise NotWritten("an argument that has to be known at translation")
    return value


class Lowering:
    """The names that an expression of a row may call. Ops of the registry are attributes."""

    def __init__(self, writer: Writer, guards: Guards, framework: str, assume: Callable[[Value, str], None]) -> None:
        self.writer, self.guards, self.framework, self.assume = writer, guards, framework, assume
        self.has_writes = False

    def __getattr__(self, op: str) -> Callable[..., Any]:
        if op not in registry():
            raise AttributeError(op)

        def call(*operands: Any, **attributes: Any) -> Any:
            values = list(operands)
            while values and len(values) > 1 and _is_none(values[-1]):
                values.pop()
            results = self.writer.ops(op, [_operand(v) for v in values], attributes)
            return results[0] if len(results) == 1 else TupleValue(results)

        return call

    # --------------------------------------------------------------------------------------------------- arguments

    def axes(self, dim: Any) -> Any:
        """Axes as an attribute: none for all of them."""
        dim = plain(dim)
        if dim is None or dim in ((), []):
            return None
        return [dim] if isinstance(dim, int) else list(dim)

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

    def length(self, shape: Any) -> int:
        """How many sizes a shape has."""
        return 1 if isinstance(shape, Dynamic) or isinstance(plain(shape), int) else len(self.sizes(shape))

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
        return self.writer.op("slice", self.tensor(value), axis=0) if self.tensor(value).rank > 0 else value

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
            if isinstance(total, Known) and isinstance(size, Known):
                total = Known(total.object * size.object)
            elif isinstance(total, Known) and total.object == 1:
                total = size
            else:
                total = self.writer.scalar("mul", total, size)
        return total

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

    def to_copy(self, value: Any, dtype: Any) -> Any:
        """A new array of that dtype."""
        converted = self.to(value, dtype)
        return self.writer.op("clone", value) if converted is value else converted

    def on_cpu(self, dtype: Any, device: Any) -> Any:
        """The dtype, if the device is this one."""
        device = plain(device)
        if device is not None and str(device) != "cpu":
            raise NotWritten(f"the device {device}")
        if device is None and self.framework == "torch":
            torch: Any = sys.modules["torch"]
            self.guards.call(torch.get_default_device, torch.device("cpu"))
        return plain(dtype)

    def float_dtype(self, dtype: Any, device: Any) -> Any:
        """The dtype, by default that of the framework."""
        dtype = self.on_cpu(dtype, device)
        if dtype is None:
            torch: Any = sys.modules["torch"]
            dtype = torch.get_default_dtype()
            self.guards.call(torch.get_default_dtype, dtype)
        return dtype

    def fill_dtype(self, value: Any, dtype: Any, device: Any) -> Any:
        """The dtype of torch.full."""
        dtype = self.on_cpu(dtype, device)
        if dtype is not None:
            return dtype
        kind = value.kind if isinstance(value, Dynamic) else type(plain(value)).__name__
        named = {"bool": "bool", "int": "int64"}
        return named[kind] if kind in named else self.float_dtype(None, "cpu")

    def own_dtype(self, value: Any, dtype: Any, device: Any) -> Any:
        """The dtype, by default that of a tensor."""
        if plain(device) is not None:
            self.on_cpu(dtype, device)
        return plain(dtype) if plain(dtype) is not None else self.dtype_of(value)

    def or_float64(self, dtype: Any) -> Any:
        """NumPy's default."""
        return plain(dtype) if plain(dtype) is not None else "float64"

    def converted(self, value: Any, target: Sequence[Any], dtype: Any, device: Any) -> Any:
        """Tensor.to."""
        wanted, where = plain(dtype), plain(device)
        for given in target:
            if isinstance(given, Dynamic):
                wanted = self.dtype_of(given)
                continue
            given = plain(given)
            if dtype_name(given) is not None:
                wanted = given
            elif not isinstance(given, bool):
                where = given
        if where is not None and str(where) != "cpu":
            raise NotWritten(f"the device {where}")
        return self.to(value, wanted)

    # --------------------------------------------------------------------------------------------------------- ops

    def divide(self, x: Any, y: Any, rounding: Any) -> Any:
        """torch.div."""
        rounding = plain(rounding)
        if rounding is None:
            return self.writer.op("div", x, y)
        if rounding == "floor":
            return self.writer.op("floor_divide", x, y)
        raise NotWritten(f"rounding_mode={rounding!r}")

    def in_place_if(self, in_place: Any, op: str, x: Any, **attributes: Any) -> Any:
        """An op that torch also has as a write."""
        if plain(in_place):
            return self.written(x, op + "_", **attributes)
        return self.writer.op(op, _operand(x), **attributes)

    def written(self, target: Any, op: str, *operands: Any, **attributes: Any) -> Any:
        """A write; gives the target."""
        values = [_operand(v) for v in operands]
        while values and _is_none(values[-1]):
            values.pop()
        self.writer.ops(op, [self.tensor(target), *values], attributes)
        self.has_writes = True
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
        torch: Any = sys.modules["torch"]
        values = self.writer.op("reduce_" + which, x, axes=[axis], keepdim=keepdim)
        indices = self.writer.op("arg" + which, x, axes=[axis], keepdim=keepdim)
        return TupleValue([values, indices], getattr(torch.return_types, which))

    def correction_of(self, unbiased: Any, correction: Any) -> int:
        """Degrees of freedom."""
        correction = plain(correction)
        return int(plain(unbiased)) if correction is None else int(correction)

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
        if _is_none(x) and _is_none(y):
            return self.found(condition, True)
        if _is_none(x) or _is_none(y):
            raise NotWritten("where of two arguments")
        return self.writer.op("where", _operand(condition), _operand(x), _operand(y))

    def selected(self, x: Any, mask: Any) -> Any:
        """torch.masked_select, of a mask of x's rank; axes of size 1 repeat."""
        if self.tensor(x).rank != self.tensor(mask).rank or self.tensor(x).rank < 1:
            raise NotWritten("a mask of another rank")
        for a, b in zip(self.shape_of(x), self.shape_of(mask)):
            self.assume(self._same_size(a, b), "a mask of the sizes of its tensor")
        return self.writer.op("mask_select", x, mask)

    def transposed(self, x: Any) -> Any:
        """Tensor.t."""
        rank = plain(self.rank(x))
        if rank > 2:
            raise NotWritten("t() of more than 2 axes")
        return x if rank < 2 else self.writer.op("transpose", x, a=0, b=1)

    def reordered(self, x: Any, axes: Sequence[Any]) -> Any:
        """np.transpose."""
        order = self.sizes(axes) if axes and not _is_none(axes[0]) else list(range(plain(self.rank(x))))[::-1]
        return self.writer.op("permute", x, axes=order)

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
            start = self._added(start, size)
        self.assume(self._same_size(start, self.size(x, Known(axis))), "parts that make up the whole")
        return TupleValue(views)

    def _added(self, x: Value, y: Value) -> Value:
        if isinstance(x, Known) and isinstance(y, Known):
            return Known(x.object + y.object)
        return self.writer.scalar("add", x, y)

    def _same_size(self, x: Value, y: Value) -> Value:
        return self.writer.scalar("eq", x, y) if isinstance(x, Dynamic) or isinstance(y, Dynamic) else Known(plain(x) == plain(y))

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
            self.assume(self._equal(self.writer.scalar("mod", total, Known(count)), 0), f"a size that {count} divides")
            self.assume(self.writer.scalar("ge", total, Known(count)), f"a size of at least {count}")
            part = self.writer.scalar("floor_div", total, Known(count))
            views = [
                self.writer.op("narrow", x, axis=dim, start=self.writer.scalar("mul", part, Known(i)), length=part) for i in range(count)
            ]
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

    def padded(self, x: Any, pad: Any, value: Any) -> Any:
        """F.pad: pairs from the last axis on."""
        amounts, rank = self.sizes(pad), plain(self.rank(x))
        before: list[Any] = [0] * rank
        after: list[Any] = [0] * rank
        for i in range(len(amounts) // 2):
            before[rank - 1 - i], after[rank - 1 - i] = amounts[2 * i], amounts[2 * i + 1]
        return self.writer.op("pad", x, before=before, after=after, value=float(plain(value) or 0))

    def stepped(self, bounds: Sequence[Any], dtype: Any) -> Any:
        """arange."""
        kinds = {b.kind if isinstance(b, Dynamic) else type(plain(b)).__name__ for b in bounds}
        if kinds != {"int"}:
            raise NotWritten("a range of floats")
        start, stop, step = (Known(0), bounds[0], Known(1)) if len(bounds) == 1 else (*bounds, Known(1))[:3]
        return self.writer.op("arange", start=start, stop=stop, step=step, dtype=plain(dtype) or "int64")

    def product(self, x: Any, y: Any) -> Any:
        """np.dot where it is np.matmul."""
        if max(self.tensor(x).rank, self.tensor(y).rank) > 2 or min(self.tensor(x).rank, self.tensor(y).rank) < 1:
            raise NotWritten("a product of other ranks than 1 and 2")
        return self.writer.op("matmul", x, y)


def _is_none(value: Any) -> bool:
    return value is None or (isinstance(value, Known) and value.object is None)


def _operand(value: Any) -> Any:
    value = lifted(value)
    if isinstance(value, Known) and isinstance(value.object, str):
        raise NotWritten("a text as an operand")
    return value


# ----------------------------------------------------------------------------------------------------------------- rows


class Row:
    """One signature: bind arguments, then evaluate."""

    def __init__(self, parameters: str, expression: str) -> None:
        words = [word.strip() for word in _split(parameters)]
        fixed = {word[1:].split("=")[0]: ast.literal_eval(word.split("=", 1)[1]) for word in words if word.startswith("!")}
        self.fixed = fixed
        tree = ast.parse(f"lambda {', '.join(word.lstrip('!') for word in words)}: 0", mode="eval")
        self.signature = inspect.signature(eval(compile(tree, "<row>", "eval")))
        self.expression = compile(_Qualify().visit(ast.parse(expression, mode="eval")), "<row>", "eval")

    def __call__(self, lowering: Lowering, arguments: Sequence[Value], keywords: dict[str, Value]) -> Any:
        """The value of the call. Raises NotWritten where the row does not cover it."""
        try:
            bound = self.signature.bind(*arguments, **keywords)
        except TypeError as error:
            raise NotWritten(str(error)) from None
        bound.apply_defaults()
        for name, default in self.fixed.items():
            if plain(bound.arguments[name]) != default:
                raise NotWritten(f"the argument {name}")
        scope = {name: value if isinstance(value, (Value, tuple)) else Known(value) for name, value in bound.arguments.items()}
        return lifted(eval(self.expression, {"ops": lowering}, scope))


class _Qualify(ast.NodeTransformer):
    """Names that are called are attributes of the lowering."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name):
            node.func = ast.Attribute(ast.Name("ops", ast.Load()), node.func.id, ast.Load())
        return ast.fix_missing_locations(node)


def _split(parameters: str) -> list[str]:
    """At commas outside of brackets."""
    out, depth = [""], 0
    for char in parameters:
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            out.append("")
        else:
            out[-1] += char
    return out


@functools.cache
def registry() -> dict[str, dict[str, Any]]:
    """Ops by name."""
    return {op["name"]: op for op in _flexor.registry()}


@functools.cache
def rows(framework: str) -> dict[str, Row]:
    """Rows by qualified name ("torch.softmax", "Tensor.view", "np.sum")."""
    out: dict[str, Row] = {}
    for name, op in registry().items():
        if op["attributes"] or any("list" in operand[1] for operand in op["operands"]):
            continue
        operands = [operand[0] for operand in op["operands"]]
        row = Row(", ".join(operands), f"{name}({', '.join(operands)})")
        path = op[framework]
        if path:
            module, _, last = path.rpartition(".")
            short = {"torch": "torch", "torch.nn.functional": "F", "torch.Tensor": "Tensor", "numpy": "np"}.get(module)
            if short:
                out[f"{short}.{last}"] = row
            if short == "torch":
                out[f"Tensor.{last}"] = row
        if framework == "torch" and name.endswith("_"):
            rest = ", ".join(operands[1:])
            out[f"Tensor.{name}"] = Row(", ".join(operands), f"written({operands[0]}, '{name}'{', ' + rest if rest else ''})")
    table = signatures.TORCH if framework == "torch" else signatures.NUMPY
    for line in table.strip().splitlines():
        names, _, rest = line.partition(": ")
        parameters, _, expression = rest.partition(" -> ")
        row = Row(parameters, expression)
        out.update(dict.fromkeys(names.split(), row))
    return out


@functools.cache
def functions() -> dict[int, tuple[str, Any]]:
    """Callables of the frameworks that rows describe, by identity: (framework, qualified name). Holds them alive."""
    out: dict[int, tuple[str, Any]] = {}
    torch, numpy = sys.modules.get("torch"), sys.modules["numpy"]
    places: dict[str, tuple[str, Any]] = {"np": ("numpy", numpy)}
    if torch is not None:
        places |= {"torch": ("torch", torch), "F": ("torch", torch.nn.functional)}
    for framework in ("torch", "numpy"):
        for name in rows(framework):
            place, _, last = name.partition(".")
            if place in places:
                found = getattr(places[place][1], last, None)
                if found is not None:
                    out[id(found)] = (name, found)
    return out


_IMPURE = ("rand", "bernoulli", "multinomial", "normal", "poisson", "exponential", "geometric", "dropout", "seed", "set_", "save", "load", "print", "use_", "shuffle")


@functools.cache
def _pure() -> frozenset[int]:
    out: set[int] = set()
    torch, numpy = sys.modules.get("torch"), sys.modules["numpy"]
    places = [numpy, numpy.linalg, numpy.fft]
    if torch is not None:
        places += [torch, torch.nn.functional, torch.linalg, torch.special, torch.fft, torch._C._nn]
    for place in places:
        for name, value in vars(place).items():
            if callable(value) and not isinstance(value, type) and not name.endswith("_") and not draws(name):
                out.add(id(value))
    return frozenset(out)


def draws(name: str) -> bool:
    """Whether a function or method of this name takes random numbers or changes something."""
    return any(word in name.replace("normaliz", "") for word in _IMPURE)


def is_pure(function: Any) -> bool:
    """Whether a function of a framework is known to change nothing."""
    return id(function) in _pure()


def methods(framework: str) -> str:
    """The prefix of a framework's tensor methods in the rows."""
    return "Tensor" if framework == "torch" else "ndarray"


__all__ = ["Lowering", "MethodValue", "Row", "functions", "is_pure", "lifted", "methods", "plain", "registry", "rows"]
