"""Where the arguments of a call stand: bound to the parameters of a function, and found again in calls of the same form."""

from __future__ import annotations

import inspect
import types
from typing import Any

from flexor._arguments import Shape, is_plain_tuple
from flexor._flexor_fast import Guards
from flexor.frontend.cpython.guards import MISSING


def bound(function: Any, code: types.CodeType | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by parameter. Without a code, which objects that are no functions of Python lack, they go by their places, and
    `target` is the object. Raises TypeError as the call does."""
    if code is None:
        return {"target": function, **{f"args[{i}]": a for i, a in enumerate(args)}, **kwargs}
    if not kwargs and len(args) == code.co_argcount and not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        if not code.co_kwonlyargcount:
            return dict(zip(code.co_varnames, args))
    found = _own_signature(function).bind(*args, **kwargs)
    found.apply_defaults()
    return dict(found.arguments)


def _own_signature(function: Any) -> inspect.Signature:
    """The signature of a function's code, not the one that it shows for what it wraps."""
    bare = types.FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    bare.__kwdefaults__ = function.__kwdefaults__
    return inspect.signature(bare)


def titles_of(target: Any) -> dict[str, str]:
    """The names of parameters, by those that arguments have here, where they go by their places: those of no function of Python."""
    if isinstance(target, types.FunctionType):
        return {}
    try:
        names = inspect.signature(getattr(target, "forward", target)).parameters
    except (TypeError, ValueError):
        return {}
    return {f"args[{place}]": name for place, name in enumerate(names)}


def plan_of(fixed: frozenset[str], function: Any, code: types.CodeType | None, bound: dict[str, Any], form: tuple[int, tuple[str, ...]]) -> tuple[Shape, list[Any]]:
    """The shape of arguments in calls of one form, with steps that say where each argument stands, and guards of the defaults."""
    positional, keywords = form
    shape = Shape(fixed)
    places = {name: positional + i for i, name in enumerate(keywords)}
    if code is None:
        places.update((f"args[{i}]", i) for i in range(positional))
        places["target"] = -1
    else:
        places.update((name, i) for i, name in enumerate(code.co_varnames[: min(positional, code.co_argcount)]))

    def add(name: str, place: int, obj: Any) -> None:
        if shape.steps is not None:
            shape.steps.append(("from", place, None if place >= 0 else obj))
        shape.add(name, obj)

    defaults = []
    variadic, named = variadic_names(code)
    for name, obj in bound.items():
        if name == variadic:
            assert code is not None
            for i, item in enumerate(obj):
                add(f"{name}[{i}]", code.co_argcount + i, item)
            if is_plain_tuple(tuple, obj) and obj:  # known whole: its numbers are no inputs
                shape.steps = None
        elif name == named:
            for key, item in obj.items():
                add(f"{name}[{key!r}]", places[key], item)
        else:
            place = places.get(name, -1)
            if place < 0 and code is not None:
                defaults.append(name)
            add(name, place, obj)
    if not defaults:
        return shape, []
    checks: list[Any] = [("attribute", function, a, getattr(function, a)) for a in ("__defaults__", "__kwdefaults__")]
    checks += [("item", function.__kwdefaults__, n, function.__kwdefaults__[n]) for n in defaults if n in (function.__kwdefaults__ or {})]
    return shape, [Guards(checks, MISSING)]


def variadic_names(code: types.CodeType | None) -> tuple[str | None, str | None]:
    """The names of *args and **kwargs."""
    if code is None:
        return None, None
    rest = code.co_argcount + code.co_kwonlyargcount
    has_args, has_named = bool(code.co_flags & inspect.CO_VARARGS), bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_varnames[rest] if has_args else None, code.co_varnames[rest + has_args] if has_named else None
