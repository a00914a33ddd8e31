"""The examples of the docs and of the README run: Python blocks of a page one after the other, text-form blocks through the
assembler and verifier, commands in a shell, C++ as part of a program that is compiled and run."""

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

flexor = pytest.importorskip("flexor", reason="the engine is not built")

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.fasm"))
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Fenced text that is no example: what programs print.
OUTPUT = {"README.md": 2, "how-a-call-works.md": 1}
# Commands that the tests do not repeat, and what runs them.
ELSEWHERE = {"./dev": "./dev ci", "cmake": "tests/link/sdk.sh"}

pytestmark = pytest.mark.slow


def blocks(page, language):
    """(line, source) of each fenced block of a language."""
    text = page.read_text()
    return [
        (text.count("\n", 0, match.start(2)), match.group(2))
        for match in FENCE.finditer(text)
        if match.group(1) == language
    ]


def pages_with(*languages):
    return [p for p in PAGES if any(blocks(p, language) for language in languages)]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_block_is_of_a_kind_that_is_run(page):
    kinds = [match.group(1) for match in FENCE.finditer(page.read_text())]
    assert set(kinds) <= {"python", "fasm", "sh", "console", "cpp", "cmake", ""}
    assert kinds.count("") == OUTPUT.get(page.name, 0)


@pytest.mark.parametrize("page", pages_with("python"), ids=lambda p: p.name)
def test_python_blocks_run(page):
    flexor.default_session().clear_cache()
    flexor.default_session().reset_stats()
    names = {}
    for line, source in blocks(page, "python"):
        exec(compile("\n" * line + source, str(page), "exec"), names)


@pytest.mark.parametrize("page", pages_with("fasm"), ids=lambda p: p.name)
@pytest.mark.quick
def test_text_blocks_assemble(page):
    for line, source in blocks(page, "fasm"):
        module = flexor.from_text(source, f"{page.name}+{line}")
        assert module.outputs()


@pytest.fixture
def shell(tmp_path):
    """Runs a command line in a folder of its own that holds the examples; (what it printed, its exit code)."""
    program = os.environ.get("FLEXOR_CLI") or shutil.which("flexor") or str(ROOT / "build" / "bin" / "flexor")
    if not Path(program).exists():
        pytest.skip("the program flexor is not built")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = {**os.environ, "PATH": f"{Path(program).parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def run(line):
        done = subprocess.run(["sh", "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
        return done.stdout + done.stderr, done.returncode

    run.folder = tmp_path
    return run


def pattern_of(line):
    """Of a line that a command prints: "..." is any number of lines, indented any number of indented ones."""
    any_lines = {"...": r"(?s:.*)", "  ...": r"(?:  .*\n)*"}
    return any_lines[line] if line in any_lines else re.escape(line) + "\n"


@pytest.mark.parametrize("page", pages_with("sh", "console"), ids=lambda p: p.name)
def test_commands_run_and_print_what_the_page_says(page, shell):
    for match in FENCE.finditer(page.read_text()):
        kind = match.group(1)
        named = re.match(r"; (\w+\.fasm):", match.group(2))
        if kind == "fasm" and named:
            (shell.folder / named.group(1)).write_text(match.group(2))
        if kind == "sh":
            for line in match.group(2).splitlines():
                if line.split(" ")[0] not in ELSEWHERE:
                    printed, code = shell(line)
                    assert code == 0, f"{line}\n{printed}"
        if kind == "console":
            for line, wanted in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", match.group(2), re.MULTILINE):
                printed, code = shell(line)
                printed += f"[exit {code}]\n" if code else ""
                assert re.fullmatch("".join(map(pattern_of, wanted.splitlines())), printed), f"{line}\n{printed}"


@pytest.mark.parametrize("page", pages_with("cpp", "cmake"), ids=lambda p: p.name)
def test_cpp_blocks_are_parts_of_programs_that_are_tested(page):
    def words(text):
        return " ".join(text.split())

    programs = [*(ROOT / "tests" / "link").rglob("*.cpp"), *(ROOT / "examples" / "embed").glob("*.cpp")]
    tested = [words(path.read_text()) for path in programs]
    for _, source in blocks(page, "cpp"):
        assert any(words(source) in program for program in tested), source
    project = words((ROOT / "tests" / "link" / "sdk" / "CMakeLists.txt").read_text()).replace("user PRIVATE", "my_program PRIVATE")
    for _, source in blocks(page, "cmake"):
        assert all(line in project for line in source.splitlines()), source


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(path, capsys):
    if path.stem == "gpt2":
        pytest.importorskip("transformers", reason="the package transformers is not installed")
    runpy.run_path(str(path))
    assert capsys.readouterr().out


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
@pytest.mark.quick
def test_examples_load(path):
    assert flexor.load(path).inputs()


@pytest.mark.quick
def test_every_exception_is_exported_and_on_the_page_of_errors():
    page = (ROOT / "docs" / "errors.md").read_text()
    for name, kind in vars(flexor.errors).items():
        if isinstance(kind, type) and issubclass(kind, flexor.FlexorError):
            assert getattr(flexor, name) is kind and name in flexor.__all__
            assert f"flexor.{name}`" in page, f"docs/errors.md does not name {name}"


def test_every_diagnostic_is_on_its_page_and_raises_the_exception_that_the_page_says():
    rows = re.findall(r"^FLEXOR_DIAGNOSTIC\((\d+), (\w+),", (ROOT / "src/support/diagnostics.def").read_text(), re.MULTILINE)
    listed = (ROOT / "docs/reference/diagnostics.md").read_text()
    page = (ROOT / "docs/errors.md").read_text()
    families = dict(re.findall(r"\| `E0(\d)xx` \| `flexor\.(\w+)` \|", page))
    special = {}
    for numbers, name in re.findall(r"^\| (`E\d{4}`[^|]*) \| `flexor\.(\w+)`", page, re.MULTILINE):
        special |= {number: name for number in re.findall(r"`(E\d{4})`", numbers) if ", of " not in numbers}
    for number, name in rows:
        code = f"E{int(number):04d}"
        assert f"| `{code}` | `{name}` |" in listed
        raised = flexor.errors.from_diagnostic(code, name, "text")
        assert type(raised).__name__ == special.get(code, families[code[2]]), code
