"""Every registry op against torch: op × dtype × sizes × layouts.

One module per op and dtype meets all shapes and layouts in a row.

Calling one module with everything in a row is on purpose: each call meets the guards that the calls before it made.
float32 meets every layout, the other dtypes three.
"""

import dataclasses
import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

import torch.nn.functional as F  # noqa: E402
from op_cases import BINARY, CASES, ELSEWHERE, UNARY, Case  # noqa: E402
from oracle import ALL, LAYOUTS, SIZES, check, judge, laid_out, name_of, seen_strides  # noqa: E402

FEW_LAYOUTS = ("contiguous", "transposed", "wide pitch")


def module_of(case, dtype):
    """The op alone as a module; every dim of every operand is a symbol of its own."""
    shapes = case.shapes(2)[0]
    b = flexor.Builder()
    inputs = [
        (f"x{i}", name_of(case.dtype_of(i, dtype)), [f"d{i}_{axis}" for axis in range(len(shape))])
        for i, shape in enumerate(shapes)
    ]
    f = b.function("main", inputs=inputs)
    result = f.op(case.op, *([list(f.inputs)] if case.as_list else f.inputs), **case.attrs)
    f.output(*result if isinstance(result, (list, tuple)) else (result,))
    return b.build()


def runs_of(case, dtype):
    """Operands of every run, with a name: sizes outside, layouts inside; operand i takes the layout i places
    further."""
    names = tuple(LAYOUTS) if dtype == torch.float32 else FEW_LAYOUTS
    for n in SIZES:
        for shapes in case.shapes(n):
            for turn in range(len(names)):
                layouts = [names[(turn + i) % len(names)] for i in range(len(shapes))]
                operands = [
                    laid_out(shape, case.dtype_of(i, dtype), layout, 10 * n + i, case.domain_of(i))
                    for i, (shape, layout) in enumerate(zip(shapes, layouts))
                ]
                yield f"{shapes} {layouts}", operands


@pytest.mark.filterwarnings("ignore:(var|std).*degrees of freedom")
@pytest.mark.parametrize(
    ("case", "dtype"), [pytest.param(c, d, id=f"{c}-{name_of(d)}") for c in CASES for d in c.dtypes]
)
def test_op(case, dtype):
    module, session = module_of(case, dtype), flexor.Session()
    for name, operands in runs_of(case, dtype):
        try:
            # Elements that overlap have no layout of their own that a result could follow.
            strides = case.strides and "overlapping" not in name
            check(case.eager, session, module, operands, case.magnitude, ulps=case.ulps, strides=strides)
        except Exception as error:
            raise AssertionError(f"{case} {name_of(dtype)} on {name}: {error}") from error


def test_every_op_of_the_registry_is_met():
    """An op that is added without a case in op_cases.py, or in a test of its own, fails."""
    names = {op["name"] for op in flexor.registry()}
    in_place = {name for name in names if name.endswith("_")}
    assert not names - in_place - {c.op for c in CASES} - ELSEWHERE


@pytest.mark.parametrize("source", ALL, ids=name_of)
def test_cast(source):
    """Every pair of dtypes; negative numbers to signed integers too. To its own dtype a cast is a copy."""
    for target in ALL:
        domain = "positive" if torch.uint8 in (source, target) else "any"
        case = Case("cast", lambda x: x.to(target), (source,), domains=(domain,), attrs={"dtype": name_of(target)})
        module, session = module_of(case, source), flexor.Session()
        for n, layout in itertools.product((0, 1, 17), FEW_LAYOUTS):
            x = laid_out((3, n), source, layout, n, domain)
            check(case.eager, session, module, [x], strides=source != target)


@pytest.mark.parametrize("index_dtype", (torch.int64, torch.int32), ids=name_of)
def test_rows_taken_by_index(index_dtype):
    """embedding and gather with indices of any layout; 0 indices; the last row."""
    table = laid_out((9, 6), torch.float32, "wide pitch")
    embedding, session = (
        module_of(
            Case("embedding", F.embedding, shapes=lambda n: [((n, 3), (9, 6))], operand_dtypes=((0, index_dtype),)),
            torch.float32,
        ),
        flexor.Session(),
    )
    gather = module_of(
        Case(
            "gather", None, shapes=lambda n: [((9, 6), (n, 6))], operand_dtypes=((1, index_dtype),), attrs={"axis": 0}
        ),
        torch.float32,
    )
    for n, layout in itertools.product(SIZES, FEW_LAYOUTS):
        ids = laid_out((n, 3), index_dtype, layout, n, "positive") % 9
        check(lambda i, t: F.embedding(i, t), session, embedding, [ids, table])
        rows_ = laid_out((n, 6), index_dtype, layout, n, "positive") % 9
        check(lambda t, i: torch.gather(t, 0, i.long()), session, gather, [table, rows_])


