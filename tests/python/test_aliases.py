"""What results share with arguments and with each other: the object, the storage, the place in it. As eager has it, on every way there."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

SIZES = (2, 0, 1, 17, 2)


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


def leaves(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in leaves(part)]
    return [value] if isinstance(value, (torch.Tensor, np.ndarray)) else []


def address(tensor):
    return tensor.data_ptr() if isinstance(tensor, torch.Tensor) else tensor.__array_interface__["data"][0]


def span(tensor):
    """First byte, and the one behind the last."""
    reach = [(n - 1) * step * tensor.element_size() for n, step in zip(tensor.shape, tensor.stride())]
    return address(tensor) + sum(min(0, r) for r in reach), address(tensor) + tensor.element_size() + sum(max(0, r) for r in reach)


def are_one_memory(a, b):
    if isinstance(a, torch.Tensor):
        return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    return np.shares_memory(a, b)


def compare(got, want, mine, theirs):
    """Raises AssertionError unless results are related to each other and to arguments as eager's are."""
    got, want, mine, theirs = map(leaves, (got, want, mine, theirs))
    assert len(got) == len(want)
    for i, (a, x) in enumerate(zip(got, want)):
        assert a.shape == x.shape and a.dtype == x.dtype
        others = [*(("argument", b, y) for b, y in zip(mine, theirs)), *(("result", b, y) for b, y in zip(got[:i], want[:i]))]
        for what, b, y in others:
            assert (a is b) == (x is y) or (what == "result" and x is y), f"result {i} is {'' if a is b else 'not '}the {what}"
            if 0 in (*x.shape, *y.shape):
                continue
            if are_one_memory(x, y):
                assert address(a) - address(b) == address(x) - address(y), f"result {i} and the {what} are apart"
                assert what == "result" or are_one_memory(a, b), f"result {i} is in another storage than the {what}"
            elif isinstance(a, np.ndarray):
                assert not np.shares_memory(a, b), f"result {i} and the {what} share memory"
            else:
                (low, high), (first, last) = span(a), span(b)
                assert high <= first or last <= low, f"result {i} and the {what} share memory"
        if isinstance(a, np.ndarray) and a.size:
            assert a.flags.writeable == x.flags.writeable
            assert all((a.base is b) == (x.base is y) for b, y in zip(mine, theirs) if x.base is y)
        elif isinstance(a, torch.Tensor) and x.numel():
            assert all(a.storage_offset() == x.storage_offset() for y in theirs if y.numel() and are_one_memory(x, y))
            assert seen(a) == seen(x)
    for tensors in (got, want):
        for number, tensor in enumerate(tensors):
            try:
                tensor[...] = number + 2
            except (RuntimeError, ValueError):  # it repeats elements
                pass
    for a, x in zip((*got, *mine), (*want, *theirs)):
        assert np.array_equal(np.asarray(a), np.asarray(x), equal_nan=True)


def seen(tensor):
    return [step for n, step in zip(tensor.shape, tensor.stride()) if n > 1]


def arguments(size, layout, numpy):
    base = torch.arange(4.0 * (size + 2)).reshape(size + 2, 4)
    x = {"dense": lambda: base[:size].clone(), "rows": lambda: base[1 : size + 1], "transposed": lambda: base[:size].t().contiguous().t()}[layout]()
    y = -torch.ones(size, 4)
    return (x.numpy(), y.numpy()) if numpy else (x, y)


def check(function, native=True, numpy=False, more=()):
    jitted = flexor.jit(function, fallback="raise" if native else "silent")
    for layout in ("dense", "rows", "transposed"):
        for size in SIZES:
            mine, theirs = arguments(size, layout, numpy), arguments(size, layout, numpy)
            try:
                want = function(*theirs, *more)
            except (IndexError, RuntimeError, ValueError) as error:
                with pytest.raises(type(error)):
                    flexor.jit(function, fallback="silent")(*mine, *more)
                continue
            compare(jitted(*mine, *more), want, mine, theirs)


