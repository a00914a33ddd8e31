"""Calls of the frameworks on matrices that several ops of the registry make up: diagonals, powers, covariances, distances, norms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flexor.frontend.cpython.values import Dynamic, Known, Value, is_int, is_none
from flexor.frontend.cpython.writer import NotWritten, plain

if TYPE_CHECKING:
    from flexor.frontend.cpython.writer import Writer


class Matrices:
    """Methods of Lowering, which has the rest of what they call."""

    if TYPE_CHECKING:
        writer: Writer

        def __getattr__(self, name: str) -> Any: ...

    # ----------------------------------------------------------------------------------------------------- diagonals

    def diag(self, x: Any, diagonal: Any) -> Any:
        """torch.diag: a matrix of a vector, or a copy of a matrix's diagonal."""
        if plain(self.rank(self.ranked(x, 1, 2))) == 1:
            return self.diagonal_matrix(x, diagonal, -2, -1)
        return self.writer.op("clone", self.writer.op("diagonal", x, offset=plain(diagonal)))

    def diagonal_matrix(self, x: Any, offset: Any, dim1: Any, dim2: Any) -> Any:
        """torch.diag_embed: the last axis as a diagonal of two new axes, zeros beside it."""
        offset, op, rank = plain(offset), self.writer.op, plain(self.rank(x))
        axes = [plain(dim) for dim in (dim1, dim2)]
        if rank < 1 or not all(-rank - 1 <= axis <= rank for axis in axes) or axes[0] % (rank + 1) == axes[1] % (rank + 1):
            raise NotWritten("axes that are not there, or one twice")
        beside = [0] * (rank - 1)
        padded = op("pad", x, before=[*beside, 0], after=[*beside, abs(offset)], value=0.0)
        # Above the main diagonal an element's row is its place in x, below its column.
        lines = op("unsqueeze", padded, axis=-1 if offset >= 0 else -2)
        places = op("arange", start=Known(0), stop=self.shape_of(padded)[-1], step=Known(1), dtype="int64")
        on_it = op("eq", op("sub", places, op("unsqueeze", places, axis=1)), Known(offset))
        made = op("where", on_it, lines, Known(False))
        if [axis % (rank + 1) for axis in axes] == [rank - 1, rank]:
            return made
        return op("contiguous", self.moved(made, Known((-2, -1)), Known(tuple(axes))))

    def diagonal_scatter(self, x: Any, source: Any, offset: Any, dim1: Any, dim2: Any) -> Any:
        """torch.diagonal_scatter: a copy of x with another diagonal."""
        made = self.writer.op("clone", self.tensor(x))
        target = self.writer.op("diagonal", made, offset=plain(offset), a=plain(dim1), b=plain(dim2))
        self.same_sizes(source, target)
        self.writer.ops("assign", [target, source], {})
        return made

    def block_diagonal(self, tensors: Sequence[Any]) -> Any:
        """torch.block_diag: matrices along the diagonal of one."""
        items = [self.at_least(self.ranked(tensor, 0, 1, 2), 2) for tensor in tensors]
        if not items:
            raise NotWritten("no matrices")
        widths = [self.shape_of(item)[1] for item in items]
        rows = []
        for place, item in enumerate(items):
            before, after = (self._sum_of(part) for part in (widths[:place], widths[place + 1 :]))
            rows.append(self.writer.op("pad", item, before=[0, before], after=[0, after], value=0.0))
        return self.writer.op("concat", *rows, axis=0)

    def _sum_of(self, sizes: Sequence[Value]) -> Value:
        total: Value = Known(0)
        for size in sizes:
            total = self.sum_of_sizes(total, size)
        return total

    # ------------------------------------------------------------------------------------------------------ products

    def kron(self, x: Any, y: Any) -> Any:
        """torch.kron: every element of x times all of y."""
        op = self.writer.op
        rank = max(plain(self.rank(x)), plain(self.rank(y)))
        x_sizes, y_sizes = ([Known(1)] * (rank - self.tensor(v).rank) + self.shape_of(v) for v in (x, y))
        ones = [Known(1)] * rank
        wide_x = op("reshape", x, shape=[size for pair in zip(x_sizes, ones) for size in pair])
        wide_y = op("reshape", y, shape=[size for pair in zip(ones, y_sizes) for size in pair])
        return op("reshape", op("mul", wide_x, wide_y), shape=list(map(self.multiplied, x_sizes, y_sizes)))

    def cross(self, x: Any, y: Any, dim: Any) -> Any:
        """torch.cross and torch.linalg.cross. Without an axis it is the first of size 3: here, the last one alone."""
        self.numbers(x, y)
        rank, op, axis = self.tensor(x).rank, self.writer.op, plain(dim)
        if rank != self.tensor(y).rank or rank < 1:
            raise NotWritten("vectors of several ranks")
        if axis is None:
            axis = rank - 1
            for size in self.shape_of(x)[:-1]:
                self.assume(self._compared("ne", size, Known(3)), "one axis of size 3")
        if not -rank <= axis < rank:
            raise NotWritten("an axis that is not there")
        for vector in (x, y):
            self.assume_equal(self.shape_of(vector)[axis], Known(3), "vectors of 3 elements")

        def turned(v: Any, by: int) -> Any:
            return op("roll", v, shifts=[-by], axes=[axis])

        return op("sub", op("mul", turned(x, 1), turned(y, 2)), op("mul", turned(x, 2), turned(y, 1)))

    def matrix_power(self, x: Any, n: Any) -> Any:
        """torch.matrix_power, of powers that are not negative: by squaring."""
        self.wide(x)
        n, op, rank = plain(n), self.writer.op, plain(self.rank(x))
        if type(n) is not int or n < 0 or rank < 2:
            raise NotWritten("a power that inverts, or of no matrix")
        sizes = self.shape_of(x)
        self.assume_equal(sizes[-1], sizes[-2], "square matrices")
        if n == 0:
            unit = op("eye", rows=sizes[-1], columns=sizes[-1], dtype=self.dtype_of(x))
            return op("clone", op("expand", unit, shape=sizes)) if rank > 2 else unit
        if n == 1:
            return op("clone", x)
        result = None
        while True:
            if n % 2:
                result = x if result is None else op("matmul", result, x)
            n //= 2
            if not n:
                return result
            x = op("matmul", x, x)

    def product_of_matrices(self, tensors: Any) -> Any:
        """torch.linalg.multi_dot of two: with more, the sizes say which product comes first."""
        items = self.parts(tensors)
        if len(items) != 2:
            raise NotWritten("a product of another number of matrices")
        first, last = (self.ranked(item, 1, 2) for item in items)
        self.numbers(first, last)
        return self.writer.op("matmul", first, last)

    def powers(self, x: Any, count: Any) -> Any:
        """torch.linalg.vander: powers 0 and up of each element along a new axis."""
        self.numbers(x)
        rank = plain(self.rank(x))
        if is_none(count) and rank < 1:
            raise NotWritten("a number of powers that is not given")
        count = self.shape_of(x)[-1] if is_none(count) else Known(plain(count))
        if isinstance(count, Known) and not (is_int(count) and count.object > 1):
            raise NotWritten("a number of powers that torch refuses")
        x = self.at_least(x, 1)
        exponents = self.writer.op("arange", start=Known(0), stop=count, step=Known(1), dtype="int64")
        return self.writer.op("pow", self.writer.op("unsqueeze", x, axis=-1), self.to(exponents, self.dtype_of(x)))

    # --------------------------------------------------------------------------------------------- norms and distances

    def norm(self, x: Any, ord: Any, dim: Any, keepdim: Any, dtype: Any) -> Any:
        """The norm of vectors."""
        op = self.writer.op
        if plain(dtype) is not None:
            raise NotWritten("a norm of another kind")
        self.wide(x)
        given = {"axes": self.some_axes(dim) if self.tensor(x).rank else None, "keepdim": keepdim}
        if isinstance(ord, Dynamic) and ord.kind == "float":
            for than, bound in (("gt", 0.0), ("lt", math.inf)):
                self.assume(self._compared(than, ord, Known(bound)), "an order that is positive and finite")
            powers = op("reduce_sum", op("pow", op("abs", x), ord), **given)
            return op("pow", powers, self.writer.scalar("true_div", Known(1.0), ord))
        ord = plain(ord)
        if type(ord) not in (int, float):
            raise NotWritten("a norm of another kind")
        if ord == 2:
            return op("sqrt", op("reduce_sum", op("square", x), **given))
        if ord == 1:
            return op("reduce_sum", op("abs", x), **given)
        if ord == 0:
            return op("reduce_sum", op("cast", op("ne", x, Known(0)), dtype=self.dtype_of(x)), **given)
        if math.isinf(ord):
            return op("reduce_max" if ord > 0 else "reduce_min", op("abs", x), **given)
        return op("pow", op("reduce_sum", op("pow", op("abs", x), Known(float(ord))), **given), Known(1.0 / ord))

    def old_norm(self, x: Any, p: Any, dim: Any, keepdim: Any, dtype: Any) -> Any:
        """torch.norm."""
        p = plain(p)
        return self.norm(x, Known(2 if p in ("fro", None) else p), dim, keepdim, dtype)

    def any_norm(self, x: Any, ord: Any, dim: Any, keepdim: Any) -> Any:
        """torch.linalg.norm: of the whole, of vectors, or of matrices."""
        axes = plain(dim)
        if plain(ord) is None:
            return self.norm(x, Known(2), dim, keepdim, None)
        rank = plain(self.rank(x))
        count = rank if axes is None else 1 if type(axes) is int else len(axes)
        if count == 1:
            return self.norm(x, ord, dim, keepdim, None)
        if count != 2:
            raise NotWritten("a norm of neither vectors nor matrices")
        return self.matrix_norm(x, ord, Known((0, 1)) if axes is None else dim, keepdim)

    def matrix_norm(self, x: Any, ord: Any, dim: Any, keepdim: Any) -> Any:
        """torch.linalg.matrix_norm, where it takes no singular values."""
        ord, axes, op = plain(ord), self.some_axes(dim), self.writer.op
        self.wide(x)
        if len(axes) != 2 or plain(self.rank(x)) < 2:
            raise NotWritten("axes that make no matrix")
        if ord == "fro":
            return self.norm(x, Known(2), dim, keepdim, None)
        if ord not in (1, -1, math.inf, -math.inf):
            raise NotWritten(f"the norm of matrices of order {ord}")
        summed, kept = axes if abs(ord) == 1 else axes[::-1]
        sums = op("reduce_sum", op("abs", x), axes=[summed], keepdim=True)
        found = op("reduce_max" if ord > 0 else "reduce_min", sums, axes=[kept], keepdim=True)
        return found if plain(keepdim) else op("squeeze", found, axes=axes, strict=True)

    def distances(self, x: Any, y: Any, p: Any) -> Any:
        """torch.cdist: the norms of the differences of all rows."""
        self.wide(x, y)
        op = self.writer.op
        if min(self.tensor(x).rank, self.tensor(y).rank) < 2 or not isinstance(p, Dynamic) and not 0 <= plain(p) < math.inf:
            raise NotWritten("distances of this kind")
        self.assume_equal(self.shape_of(x)[-1], self.shape_of(y)[-1], "rows of one length")
        between = op("sub", op("unsqueeze", x, axis=-2), op("unsqueeze", y, axis=-3))
        return self.norm(between, p, Known(-1), Known(False), None)

    # ---------------------------------------------------------------------------------------------------- covariances

    def covariance(self, x: Any, correction: Any, counts: Any, weights: Any) -> Any:
        """torch.cov: rows are variables, columns are observations, which may be there several times and have weights."""
        return self.writer.op("squeeze", self._covariance(x, correction, counts, weights))

    def _covariance(self, x: Any, correction: Any, counts: Any, weights: Any) -> Any:
        op, rank, correction = self.writer.op, plain(self.rank(x)), plain(correction)
        if rank not in (1, 2) or type(correction) is not int:
            raise NotWritten("observations of this kind")
        x = self.wide(self.as_float(x))
        x = op("unsqueeze", x, axis=0) if rank == 1 else x
        number = self.shape_of(x)[1]
        self.assume(self._compared("gt", number, Known(0)), "observations")
        factors = []
        for given, kind in ((counts, "int"), (weights, "float")):
            if not is_none(given):
                factors.append(self._factors(given, kind, number, self.dtype_of(x)))
        if not factors:
            return self._spread(x, None, number, self._freedom(number, correction, self.dtype_of(x)))
        factor = factors[0] if len(factors) == 1 else op("mul", *factors)
        total = op("reduce_sum", factor)
        self.assume(self.item(op("ne", total, Known(0))), "weights that are not all zero")
        taken: Any = Known(float(correction))
        if not is_none(weights) and correction:
            taken = op("mul", op("div", op("reduce_sum", op("mul", factor, factors[-1])), total), taken)
        return self._spread(x, factor, total, op("clamp", op("sub", total, taken), Known(0.0)))

    def _factors(self, given: Any, kind: str, number: Value, dtype: str) -> Any:
        """Counts or weights of observations in the dtype of these."""
        if kind not in self.dtype_of(self.ranked(given, 1)) or self.dtype_of(given) != dtype and kind == "float":
            raise NotWritten("weights of another dtype")
        self.assume_equal(self.shape_of(given)[0], number, "a weight for each observation")
        self.assume(self.item(self.writer.op("reduce_all", self.writer.op("ge", given, Known(0)))), "weights that are not negative")
        return self.to(given, dtype)

    def _freedom(self, number: Value, correction: int, dtype: str) -> Any:
        left = Known(number.object - correction) if isinstance(number, Known) else self.writer.scalar("sub", number, Known(correction))
        return self.writer.op("clamp", self.writer.op("full", left, shape=[], dtype=dtype), Known(0.0))

    def _spread(self, x: Any, factor: Any, total: Any, freedom: Any) -> Any:
        """The sums of products of deviations from the means, over degrees of freedom."""
        op = self.writer.op
        weighted = x if factor is None else op("mul", x, factor)
        x = op("sub", x, op("div", op("reduce_sum", weighted, axes=[1], keepdim=True), total))
        weighted = x if factor is None else op("mul", x, factor)
        return op("div", op("matmul", x, op("transpose", weighted, a=0, b=1)), freedom)

    def correlation(self, x: Any) -> Any:
        """torch.corrcoef."""
        op = self.writer.op
        c = self._covariance(x, Known(1), Known(None), Known(None))
        deviation = op("sqrt", op("diagonal", c))
        scaled = op("div", op("div", c, op("unsqueeze", deviation, axis=1)), deviation)
        return op("squeeze", op("clamp", scaled, Known(-1.0), Known(1.0)))
