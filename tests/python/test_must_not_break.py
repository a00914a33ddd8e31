"""What calls must survive: bad arguments, limits, errors in mid-run, aliases, threads. A refusal is named and leaves nothing broken."""

import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")


def build(inputs, body, symbols=()):
    b = flexor.Builder()
    for name, low, high in symbols:
        b.symbol(name, low, high)
    f = b.function("main", inputs=inputs)
    results = body(f, *f.inputs)
    f.output(*results if isinstance(results, (list, tuple)) else (results,))
    return b.build()


@pytest.fixture
def session():
    return flexor.Session()


def add_module():
    return build([("x", "float32", ["N", 4]), ("y", "float32", ["N", 4])], lambda f, x, y: (x + y).relu())


GOOD = (torch.ones(3, 4), torch.ones(3, 4))

REFUSED = {
    "rank too low": ((torch.ones(4), torch.ones(3, 4)), "ArgumentError"),
    "rank too high": ((torch.ones(1, 3, 4), torch.ones(3, 4)), "ArgumentError"),
    "dtype": ((torch.ones(3, 4).double(), torch.ones(3, 4)), "ArgumentError"),
    "fixed size": ((torch.ones(3, 5), torch.ones(3, 5)), "ArgumentError"),
    "equal symbols differ": ((torch.ones(3, 4), torch.ones(2, 4)), "ArgumentError"),
    "too few": ((torch.ones(3, 4),), "ArgumentError"),
    "too many": ((torch.ones(3, 4),) * 3, "ArgumentError"),
    "device": ((torch.ones(3, 4, device="meta"), torch.ones(3, 4)), "NotSupported"),
    "sparse": ((torch.ones(3, 4).to_sparse(), torch.ones(3, 4)), "NotSupported"),
    "none": ((None, torch.ones(3, 4)), "ArgumentError"),
}


@pytest.mark.parametrize(("arguments", "kind"), REFUSED.values(), ids=REFUSED)
def test_bad_arguments_are_refused_by_name(session, arguments, kind):
    module = add_module()
    with pytest.raises(getattr(flexor, kind)) as caught:
        session.run(module, *arguments)
    assert str(caught.value)
    assert torch.equal(session.run(module, *GOOD), torch.full((3, 4), 2.0))


def test_a_refusal_names_argument_and_sizes(session):
    with pytest.raises(flexor.ArgumentError) as caught:
        session.run(add_module(), torch.ones(3, 5), torch.ones(3, 4))
    text = str(caught.value)
    assert "x" in text
    assert "5" in text
    assert "4" in text


def test_a_length_above_the_declared_range(session):
    module = build([("x", "float32", ["S"])], lambda f, x: x + 1.0, symbols=[("S", 1, 8)])
    assert session.run(module, torch.zeros(8)).sum() == 8
    for length in (9, 0):
        with pytest.raises(flexor.ArgumentError, match="S"):
            session.run(module, torch.zeros(length))


def test_an_argument_that_requires_grad_raises_only_in_grad_mode(session):
    module, x = add_module(), torch.ones(3, 4, requires_grad=True)
    with pytest.raises(flexor.ArgumentError, match="grad"):
        session.run(module, x, GOOD[1])
    with torch.no_grad():
        assert torch.equal(session.run(module, x, GOOD[1]), torch.full((3, 4), 2.0))


def test_lazy_bits_of_a_tensor_are_resolved_or_refused(session):
    """A tensor that only says it is negated is never read as it lies in memory."""
    negated = torch.imag(torch.full((3, 4), 1 + 2j).conj())
    assert negated.is_neg()
    try:
        got = session.run(add_module(), negated, torch.full((3, 4), 3.0))
    except flexor.NotSupported:
        return
    assert torch.equal(got, torch.ones(3, 4))


def test_shapes_that_do_not_fit_are_a_shape_error_and_the_next_call_works(session):
    module = build([("x", "float32", ["A", "B"]), ("y", "float32", ["C", "D"])], lambda f, x, y: f.matmul(x, y))
    assert session.run(module, torch.ones(2, 3), torch.ones(3, 4)).shape == (2, 4)
    with pytest.raises(flexor.ShapeError) as caught:
        session.run(module, torch.ones(2, 3), torch.ones(4, 4))
    assert isinstance(caught.value, (ValueError, RuntimeError))
    assert "matmul" in str(caught.value)
    assert session.run(module, torch.ones(5, 3), torch.ones(3, 1)).shape == (5, 1)


