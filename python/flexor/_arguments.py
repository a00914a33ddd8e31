"""Arguments of a jitted call: what distinguishes calls, what goes into the program, and what stands for it in a translation."""

from __future__ import annotations

import dataclasses
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from flexor._options import FROZEN, Dim
from flexor.frontend.cpython import attributes, instances, objects
from flexor.frontend.cpython.translate import Translator
from flexor.frontend.cpython.values import ArgumentDict, ArgumentList, Dynamic, Known, TupleValue, Value
from flexor.frontend.cpython.writer import dtype_name


class Unreadable(Exception):
    """An argument whose memory the engine does not read: the call is Python's."""


@dataclasses.dataclass
class Shape:
    """What is found in the arguments of one call: a key, and the leaves that go into the program.

    `steps` say the same as the key to the compiled call path (python/src/fast/plan.h); None where it does not decide such a call.
    """

    fixed: frozenset[str]
    key: list[Any] = dataclasses.field(default_factory=list)
    steps: list[tuple[Any, ...]] | None = dataclasses.field(default_factory=list)
    leaves: list[Any] = dataclasses.field(default_factory=list)
    containers: list[Any] = dataclasses.field(default_factory=list)  # lists and dicts of the caller's
    objects: list[Any] = dataclasses.field(default_factory=list)  # known by what they hold
    found: Any = ()  # those and the objects in them, as the translation that serves the call numbers them
    seen: dict[int, Any] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, fixed: frozenset[str], bound: Mapping[str, Any]) -> Shape:
        """The shape of arguments by name. Raises Unreadable, and TypeError for what cannot be a key."""
        shape = cls(fixed)
        for name, obj in bound.items():
            shape.add(name, obj)
        return shape

    def add(self, name: str, obj: Any) -> None:
        """Appends what distinguishes an object."""
        kind = type(obj)
        if kind is int or kind is float or kind is bool:
            if name in self.fixed or (kind is int and not -(2**63) <= obj < 2**63):
                self._append((kind, repr(obj)), ("value", obj))
            else:
                self._append(kind, ("number", kind))
                self.leaves.append(obj)
        elif kind is str and name.isidentifier() and name not in self.fixed:
            self._append(str, None)
            self.leaves.append(obj)
        elif obj is None or kind is str or kind is bytes:
            self._append((kind, obj), ("value", obj))
        elif attributes.is_tensor_object(obj):
            if id(obj) in self.seen:
                self._add_again(obj)
                return
            self.seen[id(obj)] = len(self.leaves)
            index = attributes.cuda_index(obj)
            self._append((kind, obj.dtype, obj.ndim, index), ("tensor", kind, dtype_name(obj.dtype), obj.ndim, index))
            self.leaves.append(obj)
        elif isinstance(obj, np.generic):
            self._append((kind, obj.dtype, 0), None)
            self.leaves.append(np.asarray(obj))
        elif is_tuple(kind):
            if is_plain_tuple(kind, obj):
                self._append((kind, *map(repr, obj)), ("value", obj) if kind is tuple else None)
                return
            self._append((kind, len(obj)), ("tuple", kind, len(obj)))
            for i, item in enumerate(obj):
                self.add(f"{name}[{i}]", item)
        elif _is_known_by_contents(name, kind, self.fixed):
            if id(obj) in self.seen:
                self._add_again(obj)
                return
            self.seen[id(obj)] = ("object", len(self.objects))
            self.objects.append(obj)
            self._append((kind, "object", len(obj) if kind is list else tuple((type(key), key) for key in obj)), None)
        elif kind is list or kind is dict or instances.is_output(kind):
            if id(obj) in self.seen:
                self._add_again(obj)
                return
            self.seen[id(obj)] = ("container", len(self.containers))
            self.containers.append(obj)
            self._add_container(name, obj)
        elif isinstance(obj, type) or kind.__module__ == "torch" and kind.__name__ in ("dtype", "device"):
            self._append((kind, obj), ("same", obj) if isinstance(obj, type) else ("equal", obj))
        else:
            torch = sys.modules.get("torch")
            if isinstance(obj, np.ndarray) or (torch is not None and isinstance(obj, torch.Tensor)):
                raise Unreadable(f"the argument {name} is a {kind.__name__} that is not read directly")
            self._add_object(name, obj)

    def _add_object(self, name: str, obj: Any) -> None:
        if name in self.fixed or name == "self" or not objects.is_object(obj):
            self._append((type(obj), ById(obj)), ("same", obj))
        elif id(obj) in self.seen:
            self._add_again(obj)
        else:  # known by what it holds, which the translation looks at
            self.seen[id(obj)] = ("object", len(self.objects))
            self.objects.append(obj)
            self._append((type(obj), "object"), ("object", type(obj)))

    def _append(self, key: Any, step: tuple[Any, ...] | None) -> None:
        self.key.append(key)
        if step is None:
            self.steps = None
        elif self.steps is not None:
            self.steps.append(step)

    def _add_again(self, obj: Any) -> None:
        number = self.seen[id(obj)]
        self._append(("again", number), ("again", number) if isinstance(number, int) else None)

    def _add_container(self, name: str, obj: Any) -> None:
        if type(obj) is list:
            self._append((list, len(obj)), ("list", list, len(obj)))
            for i, item in enumerate(obj):
                self.add(f"{name}[{i}]", item)
        else:
            are_plain = type(obj) is dict and all(type(key) in (str, int) for key in obj)
            self._append((type(obj), *((type(key), key) for key in obj)), ("dict", tuple(obj)) if are_plain else None)
            for key, item in dict.items(obj):
                self.add(f"{name}[{key!r}]", item)


