"""Loops of jitted functions: none, one and many passes, what they carry, write in place, and leave behind."""

import signal
import subprocess
import sys
import time

import pytest

flexor = pytest.importorskip("flexor", reason="the engine is not built")
torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


def check(function, calls, compilations=1):
    """Equal to eager for every call, natively, with so many compilations in all."""
    jitted = flexor.jit(function, fallback="raise")
    flexor.default_session().clear_cache()
    flexor.default_session().reset_stats()
    for arguments in calls:
        mine, theirs = [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments], arguments
        torch.testing.assert_close(jitted(*mine), function(*theirs))
        for a, b in zip(mine, theirs, strict=True):
            assert not isinstance(a, torch.Tensor) or torch.equal(a, b)
    assert not jitted.stats()["foreign_calls"]
    if flexor._flexor.has_code_generator():
        assert flexor.stats()["compilations"] == compilations
    return jitted


def halvings(x, limit):
    count = 0
    while x.abs().max() > limit:
        x = x * 0.5
        count += 1
    return x, count


def test_a_loop_of_no_one_and_many_passes():
    x = torch.ones(5)
    check(halvings, [(x, 2.0), (x, 0.6), (x, 1e-3), (torch.ones(1), 2.0), (torch.ones(9), 0.01)])


def left_early(x, limit):
    for i in range(20):
        x = x + i
        if x.sum() > limit:
            break
    else:
        x = -x
    return x, i


LAYERS = [torch.nn.Linear(3, 3) if i % 2 else torch.nn.ReLU() for i in range(12)]


def left_among_layers(x, limit):
    for i in range(12):
        x = LAYERS[i](x)
        if x.sum() > limit:
            return x, i
    return x, -1


def test_loops_that_are_left_early():
    jitted = check(left_early, [(torch.ones(n), limit) for n, limit in ((3, 5.0), (3, 1.0), (2, 1e6), (7, 100.0), (1, 50.0))])
    assert jitted.module(torch.ones(3), 5.0).dis().count("CALL_OP      reduce_sum") <= 2  # not one for each iteration
    check(left_among_layers, [(torch.ones(3), limit) for limit in (2.0, 0.5, 1e6)])


def layers_of(x, weights):
    out = [x]
    for k in range(weights.shape[0]):
        x = torch.relu(x @ weights[k])
        out.append(x)
    return torch.stack(out)


def test_a_list_of_no_one_and_many_passes():
    check(layers_of, [(torch.randn(3, 4), torch.randn(n, 4, 4) * 0.5) for n in (0, 1, 7, 2)])


def with_branches(x, steps):
    kept, dropped = [], []
    for k in range(steps):
        x = x * 1.5 - 0.25
        if x.sum() > 0:
            kept.append(x)
        else:
            dropped.append(x[0])
    return kept, dropped, len(kept) + 2 * len(dropped)


def test_lists_that_grow_on_one_of_two_ways():
    check(with_branches, [(torch.tensor(row), 9) for row in ([0.5, 0.6], [-1.0, 0.2], [0.5, 0.4])] + [(torch.ones(2), 0)])


def until_small(x, limit):
    kept = []
    while x.abs().max() > limit:
        kept.append(x[0])
        x = x * 0.5
    return torch.stack(kept)


def test_a_list_that_may_stay_empty_is_stacked_natively():
    jitted = flexor.jit(until_small, fallback="raise")
    flexor.default_session().clear_cache()
    flexor.default_session().reset_stats()
    for x, limit in ((torch.ones(3), 0.6), (torch.ones(5), 1e-3)):
        torch.testing.assert_close(jitted(x, limit), until_small(x, limit))
    if flexor._flexor.has_code_generator():
        assert flexor.stats()["compilations"] == 1  # a stack by torch would be the end of one region
    with pytest.raises(RuntimeError):  # as eager refuses to stack nothing
        jitted(torch.ones(3), 2.0)


SEEN = []


@flexor.disable
def see(x):
    SEEN.append(x[0].item())


