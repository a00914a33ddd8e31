"""Modules of torch: their calls, between the hooks that are registered on them, and the lists of what is below them."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flexor.frontend.cpython import attributes, calls, helpers
from flexor.frontend.cpython.decode import NotTranslated
from flexor.frontend.cpython.values import Arguments, DictValue, Keywords, Known, ListValue, MethodValue, TupleValue, Value

if TYPE_CHECKING:
    from flexor.frontend.cpython.translate import Translator


_BARE = ("activation", "distance", "dropout", "flatten", "fold", "loss", "padding", "pixelshuffle", "pooling", "upsampling")
_WITH_PARAMETERS = ("MultiheadAttention", "PReLU")


def is_bare(cls: type) -> bool:
    """Whether layers of a class of torch's have neither parameters nor buffers, if their arguments are plain."""
    home, _, file = cls.__module__.rpartition(".")
    return home == "torch.nn.modules" and file in _BARE and cls.__name__ not in _WITH_PARAMETERS and not cls.__name__.startswith("Adaptive")


def called(t: Translator, module: Any, arguments: Arguments, keywords: Keywords) -> Value | None:
    """A layer: its own __call__, or torch's."""
    cls = type(module)
    method = attributes._raw(cls, "__call__")
    t.guards.class_attribute(cls, "__call__", method)
    inner = getattr(module, "_flexor_original", None)
    if inner is not None:  # a jitted module: what it stands for
        return called(t, inner, arguments, keywords)
    if isinstance(method, types.FunctionType) and method is not sys.modules["torch"].nn.Module.__call__:
        return calls._python(t, method, [Known(module), *arguments], keywords)
    return forward(t, module, arguments, keywords)


def forward(t: Translator, module: Any, arguments: Arguments, keywords: Keywords) -> Value | None:
    """What torch's __call__ does: forward, between hooks."""
    before, after = _hooks(t, module)
    function = _own_forward(t, module)
    if not before and not after:
        return calls.call(t, function, arguments, keywords)
    around: Any = helpers.with_hooks
    given = [Known(module), function, ListValue(before), ListValue(after), TupleValue(arguments), DictValue(dict(keywords))]
    return calls._python(t, around, given, {})


def _own_forward(t: Translator, module: Any) -> Value:
    place = vars(module)
    if "forward" in place:
        return attributes.item(t, place, "forward")
    t.guards.absent(place, "forward")
    raw = attributes._raw(type(module), "forward")
    t.guards.class_attribute(type(module), "forward", raw)
    return MethodValue(Known(module), Known(raw))


def _hooks(t: Translator, module: Any) -> tuple[list[Value], list[Value]]:
    """The hooks before and behind forward, each a pair (hook, whether it takes keywords); global ones stand first."""
    registry = sys.modules["torch"].nn.modules.module
    for holder in (module._backward_hooks, module._backward_pre_hooks):
        t.guards.length(holder, len(holder))
        if holder:
            raise NotTranslated("a module with hooks on gradients", t.state.top.line)
    before = _pairs(t, registry._global_forward_pre_hooks, {}) + _pairs(t, module._forward_pre_hooks, module._forward_pre_hooks_with_kwargs)
    after = _pairs(t, registry._global_forward_hooks, registry._global_forward_hooks_with_kwargs)
    after += _pairs(t, module._forward_hooks, module._forward_hooks_with_kwargs)
    if after and (module._forward_hooks_always_called or registry._global_forward_hooks_always_called):
        raise NotTranslated("a module with hooks that are called beside exceptions", t.state.top.line)
    return before, after


def _pairs(t: Translator, hooks: Any, with_keywords: Any) -> list[Value]:
    """A registration of a hook says for good whether it takes keywords, and whether it is always called."""
    if not hooks:
        t.guards.length(hooks, 0)
        return []
    return [TupleValue([hook, Known(number in with_keywords)]) for number, hook in attributes.items(t, hooks).items()]


def _named_children(t: Translator, prefix: str, module: Any) -> list[Value]:
    return [TupleValue([Known(name), child]) for name, child in attributes.items(t, module._modules).items()]


def _named_modules(t: Translator, prefix: str, module: Any) -> list[Value]:
    out: list[Value] = [TupleValue([Known(prefix), Known(module)])]
    for name, child in attributes.items(t, module._modules).items():
        if isinstance(child, Known) and child.object is not None:
            out += _named_modules(t, f"{prefix}.{name}" if prefix else name, child.object)
    seen: set[int] = set()
    return [v for v in out if id(v.items[1].object) not in seen and not seen.add(id(v.items[1].object))]  # type: ignore[attr-defined, func-returns-value]


def _second(walk: Callable[[Translator, str, Any], list[Value]]) -> Callable[[Translator, str, Any], list[Value]]:
    return lambda t, prefix, module: [pair.items[1] for pair in walk(t, prefix, module)]  # type: ignore[attr-defined]


@functools.cache
def walks() -> dict[Any, Callable[[Translator, str, Any], list[Value]]]:
    """Methods of torch modules that list what is below them."""
    torch = sys.modules.get("torch")
    if torch is None:
        return {}
    cls = torch.nn.Module
    return {
        cls.named_children: _named_children,
        cls.children: _second(_named_children),
        cls.named_modules: _named_modules,
        cls.modules: _second(_named_modules),
    }
