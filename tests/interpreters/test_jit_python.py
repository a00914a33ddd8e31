"""flexor.jit beside the interpreter, on functions of plain Python and of NumPy arrays."""

import copy
import functools
import gc
import weakref

import cases
import numpy as np
import pytest
import worlds
from worlds import outcome

import flexor

# Cases whose every call is served by a program; the others may be Python's, with a reason.
NATIVE = {
    "arithmetic", "augmented", "chained", "closures", "defaults", "integers", "shadowed", "tests",
}  # fmt: skip


def same(a, b):
    if isinstance(a, (np.ndarray, np.generic)):
        return type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and np.allclose(a, b, atol=1e-6, equal_nan=True)
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return type(a) is type(b) and repr(list(a)) == repr(list(b)) and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and repr(a) == repr(b)


def agree(jitted, function, arguments):
    """Result or exception, and what the arguments are afterwards."""
    for _ in range(3):
        mine, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
        want, got = outcome(function, theirs), outcome(jitted, mine)
        assert want[0] == got[0], (want, got)
        assert same(want[1], got[1]) or (want[0] == "raised" and issubclass(got[1], want[1])), (want, got)
        assert same(list(theirs), list(mine))


@pytest.mark.parametrize("name", cases.CASES)
def test_python_of_every_kind(name):
    function, calls = cases.CASES[name]
    jitted = flexor.jit(function, fallback="silent")
    for arguments in calls:
        agree(jitted, function, arguments)
    if name in NATIVE & cases.CASES.keys():
        assert not jitted.stats()["fallbacks"]


X = np.arange(-10, 10, dtype=np.float32).reshape(4, 5) / 3


def reductions(x):
    return x.sum(), x.mean(0), x.max(axis=1, keepdims=True), x.argmax(), np.exp(x).std()


def writes(x):
    x[0] = 0
    x[:, 1:3] += 7
    x *= 2
    y = x[1:]
    y[:] = y + 1
    return x.sum(), y


def picks(x, at):
    return x[at], x[:, 2], x[::-1], x[-1, None], x[..., 1:-1]


def loop_on_values(x):
    steps = 0
    while np.abs(x).max() > 1e-2:
        x = x / 2
        steps += 1
    return x, steps


def rows(x):
    out = []
    for row in x:
        if row.sum() < 0:
            continue
        out.append(row.max())
    return out


def squares(x, n):
    total = x
    for i in range(n):
        total = total + x * i
    return total


def chooses(x, mode="up", *, by=2):
    match mode:
        case "up":
            return x * by
        case _ if by > 3:
            return x - by
    return {"x": x, "by": (by, [x.shape])}


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (reductions, [(X,), (X.astype(np.float64),), (X[:, ::2],), (X.T,)]),
        (writes, [(X,), (X[:, ::-1],)]),
        (picks, [(X, np.array([0, -1])), (X[:2], np.array([[1], [0]]))]),
        (loop_on_values, [(X,), (X * 0,), (X * 100,)]),
        (rows, [(X,), (X[:1],), (-np.abs(X),), (X[:0],)]),
        (squares, [(X, 3), (X, 0), (X, 100)]),
        (chooses, [(X,), (X, "down")]),
    ],
)
def test_arrays(function, calls):
    jitted = flexor.jit(function, fallback="raise")
    for arguments in calls:
        agree(jitted, function, arguments)


def test_one_translation_and_one_compilation_serve_every_length():
    @flexor.jit(dims={"x": ["N", 5]})
    def f(x):
        return np.maximum(x + 1, 0).sum(axis=-1)

    flexor.default_session().clear_cache()
    flexor.default_session().reset_stats()
    for n in (4, 1, 7, 0, 33):
        x = np.ones((n, 5), np.float32)
        assert same(f(x), np.maximum(x + 1, 0).sum(axis=-1))
    assert f.stats()["translations"] == 1
    assert flexor.stats()["compilations"] == 1
    assert f.module(X).inputs()[0]["text"] == "x: f32[N, 5]"


SCALE = 2.0


def test_globals_closures_and_helpers_are_guarded():
    global SCALE
    bias = 1.0

    def helper(x):
        return x * SCALE + bias

    f = flexor.jit(lambda x: helper(x))
    assert same(f(X), X * 2.0 + 1.0)
    SCALE = 3.0
    assert same(f(X), X * 3.0 + 1.0)
    bias = 5.0
    assert same(f(X), X * 3.0 + 5.0)

    def helper(x):
        return -x

    assert same(f(X), -X)
    SCALE = 2.0
    assert f.stats()["translations"] == 4


def test_effects_happen_once_and_in_order():
    seen = []

    class Counter:
        def __init__(self):
            self.calls = 0

    counter = Counter()

    def f(x):
        counter.calls += 1
        seen.append("first")
        y = x + 1
        seen.append(float(y.sum()))
        return y

    jitted = flexor.jit(f, fallback="raise")
    for _ in range(3):
        jitted(X)
    assert counter.calls == 3
    assert seen == ["first", float((X + 1).sum())] * 3
    assert jitted.stats()["translations"] == 1


