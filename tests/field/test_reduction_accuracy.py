"""Field cases, reduction accuracy: judged against float64, relative to eager's own error."""

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
pytest.importorskip("flexor", reason="the engine is not built")

import torch.nn.functional as F  # noqa: E402
from oracle import judge  # noqa: E402
from programs import Program  # noqa: E402


def test_f083_narrow_dtypes_are_summed_in_a_wide_one():
    half_sum = Program([("x", "float16", ["N"])], lambda f, x: x.sum(axes=[0]))
    assert half_sum(torch.ones(20_000, dtype=torch.float16)).item() == 20_000
    mean = Program([("x", "bfloat16", ["N"])], lambda f, x: x.mean(axes=[0]))
    assert mean(torch.ones(70_000, dtype=torch.bfloat16)).item() == 1.0
    softmax = Program([("x", "float16", ["R", "N"])], lambda f, x: f.softmax(x, axis=-1))
    got = softmax(torch.full((3, 4_096), 5.0, dtype=torch.float16))
    assert (got == 1 / 4_096).all()
    assert got.float().sum(-1).tolist() == [1.0] * 3
    pooled = Program([("x", "float16", ["N", "H", "W"])], lambda f, x: x.mean(axes=[1, 2]))
    assert pooled(torch.ones(2, 100, 100, dtype=torch.float16)).tolist() == [1.0, 1.0]


@pytest.mark.slow
def test_f086_normalising_over_one_huge_plane():
    program = Program([("x", "float32", [1, 3, "H", "W"])], lambda f, x: f.layer_norm(x, eps=1e-5, normalized_ndim=2))
    for size in (64, 4_096):
        x = torch.rand(1, 3, size, size)
        truth = x.double()
        truth = (truth - truth.mean((2, 3), keepdim=True)) / (
            truth.var((2, 3), correction=0, keepdim=True) + 1e-5
        ).sqrt()
        error = (program(x) - truth).abs().max()
        assert error <= max(4 * (F.instance_norm(x) - truth).abs().max(), 1e-6)


def test_f087_variance_of_data_far_from_zero():
    """Layer norm of 1e6 + noise: close to float64, never NaN from a negative variance."""
    program = Program([("x", "float32", ["R", "N"])], lambda f, x: f.layer_norm(x, eps=1e-5))
    for width in (32, 100, 768, 4_096):
        x = 1e6 + torch.randn(8, width)
        got, truth = program(x), F.layer_norm(x.double(), (width,), eps=1e-5)
        assert got.isfinite().all()
        # The mean itself, rounded to float32 at 1e6, moves every element by up to 1/16 of a unit: that much is
        # not the sum's fault.
        eager = (F.layer_norm(x, (width,), eps=1e-5) - truth).abs().max()
        assert (got - truth).abs().max() <= max(4 * eager, 0.07)


def test_f088_what_follows_a_norm_is_not_blown_up():
    """Layer norm, reciprocal, reciprocal square root of a shifted value: at most 4 times eager's worst
    relative error."""

    def eager(x):
        y = F.layer_norm(x, x.shape[-1:], eps=1e-5)
        return 1 / y, (y.abs() + 1e-3).rsqrt()

    def body(f, x):
        y = f.layer_norm(x, eps=1e-5)
        return f.reciprocal(y), f.rsqrt(f.abs(y) + 1e-3)

    program = Program([("x", "float32", ["R", "N"])], body)
    x = torch.randn(16, 1_024)
    for got, plain, truth in zip(program(x), eager(x), eager(x.double())):
        worst, allowed = (((t - truth) / truth).abs().max() for t in (got, plain))
        assert worst <= max(4 * allowed, 1e-5)


def test_f089_a_sum_of_ones_passes_2_to_the_24():
    flat = Program([("x", "float32", ["N"])], lambda f, x: x.sum(axes=[0]))
    count = 2**25
    assert flat(torch.ones(count)).item() == count
    assert flat(torch.ones(2 * count)[::2]).item() == count
    for columns in (4, 1):
        by_column = Program([("x", "float32", ["N", "M"])], lambda f, x: x.sum(axes=[0]))
        assert by_column(torch.ones(count, 1).expand(count, columns)).tolist() == [count] * columns


def test_f091_extremes_of_one_tensor_over_different_axes():
    """Several max and min of (4, 32, 17, 13) in one program, and what is computed from them: bit-equal."""

    def body(f, x):
        high, low = x.max(axes=[2, 3], keepdim=True), x.min(axes=[1, 2, 3], keepdim=True)
        return high, low, x.min(axes=[3], keepdim=False), (x - low) / (high - low)

    program = Program([("x", "float32", ["A", "B", "C", "D"])], body)
    for shape in ((4, 32, 17, 13), (1, 3, 33, 2)):
        x = torch.randn(shape) * 1_000
        high, low = x.amax((2, 3), keepdim=True), x.amin((1, 2, 3), keepdim=True)
        wanted = (high, low, x.amin(3), (x - low) / (high - low))
        for got, right in zip(program(x), wanted):
            assert torch.equal(got, right)


def test_f092_a_grid_in_half_precision_times_a_matrix():
    """Coordinates -1..1 over 8 steps an axis, homogeneous, times a 3 x 4 matrix: within eager's own tolerance."""
    program = Program(
        [("grid", "float16", ["N", 4]), ("m", "float16", [3, 4])], lambda f, grid, m: f.matmul(grid, m.permute([1, 0]))
    )
    axis = torch.linspace(-1, 1, 8)
    grid = (
        torch.stack([*torch.meshgrid(axis, axis, axis, indexing="ij"), torch.ones(8, 8, 8)], -1).reshape(-1, 4).half()
    )
    m = torch.randn(3, 4).half()
    judge(program(grid, m), grid @ m.T, grid.double() @ m.double().T)
