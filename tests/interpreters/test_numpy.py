"""The package with NumPy alone, as every supported interpreter must run it: calls, layouts, errors, hooks, threads, lifetimes."""

import gc
import os
import pickle
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

flexor = pytest.importorskip("flexor", reason="the engine is not built")

ROWS = """
.func main(x: f32[N, M], y: f32[N, M]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL y
  CALL_OP add 2
  CALL_OP relu 1
  CALL_OP reduce_sum 1 axes=[-1], keepdim=false
  RETURN 1
.end
"""
SIZES = (0, 1, 2, 15, 16, 17, 33)


@pytest.fixture
def session():
    return flexor.Session()


def numbers(*shape, dtype=np.float32, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) * 4).astype(dtype)


def rows(x, y):
    return np.maximum(x.astype(np.float64) + y, 0).sum(-1)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("m", SIZES)
def test_sizes(session, n, m):
    x, y = numbers(n, m), numbers(n, m, seed=1)
    got = session.run(flexor.from_text(ROWS), x, y)
    assert type(got) is np.ndarray
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, rows(x, y), rtol=1e-5, atol=1e-5)


LAYOUTS = {
    "transposed": lambda: numbers(9, 7).T,
    "every second": lambda: numbers(14, 18)[::2, ::2],
    "backwards": lambda: numbers(7, 9)[::-1, ::-1],
    "offset by one": lambda: numbers(64)[1:].reshape(7, 9),
    "expanded": lambda: np.broadcast_to(numbers(9), (7, 9)),
    "misaligned": lambda: np.frombuffer(b"\0" + numbers(63).tobytes(), np.uint8)[1:].view(np.float32).reshape(7, 9),
    "read-only": lambda: np.frombuffer(numbers(63).tobytes(), np.float32).reshape(7, 9),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_layouts(session, layout):
    module, x, y = flexor.from_text(ROWS), layout(), numbers(7, 9, seed=1)
    for a, b in ((x, y), (y, x), (x, x)):
        np.testing.assert_allclose(session.run(module, a, b), rows(a, b), rtol=1e-5, atol=1e-5)


DTYPES = (np.float32, np.float64, np.float16, np.int64, np.int32, np.int8, np.uint8, np.bool_)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
def test_every_dtype_goes_in_and_comes_out(session, dtype):
    b = flexor.Builder()
    f = b.function("main", inputs=[("x", np.dtype(dtype).name, ["N", "M"])])
    f.output(f.inputs[0].permute(1, 0))
    module, x = b.build(), numbers(5, 3).astype(dtype)
    got = session.run(module, x)
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got, x.T)


def test_arguments_by_name_and_in_order():
    module = flexor.from_text(ROWS)
    x, y = numbers(3, 4), numbers(3, 4, seed=1)
    np.testing.assert_array_equal(module(x, y), module(y=y, x=x))
    np.testing.assert_array_equal(module(x, y), module(x, y=y))
    with pytest.raises(TypeError, match="'z'"):
        module(x, y, z=x)
    with pytest.raises(flexor.ArgumentError):
        module(x)


def test_errors_are_of_their_kinds_and_leave_the_session_usable(session):
    module, x = flexor.from_text(ROWS), numbers(3, 4)
    for arguments, kind in (
        ((x, numbers(3, 5)), flexor.ArgumentError),
        ((x, numbers(3)), flexor.ArgumentError),
        ((x, x.astype(np.float64)), flexor.ArgumentError),
        ((x, None), flexor.ArgumentError),
        ((x, x.astype(object)), flexor.FlexorError),
        ((x, "text"), flexor.FlexorError),
    ):
        with pytest.raises(kind) as caught:
            session.run(module, *arguments)
        assert str(caught.value)
    np.testing.assert_allclose(session.run(module, x, x), rows(x, x), rtol=1e-5)
    with pytest.raises(flexor.TextError):
        flexor.from_text(".func main(")
    with pytest.raises(flexor.FileError):
        flexor.load("no-such-file.flx")


