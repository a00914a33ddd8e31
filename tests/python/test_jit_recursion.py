"""Functions that call themselves to a depth that the run decides: functions of the Module."""

import functools

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

strict = functools.partial(flexor.jit, fallback="raise")
X = torch.arange(6.0).reshape(2, 3) / 10
TURN = torch.eye(3) * 2

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


def same(a, b):
    if isinstance(a, torch.Tensor):
        return type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and torch.allclose(a, b, rtol=1e-4)
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and a == b


def power(n, x):
    if n <= 0:
        return x
    return power(n - 1, x) * 1.5


def halved(x):
    return x if x.sum() < 1 else halved(x / 2) + 1


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def with_depth(x, depth=0):
    if x.abs().max() < 0.01:
        return {"x": x @ TURN, "depth": depth, "none": None}
    found = with_depth(x * 0.5, depth + 1)
    return {"x": found["x"] + x, "depth": found["depth"], "none": None}


def is_even(n):
    return True if n == 0 else is_odd(n - 1)


def is_odd(n):
    return False if n == 0 else is_even(n - 1)


def mutual(x, n):
    return is_even(n), x + n


def nested(x):
    scale = x.mean()

    def go(y, depth):
        if y.sum() > 100:
            return y * scale, depth
        return go(y * 2 + 1, depth + 1)

    return go(x, 0)


def sizes_that_change(x):
    return x.sum() if len(x) < 2 else sizes_that_change(x[: len(x) // 2]) + sizes_that_change(x[len(x) // 2 :])


def ends_in_an_error(x, n):
    if n == 0:
        raise ValueError("the end", len(x))
    return ends_in_an_error(x + 1, n - 1) if x.sum() < 1000 else x


def prints(x, n):
    if n > 0:
        print(n, x.sum().item())
        return prints(x * 2, n - 1)
    return x


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (power, [(5, X), (0, X), (200, X)]),
        (halved, [(X * 1e9,), (X * 0,), (X,)]),
        (fibonacci, [(10,), (0,), (13,)]),
        (with_depth, [(X,), (X * 1e6,), (X * 0,)]),
        (mutual, [(X, 7), (X, 300), (X, 0)]),
        (nested, [(X,), (X * 0 + 50,)]),
        (sizes_that_change, [(torch.arange(float(n)),) for n in (1, 2, 13, 64, 0)]),
        (prints, [(X, 3), (X, 0), (X, 120)]),
    ],
)
def test_the_depth_is_decided_by_the_run(function, calls, capsys):
    jitted = strict(function)
    for arguments in calls:
        for _ in range(2):
            want, printed = function(*arguments), capsys.readouterr().out
            assert same(want, jitted(*arguments)) and capsys.readouterr().out == printed
    assert jitted.stats()["translations"] == 1


@pytest.mark.quick
def test_of_numpy():
    def grown(x, n):
        return x if x.sum() > n else grown(x * 2 + 1, n)

    jitted = strict(grown)
    for n in (10, 1_000_000, -1):
        assert np.array_equal(jitted(np.ones(3), n), grown(np.ones(3), n))
    assert jitted.stats()["translations"] == 1


def test_an_exception_from_the_depth_is_the_users():
    jitted = strict(ends_in_an_error)
    assert torch.equal(jitted(X * 0 + 200, 5), X * 0 + 200)
    for n in (0, 3, 150):
        with pytest.raises(ValueError) as caught:
            jitted(X, n)
        assert caught.value.args == ("the end", 2)


class Descent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
        self.shift = 0.1

    def go(self, x):
        if x.abs().max() < 0.05:
            return x
        return self.go(torch.tanh(self.layer(x)) * 0.5 + self.shift * 0)

    def forward(self, x):
        return self.go(x) + 1


@pytest.mark.parametrize("weights", ["live", "frozen"])
@pytest.mark.quick
def test_parameters_reach_every_level(weights):
    module = Descent()
    module.layer.bias.zero_()
    jitted = strict(module, weights=weights)
    for scale in (1.0, 100.0, 0.0):
        assert same(module(X * scale), jitted(X * scale))
    jitted.load_state_dict({name: value * 0.5 for name, value in module.state_dict().items()})
    assert same(module(X), jitted(X))
    module.shift = 0.2
    assert same(module(X), jitted(X))


def test_a_file_holds_the_functions(tmp_path):
    module = strict(Descent()).save(tmp_path / "descent.flx", X)
    assert len(module.functions()) == 2
    strict(fibonacci).save(tmp_path / "fibonacci.fasm", 3)
    assert flexor.load(tmp_path / "fibonacci.fasm")(12) == 144


def test_deeper_than_the_limit():
    without_end = strict(lambda x: without_end(x + 1) if x.sum() > -1 else x)
    for function, arguments in ((strict(power), (5000, X)), (without_end, (X,))):
        with pytest.raises(RecursionError):
            function(*arguments)
    silent = flexor.jit(power, fallback="silent")
    with pytest.raises(RecursionError):
        silent(5000, X)
    assert same(silent(50, X), power(50, X))


def grows(x, found):
    if x.sum() > 50:
        return found
    found.append(x)
    return grows(x * 2, found)


def counts(x):
    count = 0

    def go(y):
        nonlocal count
        count += 1
        return y if y.sum() > 50 else go(y * 2)

    return go(x), count


def several_kinds(x):
    return x if x.sum() > 50 else (several_kinds(x * 2), 1)


@pytest.mark.parametrize("function", [lambda x: grows(x, []), counts, several_kinds])
def test_what_functions_of_the_module_cannot_do_is_left_to_python(function):
    jitted = flexor.jit(function, fallback="silent")
    for x in (X + 1, X + 100):
        assert same(function(x), jitted(x))


def test_a_depth_that_is_known_is_written_out():
    class Node:
        def __init__(self, *children):
            self.children = children

    def go(node, x):
        if x.sum() > 3:
            x = x * 0.5
        for child in node.children:
            x = go(child, x + 1)
        return x

    tree = Node(Node(Node(), Node()), Node())
    jitted = strict(lambda x: go(tree, x))
    for x in (X, X + 10):
        assert same(jitted(x), go(tree, x))
    assert len(jitted.module(X).functions()) == 1
