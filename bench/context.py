"""What a group of measurements gets: how much to measure, which engines, and where notes go."""

import dataclasses
from collections.abc import Callable

import numpy as np

from . import native, quiet
from .pool import Pool

REFERENCES = ("torch-eager", "onnxruntime", "numpy")  # the first that runs judges the others
CHECK_SHAPE = {"P": 4, "Q": 8, "S": 33, "N": 17}
TOLERANCE = 2e-3


@dataclasses.dataclass
class Context:
    """`rounds` × `per_round` samples a case, rounds taken engine by engine; at least 20 unless `quick`."""

    quick: bool
    note: Callable[[str], None]
    step: Callable[[str], None]
    engines: tuple[str, ...] | None = None  # None: every engine of the group

    @property
    def rounds(self):
        return 2 if self.quick else 5

    @property
    def per_round(self):
        return 2 if self.quick else 4

    def chosen(self, names):
        return [n for n in names if self.engines is None or n in self.engines]

    def pool(self, names, cache="inductor"):
        return Pool(self.chosen(names), self.note, cache)

    def built(self, names, program):
        """A pool whose engines have built `program` and agree on its result; one that does not is noted and dropped."""
        pool = self.pool(names)
        self.step(f"{program}: building")
        pool.ask_all("build", program=program)
        results = {}
        for name in list(pool.workers):
            path = native.BUILD / f"result-{name}.npy"
            if pool.ask(name, "out", program=program, shape=CHECK_SHAPE, path=str(path)) is not None:
                results[name] = np.load(path)
        reference = next((results[name] for name in REFERENCES if name in results), None)
        for name, result in results.items() if reference is not None else ():
            if result.shape != reference.shape:
                pool.drop(name, f"{program}: result has shape {result.shape}, expected {reference.shape}")
            elif not np.allclose(result, reference, rtol=TOLERANCE, atol=TOLERANCE):
                pool.drop(name, f"{program}: result differs by {np.abs(result - reference).max():.3g}")
        pool.ask_all("drop")
        return pool

    def interleaved(self, pool, label, cmd, **request):
        """{engine: samples} of `cmd` ("time" or "sweep"), every round asking each engine in turn."""
        samples = {}
        for turn in range(self.rounds):
            self.step(f"{label}: round {turn + 1} of {self.rounds}")
            for name, answer in pool.ask_all(cmd, n=self.per_round, **request).items():
                samples.setdefault(name, []).extend(answer["s"])
            busy = quiet.complaint(sample_s=0.2)
            if busy:
                self.note(f"{label}: not quiet while measuring: {busy}")
        return {name: s for name, s in samples.items() if name in pool}
