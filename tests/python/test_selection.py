"""Ops whose results follow the order or the truth of elements, against torch: sizes, layouts, dtypes, NaN in each lane."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

SIZES = (0, 1, 2, 15, 16, 17, 33)
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool)
LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.t().contiguous().t(),
    "sliced": lambda x: torch.stack([x, x], -1).flatten(1)[:, ::2],
    "expanded": lambda x: x[:1].expand(x.shape) if x.shape[0] else x,
}


def module_of(dtype, op, shapes=(("N", "M"),), results=1, dtypes=None, **attrs):
    b = flexor.Builder()
    names = dtypes or [str(dtype).removeprefix("torch.")] * len(shapes)
    f = b.function("main", inputs=[(f"x{i}", name, list(shape)) for i, (name, shape) in enumerate(zip(names, shapes))])
    out = f.op(op, *f.inputs, **attrs)
    f.output(*(out if results > 1 else [out]))
    return b.build()


def operand(n, m, dtype, seed=0):
    generator = torch.Generator().manual_seed(seed + 37 * n)
    if dtype == torch.bool:
        return torch.randint(0, 2, (n, m), generator=generator).bool()
    return torch.randint(-4 if dtype != torch.uint8 else 0, 5, (n, m), generator=generator).to(dtype)


def cases(dtype):
    for n in SIZES:
        for name, layout in LAYOUTS.items():
            yield f"{n} {name}", layout(operand(n, 5, dtype))
            if name == "contiguous":
                yield f"5x{n}", operand(5, n, dtype)


def same(got, want, what):
    assert got.dtype == want.dtype and got.shape == want.shape, what
    assert torch.equal(torch.nan_to_num(got.double(), 7e3), torch.nan_to_num(want.double(), 7e3)), what


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("axis", [0, -1])
def test_orders(dtype, axis):
    sort = module_of(dtype, "sort", results=2, axis=axis)
    down = module_of(dtype, "argsort", axis=axis, descending=True)
    for what, x in cases(dtype):
        values, places = sort(x)
        want = torch.sort(x, dim=axis, stable=True)
        same(values, want.values, what)
        same(places, want.indices, what)
        same(down(x), torch.argsort(x, dim=axis, descending=True, stable=True), what)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != torch.bool], ids=str)
def test_running_sums_and_products(dtype):
    cumsum, cumprod = module_of(dtype, "cumsum", axis=-1), module_of(dtype, "cumprod", axis=0)
    for what, x in cases(dtype):
        same(cumsum(x), torch.cumsum(x, -1), what)
        want = torch.cumprod(x, 0)
        if want.isfinite().all():  # 16-bit floats overflow at another place of the product
            assert torch.allclose(cumprod(x).double(), want.double(), rtol=0.02 if x.element_size() == 2 else 1e-5), what


def test_nan_is_the_greatest_in_each_lane():
    sort, top = module_of(torch.float32, "sort", results=2, axis=-1), module_of(torch.float32, "topk", results=2, k=3)
    for lane in range(17):
        x = torch.arange(17.0).flip(0).repeat(2, 1)
        x[0, lane] = float("nan")
        values, places = sort(x)
        want = torch.sort(x, dim=-1, stable=True)
        same(values, want.values, lane)
        same(places, want.indices, lane)
        greatest, at = top(x)
        same(greatest, torch.topk(x, 3).values, lane)
        same(at, torch.topk(x, 3).indices, lane)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("op", ["cummax", "cummin"])
def test_running_extremes(dtype, op):
    modules = {axis: module_of(dtype, op, results=2, axis=axis) for axis in (0, -1)}
    for what, x in cases(dtype):
        for axis, module in modules.items():
            values, places = module(x)
            want = getattr(torch, op)(x, axis)
            same(values, want.values, what)
            same(places, want.indices, what)


def test_running_extremes_keep_nan():
    module = module_of(torch.float32, "cummax", results=2, axis=-1)
    for lane in range(17):
        x = torch.arange(17.0).repeat(2, 1)
        x[0, lane] = float("nan")
        values, places = module(x)
        want = torch.cummax(x, -1)
        same(values, want.values, lane)
        same(places, want.indices, lane)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_lines_of_many_elements(dtype):
    """Beyond what is counted at a time, sorted by comparing, and kept of the greatest."""
    x = operand(3, 40_001, dtype)
    if dtype.is_floating_point:
        x[1, ::777] = float("nan")
    values, places = module_of(dtype, "sort", results=2)(x)
    want = torch.sort(x, stable=True)
    same(values, want.values, "sort")
    same(places, want.indices, "sort")
    same(module_of(dtype, "argsort", axis=0)(x.t()), torch.argsort(x.t(), dim=0, stable=True), "argsort")
    same(module_of(dtype, "nonzero")(x), torch.nonzero(x), "nonzero")
    shapes, dtypes = [("N", "M"), ("N", "M")], [str(dtype).removeprefix("torch."), "bool"]
    mask = operand(3, 40_001, torch.bool, seed=9)
    same(module_of(dtype, "mask_select", shapes=shapes, dtypes=dtypes)(x, mask), x[mask], "mask_select")
    if dtype != torch.bool:
        greatest, at = module_of(dtype, "topk", results=2, k=33)(x)
        order = torch.sort(x, descending=True, stable=True)
        same(greatest, order.values[:, :33], "topk")
        same(at, order.indices[:, :33], "topk")


def test_topk_refuses_more_than_there_are():
    top = module_of(torch.float32, "topk", results=2, k=3)
    with pytest.raises(flexor.ShapeError, match="k lies in"):
        top(torch.zeros(4, 2))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_nonzero_and_masks(dtype):
    nonzero = module_of(dtype, "nonzero")
    whole = module_of(dtype, "mask_select", shapes=[("N", "M"), ("N", "M")], dtypes=[str(dtype).removeprefix("torch."), "bool"])
    rows = module_of(dtype, "mask_select", shapes=[("N", "M"), ("N",)], dtypes=[str(dtype).removeprefix("torch."), "bool"])
    for what, x in cases(dtype):
        same(nonzero(x), torch.nonzero(x), what)
        mask = operand(x.shape[0], x.shape[1], torch.bool, seed=5)
        for m in (mask, mask.t().contiguous().t(), torch.zeros_like(mask), torch.ones_like(mask)):
            same(whole(x, m), x[m], what)
            same(rows(x, m.any(1)), x[m.any(1)], what)
    loose = module_of(dtype, "mask_select", shapes=[("N", "M"), ("K", "L")], dtypes=[str(dtype).removeprefix("torch."), "bool"])
    with pytest.raises(flexor.ShapeError, match="first sizes"):
        loose(operand(3, 4, dtype), operand(3, 5, torch.bool))


def test_one_compilation_serves_every_count():
    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "float32", ["N"])])
    x = f.inputs[0]
    chosen = x.mask_select(x > 0.0)
    f.output((chosen * 2.0 + 1.0).relu().sum())
    module = b.build()
    session = flexor.Session()
    for count in (33, 0, 1, 17, 2):
        x = torch.cat([torch.arange(1.0, count + 1), -torch.ones(40 - count)])
        assert session.run(module, x).item() == pytest.approx((x[x > 0] * 2 + 1).relu().sum().item())
    stats = session.stats()
    assert stats["compilations"] == 1
    assert stats["interpreted_ops"] == 0


def beside_eager(f, make):
    """Whether a jitted function gives, writes and raises what eager does, call after call; and its fallbacks."""
    jitted = flexor.jit(f, fallback="silent")

    def outcome(function):
        arguments = make()
        try:
            return repr((function(*arguments), arguments))
        except Exception as error:
            return "IndexError" if isinstance(error, IndexError | RuntimeError) else repr(error)

    for _ in range(3):
        assert outcome(jitted) == outcome(f)
    return jitted.stats()["fallbacks"]


PLACES = (lambda n: torch.tensor(n), lambda n: np.array(n), lambda n: np.int64(n), lambda n: n)


def placed(f, sizes, place):
    """Arguments of a function: an array or tensor and what names a place."""
    as_numpy = isinstance(place, (np.ndarray, np.generic))
    return beside_eager(f, lambda: ((np.zeros if as_numpy else torch.zeros)(sizes), place))


@pytest.mark.parametrize("make", PLACES)
def test_what_one_place_selects_is_a_view_where_the_framework_says_so(make):
    def written(x, i):
        y = x[i]
        y += 1
        return x.sum()

    def read(x, i):
        y = x[i]
        x += 1
        return y

    def given(x, i):
        return x[:, i]

    for f in (written, read, given):
        assert not placed(f, (3, 2), make(1))
    for framework in (torch, np):
        x = framework.ones((3, 2))
        jitted = flexor.jit(given)
        for _ in range(3):
            place = make(1)
            if isinstance(place, torch.Tensor) != (framework is torch) and not isinstance(place, int):
                continue
            expected = given(x, place)
            got = jitted(x, place)
            x *= 2
            assert got.tolist() == expected.tolist()


@pytest.mark.parametrize("make", PLACES)
def test_places_out_of_range_of_rows_without_elements(make):
    def after_a_write(x, i):
        x += 1
        return x[i], x

    for f in (lambda x, i: x[i], lambda x, i: x[:, i], lambda x, i: x[i] + 1, after_a_write):
        for sizes in ((3, 0), (0, 3), (0, 0)):
            for place in (-4, -3, 0, 2, 3, 7):
                placed(f, sizes, make(place))


@pytest.mark.parametrize("bad", (-1, 3, 4))
def test_indices_out_of_range_of_rows_without_elements(bad):
    def after_a_write(x, i):
        x += 1
        return x.index_select(0, i)

    rows = (lambda x, i: x.index_select(0, i), lambda x, i: torch.nn.functional.embedding(i, x), after_a_write, lambda x, i: x[i], lambda x, i: x[:, i])
    for f in rows:
        for sizes in ((3, 0), (0, 3), (0, 0)):
            for index in ([bad], [0, bad], []):
                beside_eager(f, lambda: (torch.zeros(sizes), torch.tensor(index, dtype=torch.long)))
    for f in (lambda x, i: x[i], lambda x, i: np.take(x, i, axis=0)):
        for sizes in ((3, 0), (0, 0)):
            for index in ([bad], [0, bad], []):
                beside_eager(f, lambda: (np.zeros(sizes), np.array(index, dtype=np.int64)))
