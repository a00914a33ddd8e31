"""Some of CPython's own tests with every function under flexor.jit; tests/conformance/cpython.py runs them all."""

import collections
import sys
from pathlib import Path

import pytest

pytest.importorskip("flexor", reason="the engine is not built")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "conformance"))

import cpython  # noqa: E402


@pytest.mark.parametrize(("module", "only"), [("test_scope", ""), ("test_with", ""), ("test_patma", "test_patma_0"), ("test_patma", "Inheritance")])
def test_nothing_changes(module, only):
    if cpython.source_of(module) is None:
        pytest.skip("this interpreter has no package of tests")
    differing, counts = cpython.compare(module, only, collections.Counter())
    assert not differing
    assert counts["tests"] and counts["functions followed"]
