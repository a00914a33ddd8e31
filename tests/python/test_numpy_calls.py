"""Calls of NumPy that rows of the front end describe, beside NumPy: forms, dtypes, scalars and errors where the two could part.

Each line is an expression over x [4, 5] and v [5] (float32), d [4, 5] (float64), i [4, 5] (int64), b [4, 5] (bool) and e [0, 3].
"""

import numpy as np
import pytest

flexor = pytest.importorskip("flexor", reason="the engine is not built")

CALLS = """
np.add(x, i), np.subtract(x, 2), np.multiply(i, 2.5), np.divide(i, i + 1), np.true_divide(x, 2), np.floor_divide(i, 3), np.remainder(x, 2), np.mod(i, 3), np.fmod(x, 2)
np.power(x, 2), np.power(i, 2), x ** 2, i ** 2, 2.0 ** x
i ** -1
np.power(i, -1)
np.sqrt(i), np.exp(x), np.log(np.abs(x)), np.square(i), np.square(b), np.sign(x), np.abs(i), np.absolute(b), np.negative(x), np.reciprocal(x)
np.negative(b)
np.maximum(x, i), np.minimum(x, 0), np.fmax(x, v), np.arctan2(x, v), np.tanh(i), np.sin(d), np.expm1(x)
np.logical_and(x, b), np.logical_not(i), np.bitwise_and(i, 3), np.invert(b), np.left_shift(i, 1), np.isnan(x), np.isfinite(i)
x == i, x < 2, np.equal(x, x), np.not_equal(i, 3), np.greater(x, v)
np.where(b, x, 0), np.where(b, i, 2.5), np.where(b, 1, 2), np.where(x, x, x)
np.where(x.sum() > 0, 1.0, 2.0), np.where(x[0, 0] > 0, x[0, 0], v[0]), np.where(True, 1.0, 2.0) + x, np.where(b.any(), i[1, 1], 3) * 2
np.clip(x, 0, 1), np.clip(i, 2, 10), np.clip(x, None, v), x.clip(0), np.clip(i, 2.5, None)
np.clip(x, a_min=0, a_max=1), np.clip(x, min=0, max=1)
np.sum(x), np.sum(x, axis=0), np.sum(i, (0, 1)), x.sum(-1, keepdims=True), np.sum(b), np.sum(x, axis=())
np.sum(x, dtype=np.float64), np.mean(i), np.mean(x, 1), np.mean(b, axis=0), i.mean(0), np.prod(x, 0), np.prod(i[:, :2], (0, 1))
np.max(x), np.max(x, axis=1), np.amin(i, 0), x.max(), x.min(axis=0, keepdims=True), np.max(b)
np.max(e, axis=0)
np.argmax(x), np.argmax(x, 1), x.argmin(0), np.argmax(i, axis=1, keepdims=True)
np.any(x, axis=0), np.all(b), b.any(), np.all(x, axis=()), np.any(x, axis=())
np.var(x), np.var(x, 0, ddof=1), x.std(1), np.std(i), np.std(b), np.var(x, axis=())
np.reshape(x, (5, 4)), x.reshape(2, -1), x.reshape((20,)), np.ravel(x), x.ravel(), x.flatten(), x.T, x.T.ravel()
np.transpose(x), np.transpose(x, (1, 0)), x.transpose(), x.transpose(1, 0), np.swapaxes(x, 0, 1), np.expand_dims(x, 0), np.expand_dims(x, -1), np.squeeze(x[None]), np.squeeze(x[None], 0)
np.squeeze(x, 0)
np.expand_dims(x, (0, 1))
np.broadcast_to(v, (4, 5)), np.concatenate([x, x]), np.concatenate((x, i), axis=1), np.stack([x, x], axis=-1), np.concatenate([x, x], axis=None)
np.vstack((x, v)), np.hstack((x, x)), np.hstack((v, v)), np.dstack((x, x)), np.column_stack((v, v)), np.column_stack((x, x[:, 0]))
np.copy(x), x.copy(), np.matmul(x, x.T), np.dot(x, v), np.dot(v, v), x.dot(v), x @ v, i @ i.T, np.outer(v, v), np.outer(x, v), np.inner(x, v), np.inner(v, v), np.vdot(v, v), np.vdot(x, x)
np.dot(x, 2), np.dot(2, x)
np.inner(x, x), np.tensordot(x, x, axes=2), np.kron(v, v), np.trace(x)
np.take(x, i[0, :2], axis=0), x.take(i[0], axis=1), np.take(x, [0, 1], axis=0), np.take(x, 3)
np.take(x, i, axis=0)
np.tril(x), np.triu(i, 1), np.tril(v), np.tril(b)
np.zeros((2, 3)), np.ones(3, dtype=int), np.zeros_like(x), np.ones_like(i), np.full_like(i, 2.5), np.full_like(x, 3), np.zeros(x.shape), np.zeros(2, np.float32)
np.full((2, 3), 7), np.full(3, 2.5), np.full((2,), 1, dtype=np.float32), np.eye(3), np.eye(2, 3), np.identity(3), np.arange(3) + i[0, :3], np.arange(1, 7, 2), np.arange(3.0), np.linspace(0, 1, 5)
np.empty_like(x).shape, np.empty((2, 3)).dtype, np.ones_like(b), np.zeros((x.shape[0], 2)), np.asarray(x), np.ascontiguousarray(x.T), np.array(x)
x.astype(np.float64), i.astype(np.float32), x.astype(int), b.astype(int), x.astype(np.float32, copy=False), x.astype('float64'), x.astype(bool)
np.flip(x), np.flip(x, 0), np.flipud(x), np.fliplr(x), np.roll(x, 1), np.roll(x, 1, axis=0), np.roll(x, (1, 2), axis=(0, 1)), x[::-1], x[:, ::-1]
np.tile(v, 2), np.tile(x, (2, 1)), np.repeat(x, 2, axis=0), np.repeat(v, 3), np.repeat(x, 2)
np.moveaxis(x, 0, 1), np.atleast_1d(x.sum()), np.atleast_2d(v), np.atleast_3d(x), np.rollaxis(x, 1)
np.split(x, 2), np.split(x, [1, 3]), np.array_split(x, 3), np.hsplit(x, 5), np.vsplit(x, 2)
np.split(x, 3)
x[0, 0].item(), int(i[1, 1]), len(x), x.shape, x.ndim, x.size, x.dtype, x.nbytes, x.itemsize
np.linalg.norm(x), np.linalg.norm(x, axis=1), np.linalg.norm(v, 1), np.linalg.norm(x, axis=0, keepdims=True), np.linalg.norm(v, np.inf), np.linalg.norm(i), np.linalg.norm(x, 2)
np.einsum('ij,kj->ik', x, x), np.einsum('ij->j', x), np.einsum('ij,j->i', x, v), np.einsum('ii->i', x[:, :4])
np.count_nonzero(x), np.count_nonzero(i, axis=0), np.isclose(x, x + 1e-9), np.allclose(x, x), np.array_equal(x, x), np.ptp(x), np.ptp(x, axis=0)
np.average(x), np.average(x, axis=0), np.nansum(x), np.nanmean(x), np.nanmax(x), np.median(x), np.percentile(x, 50), np.cumsum(x), np.cumsum(x, axis=0)
np.diff(x), np.diff(x, axis=0), np.logaddexp(x, v), np.deg2rad(x), np.rad2deg(i), np.radians(x), np.degrees(x), np.nan_to_num(x), np.heaviside(x, 0.5), np.hypot(x, v)
np.around(x, 2), np.round(x), np.round(x, 2), x.round(), x.round(2), np.rint(x), np.trunc(x), np.fix(x), np.floor(x), np.ceil(i), np.round(i)
np.pad(x, 1), np.pad(x, ((1, 2), (0, 1))), np.pad(x, 1, mode='edge'), np.pad(v, (1, 2), constant_values=3), np.pad(i, 1, constant_values=2)
np.sort(x), np.argsort(x), np.unique(i), np.searchsorted(v, x), np.nonzero(b), x.nonzero(), np.argwhere(b), np.take_along_axis(x, np.argsort(x, axis=1), axis=1)
np.maximum.reduce(x), np.add.reduce(x, axis=1), np.add.outer(v, v), np.multiply.accumulate(v)
np.sum(x, where=b), np.max(x, initial=0), np.add(x, x, where=b, out=np.zeros_like(x)), np.exp(x, dtype=np.float64)
np.float32(2) * x, x * np.float64(2), np.int8(3) + i, np.float64(2.5) * i, x.mean() * x, x / x.sum(), i.sum() / 3, x.max() - x
x[b], x[i[0, :2]], x[..., 0], x[None], x[1:, ::2], x[-1], x[i[0, :2], i[0, :2]], x[:, None, 0], x[b.any(1)]
x + [1, 2, 3, 4, 5], x * (1, 2, 3, 4, 5), np.add(x, [1, 2, 3, 4, 5]), np.maximum(x, [0])
x[7]
x[0, 0, 0]
"""


