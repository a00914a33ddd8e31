"""flexor.jit beside torch: functions, layers, loops, state around the function."""

import collections
import copy
import dataclasses
import functools
import threading
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")
functional = torch.nn.functional


def outcome(function, arguments):
    try:
        return "returned", function(*arguments)
    except Exception as error:
        return "raised", type(error)


def same(a, b):
    if isinstance(a, torch.Tensor):
        alike = type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape
        return alike and torch.allclose(a, b, atol=1e-5, rtol=1e-4, equal_nan=True)
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and repr(a) == repr(b)


def agree(jitted, function, arguments, rounds=3):
    for _ in range(rounds):
        mine, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
        want, got = outcome(function, theirs), outcome(jitted, mine)
        assert want[0] == got[0], (want, got)
        assert same(want[1], got[1]) or (want[0] == "raised" and issubclass(got[1], want[1])), (want, got)
        assert same(list(theirs), list(mine))


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


torch.manual_seed(0)
X = torch.randn(4, 5)
INTEGERS = torch.arange(12).reshape(3, 4)


def augmented(x):
    x += 1
    x *= 2
    return x


def item_writes(x):
    x[0] = 0
    x[:, 1:3] = 7
    x[-1, 0] = x[0, 1]
    return x.sum()


def view_write(x):
    y = x[1:]
    y.zero_()
    return x, y


def masked(x):
    x[x > 0] = 0
    return x, x[x < 0].sum()


def picks(x, at):
    return x[at], x[:, at], x[-1], x[..., -2], x[None], x[::2], x[1:3, 2]


def extremes(x):
    return x.max(1), x.min(0).values, x.max(), torch.max(x, x * 2), x.argmax(-1)


def by_dtype(x):
    return x.to(torch.float64) if x.dtype == torch.float32 else x.float()


def sizes(x):
    return x.shape, x.size(), x.size(-1), x.dim(), x.numel(), len(x), x.ndim, x.shape == (4, 5)


def scalars(x):
    return x.sum().item(), float(x[0, 0]), int(x[0, 0] * 10), bool(x[0, 0] > 0)


def flagged(x, flag=True, scale=None):
    if flag:
        x = x + 1
    if scale is not None:
        x = x * scale
    return x if x.sum() > 0 else -x


def until_small(x):
    steps = 0
    while x.abs().max() > 1e-3 and steps < 100:
        x = x / 2
        steps += 1
    return x, steps


def nested_loops(x, n):
    y = x
    for a in range(n):
        for b in range(a):
            if y.sum() > 10:
                break
            y = y + b
        else:
            y = y * 0.5
    return y


def early_return(x):
    for k in range(3):
        if x.sum() > k:
            return x * k
    return None


def stacked(x):
    out = []
    for k, row in enumerate(x):
        out.append(row * k)
    return torch.stack(out)


def generators(x):
    return sum(row.sum() for row in x) if any(v > 0 for v in (1, -1)) else x


def closures(x):
    scale = 2.0

    def inner(y):
        return y * scale

    return (lambda y, k=3: inner(y) + k)(x)


def structures(d):
    return {"a": d["x"] + 1, "b": [d["x"], (d["n"], None)]}


def modes(x, mode):
    return x if mode == "a" else -x


def asserts(x):
    if x.shape[0] != 3:  # as an assert is compiled; pytest rewrites those of this file
        raise AssertionError(f"found {x.shape}")
    return x * 2


def unmapped(x):
    return torch.topk(x, 2).values + 1, x.cumsum(0) * 2, torch.einsum("ij,kj->ik", x, x)


def compacted(x):
    index = torch.nonzero(x[:, 0] > 0)[:, 0]
    return x[index].sum(0), index.shape[0]


def attends(q):
    return functional.scaled_dot_product_attention(q, q, q, is_causal=True)


