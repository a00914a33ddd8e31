"""Calls of torch and NumPy that several ops make up, native whatever numbers the run brings, beside the frameworks."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

nan, inf = float("nan"), float("inf")


def alike(got, want):
    if isinstance(want, (tuple, list)):
        return len(got) == len(want) and all(map(alike, got, want))
    if isinstance(want, torch.Tensor):
        return got.dtype == want.dtype and got.shape == want.shape and torch.allclose(got, want, 1e-5, 1e-6, equal_nan=True)
    return type(got) is type(want) and got.dtype == want.dtype and np.allclose(got, want, 1e-5, 1e-6, equal_nan=True) and got.shape == want.shape


def check(function, *calls, translations=1):
    """A jitted function gives what the frameworks give, in one program, without a call of Python."""
    jitted = flexor.jit(function, fallback="raise")
    for arguments in calls:
        assert alike(jitted(*arguments), function(*arguments)), (function(*arguments), jitted(*arguments))
    stats = jitted.stats()
    assert not stats["foreign_calls"] and stats["translations"] == translations, stats


def test_counts_of_at_least_so_many_as_the_run_says():
    x = torch.tensor([1, 3, 3, 0])
    check(lambda x, y: torch.bincount(x, minlength=y.shape[0] + 2), (x, torch.ones(1)), (x, torch.ones(4)), (x, torch.ones(9)), (x[:0], torch.ones(4)))
    check(lambda x, y: np.bincount(x, minlength=len(y)), (x.numpy(), x.numpy()[:1]), (x.numpy(), np.arange(17)))


def test_slices_between_elements_of_a_tensor():
    x, i = torch.arange(12.0), torch.tensor([2, 7, 12, 0, -3])
    check(lambda x, i, k: (x[i[k] : i[k + 1]] * 2, x[: i[0]], x[i[4] :]), (x, i, 0), (x, i, 1), (x, i, 2), (x, i, 3))
    check(lambda x, i: x[i[0] : i[1]].sum(), (x.numpy(), i.numpy()), (x.numpy(), i.numpy()[1:]), (x.numpy(), i.numpy()[2:]))


def test_classes():
    one_hot = torch.nn.functional.one_hot
    x = torch.tensor([[0, 2], [1, 2]])
    check(lambda x: one_hot(x), (x,), (x[:, 0],), translations=2)
    check(lambda x, y: one_hot(x, y.shape[0]), (x, torch.ones(3)), (x, torch.ones(9)), (x[:0], torch.ones(2)))
    check(lambda x: (one_hot(x, num_classes=5), one_hot(x).sum(0)), (x,))
    for classes in (2, 0):
        with pytest.raises(RuntimeError):
            flexor.jit(lambda x, y: one_hot(x, y.shape[0]), fallback="silent")(x, torch.ones(classes))
    for f in (lambda x: one_hot(x), lambda x: one_hot(x, 4)):
        with pytest.raises(RuntimeError):
            flexor.jit(f, fallback="silent")(x - 1)
    with pytest.raises(RuntimeError):
        flexor.jit(lambda x: one_hot(x), fallback="silent")(x[:0])


def test_rolls_by_numbers_of_the_run():
    x = torch.arange(12.0).reshape(3, 4)
    check(lambda x, i: (x.roll(i[0].item(), 1), torch.roll(x, i.shape[0])), *((x, torch.tensor([n])) for n in (0, 1, -5, 7)), (x[:0], torch.tensor([2])))
    check(lambda x, i: torch.roll(x, (i.shape[0], -1), (0, 1)), (x, torch.ones(3)), (x, torch.ones(1)))
    check(lambda x, i: (np.roll(x, i[0], axis=0), np.roll(x, len(i)), np.roll(x, 2, axis=(0, 1))), *((x.numpy(), np.array([n])) for n in (0, 1, -5)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.bool])
def test_numbers_in_the_place_of_nan(dtype):
    x = torch.tensor([1.0, nan, inf, -inf, -2.0]).nan_to_num(0, 3, 3).to(dtype) if dtype in (torch.int64, torch.bool) else torch.tensor([1.0, nan, inf, -inf, -2.0], dtype=dtype)
    check(lambda x: (torch.nan_to_num(x), x.nan_to_num(2.5), torch.nan_to_num(x, nan=1.0, posinf=5.0, neginf=-6.0)), (x,), (x[:0],))
    check(lambda x, y: torch.nan_to_num(x, y), (x, 0.5), (x, -1.5))
    if dtype not in (torch.bfloat16, torch.bool):
        check(lambda x: (np.nan_to_num(x), np.nan_to_num(x, nan=2.0, posinf=3.0)), (x.numpy(),))


NAN = """
nanmean(x), nanmean(x, axis=0), nanmean(x, 1, keepdims=True), nanmax(x), nanmax(x, axis=0), nanmin(x, 1), nansum(x, axis=0), nanprod(x, axis=1)
nanvar(x), nanvar(x, axis=0, ddof=1), nanstd(x, axis=1, keepdims=True), nancumsum(x, axis=0), nancumprod(x, axis=1)
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("line", NAN.strip().splitlines())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_passes_over_nan(line, dtype):
    function = eval(f"lambda x: ({line})", vars(np))
    x = np.random.default_rng(0).standard_normal((4, 5)).astype(dtype)
    x[1, 2] = x[0] = x[2, 4] = x[:, 3] = nan
    check(function, (x,), (x[1:],), (x[:2],), (np.ones((3, 2), dtype),))
    check(lambda x: (torch.nanmean(x, 0), x.nansum(1), torch.nanmean(x)), (torch.from_numpy(x),))


