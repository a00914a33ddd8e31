"""PyTorch: eager, torch.compile with its defaults, torch.compile(dynamic=True)."""

import os

import torch

from .. import loops, torch_models

torch.set_grad_enabled(False)
torch.set_num_threads(len(os.sched_getaffinity(0)))
torch._dynamo.config.recompile_limit = 64


class Engine:
    def __init__(self, mode):
        self.versions = {"torch": torch.__version__}
        self.mode, self.calls = mode, {}

    def build(self, program):
        makers = {
            "tiny": lambda: torch_models.add_relu_sum,
            "tiny3": lambda: torch_models.add_relu_sum_three,
            "add_relu_sum": lambda: torch_models.add_relu_sum,
            "relu_sum": lambda: torch_models.relu_sum,
            "chain": torch_models.chain,
            "encoder": torch_models.encoder,
            "encoder12": lambda: torch_models.encoder(layers=12),
            "minilm": torch_models.minilm,
        }
        call = loops.PROGRAMS[program] if program in loops.PROGRAMS else makers[program]()
        if self.mode != "eager":
            call = torch.compile(call, dynamic=True if self.mode == "dynamic" else None)
        self.calls[program] = call

    def bind(self, program, arrays):
        return self.calls[program], tuple(torch.from_numpy(a) for a in arrays)

    def to_numpy(self, result):
        return result.numpy()
