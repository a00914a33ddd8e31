"""Calls of the frameworks that several ops of the registry make up. Rows of `signatures` call these methods by name.

Each raises NotWritten where the composition and the framework's own function part: in dtypes that the framework refuses, in
forms that have rules of their own. What is rounded differently by a few units in the last place is the same.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flexor.frontend.cpython.values import Dynamic, Known, ListValue, TupleValue, Value, is_int
from flexor.frontend.cpython.writer import NotWritten

if TYPE_CHECKING:
    from flexor.frontend.cpython.writer import Writer


def _plain(value: Any) -> Any:
    from flexor.frontend.cpython.lowering import plain  # lowering has these methods in turn

    return plain(value)


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
        if _plain(self.rank(value)) not in ranks:
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

    def scaled_sum(self, c: Any, product: Any, beta: Any, alpha: Any) -> Any:
        """beta c + alpha product; c is not read where beta is 0."""
        self.numbers(product, c)
        if self.dtype_of(c) == "int64" and not all(is_int(factor) for factor in (beta, alpha)):
            raise NotWritten("a factor of floats for integers")
        scaled = product if _is(alpha, 1) else self.writer.op("mul", product, alpha)
        if isinstance(beta, Dynamic):
            raise NotWritten("a factor that may be 0")
        if _is(beta, 0):
            return scaled
        c = self.writer.op("expand", c, shape=self.shape_of(product))
        return self.writer.op("add", scaled if _is(beta, 1) else self.writer.op("mul", c, beta), c if _is(beta, 1) else scaled)

    def inner(self, x: Any, y: Any) -> Any:
        """torch.inner: sums over the last axes."""
        self.numbers(x, y)
        if _plain(self.rank(y)) not in (1, 2) or _plain(self.rank(x)) < 1:
            raise NotWritten("an inner product of these ranks")
        return self.writer.op("matmul", x, y if self.tensor(y).rank == 1 else self.writer.op("transpose", y, a=0, b=1))

    # --------------------------------------------------------------------------------------------------- elementwise

    def filled(self, x: Any, value: Any) -> Any:
        """torch.fill."""
        return self.writer.op("full_like", self.tensor(x), value)

    def cloned(self, x: Any, memory_format: Any) -> Any:
        """torch.clone."""
        if _plain(memory_format) not in (None, _torch().preserve_format):
            raise NotWritten("a memory format")
        return self.writer.op("clone", self.tensor(x))

    def contiguous_in(self, x: Any, memory_format: Any) -> Any:
        """Tensor.contiguous: the tensor itself where it is, as eager gives it."""
        if _plain(memory_format) not in (None, _torch().contiguous_format):
            raise NotWritten("a memory format")
        return self.writer.op("contiguous", self.tensor(x))

    def frac(self, x: Any) -> Any:
        """x less its whole part."""
        return self.writer.op("sub", self.floating(x), self.writer.op("trunc", x))

    def is_value(self, x: Any, value: str) -> Any:
        """Whether elements are a number that has no literal, such as "inf"."""
        return self.writer.op("eq", self.floating(x), Known(float(value)))

    def heaviside(self, x: Any, values: Any) -> Any:
        """torch.heaviside."""
        self.floating(x, values)
        step = self.writer.op("cast", self.writer.op("gt", x, Known(0)), dtype=self.dtype_of(x))
        return self.writer.op("where", self.writer.op("eq", x, Known(0)), values, step)

    def is_close(self, x: Any, y: Any, rtol: Any, atol: Any, equal_nan: Any) -> Any:
        """torch.isclose."""
        self.floating(x, y)
        rtol, atol = _plain(rtol), _plain(atol)
        if rtol < 0 or atol < 0:
            raise NotWritten("a negative tolerance")
        op = self.writer.op
        close = op("eq", x, y)
        if _plain(equal_nan):
            close = op("logical_or", close, op("logical_and", op("isnan", x), op("isnan", y)))
        if rtol == 0 and atol == 0:
            return close
        allowed = op("add", op("abs", op("mul", y, Known(float(rtol)))), Known(float(atol)))
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

    def logit(self, x: Any, eps: Any) -> Any:
        """log(x / (1 - x))."""
        self.wide(x)
        if _plain(eps) is not None:
            raise NotWritten("a bound that eager rounds in its own way")
        return self.writer.op("log", self.writer.op("div", x, self.writer.op("sub", Known(1), x)))

    def divide(self, x: Any, y: Any, rounding: Any) -> Any:
        """torch.div."""
        rounding, op = _plain(rounding), self.writer.op
        if rounding is None:
            return op("div", x, y)
        if rounding == "floor":
            return op("floor_divide", x, y)
        if rounding == "trunc":
            self.floating(*(v for v in (x, y) if isinstance(v, Dynamic) and v.kind == "tensor"))
            return op("trunc", op("div", x, y))
        raise NotWritten(f"rounding_mode={rounding!r}")

    def difference(self, x: Any, n: Any, dim: Any, prepend: Any, append: Any) -> Any:
        """torch.diff of the first order."""
        if _plain(n) != 1 or not _is(prepend, None) or not _is(append, None) or self.dtype_of(x) == "bool":
            raise NotWritten("a difference of another order, or of bools")
        axis, op = _plain(dim), self.writer.op
        if _plain(self.rank(x)) < 1:
            raise NotWritten("a difference of a number")
        later, earlier = op("slice", x, axis=axis, start=1), op("slice", x, axis=axis, stop=-1)
        return op("sub", later, earlier)

    # ----------------------------------------------------------------------------------------------------- reductions

    def count_nonzero(self, x: Any, dim: Any) -> Any:
        """torch.count_nonzero."""
        return self.writer.op("reduce_sum", self.writer.op("ne", self.tensor(x), Known(0)), axes=self.some_axes(dim))

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

    def norm(self, x: Any, ord: Any, dim: Any, keepdim: Any, dtype: Any) -> Any:
        """The norm of vectors."""
        ord, op = _plain(ord), self.writer.op
        if type(ord) not in (int, float) or _plain(dtype) is not None :
            raise NotWritten("a norm of another kind")
        self.wide(x)
        given = {"axes": self.some_axes(dim), "keepdim": keepdim}
        if ord == 2:
            return op("sqrt", op("reduce_sum", op("square", x), **given))
        if ord == 1:
            return op("reduce_sum", op("abs", x), **given)
        if ord == 0:
            return op("reduce_sum", op("cast", op("ne", x, Known(0)), dtype=self.dtype_of(x)), **given)
        if math.isinf(ord):
            return op("reduce_max" if ord > 0 else "reduce_min", op("abs", x), **given)
        raise NotWritten(f"the norm of order {ord}")

    def old_norm(self, x: Any, p: Any, dim: Any, keepdim: Any, dtype: Any) -> Any:
        """torch.norm."""
        p = _plain(p)
        if p in ("fro", None):
            p = 2
        return self.norm(x, Known(p), dim, keepdim, dtype)

    def vector_product(self, x: Any, y: Any, dim: Any) -> Any:
        """torch.linalg.vecdot."""
        self.numbers(x, y)
        return self.writer.op("reduce_sum", self.writer.op("mul", x, y), axes=[_plain(dim)])

    def cosine_similarity(self, x: Any, y: Any, dim: Any, eps: Any) -> Any:
        """F.cosine_similarity."""
        self.wide(x, y)
        axis, op = _plain(dim), self.writer.op
        if self.tensor(x).rank != self.tensor(y).rank or self.tensor(x).rank < 1:
            raise NotWritten("tensors of several ranks")

        def unit(v: Any) -> Any:
            length = op("sqrt", op("reduce_sum", op("square", v), axes=[axis], keepdim=True))
            return op("div", v, op("clamp", length, Known(float(_plain(eps))), Known(None)))

        return op("reduce_sum", op("mul", unit(x), unit(y)), axes=[axis])

    def loss(self, x: Any, y: Any, kind: str, reduction: Any) -> Any:
        """F.mse_loss and F.l1_loss. Eager warns of other sizes: those are its own."""
        self.wide(x, y)
        self.same_sizes(x, y)
        each = self.writer.op(kind, self.writer.op("sub", x, y))
        by = {"none": None, "mean": "reduce_mean", "sum": "reduce_sum"}
        if _plain(reduction) not in by:
            raise NotWritten("a reduction of that name")
        op = by[_plain(reduction)]
        return each if op is None else self.writer.op(op, each)

    # -------------------------------------------------------------------------------------------------------- shapes

    def at_least(self, x: Any, rank: int) -> Any:
        """torch.atleast_1d, 2d and 3d."""
        have, op = _plain(self.rank(x)), self.writer.op
        if have == 0:
            return op("reshape", x, shape=[1] * rank)
        for axis in {2: [0] if have < 2 else [], 3: {1: [0, 2], 2: [2]}.get(have, [])}.get(rank, []):
            x = op("unsqueeze", x, axis=axis)
        return x

    def joined(self, parts: Any, rank: int, axis: int) -> Any:
        """torch.vstack, dstack and hstack."""
        items = [self.at_least(part, rank) for part in self.parts(parts)]
        along = 0 if axis == 1 and rank == 1 and items and self.tensor(items[0]).rank == 1 else axis
        return self.writer.op("concat", *items, axis=along)

    def columns(self, parts: Any) -> Any:
        """torch.column_stack."""
        items = [self.at_least(p, 1) for p in self.parts(parts)]
        items = [self.writer.op("unsqueeze", p, axis=1) if self.tensor(p).rank == 1 else p for p in items]
        return self.writer.op("concat", *items, axis=1)

    def moved(self, x: Any, source: Any, destination: Any) -> Any:
        """torch.movedim."""
        rank = _plain(self.rank(x))
        pairs = [[v] if isinstance(v, int) else list(v) for v in (_plain(source), _plain(destination))]
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
        given, rank = self.sizes(counts), _plain(self.rank(x))
        if len(given) > rank:
            raise NotWritten("more counts than axes")
        return self.writer.op("repeat", x, counts=[1] * (rank - len(given)) + given)

    def repeated(self, x: Any, repeats: Any, dim: Any) -> Any:
        """torch.repeat_interleave by one number along one axis."""
        count, axis, rank = _plain(repeats), _plain(dim), _plain(self.rank(x))
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
        for each in range(_plain(self.rank(x))) if axes is None else axes:
            x = self.writer.op("slice", x, axis=each, step=-1)
        return x

    def cut(self, x: Any, sections: Any, axis: Any) -> Any:
        """np.split into one number of equal parts, a list."""
        count, rank, at = _plain(sections), _plain(self.rank(x)), _plain(axis)
        if type(count) is not int or count < 1 or type(at) is not int or not -rank <= at < rank:
            raise NotWritten("sections that are no number")
        total = self.shape_of(x)[at]
        if isinstance(total, Known) and (total.object % count or total.object < count):
            raise NotWritten("parts of several sizes, or empty ones")
        return ListValue(self.chunked(x, Known(count), Known(at)).items)

    def grid(self, tensors: Sequence[Any], indexing: Any) -> Any:
        """torch.meshgrid."""
        single = len(tensors) == 1 and isinstance(tensors[0], (TupleValue, ListValue))
        items = self.parts(tensors[0]) if single else list(tensors)
        if _plain(indexing) != "ij" or not items:
            raise NotWritten("a grid of another indexing")
        self.alike(*items)
        sizes = [self.shape_of(self.ranked(item, 1))[0] for item in items]
        views = []
        for place, item in enumerate(items):
            for axis in range(len(items)):
                if axis != place:
                    item = self.writer.op("unsqueeze", item, axis=axis)
            views.append(self.writer.op("expand", item, shape=sizes))
        return TupleValue(views)

    # ---------------------------------------------------------------------------------------------------- activations

    def activation(self, kind: str, x: Any, *numbers: Any) -> Any:
        """Activations of torch.nn.functional that the registry has no op for."""
        op, zero = self.writer.op, Known(0)
        self.wide(x)
        given = [_plain(number) for number in numbers]
        if kind == "logsigmoid":
            return op("sub", op("minimum", x, zero), op("log1p", op("exp", op("neg", op("abs", x)))))
        if kind == "softsign":
            return op("div", x, op("add", op("abs", x), Known(1)))
        if kind == "tanhshrink":
            return op("sub", x, op("tanh", x))
        if kind == "hardshrink":
            return op("where", op("le", op("abs", x), Known(float(given[0]))), zero, x)
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
        axis, op = _plain(dim), self.writer.op
        self.wide(x)
        left, right = self.chunked(x, Known(2), Known(axis)).items
        return op("mul", left, op("sigmoid", right))

    # -------------------------------------------------------------------------------------------------------- einsum

    def einsum(self, equation: Any, operands: Sequence[Any]) -> Any:
        """torch.einsum of one or two operands: sums, a permutation, a product of matrices."""
        items = self.parts(operands[0]) if len(operands) == 1 and isinstance(operands[0], (TupleValue, ListValue)) else list(operands)
        text = _plain(equation)
        if not isinstance(text, str) or "." in text or len(items) not in (1, 2) or any(not isinstance(i, Dynamic) for i in items):
            raise NotWritten("an equation of this kind")
        inputs, arrow, output = text.replace(" ", "").partition("->")
        labels = inputs.split(",")
        if not arrow:
            output = "".join(sorted(c for c in set(inputs) - {","} if inputs.count(c) == 1))
        self.numbers(*items)
        sound = len(labels) == len(items) and all(len(set(term)) == len(term) and term.isalpha() for term in labels)
        if not sound or len(set(output)) != len(output) or not set(output) <= set(inputs):
            raise NotWritten("an equation of this kind")
        for item, term in zip(items, labels):
            self.ranked(item, len(term))
        if len(items) == 1:
            return self._ordered(*self._summed(items[0], labels[0], output), output)
        (x, a), (y, b) = (self._summed(item, term, output + other) for item, term, other in zip(items, labels, labels[::-1]))
        return self._contracted(x, a, y, b, output)

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
