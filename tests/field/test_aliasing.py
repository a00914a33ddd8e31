"""Field cases, aliasing and mutation: the result, every argument after the call, and the memory that arguments are views of."""

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")


def test_f053_inputs_that_overlap_after_inputs_that_do_not(field):
    def doubles(x, y):
        x.mul_(2)
        return x + y

    f = field(doubles)
    f(torch.ones(4), torch.ones(4))
    base = torch.ones(8)
    assert f(base[0:4], base[2:6]).tolist() == [4, 4, 3, 3]
    assert f(base[2:6], base[0:4]).tolist() == [3, 3, 4, 4]
    f(torch.ones(4), torch.ones(4))
    field.is_native()


def test_f055_one_element_of_an_expanded_view_is_all_of_them(field):
    def writes(x, i):
        y = x[i].expand(2)
        y[-1] = 3
        return y

    f = field(writes)
    for i in (0, 1, 0):
        assert f(torch.arange(2), i).tolist() == [3, 3]
    field.is_native()


def test_f057_adding_into_rows_of_a_transposed_view(field):
    def adds(x, index, rows):
        y = x.t()
        y.index_add_(0, index, rows)
        return y

    f = field(adds)
    rows = torch.arange(1.0, 10).reshape(3, 3)
    for _ in range(2):
        y = f(torch.ones(3, 5), torch.tensor([0, 4, 2]), rows)
        assert y.tolist() == [[2, 3, 4], [1, 1, 1], [8, 9, 10], [1, 1, 1], [5, 6, 7]] and y.stride() == (1, 5)
    field.is_native()


def test_f058_halving_what_a_mask_selects_if_it_selects_anything(field):
    def halves(x, threshold):
        mask = x > threshold
        if mask.any():
            x[mask] *= 0.5
        return x

    f = field(halves)
    x = torch.arange(12.0).reshape(1, 3, 2, 2)
    for threshold in (4.5, 100.0, -1.0, 10.5, 4.5):
        f(x, threshold)
    field.is_native()


def test_f059_two_rows_of_one_base_written_one_after_the_other(field):
    def rows(base, out):
        first, second = base[0], base[1]
        first.add_(1)
        second.add_(2)
        out[0] = first[0] + 2
        out[1] = second[0] + 2
        return base.sum()

    f = field(rows)
    for _ in range(2):
        f(torch.arange(9.0).reshape(3, 3), torch.zeros(2))
    field.is_native()


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_f060_an_output_argument_of_another_shape(field):
    def fills(x, out):
        torch.add(x, 1, out=out)
        return out

    f = field(fills)
    x = torch.arange(6.0).reshape(2, 3)
    for shape in ((2, 3), (1,), (0,), (3, 3)):
        assert f(x, torch.full(shape, 7.0)).shape == (2, 3)
    with pytest.raises(RuntimeError):
        f(x, torch.zeros(2, 3, dtype=torch.int64))
    field.falls_back(
        "an output argument of another dtype or rank",
        "an assumption does not hold: an output argument",
        why="the caller's tensor object gets another shape, which torch alone can give it; one of the right shape is written by the program",
    )


def test_f061_two_unknown_extents_are_not_one(field):
    """The graph of the report, as a function: there is no reader of ONNX files."""

    def resizes(image, rows, columns):
        y = torch.nn.functional.interpolate(image, size=(rows, columns), mode="nearest")
        return (y * 2 + 1).relu()

    def chain(x, y):
        a = (x + 1) * 2
        b = (y - 1).relu()
        return (a * b).sum(-1), (b + 1).sum(), a.mean()

    f, g = field(resizes), field(chain)
    for size in ((8, 16, 18, 32), (18, 32, 8, 16), (3, 3, 1, 7)):
        f(torch.randn(1, 3, *size[:2]), *size[2:])
    for widths in ((9_999, 1), (1, 9_999), (1, 1), (64, 64)):
        g(torch.randn(1, widths[0]), torch.randn(1, widths[1]))
    field.is_native()
