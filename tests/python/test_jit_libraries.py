"""flexor.jit on what libraries of models do around tensors: hooks, context variables, decorators, their own classes."""

import abc
import collections.abc
import contextvars
import enum
import functools
import inspect

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

X = torch.randn(3, 4)


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


def native(function, *calls, **options):
    """The jitted function, after calls that agree with eager without a fallback, by one translation."""
    jitted = flexor.jit(function, **options)
    for arguments in calls:
        want, got = function(*arguments), jitted(*arguments)
        torch.testing.assert_close(got, want)
    stats = jitted.stats()
    assert not stats["fallbacks"] and not stats["foreign_calls"] and stats["translations"] == 1, stats
    return jitted


# ------------------------------------------------------------------------------------------------------------------- hooks


def two_layers():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).eval()


def test_hooks_run_in_their_order():
    model = two_layers()
    model[0].register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    model[0].register_forward_pre_hook(lambda module, args: args[0] + 1)
    model[1].register_forward_hook(lambda module, args, output: output + args[0])
    model[1].register_forward_hook(lambda module, args, output: None)
    native(model, (X,), (torch.randn(7, 4),))


def test_hooks_with_keywords():
    class Scaled(torch.nn.Module):
        def forward(self, x, scale=1.0):
            return x * scale

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Scaled()

        def forward(self, x):
            return self.inner(x, scale=3.0)

    model = Outer()

    def twice(module, args, kwargs):
        return args, {"scale": kwargs["scale"] * 2}

    model.inner.register_forward_pre_hook(twice, with_kwargs=True)
    model.inner.register_forward_hook(lambda module, args, kwargs, output: output + kwargs["scale"], with_kwargs=True)
    native(model, (X,))


def test_a_hook_that_comes_or_goes_is_seen():
    model = two_layers()
    jitted = native(model, (X,))
    handle = model[2].register_forward_hook(lambda module, args, output: output * 0)
    assert jitted(X).abs().max() == 0
    handle.remove()
    torch.testing.assert_close(jitted(X), model(X))
    assert not jitted.stats()["fallbacks"]


def test_outputs_that_hooks_collect():
    collector = contextvars.ContextVar("collector", default=None)

    class Collecting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = two_layers()
            for layer in self.layers:
                layer.register_forward_hook(self.collect)

        @staticmethod
        def collect(module, args, output):
            collected = collector.get()
            if collected is not None:
                collected["outputs"].append(output)

        def forward(self, x):
            collected = {"outputs": []}
            token = collector.set(collected)
            try:
                last = self.layers(x)
            finally:
                collector.reset(token)
            return last, tuple(collected["outputs"])

    native(Collecting(), (X,), (torch.randn(5, 4),))
    assert collector.get() is None


# ------------------------------------------------------------------------------------------------------- context variables

SCALE = contextvars.ContextVar("SCALE", default=1.0)
UNSET = contextvars.ContextVar("UNSET")


def test_a_context_variable_is_guarded():
    def scaled(x):
        return x * SCALE.get()

    jitted = native(scaled, (X,))
    token = SCALE.set(2.0)
    try:
        torch.testing.assert_close(jitted(X), X * 2)
    finally:
        SCALE.reset(token)
    torch.testing.assert_close(jitted(X), X)
    assert jitted.stats()["translations"] == 2 and not jitted.stats()["fallbacks"]


def test_a_context_variable_that_stays_set():
    def remember(x):
        SCALE.set({"mean": x.mean()})
        return x + 1

    def run():
        jitted = flexor.jit(remember)
        jitted(X)
        assert not jitted.stats()["fallbacks"]
        return SCALE.get()

    found = contextvars.copy_context().run(run)
    torch.testing.assert_close(found, {"mean": X.mean()})
    assert SCALE.get() == 1.0


def test_a_context_variable_without_a_value():
    def read(x):
        return x * UNSET.get(3.0)

    native(read, (X,))
    with pytest.raises(LookupError):
        flexor.jit(lambda x: x * UNSET.get())(X)


def test_a_call_that_may_read_a_context_variable_sees_it():
    seen = []

    @flexor.disable
    def look():
        seen.append(SCALE.get())

    def set_and_look(x):
        token = SCALE.set(5.0)
        look()
        SCALE.reset(token)
        return x

    jitted = flexor.jit(set_and_look, fallback="silent")
    for _ in range(3):
        jitted(X)
    assert seen == [5.0] * 3 and SCALE.get() == 1.0


# ------------------------------------------------------------------------------------------------ writes when a program ends


class Counter:
    def __init__(self):
        self.calls = 0
        self.last = None
        self.history = []


def test_writes_are_done_once_and_in_order():
    counter = Counter()

    def count(x):
        counter.calls += 1
        counter.last = x.sum()
        counter.history = [counter.last, x]
        return counter.last * 2

    jitted = flexor.jit(count)
    for number in range(1, 4):
        x = torch.full((number, 2), float(number))
        assert jitted(x) == x.sum() * 2
        assert counter.calls == number and counter.last == x.sum()
        assert counter.history[0] is counter.last and counter.history[1] is x
    assert not jitted.stats()["fallbacks"] and not jitted.stats()["foreign_calls"]


