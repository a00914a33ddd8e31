"""`flexor.jit`: Python functions and torch modules as Flexor programs.

A call goes through three steps. The arguments' shape (which are tensors, of what dtype and rank; which are numbers; what else is
passed) chooses a list of translations; the guards of each say whether what it read of the Python around it still holds; the
translation's Module then runs on the Session. A call that no translation serves makes one.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
import logging
import os
import sys
import threading
import types
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import numpy as np

from flexor import _background, _saved, _weights
from flexor._module import Module
from flexor._options import FROZEN, Dim, Options
from flexor.errors import AssertionFailed, FlexorError, Interrupted, NotSupported, StaleWeights
from flexor.frontend.cpython import NotTranslated
from flexor.frontend.cpython import attributes as _attributes
from flexor.frontend.cpython import foreign as _foreign
from flexor.frontend.cpython import results as _results
from flexor.frontend.cpython.decode import Restart
from flexor.frontend.cpython.state import Frame
from flexor.frontend.cpython.translate import ASSUMPTION, Knowledge, Translator
from flexor.frontend.cpython.values import ArgumentDict, ArgumentList, DictValue, Dynamic, Known, TupleValue, Value
from flexor.session import Session, default_session

_log = logging.getLogger("flexor")
P = ParamSpec("P")
R = TypeVar("R")
_Self = TypeVar("_Self")
_Rest = ParamSpec("_Rest")
MOST_TRANSLATIONS = 64
MOST_REFUSALS = 1024  # remembered at a time


# ------------------------------------------------------------------------------------------------------------ arguments


class _Unreadable(Exception):
    """An argument whose memory the engine does not read: the call is Python's."""


@dataclasses.dataclass
class _Shape:
    """What is found in the arguments of one call: a key, and the leaves that go into the program."""

    fixed: frozenset[str]
    key: list[Any] = dataclasses.field(default_factory=list)
    leaves: list[Any] = dataclasses.field(default_factory=list)
    containers: list[Any] = dataclasses.field(default_factory=list)  # lists and dicts of the caller's
    seen: dict[int, Any] = dataclasses.field(default_factory=dict)

    def add(self, name: str, obj: Any) -> None:
        """Appends what distinguishes an object to the key."""
        kind = type(obj)
        if kind is int or kind is float or kind is bool:
            if name in self.fixed or (kind is int and not -(2**63) <= obj < 2**63):
                self.key.append((kind, repr(obj)))
            else:
                self.key.append(kind)
                self.leaves.append(obj)
        elif obj is None or kind is str or kind is bytes:
            self.key.append((kind, obj))
        elif _attributes.is_tensor_object(obj):
            again = self.seen.get(id(obj))
            if again is not None:
                self.key.append(("again", again))
                return
            self.seen[id(obj)] = len(self.leaves)
            self.key.append((kind, obj.dtype, obj.ndim))
            self.leaves.append(obj)
        elif isinstance(obj, np.generic):
            self.key.append((kind, obj.dtype, 0))
            self.leaves.append(np.asarray(obj))
        elif _is_tuple(kind):
            if _is_plain_tuple(kind, obj):
                self.key.append((kind, *map(repr, obj)))
                return
            self.key.append((kind, len(obj)))
            for i, item in enumerate(obj):
                self.add(f"{name}[{i}]", item)
        elif kind is list or kind is dict:
            if id(obj) in self.seen:
                self.key.append(("again", self.seen[id(obj)]))
                return
            self.seen[id(obj)] = ("container", len(self.containers))
            self.containers.append(obj)
            if kind is list:
                self.key.append((list, len(obj)))
                for i, item in enumerate(obj):
                    self.add(f"{name}[{i}]", item)
            else:
                self.key.append((dict, *((type(key), key) for key in obj)))
                for key, item in obj.items():
                    self.add(f"{name}[{key!r}]", item)
        elif isinstance(obj, type) or type(obj).__module__ == "torch" and kind.__name__ in ("dtype", "device"):
            self.key.append((kind, obj))
        else:
            torch = sys.modules.get("torch")
            if isinstance(obj, np.ndarray) or (torch is not None and isinstance(obj, torch.Tensor)):
                raise _Unreadable(f"the argument {name} is a {kind.__name__} that is not read directly")
            self.key.append((kind, _ById(obj)))


