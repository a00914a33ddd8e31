"""Compiling beside the calls: `compile="async"` lets Python run a new program's calls until a thread has compiled it."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from flexor.errors import FlexorError

_one_at_a_time = threading.Lock()


def copies(values: Sequence[Any]) -> list[Any]:
    """Values of a call with tensors of their own, whatever becomes of those that the caller has."""
    return [v.detach().clone() if hasattr(v, "detach") else v.copy() if hasattr(v, "ctypes") else v for v in values]


def run_once(program: Callable[..., Any], values: Sequence[Any], settle: Callable[[], None], then: Callable[[], None]) -> None:
    """Runs a program in a thread, drops what it gives, waits until what it has met is compiled, and calls `then`."""

    def work() -> None:
        torch = sys.modules.get("torch")
        try:
            with _one_at_a_time, torch.no_grad() if torch is not None else contextlib.nullcontext():
                program(*values)
                settle()
        except FlexorError:
            pass  # the call that comes to this place will tell
        finally:
            then()

    # The interpreter waits for it at its end: no thread may stop in the middle of the engine.
    threading.Thread(target=work, name="flexor-compile").start()
