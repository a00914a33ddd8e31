"""flexor.jit on functions and modules of PyTorch."""

import torch

import flexor

from .. import loops, torch_models

torch.set_grad_enabled(False)


class Engine:
    def __init__(self, weights):
        self.weights = weights
        self.versions = {"flexor": flexor.__version__, "torch": torch.__version__}
        self.calls = {}

    def build(self, program):
        makers = {"tiny3": lambda: torch_models.add_relu_sum_three, "minilm": torch_models.minilm}
        call = makers[program]() if program in makers else loops.PROGRAMS[program]
        self.calls[program] = flexor.jit(call, weights=self.weights, fallback="raise")

    def bind(self, program, arrays):
        return self.calls[program], tuple(torch.from_numpy(a) for a in arrays)

    def to_numpy(self, result):
        return result.numpy()

    def stats(self):
        return flexor.stats()
