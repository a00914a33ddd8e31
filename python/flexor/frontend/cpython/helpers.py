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


def contains(container: Any, item: Any) -> bool:
    """`item in container`, of a class with a __contains__."""
    return True if container.__contains__(item) else False


def lacks(container: Any, item: Any) -> bool:
    """`item not in container`."""
    return False if container.__contains__(item) else True


def _is_true(value: Any) -> bool:
    return value.__bool__()  # type: ignore[no-any-return]


def _is_false(value: Any) -> bool:
    return not value.__bool__()


def _is_filled(value: Any) -> bool:
    return value.__len__() != 0  # type: ignore[no-any-return]


def _is_empty(value: Any) -> bool:
    return value.__len__() == 0  # type: ignore[no-any-return]


# What bool(value) asks, and `not value`: (by which method, whether it is negated).
TRUTHS: dict[tuple[str, bool], Callable[[Any], bool]] = {
    ("bool", False): _is_true,
    ("bool", True): _is_false,
    ("length", False): _is_filled,
    ("length", True): _is_empty,
}


def with_hooks(
    module: Any,
    forward: Callable[..., Any],
    before: list[tuple[Callable[..., Any], bool]],
    after: list[tuple[Callable[..., Any], bool]],
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
) -> Any:
    """A call of a torch module between its hooks, each with whether it takes keywords."""
    for hook, takes_keywords in before:
        if takes_keywords:
            given = hook(module, arguments, keywords)
            if given is not None:
                if not (isinstance(given, tuple) and len(given) == 2):
                    raise RuntimeError(f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {given}.")
                arguments, keywords = given
        else:
            given = hook(module, arguments)
            if given is not None:
                arguments = given if isinstance(given, tuple) else (given,)
    result = forward(*arguments, **keywords)
    for hook, takes_keywords in after:
        changed = hook(module, arguments, keywords, result) if takes_keywords else hook(module, arguments, result)
        if changed is not None:
            result = changed
    return result


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
