"""The standard library over abstract values: functools, operator, itertools, and what it makes callable."""

from __future__ import annotations

import functools
import itertools
import logging
import math
import operator
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flexor.frontend.cpython import attributes, calls, evaluate, helpers, indexing, lowering
from flexor.frontend.cpython.decode import NotTranslated, Restart
from flexor.frontend.cpython.operations import Operation
from flexor.frontend.cpython.recipes import OF_WHOLE, RECIPES
from flexor.frontend.cpython.values import (
    Arguments,
    Dynamic,
    FunctionValue,
    Keywords,
    Known,
    PartialValue,
    SequenceIterator,
    TupleValue,
    Value,
    whole,
)

if TYPE_CHECKING:
    from flexor.frontend.cpython.translate import Translator

Handler = Callable[[Any, Arguments, Keywords], Any]

# ------------------------------------------------------------------------------------------------------------- operator

_BINARY = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/", operator.floordiv: "//", operator.mod: "%",
    operator.pow: "**", operator.matmul: "@", operator.lshift: "<<", operator.rshift: ">>", operator.and_: "&", operator.or_: "|",
    operator.xor: "^", operator.iadd: "+=", operator.isub: "-=", operator.imul: "*=", operator.itruediv: "/=", operator.imatmul: "@=",
    operator.concat: "+",
}  # fmt: skip
_COMPARE = {operator.lt: "<", operator.le: "<=", operator.eq: "==", operator.ne: "!=", operator.gt: ">", operator.ge: ">="}


