"""Field cases, size one: the order of the first sizes matters."""

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

from oracle import judge  # noqa: E402
from programs import Program  # noqa: E402


@pytest.mark.parametrize("order", ((1, 2, 5, 1, 64), (64, 1, 2), (0, 1, 5)), ids=str)
def test_f038_batch_one_first_freezes_nothing(order):
    program = Program(
        [("x", "float32", ["B", 16]), ("w", "float32", [16, 8]), ("b", "float32", [8])],
        lambda f, x, w, b: (f.matmul(x, w) + b).relu(),
    )
    w, b = torch.randn(16, 8), torch.randn(8)
    for batch in order:
        x = torch.randn(batch, 16)
        judge(program(x, w, b), (x @ w + b).relu(), (x.double() @ w.double() + b.double()).relu(), ulps=16)
    assert program.compilations <= 2


def test_f040_the_stride_of_a_size_one_axis_costs_no_compilation():
    first = Program([("x", "float32", ["N"])], lambda f, x: (x + 1.0).reshape([-1, 1, 2]))
    second = Program([("y", "float32", ["N", "K", 2])], lambda f, y: y * 3.0)
    for n in (8, 10):
        x = torch.randn(n)
        y = first(x)
        assert torch.equal(y, (x + 1).view(-1, 1, 2))
        assert torch.equal(second(y), y * 3)
        # The same axis with the stride 0 that an expanded view has there.
        assert torch.equal(second(y.as_strided(y.shape, (2, 0, 1))), y * 3)
    assert second.compilations == 1


def test_f041_one_row_of_a_padded_matrix_is_no_plan_for_two():
    program = Program([("x", "float32", ["R", "C"])], lambda f, x: f.contiguous(x).reshape([-1]) * 1.0)
    for rows in (1, 2, 1, 3):
        x = torch.randn(rows, 4_672)[:, :4_640]
        assert torch.equal(program(x), x.contiguous().view(-1))


@pytest.mark.parametrize("order", ((0, 1, 3, 0), (1, 8), (3, 0)), ids=str)
def test_f043_a_perceptron_whose_first_batch_is_zero_or_one(order):
    def body(f, x, w1, b1, w2, b2):
        return f.linear(f.linear(x, w1, b1).relu(), w2, b2)

    def eager(x, w1, b1, w2, b2):
        return torch.nn.functional.linear(torch.nn.functional.linear(x, w1, b1).relu(), w2, b2)

    shapes = {"w1": (32, 16), "b1": (32,), "w2": (4, 32), "b2": (4,)}
    tensors = [torch.randn(s) for s in shapes.values()]
    program = Program([("x", "float32", ["B", 16]), *((n, "float32", list(s)) for n, s in shapes.items())], body)
    for batch in order:
        x = torch.randn(batch, 16)
        truth = eager(x.double(), *(t.double() for t in tensors))
        judge(program(x, *tensors), eager(x, *tensors), truth, ulps=16)
    assert program.compilations <= 2


def test_f042_coordinates_of_a_single_element():
    program = Program([("x", "float32", [1, 1, 1, 1])], lambda f, x: (f.nonzero(x), f.nonzero(x).square()))
    for value, shape in ((3.0, (1, 4)), (0.0, (0, 4)), (3.0, (1, 4))):
        found, squared = program(torch.full((1, 1, 1, 1), value))
        assert found.shape == squared.shape == shape
        assert found.dtype == torch.int64
        assert not found.any()
