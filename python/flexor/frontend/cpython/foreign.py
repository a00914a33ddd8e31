"""Foreign calls: what Python does in the run, in the place where the function has it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import logging
import sys
import threading
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flexor.errors import NotSupported
from flexor.frontend.cpython import helpers, rows
from flexor.frontend.cpython.decode import NotTranslated, Restart
from flexor.frontend.cpython.values import (
    ArgumentItems,
    ArgumentMapping,
    ArgumentObject,
    ArgumentList,
    DictValue,
    Dynamic,
    InstanceValue,
    Known,
    ListValue,
    RunList,
    SetValue,
    SliceValue,
    TupleValue,
    Value,
    dynamics,
    objects_of,
)
from flexor.frontend.cpython.writer import dtype_name

@dataclasses.dataclass(frozen=True)
class Promise:
    """Dtype and rank of the tensor that a call gives, and its sizes in text form, "?" where only the run knows; () for all of them.
    Of an object that is no tensor the rank is -1: nothing is to be learnt about it."""

    dtype: str
    rank: int
    sizes: tuple[str, ...] = ()


_numbers = itertools.count()
# Calls that read their arguments and leave no trace in the program: a list handed to them may be a new one.
_READERS: set[Any] = {print, repr, str, format, ascii, len, sum, sorted, min, max, warnings.warn, hash, any, all, isinstance, float, int, bool}


_KINDS = {"bool": bool, "int": int, "float": float}


class Run(threading.local):
    """The Python objects of the run that is under way on this thread."""

    def __init__(self) -> None:
        self.objects: list[Any] = []
        self.raised: BaseException | None = None  # what a call has raised, which ends the run
        self.trace: types.TracebackType | None = None  # its traceback, without the frames of the run
        self.holds: Callable[[], bool] | None = None  # whether what the program has read of Python's objects is still so
        self.acted = False  # a call has done what must not be done again
        self.has_acted = False  # the same of the last run
        self.is_undone = False  # the last run has raised, and has taken its writes back
        self.open: list[Any] = []  # managers between their __enter__ and their __exit__

    def leave_all(self, error: BaseException) -> None:
        """Leaves the managers that a run which raises has left open. Raises what the __exit__ of one raises instead."""
        with contextlib.ExitStack() as stack:
            for manager in self.open:
                stack.push(functools.partial(type(manager).__exit__, manager))
            stack.__exit__(type(error), error, error.__traceback__)


run = Run()


# ---------------------------------------------------------------------------------------------------------- tracebacks
#
# An exception of Python's in a run goes through no frame of the functions that were translated: they are put into its traceback,
# as frames that stand at the line of the call and hold no variables.


def open_frames(translator: Any) -> list[tuple[dict[str, Any], types.CodeType, int]]:
    """The functions that are being followed, outermost first: globals, code, and the line at which they stand."""
    frames = [frame for frame in translator.state.frames if not str(frame.globals.get("__name__")).startswith("flexor.")]
    return [(frame.globals, frame.code, frame.steps[max(frame.pc - 1, 0)].line) for frame in frames]


def _frame_at(code: types.CodeType, line: int) -> types.FrameType:
    """A frame that looks like one of a function at a line."""
    stand_in = compile("\n" * (line - 1) + "frame = here(0)", code.co_filename, "exec").replace(co_name=code.co_name)
    if sys.version_info >= (3, 11):
        stand_in = stand_in.replace(co_qualname=code.co_qualname)
    place: dict[str, Any] = {"here": sys._getframe}
    exec(stand_in, place)
    found: types.FrameType = place.pop("frame")
    place.clear()
    return found


def _show(error: BaseException, place: Sequence[tuple[types.CodeType, int]]) -> None:
    """Puts the functions of a place before what an exception has gone through since the call of Python began."""
    tail = error.__traceback__
    while tail is not None and str(tail.tb_frame.f_globals.get("__name__")).startswith("flexor."):
        tail = tail.tb_next
    for code, line in reversed(place):
        frame = _frame_at(code, line)
        tail = types.TracebackType(tail, frame, max(frame.f_lasti, 0), line)
    error.__traceback__ = tail


class KindChanged(Exception):
    """A foreign call gave something else than on earlier calls; the program was built on those. `is_untouched`: nothing has been done
    before it that must not be done again."""

    def __init__(self, what: str, is_untouched: bool) -> None:
        super().__init__(what)
        self.is_untouched = is_untouched


class StateChanged(Exception):
    """A foreign call changed what the program had read of the objects around it."""


def write(
    translator: Any,
    what: str,
    function: Callable[..., Any],
    arguments: Sequence[Value],
    keywords: dict[str, Value],
    result: str,
    is_pure: bool,
    learns: bool,
    clobbers: bool,
    promised: Promise | None,
    is_own: bool,
) -> Value:
    """Writes the call; the result is of kind `result`, or a tensor where that is promised or pure calls of earlier runs have always
    given one."""
    is_reader = _reads_only(function)
    for value in (*arguments, *keywords.values()):
        _check(value, is_reader, what, translator)
    operands: list[Dynamic] = []
    for dynamic in dynamics((*arguments, *keywords.values())):
        if not any(dynamic is other for other in operands):
            operands.append(dynamic)
    site, place = translator.site(), [(code, line) for _, code, line in open_frames(translator)]
    frame = translator.state.top
    hook = f"{translator.name}:{frame.line} {what} #{next(_numbers)}"
    made = translator.foreign_calls if promised is None else translator.typed_calls
    listed: list[tuple[str, int, str]] = [] if is_own else [(frame.code.co_filename, frame.line, what)]
    if not is_pure:
        translator.has_effects = True
    if promised is not None:
        translator.writer.typed.add(hook)
    promise = None if promised is None or promised.rank < 0 else (promised.dtype, promised.rank)
    # Behind an effect nothing can be done again if the kind is another one: it has to follow from the operands.
    is_bound = not any(operand.kind == "object" for operand in operands) and "squeeze" not in what
    is_untouched = not translator.state.has_acted
    is_learnt = promised is None and learns and result == "object" and (is_bound or is_untouched)
    if is_learnt and site in translator.knowledge.results and site not in translator.knowledge.varying:
        promise = translator.knowledge.results[site]
    elif is_learnt:
        translator.learns = True
    observed = translator.observed
    framework = translator.lowering.framework
    unwraps = framework == "numpy"

    def call(*natives: Any) -> Any:
        objects = {}
        for operand, native in zip(operands, natives):
            if operand.kind == "object":
                native = run.objects[native]
            elif operand.kind == "list" and operand.dtype == "object":
                native = [run.objects[handle] for handle in native]
            elif operand.kind == "list" and operand.rank == 0:
                native = [number.item() for number in native]
            elif unwraps and isinstance(native, np.ndarray) and native.ndim == 0:
                native = native[()]
            objects[id(operand)] = native

        def make(value: Value) -> Any:
            return objects[id(value)]

        if not is_pure:
            run.acted = True
        if listed:  # once, when it is made for the first time
            made.append(listed.pop())
        try:
            given = function(*(objects_of(a, make) for a in arguments), **{k: objects_of(v, make) for k, v in keywords.items()})
        except BaseException as error:
            _show(error, place)
            run.raised, run.trace = error, error.__traceback__
            raise
        if clobbers and run.holds is not None and not run.holds():
            raise StateChanged(what)
        if result in _KINDS and type(given) is not _KINDS[result]:
            raise NotSupported(f"{what} gives a {type(given).__name__}")
        if result == "int" and not -(2**63) <= given < 2**63:
            raise NotSupported("an integer of more than 64 bits")
        if result != "object":
            return given
        kind = tensor_kind(given, framework)
        if promise is not None:
            if kind != promise:
                observed[site] = kind
                raise KindChanged(what, is_untouched)
            return given
        if is_learnt:
            observed[site] = kind if observed.get(site, kind) == kind else None
        run.objects.append(given)
        return len(run.objects) - 1

    written: Value = translator.writer.foreign(hook, call, operands, result, promise, () if promised is None else promised.sizes)
    return written


def _check(value: Value, is_reader: bool, what: str, translator: Any) -> None:
    line = translator.state.top.line
    if isinstance(value, RunList) and value.element[0] in ("list", "tuple", "text"):
        raise NotTranslated(f"a list of lists, tuples or strings of the run handed to {what}", line)
    if isinstance(value, InstanceValue) and value.cls is helpers.Table:
        raise NotTranslated(f"a dict with keys of the run handed to {what}", line)
    if isinstance(value, (ArgumentObject, ArgumentItems, ArgumentMapping)):
        translator.objects.give_up()
    if isinstance(value, InstanceValue) and not is_reader and value.cls not in translator.knowledge.by_python:
        translator.knowledge.by_python.add(value.cls)  # Python makes the object, and may have it back
        raise Restart
    if isinstance(value, (ListValue, RunList, SetValue, DictValue, InstanceValue)):
        if not is_reader:
            raise NotTranslated(f"a list, dict or object of the program handed to {what}, which may change it", line)
    elif isinstance(value, ArgumentList):
        if not is_reader:
            raise NotTranslated("a list of the caller's handed to Python that may change it", line)
    elif not isinstance(value, (Known, Dynamic, TupleValue, SliceValue)):
        raise NotTranslated(f"a {type(value).__name__} handed to {what}", line)
    parts: Any = ()
    if isinstance(value, (TupleValue, ListValue)):
        parts = value.items
    elif isinstance(value, DictValue):
        parts = value.items.values()
    elif isinstance(value, InstanceValue):
        parts = value.fields.values()
    for part in parts:
        _check(part, is_reader, what, translator)


def _reads_only(function: Any) -> bool:
    if isinstance(function, functools.partial):
        return _reads_only(function.func)
    if function in _READERS if _is_hashable(function) else False:
        return True
    if isinstance(getattr(function, "__self__", None), (logging.Logger, str, bytes)):
        return True
    module = getattr(function, "__module__", None) or ""
    return module.split(".")[0] in ("math", "operator") and not _writes(function) or rows.is_pure(function)


def _writes(function: Any) -> bool:
    """Whether a function of `operator` changes its first argument."""
    name = getattr(function, "__name__", "")
    return name in ("setitem", "delitem") or name.startswith("i") and name[1:] in ("add", "concat", "mul", "sub", "or", "and", "xor")


def _is_hashable(obj: Any) -> bool:
    try:
        hash(obj)
    except TypeError:
        return False
    return True


def tensor_kind(obj: Any, framework: str) -> tuple[str, int] | None:
    """(dtype, rank) of a plain tensor of a framework, else None."""
    torch = sys.modules.get("torch")
    is_array = type(obj) is np.ndarray and obj.ndim > 0  # NumPy's calls give scalars where there are no axes
    is_tensor = torch is not None and type(obj) is torch.Tensor and obj.device.type in ("cpu", "cuda") and obj.layout == torch.strided
    if is_array if framework == "numpy" else is_tensor:
        name = dtype_name(obj.dtype)
        return None if name is None else (name, obj.ndim)
    return None


__all__ = ["KindChanged", "Known", "Promise", "StateChanged", "run", "tensor_kind", "write"]
