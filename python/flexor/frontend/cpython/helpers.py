"""Builtins that consume iterators or call what they are handed, in Python: the translator follows them where it does not know the
elements at once, or where what is called is a function of Python."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

MOST_CHOICES = 64  # values that are not alike, one of which only the run chooses
_NOTHING: Any = type("Nothing", (), {"__repr__": lambda self: "<nothing>", "__slots__": ()})()


# ------------------------------------------------------------------------------------------------------------ consumers


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


def listed(iterable: Iterable[Any]) -> list[Any]:
    """list(iterable)."""
    out = []
    for item in iterable:
        out.append(item)
    return out


def _tuple(iterable: Iterable[Any]) -> tuple[Any, ...]:
    out = []
    for item in iterable:
        out.append(item)
    return tuple(out)


def new_tuple(cls: type[tuple[Any, ...]], iterable: Iterable[Any]) -> tuple[Any, ...]:
    """tuple.__new__(cls, iterable)."""
    return tuple.__new__(cls, listed(iterable))


def _set(iterable: Iterable[Any]) -> set[Any]:
    out = set()
    for item in iterable:
        out.add(item)
    return out


def _frozenset(iterable: Iterable[Any]) -> frozenset[Any]:
    return frozenset(listed(iterable))


def _dict(iterable: Iterable[tuple[Any, Any]], **others: Any) -> dict[Any, Any]:
    out = {}
    for key, item in iterable:
        out[key] = item
    out.update(others)
    return out


def _max(iterable: Iterable[Any], *, default: Any = _NOTHING) -> Any:
    best = _NOTHING
    for item in iterable:
        if best is _NOTHING or item > best:
            best = item
    if best is _NOTHING:
        if default is _NOTHING:
            raise ValueError("max() iterable argument is empty")
        return default
    return best


def _min(iterable: Iterable[Any], *, default: Any = _NOTHING) -> Any:
    best = _NOTHING
    for item in iterable:
        if best is _NOTHING or item < best:
            best = item
    if best is _NOTHING:
        if default is _NOTHING:
            raise ValueError("min() iterable argument is empty")
        return default
    return best


def _next(iterable: Iterable[Any], *default: Any) -> Any:
    for item in iterable:
        return item
    if default:
        return default[0]
    raise StopIteration


NEXT = _next.__code__


def _sorted_plainly(iterable: Iterable[Any], *, reverse: bool = False) -> list[Any]:
    return sorted(listed(iterable), reverse=reverse)


def joined(separator: Any, iterable: Iterable[Any]) -> Any:
    """separator.join(iterable), of texts or bytes."""
    return separator.join(listed(iterable))


def extend(items: list[Any], iterable: Iterable[Any]) -> None:
    """items.extend(iterable)."""
    for item in iterable:
        items.append(item)


def become(items: list[Any], other: list[Any]) -> None:
    """items[:] = other, of lists of the run; the translator does it."""
    items[:] = other


def pop(items: list[Any], index: int = -1) -> Any:
    """items.pop(index)."""
    count = len(items)
    if count == 0:
        raise IndexError("pop from empty list")
    place = index + count if index < 0 else index
    if place < 0 or place >= count:
        raise IndexError("pop index out of range")
    value = items[place]
    kept = []
    for at in range(count):
        if at != place:
            kept.append(items[at])
    become(items, kept)
    return value


def insert(items: list[Any], index: int, value: Any) -> None:
    """items.insert(index, value)."""
    count = len(items)
    place = max(index + count, 0) if index < 0 else min(index, count)
    made = []
    for at in range(count + 1):
        if at == place:
            made.append(value)
        if at < count:
            made.append(items[at])
    become(items, made)


def reverse(items: list[Any]) -> None:
    """items.reverse()."""
    become(items, listed(backwards(items)))


def backwards(items: Any) -> Iterator[Any]:
    """reversed(items), of what has a length that only the run knows."""
    for at in range(len(items) - 1, -1, -1):
        yield items[at]


def sliced(items: list[Any], start: int | None, stop: int | None, step: int) -> list[Any]:
    """items[start:stop:step], of a list of the run; the step is known."""
    count = len(items)
    low, high = (0, count) if step > 0 else (-1, count - 1)
    first = low if step > 0 else high
    last = high if step > 0 else low
    if start is not None:
        first = max(start + count, low) if start < 0 else min(start, high)
    if stop is not None:
        last = max(stop + count, low) if stop < 0 else min(stop, high)
    out = []
    for at in range(first, last, step):
        out.append(items[at])
    return out


def at_most(iterable: Iterable[Any], count: int) -> list[Any]:
    """What an unpacking into `count` names reads: one item more shows that there are too many."""
    out = []
    for item in iterable:
        out.append(item)
        if len(out) > count:
            break
    return out


def refuse_length(found: int, count: int) -> None:
    """Raises what an unpacking into `count` names raises of `found` values."""
    if found > count:
        raise ValueError(f"too many values to unpack (expected {count})")
    raise ValueError(f"not enough values to unpack (expected {count}, got {found})")


def exactly(items: Any, count: int) -> tuple[Any, ...]:
    """An unpacking into `count` names of what has a length that only the run knows."""
    if len(items) != count:
        refuse_length(len(items), count)
    return tuple([items[at] for at in range(count)])


class Apart(tuple[Any, ...]):
    """What an unpacking with a star binds, in order: its list is among them."""


def apart(items: Any, before: int, after: int) -> Any:
    """An unpacking with a star, of what has a length that only the run knows."""
    if len(items) < before + after:
        refuse_few(len(items), before + after)
    middle = []
    for at in range(before, len(items) - after):
        middle.append(items[at])
    first = [items[at] for at in range(before)]
    last = [items[len(items) - after + at] for at in range(after)]
    return new_apart(*first, middle, *last)


def new_apart(*values: Any) -> Apart:
    """The values as they are bound; the translator makes it."""
    return Apart(values)


def refuse_few(found: int, least: int) -> None:
    """Raises what an unpacking with a star raises of too few values."""
    raise ValueError(f"not enough values to unpack (expected at least {least}, got {found})")


def is_in(iterable: Iterable[Any], wanted: Any) -> bool:
    """wanted in iterable."""
    for item in iterable:
        if item is wanted or item == wanted:
            return True
    return False


def is_not_in(iterable: Iterable[Any], wanted: Any) -> bool:
    """wanted not in iterable."""
    for item in iterable:
        if item is wanted or item == wanted:
            return False
    return True


# ----------------------------------------------------------------------------------------------------- lazy iterators


def _map(function: Callable[..., Any], *iterables: Iterable[Any]) -> Iterator[Any]:
    for arguments in zip(*iterables):
        yield function(*arguments)


def _filter(function: Callable[[Any], Any], iterable: Iterable[Any]) -> Iterator[Any]:
    for item in iterable:
        if function(item):
            yield item


def enumerated(iterable: Iterable[Any], start: int = 0) -> Iterator[tuple[int, Any]]:
    """enumerate(iterable, start)."""
    for item in iterable:
        yield start, item
        start = start + 1


def zipped(*iterables: Iterable[Any], strict: bool = False) -> Iterator[tuple[Any, ...]]:
    """zip(*iterables)."""
    parts = [iter(part) for part in iterables]
    while parts:
        row = []
        for part in parts:
            for item in part:
                row.append(item)
                break
            else:
                if strict:
                    _refuse_uneven(parts, len(row))
                return
        yield tuple(row)


def _refuse_uneven(parts: list[Iterator[Any]], ended: int) -> None:
    if ended:
        raise ValueError(f"zip() argument {ended + 1} is shorter than argument{'s' if ended > 1 else ''} {'1-' * (ended > 1)}{ended}")
    for at in range(1, len(parts)):
        for _ in parts[at]:
            raise ValueError(f"zip() argument {at + 1} is longer than argument{'s' if at > 1 else ''} {'1-' * (at > 1)}{at}")


# ------------------------------------------------------------------------------------------- functions that are handed on


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


def sort(items: list[Any], *, key: Callable[[Any], Any] | None = None, reverse: bool = False) -> None:
    """items.sort(...)."""
    ordered = sorted(items, reverse=reverse) if key is None else sorted(items, key=key, reverse=reverse)
    for at in range(len(items)):
        items[at] = ordered[at]


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


# ----------------------------------------------------------------------------------------------- places, patterns, numbers


def item_at(items: list[Any] | tuple[Any, ...], index: int) -> Any:
    """items[index], of few values that are not alike, for a place that only the run knows."""
    place = index + len(items) if index < 0 else index
    for at, item in enumerate(items):
        if place == at:
            return item
    raise IndexError("list index out of range" if isinstance(items, list) else "tuple index out of range")


def put_at(items: list[Any], index: int, value: Any) -> None:
    """items[index] = value, in the same way."""
    place = index + len(items) if index < 0 else index
    for at in range(len(items)):
        if place == at:
            items[at] = value
            return
    raise IndexError("list assignment index out of range")


def value_of(table: dict[Any, Any], key: Any) -> Any:
    """table[key], of a dict with few keys, for a key that only the run knows."""
    for own, value in table.items():
        if own == key:
            return value
    raise KeyError(key)


def value_or(table: dict[Any, Any], key: Any, otherwise: Any) -> Any:
    """table.get(key, otherwise), of a dict with few keys, for a key that only the run knows."""
    for own, value in table.items():
        if own == key:
            return value
    return otherwise


def put_by(table: dict[Any, Any], key: Any, value: Any) -> None:
    """table[key] = value, of a dict that has the key, which only the run knows."""
    for own in tuple(table):
        if own == key:
            table[own] = value


def refuse_dict() -> None:
    """Tells the translator not to go on."""


def _refused(*_: Any) -> Any:
    refuse_dict()


class Table:
    """A dict with keys that only the run knows, all of them integers: two lists, of keys and of values."""

    __slots__ = ("_keys", "_values")
    _keys: list[int]
    _values: list[Any]

    # What else dicts have
    clear = copy = fromkeys = popitem = _refused
    __reversed__ = __or__ = __ror__ = __ior__ = __eq__ = __ne__ = __lt__ = __gt__ = __le__ = __ge__ = _refused

    def __getitem__(self, key: int) -> Any:
        for at in range(len(self._keys)):
            if self._keys[at] == key:
                return self._values[at]
        raise KeyError(key)

    def __setitem__(self, key: int, value: Any) -> None:
        for at in range(len(self._keys)):
            if self._keys[at] == key:
                self._values[at] = value
                return
        self._keys.append(key)
        self._values.append(value)

    def __delitem__(self, key: int) -> None:
        self.pop(key)

    def pop(self, key: int, *default: Any) -> Any:
        """As of a dict."""
        for at in range(len(self._keys)):
            if self._keys[at] == key:
                self._keys.pop(at)
                return self._values.pop(at)
        if default:
            return default[0]
        raise KeyError(key)

    def update(self, other: Any) -> None:
        """As of a dict."""
        for key, value in other.items():
            self[key] = value

    def __contains__(self, key: Any) -> bool:
        for own in self._keys:
            if own == key:
                return True
        return False

    def __len__(self) -> int:
        return len(self._keys)

    def get(self, key: Any, default: Any = None) -> Any:
        """As of a dict."""
        for at in range(len(self._keys)):
            if self._keys[at] == key:
                return self._values[at]
        return default

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """As of a dict."""
        for at in range(len(self._keys)):
            if self._keys[at] == key:
                return self._values[at]
        self._keys.append(key)
        self._values.append(default)
        return default

    def __iter__(self) -> Iterator[int]:
        count = len(self._keys)
        for key in self._keys:
            yield key
            if len(self._keys) != count:
                raise RuntimeError("dictionary changed size during iteration")

    def keys(self) -> Any:
        """The keys, which are read once."""
        return self.__iter__()

    def values(self) -> Any:
        """The values, which are read once."""
        count = len(self._keys)
        for at in range(count):
            yield self._values[at]
            if len(self._keys) != count:
                raise RuntimeError("dictionary changed size during iteration")

    def items(self) -> Any:
        """Keys and values, which are read once."""
        count = len(self._keys)
        for at in range(count):
            yield self._keys[at], self._values[at]
            if len(self._keys) != count:
                raise RuntimeError("dictionary changed size during iteration")


def sorted_items(items: Iterable[tuple[int, Any]], *, reverse: bool = False) -> list[tuple[int, Any]]:
    """sorted(items) of a Table: by their keys, no two of which are equal."""
    out = []
    for item in items:
        out.append(item)
        at = len(out) - 1
        while at > 0 and (out[at - 1][0] < item[0] if reverse else out[at - 1][0] > item[0]):
            out[at] = out[at - 1]
            at = at - 1
        out[at] = item
    return out


def matched(subject: Any, cls: Any, names: tuple[str, ...], itself: bool) -> tuple[Any, ...] | None:
    """What a class pattern finds: the subject itself, or attributes of these names; None where it does not fit."""
    if not isinstance(subject, cls):
        return None
    found: tuple[Any, ...] = (subject,) if itself else ()
    for name in names:
        value = getattr(subject, name, _NOTHING)
        if value is _NOTHING:
            return None
        found = (*found, value)
    return found


def operated(attempts: tuple[tuple[Any, Any, Any], ...], refusal: str) -> Any:
    """An operator of objects of Python: the first of their methods that takes the other operand."""
    for method, receiver, other in attempts:
        result = method(receiver, other)
        if result is not NotImplemented:
            return result
    raise TypeError(refusal)


def compared(attempts: tuple[tuple[Any, Any, Any], ...], otherwise: bool) -> Any:
    """== and != of objects of Python, which identity decides where no method does."""
    for method, receiver, other in attempts:
        result = method(receiver, other)
        if result is not NotImplemented:
            return result
    return otherwise


def unequal(attempts: tuple[tuple[Any, Any, Any], ...], otherwise: bool) -> Any:
    """!= of objects whose class has nothing but an ==."""
    for method, receiver, other in attempts:
        result = method(receiver, other)
        if result is not NotImplemented:
            return not result
    return otherwise


def cached_property(instance: Any, name: str, function: Callable[[Any], Any]) -> Any:
    """The first reading of a functools.cached_property."""
    value = function(instance)
    setattr(instance, name, value)
    return value


def extended(items: list[Any], iterable: Iterable[Any]) -> list[Any]:
    """items += iterable."""
    for item in iterable:
        items.append(item)
    return items


def rounded_to(number: int, digits: int) -> int:
    """round(number, digits) of an integer, digits below zero: to the nearest, ties to even."""
    power: int = 10**-digits
    below = number // power
    rest = 2 * (number - below * power)
    if rest > power or (rest == power and below % 2 == 1):
        below = below + 1
    return below * power


def rounded(number: float) -> int:
    """round(number) of a float: to the nearest, ties to even."""
    below = math.floor(number)
    rest = number - below
    if rest > 0.5 or (rest == 0.5 and below % 2 == 1):
        below = below + 1
    return below


# ------------------------------------------------------------------------------------------------------ context managers


def enter(manager: Any, method: Callable[[Any], Any], opened: Callable[[Any], None]) -> Any:
    """What `with` binds; the manager is open from then on."""
    result = method(manager)
    opened(manager)
    return result


def leave(entered: tuple[Any, Callable[..., Any], Callable[[], None]], *exception: Any) -> Any:
    """The end of a `with` without an exception."""
    manager, method, closed = entered
    closed()
    return method(manager, *exception)


def enter_generator(generator: Iterator[Any]) -> Any:
    """contextlib's manager of a generator begins."""
    for value in generator:
        return value
    raise RuntimeError("generator didn't yield")


def leave_generator(generator: Iterator[Any], *exception: Any) -> bool:
    """contextlib's manager of a generator ends without an exception."""
    for _ in generator:
        raise RuntimeError("generator didn't stop")
    return False


# Builtins that call a function that they are handed: followed where that is a function of Python.
WITH_FUNCTION: dict[Any, Callable[..., Any]] = {
    map: _map,
    filter: _filter,
    functools.reduce: _reduce,
    sorted: _sorted,
    max: _first("max", True),
    min: _first("min", False),
}

# Methods of lists of the run.
OF_RUN_LISTS: dict[str, Callable[..., Any]] = {"pop": pop, "insert": insert, "reverse": reverse, "extend": extend, "copy": listed}

# Those of the following that are followed for a list of the run as well.
OF_LISTS = (sum, max, min, list, dict)

# Builtins that read an iterator: followed where its elements are not known at once.
IN_PYTHON: dict[Any, Callable[..., Any]] = {
    any: _any,
    all: _all,
    sum: _sum,
    list: listed,
    tuple: _tuple,
    set: _set,
    frozenset: _frozenset,
    dict: _dict,
    max: _max,
    min: _min,
    next: _next,
    sorted: _sorted_plainly,
}
