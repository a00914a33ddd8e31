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
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from flexor import _ambient, _background, _binding, _collector, _kinds, _saved, _weights
from flexor._arguments import Abstract, Shape, Unreadable
from flexor._flexor_fast import JitBase
from flexor._module import Module
from flexor._options import Dim, Options
from flexor._translation import Translation, serving
from flexor.errors import AssertionFailed, FlexorError, NotSupported
from flexor.frontend.cpython import NotTranslated
from flexor.frontend.cpython import foreign as _foreign
from flexor.frontend.cpython import reasons as _reasons
from flexor.frontend.cpython.decode import Restart
from flexor.frontend.cpython.knowledge import Knowledge
from flexor.frontend.cpython.state import Frame
from flexor.frontend.cpython.translate import ASSUMPTION, UNTOUCHED, Translator
from flexor.frontend.cpython.values import DictValue, Known, TupleValue

_log = logging.getLogger("flexor")
P = ParamSpec("P")
R = TypeVar("R")
_Self = TypeVar("_Self")
_Rest = ParamSpec("_Rest")
MOST_TRANSLATIONS = 256
MOST_REASONS = 64  # why translations were made, that are kept
MOST_REFUSALS = 1024  # remembered at a time
MOST_ATTEMPTS = 4  # to translate calls that were refused, when something has changed
MOST_FORMS = 8  # of calls of one translation that the compiled call path serves


def _trampoline(target: Any, /, *args: Any, **kwargs: Any) -> Any:
    return target(*args, **kwargs)


@dataclasses.dataclass
class JitStats:
    """What has happened to the calls of one jitted function."""

    translations: int = 0
    waited: int = 0  # calls that Python ran while their program was compiled, with compile="async"
    watched: int = 0  # calls that Python ran to see whether its calls change what the function reads
    fallbacks: dict[str, int] = dataclasses.field(default_factory=dict)  # reason -> calls that Python ran
    foreign_calls: list[tuple[str, int, str]] = dataclasses.field(default_factory=list)  # (file, line, what), made by the newest translation
    typed_calls: list[tuple[str, int, str]] = dataclasses.field(default_factory=list)  # the same of ops of users
    reasons: list[str] = dataclasses.field(default_factory=list)  # why the newest translations were made


@dataclasses.dataclass
class _Refusal:
    """Why a call is Python's, with what says that all that was read until then is still so, and how often that was found out."""

    reason: str
    check: Callable[[], bool] | None
    times: int

    def holds(self) -> bool:
        """Whether another translation is in vain: what refused this one may have been a state of the objects around, as of its first call."""
        return self.check is None or self.times >= MOST_ATTEMPTS or self.check()


class _Depth(threading.local):
    """How many calls of a function Python runs on this thread."""

    depth = 0