def test_indices_out_of_range_raise_index_error(session):
    module = build(
        [("ids", "int64", ["N"]), ("table", "float32", ["R", 3])], lambda f, ids, table: f.embedding(ids, table)
    )
    table = torch.arange(15.0).reshape(5, 3)
    assert torch.equal(session.run(module, torch.tensor([4, 0]), table), table[[4, 0]])
    for bad in (5, -2, 2**40, -(2**63)):
        for place in range(17):
            ids = torch.zeros(17, dtype=torch.int64)
            ids[place] = bad
            with pytest.raises(IndexError):
                session.run(module, ids, table)
    assert torch.equal(session.run(module, torch.tensor([1]), table), table[[1]])


def test_sizes_that_no_memory_holds(session):
    module = build(
        [("x", "float32", ["A", "B"]), ("y", "float32", ["C", "D"])],
        lambda f, x, y: ((x + y) * 2.0, (x + y).sum(axes=[0])),
    )
    small = session.run(module, torch.ones(2, 1), torch.ones(1, 3))
    assert small[0].shape == (2, 3)
    huge = 2**40
    one = torch.ones(1, 1)
    with pytest.raises((flexor.ResourceLimit, flexor.ShapeError)):
        session.run(module, one.expand(huge, 1), one.expand(1, huge))
    with pytest.raises((flexor.ResourceLimit, MemoryError)):
        session.run(module, one.expand(2**22, 1), one.expand(1, 2**22))
    assert torch.equal(session.run(module, torch.ones(2, 1), torch.ones(1, 3))[0], small[0])


def test_a_hard_limit_hit_in_mid_run_is_named_and_not_the_end():
    def body(f, x):
        y = f.matmul(x, f.permute(x, axes=[1, 0]))
        return f.matmul(f.softmax(y, axis=-1), y).sum(axes=[0, 1])

    module, session = build([("x", "float32", ["N", "M"])], body), flexor.Session(hard_limit="4MB")
    small = torch.randn(32, 8)
    before = session.run(module, small)
    big = torch.randn(3_000, 8)
    try:
        got = session.run(module, big)
    except flexor.ResourceLimit as error:
        assert "4" in str(error)
    else:
        y = big.double() @ big.double().T
        torch.testing.assert_close(got.double(), (torch.softmax(y, -1) @ y).sum(), rtol=1e-3, atol=1e-3)
    assert torch.equal(session.run(module, small), before)
    assert session.stats()["pool"]["peak_live_bytes"] <= 4 << 20


def test_results_belong_to_the_caller(session):
    """A result is never overwritten by later calls, and results of one call do not share memory."""
    module = build([("x", "float32", ["N"])], lambda f, x: (x + 1.0, x * 2.0))
    kept = [(n, session.run(module, torch.arange(float(n)))) for n in (5, 3, 5, 0, 33, 5)]
    for n, (plus, times) in kept:
        assert torch.equal(plus, torch.arange(float(n)) + 1)
        assert torch.equal(times, torch.arange(float(n)) * 2)
    plus, times = kept[0][1]
    plus.zero_()
    assert times[1] == 2


def test_inputs_are_not_kept_alive_and_not_changed(session):
    module, x = add_module(), np.ones((3, 4), np.float32)
    before = x.copy()
    session.run(module, x, x)
    assert np.array_equal(x, before)


def test_threads_with_different_shapes():
    """First calls included: a barrier, then every thread its own shapes and expected sums."""
    module = build(
        [("x", "float32", ["A", "B"]), ("y", "float32", ["A", "B"])], lambda f, x, y: (x * y + 1.0).sum(axes=[-1])
    )
    session, failures, barrier = flexor.Session(), [], threading.Barrier(4)

    def work(seed):
        try:
            barrier.wait()
            for turn in range(200):
                shape = ((seed * 7 + turn) % 23, 1 + (seed * 5 + turn * 3) % 40)
                x = torch.full(shape, float(seed + 1))
                got = session.run(module, x, x)
                if not torch.equal(got, torch.full(shape[:1], ((seed + 1) ** 2 + 1.0) * shape[1])):
                    failures.append((seed, turn, shape, got))
        except Exception as error:  # reported in the main thread
            failures.append((seed, error))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[:3]
    assert session.stats()["compilations"] <= 2


def test_steady_state_takes_no_memory_from_the_system(session):
    module = build(
        [("x", "float32", ["N", "M"])], lambda f, x: f.softmax(f.matmul(x, f.permute(x, axes=[1, 0])), axis=-1)
    )
    sizes = (200, 33, 128, 17, 1)
    for n in sizes:
        session.run(module, torch.randn(n, n))
    before = session.stats()["pool"]["growth_events"]
    for _ in range(20):
        for n in sizes:
            session.run(module, torch.randn(n, n))
    assert session.stats()["pool"]["growth_events"] == before


def test_exact_only_mode_compiles_every_shape():
    module, session = add_module(), flexor.Session(exact_only=True)
    for n in (1, 2, 3, 1, 2):
        assert session.run(module, torch.ones(n, 4), torch.ones(n, 4)).sum() == 8 * n
    stats = session.stats()
    assert stats["compilations"] == 3
    assert stats["hit_rate"] == pytest.approx(2 / 5)


