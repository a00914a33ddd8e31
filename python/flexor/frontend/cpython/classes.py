"""Class statements inside functions.

A class is made when the function is translated, and serves every call: nothing but the program sees it. Its functions are real ones,
whose closures hold cells of their own (`Translator.private`); what those cells hold is told by `State.written`, as of any cell that
the function has written to.
"""

from __future__ import annotations

import abc
import builtins
import dataclasses
import functools
import types
from typing import TYPE_CHECKING, Any

from flexor.frontend.cpython.decode import NotTranslated
from flexor.frontend.cpython.operations import NAMES
from flexor.frontend.cpython.values import (
    Arguments,
    CellValue,
    DictValue,
    FunctionValue,
    Keywords,
    Known,
    ListValue,
    PartialValue,
    SetValue,
    TupleValue,
    Value,
    clone,
    instances_in,
    is_known,
    knowns,
    whole,
)

if TYPE_CHECKING:
    from flexor.frontend.cpython.state import Frame
    from flexor.frontend.cpython.translate import Translator

_DECORATORS: tuple[Any, ...] = (property, staticmethod, classmethod, functools.cached_property)
_LOOK_AT_THEIR_CLASS = (*_DECORATORS, dataclasses.Field)  # for their name alone
_METACLASSES = (type, abc.ABCMeta)


class Body(Value):
    """In the place of the result of a class's body: the class that is made then."""

    __slots__ = ("bases", "name")

    def __init__(self, name: str, bases: tuple[type, ...]) -> None:
        self.name, self.bases = name, bases


def call_of(t: Translator, function: Any, arguments: Arguments, keywords: Keywords) -> Any:
    """What a call that makes a class, or something of a class, gives; NotImplemented: it is none. None: a body was entered."""
    if function is builtins.__build_class__:
        return _build(t, arguments, keywords)
    if any(function is decorator for decorator in _DECORATORS) and any(isinstance(a, FunctionValue) for a in arguments) and not keywords:
        made = function(*_objects(t, arguments))
        t.hold_privately(made)
        return Known(made)
    if function is dataclasses.dataclass and is_known(keywords):
        if not arguments:
            return PartialValue(Known(function), [], keywords)
        if len(arguments) == 1 and isinstance(arguments[0], Known) and id(arguments[0].object) in t.private:
            return Known(function(arguments[0].object, **{name: whole(value) for name, value in keywords.items()}))
    if function is dataclasses.field and not arguments and is_known(keywords):
        made = function(**{name: whole(value) for name, value in keywords.items()})
        t.hold_privately(made)
        return Known(made)
    return NotImplemented


def _build(t: Translator, arguments: Arguments, keywords: Keywords) -> Value | None:
    body, name, *bases = arguments
    line = t.state.top.line
    if keywords or not isinstance(body, FunctionValue) or not isinstance(name, Known):
        raise NotTranslated("a class with a metaclass or arguments", line)
    known = tuple(base.object if isinstance(base, Known) else None for base in bases)
    if not all(isinstance(base, type) and type(base) in _METACLASSES for base in known):
        raise NotTranslated(f"the class {name.object}, whose bases make their classes themselves", line)
    if any("__init_subclass__" in cls.__dict__ for base in known for cls in base.__mro__[:-1]):  # type: ignore[union-attr]
        raise NotTranslated(f"the class {name.object}, whose bases look at their subclasses", line)
    frame = t.enter(body.code, body.globals, dict(zip(body.code.co_freevars, body.cells)), Body(name.object, known))  # type: ignore[arg-type]
    frame.locals[NAMES] = DictValue({})
    return None


def finished(t: Translator, frame: Frame, body: Body) -> Known:
    """The class whose body has come to its end."""
    names = frame.locals[NAMES]
    assert isinstance(names, DictValue)
    _keep_cells(t, [value for value in names.items.values() if isinstance(value, FunctionValue)])
    frame = t.state.top
    names = frame.locals[NAMES]
    assert isinstance(names, DictValue)
    holder = names.items.pop("__classcell__", None)
    namespace = {name: _object(t, value) for name, value in names.items.items()}
    for name, obj in namespace.items():
        if not isinstance(obj, _LOOK_AT_THEIR_CLASS) and isinstance(getattr(type(obj), "__set_name__", None), types.FunctionType):
            raise NotTranslated(f"{name}, which looks at the class that it is put into", frame.line)
    cls = (abc.ABCMeta if any(type(base) is abc.ABCMeta for base in body.bases) else type)(body.name, body.bases, namespace)
    t.hold_privately(cls)
    if isinstance(holder, CellValue):
        holder.content = Known(cls)
    elif isinstance(holder, Known):
        t.state.written[id(holder.object), "cell"] = Known(cls)
    return Known(cls)