class Jit(JitBase, Generic[P, R]):
    """A function under `flexor.jit`. Called as the function is, whose name, docs, signature and attributes it has."""

    def __init__(self, target: Callable[P, R], options: Options) -> None:
        self._flexor_function: Any = target
        self.options = options
        self._dims = options.dims
        self._titles = _binding.titles_of(target)
        self._fallback = options.fallback
        self._session = options.session()
        if options.weights == "frozen":
            _weights.watch_optimisers(self)
        self._translations: dict[Any, list[Translation]] = {}
        self._knowledge: dict[Any, Knowledge] = {}
        self._fixed: frozenset[str] = frozenset()
        self._refused: dict[Any, _Refusal] = {}
        self._pending: dict[Any, Translation] = {}  # that are being compiled
        self._lock = threading.RLock()
        self._in_python = _Depth()
        self._stats = JitStats()
        self._newest: _reasons.Described | None = None  # the arguments of the newest translation
        if isinstance(target, types.FunctionType):
            functools.update_wrapper(self, target)
            self._code: types.CodeType | None = target.__code__
            if inspect.iscoroutinefunction(target):
                _mark_coroutine(self)
        else:
            functools.update_wrapper(self, target, updated=())
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

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        """A call that the compiled call path does not serve."""
        if self._in_python.depth:  # a function that Python runs calls itself: two frames a call, as few as there can be
            return self._flexor_function(*args, **kwargs)
        if self._code is not None and self._flexor_function.__code__ is not self._code:
            self._forget()
        reason = _ambient.reason()
        if reason is not None:
            return self._python(reason, args, kwargs)
        try:
            bound = self._bind(args, kwargs)
        except TypeError:
            return self._flexor_function(*args, **kwargs)  # raises as Python does
        try:
            shape = Shape.of(self._fixed, bound)
            key = tuple(shape.key)
            found = self._translations.get(key)
        except Unreadable as error:
            return self._python(str(error), args, kwargs)
        except TypeError as error:
            return self._python(f"an argument that cannot be a key: {error}", args, kwargs)
        if found is not None and (ready := serving(found, shape)) is not None:
            return self._run(key, ready[0], shape, ready[1], args, kwargs)
        return self._first_call(key, shape, bound, args, kwargs)

    # --------------------------------------------------------------------------------------------------------- calls

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        return _binding.bound(self._flexor_function, self._code, args, kwargs)

    def _forget(self) -> None:
        """The function has got another code."""
        with self._lock:
            self._code = self._flexor_function.__code__
            for held in (self._translations, self._knowledge, self._refused, self._pending):
                held.clear()
            self._remove(None)

    def _run(self, key: Any, translation: Translation, shape: Shape, live: list[Any], args: Any, kwargs: Any) -> Any:
        weights = translation.weights
        if _ambient.needs_gradient(shape.leaves) or _ambient.needs_gradient(live) or (weights is not None and _ambient.is_recorded() and weights.require_gradients()):
            return self._python("requires_grad in grad mode", args, kwargs)
        if not translation.is_watched:
            return self._watch(key, translation, live, args, kwargs)
        failure: BaseException | None = None
        try:
            result = translation.run(shape, live)
        except Exception as error:
            failure = error
        if failure is not None:  # outside of the handler: what Python then does has no exception in flight
            try:
                return self._recover(translation, failure, args, kwargs)
            finally:
                del failure  # whose traceback has this frame
        if not translation.is_settled:
            self._learn(key, translation)
        self._hand_over(translation, args, kwargs)
        return result

    def _recover(self, translation: Translation, error: BaseException, args: Any, kwargs: Any, has_ended: bool | None = None) -> Any:
        """What a call gives whose run has raised. `has_ended`, of the compiled call path: what raised stands behind a run that has not."""
        try:
            if has_ended is not None:
                _foreign.run.is_undone = translation.undoes and not has_ended
            translator, has_acted = translation.translator, translation.has_acted()
            if isinstance(error, AssertionFailed):
                _, found, what = str(error).partition(ASSUMPTION)
                if not found and translator.defers:
                    return self._plainly(args, kwargs)  # raises behind what it writes
                told = what.removeprefix(UNTOUCHED)
                text, raised = next(((text, cls) for text, cls in translator.assumed.items() if told.startswith(text)), (told, None))
                if not found or (has_acted and not what.startswith(UNTOUCHED)):
                    raise raised(text) if raised is not None else error
                return self._python("an assumption does not hold: " + text, args, kwargs)
            if isinstance(error, _foreign.KindChanged):
                self._knowledge[translation.key].varying |= set(translator.observed)
                self._drop(translation)
                if has_acted and not error.is_untouched:  # Python cannot run the call from its beginning
                    raise NotSupported(f"{error} gave a value of another kind than on earlier calls; later calls expect any")
                return self._python(f"{error} gives values of several kinds", args, kwargs)
            if isinstance(error, _foreign.StateChanged):
                self._refuse(translation, reason := f"{error} changes what the function reads behind it")
                raise NotSupported(f"{reason}; later calls are Python's")
            if isinstance(error, FlexorError):
                if error.code == "E0117" and translation.weights is not None and (written := translation.weights.named_in(str(error))):
                    self._knowledge[translation.key].unpacked.add(id(written.tensor))  # a view that is written to, as only the run has shown
                    self._drop(translation)
                # What the engine refuses, Python may do (integers of any size), or refuse in its own way.
                if has_acted or (self._fallback == "raise" and translator.catches is None):
                    raise error
                result = self._plainly(args, kwargs)
                reason = "the program refuses what Python does: " + str(error).splitlines()[0]
                self._count(reason)
                return result
            # The program has no handlers. Where they look at exceptions it has done nothing that Python would do twice.
            if translator.catches is None or has_acted:
                if translator.defers:
                    return self._plainly(args, kwargs)
                raise error
            return self._python(f"{type(error).__name__} in a part that looks at exceptions", args, kwargs)
        finally:
            del error  # whose traceback has this frame

    def _hand_over(self, translation: Translation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Lets the compiled call path serve calls of this form."""
        form = len(args), tuple(kwargs)
        if form in translation.forms or len(translation.forms) == MOST_FORMS:
            return
        with self._lock:
            translation.forms.add(form)
            shape, guards = _binding.plan_of(self._fixed, self._flexor_function, self._code, self._bind(args, kwargs), form)
            translation.add_to(self, shape, form, guards)

    def _watch(self, key: Any, translation: Translation, live: list[Any], args: Any, kwargs: Any) -> Any:
        """Python runs the call, to see whether the calls in it change what the function reads behind them."""
        result = self._plainly(args, kwargs)
        self._stats.watched += 1
        if translation.holds(live):
            translation.is_watched = True
        else:
            self._refuse(translation, "a call changes what the function reads behind it")
        return result

    def _refuse(self, translation: Translation, reason: str) -> None:
        self._drop(translation)
        with self._lock:
            self._note_refusal(translation.key, reason)

    def _note_refusal(self, key: Any, reason: str, check: Callable[[], bool] | None = None) -> None:
        if len(self._refused) >= MOST_REFUSALS:
            self._refused.clear()
        before = self._refused.get(key)
        self._refused[key] = _Refusal(reason, check, 1 if before is None else before.times + 1)
        self._knowledge.pop(key, None)

    def _learn(self, key: Any, translation: Translation) -> None:
        """Tensors that foreign calls gave make the code behind them native in the next translation."""
        translator, knowledge = translation.translator, self._knowledge[key]
        new = {s: k for s, k in translator.observed.items() if k is not None and s not in knowledge.results and s not in knowledge.varying}
        if new:
            knowledge.results.update(new)
            for consequence in (knowledge.widened, knowledge.elements, knowledge.foreign):
                consequence.clear()
            self._drop(translation)
        else:
            translation.is_settled = True

    def _drop(self, translation: Translation) -> None:
        with self._lock:
            key = translation.key
            self._translations[key] = [t for t in self._translations.get(key, []) if t is not translation]
            self._remove(translation)

    def _first_call(self, key: Any, shape: Shape, bound: dict[str, Any], args: Any, kwargs: Any) -> Any:
        with self._lock:
            if tuple(Shape.of(self._fixed, bound).key) != key:  # another thread has found an argument to be fixed
                shape = Shape.of(self._fixed, bound)
                key = tuple(shape.key)
            if key in self._pending:
                return self._wait(args, kwargs)
            ready = serving(self._translations.get(key, []), shape)  # another thread may have translated it
            refusal = self._refused.get(key) if ready is None else None
            refused = refusal.reason if refusal is not None and refusal.holds() else None
            if ready is None and refused is None:
                reason, described = self._reason(key, bound)
                made = self._add_translation(key, bound)
                if isinstance(made, str):
                    refused = made
                else:
                    self._newest = described
                    self._stats.reasons = [*self._stats.reasons, reason][-MOST_REASONS:]
                    if self._fixed is not shape.fixed:  # an argument has become fixed: its value is in the key
                        shape = Shape.of(self._fixed, bound)
                        key = tuple(shape.key)
                        self._knowledge.setdefault(key, made.translator.knowledge)
                    made.key = key
                    ready = serving([made], shape)
                    if ready is not None and self._compile_behind(key, made, made.inputs(shape, ready[1])):
                        return self._wait(args, kwargs)
                    self._translations.setdefault(key, []).insert(0, made)
        if ready is None:
            return self._python(refused or "an object that changes while it is read", args, kwargs)
        return self._run(key, ready[0], shape, ready[1], args, kwargs)

    def _reason(self, key: Any, bound: dict[str, Any]) -> tuple[str, _reasons.Described]:
        """Why a call has no translation, and what its arguments are."""
        described = {name: tuple(Shape.of(self._fixed, {name: obj}).key) for name, obj in bound.items()}
        others = self._translations.get(key)
        return _reasons.of_translation(described, self._newest, others[0].translator.guards if others else None), described

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

        _background.run_once(made.call, _background.copies(values), self._session.settle, ready)
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
            self._note_refusal(key, reason, error.check)
            return reason

    def _translate(self, key: Any, bound: dict[str, Any]) -> Translation:
        knowledge = self._knowledge.setdefault(key, Knowledge(fixed=set(self._fixed)))
        names = _weights.names_of(self._flexor_function)
        with _collector.Held():
            translator = self._translated(knowledge, bound, lambda: _weights.Weights(names) if self.options.weights == "frozen" else None)
        self._stats.translations += 1
        self._stats.foreign_calls, self._stats.typed_calls = translator.foreign_calls, translator.typed_calls
        return Translation(translator, self._session)

    def _translated(
        self, knowledge: Knowledge, bound: dict[str, Any], weights: Callable[[], _weights.Weights | None], is_for_file: bool = False
    ) -> Translator:
        """The translator that got to the end; it begins anew whenever it has learnt something."""
        while True:
            translator = Translator(knowledge.framework or _ambient.framework_of(bound.values()), knowledge, self._name(), weights(), is_for_file=is_for_file)
            try:
                self._write(translator, bound)
            except Restart:
                self._fixed |= knowledge.fixed
                continue
            except Exception as error:
                flags = {translator.arguments[flag.anywhere] for flag in translator.flags} if isinstance(error, NotTranslated) else set()
                if fixed := (flags | translator.strings.keys()) - knowledge.fixed:  # the way of another value is not this call's
                    knowledge.fix(fixed)
                    self._fixed |= knowledge.fixed
                    continue
                if translator.objects.number_paths and not knowledge.knows_numbers:
                    knowledge.fix(set(), numbers=True)
                    continue
                if isinstance(error, FlexorError):
                    raise NotTranslated(f"the translation was refused: {error}") from error
                if not isinstance(error, NotTranslated):  # nothing has run yet: Python does what it can
                    _log.error("the translator failed on %s", self._name(), exc_info=True)
                    raise NotTranslated(f"a fault of the translator: {error!r}") from error
                if not translator.has_rolled or knowledge.unrolls:
                    error.check = translator.guards.compile()
                    raise
                knowledge.unrolls = True
                continue
            knows_more = bool(translator.foreign_calls and translator.objects.number_paths and not knowledge.knows_numbers)
            if translator.unsuited_strings or knows_more:
                knowledge.fix(translator.unsuited_strings, numbers=knows_more)
                self._fixed |= knowledge.fixed
                continue
            return translator

    def _name(self) -> str:
        return str(getattr(self._flexor_function, "__name__", type(self._flexor_function).__name__))

    def _write(self, translator: Translator, bound: dict[str, Any]) -> None:
        for dim in (d for dims in self._dims.values() for d in dims if isinstance(d, Dim)):
            translator.declare(dim.name, dim.lo, dim.hi)
        abstract = Abstract(translator, self._fixed, self._dims, self._titles)
        values = {name: abstract.of(name, obj) for name, obj in bound.items()}
        translator.objects.read_roots()
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
            _, gathered = _binding.variadic_names(self._code)
            if gathered is not None:  # a dict that is new for every call
                given = values[gathered]
                assert isinstance(given, DictValue)
                frame.locals[gathered] = DictValue(given.items)
            cells = function.__closure__ or ()
            frame.locals.update(zip(self._code.co_freevars, (Known(cell) for cell in cells)))
        if translator.lowering.framework == "torch" and not any(v.kind == "tensor" for v in translator.writer.inputs):
            import torch

            translator.stand_in = translator.known(torch.empty(0))  # results are of the framework that the inputs are of
        translator.run(frame)

    def _python(self, reason: str, args: Any, kwargs: Any) -> Any:
        """The call as Python does it, counted under its reason."""
        is_first = self._count(reason) == 1
        if self._fallback == "raise":
            raise NotSupported(f"{self._name()} was not compiled: {reason}")
        if self._fallback == "warn" and is_first:
            _log.warning("%s runs in Python: %s", self._name(), reason)
        return self._plainly(args, kwargs)

    def _count(self, reason: str) -> int:
        """Counts a call that is Python's, here and in the session; gives how many it has been for that reason."""
        count = self._stats.fallbacks[reason] = self._stats.fallbacks.get(reason, 0) + 1
        self._session._count_left_to_python(self._name(), reason)
        return count

    def _plainly(self, args: Any, kwargs: Any) -> Any:
        self._in_python.depth += 1
        self._enter_python()
        try:
            return self._flexor_function(*args, **kwargs)
        finally:
            self._leave_python()
            self._in_python.depth -= 1

    # --------------------------------------------------------------------------------------------------------- shown

    def stats(self) -> dict[str, Any]:
        """Calls, translations, calls that Python ran by reason, foreign calls of the newest translation."""
        return {"calls": self._calls, **dataclasses.asdict(self._stats)}

    def explain(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """Makes a call with these arguments and says what it does: the five steps of the program, foreign calls and the reason of a
        fallback. With `profile=True`, which the function does not get, also the times of the kernels: see Session.explain. The program
        is run once more to be looked at, and what it has written then taken back; the calls that it leaves to Python are made twice."""
        target = getattr(self._flexor_function, "forward", self._flexor_function)
        taken = "profile" in kwargs and "profile" not in inspect.signature(target).parameters
        profile = _kinds.flag("explain", "profile", kwargs.pop("profile")) if taken else False
        self(*args, **kwargs)
        bound = self._bind(args, kwargs)
        shape = Shape.of(self._fixed, bound)
        found = self._translations.get(tuple(shape.key)) or []
        if not found:
            reasons = ", ".join(self._stats.fallbacks) or "no translation"
            return f"{self._name()} runs in Python: {reasons}\n"
        translation = found[0]
        lines = [f"{self._name()}: {len(translation.translator.guards)} guards, {len(translation.fetches)} live inputs"]
        for kind, made in (("foreign", translation.translator.foreign_calls), ("typed", translation.translator.typed_calls)):
            lines += [f"  {kind} {what} at {file}:{line}" for file, line, what in made]
        live = translation.live_objects(shape) or []
        lines += self._explain_weights(translation, bound, shape, live)
        inputs = translation.inputs(shape, live)
        with translation.untouched(inputs):
            return "\n".join(lines) + "\n" + self._session.explain(translation.module, *inputs, profile=profile)

    def _explain_weights(self, translation: Translation, bound: dict[str, Any], shape: Shape, live: list[Any]) -> list[str]:
        if translation.weights is not None:
            return [f"  {_weights.told(entry.tensor for entry in translation.weights.entries)} are packed"]
        names = _weights.names_of(self._flexor_function)
        translator = self._translated(Knowledge(fixed=set(self._fixed)), bound, lambda: _weights.Weights(names))
        if translator.weights is None or not translator.weights.entries:
            return []
        told = _weights.told(entry.tensor for entry in translator.weights.entries)
        if translation.has_effects or translator.has_effects or translation.translator.writer.hooks:
            return [f"  {told} are read anew at every call"]
        packed = Translation(translator, self._session)
        other = packed.live_objects(shape) or []
        calls = [functools.partial(made.run, shape, of) for made, of in ((translation, live), (packed, other))]
        times = [_weights.shortest(call) for call in calls]
        return [
            f"  {told} are read anew at every call; packed by weights=\"frozen\" such a call takes {times[1] * 1e3:.3g} ms in the place of"
            f" {times[0] * 1e3:.3g}"
        ]

    def module(self, *args: P.args, **kwargs: P.kwargs) -> Module:
        """The Module that serves a call with these arguments. Raises NotSupported where Python runs it."""
        self(*args, **kwargs)
        found = self._translations.get(tuple(Shape.of(self._fixed, self._bind(args, kwargs)).key))
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
                self._remove(None)

    def packs(self, ids: set[int]) -> bool:
        """Whether one of the tensors with these ids is packed."""
        translations = [made for several in list(self._translations.values()) for made in several]
        return any(id(entry.tensor) in ids for made in translations if made.weights is not None for entry in made.weights.entries)


def _mark_coroutine(jit: Jit[..., Any]) -> None:
    """Lets inspect and asyncio see that calls give coroutines."""
    if hasattr(inspect, "markcoroutinefunction"):
        inspect.markcoroutinefunction(jit)
    else:
        jit._is_coroutine = asyncio.coroutines._is_coroutine  # type: ignore[attr-defined]


def _restore(target: Any, options: Options) -> Jit[..., Any]:
    return Jit(target, options)