def test_explain_tells_the_five_steps(session):
    text = session.explain(add_module(), *GOOD)
    for word in ("load", "symbol", "guard", "special", "generat"):
        assert word in text.lower()


@pytest.mark.parametrize("view", [False, True])
def test_a_weight_cannot_be_written(view):
    array = np.ones((4, 8), np.float32)
    b = flexor.Builder()
    w = b.weight("w", array)
    f = b.function("main", inputs=[("x", "float32", [4, 8])])
    target = f.weight(w)
    if view:
        target = target.permute([1, 0]).permute([1, 0])
    f.output(f.op("add_", target, f.inputs[0]))
    module = b.build()
    with pytest.raises(flexor.ModuleError, match="E0117") as caught:
        module(array)
    assert "weight w" in str(caught.value)
    assert (array == 1).all()


def test_a_weight_that_a_run_returns_is_a_copy_in_torch(session):
    b = flexor.Builder()
    w = b.weight("w", torch.arange(6.0).reshape(2, 3))
    f = b.function("main", inputs=[("x", "float32", [2, 3])])
    views = [f.weight(w).permute([1, 0]), f.weight(w)[:, 1:], f.weight(w)[1], f.weight(w)[:0]]
    f.output(f.weight(w), f.inputs[0] + f.weight(w), *views)
    module, x = b.build(), torch.zeros(2, 3)
    wanted = torch.arange(6.0).reshape(2, 3)
    for _ in range(2):
        results = session.run(module, x)
        expected = (wanted, wanted, wanted.T, wanted[:, 1:], wanted[1], wanted[:0])
        for got, eager in zip(results, expected, strict=True):
            assert torch.equal(got, eager)
            assert got.stride() == eager.stride()
        for lent in results:
            lent.zero_()


def test_a_weight_given_as_a_torch_tensor_is_copied(session):
    given = torch.nn.Parameter(torch.ones(4, 4))
    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "float32", ["N", 4])])
    f.output(f.linear(f.inputs[0], b.weight("w", given)))
    module, x = b.build(), torch.ones(3, 4)
    assert torch.equal(session.run(module, x), torch.full((3, 4), 4.0))
    with torch.no_grad():
        given.zero_()
    for other in (session, flexor.Session(), flexor.Session(compile=False)):
        assert torch.equal(other.run(module, x), torch.full((3, 4), 4.0))


@pytest.mark.parametrize("compile", [True, False])
def test_version_counters_tell_which_arguments_were_written(compile):
    def body(f, x, y, z, both):
        f.op("add_", x[1:], 1.0)
        return f.if_else(both, lambda: f.op("mul_", z, y), lambda: y * 1.0)

    module = build([("x", "float32", ["N"]), ("y", "float32", ["N"]), ("z", "float32", ["N"]), ("both", "bool")], body)
    session = flexor.Session(compile=compile)
    x, y, z = torch.zeros(3), torch.ones(3), torch.ones(3)
    view = x[:2]
    for expected in (1, 2):
        session.run(module, x, y, z, False)
        assert (x._version, y._version, z._version) == (expected, 0, 0)
    assert view._version == 2, "views share the counter"
    session.run(module, x, y, z, True)
    assert (x._version, y._version, z._version) == (3, 0, 1)
    with torch.enable_grad():
        w = torch.ones(3, requires_grad=True)
        loss = (w * y).sum()
        session.run(module, x, y, z, True)
        loss.backward()  # y was read, not written
    assert torch.equal(w.grad, torch.ones(3))


def test_version_counters_of_tensors_in_lists(session):
    text = """.func main(pair: any) -> 1
  LOAD_LOCAL pair
  LOAD_CONST 1
  LIST_GET
  LOAD_CONST 2.0
  CALL_OP mul_ 2
  RETURN 1
"""
    x, y = torch.ones(2), torch.ones(2)
    session.run(flexor.from_text(text), [x, y])
    assert (x._version, y._version) == (0, 1)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_a_large_product_is_interpreted_in_blocks(dtype):
    """The reference needs half a minute for each of these; the interpreter does not run it."""
    module = build([("x", dtype, ["N", "K"]), ("y", dtype, ["K", "M"])], lambda f, x, y: f.matmul(x, y))
    interpreted = flexor.Session(compile=False)
    kind = getattr(torch, dtype)
    x, y = torch.randint(-4, 5, (500, 500)).to(kind), torch.randint(-4, 5, (500, 500)).to(kind)
    wanted = (x.double() @ y.double()).to(kind)
    for _ in range(4):
        assert torch.equal(interpreted.run(module, x, y), wanted)
    assert interpreted.stats()["interpreted_ops"] == 4
