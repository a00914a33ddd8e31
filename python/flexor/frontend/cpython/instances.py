"""Instances of classes of Python: those that the program makes itself, and the methods that operators stand for."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flexor.frontend.cpython import attributes, builtin, calls, evaluate, helpers
from flexor.frontend.cpython.decode import NotTranslated
from flexor.frontend.cpython.values import Arguments, Dynamic, InstanceValue, Keywords, Known, TupleValue, Value

if TYPE_CHECKING:
    from flexor.frontend.cpython.translate import Translator

_HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class of Python's
_OF_LIBRARIES = ("torch", "numpy", "contextlib", "enum", "collections", "threading", "weakref")


# --------------------------------------------------------------------------------------------------------- construction


def _by_class(function: Callable[[type], bool]) -> Callable[[type], bool]:
    return functools.cache(function)


@_by_class
def is_output(cls: type) -> bool:
    """Dataclasses that are mappings of their fields, as libraries of models return them: their __post_init__ fills the mapping."""
    return issubclass(cls, dict) and dataclasses.is_dataclass(cls) and hasattr(cls, "__post_init__") and hasattr(cls, "to_tuple")


def can_make(t: Translator, cls: type) -> bool:
    """Whether an instance is nothing but what its __init__ puts into it, so that the program can hold its fields."""
    begins = attributes._raw(cls, "__init__")
    is_followed = begins is object.__init__ or isinstance(begins, types.FunctionType)
    return is_followed and cls not in t.knowledge.by_python and is_plain_class(cls) and not getattr(cls, "__abstractmethods__", None)


@_by_class
def is_plain_class(cls: type) -> bool:
    """Whether instances are nothing but their attributes: a class of Python's, over no builtin one, that leaves to `object` how
    attributes are kept."""
    if cls.__module__.split(".")[0] in _OF_LIBRARIES or not all(base is object or _holds_nothing(base) for base in cls.__mro__[1:]):
        return False
    plain = {"__new__": object.__new__, "__setattr__": object.__setattr__, "__getattribute__": object.__getattribute__}
    if any(attributes._raw(cls, name) is not method for name, method in plain.items()) or type(cls).__call__ is not type.__call__:
        return False
    return bool(cls.__flags__ & _HEAP) and attributes._raw(cls, "__del__") is attributes._ABSENT


def _holds_nothing(base: type) -> bool:
    """Whether a base class is the user's, or one of the abstract ones, which have methods alone."""
    is_abstract = base.__module__ in ("abc", "typing", "contextlib") or base.__module__.startswith(("collections.abc", "_collections_abc"))
    return bool(base.__flags__ & _HEAP) and (is_abstract or base.__module__.split(".")[0] not in _OF_LIBRARIES)


def make(t: Translator, cls: type, arguments: Arguments, keywords: Keywords) -> Value | None:
    """cls(...), of a class that `can_make` takes."""
    instance = InstanceValue(cls, {})
    begins = attributes._raw(cls, "__init__")
    for name in ("__new__", "__init__", "__setattr__", "__getattribute__"):
        t.guards.class_attribute(cls, name, attributes._raw(cls, name))
    if begins is object.__init__:
        if arguments or keywords:
            calls.refuse_misfit(t, f"{cls.__name__}() takes no arguments")
        return instance
    entered = calls.call(t, Known(begins), [instance, *arguments], keywords)
    if entered is not None:
        raise NotTranslated(f"the class {cls.__name__} makes its instances itself", t.state.top.line)
    t.state.top.on_return = instance
    return None


# -------------------------------------------------------------------------------------------------------------- methods


def method(t: Translator, value: Value, name: str) -> Known | None:
    """The function of Python that a class has for a special method; None: it has none, or one written in C."""
    if isinstance(value, (InstanceValue, TupleValue)):
        cls = value.cls
    elif isinstance(value, Known) and not isinstance(value.object, type):
        cls = type(value.object)
    else:
        return None
    if not cls.__flags__ & _HEAP:
        return None
    raw = attributes._raw(cls, name)
    t.guards.class_attribute(cls, name, raw)
    return Known(raw) if isinstance(raw, types.FunctionType) else None


def is_users(value: Value) -> bool:
    """An object whose operators are looked up in a class of Python."""
    if isinstance(value, InstanceValue):
        return True
    if isinstance(value, TupleValue):
        return hasattr(value.cls, "_fields")
    if not isinstance(value, Known) or isinstance(value.object, (type, types.ModuleType, types.FunctionType)):
        return False
    return bool(type(value.object).__flags__ & _HEAP) and type(value.object).__module__.split(".")[0] not in ("torch", "numpy", "enum")


def invoke(t: Translator, value: Value, name: str, arguments: Arguments) -> Any:
    """value.name(*arguments) by the class; NotImplemented where that has no function of Python for it. None: it was entered."""
    function = method(t, value, name)
    return NotImplemented if function is None else calls.call(t, function, [value, *arguments], {})


def dropped(t: Translator, result: Value | None) -> None:
    """Leaves nothing on the stack of what a call gives that may have been entered."""
    if result is None:
        t.state.top.place = 0


_NAMES = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow", "@": "matmul", "<<": "lshift",
    ">>": "rshift", "&": "and", "|": "or", "^": "xor",
}  # fmt: skip
_MIRRORED = {"<": ("lt", "gt"), "<=": ("le", "ge"), ">": ("gt", "lt"), ">=": ("ge", "le"), "==": ("eq", "eq"), "!=": ("ne", "ne")}