def test_gather_of_every_rank():
    """Rank 0 counts as rank 1, and an index without elements may have any shape: as torch."""
    shapes = [(), (3,), (0,), (2, 3)]
    indices = [(), (2,), (0,), (1, 2), (0, 5)]
    for shape, places, at in itertools.product(shapes, indices, (0, 1, -1)):
        x, index = laid_out(shape, torch.float32, "contiguous"), torch.full(places, at)
        inputs = [(n, name_of(t.dtype), [f"{n}{i}" for i in range(t.dim())]) for n, t in (("x", x), ("i", index))]

        def ours(compile):
            b = flexor.Builder()
            f = b.function("main", inputs=inputs)
            f.output(f.op("gather", *f.inputs, axis=0))
            return flexor.Session(compile=compile).run(b.build(), x, index)

        for compile in (False, True):
            try:
                wanted = torch.gather(x, 0, index)
            except (RuntimeError, IndexError):
                with pytest.raises(flexor.ShapeError):
                    ours(compile)
            else:
                got = ours(compile)
                assert got.shape == wanted.shape
                assert torch.equal(got, wanted)


def test_reshape_to_an_open_size():
    """-1 beside sizes of 0: refused where x has no elements, for nothing says what it is; as torch."""
    for shape in ((0, 3), (2, 3), (1, 1)):
        for wanted in ((0, -1), (-1, 0), (3, -1), (-1, 2), (-1,), (0, 0, -1), (-1, -1), (-2, -1), (4, -1), (0, 0)):
            b = flexor.Builder()
            f = b.function("main", inputs=[("x", "float32", list(shape))])
            try:
                f.output(f.op("reshape", f.inputs[0], shape=list(wanted)))
                module = b.build()
                results = [flexor.Session(compile=c).run(module, torch.ones(shape)) for c in (False, True)]
            except flexor.FlexorError as refusal:
                with pytest.raises(RuntimeError) as eager:
                    torch.ones(shape).reshape(wanted)
                assert ("ambiguous" in str(eager.value)) == (refusal.code == "E0314"), refusal
            else:
                assert all(r.shape == torch.ones(shape).reshape(wanted).shape for r in results)


@pytest.mark.parametrize("dtype", (torch.float32, torch.int8, torch.bool), ids=name_of)
def test_slices_taken_by_index(dtype):
    """take and index_select along each axis, with indices that count from the end where the op wraps."""
    x, session = laid_out((9, 6), dtype, "transposed"), flexor.Session()
    for axis, wrap in itertools.product((0, 1), (False, True)):
        attrs = {"axis": axis, "wrap": wrap}
        select = Case("index_select", None, shapes=lambda n: [((9, 6), (n,))], attrs=attrs)
        take = Case("take", None, shapes=lambda n: [((9, 6), (n, 2))], attrs=attrs)
        modules = [module_of(dataclasses.replace(c, operand_dtypes=((1, torch.int64),)), dtype) for c in (select, take)]
        for n in SIZES:
            index = laid_out((n, 2), torch.int64, "wide pitch", n, "positive") % x.shape[axis]
            given = index - x.shape[axis] if wrap else index
            check(lambda t, i: torch.index_select(t, axis, i % t.shape[axis]), session, modules[0], [x, given[:, 0]])
            got, wanted = session.run(modules[1], x, given), x.numpy().take(index.numpy(), axis)
            judge(got, torch.from_numpy(wanted), torch.from_numpy(wanted))