def arguments():
    rng = np.random.default_rng(0)
    x, v = (rng.standard_normal(shape).astype(np.float32) for shape in ((4, 5), 5))
    return x, np.arange(20).reshape(4, 5), x > 0, v, rng.standard_normal((4, 5)), np.empty((0, 3), np.float32)


def outcome(function):
    try:
        return "returned", function(*arguments())
    except Exception as error:
        return "raised", error


def alike(got, wanted):
    if isinstance(wanted, (np.ndarray, np.generic)):
        if type(got) is not type(wanted) or (got.dtype, got.shape) != (wanted.dtype, wanted.shape):
            return False
        return np.allclose(np.asarray(got, float), np.asarray(wanted, float), 1e-5, 1e-6, equal_nan=True)
    if isinstance(wanted, (tuple, list)):
        return type(got) is type(wanted) and len(got) == len(wanted) and all(map(alike, got, wanted))
    return type(got) is type(wanted) and repr(got) == repr(wanted)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS.strip().splitlines())
def test_call_is_numpys(call):
    function = eval(f"lambda x, i, b, v, d, e: ({call})", {"np": np})
    wanted, got = outcome(function), outcome(flexor.jit(function, fallback="silent"))
    assert got[0] == wanted[0], (got, wanted)
    assert isinstance(got[1], type(wanted[1])) if wanted[0] == "raised" else alike(got[1], wanted[1]), (got, wanted)


