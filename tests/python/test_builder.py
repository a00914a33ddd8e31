"""What the operators of the Builder write."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import flexor

SESSIONS = [flexor.Session(compile=False), flexor.Session()]


def scalars(body):
    """main(n: int, x: f32[S]) = body(n, x)"""
    b = flexor.Builder()
    f = b.function("main")
    n = f.input("n", "int")
    x = f.input("x", "float32", ["S"])
    f.output(body(n, x))
    return b.build()


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        (lambda n, x: 1 + n, 8),
        (lambda n, x: 1 - n, -6),
        (lambda n, x: 3 * n, 21),
        (lambda n, x: 2 / n, 2 / 7),
        (lambda n, x: 2**n, 128),
        (lambda n, x: 30 // n, 4),
        (lambda n, x: 30 % n, 2),
        (lambda n, x: n + 1, 8),
        (lambda n, x: n**2, 49),
        (lambda n, x: -n, -7),
    ],
)
def test_arithmetic_on_scalars_is_python_s_on_both_sides(expression, wanted):
    module = scalars(expression)
    assert "CALL_OP" not in module.dis()
    for session in SESSIONS:
        got = session.run(module, 7, np.ones(3, np.float32))
        assert type(got) is type(wanted)
        assert got == wanted


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        (lambda n, x: n + x, [8, 9]),
        (lambda n, x: x + n, [8, 9]),
        (lambda n, x: n - x, [6, 5]),
        (lambda n, x: 1 - x, [0, -1]),
        (lambda n, x: 1 / x, [1, 0.5]),
        (lambda n, x: 2**x, [2, 4]),
        (lambda n, x: n < x, [False, False]),
    ],
)
def test_a_scalar_beside_a_tensor_is_an_operand_of_the_op(expression, wanted):
    module = scalars(expression)
    for session in SESSIONS:
        got = session.run(module, 7, np.array([1, 2], np.float32))
        assert np.asarray(got).tolist() == wanted


def test_what_is_interpreted_by_design_is_told_as_information(caplog):
    b = flexor.Builder()
    f = b.function("main")
    x = f.input("x", "float32", ["S"])
    f.output(f.mul(f.call_foreign("host"), x))
    module = b.build()
    session = flexor.Session()
    session.bind("host", lambda: 2.0)
    with caplog.at_level(logging.INFO, logger="flexor"):
        session.run(module, np.array([1, 0, 2], np.float32))
    told = [(record.levelno, record.message.split()[0]) for record in caplog.records]
    if flexor._flexor.has_code_generator():
        assert (logging.INFO, "interpreted") in told
    assert "compile_failed" not in [kind for _, kind in told]
    assert session.stats()["failed_compilations"] == 0


def test_weights_of_torch_are_taken_as_they_read():
    torch = pytest.importorskip("torch", reason="torch is the oracle")
    b = flexor.Builder()
    for refused in (torch.ones(3, device="meta"), torch.ones(3).to_sparse()):
        with pytest.raises(flexor.NotSupported, match="w"):
            b.weight("w", refused)
    negated = torch.conj(torch.tensor([1 + 2j, 3 - 4j])).imag  # a lazily negated view
    assert negated.is_neg()
    f = b.function("main")
    f.output(f.weight(b.weight("v", negated)))
    assert flexor.Session().run(b.build()).tolist() == [-2.0, 4.0]


@pytest.mark.parametrize(
    "use",
    [
        lambda f, theirs: f.input("y", "float32", [theirs]),
        lambda f, theirs: f.expand(f.inputs[0], shape=[theirs, 4]),
        lambda f, theirs: f.inputs[0] + theirs,
        lambda f, theirs: f.inputs[0] * (f.inputs[0].shape[0] + theirs),
    ],
    ids=["a declared size", "a list of sizes", "an operand", "beside a symbol"],
)
def test_a_symbol_of_another_builder_is_refused(use):
    other = flexor.Builder()
    for name in "ABC":
        theirs = other.symbol(name)
    f = flexor.Builder().function("main", inputs=[("x", "float32", ["N", 4])])
    with pytest.raises(flexor.ModuleError, match="E0112.*\n.*\n.*C of another Builder"):
        use(f, theirs)


def test_a_weight_of_another_builder_is_refused():
    theirs = flexor.Builder().weight("w", np.zeros(4, np.float32))
    b = flexor.Builder()
    b.weight("w", np.ones(4, np.float32))
    f = b.function("main", inputs=[("x", "float32", ["N", 4])])
    with pytest.raises(flexor.ModuleError, match="E0112"):
        f.inputs[0] + theirs
    with pytest.raises(flexor.ModuleError, match="E0112"):
        f.weight(theirs)


def test_a_size_that_only_the_run_knows_declares_nothing():
    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "f32[...]")])
    size = f.inputs[0].type  # "?": of any rank
    assert size == "?"
    with pytest.raises(flexor.ModuleError, match="E0117"):
        f.input("y", "float32", [f._native.input("z", "f32[...]").size(0)])
