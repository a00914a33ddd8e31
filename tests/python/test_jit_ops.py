"""Ops of users in jitted functions: functions with a rule for their results, and custom ops of torch with a fake kernel."""

import functools

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

strict = functools.partial(flexor.jit, fallback="raise")
X = torch.arange(20.0).reshape(4, 5)
W = torch.ones(5, 3)


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


@flexor.op(result=lambda x, w, scale=1.0: (x.dtype, (x.shape[0], w.shape[1])))
def product(x, w, scale=1.0):
    return (x.numpy() @ w.numpy()).__mul__(scale) if isinstance(x, np.ndarray) else x @ w * scale


@flexor.op(result=lambda x, parts: [flexor.TensorType("int64", (x.shape[0],)), (torch.float64, (x.shape[0] * parts, x.shape[1]))])
def both(x, parts):
    return x.argmax(1), x.double().repeat(parts, 1)


def test_an_op_is_compiled_around_from_the_first_call():
    @strict
    def f(x, w, scale):
        y = product(x + 1, w, scale)
        return (y * 2).relu().sum(-1) + y.shape[0]

    before = flexor.stats()
    for rows in (4, 1, 7, 0):
        x = X[:1].expand(rows, 5)
        assert torch.allclose(f(x, W, 0.5), ((x + 1) @ W * 0.5 * 2).relu().sum(-1) + rows)
    after = flexor.stats()
    assert after["typed_calls"] == before["typed_calls"] + 4 and after["interpreted_ops"] == before["interpreted_ops"]
    stats = f.stats()
    assert stats["translations"] == 1 and not stats["foreign_calls"] and [what for _, _, what in stats["typed_calls"]] == ["product"]
    assert "typed product at " in f.explain(X, W, 1.0)


def test_several_results():
    @strict
    def f(x):
        places, wide = both(x, 2)
        return places + 1, wide.sum(), wide.shape

    for rows in (4, 2):
        places, total, shape = f(X[:rows])
        assert torch.equal(places, X[:rows].argmax(1) + 1) and total == X[:rows].sum() * 2 and shape == (2 * rows, 5)
    assert f.stats()["translations"] == 1 and not f.stats()["foreign_calls"]


def test_of_numpy():
    @flexor.op(result=lambda x: ("float64", x.shape[::-1]))
    def turned(x):
        return x.T.astype(np.float64)

    jitted = strict(lambda x: turned(x) + 1)
    x = np.ones((2, 3), np.float32)
    assert np.array_equal(jitted(x), x.T + 1.0) and jitted(x).dtype == np.float64 and jitted.stats()["typed_calls"]


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        (lambda x: (x.dtype, (x.shape[0], 4)), "(4, 4)"),
        (lambda x: ("float64", x.shape), "float64"),
        (lambda x: (x.dtype, (x.shape[0],)), "(4,)"),
    ],
    ids=["size", "dtype", "rank"],
)
def test_a_result_that_is_not_what_its_rule_says_is_refused(rule, found):
    op = flexor.op(result=rule)(lambda x: x * 2)
    jitted = strict(lambda x: op(x) + 1)
    for _ in range(2):
        with pytest.raises(flexor.ShapeError, match="E0301") as caught:
            jitted(X)
    assert found in str(caught.value)


def test_a_rule_that_fails_leaves_the_call_to_python():
    op = flexor.op(result=lambda x: x.nothing)(lambda x: x * 2)
    jitted = flexor.jit(lambda x: op(x) + 1, fallback="silent")
    assert torch.equal(jitted(X), X * 2 + 1) and "the rule of" in next(iter(jitted.stats()["fallbacks"]))
    with pytest.raises(flexor.DTypeError, match="E0404"):
        flexor.op(result=3)


# ----------------------------------------------------------------------------------------------------- custom ops of torch

calls = []


