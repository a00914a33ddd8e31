"""Calls that put elements where indices say, or tell where elements stand. Rows of `signatures` call these methods by name."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flexor.frontend.cpython.values import Dynamic, Known, TupleValue, Value, is_int, is_none
from flexor.frontend.cpython.writer import NotWritten, plain

if TYPE_CHECKING:
    from flexor.frontend.cpython.writer import Writer


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Dynamic) and value.kind == "tensor"


class Placement:
    """Methods of Lowering, which has the rest of what they call."""

    if TYPE_CHECKING:
        writer: Writer

        def __getattr__(self, name: str) -> Any: ...

    # ------------------------------------------------------------------------------------------------------- scatter

    def scattered(
        self, x: Any, dim: Any, index: Any, src: Any, value: Any, reduce: Any, include_self: Any = True, in_place: Any = False
    ) -> Any:
        """torch.scatter in its forms, and torch.scatter_reduce: a tensor or a number goes to the indices."""
        how = plain(reduce)
        how = {None: "none", "add": "sum", "multiply": "prod"}.get(how, how)
        source = src if is_none(value) else value
        if _is_tensor(source):
            self.alike(x, source)
        elif is_none(source):
            raise NotWritten("nothing to scatter")
        else:
            source = self._number_for(x, source)
        self._indices(index)
        attributes = {"axis": plain(dim), "reduce": how, "include_self": bool(plain(include_self))}
        return self.in_place_if(in_place, "scatter", x, index, source, **attributes)

    def along(
        self, x: Any, dim: Any, index: Any, source: Any, reduce: str, include_self: Any = True, in_place: Any = False
    ) -> Any:
        """torch.index_add and its kin: slices of the source go to the places along one axis that a vector names."""
        rank, axis = plain(self.rank(x)), plain(dim)
        if rank == 0:  # counts as one of rank 1 with one element
            if self.is_tensor(source) and self.tensor(source).rank == 0:
                source = self.writer.op("unsqueeze", source, axis=0)
            made = self.along(self.writer.op("unsqueeze", x, axis=0), dim, index, source, reduce, include_self, in_place)
            return x if plain(in_place) else self.writer.op("reshape", made, shape=[])
        if type(axis) is not int or not -rank <= axis < rank or self.tensor(index).rank != 1:
            raise NotWritten("an axis that is not there, or indices that are no vector")
        axis %= rank
        self._indices(index)
        if _is_tensor(source):
            self.alike(x, source)
            if self.tensor(source).rank != rank:
                raise NotWritten("a source of another rank")
            sizes = self.shape_of(source)
            wanted = [*self.shape_of(x)[:axis], self.writer.size(index, 0), *self.shape_of(x)[axis + 1 :]]
            for a, b in zip(sizes, wanted):
                self.assume(self._same_size(a, b), "a source of the sizes of what is chosen")
        else:
            sizes = self.shape_of(x)
            sizes[axis] = self.writer.size(index, 0)
            source = self._number_for(x, source)
        if plain(in_place) and self.dtype_of(x) == self.dtype_of(index):  # torch looks whether the vector lies in what is written
            places = {"axis": axis, "accumulate": reduce == "sum", "wrap": False}
            return self.written(x, "index_put_", source, index, **places)
        wide = index
        for _ in range(axis):
            wide = self.writer.op("unsqueeze", wide, axis=0)
        for _ in range(rank - axis - 1):
            wide = self.writer.op("unsqueeze", wide, axis=-1)
        wide = self.writer.op("expand", wide, shape=sizes)
        attributes = {"axis": axis, "reduce": reduce, "include_self": bool(plain(include_self))}
        return self.in_place_if(in_place, "scatter", x, wide, source, **attributes)

    def filled_along(self, x: Any, dim: Any, index: Any, value: Any, in_place: Any = False) -> Any:
        """torch.index_fill: a number, or a tensor of one, goes to the places."""
        if self.is_tensor(value):
            self.ranked(value, 0), self.alike(x, value)
            value = self.writer.op("clone", value)  # it may be an element of x
            axis, sizes = plain(dim), self.shape_of(x)
            if sizes and -len(sizes) <= axis < len(sizes):
                sizes[axis] = self.writer.size(self.ranked(index, 1), 0)
                value = self.writer.op("expand", value, shape=sizes)
        return self.along(x, dim, index, value, "none", in_place=in_place)

    def reduced_along(self, x: Any, dim: Any, index: Any, source: Any, reduce: Any, include_self: Any) -> Any:
        """torch.index_reduce."""
        if plain(reduce) not in ("prod", "mean", "amax", "amin"):
            raise NotWritten("another reduction")
        return self.along(x, dim, index, source, plain(reduce), include_self)

    def scaled(self, source: Any, alpha: Any) -> Any:
        """The source times a factor that is most often 1."""
        return source if isinstance(alpha, Known) and alpha.object == 1 else self.writer.op("mul", source, alpha)

    def put(self, x: Any, indices: Any, values: Any, accumulate: Any, in_place: Any = False) -> Any:
        """torch.index_put: values at the places that index tensors or one mask name for the first axes."""
        return self.put_from(x, 0, self.parts(indices), values, bool(plain(accumulate)), in_place)

    def put_from(
        self, x: Any, axis: int, indices: Sequence[Any], values: Any, accumulate: bool = False, in_place: Any = False
    ) -> Any:
        """The same for the axes from one on."""
        if len(indices) == 1 and _is_tensor(indices[0]) and indices[0].dtype == "bool":
            mask = indices[0]
            rank = plain(self.rank(x))
            if not 0 < mask.rank <= rank - axis:
                raise NotWritten("a mask of another rank")
            for a, b in zip(self.shape_of(x)[axis:], self.shape_of(mask)):
                self.assume(self._same_size(a, b), "a mask of the sizes of its tensor", IndexError)
            rows = self.writer.op("nonzero", mask)
            indices = [self.writer.op("select", rows, axis=1, index=a) for a in range(mask.rank)]
        else:
            self._look_at_points(x, axis, indices)
        for index in indices:
            self._indices(index)
        if _is_tensor(values):
            if self.framework == "torch":
                self.alike(x, values)
            elif self.dtype_of(values) != self.dtype_of(x):
                values = self.writer.op("cast", values, dtype=self.dtype_of(x))
        else:
            values = self._number_for(x, values)
        return self.in_place_if(in_place, "index_put", x, values, *indices, axis=axis, accumulate=accumulate)

    def _indices(self, index: Any) -> None:
        if not _is_tensor(index) or index.dtype not in ("int64", "int32") or index.rank < 0:
            raise NotWritten("indices that are no tensor of integers")
        if self.framework == "torch" and index.dtype != "int64":
            raise NotWritten("indices that are not int64")

    def _number_for(self, x: Any, value: Any) -> Value:
        """A number that the dtype of x holds."""
        kind = value.kind if isinstance(value, Dynamic) else type(value.object).__name__ if isinstance(value, Known) else ""
        dtype = self.dtype_of(x)
        if kind not in (("int", "bool", "float") if "float" in dtype else ("int", "bool")):
            raise NotWritten("a number that the dtype of the tensor does not hold")
        return value  # type: ignore[no-any-return]

    # -------------------------------------------------------------------------------------------------------- search

    def searched(self, rows: Any, values: Any, out_int32: Any, right: Any, side: Any, sorter: Any = None) -> Any:
        """torch.searchsorted and torch.bucketize."""
        if not is_none(sorter) or plain(side) not in (None, "left", "right") or (plain(right) and plain(side) == "left"):
            raise NotWritten("a sorter, or sides that contradict each other")
        if _is_tensor(values):
            self.alike(rows, values)
        rank = plain(self.rank(rows))
        if rank < 1 or (rank > 1 and plain(self.rank(values)) != rank):
            raise NotWritten("rows of another rank")
        for a, b in list(zip(self.shape_of(rows), self.shape_of(values)))[:-1] if rank > 1 else ():
            self.assume(self._same_size(a, b), "a row for each row of values", RuntimeError)
        places = self.writer.op("searchsorted", rows, values, right=bool(plain(right)) or plain(side) == "right")
        return self.to(places, Known("int32")) if plain(out_int32) else places

    def counted(self, x: Any, weights: Any, minlength: Any) -> Any:
        """bincount. Without elements the frameworks forget the dtype of the weights."""
        if not is_none(weights):
            self.assume(self._compared("gt", self.writer.size(self.ranked(x, 1), 0), Known(0)), "elements to count")
        return self.writer.op("bincount", self.tensor(x), *(() if is_none(weights) else (weights,)), minlength=minlength)

    def one_hot(self, x: Any, classes: Any) -> Any:
        """F.one_hot; -1: as many classes as the largest element says."""
        op, scalar = self.writer.op, self.writer.scalar
        if self.dtype_of(x) != "int64" or not is_int(classes):
            raise NotWritten("classes that are no integers")
        if isinstance(classes, Known) and classes.object == -1:
            classes = scalar("add", self.item(op("reduce_max", x)), Known(1))
        self.assume(self._compared("gt", classes, Known(0)), "classes that there are", RuntimeError)
        inside = op("logical_and", op("ge", x, Known(0)), op("lt", x, classes))
        self.assume(self.item(op("reduce_all", inside)), "elements that are classes", RuntimeError)
        named = op("arange", start=Known(0), stop=classes, step=Known(1), dtype="int64")
        return self.to(op("eq", op("unsqueeze", x, axis=-1), named), "int64")

    def uniques(self, x: Any, inverse: Any, counts: Any, dim: Any, consecutive: bool = False, equal_nan: Any = False) -> Any:
        """torch.unique and np.unique of all elements."""
        if not is_none(dim):
            raise NotWritten("unique slices")
        found = self.writer.ops("unique", [self.tensor(x)], {"consecutive": consecutive, "equal_nan": bool(plain(equal_nan))})
        if self.framework == "numpy" and plain(inverse) and plain(self.rank(x)) != 1:
            raise NotWritten("places whose shape depends on the version of NumPy")
        chosen = [found[0], *([found[1]] if plain(inverse) else ()), *([found[2]] if plain(counts) else ())]
        return chosen[0] if len(chosen) == 1 else TupleValue(chosen)

    def repeated_by(self, x: Any, repeats: Any, dim: Any, output_size: Any = None) -> Any:
        """torch.repeat_interleave by a tensor of counts."""
        axis, rank = plain(dim), plain(self.rank(x))
        if axis is None:
            x, axis, rank = self.writer.op("flatten", x) if rank != 1 else x, 0, 1
        if type(axis) is not int or not -rank <= axis < rank or self.tensor(repeats).rank != 1:
            raise NotWritten("an axis that is not there, or counts that are no vector")
        axis %= rank
        self.assume(self._same_size(self.writer.size(x, axis), self.writer.size(repeats, 0)), "a count for each slice", RuntimeError)
        rows = self.writer.op("repeat_index", repeats)
        if not is_none(output_size):
            self.assume(self._same_size(self.writer.size(rows, 0), output_size), "a promise of the number of all repeats", RuntimeError)
        return self.writer.op("take", x, rows, axis=axis)

    def picked(self, x: Any, dim: Any, index: Any) -> Any:
        """torch.gather, which takes an index of any dtype where it has no elements."""
        if self.dtype_of(index) in ("int64", "int32"):
            return self.writer.op("gather", x, index, axis=dim)
        self.assume_equal(self.count(index), Known(0), "an index of integers")
        return self.writer.op("zeros", shape=self.shape_of(index), dtype=self.dtype_of(x))

    def taken(self, x: Any, index: Any, axis: Any = 0, op: str = "take", *, wrap: bool = False) -> Any:
        """The slices of x that an index names along an axis. Kernels look at the index where they copy an element: where slices have
        none, it is looked at here."""
        at, rank = plain(axis), plain(self.rank(x))
        if type(at) is int and -rank <= at < rank:
            self._look_at(index, x, at % rank, wrap)
        extra = {"wrap": True} if wrap else {}
        return self.writer.op(op, x, index, axis=axis, **extra)

    def rows_of(self, table: Any, ids: Any) -> Any:
        """F.embedding."""
        if plain(self.rank(table)) == 2:
            self._look_at(ids, table, 0, wraps=False)
        return self.writer.op("embedding", ids, table)

    def _look_at(self, index: Any, x: Any, axis: int, wraps: bool) -> None:
        sizes = self.shape_of(x)
        size = sizes.pop(axis)
        if all(isinstance(other, Known) and other.object for other in sizes):
            return
        elements: Value = Known(1)
        for other in sizes:
            elements = self.multiplied(elements, other)
        fine = self.positive(elements)
        if self.has_acted() or isinstance(fine, Known):  # Python cannot begin anew: all of the index is looked at
            op = self.writer.op
            inside = op("logical_and", op("ge", index, self.negated(size) if wraps else Known(0)), op("lt", index, size))
            self.assume(self.item(op("reduce_all", inside)), "indices that are in range", IndexError)
            return
        self.assume(self.either(fine, self.zero(self.count(index))), "slices that have elements")

    def _look_at_points(self, x: Any, axis: int, indices: Sequence[Any]) -> None:
        """Indices of a write are looked at where an element is written: NumPy looks at them always, torch whether there is something
        to choose from."""
        sizes = self.shape_of(x)
        own, others = sizes[axis : axis + len(indices)], sizes[:axis] + sizes[axis + len(indices) :]
        if all(isinstance(other, Known) and other.object for other in others):
            return
        if self.framework == "numpy":
            for place, index in enumerate(indices):
                self._look_at(index, x, axis + place, wraps=True)
            return
        some = self._all_positive(others)
        if not (isinstance(some, Known) and some.object):
            none = functools.reduce(self.either, (self.zero(self.count(index)) for index in indices))
            fine = self.either(self.either(some, self._all_positive(own)), none)
            self.assume(fine, "something to choose from", IndexError)

    def _all_positive(self, sizes: Sequence[Value]) -> Value:
        return self.positive(functools.reduce(self.multiplied, sizes, Known(1)))

    def positive(self, size: Value) -> Value:
        """Whether a size is not 0."""
        return self._compared("gt", size, Known(0))  # type: ignore[no-any-return]

    def zero(self, size: Value) -> Value:
        """Whether a size is 0."""
        return self._compared("eq", size, Known(0))  # type: ignore[no-any-return]

    def either(self, a: Value, b: Value) -> Value:
        """Whether one of two conditions holds."""
        if isinstance(a, Known):
            return a if a.object else b
        return self.writer.scalar("or", a, b) if isinstance(b, Dynamic) else b if b.object else a  # type: ignore[attr-defined]

    def negated(self, size: Value) -> Value:
        """A size with the other sign."""
        return Known(-size.object) if isinstance(size, Known) else self.writer.scalar("neg", size)

    def segmented(self, data: Any, reduce: Any, lengths: Any, initial: Any) -> Any:
        """torch.segment_reduce by lengths along axis 0."""
        how = {"max": "amax", "min": "amin"}.get(plain(reduce), plain(reduce))
        if not _is_tensor(lengths) or lengths.rank != 1:
            raise NotWritten("segments without a vector of lengths")
        self._indices(lengths)
        return self.writer.op("segment_reduce", self.floating(data), lengths, reduce=how, initial=plain(initial))

    def first_of(self, results: TupleValue) -> Any:
        """The first of several results."""
        return results.items[0]
