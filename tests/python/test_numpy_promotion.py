"""Programs with promotion="numpy" against NumPy 2: integers of Python, dtypes of results, refusals in NumPy's place."""

import operator

import numpy as np
import pytest

flexor = pytest.importorskip("flexor", reason="the engine is not built")

ENGINES = [pytest.param(False, id="interpreted"), pytest.param(True, id="compiled")]
TYPES = (np.uint8, np.int8, np.int32, np.int64)
COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
NUMBERS = (-(2**40), -300, -129, -1, 0, 1, 100, 127, 128, 255, 256, 300, 2**31, 2**40)


def edges(dtype):
    info = np.iinfo(dtype)
    return np.array([info.min, 0, 1, 44, 100, info.max], dtype)


def program(body, *inputs):
    b = flexor.Builder(promotion="numpy")
    f = b.function("main", inputs=[("x", i, ["N"]) if i is not int else ("n", "int") for i in inputs])
    f.output(body(f, *f.inputs))
    return b.build()


def agree(session, module, wanted, *arguments):
    """The same array, or NumPy's exception and ours of that type."""
    try:
        expected = wanted()
    except (OverflowError, ValueError) as error:
        with pytest.raises(flexor.DTypeError, match="E0405") as caught:
            session.run(module, *arguments)
        assert isinstance(caught.value, type(error))
        return
    got = session.run(module, *arguments)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("compile", ENGINES)
@pytest.mark.parametrize("dtype", TYPES)
def test_comparisons_with_any_integer_are_right(dtype, compile):
    session, x = flexor.Session(compile=compile), edges(dtype)
    name = np.dtype(dtype).name
    for compare in COMPARISONS:
        run_time = program(lambda f, x, n: compare(x, n), name, int)
        reverse = program(lambda f, x, n: compare(n, x), name, int)
        for n in NUMBERS:
            wanted = compare(x, n)
            np.testing.assert_array_equal(session.run(program(lambda f, x: compare(x, n), name), x), wanted)
            np.testing.assert_array_equal(session.run(run_time, x, n), wanted)
            np.testing.assert_array_equal(session.run(reverse, x, n), compare(n, x))


ARITHMETIC = {
    "add": (lambda f, x, n: x + n, lambda x, n: x + n),
    "add the other way": (lambda f, x, n: n + x, lambda x, n: n + x),
    "sub": (lambda f, x, n: x - n, lambda x, n: x - n),
    "mul": (lambda f, x, n: x * n, lambda x, n: x * n),
    "div": (lambda f, x, n: x / n, lambda x, n: x / n),
    "maximum": (lambda f, x, n: f.maximum(x, n), np.maximum),
    "minimum": (lambda f, x, n: f.minimum(x, n), np.minimum),
    "and": (lambda f, x, n: x & n, lambda x, n: x & n),
    "where": (lambda f, x, n: f.where(x > 0, x, n), lambda x, n: np.where(x > 0, x, n)),
    "clip from": (lambda f, x, n: f.clamp(x, n, None), lambda x, n: np.clip(x, n, None)),
    "clip to": (lambda f, x, n: f.clamp(x, None, n), lambda x, n: np.clip(x, None, n)),
    "in place": (lambda f, x, n: f.op("add_", f.clone(x), n), lambda x, n: x.copy().__iadd__(n)),
    "fill": (lambda f, x, n: f.op("fill_", f.clone(x), n), lambda x, n: np.full_like(x, n)),
    "full_like": (lambda f, x, n: f.full_like(x, n), np.full_like),
}


@pytest.mark.parametrize("compile", ENGINES)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value", "ignore:overflow")
def test_arithmetic_with_an_integer_outside_the_dtype_raises(name, dtype, compile):
    session, x = flexor.Session(compile=compile), edges(dtype)
    ours, theirs = ARITHMETIC[name]
    run_time = program(ours, np.dtype(dtype).name, int)
    for n in NUMBERS:
        agree(session, run_time, lambda: theirs(x, n), x, n)
        agree(session, program(lambda f, x: ours(f, x, n), np.dtype(dtype).name), lambda: theirs(x, n), x)


@pytest.mark.parametrize("compile", ENGINES)
def test_powers_of_integers(compile):
    session, x = flexor.Session(compile=compile), np.array([1, 2, 3], np.int32)
    module = program(lambda f, x, n: x**n, "int32", int)
    for n in (0, 1, 2, 5, -1, -(2**40), 2**40):
        agree(session, module, lambda: x**n, x, n)
    b = flexor.Builder(promotion="numpy")
    f = b.function("main", inputs=[("x", "int32", ["N"]), ("y", "int32", ["N"]), ("z", "uint8", ["N"])])
    x, y, z = f.inputs
    f.output(x**y, x**z)
    module, base = b.build(), np.array([1, 2, -3], np.int32)
    for exponents in ([0, 3, 2], [0, 3, 1]):
        y, z = np.array(exponents, np.int32), np.array(exponents, np.uint8)
        for got, wanted in zip(session.run(module, base, y, z), (base**y, base**z), strict=True):
            np.testing.assert_array_equal(got, wanted)
    with pytest.raises(ValueError, match="E0405"):
        session.run(module, base, np.array([0, -1, 1], np.int32), z)


