"""Python's builtins and functions written in C, over abstract values."""

from __future__ import annotations

import collections
import contextvars
import functools
import inspect
import math
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from flexor.frontend.cpython import attributes, calls, constructors, context, evaluate, helpers, indexing, instances, library, lowering, methods, reflection, special
from flexor.frontend.cpython.decode import NotTranslated
from flexor.frontend.cpython.values import (
    Arguments,
    DictValue,
    DictView,
    Dynamic,
    EnumerateIterator,
    FunctionValue,
    GeneratorValue,
    InstanceValue,
    Keywords,
    Known,
    ListValue,
    MethodValue,
    PartialValue,
    RangeIterator,
    RunList,
    SequenceIterator,
    SetValue,
    SliceValue,
    StringValue,
    TextValue,
    TupleValue,
    Value,
    ZipIterator,
    is_known,
    is_number,
    whole,
)

if TYPE_CHECKING:
    from flexor.frontend.cpython.translate import Translator


def call(t: Translator, function: Any, arguments: Arguments, keywords: Keywords) -> Value | None:
    """A function written in C that no row describes."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, (dict, list, set, bytearray, collections.deque)) and isinstance(function, types.BuiltinMethodType):
        return _container_method(t, owner, function.__name__, arguments, keywords)
    if owner is np.add and function.__name__ == "at" and len(arguments) == 3 and not keywords and evaluate.is_tensor(arguments[0]):
        target, places, values = arguments
        return t.attempt(lambda: indexing.added_at(t, target, places, values), lambda: calls.opaque(t, function, arguments, keywords))  # type: ignore[arg-type]
    if isinstance(owner, contextvars.ContextVar) and function.__name__ in context.METHODS and not keywords:
        return context.method(t, owner, function.__name__, arguments)
    given = [*arguments, *keywords.values()]
    if isinstance(owner, (str, bytes)) or getattr(function, "__module__", None) == "math":
        given = list(map(_settled, given))
    of_value = evaluate.is_plain(owner) and owner is not None and (not isinstance(owner, type) or owner.__module__ == "builtins")
    if function.__name__ == "join" and isinstance(owner, (str, bytes)) and arguments and calls.is_open(arguments[0]):
        return calls.call(t, Known(helpers.joined), [Known(owner), *arguments], keywords)
    if evaluate.all_plain(given) and (of_value or _is_pure_module(function)):
        named = tuple(keywords)
        count = len(arguments)

        def apply(*values: Any) -> Any:
            return function(*values[:count], **dict(zip(named, values[count:])))

        return evaluate.fold(t, calls.name_of(function), apply, given)
    if isinstance(function, types.MethodDescriptorType) and arguments and evaluate.is_tensor(arguments[0]):
        return methods.tensor_method(t, arguments[0], function.__name__, arguments[1:], keywords)  # type: ignore[arg-type]
    return calls.opaque(t, function, arguments, keywords)


def _settled(value: Value) -> Value:
    """A list of known values, for a function that reads it."""
    if isinstance(value, ListValue) and evaluate.all_plain(value.items):
        return Settled([item.object for item in value.items])  # type: ignore[attr-defined]
    return value


class Settled(Known):
    """A list that nobody else has."""

    __slots__ = ()


def is_pure(function: Any) -> bool:
    """Whether a builtin changes nothing of itself."""
    return any(function is pure for pure in _PURE)


def _is_pure_module(function: Any) -> bool:
    owner = getattr(function, "__self__", None)
    name = owner.__name__ if isinstance(owner, types.ModuleType) else getattr(function, "__module__", "") or ""
    return name in ("math", "operator", "_operator") or function in _PURE


_PURE = (abs, all, any, bin, chr, divmod, hash, hex, len, max, min, oct, ord, pow, repr, round, sorted, sum, callable, id)


_READING = frozenset(
    ("copy", "count", "difference", "get", "index", "intersection", "isdisjoint", "issubset", "issuperset", "items", "keys", "union", "values")
)
_RESULTS = dict.fromkeys(("append", "appendleft", "extend", "insert", "update", "clear", "remove", "add", "discard", "reverse", "sort"), "none")


def _container_method(t: Translator, owner: Any, name: str, arguments: Arguments, keywords: Keywords) -> Value | None:
    """Methods of a container of somebody else's: some reading ones; the others are Python's in the run."""
    if isinstance(owner, dict) and name in ("items", "keys", "values") and not arguments:
        return DictView(Known(owner), name)
    if isinstance(owner, dict) and name == "get" and arguments and isinstance(arguments[0], Known):
        key = arguments[0].object
        if attributes.contains(t, owner, key):
            return attributes.item(t, owner, key)
        return arguments[1] if len(arguments) > 1 else Known(None)
    if type(owner) is dict and name == "get" and len(arguments) in (1, 2) and not keywords:
        found = indexing.value_or(t, attributes.items(t, owner), *arguments)
        if found is not NotImplemented:
            return found  # type: ignore[no-any-return]
    result = t.foreign(f".{name}", getattr(owner, name), arguments, keywords, result=_RESULTS.get(name, "object"), is_pure=False)
    if name not in _READING:
        attributes.mark_changed(t, owner)
    return result


def length(t: Translator, value: Value) -> Value:
    """len(value)."""
    if isinstance(value, (TupleValue, ListValue, DictValue)):
        return Known(len(value.items))
    if isinstance(value, SetValue):
        return Known(len(value.objects))
    if isinstance(value, DictView):
        return Known(len(evaluate.view_items(t, value)))
    if isinstance(value, RunList):
        assert isinstance(value.content, Dynamic)
        return t.writer.length(value.content)
    if isinstance(value, StringValue):
        return t.writer.size(t.read_letters(value), 0)
    if isinstance(value, Dynamic):
        if value.kind == "tensor" and value.rank > 0:
            return t.lowering.size(value, Known(0))  # type: ignore[no-any-return]
        return t.foreign("len", len, [value], result="int")
    if isinstance(value, Known):
        if isinstance(value.object, (list, dict, tuple, str, bytes, range, frozenset)) or hasattr(type(value.object), "__len__"):
            return Known(attributes.length(t, value.object))
    raise NotTranslated(f"the length of a {type(value).__name__}", t.state.top.line)


def set_of(t: Translator, items: Arguments) -> Value:
    """{*items}: the program's where they are known, else an object of Python."""
    if evaluate.all_plain(items):
        return evaluate.fold(t, "set", lambda *objects: set(objects), items)
    if not all(is_number(v) or evaluate.all_plain([v]) for v in items):
        raise NotTranslated("a set of values of the run that are no numbers", t.state.top.line)
    return t.foreign("set", _new_set, items)


