"""Builtins that consume iterators, in Python: the translator follows them where it does not know the elements at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def _any(iterable: Iterable[Any]) -> bool:
    for item in iterable:
        if item:
            return True
    return False


def _all(iterable: Iterable[Any]) -> bool:
    for item in iterable:
        if not item:
            return False
    return True


def _sum(iterable: Iterable[Any], start: Any = 0) -> Any:
    for item in iterable:
        start = start + item
    return start


def _list(iterable: Iterable[Any]) -> list[Any]:
    out = []
    for item in iterable:
        out.append(item)
    return out


def _tuple(iterable: Iterable[Any]) -> tuple[Any, ...]:
    out = []
    for item in iterable:
        out.append(item)
    return tuple(out)


def _dict(iterable: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    out = {}
    for key, item in iterable:
        out[key] = item
    return out


def _max(iterable: Iterable[Any]) -> Any:
    best = None
    for item in iterable:
        if best is None or item > best:
            best = item
    if best is None:
        raise ValueError("max() iterable argument is empty")
    return best


def _min(iterable: Iterable[Any]) -> Any:
    best = None
    for item in iterable:
        if best is None or item < best:
            best = item
    if best is None:
        raise ValueError("min() iterable argument is empty")
    return best


def _next(iterable: Iterable[Any], *default: Any) -> Any:
    for item in iterable:
        return item
    if default:
        return default[0]
    raise StopIteration


IN_PYTHON: dict[Any, Callable[..., Any]] = {
    any: _any,
    all: _all,
    sum: _sum,
    list: _list,
    tuple: _tuple,
    dict: _dict,
    max: _max,
    min: _min,
    next: _next,
}
