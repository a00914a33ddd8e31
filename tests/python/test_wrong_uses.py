"""Wrong uses, each as somebody makes it: what is said is in tests/golden/wrong_uses.txt, and every text has a number, the
place, what was found or expected, and a hint. `./dev bless` rewrites it; read the diff."""

import re

import numpy as np
import pytest

flexor = pytest.importorskip("flexor", reason="the engine is not built")

from test_golden import compare  # noqa: E402

ONES = np.ones((2, 3), np.float32)
PLAIN = ".func main(x: f32[N, 3]) -> 1\n  LOAD_LOCAL x\n  CALL_OP relu 1\n  RETURN 1\n"
RANGED = ".symbol N in 1..8\n" + PLAIN


def text_of(*lines, head="x: f32[N, 3]"):
    return "\n".join([f".func main({head}) -> 1", *(f"  {line}" for line in lines), ""])


def op(call, head="x: f32[N, 3]"):
    return lambda folder: flexor.from_text(text_of("LOAD_LOCAL x", call, "RETURN 1", head=head), "model.fasm")


def call(text, *arguments, **named):
    return lambda folder: flexor.from_text(text, "model.fasm")(*arguments, **named)


def file_of(contents):
    def load(folder):
        path = folder / "model.flx"
        path.write_bytes(contents(flexor.from_text(PLAIN).native.to_bytes()))
        flexor.load(path)

    return load


def built(body):
    def build(folder):
        b = flexor.Builder()
        f = b.function("main", inputs=[("x", "float32", ["N", 3])])
        f.output(body(f, *f.inputs))
        b.build()

    return build


WRONG_USES = {
    "a file that is not there": lambda folder: flexor.load(folder / "modell.flx"),
    "a file of another kind": file_of(lambda whole: b"PK\x03\x04" + whole),
    "a file cut short": file_of(lambda whole: whole[:-100]),
    "a file with a changed byte": file_of(lambda whole: whole.replace(b"relu", b"rely")),
    "a file of a later version": file_of(lambda whole: whole[:8] + b"\x63" + whole[9:]),
    "an instruction misspelt": op("CAL_OP relu 1"),
    "an op misspelt": op("CALL_OP rellu 1"),
    "an op without one operand": op("CALL_OP matmul 1"),
    "an attribute misspelt": op("CALL_OP softmax 1 axes=-1"),
    "an attribute of another kind": op('CALL_OP softmax 1 axis="last"'),
    "an axis beyond the rank": built(lambda f, x: x.softmax(axis=2)),
    "a dtype that the op does not take": built(lambda f, x: x.bitwise_not()),
    "shapes that never fit": built(lambda f, x: x + f.op("ones", shape=[4], dtype="float32")),
    "shapes that do not fit in this call": call(
        text_of("LOAD_LOCAL x", "LOAD_LOCAL y", "CALL_OP add 2", "RETURN 1", head="x: f32[N, 3], y: f32[M, 3]"),
        ONES, np.ones((5, 3), np.float32),
    ),
    "a local that nothing sets": op("LOAD_LOCAL total"),
    "a value left on the stack": op("LOAD_LOCAL x"),
    "a label that is not there": op("JUMP endd"),
    "too few arguments": call(PLAIN),
    "an argument of another rank": call(PLAIN, np.ones(3, np.float32)),
    "an argument of another dtype": call(PLAIN, np.ones((2, 3), np.float64)),
    "a size that contradicts the declaration": call(PLAIN, np.ones((2, 4), np.float32)),
    "a size beyond its range": call(RANGED, np.ones((9, 3), np.float32)),
    "a hook that nobody bound": call(text_of("LOAD_LOCAL x", "CALL_FOREIGN log 1", "RETURN 1"), ONES),
    "an index out of range": call(
        text_of("LOAD_LOCAL x", "LOAD_LOCAL i", "CALL_OP index_select 2 axis=0", "RETURN 1", head="x: f32[N, 3], i: i64[K]"),
        ONES, np.array([0, 5]),
    ),
    "a function that is not there": lambda folder: flexor.from_text(PLAIN, "model.fasm")["mian"],
    "an option that makes no sense": lambda folder: flexor.Session(hard_limit="lots"),
}


def said(use, folder):
    with pytest.raises(flexor.FlexorError) as caught:
        use(folder)
    text = str(caught.value).replace(str(folder), "FOLDER")
    return caught.value, re.sub(r"\S*test_wrong_uses\.py:\d+", "test_wrong_uses.py:_", text)


@pytest.mark.parametrize("name", WRONG_USES)
def test_a_wrong_use_is_told_in_full(name, tmp_path):
    error, text = said(WRONG_USES[name], tmp_path)
    assert re.fullmatch(r"E\d{4}", error.code)
    assert text.startswith(error.code + " ")
    lines = [line.split()[0] for line in text.splitlines()[1:]]
    assert len(text.splitlines()[0].split()) > 4, "a sentence says what is wrong"
    assert "at" in lines, text
    assert "found" in lines or "expected" in lines or error.code in ("E0202", "E0204", "E0705"), text  # the sentence says it
    assert "hint:" in lines, text


def test_golden_wrong_uses(tmp_path):
    parts = []
    for place, (name, use) in enumerate(WRONG_USES.items()):
        folder = tmp_path / str(place)
        folder.mkdir()
        parts.append(f"# {name}\n{said(use, folder)[1]}\n")
    compare("wrong_uses.txt", "\n".join(parts))