def halves(x):
    a, b = torch.cat([x, x * 2], dim=1).chunk(2, dim=1)
    return a - b


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (augmented, [(X,), (INTEGERS,), (X[:, ::2],)]),
        (item_writes, [(X,), (INTEGERS,), (X.t().contiguous().t(),)]),
        (view_write, [(X,)]),
        (masked, [(X,), (X - 100,), (X + 100,)]),
        (picks, [(X, torch.tensor([0, -1])), (X[:3], torch.tensor([2]))]),
        (extremes, [(X,), (X[:1],)]),
        (by_dtype, [(X,), (INTEGERS,)]),
        (sizes, [(X,), (INTEGERS,)]),
        (scalars, [(X,)]),
        (flagged, [(X,), (X, False), (-X.abs(), True, 2.5), (X, False, 3)]),
        (until_small, [(X,), (X * 0,), (X * 1000,)]),
        (nested_loops, [(X.abs(), 4), (X, 0), (X, 2)]),
        (early_return, [(X,), (X.abs(),), (-X.abs(),)]),
        (stacked, [(X,), (X[:1],), (X[:0],)]),
        (generators, [(X,), (X[:0],)]),
        (closures, [(X,)]),
        (structures, [({"x": X, "n": 3},), ({"x": X[:2], "n": -1},)]),
        (modes, [(X, "a"), (X, "b")]),
        (asserts, [(X,), (INTEGERS,)]),
        (unmapped, [(X,), (X[:2],)]),
        (compacted, [(X,), (X.abs(),), (-X.abs(),)]),
        (attends, [(torch.randn(2, 3, 5, 8),), (torch.randn(2, 3, 1, 8),)]),
        (halves, [(X,), (X[:1],)]),
    ],
)
def test_functions(function, calls):
    jitted = flexor.jit(function, fallback="raise")
    for arguments in calls:
        agree(jitted, function, arguments)


def test_an_error_is_the_one_that_torch_raises():
    for function, arguments in ((lambda x: x[7], (X,)), (lambda x, y: x @ y, (X, X)), (lambda x: x.view(3, -1), (X,))):
        agree(flexor.jit(function, fallback="raise"), function, arguments)


def test_loops_stay_inside_and_share_a_compilation():
    def newton(x):
        y = torch.ones_like(x)
        for _ in range(50):
            following = 0.5 * (y + x / y)
            if (following - y).abs().max() < 1e-6:
                return following
            y = following
        return y

    jitted = flexor.jit(newton, fallback="raise")
    flexor.default_session().clear_cache()
    flexor.default_session().reset_stats()
    for n in (1024, 1, 17, 33, 0, 2):
        x = torch.rand(n) + 0.5
        if n == 0:
            agree(jitted, newton, (x,))  # max of nothing raises
            continue
        assert same(jitted(x), newton(x))
    assert jitted.stats()["translations"] == 1 and not jitted.stats()["foreign_calls"]
    assert flexor.stats()["compilations"] == 1


@pytest.mark.slow
def test_a_recurrent_cell_by_hand():
    def lstm(x, h, c, w_input, w_hidden, bias):
        out = []
        for t in range(x.shape[1]):
            gates = x[:, t] @ w_input + h @ w_hidden + bias
            i, f, o, g = gates.chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            out.append(h)
        return torch.stack(out, 1), h, c

    jitted = flexor.jit(lstm, fallback="raise")
    weights = (torch.randn(6, 32) * 0.3, torch.randn(8, 32) * 0.3, torch.randn(32) * 0.1)
    for length in (5, 1, 9):
        agree(jitted, lstm, (torch.randn(3, length, 6), torch.zeros(3, 8), torch.zeros(3, 8), *weights))
    assert not jitted.stats()["foreign_calls"]


