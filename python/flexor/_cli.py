"""The command `flexor` of an installed package: the program that lies in it."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    """Becomes the program, with the arguments of this process."""
    program = str(Path(__file__).parent / "bin" / "flexor")
    os.execv(program, ["flexor", *sys.argv[1:]])
