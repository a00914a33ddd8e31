"""The options of `flexor.jit`, as one value that a jitted function keeps, pickles and hands to its copies."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from flexor.errors import FlexorError, from_diagnostic
from flexor.session import Session, default_session


class Frozen:
    """The mark of a dim whose every value has a compilation of its own."""

    def __repr__(self) -> str:
        return "flexor.FROZEN"

    def __reduce__(self) -> str:
        return "FROZEN"


FROZEN = Frozen()


@dataclasses.dataclass(frozen=True)
class Dim:
    """A named size with its range: equal names are equal sizes."""

    name: str
    lo: int = 0
    hi: int | None = None


def _refusal(option: str, found: Any, expected: str) -> FlexorError:
    return from_diagnostic("E0507", "BadOption", f"E0507 jit does not take {option}={found!r}\n  expected {expected}")


_CHOICES: dict[str, tuple[tuple[Any, ...], str]] = {
    "fallback": (("warn", "raise", "silent"), '"warn", "raise" or "silent"'),
    "weights": (("live", "frozen"), '"live" or "frozen"'),
    "compile": ((True, False, "async"), 'True, False or "async"'),
    "exact_only": ((True, False), "True or False"),
}


@dataclasses.dataclass(frozen=True)
class Options:
    """What `flexor.jit` was given; its docs say what each option means. Raises ArgumentError (E0507) for a value that an option
    does not take."""

    dims: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)
    fallback: str = "warn"
    weights: str = "live"
    compile: bool | str = True
    exact_only: bool = False
    soft_limit: int | str | None = None
    hard_limit: int | str | None = None

    def __post_init__(self) -> None:
        for name, (values, expected) in _CHOICES.items():
            given = getattr(self, name)
            if not any(given is value or (isinstance(given, str) and given == value) for value in values):
                raise _refusal(name, given, expected)
        expected = '{"x": ["B", flexor.Dim("S", 1, 4096), flexor.FROZEN, None, 8]}'
        if not isinstance(self.dims, Mapping):
            raise _refusal("dims", self.dims, expected)
        for name, sizes in self.dims.items():
            is_list = isinstance(sizes, Sequence) and not isinstance(sizes, str)
            if not isinstance(name, str) or not is_list or not all(s is None or s is FROZEN or isinstance(s, (str, int, Dim)) for s in sizes):
                raise _refusal("dims", self.dims, expected)
        object.__setattr__(self, "dims", dict(self.dims))

    def session(self) -> Session:
        """Where programs run: a session of the function's own where an option asks for one, else the default session."""
        is_behind = self.compile == "async"
        if self.compile is not False and not self.exact_only and self.soft_limit is None and self.hard_limit is None:
            return behind_session() if is_behind else default_session()
        given: dict[str, Any] = {} if self.soft_limit is None else {"soft_limit": self.soft_limit}
        made = Session(
            compile=self.compile is not False, compile_behind=is_behind, exact_only=self.exact_only, hard_limit=self.hard_limit, **given
        )
        return _settled_at_the_end(made) if is_behind else made


@functools.cache
def behind_session() -> Session:
    """Where functions with compile="async" run that ask for nothing else."""
    return _settled_at_the_end(Session(compile_behind=True))


def _settled_at_the_end(session: Session) -> Session:
    """A session whose thread is not in the compiler when the process ends."""
    held = weakref.ref(session)

    def settle() -> None:
        found = held()
        if found is not None:
            found.settle()

    atexit.register(settle)
    return session
