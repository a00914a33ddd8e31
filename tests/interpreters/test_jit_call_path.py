"""The compiled call path of flexor.jit: which calls an entry serves, and what it leaves to Python. NumPy only."""

import collections
import contextvars
import functools
import gc
import sys
import threading
import types
import weakref

import numpy as np
import pytest

flexor = pytest.importorskip("flexor", reason="the engine is not built")

SCALE = 2.0
TABLE = {"factor": 3.0}
WEIGHTS = np.arange(3.0)


def calls_in_python(function, *args, **kwargs):
    """How many of three equal calls, all with the right result, were not served by an entry."""
    slow = []
    original = type(function)._call

    def counted(self, *a, **k):
        slow.append(a)
        return original(self, *a, **k)

    type(function)._call = counted
    try:
        expected = function.__wrapped__(*args, **kwargs)
        for _ in range(3):
            found = function(*args, **kwargs)
            np.testing.assert_array_equal(found, expected)
            assert type(found) is type(expected)
    finally:
        type(function)._call = original
    return len(slow)


def test_later_calls_are_served_by_an_entry():
    @flexor.jit
    def f(x, y):
        return x * y + SCALE

    x = np.ones((2, 3))
    assert calls_in_python(f, x, x + 1) == 1
    assert calls_in_python(f, np.ones((5, 1)), np.ones((1, 4))) == 0  # other sizes
    assert calls_in_python(f, x, x) == 1  # one object twice is another program
    assert calls_in_python(f, x.astype(np.float32), x) == 1
    assert calls_in_python(f, x[0], x) == 1
    assert f.stats()["translations"] == 4 and f.stats()["calls"] == 15


def test_forms_of_a_call_have_entries_of_their_own():
    @flexor.jit
    def f(x, n=2, *rest, scale=1.0, **more):
        for _ in range(n):
            x = x * scale
        for part in rest:
            x = x + part
        return x + sum(more.values())

    x, y = np.arange(3.0), np.ones(3)
    assert calls_in_python(f, x) == 1
    assert calls_in_python(f, x, 2) == 1
    assert calls_in_python(f, x, n=3) == 1
    assert calls_in_python(f, n=4, x=x) == 1
    assert calls_in_python(f, x=x, n=4) == 1
    assert calls_in_python(f, x, 2, y, scale=2.0) == 1
    assert calls_in_python(f, x, 2, y, y + 1, scale=2.0) == 1
    assert calls_in_python(f, x, 2, y, x, scale=2.0) == 1
    assert calls_in_python(f, x, bias=y, more=x + 1) == 1
    assert calls_in_python(f, x, more=y, bias=x + 1) == 1
    assert calls_in_python(f, x, 5) == 0


def test_changed_defaults_are_seen():
    def plain(x, n=2, *, scale=1.0):
        return x * n * scale

    f = flexor.jit(plain)
    x = np.arange(3.0)
    assert calls_in_python(f, x) == 1
    plain.__defaults__ = (5,)
    np.testing.assert_array_equal(f(x), x * 5)
    plain.__kwdefaults__["scale"] = 3.0
    np.testing.assert_array_equal(f(x), x * 15)
    plain.__kwdefaults__ = {"scale": 4.0}
    np.testing.assert_array_equal(f(x), x * 20)
    plain.__code__ = (lambda x, n=2, *, scale=1.0: x - n).__code__
    np.testing.assert_array_equal(f(x), x - 5)


@pytest.mark.parametrize("value", [0, -1, 2**40, 2**63 - 1, -(2**63), 2**70, True, 1.5, float("nan"), -0.0, None, "text"])
def test_scalars_of_every_kind(value):
    @flexor.jit
    def f(x, n):
        if n is None or isinstance(n, str):
            return x
        return x + n

    x = np.arange(3.0)
    for _ in range(3):
        np.testing.assert_array_equal(f(x, value), x if value is None or isinstance(value, str) else x + value)
    for other in (7, 2.5, False, None, "other", 2**80):
        np.testing.assert_array_equal(f(x, other), x if other is None or isinstance(other, str) else x + other)


def test_texts_and_objects_are_compared():
    class Mode:
        pass

    one, two = Mode(), Mode()

    @flexor.jit
    def f(x, how, mode=one, axes=(0,), dtype=np.float64):
        y = np.sum(x, axis=axes) if how == "sum" else np.max(x, axis=axes)
        return y.astype(dtype) if mode is one else -y

    x = np.arange(6.0).reshape(2, 3)
    assert calls_in_python(f, x, "sum") == 1
    assert calls_in_python(f, x, "max") == 1
    assert calls_in_python(f, x, "sum", two) == 1
    assert calls_in_python(f, x, "sum", one, (1,)) == 1
    assert calls_in_python(f, x, "sum", one, (0, 1)) == 1
    assert calls_in_python(f, x, "sum", one, (1,), np.float32) == 1
    assert calls_in_python(f, x, "su" + "m"[:], one, (1,)) == 0


