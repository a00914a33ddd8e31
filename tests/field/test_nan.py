"""Field cases, NaN, infinity, special values: the NaN stands in every lane of a vector register and in the tail."""

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

import numpy as np  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from oracle import judge  # noqa: E402
from programs import Program  # noqa: E402

NAN, INF = float("nan"), float("inf")
SPECIAL = (NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 3.4e38, 1e-45)


def same(got, wanted):
    torch.testing.assert_close(got, wanted, rtol=0, atol=0, equal_nan=True)


def test_f073_maximum_minimum_and_clamp_keep_nan_of_either_side():
    two = Program(
        [("x", "float32", ["N"]), ("y", "float32", ["N"])],
        lambda f, x, y: (f.relu(x), f.maximum(x, y), f.minimum(x, y), f.clamp(x, y, None), f.clamp(x, None, y)),
    )
    for n in range(1, 68, 3):
        for lane in range(n):
            for left, right in ((NAN, 1.0), (1.0, NAN), (NAN, NAN)):
                x, y = torch.zeros(n), torch.ones(n)
                x[lane], y[lane] = left, right
                relu, maximum, minimum, lower, upper = two(x, y)
                same(relu, torch.relu(x))
                same(maximum, torch.maximum(x, y))
                same(minimum, torch.minimum(x, y))
                same(lower, torch.clamp(x, min=y))
                same(upper, torch.clamp(x, max=y))


def test_f073_an_integer_clamped_by_a_float_becomes_float():
    program = Program([("x", "int64", ["N"])], lambda f, x: f.clamp(x, 0.5, None))
    x = torch.tensor([-3, 0, 1, 7])
    got = program(x)
    assert got.dtype == torch.float32
    same(got, torch.clamp(x, min=0.5))


def test_f074_the_first_nan_is_the_maximum_by_index():
    after_log = Program([("x", "float32", ["N"])], lambda f, x: f.argmax(f.log1p(x), axes=[0], keepdim=False))
    assert after_log(torch.tensor([-3.0, 100.0])).item() == 0
    program = Program(
        [("x", "float32", ["N"])],
        lambda f, x: (f.argmax(x, axes=[0], keepdim=False), f.argmin(x, axes=[0], keepdim=False)),
    )
    for n in (1, 2, 15, 16, 17, 33, 67):
        for lane in range(n):
            x = torch.arange(float(n))
            x[lane] = NAN
            assert [r.item() for r in program(x)] == [lane, lane]
            x[(lane + n // 2) % n] = NAN
            assert [r.item() for r in program(x)] == [torch.argmax(x).item(), torch.argmin(x).item()]


def test_f075_a_row_with_a_nan_anywhere_has_the_maximum_nan():
    program = Program([("x", "float32", ["R", "N"])], lambda f, x: (x.max(axes=[-1]), x.min(axes=[-1])))
    for n in range(1, 68):
        x = torch.full((n + 1, n), 42.0)
        x[:n].fill_diagonal_(NAN)
        for got in program(x):
            assert got.isnan().tolist() == [True] * n + [False], n
    for count in (2, 3, 4):
        for got in program(torch.tensor([[NAN] * count + [42.0]])):
            assert got.isnan().all()


def test_f077_functions_of_special_values():
    def body(f, x):
        return f.relu(x), f.abs(x), f.floor(x), f.hardswish(x), f.sign(x, keep_nan=True), f.sign(x, keep_nan=False)

    program = Program([("x", "float32", ["N"])], body)
    for n in (len(SPECIAL), 3 * len(SPECIAL)):
        x = torch.tensor((SPECIAL * 3)[:n])
        relu, magnitude, floor, hardswish, numpy_sign, torch_sign = program(x)
        same(relu, torch.relu(x))
        same(magnitude, x.abs())
        same(floor, x.floor())
        same(hardswish, F.hardswish(x))
        same(numpy_sign, torch.from_numpy(np.sign(x.numpy())))
        same(torch_sign, x.sign())


def attention(mask_dtype):
    shape = ["B", "H", "S", "D"]
    return Program(
        [*((n, "float32", shape) for n in "qkv"), ("mask", mask_dtype, ["B", 1, "S", "S"])],
        lambda f, q, k, v, mask: f.sdpa(q, k, v, mask),
    )


def test_f079_attention_rows_with_every_key_masked():
    q, k, v = (torch.randn(1, 1, 4, 2) for _ in range(3))
    allowed = torch.ones(1, 1, 4, 4, dtype=torch.bool)
    allowed[..., 2, :] = False
    got = attention("bool")(q, k, v, allowed)
    eager = F.scaled_dot_product_attention(q, k, v, allowed)
    same(got[..., 2, :], eager[..., 2, :])
    torch.testing.assert_close(got, eager, equal_nan=True)
    additive = attention("float32")
    for value in (-INF, torch.finfo(torch.float32).min):
        mask = torch.zeros(1, 1, 4, 4)
        mask[..., 2, :] = value
        torch.testing.assert_close(
            additive(q, k, v, mask), F.scaled_dot_product_attention(q, k, v, mask), equal_nan=True
        )
    lowest = additive(q, k, v, mask)
    torch.testing.assert_close(lowest[..., 2, :], v.mean(-2))


def test_f079_softmax_of_a_row_of_minus_infinity_is_nan():
    program = Program([("x", "float32", ["R", "N"])], lambda f, x: f.softmax(x, axis=-1))
    for n in (1, 4, 17, 64):
        x = torch.zeros(3, n)
        x[1] = -INF
        got = program(x)
        assert got[1].isnan().all()
        torch.testing.assert_close(got[[0, 2]], torch.full((2, n), 1 / n))


def test_f080_causal_attention_with_a_relative_bias_at_odd_lengths():
    """Lengths around a block's end: finite, and equal to the formula written out."""
    shape = [1, 2, "S", 64]
    program = Program(
        [*((n, "float32", shape) for n in "qkv"), ("bias", "float32", [1, 2, "S", "S"])],
        lambda f, q, k, v, bias: f.sdpa(q, k, v, bias, is_causal=False),
    )
    for length in (1, 127, 128, 129, 1_025):
        q, k, v = (torch.randn(1, 2, length, 64) for _ in range(3))
        position = torch.arange(length)
        bias = -0.1 * (position[:, None] - position[None, :]).abs().float() * torch.tensor([1.0, 0.5])[:, None, None]
        bias = bias.masked_fill(position[None, :] > position[:, None], -INF)[None]
        got = program(q, k, v, bias)
        assert got.isfinite().all()

        def formula(q, k, v, bias):
            return torch.softmax(q @ k.transpose(-1, -2) / 8 + bias, -1) @ v

        judge(got, formula(q, k, v, bias), formula(*(t.double() for t in (q, k, v, bias))), ulps=64)


def test_f081_clip_by_tensors_keeps_nan_until_it_is_replaced():
    def body(f, x, low, high):
        y = f.clamp(x, low, high)
        return f.where(f.isnan(y), 0.0, y)

    program = Program([("x", "float32", ["R", "C"]), ("low", "float32", ["C"]), ("high", "float32", ["C"])], body)
    for rows in (16, 3):
        x = torch.randn(rows, 10) * 20
        x[0] = NAN
        low, high = torch.full((10,), -10.0), torch.full((10,), 10.0)
        got = program(x, low, high)
        assert (got[0] == 0).all()
        same(got, torch.clamp(x, low, high).nan_to_num(0.0))