def _is_tuple(kind: type) -> bool:
    return kind is tuple or issubclass(kind, tuple) and (hasattr(kind, "_fields") or (kind.__module__, kind.__name__) == ("torch", "Size"))


def _is_plain_tuple(kind: type, obj: Any) -> bool:
    """A tuple that is known whole at translation."""
    return not hasattr(kind, "_fields") and all(type(item) in (int, float, bool, str, type(None)) for item in obj)


class _ById:
    """An object as a part of a key, kept alive by it."""

    __slots__ = ("object",)

    def __init__(self, obj: Any) -> None:
        self.object = obj

    def __hash__(self) -> int:
        return id(self.object)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and other.object is self.object


class _Abstract:
    """Abstract values of arguments, in the order in which _Shape lists leaves."""

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
        if _attributes.is_tensor_object(obj) or isinstance(obj, np.generic):
            self.translator.check_framework(obj)
            if id(obj) not in self.seen:
                self.seen[id(obj)] = self._input(name, self._type(name, obj))
                self.translator.classes[self.seen[id(obj)].anywhere] = kind  # type: ignore[attr-defined, index]
            return self.seen[id(obj)]
        if _is_tuple(kind):
            if _is_plain_tuple(kind, obj):
                return Known(obj)
            return TupleValue([self.of(f"{name}[{i}]", item) for i, item in enumerate(obj)], kind)
        if kind is list or kind is dict:
            if id(obj) not in self.seen:
                self.seen[id(obj)] = self._container(name, obj)
            return self.seen[id(obj)]
        return Known(obj)

    def _container(self, name: str, obj: Any) -> Value:
        origin = _origin(self.containers)
        self.containers += 1
        made: Any
        if isinstance(obj, list):
            made = self.seen[id(obj)] = ArgumentList([], origin)
            made.items = tuple(self.of(f"{name}[{i}]", item) for i, item in enumerate(obj))
        else:
            made = self.seen[id(obj)] = ArgumentDict({}, origin)
            made.items.update((key, self.of(f"{name}[{key!r}]", item)) for key, item in obj.items())
        return made  # type: ignore[no-any-return]

    def _input(self, name: str, text: str) -> Dynamic:
        self.names.append(name)
        title = self.titles.get(name, name)
        made = self.translator.writer.input(title if title.isidentifier() else f"arg{len(self.names)}", text)
        self.translator.arguments[made.anywhere] = name
        return made

    def _type(self, name: str, obj: Any) -> str:
        given = self.dims.get(self.titles.get(name, name))
        text = _attributes.type_text(obj, with_sizes=False)
        if given is None or obj.ndim == 0:
            return text
        if len(given) != obj.ndim:
            raise ValueError(f"dims gives {name} {len(given)} sizes; it has {obj.ndim} axes")
        return f"{text.split('[')[0]}[{', '.join(_dim_text(dim) for dim in given)}]"


def _origin(number: int) -> str:
    """The name of a list or dict of the caller's."""
    return f"container {number}"


def _dim_text(dim: Any) -> str:
    if dim is FROZEN:
        return "FROZEN ?"
    if dim is None:
        return "?"
    return dim.name if isinstance(dim, Dim) else str(dim)


# ---------------------------------------------------------------------------------------------------------- translations


