"""Field cases, integer overflow: addresses beyond 32 bits, and arithmetic that wraps at the width of its dtype."""

import os

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
pytest.importorskip("flexor", reason="the engine is not built")

import numpy as np  # noqa: E402
from programs import Program  # noqa: E402


def needs_memory(gigabytes):
    available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return pytest.mark.skipif(available < gigabytes, reason=f"takes {gigabytes} GB, {available:.0f} GB are free")


@pytest.mark.slow
def test_f045_a_sum_of_more_elements_than_32_bits_count():
    """A single 1 expanded to 50,000 x 100,000."""
    total = Program([("x", "int64", ["N", "M"])], lambda f, x: x.sum(axes=[0, 1]))
    assert total(torch.ones(1, 1, dtype=torch.int64).expand(50_000, 100_000)).item() == 5_000_000_000
    mean = Program([("x", "float32", ["N", "M"])], lambda f, x: x.mean(axes=[0, 1]))
    assert mean(torch.ones(1, 1).expand(50_000, 100_000)).item() == 1.0


@pytest.mark.slow
def test_f046_a_row_index_times_a_row_pitch_beyond_32_bits():
    """One row of an int8 table of 21,000 x 102,400 taken by int32 index on both sides of 2^31 bytes, and
    written in place."""
    table = np.zeros((21_000, 102_400), np.int8)  # untouched pages take no memory
    rows = (20_971, 20_972, 20_999)
    for i, row in enumerate(rows):
        table[row] = i + 1
    take = Program([("t", "int8", ["R", "C"]), ("i", "int32", ["N"])], lambda f, t, i: f.index_select(t, i, axis=0))
    got = take(table, np.array(rows, np.int32))
    assert [set(row.tolist()) for row in got] == [{1}, {2}, {3}]
    write = Program(
        [("t", "int8", ["R", "C"]), ("v", "int8", ["C"]), ("at", "bool", ["P"])],
        lambda f, t, v, at: f.assign(
            f.slice(t, axis=0, start=at.shape[0], stop=at.shape[0] + 1), f.unsqueeze(v, axis=0)
        ),
    )
    for row in rows[:2]:
        write(table, np.full(102_400, 9, np.int8), np.zeros(row, bool))
    assert (table[20_971] == 9).all()
    assert (table[20_972] == 9).all()
    assert not table[20_970].any()
    assert not table[20_973].any()
    assert (table[20_999] == 3).all()


@pytest.mark.slow
@needs_memory(6)
def test_f049_more_elements_than_31_bits():
    count = 2_200_000_000
    program = Program([("x", "uint8", ["N"])], lambda f, x: x + 1)
    x = np.zeros(count, np.uint8)
    x[[0, 2**31, -1]] = 7, 8, 9
    got = program(x)
    assert got.dtype == np.uint8
    assert (got[0], got[1], got[2**31], got[-1]) == (8, 1, 9, 10)


def test_f051_int32_wraps_before_it_is_widened():
    def body(f, x, y):
        return f.cast(x + y, dtype="int64"), f.cast(x - y, dtype="int64"), f.cast(x * y, dtype="int64")

    program = Program([("x", "int32", ["N"]), ("y", "int32", ["N"])], body)
    low, high = -(2**31), 2**31 - 1
    for n in (1, 17):
        x = torch.tensor([high, low, low] * n, dtype=torch.int32)
        y = torch.tensor([1, 1, -1] * n, dtype=torch.int32)
        added, subtracted, multiplied = program(x, y)
        assert added.tolist() == [low, low + 1, high] * n
        assert subtracted.tolist() == [high - 1, high, low + 1] * n
        assert multiplied.tolist() == [high, low, low] * n


def test_f052_int8_wraps_after_each_step():
    """100 + 100, then times 2, all in int8, widened at the end: fused in one program, and one op a program."""
    fused = Program([("x", "int8", ["N"]), ("y", "int8", ["N"])], lambda f, x, y: f.cast((x + y) * 2, dtype="int64"))
    add = Program([("x", "int8", ["N"]), ("y", "int8", ["N"])], lambda f, x, y: x + y)
    double = Program([("x", "int8", ["N"])], lambda f, x: x * 2)
    for n in (1, 16, 33):
        x = torch.full((n,), 100, dtype=torch.int8)
        assert fused(x, x).tolist() == [-112] * n
        assert double(add(x, x)).tolist() == [-112] * n
    # (x + y) * 2 over 2, in int8: the wrap is kept though the doubling and halving would cancel.
    halved = Program([("x", "int8", ["N"])], lambda f, x: f.floor_divide(x * 2, 2))
    assert halved(torch.tensor([100, -100, 3], dtype=torch.int8)).tolist() == [-28, 28, 3]
