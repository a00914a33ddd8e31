"""Compile time: encoder layer, 12 identical layers, and a cold process that loads MiniLM and gives its first result.

Every sample is a fresh worker process without any kernel cache. Compile time of an engine is what its first call takes
above a repeated one, plus its build call; Flexor's own counter stands beside it.
"""

import json
import shutil
import subprocess
import sys

from .. import counters, native
from ..pool import ROOT
from ..rows import timed

CACHE = "cold"


def run(context):
    rows = []
    for program, case in (("encoder", "encoder layer"), ("encoder12", "12 layers")):
        for engine in context.chosen(("flexor", "torch-compile-dynamic")):
            ours = engine == "flexor"
            if not ours and context.quick:
                continue
            repeats = (3 if context.quick else 20) if ours else 1
            samples, counted = [], []
            for turn in range(repeats):
                context.step(f"compile time: {case}, {engine}, process {turn + 1} of {repeats}")
                shutil.rmtree(native.BUILD / f"{CACHE}-{engine}", ignore_errors=True)
                with context.pool([engine], CACHE) as pool:
                    if not pool.ask(engine, "build", program=program):
                        break
                    answer = pool.ask(engine, "each", program=program, shapes=[{"S": 64, "B": 1}], repeat=5)
                    if not answer:
                        break
                    (times,) = answer["s"]
                    samples.append(times[0] - min(times[1:]))
                    if ours:
                        counted.append(counters.compile_s(pool.ask(engine, "stats")["stats"]))
            if samples:
                rows.append(timed("compile_time", f"{case}: first call above repeated", engine, "1x64x768", samples))
            if counted:
                rows.append(timed("compile_time", f"{case}: counted", engine, "1x64x768", counted))
    return rows + _cold_minilm(context)


def _cold_minilm(context):
    """import + load + first result of MiniLM from a .flx file, in processes that never import torch."""
    if not context.chosen(("flexor",)):
        return []
    path = native.BUILD / "minilm.flx"
    with context.built(("flexor",), "minilm") as pool:
        if pool.ask("flexor", "save", program="minilm", path=str(path)) is None:
            return []
    samples = []
    for turn in range(4 if context.quick else 21):
        context.step(f"cold MiniLM: process {turn + 1}")
        command = [sys.executable, "-m", "bench.cold_minilm", str(path)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            context.note(f"cold MiniLM: {done.stderr.strip()[-300:]}")
            return []
        samples.append(json.loads(done.stdout)["s"])
    warm = samples[1:]  # the first process warms the page cache
    return [timed("compile_time", "cold process: MiniLM import, load, first result", "flexor", "1x12", warm)]
