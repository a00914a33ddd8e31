"""Field cases, the front end: what rivals made of Python's bytecode and of ONNX graphs."""

import dataclasses
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")


def test_f182_a_return_inside_try_with_finally(field):
    marks = []

    def returns(x):
        try:
            return x + 1
        finally:
            marks.append(1)

    f = field(returns)
    for calls in (1, 2, 3):
        f(torch.ones(3))
        assert len(marks) == 2 * calls  # one for eager, one for the program
    field.is_native(".append")


@dataclasses.dataclass
class Point:
    x: object
    y: object


def test_f184_patterns_of_every_kind(field):
    def matches(value):
        match value:
            case Point(x=0, y=y):
                return "axis", y
            case Point(x, y) if x is y:
                return "diagonal", x
            case Point():
                return "point", value.x
            case [first, *rest]:
                return "sequence", first, len(rest)
            case {"a": a, **rest}:
                return "mapping", a, len(rest)
            case int() | float():
                return "number", value
            case str(text):
                return "text", text
            case None:
                return "nothing"
            case _:
                return "any", value

    f = field(matches)
    one = torch.ones(1)
    for _ in range(2):
        assert f(one)[0] == "any"
        for value in (Point(0, 1), Point(one, one), Point(1, 2), [one, 2, 3], (1,), {"a": one, "b": 2}, {}, 2.5, "text", None):
            f(value)
    field.is_native()


def test_f186_axes_as_an_argument(field):
    def permutes(x, axes):
        return x.permute(axes), torch.permute(x, axes).sum(axes[0])

    f = field(permutes)
    for axes in ((0, 3, 2, 1), (3, 2, 1, 0), (0, 3, 2, 1)):
        f(torch.randn(2, 3, 4, 5), axes)
    field.is_native()


def test_f187_a_comprehension_does_not_touch_the_variable_outside(field):
    def outer(x):
        i = 7
        doubled = [i * 2 for i in range(3)]
        return x + i, doubled

    def unset(x):
        if x is None:
            i = 7
        doubled = [i * 2 for i in range(3)]
        return x + i + len(doubled)

    def nested(x):
        i = 7
        rows = [[i + j for i in range(2)] for j in range(3)]
        return x + i, rows

    f, g, h = field(outer), field(unset), field(nested)
    for _ in range(2):
        assert f(torch.ones(1))[0].item() == 8
        with pytest.raises(NameError):
            g(torch.ones(1))
        h(torch.ones(1))
    field.is_native()


def test_f187_a_comprehension_in_the_body_of_a_class(field):
    def makes(x):
        i = 7

        class Small:
            i = 3
            doubled = [i * 2 for i in range(3)]

        return x + i + Small.i, Small.doubled

    f = field(makes)
    assert f(torch.ones(1))[0].item() == 11
    field.is_native()


def test_f190_appending_to_a_list_of_the_class(field):
    class Net(torch.nn.Module):
        seen = []

        def forward(self, x):
            self.seen.append(x)
            return x + 1

    net = Net()
    jitted = flexor.jit(net, fallback="silent")
    inputs = [torch.ones(2), torch.zeros(2)]
    with torch.no_grad():
        for x in inputs:
            assert torch.equal(jitted(x), x + 1)
    assert len(Net.seen) == 2 and all(a.data_ptr() == b.data_ptr() for a, b in zip(Net.seen, inputs))

    f = field(lambda x: net(x))
    f(torch.ones(2))
    assert len(Net.seen) == 4
    field.is_native(".append")


def test_f191_a_lambda_rebound_in_mid_loop(field):
    def rebinds(tensors):
        out = []
        fold = lambda t: t.sum()  # noqa: E731
        for turn, t in enumerate(tensors):
            if turn == 2:
                fold = lambda t: t[0]  # noqa: E731
            total = 0
            for _ in range(5):
                total = total + fold(t)
            out.append(total)
        return out

    f = field(rebinds)
    assert [t.item() for t in f([torch.ones(3)] * 5)] == [15, 15, 5, 5, 5]
    f([torch.randn(4) for _ in range(5)])
    field.is_native()


def test_f192_an_instruction_that_no_table_has_is_a_fallback_with_its_name(field, monkeypatch):
    from flexor.frontend.cpython import versions

    monkeypatch.delitem(versions.TABLES[sys.version_info[:2]], "CONTAINS_OP")

    def asks(x, n):
        return x + 1 if n in (1, 2) else x

    f = field(asks)
    for n in (1, 3):
        f(torch.ones(2), n)
    field.falls_back("CONTAINS_OP", why="what the case asks for: nothing is guessed about an instruction that is not known")


# The graphs of reports about ONNX, as functions: there is no reader of ONNX files.


def test_f193_a_slice_backwards_that_selects_nothing(field):
    def slices(x, start, stop):
        return x[start:stop:-1], x[0:5:-1]

    f = field(slices)
    for bounds in ((0, 5), (5, 0), (9, 9), (20, -20)):
        f(np.arange(10, dtype=np.float32), *bounds)
    field.is_native()


def test_f195_negative_pads_crop(field):
    def crops(x):
        return torch.nn.functional.pad(x, (-1, -1, -1, -1)), torch.nn.functional.pad(x, (2, -1, -1, 2), value=3.0)

    f = field(crops)
    for size in (6, 9, 2):
        assert f(torch.randn(1, 1, size, size))[0].shape[-1] == size - 2
    field.is_native()


def test_f196_integer_division_of_a_size(field):
    def thirds(x):
        return x[: x.shape[0] // 3], torch.div(torch.tensor(-7), 2, rounding_mode="trunc")

    f = field(thirds)
    first, quotient = f(torch.randn(386))
    assert first.shape == (128,) and quotient.item() == -3
    f(torch.randn(5))
    field.is_native()


def test_f198_running_sums_products_and_maxima(field):
    def runs(x):
        return x.cumsum(0), x.cumprod(0), torch.cummax(x, 0).values

    f = field(runs)
    for length in (4, 9, 1, 0, 4):
        f(torch.randn(length, 3))
    field.is_native()


def test_f200_a_leading_axis_of_size_one_stays(field):
    def joins(a, b):
        return torch.stack([a + b, b, a * 2, b + 1, a], dim=1), torch.cat([(a + b)[None], (a - b)[None]], 1)

    f = field(joins)
    for rows in (50, 1, 7):
        first, second = f(torch.randn(1, rows, 1), torch.randn(1, rows, 1))
        assert first.shape == (1, 5, rows, 1) and second.shape == (1, 2, rows, 1)
    field.is_native()


def test_f201_a_batch_larger_than_the_one_declared(field):
    def pools(x):
        return (x.reshape(x.shape[0], 16, 48, 48) * 2).mean((2, 3))

    f = field(pools, dims={"x": ["N", 16, 48, 48]})
    for batch in (1, 4, 2):
        assert f(torch.randn(batch, 16, 48, 48)).shape == (batch, 16)
    assert f.translations == 1
    field.is_native()
