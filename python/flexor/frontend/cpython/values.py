"""What the translator knows of a value before the program runs.

A value is Known (a Python object that guards watch), Dynamic (something that the program computes), or a structure of Python
made of such values. Structures that Python can change in place (ListValue, DictValue, CellValue, iterators) keep their identity:
two names for one list are two references to one ListValue.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

SCALARS = (bool, int, float)
_Leaf = TypeVar("_Leaf")


class Value:
    """Base of everything that stands on the abstract stack or in an abstract local."""

    __slots__ = ()


class Null(Value):
    """The mark in the empty slot of a call."""

    __slots__ = ()


NULL_VALUE = Null()
Arguments = list[Value]
Keywords = dict[str, Value]


class Known(Value):
    """A Python object. Equal objects that are not the same are different values, numbers and texts aside."""

    __slots__ = ("object",)

    def __init__(self, obj: Any) -> None:
        self.object = obj

    def __repr__(self) -> str:
        return f"Known({self.object!r})"


class Dynamic(Value):
    """A value of the program.

    kind      "tensor", "int", "float", "bool", "number" (a float or an int, as the run decides), "list" (of a RunList), or
              "object": a Python object that a foreign call left in the run's table
    native    the handle of the Builder (NativeVar or SymbolicInt)
    anywhere  a name for it if every basic block may use it (arguments, sizes of arguments), else None
    dtype     framework name of a tensor's dtype; None: only the run knows
    rank      of a tensor; -1: only the run knows
    weight    name of the weight that a tensor is, or is a view of
    root      `anywhere` of the input that a tensor is, or is a view of; None: it is of none, or that is not known
    is_fresh  a tensor in memory that the program has made itself and that nobody else has
    sizes     of a tensor that comes from another basic block: what was known of its sizes there; None: ask the Builder
    """

    __slots__ = ("anywhere", "dtype", "is_fresh", "kind", "native", "rank", "root", "sizes", "weight")

    def __init__(self, kind: str, native: Any, anywhere: str | None = None, dtype: str | None = None, rank: int = -1) -> None:
        self.kind, self.native, self.anywhere, self.dtype, self.rank = kind, native, anywhere, dtype, rank
        self.weight: str | None = None
        self.root: str | None = None
        self.is_fresh = False
        self.sizes: tuple[Value | None, ...] | None = None

    def __repr__(self) -> str:
        return f"Dynamic({self.kind} {self.dtype} {self.rank})"

    @property
    def is_scalar(self) -> bool:
        return self.kind in ("int", "float", "bool", "number")


class TupleValue(Value):
    """A tuple; `cls` is tuple, torch.Size or a named tuple's class."""

    __slots__ = ("cls", "items")

    def __init__(self, items: Iterable[Value], cls: type = tuple) -> None:
        self.items, self.cls = tuple(items), cls


class ArgumentList(TupleValue):
    """A list that a caller handed in, the container `origin` of the arguments. One that the function writes to is an ArgumentItems."""

    __slots__ = ("origin",)

    def __init__(self, items: Iterable[Value], origin: str) -> None:
        super().__init__(items, list)
        self.origin = origin


class SliceValue(Value):
    """A slice."""

    __slots__ = ("start", "step", "stop")

    def __init__(self, start: Value, stop: Value, step: Value) -> None:
        self.start, self.stop, self.step = start, stop, step


class ListValue(Value):
    """A list that the program made."""

    __slots__ = ("items",)

    def __init__(self, items: Iterable[Value]) -> None:
        self.items = list(items)


Element = tuple[str, Any, int]


class RunList(Value):
    """A list whose length only the run knows; `content` is a Dynamic of kind "list". Elements are alike: (kind, dtype, rank), kind "text"
    of strings, or ("list", what their elements are, -1), or ("tuple", what each of them is, -1). is_shared: it stands in such a list, which would not see it change."""

    __slots__ = ("content", "element", "is_shared")

    def __init__(self, content: Value, element: Element, is_shared: bool = False) -> None:
        self.content, self.element, self.is_shared = content, element, is_shared


