"""Call overhead: add → relu → sum on [4, 8], where the work itself is a few nanoseconds. Python with NumPy and
torch, and C++."""

import json
import subprocess

from .. import counters, native
from ..rows import measured, timed

ENGINES = (
    "flexor",
    "flexor-torch",
    "torch-eager",
    "torch-compile",
    "torch-compile-dynamic",
    "onnxruntime",
    "onnxruntime-iobinding",
    "numpy",
)
JITTED = ("flexor-jit", "torch-eager", "torch-compile-dynamic")
SHAPE = {"P": 4, "Q": 8}


def run(context):
    rows = []
    with context.built(ENGINES, "tiny") as pool:
        inner = 500 if context.quick else 2000
        samples = context.interleaved(pool, "call overhead", "time", program="tiny", shape=SHAPE, warm=50, inner=inner)
        rows += [timed("overhead", "python", e, "4x8", s) for e, s in samples.items()]
        rows += _rungs(context, pool)
    with context.built(JITTED, "tiny3") as pool:
        samples = context.interleaved(pool, "jitted call", "time", program="tiny3", shape=SHAPE, warm=50, inner=inner)
        rows += [timed("overhead", "jitted function, 3 tensors", e, "4x8", s) for e, s in samples.items()]
    if context.engines is None or "flexor-cpp" in context.engines:
        context.step("call overhead: C++")
        rows += _cpp(context)
    return rows


def _rungs(context, pool):
    """Mean cost of the exact and symbolic rungs with three arguments, as the ladder itself samples it."""
    if pool.ask("flexor", "build", program="tiny3") is None:
        return []
    context.step("call overhead: rungs")
    rows = []
    for rung, requests in (
        ("exact", {"cmd": "time", "shape": SHAPE, "n": 10, "inner": 10000}),
        ("symbolic", {"cmd": "sweep", "shapes": [{"P": p, "Q": q} for p in range(1, 101) for q in range(2, 42)], "n": 0}),
    ):
        pool.ask("flexor", "reset")
        answer = pool.ask("flexor", program="tiny3", **requests) and pool.ask("flexor", "stats")
        cost = counters.rung_cost_s(answer["stats"], rung) if answer else None
        if cost is not None:
            rows.append(measured("overhead", f"{rung} rung", "flexor", "3 arguments", cost, "s"))
    return rows


def _cpp(context):
    """Rows printed by the C++ program, JSON lines {case, samples_s}."""
    try:
        program = native.call_overhead_program()
    except native.NotBuilt as error:
        context.note(str(error))
        return []
    done = subprocess.run([str(program)], capture_output=True, text=True)
    if done.returncode:
        context.note(f"flexor-cpp: {done.stderr.strip()[-300:]}")
        return []
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [timed("overhead", line["case"], "flexor-cpp", line["shape"], line["samples_s"]) for line in lines]
