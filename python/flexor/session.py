"""Session: runs Modules and counts what happened."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from flexor import _flexor, _flexor_fast, _kinds
from flexor._flexor_fast import RunnerBase
from flexor._module import Module, load

_log = logging.getLogger("flexor")
_MOST_ROWS = 10
_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_WARNINGS = {"fallback_alarm", "hard_limit", "compile_failed"}
_INFOS = {"generalise", "over_soft_limit", "interpreted", "evict"}


def _bytes(option: str, limit: int | str | None) -> int:
    """Bytes of a limit: a count, or text such as "256MB"; None is no limit. Raises ArgumentError for anything else."""
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
        raise _kinds.refusal(
            507, argument=option, found=repr(limit), expected="a number of bytes", hint='write a count, or text such as "256MB"'
        )
    return int(number)


def _tell(line: str) -> None:
    event = json.loads(line)
    level = logging.WARNING if event["kind"] in _WARNINGS else logging.INFO if event["kind"] in _INFOS else logging.DEBUG
    if _log.isEnabledFor(level):
        _log.log(level, "%s %s:%s %s", event["kind"], event.get("function", ""), event.get("line", 0), event.get("text", ""))


class Session(RunnerBase):
    """Compiled entries, a memory pool, hooks and telemetry; any number of threads may use one.

    compile       False: interpret only
    compile_behind  regions are interpreted while a thread compiles them: no call waits for that
    exact_only    one compilation per exact shape (the "before" of symbolic shapes)
    threads       threads of the process's kernels, up to 1024; 0 leaves them as they are
    soft_limit    bytes of pool memory kept and reused: a count or text such as "256MB"; the default gives way to a smaller hard limit
    hard_limit    bytes that the pool never exceeds; None: no limit. Results of compiled code on the CPU are not counted
    device_graphs  on a device the launches of a region run as one CUDA graph where they can

    Raises ArgumentError (E0507) for options, and for values of FLEXOR_* variables, that make no sense.

    `run(module, *inputs, out=None, **named_inputs)` runs a Module as calling it does, on this session: the class Module says
    what inputs and results are, and what is raised.
    """

    def __init__(
        self,
        *,
        compile: bool = True,
        compile_behind: bool = False,
        exact_only: bool = False,
        threads: int = 0,
        soft_limit: int | str | None = "256MB",
        hard_limit: int | str | None = None,
        device_graphs: bool = True,
        _native: _flexor.NativeSession | None = None,
    ) -> None:
        self.native = _native or _flexor.NativeSession(
            compile=_kinds.flag("Session", "compile", compile),
            compile_behind=_kinds.flag("Session", "compile_behind", compile_behind),
            exact_only=_kinds.flag("Session", "exact_only", exact_only),
            threads=_kinds.integer("Session", "threads", threads, bits=32),
            soft_limit=_bytes("soft_limit", soft_limit),
            hard_limit=_bytes("hard_limit", hard_limit),
            device_graphs=_kinds.flag("Session", "device_graphs", device_graphs),
        )
        self._left_to_python: dict[tuple[str, str], int] = {}
        self._bind(self.native, self.native.address())
        self.native.set_event_sink(_tell)

    def bind(self, name: str, function: Callable[..., Any], *, is_typed: bool = False) -> None:
        """Makes a Python function reachable as a foreign hook; binding a name again replaces it.

        It gets tensors of the framework of the run, and returns what an input may be. Its exception leaves the run as it is.
        is_typed: programs are told what it gives before they run; its calls are counted as typed calls, and are no fallbacks.
        """
        text, called = _kinds.text("bind", "name", name), _kinds.function("bind", "function", function)
        _flexor_fast.bind_hook(self.native.address(), text, called, _kinds.flag("bind", "is_typed", is_typed))

    def bind_value(self, name: str, value: Any) -> None:
        """Makes a value reachable under a name, for LOAD_FOREIGN and FunctionBuilder.foreign_value; binding a name again
        replaces it.

        Tensors, numbers, texts, lists and dicts become values of the program. Any other object is held as it is: the program
        may read its attributes (GET_ATTRIBUTE, attribute_of), call it (CALL_VALUE, call_value), hand it to hooks and return it.
        """
        _flexor_fast.bind_value(self.native.address(), _kinds.text("bind_value", "name", name), value)

    def load(self, path: str | os.PathLike[str], function: str = "main") -> Module:
        """flexor.load for a program that is to run here: raises NotSupported (E0705) if it calls its host and a name is not bound.
        Calling the module runs it on the default session; `run` is for this one."""
        module = load(path, function)
        self.require_hooks(module)
        return module

    def require_hooks(self, module: Module) -> None:
        """Raises NotSupported (E0705) if the module calls its host and a name is not bound here."""
        self.native.require_hooks(module.native)

    def prepare(
        self,
        module: Module,
        ranges: Mapping[str, tuple[int, int]] | None = None,
        *,
        other_threads: int = 0,
        device: Any = None,
    ) -> None:
        """Compiles, packs and touches ahead of time: runs the module with made-up inputs at the ends of the ranges of its symbols,
        ends included, and at sizes in between: `session.prepare(module, {"S": (1, 512)})`. Afterwards calls of the range on this
        thread, and on as many other threads as are said, neither compile nor grow the pool.

        `device` ("cuda", "cuda:1", a number, a torch.device) prepares for calls with tensors of a CUDA device, on torch's current
        stream there: it also tries sizes all over the ranges, and waits until the variants of kernels that they want are compiled.

        Sizes of other symbols are picked from their declarations. Raises ModuleError for a symbol that the module does not have
        (E0112) or an empty range (E0113), NotSupported (E0705) for a program that calls its host, ResourceLimit (E0605) where
        FROZEN sizes of the range need more compilations than are kept, and what the run raises.
        """
        threads = _kinds.integer("prepare", "other_threads", other_threads, bits=32)
        if not isinstance(module, Module):
            raise _kinds.wrong_kind("prepare", "module", module, "a Module")
        sizes = []
        for symbol, ends in (ranges or {}).items():
            lo, hi = _pair(symbol, ends)
            sizes.append((_kinds.text("prepare", "ranges", symbol), lo, hi))
        number = -1 if device is None else _device_number(device)
        stream = _current_stream(number) if number >= 0 else 0
        self.native.prepare(module.native, sizes, module.function, max(threads, 0), number, stream)

    def interrupt(self) -> None:
        """Stops every run that is under way on this session, at its next loop head or launch, with Interrupted (E0509). For
        other threads and signal handlers; later runs are not affected."""
        self.native.interrupt()

    def synchronize(self, device: int = 0, stream: int = 0) -> None:
        """Waits for what calls have given to a stream (`torch.cuda.Stream.cuda_stream`; 0 is the default one) of a CUDA device.

        Kernels run behind their host: one that met an index out of range or a divisor of 0 is an error of this or of the next
        call on the device, whichever comes first.
        """
        self.native.synchronize(_kinds.integer("synchronize", "device", device), _kinds.integer("synchronize", "stream", stream))

    def explain(self, module: Module, *inputs: Any, profile: bool = False, **named_inputs: Any) -> str:
        """Runs the module once and tells the five steps (load, symbolise, match guards, specialise, generate and register) with
        the reason of each, then the specialised program, its kernels and the executable.

        Inputs as for a call; without any, they are made up, with sizes that the declared ranges allow and that fit together. A
        refusal in mid-run is part of the text; what a foreign function raises is raised. With `profile` every kernel is timed,
        and stands in a table with the bytes and operations that it needs at least and the share of the floor that it reaches: the
        time that a copy of as many bytes takes, measured on this machine, or the peak of the units.
        """
        profile = _kinds.flag("explain", "profile", profile)
        if not isinstance(module, Module):
            raise _kinds.wrong_kind("explain", "module", module, "a Module")
        if not inputs and not named_inputs and module.inputs():
            return str(self.native.explain_example(module.native, module.function, profile))
        return str(_flexor_fast.explain(self.native.address(), module, profile, *inputs, **named_inputs))

    def stats(self) -> dict[str, Any]:
        """Everything counted: rungs, hit rate, fallbacks, compile times, entries, pool, kernels; and under "left_to_python" the calls of
        jitted functions that Python ran, which are in none of the other counters: {"function", "reason", "calls"}, most calls first."""
        return dict(json.loads(self.native.stats_json()), left_to_python=self._left())

    def _left(self) -> list[dict[str, Any]]:
        rows = [{"function": f, "reason": r, "calls": n} for (f, r), n in list(self._left_to_python.items())]
        return sorted(rows, key=lambda row: -row["calls"])

    def _count_left_to_python(self, function: str, reason: str) -> None:
        """Counts a call of a jitted function that Python runs as a whole."""
        self._left_to_python[function, reason] = self._left_to_python.get((function, reason), 0) + 1

    def events(self, after: int = 0) -> list[dict[str, Any]]:
        """Compilations, growth of the pool, evictions and alarms still in the ring, oldest first."""
        return [json.loads(line) for line in self.native.events_json(max(_kinds.integer("events", "after", after), 0))]

    def prometheus(self) -> str:
        """The counters in Prometheus' text format."""
        return str(self.native.prometheus())

    def dashboard(self) -> str:
        """The counters for people."""
        left = self._left()
        if not left:
            return str(self.native.dashboard())
        rows = [f"  {row['function']:<20} {row['calls']:>6} calls   {row['reason']}" for row in left[:_MOST_ROWS]]
        rows += [f"  and {len(left) - _MOST_ROWS} reasons more"] if len(left) > _MOST_ROWS else []
        total = sum(row["calls"] for row in left)
        return f"{self.native.dashboard()}left to Python   {total} calls of jitted functions, in no other counter\n" + "\n".join(rows) + "\n"

    def reset_stats(self) -> None:
        """Sets every counter to zero; compiled entries stay."""
        self._left_to_python.clear()
        self.native.reset_stats()

    def settle(self) -> None:
        """Waits until all that calls so far have left to other threads is done: compiling behind them, and a device's kernels and graphs."""
        self.native.settle()

    def trim(self) -> int:
        """Gives idle pool memory back to the system; returns the bytes."""
        return int(self.native.trim())

    def clear_cache(self) -> None:
        """Drops every compiled entry."""
        self.native.clear_cache()


