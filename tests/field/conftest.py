"""Lets the field tests use the oracle of tests/python and the models of bench."""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "python"), str(TESTS.parent)]
