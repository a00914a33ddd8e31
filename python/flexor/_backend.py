"""The part of nanobind that binds to one interpreter: a wheel carries it for each that it serves, else it is the package
nanobind-backend."""

from __future__ import annotations

from typing import Any


def fill(abi_major: int, platform_tag: str, table: Any) -> Any:
    """Called by the compiled module as it is loaded."""
    try:
        from flexor import _nb_backend_v1 as backend  # type: ignore[attr-defined]
    except ImportError:
        import nanobind_backend as backend
    return backend.fill(abi_major, platform_tag, table)
