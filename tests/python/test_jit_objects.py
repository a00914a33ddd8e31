"""flexor.jit on objects of the user's classes among the arguments: read by place, written when the program ends."""

import collections
import copy
import dataclasses
import types

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


class Slot:
    limit = 100

    def __init__(self):
        self.keys = None
        self.is_filled = False

    def update(self, x):
        self.keys = x if not self.is_filled else torch.cat([self.keys, x])
        self.is_filled = True
        return self.keys


class Cache:
    def __init__(self, count):
        self.slots = [Slot() for _ in range(count)]
        self.names = {"first": self.slots[0]}
        self.seen = 0

    def update(self, x, index):
        while len(self.slots) <= index:
            self.slots.append(Slot())
        self.names["last"] = self.slots[index]
        return self.slots[index].update(x)


def plain(obj):
    """What an object holds, for a comparison."""
    if isinstance(obj, (Cache, Slot)):
        return {name: plain(value) for name, value in vars(obj).items()}
    if isinstance(obj, (list, tuple)):
        return [plain(value) for value in obj]
    return {key: plain(value) for key, value in obj.items()} if isinstance(obj, dict) else obj


def same(a, b):
    if isinstance(a, torch.Tensor):
        return a.shape == b.shape and torch.allclose(a, b, rtol=1e-4, atol=1e-4)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return all(same(a[key], b[key]) for key in a) and list(a) == list(b) if isinstance(a, dict) else a == b and type(a) is type(b)


def step(x, cache):
    cache.seen += x.shape[0]
    for index in range(3):
        x = cache.update(x * (index + 1), index)
    return x.sum(0), cache


def agree(function, jitted, *arguments):
    theirs, mine = copy.deepcopy(arguments), copy.deepcopy(arguments)
    want, got = function(*theirs), jitted(*mine)
    assert same(plain(got), plain(want)), (got, want)
    assert same(plain(mine), plain(theirs)), (mine, theirs)
    return mine


def test_one_program_for_every_cache_and_one_for_its_growth():
    jitted = flexor.jit(step)
    for rows in (2, 5):
        cache = Cache(1)
        for more in (rows, 1, 3, 4):
            before = cache
            _, cache = agree(step, jitted, torch.randn(more, 4), before)
            assert cache.names["last"] is cache.slots[2] and cache.names["first"] is cache.slots[0]
    stats = jitted.stats()
    assert not stats["fallbacks"] and not stats["foreign_calls"], stats
    assert stats["translations"] == 2, stats  # an empty cache, and one that grows


def test_the_object_itself_comes_back():
    jitted = flexor.jit(step)
    cache = Cache(2)
    slots, first = cache.slots, cache.slots[0]
    _, got = jitted(torch.randn(2, 4), cache)
    assert got is cache and got.slots is slots and got.slots[0] is first and len(slots) == 3


def test_what_is_read_is_checked():
    def scaled(x, slot):
        slot.keys = x
        return x * slot.scale if slot.kind == "scale" else x + slot.scale

    jitted = flexor.jit(scaled)
    for kind, scale in (("scale", 2.0), ("shift", 2.0), ("scale", 2.0), ("scale", 3.0), ("scale", 4.5)):
        slot = Slot()
        slot.kind, slot.scale = kind, scale
        agree(scaled, jitted, torch.randn(3), slot)
    assert jitted.stats()["translations"] == 2 and not jitted.stats()["fallbacks"]


SCALES = (2, "two", 3.0)


def _summed(x, slot):
    slot.keys = x
    return x.sum(slot.scale)


def _sliced(x, slot):
    slot.keys = x[: slot.scale]
    return slot.keys * slot.scale if slot.scale > 1 else -x


def _chosen(x, slot):
    slot.keys = x
    for at in range(slot.scale):
        x = x * 2 if isinstance(SCALES[at], str) else x + SCALES[at]
    return x


