"""Functions that call themselves to a depth that only the run knows: functions of the Module, and calls of them.

Calls are followed into their functions, until too many are open behind branches of the run. The function that is entered again is
then written once for each kind of arguments, as a function of the Module whose parameters are the values of the run among them; from
its second level on its calls are calls of that. What such a function gives is learnt from the ways on which it does not call itself.
"""

from __future__ import annotations

import dis
import functools
import types
from typing import TYPE_CHECKING, Any, NoReturn

from flexor.frontend.cpython import results
from flexor.frontend.cpython.decode import NotTranslated, Restart
from flexor.frontend.cpython.state import Frame
from flexor.frontend.cpython.values import (
    SCALARS,
    ArgumentList,
    CellValue,
    Description,
    Dynamic,
    FunctionValue,
    Known,
    MethodValue,
    SliceValue,
    TupleValue,
    Value,
    clone,
    dynamics,
    is_number,
)

if TYPE_CHECKING:
    from flexor.frontend.cpython.guards import Place
    from flexor.frontend.cpython.translate import Translator

MOST_KINDS = 8  # of arguments of one function


class Callee:
    """A function of the Module: the locals that it begins with, in which `slots` are its parameters."""

    def __init__(self, name: str, key: Any, frame: Frame, slots: list[Dynamic]) -> None:
        self.name, self.key, self.frame, self.slots = name, key, frame, slots
        self.parameters: list[Dynamic] = []  # for the slots
        self.live: list[Dynamic] = []  # for what is read for every call


