"""Functions that write to tensors and raise: a run takes its writes back, and Python does the call anew."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


def outcome(function, *arguments):
    """What a call gives, or the class of what it raises."""
    try:
        given = function(*arguments)
    except Exception as error:
        return next(cls for cls in type(error).__mro__ if cls.__module__ == "builtins")
    return given.tolist()


class State:
    def __init__(self):
        self.busy = 0


STATE = State()


def with_finally(x, y, i):
    try:
        x.add_(1)
        return y[i] * x
    finally:
        STATE.busy += 1


def with_handler(x, y, i):
    try:
        x.mul_(2)
        return y[i] * x
    except IndexError:
        x.sub_(5)
        return x


def of_views(x, y, i):
    try:
        x[..., 1:].add_(1)
        x.view(-1)[:2] += 3
        return y[i] + x[..., :1].mul_(2).sum()
    finally:
        STATE.busy += 1


PLACES = (0, 3, 7, 2, -9, -1)


@pytest.mark.parametrize("function", [with_finally, with_handler, of_views])
@pytest.mark.parametrize("size", [0, 1, 2, 15, 16, 17, 33])
@pytest.mark.parametrize("layout", ["dense", "strided", "transposed"])
def test_what_is_written_is_what_eager_writes(function, size, layout):
    if function is of_views and layout != "dense":
        pytest.skip("has no flat view")
    mine, theirs = (
        {"dense": lambda: torch.ones(size), "strided": lambda: torch.ones(2 * size)[::2], "transposed": lambda: torch.ones(size, 4).t()[1]}[layout]()
        for _ in range(2)
    )
    table = torch.arange(4.0 * size).reshape(4, size)
    table[1:2] = float("nan")
    jitted = flexor.jit(function)
    for place in map(torch.tensor, PLACES if size else (0, 3, -1)):
        before = STATE.busy
        found = outcome(jitted, mine, table, place)
        between = STATE.busy
        assert str(found) == str(outcome(function, theirs, table, place)) and between - before == STATE.busy - between
        assert torch.equal(mine, theirs)
    assert jitted.stats()["translations"] == 1
    assert all(reason.startswith("the program refuses what Python does") for reason in jitted.stats()["fallbacks"])


class Counter:
    def __init__(self):
        self.count, self.sum = 0, torch.zeros(3)

    def add(self, x):
        self.sum.add_(x)
        self.count += 1
        return self.sum


def counted(counter, y, i):
    counter.add(y[0])
    return counter.add(y[i]) * 2


def test_objects_and_tensors_are_written_together():
    jitted = flexor.jit(counted)
    mine, theirs = Counter(), Counter()
    table = torch.arange(12.0).reshape(4, 3)
    for place in map(torch.tensor, PLACES):
        assert outcome(jitted, mine, table, place) == outcome(counted, theirs, table, place)
        assert mine.count == theirs.count and torch.equal(mine.sum, theirs.sum)
    assert not any("writes" in reason or "catches" in reason for reason in jitted.stats()["fallbacks"])


def test_tensors_that_hold_elements_at_several_places():
    def fill(x, y, i):
        try:
            x.fill_(4.0)
            return y[i] * x
        finally:
            STATE.busy += 1

    jitted = flexor.jit(fill)
    table = torch.arange(12.0).reshape(4, 3)
    for place in map(torch.tensor, PLACES):
        mine, theirs = (torch.ones(1).expand(3) for _ in range(2))
        assert outcome(jitted, mine, table, place) == outcome(fill, theirs, table, place)
        assert torch.equal(mine, theirs)


def test_arrays():
    def write(x, y, i):
        try:
            x += 1
            return y[i] * x
        finally:
            STATE.busy += 1

    jitted = flexor.jit(write)
    table = np.arange(12.0).reshape(4, 3)
    mine, theirs = np.ones(6)[::2], np.ones(6)[::2]
    for place in map(np.array, PLACES):
        assert outcome(jitted, mine, table, place) == outcome(write, theirs, table, place)
        assert np.array_equal(mine, theirs)
    assert jitted.stats()["translations"] == 1


def test_what_two_arguments_share():
    def write(x, y, i):
        try:
            x.add_(y)
            y.mul_(2)
            return x[i]
        finally:
            STATE.busy += 1

    jitted = flexor.jit(write)
    for place in map(torch.tensor, PLACES):
        mine, theirs = torch.arange(6.0), torch.arange(6.0)
        assert outcome(jitted, mine[:4], mine[2:], place) == outcome(write, theirs[:4], theirs[2:], place)
        assert torch.equal(mine, theirs)


def test_effects_that_cannot_be_taken_back(capsys):
    def write(x, i):
        try:
            x.add_(1)
            print("written")
            return x[i]
        finally:
            STATE.busy += 1

    jitted = flexor.jit(write, fallback="silent")
    mine, theirs = torch.ones(3), torch.ones(3)
    for place in map(torch.tensor, PLACES):
        assert outcome(jitted, mine, place) == outcome(write, theirs, place)
        assert torch.equal(mine, theirs)
    assert capsys.readouterr().out.count("written") == 2 * len(PLACES)
    assert any(reason.startswith("an exception that the function catches, beside effects") for reason in jitted.stats()["fallbacks"])


def test_sizes_that_two_arguments_decide():
    def zeros(a, b, n):
        both = a + b
        return torch.zeros(both.shape[0], n) + both[:, :1]

    jitted = flexor.jit(zeros)
    for rows, other in ((4, 4), (1, 3), (3, 1), (0, 1), (1, 1), (2, 2)):
        for n in (1, 5):
            a, b = torch.randn(rows, 2), torch.randn(other, 2)
            assert torch.equal(jitted(a, b, n), zeros(a, b, n))
    assert not jitted.stats()["foreign_calls"]


def read(y, place):
    return y[place]


def writes_in_many_ways(x, y, i, at, rows):
    read(y, at[0])
    x.add_(1)
    read(y, at[1])
    x[1:, 2:4] = y[0, :1]
    read(y, at[2])
    x.index_copy_(0, i, y[: i.shape[0]] * 2)
    read(y, at[3])
    x[i, 0] += 3
    read(y, at[4])
    rows[0].scatter_add_(1, i.expand(2, -1), y[:2, : i.shape[0]])
    x[x > 4] = -1.0
    read(y, at[5])
    x.t()[0].mul_(2)
    rows[1].copy_(x[0])
    return read(y, at[6]) + x.sum() + rows[1].sum()


def guarded(x, y, i, at, rows):
    try:
        return writes_in_many_ways(x, y, i, at, rows)
    finally:
        STATE.busy += 1


@pytest.mark.parametrize("function", [writes_in_many_ways, guarded])
def test_what_raises_in_the_middle_leaves_what_eager_leaves(function):
    jitted = flexor.jit(function)
    y = torch.arange(32.0).reshape(4, 8)
    for chosen in ([2, 0], [1], [3, 1, 0], []):
        for stop in range(8):
            at = torch.zeros(7, dtype=torch.int64)
            at[stop:] = 9
            mine, theirs = ((torch.arange(40.0).reshape(5, 8), [torch.zeros(2, 5), torch.ones(8)]) for _ in range(2))
            places = torch.tensor(chosen, dtype=torch.int64)
            found = outcome(jitted, mine[0], y, places, at, mine[1])
            assert str(found) == str(outcome(function, theirs[0], y, places, at, theirs[1]))
            assert (found is IndexError) == (stop < 7)
            assert torch.equal(mine[0], theirs[0]) and all(map(torch.equal, mine[1], theirs[1])), (chosen, stop)
    assert all("refuses what Python does" in reason for reason in jitted.stats()["fallbacks"]), jitted.stats()


def test_writes_by_indices_that_lie_outside_write_nothing_before():
    def put(x, i, y):
        x.index_copy_(0, i, y)
        return x

    jitted = flexor.jit(put, fallback="raise")
    x, y = torch.zeros(4, 2), torch.ones(2, 2)
    with pytest.raises(IndexError):
        jitted(x, torch.tensor([0, 4]), y)
    assert not x.any()
    assert torch.equal(jitted(x, torch.tensor([3, 1]), y), put(torch.zeros(4, 2), torch.tensor([3, 1]), y))


def test_writes_that_read_beside_what_they_write():
    def shuffled(x, i):
        x[:, 0].index_copy_(0, i, x[: i.shape[0], 1])
        x[i, 1] = x[:1, 0]
        return x

    jitted = flexor.jit(shuffled)
    for order in ([2, 0, 1], [1], [3, 2]):
        mine, theirs, i = torch.arange(8.0).reshape(4, 2), torch.arange(8.0).reshape(4, 2), torch.tensor(order)
        assert torch.equal(jitted(mine, i), shuffled(theirs, i)) and torch.equal(mine, theirs)
