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


def test_what_torch_says_is_one_line():
    torch = pytest.importorskip("torch", reason="torch is the oracle")
    module = program([("x", "float32", ["N"])], lambda f, x: x.relu())
    for unreadable in (torch.ones(3).to_sparse(), torch.ones(3, device="meta"), torch.ones(3).conj().to(torch.complex64).imag):
        try:
            module(unreadable)
        except flexor.FlexorError as error:
            assert error.code in ("E0704", "E0403")
            for trace in ("C++", "frame #", "Exception raised", ".cpp"):
                assert trace not in str(error)


class Bad:
    """An object that says it speaks DLPack."""

    def __init__(self, given):
        self.given = given

    def __dlpack__(self, *arguments, **named):
        if isinstance(self.given, BaseException):
            raise self.given
        return self.given

    def __dlpack_device__(self):
        return (1, 0)


@pytest.mark.parametrize("given", [3, None, ValueError("no\nmemory"), BufferError()], ids=repr)
def test_a_dlpack_that_is_none(given):
    module = program([("x", "float32", ["N"])], lambda f, x: x.relu())
    text = refused(flexor.NotSupported, "E0704", lambda: module(Bad(given)))
    assert "__dlpack__" in text
    assert "memory" not in text


def test_an_interrupt_in_dlpack_is_an_interrupt():
    module = program([("x", "float32", ["N"])], lambda f, x: x.relu())
    with pytest.raises(KeyboardInterrupt):
        module(Bad(KeyboardInterrupt()))


def test_integers_beyond_64_bits():
    module = program([("n", "int"), ("v", "any")], lambda f, n, v: n)
    assert module(2**63 - 1, None) == 2**63 - 1
    for call in (lambda: module(2**63, None), lambda: module(-(2**63) - 1, None), lambda: module(1, [2**64])):
        refused(flexor.SizeOverflowError, "E0309", call)
        with pytest.raises(OverflowError):
            call()
    assert module(np.int64(5), None) == 5