class TextValue(Value):
    """A string that only the run knows; `number` is the one that it has (see `texts`)."""

    __slots__ = ("number",)

    def __init__(self, number: Value) -> None:
        self.number = number


class StringValue(Value):
    """A string among the arguments that only the run knows; `letters` is a tensor of their numbers."""

    __slots__ = ("letters",)

    def __init__(self, letters: Dynamic) -> None:
        self.letters = letters


class SetValue(Value):
    """A set that the program made, of plain objects."""

    __slots__ = ("objects",)

    def __init__(self, objects: frozenset[Any]) -> None:
        self.objects = objects


class DictValue(Value):
    """A dict that the program made, with keys known at translation; `cls` is dict or a subclass that holds nothing else."""

    __slots__ = ("cls", "items")

    def __init__(self, items: dict[Any, Value], cls: type = dict) -> None:
        self.items, self.cls = items, cls


class ArgumentDict(DictValue):
    """A dict that a caller handed in, the container `origin` of the arguments. One that the function writes to is an ArgumentMapping."""

    __slots__ = ("origin",)

    def __init__(self, items: dict[Any, Value], origin: str) -> None:
        super().__init__(items)
        self.origin = origin


class DictView(Value):
    """What keys(), values() and items() of a dict give: a view that changes with it. `source` is a DictValue, or a Known dict."""

    __slots__ = ("source", "which")

    def __init__(self, source: Value, which: str) -> None:
        self.source, self.which = source, which


class CellValue(Value):
    """The variable that closures share; content None: empty."""

    __slots__ = ("content",)

    def __init__(self, content: Value | None = None) -> None:
        self.content = content


class FunctionValue(Value):
    """A function that the program made; `attributes` are those that it was given since."""

    __slots__ = ("attributes", "cells", "code", "defaults", "globals", "keyword_defaults")

    def __init__(self, code: types.CodeType, globals_: dict[str, Any]) -> None:
        self.code, self.globals = code, globals_
        self.defaults: tuple[Value, ...] = ()
        self.keyword_defaults: dict[str, Value] = {}
        self.attributes: dict[str, Value] = {}
        self.cells: tuple[Value, ...] = ()


class MethodValue(Value):
    """A callable with its first argument: a Python function, or the name of a method of tensors, lists or dicts."""

    __slots__ = ("function", "receiver")

    def __init__(self, receiver: Value, function: Value | str) -> None:
        self.receiver, self.function = receiver, function


class PartialValue(Value):
    """functools.partial of a callable."""

    __slots__ = ("arguments", "function", "keywords")

    def __init__(self, function: Value, arguments: Arguments, keywords: Keywords) -> None:
        self.function, self.arguments, self.keywords = function, tuple(arguments), keywords


class InstanceValue(Value):
    """An instance that the program made of a class of Python; `fields` as __init__ and later writes set them."""

    __slots__ = ("cls", "fields")

    def __init__(self, cls: type, fields: dict[str, Value]) -> None:
        self.cls, self.fields = cls, fields


class ArgumentObject(InstanceValue):
    """An object of the arguments that is known by what it holds, the `number`-th that the translation has met. `fields` are the
    attributes that have been read or written, `read` those that have been read, as they were found."""

    __slots__ = ("number", "read")

    def __init__(self, cls: type, number: int) -> None:
        super().__init__(cls, {})
        self.number = number
        self.read: dict[str, Value] = {}


class ArgumentItems(ListValue):
    """A list in such an object, or among the arguments; `read` are the items that it had."""

    __slots__ = ("number", "read")

    def __init__(self, items: Iterable[Value], number: int) -> None:
        super().__init__(items)
        self.number, self.read = number, tuple(self.items)


