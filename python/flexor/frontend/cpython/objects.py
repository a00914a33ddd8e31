"""Objects among the arguments that are known by what they hold: caches, states, settings that change from call to call, and lists and
dicts that the function writes to.

Such an object is of a plain class of Python's (see `instances`). Of what the function reads of it, tensors are inputs, and all
else is a check by its place in the object, so that one program serves every object that holds the like. What the function writes
to it is done when the program ends. An object that gives no tensor and takes no write is known by its identity instead, as are
those that Python is handed in the run.

Laws
  O1  Objects that a program writes to are different from each other in every call that it serves, as they were at translation,
      and none of them is one that a guard or live input looks at.
  O2  What is read of an object is a function of the translator and the place: every state finds the same value there.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from flexor.frontend.cpython import attributes, evaluate, instances
from flexor.frontend.cpython.decode import Restart
from flexor.frontend.cpython.guards import MISSING, Place
from flexor.frontend.cpython.values import ArgumentDict, ArgumentItems, ArgumentList, ArgumentMapping, ArgumentObject, Dynamic, Known, TupleValue, Value, changes_of
from flexor.frontend.cpython.writer import dtype_name

if TYPE_CHECKING:
    from flexor.frontend.cpython.state import State
    from flexor.frontend.cpython.translate import Translator

_COLLECTIONS = 1 << 5 | 1 << 6  # Py_TPFLAGS_SEQUENCE and _MAPPING
BY_CONTENTS = " by what it holds"  # behind the name of a list or dict among the arguments that is written to
MIRRORS = (ArgumentObject, ArgumentItems, ArgumentMapping)


def is_object(obj: Any) -> bool:
    """Whether an argument may be known by what it holds. Patterns look at the flags of sequences and mappings."""
    cls = type(obj)
    if cls is types.SimpleNamespace:
        return True
    return instances.is_plain_class(cls) and not cls.__flags__ & _COLLECTIONS and isinstance(getattr(obj, "__dict__", None), dict)


def is_flat(container: Any) -> bool:
    """Whether a list or dict holds tensors and plain objects alone, and one that is written to may be known by them."""
    held = container if type(container) is list else container.values() if type(container) is dict else None
    if held is None or (type(container) is dict and not all(evaluate.is_plain(key) for key in container)):
        return False
    return all(attributes.is_tensor_object(obj) or type(obj) in (bool, int, float, str, type(None)) for obj in held)


class Opened(threading.local):
    """The inputs that the call under way on this thread has among its objects."""

    leaves: Sequence[Any] = ()


opened = Opened()


class LeafPlace(Place):
    """Where an input is read that an object of the arguments holds: `key` is its number among these."""

    def __call__(self) -> Any:
        return opened.leaves[self.key]


class Put:
    """Writes to an object of the arguments: one attribute, all items of a list, all items of a dict with these keys."""

    __slots__ = ("key", "kind", "number")

    def __init__(self, number: int, kind: str, key: Any) -> None:
        self.number, self.kind, self.key = number, kind, key

    def write(self, found: Sequence[Any], value: Any) -> None:
        """Does it, with the objects that a call has found."""
        target = found[self.number]
        if self.kind == "attribute":
            object.__setattr__(target, self.key, value)
        elif self.kind == "items":
            target[:] = value
        elif list(target) == list(self.key):
            target.update(zip(self.key, value))
        else:
            target.clear()
            target.update(zip(self.key, value))


class _Entry:
    """An object that has been met, and how it is reached: as the `root`-th object of the arguments, or by a step from another."""

    __slots__ = ("obj", "path", "root")

    def __init__(self, obj: Any, root: int, path: tuple[Any, ...]) -> None:
        self.obj, self.root, self.path = obj, root, path


class Objects:
    """The objects that one translation has met, and what it has read of them."""

    def __init__(self, translator: Translator) -> None:
        self._t = translator
        self._entries: list[_Entry] = []
        self.roots: dict[int, Value] = {}  # the values of arguments, by number
        self._names: list[str] = []  # of the arguments, by root
        self._number_of: dict[int, int] = {}  # by id
        self._loaded: dict[tuple[int, Any], Value | int] = {}  # a value, or the number of an object
        self._steps: list[tuple[Any, ...]] = []
        self._leaves: list[Dynamic] = []
        self.number_paths: dict[str | None, tuple[Any, ...]] = {}  # by the names of inputs
        self._used: set[int] = set()  # roots that give tensors or take writes
        self._written: set[int] = set()
        self._are_compared = False

    def root(self, name: str, obj: Any) -> Value:
        """The value of an argument. What a list or dict holds stands in it after read_roots()."""
        self._names.append(name)
        self._steps.append(("root", len(self._names) - 1))
        number = self._enter(obj, len(self._names) - 1, (name,))
        made: ArgumentItems | ArgumentMapping | ArgumentObject
        if isinstance(obj, list):
            made = ArgumentItems([], number)
        else:
            made = ArgumentMapping({}, number) if isinstance(obj, dict) else ArgumentObject(type(obj), number)
        self.roots[number] = made
        return made

    def read_roots(self) -> None:
        """Reads the lists and dicts among the arguments: the program's inputs for what they hold come behind all the others."""
        for number, value in self.roots.items():
            if isinstance(value, (ArgumentItems, ArgumentMapping)):
                read: Any = self._mirror(number)
                value.__init__(read.items, number)  # type: ignore[misc, arg-type]

    def mirror(self, container: ArgumentList | ArgumentDict) -> None:
        """Begins anew with a list or dict of the arguments as one of these objects, as it is written to; returns where it cannot be."""
        name, is_flat = self._t.containers.get(container.origin, ("", False))
        known = self._t.knowledge.fixed
        if is_flat and name not in known and name + BY_CONTENTS not in known:
            known.add(name + BY_CONTENTS)
            raise Restart

    def __bool__(self) -> bool:
        return bool(self._names)

    # ----------------------------------------------------------------------------------------------------------- reading

    def field(self, value: ArgumentObject, name: str) -> Value | None:
        """An attribute in the object's own dict, or None."""
        if name not in value.fields:
            found = self._load(value.number, "attribute", name, vars(self._entries[value.number].obj).get(name, MISSING))
            if found is None:
                return None
            value.fields[name] = value.read[name] = found
        return value.fields[name]

    def _load(self, number: int, kind: str, key: Any, obj: Any) -> Value | None:
        place = number, (kind, key)
        if place not in self._loaded:
            if obj is MISSING:
                self._steps.append(("absent", kind, number, key))
                return None
            self._loaded[place] = self._read(number, kind, key, obj)
        found = self._loaded[place]
        return self._of_state(found) if isinstance(found, int) else found

    def _of_state(self, number: int) -> Value:
        """The value of an object in the state at hand: states that have parted write to it apart."""
        found = self._t.state.objects.get(number)
        if found is None:
            found = self._t.state.objects[number] = self._mirror(number)
        return found

    def _read(self, number: int, kind: str, key: Any, obj: Any) -> Value | int:
        cls, entry = type(obj), self._entries[number]
        step = kind, number, key
        if attributes.is_tensor_object(obj):
            return self._leaf(entry, step, obj, attributes.type_text(obj, with_sizes=False))
        path = (*entry.path, key)
        if cls in (int, float) and self._varies(path, obj):
            made = self._leaf(entry, step, obj, cls.__name__)
            self.number_paths[made.anywhere] = path
            return made
        if evaluate.is_plain(obj) or (cls.__module__ == "torch" and cls.__name__ in ("dtype", "device")):
            self._steps.append(("value", *step, obj))
            return Known(obj)
        if cls is tuple or cls is list or cls is dict or is_object(obj):
            known = self._number_of.get(id(obj))
            if known is not None:
                self._steps.append(("again", *step, known))
                return known
            size = tuple(obj) if cls is dict else None if is_object(obj) else len(obj)
            self._steps.append(("enter", *step, cls, size))
            return self._enter(obj, entry.root, path)
        self._steps.append(("same", *step, obj))
        return Known(obj)

    def _varies(self, path: tuple[Any, ...], number: float) -> bool:
        """Whether a number is one of the run."""
        knowledge = self._t.knowledge
        if path in knowledge.known_numbers:
            return False
        if not knowledge.knows_numbers:
            return True
        if knowledge.numbers.setdefault(path, number) != number:
            knowledge.varying_numbers.add(path)
        return path in knowledge.varying_numbers

    def _leaf(self, entry: _Entry, step: tuple[Any, ...], obj: Any, text: str) -> Dynamic:
        is_number = type(obj) in (int, float)
        known = None if is_number else self._number_of.get(id(obj))
        if known is not None:
            self._steps.append(("same leaf", *step, known))
            return self._leaves[known]
        number = len(self._leaves)
        made = self._t.live(("argument", number), text, LeafPlace("argument", None, number), obj)
        if not is_number:
            self._number_of[id(obj)] = number
            self._used.add(entry.root)
        self._leaves.append(made)
        kind = () if is_number else (dtype_name(obj.dtype), obj.dtype, obj.ndim, attributes.cuda_index(obj))
        self._steps.append(("leaf", *step, type(obj), *kind))
        return made

    def _enter(self, obj: Any, root: int, path: tuple[Any, ...]) -> int:
        number = len(self._entries)
        self._entries.append(_Entry(obj, root, path))
        self._number_of[id(obj)] = number
        return number

    def _mirror(self, number: int) -> Value:
        """A new value of an object, with all items of one that has items."""
        obj = self._entries[number].obj
        if isinstance(obj, (list, tuple)):
            items = [self._load(number, "item", i, item) for i, item in enumerate(obj)]
            return TupleValue(items) if isinstance(obj, tuple) else ArgumentItems(items, number)  # type: ignore[arg-type]
        if isinstance(obj, dict):
            return ArgumentMapping({key: self._load(number, "item", key, item) for key, item in obj.items()}, number)  # type: ignore[misc]
        return ArgumentObject(type(obj), number)

    # ----------------------------------------------------------------------------------------------------------- writing

    def written(self, state: State) -> Iterator[tuple[tuple[Any, Any], Put, Value]]:
        """What a state has written to objects, as places, what does it, and values."""
        for number, value in state.objects.items():
            for kind, key, new in changes_of(value):
                self._used.add(self._entries[number].root)
                self._written.add(number)
                yield ("argument", (number, kind, key)), Put(number, kind, key), new

    def give_up(self, roots: Iterable[int] | None = None) -> NoReturn:
        """Begins anew with arguments known by their identity."""
        self._t.knowledge.fixed |= {self._names[root] for root in (range(len(self._names)) if roots is None else roots)}
        raise Restart

    def compare(self, a: Value, b: Value) -> None:
        """Takes note of a question whether two values are one object. Begins anew where one is known by its identity."""
        if not isinstance(a, MIRRORS):
            a, b = b, a
        if isinstance(a, MIRRORS) and isinstance(b, MIRRORS):
            self._are_compared = True
        elif isinstance(a, MIRRORS) and isinstance(b, Known) and not evaluate.is_plain(b.object):
            self.give_up((self._entries[a.number].root,))

    def settle(self) -> None:
        """Begins anew where an argument gives no tensor and takes no write, but is looked at."""
        looked_at = {self._entries[step[2]].root for step in self._steps if step[0] != "root"}
        if idle := looked_at - self._used:
            self.give_up(idle)

    # ---------------------------------------------------------------------------------------------------------- checking

    def leaf_kinds(self) -> list[tuple[type, str | None, int | None, int]]:
        """Class, dtype, rank and CUDA device of every input found; None, None and -1 of numbers."""
        kinds = [step[4:] for step in self._steps if step[0] == "leaf"]
        return [(cls, *((rest[0], rest[2], rest[3]) if rest else (None, None, -1))) for cls, *rest in kinds]

    def let_go(self) -> None:
        """Keeps nothing of the call that was translated."""
        for entry in self._entries:
            entry.obj = None

    def compile(self, knows_leaves: bool = False) -> Any:
        """A function of the objects among a call's arguments and its lists and dicts: (objects found, inputs), or None where the
        program does not serve them. `knows_leaves`: whoever calls it looks at the classes, dtypes, ranks and devices of the inputs."""
        lines, names = _code(self._steps, len(self._leaves), knows_leaves)
        if self._written or self._are_compared:
            shared = ", ".join(f"id(o{n})" for n, e in enumerate(self._entries) if not isinstance(e.obj, tuple))
            lines.append(f"  ids = ({shared}, *map(id, containers))")
            lines.append("  if len(set(ids)) != len(ids): return None")
        if self._written:
            apart = ", ".join(f"id(o{n}), id(o{n}.__dict__)" if is_object(e.obj) else f"id(o{n})" for n, e in enumerate(self._entries) if n in self._written)
            names["looked_at"] = self._t.guards.holders() | {id(place.holder) for _, place, _ in self._t.live_inputs}
            lines.append(f"  if not looked_at.isdisjoint(({apart},)): return None")
        found = "".join(f"o{n}, " for n in range(len(self._entries)))
        leaves = "".join(f"t{n}, " for n in range(len(self._leaves)))
        body = "\n".join(lines)
        source = f"def check(roots, containers):\n try:\n{body}\n  return ({found}), ({leaves})\n except (KeyError, AttributeError, IndexError):\n  return None"
        exec(source, names)
        return names["check"]


