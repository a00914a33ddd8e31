"""Numbers of the run, sets of plain objects and dicts by keys of the run, beside Python."""

import copy
import math

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

X = torch.arange(20.0).reshape(4, 5)
KEYS = torch.tensor([1, 2, 1])


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


def same(a, b):
    if isinstance(b, torch.Tensor):
        return a.dtype == b.dtype and torch.allclose(a, b, equal_nan=True)
    if isinstance(b, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (repr(a) == repr(b) if isinstance(b, float) else a == b)


def outcome(function, arguments):
    mine = copy.deepcopy(arguments)
    try:
        return function(*mine), None, list(mine)
    except Exception as error:
        return None, error, list(mine)


def agree(function, calls, native=True):
    jitted = flexor.jit(function, fallback="silent")
    for arguments in calls * 2:
        want, refused, theirs = outcome(function, arguments)
        got, raised, mine = outcome(jitted, arguments)
        assert type(raised) is type(refused) or (refused is not None and isinstance(raised, type(refused))), (raised, refused)
        assert same(got, want) and same(mine, theirs), (got, want)
    stats = jitted.stats()
    assert not stats["foreign_calls"] and (not stats["fallbacks"] or not native), stats


def scaled_by_root(x):
    return x / math.sqrt(x.shape[-1]), math.sqrt(x.shape[0])


def scaled_by_power(x):
    return x * (x.shape[-1] ** -0.5), x.shape[0] ** 0.3


@pytest.mark.parametrize("function", [scaled_by_root, scaled_by_power])
def test_roots_and_powers_of_sizes(function):
    agree(function, [(torch.ones(n, m),) for n, m in ((1, 2), (4, 5), (16, 17), (33, 15))])


def test_roots_are_those_of_python():
    for function, numbers in (
        (lambda x, a: (math.sqrt(a), x + 1), (2.5, 0.0, -0.0, 1e-300, 1e300, math.inf)),
        (lambda x, a: (math.isnan(a), math.isinf(a), x + 1), (2.5, math.nan, math.inf, -math.inf)),
    ):
        agree(function, [(X, number) for number in numbers])
    agree(lambda x, a: (math.sqrt(a), x + 1), [(X, 2.0), (X, -1.0), (X, math.nan)], native=False)


def test_powers_are_those_of_python():
    def power(x, a, b):
        return a**b, x + 1

    agree(power, [(X, a, b) for a in (2.5, 1e-8, 123.456, 7.0) for b in (0.3, -2.5, 0.0, 1.0)])
    edges = [(0.0, -1.0), (0.0, 0.0), (-8.0, 1 / 3), (-8.0, 2.0), (1e300, 2.0), (math.nan, 1.0), (2.0, math.inf), (1e-8, -math.inf)]
    agree(power, [(X, *edge) for edge in edges], native=False)


def changes(x):
    members = {1, 2}
    same_one = members
    members.add(3), same_one.discard(1), members.update([7, 8], {9})
    members |= {10}
    other = members | {0}
    other.remove(10)
    return x * len(members), 3 in same_one, members.issubset(other), sorted(other - {7} ^ {8} & {8, 9}), members.union([5]) == {5} | members


def fills(x):
    members = set()
    for axis in range(x.dim()):
        members.add(axis)
    return members, members.copy() is members, x + 1


def removes_what_is_not_there(x):
    members = {1}
    members.remove(5)
    return x


@pytest.mark.parametrize("function", [changes, fills, removes_what_is_not_there])
def test_sets(function):
    agree(function, [(X,)])


def gets(keys, x):
    table = {0: x, 1: x + 1, 2: x + 2, "name": 3}
    return table.get(int(keys[0]), x) + table.get(keys[1].item() + 5, x * 2)


def gets_nothing(keys, x):
    found = {0: x, 1: x + 1}.get(int(keys[1]))
    return x if found is None else found


def asks(keys, x):
    table = {0: x, 1: x + 1, "name": 3}
    return (x * 2 if int(keys[0]) in table else x), int(keys[1]) not in {2, 5}


def puts(keys, x):
    table = {0: x, 1: x + 1, 2: x}
    table[int(keys[0])] = x * 5
    return table[1], table[2], list(table)


@pytest.mark.parametrize("function", [gets, gets_nothing, asks])
def test_dicts_asked_for_keys_of_the_run(function):
    agree(function, [(KEYS, X), (torch.tensor([0, 0, 0]), X), (torch.tensor([7, 7, -5]), X), (torch.tensor([2, 1, 2]), X)])


def test_dicts_written_by_keys_of_the_run():
    agree(puts, [(KEYS, X), (torch.tensor([2, 0, 0]), X)])
    agree(puts, [(KEYS, X), (torch.tensor([7, 0, 0]), X)], native=False)


def test_tensors_like_another():
    agree(lambda x: (x.new_tensor([1.0, 2.0]), x.new_tensor(3), x.long().new_tensor([1, 2])), [(X,)])
