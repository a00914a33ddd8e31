"""What a translated function returns: the structure that Python would give, with places for the values of the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flexor.frontend.cpython import helpers, texts
from flexor.frontend.cpython.decode import NotTranslated
from flexor.frontend.cpython.values import (
    ArgumentItems,
    ArgumentMapping,
    ArgumentObject,
    SCALARS,
    ArgumentDict,
    ArgumentList,
    DictValue,
    Dynamic,
    Element,
    InstanceValue,
    Known,
    ListValue,
    RunList,
    SetValue,
    SliceValue,
    TextValue,
    TupleValue,
    Value,
)
from flexor.frontend.cpython.writer import IN_TENSORS

Template = tuple[Any, ...]


class _Identity:
    """An object as part of a key."""

    __slots__ = ("object",)

    def __init__(self, obj: Any) -> None:
        self.object = obj

    def __hash__(self) -> int:
        return id(self.object)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.object is self.object


def template(value: Value) -> tuple[Template, list[Dynamic]]:
    """A hashable description of a result, and the values of the run in it."""
    values: list[Dynamic] = []
    shared = _shared(value)
    numbers: dict[int, int] = {}

    def describe(v: Value) -> Template:
        if id(v) in numbers:
            return ("again", numbers[id(v)])
        if id(v) in shared:
            numbers[id(v)] = len(numbers)
            return ("shared", numbers[id(v)], describe_once(v))
        return describe_once(v)

    def describe_once(v: Value) -> Template:
        if isinstance(v, Known):
            return ("known", _Identity(v.object))
        if isinstance(v, Dynamic):
            if v.kind == "tensor" and v.anywhere is not None:
                return ("input", v.anywhere)
            at = next((i for i, other in enumerate(values) if other is v), len(values))
            if at == len(values):
                values.append(v)
            return ("value", at, v.kind if v.kind != "list" else f"list of {v.dtype}" + " in tensors" * (v.rank == 0))
        if isinstance(v, TextValue):
            return ("value", describe(v.number)[1], "text")
        if isinstance(v, (ArgumentList, ArgumentDict)):
            return ("input", v.origin)
        if isinstance(v, (ArgumentObject, ArgumentItems, ArgumentMapping)):
            return ("argument", v.number)
        if isinstance(v, TupleValue):
            return ("tuple", v.cls, tuple(describe(item) for item in v.items))
        if isinstance(v, ListValue):
            return ("list", list, tuple(describe(item) for item in v.items))
        if isinstance(v, RunList) and v.element[0] in ("list", "tuple"):
            return (*describe(v.content)[:2], ("list", v.element, -1))
        if isinstance(v, RunList):
            return describe(v.content)
        if isinstance(v, SetValue):
            return ("set", v.objects)
        if isinstance(v, SliceValue):
            return ("slice", slice, tuple(describe(part) for part in (v.start, v.stop, v.step)))
        if isinstance(v, DictValue):
            return ("dict", v.cls, tuple(v.items), tuple(describe(item) for item in v.items.values()))
        if isinstance(v, InstanceValue) and v.cls is helpers.Table:
            return ("table", dict, tuple(describe(part) for part in v.fields.values()))
        if isinstance(v, InstanceValue):
            return ("instance", v.cls, tuple(v.fields), tuple(describe(item) for item in v.fields.values()))
        raise NotTranslated(f"a result that is a {type(v).__name__}")

    return describe(value), values


def computed(value: Value, constant: Callable[[Any], Dynamic]) -> Value:
    """A result in which every tensor and number is a value of the program, one for each place that it stands in; `constant` makes
    one of a number. Raises NotTranslated for what is neither, nor a structure of such."""

    def one(v: Value) -> Value:
        return computed(v, constant)

    if isinstance(value, Known):
        obj = value.object
        if obj is None:
            return value
        if type(obj) in SCALARS:
            return constant(obj)
        if isinstance(obj, (tuple, list)):
            return TupleValue([one(Known(item)) for item in obj], type(obj))
        if type(obj) is dict:
            return DictValue({key: one(Known(item)) for key, item in obj.items()})
        raise NotTranslated(f"a result that is a {type(obj).__name__}")
    if isinstance(value, Dynamic) and value.kind != "object" and (value.kind, value.dtype) != ("list", "object"):
        return Dynamic(value.kind, value.native, None, value.dtype, value.rank)
    if isinstance(value, RunList) and value.element[0] != "text":
        return one(value.content)
    if isinstance(value, TupleValue):
        return TupleValue([one(item) for item in value.items], value.cls)
    if isinstance(value, ListValue):
        return ListValue([one(item) for item in value.items])
    if isinstance(value, DictValue):
        return DictValue({key: one(item) for key, item in value.items.items()}, value.cls)
    if isinstance(value, InstanceValue) and value.cls is not helpers.Table:
        return InstanceValue(value.cls, {name: one(item) for name, item in value.fields.items()})
    raise NotTranslated("a result that is an object of Python")


def spelt(described: Template) -> str:
    """A template for people: `{"last": out0, "sizes": (out1, out2)}`."""
    kind = described[0]
    if kind == "value":
        return f"out{described[1]}"
    if kind == "shared":
        return spelt(described[2])
    if kind in ("known", "set"):
        return repr(described[1].object if kind == "known" else set(described[1]))
    if kind not in ("dict", "instance", "tuple", "list", "table"):
        return str(kind)
    parts = [spelt(part) for part in described[-1]]
    if kind == "dict":
        return "{" + ", ".join(f"{key!r}: {part}" for key, part in zip(described[2], parts)) + "}"
    if kind == "instance":
        return f"{described[1].__name__}({', '.join(f'{name}={part}' for name, part in zip(described[2], parts))})"
    if kind == "table":
        return f"dict(zip({', '.join(parts)}))"
    inside = ", ".join(parts)
    if described[1] is list:
        return f"[{inside}]"
    return f"({inside}{',' if len(parts) == 1 else ''})"


def _shared(value: Value) -> set[int]:
    """The lists, dicts and objects that stand in a result more than once. Raises NotTranslated for one that contains itself."""
    seen: set[int] = set()
    shared: set[int] = set()
    around: list[Value] = []

    def visit(v: Value) -> None:
        parts: Any = ()
        if isinstance(v, (TupleValue, ListValue)):
            parts = v.items
        elif isinstance(v, DictValue):
            parts = v.items.values()
        elif isinstance(v, InstanceValue):
            parts = v.fields.values()
        if any(v is other for other in around):
            raise NotTranslated("a result that contains itself")
        if isinstance(v, (ArgumentList, ArgumentDict, ArgumentObject, ArgumentItems, ArgumentMapping)):
            return
        if isinstance(v, (ListValue, RunList, SetValue, DictValue, InstanceValue)):
            if id(v) in seen:
                shared.add(id(v))
                return
            seen.add(id(v))
        around.append(v)
        for part in parts:
            visit(part)
        around.pop()

    visit(value)
    return shared


def _as_numpy_gives(array: Any) -> Any:
    """NumPy gives scalars where it would give arrays without axes."""
    return array if array.ndim else array[()]


def _nested(at: int, element: Element, is_numpy: bool) -> Callable[[Sequence[Any], Any, list[Any]], Any]:
    """The builder of lists and tuples in a list of the run."""

    def made(value: Any, of: Element) -> Any:
        kind, inside, rank = of
        if kind == "tuple":
            return tuple([made(part, one) for part, one in zip(value, inside)])
        if kind == "list":
            return [made(part, inside) for part in value]
        if rank == 0 and kind in IN_TENSORS:
            return value.item()
        return _as_numpy_gives(value) if is_numpy and kind == "tensor" else value

    return lambda values, inputs, objects: made(values[at], element)


def builder(described: Template, is_numpy: bool) -> Callable[[Sequence[Any], Any, list[Any]], Any]:
    """A function (values of the run, inputs by name with a dict `shared`, objects of the run) -> the result."""
    kind = described[0]
    if kind == "again":
        number = described[1]
        return lambda values, inputs, objects: inputs.shared[number]
    if kind == "shared":
        number, make = described[1], builder(described[2], is_numpy)

        def share(values: Sequence[Any], inputs: Any, objects: list[Any]) -> Any:
            made = inputs.shared[number] = make(values, inputs, objects)
            return made

        return share
    if kind == "argument":
        met = described[1]
        return lambda values, inputs, objects: inputs.found[met]
    if kind == "known":
        obj = described[1].object
        return lambda values, inputs, objects: obj
    if kind == "input":
        name = described[1].removeprefix("input ")
        return lambda values, inputs, objects: inputs[name]
    if kind == "value":
        at = described[1]
        if described[2] == "object":
            return lambda values, inputs, objects: objects[values[at]]
        if described[2] == "list of object":
            return lambda values, inputs, objects: [objects[handle] for handle in values[at]]
        if isinstance(described[2], tuple):
            return _nested(at, described[2], is_numpy)
        if described[2] == "text":
            return lambda values, inputs, objects: texts.text_of(values[at])
        if described[2] == "list of text":
            return lambda values, inputs, objects: list(map(texts.text_of, values[at]))
        if described[2] == "list of text in tensors":
            return lambda values, inputs, objects: [texts.text_of(number.item()) for number in values[at]]
        if described[2].endswith(" in tensors"):
            return lambda values, inputs, objects: [number.item() for number in values[at]]
        if is_numpy and described[2] == "list of tensor":
            return lambda values, inputs, objects: [_as_numpy_gives(element) for element in values[at]]
        if is_numpy and described[2] == "tensor":
            return lambda values, inputs, objects: _as_numpy_gives(values[at])
        return lambda values, inputs, objects: values[at]
    if kind == "set":
        members = described[1]
        return lambda values, inputs, objects: set(members)
    parts = [builder(part, is_numpy) for part in described[-1]]
    cls = described[1]
    if kind == "dict":
        keys = described[2]
        if cls is dict:
            return lambda values, inputs, objects: {k: p(values, inputs, objects) for k, p in zip(keys, parts)}
        return lambda values, inputs, objects: cls(**{k: p(values, inputs, objects) for k, p in zip(keys, parts)})
    if kind == "instance":
        names = described[2]

        def instance(values: Sequence[Any], inputs: Any, objects: list[Any]) -> Any:
            made = object.__new__(cls)
            for name, part in zip(names, parts):
                object.__setattr__(made, name, part(values, inputs, objects))
            return made

        return instance
    if kind == "table":
        keys_of, values_of = parts
        return lambda values, inputs, objects: dict(zip(keys_of(values, inputs, objects), values_of(values, inputs, objects)))
    if kind == "slice" or hasattr(cls, "_fields"):
        return lambda values, inputs, objects: cls(*[part(values, inputs, objects) for part in parts])
    return lambda values, inputs, objects: cls([part(values, inputs, objects) for part in parts])
