"""The examples of the docs and of the README run: Python blocks of a page one after the other, text-form blocks through the
assembler and verifier."""

import re
from pathlib import Path

import pytest

flexor = pytest.importorskip("flexor", reason="the engine is not built")

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.fasm"))


def blocks(page, language):
    """(line, source) of each fenced block."""
    text = page.read_text()
    return [
        (text.count("\n", 0, match.start(1)), match.group(1))
        for match in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.name)
def test_python_blocks_run(page):
    flexor.default_session().clear_cache()
    flexor.default_session().reset_stats()
    names = {}
    for line, source in blocks(page, "python"):
        exec(compile("\n" * line + source, str(page), "exec"), names)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "fasm")], ids=lambda p: p.name)
def test_text_blocks_assemble(page):
    for line, source in blocks(page, "fasm"):
        module = flexor.from_text(source, f"{page.name}+{line}")
        assert module.outputs()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_examples_load(path):
    assert flexor.load(path).inputs()
