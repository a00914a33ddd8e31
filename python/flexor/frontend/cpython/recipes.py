"""itertools in Python, much as its documentation writes it: generators that the translator follows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any


def _chain(*iterables: Iterable[Any]) -> Iterator[Any]:
    for iterable in iterables:
        yield from iterable


def _from_iterable(iterables: Iterable[Iterable[Any]]) -> Iterator[Any]:
    for iterable in iterables:
        yield from iterable


def _count(start: Any = 0, step: Any = 1) -> Iterator[Any]:
    while True:
        yield start
        start = start + step


def _cycle(iterable: Iterable[Any]) -> Iterator[Any]:
    kept = []
    for item in iterable:
        yield item
        kept.append(item)
    while kept:
        yield from kept


def _repeat(item: Any, times: int | None = None) -> Iterator[Any]:
    if times is None:
        while True:
            yield item
    for _ in range(times):
        yield item


def _accumulate(iterable: Iterable[Any], function: Callable[[Any, Any], Any] | None = None, *, initial: Any = None) -> Iterator[Any]:
    total = initial
    begun = initial is not None
    if begun:
        yield total
    for item in iterable:
        if not begun:
            total, begun = item, True
        else:
            total = total + item if function is None else function(total, item)
        yield total


def _compress(data: Iterable[Any], selectors: Iterable[Any]) -> Iterator[Any]:
    for item, chosen in zip(data, selectors):
        if chosen:
            yield item


def _dropwhile(predicate: Callable[[Any], Any], iterable: Iterable[Any]) -> Iterator[Any]:
    dropping = True
    for item in iterable:
        if dropping and predicate(item):
            continue
        dropping = False
        yield item


def _takewhile(predicate: Callable[[Any], Any], iterable: Iterable[Any]) -> Iterator[Any]:
    for item in iterable:
        if not predicate(item):
            return
        yield item


def _filterfalse(predicate: Callable[[Any], Any] | None, iterable: Iterable[Any]) -> Iterator[Any]:
    for item in iterable:
        if not (item if predicate is None else predicate(item)):
            yield item


def _starmap(function: Callable[..., Any], iterable: Iterable[Iterable[Any]]) -> Iterator[Any]:
    for arguments in iterable:
        yield function(*arguments)


def _pairwise(iterable: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    before, begun = None, False
    for item in iterable:
        if begun:
            yield before, item
        before, begun = item, True


def _islice(iterable: Iterable[Any], *bounds: int | None) -> Iterator[Any]:
    start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    following, at, step = (start or 0), 0, (step or 1)
    source = iter(iterable)
    while stop is None or at < stop:
        for item in source:
            if at == following:
                yield item
                following = following + step
            at = at + 1
            break
        else:
            return


def _zip_longest(*iterables: Iterable[Any], fillvalue: Any = None) -> Iterator[tuple[Any, ...]]:
    parts = [iter(iterable) for iterable in iterables]
    ended = [False] * len(parts)
    while True:
        row = []
        for at, part in enumerate(parts):
            if not ended[at]:
                for item in part:
                    row.append(item)
                    break
                else:
                    ended[at] = True
                    row.append(fillvalue)
            else:
                row.append(fillvalue)
        if all(ended):
            return
        yield tuple(row)


RECIPES: dict[Any, Callable[..., Any]] = {
    itertools.chain: _chain,
    itertools.chain.from_iterable: _from_iterable,
    itertools.count: _count,
    itertools.cycle: _cycle,
    itertools.repeat: _repeat,
    itertools.accumulate: _accumulate,
    itertools.compress: _compress,
    itertools.dropwhile: _dropwhile,
    itertools.takewhile: _takewhile,
    itertools.filterfalse: _filterfalse,
    itertools.starmap: _starmap,
    itertools.pairwise: _pairwise,
    itertools.islice: _islice,
    itertools.zip_longest: _zip_longest,
}
# Those that read everything before they give anything, and of what is known.
OF_WHOLE = (itertools.product, itertools.combinations, itertools.combinations_with_replacement, itertools.permutations)