def set_with(t: Translator, members: Value, items: Arguments) -> Value:
    """The set with further members."""
    if isinstance(members, SetValue):
        known: Arguments = [Known(obj) for obj in members.objects]
        made = set_of(t, known + items)
        if isinstance(made, SetValue):
            members.objects = made.objects
            return members
        return made
    if not isinstance(members, Dynamic) or not all(is_number(v) or evaluate.all_plain([v]) for v in items):
        raise NotTranslated("a set of values of the run that are no numbers", t.state.top.line)
    return t.foreign("set", _larger_set, [members, *items])


def _new_set(*items: Any) -> set[Any]:
    return set(items)


def _larger_set(members: set[Any], *items: Any) -> set[Any]:
    return members | set(items)


def class_of(t: Translator, value: Value) -> type | None:
    torch = sys.modules.get("torch")
    if isinstance(value, Known):
        return type(value.object)
    if isinstance(value, Dynamic):
        if value.kind == "tensor":
            live = t.class_of_input(value)
            if t.lowering.framework == "numpy":
                return live if live is not None else _class_of_array(value)
            return live if live is not None else torch.Tensor  # type: ignore[union-attr]
        return {"int": int, "float": float, "bool": bool}.get(value.kind)
    if isinstance(value, PartialValue):
        return functools.partial
    kinds: dict[type, type] = {ListValue: list, RunList: list, TextValue: str, StringValue: str, SetValue: set, FunctionValue: types.FunctionType, RangeIterator: range}
    if isinstance(value, (TupleValue, DictValue, InstanceValue)):
        return value.cls if value.cls is not helpers.Table else dict
    if isinstance(value, DictView):
        return type(getattr({}, value.which)())
    return kinds.get(type(value))


