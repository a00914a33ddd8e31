"""Calls of Python whose results are known before the run: users' ops with a rule, and custom ops of torch with a fake kernel.

Such a call is one of the run like a foreign one, but what follows it is compiled from the start, and nothing has to be learnt.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from flexor import _kinds
from flexor.errors import FlexorError
from flexor.frontend.cpython import rows
from flexor.frontend.cpython.decode import NotTranslated
from flexor.frontend.cpython.foreign import Promise
from flexor.frontend.cpython.values import Arguments, Dynamic, Keywords, Known, TupleValue, Value, dynamics, objects_of
from flexor.frontend.cpython.writer import dtype_name

if TYPE_CHECKING:
    from flexor.frontend.cpython.translate import Translator


@dataclasses.dataclass(frozen=True)
class TensorType:
    """What a rule is told of a tensor and tells of a result: the framework's name of a dtype, and sizes: integers, or at
    translation symbolic ones, which can be added, multiplied and divided, but not compared."""

    dtype: str
    shape: tuple[Any, ...]

    @property
    def ndim(self) -> int:
        return len(self.shape)


Rule = Callable[..., Any]


# -------------------------------------------------------------------------------------------------------------- users' ops


def of_rule(t: Translator, name: str, function: Callable[..., Any], rule: Rule, arguments: Arguments, keywords: Keywords) -> Value:
    """A call of a user's op that has a rule."""
    try:
        types = _ruled(name, rule, *_told((arguments, keywords), _type_of))
    except (NotTranslated, FlexorError):
        raise
    except Exception as error:
        raise NotTranslated(f"the rule of {name}: {error!r}", t.state.top.line) from error

    @functools.wraps(function)
    def checked(*given: Any, **named: Any) -> Any:
        found = function(*given, **named)
        expected = _ruled(name, rule, *_concrete((given, named)))
        results = found if isinstance(expected, list) else [found]
        for result, wanted in zip(results, expected if isinstance(expected, list) else [expected]):
            if _type_of_object(result) != wanted:
                raise _kinds.refusal(301, verb=name, argument="result", found=str(_type_of_object(result)), expected=f"{wanted}, by its rule")
        return found

    if t.lowering.framework == "numpy" and any(one.ndim == 0 for one in (types if isinstance(types, list) else [types])):
        return t.foreign(name, checked, arguments, keywords)  # scalars of NumPy
    if not isinstance(types, list):
        return t.foreign(name, checked, arguments, keywords, promise=_promise(types))
    return _several(t, name, checked, arguments, keywords, [_promise(one) for one in types])


