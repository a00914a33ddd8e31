"""The calls that are being followed, and what their variables hold."""

from __future__ import annotations

import types
from typing import Any, NamedTuple

from flexor.frontend.cpython.decode import Step
from flexor.frontend.cpython.flow import Flow, decoded, flow
from flexor.frontend.cpython.values import DictValue, InstanceValue, ListValue, Value, changes_of, clone


class Frame:
    """One call that is being followed."""

    __slots__ = (
        "at", "code", "flow", "forks", "globals", "handled", "is_caught", "is_generator", "locals", "on_return", "pc", "place", "stack", "steps",
    )  # fmt: skip

    def __init__(self, code: types.CodeType, globals_: dict[str, Any], forks: int) -> None:
        self.code, self.globals, self.forks = code, globals_, forks
        self.steps: tuple[Step, ...] = decoded(code).steps
        self.flow: Flow = flow(code)
        self.locals: dict[str, Value] = {}
        self.stack: list[Value] = []
        self.pc = 0
        self.at = 0  # the step that is being followed
        self.handled: list[Value] = []  # exceptions whose handlers are open, innermost last
        self.is_generator = False
        self.is_caught = False  # a caller looks at the exceptions of the call
        self.on_return: Value | None = None  # what the caller gets instead of the result (a constructor's instance)
        self.place: int | None = None  # of the caller's value, from the top, that the result replaces; None: it is pushed

    def pop(self, count: int) -> list[Value]:
        """The values on top, the topmost last."""
        if count == 0:
            return []
        values = self.stack[-count:]
        del self.stack[-count:]
        return values

    def copy(self) -> Frame:
        """A frame that stands where this one does, with no values yet."""
        new: Frame = object.__new__(Frame)
        new.code, new.globals, new.forks, new.steps, new.flow = self.code, self.globals, self.forks, self.steps, self.flow
        new.pc, new.at, new.handled, new.place = self.pc, self.at, list(self.handled), self.place
        new.is_generator, new.is_caught = self.is_generator, self.is_caught
        return new

    def live(self) -> tuple[str, ...]:
        """The variables that may be read from here on."""
        return self.flow.live[self.pc] if self.pc < len(self.steps) else ()

    @property
    def line(self) -> int:
        return self.steps[min(self.pc, len(self.steps) - 1)].line


def _contents(value: Any) -> Any:
    if isinstance(value, InstanceValue):
        return value.fields
    return value.items if isinstance(value, (ListValue, DictValue)) else value


class Passed(NamedTuple):
    """What was at the head of a loop when it was passed."""

    forks: int
    keys: dict[Any, Any]
    places: dict[Any, Value]
    is_of_before: bool = False  # an iteration of a loop around it, which is written out, has begun since


class State:
    """The calls that are open, outermost first, and how many branches of the run lie behind."""

    __slots__ = ("forks", "frames", "has_acted", "heads", "is_clobbered", "objects", "pending", "written")

    def __init__(self, frames: list[Frame], forks: int) -> None:
        self.frames, self.forks = frames, forks
        self.written: dict[tuple[Any, Any], Value] = {}
        self.pending: dict[tuple[Any, Any], None] = {}  # those of `written` that are still to be done, in order
        self.has_acted = False  # behind a call with an effect
        self.heads: dict[Any, Passed] = {}  # chain at the head of a loop -> what was there when the way here last passed it
        self.objects: dict[int, Value] = {}  # of the arguments, by number: as they are known and written here
        self.is_clobbered = False  # behind a call that may change what is known of Python's objects

    @property
    def top(self) -> Frame:
        return self.frames[-1]

    def chain(self) -> tuple[tuple[int, int], ...]:
        """Where control is, in every open call."""
        return tuple((id(frame.code), frame.pc) for frame in self.frames)

    def begin_iteration(self, begin: int, end: int) -> None:
        """An iteration of a loop that is written out begins: loops in its body, from `begin` to `end`, are loops of their own."""
        depth, code = len(self.frames) - 1, id(self.top.code)
        callers = self.chain()[:depth]
        for chain, passed in self.heads.items():
            if len(chain) > depth and chain[:depth] == callers and chain[depth][0] == code and begin <= chain[depth][1] < end:
                self.heads[chain] = passed._replace(is_of_before=True)

    def places(self) -> dict[Any, Value]:
        """Everything that may still be read, by place. A caller goes on behind its call, whose arguments are gone."""
        out: dict[Any, Value] = {}
        for depth, frame in enumerate(self.frames):
            for name in frame.live():
                if name in frame.locals:
                    out[depth, "local", name] = frame.locals[name]
            for at, value in enumerate(frame.stack):
                out[depth, "stack", at] = value
            if frame.on_return is not None:
                out[depth, "result", 0] = frame.on_return
        for key, value in self.written.items():
            out[("written", *key)] = value
        for number, value in self.objects.items():
            for kind, name, new in changes_of(value):
                out["argument", number, (kind, name)] = new
        return out

    def holder(self, place: tuple[Any, ...]) -> tuple[Any, Any] | None:
        """The container and the key in it that a place means, as `places` names them, followed by steps into structures; None
        where this state has no such place."""
        where, kind, name, *path = place
        if where == "argument":
            value: Any = self.objects.get(kind)
            path = [name[1], *path]
        else:
            frame = self.frames[where]
            value, path = frame.locals if kind == "local" else frame.stack, [name, *path]
        for step in path[:-1]:
            try:
                value = _contents(value)[step]
            except (IndexError, KeyError, TypeError):
                return None
        value = _contents(value)
        has = path[-1] in value if isinstance(value, dict) else isinstance(value, list) and type(path[-1]) is int and path[-1] < len(value)
        return (value, path[-1]) if has else None

    def copy(self, replaced: dict[int, Value]) -> State:
        """The state with values put in the place of others (by id); what cannot be read any more is dropped."""
        memo: dict[int, Any] = dict(replaced)
        frames = []
        for frame in self.frames:
            new = frame.copy()
            live = frame.live()
            new.locals = {name: clone(value, memo) for name, value in frame.locals.items() if name in live}
            new.stack = [clone(value, memo) for value in frame.stack]
            new.on_return = clone(frame.on_return, memo)
            frames.append(new)
        copy = State(frames, self.forks)
        copy.has_acted, copy.is_clobbered = self.has_acted, self.is_clobbered
        copy.objects = {number: clone(value, memo) for number, value in self.objects.items()}
        copy.heads, copy.pending = dict(self.heads), dict(self.pending)
        copy.written = {key: clone(value, memo) for key, value in self.written.items()}
        return copy
