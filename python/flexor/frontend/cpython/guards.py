"""What a translation has assumed of the Python world around it, and the check that it still holds.

A guard says that a holder still gives a value: a key of a dict (globals, an instance's or a class's attributes, a closure's cell),
an item or the length of a list, an attribute behind a descriptor. Holders are reached from the jitted function through other
guards, so that each is one look-up from an object at hand. Numbers and texts are compared by value and class, everything else
by identity.
"""

from __future__ import annotations

import contextvars
import dataclasses
import types
from collections.abc import Callable, Iterator
from typing import Any

from flexor import _flexor_fast

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "<missing>", "__slots__": ()})()


@dataclasses.dataclass(frozen=True)
class Place:
    """Where something is read anew for every call: an "item" of a dict or an "element" of a list (holder[key]), the content of
    a "cell", an "attribute", or an "object" itself."""

    kind: str
    holder: Any
    key: Any = None

    def __call__(self) -> Any:
        if self.kind == "cell":
            return self.holder.cell_contents
        if self.kind == "attribute":
            return getattr(self.holder, self.key)
        return self.holder if self.kind == "object" else self.holder[self.key]


class Guards:
    """Collects assumptions; `compile` turns them into one function without arguments that says whether all of them hold."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, int, Any], tuple[Any, Any, Any]] = {}
        self.private: dict[int, Any] = {}  # objects that nothing but the program sees, by id: they stay as they are
        self.later: Guards | None = None  # takes what is assumed behind a call that may change it

    def _add(self, kind: str, holder: Any, key: Any, expected: Any) -> None:
        if id(holder) in self.private:
            return
        self._of.setdefault((kind, id(holder), key), (holder, key, expected))
        if self.later is not None:
            self.later._add(kind, holder, key, expected)

    def item(self, holder: Any, key: Any, expected: Any) -> None:
        """holder[key] is expected, of a dict or a mapping proxy."""
        self._add("item", holder, key, expected)

    def absent(self, holder: Any, key: Any) -> None:
        """A dict or mapping proxy has no such key."""
        self._add("item", holder, key, MISSING)

    def class_attribute(self, cls: type, name: str, expected: Any) -> None:
        """type.__getattribute__ finds this, without binding it; by the classes in order of resolution."""
        if not cls.__module__.startswith("torch") and cls.__flags__ & 1 << 9:
            self._add("order", cls, None, cls.__mro__)
        for base in cls.__mro__:
            changeable = bool(base.__flags__ & 1 << 9)  # Py_TPFLAGS_HEAPTYPE
            found = name in base.__dict__
            if changeable:
                self._add("class", base, name, expected if found else MISSING)
            if found:
                return

    def class_of(self, obj: Any) -> None:
        """The class of an object, which may be given another one."""
        self._add("type", obj, None, type(obj))

    def own_attribute(self, cls: type, name: str, expected: Any) -> None:
        """A class's own dict holds this, or MISSING."""
        self._add("class", cls, name, expected)

    def attribute(self, holder: Any, name: str, expected: Any) -> None:
        """getattr(holder, name) is expected."""
        self._add("attribute", holder, name, expected)

    def element(self, holder: list[Any], index: int, expected: Any) -> None:
        """An item of a list."""
        self._add("element", holder, index, expected)

    def length(self, holder: Any, expected: int) -> None:
        """The length of a list or dict."""
        self._add("length", holder, None, expected)

    def keys(self, holder: Any) -> None:
        """The keys of a dict, in their order."""
        self._add("keys", holder, None, tuple(holder))

    def cell(self, holder: types.CellType, expected: Any) -> None:
        """The content of a closure's cell."""
        self._add("cell", holder, None, expected)

    def context(self, variable: contextvars.ContextVar[Any], default: Any, expected: Any) -> None:
        """variable.get(default) is expected."""
        self._add("context", variable, default, expected)

    def call(self, function: Callable[[], Any], expected: Any) -> None:
        """function() gives expected."""
        self._add("call", function, None, expected)

    def holders(self) -> set[int]:
        """The ids of the objects that are looked at."""
        return {id(holder) for holder, _, _ in self._of.values()}

    def __len__(self) -> int:
        return len(self._of)

    def __iter__(self) -> Iterator[tuple[str, Any, Any, Any]]:
        """(kind, holder, key, what is expected) of each."""
        return iter([(kind, holder, key, expected) for (kind, _, _), (holder, key, expected) in self._of.items()])

    def describe(self) -> list[str]:
        """One line a guard, for people."""
        return [f"{kind} {key!r} of {type(holder).__name__}" for (kind, _, _), (holder, key, _) in self._of.items()]

    def compile(self) -> Callable[[], bool]:
        """The check. It holds every holder and expected value alive, so that an identity is not taken by a new object."""
        return _flexor_fast.Guards([(kind, holder, key, expected) for (kind, _, _), (holder, key, expected) in self._of.items()], MISSING)
