"""Field cases of Python functions: each call beside eager, and whether a program did it.

A test takes the fixture `field`, makes functions with it, calls them, and ends by saying who did the work:

    f = field(function)            # under flexor.jit
    f(x)                           # raises AssertionError unless result, dtype, strides and arguments afterwards are eager's
    field.is_native(".append")     # no call was left to Python, and no part of one but effects on its own objects; what raises as
                                   # eager does may have been Python's
    field.leaves("torch.unique")   # at most those foreign calls, and no fallback
    field.falls_back("a reason")   # whole calls were Python's, for reasons that begin so
"""

import collections
import copy

import flexor
import numpy as np
import torch


def outcome(function, arguments, keywords):
    """(what was returned, None) or (None, what was raised)."""
    try:
        return function(*arguments, **keywords), None
    except Exception as error:
        return None, error


def same(got, want):
    """Whether two results are alike: class, dtype, shape and strides first, the values then."""
    if isinstance(want, (torch.Tensor, np.ndarray, np.generic)):
        if type(got) is not type(want) or got.dtype != want.dtype or tuple(got.shape) != tuple(want.shape):
            return False
        if isinstance(want, torch.Tensor):
            strides = [(a, b) for a, b, n in zip(got.stride(), want.stride(), want.shape) if n > 1]
            close = torch.allclose(got, want, rtol=1e-4, atol=1e-5, equal_nan=True)
            return close and (want.numel() == 0 or all(a == b for a, b in strides))
        return bool(np.allclose(got, want, rtol=1e-5, atol=1e-6, equal_nan=True))
    if isinstance(want, (tuple, list)):
        return type(got) is type(want) and len(got) == len(want) and all(map(same, got, want))
    if isinstance(want, dict):
        return type(got) is type(want) and list(got) == list(want) and all(same(got[k], want[k]) for k in want)
    return type(got) is type(want) and repr(got) == repr(want)


def base_of(value):
    """The whole memory that a tensor is a view of."""
    if isinstance(value, torch.Tensor):
        return torch.empty(0, dtype=value.dtype).set_(value.untyped_storage()).clone()
    return value


class Function:
    """A function and the same under flexor.jit. A call does both, on copies of the arguments that overlap as they do, and gives what
    the program gave, or raises what it raised."""

    def __init__(self, function, **options):
        self.function = function
        self.jitted = flexor.jit(function, fallback="silent", **options)
        self.in_errors = collections.Counter()  # fallbacks of calls that raise, as eager does

    def __call__(self, *arguments, **keywords):
        mine, theirs = copy.deepcopy((arguments, keywords)), copy.deepcopy((arguments, keywords))
        want, refused = outcome(self.function, *theirs)
        before = dict(self.jitted.stats()["fallbacks"])
        got, raised = outcome(self.jitted, *mine)
        if refused is not None:
            self.in_errors.update({r: n - before.get(r, 0) for r, n in self.jitted.stats()["fallbacks"].items()})
        if refused is not None or raised is not None:
            assert isinstance(raised, type(refused)), (refused, raised)
            raise raised
        assert same(got, want), f"{got} instead of {want}"
        for a, b in zip((*mine[0], *mine[1].values()), (*theirs[0], *theirs[1].values())):
            assert same(a, b), ("an argument afterwards", a, b)
            assert same(base_of(a), base_of(b)), ("the memory of an argument", a, b)
        return got

    @property
    def translations(self):
        return self.jitted.stats()["translations"]


class Field:
    """The functions of one case, and its verdict."""

    def __init__(self, name):
        self.name, self.functions, self.verdict, self.reasons, self.why = name, [], None, [], ""

    def __call__(self, function, **options):
        made = Function(function, **options)
        self.functions.append(made)
        return made

    def _left(self):
        fallbacks = [r for f in self.functions for r, n in f.jitted.stats()["fallbacks"].items() if n > f.in_errors[r]]
        return fallbacks, {what for f in self.functions for _, _, what in f.jitted.stats()["foreign_calls"]}

    def is_native(self, *effects):
        """Nothing was left to Python but these effects on its own objects, which nobody else can have."""
        self.verdict = "native"
        assert self._left() == ([], set(effects)), self._left()

    def leaves(self, *calls, why):
        """At most these calls inside the programs are Python's, and nothing else; `why` they are."""
        self.why = why
        fallbacks, found = self._left()
        self.verdict, self.reasons = "foreign" if found else "native", sorted(found)
        assert not fallbacks and found <= set(calls), self._left()

    def falls_back(self, *reasons, why):
        """Whole calls are Python's: one reason for each beginning, none else; `why` they have to be."""
        self.why = why
        self.verdict, self.reasons = "fallback", list(reasons)
        found = self._left()[0]
        assert found and all(any(f.startswith(r) for r in reasons) for f in found), found
        assert all(any(f.startswith(r) for f in found) for r in reasons), found
