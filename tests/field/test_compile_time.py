"""Field cases, compile time and recompilation: the count of compilations is a result, and a bounded one."""

import time

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

from programs import Program  # noqa: E402


def test_f152_a_simulation_loop_is_not_unrolled():
    def simulate(x, e, rows, alpha, steps):
        kept = []
        for i in range(steps):
            e = e - alpha * rows[i] * (rows[i] * e).sum()
            kept.append(e.sum())
        return e, np.stack(kept)

    def call(steps):
        draw = np.random.default_rng(steps)
        rows, e = draw.standard_normal((steps, 4)) * 0.3, np.ones(4)
        got, want = jitted(e, e, rows, 0.1, steps), simulate(e, e, rows, 0.1, steps)
        for a, b in zip(got, want):
            np.testing.assert_allclose(a, b, rtol=1e-9)

    jitted = flexor.jit(simulate)
    call(10)
    call(11)
    call(12)
    before = jitted.stats()
    begin = time.perf_counter()
    call(100)
    call(1000)
    seconds = time.perf_counter() - begin
    after = jitted.stats()
    assert after["translations"] == before["translations"]
    assert seconds < 5
    assert after["fallbacks"] == {}


def test_f154_splitting_serves_every_length_with_one_plan():
    def body(f, x):
        n = x.shape[0]
        quarter = (n + 3) // 4
        return [x[i * quarter : (i + 1) * quarter] * 2.0 for i in range(4)]

    program = Program([("x", "float32", ["N"])], body)
    for n in (*range(8, 48, 4), 9, 10, 11, 1, 0, 2):
        x = torch.randn(n)
        quarter = (n + 3) // 4
        for i, got in enumerate(program(x)):
            assert torch.equal(got, x[i * quarter : (i + 1) * quarter] * 2)
    assert program.compilations <= 2


def test_f156_numbers_are_values_not_plans():
    jitted = flexor.jit(lambda x, y: x * y)
    x = torch.tensor([1.0, -2.0, 0.0])
    for y in (1.5, 2.5, 0.0, -0.0, float("inf"), float("nan"), 3.25):
        got, want = jitted(x, y), x * y
        assert torch.equal(got.signbit(), want.signbit()) or want.isnan().any()
        assert torch.equal(got.nan_to_num(7), want.nan_to_num(7))
    assert jitted.stats()["translations"] <= 2


def test_f157_an_argument_that_is_not_used_asks_for_nothing():
    program = Program([("x", "float32", ["N"]), ("y", "float32", ["M"])], lambda f, x, y: x * 2.0)
    for m in (4, 6, 9, 0, 1):
        assert torch.equal(program(torch.ones(3), torch.ones(m)), torch.full((3,), 2.0))
    assert program.compilations == 1
    jitted = flexor.jit(lambda x, y: x * 2)
    for m in (4, 6, 9, 1):
        jitted(torch.ones(3), torch.ones(m))
    assert jitted.stats()["translations"] == 1


def test_f159_a_mask_that_grows_by_one_each_step():
    """Attention of one query over a cache of fixed capacity, of which the mask admits one place more at each step."""
    capacity, width = 160, 8

    def body(f, q, keys, values, mask):
        return (q @ keys.transpose(0, 1) + mask).softmax(axis=-1) @ values

    program = Program(
        [("q", "float32", ["Q", width]), ("keys", "float32", ["S", width]), ("values", "float32", ["S", width]), ("mask", "float32", [1, "S"])],
        body,
    )
    keys, values = torch.randn(capacity, width), torch.randn(capacity, width)
    for prompt in (7, 32, 64, 129):
        for step in range(0, 30):
            n = prompt + step
            q, mask = torch.randn(prompt if step == 0 else 1, width), torch.zeros(1, n)
            want = (q @ keys[:n].T).softmax(-1) @ values[:n]
            torch.testing.assert_close(program(q, keys[:n], values[:n], mask), want, rtol=1e-4, atol=1e-5)
    assert program.compilations <= 3


def test_f160_a_count_of_events_that_changes_in_every_call():
    def accumulate(image, rows, columns, weights):
        return image.index_put((rows, columns), weights, accumulate=True)

    jitted = flexor.jit(accumulate)
    image = torch.zeros(48, 64)
    for k in (1, 17, 0, 300, 16, 33, *range(40, 90)):
        rows, columns, weights = torch.randint(0, 48, (k,)), torch.randint(0, 64, (k,)), torch.ones(k)
        assert torch.equal(jitted(image, rows, columns, weights), accumulate(image, rows, columns, weights))
    assert jitted.stats()["translations"] <= 3


@pytest.mark.parametrize("count", [100, 1000])
def test_f162_many_ragged_inputs(count):
    """Packed into one tensor and taken apart again; no recursion over the number of inputs."""

    def pack(pieces):
        return torch.cat([piece.to(torch.float32).flatten() for piece in pieces])

    jitted = flexor.jit(pack)
    kinds = (torch.float32, torch.int64, torch.uint8)
    pieces = [torch.arange(i % 7, dtype=kinds[i % 3]) for i in range(count)]
    assert torch.equal(jitted(pieces), pack(pieces))


def pack(parts):
    """One buffer of bytes of all parts, and the parts again as views of it."""
    whole = torch.cat([part.view(torch.uint8) for part in parts])
    found, at = [], 0
    for part in parts:
        count = part.numel() * part.element_size()
        found.append(whole[at : at + count].view(part.dtype))
        at += count
    return whole, found


@pytest.mark.slow
def test_f162_many_ragged_parts_in_one_buffer(field):
    f = field(pack)
    for count in (100, 1000):
        f([torch.arange(8 * (i % 13 + 1)).to((torch.float32, torch.int64, torch.float16)[i % 3]) for i in range(count)])
    field.leaves(".view", ".element_size", "torch.cat", "[]", "*", "+", "+=", why="bytes of numbers are read as others, which are not the engine's")
