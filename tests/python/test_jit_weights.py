"""Frozen weights of jitted functions: packed with the program, anew after a change that is announced, refused after another."""

import copy
import functools
import re

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

frozen = functools.partial(flexor.jit, weights="frozen", fallback="raise")
torch.manual_seed(0)
X = torch.randn(4, 5)


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(5, 6)
        self.second = torch.nn.Linear(6, 3)
        self.register_buffer("shift", torch.randn(3))

    def forward(self, x):
        return self.second(torch.tanh(self.first(x))) + self.shift

    def merge_adapter(self, delta):
        self.first.weight.data += delta


def agree(jitted, module, x=X):
    assert torch.allclose(jitted(x), module(x), atol=1e-5)


def weights_of(jitted):
    (held,) = [made for several in jitted._flexor_jit._translations.values() for made in several]
    return {weight["name"] for weight in held.module.weights()}


def test_parameters_and_buffers_are_weights_of_the_module():
    module = Net()
    jitted = frozen(module)
    for rows in (4, 1, 7, 0):
        agree(jitted, module, X[:1].expand(rows, 5))
    assert jitted.stats()["translations"] == 1
    assert weights_of(jitted) == {*module.state_dict()}


ANNOUNCED = {
    "load_state_dict": lambda jitted: jitted.load_state_dict(Net().state_dict()),
    "to": lambda jitted: jitted.to(torch.float64),
    "half and back": lambda jitted: jitted.half().float(),
    "apply": lambda jitted: jitted.apply(lambda m: isinstance(m, torch.nn.Linear) and m.weight.mul_(2)),
    "merge": lambda jitted: jitted.merge_adapter(torch.ones(6, 5)),
    "replaced": lambda jitted: setattr(jitted, "first", torch.nn.Linear(5, 6)),
    "repack": lambda jitted: (jitted.second.weight.data.mul_(2), jitted.repack()),
}


@pytest.mark.parametrize("change", ANNOUNCED.values(), ids=ANNOUNCED)
def test_changes_through_the_jitted_module_repack(change):
    module = Net()
    jitted = frozen(module)
    agree(jitted, module)
    change(jitted)
    agree(jitted, module, X.to(module.second.weight.dtype))
    agree(jitted, module, X.to(module.second.weight.dtype))


def test_steps_of_an_optimiser_repack():
    module, other = Net(), Net()
    jitted, untouched = frozen(module), frozen(other)
    optimiser = torch.optim.AdamW(jitted.parameters(), lr=0.1)
    untouched(X)
    for _ in range(3):
        agree(jitted, module)
        before = jitted(X)
        for parameter in jitted.parameters():
            parameter.grad = torch.ones_like(parameter)
        optimiser.step()
        assert not torch.allclose(jitted(X), before)
    agree(jitted, module)
    untouched(X)
    assert untouched.stats()["translations"] == 1


STALE = {
    "in place": lambda module: module.first.weight.mul_(2),
    "through a view": lambda module: module.first.weight[0].zero_(),
    "another memory": lambda module: setattr(module.first.weight, "data", torch.zeros(6, 5)),
    "a buffer": lambda module: module.shift.add_(1),
    "a module below": lambda module: module.first.double(),
}


@pytest.mark.parametrize("change", STALE.values(), ids=STALE)
def test_other_changes_are_refused_until_they_are_announced(change):
    module = Net()
    jitted = frozen(module)
    agree(jitted, module)
    change(module)
    for _ in range(2):
        with pytest.raises(flexor.StaleWeights, match="E0513") as caught:
            jitted(X)
    assert caught.value.code == "E0513" and isinstance(caught.value, ValueError)
    assert ("shift" if "shift" in str(caught.value) else "first.weight") in str(caught.value)
    module.float()
    jitted.repack()
    agree(jitted, module)


def test_live_weights_are_never_stale():
    module = Net()
    jitted = flexor.jit(module, fallback="raise")
    for change in (*STALE.values(), *ANNOUNCED.values()):
        change(jitted if change in ANNOUNCED.values() else module)
        module.float()
        agree(jitted, module)


class Counting(torch.nn.Module):
    """Writes to two of its buffers, one through a view."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(5, 5)
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("cache", torch.zeros(3, 5))
        self.register_buffer("table", torch.eye(5))

    def forward(self, x):
        self.count += 1
        self.cache[1:][0] = x[0]
        return self.layer(x) @ self.table + self.count, self.cache.clone()


def test_what_the_function_writes_to_stays_live():
    module = Counting()
    twin = copy.deepcopy(module)
    jitted = frozen(module)
    for k in range(4):
        for got, want in zip(jitted(X + k), twin(X + k), strict=True):
            assert torch.allclose(got, want, atol=1e-5)
    assert weights_of(jitted) == {"layer.weight", "layer.bias", "table"}


def test_a_parameter_that_is_returned_or_handed_to_python_is_the_parameter():
    module, seen = Net(), []

    @flexor.disable
    def look(weight):
        seen.append(weight)
        return weight.sum()

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = module

        def forward(self, x):
            return self.net.first.weight, self.net.second.weight[0], self.net(x) + look(self.net.shift)

    jitted = flexor.jit(Outer(), weights="frozen", fallback="silent")
    for _ in range(3):
        weight, row, _ = jitted(X)
        assert weight is module.first.weight and all(given is module.shift for given in seen)
        row.add_(1)
        assert torch.equal(row, module.second.weight[0])


def test_tied_weights_are_one():
    module = torch.nn.Sequential(torch.nn.Linear(5, 5), torch.nn.Linear(5, 5))
    module[1].weight = module[0].weight
    jitted = frozen(module)
    agree(jitted, module)
    assert len(weights_of(jitted)) == 3
    module[0].weight.mul_(2)
    with pytest.raises(flexor.StaleWeights):
        jitted(X)


def test_gradients_are_those_of_torch():
    module = Net()
    jitted = flexor.jit(module, weights="frozen", fallback="silent")
    jitted(X)
    with torch.enable_grad():
        jitted(X).sum().backward()
    assert module.first.weight.grad is not None


def test_a_function_packs_the_modules_that_it_finds():
    module = Net()

    @frozen
    def f(x):
        return module(x) * 2

    assert torch.allclose(f(X), module(X) * 2, atol=1e-5)
    module.shift.zero_()
    with pytest.raises(flexor.StaleWeights):
        f(X)
    f.repack()
    assert torch.allclose(f(X), module(X) * 2, atol=1e-5)


def test_explain_tells_of_weights():
    module = Net()
    assert re.search(r"5 weights of 0.\d+ MB are read anew at every call; packed .* takes [\d.]+ ms", flexor.jit(module).explain(X))
    assert re.search(r"5 weights of 0.\d+ MB are packed", frozen(module).explain(X))
