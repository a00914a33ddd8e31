"""What a function writes to objects that outlive it: attributes, globals, cells, context variables. And what it warns of.

A write is done when the program ends, in order with the others, so that the program itself has no effect: a call that raises in
the middle can be begun anew by Python. Calls that may look at what has been written force what is pending to be done before them;
so does a program that has effects of other kinds, whose writes are done in place (`Knowledge.defers`).
"""

from __future__ import annotations

import logging
import sys
import types
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from flexor.frontend.cpython import evaluate, foreign
from flexor.frontend.cpython.decode import NotTranslated, Restart
from flexor.frontend.cpython.values import Arguments, Keywords, Known, Value

if TYPE_CHECKING:
    from flexor.frontend.cpython.translate import Translator

Place = tuple[Any, Any]  # (id of a holder or number of an argument's object, what of it)


def write(t: Translator, place: Place, what: str, put: Callable[[Any], Any], value: Value, waits: bool = False) -> None:
    """Writes `value` by `put`, at the end of the program or now (never now if it `waits`). Later reads of the place find it in
    State.written."""
    t.keep_private(value, place[0])
    if t.knowledge.defers or waits:
        t.puts[place] = what, put
        t.state.pending.pop(place, None)  # the last write counts, in its own order
        t.state.pending[place] = None
    else:
        t.foreign(what, put, [value], result="none", is_pure=False)
    t.state.written[place] = value


def forget(t: Translator, place: Place) -> None:
    """A place holds again what it held when the program began."""
    t.state.pending.pop(place, None)
    t.state.written.pop(place, None)


def warn(t: Translator, arguments: Arguments, keywords: Keywords) -> bool:
    """warnings.warn(...), told where Python tells it. As a write it waits for the program's end, so that what follows may raise; but
    where the same statement has warned before, or a function of the Module warns. Gives False where more than the text is of the run."""
    given = dict(zip(("message", "category", "stacklevel", "source"), arguments)) | keywords
    text, place = given.pop("message", None), (id(warnings), t.site())
    if text is None or given.keys() - {"category", "stacklevel"} or not evaluate.all_plain(list(given.values())):
        return False
    options = {name: value.object for name, value in given.items()}  # type: ignore[attr-defined]
    inside = foreign.open_frames(t)
    level = max(int(options.get("stacklevel", 1)), 1)
    at = inside[-level] if level <= len(inside) else None

    def put(message: Any) -> None:
        category = type(message) if isinstance(message, Warning) else options.get("category") or UserWarning
        if at is None:
            warnings.warn(message, category, _levels_of_flexor() + level - len(inside))
        else:
            globals_, code, line = at
            registry = globals_.setdefault("__warningregistry__", {})
            warnings.warn_explicit(message, category, code.co_filename, line, globals_.get("__name__", "<unknown>"), registry)

    if place in t.state.written or t.knowledge.recursive:
        t.foreign("warn", put, [text], result="none", is_pure=False)
    else:
        write(t, place, "warn", put, text)
    return True


def _levels_of_flexor() -> int:
    """How many frames of flexor's stand above what called it, from the caller on."""
    count = 0
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("flexor."):
        count, frame = count + 1, frame.f_back
    return count


def flush_before(t: Translator, arguments: Iterable[Value], clobbers: bool) -> None:
    """Does what is pending, if a call may look at it: one of somebody else's code, or one that is handed an object."""
    if clobbers and t.state.objects:
        t.objects.give_up()  # what it holds may be another thing behind the call
    if clobbers or any(isinstance(value, Known) and _may_be_read(value.object) for value in arguments):
        _flush(t)


def _may_be_read(obj: Any) -> bool:
    return not evaluate.is_plain(obj) and not isinstance(obj, (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, logging.Logger))


def _flush(t: Translator) -> None:
    pending, t.state.pending = t.state.pending, {}
    for place in pending:
        what, put = t.puts[place]
        assert callable(put)  # writes to objects of the arguments leave with the result alone
        t.foreign(what, put, [t.state.written[place]], result="none", is_pure=False)


def leaving(t: Translator) -> list[tuple[Place, Value]]:
    """What is to be written when the program ends here."""
    writes = [(place, t.state.written[place]) for place in t.state.pending]
    for place, put, value in t.objects.written(t.state):
        if not t.knowledge.defers:
            t.objects.give_up()
        t.puts[place] = "set", put
        writes.append((place, value))
    if writes and t.is_for_file:
        raise NotTranslated("it writes to objects of Python", t.state.top.line)
    t.defers = t.defers or bool(writes)
    return writes


def check_order(t: Translator) -> None:
    """Begins anew with writes in place, where an exception behind another effect would lose those that are pending."""
    if t.defers and (t.has_effects or t.has_lasting_writes):
        t.undo_writes()
        if not t.knowledge.defers:
            raise NotTranslated("a context variable that stays set, beside other effects")
        t.knowledge.defers = False
        raise Restart
