"""What a jitted function or module is to the Python around it: decorators, pickling, copies, hooks, signatures, tracebacks."""

import asyncio
import copy
import functools
import inspect
import io
import logging
import pickle
import sys
import time
import traceback
import typing

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

strict = functools.partial(flexor.jit, fallback="raise")
X = torch.arange(20.0).reshape(4, 5) - 7


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


# -------------------------------------------------------------------------------------------------------------- functions


@flexor.jit(fallback="raise")
def scaled(x: torch.Tensor, k: int = 2, *, shift: float = 0.5) -> torch.Tensor:
    """x times k."""
    return x * k + shift


def plain(x):
    return x + 1


renamed = flexor.jit(plain)


def test_a_function_keeps_name_docs_signature_and_attributes():
    scaled.note = "kept"
    original = scaled.__wrapped__
    assert inspect.signature(scaled) == inspect.signature(original)
    assert typing.get_type_hints(scaled) == {"x": torch.Tensor, "k": int, "shift": float, "return": torch.Tensor}
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "__defaults__", "__kwdefaults__", "__code__"):
        assert getattr(scaled, name) == getattr(original, name)
    assert scaled.note == "kept" and callable(scaled) and "scaled" in repr(scaled)
    with pytest.raises(AttributeError):
        scaled.nothing  # noqa: B018


class Scale:
    def __init__(self, by):
        self.by = by

    def of(self, x, k=2):
        """x times by times k."""
        return x * self.by * k

    def __call__(self, x, *, shift=0):
        return x * self.by + shift


def test_bound_methods_partials_and_objects_keep_their_signature():
    scale = Scale(3)
    for target, docs in ((scale.of, "x times by times k."), (functools.partial(scale.of, k=3), None), (scale, None)):
        jitted = strict(target)
        assert inspect.signature(jitted) == inspect.signature(target) and torch.equal(jitted(X), target(X))
        assert docs in (None, jitted.__doc__)
        assert torch.equal(pickle.loads(pickle.dumps(jitted))(X), target(X))
        scale.by += 1
        assert torch.equal(jitted(X), target(X))


@pytest.mark.parametrize("function", [scaled, renamed, functools.partial(scaled, k=3)], ids=["decorated", "renamed", "partial"])
def test_functions_are_pickled_and_copied(function):
    for twin in (pickle.loads(pickle.dumps(function)), copy.deepcopy(function), copy.copy(function)):
        assert torch.equal(twin(X), function(X))
    assert pickle.loads(pickle.dumps(scaled)) is scaled


def test_options_travel_with_copies():
    twin = copy.deepcopy(flexor.jit(plain, dims={"x": [flexor.FROZEN, flexor.Dim("S")]}, weights="frozen", fallback="silent"))
    assert pickle.loads(pickle.dumps(twin)).options == twin.options
    assert pickle.loads(pickle.dumps(twin)).options.dims["x"][0] is flexor.FROZEN


BAD = {
    "fallback": {"fallback": "loud"},
    "weights": {"weights": True},
    "compile": {"compile": "later"},
    "exact_only": {"exact_only": "yes"},
    "dims": {"dims": {"x": "BS"}},
    "dims of a size": {"dims": {"x": [1.5]}},
    "soft_limit": {"soft_limit": "much"},
    "hard_limit": {"hard_limit": -1},
}


@pytest.mark.parametrize("options", BAD.values(), ids=BAD)
def test_options_are_refused_by_name(options):
    with pytest.raises(flexor.ArgumentError, match="E0507") as caught:
        flexor.jit(plain, **options)
    assert str(next(iter(options.values()))) in str(caught.value)
    with pytest.raises(TypeError, match="threds"):
        flexor.jit(plain, threds=2)


def test_a_session_of_its_own():
    interpreted, limited = flexor.jit(compile=False)(plain), flexor.jit(plain, hard_limit="1MB")
    before = flexor.stats()["compilations"]
    assert torch.equal(interpreted(X), X + 1) and flexor.stats()["compilations"] == before
    with pytest.raises(flexor.ResourceLimit):
        strict(lambda x: (x @ x.T).softmax(-1).sum(), hard_limit="1MB")(torch.ones(2000, 3))
    assert torch.equal(limited(X), X + 1)