def test_containers_of_tensors():
    Pair = collections.namedtuple("Pair", "a b")

    @flexor.jit
    def f(parts, options, pair):
        total = options["bias"] * options["scale"]
        for part in parts:
            total = total + part
        return total * pair.a + pair.b

    x, y = np.arange(3.0), np.ones(3)
    assert calls_in_python(f, [x, y], {"bias": x + 2, "scale": 2}, Pair(y + 1, x - 1)) == 1
    assert calls_in_python(f, [x + 5, y + 5], {"bias": x, "scale": 7}, Pair(y, x + 1)) == 0
    assert calls_in_python(f, [x, y, y + 1], {"bias": x + 2, "scale": 2}, Pair(y + 1, x - 1)) == 1
    assert calls_in_python(f, [x, y], {"scale": 2, "bias": x + 2}, Pair(y + 1, x - 1)) == 1
    assert calls_in_python(f, [x, y], {"bias": x + 2, "scale": 2}, Pair(y + 1, x)) == 1  # x stands twice


def test_a_list_that_is_returned_is_the_callers():
    @flexor.jit
    def f(parts):
        return parts, parts[0] + 1

    parts = [np.arange(3.0)]
    for _ in range(3):
        given, more = f(parts)
        assert given is parts and np.array_equal(more, parts[0] + 1)


def test_structures_come_back_whole():
    @flexor.jit
    def f(x, n):
        return {"sum": x.sum(), "all": (x, [x + 1, n + 1])}

    x = np.arange(3.0)
    for n in (1, 2, 3):
        found = f(x, n)
        assert type(found["sum"]) is np.float64 and found["sum"] == 3.0 and found["all"][0] is x
        assert type(found["all"][1]) is list and found["all"][1][1] == n + 1

    @flexor.jit
    def g(x, n):
        return x.max(), n * 2, x + 1

    for n in (1, 2, 3):
        biggest, double, more = g(x, n)
        assert (type(biggest), double) == (np.float64, 2 * n) and np.array_equal(more, x + 1)


def changes():
    """name -> (a function of x, what changes the world, what undoes it)"""
    holder, box = types.SimpleNamespace(bias=1.0), [1.0, 2.0]
    context = contextvars.ContextVar("context", default=1.0)
    ordered = collections.OrderedDict(a=1.0, b=2.0)
    cell = 1.0

    class Layer:
        factor = 2.0

        def apply(self, x):
            return x * self.factor

    layer = Layer()

    def set_cell(value):
        nonlocal cell
        cell = value

    def put(table, key, value):
        table[key] = value

    return {
        "global": (lambda x: x * SCALE, lambda: put(globals(), "SCALE", 5.0), lambda: put(globals(), "SCALE", 2.0)),
        "item": (lambda x: x * TABLE["factor"], lambda: put(TABLE, "factor", 5.0), lambda: put(TABLE, "factor", 3.0)),
        "attribute": (lambda x: x + holder.bias, lambda: setattr(holder, "bias", 4.0), lambda: setattr(holder, "bias", 1.0)),
        "element": (lambda x: x + box[1], lambda: put(box, 1, 7.0), lambda: put(box, 1, 2.0)),
        "length": (lambda x: x + len(box), lambda: box.append(3.0), box.pop),
        "cell": (lambda x: x + cell, lambda: set_cell(3.0), lambda: set_cell(1.0)),
        "context": (lambda x: x + context.get(), lambda: context.set(9.0), lambda: context.set(1.0)),
        "order of keys": (lambda x: x - list(ordered.values())[0], lambda: ordered.move_to_end("a"), lambda: ordered.move_to_end("b")),
        "class attribute": (lambda x: layer.apply(x), lambda: setattr(Layer, "factor", 3.0), lambda: setattr(Layer, "factor", 2.0)),
        "instance hides class": (lambda x: layer.apply(x), lambda: setattr(layer, "factor", 3.0), lambda: delattr(layer, "factor")),
        "method": (lambda x: layer.apply(x), lambda: setattr(Layer, "apply", lambda self, x: x), None),
        "array": (lambda x: x + WEIGHTS, lambda: put(globals(), "WEIGHTS", np.ones(3)), lambda: put(globals(), "WEIGHTS", np.arange(3.0))),
        "array of another shape": (lambda x: x + WEIGHTS, lambda: put(globals(), "WEIGHTS", np.ones(1)), lambda: put(globals(), "WEIGHTS", np.arange(3.0))),
        "array of another dtype": (lambda x: x + WEIGHTS, lambda: put(globals(), "WEIGHTS", np.ones(3, np.complex64)), lambda: put(globals(), "WEIGHTS", np.arange(3.0))),
        "array in place": (lambda x: x + WEIGHTS, lambda: put(WEIGHTS, 0, 9.0), lambda: put(WEIGHTS, 0, 0.0)),
    }