def test_creation():
    """Shapes from a symbolic size, 0 among them."""
    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "float32", ["N", "M"])])
    (x,) = f.inputs
    n, m = x.shape[0], x.shape[1]
    f.output(
        f.op("full", 2.5, shape=[n, 3]),
        f.op("zeros", shape=[n, m], dtype="int64"),
        f.op("ones", shape=[2 * n], dtype="bool"),
        f.op("arange", start=1, stop=n, step=2),
        f.op("eye", rows=n, columns=m),
    )
    module, session = b.build(), flexor.Session()
    for n, m in itertools.product(SIZES, (0, 1, 17)):
        full, zeros, ones, steps, eye = session.run(module, torch.empty(n, m))
        for got, wanted in (
            (full, torch.full((n, 3), 2.5)),
            (zeros, torch.zeros(n, m, dtype=torch.int64)),
            (ones, torch.ones(2 * n, dtype=torch.bool)),
            (steps, torch.arange(1, max(n, 1), 2)),
            (eye, torch.eye(n, m)),
        ):
            judge(got, wanted, wanted)


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name not in ("expanded", "overlapping")])
def test_writes(layout):
    """In-place ops change the argument, its base and nothing beside it, return the argument's view, and are counted."""

    def torch_writes(x, y):
        x.mul_(y)
        x[:, 1:].copy_(y[:, :1])
        x.add_(1.5)
        return x

    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "float32", ["N", "M"]), ("y", "float32", ["N", "M"])])
    x, y = f.inputs
    f.op("mul_", x, y)
    f.op("assign", x[:, 1:], y[:, :1])
    f.output(f.op("add_", x, 1.5))
    module, session = b.build(), flexor.Session()
    for shape in [(n, 5) for n in SIZES] + [(3, n) for n in SIZES if n]:
        ours, theirs, y = (laid_out(shape, torch.float32, k, 3) for k in (layout, layout, "transposed"))
        version = ours._version
        got, wanted = session.run(module, ours, y), torch_writes(theirs, y)
        assert got.data_ptr() == ours.data_ptr()
        assert seen_strides(got) == seen_strides(wanted)
        assert torch.equal(ours, theirs)
        base, right = (t._base if t._base is not None else t for t in (ours, theirs))
        assert torch.equal(base, right)
        assert ours._version > version


def test_writes_seen_through_aliases():
    """The same tensor twice, overlapping halves of one buffer, disjoint tensors, in one program."""
    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "float32", ["N"]), ("y", "float32", ["N"])])
    x, y = f.inputs
    f.op("mul_", x, 2.0)
    f.output(x + y)
    module, session = b.build(), flexor.Session()
    for _ in range(2):
        apart = session.run(module, torch.ones(4), torch.ones(4))
        assert apart.tolist() == [3, 3, 3, 3]
        same = torch.ones(4)
        assert session.run(module, same, same).tolist() == [4, 4, 4, 4]
        base = torch.ones(8)
        assert session.run(module, base[0:4], base[2:6]).tolist() == [4, 4, 3, 3]
        assert base.tolist() == [2, 2, 2, 2, 1, 1, 1, 1]
        base = torch.ones(8)
        assert session.run(module, base[2:6], base[0:4]).tolist() == [3, 3, 4, 4]


def test_a_write_to_a_broadcast_target_is_refused():
    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "float32", ["N", "M"])])
    f.output(f.op("add_", f.inputs[0], 1.0))
    module, session = b.build(), flexor.Session()
    with pytest.raises(flexor.ShapeError):
        session.run(module, torch.ones(1, 3).expand(4, 3))
    assert session.run(module, torch.ones(4, 3)).sum() == 24


def test_a_number_may_be_written_to_a_broadcast_target():
    """fill_ takes a number where elements share memory; a tensor's value, and copies, it refuses: as torch."""
    inputs = [("x", "float32", ["N", "M"]), ("v", "float32", [])]
    for write, eager in (
        (lambda f, x, v: f.op("fill_", x, 7.0), lambda x, v: x.fill_(7.0)),
        (lambda f, x, v: f.op("fill_", x, v), lambda x, v: x.fill_(v)),
        (lambda f, x, v: f.op("assign", x, v), lambda x, v: x.copy_(v)),
        (lambda f, x, v: f.op("mul_", x, v), lambda x, v: x.mul_(v)),
    ):
        b = flexor.Builder()
        f = b.function("main", inputs=inputs)
        f.output(write(f, *f.inputs))
        module, v = b.build(), torch.tensor(2.0)
        for compile, (n, m) in itertools.product((False, True), ((1, 3), (4, 3), (4, 0), (33, 17))):
            ours, theirs = torch.ones(1, m), torch.ones(1, m)
            try:
                eager(theirs.expand(n, m), v)
            except RuntimeError:
                with pytest.raises(flexor.ShapeError, match="E0312"):
                    flexor.Session(compile=compile).run(module, ours.expand(n, m), v)
            else:
                flexor.Session(compile=compile).run(module, ours.expand(n, m), v)
            assert torch.equal(ours, theirs)


