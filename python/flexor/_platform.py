"""Where the compiled modules run, said in one sentence to whoever is elsewhere."""

from __future__ import annotations

import importlib
import os
import sys

_WANTED = "flexor needs Linux with glibc 2.35 or newer on x86_64 or aarch64, and CPython 3.10 to 3.13"


def _glibc() -> tuple[int, ...]:
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        return tuple(int(part) for part in version.split(".")[:2]) if name == "glibc" else ()
    except (AttributeError, OSError, ValueError):
        return ()


def _misfit() -> str:
    """What of this system does not fit; empty: all does."""
    if not sys.platform.startswith("linux"):
        return f"this is {sys.platform}"
    if os.uname().machine not in ("x86_64", "aarch64"):
        return f"this machine is {os.uname().machine}"
    if not _glibc():
        return "this system has another C library"
    if _glibc() < (2, 35):
        return "this is glibc " + ".".join(map(str, _glibc()))
    if sys.implementation.name != "cpython" or not (3, 10) <= sys.version_info[:2] <= (3, 13):
        return f"this is {sys.implementation.name} " + ".".join(map(str, sys.version_info[:2]))
    return ""


def check() -> None:
    """Raises ImportError, in one sentence, where the compiled modules cannot be loaded."""
    try:
        importlib.import_module("flexor._flexor_fast")
        importlib.import_module("flexor._flexor")
    except ImportError as error:
        if misfit := _misfit():
            raise ImportError(f"{_WANTED}; {misfit}.") from error
        if isinstance(error, ModuleNotFoundError) and error.name in ("flexor._flexor_fast", "flexor._flexor"):
            here = "CPython " + ".".join(map(str, sys.version_info[:2]))
            raise ImportError(f"this installation of flexor holds no compiled module for {here}; install it for this one.") from error
        raise
