"""Builtins that consume iterators, in Python: the translator follows them where it does not know the elements at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
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


def _map(function: Callable[..., Any], *iterables: Iterable[Any]) -> Iterator[Any]:
    for arguments in zip(*iterables):
        yield function(*arguments)


def _filter(function: Callable[[Any], Any], iterable: Iterable[Any]) -> Iterator[Any]:
    for item in iterable:
        if function(item):
            yield item


def _reduce(function: Callable[[Any, Any], Any], iterable: Iterable[Any], *initial: Any) -> Any:
    values = [*initial, *iterable]
    if not values:
        raise TypeError("reduce() of empty iterable with no initial value")
    result = values[0]
    for value in values[1:]:
        result = function(result, value)
    return result


def in_order(items: list[Any], keys: list[Any], reverse: bool) -> list[Any]:
    """The items in the order of their keys; the translator does it where the keys are known."""
    return [items[i] for i in sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)]


def _sorted(iterable: Iterable[Any], *, key: Callable[[Any], Any], reverse: bool = False) -> list[Any]:
    items = list(iterable)
    return in_order(items, [key(item) for item in items], reverse)


def _first(what: str, reverse: bool) -> Callable[..., Any]:
    def choose(*given: Any, key: Callable[[Any], Any]) -> Any:
        items = list(given[0]) if len(given) == 1 else list(given)
        if not items:
            raise ValueError(f"{what}() arg is an empty sequence")
        return in_order(items, [key(item) for item in items], reverse)[0]

    return choose


# Builtins that call a function that they are handed: followed where that is a function of Python.
WITH_FUNCTION: dict[Any, Callable[..., Any]] = {
    map: _map,
    filter: _filter,
    functools.reduce: _reduce,
    sorted: _sorted,
    max: _first("max", True),
    min: _first("min", False),
}

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
