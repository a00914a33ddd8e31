"""Torch modules under `flexor.jit`: the module it was, called through its program.

A jitted module is another object of a subclass of its class, and shares the attributes of the module that was given: parameters,
buffers, children, hooks and everything else are the same objects, whichever of the two they are read or written through.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

from flexor._options import Options

# What a jitted module shows beside its own attributes, which go first.
_SHOWN = frozenset(("explain", "module", "repack", "save", "stats"))
# Methods that change what parameters and buffers hold: frozen weights are packed anew after them. First torch's own, then those by
# which libraries of adapters merge them.
_CHANGE_WEIGHTS = ("_apply", "apply", "load_state_dict")
_MERGE_ADAPTERS = (
    "delete_adapter", "disable_adapter_layers", "enable_adapter_layers", "fuse_lora", "load_adapter", "load_lora_weights", "merge_adapter",
    "merge_and_unload", "set_adapter", "set_adapters", "unfuse_lora", "unload", "unload_lora_weights", "unmerge_adapter",
)  # fmt: skip


def _repacking(method: Callable[..., Any], repack: Callable[[], None]) -> Callable[..., Any]:
    """The bound method of a module, after which weights are packed anew, also when it raises."""

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        finally:
            repack()

    return call


def _changer(name: str) -> Callable[..., Any]:
    def get(self: JitModule) -> Any:
        return _repacking(getattr(super(JitModule, self), name), self._flexor_jit.repack)

    return property(get)  # type: ignore[return-value]


class JitModule:
    """What a module's class gets in front of it: the call. All else is the module's own."""

    __slots__ = ("_flexor_jit", "_flexor_original")
    _flexor_jit: Any  # the Jit, which a type checker would take for a method
    _flexor_original: Any

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._flexor_jit(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            found = super().__getattr__(name)  # type: ignore[misc]
        except AttributeError:
            if name in _SHOWN:
                return getattr(self._flexor_jit, name)
            raise
        return _repacking(found, self._flexor_jit.repack) if name in _MERGE_ADAPTERS else found

    def __reduce_ex__(self, protocol: Any) -> Any:
        return wrapped, (self._flexor_original, self._flexor_jit.options)

    def __copy__(self) -> Any:
        return wrapped(copy.copy(self._flexor_original), self._flexor_jit.options)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return wrapped(copy.deepcopy(self._flexor_original, memo), self._flexor_jit.options)


@functools.cache
def _class_of(cls: type) -> type:
    changers = {name: _changer(name) for name in (*_CHANGE_WEIGHTS, *_MERGE_ADAPTERS) if hasattr(cls, name)}
    place = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__, "__slots__": ()}
    return type(cls.__name__, (JitModule, cls), {**place, **changers})


def wrapped(module: Any, options: Options) -> Any:
    """A module of torch whose calls are those of a program; of a jitted one, anew."""
    from flexor._jit import Jit

    if isinstance(module, JitModule):
        module = module._flexor_original
    cls: Any = type(module)
    wrapper: Any = object.__new__(_class_of(cls))
    object.__setattr__(wrapper, "__dict__", module.__dict__)
    # Past nn.Module.__setattr__, into the slots.
    object.__setattr__(wrapper, "_flexor_original", module)
    object.__setattr__(wrapper, "_flexor_jit", Jit(module, options))
    return wrapper
