"""Values, layouts and the judge that tests share: results are held against torch, accuracy against float64.

A result agrees when shape, dtype and (where asked) strides are eager's, NaN and infinities stand where eager
has them, and no element
is further from the float64 truth than four times eager's worst error plus a few units in the last place.
"""

import numpy as np
import torch

SIZES = (0, 1, 2, 15, 16, 17, 33)

FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
INTS = (torch.int64, torch.int32, torch.int8, torch.uint8)
ALL = (*FLOATS, *INTS, torch.bool)


def name_of(dtype):
    """The framework name that the Builder takes: "float32"."""
    return str(dtype).removeprefix("torch.")


def values(shape, dtype, seed=0, domain="any"):
    """A contiguous tensor of reproducible values. Domains: any, positive, unit (-1..1), small (whole numbers 0..3)."""
    rng = np.random.default_rng((seed, *shape))
    if dtype == torch.bool:
        return torch.from_numpy(rng.integers(0, 2, shape).astype(bool))
    if domain == "small":
        return torch.from_numpy(rng.integers(0, 4, shape)).to(dtype)
    if dtype.is_floating_point:
        raw = rng.standard_normal(shape) * 2
        raw = {"any": raw, "positive": np.abs(raw) + 0.1, "unit": np.tanh(raw)}[domain]
        return torch.from_numpy(np.asarray(raw)).to(dtype)
    low = 1 if domain == "positive" else -100 if torch.iinfo(dtype).min < 0 else 0
    return torch.from_numpy(rng.integers(low, 101, shape)).to(dtype)


def _embedded(v, sizes, index):
    """The values of `v` inside a larger tensor of `sizes` at `index`, filled with 77 elsewhere."""
    host = torch.full(sizes, 77, dtype=torch.float32).to(v.dtype)
    view = host[index]
    view.copy_(v)
    return view


def _transposed(v):
    return v.transpose(0, -1).contiguous().transpose(0, -1)


def _every_second(v):
    return _embedded(v, (*v.shape[:-1], 2 * v.shape[-1] + 1), (..., slice(1, None, 2)))


def _wide_pitch(v):
    return _embedded(v, (*v.shape[:-1], v.shape[-1] + 3), (..., slice(0, v.shape[-1])))


def _offset(v):
    flat = torch.full((v.numel() + 1,), 77, dtype=torch.float32).to(v.dtype)
    view = flat[1:].view(v.shape)
    view.copy_(v)
    return view


def _expanded(v):
    one = v[:1] if v.shape[0] else torch.ones((1, *v.shape[1:]), dtype=v.dtype)
    return one.expand(v.shape)


def _overlapping(v):
    """Every stride 1: neighbouring rows share elements."""
    flat = v.reshape(-1)[: sum(v.shape)]
    host = torch.zeros(sum(v.shape) + 1, dtype=v.dtype)
    host[: flat.numel()] = flat
    host[flat.numel() :] = 1
    return host.as_strided(v.shape, (1,) * v.dim())


LAYOUTS = {
    "contiguous": lambda v: v,
    "transposed": _transposed,
    "every second": _every_second,
    "wide pitch": _wide_pitch,
    "offset by one": _offset,
    "expanded": _expanded,
    "overlapping": _overlapping,
}


def laid_out(shape, dtype, layout, seed=0, domain="any"):
    v = values(shape, dtype, seed, domain)
    return LAYOUTS[layout](v) if v.dim() else v


def _double(x):
    if isinstance(x, torch.Tensor) and x.is_floating_point():
        return x.double()
    return [_double(i) for i in x] if isinstance(x, list) else x


def seen_strides(t):
    """Strides that a caller can tell apart: none for an empty tensor, and none along axes of size 1."""
    return () if t.numel() == 0 else tuple(s for s, n in zip(t.stride(), t.shape) if n != 1)


def judge(got, eager, truth, ulps=4, strides=False, scale=0.0):
    """Raises AssertionError with one sentence when `got` does not agree with eager.

    `truth` is eager's function in float64. `scale` (a number or a tensor) is what errors may be relative to beside the
    result itself: the sum of magnitudes for sums and products.
    """
    if isinstance(got, np.ndarray):
        got = torch.from_numpy(got)
    assert isinstance(got, torch.Tensor), f"result is a {type(got).__name__}"
    assert got.dtype == eager.dtype, f"dtype {got.dtype}, expected {eager.dtype}"
    assert got.shape == eager.shape, f"shape {tuple(got.shape)}, expected {tuple(eager.shape)}"
    if strides:
        assert seen_strides(got) == seen_strides(eager), f"strides {got.stride()}, expected {eager.stride()}"
    if not eager.is_floating_point():
        assert torch.equal(got, eager), f"got {got.flatten()[:8].tolist()}, expected {eager.flatten()[:8].tolist()}"
        return
    for what in (torch.isnan, torch.isposinf, torch.isneginf):
        assert torch.equal(what(got), what(eager)), f"{what.__name__}: {got.flatten()[:8]}, not {eager.flatten()[:8]}"
    finite = torch.isfinite(eager) & torch.isfinite(truth)
    info = torch.finfo(eager.dtype)
    size = torch.as_tensor(scale, dtype=torch.float64).expand(truth.shape)[finite]
    got, eager, truth = (t[finite].double() for t in (got, eager, truth))
    if truth.numel():
        if info.eps == torch.finfo(torch.float64).eps:  # eager is the truth: its own error is not known, only its size
            size = size + truth.abs().max()
        error = (got - truth).abs()
        allowed = 4 * (eager - truth).abs().max() + info.eps * (ulps * truth.abs() + 2 * size) + info.tiny
        worst = int((error - allowed).argmax())
        assert error[worst] <= allowed[worst], (
            f"{got[worst]:.9g} is {error[worst]:.3g} from {truth[worst]:.9g}, allowed {allowed[worst]:.3g}"
        )


def check(function, session, module, operands, magnitude=None, **how):
    """Runs `module` on `operands` and judges every result against `function` in eager.

    `magnitude` gives, from the operands' absolute values in float64, the scale of errors (see judge).
    """
    got = session.run(module, *operands)
    exact = [_double(x) for x in operands]
    eager, truth = function(*operands), function(*exact)
    if magnitude is not None and truth.is_floating_point():
        how["scale"] = magnitude(*(x.abs() for x in exact))
    results = [got] if isinstance(eager, torch.Tensor) else got
    eagers, truths = ([x] if isinstance(x, torch.Tensor) else list(x) for x in (eager, truth))
    assert len(results) == len(eagers)
    for g, e, t in zip(results, eagers, truths):
        judge(g, e, t, **how)