def test_a_list_that_grows_is_compiled_once_for_all_lengths():
    def rows(x, count):
        out, seen = [x], []
        for k in range(count):
            out.append(out[-1] + out[k // 2])
            if k % 3 == 0:
                seen.append(x * k)
        return torch.cat(out, 1), torch.stack(seen, -1), out, len(seen)

    jitted = flexor.jit(rows, fallback="raise")
    flexor.default_session().clear_cache()
    flexor.default_session().reset_stats()
    for count in (5, 3, 17, 9, 40):
        agree(jitted, rows, (torch.randn(2, 3), count))
    assert jitted.stats()["translations"] == 1 and not jitted.stats()["foreign_calls"]
    assert flexor.stats()["compilations"] == 1
    for count in (0, -1):  # as eager refuses to stack nothing
        agree(jitted, rows, (torch.randn(2, 3), count))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(5, 7)
        self.norm = torch.nn.LayerNorm(7)
        self.body = torch.nn.Sequential(torch.nn.Linear(7, 3), torch.nn.GELU(), torch.nn.Dropout(0.5))
        self.layers = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(3))
        self.scale = 2.0
        self.calls = 0

    @property
    def doubled(self):
        return self.scale * 2

    def forward(self, x, shift=None):
        self.calls += 1
        y = self.body(self.norm(self.first(x)))
        for layer in self.layers:
            y = torch.tanh(layer(y)) * self.doubled
        if shift is not None:
            y = y + shift
        return {"y": y, "parts": (y.sum(), y.shape)}


def test_a_module_stays_the_module_it_is():
    net = Net().eval()
    jitted = flexor.jit(net, fallback="raise")
    assert isinstance(jitted, Net) and type(jitted).__name__ == "Net"
    assert list(jitted.state_dict()) == list(net.state_dict())
    assert same(jitted(X), net(X)) and same(jitted(X, shift=0.5), net(X, 0.5))
    assert jitted.calls == net.calls == 4
    jitted.scale = 3.0
    assert net.scale == 3.0 and same(jitted(X), net(X))
    twin = copy.deepcopy(jitted)
    assert isinstance(twin, Net) and same(twin(X), net(X))


def test_parameters_are_live():
    net = Net().eval()
    jitted = flexor.jit(net, fallback="raise")
    jitted(X)
    translations = jitted.stats()["translations"]
    net.first.weight.data.mul_(2)
    assert same(jitted(X), net(X))
    net.load_state_dict(Net().state_dict())
    assert same(jitted(X), net(X))
    assert jitted.stats()["translations"] == translations
    net.first = torch.nn.Linear(5, 7)
    assert same(jitted(X), net(X))
    net.double()
    assert same(jitted(X.double()), net(X.double()))
    net.layers.append(torch.nn.Linear(3, 3).double())
    assert same(jitted(X.double()), net(X.double()))


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        (torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu"), (torch.randn(2, 7, 16),)),
        (torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2), (torch.randn(2, 7, 16),)),
        (torch.nn.Sequential(torch.nn.Embedding(10, 8), torch.nn.Linear(8, 4), torch.nn.Softmax(-1)), (torch.randint(0, 10, (2, 5)),)),
        (torch.nn.Sequential(torch.nn.BatchNorm1d(5), torch.nn.SiLU(), torch.nn.GroupNorm(1, 5)), (X,)),
        (torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten()), (torch.randn(1, 3, 5, 5),)),
    ],
    ids=["encoder layer", "encoder", "embedding", "norms", "convolution"],
)
def test_layers_of_torch(module, arguments):
    module.eval()
    jitted = flexor.jit(module, fallback="raise")
    for _ in range(3):
        assert same(jitted(*arguments), module(*arguments))


def test_gradients_are_those_of_torch():
    net = Net().eval()
    jitted = flexor.jit(net, fallback="silent")
    with torch.enable_grad():
        y = jitted(X)["y"]
        y.sum().backward()
    assert y.requires_grad and net.first.weight.grad is not None
    assert list(jitted.stats()["fallbacks"]) == ["requires_grad in grad mode"]


