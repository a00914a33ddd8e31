"""Session: runs Modules and counts what happened."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from flexor import _flexor, _flexor_fast
from flexor._flexor_fast import RunnerBase
from flexor._module import Module

_log = logging.getLogger("flexor")
_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_WARNINGS = {"fallback_alarm", "hard_limit", "compile_failed"}
_INFOS = {"generalise", "over_soft_limit", "interpreted", "evict"}


def _bytes(limit: int | str | None) -> int:
    """Bytes of a limit: a count, or text such as "256MB"; None is no limit. Raises ValueError for anything else."""
    if limit is None:
        return 0
    number: float = -1
    if isinstance(limit, int):
        number = limit
    elif isinstance(limit, str):
        text = limit.strip().upper()
        text = text.removesuffix("IB") + "B" if text.endswith("IB") else text
        unit = next((u for u in sorted(_UNITS, key=len, reverse=True) if text.endswith(u)), "")
        try:
            number = float(text.removesuffix(unit)) * _UNITS.get(unit, 1)
        except ValueError:
            pass
    if not 0 <= number < 2**63:
        raise ValueError(f'{limit!r} is no number of bytes; write a count, or text such as "256MB"')
    return int(number)


def _tell(line: str) -> None:
    event = json.loads(line)
    level = logging.WARNING if event["kind"] in _WARNINGS else logging.INFO if event["kind"] in _INFOS else logging.DEBUG
    if _log.isEnabledFor(level):
        _log.log(level, "%s %s:%s %s", event["kind"], event.get("function", ""), event.get("line", 0), event.get("text", ""))


class Session(RunnerBase):
    """Compiled entries, a memory pool, hooks and telemetry; any number of threads may use one.

    compile       False: interpret only
    exact_only    one compilation per exact shape (the "before" of symbolic shapes)
    threads       threads of the process's kernels; 0 leaves them as they are
    soft_limit    bytes of pool memory kept and reused: a count or text such as "256MB"
    hard_limit    bytes that the pool never exceeds; None: no limit
    """

    def __init__(
        self,
        *,
        compile: bool = True,
        exact_only: bool = False,
        threads: int = 0,
        soft_limit: int | str | None = "256MB",
        hard_limit: int | str | None = None,
        poison: bool = False,
        _native: _flexor.NativeSession | None = None,
    ) -> None:
        self.native = _native or _flexor.NativeSession(
            compile=compile,
            exact_only=exact_only,
            threads=threads,
            soft_limit=_bytes(soft_limit),
            hard_limit=_bytes(hard_limit),
            poison=poison,
        )
        self._bind(self.native, self.native.address())
        self.native.set_event_sink(_tell)

    def bind(self, name: str, function: Callable[..., Any]) -> None:
        """Makes a Python function reachable as a foreign hook. Its exception leaves the run as it is."""
        _flexor_fast.bind_hook(self.native.address(), name, function)

    def explain(self, module: Module, *inputs: Any) -> str:
        """Runs the module once and tells the five steps (load, symbolise, match guards, specialise, generate and register) with the
        reason of each, then the specialised program, its kernels and the executable. Without inputs, sizes come from the declared ranges.
        """
        if not inputs and module.inputs():
            return str(self.native.explain_example(module.native, module.function))
        return str(_flexor_fast.explain(self.native.address(), module, *inputs))

    def stats(self) -> dict[str, Any]:
        """Everything counted: rungs, hit rate, fallbacks, compile times, entries, pool, kernels."""
        return dict(json.loads(self.native.stats_json()))

    def events(self, after: int = 0) -> list[dict[str, Any]]:
        """Compilations, growth of the pool, evictions and alarms still in the ring, oldest first."""
        return [json.loads(line) for line in self.native.events_json(after)]

    def prometheus(self) -> str:
        """The counters in Prometheus' text format."""
        return str(self.native.prometheus())

    def dashboard(self) -> str:
        """The counters for people."""
        return str(self.native.dashboard())

    def reset_stats(self) -> None:
        """Sets every counter to zero; compiled entries stay."""
        self.native.reset_stats()

    def trim(self) -> int:
        """Gives idle pool memory back to the system; returns the bytes."""
        return int(self.native.trim())

    def clear_cache(self) -> None:
        """Drops every compiled entry."""
        self.native.clear_cache()


_default: Session | None = None


def default_session() -> Session:
    """The session that calling a Module uses."""
    global _default
    if _default is None:
        _default = Session(_native=_flexor.default_session())
    return _default


def stats() -> dict[str, Any]:
    """Counters of the default session."""
    return default_session().stats()


def dashboard() -> str:
    """Dashboard of the default session."""
    return default_session().dashboard()


def prometheus() -> str:
    """Counters of the default session in Prometheus' text format."""
    return default_session().prometheus()