def _device_number(device: Any) -> int:
    """The number of a CUDA device; -1: the processor."""
    if isinstance(device, int) and not isinstance(device, bool):
        return _kinds.integer("prepare", "device", device)
    kind, _, number = str(device).partition(":")
    if kind not in ("cpu", "cuda") or not (number or "0").isdigit():
        raise _kinds.wrong_kind("prepare", "device", device, 'a device: "cpu", "cuda", "cuda:1", 1')
    return int(number or "0") if kind == "cuda" else -1


def _current_stream(device: int) -> int:
    """torch's, 0 without torch."""
    torch = sys.modules.get("torch")
    return 0 if torch is None or not torch.cuda.is_available() else int(torch.cuda.current_stream(device).cuda_stream)


def _pair(symbol: str, ends: Any) -> tuple[int, int]:
    given = _kinds.items("prepare", symbol, ends)
    if len(given) != 2:
        raise _kinds.wrong_kind("prepare", symbol, ends, "the lowest and the highest size")
    return _kinds.integer("prepare", symbol, given[0]), _kinds.integer("prepare", symbol, given[1])


if sys.executable:
    _flexor.set_device_compiler([sys.executable, str(Path(__file__).with_name("_triton_worker.py"))])


def doctor() -> str:
    """What runs on CUDA devices find on this machine (driver, devices, Triton), and what is missing, a line each."""
    return _flexor.doctor()


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