@pytest.mark.parametrize(
    ("kind", "given", "wanted"),
    [
        ("int", np.int64(3), 3),
        ("int", np.uint8(3), 3),
        ("float", np.float32(0.5), 0.5),
        ("float", np.float64(0.5), 0.5),
        ("float", np.int32(2), 2.0),
        ("float", 2, 2),
        ("bool", np.bool_(True), True),
        ("bool", False, False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_scalars_of_numpy_are_scalars(kind, given, wanted):
    module = program([("x", kind)], lambda f, x: x)
    for got in (module(given), module(x=given), flexor.Session(compile=False).run(module, given)):
        assert got == wanted
        assert not isinstance(got, np.ndarray)
    assert module.explain(given).count("\n") > 1


def test_objects_with_index_or_float_are_scalars():
    class Two:
        def __index__(self):
            return 2

    class Half:
        def __float__(self):
            return 0.5

    assert program([("n", "int")], lambda f, n: n + 1)(Two()) == 3
    assert program([("r", "float")], lambda f, r: r * 3.0)(Half()) == 1.5
    refused(flexor.DTypeError, "E0404", lambda: program([("n", "int")], lambda f, n: n)(Half()))
    with pytest.raises(ZeroDivisionError):
        program([("n", "int")], lambda f, n: n)(type("Fails", (), {"__index__": lambda self: 1 // 0})())


@pytest.mark.parametrize("given", [1.5, np.float32(1), np.ones((), np.int64), "1", None, [1]], ids=repr)
def test_what_is_no_integer_is_named(given):
    module = program([("n", "int")], lambda f, n: n)
    with pytest.raises(flexor.FlexorError) as caught:
        module(given)
    assert caught.value.code in ("E0404", "E0506")
    assert "operand n" in str(caught.value)
    assert "expected int" in str(caught.value)


@pytest.mark.parametrize("compile", [True, False], ids=["compiled", "interpreted"])
def test_a_result_that_numpy_cannot_hold(compile):
    module = program([("x", "float32", ["N", "M"])], lambda f, x: x.expand(2**31, 2**33))
    session = flexor.Session(compile=compile)
    with pytest.raises(OverflowError) as caught:
        session.run(module, np.ones((1, 1), np.float32))
    assert isinstance(caught.value, flexor.FlexorError)
    assert caught.value.code == "E0309"


@pytest.mark.parametrize("compile", [True, False], ids=["compiled", "interpreted"])
def test_a_result_that_torch_cannot_hold(compile):
    torch = pytest.importorskip("torch", reason="torch is the oracle")
    module = program([("x", "float32", ["N", "M"])], lambda f, x: x.expand(2**31, 2**33))
    session = flexor.Session(compile=compile)
    for _ in range(3):
        text = refused(flexor.NotSupported, "E0704", lambda: session.run(module, torch.ones(1, 1)))
        assert "C++" not in text


def test_which_index_is_out_of_range():
    module = program([("i", "int64", ["N"]), ("t", "float32", ["R", 4])], lambda f, i, t: f.embedding(i, t).exp())
    table = np.zeros((5, 4), np.float32)
    assert module(np.array([4]), table).shape == (1, 4)
    text = refused(flexor.IndexShapeError, "E0307", lambda: module(np.array([0, 7, 9]), table))
    assert "found 7" in text
    assert "[0, 5)" in text


def test_optional_inputs_may_be_left_out():
    b = flexor.Builder()
    f = b.function("main")
    x = f.input("x", "float32", ["N"])
    y = f.input("y", "float32", ["N"], optional=True)
    z = f.input("z", "float32", ["N"], optional=True)
    f.output(f.if_none(y, lambda: x, lambda: x + y), f.if_none(z, lambda: 0, lambda: 1))
    module, one = b.build(), np.ones(2, np.float32)
    for call in (module, lambda *a, **n: flexor.Session(compile=False).run(module, *a, **n)):
        assert [call(one)[0].tolist(), call(one)[1]] == [[1, 1], 0]
        assert [call(one, one)[0].tolist(), call(one, one)[1]] == [[2, 2], 0]
        assert [call(one, z=one)[0].tolist(), call(one, z=one)[1]] == [[1, 1], 1]
    assert "1 to 3" in refused(flexor.ArgumentError, "E0501", lambda: module())
    refused(flexor.ArgumentError, "E0501", lambda: module(one, one, one, one))
    refused(flexor.ArgumentError, "E0506", lambda: module(y=one))


def test_explain_takes_what_a_call_takes():
    module = program([("x", "float32", ["N"]), ("n", "int")], lambda f, x, n: x * n)
    one = np.ones(7, np.float32)
    for text in (module.explain(one, 3), module.explain(n=3, x=one), flexor.Session().explain(module, one, n=np.int64(3))):
        assert "f32[7], 3" in text
    assert module.explain().startswith("load")
    assert "profile:" in module.explain(profile=True) and "profile:" in module.explain(one, 3, profile=True)
    refused(flexor.DTypeError, "E0404", lambda: module.explain(profile="yes"))
    with pytest.raises(TypeError, match="'m'"):
        module.explain(one, m=3)
    with pytest.raises(TypeError, match="Module"):
        flexor.Session().explain(one)


def test_a_function_that_the_module_does_not_have():
    module = program([("x", "float32", ["N"])], lambda f, x: x)
    text = refused(flexor.FunctionNotFound, "E0112", lambda: module["mian"])
    assert "main" in text
    with pytest.raises(KeyError):
        module["mian"]


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("compile", lambda m: flexor.Session(compile="yes")),
        ("exact_only", lambda m: flexor.Session(exact_only=1)),
        ("threads", lambda m: flexor.Session(threads="2")),
        ("after", lambda m: flexor.default_session().events("1")),
        ("name", lambda m: flexor.Session().bind(3, print)),
        ("function", lambda m: flexor.Session().bind("f", 3)),
        ("name", lambda m: flexor.Session().bind_value(3, 3)),
        ("module", lambda m: flexor.Session().prepare(3)),
        ("function", lambda m: m[3]),
        ("text", lambda m: flexor.from_text(3)),
        ("name", lambda m: flexor.from_text("", 3)),
    ],
)
def test_a_wrong_kind_is_named(argument, call):
    module = program([("x", "float32", ["N"])], lambda f, x: x)
    text = refused(flexor.DTypeError, "E0404", lambda: call(module))
    assert argument in text
    with pytest.raises(TypeError):
        call(module)


def test_prepare_refuses_ranges_that_are_none():
    module = program([("x", "float32", ["N"])], lambda f, x: x.relu())
    session = flexor.Session()
    session.prepare(module, {"N": (np.int64(1), 9)})
    session.prepare(module)
    refused(flexor.ModuleError, "E0112", lambda: session.prepare(module, {"M": (1, 2)}))
    refused(flexor.ModuleError, "E0113", lambda: session.prepare(module, {"N": (2, 1)}))
    for ranges in ({"N": 3}, {"N": (1, 2, 3)}, {"N": ("1", 2)}):
        refused(flexor.DTypeError, "E0404", lambda r=ranges: session.prepare(module, r))
    hosted = program([("x", "float32", ["N"])], lambda f, x: f.call_foreign("host", x))
    refused(flexor.NotSupported, "E0705", lambda: session.prepare(hosted))


@pytest.mark.parametrize("compile", [True, False], ids=["compiled", "interpreted"])
def test_interrupt_stops_a_run_from_another_thread(compile):
    import threading

    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "float32", ["N"])])
    f.output(f.while_loop([f.inputs[0]], lambda x: (x.sum() > -1.0).item(), lambda x: x * 0.5))
    module, session = b.build(), flexor.Session(compile=compile)
    stop = threading.Event()

    def ring():
        while not stop.wait(0.05):
            session.interrupt()

    ringing = threading.Thread(target=ring)
    ringing.start()
    try:
        refused(flexor.Interrupted, "E0509", lambda: session.run(module, np.ones(4, np.float32)))
    finally:
        stop.set()
        ringing.join()


def test_prepare_names_what_is_no_device():
    module = program([("x", "float32", ["N"])], lambda f, x: x * 2)
    session = flexor.Session()
    for wrong in ("mps", "cuda:x", True, 1.5):
        refused(flexor.DTypeError, "E0404", lambda wrong=wrong: session.prepare(module, device=wrong))
    session.prepare(module, device="cpu")
    if "libcuda.so.1, CUDA" not in flexor.doctor():
        refused(flexor.FlexorError, "E0709", lambda: session.prepare(module, device="cuda"))
