"""Reads functions from their CPython bytecode.

`decode` gives one stable form for every supported interpreter: `operations` names its vocabulary, `versions` holds what each
release of CPython says differently.
"""

from flexor.frontend.cpython.decode import Decoded, Guarded, NotTranslated, Step, decode
from flexor.frontend.cpython.operations import Operation

__all__ = ["Decoded", "Guarded", "NotTranslated", "Operation", "Step", "decode"]
