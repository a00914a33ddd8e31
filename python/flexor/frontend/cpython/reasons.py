"""Why a translation was made, in words: what of a call is new, or what has changed of the Python around the function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flexor.frontend.cpython.guards import MISSING, Guards

FIRST = "the first call"
Described = dict[str, tuple[Any, ...]]  # of each argument what a key says of it: (class, dtype, axes, device), (class, value), a class


def of_translation(described: Described, before: Described | None, guards: Guards | None) -> str:
    """Why a call with these arguments needs a translation: there was none before, its arguments are of another kind than those of the
    newest one (`before`), or the guards of one for the same arguments do not hold."""
    if guards is not None:
        return _of_guards(guards) or "a tensor of another size around the function"
    if before is None:
        return FIRST
    if described.keys() != before.keys():
        return "other arguments"
    return next((f"{name}: {_difference(new, before[name])}" for name, new in described.items() if new != before[name]), "a result of another kind")


def _difference(new: Any, old: Any) -> str:
    if len(new) != 1 or len(old) != 1:
        return "another structure"
    new, old = (part if isinstance(part, tuple) else (part,) for (part,) in (new, old))
    if len(new) == len(old) == 4 and new[0] is old[0]:  # tensors
        if new[1] != old[1]:
            return f"{new[1]} instead of {old[1]}"
        if new[3] != old[3]:
            return f"on {_device(new[3])} instead of {_device(old[3])}"
        return f"{new[2]} axes instead of {old[2]}"
    return f"{_text(new)} instead of {_text(old)}"


def _device(index: int) -> str:
    return "the CPU" if index < 0 else f"CUDA device {index}"


def _text(part: tuple[Any, ...]) -> str:
    if len(part) == 2 and type(part[0]) is type:
        return part[1] if part[0] in (int, float, bool) else repr(part[1])
    return str(getattr(part[0], "__name__", part[0]))


def _of_guards(guards: Guards) -> str | None:
    for kind, holder, key, expected in guards:
        try:
            found = _LOOK_UPS[kind](holder, key)
        except Exception:
            found = MISSING
        if kind in ("length", "call") and found == expected or _is_same(found, expected):
            continue
        return f"{_place(kind, holder, key)}: {_shown(found)} instead of {_shown(expected)}"
    return None


def _is_same(found: Any, expected: Any) -> bool:
    if found is expected:
        return True
    if type(found) is not type(expected) or not isinstance(found, (int, float, complex, str, bytes, tuple)):
        return False
    return repr(found) == repr(expected)


_LOOK_UPS: dict[str, Callable[[Any, Any], Any]] = {
    "item": lambda holder, key: dict.get(holder, key, MISSING) if isinstance(holder, dict) else holder.get(key, MISSING),
    "class": lambda holder, key: vars(holder).get(key, MISSING),
    "attribute": lambda holder, key: getattr(holder, key, MISSING),
    "element": lambda holder, key: holder[key],
    "length": lambda holder, key: len(holder),
    "call": lambda holder, key: holder(),
    "order": lambda holder, key: holder.__mro__,
    "type": lambda holder, key: type(holder),
    "keys": lambda holder, key: tuple(holder),
    "cell": lambda holder, key: holder.cell_contents,
    "context": lambda holder, key: holder.get(key),
}


def _place(kind: str, holder: Any, key: Any) -> str:
    if kind == "cell":
        return "a variable of the closure"
    if kind == "call":
        function = getattr(holder, "func", holder)
        module = getattr(function, "__module__", None)
        return f"{module + '.' if module else ''}{getattr(function, '__name__', function)}()"
    if kind in ("length", "keys", "order", "type"):
        return {"length": "the length", "keys": "the keys", "order": "the bases", "type": "the class"}[kind] + f" of {_named(holder)}"
    if kind == "attribute" or kind == "class":
        return f"{_named(holder)}.{key}"
    return f"the global {key}" if isinstance(holder, dict) and "__builtins__" in holder else f"{key!r} of {_named(holder)}"


def _named(obj: Any) -> str:
    name = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None)
    return str(name) if isinstance(name, str) else f"a {type(obj).__name__}"


def _shown(obj: Any) -> str:
    if obj is MISSING:
        return "nothing"
    text = repr(obj)
    return text if len(text) <= 60 else f"another {type(obj).__name__}"
