"""Context variables: what a function sets is a write of the program, what it reads is guarded."""

from __future__ import annotations

import contextvars
from typing import TYPE_CHECKING, Any

from flexor.frontend.cpython import effects, evaluate
from flexor.frontend.cpython.decode import NotTranslated
from flexor.frontend.cpython.guards import MISSING
from flexor.frontend.cpython.values import Arguments, InstanceValue, Known, Value

if TYPE_CHECKING:
    from flexor.frontend.cpython.translate import Translator

METHODS = ("get", "set", "reset")
_BEFORE: Any = type("Before", (), {"__repr__": lambda self: "<before the call>", "__slots__": ()})()  # what the call began with


def method(t: Translator, variable: contextvars.ContextVar[Any], name: str, arguments: Arguments) -> Value:
    """variable.name(...), name one of METHODS."""
    place = (id(variable), "context")
    if name == "get" and len(arguments) <= 1:
        return _get(t, variable, arguments)
    if name == "set" and len(arguments) == 1:
        token = InstanceValue(contextvars.Token, {"var": Known(variable), "before": t.state.written.get(place, Known(_BEFORE))})
        effects.write(t, place, "ContextVar.set", variable.set, arguments[0], waits=True)
        return token
    if name == "reset" and len(arguments) == 1:
        return _reset(t, variable, arguments[0])
    raise NotTranslated(f"ContextVar.{name}", t.state.top.line)


def _get(t: Translator, variable: contextvars.ContextVar[Any], arguments: Arguments) -> Value:
    written = t.state.written.get((id(variable), "context"))
    if written is not None:
        return written
    found = variable.get(MISSING) if arguments else variable.get(_own_default(variable))
    t.guards.context(variable, MISSING if arguments else _own_default(variable), found)
    if found is not MISSING:
        return t.known(found)
    return arguments[0] if arguments else evaluate.raises(t, "ContextVar.get", variable.get, [])


def _own_default(variable: contextvars.ContextVar[Any]) -> Any:
    """What get() gives where nothing is set; MISSING where it raises."""
    return contextvars.Context().run(_get_default, variable)


def _get_default(variable: contextvars.ContextVar[Any]) -> Any:
    try:
        return variable.get()
    except LookupError:
        return MISSING


def _reset(t: Translator, variable: contextvars.ContextVar[Any], token: Value) -> Value:
    fields = token.fields if isinstance(token, InstanceValue) and token.cls is contextvars.Token else {}
    owner, before = fields.get("var"), fields.get("before")
    if not isinstance(owner, Known) or owner.object is not variable or before is None:
        raise NotTranslated("ContextVar.reset of a token of somebody else's", t.state.top.line)
    del fields["before"]  # a token serves once
    place = (id(variable), "context")
    if not isinstance(before, Known) or before.object is not _BEFORE:
        effects.write(t, place, "ContextVar.set", variable.set, before, waits=True)
    elif place in t.state.pending:
        effects.forget(t, place)
    else:
        raise NotTranslated("ContextVar.reset behind a call that may look at the variable", t.state.top.line)
    return Known(None)
