"""A translation: one Module with what it assumes, and what its run gives."""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from flexor._arguments import Shape
from flexor._flexor_fast import JitBase
from flexor._module import Module
from flexor.errors import FlexorError, Interrupted, StaleWeights
from flexor.frontend.cpython import attributes, foreign, results, texts
from flexor.frontend.cpython import objects as argument_objects
from flexor.frontend.cpython.translate import Translator
from flexor.frontend.cpython.writer import dtype_name
from flexor.session import Session, default_session


class Translation:
    """One Module with what it assumes. `run` gives what the function returns."""

    def __init__(self, translator: Translator, session: Session) -> None:
        self.translator, self.session = translator, session
        self.key: Any = None  # the arguments that it serves
        self.forms: set[Any] = set()  # of calls that the compiled call path was asked to serve
        self.weights = translator.weights if translator.weights is not None and translator.weights.entries else None
        self.check = translator.guards.compile()
        self.open, self.open_quickly = None, None  # look at objects of the arguments
        if translator.objects:
            self.open, self.open_quickly = translator.objects.compile(), translator.objects.compile(knows_leaves=True)
            translator.objects.let_go()
        self.later: Callable[[], bool] | None = None
        if translator.clobbers and (len(translator.later) or translator.later_inputs):
            self.later = translator.later.compile()
        self.is_watched = self.later is None  # has run without a change of what it reads behind calls of Python
        self.module = Module(translator.writer.builder.build())
        self.call = self.module if session is default_session() else functools.partial(session.run, self.module)
        self.fetches = [place for _, place, _ in translator.live_inputs]
        self.expected = [_live_kind(obj) if place.kind != "argument" else None for obj, place, _ in translator.live_inputs]
        # What the first call's objects held is not kept.
        translator.live_inputs = [(None if place.kind == "argument" else obj, place, v) for obj, place, v in translator.live_inputs]
        self.input_names: list[str] = [str(d.anywhere).removeprefix("input ") for d in translator.writer.inputs]
        # Scalars of NumPy, which are arrays without axes in the run.
        self.scalars = {n.removeprefix("input ") for n, cls in translator.classes.items() if issubclass(cls, np.generic)}
        self.has_strings = bool(translator.strings)
        self.is_numpy = translator.lowering.framework == "numpy"
        self.templates = [leaving.template for leaving in translator.exits.values()]
        self.builders = [results.builder(template, self.is_numpy) for template in self.templates]
        self.puts = [[translator.puts[place][1] for place in leaving.places] for leaving in translator.exits.values()]
        self.counts = [len(leaving.values) for leaving in translator.exits.values()]
        self.several = translator.several_exits
        self.has_effects = translator.has_effects or translator.lowering.has_writes
        self.has_writes = translator.lowering.has_writes
        # A run that raises takes its writes back: the engine does that on the host, elsewhere these inputs are copied before.
        self.undoes = bool(translator.knowledge.undoes)
        # What is written to among the inputs; all tensors, where that may be a view of any.
        targets = translator.lowering.targets
        self.targets = [i for i, d in enumerate(translator.writer.inputs) if d.kind == "tensor" and (d.anywhere in targets or None in targets)]
        if self.undoes and translator.lowering.device == "cpu":
            self.module._restores = True
        self.undone = self.targets if self.undoes and translator.lowering.device != "cpu" else []
        # What pure foreign calls give is not known before a run; such a run is interpreted, as the program changes after it.
        self.is_settled = not translator.learns
        for hook in translator.writer.hooks:
            for place in (session, _interpreter()):
                place.bind(hook, _Hook(translator, hook), is_typed=hook in translator.writer.typed)

    def live_objects(self, shape: Shape) -> list[Any] | None:
        """What the program reads of the world around it and of objects among the arguments; None where that is gone or has another
        type than it had. Raises StaleWeights where it has packed what has been changed."""
        try:
            if self.open is not None:
                opened = self.open(shape.objects, shape.containers)
                if opened is None:
                    return None
                shape.found, argument_objects.opened.leaves = opened
            if self.weights is not None and not self.weights.are_current():
                return None
            objects = [fetch() for fetch in self.fetches]
        except StaleWeights:
            raise
        except Exception:  # deleted, or behind something of the user's that raises
            return None
        for obj, expected in zip(objects, self.expected):
            if expected is not None and _live_kind(obj) != expected:
                return None
        return objects

    def inputs(self, shape: Shape, live: list[Any]) -> list[Any]:
        """What the program is called with."""
        values = shape.leaves + live
        if self.has_strings:
            values = [texts.letters(value, self.is_numpy) if type(value) is str else value for value in values]
        return values

    def holds(self, live: list[Any]) -> bool:
        """Whether what the program reads behind calls of Python is what it was when the program began."""
        assert self.later is not None
        if not self.later():
            return False
        try:
            return all(_is_same(self.fetches[number](), live[number]) for number in self.translator.later_inputs)
        except Exception:
            return False

    def run(self, shape: Shape, live: list[Any]) -> Any:
        """Runs the program. Raises what Python would raise."""
        values = self.inputs(shape, live)
        run = foreign.run
        outer = run.objects, run.holds, run.acted, run.open
        objects: list[Any] = []
        run.objects, run.raised, run.trace, run.acted, run.open = objects, None, None, False, []
        run.holds = functools.partial(self.holds, live) if self.later is not None else None
        run.is_undone, saved = False, _saved([values[i] for i in self.undone])
        try:
            out = self.call(*values) if self.is_settled else _interpreter().run(self.module, *values)
        except BaseException as error:
            # What a call of Python raised has its own cause and context, and no frame of the run.
            is_of_python = error is run.raised or (run.raised is not None and isinstance(error, Interrupted))
            run.is_undone = self.undoes
            _give_back(saved)
            if run.open and (run.acted or (self.has_writes and not run.is_undone)):
                run.leave_all((run.raised if is_of_python else None) or error)
            if not is_of_python:
                raise
        finally:
            run.has_acted = run.acted
            run.objects, run.holds, run.acted, run.open = outer
        if run.raised is not None:
            raised, trace = run.raised, run.trace
            run.raised = run.trace = None
            raise raised.with_traceback(trace)
        run.is_undone = False  # which a call in the run may have left
        whole = out if isinstance(out, tuple) and (self.several or self.counts[0] != 1) else (out,)
        return self.finish(whole, values, shape.containers, objects, shape.found)

    @contextlib.contextmanager
    def untouched(self, inputs: Sequence[Any]) -> Iterator[None]:
        """Gives the inputs that the program writes to their values back at the end."""
        saved = _saved([inputs[i] for i in self.targets])
        try:
            yield
        finally:
            _give_back(saved)

    def has_acted(self) -> bool:
        """Whether a run that has just raised on this thread has done what must not be done again."""
        return (self.has_writes and not foreign.run.is_undone) or (bool(self.translator.writer.hooks) and foreign.run.has_acted)

    def finish(
        self,
        outputs: Sequence[Any],
        inputs: Sequence[Any],
        containers: Sequence[Any] = (),
        objects: Sequence[Any] = (),
        found: Sequence[Any] = (),
    ) -> Any:
        """What the function returns where the program has returned `outputs`; makes the writes that leave with them."""
        number, *given = outputs if self.several else (0, *outputs)
        if number < 0:
            raise FlexorError("a call that raised when the function was translated has not raised")
        result = self.builders[number](given, _Inputs(self.input_names, self.scalars, inputs, containers, found), objects)
        if self.puts[number]:
            result, *written = result
            for put, value in zip(self.puts[number], written):
                if isinstance(put, argument_objects.Put):
                    put.write(found, value)
                else:
                    put(value)
        return result

    # ------------------------------------------------------------------------------------------ the compiled call path

    def add_to(self, jit: JitBase, shape: Shape, form: tuple[int, tuple[str, ...]], more_guards: list[Any]) -> None:
        """Gives calls of one form, whose steps are `shape.steps`, to the compiled call path, where that serves such programs."""
        is_own = self.is_settled and self.is_watched and self.later is None and not self.undone and not self.translator.writer.hooks
        if not is_own or self.scalars or shape.steps is None:
            return
        positional, keywords = form
        leaves = self.translator.objects.leaf_kinds()
        live = [
            (p.kind, p.holder, p.key, *(leaves[p.key] if p.kind == "argument" else (type(obj), *_sizes(obj))))
            for obj, p, _ in self.translator.live_inputs
        ]  # fmt: skip
        packed = self.weights.watched() if self.weights is not None else []
        simple = None if self.several or self.puts[0] else _simple_results(self.templates[0])
        numbers, is_tuple = simple or ((), False)
        jit._add(
            positional, keywords or None, shape.steps, live, packed, [self.check, *more_guards], self.module, len(self.input_names),
            numbers, is_tuple, self.is_numpy, self.open_quickly, None if simple else self.finish, self, self.session,
        )  # fmt: skip


