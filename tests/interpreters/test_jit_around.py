"""What jitted functions are to the Python around them, on every interpreter: copies, files, ops of users, recursion, tracebacks."""

import copy
import inspect
import pickle
import traceback

import numpy as np
import pytest

flexor = pytest.importorskip("flexor", reason="the engine is not built")

X = np.arange(6.0).reshape(2, 3)


@flexor.jit(fallback="raise")
def scaled(x, k=2, *, shift=0.5):
    """x times k."""
    return x * k + shift


def test_functions_are_pickled_copied_and_keep_their_signature():
    assert pickle.loads(pickle.dumps(scaled)) is scaled
    for twin in (scaled, copy.deepcopy(scaled), copy.copy(scaled)):
        assert np.array_equal(twin(X, 3, shift=1.0), X * 3 + 1.0)
        assert str(inspect.signature(twin)) == "(x, k=2, *, shift=0.5)" and twin.__doc__ == "x times k."


def test_methods_of_every_kind():
    class Kinds:
        factor = 3

        @flexor.jit(fallback="raise")
        def method(self, x):
            return x * self.factor

        @flexor.jit(fallback="raise")
        @staticmethod
        def static(x):
            return x + 1

        @flexor.jit(fallback="raise")
        @classmethod
        def of_class(cls, x):
            return x * cls.factor

    for holder in (Kinds(), Kinds):
        assert np.array_equal(holder.static(X), X + 1) and np.array_equal(holder.of_class(X), X * 3)
    assert np.array_equal(Kinds().method(X), X * 3)


def test_a_coroutine_is_one():
    @flexor.jit(fallback="silent")
    async def waits(x):
        return x + 1

    coroutine = waits(X)
    assert inspect.iscoroutine(coroutine)
    with pytest.raises(StopIteration) as ended:
        coroutine.send(None)
    assert np.array_equal(ended.value.value, X + 1)


def test_a_file_runs_without_the_function(tmp_path):
    scaled.save(tmp_path / "scaled.flx", X, 3)
    assert np.array_equal(flexor.load(tmp_path / "scaled.flx")(X + 1, 5, 0.5), (X + 1) * 5 + 0.5)


def test_recursion_whose_depth_the_run_decides():
    def grown(x, n, depth=0):
        if x.sum() > n:
            return x, depth
        return grown(x * 2 + 1, n, depth + 1)

    jitted = flexor.jit(grown, fallback="raise")
    for n in (1e9, -1.0, 50.0):
        (want, depth), (got, found) = grown(X, n), jitted(X, n)
        assert np.array_equal(got, want) and found == depth
    assert jitted.stats()["translations"] == 1


def test_an_op_with_a_rule():
    @flexor.op(result=lambda x, w: (x.dtype, (x.shape[0], w.shape[1])))
    def product(x, w):
        return x @ w

    jitted = flexor.jit(lambda x, w: np.tanh(product(x, w)).sum(), fallback="raise")
    for rows in (2, 1):
        assert np.allclose(jitted(X[:rows], X.T), np.tanh(X[:rows] @ X.T).sum())
    assert jitted.stats()["typed_calls"] and not jitted.stats()["foreign_calls"]


def check_sum(x):
    if x.sum() > 0:
        raise KeyError("too much")
    return x


def test_a_traceback_goes_through_the_function():
    @flexor.jit(fallback="raise")
    def f(x):
        y = x + 1
        return check_sum(y)

    for _ in range(2):
        with pytest.raises(KeyError) as caught:
            f(X)
        places = [(frame.name, frame.line) for frame in traceback.extract_tb(caught.tb) if frame.filename == __file__]
        assert places[1:] == [("f", "return check_sum(y)"), ("check_sum", 'raise KeyError("too much")')]