def with_a_call_of_python(x, steps):
    out = [x]
    for k in range(steps):
        x = x * 0.9 - 0.5 * out[k // 2]
        out.append(x)
        see(x)
    return torch.stack(out), out[-1]


def test_a_list_that_a_call_of_python_sees_is_compiled_once_for_all_lengths():
    jitted = flexor.jit(with_a_call_of_python, fallback="raise")
    flexor.default_session().clear_cache()
    flexor.default_session().reset_stats()
    for steps in (3, 40, 0, 17):
        del SEEN[:]
        torch.testing.assert_close(jitted(torch.ones(3), steps), with_a_call_of_python(torch.ones(3), steps))
        torch.testing.assert_close(SEEN[:steps], SEEN[steps:])
    assert flexor.stats()["compilations"] < 10


def numbers(x, steps):
    seen, rows = [], []
    for k in range(steps):
        x = x + 1
        seen.append(int(x.sum().item()) + k)
        rows.append(x)
    return seen, torch.stack(rows)


def test_a_list_of_numbers_is_not_compiled_for_each_length():
    jitted = flexor.jit(numbers, fallback="raise")
    flexor.default_session().clear_cache()
    flexor.default_session().reset_stats()
    for steps in (30, 3, 60):
        torch.testing.assert_close(jitted(torch.ones(4), steps), numbers(torch.ones(4), steps))
    assert flexor.stats()["compilations"] < 40


def decode(keys, values, token, weight, steps):
    for _ in range(steps):
        query = torch.tanh(token @ weight)
        keys = torch.cat([keys, query.unsqueeze(1)], 1)
        values = torch.cat([values, 0.5 * query.unsqueeze(1)], 1)
        attention = torch.softmax(keys @ query.unsqueeze(2), 1)
        token = (attention * values).sum(1)
    return token, keys


def test_a_cache_that_grows():
    weight = torch.randn(8, 8) * 0.3

    def call(batch, length, steps):
        return torch.randn(batch, length, 8), torch.randn(batch, length, 8), torch.randn(batch, 8), weight, steps

    check(decode, [call(1, 3, 5), call(2, 4, 3), call(1, 0, 4), call(1, 6, 0), call(1, 2, 200), call(3, 1, 17)])
    alone = flexor.jit(decode, fallback="raise", soft_limit=1 << 30)  # whose session has a pool of its own
    alone(*call(1, 16, 2000))
    # Two caches of 64 KB, each with room to grow, beside what they grew out of.
    assert 2 * 4 * 8 * 2016 < alone._session.stats()["pool"]["peak_live_bytes"] < 8 * 2 * 4 * 8 * 2016


def suppress(boxes, limit):
    x1, y1, x2, y2 = boxes[:, 0], boxes[:, 1], boxes[:, 2], boxes[:, 3]
    area = (x2 - x1) * (y2 - y1)
    alive = torch.ones_like(area, dtype=torch.bool)
    keep = torch.zeros_like(alive)
    for j in range(boxes.shape[0]):
        if alive[j]:
            keep[j] = True
            width = (torch.minimum(x2[j], x2) - torch.maximum(x1[j], x1)).clamp(min=0)
            shared = width * (torch.minimum(y2[j], y2) - torch.maximum(y1[j], y1)).clamp(min=0)
            alive &= shared / (area[j] + area - shared) <= limit
    return keep, alive


def test_masks_that_are_written_in_place():
    def boxes(n):
        corner = torch.rand(n, 2)
        return torch.cat([corner, corner + 0.1 + 0.2 * torch.rand(n, 2)], 1)

    check(suppress, [(boxes(n), 0.3) for n in (20, 1, 0, 150)])


def recurrent(x, h, weight, bias, steps):
    for _ in range(steps):
        h = torch.tanh(x + h @ weight)
        bias.add_(1)
        x = x * 0.5 + h @ bias
    return h, x


def test_weights_that_a_loop_reads_and_weights_that_it_writes():
    torch.manual_seed(3)
    calls = [(torch.randn(n, 70), torch.zeros(n, 70), torch.randn(70, 70) * 0.1, torch.randn(70, 70) * 0.01, 6) for n in (2, 1, 33)]
    jitted = check(recurrent, calls)
    x, h, weight, bias, steps = calls[0]
    weight.mul_(0.5)  # between calls, in the same place
    torch.testing.assert_close(jitted(x, h, weight, bias.clone(), steps), recurrent(x, h, weight, bias, steps))


def test_memory_does_not_grow_with_the_number_of_passes():
    session = flexor.default_session()

    def peak(steps):
        flexor.jit(halvings, fallback="raise")(torch.ones(20_000) * 2.0**steps, 1.0)
        return session.stats()["pool"]["peak_live_bytes"]

    session.clear_cache()
    session.reset_stats()
    few = peak(5)
    assert peak(100) == few


ENDLESS = """
import signal
import torch
import flexor

signal.signal(signal.SIGINT, signal.default_int_handler)

@flexor.jit(fallback="raise")
def endless(x, weight):
    while x.sum() >= 0:
        x = torch.relu(x @ weight)
    return x

with torch.no_grad():
    weight = torch.eye(20)
    endless(-torch.ones(3, 20), weight)
    print("ready", flush=True)
    try:
        endless(torch.ones(3, 20), weight)
    except KeyboardInterrupt:
        print("interrupted", float(endless(-torch.ones(3, 20), weight).sum()), flush=True)
"""


@pytest.mark.slow
def test_an_endless_loop_is_interrupted():
    child = subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=120)
    finally:
        child.kill()
    assert out == "interrupted -60.0\n"


EVENT = """
import logging
import signal
import torch
import flexor

class Interrupting(logging.Handler):
    def emit(self, record):
        signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)

@flexor.jit(fallback="raise")
def endless(x):
    while x.sum() >= 0:
        x = x * 1.0
    return x

log = logging.getLogger("flexor")
log.setLevel(logging.DEBUG)
handler = Interrupting()
log.addHandler(handler)
try:
    endless(torch.ones(3))
except KeyboardInterrupt:
    log.removeHandler(handler)
    print("interrupted", float(endless(-torch.ones(3)).sum()), flush=True)
"""


@pytest.mark.slow
def test_an_interrupt_while_an_event_is_told_stops_the_run():
    child = subprocess.run([sys.executable, "-c", EVENT], stdout=subprocess.PIPE, text=True, timeout=120)
    assert child.stdout == "interrupted -3.0\n"
