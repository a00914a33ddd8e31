"""Calls of classes: instances that are made here, and those that Python makes."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import sys
import types
from typing import TYPE_CHECKING, Any

from flexor.frontend.cpython import attributes, calls, evaluate, exceptions, instances, lowering, modules
from flexor.frontend.cpython.decode import NotTranslated
from flexor.frontend.cpython.values import Arguments, CellValue, DictValue, InstanceValue, Keywords, Known, TupleValue, Value, is_known, whole

if TYPE_CHECKING:
    from flexor.frontend.cpython.translate import Translator


def construct(t: Translator, cls: type, arguments: Arguments, keywords: Keywords) -> Value | None:
    """cls(...); None: a function of Python was entered, whose return pushes the instance."""
    torch = sys.modules.get("torch")
    if torch is not None and any(cls is getattr(torch, name, None) for name in ("no_grad", "inference_mode", "set_grad_enabled")):
        return Known(cls(*(lowering.plain(a) for a in arguments)))
    if issubclass(cls, BaseException) and exceptions.is_thrown_here(t, cls, [*arguments, *keywords.values()]):
        return evaluate.fold(t, cls.__name__, cls, arguments)
    if issubclass(cls, BaseException):
        return t.foreign(cls.__name__, cls, arguments, keywords, raises=True)  # made anew whenever it is raised
    if _is_about_dtypes(cls) and not keywords and evaluate.all_plain(arguments):
        return evaluate.fold(t, cls.__name__, cls, arguments)
    if cls in _VALUES and not keywords and is_known(arguments):
        return evaluate.fold(t, cls.__name__, cls, [Known(whole(a)) for a in arguments])
    if issubclass(cls, enum.Enum) and len(cls) and len(arguments) == 1 and not keywords and evaluate.all_plain(arguments):
        if cls._missing_.__func__ is enum.Enum._missing_.__func__:  # type: ignore[attr-defined]
            return evaluate.fold(t, cls.__name__, cls, arguments)  # the member of a value
    if hasattr(cls, "_fields") and issubclass(cls, tuple):
        return _named_tuple(t, cls, arguments, keywords)
    is_made_here = cls not in t.knowledge.by_python
    if is_made_here and dataclasses.is_dataclass(cls) and not instances.is_output(cls) and isinstance(cls.__init__, types.FunctionType):
        instance = InstanceValue(cls, {})
        if "object.__setattr__" in _text(cls.__init__) or getattr(cls, "__dataclass_params__").frozen:
            return _frozen_dataclass(t, cls, arguments, keywords)
        function = cls.__init__
        if type(cls) is not type or attributes._raw(cls, "__new__") is not object.__new__:
            raise NotTranslated(f"the class {cls.__name__} makes its instances itself", t.state.top.line)
        t.guards.class_attribute(cls, "__init__", function)
        calls.enter(
            t,
            function.__code__,
            function.__globals__,
            tuple(t.known(v) for v in function.__defaults__ or ()),
            {k: t.known(v) for k, v in (function.__kwdefaults__ or {}).items()},
            tuple(Known(cell) for cell in function.__closure__ or ()),
            [instance, *arguments],
            keywords,
            on_return=instance,
        )
        return None
    if instances.is_output(cls):
        return _output(t, cls, arguments, keywords)
    if cls is super:
        return super_of(t, arguments)
    if cls is contextlib.nullcontext:
        return InstanceValue(cls, {"enter_result": (*arguments, *keywords.values(), Known(None))[0]})
    if instances.can_make(t, cls):
        return instances.make(t, cls, arguments, keywords)
    if modules.is_bare(cls) and is_made_here and evaluate.all_plain([*arguments, *keywords.values()]):
        return t.made(cls, tuple(map(lowering.plain, arguments)), {name: lowering.plain(value) for name, value in keywords.items()})
    is_users = bool(cls.__flags__ & 1 << 9) and cls.__module__.split(".")[0] not in ("torch", "numpy")
    return t.foreign(cls.__name__, cls, arguments, keywords, is_pure=not is_users, clobbers=is_users)


def _named_tuple(t: Translator, cls: type, arguments: Arguments, keywords: Keywords) -> Value:
    maker = attributes._raw(cls, "__new__")
    own = next(base for base in cls.__mro__ if "_fields" in base.__dict__)
    if own.__dict__.get("__new__") is not maker or attributes._raw(cls, "__init__") is not object.__init__:
        raise NotTranslated(f"the class {cls.__name__} makes its instances itself", t.state.top.line)
    t.guards.class_attribute(cls, "__new__", maker)
    function: Any = getattr(maker, "__func__", maker)
    defaults = tuple(t.known(v) for v in function.__defaults__ or ())
    bound = calls.bind(function.__code__, defaults, {}, [Known(cls), *arguments], keywords)
    if isinstance(bound, str):
        calls.refuse_misfit(t, f"{cls.__name__}.__new__() {bound}")
    return TupleValue([bound[name] for name in getattr(cls, "_fields")], cls)


_VALUES = (int, float, bool, str, complex, slice, range, bytes, tuple, frozenset, object)


def _is_about_dtypes(cls: type) -> bool:
    """torch.finfo and torch.iinfo, whose objects do not change."""
    return cls.__module__ == "torch" and cls.__name__ in ("finfo", "iinfo")


def _text(function: types.FunctionType) -> str:
    return " ".join(map(str, function.__code__.co_names))


def _frozen_dataclass(t: Translator, cls: type, arguments: Arguments, keywords: Keywords) -> Value:
    function: Any = getattr(cls, "__init__")
    is_plain = function.__qualname__.endswith("__create_fn__.<locals>.__init__") or function.__code__.co_filename == "<string>"
    fields = dataclasses.fields(cls)
    if hasattr(cls, "__post_init__") or not is_plain or not all(f.init for f in fields):
        raise NotTranslated(f"the frozen dataclass {cls.__name__} with a constructor of its own", t.state.top.line)
    t.guards.class_attribute(cls, "__init__", function)
    defaults = tuple(t.known(v) for v in function.__defaults__ or ())
    keyword_defaults = {k: t.known(v) for k, v in (function.__kwdefaults__ or {}).items()}
    bound = calls.bind(function.__code__, defaults, keyword_defaults, [Known(cls), *arguments], keywords)
    if isinstance(bound, str):
        calls.refuse_misfit(t, f"{cls.__name__}.__init__() {bound}")
    values = {field.name: bound[field.name] for field in fields}
    if any(field.default_factory is not dataclasses.MISSING for field in fields):
        raise NotTranslated(f"a frozen dataclass with factories: {cls.__name__}", t.state.top.line)
    return InstanceValue(cls, values)


def _output(t: Translator, cls: Any, arguments: Arguments, keywords: Keywords) -> Value:
    fields = [f.name for f in dataclasses.fields(cls)]
    values = dict(zip(fields, arguments)) | keywords
    if len(arguments) > len(fields) or set(keywords) - set(fields) or not all(f.default is None for f in dataclasses.fields(cls)):
        raise NotTranslated(f"a {cls.__name__} of other arguments than its fields", t.state.top.line)
    present = {
        name: values[name] for name in fields if name in values and not (isinstance(values[name], Known) and values[name].object is None)  # type: ignore[attr-defined]
    }
    return DictValue(present, cls)


def super_of(t: Translator, arguments: Arguments) -> Value:
    """super() and super(cls, self)."""
    frame = t.state.top
    if arguments:
        cls, self = arguments
    else:
        cell = frame.locals.get("__class__")
        content = cell.content if isinstance(cell, CellValue) else attributes.cell_content(t, cell.object) if isinstance(cell, Known) else None
        first = frame.locals.get(frame.code.co_varnames[0]) if frame.code.co_argcount else None
        if isinstance(first, CellValue):
            first = first.content
        if content is None or first is None:
            raise NotTranslated("super() outside of a method", frame.line)
        cls, self = content, first
    if not isinstance(cls, Known):
        raise NotTranslated("super() of a class that only the run knows", frame.line)
    return SuperValue(cls, self)


class SuperValue(TupleValue):
    """super(cls, self): attributes are looked up behind cls."""

    __slots__ = ()

    def __init__(self, cls: Value, self_: Value) -> None:
        super().__init__([cls, self_], super)