def _binary(text: str) -> Handler:
    def apply(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
        if len(arguments) != 2 or keywords:
            return NotImplemented
        a, b = arguments
        return evaluate.binary(t, text.rstrip("="), a, b, in_place=text.endswith("="))

    return apply


def _compare(text: str) -> Handler:
    def apply(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
        return evaluate.compare(t, text, *arguments) if len(arguments) == 2 and not keywords else NotImplemented

    return apply


def _of_two(function: Callable[..., Any]) -> Handler:
    def apply(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
        return function(t, *arguments) if len(arguments) == 2 and not keywords else NotImplemented

    return apply


def _negated(t: Translator, value: Value) -> Value:
    value = evaluate.to_bool(t, value)
    return Known(not value.object) if isinstance(value, Known) else t.writer.scalar("not", value)


def _unary(function: Callable[..., Any]) -> Handler:
    def apply(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
        return function(t, arguments[0]) if len(arguments) == 1 and not keywords else NotImplemented

    return apply


def getter(t: Translator, function: Any, arguments: Arguments) -> Value | None:
    """What operator.itemgetter, attrgetter and methodcaller, known at translation, give of an object."""
    if len(arguments) != 1:
        raise NotTranslated(f"{type(function).__name__} of {len(arguments)} objects", t.state.top.line)
    made, parts = function.__reduce__()
    if made is operator.itemgetter:
        return _one_or_all([indexing.get(t, arguments[0], Known(part)) for part in parts], t)
    if made is operator.attrgetter:
        return _one_or_all([_attribute(t, arguments[0], path) for path in parts], t)
    keywords: dict[str, Any] = getattr(made, "keywords", {})  # of a partial, which methodcaller is made anew by where it has some
    parts = (*getattr(made, "args", ()), *parts)
    name, *given = parts
    method = attributes.load(t, arguments[0], name)
    if method is None:
        raise NotTranslated("a method that is a property", t.state.top.line)
    return calls.call(t, method, [t.known(g) for g in given], {k: t.known(v) for k, v in keywords.items()})


def _attribute(t: Translator, value: Value | None, path: str) -> Value | None:
    for name in path.split("."):
        if value is None:
            raise NotTranslated("an attribute of a property", t.state.top.line)
        value = attributes.load(t, value, name)
    return value


def _one_or_all(found: list[Value | None], t: Translator) -> Value | None:
    if len(found) == 1:
        return found[0]
    values = [v for v in found if v is not None]
    if len(values) < len(found):
        raise NotTranslated("several properties at once", t.state.top.line)
    return TupleValue(values)


def _set_item(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    if len(arguments) != 3 or keywords:
        return NotImplemented
    indexing.set_item(t, *arguments)
    return Known(None)


GETTERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)


def _getter(cls: Any) -> Handler:
    def make(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
        if not evaluate.all_plain([*arguments, *keywords.values()]):
            return NotImplemented
        return Known(cls(*(a.object for a in arguments), **{k: v.object for k, v in keywords.items()}))  # type: ignore[attr-defined]

    return make


# ------------------------------------------------------------------------------------------------------------- functools


def _partial(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    if not arguments:
        return NotImplemented
    function, *given = arguments
    if isinstance(function, PartialValue):
        return PartialValue(function.function, [*function.arguments, *given], {**function.keywords, **keywords})
    return PartialValue(function, given, keywords)


def _update_wrapper(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    """functools.update_wrapper of a function that the program made."""
    given = dict(zip(("wrapper", "wrapped"), arguments)) | keywords
    wrapper, wrapped = given.get("wrapper"), given.get("wrapped")
    if not isinstance(wrapper, FunctionValue) or wrapped is None:
        return NotImplemented
    for name in lowering.plain(given.get("assigned", Known(functools.WRAPPER_ASSIGNMENTS))):
        if isinstance(wrapped, FunctionValue):
            found: Value | None = wrapped.attributes.get(name) or (attributes.load(t, wrapped, name) if name == "__name__" else None)
        else:
            found = attributes.load(t, wrapped, name) if isinstance(wrapped, Known) and hasattr(wrapped.object, name) else None
        if found is not None:
            wrapper.attributes[name] = found
    wrapper.attributes["__wrapped__"] = wrapped
    return wrapper


def cached(t: Translator, function: Any, arguments: Arguments, keywords: Keywords) -> Value:
    """A function under functools.lru_cache. Of plain values it is asked for its result now, and by the guard; so is one that tells a
    logger something once, where every run comes by. Else it is asked in the run, where it may be asked again."""
    given = [*arguments, *keywords.values()]
    tells = any(isinstance(a, Known) and isinstance(a.object, logging.Logger) for a in given)
    others = [a for a in given if not (isinstance(a, Known) and isinstance(a.object, logging.Logger))]
    is_certain = not tells or not (t.state.forks or t.state.has_acted)
    if evaluate.all_plain(others) and is_certain and function.cache_parameters()["maxsize"] != 0:
        named = {k: v.object for k, v in keywords.items()}  # type: ignore[attr-defined]
        ask = functools.partial(function, *(a.object for a in arguments), **named)  # type: ignore[attr-defined]
        try:
            found = ask()
        except Exception:
            evaluate.raises(t, calls.name_of(function), ask, [])
        t.guards.call(lambda: ask() is found, True)
        return t.known(found)
    if tells:  # which changes nothing that the function reads
        frame = t.state.top
        is_dropped = frame.steps[frame.pc].operation is Operation.POP
        return t.foreign(calls.name_of(function), function, arguments, keywords, result="none" if is_dropped else "object")
    return calls.opaque(t, function, arguments, keywords)


# ------------------------------------------------------------------------------------------------------------- itertools


def _recipe(function: Callable[..., Any]) -> Handler:
    return lambda t, arguments, keywords: calls.call(t, Known(function), arguments, keywords)


def _of_whole(function: Any) -> Handler:
    """The arrangement is made of the abstract values themselves."""

    def arrange(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
        options = {name: lowering.plain(value) for name, value in keywords.items()}
        if function is itertools.product:
            rows = function(*(evaluate.unpacked(t, a) for a in arguments), **options)
        else:
            rows = function(evaluate.unpacked(t, arguments[0]), *(lowering.plain(a) for a in arguments[1:]), **options)
        return SequenceIterator(TupleValue(row) for row in rows)

    return arrange


# --------------------------------------------------------------------------------------------------- numbers of the run


def _floor(t: Translator, value: Value) -> Any:
    if not isinstance(value, Dynamic) or value.kind not in ("int", "float"):
        return NotImplemented
    if value.kind == "int":
        return value
    return t.writer.scalar("to_int", t.writer.scalar("floor_div", value, Known(1.0)))


def _ceil(t: Translator, value: Value) -> Any:
    if not isinstance(value, Dynamic) or value.kind not in ("int", "float"):
        return NotImplemented
    below = _floor(t, t.writer.scalar("neg", value))
    return t.writer.scalar("neg", below)


def _trunc(t: Translator, value: Value) -> Any:
    if not isinstance(value, Dynamic) or value.kind not in ("int", "float"):
        return NotImplemented
    return value if value.kind == "int" else t.writer.scalar("to_int", value)


def _round(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    value, *rest = arguments
    digits = keywords.get("ndigits", rest[0] if rest else Known(None))
    if not isinstance(value, Dynamic) or value.kind not in ("int", "float") or not isinstance(digits, Known):
        return NotImplemented
    if value.kind == "int":
        if digits.object is None or (type(digits.object) is int and digits.object >= 0):
            return value
        return calls.call(t, Known(helpers.rounded_to), [value, digits], {}) if type(digits.object) is int else NotImplemented
    return calls.call(t, Known(helpers.rounded), [value], {}) if digits.object is None else NotImplemented


# ---------------------------------------------------------------------------------------------------------- containers


def _new_tuple(t: Translator, arguments: Arguments, keywords: Keywords) -> Any:
    """tuple.__new__(cls, iterable), which makes named tuples of iterables."""
    if len(arguments) != 2 or keywords or not isinstance(arguments[0], Known):
        return NotImplemented
    if calls.is_open(arguments[1]):
        return calls.call(t, Known(helpers.new_tuple), arguments, {})
    return TupleValue(evaluate.unpacked(t, arguments[1]), arguments[0].object)


FUNCTIONS: dict[Any, Handler] = {
    tuple.__new__: _new_tuple,
    **{function: _binary(text) for function, text in _BINARY.items()},
    **{function: _compare(text) for function, text in _COMPARE.items()},
    **{cls: _getter(cls) for cls in GETTERS},
    operator.getitem: _of_two(lambda t, container, index: indexing.get(t, container, index)),
    operator.setitem: _set_item,
    operator.contains: _of_two(lambda t, container, item: evaluate.contains(t, item, container)),
    operator.is_: _of_two(lambda t, a, b: evaluate.identical(t, a, b)),
    operator.truth: _unary(lambda t, value: evaluate.to_bool(t, value)),
    operator.not_: _unary(_negated),
    operator.neg: _unary(lambda t, value: evaluate.unary(t, "-", operator.neg, "neg", "neg", value)),
    operator.invert: _unary(lambda t, value: evaluate.unary(t, "~", operator.invert, "bitwise_not", None, value)),
    functools.partial: _partial,
    functools.update_wrapper: _update_wrapper,
    **{function: _recipe(recipe) for function, recipe in RECIPES.items()},
    **{function: _of_whole(function) for function in OF_WHOLE},
    math.floor: _unary(_floor),
    math.ceil: _unary(_ceil),
    math.trunc: _unary(_trunc),
    round: _round,
}


_CONFIGURATIONS = ("transformers.configuration_utils", "transformers.configuration_utils_base")


def configuration(t: Translator, function: types.FunctionType, arguments: Arguments, keywords: Keywords) -> Value | None:
    """What `get_text_config` of a configuration of transformers gives where that is a changed copy: made when the function is
    translated, as nothing but the program sees it. Everything that the configuration holds is guarded."""
    if function.__name__ != "get_text_config" or function.__module__ not in _CONFIGURATIONS or not arguments:
        return None
    config = arguments[0]
    given = [*arguments[1:], *keywords.values()]
    if not isinstance(config, Known) or not evaluate.all_plain(given) or any(number == id(vars(config.object)) for number, _ in t.state.written):
        return None
    made = function(config.object, *map(whole, arguments[1:]), **{name: whole(value) for name, value in keywords.items()})
    if made is config.object or any(made is held for held in vars(config.object).values()):
        return None  # found, not made: followed
    _guard_whole(t, vars(config.object))
    t.hold_privately(made)
    t.hold_privately(vars(made))
    return Known(made)


def install(t: Translator, function: types.FunctionType, arguments: Arguments) -> None:
    """Begins anew with the hooks by which models of transformers record outputs, where a call would put them on the model: that is done
    once, under a lock, and they change nothing until a call asks for outputs."""
    if function.__name__ != "maybe_install_capturing_hooks" or function.__module__ != "transformers.utils.output_capturing":
        return
    (model,) = arguments
    if isinstance(model, Known) and not getattr(model.object, "_output_capturing_hooks_installed", False):
        function(model.object)
        raise Restart


def _guard_whole(t: Translator, holder: Any) -> None:
    if isinstance(holder, dict):
        t.guards.keys(holder)
        for key, held in holder.items():
            t.guards.item(holder, key, held)
            _guard_whole(t, held)
    elif isinstance(holder, list):
        t.guards.length(holder, len(holder))
        for at, held in enumerate(holder):
            t.guards.element(holder, at, held)
            _guard_whole(t, held)