def _ruled(name: str, rule: Rule, arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """What a rule says: a TensorType, or a list of them."""
    made = rule(*arguments, **keywords)
    several = isinstance(made, list)
    out = []
    for one in made if several else [made]:
        if not isinstance(one, TensorType):
            if not isinstance(one, tuple) or len(one) != 2:
                raise _kinds.wrong_kind(name, "rule", one, "a TensorType, a dtype with sizes, or a list of such")
            one = TensorType(*one)
        dtype = one.dtype if isinstance(one.dtype, str) else dtype_name(one.dtype)
        if dtype is None:
            raise _kinds.wrong_kind(name, "rule", one.dtype, "a dtype or its name")
        out.append(TensorType(dtype, tuple(one.shape)))
    return out if several else out[0]


def _type_of(value: Dynamic) -> Any:
    if value.kind != "tensor" or value.dtype is None or value.rank < 0:
        raise NotTranslated(f"a rule about a {value.kind} of which only the run knows dtype and rank")
    return TensorType(value.dtype, tuple(value.native.size(axis) for axis in range(value.rank)))


def _type_of_object(obj: Any) -> Any:
    name = dtype_name(obj.dtype) if hasattr(obj, "dtype") else None
    return obj if name is None else TensorType(name, tuple(obj.shape))


def _told(values: Any, make: Callable[[Dynamic], Any]) -> Any:
    """Arguments and keywords as objects, with what `make` makes of values of the run; None stands for a number of the run."""
    arguments, keywords = values

    def one(value: Value) -> Any:
        return make(value) if isinstance(value, Dynamic) and not value.is_scalar else None

    return [objects_of(a, one) for a in arguments], {k: objects_of(v, one) for k, v in keywords.items()}


def _concrete(values: Any) -> Any:
    arguments, keywords = values

    def one(obj: Any) -> Any:
        if isinstance(obj, (tuple, list)):
            return type(obj)(map(one, obj))
        return _type_of_object(obj)

    return [one(a) for a in arguments], {k: one(v) for k, v in keywords.items()}


def _promise(made: TensorType) -> Promise:
    sizes = [str(size) if isinstance(size, int) or size.is_known() else "?" for size in made.shape]
    return Promise(made.dtype, made.ndim, tuple(sizes))


def _several(
    t: Translator, name: str, function: Callable[..., Any], arguments: Arguments, keywords: Keywords, promises: Sequence[Promise], **how: Any
) -> Value:
    whole = t.foreign(name, function, arguments, keywords, promise=Promise("", -1), **how)
    parts = enumerate(promises)
    return TupleValue([t.foreign(f"{name}[{at}]", operator.getitem, [whole, Known(at)], promise=one) for at, one in parts])


# ----------------------------------------------------------------------------------------------------- custom ops of torch


def overload_of(function: Any) -> Any:
    """The op of torch.library that a callable is; None: it is none, or its overloads are several."""
    torch = sys.modules.get("torch")
    if torch is None or not type(function).__module__.startswith("torch"):
        return None
    found = getattr(function, "_opoverload", function)
    if isinstance(found, torch._ops.OpOverloadPacket):
        names = found.overloads()
        found = getattr(found, names[0]) if len(names) == 1 else None
    if not isinstance(found, torch._ops.OpOverload) or found.namespace in ("aten", "prim", "prims"):
        return None
    return found


def of_overload(t: Translator, function: Any, overload: Any, arguments: Arguments, keywords: Keywords) -> Value:
    """A call of a custom op: its schema says what it writes to, its fake kernel what it gives."""
    torch: Any = sys.modules["torch"]
    is_pure = not overload._schema.is_mutable and torch.Tag.nondeterministic_seeded not in overload.tags
    name = str(overload._schema.name)
    promises = _faked(t, overload, arguments, keywords) if t.site() not in t.knowledge.varying else None
    if promises is None:
        return t.foreign(name, function, arguments, keywords, is_pure=is_pure, learns=True)
    if len(overload._schema.returns) == 1:
        return t.foreign(name, function, arguments, keywords, is_pure=is_pure, promise=promises[0])
    return _several(t, name, function, arguments, keywords, promises, is_pure=is_pure)


def is_of_torch(function: Any) -> bool:
    """Whether a function is one of torch in C++, or a method of tensors."""
    if isinstance(function, functools.partial) and getattr(function.func, "__name__", "") == "_invoke":
        return True
    return type(function).__name__ in ("builtin_function_or_method", "method_descriptor") and rows.is_pure(function)


def of_framework(t: Translator, what: str, function: Any, arguments: Arguments, keywords: Keywords) -> Promise | None:
    """What a pure function of torch without a row gives, by its kernel for tensors without memory; None where that does not tell, or
    where a call that gives something else could not be begun anew."""
    if t.lowering.framework != "torch" or t.state.has_acted or t.site() in t.knowledge.varying or "squeeze" in what or "out" in keywords:
        return None
    torch: Any = sys.modules["torch"]
    values = list(dynamics((arguments, keywords)))
    if not values or any(v.kind not in _EXAMPLES and (v.kind != "tensor" or v.dtype is None or v.rank < 0) for v in values):
        return None
    make = _example(t, lambda sizes, dtype: torch.empty(sizes, dtype=dtype, device="meta"))
    try:
        with torch.no_grad():
            made = function(*[objects_of(a, make) for a in arguments], **{k: objects_of(v, make) for k, v in keywords.items()})
    except Exception:  # no such kernel, or sizes that do not fit
        return None
    if type(made) is not torch.Tensor or made.device.type != "meta" or made.layout != torch.strided or dtype_name(made.dtype) is None:
        return None
    return Promise(dtype_name(made.dtype) or "", made.ndim)


_EXAMPLES = {"int": 3, "float": 1.5, "bool": True, "number": 1.5}


def _faked(t: Translator, overload: Any, arguments: Arguments, keywords: Keywords) -> list[Promise] | None:
    """Dtypes and ranks of what a fake kernel gives for tensors of the sizes of the call at hand; None where it does not tell."""
    if any(v.kind not in _EXAMPLES and (v.kind != "tensor" or v.dtype is None or v.rank < 0) for v in dynamics((arguments, keywords))):
        return None
    torch: Any = sys.modules["torch"]
    make = _example(t, lambda sizes, dtype: torch.empty(sizes, dtype=dtype))
    from torch._subclasses.fake_tensor import FakeTensorMode

    try:
        with torch.no_grad(), FakeTensorMode():
            given = [objects_of(a, make) for a in arguments]
            made = overload(*given, **{k: objects_of(v, make) for k, v in keywords.items()})
    except Exception:  # no fake kernel, or sizes that do not fit
        return None
    results = made if isinstance(made, (tuple, list)) else [made]
    if not results or not all(isinstance(one, torch.Tensor) and dtype_name(one.dtype) is not None for one in results):
        return None
    return [Promise(dtype_name(one.dtype) or "", one.ndim) for one in results]


def _example(t: Translator, empty: Callable[[list[int], Any], Any]) -> Callable[[Value], Any]:
    """What stands for values of the run: tensors of the sizes of the call at hand."""
    torch: Any = sys.modules["torch"]
    sizes = dict(t.examples)
    fresh = itertools.count(5, 2)

    def size(native: Any) -> int:
        text = str(native)
        if text not in sizes:
            try:
                sizes[text] = int(eval(text, {"__builtins__": {}, "min": min, "max": max}, t.examples))
            except Exception:  # of the run
                sizes[text] = next(fresh)
        return int(sizes[text])

    def make(value: Value) -> Any:
        assert isinstance(value, Dynamic)
        if value.kind != "tensor":
            return _EXAMPLES[value.kind]
        return empty([size(value.native.size(axis)) for axis in range(value.rank)], getattr(torch, value.dtype or ""))

    return make
