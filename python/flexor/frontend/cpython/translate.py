"""Functions of Python as Modules, by partial evaluation of their decoded steps.

The translator runs a function's steps over abstract values. What is known at translation (modules, layers, configuration,
closures) is computed here and guarded; what derives from tensors and numbers of the call is written as Flexor bytecode. Where a
branch depends on a value of the run, both ways are followed; two ways that meet at one step with states of the same shape share the
code from there on.

Laws
  L1  What the Module computes is what Python computes for every call that passes the guards.
  L2  An operation that no op expresses is a foreign call: Python does it in the run, in order, once.
  L3  What cannot be followed raises NotTranslated before anything has run.
  L4  A translation is a function of the code, the guarded objects and `Knowledge`; learning something starts it anew.
"""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from flexor.errors import FlexorError
from flexor.frontend.cpython import attributes, classes, effects, evaluate, exceptions, foreign, helpers, methods, results, special, steps, typed
from flexor.frontend.cpython.decode import NotTranslated, Restart, Step
from flexor.frontend.cpython.guards import Guards, Place
from flexor.frontend.cpython.knowledge import Knowledge
from flexor.frontend.cpython.lowering import Lowering
from flexor.frontend.cpython.objects import Objects, Put
from flexor.frontend.cpython.operations import BRANCHES, Operation
from flexor.frontend.cpython.recursion import Functions
from flexor.frontend.cpython.state import Frame, Passed, State
from flexor.frontend.cpython.values import (
    ArgumentItems,
    Description,
    Dynamic,
    GeneratorValue,
    Known,
    ListValue,
    RunList,
    StringValue,
    TupleValue,
    Value,
    dynamics,
    is_none,
    is_number,
    knowns,
    parts_apart,
)
from flexor.frontend.cpython.writer import NotKnown, NotWritten, Writer, dtype_name, growing

if TYPE_CHECKING:
    from flexor._weights import Weights

ASSUMPTION = "the program assumes "  # begins the text of an assertion that is no assertion of the user's
UNTOUCHED = "from its beginning "  # follows where no effect can lie before it
MOST_FRAMES = 900  # fewer than Python allows
MOST_OPEN_FRAMES = 100  # where a branch of the run decides whether there are more
MOST_STEPS = 400_000
LARGE = 4_000  # steps of a function that is not written twice for a flag
MOST_VERSIONS = 200
MOST_ITERATIONS = 16  # of loops that are written out, with a loop of the run in them for each
_CONDITIONS = {Operation.BRANCH_TRUE, Operation.BRANCH_FALSE}


class Ended(Exception):
    """The block that is being written has ended."""


@dataclasses.dataclass
class Block:
    """Code that is still to be written: where it begins, with what state, and what happens first."""

    label: Any
    state: State
    slots: list[Dynamic]  # what is handed over, in order: values of `state` among others
    is_shared: bool  # several ways lead here
    keeps_sizes: bool  # what is known of the sizes of tensors holds on all of them
    first: Callable[[State], None] | None = None


@dataclasses.dataclass
class Exit:
    """One shape of result: `template` holds Results where the run's values stand."""

    label: Any
    template: Any
    values: list[Dynamic]
    places: tuple[effects.Place, ...]  # what is written then: the template is a tuple of the result and of what goes there