def test_scalars_and_results_by_kind(session):
    b = flexor.Builder()
    f = b.function("main", inputs=[("n", "int"), ("x", "float"), ("t", "float32", ["N"])])
    n, x, t = f.inputs
    f.output(n + 1, x * 2.0, t * x, t.sum().item())
    got = session.run(b.build(), 4, 0.5, np.ones(3, np.float32))
    assert (type(got), type(got[0]), type(got[1]), type(got[3])) == (tuple, int, float, float)
    assert (got[0], got[1], got[3]) == (5, 1.0, 3.0)
    np.testing.assert_array_equal(got[2], np.full(3, 0.5, np.float32))


def test_a_write_reaches_the_caller(session):
    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "float32", ["N"])])
    f.op("add_", f.inputs[0], 1.0)
    f.output(f.inputs[0])
    x = np.zeros(5, np.float32)
    assert session.run(b.build(), x) is x
    np.testing.assert_array_equal(x, np.ones(5, np.float32))


def test_save_load_and_pickle(session, tmp_path):
    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "float32", ["N", 4])])
    f.output(f.inputs[0] @ b.weight("w", np.eye(4, dtype=np.float32) * 2))
    module, x = b.build(), numbers(3, 4)
    module.save(tmp_path / "m.flx")
    module.save(tmp_path / "m.fasm")
    copies = (flexor.load(tmp_path / "m.flx"), flexor.load(tmp_path / "m.fasm"), pickle.loads(pickle.dumps(module)))
    for copy in copies:
        np.testing.assert_array_equal(session.run(copy, x), 2 * x)


HOOKED = """
.func main(x: f32[N]) -> 1
  LOAD_LOCAL x
  CALL_FOREIGN twice 1
  LOAD_CONST 1.0
  CALL_OP add 2
  RETURN 1
.end
"""


def test_hooks_run_in_place_and_their_exceptions_come_through(session):
    seen = []

    def twice(x):
        seen.append(x.copy())
        if x.size == 3:
            raise LookupError("three")
        return x * 2

    session.bind("twice", twice)
    module = flexor.from_text(HOOKED)
    np.testing.assert_array_equal(session.run(module, np.ones(4, np.float32)), np.full(4, 3, np.float32))
    with pytest.raises(LookupError, match="three"):
        session.run(module, np.ones(3, np.float32))
    np.testing.assert_array_equal(session.run(module, np.ones(2, np.float32)), np.full(2, 3, np.float32))
    assert [len(x) for x in seen] == [4, 3, 2]


def test_threads(session):
    module, wrong = flexor.from_text(ROWS), []

    def work(seed):
        for turn in range(40):
            x = numbers(1 + (seed + turn) % 9, 1 + turn % 5, seed=seed)
            got = session.run(module, x, x)
            if not np.allclose(got, rows(x, x), rtol=1e-4, atol=1e-4):
                wrong.append((seed, turn))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert session.stats()["compilations"] >= 1


def test_nothing_is_kept_alive_and_no_reference_is_lost(session):
    module = flexor.from_text(ROWS)

    class Array(np.ndarray):
        pass

    x = numbers(3, 4)
    session.run(module, x, x)
    before = sys.getrefcount(x)
    for _ in range(100):
        session.run(module, x, x)
    assert sys.getrefcount(x) == before
    y = numbers(3, 4).view(Array)
    watch = weakref.ref(y)
    try:
        session.run(module, y, y)
    except flexor.FlexorError:
        pass  # a subclass may be refused; it must not be kept either way
    del y
    gc.collect()
    assert watch() is None


def test_inputs_are_not_copied_and_results_do_not_share_memory(session):
    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "float32", ["N", "M"])])
    f.output(f.inputs[0].permute(1, 0), f.inputs[0] + 1.0)
    x = numbers(3, 4)
    view, fresh = session.run(b.build(), x)
    assert np.shares_memory(view, x)
    assert not np.shares_memory(fresh, x)
    x[0, 0] = 7
    assert view[0, 0] == 7


def test_explain_stats_and_symbols(session):
    module, x = flexor.from_text(ROWS), numbers(3, 4)
    assert "specialise" in session.explain(module, x, x)
    for n in range(5, 9):
        session.run(module, numbers(n, 4), numbers(n, 4))
    stats = session.stats()
    assert stats["compilations"] == 1
    assert "hit rate" in session.dashboard()
    assert session.prometheus()
    assert [argument["name"] for argument in module.inputs()] == ["x", "y"]