@pytest.mark.parametrize(("function", "translations"), [(_summed, 2), (_sliced, 1), (_chosen, None)])
def test_numbers_are_of_the_run_unless_they_have_to_be_known(function, translations):
    jitted = flexor.jit(function)
    for scale in (0, 1, 0) if function is _summed else (0, 1, 2, 3, 2):
        slot = Slot()
        slot.scale = scale
        agree(function, jitted, torch.randn(4, 3), slot)
    stats = jitted.stats()
    assert not stats["fallbacks"] and not stats["foreign_calls"] and stats["translations"] == (translations or stats["translations"])


def test_attributes_that_are_not_there():
    def read(x, slot):
        slot.keys = x
        return x * getattr(slot, "scale", 2.0) + (slot.limit if hasattr(slot, "limit") else 0)

    jitted = flexor.jit(read)
    slot = Slot()
    agree(read, jitted, torch.ones(3), slot)
    slot.scale = 5.0
    agree(read, jitted, torch.ones(3), slot)
    slot.limit = 7
    agree(read, jitted, torch.ones(3), slot)

    with pytest.raises(AttributeError):
        flexor.jit(lambda x, slot: x * slot.absent)(torch.ones(3), Slot())


def test_objects_that_are_one_object():
    def write(x, a, b):
        a.keys = x
        return b.keys is None

    jitted = flexor.jit(write)
    one, other = Slot(), Slot()
    assert jitted(torch.ones(2), one, other) is True
    assert jitted(torch.ones(2), other, other) is False
    third = Slot()
    pair = Cache(1)
    pair.slots = [third, third]

    def write_inside(x, cache):
        cache.slots[0].keys = x
        return cache.slots[1].keys is None

    inside = flexor.jit(write_inside)
    assert inside(torch.ones(2), pair) is False
    pair.slots = [Slot(), Slot()]
    assert inside(torch.ones(2), pair) is True


def test_whether_objects_are_the_same():
    one, two = Slot(), Slot()

    def choose(x, slot, other):
        slot.keys = x
        return x * 2 if slot is one else x * 3 if slot is other else -x

    jitted = flexor.jit(choose)
    for slot, other in ((one, two), (two, one), (two, two), (Slot(), two)):
        assert jitted(torch.ones(1), slot, other).item() == choose(torch.ones(1), slot, other).item()

    def are_one(x, cache):
        cache.seen += 1
        return x + 1 if cache.slots[0] is cache.names["first"] else x

    jitted = flexor.jit(are_one)
    for is_first in (True, False, True):
        cache = Cache(2)
        cache.slots[0] = cache.slots[0] if is_first else cache.slots[1]
        assert jitted(torch.zeros(1), cache).item() == float(is_first)


SHARED = Slot()


def test_an_object_that_is_also_looked_at_by_another_way():
    def write(x, slot):
        slot.keys = x * 2
        return SHARED.is_filled, SHARED.keys

    jitted = flexor.jit(write, fallback="silent")
    x = torch.ones(2)
    SHARED.keys = None
    assert jitted(x, Slot()) == (False, None)
    is_filled, keys = jitted(x, SHARED)
    assert not is_filled and keys.tolist() == [2.0, 2.0]


def test_writes_are_undone_by_nothing_and_done_once_where_a_call_raises():
    def fail(x, slot):
        slot.keys = x
        slot.is_filled = True
        return x.view(2, -1)

    jitted = flexor.jit(fail)
    slot = Slot()
    jitted(torch.ones(4), slot)
    with pytest.raises(RuntimeError):
        jitted(torch.zeros(3), slot)
    assert slot.keys.tolist() == [0.0] * 3 and slot.is_filled


def test_objects_that_python_is_handed():
    seen = []

    @flexor.disable
    def look(slot):
        seen.append(slot.keys)
        slot.keys = slot.keys + 1

    def run(x, slot):
        slot.keys = x
        look(slot)
        return slot.keys * 2

    jitted = flexor.jit(run, fallback="silent")
    for number in range(3):
        slot = Slot()
        assert jitted(torch.full((2,), float(number)), slot).tolist() == [2.0 * number + 2] * 2
        assert slot.keys.tolist() == [number + 1.0] * 2
    assert [keys.tolist() for keys in seen] == [[0.0] * 2, [1.0] * 2, [2.0] * 2]


