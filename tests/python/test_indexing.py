"""Reads and writes by several tensors of indices, masks, slices, integers and new axes together, beside torch."""

import itertools
import random

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

SIZES = (4, 5, 6)
TEXTS = ("1", "-1", ":", "1:3", "::2", "None", "...", "INDEX", "WIDE", "COLUMN", "POINT", "EMPTY", "MASK")


@pytest.fixture(autouse=True)
def without_gradients():
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def tensor_for(text, size):
    """What an index names, for an axis of a size."""
    if text == "INDEX":
        return torch.tensor([0, -1, 2])
    if text == "WIDE":
        return torch.tensor([[1, 0, -2], [2, 2, -size]])
    if text == "COLUMN":
        return torch.tensor([[size - 1], [0]])
    if text == "POINT":
        return torch.tensor(-2)
    if text == "EMPTY":
        return torch.zeros(0, dtype=torch.long)
    return torch.arange(size) % 2 == (size % 2) if text == "MASK" else None


def index_of(texts):
    """The text of an index and the tensors that it names, or None where it has too many items or two ellipses."""
    named = sum(text not in ("None", "...") for text in texts)
    if named > len(SIZES) or texts.count("...") > 1:
        return None
    axis, parts, tensors = 0, [], []
    for text in texts:
        if text == "...":
            axis += len(SIZES) - named
        if text in ("None", "..."):
            parts.append(text)
            continue
        tensor = tensor_for(text, SIZES[axis])
        parts.append(text if tensor is None else "abc"[len(tensors)])
        tensors += [] if tensor is None else [tensor]
        axis += 1
    return ", ".join(parts), tensors


def cases(count):
    """So many indices with tensors in them, the same ones in every run."""
    every = [texts for n in (1, 2, 3, 4) for texts in itertools.product(TEXTS, repeat=n)]
    random.Random(1).shuffle(every)
    found = [made for texts in every if (made := index_of(texts)) is not None and made[1]]
    return found[:count]


def outcome(function, *arguments):
    try:
        return function(*arguments), None
    except Exception as error:
        return None, error


def alike(got, want):
    return got.dtype == want.dtype and got.shape == want.shape and torch.equal(got, want)


@pytest.mark.parametrize(("text", "tensors"), cases(60), ids=lambda value: value if isinstance(value, str) else "")
def test_reads_and_writes(text, tensors):
    names = "abc"[: len(tensors)]
    read = eval(f"lambda x, {', '.join(names)}: x[{text}]")
    scope = {}
    exec(f"def write(x, v, {', '.join(names)}):\n    x[{text}] = v\n    return x", scope)
    x = torch.randn(SIZES)
    want, refused = outcome(read, x, *tensors)
    jitted = flexor.jit(read, fallback="silent")
    for _ in range(2):
        got, raised = outcome(jitted, x, *tensors)
        assert (raised is None) == (refused is None) and (refused is None or isinstance(raised, type(refused)))
        assert refused is not None or alike(got, want)
    if refused is None:
        assert not jitted.stats()["fallbacks"] and not jitted.stats()["foreign_calls"], jitted.stats()
        values = [2.5, torch.tensor(3.0), torch.arange(want.numel(), dtype=torch.float32).reshape(want.shape)]
        if want.dim() > 1:
            values.append(torch.arange(want.shape[-1], dtype=torch.float32))
        for value in values:
            mine, theirs = x.clone(), x.clone()
            flexor.jit(scope["write"], fallback="silent")(mine, value, *tensors)
            scope["write"](theirs, value, *tensors)
            if "[[2, 2" not in repr(tensors):  # two values for one place: any of them
                assert alike(mine, theirs)


def test_one_translation_serves_every_length():
    jitted = flexor.jit(lambda x, i, j: x[:, i, j], fallback="raise")
    for size, count in ((3, 0), (3, 1), (17, 2), (33, 15), (16, 16), (1, 17)):
        x = torch.randn(size, size, size)
        i, j = (torch.randint(-size, size, (count,)) for _ in range(2))
        assert alike(jitted(x, i, j), x[:, i, j])
        y = x.transpose(0, 2)
        assert alike(jitted(y, i, j), y[:, i, j])
    assert jitted.stats()["translations"] == 1


@pytest.mark.parametrize("bad", [(5, 0), (0, 6), (-6, 0), (0, -7)])
def test_an_index_out_of_range_of_its_own_axis(bad):
    """The place that it would name among all elements is one of the tensor's; it is refused all the same."""
    x = torch.randn(SIZES)
    indices = [torch.tensor([1, at]) for at in bad]
    for function in (lambda x, i, j: x[1, i, j], lambda x, i, j: x[:, i, j]):
        jitted = flexor.jit(function)
        jitted(x, *(torch.tensor([0, 1]) for _ in range(2)))
        for _ in range(2):
            with pytest.raises(IndexError):
                jitted(x, *indices)
    with pytest.raises(IndexError):
        flexor.jit(lambda x, i, j: x[i, j])(torch.randn(0, 3), torch.tensor([0]), torch.tensor([0]))


def test_indices_that_do_not_fit_each_other():
    jitted = flexor.jit(lambda x, i, j: x[i, j])
    with pytest.raises(IndexError):
        jitted(torch.randn(4, 4), torch.tensor([0, 1]), torch.tensor([0, 1, 2]))


LISTS = ("[0]", "[0, -1, 2]", ":, [0, 2]", "[0, 1], [1, 2]", "[[0, 1], [1, 2]]", "1, [0, 2]", "[0, 2], 1", "[3], ..., [0, 1]", "None, [1]", "::2, [1]", "[]")


@pytest.mark.parametrize("text", [*LISTS, "[True, False, True, False]", "(0, 2), :", "[i, 1]"])
@pytest.mark.parametrize("compile", (True, False))
def test_lists_in_the_place_of_tensors(text, compile):
    for statement in (f"x[{text}] = v", f"x[{text}] += 1.5", f"y = x[{text}]", f"x[{text}].add_(1)", f"x[{text}] = x[{text}] * v"):
        scope = {}
        exec(f"def f(x, v, i):\n    y = None\n    {statement}\n    return x, y", scope)
        jitted = flexor.jit(scope["f"], fallback="silent", compile=compile)
        for i in (0, 2):
            for v in (2.5, torch.tensor(3.0)):
                mine = torch.randn(SIZES)
                theirs = mine.clone()
                got, want = jitted(mine, v, i), scope["f"](theirs, v, i)
                assert alike(mine, theirs) and got[0] is mine and (want[1] is None or alike(got[1], want[1])), statement


def test_lists_of_numbers_of_the_call():
    jitted = flexor.jit(lambda x, a, b: x[a, :, b], fallback="raise")
    x = torch.randn(SIZES)
    for a, b in (([0, 2], [1, -1]), ([3, 3], [0, 5])):
        assert alike(jitted(x, a, b), x[a, :, b])
