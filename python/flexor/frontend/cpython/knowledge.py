"""What a translation has to be told before it begins, for only an attempt or a run shows it."""

from __future__ import annotations

import dataclasses
import types
from typing import Any

from flexor.frontend.cpython.values import Element, Value


@dataclasses.dataclass
class Knowledge:
    """What earlier attempts have found out; it only grows."""

    widened: set[tuple[Any, Any]] = dataclasses.field(default_factory=set)  # (chain of pcs, place): a number that loops change
    blurred: set[Any] = dataclasses.field(default_factory=set)  # chains of pcs that ways with different sizes lead to
    foreign: set[tuple[Any, ...]] = dataclasses.field(default_factory=set)  # sites whose op the Builder refuses
    fixed: set[str] = dataclasses.field(default_factory=set)  # arguments whose value has to be known
    framework: str | None = None  # of the tensors that the function finds, where its arguments are none
    unrolls: bool = False  # loops over long ranges are written out
    defers: bool = True  # writes are done when the program ends
    undoes: bool | None = False  # a run that raises takes its writes to tensors back; None: it cannot
    known_numbers: set[tuple[Any, ...]] = dataclasses.field(default_factory=set)  # in objects of the arguments, by path: that have to be known
    knows_numbers: bool = False  # the others are known too, until they are found to be others
    numbers: dict[tuple[Any, ...], float] = dataclasses.field(default_factory=dict)  # what they were
    varying_numbers: set[tuple[Any, ...]] = dataclasses.field(default_factory=set)  # those that have been found to be others
    selects: bool = False  # what a tensor without axes chooses from another is a view, and someone can tell that from a copy
    copies: bool = False  # scalars of NumPy's are not views of where they come from, and someone can tell that
    live: set[tuple[int, Any]] = dataclasses.field(default_factory=set)  # attributes that the function writes
    elements: dict[Any, Element] = dataclasses.field(default_factory=dict)  # of lists that loops fill
    results: dict[tuple[Any, ...], tuple[str, int]] = dataclasses.field(default_factory=dict)  # tensors that sites gave
    varying: set[tuple[Any, ...]] = dataclasses.field(default_factory=set)  # sites that gave different kinds
    unpacked: set[int] = dataclasses.field(default_factory=set)  # ids of tensors that are read anew where weights are frozen
    by_python: set[type] = dataclasses.field(default_factory=set)  # classes whose instances Python has to make
    made: dict[Any, Any] = dataclasses.field(default_factory=dict)  # by place and arguments, objects that every call makes for itself alone
    recursive: set[types.CodeType] = dataclasses.field(default_factory=set)  # functions that call themselves as the run decides,
    gives: dict[types.CodeType, Value] = dataclasses.field(default_factory=dict)  # what they give,
    loosened: set[tuple[types.CodeType, str]] = dataclasses.field(default_factory=set)  # numbers among arguments that are of the run,
    handed: dict[Any, list[Any]] = dataclasses.field(default_factory=dict)  # and what they read for every call, by kinds of arguments

    def fix(self, names: set[str], numbers: bool = False) -> None:
        """Arguments, or numbers in their objects, have to be known: what has been found out without that is forgotten."""
        anew = Knowledge(fixed=self.fixed | names, framework=self.framework)
        anew.known_numbers, anew.knows_numbers = self.known_numbers, self.knows_numbers or numbers
        vars(self).update(vars(anew))