def test_writes_before_an_exception_stay():
    counter = Counter()

    def count_and_fail(x):
        counter.calls += 1
        y = x.view(2, -1)
        counter.last = y
        return y

    jitted = flexor.jit(count_and_fail)
    jitted(torch.ones(4))
    with pytest.raises(RuntimeError):
        jitted(torch.ones(3))
    assert counter.calls == 2 and counter.last.numel() == 4
    with pytest.raises(RuntimeError):
        jitted(torch.ones(5))
    assert counter.calls == 3 and counter.last.numel() == 4


def test_writes_beside_writes_to_tensors_stay_too():
    counter = Counter()

    def change_and_fail(x, y):
        x += 1
        counter.calls += 1
        return x.view(2, -1) + y

    jitted = flexor.jit(change_and_fail, fallback="silent")
    x = torch.zeros(4)
    jitted(x, 1.0)
    odd = torch.zeros(3)
    with pytest.raises(RuntimeError):
        jitted(odd, 1.0)
    assert counter.calls == 2 and odd.tolist() == [1.0] * 3 and x.tolist() == [1.0] * 4


# ------------------------------------------------------------------------------------------------- decorators and exceptions


def renamed(old, new):
    def wrap(function):
        signature = inspect.signature(function)

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            if old in kwargs and new not in kwargs:
                kwargs[new] = kwargs.pop(old)
            if len(args) > len(signature.parameters):
                raise TypeError("too many")
            return function(*args, **kwargs)

        return wrapper

    return wrap


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    @renamed("amount", "scale")
    def forward(self, x, scale=1.0):
        return self.linear(x) * scale

    def chunk(self, x):
        return self(x, amount=2.0)


