"""asm, dis, verify: programs as files, and files that are none."""

import random

import pytest
from cli_programs import CLASSIC, SCALE


@pytest.mark.parametrize("text", [CLASSIC, SCALE])
def test_assembled_and_disassembled_is_the_same_program(flexor, text):
    source = flexor.write("a.fasm", text)
    flexor.ok("asm", source)
    first = (flexor.folder / "a.flx").read_bytes()
    again = flexor.write("b.fasm", flexor.ok("dis", "a.flx").out)
    flexor.ok("asm", again, "-o", "c.flx")
    assert (flexor.folder / "c.flx").read_bytes() == first


def test_dis_can_number_instructions_and_leave_out_positions(flexor):
    source = flexor.write("a.fasm", SCALE)
    plain = flexor.ok("dis", source, "--no-positions").out
    assert ".line" in flexor.ok("dis", source).out
    assert ".line" not in plain
    numbered = flexor.ok("dis", source, "--no-positions", "--pcs").out
    assert numbered != plain
    assert "3 LOAD_LOCAL" not in plain


def test_verify_tells_what_a_program_takes_and_returns(flexor):
    source = flexor.write("a.fasm", CLASSIC)
    assert "S in 1..64" in flexor.ok("verify", source).out
    report = flexor.json("verify", source)
    assert report["verified"] is True
    (function,) = report["functions"]
    x, mask = function["inputs"]
    assert [x["name"], x["dtype"], x["optional"]] == ["x", "f32", False]
    assert [(dim["text"], dim["lo"], dim["hi"]) for dim in x["dims"]] == [("B", 0, None), ("S", 1, 64), ("8", 8, 8)]
    assert mask["optional"] is True
    assert [dim["text"] for dim in function["outputs"][0]["dims"]] == ["B", "S"]
    assert {"name": "S", "lo": 1, "hi": 64} in report["symbols"]


def test_json_of_asm_and_dis(flexor):
    source = flexor.write("a.fasm", SCALE)
    assert flexor.json("asm", source, "-o", "out.flx")["output"] == "out.flx"
    listing = flexor.json("dis", "out.flx")
    assert ".func main" in listing["text"]
    assert [function["name"] for function in listing["functions"]] == ["main", "negated"]


def test_a_text_error_names_file_and_line(flexor):
    source = flexor.write("bad.fasm", ".func main(x: f32[N]) -> 1\n  LOAD_LOCAL x\n  NO_SUCH_THING\n  RETURN 1\n")
    for command in ["asm", "dis", "verify", "run"]:
        result = flexor.refused("E0802", command, source)
        assert "bad.fasm:3" in result.err


def test_verifier_refusals_have_ids(flexor):
    underflow = flexor.write("u.fasm", ".func main(x: f32[N]) -> 1\n  LOAD_LOCAL x\n  CALL_OP add 2\n  RETURN 1\n")
    flexor.refused("E0102", "verify", underflow)
    unknown = flexor.write("l.fasm", ".func main(x: f32[N]) -> 1\n  LOAD_LOCAL x\n  JUMP nowhere\n")
    flexor.refused("E0804", "verify", unknown)


def test_unreadable_and_unwritable_files(flexor):
    flexor.refused("E0201", "verify", "missing.fasm")
    source = flexor.write("a.fasm", CLASSIC)
    flexor.refused("E0206", "asm", source, "-o", "no/such/folder/a.flx")
    flexor.refused("E0202", "verify", flexor.write("wrong.flx", "hello"))


def test_damaged_binaries_are_refused(flexor):
    flexor.ok("asm", flexor.write("a.fasm", SCALE))
    whole = (flexor.folder / "a.flx").read_bytes()
    listing = flexor.ok("dis", "a.flx").out
    rng = random.Random(7)
    refused = 0
    for _ in range(30):
        damaged = bytearray(whole)
        if rng.random() < 0.3:
            del damaged[rng.randrange(len(damaged)) :]
        else:
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        (flexor.folder / "d.flx").write_bytes(damaged)
        result = flexor("dis", "d.flx")
        if result.code == 0:  # the flip fell between two sections
            assert result.out == listing
        else:
            assert result.code == 1
            assert result.err.startswith("E0")
            refused += 1
    assert refused > 10


def test_wrong_usage_is_told_apart(flexor):
    for words in [[], ["nonsense"], ["run"], ["run", "a.fasm", "--no-such-flag"], ["run", "a.fasm", "--repeat", "0"]]:
        result = flexor(*words)
        assert result.code == 2
        assert result.out == ""
        assert result.err != ""
    assert "Usage" in flexor.ok("run", "--help").out
    unknown = flexor("nonsense", "--json").err
    assert "'nonsense'" in unknown
    assert "explain" in unknown
    assert flexor.ok("--version").out.strip().count(".") == 2