def test_what_cannot_be_followed_is_python_with_a_reason():
    def f(x):
        try:
            seen.append(len(x))
            return x / 0
        except ValueError:
            return x

    seen = []

    with np.errstate(divide="ignore", invalid="ignore"):
        quiet = flexor.jit(f, fallback="silent")
        assert same(quiet(X), f(X))
        [reason] = quiet.stats()["fallbacks"]
        assert "an exception that the function catches" in reason
        with pytest.raises(flexor.NotSupported, match="an exception that the function catches"):
            flexor.jit(f, fallback="raise")(X)


def test_exceptions_that_the_function_catches_are_python_s_to_handle():
    def f(x, rows):
        try:
            y = x.reshape(rows, -1)
        except ValueError:
            return x * 0
        finally:
            x = x + 1
        return y + x.sum()

    jitted = flexor.jit(f, fallback="silent")
    for rows in (4, 2, 3, 5, 20, 6):
        assert same(jitted(X, rows), f(X, rows))
    stats = jitted.stats()
    assert stats["translations"] == 1
    assert stats["fallbacks"] and all("exceptions" in reason or "refuses" in reason for reason in stats["fallbacks"])


def test_the_exception_of_the_user_keeps_its_class_and_text():
    def f(x, limit):
        if x.sum() < limit:
            raise KeyError(f"too small: {x.shape}")
        return x

    jitted = flexor.jit(f, fallback="raise")
    assert same(jitted(X, -100.0), X)
    with pytest.raises(KeyError, match=r"too small: \(4, 5\)"):
        jitted(X, 100.0)


def test_a_disabled_function_stays_a_call_of_python():
    calls = []

    @flexor.disable
    def outside(x):
        calls.append(x.shape)
        return x * 2

    f = flexor.jit(lambda x: outside(x) + 1, fallback="raise")
    for _ in range(3):
        assert same(f(X), X * 2 + 1)
    assert calls == [(4, 5)] * 3


def test_signature_name_and_text_stay():
    @flexor.jit
    def f(x, scale=1):
        """Scales."""
        return x * scale

    import inspect

    assert (f.__name__, f.__doc__, list(inspect.signature(f).parameters)) == ("f", "Scales.", ["x", "scale"])
    assert same(f(X, scale=3), X * 3) and same(f(x=X), X)
    with pytest.raises(TypeError, match="unexpected keyword"):
        f(X, size=2)


def test_recursion_of_a_known_depth_is_written_out():
    def down(n, x):
        return x if n == 0 else down(n - 1, x + 1)

    f = flexor.jit(lambda x: down(150, x), fallback="raise")
    assert same(f(X), down(150, X)) and same(f(X[:1]), down(150, X[:1]))


@pytest.mark.parametrize("world", worlds.WORLDS)
def test_worlds(world):
    want = world(lambda function: function)
    assert same(want, world(functools.partial(flexor.jit, fallback="silent")))


def test_a_call_is_watched_before_what_lies_behind_it_is_trusted():
    holder = worlds.Holder()
    holder.v, changes = 1, []

    @flexor.disable
    def outside():
        holder.v += len(changes)

    @flexor.jit(fallback="silent")
    def f(x):
        outside()
        return x * holder.v

    assert [f(2), f(3)] == [2, 3]
    assert f.stats()["watched"] == 1 and not f.stats()["fallbacks"]
    changes.append(1)
    with pytest.raises(flexor.NotSupported, match="changes what the function reads behind it"):
        f(2)
    assert f(2) == 6


def test_a_fault_of_the_translator_leaves_the_call_to_python(monkeypatch):
    from flexor.frontend.cpython import evaluate

    def broken(*_arguments):
        raise AssertionError("broken")

    monkeypatch.setattr(evaluate, "compare", broken)
    f = flexor.jit(lambda x: x if x.sum() > 0 else -x, fallback="silent")
    assert same(f(X), X if X.sum() > 0 else -X)
    assert "a fault of the translator" in next(iter(f.stats()["fallbacks"]))


def test_what_is_dropped_is_freed():
    def made():
        held = np.zeros(1000)

        @flexor.disable
        def outside(x):
            return x + held[0]

        @flexor.jit
        def f(x):
            return outside(x)

        f(X)

        f(X)
        return weakref.ref(held)

    left = [made() for _ in range(5)]
    gc.collect()
    assert [reference() for reference in left] == [None] * 5


def test_what_differs_every_time_does_not_pile_up(monkeypatch):
    monkeypatch.setattr("flexor._jit.MOST_TRANSLATIONS", 64)
    f = flexor.jit(lambda holder, x: x * holder.v, fallback="silent")
    left = []
    for k in range(100):
        holder = worlds.Holder()
        holder.v = k
        left.append(weakref.ref(holder))
        assert same(f(holder, X), X * k)
    del holder
    gc.collect()
    assert sum(reference() is not None for reference in left) == f.stats()["translations"] < 100
