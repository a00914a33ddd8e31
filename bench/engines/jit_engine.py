"""flexor.jit on functions of PyTorch."""

import torch

import flexor

from .. import loops

torch.set_grad_enabled(False)


class Engine:
    def __init__(self, _mode):
        self.versions = {"flexor": flexor.__version__, "torch": torch.__version__}
        self.calls = {}

    def build(self, program):
        self.calls[program] = flexor.jit(loops.PROGRAMS[program], fallback="raise")

    def bind(self, program, arrays):
        return self.calls[program], tuple(torch.from_numpy(a) for a in arrays)

    def to_numpy(self, result):
        return result.numpy()

    def stats(self):
        return flexor.stats()