class ArgumentMapping(DictValue):
    """A dict in such an object, or among the arguments; `read` are the items that it had."""

    __slots__ = ("number", "read")

    def __init__(self, items: dict[Any, Value], number: int) -> None:
        super().__init__(items)
        self.number, self.read = number, dict(items)


def parts_apart(new: Value, old: Value) -> Iterator[tuple[tuple[Any, ...], Value, Value]]:
    """The smallest parts in which two values differ, with the steps that lead there through structures that can be changed."""
    pairs: Any = None
    if isinstance(new, InstanceValue) and isinstance(old, InstanceValue) and new.cls is old.cls and new.fields.keys() == old.fields.keys():
        pairs = [(name, part, old.fields[name]) for name, part in new.fields.items()]
    elif isinstance(new, DictValue) and isinstance(old, DictValue) and new.cls is old.cls and new.items.keys() == old.items.keys():
        pairs = [(key, part, old.items[key]) for key, part in new.items.items()]
    elif isinstance(new, ListValue) and isinstance(old, ListValue) and len(new.items) == len(old.items):
        pairs = [(i, part, other) for i, (part, other) in enumerate(zip(new.items, old.items))]
    if pairs is None:
        yield (), new, old
        return
    for step, part, other in pairs:
        if Description().of(part) != Description().of(other):
            yield from (((step, *path), a, b) for path, a, b in parts_apart(part, other))


def changes_of(value: Value) -> Iterator[tuple[str, Any, Value]]:
    """What has been written to an object of the arguments: (kind, key, value)."""
    if isinstance(value, ArgumentObject):
        for name, new in value.fields.items():
            if new is not value.read.get(name):
                yield "attribute", name, new
    elif isinstance(value, ArgumentItems):
        if len(value.items) != len(value.read) or any(new is not old for new, old in zip(value.items, value.read)):
            yield "items", None, TupleValue(value.items)
    elif isinstance(value, ArgumentMapping):
        if list(value.items) != list(value.read) or any(new is not value.read[key] for key, new in value.items.items()):
            yield "dict", tuple(value.items), TupleValue(value.items.values())


# ------------------------------------------------------------------------------------------------------------- iterators


class GeneratorValue(Value):
    """A generator of Python that stands at a step; pc -1: it has ended; is_managed: it is always run to its end, but where the run
    raises, and such a call is Python's."""

    __slots__ = ("code", "globals", "is_managed", "locals", "pc", "stack")

    def __init__(self, code: types.CodeType, globals_: dict[str, Any], locals_: dict[str, Value]) -> None:
        self.code, self.globals, self.locals = code, globals_, locals_
        self.stack: list[Value] = []
        self.pc = 0
        self.is_managed = False

    def receive(self, sent: Value) -> bool:
        """Hands over what its `yield` gives when it goes on; False: it has not begun, and takes nothing but None."""
        if self.stack:
            self.stack[-1] = sent
        return bool(self.stack) or is_none(sent)


class SequenceIterator(Value):
    """Over items known at translation; those of a list or dict that the program made are looked up in it as they are wanted."""

    __slots__ = ("at", "items", "length", "source")

    def __init__(self, items: Iterable[Value], at: int = 0, source: Value | None = None) -> None:
        self.items, self.at, self.source = tuple(items), at, source
        self.length = len(source.items) if isinstance(source, DictValue) else 0


class RangeIterator(Value):
    """Over a range with an end, a start or a current value that only the run knows."""

    __slots__ = ("following", "step", "stop")

    def __init__(self, following: Value, stop: Value, step: int) -> None:
        self.following, self.stop, self.step = following, stop, step


class IndexIterator(Value):
    """Over a container of the run by place: the rows of a tensor, a RunList, an object of Python."""

    __slots__ = ("at", "container")

    def __init__(self, container: Value, at: Value) -> None:
        self.container, self.at = container, at


