"""The Builder's verbs in Python: those of C++, each with what it writes, and what each says to an argument of a wrong kind."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import flexor
from flexor import _ops

HEADERS = Path(__file__).resolve().parents[2] / "include" / "flexor"
SESSIONS = [flexor.Session(compile=False), flexor.Session()]

# What C++ spells otherwise, and why.
ELSEWHERE = {
    "Builder": {
        "numpy_promotion": 'Builder(promotion="numpy")',
        "set_location": "every call notes the line that it comes from",
        "clear_location": "every call notes the line that it comes from",
        "error": "the first refusal is raised at once",
    },
    "FunctionBuilder": {"require_size": "input refuses what is no size", "take": "load, for take is an op"},
    "Var": {"valid": "there is no handle without a value", "rank": "ndim"},
    "SymbolicInt": {"to_string": "str()", "floor_div": "//", "min": "minimum", "max": "maximum"},
    "Session": {
        "run_function": "a Module is one function: module[name]",
        "run_into": "Session.run",
        "function_index": "module[name]",
        "example_arguments": "explain without inputs",
        "set_event_sink": "the logger flexor",
        "options": "the arguments of the constructor",
        "error": "raised by the constructor",
        "has_code_generator": "flexor._flexor",
        "default_session": "flexor.default_session",
        "doctor": "flexor.doctor",
        "set_device_compiler": "this interpreter, which has Triton or not",
    },
    "Module": {
        "from_text": "flexor.from_text",
        "load": "flexor.load",
        "from_bytes": "pickle",
        "to_bytes": "pickle",
        "disassemble": "dis",
        "weight": "weights",
        "writes_arguments": "an op that writes says so in its name",
        "id": "id()",
        "impl": "of the library",
    },
}
CLASSES = {
    "Builder": ("builder.h", flexor.Builder),
    "FunctionBuilder": ("builder.h", flexor.FunctionBuilder),
    "Var": ("builder.h", flexor.Var),
    "SymbolicInt": ("builder.h", flexor.Symbol),
    "Session": ("session.h", flexor.Session),
    "Module": ("module.h", flexor.Module),
}


def verbs_of_header(header, name):
    """Names of the public member functions of a class, constructors and operators left out."""
    text = re.sub(r"//[^\n]*", "", (HEADERS / header).read_text())
    body = re.search(rf"class FLEXOR_API {name} {{(.*?)\n}};", text, re.DOTALL).group(1)
    public = body.split("private:")[0]
    depth, flat = 0, []
    for character in public:
        depth -= character in ")}"
        if depth == 0:
            flat.append(character)
        depth += character in "({"
    found = set(re.findall(r"(\w+)\(\)", "".join(flat)))
    return {verb for verb in found if verb != name and not verb.startswith("operator") and not verb.endswith("_")}


@pytest.mark.parametrize("name", CLASSES)
def test_python_has_every_verb_of_the_header(name):
    header, cls = CLASSES[name]
    verbs = verbs_of_header(header, name)
    assert len(verbs) >= 4, verbs
    elsewhere = ELSEWHERE.get(name, {})
    missing = {verb for verb in verbs if not hasattr(cls, verb)} - elsewhere.keys()
    assert not missing, f"{name} of {header} has {sorted(missing)}, Python has not"
    assert elsewhere.keys() <= verbs, "the table of other spellings names what the header does not have"


def test_no_op_hides_behind_a_verb():
    """A method of FunctionBuilder with the name of an op is that op."""
    for name in _ops.OPS:
        assert name not in vars(flexor.FunctionBuilder), name


# ---------------------------------------------------------------- what the verbs write


def run(body, *arguments, inputs=(("x", "float32", ["N"]),), bind=None):
    """main(inputs) = body(f, *inputs), interpreted and compiled; the results must agree."""
    b = flexor.Builder()
    f = b.function("main", inputs=inputs)
    results = body(f, *f.inputs)
    f.output(*results if isinstance(results, (list, tuple)) else (results,))
    module = b.build()
    got = []
    for session in SESSIONS:
        if bind is not None:
            bind(session)
        got.append(session.run(module, *arguments))
    assert repr(got[0]) == repr(got[1])
    return got[1]


ONES = np.ones(3, np.float32)


def test_dicts_and_unpacked_lists():
    def body(f, x):
        pair = f.dict({"twice": x * 2.0, "size": x.size(0)})
        first, second = f.unpack(f.list(f.dict_get(pair, "twice"), f.dict_get(pair, "size")), 2)
        return first, second, pair

    twice, size, pair = run(body, ONES)
    assert twice.tolist() == [2, 2, 2]
    assert size == 3
    assert pair["size"] == 3
    with pytest.raises(flexor.ModuleError, match="E0117"):
        run(lambda f, x: f.unpack(f.list(x, x), 3), ONES)
    with pytest.raises(flexor.FlexorError, match="E0112"):
        run(lambda f, x: f.dict_get(f.dict({"a": x}), "b"), ONES)


def test_functions_as_values():
    b = flexor.Builder()
    double = b.function("double", inputs=[("v", "float32", ["M"])])
    double.output(double.inputs[0] * 2.0)
    f = b.function("main", inputs=[("x", "float32", ["N"])])
    f.output(f.call_value(f.function_value("double"), f.inputs[0]))
    module = b.build()
    for session in SESSIONS:
        assert session.run(module, ONES).tolist() == [2, 2, 2]


class Scale:
    def __init__(self, factor):
        self.factor = factor
        self.calls = []

    def __call__(self, x):
        self.calls.append(x)
        return x * self.factor


def test_objects_of_the_host_are_called_read_and_handed_back():
    scale = Scale(3.0)

    def body(f, x):
        held = f.foreign_value("scale")
        return f.call_value(held, x), f.attribute_of(held, "factor"), held

    scaled, factor, held = run(body, ONES, bind=lambda session: session.bind_value("scale", scale))
    assert scaled.tolist() == [3, 3, 3]
    assert factor == 3.0
    assert held is scale
    assert isinstance(scale.calls[0], np.ndarray)
    with pytest.raises(AttributeError, match="missing"):
        run(lambda f, x: f.attribute_of(f.foreign_value("scale"), "missing"), ONES)


def test_a_foreign_value_by_text_and_as_an_argument():
    text = ".func main(x: any) -> 1\n  LOAD_LOCAL x\n  GET_ATTRIBUTE factor\n  RETURN 1\n"
    module = flexor.from_text(text)
    assert module(Scale(2.5)) == 2.5
    with pytest.raises(flexor.DTypeError, match="E0404"):
        module(1)
    with pytest.raises(flexor.DTypeError, match="Scale"):
        flexor.from_text(".func main(x: f32[N]) -> 1\n  LOAD_LOCAL x\n  RETURN 1\n")(Scale(1))


def test_values_that_are_bound_by_name():
    for value, wanted in ((2, 2), ("text", "text"), ([1, 2.5], [1, 2.5]), (None, None)):
        assert run(lambda f, x: f.foreign_value("v"), ONES, bind=lambda s, v=value: s.bind_value("v", v)) == wanted
    table = np.arange(3, dtype=np.float32)
    got = run(lambda f, x: x + f.foreign_value("t"), ONES, bind=lambda session: session.bind_value("t", table))
    assert got.tolist() == [1, 2, 3]
    with pytest.raises(flexor.NotSupported, match="E0705"):
        run(lambda f, x: f.foreign_value("nobody"), ONES)


def test_what_a_foreign_object_raises_leaves_the_run_and_explain():
    def fails(x):
        raise LookupError("of the host")

    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "float32", ["N"])])
    f.output(f.call_value(f.foreign_value("fails"), f.inputs[0]))
    module = b.build()
    session = flexor.Session()
    session.bind_value("fails", fails)
    for call in (session.run, session.explain):
        with pytest.raises(LookupError, match="of the host"):
            call(module, ONES)
    with pytest.raises(LookupError, match="of the host"):
        session.explain(module)
    session.bind_value("fails", lambda x: x)
    assert session.run(module, ONES).tolist() == [1, 1, 1]


def test_unstructured_code():
    """x halved until its sum is at most 4, or x itself where there is no limit; by labels and variables."""
    b = flexor.Builder()
    f = b.function("main")
    x = f.input("x", "float32", ["N"])
    limit = f.input("limit", "float32", [], optional=True)
    entry, head, body, done, plain = (f.label() for _ in range(5))
    value = f.variable("value")
    f.place(entry)
    f.store(value, x)
    f.branch_none(limit, plain, head)
    f.place(head)
    held = f.load(value, x)
    f.store(value, held)
    f.branch((held.sum() > limit).item(), body, done)
    f.place(body)
    f.store(value, f.load(value, x) * 0.5)
    f.jump(head)
    f.place(done)
    f.give(f.load(value, x), f.size(x, 0))
    f.place(plain)
    f.give(x, 0)
    module = b.build()
    eights = np.full(4, 8, np.float32)
    for session in SESSIONS:
        halved, size = session.run(module, eights, np.float32(4))
        assert (halved.tolist(), size) == ([1, 1, 1, 1], 4)
        assert session.run(module, eights)[1] == 0


def test_a_builder_survives_an_exception_inside_a_branch():
    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "float32", ["N"])])
    (x,) = f.inputs

    def fails():
        raise LookupError("while building")

    for build in (lambda: f.if_else(True, fails, fails), lambda: f.while_loop([x], lambda v: fails(), lambda v: v)):
        with pytest.raises(LookupError):
            build()
    f.output(x + 1.0)
    assert b.build()(ONES).tolist() == [2, 2, 2]


def test_ops_always_gives_a_list_and_split_does_whatever_its_sizes():
    def body(f, x):
        assert isinstance(f.ops("relu", x), list)
        (whole,) = f.split(x, sizes=[3])
        first, second = f.split(x, sizes=[1, 2])
        return whole, first, second

    whole, first, second = run(body, ONES, inputs=(("x", "float32", [3]),))
    assert (whole.shape, first.shape, second.shape) == ((3,), (1,), (2,))


def test_sizes_are_numbers_or_expressions():
    b = flexor.Builder()
    s = b.symbol("S", 1, 8)
    f = b.function("main", inputs=[("x", "float32", [s, 4])])
    (x,) = f.inputs
    rows, columns = x.shape
    assert (rows.is_constant(), columns.is_constant(), columns.constant()) == (False, True, 4)
    assert str(x.size(-1)) == "4"
    with pytest.raises(flexor.DTypeError, match="E0404"):
        rows.constant()
    f.output(f.constant(9 // rows), f.constant(9 % rows))
    assert b.build()(np.ones((4, 4), np.float32)) == (2, 1)


def test_a_shape_that_is_not_known_is_refused():
    b = flexor.Builder()
    f = b.function("main")
    x = f.input("x", "any[...]")
    with pytest.raises(flexor.ShapeError, match="E0302"):
        x[..., 0]


@pytest.mark.parametrize("number", [np.int64(2), np.float32(2), np.float64(2), np.bool_(True), np.int8(2)], ids=lambda n: n.dtype.name)
def test_numpy_scalars_are_numbers(number):
    same = number.item()
    wanted = run(lambda f, x: (x * same, f.constant(same)), ONES)
    got = run(lambda f, x: (x * number, f.constant(number)), ONES)
    assert repr(got) == repr(wanted)


def test_numbers_of_other_types_are_numbers():
    class Two:
        def __index__(self):
            return 2

    class Half:
        def __float__(self):
            return 0.5

    def body(f, x):
        return x.unsqueeze(axis=np.int64(0)) * Half(), f.constant(Two()), x[np.int32(1)], x[Two() :]

    halves, two, element, rest = run(body, ONES)
    assert (halves.tolist(), two, element, rest.shape) == ([[0.5] * 3], 2, 1.0, (1,))


# ---------------------------------------------------------------- wrong kinds

THING = object()
WRONG = {
    "symbol": [("name", lambda b, f, x: b.symbol(3)), ("lo", lambda b, f, x: b.symbol("T", "1")), ("hi", lambda b, f, x: b.symbol("T", 1, THING))],
    "weight": [("name", lambda b, f, x: b.weight(3, ONES)), ("weight", lambda b, f, x: f.weight("w"))],
    "function": [("name", lambda b, f, x: b.function(3)), ("inputs", lambda b, f, x: b.function("g", 3))],
    "metadata": [("key", lambda b, f, x: b.metadata(1, "a")), ("value", lambda b, f, x: b.metadata("a", 1))],
    "input": [("name", lambda b, f, x: f.input(3, "int")), ("dtype", lambda b, f, x: f.input("y", 3)), ("shape", lambda b, f, x: f.input("y", "int32", "N"))],
    "constant": [("value", lambda b, f, x: f.constant(THING))],
    "op": [("name", lambda b, f, x: f.op(3, x))],
    "ops": [("x", lambda b, f, x: f.ops("relu", THING))],
    "scalar": [("name", lambda b, f, x: f.scalar(3, x)), ("operands", lambda b, f, x: f.scalar("neg", THING))],
    "item": [("value", lambda b, f, x: f.item(3))],
    "frozen": [("value", lambda b, f, x: f.frozen(3, 0)), ("axis", lambda b, f, x: f.frozen(x, "0"))],
    "require": [("condition", lambda b, f, x: f.require(THING, "no")), ("message", lambda b, f, x: f.require(True, 3))],
    "list": [("elements", lambda b, f, x: f.list(THING))],
    "append": [("values", lambda b, f, x: f.append(3, x)), ("element", lambda b, f, x: f.append(f.list(x), THING))],
    "get": [("values", lambda b, f, x: f.get(3, 0)), ("index", lambda b, f, x: f.get(f.list(x), THING)), ("promise", lambda b, f, x: f.get(f.list(x), 0, promise=3))],
    "promise": [("value", lambda b, f, x: f.promise(3, "f32[?]")), ("type", lambda b, f, x: f.promise(x, 3))],
    "set": [
        ("values", lambda b, f, x: f.set(3, 0, x)),
        ("index", lambda b, f, x: f.set(f.list(x), THING, x)),
        ("element", lambda b, f, x: f.set(f.list(x), 0, THING)),
    ],
    "length": [("values", lambda b, f, x: f.length([x]))],
    "unpack": [("values", lambda b, f, x: f.unpack(3, 1)), ("count", lambda b, f, x: f.unpack(f.list(x), None))],
    "dict": [("items", lambda b, f, x: f.dict([x])), ("keys", lambda b, f, x: f.dict({1: x})), ("a", lambda b, f, x: f.dict({"a": THING}))],
    "dict_get": [("items", lambda b, f, x: f.dict_get(3, "a")), ("key", lambda b, f, x: f.dict_get(f.dict({"a": x}), 3))],
    "call": [
        ("function", lambda b, f, x: f.call(3)),
        ("results", lambda b, f, x: f.call("main", results="2")),
        ("arguments", lambda b, f, x: f.call("main", THING)),
    ],
    "call_foreign": [("hook", lambda b, f, x: f.call_foreign(3)), ("arguments", lambda b, f, x: f.call_foreign("h", THING)), ("promise", lambda b, f, x: f.call_foreign("h", promise=int))],
    "function_value": [("name", lambda b, f, x: f.function_value(3))],
    "foreign_value": [("name", lambda b, f, x: f.foreign_value(3))],
    "attribute_of": [("foreign", lambda b, f, x: f.attribute_of(3, "a")), ("name", lambda b, f, x: f.attribute_of(f.foreign_value("v"), 3))],
    "call_value": [("callee", lambda b, f, x: f.call_value(3)), ("arguments", lambda b, f, x: f.call_value(f.foreign_value("v"), THING))],
    "if_else": [
        ("condition", lambda b, f, x: f.if_else(THING, lambda: x, lambda: x)),
        ("then", lambda b, f, x: f.if_else(True, x, lambda: x)),
        ("otherwise", lambda b, f, x: f.if_else(True, lambda: x, lambda: THING)),
    ],
    "if_none": [
        ("value", lambda b, f, x: f.if_none(THING, lambda: x, lambda: x)),
        ("then", lambda b, f, x: f.if_none(None, 3, lambda: x)),
        ("otherwise", lambda b, f, x: f.if_none(None, lambda: x, lambda: THING)),
    ],
    "while_loop": [
        ("initial", lambda b, f, x: f.while_loop(3, lambda v: True, lambda v: v)),
        ("condition", lambda b, f, x: f.while_loop([x], lambda v: THING, lambda v: v)),
        ("body", lambda b, f, x: f.while_loop([x], lambda v: True, 3)),
    ],
    "output": [("out0", lambda b, f, x: f.output(THING)), ("names", lambda b, f, x: f.output(x, names="ab"))],
    "size": [
        ("axis", lambda b, f, x: x.size("0")),
        ("axis", lambda b, f, x: f.size(x, None)),
        ("value", lambda b, f, x: f.size(3, 0)),
    ],
    "place": [("label", lambda b, f, x: f.place("entry"))],
    "jump": [("target", lambda b, f, x: f.jump(3))],
    "branch": [
        ("condition", lambda b, f, x: f.branch(THING, f.label(), f.label())),
        ("then", lambda b, f, x: f.branch(True, 3, f.label())),
        ("otherwise", lambda b, f, x: f.branch(True, f.label(), None)),
    ],
    "branch_none": [
        ("value", lambda b, f, x: f.branch_none(THING, f.label(), f.label())),
        ("then", lambda b, f, x: f.branch_none(None, 3, f.label())),
        ("otherwise", lambda b, f, x: f.branch_none(None, f.label(), 3)),
    ],
    "give": [("results", lambda b, f, x: f.give(THING))],
    "variable": [("name", lambda b, f, x: f.variable(3))],
    "store": [("variable", lambda b, f, x: f.store("v", x)), ("value", lambda b, f, x: f.store(f.variable("v"), THING))],
    "load": [("variable", lambda b, f, x: f.load(x)), ("like", lambda b, f, x: f.load(f.variable("v"), 3))],
    "reshape": [
        ("2", lambda b, f, x: f.reshape(x, [3, 2])),
        ("shape", lambda b, f, x: x.reshape([1.5, 2])),
        ("x", lambda b, f, x: f.reshape("x", shape=[3])),
    ],
    "add": [("y", lambda b, f, x: x + THING), ("y", lambda b, f, x: x + [1.0]), ("x", lambda b, f, x: ONES + f.add(ONES, x))],
    "cast": [("dtype", lambda b, f, x: x.cast(THING))],
    "softmax": [("axis", lambda b, f, x: f.softmax(x, axis=1.5)), ("axis", lambda b, f, x: x.softmax(axis=None))],
    "reduce_sum": [("keepdim", lambda b, f, x: x.sum(keepdim=None)), ("axes", lambda b, f, x: f.reduce_sum(x, axes="0"))],
    "gelu": [("approximate", lambda b, f, x: f.gelu(x, approximate=True))],
    "elu": [("alpha", lambda b, f, x: f.elu(x, alpha="1"))],
    "concat": [("parts", lambda b, f, x: f.concat([x, 1.0], axis=0))],
}
CASES = [(verb, argument, call) for verb, calls in WRONG.items() for argument, call in calls]


@pytest.mark.parametrize(("verb", "argument", "call"), CASES, ids=[f"{verb}-{argument}" for verb, argument, _ in CASES])
def test_a_wrong_kind_names_the_argument_and_the_kind(verb, argument, call):
    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "float32", ["N"])])
    with pytest.raises(TypeError) as caught:
        call(b, f, f.inputs[0])
    text = str(caught.value)
    assert isinstance(caught.value, flexor.DTypeError) and caught.value.code == "E0404", text
    assert re.search(rf"\b{re.escape(argument)}\b", text), text
    assert "expected" in text or "dtype" in text, text


def test_every_verb_is_asked_with_a_wrong_kind():
    verbs = {name for name, _ in inspect.getmembers(flexor.FunctionBuilder, inspect.isfunction) if name in vars(flexor.FunctionBuilder)}
    verbs |= {name for name in vars(flexor.Builder) if not name.startswith("_")}
    asked = set(WRONG) | {"build", "label"}  # which take nothing
    assert {verb for verb in verbs if not verb.startswith("_")} <= asked


def test_a_wrong_kind_hints_at_attributes_by_name():
    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "float32", ["N"])])
    with pytest.raises(TypeError, match="attributes are given by name: shape="):
        f.reshape(f.inputs[0], [3, 2])


@pytest.mark.parametrize(
    ("code", "kind", "call"),
    [
        ("E0309", OverflowError, lambda b, f, x: x + 2**63),
        ("E0309", OverflowError, lambda b, f, x: f.constant(-(2**63) - 1)),
        ("E0309", OverflowError, lambda b, f, x: x.unsqueeze(axis=2**70)),
        ("E0309", OverflowError, lambda b, f, x: x.reshape([2**64])),
        ("E0309", OverflowError, lambda b, f, x: b.symbol("T", 0, 2**64)),
        ("E0309", OverflowError, lambda b, f, x: f.frozen(x, 2**40)),
        ("E0110", flexor.ModuleError, lambda b, f, x: x.cast("float99")),
        ("E0401", TypeError, lambda b, f, x: b.weight("w", np.ones(2, np.complex64))),
        ("E0704", flexor.NotSupported, lambda b, f, x: b.weight("w", np.ma.ones(2))),
        ("E0704", flexor.NotSupported, lambda b, f, x: b.weight("w", [[1, 2], [3]])),
        ("E0108", flexor.ModuleError, lambda b, f, x: f.op("rleu", x)),
        ("E0109", flexor.ModuleError, lambda b, f, x: f.relu(x, x)),
        ("E0110", flexor.ModuleError, lambda b, f, x: f.relu(x, slope=1.0)),
        ("E0507", flexor.ArgumentError, lambda b, f, x: flexor.Builder(promotion="jax")),
        ("E0118", flexor.ModuleError, lambda b, f, x: f.output(x, x, names=["a"])),
    ],
)
def test_what_is_of_the_right_kind_but_wrong_has_an_id(code, kind, call):
    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "float32", ["N"])])
    with pytest.raises(kind) as caught:
        call(b, f, f.inputs[0])
    assert caught.value.code == code


def test_dtypes_of_numpy_and_torch_name_dtypes():
    torch = pytest.importorskip("torch", reason="torch is the oracle")
    for dtype in ("float64", "f64", np.float64, np.dtype("float64"), torch.float64):
        b = flexor.Builder()
        f = b.function("main")
        x = f.input("x", dtype, ["N"])
        assert x.dtype == "float64"
        assert f.ones(shape=[2], dtype=dtype).dtype == "float64"
        assert x.cast(dtype).dtype == "float64"


# ---------------------------------------------------------------- signatures


def test_signatures_and_docs_come_from_the_registry():
    softmax = inspect.signature(flexor.FunctionBuilder.softmax)
    assert list(softmax.parameters) == ["self", "x", "axis"]
    assert softmax.parameters["axis"].default == -1
    assert list(inspect.signature(flexor.Var.softmax).parameters) == ["self", "axis"]
    for entry in flexor.registry():
        method = getattr(flexor.FunctionBuilder, entry["name"])
        assert method.__doc__.startswith(entry["summary"])
        parameters = inspect.signature(method).parameters
        for name, kind, fallback in entry["attributes"]:
            required = parameters[name].default is inspect.Parameter.empty
            assert required == (fallback == ""), f"{entry['name']}.{name}: {kind}"
