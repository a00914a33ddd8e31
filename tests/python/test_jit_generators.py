"""Generators that a function makes and reads by send, next, close and yield from, beside Python."""

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")


@pytest.fixture(autouse=True)
def without_gradients():
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def running():
    total = 0
    while True:
        got = yield total
        if got is None:
            return
        total = total + got


def sends(x):
    it = running()
    next(it)
    it.send(x)
    return it.send(x * 2)


def sends_in_a_loop(x):
    it = running()
    it.send(None)
    out = x
    for row in range(3):
        out = it.send(x[row])
    return out


def sends_in_a_loop_of_the_run(x):
    it = running()
    next(it)
    count = 0
    while count < int(x.shape[0]):
        last = it.send(x[count] + 1)
        count += 1
    return last


def delegates(x):
    def outer():
        got = yield from inner()
        yield got * 10

    def inner():
        a = yield x
        b = yield a + 1
        return a + b

    it = outer()
    return next(it), it.send(x * 2), it.send(x * 3)


def closes(x):
    it = (row * 2 for row in [x, x + 1])
    first = next(it)
    it.close()
    return first, list(it), next(it, None)


def calls_dunders(x):
    it = iter([x, x + 1])
    gen = (v * 2 for v in it).__iter__()
    return gen.__next__(), list(gen)


def sends_too_early(x):
    running().send(x)


def sends_too_late(x):
    it = running()
    next(it)
    it.send(None)


def catches_the_end(x):
    it = running()
    next(it)
    it.send(x)
    try:
        it.send(None)
    except StopIteration as end:
        return x + 1, end.value


def catches_a_value(x):
    def gives():
        yield x
        return x + 5

    it = gives()
    next(it)
    try:
        next(it)
    except StopIteration as end:
        return end.value


def resumes_itself(x):
    def loop():
        yield x
        it.send(x)

    it = loop()
    next(it)
    return next(it)


def alike(a, b):
    if isinstance(b, torch.Tensor):
        return torch.allclose(a, b)
    return all(map(alike, a, b)) and len(a) == len(b) if isinstance(b, (tuple, list)) else a == b


@pytest.mark.parametrize(
    ("function", "native"),
    [
        (sends, True),
        (sends_in_a_loop, True),
        (sends_in_a_loop_of_the_run, False),
        (delegates, True),
        (closes, True),
        (calls_dunders, True),
        (catches_the_end, True),
        (catches_a_value, False),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_generators(function, native):
    jitted = flexor.jit(function, fallback="silent")
    for rows in (3, 4, 3, 5):
        x = torch.randn(rows, 4)
        assert alike(jitted(x), function(x))
    stats = jitted.stats()
    assert not stats["foreign_calls"] and (not stats["fallbacks"] or not native), stats


@pytest.mark.parametrize(
    ("function", "error"), [(sends_too_early, TypeError), (sends_too_late, StopIteration), (resumes_itself, ValueError)]
)
def test_what_generators_raise(function, error):
    jitted = flexor.jit(function, fallback="silent")
    for _ in range(2):
        with pytest.raises(error):
            jitted(torch.randn(3))
