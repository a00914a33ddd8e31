#!/usr/bin/env python3
"""The demo's model from a wheel: tools/wheel_check.py write FOLDER, then `run FOLDER` where only the wheel and NumPy are.

`write` puts the model and what an interpreter-only session makes of some inputs into FOLDER. `run` imports the installed package,
in the time that it prints, runs the model in lengths that come and go, and compares.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

LENGTHS = (1, 2, 15, 16, 17, 33, 100)
LEAST_COSINE = 0.99999


def inputs(length: int) -> np.ndarray:
    return np.random.default_rng(length).integers(1000, 20000, (2, length))


def write(folder: Path) -> None:
    import flexor
    from bench import models, weights

    module = models.minilm(weights.minilm_weights(), weights.minilm_config())
    module.save(folder / "minilm.flx")
    interpreter = flexor.Session(compile=False)
    np.savez(folder / "minilm.npz", **{str(length): interpreter.run(module, inputs(length)) for length in LENGTHS})


def run(folder: Path) -> None:
    start = time.perf_counter()
    import flexor

    print(f"import flexor, NumPy imported before: {(time.perf_counter() - start) * 1e3:.0f} ms")
    assert not {"torch", "nanobind_backend"} & set(sys.modules)
    model = flexor.load(folder / "minilm.flx")
    expected = np.load(folder / "minilm.npz")
    for length in LENGTHS:
        got, wanted = model(inputs(length)), expected[str(length)]
        cosine = (got * wanted).sum(-1) / np.linalg.norm(got, axis=-1) / np.linalg.norm(wanted, axis=-1)
        assert got.shape == wanted.shape and cosine.min() > LEAST_COSINE, (length, cosine)
    stats = flexor.stats()
    assert stats["interpreted_ops"] == 0 and stats["compilations"] == 1, stats
    print(f"{len(LENGTHS)} lengths, {stats['compilations']} compilation in {stats['compile_seconds'] * 1e3:.0f} ms")
    doubled = flexor.jit(lambda x: (x * 2).sum())  # what follows Python functions is there too
    assert float(doubled(np.ones(3, np.float32))) == 6.0


if __name__ == "__main__":
    {"write": write, "run": run}[sys.argv[1]](Path(sys.argv[2]))
