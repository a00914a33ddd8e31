"""What is measured: program name → input arrays for a shape, and the work that bounds its time from below."""

import numpy as np

DIM, BATCH = 768, 8
NARROW = 64  # dim of "narrow_encoder": the same steps, hardly any arithmetic
SWEEP_SEED = 1
LOOPS = ("newton", "lstm", "nms", "nms_mask", "kv_cache", "early_exit", "greedy", "compact")  # bench/loops.py, which needs torch


def _normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def inputs(program, shape):
    """Input arrays of `program`; `shape` holds S, or P and Q for the matrix form. The same shape gives the
    same values everywhere."""
    if program in LOOPS:
        from . import loops

        return loops.inputs(program, shape)
    length = shape.get("S", 0)
    batch = shape.get("B", BATCH)
    if program in ("tiny", "tiny3"):
        return [_normal(seed, shape["P"], shape["Q"]) for seed in range(3 if program == "tiny3" else 2)]
    if program == "add_relu_sum":
        return [_normal(2 * length + seed, batch, length, DIM) for seed in (0, 1)]
    if program in ("relu_sum", "chain", "encoder", "encoder12"):
        return [_normal(length, batch, length, DIM)]
    if program == "narrow_encoder":
        return [_normal(length, batch, length, NARROW)]
    if program == "minilm":
        return [np.random.default_rng(length).integers(1000, 30000, (shape.get("B", 1), length))]
    raise ValueError(f"unknown program {program!r}")


def encoder_flops(batch, length, dim=DIM, ffn=4 * DIM):
    """Multiply-adds counted as two, contractions only."""
    tokens = batch * length
    return 2 * tokens * dim * (4 * dim + 2 * ffn) + 4 * batch * length * length * dim


def sweep_lengths(count=20, low=32, high=256, seed=SWEEP_SEED):
    """`count` lengths drawn from [low, high] with repetition, the same on every machine."""
    return [int(s) for s in np.random.default_rng(seed).integers(low, high + 1, count)]


def distinct_lengths(count, low=32, high=256, seed=SWEEP_SEED):
    """`count` different lengths from [low, high] in random order."""
    return [int(s) for s in np.random.default_rng(seed).permutation(np.arange(low, high + 1))[:count]]