class Translation:
    """One Module with what it assumes. `run` gives what the function returns."""

    def __init__(self, translator: Translator, function: str, session: Session) -> None:
        self.translator = translator
        self.weights = translator.weights if translator.weights is not None and translator.weights.entries else None
        self.check = translator.guards.compile()
        self.later: Callable[[], bool] | None = None
        if translator.clobbers and (len(translator.later) or translator.later_inputs):
            self.later = translator.later.compile()
        self.is_watched = self.later is None  # has run without a change of what it reads behind calls of Python
        self.module = Module(translator.writer.builder.build())
        self.call = self.module if session is default_session() else functools.partial(session.run, self.module)
        self.fetches = [fetch for _, fetch, _ in translator.live_inputs]
        self.expected = [_live_kind(obj) for obj, _, _ in translator.live_inputs]
        self.input_names: list[str] = [str(d.anywhere).removeprefix("input ") for d in translator.writer.inputs]
        # Scalars of NumPy, which are arrays without axes in the run.
        self.scalars = {n.removeprefix("input ") for n, cls in translator.classes.items() if issubclass(cls, np.generic)}
        is_numpy = translator.lowering.framework == "numpy"
        self.builders = [_results.builder(leaving.template, is_numpy) for leaving in translator.exits.values()]
        self.puts = [[translator.puts[place][1] for place in leaving.places] for leaving in translator.exits.values()]
        self.counts = [len(leaving.values) for leaving in translator.exits.values()]
        self.several = translator.several_exits
        self.has_effects = translator.has_effects or translator.lowering.has_writes
        # What pure foreign calls give is not known before a run; such a run is interpreted, as the program changes after it.
        self.is_settled = not translator.learns
        for hook in translator.writer.hooks:
            for place in (session, _interpreter()):
                place.bind(hook, _Hook(translator, hook))
        self.function = function

    def live_objects(self) -> list[Any] | None:
        """What the program reads of the world around it; None where that is gone or has another type than it had. Raises
        StaleWeights where it has packed what has been changed."""
        try:
            if self.weights is not None and not self.weights.are_current():
                return None
            objects = [fetch() for fetch in self.fetches]
        except StaleWeights:
            raise
        except Exception:  # deleted, or behind something of the user's that raises
            return None
        for obj, expected in zip(objects, self.expected):
            if _live_kind(obj) != expected:
                return None
        return objects

    def holds(self, live: list[Any]) -> bool:
        """Whether what the program reads behind calls of Python is what it was when the program began."""
        assert self.later is not None
        if not self.later():
            return False
        try:
            return all(_is_same(self.fetches[number](), live[number]) for number in self.translator.later_inputs)
        except Exception:
            return False

    def run(self, leaves: list[Any], live: list[Any], containers: list[Any]) -> Any:
        """Runs the program. Raises what Python would raise."""
        values = leaves + live
        outer = _foreign.run.objects, _foreign.run.holds
        objects: list[Any] = []
        _foreign.run.objects, _foreign.run.raised, _foreign.run.trace = objects, None, None
        _foreign.run.holds = functools.partial(self.holds, live) if self.later is not None else None
        try:
            out = self.call(*values) if self.is_settled else _interpreter().run(self.module, *values)
        except BaseException as error:
            # What a call of Python raised has its own cause and context, and no frame of the run.
            if error is not _foreign.run.raised and (_foreign.run.raised is None or not isinstance(error, Interrupted)):
                raise
        finally:
            _foreign.run.objects, _foreign.run.holds = outer
        if _foreign.run.raised is not None:
            raised, trace = _foreign.run.raised, _foreign.run.trace
            _foreign.run.raised = _foreign.run.trace = None
            raise raised.with_traceback(trace)
        if self.several:
            number, *given = out if isinstance(out, tuple) else (out,)
        else:
            number = 0
            given = list(out) if isinstance(out, tuple) and self.counts[0] != 1 else [out]
        if number < 0:
            raise FlexorError("a call that raised when the function was translated has not raised")
        result = self.builders[number](given, _Inputs(self.input_names, self.scalars, values, containers), objects)  # type: ignore[arg-type]
        if self.puts[number]:
            result, *written = result
            for put, value in zip(self.puts[number], written):
                put(value)
        return result


def _serving(translations: list[Translation]) -> tuple[Translation, list[Any]] | None:
    """The first translation whose guards hold, and what it reads of the world around it."""
    for translation in translations:
        if translation.check() and (live := translation.live_objects()) is not None:
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

    __slots__ = ("containers", "names", "scalars", "shared", "values")

    def __init__(self, names: list[str], scalars: set[str], values: list[Any], containers: list[Any]) -> None:
        self.names, self.scalars, self.values, self.containers = names, scalars, values, containers
        self.shared: dict[int, Any] = {}  # what the result has in several places

    def __getitem__(self, name: str) -> Any:
        if name.startswith("container "):
            return self.containers[int(name.removeprefix("container "))]
        found = self.values[self.names.index(name)]
        return found[()] if name in self.scalars else found


def _live_kind(obj: Any) -> Any:
    return (type(obj), obj.dtype, tuple(obj.shape)) if _attributes.is_tensor_object(obj) else type(obj)


def _trampoline(target: Any, /, *args: Any, **kwargs: Any) -> Any:
    return target(*args, **kwargs)