class Translator:
    """Translates one function for one shape of arguments. `run` once.

    weights     which tensors become weights of the Module; None: none, all are read anew for every call
    is_for_file  the Module is to run without Python: tensors that it returns are results of it, and so are numbers
    """

    def __init__(
        self, promotion: str, knowledge: Knowledge, name: str, weights: Weights | None = None, *, is_for_file: bool = False
    ) -> None:
        self.writer = Writer(promotion)
        self.writer.refuse_write = self._unpack
        self.weights, self.is_for_file = weights, is_for_file
        self.guards = Guards()
        self.later = Guards()  # those of `guards` that are relied on behind a call that may change what they say
        self.private = self.guards.private = self.later.private = {}
        self.later_inputs: set[int] = set()  # the same of live inputs, by number
        self.knowledge = knowledge
        self.lowering = Lowering(self.writer, self.guards, promotion, self.assume, lambda: self.state.has_acted)
        self.is_placed = False  # a tensor was met: the program runs where it lies
        self.name = name
        self.live_inputs: list[tuple[Any, Place, Dynamic]] = []  # tensors and numbers found on the way
        self._live_of: dict[Any, Dynamic] = {}
        self._weight_of: dict[int, Dynamic] = {}  # by id of the tensor
        self._weight_names: dict[int, str] = {}
        self.functions = Functions(self)
        self._number_of: dict[int, int] = {}
        self.observed: dict[Any, tuple[str, int] | None] = {}  # what foreign calls have given so far
        self._symbols: set[str] = set()
        self.has_effects = False
        self.defers = False  # something is written when the program ends
        self.puts: dict[effects.Place, tuple[str, Callable[[Any], None] | Put]] = {}  # what writes a place, with its name
        self.catches: int | None = None  # a line whose exceptions the function looks at: Python has to begin such a call anew
        self.assumed: dict[str, type[Exception] | None] = {}  # what Python raises where an assumption does not hold
        self.opens = False  # managers of Python are open in between: a run that raises has to leave them
        self._acts_in_try: int | None = None  # a line of a try that may raise behind an effect
        self._is_strict = False  # no effect may stand anywhere
        self.clobbers = False  # calls of the run may change objects of Python's that are read later
        self.has_rolled = False
        self.has_copied = False  # such a view is a copy
        self.has_viewed = False  # such a scalar is a view
        self.has_shown = False  # tensors that may be such copies have been handed to Python
        self.flags: list[Dynamic] = []  # arguments that have decided branches
        self.learns = False  # the kinds of some results are still to be seen
        self.arguments: dict[str | None, str] = {}  # names by which values of arguments may become known
        self.strings: dict[str, Dynamic] = {}  # arguments that only the run knows: the tensors of their letters, by name
        self.read_strings: set[int] = set()  # the ids of those that are looked at
        self._constants: dict[tuple[int, ...], Any] = {}
        self.containers: dict[str, tuple[str, bool]] = {}  # names of lists and dicts among the arguments by origin; whether they are flat
        self.classes: dict[str, type] = {}  # of inputs that are no plain tensors
        self.examples: dict[str, int] = {}  # sizes of the arguments of the call that is translated, by their text form
        self.exits: dict[Any, Exit] = {}
        self.foreign_calls: list[tuple[str, int, str]] = []  # (file, line, what) of those that runs have made
        self.typed_calls: list[tuple[str, int, str]] = []  # the same of calls whose results are known before the run
        self.stand_in: Value | None = None  # an input that no call gives, where there are no tensors
        self.objects = Objects(self)
        self._blocks: dict[Any, tuple[Any, Any]] = {}  # key -> (label, what is known of sizes there)
        self._iterations: dict[Any, int] = {}  # chain at the head of a loop -> iterations of a loop around it, written out
        self._versions: dict[Any, int] = {}  # chain at the head of a loop -> states in which it has come round
        self._todo: list[Block] = []
        self._steps = 0
        self._place: types.CodeType | None = None  # what the Builder has been told of the place in the source
        self._line = -1
        self._in_try = False
        self._dead: Any = None
        self.state: State = State([], 0)

    # ----------------------------------------------------------------------------------------------------- driving

    def run(self, frame: Frame) -> None:
        """Writes everything that the call of `frame` leads to."""
        self.follow_all(frame)
        self.functions.settle()
        self._write_exits()
        self.functions.write()
        acts = self.has_lasting_writes or (self._is_strict and self.has_effects)
        if self.knowledge.undoes and (self.has_effects or not self._may_undo):
            self.knowledge.undoes = None
            raise Restart
        if self._acts_in_try is not None or (self.catches is not None and acts):
            self.undo_writes()
            raise NotTranslated("an exception that the function catches, beside effects", self._acts_in_try or self.catches)
        if self.opens and not (self.has_effects or self.has_lasting_writes):
            self.catches = frame.line  # Python begins such a call anew, and leaves its managers itself
        writes = self.has_effects or self.lowering.has_written
        if (self.has_copied and (self.has_shown or writes)) or (self.has_viewed and writes):
            self.knowledge.selects |= self.has_copied
            self.knowledge.copies |= self.has_viewed
            raise Restart
        effects.check_order(self)
        self.objects.settle()

    @property
    def has_lasting_writes(self) -> bool:
        """Whether the program writes to tensors, and a run that raises leaves that so."""
        return self.lowering.has_writes and not self.knowledge.undoes

    @property
    def _may_undo(self) -> bool:
        """Whether what the program writes to can be given back: by the engine, or as all of it are inputs."""
        return self.lowering.device == "cpu" or None not in self.lowering.targets

    def undo_writes(self) -> None:
        """Begins anew as a program whose runs take back what they have written, where they raise; returns if that is not so easy."""
        if self.knowledge.undoes is False and self.lowering.has_writes and not self.has_effects and self._may_undo:
            self.knowledge.undoes = True
            raise Restart

    def begin(self) -> None:
        """Forgets the blocks and values of one function of the Module, before another is written."""
        for held in (self._blocks, self._live_of, self._weight_of):
            held.clear()
        self._dead = None

    def follow_all(self, frame: Frame) -> None:
        """Writes the blocks of a function of the Module."""
        entry, state = self.writer.function.label(), State([frame], 0)
        state.has_acted = self.functions.current is not None  # its callers may have
        if self.functions.current is None:
            state.objects.update({**self.state.objects, **self.objects.roots})  # with what those hold
        self._todo.append(Block(entry, state, [], False, True))
        while self._todo:
            block = self._todo.pop()
            self.writer.function.place(block.label)
            taken = self.writer.take_over(block.slots, block.keeps_sizes)
            self.state = block.state.copy({id(old): new for old, new in zip(block.slots, taken)})
            self.guards.later = self.later if self.state.is_clobbered else None
            try:
                if block.first is not None:
                    block.first(self.state)
                self._follow(block.is_shared)
            except Ended:
                pass

    def look_at_exceptions(self) -> None:
        """From here on exceptions are looked at by what is no handler that flow knows."""
        self.catches, self._is_strict = self.state.top.line, True

    def _follow(self, entering: bool) -> None:
        while True:
            state = self.state
            frame = state.top
            if not entering and self._is_join(state):
                self.go_to(state)
            entering = False
            step = frame.steps[frame.pc]
            self._steps += 1
            if self._steps == LARGE:
                self._fix(self.flags)
            if self._steps > MOST_STEPS:
                raise NotTranslated(f"more than {MOST_STEPS} steps: a loop that is known at translation runs too often", step.line)
            if self._place is not frame.code or self._line != step.line:
                self._place, self._line = frame.code, step.line
                self.writer.builder.set_location(frame.code.co_filename, step.line)
            try:
                if frame.is_caught or frame.pc in frame.flow.caught:
                    self._step_in_try(step)
                else:
                    self._step(step)
            except exceptions.Thrown:
                continue

    def _step_in_try(self, step: Step) -> None:
        """A step whose exceptions the function looks at: that matters where it leaves something to the run."""
        before, has_acted = self.writer.count, self.state.has_acted
        self._in_try = True
        try:
            self._step(step)
        finally:
            self._in_try = False
            if self.writer.count > before:
                self.catches = step.line
                if has_acted:
                    self._acts_in_try = step.line

    def _step(self, step: Step) -> None:
        frame = self.state.top
        frame.at = frame.pc
        operation, arg = step.operation, step.arg
        if operation in steps.READS and steps.reads_ahead(self, operation, arg):
            return
        handler = steps.STEPS.get(operation)
        if handler is not None:
            frame.pc += 1
            before = self.lowering.writes
            handler(self, arg)
            self.state.has_acted |= self.lowering.writes > before and not self.knowledge.undoes
        elif operation in BRANCHES:
            self._branch(operation, arg)
        elif operation is Operation.JUMP:
            frame.pc = arg
        elif operation is Operation.RETURN:
            self._return()
        elif operation is Operation.YIELD:
            self._yield()
        elif operation is Operation.FOR_ITER:
            self._for_iter(arg)
        elif operation is Operation.SEND:
            self._send(arg)
        else:
            frame.pc += 1
            raise NotTranslated(operation.name, step.line)

    def _is_join(self, state: State) -> bool:
        frame = state.top
        facts = frame.flow
        if frame.pc in facts.heads:
            return state.forks > frame.forks or not _is_unrolled(frame)
        # Ways that parted before the call meet again behind it.
        return frame.pc in facts.joins and state.forks > frame.forks

    # -------------------------------------------------------------------------------------------------- joins, loops

    def go_to(self, state: State) -> NoReturn:
        """Ends the block: control goes on at the state's step, in code that other ways share."""
        chain = state.chain()
        for place in [p for c, p in self.knowledge.widened if c == chain]:
            state = self._widen(state, chain, place)
        places = state.places()
        description = Description()
        keys = {place: description.of(value) for place, value in places.items()}
        key = (chain, state.is_clobbered, state.has_acted, tuple(state.pending), tuple(keys.items()))
        sizes = None
        if chain not in self.knowledge.blurred:
            sizes = [(_sizes_key(self.writer.known_sizes(slot)), slot.is_fresh, slot.root) for slot in description.slots]
        label, before = self._blocks.get(key, (None, sizes))
        if before != sizes:
            self.knowledge.blurred.add(chain)
            raise Restart
        if label is None:
            if state.top.pc in state.top.flow.heads and not _is_unrolled(state.top):
                self._learn(chain, state, keys, places)
            label = self.writer.function.label()
            self._blocks[key] = label, sizes
            self._todo.append(Block(label, state, description.slots, True, sizes is not None))
        self.writer.hand_over(description.slots)
        self.writer.function.jump(label)
        raise Ended

    def _widen(self, state: State, chain: Any, place: Any) -> State:
        """Makes what a place holds a value of the run."""
        found = state.holder(place)
        if found is None:  # the place holds another kind of object on this way
            return state
        holder, name = found
        value = holder[name]
        if isinstance(value, Known) and type(value.object) in (bool, int, float):
            holder[name] = self.writer.constant(value.object)
        elif isinstance(value, Dynamic) and value.anywhere is not None:
            holder[name] = Dynamic(value.kind, value.native, None, value.dtype, value.rank)
        elif isinstance(value, ArgumentItems):
            raise NotTranslated("a list of the caller's that grows in a loop", state.top.line)
        elif isinstance(value, ListValue):
            element = self.knowledge.elements[chain, place]
            if value.items and methods.element_of(value.items) != element:
                raise NotTranslated("a list of values of several kinds that grows in a loop", state.top.line)
            for item in value.items:
                if isinstance(item, RunList):
                    item.is_shared = True
            if not self.is_for_file:  # whose results are what they are in the run
                element = growing(element)
            # Every name of the list has to see the new one.
            return state.copy({id(value): RunList(self.writer.list_of(value.items, element), element)})
        return state

    def _learn(self, chain: Any, state: State, keys: dict[Any, Any], places: dict[Any, Value]) -> None:
        """A loop comes round with another state: numbers that differ are of the run from the start."""
        before: Passed = state.heads.get(chain, Passed(state.forks, {}, {}))
        state.heads[chain] = Passed(state.forks, keys, places)
        if before.is_of_before:
            self._iterations[chain] = self._iterations.get(chain, 0) + 1
        # Numbers of iterations that are written out stay known, where there are few; what lists hold would make ways of its own.
        is_other = before.is_of_before and self._iterations[chain] <= MOST_ITERATIONS
        if before.forks != state.forks:  # else no branch of the run lies between: the loop is known at translation
            differing: dict[Any, tuple[Value, Value]] = {}
            for place, value in places.items():
                if place[0] != "written" and place in before.places and before.keys[place] != keys[place]:
                    apart = parts_apart(value, before.places[place])
                    kept = (part for part in apart if part[0] or not is_other or isinstance(part[1], ListValue))
                    differing.update((place + path, (new, old)) for path, new, old in kept)
            changed = {(chain, place) for place, (new, old) in differing.items() if _are_alike(new, old)}
            for place, (new, old) in differing.items():
                element = methods.element_of(new.items) if isinstance(new, ListValue) and isinstance(old, ListValue) else None
                if element is not None:
                    self.knowledge.elements[chain, place] = element
                    changed.add((chain, place))
            if changed - self.knowledge.widened:
                self.knowledge.widened |= changed
                raise Restart
            self._versions[chain] = self._versions.get(chain, 0) + 1
            if self._versions[chain] > MOST_VERSIONS:
                raise NotTranslated("a loop whose values change their kind every time", state.top.line)

    # ------------------------------------------------------------------------------------------------------ branches

    def _branch(self, operation: Operation, target: int) -> None:
        frame = self.state.top
        value = frame.stack.pop()
        following = frame.pc + 1
        if operation in _CONDITIONS and special.has_own_truth(self, value):
            special.ask_truth(self, value)  # the branch follows again, on the answer
            return
        if operation in _CONDITIONS:
            known, condition = evaluate.truth(self, value)
            if condition is None:
                frame.pc = target if known == (operation is Operation.BRANCH_TRUE) else following
                return
            then, otherwise = (target, following) if operation is Operation.BRANCH_TRUE else (following, target)
            self.fork(condition, then, otherwise)
        else:
            wants_none = operation is Operation.BRANCH_NONE
            if isinstance(value, Dynamic) and value.kind == "object":
                condition = self.foreign("is None", lambda x: x is None, [value], result="bool")
                self.fork(condition, *((target, following) if wants_none else (following, target)))
            is_none = isinstance(value, Known) and value.object is None
            frame.pc = target if is_none == wants_none else following

    def fork(
        self,
        condition: Value,
        then: int,
        otherwise: int,
        first: Callable[[State], None] | None = None,
        leave: int = 0,
        push: Sequence[Value] = (),
    ) -> NoReturn:
        """Ends the block with a branch of the run. `first` begins the way of a true condition; the other one drops `leave` values and
        pushes others."""
        state = self.state
        state.forks += 1
        self._note_flag(condition)
        state.top.pc = otherwise
        negative = state.copy(_decided(condition, False))
        if leave:
            negative.top.stack[-leave:] = push
        state.top.pc = then
        positive = state.copy(_decided(condition, True))
        slots: dict[int, Dynamic] = {}
        for way in (positive, negative):
            description = Description()
            description.of(list(way.places().values()))
            slots.update((id(slot), slot) for slot in description.slots)
        union = list(slots.values())
        operand = self.writer.raw(condition)
        self.writer.hand_over(union)
        labels = [self.writer.function.label() for _ in range(2)]
        self.writer.function.branch(operand, *labels)
        self._todo.append(Block(labels[1], negative, union, False, True))
        self._todo.append(Block(labels[0], positive, union, False, True, first))
        raise Ended

    def _note_flag(self, condition: Value) -> None:
        """A flag among the arguments decides a branch: in a large function, of which it may leave out half, it is known."""
        if isinstance(condition, Dynamic) and condition.kind == "bool" and condition.anywhere in self.arguments:
            self.flags.append(condition)
            if self._steps > LARGE:
                self._fix(self.flags)

    def _for_iter(self, target: int) -> None:
        frame = self.state.top
        iterator = frame.stack[-1]
        if isinstance(iterator, GeneratorValue) and iterator.pc >= 0:
            self._resume(iterator)
            return
        known, condition = evaluate.has_next(self, iterator)
        if condition is None:
            if known:
                frame.stack.append(evaluate.advance(self, iterator))
                frame.pc += 1
                self.state.begin_iteration(frame.pc, target)
            else:
                frame.stack.pop()
                frame.pc = target
            return
        self.fork(condition, frame.pc + 1, target, self._advance, leave=1)

    def _advance(self, state: State) -> None:
        state.top.stack.append(evaluate.advance(self, state.top.stack[-1]))

    def _send(self, target: int) -> None:
        frame = self.state.top
        sent = frame.stack.pop()
        iterator = frame.stack[-1]
        if isinstance(iterator, GeneratorValue) and iterator.pc >= 0:
            iterator.receive(sent)
            self._resume(iterator)
            return
        if not is_none(sent):
            raise NotTranslated("a value sent to an iterator", frame.line)
        known, condition = evaluate.has_next(self, iterator)
        if condition is not None:
            self.fork(condition, frame.pc + 1, target, self._advance, leave=1, push=[Known(None)])
        if known:
            frame.stack.append(evaluate.advance(self, iterator))
            frame.pc += 1
        else:
            frame.stack[-1] = Known(None)
            frame.pc = target

    # The caller of a generator stands at its FOR_ITER or SEND, with the generator on top of the stack, until the next value comes.
    def _resume(self, generator: GeneratorValue) -> None:
        frames = self.state.frames
        if any(frame.is_generator and caller.stack[-1] is generator for caller, frame in zip(frames, frames[1:])):
            raise NotTranslated("a generator that resumes itself", frames[-1].line)
        frame = Frame(generator.code, generator.globals, self.state.forks)
        frame.locals, frame.stack, frame.pc = dict(generator.locals), list(generator.stack), generator.pc
        frame.is_generator, frame.is_caught = True, self._in_try
        self.state.frames.append(frame)

    def _yield(self) -> None:
        frame = self.state.frames.pop()
        caller = self.state.top
        generator = caller.stack[-1]
        assert frame.is_generator and isinstance(generator, GeneratorValue)
        facts = frame.flow
        if frame.pc in facts.closing and frame.pc in facts.caught and not generator.is_managed:
            raise NotTranslated("a generator that stops inside a try: it may be closed there", frame.line)
        value = frame.stack.pop()
        generator.locals, generator.stack, generator.pc = frame.locals, [*frame.stack, Known(None)], frame.pc + 1
        caller.stack.append(value)
        caller.pc += 1
        if self.state.forks > frame.forks:
            self.go_to(self.state)

    # --------------------------------------------------------------------------------------------------------- calls

    def enter(self, code: types.CodeType, globals_: dict[str, Any], locals_: dict[str, Value], on_return: Value | None = None) -> Frame:
        """Follows a call of a Python function: the frame, which its caller may still change."""
        most = MOST_FRAMES if self.state.forks == self.state.frames[0].forks else MOST_OPEN_FRAMES
        if len(self.state.frames) >= most:
            self.functions.learn()
            raise NotTranslated(f"calls nested deeper than {most}", self.state.top.line)
        frame = Frame(code, globals_, self.state.forks)
        frame.is_caught = self._in_try
        frame.locals = locals_
        frame.on_return = on_return
        self.state.frames.append(frame)
        return frame

    def _return(self) -> None:
        frame = self.state.top
        value = frame.stack.pop()
        if isinstance(frame.on_return, classes.Body):
            value = classes.finished(self, frame, frame.on_return)
            frame = self.state.top
        elif frame.on_return is not None:
            value = frame.on_return
        if len(self.state.frames) == 1 and self.functions.current is not None:
            self.functions.leave(value)
        if frame.code in self.knowledge.recursive:
            self.functions.note(frame.code, value)
        if len(self.state.frames) == 1:
            self._leave(value)
        self.state.frames.pop()
        caller = self.state.top
        if frame.is_generator:
            generator = caller.stack.pop()
            assert isinstance(generator, GeneratorValue)
            generator.locals, generator.stack, generator.pc = {}, [], -1
            waiting = caller.steps[caller.pc]
            caller.pc = waiting.arg
            if caller.code is helpers.NEXT and not is_none(value):
                raise NotTranslated("the value of a generator, in a StopIteration", frame.line)
            if waiting.operation is Operation.SEND:
                caller.stack.append(value)
        elif frame.place is not None:
            if frame.place:
                caller.stack[-frame.place] = value
        else:
            caller.stack.append(value)
        if self.state.forks > frame.forks:
            self.go_to(self.state)

    def _leave(self, value: Value) -> NoReturn:
        writes = effects.leaving(self)
        if self.is_for_file:
            if writes:
                raise NotTranslated("a write to an object that outlives the call", self.state.top.line)
            value = results.computed(value, self.writer.constant)
        if self.private:
            value = classes.freed(self, value)
        given = TupleValue([value, *(written for _, written in writes)]) if writes else value
        self.keep_private(given)
        self.has_shown |= self._are_shown(given, has_inputs=False)
        self.keep_unpacked(given)  # the caller gets the tensor itself, or a view of it
        template, values = results.template(given)
        places = tuple(place for place, _ in writes)
        key = (template, tuple((v.kind, v.dtype, v.rank) for v in values), places)
        found = self.exits.get(key)
        if found is None:
            found = self.exits[key] = Exit(self.writer.function.label(), template, values, places)
        self.writer.hand_over(values)
        self.writer.function.jump(found.label)
        raise Ended

    def end(self) -> NoReturn:
        """Goes on with another block."""
        raise Ended

    def write_dead(self, count: int) -> None:
        """Writes what is behind calls that raise, in a function of the Module with `count` results."""
        if self._dead is not None:
            self.writer.function.place(self._dead)
            self.writer.function.give([None] * count)

    def _write_exits(self) -> None:
        exits = list(self.exits.values())
        if not exits and self._dead is None:
            raise NotTranslated("a function that never returns")
        several = len(exits) > 1 or self._dead is not None
        most = max((len(e.values) for e in exits), default=0)
        for number, leaving in enumerate(exits):
            self.writer.function.place(leaving.label)
            results: list[Any] = [v.native for v in self.writer.take_over(leaving.values, keeps_sizes=False)]
            results += [None] * (most - len(results))
            self.writer.function.give([number, *results] if several else results)
        if self.is_for_file and several:
            raise NotTranslated("results of several structures")
        if self._dead is not None:
            self.writer.function.place(self._dead)
            self.writer.function.give([-1, *[None] * most])
        self.several_exits = several

    def unreachable(self) -> NoReturn:
        """Ends the block behind a call that raises."""
        if self._dead is None:
            self._dead = self.writer.function.label()
        self.writer.function.jump(self._dead)
        raise Ended

    # ------------------------------------------------------------------------------------------------------- foreign

    def site(self) -> tuple[Any, ...]:
        """Names the step that is being followed, on every attempt alike."""
        return self.state.chain()

    def attempt(self, write: Callable[[], Value], otherwise: Callable[[], Value]) -> Value:
        """What `write` writes; where no op expresses it, the foreign call that `otherwise` writes."""
        site = self.site()
        if site in self.knowledge.foreign:
            return otherwise()
        try:
            return write()
        except NotKnown as error:
            self._fix(error.values)
            if error.began:
                self.knowledge.foreign.add(site)
                raise Restart from None
            return otherwise()
        except NotWritten:
            return otherwise()
        except FlexorError:
            # The Builder keeps its first refusal: begin anew without this op.
            self.knowledge.foreign.add(site)
            raise Restart from None

    def _fix(self, values: Sequence[Dynamic]) -> None:
        """Begins anew with the values of arguments known, where they are numbers of few values: axes, counts, flags."""
        names = {self.arguments[v.anywhere] for v in values if v.kind in ("int", "bool") and v.anywhere in self.arguments}
        numbers = {self.objects.number_paths[v.anywhere] for v in values if v.anywhere in self.objects.number_paths}
        if names or numbers:
            self.knowledge.fixed |= names
            self.knowledge.known_numbers |= numbers
            raise Restart

    def assume(self, condition: Value, what: str, raises: type[Exception] | None = None) -> None:
        """Goes on as if a condition of the run held; where it does not, Python runs the call. Behind an effect it cannot: there it has
        to be an error of the caller's, of a class `raises`, and what may be none is Python's from the start."""
        if not isinstance(condition, Known):
            if self.state.has_acted and raises is None:
                self.undo_writes()
                raise NotWritten(what)
            self.assumed[what] = raises
            self.writer.function.require(self.writer.raw(condition), ASSUMPTION + UNTOUCHED * (not self.state.has_acted) + what)
        elif not condition.object:
            raise NotWritten(what)

    def foreign(
        self,
        what: str,
        function: Callable[..., Any],
        arguments: Sequence[Value],
        keywords: dict[str, Value] | None = None,
        *,
        result: str = "object",
        is_pure: bool = True,
        learns: bool = False,
        clobbers: bool = False,
        promise: foreign.Promise | None = None,
        raises: bool = False,
        bookkeeping: bool = False,
    ) -> Value:
        """Lets Python call `function` in the run. `result` is the kind of its result; pure: it changes nothing, and
        may be done again; learns: what kind of tensor it gives is learnt from a run, as that of pure calls is; clobbers: it may
        change objects that the function reads later; promise: the tensor that it gives; raises: it does nothing else;
        bookkeeping: it is the front end's own."""
        if self.is_for_file:
            raise NotTranslated(f"a call of Python: {what} in {self.state.top.code.co_filename}", self.state.top.line)
        learns = learns or is_pure
        if "out" in (keywords or {}):  # written by functions of the frameworks
            is_pure = False
            if self.lowering.framework == "torch" and any(True for _ in dynamics(keywords["out"])):  # type: ignore[index]
                raise NotTranslated(f"an output argument of {what}, which may get another shape", self.state.top.line)
        self.keep_private((*arguments, Known(function), *(keywords or {}).values()))
        self.keep_unpacked((*arguments, *(keywords or {}).values()))
        if (self.state.pending or self.state.objects) and not bookkeeping:
            effects.flush_before(self, (*arguments, *(keywords or {}).values()), clobbers)
        if not is_pure:
            if self._in_try:
                self._acts_in_try = self.state.top.line
            self.state.has_acted = True
        is_own = raises or bookkeeping
        if promise is None and learns and is_pure and result == "object" and typed.is_of_torch(function):
            promise = typed.of_framework(self, what, function, list(arguments), keywords or {})
        self.has_shown |= not is_own and self._are_shown((*arguments, *(keywords or {}).values()))
        written = foreign.write(self, what, function, arguments, keywords or {}, result, is_pure, learns, clobbers, promise, is_own)
        if clobbers:
            self.clobbers = self.state.is_clobbered = True
            self.guards.later = self.later
            for value in (*arguments, *(keywords or {}).values()):
                if isinstance(value, Known) and isinstance(value.object, attributes.CHANGEABLE):
                    attributes.mark_changed(self, value.object)
        return written

    def known(self, obj: Any) -> Value:
        """An object that was found. Tensors are not for here: they are inputs."""
        if attributes.is_tensor_object(obj):
            return self.live(("object", id(obj)), attributes.type_text(obj, with_sizes=True), Place("object", obj), obj)
        return Known(obj)

    def _are_shown(self, values: Any, *, has_inputs: bool = True) -> bool:
        """Whether there are tensors among values that may be copies in the place of views, or that views may be of."""
        return any(not v.is_fresh and v.kind in ("tensor", "list") and (has_inputs or v.anywhere is None) for v in dynamics(values))

    def constant(self, numbers: tuple[int, ...]) -> Value:
        """A tensor of integers that the program holds."""
        if numbers not in self._constants:
            array: Any = np.array(numbers, np.int64)
            if self.lowering.framework == "torch":
                array = sys.modules["torch"].from_numpy(array).to(self.lowering.device)
            self._constants[numbers] = array
        return self.known(self._constants[numbers])

    def made(self, cls: type, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Known:
        """An object that nothing but the program sees, made of plain objects; one serves every call, as it is not written to."""
        if id(cls) in self.private:
            raise NotTranslated(f"a layer of a class of the function's own: {cls.__name__}", self.state.top.line)
        key = cls, self.site(), repr((arguments, keywords))
        if key not in self.knowledge.made:
            self.knowledge.made[key] = cls(*arguments, **keywords)
        return Known(self.knowledge.made[key])

    def hold_privately(self, obj: Any) -> None:
        """Notes an object that nothing but the program is to see, or to change."""
        self.private[id(obj)] = obj

    def keep_private(self, values: Any, holder: int | None = None) -> None:
        """Begins anew where others would see an object of `made`, or it is written to: Python makes those of its class."""
        if holder in self.private:
            raise NotTranslated("a write to what a class of the function's own holds", self.state.top.line)
        classes.keep(self, values)
        made = [obj for obj in self.knowledge.made.values() if type(obj) not in self.knowledge.by_python]
        seen: set[int | None] = {holder, *(id(value.object) for value in knowns(values))} if made else set()
        if made_by := {type(obj) for obj in made if id(obj) in seen or id(vars(obj)) in seen}:
            self.knowledge.by_python |= made_by
            raise Restart

    def string(self, name: str, letters: Dynamic) -> StringValue:
        """An argument that only the run knows."""
        self.strings[name] = letters
        return StringValue(letters)

    def read_letters(self, value: StringValue) -> Dynamic:
        """The numbers of the letters of an argument."""
        self.read_strings.add(id(value.letters))
        return value.letters

    @property
    def unsuited_strings(self) -> set[str]:
        """Arguments that had better be known: those that are not read, and all of them beside calls of Python or on a device."""
        if self.foreign_calls or self.typed_calls or self.lowering.device != "cpu":
            return set(self.strings)
        return {name for name, letters in self.strings.items() if id(letters) not in self.read_strings}

    def begin_in(self, framework: str) -> None:
        """Begins anew in a framework; returns where tensors among the inputs have said which it is."""
        constants = {id(array) for array in self._constants.values()}
        others = (self.stand_in, *self.strings.values(), *(value for obj, _, value in self.live_inputs if id(obj) in constants))
        if self.knowledge.framework is None and all(v.kind != "tensor" or any(v is o for o in others) for v in self.writer.inputs):
            self.knowledge.framework = framework
            self.knowledge.fix(set())  # what the other framework left to Python is forgotten
            raise Restart

    def check_framework(self, obj: Any) -> None:
        """Refuses arrays in a function of torch's and the other way round: a program computes with one framework's rules."""
        if isinstance(obj, (np.ndarray, np.generic)) != (self.lowering.framework == "numpy") and not isinstance(obj, (bool, int, float)):
            self.begin_in("numpy" if self.lowering.framework == "torch" else "torch")
            line = self.state.top.line if self.state.frames else None
            raise NotTranslated("tensors of torch and of NumPy in one function", line)
        if attributes.is_tensor_object(obj):
            place = attributes.place_of(obj)
            if self.is_placed and place != self.lowering.device:
                line = self.state.top.line if self.state.frames else None
                raise NotTranslated(f"tensors on {self.lowering.device} and on {place} in one function", line)
            self.is_placed, self.lowering.device = True, place

    def declare(self, symbol: str, lo: int, hi: int | None) -> None:
        """A size of arguments with its range; the first declaration counts."""
        if symbol not in self._symbols:
            self._symbols.add(symbol)
            self.writer.builder.symbol(symbol, lo, hi)

    def class_of_input(self, value: Dynamic) -> type | None:
        """The class of an argument or parameter."""
        return self.classes.get(value.anywhere or "")

    def is_live(self, value: Value) -> bool:
        """Whether a value is fetched anew for every call."""
        return any(found is value for _, _, found in self.live_inputs) or (isinstance(value, Dynamic) and value.weight is not None)

    def finder(self, value: Dynamic) -> Callable[[], Any] | None:
        """What fetches a tensor that is found anew for every call, or is packed; None for any other."""
        if value.weight is not None and self.weights is not None:
            held = self.weights.named(value.weight).tensor
            return lambda: held
        return next((place for _, place, found in self.live_inputs if found is value and place.kind != "argument"), None)

    def are_one(self, a: Value, b: Value) -> bool:
        """Whether two inputs that are fetched are one object, which is guarded."""
        first, second = (next(place for _, place, found in self.live_inputs if found is value) for value in (a, b))
        answer = first() is second()
        self.guards.call(lambda: first() is second(), answer)
        return answer

    def live(self, key: Any, text: str, place: Place, obj: Any) -> Dynamic:
        """An input that is fetched anew for every call: a parameter of a module, a tensor of a closure."""
        found = self._live_of.get(key)
        if found is None:
            self.check_framework(obj)
            if self.weights is not None and attributes.is_tensor_object(obj) and self.weights.takes(key, obj):
                if id(obj) not in self.knowledge.unpacked and key not in self.knowledge.live:
                    return self._weight(key, place, obj)
            if self.functions.current is not None:
                self.functions.hand(key, text, place, obj)
            found = self.writer.input(f"live{len(self.live_inputs)}", text)
            self._live_of[key] = found
            self.live_inputs.append((obj, place, found))
            self._number_of[id(found)] = len(self.live_inputs) - 1
            self.classes[found.anywhere or ""] = type(obj)
        if found.weight is None and self.state.is_clobbered:
            self.later_inputs.add(self._number_of[id(found)])
        return found

    def take_over_live(self, key: Any, parameter: Dynamic, obj: Any) -> None:
        """What is read for every call is a parameter of the function of the Module that is written."""
        self._live_of[key] = parameter
        self.classes[parameter.anywhere or ""] = type(obj)

    # ------------------------------------------------------------------------------------------------------- weights

    def _weight(self, key: Any, place: Place, obj: Any) -> Dynamic:
        """A tensor as a weight of the Module; one, wherever it is found."""
        assert self.weights is not None
        entry = self.weights.add(key, place, obj)
        if self.state.is_clobbered:
            self.later.call(entry.is_unchanged, True)
        name = self._weight_names.get(id(obj))
        if name is None:
            name, dtype = entry.name, dtype_name(obj.dtype)
            assert dtype is not None
            pointer, kept = attributes.plain_memory(obj)
            self.writer.add_weight(name, pointer, dtype, obj.shape)
            del kept
            self._weight_names[id(obj)] = name
        found = self._weight_of.get(id(obj))
        if found is None:
            found = self._weight_of[id(obj)] = self.writer.weight(name)
            self.classes[found.anywhere or ""] = type(obj)
        self._live_of[key] = found
        return found

    def _unpack(self, name: str) -> NoReturn:
        """Begins anew with a weight that is read for every call, as Python or the caller sees it, or it is written to."""
        assert self.weights is not None
        if self.is_for_file:
            raise NotTranslated(f"a write to the weight {name}", self.state.top.line)
        self.knowledge.unpacked.add(id(self.weights.named(name).tensor))
        raise Restart

    def keep_unpacked(self, values: Any) -> None:
        """What Python is handed has to be the tensor that it knows: weights among values are read anew for every call."""
        for value in dynamics(values):
            if value.weight is not None and not self.is_for_file:
                self._unpack(value.weight)


def _is_unrolled(frame: Frame) -> bool:
    """Whether a loop head stands before an iteration of a loop that is written out."""
    at = {Operation.FOR_ITER: -1, Operation.SEND: -2}.get(frame.steps[frame.pc].operation)
    return at is not None and evaluate.is_static(frame.stack[at])


def _sizes_key(sizes: tuple[Value | None, ...] | None) -> Any:
    return None if sizes is None else tuple(v.object if isinstance(v, Known) else v and v.anywhere for v in sizes)  # type: ignore[attr-defined]


def _decided(condition: Value, outcome: bool) -> dict[int, Value]:
    """What a condition is on its two ways, wherever else it stands."""
    return {id(condition): Known(outcome)} if isinstance(condition, Dynamic) and condition.kind == "bool" else {}


def _are_alike(a: Value, b: Value | None) -> bool:
    """Whether one variable of the run can hold both: numbers, or tensors of one dtype and rank."""
    if isinstance(a, Dynamic) and isinstance(b, Dynamic) and a.kind == b.kind == "tensor":
        return (a.dtype, a.rank) == (b.dtype, b.rank)
    return is_number(a) and is_number(b)
