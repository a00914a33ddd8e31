"""Lets the field tests use the oracle of tests/python and the models of bench, and keeps the record of the cases of Python functions:
`pytest tests/field --field-json bench/results/field-cases.json`."""

import json
import re
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "python"), str(TESTS.parent)]
RECORDS = []


def pytest_addoption(parser):
    parser.addoption("--field-json", help="writes who did the work of each field case: a program, Python in parts, Python")


@pytest.fixture
def field(request):
    """The maker of the functions of one case (see jitted.py), which must end with a verdict."""
    from jitted import Field

    case = Field(request.node.name)
    yield case
    if getattr(request.node, "passed", False):
        assert case.verdict is not None, "a case that does not say who did the work"
        [number] = re.findall(r"test_f(\d{3})_", case.name)
        kind = request.node.path.stem.removeprefix("test_")
        RECORDS.append({"id": f"F{number}", "class": kind, "test": case.name, "verdict": case.verdict, "left": case.reasons, "why": case.why})


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.when == "call":
        item.passed = report.passed


def pytest_sessionfinish(session):
    path = session.config.getoption("--field-json", default=None)
    if path:
        lines = [json.dumps(record) for record in sorted(RECORDS, key=lambda r: (r["class"], r["id"], r["test"]))]
        Path(path).write_text("[\n" + ",\n".join(lines) + "\n]\n")
