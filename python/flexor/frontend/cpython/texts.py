"""Strings that only the run knows: numbers. A letter is its code point; other strings that functions name have numbers behind those.

A string among the arguments is such a one where a function asks for its length and its letters alone (StringValue, TextValue); what is
done with anything else makes it known, with a translation for each string.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

_numbered: list[str] = []
_number_of: dict[str, int] = {}


def number_of(text: str) -> int:
    """The number of a string."""
    if len(text) == 1:
        return ord(text)
    if text not in _number_of:
        _numbered.append(text)
        _number_of[text] = sys.maxunicode + len(_numbered)
    return _number_of[text]


def text_of(number: int) -> str:
    """The string that has a number."""
    return chr(number) if number <= sys.maxunicode else _numbered[number - sys.maxunicode - 1]


def letters(text: str, is_numpy: bool) -> Any:
    """The numbers of a string's letters, as a tensor of the framework."""
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.int32).astype(np.int64)
    return points if is_numpy else sys.modules["torch"].from_numpy(points)
