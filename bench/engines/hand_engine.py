"""The hand-written kernels of bench/cpp/hand.cpp: a floor measured beside the engines, not a rival."""

import ctypes

import numpy as np

from .. import native
from ..weights import chain_weights


class Engine:
    def __init__(self, _mode):
        self.versions = {}
        self.library = ctypes.CDLL(str(native.hand_library()))

    def build(self, program):
        if program not in ("add_relu_sum", "relu_sum", "chain"):
            raise ValueError(f"no hand-written kernel of {program}")

    def bind(self, program, arrays):
        shape = arrays[0].shape
        rows = int(np.prod(shape[:-1]))
        if program == "chain":
            w = chain_weights(shape[-1])
            out, kernel = np.empty(shape, np.float32), self.library.hand_chain
            held = [arrays[0], w["g"], w["b"], out]
        elif program == "relu_sum":
            out, kernel = np.empty((), np.float32), self.library.hand_relu_sum
            held = [arrays[0], out]
        else:
            out, kernel = np.empty(shape[:-1], np.float32), self.library.hand_add_relu_sum
            held = [*arrays, out]
        kernel.argtypes = [ctypes.c_void_p] * len(held) + [ctypes.c_long] * 2
        arguments = (*(a.ctypes.data for a in held), rows, shape[-1])

        def call(*args):
            kernel(*args)
            return out, held  # `held` keeps the buffers alive as long as the callable

        return call, arguments

    def to_numpy(self, result):
        return result[0]
