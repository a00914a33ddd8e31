"""Runs the built flexor program: FLEXOR_CLI, or the first one on PATH, or that of the development build."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


class Result:
    def __init__(self, process):
        self.code = process.returncode
        self.out = process.stdout
        self.err = process.stderr

    @property
    def json(self):
        return json.loads(self.out)


class Program:
    """The command line, run in a folder of its own."""

    def __init__(self, binary, folder):
        self.binary = binary
        self.folder = folder

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def __call__(self, *words, timeout=60):
        process = subprocess.run(
            [self.binary, *map(str, words)], capture_output=True, text=True, timeout=timeout, cwd=self.folder
        )
        return Result(process)

    def ok(self, *words):
        result = self(*words)
        assert result.code == 0, result.err
        assert result.err == ""
        return result

    def json(self, *words):
        return self.ok(*words, "--json").json

    def refused(self, diagnostic, *words):
        """The command must fail with this id, on standard error and, with --json, on standard output."""
        result = self(*words)
        assert result.code == 1, result.out + result.err
        assert result.out == ""
        assert result.err.startswith(diagnostic + " "), result.err
        as_json = self(*words, "--json")
        assert as_json.code == 1
        assert as_json.json["error"]["id"] == diagnostic
        return result


@pytest.fixture(scope="session")
def binary():
    found = os.environ.get("FLEXOR_CLI") or shutil.which("flexor") or ROOT / "build" / "bin" / "flexor"
    assert Path(found).is_file(), "build the flexor program first, or name it in FLEXOR_CLI"
    return str(found)


@pytest.fixture
def flexor(binary, tmp_path):
    return Program(binary, tmp_path)
