"""Lists of lists and tuples, dicts with keys of the run, and unpackings with a star, beside Python."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


def rows(*sizes):
    return torch.arange(float(np.prod(sizes))).reshape(sizes)


def outcome(function, *arguments):
    try:
        return repr(function(*arguments))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def checked(function, *inputs):
    """What has happened to calls of a jitted function on inputs, each of which gave what Python gives."""
    jitted = flexor.jit(function, fallback="silent")
    for _ in range(2):
        for x in inputs:
            assert outcome(jitted, x.clone()) == outcome(function, x.clone())
    return jitted.stats()


def with_a_star(x):
    first, *others = x
    return first, others


def with_a_star_between(x):
    first, *others, last = x
    total = first + last
    for row in others:
        total = total + row
    return total, len(others)


def nested(x):
    return [[v * 2 for v in row] for row in x]


def nested_and_filtered(x):
    return [[int(v) for v in row if v > 2] for row in x]


def nested_and_read(x):
    out = [[v * 2 for v in row] for row in x]
    total = x.sum() * 0
    for row in out:
        for v in row:
            total = total + v
    return total, len(out), sum([sum(row, x.sum()) for row in out], x.sum())


def of_tuples(x):
    out = []
    for at in range(x.shape[0]):
        out.append((at, x[at], x[at].sum() > 3))
    total = x.sum() * 0
    for at, row, flag in out:
        total = total + row.sum() * at
    return out, total, len(out), [p[0] for p in out if p[0] > 0]


def counts(x):
    d = {}
    for row in x:
        key = int(row.sum()) % 4
        d[key] = d.get(key, 0) + 1
    return d, len(d), isinstance(d, dict), type(d) is dict, bool(d)


def collects(x):
    d = {}
    for row in x:
        key = int(row.sum()) % 4
        if key in d:
            d[key] = d[key] + row
        else:
            d[key] = row
    e = d
    e[-1] = x[:, 0] if x.shape[0] == x.shape[1] else x[0] if x.shape[0] else x.sum(0)
    return d, e, d is e


def comprehends(x):
    d = {int(row.sum()): row for row in x}
    total = x.sum()
    for key in d:
        total = total + key
    for key, row in d.items():
        total = total + key * row.sum()
    return d, total, list(d), list(d.keys()), sum(d.values(), x.sum())


def sets_defaults(x):
    d = {2: x.sum()}
    for row in x:
        d.setdefault(int(row.sum()) % 4, row.sum())
    return d


def holds_tuples(x):
    return {at: (row, row * 2) for at, row in enumerate(x)}


def has_no_such_key(x):
    d = {}
    d[int(x.sum())] = x
    return d[-3]


def changes_as_it_is_read(x):
    d = {}
    d[int(x.sum())] = x
    for key in d:
        d[key + 1] = x
    return d


NATIVE = (
    with_a_star, with_a_star_between, nested, nested_and_filtered, nested_and_read, of_tuples, counts, collects, comprehends, sets_defaults,
    holds_tuples, has_no_such_key, changes_as_it_is_read,
)  # fmt: skip


@pytest.mark.parametrize("function", NATIVE, ids=lambda f: f.__name__)
def test_what_a_program_does(function):
    stats = checked(function, rows(3, 2), rows(1, 4), rows(0, 2), rows(2, 0), rows(4, 4))
    assert not stats["fallbacks"] and not stats["foreign_calls"]


@pytest.mark.parametrize("function", (nested, of_tuples, counts), ids=lambda f: f.__name__)
def test_arrays(function):
    jitted = flexor.jit(function, fallback="silent")
    for sizes in ((3, 2), (0, 2), (3, 2)):
        x = rows(*sizes).numpy()
        assert outcome(jitted, x) == outcome(function, x)
    assert not jitted.stats()["fallbacks"]


def changes_an_inner_list(x):
    out = []
    for row in x:
        inner = []
        for v in row:
            inner.append(v)
        out.append(inner)
        inner.append(row.sum())
    return out


def changes_what_it_has_found(x):
    out = [[v for v in row] for row in x]
    out[0].append(x.sum())
    return out


def asks_whether_it_is_the_same(x):
    out = [[v for v in row] for row in x]
    return out[0] is out[0], out


def has_texts_as_keys(x):
    return {f"row {int(row.sum())}": row for row in x}


def remembers(x):
    memo = {}

    def fibonacci(n):
        if n in memo:
            return memo[n]
        memo[n] = n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
        return memo[n]

    return fibonacci(int(x.sum()) % 5 + 3)


def compares(x):
    d = {int(row.sum()): at for at, row in enumerate(x)}
    e = dict(d)
    e.update(d)
    return d == e, d | e


def orders_tuples(x):
    return sorted([(float(row.sum()), at) for at, row in enumerate(x)])


PYTHONS = (changes_an_inner_list, changes_what_it_has_found, asks_whether_it_is_the_same, has_texts_as_keys, remembers, orders_tuples, compares)


@pytest.mark.parametrize("function", PYTHONS, ids=lambda f: f.__name__)
def test_what_is_not_followed_is_pythons(function):
    stats = checked(function, rows(3, 2), rows(1, 4))
    assert stats["fallbacks"] or stats["foreign_calls"]