class Functions:
    """The functions of the Module under construction beside its main one."""

    def __init__(self, translator: Translator) -> None:
        self.t = translator
        self.current: Callee | None = None  # None: the main one is written
        self._made: dict[Any, Callee] = {}
        self._todo: list[Callee] = []
        self._unknown: set[types.CodeType] = set()  # that are called, where it is not known yet what they give

    def are_called(self, code: types.CodeType) -> bool:
        """Whether a call of a function of Python is a call of the Module's."""
        return code in self.t.knowledge.recursive and any(frame.code is code for frame in self.t.state.frames)

    def learn(self) -> None:
        """Begins anew, if too many calls are open because a function calls itself: the outermost one that does."""
        opened: dict[types.CodeType, int] = {}
        for frame in self.t.state.frames:
            again = opened.setdefault(frame.code, frame.forks) < frame.forks
            if again and frame.code not in self.t.knowledge.recursive:
                self.t.knowledge.recursive.add(frame.code)
                raise Restart

    # ------------------------------------------------------------------------------------------------------------ calls

    def call(self, code: types.CodeType, globals_: dict[str, Any], locals_: dict[str, Value]) -> Value:
        """The result of a call."""
        t = self.t
        t.keep_unpacked(locals_)
        if t.state.objects:
            t.objects.give_up()
        self._refuse_writes()
        for name, value in locals_.items():
            _check(value, t.state.top.line, set())
            if (code, name) in t.knowledge.loosened and isinstance(value, Known) and type(value.object) in SCALARS:
                locals_[name] = t.writer.constant(value.object)
        frame = Frame(code, globals_, 0)
        # The function reads parameters where its caller may read an argument or a size.
        frame.locals = clone(locals_, {id(d): Dynamic(d.kind, d.native, None, d.dtype, d.rank) for d in dynamics(locals_)})
        description = Description()
        key = code, tuple((name, description.of(value)) for name, value in frame.locals.items())
        callee = self._made.get(key)
        if callee is None:
            callee = self._declare(key, frame, description.slots)
        gives = t.knowledge.gives.get(code)
        if gives is None:
            self._unknown.add(code)
            t.unreachable()
        handed = [t.live(*live) for live in t.knowledge.handed.get(key, ())]
        wanted = list(dynamics(gives))
        made = t.writer.call(callee.name, [*description.slots, *handed], wanted)
        t.state.has_acted = True  # as far as is known here
        result: Value = clone(gives, {id(old): new for old, new in zip(wanted, made)})
        return result

    def _declare(self, key: Any, frame: Frame, slots: list[Dynamic]) -> Callee:
        alike = [callee for callee in self._made.values() if callee.frame.code is frame.code]
        for other in alike:
            differing = {name for (name, mine), (_, theirs) in zip(key[1], other.key[1]) if mine != theirs}
            if all(is_number(frame.locals[name]) and is_number(other.frame.locals[name]) for name in differing):
                loosened = {(frame.code, name) for name in differing} - self.t.knowledge.loosened
                if loosened:
                    self.t.knowledge.loosened |= loosened
                    raise Restart
        if len(alike) == MOST_KINDS:
            raise NotTranslated("a function that calls itself with arguments of many kinds", self.t.state.top.line)
        made = self._made[key] = Callee(f"{frame.code.co_name}_{len(self._made) + 1}", key, frame, slots)
        self._todo.append(made)
        writer = self.t.writer
        writer.declare(made.name)
        made.parameters = [writer.parameter(made.name, f"p{at}", slot) for at, slot in enumerate(slots)]
        handed = enumerate(self.t.knowledge.handed.get(key, ()))
        made.live = [writer.parameter_of(made.name, f"live{at}", text) for at, (_, text, _, _) in handed]
        return made

    def _refuse_writes(self) -> None:
        state = self.t.state
        if state.pending or state.written or state.is_clobbered:
            raise NotTranslated("a function that calls itself, beside writes to objects", state.top.line)

    # ---------------------------------------------------------------------------------------------------------- results

    def note(self, code: types.CodeType, value: Value) -> Value:
        """What a function that calls itself gives, in the form in which its calls see it."""
        knowledge = self.t.knowledge
        normal = results.computed(value, self.t.writer.constant)
        known = knowledge.gives.setdefault(code, normal)
        if Description().of(known) != Description().of(normal):
            raise NotTranslated("a function that calls itself and gives values of several kinds", self.t.state.top.line)
        return normal

    def leave(self, value: Value) -> NoReturn:
        """Ends the block with the result of the function that is written."""
        assert self.current is not None
        self._refuse_writes()
        self.t.writer.function.give([v.native for v in dynamics(self.note(self.current.frame.code, value))])
        self.t.end()

    # -------------------------------------------------------------------------------------------------------- functions

    def settle(self) -> None:
        """Begins anew, if it has been learnt what functions give that are called."""
        if self._unknown:
            if self._unknown <= self.t.knowledge.gives.keys():
                raise Restart
            raise NotTranslated("a function that calls itself without end")

    def write(self) -> None:
        """Writes the functions that are called."""
        t = self.t
        while self._todo:
            callee = self.current = self._todo.pop()
            t.writer.begin(callee.name)
            frame = Frame(callee.frame.code, callee.frame.globals, 0)
            memo: dict[int, Any] = {id(slot): parameter for slot, parameter in zip(callee.slots, callee.parameters)}
            frame.locals = clone(callee.frame.locals, memo)
            t.begin()
            for (key, _, _, obj), parameter in zip(t.knowledge.handed.get(callee.key, ()), callee.live):
                t.take_over_live(key, parameter, obj)
            t.follow_all(frame)
            self.settle()
            t.write_dead(len(list(dynamics(t.knowledge.gives[callee.frame.code]))))
        self.current = None

    def hand(self, key: Any, text: str, place: Place, obj: Any) -> NoReturn:
        """Begins anew with a tensor or number that is read for every call as a further parameter of the function that is written."""
        assert self.current is not None
        self.t.knowledge.handed.setdefault(self.current.key, []).append((key, text, place, obj))
        raise Restart


def _check(value: Value, line: int, seen: set[int]) -> None:
    """Refuses arguments that the function may change in place, or of whose variables it may write one."""
    if id(value) in seen:
        return
    seen.add(id(value))
    parts: tuple[Any, ...] = ()
    if isinstance(value, ArgumentList) or not isinstance(value, (Known, Dynamic, TupleValue, SliceValue, CellValue, FunctionValue, MethodValue)):
        raise NotTranslated(f"a {type(value).__name__} handed to a function that calls itself", line)
    if isinstance(value, TupleValue):
        parts = value.items
    elif isinstance(value, SliceValue):
        parts = value.start, value.stop, value.step
    elif isinstance(value, CellValue) and value.content is not None:
        parts = (value.content,)
    elif isinstance(value, FunctionValue):
        if _assigns(value.code):
            raise NotTranslated("a function that calls itself and writes to variables of another", line)
        parts = *value.defaults, *value.keyword_defaults.values(), *value.cells
    elif isinstance(value, MethodValue):
        parts = (value.receiver,)
    for part in parts:
        _check(part, line, seen)


@functools.cache
def _assigns(code: types.CodeType) -> bool:
    """Whether a function, or one inside it, writes to a variable that is not its own."""
    if any(step.opname == "STORE_DEREF" and step.argval in code.co_freevars for step in dis.get_instructions(code)):
        return True
    return any(_assigns(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))
