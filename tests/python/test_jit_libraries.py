"""flexor.jit on what libraries of models do around tensors: hooks, context variables, decorators, their own classes."""

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
