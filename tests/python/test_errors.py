"""Refusals reach Python with their number and as the exception of their kind; the program still runs afterwards."""

import numpy as np
import pytest

flexor = pytest.importorskip("flexor", reason="the engine is not built")


def program(inputs, body):
    b = flexor.Builder()
    f = b.function("main", inputs=inputs)
    f.output(body(f, *f.inputs))
    return b.build()


def refused(kind, code, call):
    with pytest.raises(kind) as caught:
        call()
    assert caught.value.code == code
    assert caught.value.name
    assert str(caught.value).startswith(code)
    return str(caught.value)


def test_a_rank_that_the_op_does_not_take():
    text = refused(flexor.ShapeError, "E0302", lambda: program([("x", "float32", ["N"])], lambda f, x: x.tril()))
    assert "tril" in text
    unknown = flexor.from_text(".func main(x: f32[...]) -> 1\n  LOAD_LOCAL x\n  CALL_OP tril 1\n  RETURN 1\n")
    refused(flexor.ShapeError, "E0302", lambda: unknown(np.ones(3, np.float32)))
    assert np.array_equal(unknown(np.ones((2, 2), np.float32)), [[1, 0], [1, 1]])


def test_memory_that_the_system_does_not_have():
    text = """.func main(x: f32[N]) -> 1
  LOAD_LOCAL x
  CALL_OP expand 1 shape=[33554432, N]
  LOAD_CONST 1.0
  CALL_OP add 2
  RETURN 1
"""
    module = flexor.from_text(text)
    session = flexor.Session()
    refused(flexor.ResourceLimit, "E0602", lambda: session.run(module, np.broadcast_to(np.float32(1), 1 << 25)))
    with pytest.raises(MemoryError):
        session.run(module, np.broadcast_to(np.float32(1), 1 << 25))


def test_an_argument_that_requires_grad():
    torch = pytest.importorskip("torch", reason="torch is the oracle")
    module = program([("x", "float32", ["N"])], lambda f, x: x.relu())
    text = refused(flexor.ArgumentError, "E0510", lambda: module(torch.ones(3, requires_grad=True)))
    assert "no_grad" in text
    with torch.no_grad():
        assert torch.equal(module(torch.ones(3, requires_grad=True)), torch.ones(3))


def test_a_write_to_a_read_only_array():
    module = program([("x", "float32", ["N"])], lambda f, x: f.op("add_", x, 1.0))
    fixed = np.zeros(3, np.float32)
    fixed.flags.writeable = False
    text = refused(flexor.ArgumentError, "E0511", lambda: module(fixed))
    assert "hint" in text
    assert not fixed.any()
    assert module(np.zeros(3, np.float32)).tolist() == [1, 1, 1]


def test_every_refusal_has_a_number_and_a_kind():
    with pytest.raises(flexor.ModuleError) as caught:
        flexor.from_text(".func main() -> 1\n  LOAD_CONST 1\n  CALL_OP no_such_op 1\n  RETURN 1\n")
    assert (caught.value.code, caught.value.name) == ("E0108", "UnknownOp")
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, flexor.FlexorError)
