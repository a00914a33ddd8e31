"""Strides of results are eager's, whatever axes have size 1, overlap or are permuted, behind branches and loops too."""

import itertools
import random

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

from oracle import seen_strides  # noqa: E402


def loop(x, y):
    while x.abs().sum() < 100.0:
        x = x * 2.0 + y.abs() + 0.1
    return x + 0.5


PROGRAMS = {
    "unary": (lambda f, x, y: x.relu(), lambda x, y: x.relu()),
    "binary": (lambda f, x, y: x + y, lambda x, y: x + y),
    "where": (lambda f, x, y: f.op("where", x > y, x, y), lambda x, y: torch.where(x > y, x, y)),
    "view": (lambda f, x, y: x.transpose(0, -1) + 1.0, lambda x, y: x.transpose(0, -1) + 1.0),
    "cast": (lambda f, x, y: x.cast("float64"), lambda x, y: x.double()),
    "kept": (lambda f, x, y: x.sum([-1], True), lambda x, y: x.sum(-1, keepdim=True)),
    "cat": (lambda f, x, y: f.op("concat", f.list(x, y), axis=0), lambda x, y: torch.cat([x, y])),
    "branch": (
        lambda f, x, y: f.if_else(x.sum() > 0.0, lambda: x.relu(), lambda: y + 1.0) + 1.0,
        lambda x, y: (x.relu() if x.sum() > 0.0 else y + 1.0) + 1.0,
    ),
    "branch of views": (
        lambda f, x, y: f.if_else(x.sum() > 0.0, lambda: x, lambda: y) * 2.0,
        lambda x, y: (x if x.sum() > 0.0 else y) * 2.0,
    ),
    "loop": (
        lambda f, x, y: (
            f.while_loop([x], lambda v: v.abs().sum() < 100.0, lambda v: v * 2.0 + y.abs() + 0.1) + 0.5
        ),
        loop,
    ),
}


def laid_out(rng, shape):
    kind = rng.choice(("contiguous", "permuted", "permuted", "expanded", "strided"))
    if kind == "permuted":
        order = rng.sample(range(len(shape)), len(shape))
        return torch.randn([shape[i] for i in order]).permute([order.index(i) for i in range(len(shape))])
    if kind == "expanded":
        return torch.randn([n if rng.random() < 0.5 else 1 for n in shape]).expand(shape)
    if kind == "strided":
        return torch.randn([2 * n for n in shape])[tuple(slice(None, None, 2) for _ in shape)]
    return torch.randn(shape)


@pytest.mark.parametrize("name", PROGRAMS)
def test_strides_are_those_of_eager(name):
    rng, (ours, eager) = random.Random(name), PROGRAMS[name]
    torch.manual_seed(0)
    for rank, compile in itertools.product((2, 3), (False, True)):
        b = flexor.Builder()
        f = b.function("main", inputs=[(c, "float32", [f"D{i}" for i in range(rank)]) for c in "xy"])
        f.output(ours(f, *f.inputs))
        module, session = b.build(), flexor.Session(compile=compile)
        told = [((2, 3, 1), (1, 0, 1)), ((3, 2, 1), (1, 3, 1))] if rank == 3 else []
        for shape in [s for s, _ in told] + [[rng.choice((1, 1, 2, 3, 5)) for _ in range(rank)] for _ in range(40)]:
            strides = dict(told).get(tuple(shape))
            x, y = (
                torch.randn(9).as_strided(shape, strides) if strides else laid_out(rng, shape) for _ in range(2)
            )
            got, wanted = session.run(module, x, y), eager(x, y)
            torch.testing.assert_close(got, wanted)
            where = f"{tuple(x.shape)} {x.stride()} {y.stride()}"
            assert seen_strides(got) == seen_strides(wanted), f"{where}: {got.stride()}, not {wanted.stride()}"