class ZipIterator(Value):
    """Over several iterators at once."""

    __slots__ = ("parts",)

    def __init__(self, parts: Iterable[Value]) -> None:
        self.parts = tuple(parts)


class EnumerateIterator(Value):
    """An iterator with a count beside it."""

    __slots__ = ("count", "inner")

    def __init__(self, inner: Value, count: Value) -> None:
        self.inner, self.count = inner, count


# ------------------------------------------------------------------------------------------------------------ traversal

# The fields of each structure that hold values, and those that hold plain data.
_PARTS: dict[type, tuple[tuple[str, ...], tuple[str, ...]]] = {
    TupleValue: (("items",), ("cls",)),
    SliceValue: (("start", "stop", "step"), ()),
    ListValue: (("items",), ()),
    RunList: (("content",), ("element", "is_shared")),
    TextValue: (("number",), ()),
    StringValue: (("letters",), ()),
    SetValue: ((), ("objects",)),
    DictValue: (("items",), ("cls",)),
    ArgumentList: (("items",), ("cls", "origin")),
    ArgumentDict: (("items",), ("cls", "origin")),
    DictView: (("source",), ("which",)),
    CellValue: (("content",), ()),
    FunctionValue: (("defaults", "keyword_defaults", "cells", "attributes"), ("code",)),
    MethodValue: (("receiver", "function"), ()),
    PartialValue: (("function", "arguments", "keywords"), ()),
    InstanceValue: (("fields",), ("cls",)),
    ArgumentObject: (("fields", "read"), ("cls", "number")),
    ArgumentItems: (("items", "read"), ("number",)),
    ArgumentMapping: (("items", "read"), ("cls", "number")),
    GeneratorValue: (("locals", "stack"), ("code", "pc", "is_managed")),
    SequenceIterator: (("items", "source"), ("at", "length")),
    RangeIterator: (("following", "stop"), ("step",)),
    IndexIterator: (("container", "at"), ()),
    ZipIterator: (("parts",), ()),
    EnumerateIterator: (("inner", "count"), ()),
}


def clone(value: Any, memo: dict[int, Any]) -> Any:
    """A copy that shares no changeable structure. `memo` maps id(value) to what stands in its place; one for a whole state."""
    if isinstance(value, (tuple, list)):
        return type(value)(clone(item, memo) for item in value)
    if isinstance(value, dict):
        return {key: clone(item, memo) for key, item in value.items()}
    if not isinstance(value, Value):
        return value
    found = memo.get(id(value))
    if found is not None:
        return found
    parts = _PARTS.get(type(value))
    if parts is None:
        return value
    copy: Any = object.__new__(type(value))
    memo[id(value)] = copy
    for field in parts[1]:
        setattr(copy, field, getattr(value, field))
    for field in parts[0]:
        setattr(copy, field, clone(getattr(value, field), memo))
    if isinstance(value, (FunctionValue, GeneratorValue)):
        copy.globals = value.globals
    return copy


@dataclasses.dataclass
class Description:
    """The shape of a state: two states with equal keys can share the code that follows."""

    slots: list[Dynamic] = dataclasses.field(default_factory=list)  # what has to be handed over, in order
    _seen: dict[int, int] = dataclasses.field(default_factory=dict)

    def of(self, value: Any) -> Any:
        """A hashable key."""
        if isinstance(value, Known):
            return _known_key(value.object)
        if isinstance(value, Dynamic):
            if value.anywhere is not None:
                return ("anywhere", value.anywhere)
            if id(value) not in self._seen:
                self._seen[id(value)] = len(self._seen)
                self.slots.append(value)
            return ("slot", self._seen[id(value)], value.kind, value.dtype, value.rank)
        if isinstance(value, (tuple, list)):
            return tuple(self.of(item) for item in value)
        if isinstance(value, dict):
            return tuple((_known_key(key), self.of(item)) for key, item in value.items())
        parts = _PARTS.get(type(value))
        if parts is None:
            return value if not isinstance(value, Value) else type(value).__name__
        if isinstance(value, (ArgumentObject, ArgumentItems, ArgumentMapping)):
            return ("argument", value.number)  # State.places has what is written to it
        if id(value) in self._seen:
            return ("again", self._seen[id(value)])
        self._seen[id(value)] = len(self._seen)
        data = tuple(getattr(value, field) for field in parts[1])
        return (type(value).__name__, data, *(self.of(getattr(value, field)) for field in parts[0]))