@pytest.mark.parametrize("name", sorted(changes()))
def test_every_kind_of_change_is_seen(name):
    plain, change, undo = changes()[name]
    f = flexor.jit(plain)
    x = np.arange(1.0, 4.0)
    assert calls_in_python(f, x) <= 2
    change()
    try:
        np.testing.assert_array_equal(f(x), plain(x))
        np.testing.assert_array_equal(f(x), plain(x))
    finally:
        (undo or (lambda: None))()
    np.testing.assert_array_equal(f(x), plain(x))
    np.testing.assert_array_equal(f(x), plain(x))


def test_what_raises_in_a_run_is_raised_once_with_its_effects():
    log = []

    @flexor.jit
    def f(x, y):
        return x @ y

    x = np.ones((2, 3))
    for _ in range(3):
        f(x, np.ones((3, 2)))
    for _ in range(2):
        with pytest.raises(ValueError):
            f(x, np.ones((4, 2)))
    assert f.stats()["calls"] == 5

    @flexor.jit
    def g(x, n):
        log.append(n)
        return x[n]

    for n in (0, 1, 2):
        assert g(np.arange(3.0), n) == n
    with pytest.raises(IndexError):
        g(np.arange(3.0), 7)
    assert log == [0, 1, 2, 7]


def test_an_argument_that_cannot_be_read_is_pythons():
    @flexor.jit(fallback="silent")
    def f(x):
        return x + 1

    for _ in range(3):
        assert np.array_equal(f(np.arange(3.0)), np.arange(3.0) + 1)
    for odd in (np.arange(3).astype(">f8"), np.ma.masked_array([1.0, 2.0], [0, 1]), np.array(["a"], dtype=object), 3, np.float32(2)):
        try:
            expected = odd + 1
        except TypeError:
            with pytest.raises(TypeError):
                f(odd)
            continue
        assert np.array_equal(f(odd), expected) and type(f(odd)) is type(expected)
    assert np.array_equal(f(np.arange(4.0)), np.arange(4.0) + 1)


def test_a_function_called_while_python_runs_it_stays_in_python():
    depth = []

    @flexor.jit(fallback="silent")
    def f(x, n):
        depth.append(sys._getframe().f_code)
        return f(x, n - 1) if n else x

    x = np.arange(3.0)
    assert f(x, 5) is x and f(x, 5) is x


def test_entries_let_go_of_what_they_held():
    class Layer:
        def __init__(self):
            self.weight = np.ones(3)

        def __call__(self, x):
            return x * self.weight

    layer = Layer()
    f = flexor.jit(lambda x, layer=layer: layer(x))
    for _ in range(3):
        f(np.arange(3.0))
    gone = weakref.ref(layer), weakref.ref(f)
    del layer, f
    gc.collect()
    assert gone[0]() is None and gone[1]() is None


def test_threads_change_what_others_read():
    holder = types.SimpleNamespace(bias=0.0)
    lock = threading.Lock()

    @flexor.jit
    def f(x):
        return x + holder.bias

    wrong = []

    def work(seed):
        for k in range(50):
            with lock:
                holder.bias = float(seed + k % 3)
                found = f(np.zeros(3))
                if found[0] != holder.bias:
                    wrong.append((seed, k))
            f(np.zeros(seed + 1))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_methods_and_partials():
    class Model:
        def __init__(self, scale):
            self.scale = scale

        @flexor.jit
        def run(self, x, n=1):
            return x * self.scale + n

    one, two = Model(2.0), Model(3.0)
    x = np.arange(3.0)
    for _ in range(3):
        np.testing.assert_array_equal(one.run(x), x * 2 + 1)
        np.testing.assert_array_equal(two.run(x, n=4), x * 3 + 4)
        np.testing.assert_array_equal(functools.partial(one.run, n=5)(x), x * 2 + 5)
    one.scale = 10.0
    np.testing.assert_array_equal(one.run(x), x * 10 + 1)