def test_weights_belong_to_the_module(session, tmp_path):
    array = numbers(4, 4)
    wanted = array.copy()
    b = flexor.Builder()
    w = b.weight("w", array)
    f = b.function("main", inputs=[("x", "float32", ["N", 4])])
    f.output(f.matmul(f.inputs[0], w), f.weight(w), f.weight(w).permute(1, 0)[1:])
    module, x = b.build(), numbers(3, 4, seed=1)
    session.run(module, x)
    array[:] = 7
    module.save(tmp_path / "m.flx")
    for loaded in (module, flexor.load(tmp_path / "m.flx"), pickle.loads(pickle.dumps(module))):
        product, whole, view = session.run(loaded, x)
        np.testing.assert_array_equal(whole, wanted)
        np.testing.assert_allclose(product, x @ wanted, rtol=1e-5, atol=1e-5)
        for lent in (whole, view, whole[1:], view.T):
            assert not lent.flags.writeable
            with pytest.raises(ValueError, match="read-only"):
                lent[0, 0] = 9
            with pytest.raises(ValueError, match="WRITEABLE"):
                lent.flags.writeable = True
        assert product.flags.writeable


def test_a_weight_that_comes_back_is_not_written_to(session):
    b = flexor.Builder()
    f = b.function("main")
    f.output(f.weight(b.weight("w", np.ones(3, np.float32))))
    lent = session.run(b.build())
    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "float32", ["N"]), ("y", "float32", ["N"])])
    f.output(f.op("add_", *f.inputs))
    writer = b.build()
    for target in (lent, lent[:2], lent.view()):
        with pytest.raises(flexor.ArgumentError, match="E0511"):
            session.run(writer, target, np.ones(target.shape, np.float32))
    assert (lent == 1).all()
    np.testing.assert_array_equal(session.run(writer, np.ones(3, np.float32), lent), [2, 2, 2])


def test_a_read_only_array_is_taken_where_it_is_only_read(session):
    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "float32", ["N"]), ("y", "float32", ["N"]), ("both", "bool")])
    x, y, both = f.inputs
    f.op("add_", x, y)
    f.output(f.if_else(both, lambda: f.op("add_", y, 1.0), lambda: y * 1.0))
    module, fixed = b.build(), numbers(5)
    fixed.flags.writeable = False
    for _ in range(2):
        x = np.zeros(5, np.float32)
        np.testing.assert_array_equal(session.run(module, x, fixed, False), fixed)
        np.testing.assert_array_equal(x, fixed)
        with pytest.raises(flexor.ArgumentError, match="E0511"):
            session.run(module, x, fixed, True)
        with pytest.raises(flexor.ArgumentError, match="E0511"):
            session.run(module, fixed, x, False)


@pytest.mark.parametrize("framework", ["flag", "memory map"])
def test_a_view_of_read_only_memory_is_read_only(session, framework, tmp_path):
    if framework == "flag":
        x = numbers(3, 4)
        x.flags.writeable = False
    else:
        np.save(tmp_path / "x.npy", numbers(3, 4))
        x = np.load(tmp_path / "x.npy", mmap_mode="r").view(np.ndarray)
    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "float32", ["N", "M"])])
    f.output(f.inputs[0].permute(1, 0), f.inputs[0] * 1.0)
    view, fresh = session.run(b.build(), x)
    assert not view.flags.writeable
    assert fresh.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        view[0, 0] = 1


def test_objects_that_speak_dlpack_are_read_and_what_is_read_only_is_not_written(session):
    class Exporter:
        def __init__(self, array, versions):
            self.array, self.versions = array, versions

        def __dlpack__(self, **options):
            if options and not self.versions:
                raise TypeError("no such argument")
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "float32", ["N"]), ("y", "float32", ["N"])])
    f.output(f.op("add_", *f.inputs))
    module, fixed = b.build(), numbers(3)
    wanted = fixed.copy()
    for versions in (False, True):
        x = np.zeros(3, np.float32)
        session.run(module, Exporter(x, versions), Exporter(fixed, versions))
        np.testing.assert_array_equal(x, fixed)
    fixed.flags.writeable = False
    try:
        fixed.__dlpack__(max_version=(1, 0))
    except (BufferError, TypeError):
        pytest.skip("this NumPy does not export read-only arrays")
    x = np.zeros(3, np.float32)
    session.run(module, x, Exporter(fixed, True))
    with pytest.raises(flexor.ArgumentError, match="E0511"):
        session.run(module, Exporter(fixed, True), x)
    np.testing.assert_array_equal(fixed, wanted)