def test_threads_share_a_function(monkeypatch):
    translate = flexor._jit.Jit._translate
    slowly = lambda *args: time.sleep(0.05) or translate(*args)  # noqa: E731  every thread comes before the first is ready
    monkeypatch.setattr(flexor._jit.Jit, "_translate", slowly)

    @flexor.jit
    def f(x, n):
        for i in range(n):
            x = x * 0.5 + i
        return x

    wrong = []

    def work(seed):
        for k in range(20):
            x = torch.full((seed + k % 5 + 1, 3), float(k))
            y = x
            for i in range(k % 4):
                y = y * 0.5 + i
            if not same(f(x, k % 4), y):
                wrong.append((seed, k))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and f.stats()["translations"] == 1


def test_explain_shows_program_and_foreign_calls():
    def f(x):
        print("size", len(x))
        return (x + 1).relu().sum(-1)

    text = flexor.jit(f).explain(X)
    assert "foreign print" in text and "kernel main:" in text and "add_relu_reduce_sum" in text


@pytest.mark.parametrize("layout", (lambda x: x, lambda x: x.t(), lambda x: x[::2]))
def test_explain_makes_one_call(layout):
    def f(x, y):
        x.add_(1)
        y[[0]] = x[0] * 2
        return x.sum()

    jitted = flexor.jit(f, fallback="raise")
    for size in (2, 4, 17):
        x, wanted = layout(torch.ones(size, size)), layout(torch.ones(size, size))
        y, wanted_y = torch.zeros(3, size), torch.zeros(3, size)
        f(wanted, wanted_y)
        assert "kernel main:" in jitted.explain(x, y)
        assert torch.equal(x, wanted) and torch.equal(y, wanted_y)


def test_a_session_counts_what_is_left_to_python():
    def reads(x):
        return x * 2

    session = flexor.default_session()
    session.reset_stats()
    assert session.stats()["left_to_python"] == [] and "left to Python" not in session.dashboard()
    jitted = flexor.jit(reads, fallback="silent")
    with torch.enable_grad():
        for _ in range(3):
            jitted(torch.ones(2, requires_grad=True))
    (row,) = session.stats()["left_to_python"]
    assert row["function"] == "reads" and row["calls"] == 3 and row["reason"] in jitted.stats()["fallbacks"]
    assert "left to Python   3 calls" in session.dashboard() and row["reason"] in flexor.dashboard()
    session.reset_stats()
    assert not session.stats()["left_to_python"]


def test_explain_times_kernels():
    text = flexor.jit(lambda x: (x + 1).relu().sum(-1)).explain(X, profile=True)
    row = next(line for line in text.splitlines() if line.startswith("  main:"))
    name, launches, megabytes, megaflops, *_ = row.split()
    assert "add_relu_reduce_sum" in name and launches == "1"
    assert float(megabytes) == pytest.approx(4e-6 * (X.numel() + X.shape[0]), abs=1e-3)
    assert float(megaflops) == pytest.approx(3e-6 * X.numel(), abs=1e-3)

    assert "% of the floor" in flexor.jit(torch.nn.Linear(5, 3)).requires_grad_(False).explain(X, profile=True)

    def own(x, profile):  # an argument of the function's
        return x * 2 if profile else x

    assert "% of the floor" not in flexor.jit(own).explain(X, profile=True)


# ------------------------------------------------------------------------------------------------------------------ worlds
#
# A world makes functions or modules with `jit`, calls them and changes what lies around them; it gives everything that it has seen.


class Running(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(5))
        self.register_buffer("count", torch.zeros(()))
        self.calls, self.last = 0, None

    def forward(self, x):
        self.mean = self.mean * 0.5 + x.mean(0)
        self.count += 1
        self.calls += 1
        if self.last is None:
            self.last = x.sum()
        return self.mean, self.count.clone(), self.calls, self.last


def buffers_written(jit):
    module = jit(Running())
    return [(*module(X + k), module.mean, module.count.clone()) for k in range(4)]


def random_numbers(jit):
    @jit
    def f(x):
        return torch.rand(3), torch.randint(0, 9, (3,)), torch.randperm(5), torch.randn_like(x), x.new_empty(2).normal_(), x + torch.rand(5)

    layers = jit(torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(4)))
    torch.manual_seed(3)
    for parameter in layers.parameters():
        parameter.data.normal_()
    return [f(X) for _ in range(4)], [layers(X) for _ in range(3)], layers[2].running_mean, torch.rand(1)


