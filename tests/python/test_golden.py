"""What the engine prints, against the texts in tests/golden/: disassembly, and the listing of explain without its timings.
`./dev bless` rewrites them; read the diff."""

import os
import re
from pathlib import Path

import pytest

flexor = pytest.importorskip("flexor", reason="the engine is not built")

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
PROGRAMS = sorted([*(ROOT / "examples").glob("*.fasm"), *(ROOT / "tests/text/walk").glob("*.fasm")])


def compare(name, text):
    path = GOLDEN / name
    if os.environ.get("FLEXOR_BLESS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert path.exists(), f"{path.name} is missing: run ./dev bless"
    assert text == path.read_text(), f"{path.name} differs; if the new text is right, run ./dev bless"


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_golden_disassembly(path):
    compare(f"{path.stem}.dis.txt", flexor.from_text(path.read_text(), path.name).dis(pcs=True))


@pytest.mark.parametrize("path", [p for p in PROGRAMS if p.parent.name == "examples"], ids=lambda p: p.stem)
def test_golden_explain(path):
    if not flexor._flexor.has_code_generator():
        pytest.skip("needs the code generator")
    text = flexor.Session().explain(flexor.load(path))
    text = re.sub(r"\d+\.\d+ (ms|us|µs|s)\b", r"_ \1", text)
    # Kernels may be in the process's cache already, from another test.
    text = re.sub(r"kernels, \d+ of them", "kernels, _ of them", text)
    compare(f"{path.stem}.explain.txt", re.sub(r"[\d.]+ (K?i?B) of code|\d+ kernels built", r"_", text))
