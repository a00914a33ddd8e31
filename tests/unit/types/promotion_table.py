"""Writes promotion.txt: the result dtypes of torch.result_type and numpy.result_type for every pair of operands.

A line is `rule dtype:strength dtype:strength result`, with strength t (tensor), z (rank 0), s (Python scalar).
int16, which Flexor's tensors do not have, is written as the next wider dtype, i32.

    python tests/unit/types/promotion_table.py > tests/unit/types/promotion.txt
"""

import itertools

import numpy as np
import torch

NAMES = ["bool", "u8", "i8", "i32", "i64", "f16", "bf16", "f32", "f64"]
FRAMEWORK = dict(
    u8="uint8",
    i8="int8",
    i32="int32",
    i64="int64",
    f16="float16",
    bf16="bfloat16",
    f32="float32",
    f64="float64",
    bool="bool",
    i16="int16",
)
SCALARS = {"bool": True, "i64": 1, "f64": 1.0}


def operands(names):
    return [(n, s) for s in "tz" for n in names] + [(n, "s") for n in SCALARS]


def write(rule, names, make, result_type, dtype_of):
    back = {dtype_of(FRAMEWORK[n]): n for n in names + ["i16"]}
    for a, b in itertools.combinations_with_replacement(operands(names), 2):
        result = back[result_type(make(*a), make(*b))]
        result = "i32" if result == "i16" else result
        print(rule, ":".join(a), ":".join(b), result)


def make_torch(name, strength):
    if strength == "s":
        return SCALARS[name]
    return torch.zeros((2,) if strength == "t" else (), dtype=getattr(torch, FRAMEWORK[name]))


def make_numpy(name, strength):
    if strength == "s":
        return SCALARS[name]
    return np.zeros(2 if strength == "t" else (), dtype=FRAMEWORK[name])


write("torch", NAMES, make_torch, torch.result_type, lambda name: getattr(torch, name))
write("numpy", [n for n in NAMES if n != "bf16"], make_numpy, np.result_type, np.dtype)
