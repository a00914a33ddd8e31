"""What the patterns of `match` ask of a subject."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flexor.frontend.cpython import attributes, builtin, calls, evaluate, helpers
from flexor.frontend.cpython.decode import NotTranslated
from flexor.frontend.cpython.values import DictValue, Dynamic, InstanceValue, Known, ListValue, RunList, TupleValue, Value

if TYPE_CHECKING:
    from flexor.frontend.cpython.translate import Translator

_SEQUENCE, _MAPPING = 1 << 5, 1 << 6  # Py_TPFLAGS_SEQUENCE and _MAPPING, by which CPython tells
# Classes of builtins whose one positional pattern is the object itself.
_THEMSELVES = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)


def is_sequence(t: Translator, value: Value) -> Value:
    """Whether a sequence pattern may fit."""
    if isinstance(value, Dynamic) and value.kind == "object":
        return t.foreign("match", _is_a_sequence, [value], result="bool")
    if isinstance(value, (TupleValue, ListValue, RunList)):
        return Known(True)
    _refuse_collections(t, value)
    return Known(isinstance(value, Known) and _is_a_sequence(value.object))


def is_mapping(t: Translator, value: Value) -> Value:
    """Whether a mapping pattern may fit."""
    if isinstance(value, Dynamic) and value.kind == "object":
        return t.foreign("match", _is_a_mapping, [value], result="bool")
    _refuse_collections(t, value)
    return Known(isinstance(value, DictValue) or (isinstance(value, Known) and _is_a_mapping(value.object)))


def _refuse_collections(t: Translator, value: Value) -> None:
    if isinstance(value, InstanceValue) and (value.cls.__flags__ & (_SEQUENCE | _MAPPING) or value.cls is helpers.Table):
        raise NotTranslated(f"a match on a {value.cls.__name__} of the program", t.state.top.line)


def _is_a_sequence(obj: Any) -> bool:
    return bool(type(obj).__flags__ & _SEQUENCE)


def _is_a_mapping(obj: Any) -> bool:
    return bool(type(obj).__flags__ & _MAPPING)


def values_of(t: Translator, mapping: Value, keys: Value) -> Value:
    """The values of keys of a mapping as a tuple; None where one is missing."""
    if not isinstance(keys, Known):
        raise NotTranslated("a pattern with keys that only the run knows", t.state.top.line)
    if isinstance(mapping, DictValue):
        items = mapping.items
    elif isinstance(mapping, Known) and isinstance(mapping.object, dict):
        items = attributes.items(t, mapping.object)
    else:
        return t.foreign("match", _values, [mapping, keys])
    if len(set(keys.object)) < len(keys.object):
        double = next(key for at, key in enumerate(keys.object) if key in keys.object[:at])

        def fail() -> None:
            raise ValueError(f"mapping pattern checks duplicate key ({double!r})")

        evaluate.raises(t, "match", fail, [])
    found = [items.get(key) for key in keys.object]
    values = [value for value in found if value is not None]
    return TupleValue(values) if len(values) == len(found) else Known(None)


def _values(mapping: Mapping[Any, Any], keys: Sequence[Any]) -> tuple[Any, ...] | None:
    missing = object()
    found = tuple(mapping.get(key, missing) for key in keys)
    return None if missing in found else found


_values.__module__ = "operator"  # reads what it is given


def without(t: Translator, mapping: Value, keys: Value) -> Value:
    """A new dict of a mapping, without keys."""
    if not isinstance(mapping, DictValue) or not isinstance(keys, (Known, TupleValue)):
        raise NotTranslated("the rest of a mapping that is not the program's", t.state.top.line)
    left_out = keys.object if isinstance(keys, Known) else [evaluate.key_of(t, key) for key in keys.items]
    return DictValue({key: value for key, value in mapping.items.items() if key not in left_out})


def attributes_of(t: Translator, subject: Value, cls: Value, positional: int, names: Value) -> Value | None:
    """What a class pattern finds: a tuple, or None; None of Python: a call was entered that gives it."""
    if not isinstance(cls, Known) or not isinstance(names, Known):
        raise NotTranslated("a class pattern of what only the run knows", t.state.top.line)
    kind, named = cls.object, tuple(names.object)
    if not isinstance(kind, type):

        def fail() -> None:
            raise TypeError("called match pattern must be a class")

        evaluate.raises(t, "match", fail, [])
    itself = positional == 1 and kind in _THEMSELVES
    first: tuple[str, ...] = () if itself else _by_place(t, kind, positional, subject)
    if isinstance(subject, (InstanceValue, Known, Dynamic)) or named or first:
        return calls.call(t, Known(helpers.matched), [subject, cls, Known(first + named), Known(itself)], {})
    found = builtin.class_of(t, subject)
    if found is None:
        raise NotTranslated(f"a class pattern on a {type(subject).__name__}", t.state.top.line)
    fits = builtin.is_subclass(found, kind)
    return TupleValue([subject] * itself) if fits else Known(None)


def _by_place(t: Translator, cls: type, positional: int, subject: Value) -> tuple[str, ...]:
    """The attributes that positional patterns stand for."""
    raw = attributes._raw(cls, "__match_args__")
    t.guards.class_attribute(cls, "__match_args__", raw)
    known = getattr(cls, "__match_args__", ())
    if not positional:
        return ()
    found = builtin.class_of(t, subject)
    if found is not None and not builtin.is_subclass(found, cls):
        return ()  # asked for in an instance alone
    if not isinstance(known, tuple) or len(known) < positional or not all(type(name) is str for name in known):
        accepted = len(known) if isinstance(known, tuple) else 0

        def fail() -> None:
            raise TypeError(f"{cls.__name__}() accepts {accepted} positional sub-pattern{'s' * (accepted != 1)} ({positional} given)")

        evaluate.raises(t, "match", fail, [])
    return known[:positional]
