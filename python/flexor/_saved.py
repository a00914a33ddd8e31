"""What `save` of a jitted function writes: a Module that runs without Python."""

from __future__ import annotations

from flexor._module import Module
from flexor.errors import FlexorError, from_diagnostic
from flexor.frontend.cpython import results
from flexor.frontend.cpython.translate import Translator


def refusal(name: str, reason: str) -> FlexorError:
    """Why a function cannot be saved (E0706)."""
    text = f"E0706 {name} needs objects or functions of Python, which a file does not hold\n  found {reason}"
    return from_diagnostic("E0706", "NotForAFile", text)


def module_of(translator: Translator, name: str) -> Module:
    """The Module of a translation that was made for a file."""
    assert not translator.live_inputs and not translator.writer.hooks
    (leaving,) = translator.exits.values()
    translator.writer.builder.metadata("function", name)
    translator.writer.builder.metadata("result", results.spelt(leaving.template))
    return Module(translator.writer.builder.build())