def test_flipped_arrays_are_views():
    def write(x):
        y = np.flip(x, 0)
        y[0] = 7
        return x

    for function in (write, flexor.jit(write)):
        x = arguments()[0]
        assert (function(x)[-1] == 7).all()


def test_composed_calls_are_native():
    x, _, _, v, _, _ = arguments()
    for function in (
        lambda x, v: np.vstack((x, v[None])),
        lambda x, v: np.einsum("ij,j->i", x, v),
        lambda x, v: np.linalg.norm(x, axis=1),
        lambda x, v: np.split(x, 2)[1],
        lambda x, v: np.diff(np.repeat(x, 2, axis=0)),
        lambda x, v: np.allclose(x, x + v),
    ):
        jitted = flexor.jit(function, fallback="raise")
        assert alike(jitted(x, v), function(x, v))
        assert not jitted.stats()["foreign_calls"]


def test_methods_that_write_are_numpys():
    def function(x):
        x.sort()
        first = x[:, 0] * 2
        x.fill(3)
        return first, x.sum(), x

    jitted = flexor.jit(function, fallback="silent")
    for _ in range(2):
        assert alike(jitted(arguments()[0]), function(arguments()[0]))


@pytest.mark.parametrize("is_behind", [False, True], ids=["first", "behind a write"])
@pytest.mark.parametrize("mask", [(0,), (4,), (3,), (0, 5), (4, 0), (0, 0), (0, 3)], ids=str)
def test_masks_without_elements_fit_any_axis(mask, is_behind):
    def reads(x, done, mask):
        if is_behind:
            done += 1
        return x[mask]

    def writes(x, done, mask):
        if is_behind:
            done += 1
        x[mask] = 2
        return x

    def writes_array(x, done, mask):
        if is_behind:
            done += 1
        x[mask] = x[:1, :1].sum(axis=0)
        return x

    for function in (reads, writes, writes_array):
        jitted = flexor.jit(function, fallback="silent")
        for call in range(2):
            results = []
            for f in (function, jitted):
                x, done = arguments()[0], np.zeros(2, np.float32)
                try:
                    results.append(("returned", f(x, done, np.ones(mask, bool)), x, done))
                except IndexError:
                    results.append(("raised", x, done))
            assert alike(*results), results


def test_rows_without_elements_are_looked_up_all_the_same():
    def writes(x, i):
        x[i] = 1
        return x

    def writes_behind(x, i):
        x += 1
        x[i] = 1
        return x

    for function in (writes, writes_behind):
        jitted = flexor.jit(function, fallback="silent")
        assert jitted(np.zeros((3, 0), np.float32), np.array([2, -3])).shape == (3, 0)
        for i in ([7], [-4], [0, 3]):
            with pytest.raises(IndexError):
                jitted(np.zeros((3, 0), np.float32), np.array(i))