SHARED = {
    "shifted": lambda b: (b[1:9], b[0:8]),
    "apart": lambda b: (b[0:8], b[8:16]),
    "same": lambda b: (b[4:12], b[4:12]),
    "interleaved": lambda b: (b[0:16:2], b[1:16:2]),
    "transposed": lambda b: (b.view(4, 4), b.view(4, 4).t()),
    "rows": lambda b: (b.view(4, 4)[1:], b.view(4, 4)[:-1]),
    "sides": lambda b: (b.view(4, 4)[:, :2], b.view(4, 4)[:, 2:]),
    "one of the target's": lambda b: (b[0:8], b[3]),
    "beside": lambda b: (b[0:8], b[8]),
    "nothing": lambda b: (b[1:1], b[0:0]),
}


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("op", ("assign", "add_", "lerp_"))
def test_writes_that_meet_what_they_read(op, name):
    """Dense operands that overlap in part are refused where torch refuses them; everything else has eager's values."""
    eager = {"assign": torch.Tensor.copy_, "add_": torch.Tensor.add_, "lerp_": lambda x, y: x.lerp_(y, 0.25)}[op]
    for compile in (False, True):
        ours, theirs = (torch.arange(16.0) for _ in range(2))
        x, y = SHARED[name](ours)
        b = flexor.Builder()
        ranks = [(c, "float32", [f"{c}{i}" for i in range(t.dim())]) for c, t in (("x", x), ("y", y))]
        f = b.function("main", inputs=ranks)
        f.output(f.op(op, *f.inputs, *([0.25] if op == "lerp_" else [])))
        module, session = b.build(), flexor.Session(compile=compile)
        try:
            eager(*SHARED[name](theirs))
        except RuntimeError as refusal:
            assert "single memory location" in str(refusal)
            with pytest.raises(flexor.ShapeError, match="E0313"):
                session.run(module, x, y)
        else:
            session.run(module, x, y)
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16), ids=name_of)
def test_scalars_beside_16_bit_floats(dtype):
    """Products, quotients and weights of lerp take a scalar as it is; sums, rests and powers round it first: as torch."""
    x = torch.linspace(-9, 9, 257).to(dtype)
    zero = torch.tensor(0.1)
    cases = [
        (lambda f, x, z: x * 0.1, lambda x, z: x * 0.1),
        (lambda f, x, z: 0.1 * x, lambda x, z: 0.1 * x),
        (lambda f, x, z: x * 257, lambda x, z: x * 257),
        (lambda f, x, z: x * z, lambda x, z: x * z),
        (lambda f, x, z: x / 0.3, lambda x, z: x / 0.3),
        (lambda f, x, z: x / z, lambda x, z: x / z),
        (lambda f, x, z: x // 0.3, lambda x, z: x // 0.3),
        (lambda f, x, z: x + 0.1, lambda x, z: x + 0.1),
        (lambda f, x, z: x - z, lambda x, z: x - z),
        (lambda f, x, z: x % 0.3, lambda x, z: x % 0.3),
        (lambda f, x, z: x.maximum(z), lambda x, z: torch.maximum(x, z.to(dtype))),
        (lambda f, x, z: x < 0.1, lambda x, z: x < 0.1),
        (lambda f, x, z: f.op("lerp", x, -x, 0.1), lambda x, z: torch.lerp(x, -x, 0.1)),
        (lambda f, x, z: f.op("mul_", x.clone(), 0.1), lambda x, z: x.clone().mul_(0.1)),
    ]
    for ours, eager in cases:
        b = flexor.Builder()
        f = b.function("main", inputs=[("x", name_of(dtype), ["N"]), ("z", "float32", [])])
        f.output(ours(f, *f.inputs))
        module = b.build()
        for compile in (False, True):
            got, wanted = flexor.Session(compile=compile).run(module, x, zero), eager(x, zero)
            assert got.dtype == wanted.dtype
            assert torch.equal(got, wanted), (got - wanted).abs().max() if got.is_floating_point() else got != wanted


@pytest.mark.parametrize("mode", ("sum", "mean", "max"))
def test_embedding_bag(mode):
    """Bags of different sizes cut by offsets, empty ones among them, and bags of one size as rows of ids."""
    table = laid_out((9, 6), torch.float32, "contiguous")
    by_offsets = Case("embedding_bag_offsets", None, shapes=lambda n: [((n,), (n,), (9, 6))], attrs={"mode": mode})
    by_offsets = dataclasses.replace(by_offsets, operand_dtypes=((0, torch.int64), (1, torch.int64)))
    module, session = module_of(by_offsets, torch.float32), flexor.Session()
    for ids, offsets in (([1, 2, 8, 0, 5], [0, 2, 2, 4]), ([3], [0]), ([], [0, 0]), ([4] * 33, [0, 1]), ([], [])):
        operands = [torch.tensor(i, dtype=torch.int64) for i in (ids, offsets)]
        check(lambda i, o, t: F.embedding_bag(i, t, o, mode=mode), session, module, [*operands, table], ulps=8)
    by_rows = Case("embedding_bag", None, shapes=lambda n: [((n, n), (9, 6))], attrs={"mode": mode})
    module = module_of(dataclasses.replace(by_rows, operand_dtypes=((0, torch.int64),)), torch.float32)
    for bags, size in itertools.product((0, 1, 3), (1, 2, 17)):
        ids = laid_out((bags, size), torch.int64, "contiguous", size, "positive") % 9
        check(lambda i, t: F.embedding_bag(i, t, mode=mode), session, module, [ids, table], ulps=8)


def test_attention_with_lengths():
    """Rows of k and v past a sequence's length do not count, whatever stands there."""
    b = flexor.Builder()
    shape = ["B", 2, "S", 8]
    f = b.function(
        "main",
        inputs=[("q", "float32", shape), ("k", "float32", shape), ("v", "float32", shape), ("n", "int64", ["B"])],
    )
    q, k, v, n = f.inputs
    f.output(f.sdpa(q, k, v, lengths=n))
    module, session = b.build(), flexor.Session()
    for length in (1, 2, 15, 16, 17, 33, 130):
        q, k, v = (laid_out((3, 2, length, 8), torch.float32, "contiguous", i) for i in range(3))
        n = torch.tensor([length, (length + 1) // 2, 1])
        k[1, :, n[1] :], v[1, :, n[1] :] = float("nan"), float("inf")
        got = session.run(module, q, k, v, n)
        for row in range(3):
            part = [t[row : row + 1, :, : n[row]] for t in (k, v)]
            eager = F.scaled_dot_product_attention(q[row : row + 1], *part)
            truth = F.scaled_dot_product_attention(q[row : row + 1].double(), *(p.double() for p in part))
            judge(got[row : row + 1], eager, truth, ulps=64)


@pytest.mark.parametrize("case", [c for c in (*UNARY, *BINARY) if torch.float32 in c.dtypes], ids=str)
def test_numpy_with_negative_strides(case):
    """NumPy arrays read backwards along either axis: torch has no such layout."""
    module, session = module_of(case, torch.float32), flexor.Session()
    for n in SIZES:
        for shapes in case.shapes(n):
            for flips in ((slice(None), slice(None, None, -1)), (slice(None, None, -1), slice(None))):
                arrays = [
                    laid_out(s, torch.float32, "contiguous", i, case.domain_of(i)).numpy()[flips]
                    for i, s in enumerate(shapes)
                ]
                tensors = [torch.from_numpy(a.copy()) for a in arrays]
                got = session.run(module, *arrays)
                assert isinstance(got, np.ndarray)
                exact = [t.double() for t in tensors]
                scale = case.magnitude(*(t.abs() for t in exact)) if case.magnitude else 0.0
                judge(got, case.eager(*tensors), case.eager(*exact), case.ulps, scale=scale)