@dataclasses.dataclass
class Config:
    scale: float = 2.0
    name: str = "plain"


def test_settings_are_known_by_identity():
    def run(x, config):
        return x * config.scale

    jitted = flexor.jit(run)
    config = Config()
    for _ in range(3):
        assert jitted(torch.ones(2), config).tolist() == [2.0, 2.0]
    config.scale = 3.0
    assert jitted(torch.ones(2), config).tolist() == [3.0, 3.0]
    assert not jitted.stats()["fallbacks"] and jitted.stats()["translations"] == 2


def test_a_loop_that_changes_what_objects_hold():
    def run(x, cache):
        own = Cache(1)
        while x.sum() < 100:
            own.seen += 1
            cache.seen += own.seen
            own.slots[0].keys = cache.update(x, 0)
            x = x * 2
        return own, x

    jitted = flexor.jit(run)
    for value in (1.0, 3.0, 70.0):
        agree(run, jitted, torch.full((3,), value), Cache(1))
    assert not jitted.stats()["fallbacks"] and not jitted.stats()["foreign_calls"]


def test_a_jitted_method_knows_its_object():
    class Model:
        def __init__(self, scale):
            self.weight = torch.full((3,), scale)
            self.calls = 0

        @flexor.jit
        def run(self, x):
            self.calls += 1
            return x * self.weight

    for scale in (2.0, 3.0):
        model = Model(scale)
        for number in range(3):
            assert model.run(torch.ones(3)).tolist() == [scale] * 3 and model.calls == number + 1


@dataclasses.dataclass
class Batch:
    first: torch.Tensor
    second: torch.Tensor
    scale: float = 2.0
    parts: list = dataclasses.field(default_factory=list)
    names: dict = dataclasses.field(default_factory=dict)


class ByHand:
    def __init__(self, **fields):
        self.__dict__.update(fields)


Pair = collections.namedtuple("Pair", "first second")


def counting(jitted):
    """The calls that the compiled call path does not serve, from now on."""
    slow = []
    original = jitted._call
    jitted._call = lambda *args, **kwargs: (slow.append(args), original(*args, **kwargs))[1]
    return slow


def served(jitted, make, expected, shapes=((3,), (4,), (1,), (0,))):
    """Whether calls with new objects give what is expected, and after the first ones none of them takes the path of Python."""
    for shape in shapes[:2] * 2:
        assert torch.equal(jitted(make(shape)), expected(make(shape)))
    slow = counting(jitted)
    for shape in shapes:
        assert torch.equal(jitted(make(shape)), expected(make(shape)))
    assert not slow and not jitted.stats()["fallbacks"] and jitted.stats()["translations"] == 1


def ramp(shape):
    return torch.arange(shape[0], dtype=torch.float32)


@pytest.mark.parametrize(
    "make",
    [
        lambda shape: Batch(ramp(shape), ramp(shape) + 1),
        lambda shape: ByHand(first=ramp(shape), second=ramp(shape) + 1),
        lambda shape: types.SimpleNamespace(first=ramp(shape), second=ramp(shape) + 1),
        lambda shape: Pair(ramp(shape), ramp(shape) + 1),
    ],
    ids=["dataclass", "class", "namespace", "namedtuple"],
)
def test_objects_take_the_compiled_call_path(make):
    def function(batch):
        return batch.first * 2 - batch.second

    served(flexor.jit(function), make, function)


def test_what_an_object_holds_takes_the_compiled_call_path():
    def function(batch):
        return (batch.first * batch.scale + batch.parts[0]["x"]).sum() + batch.names["b"]

    served(flexor.jit(function), lambda shape: Batch(ramp(shape), ramp(shape), 2.0, [{"x": ramp(shape)}], {"b": ramp(shape)}), function)