def _known_key(obj: Any) -> Any:
    if obj is None or type(obj) in (bool, int, str, bytes):
        return (type(obj), obj)
    if type(obj) is float:
        return (float, repr(obj))
    if type(obj) is tuple:
        return (tuple, tuple(_known_key(item) for item in obj))
    return ("object", id(obj))


def _leaves(value: Any, cls: type[_Leaf], seen: set[int]) -> Iterator[_Leaf]:
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _leaves(item, cls, seen)
    elif isinstance(value, dict):
        yield from _leaves(tuple(value.values()), cls, seen)
    elif isinstance(value, cls):
        yield value
    elif type(value) in _PARTS and id(value) not in seen:
        seen.add(id(value))
        for field in _PARTS[type(value)][0]:
            yield from _leaves(getattr(value, field), cls, seen)


def dynamics(value: Any) -> Iterator[Dynamic]:
    """Every Dynamic in a value."""
    return _leaves(value, Dynamic, set())


def knowns(value: Any) -> Iterator[Known]:
    """Every Known in a value."""
    return _leaves(value, Known, set())


def instances_in(value: Any) -> Iterator[InstanceValue]:
    """Every instance in a value, and in what it holds."""
    todo, seen = [value], set[int]()
    while todo:
        for found in _leaves(todo.pop(), InstanceValue, set()):
            if id(found) not in seen:
                seen.add(id(found))
                todo.append(found.fields)
                yield found


def is_known(value: Any) -> bool:
    """Whether the whole of a value is known at translation."""
    return next(dynamics(value), None) is None


def is_number(value: Any) -> bool:
    """Whether a value is a number, of the run or known, and no tensor of one."""
    return value.is_scalar if isinstance(value, Dynamic) else isinstance(value, Known) and type(value.object) in SCALARS


def is_none(value: Any) -> bool:
    """Whether a value, or a literal, is None."""
    return value is None or (isinstance(value, Known) and value.object is None)


def is_int(value: Any) -> bool:
    """Whether a value, or a literal, is an int and no bool."""
    value = value.object if isinstance(value, Known) else value
    return value.kind == "int" if isinstance(value, Dynamic) else type(value) is int


def whole(value: Value) -> Any:
    """The Python object of a value that is known whole."""

    def refuse(part: Value) -> Any:
        raise AssertionError(part)

    return objects_of(value, refuse)


def objects_of(value: Any, make: Callable[[Value], Any]) -> Any:
    """The Python object that a value stands for; `make` gives those of Dynamics and functions."""
    if isinstance(value, Known):
        return value.object
    if isinstance(value, TupleValue):
        items = [objects_of(item, make) for item in value.items]
        return value.cls(*items) if hasattr(value.cls, "_fields") else value.cls(items)
    if isinstance(value, ListValue):
        return [objects_of(item, make) for item in value.items]
    if isinstance(value, RunList):
        return make(value.content)
    if isinstance(value, SetValue):
        return set(value.objects)
    if isinstance(value, DictValue):
        named = {key: objects_of(item, make) for key, item in value.items.items()}
        return named if value.cls is dict else value.cls(**named)
    if isinstance(value, SliceValue):
        return slice(*(objects_of(part, make) for part in (value.start, value.stop, value.step)))
    if isinstance(value, InstanceValue):
        made: Any = object.__new__(value.cls)
        for name, item in value.fields.items():
            object.__setattr__(made, name, objects_of(item, make))
        return made
    return make(value)
