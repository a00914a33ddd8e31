"""NumPy's functions that make arrays: of sizes, of numbers, of a list of arrays or scalars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexor.frontend.cpython.values import Dynamic, Known, ListValue, RunList, TupleValue, Value
from flexor.frontend.cpython.writer import NotWritten, plain

if TYPE_CHECKING:
    from flexor.frontend.cpython.writer import Writer

MOST_NUMBERS = 64  # of an array that is made of numbers one by one
# Those that need no array among their arguments: what they make is NumPy's all the same.
MADE_OF_NUMBERS = frozenset(f"np.{name}" for name in ("arange", "empty", "eye", "full", "identity", "ones", "zeros"))
# Those that give an array without axes where their likes give a scalar.
_KEEP_ARRAYS = MADE_OF_NUMBERS | frozenset(
    f"np.{name}" for name in ("array", "asarray", "broadcast_to", "copy", "empty_like", "full_like", "ones_like", "reshape", "squeeze", "transpose", "where", "zeros_like")
)
# Those that take a list of numbers for the array that it stands for, and nothing else of NumPy's.
MADE_OF_LISTS = frozenset(("np.array", "np.asarray", "np.expand_dims"))
_KEEP_METHODS = frozenset(f"ndarray.{name}" for name in ("reshape", "squeeze", "transpose"))


def check_axes(name: str, result: Any) -> Any:
    """What a row of NumPy's gives; the program has scalars alone where there are no axes, and leaves other arrays to NumPy."""
    if isinstance(result, Dynamic) and result.rank == 0 and (name in _KEEP_ARRAYS or name in _KEEP_METHODS):
        raise NotWritten("an array without axes")
    return result


def is_list(value: Value) -> bool:
    """Whether a value is a list or tuple with something in it."""
    if isinstance(value, (ListValue, TupleValue)):
        return bool(value.items)
    return isinstance(value, RunList) or (isinstance(value, Known) and type(value.object) is tuple and value.object != ())


class Arrays:
    """Methods of Lowering, which has the rest of what they call."""

    if TYPE_CHECKING:
        writer: Writer

        def __getattr__(self, name: str) -> Any: ...

    def or_own(self, value: Any, dtype: Any) -> Any:
        """The dtype of np.full, by default that of the value."""
        if plain(dtype) is not None:
            return plain(dtype)
        if isinstance(value, Dynamic) and value.kind == "tensor":
            return self.dtype_of(value)
        return {"bool": "bool", "int": "int64", "float": "float64"}[self.number_kind(value)]

    def gathered(self, data: Any, dtype: Any) -> Any:
        """np.array of an array, of arrays and scalars that are alike, or of numbers."""
        if isinstance(data, Dynamic):
            return self.to_copy(self.tensor(data), dtype)
        if isinstance(data, RunList):
            assert isinstance(data.content, Dynamic)
            self.assume(self.positive(self.writer.length(data.content)), "a list that is not empty")
            return self.to(self.writer.join("stack", data.content, 0, data.element), dtype)
        data = self.lifted_lists(data)
        if not isinstance(data, (ListValue, TupleValue)):
            raise NotWritten("data that are no arrays")
        if not any(self.is_tensor(item) for item in data.items):
            return self.made_of_numbers(data, dtype)
        items = [self.tensor(item) for item in data.items]
        if len({(item.dtype, item.rank) for item in items}) > 1:
            raise NotWritten("arrays that are not alike")
        return self.to(self.writer.op("stack", *items, axis=0), dtype)

    def as_array(self, data: Any, dtype: Any) -> Any:
        """np.asarray: an array itself where it has the dtype."""
        return self.to(data, dtype) if isinstance(data, Dynamic) and data.kind == "tensor" else self.gathered(data, dtype)

    def of_list(self, data: Any) -> Any:
        """A list or tuple as the array that it stands for; anything else itself."""
        return self.gathered(data, None) if isinstance(self.lifted_lists(data), (ListValue, TupleValue, RunList)) else data

    def made_of_numbers(self, data: Any, dtype: Any) -> Any:
        """np.array of numbers, or of lists of numbers."""
        numbers = list(self.leaves_of(data))
        if len(numbers) > MOST_NUMBERS:
            raise NotWritten(f"more than {MOST_NUMBERS} numbers")
        kinds = [self.number_kind(number) for number in numbers]
        widest = max(kinds, key=("bool", "int", "float").index, default="float")
        return self.stacked(data, plain(dtype) or {"bool": "bool", "int": "int64", "float": "float64"}[widest])

    def stable_order(self, x: Any, axis: Any, kind: Any, stable: Any) -> Any:
        """np.argsort where it says in which order equal elements stand."""
        if plain(kind) not in ("stable", "mergesort") and plain(stable) is not True:
            raise NotWritten("an order of equal elements that NumPy leaves open")
        return self.writer.op("argsort", x, axis=plain(axis))

    def unit_matrix(self, rows: Any, columns: Any, diagonal: Any, dtype: Any) -> Any:
        """np.eye on its main diagonal."""
        if plain(diagonal) != 0:
            raise NotWritten("another diagonal")
        return self.writer.op("eye", rows=rows, columns=Known(None) if columns is None else columns, dtype=plain(dtype))
