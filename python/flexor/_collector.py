"""Python's cyclic garbage collector, held off while a translation is made."""

from __future__ import annotations

import gc
import threading
from types import TracebackType

_lock = threading.Lock()
_holders = 0  # translations under way
_was_enabled = False


class Held:
    """`with Held():` lets no collection begin. A translation makes thousands of small objects, most of which stay; a collection of all
    objects of a process that has imported large libraries takes longer than the translation."""

    def __enter__(self) -> None:
        global _holders, _was_enabled
        with _lock:
            if _holders == 0:
                _was_enabled = gc.isenabled()
                gc.disable()
            _holders += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        global _holders
        with _lock:
            _holders -= 1
            if _holders == 0 and _was_enabled:
                gc.enable()
