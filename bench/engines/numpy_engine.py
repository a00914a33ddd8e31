"""Plain NumPy, for call overhead and the streaming programs."""

import numpy as np


class Engine:
    def __init__(self, _mode):
        self.versions = {"numpy": np.__version__}

    def build(self, program):
        if program not in ("tiny", "add_relu_sum", "relu_sum"):
            raise ValueError(f"no NumPy form of {program}")

    def bind(self, program, arrays):
        if program == "relu_sum":
            return (lambda x: np.maximum(x + np.float32(1.0), 0).sum()), tuple(arrays)
        return (lambda a, b: np.maximum(a + b, 0).sum(-1)), tuple(arrays)

    def to_numpy(self, result):
        return np.asarray(result)