ITSELF = """
x.contiguous() | x.float() | x.to(x) | x.cpu() | x.type_as(x) | +x | torch.positive(x) | x.conj() | x.real | x[:, 0].flatten() | x.add_(1) | x.mul_(y) |
torch.atleast_2d(x) | F.dropout(x, 0.5, False) | F.relu(x, inplace=True) | torch.as_tensor(x) | x.clamp_(0, 1) | torch.add(x, 1, out=y) | x.t().contiguous()
"""
VIEWS = """
x[:] | x[...] | x[0] | x[1:] | x[:, 1] | x[:, None] | x[::2] | x.detach() | x.data | x.view(x.shape) | x.view_as(x) | x.reshape(x.shape) | x.reshape(-1) |
x.ravel() | x.expand_as(x) | x.expand(-1, -1) | x.expand(2, -1, -1) | x.t() | x.T | x.mT | x.T.T | x.permute(0, 1) | x.movedim(0, 0) | x.transpose(0, 0) |
x.narrow(1, 1, 2) | x.select(1, 2) | x.unbind(1)[1] | x.split(2, 1)[1] | x.chunk(2, 1)[0] | x.unsqueeze(0) | x[None].squeeze(0) | x.diagonal() | x.unflatten(1, (2, 2)) |
x[:, 0].t() | x[:, 0].T.t() | x[:, 0].ravel() | x[:, 0].view(-1) | x[0, 0] | x[0, 0].detach() | x[torch.tensor(0)] | x[:, torch.tensor(1)] |
torch.broadcast_to(x, (2, *x.shape)) | x.contiguous()[1:] | x.t().contiguous().t() | x.swapaxes(0, 1) | x.flatten()
"""
FRESH = "x + 1 | x.clone() | x.relu() | x[[0]] | x[x > 1] | x.repeat(1, 1) | torch.cat([x]) | x.double().float() | x.sum(0) | x.tril() | x.flip(0)"
ARRAYS = """
x | x[:] | x[...] | x[0] | x[::-1] | x[:, 1] | x[1:] | x.T | x.T.T | x.reshape(x.shape) | x.reshape(-1) | x.ravel() | x[:, 0].ravel() | x.flatten() | x.copy() |
np.asarray(x) | np.asarray(x)[:] | np.atleast_2d(x) | np.expand_dims(x, 0) | np.transpose(x) | np.swapaxes(x, 0, 1) | np.flip(x, 0) | np.split(x, 2, 1)[1] |
np.broadcast_to(x[:, None], (*x.shape[:1], 3, 4)) | x.astype(np.float32, copy=False) | x.astype(np.float32) | x + 1 | x[[0]] | x[x > 1] | np.array(x) | x[:, 0].transpose()
"""


def expressions(text):
    return [part.strip() for part in text.split("|")]


def function_of(expression, **names):
    return eval(f"lambda x, y: {expression}", {"torch": torch, "np": np, "F": torch.nn.functional, **names})


@pytest.mark.parametrize("kind", ["itself", "views", "fresh"])
def test_what_torch_gives(kind):
    for expression in expressions({"itself": ITSELF, "views": VIEWS, "fresh": FRESH}[kind]):
        try:
            check(function_of(expression), native=False)
        except AssertionError as error:
            raise AssertionError(expression) from error


def test_what_numpy_gives():
    for expression in expressions(ARRAYS):
        try:
            check(function_of(expression), native=False, numpy=True)
        except AssertionError as error:
            raise AssertionError(expression) from error


MADE = {"itself": lambda x: x, "whole": lambda x: x[:], "part": lambda x: x[1:], "turned": lambda x: x.T, "fresh": lambda x: x * 2}


def routes(make):
    def twice(x, y):
        made = make(x)
        return made, made, [made], {"x": x, "view": make(made)}

    def branch(x, y):
        if y.sum() < 0:
            made = make(x)
        else:
            made = y
        return made, x

    def either(x, y):
        return make(x) if x.shape[0] > 1 else y

    def early(x, y):
        for k in range(3):
            if x[:, k].sum() > 3:
                return make(x), k
        return y, 3

    def loop(x, y):
        made, last = x, y
        for _ in range(x.shape[0] % 3):
            made, last = make(make(made)), made
        return made, last

    def exchange(x, y):
        a, b = make(x), y
        for _ in range(x.shape[0]):
            a, b = b, a
        return a if a.shape == x.shape else x, b

    def grown(x, y):
        made = [make(x)]
        while len(made) <= x.shape[0]:
            made.append(make(y) if len(made) % 2 else make(x))
        return made

    def rows(x, y):
        made = []
        for row in x:
            made.append(row)
        return made, {"first": made[0]}, (made[-1], x)

    def picked(x, y):
        made = [x, y]
        for k in range(x.shape[0]):
            made.append(made[k])
        made[-1].add_(1) if isinstance(x, torch.Tensor) else made[-1].__iadd__(1)
        return made[-1]

    def nested(x, y):
        def inner(a, depth):
            return make(a) if depth == 0 else inner(a, depth - 1)

        held = {"a": (inner(x, 2), [y])}
        held["b"] = held["a"][0]
        return held

    return [twice, branch, either, early, loop, exchange, grown, rows, picked, nested]


@pytest.mark.parametrize("numpy", [False, True], ids=["torch", "NumPy"])
@pytest.mark.parametrize("make", MADE)
def test_every_way_to_a_result(make, numpy):
    for route in routes(MADE[make]):
        if make == "turned" and route.__name__ in ("loop", "exchange", "either", "branch", "grown"):
            continue  # has other sizes
        try:
            check(route, native=False, numpy=numpy)
        except AssertionError as error:
            raise AssertionError(route.__name__) from error