@torch.library.custom_op("flexor_tests::twice", mutates_args=())
def twice(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    calls.append(tuple(x.shape))
    return x.double() * 2 + y.sum()


@twice.register_fake
def _(x, y):
    assert x.shape[1] == y.shape[0], "sizes that fit together"
    return torch.empty_like(x, dtype=torch.float64)


@torch.library.custom_op("flexor_tests::parts", mutates_args=())
def parts(x: torch.Tensor, at: int) -> tuple[torch.Tensor, torch.Tensor]:
    return x[:at].clone(), x[at:].clone()


@parts.register_fake
def _(x, at):
    return x.new_empty(at, *x.shape[1:]), x.new_empty(x.shape[0] - at, *x.shape[1:])


@torch.library.custom_op("flexor_tests::add_one_", mutates_args=("x",))
def add_one_(x: torch.Tensor) -> None:
    x += 1


@torch.library.custom_op("flexor_tests::without_fake", mutates_args=())
def without_fake(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def test_custom_ops_are_compiled_around_from_the_first_call():
    assert torch.ops.flexor_tests.twice is not None  # torch makes the attribute when it is first asked for

    @strict
    def f(x, y):
        return (twice(x + 1, y) + 1).sum(-1), torch.ops.flexor_tests.twice(x, y) * 2

    for rows in (4, 1, 0):
        del calls[:]
        x = X[:rows]
        first, second = f(x, W)
        assert torch.allclose(first, ((x + 1).double() * 2 + 16).sum(-1)) and torch.equal(second, (x.double() * 2 + 15) * 2)
        assert calls == [(rows, 5), (rows, 5)], "the real kernel, once each"
    assert f.stats()["translations"] == 1 and len(f.stats()["typed_calls"]) == 2 and not f.stats()["foreign_calls"]


def test_custom_ops_with_several_results_writes_and_no_fake_kernel():
    @strict
    def f(x, at):
        head, tail = parts(x, at)
        add_one_(head)
        return without_fake(head.sum(0)) + tail.sum(0)

    for rows in (4, 3, 2):
        for _ in range(2):
            assert torch.allclose(f(X[:rows], 2), X[:rows].sum(0) + 3)
    x = X.clone()
    writes = strict(lambda x: (add_one_(x), x * 2)[1])
    for turn in range(1, 4):
        assert torch.equal(writes(x), (X + turn) * 2) and torch.equal(x, X + turn)


F = torch.nn.functional
WITHOUT_ROWS = {
    "torch.conv1d": (lambda x: F.conv1d(x, torch.ones(4, 3, 3), padding=1).relu() * 2, (2, 3, 9)),
    "torch.conv2d": (lambda x: F.conv2d(x, torch.ones(4, 3, 3, 3), stride=2).sum(0) + x.shape[0], (2, 3, 9, 9)),
    "torch.conv_transpose2d": (lambda x: F.conv_transpose2d(x, torch.ones(3, 4, 3, 3)).relu() * 2, (2, 3, 5, 5)),
    "torch.max_pool2d": (lambda x: F.max_pool2d(x, 3, stride=2, ceil_mode=True) + 1, (2, 3, 8, 8)),
    "linalg_inv": (lambda x: torch.linalg.inv(x + 5 * torch.eye(4)) @ x, (4, 4)),
    "torch.histc": (lambda x: torch.histc(x, 5) * 2, (33,)),
    ".as_strided": (lambda x: x.as_strided((2, 2), (1, 2)) * 2, (9, 2)),
}


@pytest.mark.parametrize("what", WITHOUT_ROWS)
def test_what_torch_gives_without_a_row_is_known_before_the_run(what):
    """Its kernel for tensors without memory says so: nothing is learnt, and what follows is compiled from the first call on."""
    function, sizes = WITHOUT_ROWS[what]
    f = strict(function)
    for seed in range(3):
        x = torch.randn((sizes[0] + seed * (len(sizes) > 2), *sizes[1:]), generator=torch.Generator().manual_seed(seed))
        torch.testing.assert_close(f(x), function(x))
    stats = f.stats()
    assert stats["translations"] == 1 and not stats["foreign_calls"] and {call[2] for call in stats["typed_calls"]} == {what}


def test_what_only_the_elements_say_is_learnt():
    f = strict(lambda x: torch.unique(x, dim=0) * 2)
    for high in (2, 1, 5):
        x = torch.randint(0, high, (9, 2))
        assert torch.equal(f(x), torch.unique(x, dim=0) * 2)
    assert [call[2] for call in f.stats()["foreign_calls"]] == ["torch.unique"]
