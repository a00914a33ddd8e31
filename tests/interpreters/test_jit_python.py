"""flexor.jit beside the interpreter, on functions of plain Python and of NumPy arrays."""

import copy

import cases
import numpy as np
import pytest

import flexor

# Cases whose every call is served by a program; the others may be Python's, with a reason.
NATIVE = {
    "arithmetic", "augmented", "chained", "closures", "defaults", "integers", "shadowed", "tests",
}  # fmt: skip


def outcome(function, arguments):
    try:
        return "returned", function(*arguments)
    except Exception as error:
        return "raised", type(error)


def same(a, b):
    if isinstance(a, (np.ndarray, np.generic)):
        return type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and np.allclose(a, b, atol=1e-6, equal_nan=True)
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return repr(a) == repr(b)


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
            return x / 0
        except ValueError:
            return x

    with np.errstate(divide="ignore", invalid="ignore"):
        quiet = flexor.jit(f, fallback="silent")
        assert same(quiet(X), f(X))
        [reason] = quiet.stats()["fallbacks"]
        assert "an exception that the function catches" in reason
        with pytest.raises(flexor.NotSupported, match="an exception that the function catches"):
            flexor.jit(f, fallback="raise")(X)


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