def _attempts(t: Translator, a: Value, b: Value, forward: list[str], backward: str) -> list[Value]:
    """(method, receiver, other) in the order in which Python asks."""
    own = [(found, a, b) for name in forward if (found := method(t, a, name)) is not None]
    first, second = builtin.class_of(t, a), builtin.class_of(t, b)
    reflected = []
    if first is not second or forward[-1] == backward:
        found = method(t, b, backward)
        reflected = [(found, b, a)] if found is not None else []
    overrides = first is not second and isinstance(first, type) and isinstance(second, type) and issubclass(second, first)
    ordered = [*reflected, *own] if overrides else [*own, *reflected]
    return [TupleValue(parts) for parts in ordered]


def binary(t: Translator, op: str, a: Value, b: Value, in_place: bool) -> Any:
    """a op b by methods of Python; NotImplemented where neither operand has any."""
    if not is_users(a) and not is_users(b):
        return NotImplemented
    if isinstance(a, Dynamic) and t.lowering.framework == "numpy" or any(_overrides_torch(v) for v in (a, b)):
        return NotImplemented  # arrays ask their elements
    name = _NAMES[op]
    attempts = _attempts(t, a, b, [f"__i{name}__"] * in_place + [f"__{name}__"], f"__r{name}__")
    if not attempts:
        return NotImplemented
    text = f"unsupported operand type(s) for {op}{'=' * in_place}: {_class_name(t, a)!r} and {_class_name(t, b)!r}"
    return calls.call(t, Known(helpers.operated), [TupleValue(attempts), Known(text)], {})


def _overrides_torch(value: Value) -> bool:
    cls = value.cls if isinstance(value, InstanceValue) else type(value.object) if isinstance(value, Known) else object
    return hasattr(cls, "__torch_function__") or hasattr(cls, "__array_ufunc__")


def _class_name(t: Translator, value: Value) -> str:
    return getattr(builtin.class_of(t, value), "__name__", "object")


def compare(t: Translator, op: str, a: Value, b: Value) -> Any:
    """As `binary`, of comparisons."""
    if not is_users(a) and not is_users(b):
        return NotImplemented
    if isinstance(a, Dynamic) and a.kind != "int" or any(_overrides_torch(v) for v in (a, b)):
        return NotImplemented
    forward, backward = (f"__{name}__" for name in _MIRRORED[op])
    attempts = _attempts(t, a, b, [forward], backward)
    if op == "!=" and not attempts:
        equal = _attempts(t, a, b, ["__eq__"], "__eq__")
        if equal:
            return calls.call(t, Known(helpers.unequal), [TupleValue(equal), Known(a is not b)], {})
    if attempts:
        if op in ("==", "!="):
            return calls.call(t, Known(helpers.compared), [TupleValue(attempts), Known((a is b) == (op == "=="))], {})
        text = f"{op!r} not supported between instances of {_class_name(t, a)!r} and {_class_name(t, b)!r}"
        return calls.call(t, Known(helpers.operated), [TupleValue(attempts), Known(text)], {})
    if op in ("==", "!=") and any(isinstance(v, InstanceValue) for v in (a, b)) and all(_is_by_identity(t, v) for v in (a, b)):
        return Known((a is b) == (op == "=="))
    return NotImplemented


def _is_by_identity(t: Translator, value: Value) -> bool:
    if isinstance(value, Known) and value.object is None:
        return True
    cls = builtin.class_of(t, value)
    return isinstance(cls, type) and attributes._raw(cls, "__eq__") is object.__eq__


# ----------------------------------------------------------------------------------------------------------- attributes


def missing(t: Translator, value: InstanceValue, name: str) -> Value | None:
    """An attribute that neither the instance nor its class has."""
    otherwise = attributes._raw(value.cls, "__getattr__")
    t.guards.class_attribute(value.cls, "__getattr__", otherwise)
    if isinstance(otherwise, types.FunctionType):
        return calls.call(t, Known(otherwise), [value, Known(name)], {})

    def fail() -> None:
        raise AttributeError(f"{_name_of(value)!r} object has no attribute {name!r}")

    evaluate.raises(t, "." + name, fail, [])


def _name_of(value: InstanceValue) -> str:
    return "dict" if value.cls is helpers.Table else value.cls.__name__


def refuse_without_slot(t: Translator, value: InstanceValue, name: str) -> None:
    """Raises what a write of an attribute raises that an instance has no place for."""
    if value.cls.__dictoffset__ == 0 and attributes._raw(value.cls, name) is attributes._ABSENT:

        def fail() -> None:
            raise AttributeError(f"{_name_of(value)!r} object has no attribute {name!r}")

        evaluate.raises(t, "set ." + name, fail, [])


def cached_property(t: Translator, value: InstanceValue, name: str, raw: functools.cached_property[Any]) -> Value | None:
    """Computes a cached property of an instance of the program."""
    return calls.call(t, Known(helpers.cached_property), [value, Known(name), Known(raw.func)], {})


def delete(t: Translator, value: Value, name: str) -> None:
    """del value.name."""
    if not isinstance(value, InstanceValue) or attributes._raw(value.cls, "__delattr__") is not object.__delattr__:
        raise NotTranslated(f"del of an attribute of a {type(value).__name__}", t.state.top.line)
    if value.fields.pop(name, None) is None:

        def fail() -> None:
            raise AttributeError(name)

        evaluate.raises(t, "del", fail, [])