def constants_written(jit):
    @jit
    def f(x):
        steps, weights, unit = torch.linspace(0, 1, 5), torch.tensor([1.0, 2.0]), torch.eye(5)
        steps += 1
        weights.add_(x.sum())
        unit[0] = 5
        return steps, weights, x @ unit

    return [f(X) for _ in range(3)]


def exceptions_behind_a_write(jit):
    class TooMuch(Exception):
        pass

    @jit
    def f(x):
        x += 1
        if x.sum() > 20:
            raise TooMuch("sum", x.sum().item())
        return x

    x, seen = torch.ones(5), []
    for _ in range(5):
        kind, result = outcome(f, (x,))
        seen.append((kind, type(result).__name__ if kind == "returned" else result.__name__, x.clone()))
    return seen


def two_frameworks(jit):
    @jit
    def f(a, b):
        return a + 1, b * 2

    @jit
    def leaves(x):
        return x.numpy() * 2

    return f(X, np.ones(2)), f(np.ones(2), X), f(X, np.float32(2)), [leaves(X) for _ in range(3)]


def ranks_that_sizes_decide(jit):
    @jit
    def f(x):
        return x.squeeze().dim(), torch.squeeze(x), x.squeeze(0).shape

    return [f(torch.ones(shape)) for shape in ((2, 3), (1, 3), (1, 1), (2, 1), (2, 3))]


def kinds_that_a_call_of_python_decides(jit):
    calls = []

    @flexor.disable
    def chosen(x):
        calls.append(len(x))
        return x if len(calls) % 2 else x.double()

    @jit
    def f(x):
        return chosen(x) * 2

    return [f(X) for _ in range(5)], calls


def methods_of_tensors_replaced(jit):
    @jit
    def f(x):
        return x.relu() + 1

    seen = [f(X)]
    torch.Tensor.relu = lambda self: self * 0 + 9
    try:
        seen.append(f(X))
    finally:
        del torch.Tensor.relu
    return [*seen, f(X)]


@dataclasses.dataclass
class Output(collections.OrderedDict):
    a: object = None
    b: object = None

    def __post_init__(self):
        for field in dataclasses.fields(self):
            if getattr(self, field.name) is not None:
                self[field.name] = getattr(self, field.name)

    def to_tuple(self):
        return tuple(self.values())


@dataclasses.dataclass
class Empty(dict):
    a: int = 0


def outputs_of_models(jit):
    @jit
    def f(x, both):
        out = Output(a=x, b=x + 1 if both else None)
        return out, out.b is None, 1 if out.b is not None else 2, len(out), out["a"]

    @jit
    def empty(x):
        return Empty(a=3), len(Empty(a=3))

    return [f(X, both) for both in (True, False, True)], empty(X)


class Twice(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def __call__(self, x):
        return super().__call__(x) * 2

    def forward(self, x):
        return self.inner(x) + 1


def modules_in_modules(jit):
    linear = torch.nn.Linear(5, 5)
    linear.weight.data.fill_(0.25)
    linear.bias.data.fill_(0.5)
    module = jit(Twice(jit(linear)))
    seen = [module(X), module.inner(X)]
    linear.weight.data.mul_(2)
    return [*seen, module(X)]


@pytest.mark.parametrize(
    "world",
    [
        buffers_written,
        random_numbers,
        constants_written,
        exceptions_behind_a_write,
        two_frameworks,
        methods_of_tensors_replaced,
        ranks_that_sizes_decide,
        kinds_that_a_call_of_python_decides,
        outputs_of_models,
        modules_in_modules,
    ],
)
def test_worlds(world):
    torch.manual_seed(1)
    want = world(lambda target: target)
    torch.manual_seed(1)
    assert same(want, world(functools.partial(flexor.jit, fallback="silent")))
