"""Calls of the frameworks that several ops of the registry make up. Rows of `signatures` call these methods by name.

Each raises NotWritten where the composition and the framework's own function part: in dtypes that the framework refuses, in
forms that have rules of their own. What is rounded differently by a few units in the last place is the same.
"""

from __future__ import annotations

import functools
import math
import string
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from flexor.frontend.cpython.arrays import MOST_NUMBERS
from flexor.frontend.cpython.values import Dynamic, Known, ListValue, RunList, TupleValue, Value, is_int, is_none
from flexor.frontend.cpython.writer import NotWritten, plain

if TYPE_CHECKING:
    from flexor.frontend.cpython.writer import Writer




class Composites:
    """Methods of Lowering, which has the rest of what they call."""

    if TYPE_CHECKING:
        writer: Writer

        def __getattr__(self, name: str) -> Any: ...

    # ---------------------------------------------------------------------------------------------------- conditions

    def floating(self, *values: Any) -> Any:
        """The first tensor, if all are of one dtype of floats."""
        if "float" not in self.dtype_of(self.alike(*values)):
            raise NotWritten("a dtype that is not of floats")
        return values[0]

    def alike(self, *values: Any) -> Any:
        """The first tensor, if all are of one dtype."""
        if len({self.dtype_of(value) for value in values}) != 1:
            raise NotWritten("several dtypes")
        return values[0]

    def numbers(self, *values: Any) -> Any:
        """As `wide`, or of int64, which sums and products stay."""
        return values[0] if self.dtype_of(self.alike(*values)) == "int64" else self.wide(*values)

    def wide(self, *values: Any) -> Any:
        """As `floating`, of float32 or float64: eager rounds no intermediate value of its kernels to 16 bits, ops in a row do."""
        if "16" in self.dtype_of(self.floating(*values)):
            raise NotWritten("a dtype of 16 bits")
        return values[0]

    def ranked(self, value: Any, *ranks: int) -> Any:
        """The tensor, if it has that many axes."""
        if plain(self.rank(value)) not in ranks:
            raise NotWritten("another number of axes")
        return value

    def same_sizes(self, x: Any, y: Any) -> None:
        """Goes on as if two tensors had one shape."""
        if self.tensor(x).rank != self.tensor(y).rank:
            raise NotWritten("another number of axes")
        for a, b in zip(self.shape_of(x), self.shape_of(y)):
            self.assume_equal(a, b, "equal sizes")

    def assume_equal(self, a: Value, b: Value, what: str) -> None:
        """Goes on as if two sizes were equal, where that is not plain from their text."""
        if str(getattr(a, "native", a)) != str(getattr(b, "native", b)):
            self.assume(self._same_size(a, b), what)

    # ------------------------------------------------------------------------------------------------------ products

    def product_of(self, x: Any, y: Any, x_rank: int, y_rank: int) -> Any:
        """A product of matrices and vectors, of those ranks alone and of one dtype of numbers."""
        self.ranked(x, x_rank), self.ranked(y, y_rank)
        if self.dtype_of(self.alike(x, y)) == "bool":
            raise NotWritten("a product of bools")
        if x_rank == y_rank == 3:
            self.assume_equal(self.shape_of(x)[0], self.shape_of(y)[0], "equal batches")
        return self.writer.op("matmul", x, y)

    def matrix_sum(self, c: Any, x: Any, y: Any, beta: Any, alpha: Any) -> Any:
        """torch.addmm."""
        if isinstance(beta, Dynamic) or isinstance(alpha, Dynamic):
            return self.scaled_sum(c, self.product_of(x, y, 2, 2), beta, alpha)
        return self.writer.op("addmm", c, x, y, beta=beta, alpha=alpha)

    def outer_sum(self, c: Any, x: Any, y: Any, beta: Any, alpha: Any) -> Any:
        """torch.addr, of bools too."""
        self.ranked(x, 1), self.ranked(y, 1)
        if self.dtype_of(self.alike(x, y)) != "bool":
            return self.scaled_sum(c, self.writer.op("outer", x, y), beta, alpha)
        self.alike(x, c)
        c = self.writer.op("expand", c, shape=[self.shape_of(x)[0], self.shape_of(y)[0]])
        both = self.writer.op("logical_and", self.writer.op("unsqueeze", x, axis=1), y)
        parts = [part for part, factor in ((c, beta), (both, alpha)) if isinstance(factor, Known) and factor.object]
        if len(parts) != 2:
            raise NotWritten("a factor that may be 0 for bools")
        return self.writer.op("logical_or", *parts)

    def scaled_sum(self, c: Any, product: Any, beta: Any, alpha: Any) -> Any:
        """beta c + alpha product; c is not read where beta is 0. Factors of integers lose their fractions."""
        self.numbers(product, c)
        if self.dtype_of(c) == "int64":
            beta, alpha = map(self._whole_factor, (beta, alpha))
        elif isinstance(beta, Dynamic):
            is_read = self.writer.op("full", self._compared("ne", beta, Known(0)), shape=[], dtype="bool")
            c = self.writer.op("where", is_read, c, Known(0))
        scaled = product if _is(alpha, 1) else self.writer.op("mul", product, alpha)
        if _is(beta, 0):
            return scaled
        c = self.writer.op("expand", c, shape=self.shape_of(product))
        return self.writer.op("add", scaled if _is(beta, 1) else self.writer.op("mul", c, beta), c if _is(beta, 1) else scaled)

    def _whole_factor(self, factor: Any) -> Any:
        if isinstance(factor, Dynamic):
            return factor if is_int(factor) else self.writer.scalar("to_int", factor)
        return Known(int(plain(factor)))

    def inner(self, x: Any, y: Any) -> Any:
        """torch.inner: sums over the last axes."""
        self.numbers(x, y)
        if 0 in (plain(self.rank(x)), plain(self.rank(y))):
            return self.writer.op("mul", x, y)
        if plain(self.rank(y)) not in (1, 2) or plain(self.rank(x)) < 1:
            raise NotWritten("an inner product of these ranks")
        return self.writer.op("matmul", x, y if self.tensor(y).rank == 1 else self.writer.op("transpose", y, a=0, b=1))

    # --------------------------------------------------------------------------------------------------- elementwise

    def plus(self, op: str, x: Any, y: Any, alpha: Any) -> Any:
        """x + alpha y, or minus, with a factor that may be of the run."""
        if isinstance(alpha, Known) and type(alpha.object) is bool and "float" not in self._kinds(x, y):
            alpha = Known(int(alpha.object))
        if isinstance(alpha, Dynamic) and alpha.kind == "bool" and self._kinds(x, y).split()[:2] == ["bool", "bool"]:
            return self.writer.op(op, x, self.writer.op("mul", y, alpha))
        self.factor(alpha, x, y)
        if not isinstance(alpha, Dynamic):
            return getattr(self, op)(x, y, alpha=alpha)
        return self.writer.op(op, x, self._scaled(y, alpha, x, y))

    def plus_product(self, x: Any, y: Any, z: Any, value: Any) -> Any:
        """torch.addcmul."""
        if not isinstance(value, Dynamic):
            return self.writer.op("addcmul", x, y, z, value=value)
        return self.writer.op("add", x, self.writer.op("mul", self._scaled(y, value, x, y, z), z))

    def _scaled(self, x: Any, factor: Any, *operands: Any) -> Any:
        """x times a factor of the run, in the dtype that all operands have."""
        if not (isinstance(x, Dynamic) and x.kind == "tensor"):  # two numbers
            return self.writer.scalar("mul", x, factor)
        if "int" in self.dtype_of(self.alike(*operands)):
            self.factor(factor, x)
        else:
            self.wide(x)
        return self.writer.op("mul", x, factor)

    def filled(self, x: Any, value: Any) -> Any:
        """torch.fill."""
        return self.writer.op("full_like", self.tensor(x), value)

    def cloned(self, x: Any, memory_format: Any) -> Any:
        """torch.clone."""
        if plain(memory_format) not in (None, _torch().preserve_format):
            raise NotWritten("a memory format")
        return self.writer.op("clone", self.tensor(x))

    def contiguous_in(self, x: Any, memory_format: Any) -> Any:
        """Tensor.contiguous: the tensor itself where it is, as eager gives it."""
        if plain(memory_format) not in (None, _torch().contiguous_format):
            raise NotWritten("a memory format")
        return self.writer.op("contiguous", self.tensor(x))

    def frac(self, x: Any) -> Any:
        """x less its whole part."""
        return self.writer.op("sub", self.floating(x), self.writer.op("trunc", x))

    def as_float(self, x: Any) -> Any:
        """The tensor, integers and bools as floats of the default dtype."""
        return x if "float" in self.dtype_of(x) else self.to(x, self.float_dtype(None, None))

    def in_float64(self, x: Any) -> Any:
        """A tensor as one of doubles; numbers are as they are."""
        return self.to(x, "float64") if self.is_tensor(x) else x

    def to_format(self, x: Any, dtype: str, memory_format: Any) -> Any:
        """Another dtype in a memory format. A tensor that has both is the result itself: below four axes it has every format."""
        wanted, rank = plain(memory_format), plain(self.rank(x))
        kept = (None, _torch().preserve_format) if rank >= 4 else (None, _torch().preserve_format, _torch().contiguous_format)
        if self.dtype_of(x) == dtype and wanted in kept:
            return x
        made = self.to(x, dtype)
        if wanted in (None, _torch().preserve_format):
            return made
        if wanted == _torch().channels_last and rank == 4:
            last = self.writer.op("contiguous", self.writer.op("permute", made, axes=[0, 2, 3, 1]))
            return self.writer.op("permute", last, axes=[0, 3, 1, 2])
        return self.contiguous_in(made, memory_format)

    def angle(self, x: Any) -> Any:
        """torch.angle of real numbers: 0, or pi where they are negative."""
        x, op = self.as_float(x), self.writer.op
        half_turn = op("mul", op("cast", op("lt", x, Known(0)), dtype=self.dtype_of(x)), Known(math.pi))
        return op("where", op("isnan", x), x, half_turn)

    def bounded(self, x: Any, bound: Any, kind: str) -> Any:
        """torch.clamp_min and clamp_max."""
        if self.is_tensor(bound):
            return self.writer.op(kind, self.tensor(x), bound)
        nothing = Known(None)
        return self.clamp(x, *((bound, nothing) if kind == "maximum" else (nothing, bound)))

    def is_value(self, x: Any, value: str) -> Any:
        """Whether elements are a number that has no literal, such as "inf"."""
        if "float" not in self.dtype_of(x):
            return self.writer.op("full_like", x, Known(False), dtype="bool")
        return self.writer.op("eq", x, Known(float(value)))

    def is_equal(self, x: Any, y: Any) -> Any:
        """torch.equal, a bool of Python."""
        self.alike(x, y)
        if plain(self.rank(x)) != plain(self.rank(y)):
            return Known(False)
        self.same_sizes(x, y)
        return self.item(self.writer.op("reduce_all", self.writer.op("eq", x, y)))

    def is_in(self, x: Any, among: Any, invert: Any) -> Any:
        """torch.isin among few elements, each compared with each; among many eager sorts them."""
        op = self.writer.op
        few = 64
        self.assume(self._compared("le", self.count(among), Known(few)), f"at most {few} elements to look for")
        found = op("reduce_any", op("eq", op("unsqueeze", x, axis=-1), op("reshape", among, shape=[-1])), axes=[-1])
        return op("logical_not", found) if plain(invert) else found

    def log_gamma_of_matrices(self, x: Any, p: Any) -> Any:
        """torch.mvlgamma."""
        p, op = plain(p), self.writer.op
        if type(p) is not int or p < 1:
            raise NotWritten("an order that torch refuses")
        self.wide(self.as_float(x))
        total = op("lgamma", x)
        for i in range(1, p):
            total = op("add", total, op("lgamma", op("sub", x, Known(0.5 * i))))
        return op("add", total, Known(0.25 * p * (p - 1) * math.log(math.pi)))

    def heaviside(self, x: Any, values: Any) -> Any:
        """torch.heaviside."""
        self.alike(x, values)
        step = self.writer.op("cast", self.writer.op("gt", x, Known(0)), dtype=self.dtype_of(x))
        return self.writer.op("where", self.writer.op("eq", x, Known(0)), values, step)

    def is_close(self, x: Any, y: Any, rtol: Any, atol: Any, equal_nan: Any) -> Any:
        """torch.isclose."""
        is_float = "float" in self.dtype_of(self.alike(x, y))
        for tolerance in (rtol, atol):
            self.assume(self._compared("ge", tolerance, Known(0)), "a tolerance that is not negative")
        op = self.writer.op
        close = op("eq", x, y)
        if plain(equal_nan) and is_float:
            close = op("logical_or", close, op("logical_and", op("isnan", x), op("isnan", y)))
        if _is(rtol, 0) and _is(atol, 0):
            return close
        x, y = self.as_float(x) if self.dtype_of(x) == "bool" else x, self.as_float(y)
        allowed = op("add", op("abs", op("mul", y, rtol)), atol)
        actual = op("abs", op("sub", x, y))
        return op("logical_or", close, op("logical_and", op("isfinite", actual), op("le", actual, allowed)))

    def all_close(self, x: Any, y: Any, rtol: Any, atol: Any, equal_nan: Any) -> Any:
        """torch.allclose, a bool of Python."""
        return self.item(self.writer.op("reduce_all", self.is_close(x, y, rtol, atol, equal_nan)))

    def log_add_exp(self, x: Any, y: Any) -> Any:
        """log(exp(x) + exp(y)), without overflow."""
        self.wide(x, y)
        op = self.writer.op
        rest = op("log1p", op("exp", op("neg", op("abs", op("sub", x, y)))))
        equal = op("logical_and", op("isinf", x), op("eq", x, y))
        return op("where", equal, x, op("add", op("maximum", x, y), rest))

    def log_add_exp2(self, x: Any, y: Any) -> Any:
        """log2(2 ** x + 2 ** y), without overflow."""
        self.wide(x, y)
        op = self.writer.op
        rest = op("mul", op("log1p", op("exp2", op("neg", op("abs", op("sub", x, y))))), Known(1 / math.log(2)))
        equal = op("logical_and", op("isinf", x), op("eq", x, y))
        return op("where", equal, x, op("add", op("maximum", x, y), rest))

    def logit(self, x: Any, eps: Any) -> Any:
        """log(x / (1 - x)), x being held away from 0 and 1."""
        x = self.wide(self.as_float(x))
        if isinstance(eps, Dynamic):
            self.assume(self._compared("ge", eps, Known(0)), "a bound")
        if isinstance(eps, Dynamic) or plain(eps) is not None and plain(eps) >= 0:
            self.assume(self._compared("le", eps, Known(0.5)), "bounds in their order")
            above = self.writer.scalar("sub", Known(1.0), eps) if isinstance(eps, Dynamic) else Known(1.0 - plain(eps))
            x = self.writer.op("clamp", x, eps, above)
        return self.writer.op("log", self.writer.op("div", x, self.writer.op("sub", Known(1), x)))

    def divide(self, x: Any, y: Any, rounding: Any) -> Any:
        """torch.div."""
        rounding, op = plain(rounding), self.writer.op
        if rounding is None:
            return op("div", x, y)
        if rounding == "floor":
            return op("floor_divide", x, y)
        if rounding == "trunc":
            kinds = self._kinds(x, y)
            if "float" in kinds:
                return op("trunc", op("div", x, y))
            if "bool" in kinds:
                raise NotWritten("a division of bools")
            return op("floor_divide", op("sub", x, op("fmod", x, y)), y)  # without its rest, which has x's sign
        raise NotWritten(f"rounding_mode={rounding!r}")

    # ----------------------------------------------------------------------------------------------------- reductions

    def count_nonzero(self, x: Any, dim: Any) -> Any:
        """torch.count_nonzero."""
        return self.writer.op("reduce_sum", self.writer.op("ne", self.tensor(x), Known(0)), axes=self.axes_of(x, dim))

    def both_extremes(self, x: Any, dim: Any, keepdim: Any) -> Any:
        """torch.aminmax."""
        axis = self.one_axis(dim)
        found = [self.writer.op(f"reduce_{which}", self.tensor(x), axes=axis, keepdim=keepdim) for which in ("min", "max")]
        return TupleValue(found, _torch().return_types.aminmax)

    def with_mean(self, x: Any, op: str, dim: Any, unbiased: Any, keepdim: Any, correction: Any) -> Any:
        """torch.var_mean and torch.std_mean."""
        axes = self.axes(dim)
        spread = self.writer.op(op, self.floating(x), axes=axes, keepdim=keepdim, correction=self.correction_of(unbiased, correction))
        return TupleValue([spread, self.writer.op("reduce_mean", x, axes=axes, keepdim=keepdim)])

    def vector_product(self, x: Any, y: Any, dim: Any) -> Any:
        """torch.linalg.vecdot."""
        self.numbers(x, y)
        return self.writer.op("reduce_sum", self.writer.op("mul", x, y), axes=[plain(dim)])

    def cosine_similarity(self, x: Any, y: Any, dim: Any, eps: Any) -> Any:
        """F.cosine_similarity."""
        self.wide(x, y)
        axis, op = plain(dim), self.writer.op
        if self.tensor(x).rank != self.tensor(y).rank or self.tensor(x).rank < 1:
            raise NotWritten("tensors of several ranks")

        def unit(v: Any) -> Any:
            length = op("sqrt", op("reduce_sum", op("square", v), axes=[axis], keepdim=True))
            return op("div", v, op("clamp", length, Known(float(plain(eps))), Known(None)))

        return op("reduce_sum", op("mul", unit(x), unit(y)), axes=[axis])

    # -------------------------------------------------------------------------------------------------------- shapes

    def at_least(self, x: Any, rank: int) -> Any:
        """torch.atleast_1d, 2d and 3d."""
        have, op = plain(self.rank(x)), self.writer.op
        if have == 0:
            return op("reshape", x, shape=[1] * rank)
        for axis in {2: [0] if have < 2 else [], 3: {1: [0, 2], 2: [2]}.get(have, [])}.get(rank, []):
            x = op("unsqueeze", x, axis=axis)
        return x

    def each_at_least(self, tensors: Sequence[Any], rank: int) -> Any:
        """The same of one tensor, or of several as a tuple."""
        if len(tensors) == 1 and self.is_tensor(tensors[0]):
            return self.at_least(tensors[0], rank)
        items = self.parts(tensors[0]) if len(tensors) == 1 else tensors
        return TupleValue([self.at_least(item, rank) for item in items])

    def joined(self, parts: Any, rank: int, axis: int) -> Any:
        """torch.vstack, dstack and hstack."""
        items = [self.at_least(part, rank) for part in self.parts(parts)]
        along = 0 if axis == 1 and rank == 1 and items and self.tensor(items[0]).rank == 1 else axis
        return self.writer.op("concat", *items, axis=along)

    def joined_along(self, tensors: Any, dim: Any) -> Any:
        """torch.cat, which passes over tensors of the shape (0,) among others of more axes."""
        if isinstance(tensors, RunList):
            return self.list_joined(tensors, "concat", dim)
        parts = self.parts(tensors)
        if len({self.tensor(part).rank for part in parts}) > 1:
            self.alike(*parts)
            most = max(self.tensor(part).rank for part in parts)
            for part in parts:
                if self.tensor(part).rank < most:
                    self.assume_equal(self.shape_of(self.ranked(part, 1))[0], Known(0), "tensors of one number of axes, or of no elements")
            parts = [part for part in parts if self.tensor(part).rank == most]
        return self.writer.op("concat", *parts, axis=dim)

    def made_tensor(self, data: Any, dtype: Any, device: Any) -> Any:
        """torch.tensor of numbers, or of lists of numbers."""
        if isinstance(data, RunList):
            joined = self.gathered(data, None)
            number = {"bool": False, "int": 0, "float": 0.0}.get(data.element[0])
            return joined if number is None else self.to(joined, self.fill_dtype(Known(number), dtype, device))
        if not isinstance(data, (ListValue, TupleValue)):
            data = self.lifted_lists(data)
        if not isinstance(data, (ListValue, TupleValue)):
            return self.number_tensor(data, dtype, device)
        numbers = list(self.leaves_of(data))
        if len(numbers) > MOST_NUMBERS:
            raise NotWritten(f"more than {MOST_NUMBERS} numbers")
        if not numbers:
            filled = self.float_dtype(dtype, device)
        else:
            order = {"bool": 0, "int": 1, "float": 2}
            kinds = [self.number_kind(number) for number in numbers]
            filled = self.fill_dtype(numbers[kinds.index(max(kinds, key=order.__getitem__))], dtype, device)
        return self.stacked(data, filled)

    def leaves_of(self, data: Any) -> Iterator[Any]:
        """The elements of lists in lists."""
        if isinstance(data, (ListValue, TupleValue)):
            for item in data.items:
                yield from self.leaves_of(item)
        else:
            yield data

    def stacked(self, data: Any, dtype: Any) -> Any:
        """Numbers, or lists of numbers, as a tensor."""
        if not isinstance(data, (ListValue, TupleValue)):
            return self.writer.op("full", data, shape=[], dtype=dtype)
        if not data.items:
            return self.writer.op("zeros", shape=[0], dtype=dtype)
        return self.writer.op("stack", *(self.stacked(item, dtype) for item in data.items), axis=0)

    def columns(self, parts: Any) -> Any:
        """torch.column_stack."""
        items = [self.at_least(p, 1) for p in self.parts(parts)]
        items = [self.writer.op("unsqueeze", p, axis=1) if self.tensor(p).rank == 1 else p for p in items]
        return self.writer.op("concat", *items, axis=1)

    def moved(self, x: Any, source: Any, destination: Any) -> Any:
        """torch.movedim."""
        rank = plain(self.rank(x))
        pairs = [[v] if isinstance(v, int) else list(v) for v in (plain(source), plain(destination))]
        if len(pairs[0]) != len(pairs[1]) or not all(-rank <= axis < rank for axis in pairs[0] + pairs[1]):
            raise NotWritten("axes that are not there")
        starts, ends = ([axis % rank for axis in axes] for axes in pairs)
        if len(set(starts)) != len(starts) or len(set(ends)) != len(ends):
            raise NotWritten("an axis named twice")
        rest = iter(axis for axis in range(rank) if axis not in starts)
        taken = dict(zip(ends, starts))
        return self.writer.op("permute", x, axes=[taken[i] if i in taken else next(rest) for i in range(rank)])

    def tiled(self, x: Any, counts: Sequence[Any]) -> Any:
        """torch.tile."""
        given, rank = self.sizes(counts), plain(self.rank(x))
        if len(given) > rank:
            raise NotWritten("more counts than axes")
        return self.writer.op("repeat", x, counts=[1] * (rank - len(given)) + given)

    def repeated(self, x: Any, repeats: Any, dim: Any, output_size: Any = None) -> Any:
        """torch.repeat_interleave and np.repeat by one number along one axis, or by a vector of counts."""
        if isinstance(repeats, Dynamic) and repeats.kind == "tensor":
            return self.repeated_by(x, repeats, dim, output_size)
        if not is_none(output_size):
            raise NotWritten("a promised size of one number of repeats")
        count, axis, rank = plain(repeats), plain(dim), plain(self.rank(x))
        if type(count) is not int or count < 2 or type(axis) is not int or not -rank <= axis < rank:
            raise NotWritten("repeats that are no number of 2 or more")
        axis %= rank
        sizes = self.shape_of(x)
        wide = self.writer.op("unsqueeze", x, axis=axis + 1)
        wide = self.writer.op("expand", wide, shape=[*sizes[: axis + 1], count, *sizes[axis + 1 :]])
        # Fresh memory, also where the axis has size 1 and the merged axes would be a view.
        return self.writer.op("flatten", self.writer.op("contiguous", wide), start_axis=axis, end_axis=axis + 1)

    def reversed_view(self, x: Any, axis: Any) -> Any:
        """np.flip, which gives a view."""
        axes = self.some_axes(axis)
        for each in range(plain(self.rank(x))) if axes is None else axes:
            x = self.writer.op("slice", x, axis=each, step=-1)
        return x

    def cut(self, x: Any, sections: Any, axis: Any) -> Any:
        """np.split into one number of equal parts, a list."""
        count, rank, at = plain(sections), plain(self.rank(x)), plain(axis)
        if type(count) is not int or count < 1 or type(at) is not int or not -rank <= at < rank:
            raise NotWritten("sections that are no number")
        total = self.shape_of(x)[at]
        if isinstance(total, Known) and (total.object % count or total.object < count):
            raise NotWritten("parts of several sizes, or empty ones")
        return ListValue(self.equal_parts(x, count, at % rank))

    def grid(self, tensors: Sequence[Any], indexing: Any) -> Any:
        """torch.meshgrid."""
        single = len(tensors) == 1 and isinstance(tensors[0], (TupleValue, ListValue))
        items = self.parts(tensors[0]) if single else list(tensors)
        if plain(indexing) not in ("ij", "xy", None) or not items:
            raise NotWritten("a grid of another indexing")
        self.alike(*items)
        items = [self.at_least(self.ranked(item, 0, 1), 1) for item in items]
        if plain(indexing) == "xy" and len(items) > 1:  # the first two of what is given and of what comes out change places
            first, second, *rest = self.grid([items[1], items[0], *items[2:]], Known("ij")).items
            return TupleValue([second, first, *rest])
        sizes = [self.shape_of(item)[0] for item in items]
        views = []
        for place, item in enumerate(items):
            for axis in range(len(items)):
                if axis != place:
                    item = self.writer.op("unsqueeze", item, axis=axis)
            views.append(self.writer.op("expand", item, shape=sizes))
        return TupleValue(views)

    def combinations(self, x: Any, r: Any, with_replacement: Any) -> Any:
        """torch.combinations: those places of a grid whose indices rise."""
        self.ranked(x, 1)
        count, op = plain(r), self.writer.op
        if type(count) is not int or count < 1:
            raise NotWritten("combinations of none")
        if count == 1:
            return op("clone", op("unsqueeze", x, axis=1))
        places = op("arange", start=Known(0), stop=self.shape_of(x)[0], step=Known(1), dtype="int64")
        indices = self.grid([places] * count, Known("ij")).items
        rises = [op("le" if plain(with_replacement) else "lt", a, b) for a, b in zip(indices, indices[1:])]
        mask = functools.reduce(lambda a, b: op("logical_and", a, b), rises)
        return op("stack", *(op("mask_select", view, mask) for view in self.grid([x] * count, Known("ij")).items), axis=1)

    def cartesian(self, tensors: Sequence[Any]) -> Any:
        """torch.cartesian_prod."""
        op = self.writer.op
        for item in tensors:
            self.ranked(item, 1)
        if len(tensors) < 2:
            return op("view", tensors[0], shape=[-1])
        views = self.grid(tensors, Known("ij")).items
        return op("stack", *(op("reshape", view, shape=[-1]) for view in views), axis=1)

    def broadcast_all(self, tensors: Sequence[Any]) -> Any:
        """torch.broadcast_tensors: the sizes are those of a comparison of all, which is not computed."""
        single = len(tensors) == 1 and isinstance(tensors[0], (TupleValue, ListValue))
        items = self.parts(tensors[0]) if single else list(tensors)
        if not items:
            raise NotWritten("no tensors")
        whole = functools.reduce(lambda x, y: self.writer.op("ne", x, y), items)
        sizes = self.shape_of(whole)
        return TupleValue([self.writer.op("expand", item, shape=sizes) for item in items])

    def rolled(self, x: Any, shifts: Any, axes: Any) -> Any:
        """torch.roll and np.roll; without axes all elements stand in one line."""
        if self.is_tensor(shifts) and self.framework == "numpy" and not self.tensor(shifts).rank and "int" in self.dtype_of(shifts):
            shifts = self.item(shifts)  # NumPy's scalars are numbers
        op, by, along = self.writer.op, self.sizes(shifts), self.some_axes(axes)
        if along is not None and self.framework == "numpy" and len(by) == 1:
            by = by * len(along)
        if along is not None:
            return op("roll", x, shifts=by, axes=along)
        if len(by) != 1:
            raise NotWritten("several numbers without axes")
        line = op("reshape", x, shape=[-1])
        return op("reshape", op("roll", line, shifts=by, axes=[0]), shape=self.shape_of(x))

    def centred(self, x: Any, dim: Any, back: bool) -> Any:
        """torch.fft.fftshift: axes turned by half their sizes, and back."""
        axes = self.some_axes(dim)
        axes = list(range(self.tensor(x).rank)) if axes is None else axes
        shifts = []
        for axis in axes:
            size = self.size(x, Known(axis))
            size = self.sum_of_sizes(size, Known(1)) if back else size
            shifts.append(Known(size.object // 2) if isinstance(size, Known) else self.writer.scalar("floor_div", size, Known(2)))
        return self.writer.op("roll", x, shifts=shifts, axes=axes) if axes else self.writer.op("clone", x)

    def mask_scattered(self, x: Any, mask: Any, source: Any) -> Any:
        """torch.masked_scatter: the source's elements in order, where the mask is true."""
        self.alike(x, source)
        if self.dtype_of(mask) != "bool":
            raise NotWritten("a mask of numbers")
        x, mask = self.broadcast_all([x, mask]).items
        op = self.writer.op
        shown = op("reshape", mask, shape=[-1])
        given = self.count(source)
        self.assume(self._compared("gt", given, Known(0)), "elements to take")
        self.assume(self._compared("le", self.item(op("reduce_sum", shown)), given), "as many elements as the mask shows")
        places = op("clamp", op("sub", op("cumsum", shown, axis=0), Known(1)), Known(0))
        taken = op("index_select", op("reshape", source, shape=[-1]), places, axis=0)
        return op("where", mask, op("reshape", taken, shape=self.shape_of(x)), x)

    def indexed_along(self, x: Any, dim: Any, index: Any) -> Any:
        """torch.index_select, of a tensor without axes too."""
        if plain(self.rank(x)):
            return self.taken(x, index, dim, "index_select")
        if plain(dim) not in (0, -1):
            raise NotWritten("an axis that is not there")
        self.assume_equal(self.count(index), Known(1), "one index")
        chosen = self.writer.op("index_select", self.at_least(x, 1), index, axis=0)
        return self.writer.op("reshape", chosen, shape=[])

    # ---------------------------------------------------------------------------------------------------- activations

    def activation(self, kind: str, x: Any, *numbers: Any) -> Any:
        """Activations of torch.nn.functional that the registry has no op for."""
        op, zero = self.writer.op, Known(0)
        self.wide(x)
        given = [plain(number) for number in numbers]
        if kind == "logsigmoid":
            return op("sub", op("minimum", x, zero), op("log1p", op("exp", op("neg", op("abs", x)))))
        if kind == "softsign":
            return op("div", x, op("add", op("abs", x), Known(1)))
        if kind == "tanhshrink":
            return op("sub", x, op("tanh", x))
        if kind == "hardshrink":
            return op("where", op("le", op("abs", x), Known(float(given[0]))), zero, x)
        if kind == "softshrink" and given[0] >= 0:
            bound = Known(float(given[0]))
            beyond = op("where", op("lt", x, op("neg", bound) if isinstance(bound, Dynamic) else Known(-bound.object)), op("add", x, bound), op("mul", x, zero))
            return op("where", op("gt", x, bound), op("sub", x, bound), beyond)
        if kind == "threshold":
            return op("where", op("le", x, Known(float(given[0]))), Known(float(given[1])), x)
        if kind == "celu" and given[0] > 0:
            alpha = Known(float(given[0]))
            return op("where", op("gt", x, zero), x, op("mul", op("expm1", op("div", x, alpha)), alpha))
        if kind == "mish":
            return op("mul", x, op("tanh", op("softplus", x)))
        raise NotWritten(kind)

    def gated(self, x: Any, dim: Any) -> Any:
        """F.glu."""
        axis, op = plain(dim), self.writer.op
        if plain(self.rank(self.wide(x))) < 1:
            raise NotWritten("halves of a number")
        left, right = self.equal_parts(x, 2, axis % self.tensor(x).rank)
        return op("mul", left, op("sigmoid", right))

    # -------------------------------------------------------------------------------------------------------- einsum

    def einsum(self, equation: Any, operands: Sequence[Any]) -> Any:
        """torch.einsum of one or two operands: diagonals, sums, a permutation, a product of matrices."""
        items = self.parts(operands[0]) if len(operands) == 1 and isinstance(operands[0], (TupleValue, ListValue)) else list(operands)
        text = plain(equation)
        if not isinstance(text, str) or len(items) not in (1, 2) or any(not isinstance(i, Dynamic) for i in items):
            raise NotWritten("an equation of this kind")
        inputs, output = self._spelled_out(text.replace(" ", ""), items)
        labels = inputs.split(",")
        self.numbers(*items)
        if len(labels) != len(items) or len(set(output)) != len(output) or not set(output) <= set(inputs):
            raise NotWritten("an equation of this kind")
        if not all(term.isalpha() or not term for term in labels):
            raise NotWritten("an equation of this kind")
        for item, term in zip(items, labels):
            self.ranked(item, len(term))
        items, labels = map(list, zip(*(self._without_repeats(item, term) for item, term in zip(items, labels))))
        if len(items) == 1:
            return self._ordered(*self._summed(items[0], labels[0], output), output)
        (x, a), (y, b) = (self._summed(item, term, output + other) for item, term, other in zip(items, labels, labels[::-1]))
        return self._contracted(x, a, y, b, output)

    def _spelled_out(self, text: str, items: Sequence[Any]) -> tuple[str, str]:
        """Both sides of an equation, with a label for every axis that dots stand for; an output that is not given is made."""
        inputs, arrow, output = text.partition("->")
        dots = ""
        terms = inputs.split(",")
        for place, (term, item) in enumerate(zip(terms, items)):
            if term.count("...") != 1 or "." in term.replace("...", ""):
                continue
            count = plain(self.rank(item)) - len(term) + 3
            unused = [c for c in string.ascii_letters if c not in text]
            if not 0 <= count <= len(unused):
                raise NotWritten("more labels than axes")
            own = "".join(unused[:count])[::-1]  # the last axes of several operands stand below each other
            dots = max(dots, own, key=len)
            terms[place] = term.replace("...", own)
        inputs = ",".join(terms)
        if not arrow:
            output = dots + "".join(sorted(c for c in set(inputs) - {","} - set(dots) if inputs.count(c) == 1))
        return inputs, output.replace("...", dots)

    def _without_repeats(self, x: Any, term: str) -> tuple[Any, str]:
        """A label that names several axes takes their diagonal."""
        for label in sorted({c for c in term if term.count(c) > 1}):
            while term.count(label) > 1:
                first, last = term.index(label), term.rindex(label)
                sizes = self.shape_of(x)
                self.assume_equal(sizes[first], sizes[last], "equal sizes of a label")
                x = self.writer.op("diagonal", x, a=first, b=last)
                term = "".join(c for axis, c in enumerate(term) if axis not in (first, last)) + label
        return x, term

    def _summed(self, x: Any, term: str, kept: str) -> tuple[Any, str]:
        gone = [axis for axis, label in enumerate(term) if label not in kept]
        return (self.writer.op("reduce_sum", x, axes=gone), "".join(c for c in term if c in kept)) if gone else (x, term)

    def _ordered(self, x: Any, term: str, wanted: str) -> Any:
        return self.writer.op("permute", x, axes=[term.index(c) for c in wanted])

    def _contracted(self, x: Any, a: str, y: Any, b: str, output: str) -> Any:
        sizes: dict[str, Value] = dict(zip(b, self.shape_of(y)))
        for label, size in zip(a, self.shape_of(x)):
            if label in sizes:  # a size of 1 would be broadcast
                self.assume_equal(size, sizes[label], "equal sizes of a label")
            sizes[label] = size
        batch = "".join(c for c in a if c in b and c in output)
        summed = "".join(c for c in a if c in b and c not in output)
        left, right = "".join(c for c in a if c not in b), "".join(c for c in b if c not in a)
        x = self._matrix(x, a, batch, left, summed, sizes)
        y = self._matrix(y, b, batch, summed, right, sizes)
        product = self.writer.op("matmul", x, y)
        if len(left) != 1 or len(right) != 1:
            product = self.writer.op("reshape", product, shape=[sizes[c] for c in batch + left + right])
        return self._ordered(product, batch + left + right, output)

    def _matrix(self, x: Any, term: str, batch: str, rows: str, columns: str, sizes: dict[str, Value]) -> Any:
        x = self._ordered(x, term, batch + rows + columns)
        if len(rows) == len(columns) == 1:
            return x
        count = functools.partial(self._count_of, sizes)
        return self.writer.op("reshape", x, shape=[*(sizes[c] for c in batch), count(rows), count(columns)])

    def _count_of(self, sizes: dict[str, Value], labels: str) -> Value:
        total: Value = Known(1)
        for label in labels:
            total = self.multiplied(total, sizes[label])
        return total


def _is(value: Any, number: Any) -> bool:
    value = value.object if isinstance(value, Known) else value
    return type(value) in (int, float, type(None)) and value == number


def _torch() -> Any:
    return sys.modules["torch"]