def _object(t: Translator, value: Value) -> Any:
    """What a body has given a name to, as an object of Python. Lists, dicts and sets are the class's own."""
    if isinstance(value, FunctionValue):
        return _objects(t, [value])[0]
    made: Any = None
    if isinstance(value, ListValue):
        made = [_object(t, item) for item in value.items]
    elif isinstance(value, DictValue) and value.cls is dict:
        made = {key: _object(t, item) for key, item in value.items.items()}
    elif isinstance(value, SetValue):
        made = set(value.objects)
    elif isinstance(value, TupleValue) and value.cls is tuple:
        return tuple(_object(t, item) for item in value.items)
    elif isinstance(value, Known):
        return value.object
    else:
        raise NotTranslated("a class with attributes that only the run knows", t.state.top.line)
    t.hold_privately(made)
    return made


def freed(t: Translator, value: Value) -> Value:
    """A result in which lists, dicts and sets of a class, which goes with the call, are lists, dicts and sets that the program made."""
    held = {id(known): known.object for known in knowns(value) if id(known.object) in t.private}
    memo: dict[int, Value] = {}
    made = {number: _changeable(t, obj, memo) for number, obj in held.items() if isinstance(obj, (list, dict, set))}
    return clone(value, made) if made else value  # type: ignore[no-any-return]


def _changeable(t: Translator, obj: Any, memo: dict[int, Value]) -> Value:
    if id(obj) not in t.private or not isinstance(obj, (list, dict, set)):
        return TupleValue([_changeable(t, item, memo) for item in obj]) if type(obj) is tuple else t.known(obj)
    if id(obj) not in memo:
        if isinstance(obj, list):
            memo[id(obj)] = ListValue(_changeable(t, item, memo) for item in obj)
        elif isinstance(obj, dict):
            memo[id(obj)] = DictValue({key: _changeable(t, item, memo) for key, item in obj.items()})
        else:
            memo[id(obj)] = SetValue(frozenset(obj))
    return memo[id(obj)]


def _objects(t: Translator, values: Arguments) -> list[Any]:
    """Functions of the program as functions of Python."""
    cells = _keep_cells(t, [value for value in values if isinstance(value, FunctionValue)])
    return [_function(t, value, cells) if isinstance(value, FunctionValue) else _object(t, value) for value in values]


def _keep_cells(t: Translator, functions: list[FunctionValue]) -> dict[int, Known]:
    """Puts cells of Python in the place of the cells of functions, wherever those stand."""
    replaced: dict[int, Known] = {}
    for cell in (cell for function in functions for cell in function.cells):
        if isinstance(cell, CellValue) and id(cell) not in replaced:
            made = types.CellType()
            t.hold_privately(made)
            replaced[id(cell)] = Known(made)
            if cell.content is not None:
                t.state.written[id(made), "cell"] = cell.content
    if replaced:
        t.state = t.state.copy(dict(replaced))
    return replaced


def _function(t: Translator, value: FunctionValue, cells: dict[int, Known]) -> types.FunctionType:
    if value.attributes or not is_known(TupleValue([*value.defaults, *value.keyword_defaults.values()])):
        raise NotTranslated("a method with defaults or attributes that only the run knows", t.state.top.line)
    closure = [cells.get(id(cell), cell) for cell in value.cells]
    if not all(isinstance(cell, Known) for cell in closure):
        raise NotTranslated("a method whose closure only the run knows", t.state.top.line)
    held = tuple(cell.object for cell in closure)  # type: ignore[attr-defined]
    made = types.FunctionType(value.code, value.globals, value.code.co_name, tuple(map(whole, value.defaults)) or None, held)
    made.__kwdefaults__ = {name: whole(default) for name, default in value.keyword_defaults.items()} or None  # type: ignore[assignment]
    t.hold_privately(made)
    return made


def keep(t: Translator, values: Any) -> None:
    """Refuses to show a class of the function's own, or what belongs to one, to others: Python makes another one for every call."""
    if not t.private:
        return
    shown = [known.object for known in knowns(values) if id(known.object) in t.private or id(getattr(known.object, "__self__", None)) in t.private]
    shown += [instance.cls for instance in instances_in(values) if id(instance.cls) in t.private]
    if shown:
        raise NotTranslated(f"a class of the function's own, or a part of it, handed to others: {getattr(shown[0], '__name__', 'a variable')}", t.state.top.line)
