"""What type checkers see of the package: users' programs pass mypy --strict and pyright, and mistakes in them are told."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy", reason="mypy belongs to the checks")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

PROGRAM = """
import numpy as np
import numpy.typing as npt

import flexor


def build(width: int) -> flexor.Module:
    b = flexor.Builder(promotion="numpy")
    rows = b.symbol("R", 1, 512)
    w = b.weight("w", np.ones((width, 8), np.float32))
    f = b.function("main", inputs=[("x", "float32", [rows, 8])])
    (x,) = f.inputs
    y = f.gelu(f.linear(x, w), approximate="tanh")
    z = f.softmax(y * np.float32(2), axis=-1).reduce_sum(axes=[-1], keepdim=True) + 1
    first, second = f.split(x, sizes=[4, 4], axis=1)
    parts = f.concat(first, second, axis=1).reshape(x.shape[0], -1)
    f.output(z.cast("float64"), parts, f.clamp(y, None, 1.0), names=["z", "parts", "y"])
    return b.build()


def run(x: npt.NDArray[np.float32]) -> str:
    module = build(3)
    session = flexor.Session(threads=1, hard_limit="1GB")
    session.prepare(module, {"R": (1, 4)})
    try:
        session.run(module, x=x)
    except (flexor.Interrupted, flexor.ShapeError) as error:
        return error.code
    return module.explain(x)
"""
MISTAKES = {
    "f.softmax(x, axs=1)": "call-arg",
    "f.softmax(x, axis='1')": "arg-type",
    "f.reshape(x, [3, 2])": "call-arg",
    "f.linear(x)": "call-arg",
    "x.relu(1)": "call-arg",
    "f.reduce_sum(x, keepdim=None)": "arg-type",
    "f.sofmax(x)": "attr-defined",
}


def check(folder, source):
    path = folder / "program.py"
    path.write_text(source)
    environment = {**os.environ, "MYPYPATH": str(Path(flexor.__file__).parents[1])}
    # Silent, as the errors of an installed package are.
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", folder / "cache", path]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder).stdout


@pytest.mark.slow
def test_a_program_passes_and_mistakes_are_told(tmp_path):
    told = check(tmp_path, PROGRAM)
    assert "Success" in told, told
    lines = "".join(f"    {mistake}\n" for mistake in MISTAKES)
    told = check(tmp_path, f"import flexor\n\ndef build(f: flexor.FunctionBuilder, x: flexor.Var) -> None:\n{lines}")
    for line, (mistake, kind) in enumerate(MISTAKES.items(), 4):
        assert any(f":{line}: error" in row and f"[{kind}]" in row for row in told.splitlines()), f"{mistake}\n{told}"


def mypy(folder, paths):
    """Lines with errors, by file."""
    environment = {**os.environ, "MYPYPATH": str(Path(flexor.__file__).parents[1])}
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", folder / "cache", *paths]
    told = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder).stdout
    return {(Path(row.split(":")[0]).name, int(row.split(":")[1])): row for row in told.splitlines() if ": error" in row}


def pyright(folder, paths):
    """Lines with errors, by file."""
    if importlib.util.find_spec("basedpyright") is None:
        pytest.skip("pyright belongs to the checks")
    settings = {"include": [str(path) for path in paths], "extraPaths": [str(Path(flexor.__file__).parents[1])], "typeCheckingMode": "standard"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "-p", folder, "--pythonpath", sys.executable, "--outputjson"]
    told = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)["generalDiagnostics"]
    return {(Path(row["file"]).name, row["range"]["start"]["line"] + 1): row["message"] for row in told if row["severity"] == "error"}


@pytest.mark.slow
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_uses_of_jit_have_the_types_of_the_functions(tmp_path, checker):
    folder = Path(__file__).parents[1] / "typing"
    told = checker(tmp_path, [folder / "uses.py", folder / "mistakes.py"])
    lines = enumerate((folder / "mistakes.py").read_text().splitlines(), 1)
    assert set(told) == {("mistakes.py", number) for number, line in lines if line.endswith("# wrong")}, told