def test_views_share_the_version_counter():
    jitted = flexor.jit(lambda x: (x[:], x.t(), x.detach()), fallback="raise")
    x = torch.ones(3, 3)
    for _ in range(2):
        views = jitted(x)
        before = x._version
        for count, view in enumerate(views):
            view.add_(1)
            assert x._version == view._version == before + count + 1
    weights = torch.ones(3, requires_grad=True)
    with torch.enable_grad():
        loss = (weights * x).sum()
    jitted(x)[0].zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"), torch.enable_grad():
        loss.backward()


def test_no_gradient_goes_through_a_view():
    x = torch.ones(3, 3, requires_grad=True)
    for function in (lambda x: x.detach(), lambda x: x.data, lambda x: x.detach()[1:], lambda x: x.t().detach()):
        view = flexor.jit(function, fallback="raise")(x)
        assert view is not x and not view.requires_grad and view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        before = x._version
        view.add_(1)
        assert x._version == before + 1
    assert flexor.jit(lambda x: x.contiguous(), fallback="raise")(x) is x


def test_results_over_one_memory_of_the_program_share_a_storage():
    jitted = flexor.jit(lambda x: (made := x + 1, made.t(), made[1:], [made[0]]), fallback="raise")
    for size in (2, 17):
        made, *views = leaves(jitted(torch.ones(size, 3)))
        assert all(view.untyped_storage().data_ptr() == made.untyped_storage().data_ptr() for view in views)
        made.zero_()
        assert not any(view.any() for view in views)


def test_what_a_hook_gives_and_writes():
    @flexor.disable
    def hook(view):
        view.add_(1)
        return view[:1]

    def through(x, y):
        made = hook(x[:, 1:])
        made.mul_(2)
        return made, x

    check(through, native=False)


def test_a_squeeze_that_gives_another_rank_before_anything_is_written():
    def squeezed(x, y):
        x.squeeze().add_(1)
        return x.squeeze()

    check(squeezed, native=False)


def test_a_run_that_ends_is_not_undone():
    """Whatever a call in it has left behind."""
    from flexor.frontend.cpython import foreign

    @flexor.jit(fallback="silent")
    def raises(x, y, i):
        try:
            x.add_(1)
            return y[i] * x
        except IndexError:
            raise

    @flexor.disable
    def hook(x):
        with pytest.raises(IndexError):
            raises(x, x, torch.tensor(9))
        assert foreign.run.is_undone
        return x

    jitted = flexor.jit(lambda x: hook(x) * 2)
    for _ in range(3):
        assert jitted(torch.zeros(2)).shape == (2,)
        assert not foreign.run.is_undone


def test_what_requires_a_gradient_outside_of_grad_mode():
    def told(x):
        return x * 2 if x.requires_grad else x * 3

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(2))

        def forward(self, x):
            return (x + 1) * 2 if self.w.requires_grad and not (x + 1).requires_grad else x * 3

    jitted = flexor.jit(told)
    for wants in (True, False, True):
        x = torch.ones(2, requires_grad=wants)
        assert torch.equal(jitted(x), told(x))
    for weights in ("live", "frozen"):
        layer = Layer()
        module = flexor.jit(layer, weights=weights, fallback="raise")
        for wants in (True, False, True):
            layer.w.requires_grad_(wants)
            assert torch.equal(module(torch.ones(2)), layer(torch.ones(2)))
        assert not module.stats()["foreign_calls"]


def test_the_whole_of_a_result_in_two_places_is_one_object():
    jitted = flexor.jit(lambda x: (made := x.t(), x + 1, made), fallback="raise")
    for size in SIZES:
        first, _, last = jitted(torch.ones(size, 2))
        assert first is last


def test_results_of_the_builder_are_arguments_and_views():
    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "float32", ["N", 4]), ("more", "bool")])
    x, more = f.inputs
    kept = f.if_else(more, lambda: x, lambda: x.slice(axis=0))
    f.output(kept, x.contiguous(), x.flatten(start_axis=1, end_axis=1), x.slice(axis=0), f.op("add_", x, 1.0))
    module = b.build()
    for session in (flexor.Session(compile=False), flexor.Session(), flexor.Session(exact_only=True)):
        for size in SIZES:
            for x in (torch.ones(size, 4), np.ones((size, 4), np.float32)):
                for wants in (True, False):
                    results = session.run(module, x, wants)
                    assert [result is x for result in results] == [wants, True, True, False, True]
                    assert all(address(result) == address(x) for result in results if size)