class Chunked(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = Layer()

    def forward(self, x):
        chunk = self.layer.chunk
        if len(inspect.signature(chunk).parameters) != 1:
            raise ValueError("one tensor")
        return chunk(x)


def test_decorators_and_signatures():
    native(Chunked().eval(), (X,), (torch.randn(6, 4),))


def test_a_try_around_what_cannot_raise_here():
    def is_compiling():
        try:
            return torch.compiler.is_compiling()
        except Exception:
            return False

    def write(x):
        if not is_compiling():
            x += 1
        return x

    jitted = flexor.jit(write, fallback="raise")
    assert jitted(torch.zeros(3)).tolist() == [1.0] * 3


# --------------------------------------------------------------------------------------------------- classes of the library's


class Mode(str, enum.Enum):
    ADD = "add"
    SCALE = "scale"


class Registry(dict):
    def get(self, key):
        return super().get(key.lower()) or {}


REGISTRY = Registry(double=2.0)


class Interface:
    def __init__(self):
        self.known = {"relu": torch.relu, "tanh": torch.tanh}

    def __contains__(self, name):
        return name in self.known

    def __getitem__(self, name):
        return self.known[name]

    def __len__(self):
        return len(self.known)

    def __bool__(self):
        return len(self.known) > 1


INTERFACE = Interface()


def test_enumerations_registries_and_interfaces():
    def run(x, mode="add"):
        if Mode(mode) == Mode.ADD and Mode.ADD != Mode.SCALE and Mode.SCALE == "scale":
            x = x + REGISTRY.get("DOUBLE")
        if "relu" in INTERFACE and "gelu" not in INTERFACE and INTERFACE:
            x = INTERFACE["relu"](x) * len(INTERFACE)
        return -x if not INTERFACE else x

    native(run, (X,), (torch.randn(2, 2),))


def test_a_condition_is_known_on_its_ways():
    def run(x):
        is_long = x.shape[0] > 2
        if is_long:
            return x.sum(0, keepdim=is_long)
        return x.sum(0, keepdim=is_long)

    native(run, (X,), (torch.randn(2, 4),))


class Missing(collections.abc.Mapping):
    """Its `in`, as that of every mapping, asks for an item and catches the KeyError."""

    def __init__(self, held):
        self.held = held

    def __getitem__(self, key):
        return self.held[key]

    def __iter__(self):
        return iter(self.held)

    def __len__(self):
        return len(self.held)


HELD = Missing({"scale": 2.0})


def finding(names):
    try:
        return names.index("missing")
    except ValueError as error:
        return len(str(error).split())
    finally:
        names.append("seen")


def nested(x):
    try:
        try:
            HELD["absent"]
        except IndexError:
            x = x * 100
    except KeyError as error:
        x = x + len(error.args)
    try:
        raise ValueError("three", "words", "more")
    except (KeyError, ValueError) as error:
        try:
            raise
        except ValueError as same:
            return x * len(same.args) * (same is error)


def test_exceptions_that_are_known_go_to_their_handlers():
    def run(x):
        names = ["a", "b"]
        at = finding(names)
        if "scale" in HELD and "shift" not in HELD:
            x = x * HELD["scale"]
        return nested(x) + at, len(names)

    native(run, (X,), (torch.randn(2, 2),))


def test_a_local_that_only_a_handler_reads():
    def run(x):
        seen = x + 1
        for name in ("a", "b"):
            try:
                before = seen
                if x.sum() > 0:
                    seen = seen * 2
                HELD[name]
            except KeyError:
                seen = seen + before
        return seen

    native(run, (torch.ones(3),), (-torch.ones(3),))


class Items(collections.abc.Sequence):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index >= self.count:
            raise IndexError("out of range")
        return index + 0.5


class Slot:
    def __init__(self, scale=1.0):
        self.scale = scale
        self.kept = None

    def update(self, x):
        if self.kept is None:
            self.kept = torch.tensor([], dtype=x.dtype, device=x.device)
        self.kept = torch.cat([self.kept, x * self.scale], dim=-1)
        return self.kept


class Store(abc.ABC):
    def __init__(self, count):
        super().__init__()
        self.slots = [Slot(scale=float(i)) for i in range(count)]

    def __len__(self):
        return len(self.slots)

    @property
    def is_filled(self):
        return all(slot.kept is not None for slot in self.slots)


class Stack(Store):
    def update(self, x, index):
        while len(self.slots) <= index:
            self.slots.append(Slot())
        return self.slots[index].update(x)


def test_objects_that_the_function_makes():
    def run(x):
        store = Stack(1)
        before = store.is_filled
        for index, half in zip(range(3), Items(3)):
            x = store.update(x, index) + half
        return store, x, before, store.is_filled, len(store), isinstance(store, Store)

    def plain(result):
        store, *others = result
        assert type(store) is Stack and all(type(slot) is Slot for slot in store.slots)
        return [(slot.scale, slot.kept) for slot in store.slots], *others

    jitted = flexor.jit(run)
    for x in (X, torch.randn(2, 7)):
        torch.testing.assert_close(plain(jitted(x)), plain(run(x)))
    stats = jitted.stats()
    assert stats["translations"] == 1 and not stats["fallbacks"] and not stats["foreign_calls"], stats


def test_objects_that_are_handed_to_python_are_made_by_python():
    seen = []

    @flexor.disable
    def look(slot):
        seen.append(slot)

    def run(x):
        slot = Slot(2.0)
        slot.update(x)
        look(slot)
        return slot.kept

    jitted = flexor.jit(run, fallback="silent")
    for _ in range(3):
        torch.testing.assert_close(jitted(X), X * 2)
    assert len(seen) == 3 and all(type(slot) is Slot for slot in seen)


def test_tensors_of_lists():
    def run(x, n):
        rows = torch.tensor([[1, 2], [3, n]], device=x.device)
        return x[0, 0] * rows, torch.tensor([True, False]), torch.tensor((0.5, 1)), torch.tensor([], dtype=torch.int64)

    native(run, (X, 4), (X, 7))


def test_pairs_of_indices():
    def run(x):
        rows, columns = torch.arange(x.shape[0])[:, None], torch.arange(x.shape[1])[None, :]
        return x[rows, columns], x[rows, -1 - columns], x[rows, columns * 0]

    native(run, (X,), (torch.randn(2, 7),))
    with pytest.raises(IndexError):
        flexor.jit(lambda x: x[torch.arange(2), torch.arange(2) + 9])(X)


def test_lists_of_places_and_members_of_tensors():
    def run(x):
        ends = x[:, [-1, 0]]
        return ends, x[[1, 0]], 0 in ends, 7 in x, 2.5 in x

    native(run, (torch.arange(12).reshape(3, 4),), (torch.arange(6).reshape(2, 3) + 2,))


def test_a_flag_of_a_large_function_is_known():
    def run(x, doubles=True):
        for _ in range(30):
            for _ in range(30):
                x = x + 0.5
        return (x * 2, x) if doubles else x

    jitted = flexor.jit(run)
    torch.testing.assert_close(jitted(X, True), run(X, True))
    torch.testing.assert_close(jitted(X, False), run(X, False))
    assert jitted.stats()["translations"] == 2 and not jitted.stats()["fallbacks"]


def test_writes_to_memory_of_its_own_are_no_effects():
    def run(x):
        try:
            y = x * 2
            y += 1
            y[0] = 0
            return y.view(2, -1)
        except RuntimeError:
            return x

    jitted = flexor.jit(run, fallback="silent")
    for size in (4, 3):
        torch.testing.assert_close(jitted(torch.ones(size)), run(torch.ones(size)))
    assert "beside effects" not in str(jitted.stats()["fallbacks"])


def test_limits_of_dtypes():
    native(lambda x: x.clamp(max=torch.finfo(x.dtype).max, min=torch.finfo(x.dtype).min), (X,))


def test_sizes_are_known_behind_branches():
    def run(x, w):
        y = x @ w
        if y.sum() > 0:
            y = y + 1
        parts = y.chunk(3, dim=-1)              # needs the size of w
        z = parts[0] * parts[1]
        while z.sum() > 10:
            z = z[1:] * 0.5
        return z, y.shape[-1] // 3

    w = torch.randn(4, 6)
    native(run, (torch.randn(9, 4) * 9, w), (torch.randn(5, 4), w))