def test_python_runs_calls_until_their_program_is_compiled():
    calls = []

    @strict(compile="async")
    def f(x):
        x += 1
        return x.exp().sum() * 2 if x.sum() > 0 else x.sum()

    def g(x):
        calls.append(x)  # a call of Python: its program is compiled in its first run
        return x * 2

    x, deadline = torch.zeros(3), time.monotonic() + 60
    turns = 0
    while not f.stats()["waited"] < turns or turns == 0:
        assert torch.allclose(f(x.clone()), torch.ones(3).exp().sum() * 2)
        turns += 1
        assert time.monotonic() < deadline
    assert f.stats()["translations"] == 1 and not f.stats()["fallbacks"] and turns > 1
    g = strict(g, compile="async")
    assert torch.equal(g(x), x * 2) and g.stats()["waited"] == 0 and len(calls) == 1


def test_no_call_waits_for_the_compilation_of_sizes_of_another_family():
    f = strict(lambda x, y: (x + y).exp().sum(), compile="async")
    session, deadline = f._session, time.monotonic() + 60
    three, others, one = torch.ones(3), torch.ones(3), torch.ones(1)  # one tensor given twice would be another program
    while f.stats()["waited"] or not f.stats()["calls"]:
        waited = f.stats()["waited"]
        f(three, others)
        if f.stats()["waited"] == waited:
            break
        assert time.monotonic() < deadline
    session.settle()
    compiled = session.stats()["compilations"]
    for _ in range(3):
        for sizes in ((three, one), (one, three), (torch.ones(0), one)):
            assert torch.allclose(f(*sizes), (sizes[0] + sizes[1]).exp().sum())
        session.settle()
    assert session.stats()["compilations"] > compiled and not f.stats()["fallbacks"]
    before = session.stats()
    f(three, one)
    after = session.stats()
    assert after["interpreted_ops"] == before["interpreted_ops"] and after["compilations"] == before["compilations"]


def test_fallback_says_it_once_raises_or_counts(caplog):
    def caught(x):
        try:
            print(end="")
            return x.view(3, -1)
        except RuntimeError:
            return x

    with caplog.at_level(logging.WARNING, "flexor"):
        for how, told in (("warn", 1), ("silent", 0)):
            caplog.clear()
            jitted = flexor.jit(caught, fallback=how)
            for _ in range(3):
                jitted(torch.ones(6))
            assert len(caplog.records) == told and sum(jitted.stats()["fallbacks"].values()) == 3
    with pytest.raises(flexor.NotSupported, match="exception that the function catches"):
        flexor.jit(caught, fallback="raise")(torch.ones(6))


# ---------------------------------------------------------------------------------------------------------------- classes


class Kinds:
    factor = 3

    def __init__(self, scale):
        self.scale = scale

    @strict
    def method(self, x):
        return x * self.scale

    @staticmethod
    @strict
    def inner_static(x):
        return x + 1

    @strict
    @staticmethod
    def outer_static(x):
        return x + 1

    @classmethod
    @strict
    def inner_class(cls, x):
        return x * cls.factor

    @strict
    @classmethod
    def outer_class(cls, x):
        return x * cls.factor

    @property
    @strict
    def prop(self):
        return torch.ones(2) * self.scale


class Derived(Kinds):
    factor = 5

    @strict
    def method(self, x):
        return super().method(x) + 1


def test_methods_of_every_kind():
    for instance, extra, factor in ((Kinds(2.0), 0, 3), (Derived(4.0), 1, 5)):
        for _ in range(2):
            assert torch.equal(instance.method(X), X * instance.scale + extra)
            assert torch.equal(type(instance).method(instance, X), X * instance.scale + extra)
            for holder in (instance, type(instance)):
                assert torch.equal(holder.inner_static(X), X + 1) and torch.equal(holder.outer_static(X), X + 1)
                assert torch.equal(holder.inner_class(X), X * factor) and torch.equal(holder.outer_class(X), X * factor)
            assert torch.equal(instance.prop, torch.ones(2) * instance.scale)
            instance.scale += 1
    assert str(inspect.signature(Kinds(1).method)) == "(x)"
    assert torch.equal(pickle.loads(pickle.dumps(Kinds(2.0).method))(X), X * 2)


