"""Elements that go where indices say, and what tells where elements stand: jitted functions beside eager torch and NumPy."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

SIZES = (0, 1, 2, 15, 16, 17, 33)


def randoms(*sizes, seed=0):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed))


def integers(high, *sizes, seed=0):
    return torch.randint(0, max(high, 1), sizes, generator=torch.Generator().manual_seed(seed))


def layouts(x):
    """The same elements in rows, in columns, and among others."""
    yield x
    if x.dim() == 2:
        yield x.t().contiguous().t()
    yield torch.stack([x, x], -1)[..., 0]


def check(f, *arguments):
    """A jitted function does what eager does, to its arguments too, by ops alone, all of them in regions."""
    jitted = flexor.jit(f)
    interpreted = flexor.stats()["interpreted_ops"]
    own = [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]
    theirs = [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]
    want = f(*theirs)
    got = jitted(*own)
    stats = jitted.stats()
    assert not stats["fallbacks"] and not stats["foreign_calls"], stats
    assert flexor.stats()["interpreted_ops"] == interpreted, flexor.stats()["fallbacks"]
    for a, b in zip(own, theirs):
        if isinstance(a, torch.Tensor):
            torch.testing.assert_close(a, b, equal_nan=True, rtol=0, atol=0)
    for a, b in zip(got, want) if isinstance(want, tuple) else [(got, want)]:
        assert a.dtype == b.dtype and a.shape == b.shape
        torch.testing.assert_close(a, b, equal_nan=True)


@pytest.mark.parametrize("n", SIZES)
def test_scatter(n):
    for x in layouts(randoms(5, 4)):
        for index in layouts(integers(5, n, 4)):
            for source in layouts(randoms(n, 4, seed=1)):
                check(lambda x, i, s: x.scatter_add(0, i, s), x, index, source)
    x, index, source = randoms(5, 4), integers(4, 5, n), randoms(5, n, seed=2)
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        for own in (True, False):
            check(lambda x, i, s: x.scatter_reduce(1, i, s, reduce, include_self=own), x, index, source)
    if n:
        places = torch.stack([torch.randperm(n) for _ in range(4)], 1)  # one element a place
        check(lambda x, i, s: x.scatter(0, i, s), randoms(n, 4), places, randoms(n, 4, seed=3))
        check(lambda x, i: x.scatter(0, i, 2.5), randoms(n, 4), places)
        check(lambda x, i: x.scatter_(0, i, 1.0).sum(), randoms(n, 4), places)


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.int32, torch.uint8, torch.int8])
def test_scatter_of_dtypes(dtype):
    x, source = integers(5, 3, 4).to(dtype), integers(7, 6, 4, seed=1).to(dtype)
    index = integers(3, 6, 4, seed=2)
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        check(lambda x, i, s: x.scatter_reduce(0, i, s, reduce), x, index, source)


@pytest.mark.parametrize("n", SIZES)
def test_along_an_axis(n):
    x, index = randoms(5, 3), integers(5, n)
    check(lambda x, i, s: x.index_add(0, i, s), x, index, randoms(n, 3, seed=1))
    check(lambda x, i, s: x.index_add(0, i, s, alpha=2.0), x, index, randoms(n, 3, seed=1))
    check(lambda x, i, s: x.index_add_(1, i % 3, s), x, index, randoms(5, n, seed=1))
    check(lambda x, i, s: x.index_reduce(0, i, s, "amax"), x, index, randoms(n, 3, seed=1))
    check(lambda x, i: x.index_fill(0, i, 7.0), x, index)
    if n in (1, 2):
        check(lambda x, i, s: x.index_copy(0, i, s), x, torch.arange(n), randoms(n, 3, seed=1))


@pytest.mark.parametrize("n", SIZES)
def test_writes_through_indices(n):
    def rows(x, i, v):
        x[i] = v
        return x

    def points(x, i, j, v):
        x[i, j] = v
        return x * 2

    def columns(x, i, v):
        x[:, i] = v
        return x

    def masked(x, m, v):
        x[m] = v
        return x

    order = torch.randperm(33)[:n]
    for x in layouts(randoms(33, 3)):
        check(rows, x, order, randoms(n, 3, seed=1))
        check(rows, x, order - 33, randoms(1, 3, seed=1))
        check(rows, x, order, 2.0)
        check(points, x, order, integers(3, n), randoms(n, seed=1))
        check(columns, x.t(), order, randoms(3, n, seed=1))
        mask = torch.zeros(33, dtype=torch.bool)
        mask[order] = True
        check(masked, x, mask, randoms(n, 3, seed=1))
        check(masked, x, mask[:, None] & torch.tensor([True, False, True]), randoms(2 * n, seed=1))
    check(lambda x, i, v: x.index_put((i,), v, accumulate=True), randoms(5, 3), integers(5, n), randoms(n, 3, seed=1))
    check(lambda x, i, v: x.index_put_((i, i % 3), v, True), randoms(5, 3), integers(5, n), randoms(n, seed=1))


def test_indices_out_of_range():
    x, source = randoms(5, 3), randoms(2, 3)

    def put(x, i, s):
        x[i] = s
        return x

    for f, bad in ((put, 5), (put, -6), (lambda x, i, s: x.index_add(0, i, s), 5), (lambda x, i, s: x.index_add(0, i, s), -1)):
        with pytest.raises((IndexError, RuntimeError)):
            f(x.clone(), torch.tensor([0, bad]), source)
        with pytest.raises((IndexError, RuntimeError)):
            flexor.jit(f)(x.clone(), torch.tensor([0, bad]), source)


def test_indices_of_rows_without_elements():
    def put(x, i):
        x[i] = 1
        return x

    def put_two(x, i):
        x[i, i] = 1
        return x

    def put_listed(x, _):
        x[[7]] = 1
        return x

    for f in (put, put_two, put_listed, lambda x, i: x.index_fill_(0, i, 1.0), lambda x, i: x.index_put_((i,), x.new_ones(())), lambda x, i: x[i]):
        for sizes in ((3, 3, 0), (0, 0, 0), (3, 0, 2)):
            for i in (torch.tensor([7]), torch.zeros(0, dtype=torch.long)):
                try:
                    f(torch.zeros(sizes), i)
                except IndexError:
                    with pytest.raises(IndexError):
                        flexor.jit(f, fallback="silent")(torch.zeros(sizes), i)
                else:
                    assert flexor.jit(f, fallback="silent")(torch.zeros(sizes), i).dim() == 3


OVERLAPPING = {
    "index_copy_": lambda x, i: x.index_copy_(0, i, x[1:3]),
    "index_copy_ of itself": lambda x, i: x[:2].index_copy_(0, i - 1, x[:2]),
    "index_add_": lambda x, i: x.index_add_(0, i, x[1:3]),
    "index_put_": lambda x, i: x.index_put_((i,), x[1:3]),
    "[] =": lambda x, i: (x.__setitem__(i, x[1:3]), x)[1],
    "scatter_": lambda x, i: x.scatter_(0, i, x[1:3]),
    "scatter_add_": lambda x, i: x.scatter_add_(0, i, x),
    "scatter_reduce_": lambda x, i: x.scatter_reduce_(0, i, x[1:3], "amax"),
    "index in the target": lambda x, i: x.index_copy_(0, x[1:3], i * 2),
    "added at an index in the target": lambda x, i: x.index_add_(0, x[1:3], i * 2),
    "put at an index in the target": lambda x, i: x.index_put_((x[1:3],), i),
    "filled at an index in the target": lambda x, i: x.index_fill_(0, x[1:3], 3),
    "scattered at an index in the target": lambda x, i: x.scatter_(0, x[1:3], i),
    "index of rows in the target": lambda x, i: x.view(2, 2).index_add_(0, x[:1], x.new_ones(1, 2)),
    "a number of its own": lambda x, i: x.index_fill_(0, i, x[1]),
    "rows apart": lambda x, i: x.view(2, 2)[:, 0].index_copy_(0, i - 1, x.view(2, 2)[:, 1]),
    "halves": lambda x, i: x[:2].index_copy_(0, i - 1, x[2:]),
    "without axes": lambda x, i: x[2].index_copy_(0, i[:1] - 1, x[2]),
    "without axes, of another": lambda x, i: x[2].index_copy_(0, i[:1] - 1, x[1]),
}


@pytest.mark.parametrize("name", OVERLAPPING)
def test_what_is_written_by_index_lies_apart_as_torch_wants_it(name):
    f = OVERLAPPING[name]
    jitted = flexor.jit(f, fallback="silent")
    for _ in range(2):
        mine, theirs, i = torch.arange(4), torch.arange(4), torch.tensor([1, 2])
        try:
            want = f(theirs, i)
        except RuntimeError:
            with pytest.raises(RuntimeError):
                jitted(mine, i)
        else:
            assert torch.equal(jitted(mine, i), want)
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("right", [False, True])
def test_search(n, right):
    rows = integers(9, n).float().sort().values
    values = integers(11, 4, 5, seed=1).float() - 1
    values[0, 0] = float("nan")
    for v in layouts(values):
        check(lambda r, v: torch.searchsorted(r, v, right=right), rows, v)
        check(lambda r, v: torch.bucketize(v, r, right=right), rows, v)
    check(lambda r, v: torch.searchsorted(r, v, right=right, out_int32=True), rows.expand(4, n).contiguous(), values)
    check(lambda r: torch.searchsorted(r, 3.0, right=right), rows)


@pytest.mark.parametrize("n", SIZES)
def test_counts(n):
    x = integers(7, n)
    check(lambda x: torch.bincount(x), x)
    check(lambda x: torch.bincount(x, minlength=9) * 2, x)
    if n:
        check(lambda x, w: torch.bincount(x, w), x, randoms(n))
        check(lambda x, w: torch.bincount(x, w), x, randoms(n).double())
    else:  # eager forgets the dtype of the weights
        assert flexor.jit(torch.bincount)(x, randoms(0)).dtype == torch.int64
    check(lambda x, r: x.repeat_interleave(r, 0).sum(0), randoms(n, 3), x)
    check(lambda x, r: torch.repeat_interleave(x, r, dim=1), randoms(3, n), x)


def test_negative_counts():
    for f in (torch.bincount, lambda r: torch.zeros(2).repeat_interleave(r)):
        with pytest.raises((RuntimeError, ValueError)):
            f(torch.tensor([2, -1]))
        with pytest.raises((RuntimeError, ValueError)):
            flexor.jit(f)(torch.tensor([2, -1]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.uint8, torch.bool])
@pytest.mark.parametrize("n", [*SIZES, 5000])
def test_unique(n, dtype):
    for x in layouts(integers(9, n, 2).to(dtype)):
        check(lambda x: x.unique(), x)
        check(lambda x: torch.unique(x, return_inverse=True, return_counts=True), x)
        check(lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True), x)


def test_unique_of_nan():
    x = torch.tensor([float("nan"), 1, float("nan"), -0.0, 0.0, 1])
    check(lambda x: torch.unique(x, return_counts=True), x)
    got = flexor.jit(lambda x: np.unique(x, return_counts=True))(x.numpy())
    for a, b in zip(got, np.unique(x.numpy(), return_counts=True)):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("n", SIZES)
def test_numpy(n):
    x = integers(7, n).numpy()
    y = np.arange(5.0)
    for f, arguments in (
        (lambda x: np.bincount(x), (x,)),
        (lambda x: np.unique(x, return_inverse=True), (x,)),
        (lambda y, x: np.searchsorted(y, x, side="right"), (y, x)),
        (lambda x: np.sort(x), (x,)),
    ):
        want, got = f(*arguments), flexor.jit(f)(*arguments)
        for a, b in zip(got, want) if isinstance(want, tuple) else [(got, want)]:
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)

    def put(y, x):
        y = y.copy()
        y[x % 5 - 5] = 1
        return y

    np.testing.assert_array_equal(flexor.jit(put)(y, x), put(y, x))


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_segments(reduce):
    data, lengths = randoms(10, 3), torch.tensor([3, 0, 6, 1])
    check(lambda d, n: torch.segment_reduce(d, reduce, lengths=n), data, lengths)
    check(lambda d, n: torch.segment_reduce(d, reduce, lengths=n, initial=0.5), data[:, 0].contiguous(), lengths)
    with pytest.raises((RuntimeError, IndexError)):
        flexor.jit(lambda d, n: torch.segment_reduce(d, reduce, lengths=n))(data, lengths + 1)


def greedy(boxes, scores, threshold):
    """As torchvision states it."""
    order = scores.argsort(descending=True, stable=True)
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    keep = []
    while order.numel() > 0:
        i, rest = order[0], order[1:]
        keep.append(i)
        low, high = torch.maximum(boxes[i, :2], boxes[rest, :2]), torch.minimum(boxes[i, 2:], boxes[rest, 2:])
        shared = (high - low).clamp(min=0).prod(1)
        order = rest[shared / (area[i] + area[rest] - shared) <= threshold]
    return torch.stack(keep) if keep else torch.empty(0, dtype=torch.int64)


@pytest.mark.parametrize("n", [*SIZES, 200])
def test_boxes(n):
    b = flexor.Builder()
    f = b.function("main", inputs=[("boxes", "float32", ["N", 4]), ("scores", "float32", ["N"])])
    kept = f.op("nms", *f.inputs, iou_threshold=0.3)
    f.output(kept, f.op("take", f.inputs[1], kept, axis=0))
    corners = torch.rand(n, 2, generator=torch.Generator().manual_seed(n))
    boxes = torch.cat([corners, corners + 0.3 * torch.rand(n, 2, generator=torch.Generator().manual_seed(n + 1))], 1)
    scores = integers(50, n).float() / 50
    keep, best = b.build()(boxes, scores)
    want = greedy(boxes, scores, 0.3)
    assert torch.equal(keep, want)
    assert torch.equal(best, scores[want])
