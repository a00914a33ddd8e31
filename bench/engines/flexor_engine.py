"""Flexor through its public Python API. A Session of its own, so that counters belong to the measurement alone."""

import sys

try:
    import flexor
except ImportError as error:
    sys.exit(f"flexor is not importable ({error}); build it first: ./dev build")

from .. import models, programs, weights


class Engine:
    def __init__(self, mode):
        self.versions = {"flexor": getattr(flexor, "__version__", "unknown")}
        self.modules, self.mode = {}, mode
        self.reset()
        if mode == "torch":
            import torch

            torch.set_grad_enabled(False)
            self.versions["torch"] = torch.__version__

    def reset(self):
        """A fresh session: empty ladder, counters at zero."""
        self.session = flexor.Session(exact_only=self.mode == "exact-only")

    def build(self, program):
        makers = {
            "tiny": models.add_relu_sum_rows,
            "tiny3": models.add_relu_sum_three,
            "add_relu_sum": models.add_relu_sum,
            "relu_sum": models.relu_sum,
            "chain": models.chain,
            "encoder": models.encoder,
            "encoder12": lambda: models.encoder(layers=12),
            "narrow_encoder": lambda: models.encoder(config=weights.EncoderConfig(programs.NARROW, 4, 2 * programs.NARROW)),
            "minilm": lambda: models.minilm(weights.minilm_weights(), weights.minilm_config()),
        }
        self.modules[program] = makers[program]()

    def bind(self, program, arrays):
        if self.mode == "torch":
            import torch

            arrays = [torch.from_numpy(a) for a in arrays]
        return self.session.run, (self.modules[program], *arrays)

    def to_numpy(self, result):
        return result.numpy() if self.mode == "torch" else result

    def stats(self):
        return self.session.stats()

    def save(self, program, path):
        self.modules[program].save(path)