def _class_of_array(value: Dynamic) -> type | None:
    """NumPy gives scalars where it would give arrays without axes."""
    if value.rank == 0 and value.dtype is not None:
        return np.dtype(value.dtype).type
    return np.ndarray if value.rank > 0 else None


def _isinstance(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    value, classes = arguments
    cls = class_of(t, value)
    if not is_known(classes):
        return NotImplemented
    wanted = whole(classes)
    if cls is None:
        return t.foreign("isinstance", isinstance, [value, Known(wanted)], result="bool")
    if isinstance(value, Known):
        return Known(isinstance(value.object, wanted))
    return Known(is_subclass(cls, wanted))


def is_subclass(cls: type, wanted: Any) -> bool:
    """issubclass, where the class that is wanted may be one of several."""
    if isinstance(wanted, tuple):
        return any(is_subclass(cls, w) for w in wanted)
    if isinstance(wanted, types.UnionType):
        return any(is_subclass(cls, w) for w in wanted.__args__)
    return issubclass(cls, wanted)


def _range(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    if evaluate.all_plain(arguments):
        return NotImplemented
    start, stop, step = (Known(0), arguments[0], Known(1)) if len(arguments) == 1 else (*arguments, Known(1))[:3]
    if not isinstance(step, Known) or not all(is_number(v) for v in arguments) or step.object == 0:
        raise NotTranslated("a range whose step only the run knows", t.state.top.line)
    following: Value = start
    if isinstance(start, Known):
        following = t.writer.constant(start.object)
    return RangeIterator(following, stop, step.object)


def _zip(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    strict = keywords.get("strict")
    if any(_is_suspended(a) for a in arguments):
        return calls.call(t, Known(helpers.zipped), arguments, keywords)
    parts = [evaluate.iterator_of(t, a) for a in arguments]
    if len({id(part) for part in parts}) < len(parts):
        raise NotTranslated("one iterator twice in zip", t.state.top.line)
    if strict is not None and lowering.plain(strict):
        if len({evaluate.remaining(t, p) if isinstance(p, SequenceIterator) else -1 for p in parts}) > 1:
            raise NotTranslated("zip(strict=True) of different or unknown lengths", t.state.top.line)
    return ZipIterator(parts)


def _is_suspended(value: Value) -> bool:
    return isinstance(value, GeneratorValue) or (isinstance(value, InstanceValue) and calls.is_open(value))


def _enumerate(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    if _is_suspended(arguments[0]):
        return calls.call(t, Known(helpers.enumerated), arguments, keywords)
    start = keywords.get("start") or (arguments[1] if len(arguments) > 1 else Known(0))
    inner = evaluate.iterator_of(t, arguments[0])
    if isinstance(start, Known) and not evaluate.is_static(inner):
        start = t.writer.constant(start.object)
    return EnumerateIterator(inner, start)


def _reversed(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    if calls.has_unknown_length(t, arguments[0]):
        return calls.call(t, Known(helpers.backwards), arguments, {})
    return SequenceIterator(reversed(evaluate.unpacked(t, arguments[0])))


def _tuple(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    return TupleValue(evaluate.unpacked(t, arguments[0]) if arguments else [])


def _list(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    return ListValue(evaluate.unpacked(t, arguments[0]) if arguments else [])


def _dict(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    items: dict[Any, Value] = {}
    for argument in arguments:
        try:
            items.update(evaluate.spread(t, TupleValue([]), argument)[1])
        except NotTranslated:
            for pair in evaluate.unpacked(t, argument):
                key, value = evaluate.unpacked(t, pair)
                items[evaluate.key_of(t, key)] = value
    return DictValue({**items, **keywords})


def _next(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    known, condition = evaluate.has_next(t, arguments[0])
    if condition is not None:
        raise NotTranslated("next() of an iterator whose end only the run knows", t.state.top.line)
    if known:
        return evaluate.advance(t, arguments[0])
    if len(arguments) > 1:
        return arguments[1]

    def fail() -> None:
        raise StopIteration

    evaluate.raises(t, "next", fail, [])


def _getattr(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    name = lowering.plain(arguments[1])
    if len(arguments) > 2 and not _has(t, arguments[0], name):
        return arguments[2]
    return attributes.load(t, arguments[0], name)


def _has(t: Translator, value: Value, name: str) -> bool:
    if isinstance(value, Known):
        place = getattr(value.object, "__dict__", None)
        if (id(place), name) in t.state.written:
            return True
        found = hasattr(value.object, name)
        t.guards.call(functools.partial(hasattr, value.object, name), found)
        return found
    if isinstance(value, Dynamic) and value.kind == "tensor":
        return hasattr(attributes._tensor_class(t.lowering.framework == "torch"), name)
    if isinstance(value, InstanceValue):
        return attributes.field(t, value, name) is not None or hasattr(value.cls, name)
    if isinstance(value, (ListValue, TupleValue, DictValue)):
        return hasattr(class_of(t, value), name)
    raise NotTranslated(f"hasattr of a {type(value).__name__}", t.state.top.line)


def _hasattr(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    return Known(_has(t, arguments[0], lowering.plain(arguments[1])))


def _setattr(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    attributes.store(t, arguments[0], lowering.plain(arguments[1]), arguments[2])
    return Known(None)


def _number(name: str, kind: type) -> Callable[[Translator, Arguments, Keywords], Any]:
    def convert(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
        if len(arguments) != 1 or keywords or not isinstance(arguments[0], Dynamic):
            return NotImplemented
        value = arguments[0]
        if value.kind == "object":
            return t.foreign(kind.__name__, kind, [value], result=kind.__name__)
        if value.kind == "tensor":
            return t.attempt(
                lambda: t.writer.scalar(name, t.writer.item(value)),
                lambda: t.foreign(kind.__name__, kind, [value], result=kind.__name__),
            )
        return value if value.kind == kind.__name__ else t.writer.scalar(name, value)

    return convert


def _bool(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    if arguments and special.has_own_truth(t, arguments[0]):
        return special.ask_truth(t, arguments[0])
    return evaluate.to_bool(t, arguments[0]) if arguments else Known(False)


def _abs(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    value = arguments[0]
    if not isinstance(value, Dynamic):
        return NotImplemented
    if value.is_scalar:
        number = t.writer.scalar("to_int", value) if value.kind == "bool" else value
        if number.kind == "number":
            return NotImplemented
        largest = t.writer.scalar("max", number, t.writer.scalar("neg", number))
        return t.writer.scalar("add", largest, Known(0.0)) if number.kind == "float" else largest  # 0.0 of -0.0
    return evaluate.unary(t, "abs", abs, "abs", None, value)


def _extreme(name: str, function: Callable[..., Any]) -> Callable[[Translator, Arguments, Keywords], Any]:
    def choose(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
        values = arguments
        if keywords:
            return NotImplemented
        if len(values) == 1 and calls.has_unknown_length(t, values[0]):
            return calls.call(t, Known(helpers.IN_PYTHON[function]), values, {})
        if len(values) == 1:
            values = evaluate.unpacked(t, values[0])
        if evaluate.all_plain(values) and values:
            return evaluate.fold(t, name, lambda *v: function(v), values)
        if 1 < len(values) <= helpers.MOST_CHOICES and all(is_number(v) or evaluate.is_tensor(v) and v.rank == 0 for v in values):  # type: ignore[attr-defined]
            if any(map(evaluate.is_tensor, values)):
                return calls.call(t, Known(helpers.IN_PYTHON[function]), [TupleValue(values)], {})
        if not values or not all(is_number(v) for v in values):
            return NotImplemented
        result = values[0]
        for value in values[1:]:
            result = t.writer.scalar(name, result, value)
        return result

    return choose


def _sum(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    total: Value | None = arguments[1] if len(arguments) > 1 else keywords.get("start", Known(0))
    for item in evaluate.unpacked(t, arguments[0]):
        assert total is not None
        total = evaluate.binary(t, "+", total, item)
    return total


def _quantified(stops_at: bool) -> Callable[[Translator, Arguments, Keywords], Any]:
    def check(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
        result: Value = Known(not stops_at)
        if isinstance(arguments[0], SequenceIterator):  # read as far as its elements decide
            return calls.call(t, Known(helpers.IN_PYTHON[any if stops_at else all]), arguments, keywords)
        for item in evaluate.unpacked(t, arguments[0]):
            value = evaluate.to_bool(t, item)
            if isinstance(value, Known):
                if value.object is stops_at:
                    return value
            else:
                result = value if isinstance(result, Known) else t.writer.scalar("or" if stops_at else "and", result, value)
        return result

    return check


def _type(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    cls = class_of(t, arguments[0]) if len(arguments) == 1 else None
    return Known(cls) if cls is not None else NotImplemented


def _len(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    if instances.is_users(arguments[0]) and (method := special.method(t, arguments[0], "__len__")) is not None:
        return calls.call(t, method, [], {})
    return length(t, arguments[0])


def _slice(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    start, stop, step = (Known(None), arguments[0], Known(None)) if len(arguments) == 1 else (*arguments, Known(None))[:3]
    return SliceValue(start, stop, step)


def _callable(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    value = arguments[0]
    if isinstance(value, InstanceValue):
        return Known(hasattr(value.cls, "__call__"))
    return Known(callable(value.object) if isinstance(value, Known) else isinstance(value, (FunctionValue, MethodValue, PartialValue)))


def _set(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    if arguments and isinstance(arguments[0], (Dynamic, RunList)):
        return NotImplemented if isinstance(arguments[0], Dynamic) else t.foreign("set", _set_of_list, arguments)
    return set_of(t, evaluate.unpacked(t, arguments[0]) if arguments else [])


def _set_of_list(items: Any) -> set[Any]:
    return set(items)


_set_of_list.__module__ = "operator"  # reads what it is given


def _sorted(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    if "key" in keywords or isinstance(arguments[0], (Dynamic, RunList)):
        return NotImplemented
    items = evaluate.unpacked(t, arguments[0])
    if evaluate.all_plain(list(keywords.values())) and (ordered := _by_first(items, bool(lowering.plain(keywords.get("reverse", Known(False)))))):
        return ListValue(ordered)
    if not evaluate.all_plain([*items, *keywords.values()]):
        return NotImplemented
    reverse = bool(lowering.plain(keywords.get("reverse", Known(False))))
    return evaluate.fold(t, "sorted", lambda *objects: sorted(objects, reverse=reverse), items)


def _by_first(items: Arguments, reverse: bool) -> Arguments | None:
    """Tuples in their order, where the first of each, all known and different, decides it: items of a dict."""
    firsts = [item.items[0] for item in items if isinstance(item, TupleValue) and item.items]
    if len(firsts) != len(items) or not firsts or evaluate.all_plain(items) or not all(isinstance(f, Known) for f in firsts):
        return None
    keys = [f.object for f in firsts]  # type: ignore[attr-defined]
    if len({type(key) for key in keys} - {bool, int}) > 1 or not all(type(key) in (bool, int, str) for key in keys) or len(set(keys)) != len(keys):
        return None
    if any(type(key) is str for key in keys) and not all(type(key) is str for key in keys):
        return None
    return [items[at] for at in sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)]


def _iter(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    if len(arguments) != 1:
        return NotImplemented
    method = instances.method(t, arguments[0], "__iter__") if instances.is_users(arguments[0]) else None
    return evaluate.iterator_of(t, arguments[0]) if method is None else calls.call(t, method, arguments, {})


def _math(function: Callable[..., Any]) -> Callable[[Translator, Arguments, Keywords], Any]:
    def apply(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
        if all(isinstance(a, Known) for a in arguments):
            return NotImplemented
        kind = "bool" if function in (math.isnan, math.isinf) else "float"
        if function is math.prod or keywords:
            return NotImplemented

        def in_python() -> Value:
            return t.foreign(function.__name__, function, arguments, result=kind)

        if function in _MATH and len(arguments) == 1 and is_number(arguments[0]):
            return t.attempt(lambda: _MATH[function](t, arguments[0]), in_python)
        return in_python()

    return apply


# Those that give what Python's give to the last bit. The others are the C library's there, and approximations here.


def _square_root(t: Translator, number: Value) -> Value:
    number = t.writer.scalar("to_float", number)
    t.assume(t.writer.scalar("ge", number, Known(0.0)), "a number that has a square root", ValueError)
    return t.writer.item(t.writer.op("sqrt", t.writer.op("full", number, shape=[], dtype="float64")))


def _is_nan(t: Translator, number: Value) -> Value:
    return t.writer.scalar("ne", number, number)


def _is_infinite(t: Translator, number: Value) -> Value:
    below, above = (t.writer.scalar("eq", number, Known(end)) for end in (-math.inf, math.inf))
    return t.writer.scalar("or", below, above)


_MATH: dict[Any, Callable[[Any, Value], Value]] = {math.sqrt: _square_root, math.isnan: _is_nan, math.isinf: _is_infinite}


def _of_frame(name: str, most: int) -> Callable[[Translator, Arguments, Keywords], Any]:
    """Builtins that look at the frame of their caller, with at most so many arguments."""

    def refuse(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
        if len(arguments) <= most:
            raise NotTranslated(f"{name}()", t.state.top.line)
        return NotImplemented

    return refuse


BUILTINS: dict[Any, Callable[[Any, Arguments, Keywords], Any]] = {
    isinstance: _isinstance,
    range: _range,
    zip: _zip,
    enumerate: _enumerate,
    reversed: _reversed,
    tuple: _tuple,
    list: _list,
    dict: _dict,
    next: _next,
    iter: _iter,
    set: _set,
    sorted: _sorted,
    getattr: _getattr,
    hasattr: _hasattr,
    setattr: _setattr,
    int: _number("to_int", int),
    float: _number("to_float", float),
    bool: _bool,
    abs: _abs,
    max: _extreme("max", max),
    min: _extreme("min", min),
    sum: _sum,
    any: _quantified(True),
    all: _quantified(False),
    type: _type,
    len: _len,
    slice: _slice,
    inspect.signature: reflection.signature,
    callable: _callable,
    globals: lambda t, arguments, keywords: Known(t.state.top.globals),
    locals: _of_frame("locals", 0),
    vars: _of_frame("vars", 0),
    dir: _of_frame("dir", 0),
    eval: _of_frame("eval", 3),
    exec: _of_frame("exec", 3),
    sys._getframe: _of_frame("sys._getframe", 1),
    super: lambda t, arguments, keywords: constructors.super_of(t, arguments),
    **{f: _math(f) for f in (math.sqrt, math.exp, math.log, math.sin, math.cos, math.tanh, math.isnan, math.isinf)},
    **library.FUNCTIONS,
}