def _saved(tensors: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Tensors, without the elements that stand where others do, each with a copy of what it holds."""
    distinct = []
    for tensor in tensors:
        strides = tensor.strides if isinstance(tensor, np.ndarray) else tensor.stride()
        distinct.append(tensor[tuple(slice(None) if step else slice(0, 1) for step in strides)])
    return [(tensor, tensor.copy() if isinstance(tensor, np.ndarray) else tensor.detach().clone()) for tensor in distinct]


def _give_back(saved: Sequence[tuple[Any, Any]]) -> None:
    """Writes to tensors what they held."""
    for target, before in saved:
        target[...] = before


def _sizes(obj: Any) -> tuple[str | None, tuple[int, ...] | None, int]:
    if not attributes.is_tensor_object(obj):
        return None, None, -1
    return dtype_name(obj.dtype), tuple(obj.shape), attributes.cuda_index(obj)


def _simple_results(template: results.Template) -> tuple[tuple[int, ...], bool] | None:
    """The outputs that a result consists of, and whether they stand in a tuple; None for every other result."""
    parts = template[2] if template[0] == "tuple" and template[1] is tuple else (template,)
    if not all(part[0] == "value" and part[2] in ("tensor", "int", "float", "bool") for part in parts):
        return None
    return tuple(part[1] for part in parts), template[0] == "tuple"


def serving(translations: list[Translation], shape: Shape) -> tuple[Translation, list[Any]] | None:
    """The first translation whose guards hold, and what it reads of the world around it."""
    for translation in translations:
        if translation.check() and (live := translation.live_objects(shape)) is not None:
            return translation, live
    return None


class _Hook:
    """A hook of a session, which keeps hooks for ever: it does not keep what it calls."""

    __slots__ = ("name", "translator")

    def __init__(self, translator: Translator, name: str) -> None:
        self.translator, self.name = weakref.ref(translator), name

    def __call__(self, *natives: Any) -> Any:
        translator = self.translator()
        assert translator is not None  # the program that calls is running
        return translator.writer.hooks[self.name](*natives)


def _is_same(found: Any, expected: Any) -> bool:
    return found is expected or (type(found) is type(expected) and type(found) in (bool, int, float) and repr(found) == repr(expected))


@functools.cache
def _interpreter() -> Session:
    """Where programs run that are about to change."""
    return Session(compile=False)


class _Inputs:
    """Inputs by name, looked up when a result needs one."""

    __slots__ = ("containers", "found", "names", "scalars", "shared", "values")

    def __init__(
        self, names: list[str], scalars: set[str], values: Sequence[Any], containers: Sequence[Any], found: Sequence[Any]
    ) -> None:
        self.names, self.scalars, self.values, self.containers = names, scalars, values, containers
        self.found = found  # objects of the arguments that are known by what they hold
        self.shared: dict[int, Any] = {}  # what the result has in several places

    def __getitem__(self, name: str) -> Any:
        if name.startswith("container "):
            return self.containers[int(name.removeprefix("container "))]
        found = self.values[self.names.index(name)]
        return found[()] if name in self.scalars else found


def _live_kind(obj: Any) -> Any:
    if not attributes.is_tensor_object(obj):
        return type(obj)
    return type(obj), obj.dtype, tuple(obj.shape), attributes.cuda_index(obj)