def _is_known_by_contents(name: str, kind: type, fixed: frozenset[str]) -> bool:
    """Whether an argument is a list or dict that is written to."""
    return (kind is list or kind is dict) and name + objects.BY_CONTENTS in fixed and name not in fixed


def is_tuple(kind: type) -> bool:
    """Whether objects of a class are tuples of their items and nothing else."""
    return kind is tuple or issubclass(kind, tuple) and (hasattr(kind, "_fields") or (kind.__module__, kind.__name__) == ("torch", "Size"))


def is_plain_tuple(kind: type, obj: Any) -> bool:
    """A tuple that is known whole at translation."""
    return not hasattr(kind, "_fields") and all(type(item) in (int, float, bool, str, type(None)) for item in obj)


class ById:
    """An object as a part of a key, which keeps it alive only where nothing can refer to it weakly."""

    __slots__ = ("_id", "_refer")

    def __init__(self, obj: Any) -> None:
        self._id = id(obj)
        try:
            self._refer: Callable[[], Any] = weakref.ref(obj)
        except TypeError:
            self._refer = lambda: obj

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        found = self._refer()
        return found is not None and isinstance(other, ById) and other._refer() is found

    def __repr__(self) -> str:
        return f"another {type(self._refer()).__name__}"


class Abstract:
    """Abstract values of arguments, in the order in which Shape lists leaves."""

    def __init__(
        self, translator: Translator, fixed: frozenset[str], dims: Mapping[str, Sequence[Any]], titles: Mapping[str, str]
    ) -> None:
        self.translator, self.fixed, self.dims, self.titles = translator, fixed, dims, titles
        self.seen: dict[int, Value] = {}
        self.names: list[str] = []
        self.containers = 0

    def of(self, name: str, obj: Any) -> Value:
        """The value of an object."""
        kind = type(obj)
        if kind is int or kind is float or kind is bool:
            if name in self.fixed or (kind is int and not -(2**63) <= obj < 2**63):
                return Known(obj)
            return self._input(name, kind.__name__)
        if attributes.is_tensor_object(obj) or isinstance(obj, np.generic):
            self.translator.check_framework(obj)
            if id(obj) not in self.seen:
                made = self.seen[id(obj)] = self._input(name, self._type(name, obj))
                self.translator.examples.update((str(made.native.size(axis)), obj.shape[axis]) for axis in range(obj.ndim))
                self.translator.classes[self.seen[id(obj)].anywhere] = kind  # type: ignore[attr-defined, index]
            return self.seen[id(obj)]
        if kind is str and name.isidentifier() and name not in self.fixed and not self.translator.is_for_file:
            return self.translator.string(name, self._input(name, "i64[?]"))
        if is_tuple(kind):
            if is_plain_tuple(kind, obj):
                return Known(obj)
            return TupleValue([self.of(f"{name}[{i}]", item) for i, item in enumerate(obj)], kind)
        if _is_known_by_contents(name, kind, self.fixed):
            if id(obj) not in self.seen:
                self.seen[id(obj)] = self.translator.objects.root(name, obj)
            return self.seen[id(obj)]
        if kind is list or kind is dict or instances.is_output(kind):
            if id(obj) not in self.seen:
                self.seen[id(obj)] = self._container(name, obj)
            return self.seen[id(obj)]
        if isinstance(obj, type) or name in self.fixed or name == "self" or not objects.is_object(obj):
            return Known(obj)
        if id(obj) not in self.seen:
            self.seen[id(obj)] = self.translator.objects.root(name, obj)
        return self.seen[id(obj)]

    def _container(self, name: str, obj: Any) -> Value:
        origin = origin_of(self.containers)
        self.containers += 1
        self.translator.containers[origin] = name, objects.is_flat(obj)
        made: Any
        if isinstance(obj, list):
            made = self.seen[id(obj)] = ArgumentList([], origin)
            made.items = tuple(self.of(f"{name}[{i}]", item) for i, item in enumerate(obj))
        else:
            made = self.seen[id(obj)] = ArgumentDict({}, origin)
            made.cls = type(obj)
            made.items.update((key, self.of(f"{name}[{key!r}]", item)) for key, item in dict.items(obj))
        return made  # type: ignore[no-any-return]

    def _input(self, name: str, text: str) -> Dynamic:
        assert not self.translator.live_inputs, "calls pass what is found on the way behind the arguments"
        self.names.append(name)
        title = self.titles.get(name, name)
        made = self.translator.writer.input(title if title.isidentifier() else f"arg{len(self.names)}", text)
        self.translator.arguments[made.anywhere] = name
        return made

    def _type(self, name: str, obj: Any) -> str:
        given = self.dims.get(self.titles.get(name, name))
        text = attributes.type_text(obj, with_sizes=False)
        if given is None or obj.ndim == 0:
            return text
        if len(given) != obj.ndim:
            raise ValueError(f"dims gives {name} {len(given)} sizes; it has {obj.ndim} axes")
        return f"{text.split('[')[0]}[{', '.join(_dim_text(dim) for dim in given)}]"


def origin_of(number: int) -> str:
    """The name of a list or dict of the caller's."""
    return f"container {number}"


def _dim_text(dim: Any) -> str:
    if dim is FROZEN:
        return "FROZEN ?"
    if dim is None:
        return "?"
    return dim.name if isinstance(dim, Dim) else str(dim)