class Forward(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(5, 3)

    @strict
    def forward(self, x):
        return self.layer(x)


@strict
class Decorated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(5, 3)

    def forward(self, x):
        return self.layer(x)


@strict
class Called:
    def __call__(self, x):
        return x * 2


@pytest.mark.parametrize("cls", [Forward, Decorated])
def test_forward_as_a_program(cls):
    module = cls()
    for twin in (module, copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        handle = twin.register_forward_hook(lambda module, inputs, output: output * 2)
        assert torch.allclose(twin(X), torch.nn.functional.linear(X, module.layer.weight, module.layer.bias) * 2, atol=1e-5)
        handle.remove()
    assert cls.forward.stats()["translations"] == 3


def test_a_class_with_a_call():
    assert torch.equal(Called()(X), X * 2) and Called.__call__.stats()["calls"] == 1
    with pytest.raises(TypeError, match="no __call__ of Python"):
        flexor.jit(type("Bare", (), {}))
    with pytest.raises(TypeError, match="int"):
        flexor.jit(3)


# ---------------------------------------------------------------------------------------------------------------- modules


class Net(torch.nn.Module):
    """A net."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(5, 3)
        self.drop = torch.nn.Dropout(0.5)
        self.register_buffer("shift", torch.ones(3))

    def forward(self, x):
        return self.drop(self.layer(x)) + self.shift

    def stats(self):
        return "the module's own"


def test_attributes_are_those_of_the_module():
    module = Net()
    jitted = flexor.jit(module)
    assert isinstance(jitted, Net) and type(jitted).__doc__ == "A net." and repr(jitted) == repr(module)
    assert [name for name, _ in jitted.named_parameters()] == ["layer.weight", "layer.bias"]
    assert jitted.eval() is jitted and not module.training and not module.drop.training
    assert torch.allclose(jitted(X), module(X), atol=1e-5)
    assert jitted.train() is jitted and module.training and jitted.drop.training
    torch.manual_seed(1)
    got = jitted(X)
    torch.manual_seed(1)
    assert torch.allclose(got, module(X), atol=1e-5)
    jitted.extra = torch.nn.Parameter(torch.ones(1))
    assert "extra" in module.state_dict()
    del jitted.extra
    assert "extra" not in module.state_dict()
    with pytest.raises(AttributeError):
        jitted.nothing  # noqa: B018
    assert jitted.stats() == "the module's own" and "calls" in jitted._flexor_jit.stats()


def test_modules_are_pickled_and_copied():
    module = Net().eval()
    jitted = flexor.jit(module, weights="frozen")
    stream = io.BytesIO()
    torch.save(jitted, stream)
    stream.seek(0)
    for twin in (pickle.loads(pickle.dumps(jitted)), copy.deepcopy(jitted), copy.copy(jitted), torch.load(stream, weights_only=False)):
        assert type(twin) is type(jitted) and twin._flexor_jit.options == jitted._flexor_jit.options
        assert torch.equal(twin(X), jitted(X))
        twin.note = 1
        assert not hasattr(jitted, "note"), "a copy has attributes of its own"
    outer = torch.nn.Sequential(jitted, torch.nn.ReLU())
    assert torch.equal(copy.deepcopy(outer)(X), outer(X))


def test_hooks_stand_around_the_call():
    module, seen = Net().eval(), []
    jitted = flexor.jit(module, fallback="silent")
    want = module(X)
    assert torch.allclose(jitted(X), want, atol=1e-5)
    handles = [
        jitted.register_forward_pre_hook(lambda m, args: (args[0] + 1,)),
        jitted.register_forward_hook(lambda m, args, output: seen.append(args[0].clone()) or output * 2),
        module.layer.register_forward_hook(lambda m, args, output: output - 1),
    ]
    hooked = (module.layer(X + 1) + module.shift) * 2
    for _ in range(2):
        assert torch.allclose(jitted(X), hooked, atol=1e-5) and torch.equal(seen[-1], X + 1)
    for handle in handles:
        handle.remove()
    assert torch.allclose(jitted(X), want, atol=1e-5) and len(seen) == 2
    jitted.register_state_dict_post_hook(lambda m, state, prefix, metadata: state.__setitem__("more", 1))
    jitted.register_load_state_dict_pre_hook(lambda m, state, *rest: state.pop("more"))
    assert "more" in jitted.state_dict()
    jitted.load_state_dict(jitted.state_dict())


# ------------------------------------------------------------------------------------- generators, redefinition, exceptions


def test_generators_and_coroutines_are_those_of_python():
    @flexor.jit(fallback="silent")
    def generator(x):
        for k in range(3):
            yield x * k

    @flexor.jit(fallback="silent")
    async def coroutine(x):
        await asyncio.sleep(0)
        return x + 1

    @flexor.jit(fallback="silent")
    async def stream(x):
        yield x

    async def collected():
        return [item async for item in stream(X)]

    assert [int(item.sum()) for item in generator(X)] == [0, int(X.sum()), int(X.sum() * 2)]
    assert asyncio.iscoroutinefunction(coroutine) and torch.equal(asyncio.run(coroutine(X)), X + 1)
    assert torch.equal(asyncio.run(collected())[0], X)
    for function in (generator, coroutine, stream):
        assert list(function.stats()["fallbacks"]) and not function.stats()["translations"]


def test_a_function_redefined_under_its_name():
    cells = {"jit": strict, "torch": torch}
    exec("def helper(x):\n    return x * 2\n\n@jit\ndef f(x):\n    return helper(x) + 1", cells)
    first = cells["f"]
    assert torch.equal(first(X), X * 2 + 1)
    exec("def helper(x):\n    return x * 3", cells)
    assert torch.equal(first(X), X * 3 + 1)
    exec("@jit\ndef f(x):\n    return helper(x) - 1", cells)
    assert torch.equal(cells["f"](X), X * 3 - 1) and torch.equal(first(X), X * 3 + 1)
    exec("def f(x):\n    return x", cells)
    first._flexor_function.__code__ = cells["f"].__code__
    assert torch.equal(first(X), X)


class Mine(Exception):
    pass


def check_sum(x):
    if x.sum() > 0:
        raise Mine("too much", len(x)) from KeyError("cause")
    return x


def test_an_exception_is_the_users_with_its_traceback_and_what_was_done_before_it_stays():
    log = []

    @strict
    def f(x):
        log.append(len(x))
        x += 1
        return check_sum(x)

    for turn in range(1, 4):
        x = torch.zeros(3)
        with pytest.raises(Mine) as caught:
            f(x)
        assert torch.equal(x, torch.ones(3)) and log == [3] * turn
        assert caught.value.args == ("too much", 3) and isinstance(caught.value.__cause__, KeyError)
        places = [(frame.name, frame.line) for frame in traceback.extract_tb(caught.tb) if frame.filename == __file__]
        assert places[1:] == [("f", "return check_sum(x)"), ("check_sum", 'raise Mine("too much", len(x)) from KeyError("cause")')]


def test_the_traceback_of_a_call_of_python_goes_on_into_it():
    @flexor.disable
    def deep(x):
        return {}[len(x)]

    @strict
    def f(x):
        y = x + 1
        return deep(y)

    for _ in range(2):
        with pytest.raises(KeyError) as caught:
            f(X)
        names = [frame.name for frame in traceback.extract_tb(caught.tb) if frame.filename == __file__]
        assert names[1:] == ["f", "deep"] and caught.value.__cause__ is None and caught.value.__context__ is None


@pytest.mark.parametrize("setter", [sys.settrace, sys.setprofile])
def test_tracers_see_the_lines_that_run(setter):
    """A program runs no line of its function; what Python runs is traced as ever. Results do not depend on it."""

    def helper(x):
        return float(x.sum())

    disabled = flexor.disable(helper)

    def traced(x):
        y = x + 1
        return y * disabled(y)

    jitted, seen = flexor.jit(traced), []

    def trace(frame, event, argument):
        if frame.f_code in (traced.__code__, helper.__code__):
            seen.append((frame.f_code.co_name, event))
        return trace

    expected = traced(X)
    before = sys.gettrace(), sys.getprofile()
    try:
        setter(trace)
        results = [jitted(X) for _ in range(4)]
    finally:
        sys.settrace(before[0]), sys.setprofile(before[1])
    assert all(torch.allclose(result, expected) for result in results)
    assert ("helper", "call") in seen and ("traced", "line") not in seen
    assert jitted.__wrapped__ is traced and not jitted.stats()["fallbacks"]