def test_an_argument_that_holds_itself_is_refused(session):
    module = flexor.from_text(".func main(x: any) -> 1\n LOAD_LOCAL x\n RETURN 1\n.end\n")
    itself = [1]
    itself.append(itself)
    deep = []
    for _ in range(200_000):
        deep = [deep]
    for argument in (itself, {"a": itself}, deep):
        with pytest.raises(RecursionError):
            session.run(module, argument)
    assert session.run(module, [1, [2.5, "x"]]) == [1, [2.5, "x"]]


def test_a_value_under_construction_cannot_be_iterated():
    f = flexor.Builder().function("main", inputs=[("x", "float32", ["N"])])
    with pytest.raises(TypeError, match="iterated"):
        list(f.inputs[0])


def test_weights_of_kinds_that_have_no_plain_memory_are_refused():
    b = flexor.Builder()
    with pytest.raises(flexor.NotSupported, match="masked"):
        b.weight("w", np.ma.masked_array([1.0, 2.0], [True, False]))
    f = b.function("main")
    f.output(f.weight(b.weight("v", [1.5, 2.5])))
    np.testing.assert_array_equal(flexor.Session().run(b.build()), [1.5, 2.5])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64], ids=lambda d: d.__name__)
def test_products_of_integers_wrap_and_are_compiled(session, dtype):
    b = flexor.Builder()
    f = b.function("main", inputs=[("x", np.dtype(dtype).name, ["M", "K"]), ("y", np.dtype(dtype).name, ["K", "N"])])
    f.output(f.matmul(*f.inputs))
    module = b.build()
    for m, k, n in ((1, 1, 1), (2, 0, 3), (17, 33, 15), (16, 100, 64)):
        x, y = (np.random.default_rng(seed).integers(-100, 100, s).astype(dtype) for seed, s in enumerate([(m, k), (k, n)]))
        wanted = (x.astype(np.int64) @ y.astype(np.int64)).astype(dtype)
        np.testing.assert_array_equal(session.run(module, x, y), wanted)
    assert session.stats()["fallback_rate"] == 0 or not flexor._flexor.has_code_generator()


def test_limits_are_counts_or_text_with_a_unit():
    for limit, count in ((1024, 1024), ("4KB", 4096), (" 1.5 mib ", 3 << 19), ("7", 7), (None, 0)):
        assert flexor.Session(soft_limit=limit).stats()["pool"]["soft_limit"] == count
    for wrong in ("abc", -1, "MB", "-1KB", 1e9, [1], "1e30GB"):
        with pytest.raises(flexor.ArgumentError, match="bytes") as caught:
            flexor.Session(soft_limit=wrong)
        assert caught.value.code == "E0507"


def test_options_that_make_no_sense_are_refused():
    for options in ({"threads": -5}, {"threads": 100_000}, {"soft_limit": "2MB", "hard_limit": "1MB"}):
        with pytest.raises(flexor.ArgumentError, match=next(iter(options))) as caught:
            flexor.Session(**options)
        assert caught.value.code == "E0507"
    pool = flexor.Session(hard_limit="1MB").stats()["pool"]
    assert pool["soft_limit"] == pool["hard_limit"] == 1 << 20
    code = "import flexor, numpy; flexor.from_text('.func main(x: int) -> 1\\n LOAD_LOCAL x\\n RETURN 1\\n')(1)"
    for name, value in (("FLEXOR_NUM_THREADS", "many"), ("FLEXOR_VECTOR_BITS", "100")):
        done = subprocess.run([sys.executable, "-c", code], env=os.environ | {name: value}, capture_output=True, text=True)
        assert done.returncode == 1
        assert "E0507" in done.stderr
        assert name in done.stderr


def test_dims_without_a_name_are_sizes_of_their_own(session):
    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "float32", [None, 4]), ("y", "float32", [None, 4])])
    f.output(f.inputs[0] * 2.0, f.inputs[1] + 1.0)
    x, y = session.run(b.build(), np.ones((3, 4), np.float32), np.ones((2, 4), np.float32))
    assert (x.shape, y.shape) == ((3, 4), (2, 4))