def _same(found: Any, expected: Any) -> bool:
    """Whether a plain value is as expected: equal and of the same class; -0.0 is not 0.0, a NaN is like another."""
    if type(found) is not type(expected):
        return False
    if type(found) is tuple:
        return len(found) == len(expected) and all(map(_same, found, expected))
    return repr(found) == repr(expected) if isinstance(found, (float, complex)) else bool(found == expected)


def _code(steps: Sequence[tuple[Any, ...]], leaves: int, knows_leaves: bool) -> tuple[list[str], dict[str, Any]]:
    """The lines that look at the objects, in the order in which the translation has: o0, o1, ... are objects, t0, t1, ... inputs."""
    names: dict[str, Any] = {"same": _same, "missing": MISSING}
    lines: list[str] = []
    objects = made = 0

    def named(obj: Any) -> str:
        name = f"e{len(names)}"
        names[name] = obj
        return name

    def refuse_unless(condition: str) -> None:
        lines.append(f"  if not ({condition}): return None")

    for kind, *rest in steps:
        if kind == "root":
            lines.append(f"  o{objects} = roots[{rest[0]}]")
            objects += 1
            continue
        how, number, key, *rest = rest
        if kind == "absent":
            refuse_unless(f"{key!r} not in o{number}.__dict__")
            continue
        lines.append(f"  v = o{number}.__dict__[{key!r}]" if how == "attribute" else f"  v = o{number}[{named(key)}]")
        if kind == "value":
            refuse_unless(f"v is {(expected := named(rest[0]))} or same(v, {expected})")
        elif kind == "same":
            refuse_unless(f"v is {named(rest[0])}")
        elif kind == "again":
            refuse_unless(f"v is o{rest[0]}")
        elif kind == "same leaf":
            refuse_unless(f"v is t{rest[0]}")
        elif kind == "enter":
            cls, size = rest
            held = "" if size is None else f" and len(v) == {size}" if type(size) is int else f" and tuple(v) == {named(size)}"
            refuse_unless(f"type(v) is {named(cls)}{held}")
            lines.append(f"  o{objects} = v")
            objects += 1
        elif knows_leaves:
            lines.append(f"  t{made} = v")
            made += 1
        else:
            cls, *tensor = rest
            refuse_unless(f"type(v) is {named(cls)}" + (f" and v.dtype == {named(tensor[1])} and v.ndim == {tensor[2]}" if tensor else ""))
            if tensor:
                names["is_tensor"], names["cuda_index"] = attributes.is_tensor_object, attributes.cuda_index
                refuse_unless(f"is_tensor(v) and cuda_index(v) == {tensor[3]}")
            lines.append(f"  t{made} = v")
            made += 1
    assert made == leaves
    return lines, names