@pytest.mark.parametrize("compile", ENGINES)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32, np.int64, np.float32, np.bool_])
def test_reciprocal_keeps_integers(dtype, compile):
    x = np.array([1, 1, 1], dtype) if dtype == np.bool_ else np.array([1, 2, 3, 100], dtype)
    if np.dtype(dtype).kind == "i":
        x = np.concatenate([x, -x])
    session, module = flexor.Session(compile=compile), program(lambda f, x: f.reciprocal(x), np.dtype(dtype).name)
    agree(session, module, lambda: np.reciprocal(x), x)
    if np.dtype(dtype).kind in "iu":
        with pytest.raises(ZeroDivisionError, match="E0310"):
            session.run(module, np.zeros(3, dtype))


@pytest.mark.parametrize("compile", ENGINES)
@pytest.mark.parametrize("name", ["round", "floor", "ceil", "trunc"])
def test_rounding_of_bools(name, compile):
    x = np.array([True, False, True])
    module = program(lambda f, x: f.op(name, x), "bool")
    agree(flexor.Session(compile=compile), module, lambda: getattr(np, name)(x), x)


@pytest.mark.parametrize("compile", ENGINES)
@pytest.mark.parametrize("shapes", [((2, 3), (3, 4)), ((3,), (3,)), ((3,), (3, 2)), ((5, 2, 300), (300, 1)), ((2, 0), (0, 3))], ids=str)
def test_products_of_bools_are_or_of_ands(shapes, compile):
    rng = np.random.default_rng(0)
    x, y = (rng.random(shape) < 0.4 for shape in shapes)
    b = flexor.Builder(promotion="numpy")
    f = b.function("main", inputs=[(n, "bool", [f"{n}{i}" for i in range(a.ndim)]) for n, a in (("x", x), ("y", y))])
    f.output(f.inputs[0] @ f.inputs[1])
    module, session = b.build(), flexor.Session(compile=compile)
    got, wanted = session.run(module, x, y), x @ y
    assert got.dtype == np.bool_
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("compile", ENGINES)
def test_products_of_mixed_dtypes_are_promoted(compile):
    x, y = np.array([[True, False], [True, True]]), np.array([[1, 2], [3, 4]], np.int8)
    b = flexor.Builder(promotion="numpy")
    f = b.function("main", inputs=[("x", "bool", [2, 2]), ("y", "int8", [2, 2])])
    f.output(f.inputs[0] @ f.inputs[1])
    got = flexor.Session(compile=compile).run(b.build(), x, y)
    assert got.dtype == np.int8
    np.testing.assert_array_equal(got, x @ y)


@pytest.mark.parametrize("compile", ENGINES)
def test_what_numpy_has_dtypes_for_that_we_have_not(compile):
    """uint8 with int8 is int32 for NumPy's int16, sums of uint8 are int64 for its uint64: the values are NumPy's."""
    session = flexor.Session(compile=compile)
    u, i = np.array([0, 200, 255], np.uint8), np.array([-128, 100, 127], np.int8)
    b = flexor.Builder(promotion="numpy")
    f = b.function("main", inputs=[("u", "uint8", ["N"]), ("i", "int8", ["N"])])
    x, y = f.inputs
    f.output(x + y, x * y, x.reduce_sum(), x.reduce_prod())
    results = session.run(b.build(), u, i)
    wanted = (u + i, u * i, u.sum(), u.prod())
    assert [r.dtype.name for r in results] == ["int32", "int32", "int64", "int64"]
    for got, expected in zip(results, wanted, strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("compile", ENGINES)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value", "ignore:overflow")
def test_integers_divided_by_zero_give_zero(name, dtype, compile):
    function, session, type_name = getattr(np, name), flexor.Session(compile=compile), np.dtype(dtype).name
    x, y = np.repeat(edges(dtype), 4), np.tile(np.array([0, 1, 7, 3 if dtype == np.uint8 else -1], dtype), 6)
    b = flexor.Builder(promotion="numpy")
    f = b.function("main", inputs=[("x", type_name, ["N"]), ("y", type_name, ["N"]), ("n", "int")])
    u, v, n = f.inputs
    f.output(f.op(name, u, v), f.op(name, u, n), f.op(name, n, v), f.op(name + "_", f.clone(u), v), f.op(name, u, 0))
    module = b.build()
    for number in (0, 1, 5):
        wanted = (function(x, y), function(x, number), function(number, y), function(x, y), function(x, 0))
        for got, expected in zip(session.run(module, x, y, number), wanted, strict=True):
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(got, expected)
    torch_rules = flexor.Builder()
    f = torch_rules.function("main", inputs=[("x", type_name, ["N"])])
    f.output(f.op(name, f.inputs[0], 0))
    with pytest.raises(ZeroDivisionError, match="E0310"):
        session.run(torch_rules.build(), x)
