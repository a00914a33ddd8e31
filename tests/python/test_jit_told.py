"""What a function tells once, and layers that it makes for itself."""

import functools
import logging
import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")
nn = torch.nn

TOLD = []


class Log(logging.Handler):
    def emit(self, record):
        TOLD.append(record.getMessage())


logger = logging.getLogger("test_jit_told")
logger.addHandler(Log())


@functools.lru_cache(None)
def warn_once(log, text):
    log.warning(text)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.seen = 0

    def forward(self, x, pad):
        self.seen = pad
        if pad in x[:, 0]:
            warn_once(logger, f"{type(self).__name__} has seen the pad")
        return self.inner(x)


@pytest.fixture(autouse=True)
def anew():
    TOLD.clear()
    warn_once.cache_clear()
    with torch.no_grad():
        yield


def test_a_warning_on_one_way_is_given_once_and_splits_nothing():
    model = Model()
    jitted = flexor.jit(model)
    for first in (1.0, 2.0, 0.0, 1.0, 0.0):
        x = torch.full((3, 4), first)
        assert torch.allclose(jitted(x, 0), model(x, 0), atol=1e-6)
        assert TOLD == ["Model has seen the pad"] * (x[0, 0].item() == 0 or bool(TOLD))
    stats = jitted.stats()
    assert not stats["fallbacks"] and stats["translations"] == 1 and stats["watched"] == 0
    assert [what for _, _, what in stats["foreign_calls"]] == ["warn_once"]
    assert jitted.module(torch.ones(3, 4), 0).dis().count("CALL_OP      linear") == 1  # behind the branch too


def test_a_warning_on_every_way_is_asked_by_the_guard():
    def tells(x):
        warn_once(logger, "always")
        return x + 1

    jitted = flexor.jit(tells, fallback="raise")
    for _ in range(3):
        jitted(torch.ones(2))
    assert TOLD == ["always"] and not jitted.stats()["foreign_calls"]
    warn_once.cache_clear()
    jitted(torch.ones(2))
    assert TOLD == ["always"] * 2 and jitted.stats()["translations"] == 1


def _deprecated(x):
    warnings.warn("deprecated", FutureWarning, stacklevel=2)
    return x


def _warns(x, at):
    x = _deprecated(x)
    warnings.warn(RuntimeWarning("in the function"))
    try:
        return x[at] * 2
    except IndexError:
        return x


def _warns_in_a_loop(x, at):
    for _ in range(at):
        x = x + 1
        warnings.warn(f"of {at}")
    return x


def _warns_beside_a_print(x, at):
    warnings.warn("first")
    print(at)
    return x + at


@pytest.mark.parametrize("function", (_warns, _warns_in_a_loop, _warns_beside_a_print))
@pytest.mark.parametrize("mode", ("always", "default"))
def test_warnings_are_given_where_python_gives_them(function, mode, capsys):
    def told(f, at):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter(mode)
            result = f(torch.ones(4), at)
        return [(str(w.message), w.category, w.filename, w.lineno) for w in caught], result.tolist(), capsys.readouterr().out

    jitted = flexor.jit(function, fallback="silent")
    for at in (3, 1, 2, 3, 9 if function is _warns else 4):
        assert told(jitted, at) == told(function, at)
    stats = jitted.stats()
    assert stats["translations"] == 1 and sum(stats["fallbacks"].values()) == (function is _warns)  # what raises is Python's
    if function is _warns:
        assert not stats["foreign_calls"]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(FutureWarning, match="deprecated"):
                jitted(torch.ones(4), 1)


LAYERS = {
    "losses": lambda x: nn.CrossEntropyLoss()(x, x.argmax(-1)) + nn.MSELoss(reduction="sum")(x, x * 2),
    "activations": lambda x: nn.GELU()(nn.Softmax(dim=-1)(x)),
    "in a loop": lambda x: functools.reduce(lambda y, _: nn.ReLU()(y) - 0.5, range(3), x),
    "flat": lambda x: nn.Flatten()(x.unsqueeze(0)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_made_inside(name):
    jitted = flexor.jit(LAYERS[name], fallback="raise")
    for rows in (1, 2, 15, 16, 17, 33):
        x = torch.randn(rows, 5)
        assert torch.allclose(jitted(x), LAYERS[name](x), atol=1e-5, equal_nan=True)
    assert not jitted.stats()["foreign_calls"]


KEPT = []


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (nn.ReLU(), x + 1),
        lambda x: (KEPT.append(nn.ReLU()), x + 1),
        lambda x: ([layer := nn.Dropout(0.5), setattr(layer, "p", layer.p / 2)], layer.p * x),
    ],
)
def test_layers_that_others_see_are_new_every_time(function):
    jitted = flexor.jit(function, fallback="silent")
    results = [jitted(torch.ones(2)) for _ in range(3)]
    wanted = function(torch.ones(2))
    assert all(torch.equal(result[1], wanted[1]) for result in results)
    made = [result[0] for result in results if isinstance(result[0], nn.Module)] + KEPT
    assert len({id(layer) for layer in made}) == len(made)
    KEPT.clear()


def test_layers_with_parameters_draw_anew():
    jitted = flexor.jit(lambda x: nn.PReLU()(x) + nn.Linear(3, 3)(x), fallback="silent")
    torch.manual_seed(0)
    first, second = jitted(torch.ones(2, 3)), jitted(torch.ones(2, 3))
    torch.manual_seed(0)
    assert torch.allclose(first, nn.PReLU()(torch.ones(2, 3)) + nn.Linear(3, 3)(torch.ones(2, 3)))
    assert not torch.equal(first, second)


class Lazy:
    def __init__(self):
        self.is_ready, self.lock = False, functools.partial(open, "/dev/null")


def test_a_refusal_ends_with_the_state_that_it_rests_on():
    lazy = Lazy()

    def prepares(x):
        if not lazy.is_ready:
            with lazy.lock():
                lazy.is_ready = True
        return x + 1

    jitted = flexor.jit(prepares, fallback="silent")
    for _ in range(4):
        assert torch.equal(jitted(torch.ones(2)), torch.full((2,), 2.0))
    assert list(jitted.stats()["fallbacks"].values()) == [1] and jitted.stats()["translations"] == 1


def test_texts_that_no_call_has_made_are_not_listed():
    def checks(x, limit):
        if x.shape[0] != 3:
            raise AssertionError(f"{x.shape[0]} rows of {x.sum().item():.3f}")
        if x.sum() > limit:
            raise ValueError("the sum is {}".format(x.sum().item()))
        return x + 1, f"{limit}"

    jitted = flexor.jit(checks, fallback="silent")
    for _ in range(2):
        jitted(torch.ones(3), 9.5)
    assert [what for _, _, what in jitted.stats()["foreign_calls"]] == ["format"]
    with pytest.raises(ValueError, match=r"the sum is 3\.0"):
        jitted(torch.ones(3), 1.0)
    assert [what for _, _, what in jitted.stats()["foreign_calls"]] == ["format", "str.format"]
