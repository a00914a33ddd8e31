"""Small programs for the field tests: one function, built or assembled in a line or two, with a session that counts."""

import os
import subprocess
import sys

import flexor
import torch


def in_another_process(code, *arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Program:
    """A module with a session of its own. `inputs` is a list of (name, dtype, dims); `body(f, *inputs)` gives
    the results."""

    def __init__(self, inputs, body, weights=(), **options):
        b = flexor.Builder()
        constants = [b.weight(name, array) for name, array in weights]
        f = b.function("main", inputs=inputs)
        results = body(f, *f.inputs, *constants)
        f.output(*results if isinstance(results, (list, tuple)) else (results,))
        self.module, self.session = b.build(), flexor.Session(**options)

    def __call__(self, *arguments):
        return self.session.run(self.module, *arguments)

    @property
    def compilations(self):
        return self.session.stats()["compilations"]


class Assembled(Program):
    """The same from `.fasm` text."""

    def __init__(self, folder, text, **options):
        path = folder / "program.fasm"
        path.write_text(text)
        self.module, self.session = flexor.load(str(path)), flexor.Session(**options)


def dirty_pool(program):
    """Leaves NaN in the session's freed buffers: intermediates of many sizes that held nothing else."""
    dirt = Program(
        [("x", "float32", ["N", "M"])],
        lambda f, x: (x.sum(axes=[0]) + (x * 2.0).softmax(axis=-1).sum(axes=[0])).sum(axes=[-1]),
    )
    for size in (1, 3, 16, 64, 300):
        program.session.run(dirt.module, torch.full((size, size), float("nan")))