@dataclasses.dataclass
class JitStats:
    """What has happened to the calls of one jitted function."""

    calls: int = 0
    translations: int = 0
    waited: int = 0  # calls that Python ran while their program was compiled, with compile="async"
    watched: int = 0  # calls that Python ran to see whether its calls change what the function reads
    fallbacks: dict[str, int] = dataclasses.field(default_factory=dict)  # reason -> calls that Python ran
    foreign_calls: list[tuple[str, int, str]] = dataclasses.field(default_factory=list)  # (file, line, what) per translation


class _Depth(threading.local):
    """How many calls of a function Python runs on this thread."""

    depth = 0


class Jit(Generic[P, R]):
    """A function under `flexor.jit`. Called as the function is, whose name, docs, signature and attributes it has."""

    def __init__(self, target: Callable[P, R], options: Options) -> None:
        self._flexor_function: Any = target
        self.options = options
        self._dims = options.dims
        self._titles = _titles_of(target)
        self._fallback = options.fallback
        self._session = options.session()
        if options.weights == "frozen":
            _weights.watch_optimisers(self)
        self._translations: dict[Any, list[Translation]] = {}
        self._knowledge: dict[Any, Knowledge] = {}
        self._fixed: frozenset[str] = frozenset()
        self._refused: dict[Any, str] = {}
        self._pending: dict[Any, Translation] = {}  # that are being compiled
        self._lock = threading.RLock()
        self._in_python = _Depth()
        self._stats = JitStats()
        if isinstance(target, types.FunctionType):
            functools.update_wrapper(self, target)
            self._code: types.CodeType | None = target.__code__
            if inspect.iscoroutinefunction(target):
                _mark_coroutine(self)
        else:
            self._code = None

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Jit[P, R]: ...
    @overload
    def __get__(self: Jit[Concatenate[_Self, _Rest], R], instance: _Self, owner: Any = None) -> Callable[_Rest, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name == "_flexor_function":  # under construction
            raise AttributeError(name)
        return getattr(self._flexor_function, name)

    def __reduce__(self) -> Any:
        # A decorated function stands in its module in the place of the plain one, and is found by its name as that would be.
        return self.__qualname__ if self._is_at_home() else (_restore, (self._flexor_function, self.options))

    def __deepcopy__(self, memo: dict[int, Any]) -> Jit[P, R]:
        return Jit(self._flexor_function, self.options)

    def _is_at_home(self) -> bool:
        found: Any = sys.modules.get(getattr(self, "__module__", None) or "")
        for name in getattr(self, "__qualname__", "<locals>").split("."):
            found = getattr(found, name, None)
        return found is self

    def __repr__(self) -> str:
        return f"<flexor.jit {getattr(self._flexor_function, '__qualname__', self._flexor_function)!r}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._in_python.depth:  # a function that Python runs calls itself: two frames a call, as few as there can be
            return self._flexor_function(*args, **kwargs)
        self._stats.calls += 1
        if self._code is not None and self._flexor_function.__code__ is not self._code:
            self._forget()
        reason = _ambient_reason()
        if reason is not None:
            return self._python(reason, args, kwargs)
        try:
            bound = self._bind(args, kwargs)
        except TypeError:
            return self._flexor_function(*args, **kwargs)  # raises as Python does
        shape = _Shape(self._fixed)
        try:
            for name, obj in bound.items():
                shape.add(name, obj)
            key = tuple(shape.key)
            found = self._translations.get(key)
        except _Unreadable as error:
            return self._python(str(error), args, kwargs)
        except TypeError as error:
            return self._python(f"an argument that cannot be a key: {error}", args, kwargs)
        if found is not None and (serving := _serving(found)) is not None:
            return self._run(key, serving[0], shape, serving[1], args, kwargs)
        return self._first_call(key, shape, bound, args, kwargs)

    # --------------------------------------------------------------------------------------------------------- calls

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        code = self._code
        if code is None:
            return {"target": self._flexor_function, **{f"args[{i}]": a for i, a in enumerate(args)}, **kwargs}
        if not kwargs and len(args) == code.co_argcount and not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
            if not code.co_kwonlyargcount:
                return dict(zip(code.co_varnames, args))
        bound = _own_signature(self._flexor_function).bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    def _forget(self) -> None:
        """The function has got another code."""
        with self._lock:
            self._code = self._flexor_function.__code__
            for held in (self._translations, self._knowledge, self._refused, self._pending):
                held.clear()

    def _run(self, key: Any, translation: Translation, shape: _Shape, live: list[Any], args: Any, kwargs: Any) -> Any:
        weights = translation.weights
        if _needs_gradient(shape.leaves) or _needs_gradient(live) or (weights is not None and _is_recorded() and weights.require_gradients()):
            return self._python("requires_grad in grad mode", args, kwargs)
        if not translation.is_watched:
            return self._watch(key, translation, live, args, kwargs)
        try:
            result = translation.run(shape.leaves, live, shape.containers)
        except AssertionFailed as error:
            _, found, what = str(error).partition(ASSUMPTION)
            if not found and translation.translator.defers:
                return self._plainly(args, kwargs)  # raises behind what it writes
            if not found or translation.has_effects:
                raise
            return self._python("an assumption does not hold: " + what.splitlines()[0].strip("'\" "), args, kwargs)
        except _foreign.KindChanged as change:
            self._knowledge[key].varying |= set(translation.translator.observed)
            self._drop(key, translation)
            if translation.has_effects:  # Python cannot run the call from its beginning
                raise NotSupported(f"{change} gave a value of another kind than on earlier calls; later calls expect any") from None
            return self._python(f"{change} gives values of several kinds", args, kwargs)
        except _foreign.StateChanged as change:
            self._refuse(key, translation, reason := f"{change} changes what the function reads behind it")
            raise NotSupported(f"{reason}; later calls are Python's") from None
        except FlexorError as error:
            if error.code == "E0117" and weights is not None and (written := weights.named_in(str(error))) is not None:
                self._knowledge[key].unpacked.add(id(written.tensor))  # a view that is written to, as only the run has shown
                self._drop(key, translation)
            # What the engine refuses, Python may do (integers of any size), or refuse in its own way.
            if translation.has_effects or (self._fallback == "raise" and translation.translator.catches is None):
                raise
            result = self._plainly(args, kwargs)
            reason = "the program refuses what Python does: " + str(error).splitlines()[0]
            self._stats.fallbacks[reason] = self._stats.fallbacks.get(reason, 0) + 1
            return result
        except Exception as error:
            # The program has no handlers. It has done nothing that Python would do twice.
            if translation.translator.catches is None:
                if translation.translator.defers:
                    return self._plainly(args, kwargs)
                raise
            return self._python(f"{type(error).__name__} in a part that looks at exceptions", args, kwargs)
        if not translation.is_settled:
            self._learn(key, translation)
        return result

    def _watch(self, key: Any, translation: Translation, live: list[Any], args: Any, kwargs: Any) -> Any:
        """Python runs the call, to see whether the calls in it change what the function reads behind them."""
        result = self._plainly(args, kwargs)
        self._stats.watched += 1
        if translation.holds(live):
            translation.is_watched = True
        else:
            self._refuse(key, translation, "a call changes what the function reads behind it")
        return result

    def _refuse(self, key: Any, translation: Translation, reason: str) -> None:
        self._drop(key, translation)
        with self._lock:
            self._note_refusal(key, reason)

    def _note_refusal(self, key: Any, reason: str) -> None:
        if len(self._refused) >= MOST_REFUSALS:
            self._refused.clear()
        self._refused[key] = reason
        self._knowledge.pop(key, None)

    def _learn(self, key: Any, translation: Translation) -> None:
        """Tensors that foreign calls gave make the code behind them native in the next translation."""
        translator, knowledge = translation.translator, self._knowledge[key]
        new = {s: k for s, k in translator.observed.items() if k is not None and s not in knowledge.results and s not in knowledge.varying}
        if new:
            knowledge.results.update(new)
            for consequence in (knowledge.widened, knowledge.elements, knowledge.foreign):
                consequence.clear()
            self._drop(key, translation)
        else:
            translation.is_settled = True

    def _drop(self, key: Any, translation: Translation) -> None:
        with self._lock:
            self._translations[key] = [t for t in self._translations.get(key, []) if t is not translation]

    def _first_call(self, key: Any, shape: _Shape, bound: dict[str, Any], args: Any, kwargs: Any) -> Any:
        with self._lock:
            if tuple(_shape_of(self._fixed, bound).key) != key:  # another thread has found an argument to be fixed
                shape = _shape_of(self._fixed, bound)
                key = tuple(shape.key)
            if key in self._pending:
                return self._wait(args, kwargs)
            serving = _serving(self._translations.get(key, []))  # another thread may have translated it
            refused = self._refused.get(key) if serving is None else None
            if serving is None and refused is None:
                made = self._add_translation(key, bound)
                if isinstance(made, str):
                    refused = made
                else:
                    if self._fixed is not shape.fixed:  # an argument has become fixed: its value is in the key
                        shape = _shape_of(self._fixed, bound)
                        key = tuple(shape.key)
                        self._knowledge.setdefault(key, Knowledge(fixed=set(self._fixed)))
                    serving = _serving([made])
                    if serving is not None and self._compile_behind(key, made, shape.leaves + serving[1]):
                        return self._wait(args, kwargs)
                    self._translations.setdefault(key, []).insert(0, made)
        if serving is None:
            return self._python(refused or "an object that changes while it is read", args, kwargs)
        return self._run(key, serving[0], shape, serving[1], args, kwargs)

    def _compile_behind(self, key: Any, made: Translation, values: list[Any]) -> bool:
        """Lets a thread compile a translation, where that was asked for and Python has no part in its runs."""
        if self.options.compile != "async" or made.translator.writer.hooks:
            return False
        self._pending[key] = made

        def ready() -> None:
            with self._lock:
                if self._pending.get(key) is made:
                    del self._pending[key]
                    self._translations.setdefault(key, []).insert(0, made)

        _background.run_once(made.call, _background.copies(values), ready)
        return True

    def _wait(self, args: Any, kwargs: Any) -> Any:
        self._stats.waited += 1
        return self._plainly(args, kwargs)

    def _add_translation(self, key: Any, bound: dict[str, Any]) -> Translation | str:
        """A new translation, or why there is none."""
        if sum(map(len, self._translations.values())) >= MOST_TRANSLATIONS:
            return f"more than {MOST_TRANSLATIONS} translations of one function"
        before = self._fixed
        try:
            return self._translate(key, bound)
        except NotTranslated as error:
            self._fixed = before  # the refusal holds for every value
            reason = error.reason + (f" (line {error.line})" if error.line is not None else "")
            self._note_refusal(key, reason)
            return reason

    def _translate(self, key: Any, bound: dict[str, Any]) -> Translation:
        knowledge = self._knowledge.setdefault(key, Knowledge(fixed=set(self._fixed)))
        names = _weights.names_of(self._flexor_function)
        translator = self._translated(knowledge, bound, lambda: _weights.Weights(names) if self.options.weights == "frozen" else None)
        self._stats.translations += 1
        self._stats.foreign_calls = translator.foreign_calls
        return Translation(translator, self._name(), self._session)

    def _translated(
        self, knowledge: Knowledge, bound: dict[str, Any], weights: Callable[[], _weights.Weights | None], is_for_file: bool = False
    ) -> Translator:
        """The translator that got to the end; it begins anew whenever it has learnt something."""
        while True:
            translator = Translator(_framework(bound.values()), knowledge, self._name(), weights(), is_for_file=is_for_file)
            try:
                self._write(translator, bound)
            except Restart:
                self._fixed |= knowledge.fixed
                continue
            except NotTranslated:
                if not translator.has_rolled or knowledge.unrolls:
                    raise
                knowledge.unrolls = True
                continue
            except FlexorError as error:
                raise NotTranslated(f"the translation was refused: {error}") from error
            except Exception as error:  # nothing has run yet: Python does what it can
                _log.error("the translator failed on %s", self._name(), exc_info=True)
                raise NotTranslated(f"a fault of the translator: {error!r}") from error
            return translator

    def _name(self) -> str:
        return str(getattr(self._flexor_function, "__name__", type(self._flexor_function).__name__))

    def _write(self, translator: Translator, bound: dict[str, Any]) -> None:
        for dim in (d for dims in self._dims.values() for d in dims if isinstance(d, Dim)):
            translator.declare(dim.name, dim.lo, dim.hi)
        abstract = _Abstract(translator, self._fixed, self._dims, self._titles)
        values = {name: abstract.of(name, obj) for name, obj in bound.items()}
        if self._code is None:
            frame = Frame(_trampoline.__code__, _trampoline.__globals__, 0)
            target = values.pop("target")
            positional = [v for name, v in values.items() if name.startswith("args[")]
            named = {name: v for name, v in values.items() if not name.startswith("args[")}
            frame.locals = {"target": target, "args": TupleValue(positional), "kwargs": DictValue(named)}
        else:
            function = self._flexor_function
            if self._code.co_flags & inspect.CO_GENERATOR:
                raise NotTranslated("a generator")
            translator.guards.attribute(function, "__code__", self._code)
            frame = Frame(self._code, function.__globals__, 0)
            frame.locals = dict(values)
            if self._code.co_flags & inspect.CO_VARKEYWORDS:  # a dict that is new for every call
                rest = self._code.co_argcount + self._code.co_kwonlyargcount + bool(self._code.co_flags & inspect.CO_VARARGS)
                given = values[self._code.co_varnames[rest]]
                assert isinstance(given, DictValue)
                frame.locals[self._code.co_varnames[rest]] = DictValue(given.items)
            cells = function.__closure__ or ()
            frame.locals.update(zip(self._code.co_freevars, (Known(cell) for cell in cells)))
        if translator.lowering.framework == "torch" and not any(v.kind == "tensor" for v in translator.writer.inputs):
            import torch

            translator.known(torch.empty(0))  # results are of the framework that the inputs are of
        translator.run(frame)

    def _python(self, reason: str, args: Any, kwargs: Any) -> Any:
        """The call as Python does it, counted under its reason."""
        count = self._stats.fallbacks.get(reason, 0)
        self._stats.fallbacks[reason] = count + 1
        if self._fallback == "raise":
            raise NotSupported(f"{self._name()} was not compiled: {reason}")
        if self._fallback == "warn" and count == 0:
            _log.warning("%s runs in Python: %s", self._name(), reason)
        return self._plainly(args, kwargs)

    def _plainly(self, args: Any, kwargs: Any) -> Any:
        self._in_python.depth += 1
        try:
            return self._flexor_function(*args, **kwargs)
        finally:
            self._in_python.depth -= 1

    # --------------------------------------------------------------------------------------------------------- shown

    def stats(self) -> dict[str, Any]:
        """Calls, translations, calls that Python ran by reason, foreign calls of the newest translation."""
        return dataclasses.asdict(self._stats)

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """What a call with these arguments does: the five steps of the program, foreign calls and the reason of a fallback."""
        self(*args, **kwargs)
        bound = self._bind(args, kwargs)
        shape = _shape_of(self._fixed, bound)
        found = self._translations.get(tuple(shape.key)) or []
        if not found:
            reasons = ", ".join(self._stats.fallbacks) or "no translation"
            return f"{self._name()} runs in Python: {reasons}\n"
        translation = found[0]
        lines = [f"{self._name()}: {len(translation.translator.guards)} guards, {len(translation.fetches)} live inputs"]
        lines += [f"  foreign {what} at {file}:{line}" for file, line, what in translation.translator.foreign_calls]
        live = translation.live_objects() or []
        lines += self._explain_weights(translation, bound, shape, live)
        return "\n".join(lines) + "\n" + self._session.explain(translation.module, *shape.leaves, *live)

    def _explain_weights(self, translation: Translation, bound: dict[str, Any], shape: _Shape, live: list[Any]) -> list[str]:
        if translation.weights is not None:
            return [f"  {_weights.told(entry.tensor for entry in translation.weights.entries)} are packed"]
        names = _weights.names_of(self._flexor_function)
        translator = self._translated(Knowledge(fixed=set(self._fixed)), bound, lambda: _weights.Weights(names))
        if translator.weights is None or not translator.weights.entries:
            return []
        told = _weights.told(entry.tensor for entry in translator.weights.entries)
        if translation.has_effects or translator.has_effects or translation.translator.writer.hooks:
            return [f"  {told} are read anew at every call"]
        packed = Translation(translator, self._name(), self._session)
        other = packed.live_objects() or []
        calls = [functools.partial(made.run, shape.leaves, of, shape.containers) for made, of in ((translation, live), (packed, other))]
        times = [_weights.shortest(call) for call in calls]
        return [
            f"  {told} are read anew at every call; packed by weights=\"frozen\" such a call takes {times[1] * 1e3:.3g} ms in the place of"
            f" {times[0] * 1e3:.3g}"
        ]

    def module(self, *args: Any, **kwargs: Any) -> Module:
        """The Module that serves a call with these arguments. Raises NotSupported where Python runs it."""
        self(*args, **kwargs)
        found = self._translations.get(tuple(_shape_of(self._fixed, self._bind(args, kwargs)).key))
        if not found:
            raise NotSupported(f"{self._name()} was not compiled: {', '.join(self._stats.fallbacks)}")
        return found[0].module

    def save(self, path: str | os.PathLike[str], /, *args: P.args, **kwargs: P.kwargs) -> Module:
        """Writes the Module that serves a call with these arguments, with the parameters and other tensors that the function finds
        as its weights: `.fasm` text for a name that ends so, else the binary `.flx` form. It runs without Python, and gives the
        tensors and numbers of the result in order; its metadata says what the result is made of them. Nothing is run.

        Raises NotSupported (E0706) for a function that needs objects or functions of Python, or is not followed; FileError (E0206).
        """
        bound = self._bind(args, kwargs)
        knowledge = Knowledge(fixed=set(self._fixed))
        names = _weights.names_of(self._flexor_function)
        before = self._fixed
        with self._lock:
            try:
                translator = self._translated(knowledge, bound, lambda: _weights.Weights(names, takes_all=True), is_for_file=True)
            except NotTranslated as error:
                reason = error.reason + (f" (line {error.line})" if error.line is not None else "")
                raise _saved.refusal(self._name(), reason) from None
            finally:
                self._fixed = before
        module = _saved.module_of(translator, self._name())
        module.save(path)
        return module

    # ------------------------------------------------------------------------------------------------------- weights

    def repack(self) -> None:
        """Packs frozen weights anew, from what they hold at the next call. Live weights need none."""
        if self.options.weights == "frozen":
            with self._lock:
                self._translations.clear()
                self._pending.clear()

    def packs(self, ids: set[int]) -> bool:
        """Whether one of the tensors with these ids is packed."""
        translations = [made for several in list(self._translations.values()) for made in several]
        return any(id(entry.tensor) in ids for made in translations if made.weights is not None for entry in made.weights.entries)


def _own_signature(function: Any) -> inspect.Signature:
    """The signature of a function's code, not the one that it shows for what it wraps."""
    bare = types.FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    bare.__kwdefaults__ = function.__kwdefaults__
    return inspect.signature(bare)


def _titles_of(target: Any) -> dict[str, str]:
    """The names of parameters, by those that arguments have here, where they go by their places: those of no function of Python."""
    if isinstance(target, types.FunctionType):
        return {}
    try:
        names = inspect.signature(getattr(target, "forward", target)).parameters
    except (TypeError, ValueError):
        return {}
    return {f"args[{place}]": name for place, name in enumerate(names)}


def _mark_coroutine(jit: Jit[..., Any]) -> None:
    """Lets inspect and asyncio see that calls give coroutines."""
    if hasattr(inspect, "markcoroutinefunction"):
        inspect.markcoroutinefunction(jit)
    else:
        jit._is_coroutine = asyncio.coroutines._is_coroutine  # type: ignore[attr-defined]


def _shape_of(fixed: frozenset[str], bound: dict[str, Any]) -> _Shape:
    shape = _Shape(fixed)
    for name, obj in bound.items():
        shape.add(name, obj)
    return shape


def _framework(objects: Any) -> str:
    """The framework of the first tensor in arguments; torch where there is none."""
    torch = sys.modules.get("torch")
    for obj in objects:
        if isinstance(obj, (np.ndarray, np.generic)):
            return "numpy"
        if torch is not None and isinstance(obj, (torch.Tensor, torch.nn.Module)):
            return "torch"
        if isinstance(obj, (tuple, list)):
            found = _framework(obj)
            if obj and found == "numpy":
                return found
        if isinstance(obj, dict) and obj and _framework(obj.values()) == "numpy":
            return "numpy"
    return "torch" if torch is not None else "numpy"


def _is_recorded() -> bool:
    """Whether torch records what is computed, for gradients."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.is_grad_enabled())


def _needs_gradient(objects: list[Any]) -> bool:
    if not _is_recorded():
        return False
    torch: Any = sys.modules["torch"]
    return any(isinstance(obj, torch.Tensor) and obj.requires_grad for obj in objects)


def _ambient_reason() -> str | None:
    """Why the frameworks are in a state that a program does not follow."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    if torch.is_autocast_enabled("cpu"):
        return "autocast"
    if torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack():
        return "a torch function or dispatch mode"
    return None


def _restore(target: Any, options: Options) -> Jit[..., Any]:
    return Jit(target, options)
