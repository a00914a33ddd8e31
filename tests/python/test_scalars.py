"""Scalar arithmetic on values known at run time: as Python's, compiled and interpreted, in one region."""

import math
import operator

import numpy as np
import pytest

flexor = pytest.importorskip("flexor", reason="the engine is not built")

NUMBERS = (0.0, -0.0, 1.0, -2.5, 0.1, 3.0, 1e308, -1e-310, math.inf, -math.inf, math.nan)
INTEGERS = (0, 1, -3, 7, 2**53 + 1, -(2**62))
BINARY = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "true_div": operator.truediv,
    "floor_div": operator.floordiv,
    "mod": operator.mod,
    "min": min,
    "max": max,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
UNARY = {"neg": operator.neg, "not": operator.not_, "to_bool": bool, "to_float": float}
# Run-time floats are compiled; the interpreter has the rest.
COMPILED = {"add", "sub", "mul", "true_div", "eq", "ne", "lt", "le", "gt", "ge", "neg", "not", "to_bool", "to_float"}


def program(op, kinds):
    loads = "".join(f"  LOAD_LOCAL v{i}\n" for i in range(len(kinds)))
    parameters = ", ".join(f"v{i}: {kind}" for i, kind in enumerate(kinds))
    return flexor.from_text(f".func main({parameters}) -> 1\n{loads}  SCALAR {op}\n  RETURN 1\n.end\n")


def same(got, expected):
    if type(got) is not type(expected):
        return False
    if isinstance(expected, float):
        return (math.isnan(got) and math.isnan(expected)) or (got == expected and math.copysign(1, got) == math.copysign(1, expected))
    return got == expected


def agree(session, module, function, values):
    try:
        expected = function(*values)
    except (ZeroDivisionError, OverflowError) as error:
        with pytest.raises((flexor.FlexorError, type(error))):
            session.run(module, *values)
        return
    if isinstance(expected, int) and not -(2**63) <= expected < 2**63:
        with pytest.raises(flexor.FlexorError):
            session.run(module, *values)
        return
    got = session.run(module, *values)
    assert same(got, expected), f"{values}: {got!r}, not {expected!r}"


@pytest.mark.parametrize("compile", [True, False], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("kinds", [("float", "float"), ("float", "int"), ("int", "float")], ids=str)
@pytest.mark.parametrize("op", BINARY)
def test_binary(op, kinds, compile):
    session, module = flexor.Session(compile=compile), program(op, kinds)
    pools = [NUMBERS if kind == "float" else INTEGERS for kind in kinds]
    for a in pools[0]:
        for b in pools[1]:
            agree(session, module, BINARY[op], (a, b))
    if compile and op in COMPILED and kinds == ("float", "float"):
        assert session.stats()["compilations"] == 1
        assert session.stats()["region_exits"] == 0


@pytest.mark.parametrize("compile", [True, False], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("op", UNARY)
def test_unary(op, compile):
    session, module = flexor.Session(compile=compile), program(op, ("float",))
    for a in NUMBERS:
        agree(session, module, UNARY[op], (a,))
    if compile:
        assert session.stats()["region_exits"] == 0


@pytest.mark.parametrize("compile", [True, False], ids=["compiled", "interpreted"])
def test_true_division_of_run_time_integers(compile):
    session, module = flexor.Session(compile=compile), program("true_div", ("int", "int"))
    for a in INTEGERS[:4]:
        for b in INTEGERS[:4]:
            agree(session, module, operator.truediv, (a, b))


WRITE_THEN_DIVIDE = """
.func main(x: f32[N], a: float, b: float) -> 1
  LOAD_LOCAL x
  LOAD_CONST 1.0
  CALL_OP add_ 2
  POP
  LOAD_LOCAL a
  LOAD_LOCAL b
  SCALAR true_div
  RETURN 1
.end
"""


@pytest.mark.parametrize("compile", [True, False], ids=["compiled", "interpreted"])
def test_a_division_by_zero_raises_after_what_stands_before_it(compile):
    session, module, x = flexor.Session(compile=compile), flexor.from_text(WRITE_THEN_DIVIDE), np.zeros(3, np.float32)
    assert session.run(module, x, 1.0, 4.0) == 0.25
    with pytest.raises(flexor.FlexorError, match="E0310"):
        session.run(module, x, 1.0, 0.0)
    np.testing.assert_array_equal(x, np.full(3, 2, np.float32))


def test_a_division_that_nobody_reads_raises_too():
    text = ".func main(a: float) -> 1\n LOAD_CONST 1.0\n LOAD_LOCAL a\n SCALAR true_div\n POP\n LOAD_LOCAL a\n RETURN 1\n.end\n"
    session, module = flexor.Session(), flexor.from_text(text)
    assert session.run(module, 2.0) == 2.0
    with pytest.raises(flexor.FlexorError, match="E0310"):
        session.run(module, 0.0)


CHECKED = {
    "clamp": (lambda f, x, n: f.clamp(x, n, None), lambda x, n: x.clamp(n)),
    "where": (lambda f, x, n: f.where(x > 3, x, n), lambda x, n: x.where(x > 3, n)),
    "pow": (lambda f, x, n: x**n, lambda x, n: x**n),
    "fill_": (lambda f, x, n: f.op("fill_", f.clone(x), n), lambda x, n: x.clone().fill_(n)),
    "full_like": (lambda f, x, n: f.full_like(x, n), lambda x, n: x.new_full(x.shape, n)),
    "masked_fill": (lambda f, x, n: f.masked_fill(x, x > 3, n), lambda x, n: x.masked_fill(x > 3, n)),
}


@pytest.mark.parametrize("compile", [True, False], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32"])
@pytest.mark.parametrize("op", CHECKED)
def test_integers_that_torch_refuses_to_convert(op, dtype, compile):
    """torch converts most numbers without a look; these ops look, and let negative ones wrap in unsigned dtypes."""
    torch = pytest.importorskip("torch", reason="torch is the oracle")
    ours, theirs = CHECKED[op]
    b = flexor.Builder()
    f = b.function("main", inputs=[("x", dtype, ["N"]), ("n", "int")])
    f.output(ours(f, *f.inputs))
    session, module, x = flexor.Session(compile=compile), b.build(), torch.tensor([0, 1, 4, 127]).to(getattr(torch, dtype))
    for n in (0, 2, 127, 128, 255, 256, 2**31, 2**40) + (() if op == "pow" else (-1, -128, -129, -255, -256, -(2**40))):
        try:
            wanted = theirs(x, n)
        except RuntimeError as error:
            assert "without overflow" in str(error)
            with pytest.raises(RuntimeError, match="E0405"):
                session.run(module, x, n)
        else:
            assert torch.equal(session.run(module, x, n), wanted), n