@pytest.mark.parametrize("mode", ["wrap", "edge", "reflect", "symmetric", "constant"])
def test_padded_arrays(mode):
    x = np.arange(12.0).reshape(3, 4)
    for function in (lambda x: np.pad(x, 1, mode=mode), lambda x: np.pad(x, ((2, 1), (0, 2)), mode), lambda x: np.pad(x[0], (1, 2), mode=mode)):
        check(function, (x,), (x[:, 1:],))
    if mode in ("wrap", "edge"):
        check(lambda x: np.pad(x, 7, mode=mode), (x,), (x[:2, :2],))
    check(lambda x: np.pad(x, [1, 2], constant_values=3), (x,), (x.astype(int),), translations=2)


def test_additions_at_places():
    def adds(x, i, v):
        np.add.at(x, i, v)
        np.add.at(x, (i[:1], i[:1]), 1)
        return x

    jitted = flexor.jit(adds, fallback="raise")
    for i in ([0, 1, 0], [2], [-1, -1, 2]):
        mine, theirs = np.zeros((3, 3)), np.zeros((3, 3))
        v = np.arange(len(i) * 3.0).reshape(-1, 3)
        assert alike(jitted(mine, np.array(i), v), adds(theirs, np.array(i), v)) and alike(mine, theirs)
    with pytest.raises(IndexError):
        jitted(np.zeros((3, 3)), np.array([3]), np.ones((1, 3)))
    assert not jitted.stats()["foreign_calls"] and jitted.stats()["translations"] == 1


def test_windows_beside_each_other_are_views():
    def reads(x):
        return x.unfold(0, 3, 3), x.unfold(-1, 2, 2) * 2, x.unfold(1, 2, 2).sum(-1)

    def writes(x):
        x.unfold(1, 2, 2).mul_(3)
        return x

    for function in (reads, writes):
        jitted = flexor.jit(function, fallback="raise")
        for make in (lambda: torch.arange(28.0).reshape(7, 4), lambda: torch.arange(28.0).reshape(4, 7).t(), lambda: torch.arange(60.0).reshape(6, 10)[:, ::2]):
            mine, theirs = make(), make()
            got, want = jitted(mine), function(theirs)
            assert alike(got, want) and torch.equal(mine, theirs)
            assert [part.stride() for part in got] == [part.stride() for part in want]
        assert not jitted.stats()["foreign_calls"] and not jitted.stats()["typed_calls"]
    with pytest.raises(RuntimeError):
        flexor.jit(reads, fallback="silent")(torch.ones(2, 4))


def test_output_arguments_that_are_read_as_well():
    def adds(x, y):
        return torch.add(x, y, out=y)

    def joins(x, y):
        return torch.cat((x[:0, 0], y), dim=0, out=y)

    def multiplies(x, y):
        return torch.mm(x, y, out=y)

    for function in (adds, joins, multiplies):
        jitted = flexor.jit(function, fallback="silent")
        mine, theirs = torch.ones(2, 2), torch.ones(2, 2)
        try:
            want = function(torch.ones(2, 2), theirs)
        except RuntimeError:
            with pytest.raises(RuntimeError):
                jitted(torch.ones(2, 2), mine)
        else:
            assert torch.equal(jitted(torch.ones(2, 2), mine), want)
        assert torch.equal(mine, theirs) and (function is not adds or not jitted.stats()["fallbacks"])