def test_dicts_by_numbers_and_nested_ones_take_the_compiled_call_path():
    def function(layers):
        return layers[0]["w"] + layers[1]["w"][0] * layers[1]["w"][1]

    served(flexor.jit(function), lambda shape: {0: {"w": ramp(shape)}, 1: {"w": [ramp(shape), ramp(shape)]}}, function)


def test_an_object_of_another_form_is_another_call():
    def function(batch):
        return batch.first * batch.scale

    jitted = flexor.jit(function)
    x = ramp((3,))
    for _ in range(3):
        assert torch.equal(jitted(Batch(x, x)), x * 2)
    for batch, expected in (
        (Batch(x, x, 3.0), x * 3),  # another number
        (Batch(x.double(), x), x.double() * 2),  # another dtype
        (Batch(x[None], x), x[None] * 2),  # another rank
        (Batch(x, x, 2), x * 2),  # another class
        (ByHand(first=x, scale=4.0), x * 4),
        (Batch(x, x), x * 2),
    ):
        found = jitted(batch)
        assert torch.equal(found, expected) and found.dtype == expected.dtype
    with pytest.raises(AttributeError):
        jitted(ByHand(first=x))
    subclass = type("Doubled", (Batch,), {"first": property(lambda self: self.second * 2, lambda self, value: None)})
    assert torch.equal(jitted(subclass(x, x)), x * 4)


def test_writes_to_objects_on_the_compiled_call_path():
    def function(batch, other):
        batch.scale = batch.first.sum()
        batch.parts.append(batch.first + 1)
        other.first, batch.second = batch.second, other.first
        return batch

    jitted = flexor.jit(function)
    for round in range(6):
        if round == 3:
            slow = counting(jitted)
        mine, theirs = ([Batch(ramp((n,)) + round, ramp((n,))) for n in (3, 3)] for _ in range(2))
        found, expected = jitted(*mine), function(*theirs)
        assert found is mine[0] and same(plain(vars(found)), plain(vars(expected)))
        assert mine[1].first is not theirs[1].first and torch.equal(mine[1].first, theirs[1].first)
    assert not slow
    one = Batch(ramp((3,)), ramp((3,)))
    other = copy.deepcopy(one)
    jitted(one, one), function(other, other)
    assert same(plain(vars(one)), plain(vars(other)))


def test_containers_that_are_one_are_not_two_on_the_compiled_call_path():
    @flexor.jit
    def function(x, a, b):
        return (x + 1, a is b, a, b)

    x = ramp((3,))
    for _ in range(3):
        a, b = [1, 2], [1, 2]
        out = function(x, a, b)
        assert out[1] is False and out[2] is a and out[3] is b
    for _ in range(3):
        out = function(x, a, a)
        assert out[1] is True and out[2] is a and out[3] is a
    out = function(x, [], [])
    shared = []
    assert out[1] is False and function(x, shared, shared)[1] is True
    first, second = Batch(x, x), Batch(x, x)
    for _ in range(3):
        assert function(x, first, second)[1] is False
    assert function(x, first, first)[1] is True


def test_namespaces_are_equal_by_what_they_hold():
    @flexor.jit
    def function(a, b):
        return a == b, a.x + b.x

    for _ in range(3):
        assert function(types.SimpleNamespace(x=1.0, y=2), types.SimpleNamespace(x=1.0, y=2))[0] is True
        assert function(types.SimpleNamespace(x=1.0, y=2), types.SimpleNamespace(x=1.0, y=3))[0] is False


def test_gradients_of_what_objects_hold():
    @flexor.jit
    def function(batch):
        return (batch.first * batch.second).sum()

    x = ramp((3,))
    for _ in range(3):
        function(Batch(x, x))
    with torch.enable_grad():
        leaf = ramp((3,)).requires_grad_()
        function(Batch(leaf, x)).backward()
    assert torch.equal(leaf.grad, x)
