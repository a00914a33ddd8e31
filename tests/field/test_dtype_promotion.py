"""Field cases, dtype promotion: the dtype first, the values then. torch and NumPy have rules of their own."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")


def test_f064_low_precision_compared_with_a_number(field):
    def compares(x, number):
        return x == 3.14, x > 3.14, x == number, x < number

    f = field(compares)
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        f(torch.tensor([3.14, 3.0, 3.15, float("nan")]).to(dtype), 3.14)
    field.is_native()


def test_f065_a_running_sum_keeps_the_dtype_asked_for(field):
    def sums(x):
        return x.cumsum(1, dtype=torch.bfloat16), torch.ones_like(x).cumsum(1, dtype=torch.float16)

    f = field(sums)
    first, _ = f(torch.ones(2, 4, 4, dtype=torch.bool))
    assert first.dtype == torch.bfloat16 and first[0, :, 0].tolist() == [1, 2, 3, 4]
    f(torch.ones(2, 9, 4, dtype=torch.int64))
    field.is_native()


def test_f067_a_multiplier_of_a_subtracted_number_keeps_the_dtype(field):
    def subtracts(x, factor):
        return torch.sub(x, 1, alpha=2), x.sub(1, alpha=factor), torch.rsub(x, 1, alpha=2)

    f = field(subtracts)
    for dtype in (torch.float64, torch.float32, torch.float16, torch.int64):
        f(torch.arange(5).to(dtype), 3)
    field.is_native()


def test_f068_a_tensor_without_axes_does_not_widen(field):
    def times(x):
        return x * torch.tensor(3), x * torch.full((), 2)

    f = field(times)
    for dtype in (torch.float16, torch.float32, torch.int32):
        assert {y.dtype for y in f(torch.arange(5).to(dtype))} == {dtype}
    field.is_native()


@pytest.mark.skip(reason="needs a GPU")
def test_f068_on_the_device():
    """A 0-d tensor of the CPU times a vector of the device."""


def test_f069_numpy_has_rules_of_its_own(field):
    def sums(x):
        return np.cumsum(x, axis=1), x.sum(), (x > 0).any()

    def arithmetic(x):
        return np.square(x), x / x, x * x

    def unsigned(x):
        return np.sum(x), np.any(x)

    def median(x):
        return np.median(x)

    f, g, h, m = field(sums), field(arithmetic), field(unsigned), field(median)
    column = np.zeros((100, 27, 1), np.int8)
    column[:, :3] = [[100], [27], [1]]
    assert f(column)[0].dtype == np.int64
    f(column[:3])
    for _ in range(2):
        g(np.array([1, 2, 100], np.int8))
        h(np.array([200, 200, 0], np.uint8))
        m(np.array([1, 5, 2], np.int8))
    field.leaves("np.sum", "median", why="sums of unsigned integers have 64 unsigned bits, which the engine has not")


def test_f069_unsigned_types_that_the_engine_does_not_have(field):
    def adds(x, y):
        return x + y

    f = field(adds)
    for _ in range(2):
        assert f(np.array([1, 65_535], np.uint16), np.array([1, 2**32 - 1], np.uint32)).dtype == np.uint32
    field.falls_back("the argument x is a ndarray that is not read directly", why="the engine has no unsigned integers of more than 8 bits")


def test_f071_a_number_of_python_is_no_tensor_of_float64(field):
    def scales(x, factor):
        return x * 2.0, x * 2, x + 1, x * factor

    f = field(scales)
    for dtype in (torch.int64, torch.bool, torch.float16, torch.int32, torch.bfloat16):
        for factor in (2.0, 2, True, 1e10):
            f(torch.tensor([0, 1, 1]).to(dtype), factor)
    assert f(torch.ones(2, dtype=torch.float16), 1e10)[3].tolist() == [float("inf")] * 2
    field.is_native()


def test_f072_small_integers_that_are_broadcast(field):
    def clamps(x, y):
        return torch.minimum(x & y, y), torch.clamp_max(x & y, y)

    f = field(clamps)
    for dtype in (torch.int8, torch.uint8, torch.int32, torch.int64):
        f(torch.arange(50).reshape(5, 10, 1).to(dtype), torch.arange(10).reshape(10, 1).to(dtype))
    field.is_native()


def test_f072_types_that_the_engine_does_not_have(field):
    def bits(x, y):
        return torch.minimum(x & y, y)

    f = field(bits)
    for _ in range(2):
        f(torch.arange(50).reshape(5, 10, 1).to(torch.int16), torch.arange(10).reshape(10, 1).to(torch.int16))
    f(torch.ones(5, 10, 1, dtype=torch.bool), torch.ones(10, 1, dtype=torch.bool))
    field.falls_back("a tensor of dtype torch.int16", why="the engine has no integers of 16 bits: bool, 8, 32 and 64 bits alone")
