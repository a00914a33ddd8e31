"""Frozen weights: tensors that a program holds packed, and the watch over what they were made of.

A Module owns copies of its weights. A translation that packs remembers of each tensor where it was found, its memory and its version
counter, and looks at them before every run: a tensor that has been replaced leads to another translation, one that has been changed
in place raises StaleWeights, unless the change went through the jitted module or an optimiser of torch, after which the function
packs anew. What changes neither memory nor counter is not seen: `p.data.mul_(2)` is such a write.
"""

from __future__ import annotations

import functools
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from flexor.errors import from_diagnostic

if TYPE_CHECKING:
    from flexor._jit import Jit
    from flexor.frontend.cpython.guards import Place


class _Entry:
    """One tensor that was packed."""

    __slots__ = ("fetch", "name", "pointer", "tensor", "version")

    def __init__(self, name: str, fetch: Place, tensor: Any) -> None:
        self.name, self.fetch, self.tensor = name, fetch, tensor
        self.pointer = _pointer(tensor)
        # Tensors made in inference mode, and those of NumPy, count no versions.
        self.version = None if isinstance(tensor, np.ndarray) or tensor.is_inference() else tensor._version

    def is_there(self) -> bool:
        """Whether the tensor is still found where it was."""
        return self.fetch() is self.tensor

    def is_unchanged(self) -> bool:
        """Whether it is the tensor that was packed, with the memory and the version that it had."""
        return self.is_there() and not self.is_stale()

    def is_stale(self) -> bool:
        """Whether the tensor has got other memory or has been written to."""
        return _pointer(self.tensor) != self.pointer or (self.version is not None and self.tensor._version != self.version)


def _pointer(tensor: Any) -> int:
    return int(tensor.ctypes.data if isinstance(tensor, np.ndarray) else tensor.data_ptr())


class Weights:
    """The tensors that one translation takes as weights of its Module.

    names      names of tensors by id, where they have some
    takes_all  also tensors that are no parameters and buffers of modules
    """

    def __init__(self, names: Mapping[int, str], *, takes_all: bool = False) -> None:
        self._names, self._takes_all = names, takes_all
        self._taken: set[str] = set()
        self.entries: list[_Entry] = []
        self.buffers: set[int] = set()  # ids of the dicts in which modules hold their buffers

    def takes(self, key: Any, tensor: Any) -> bool:
        """Whether a tensor found under a key of the translator's is to be a weight."""
        torch = sys.modules.get("torch")
        if self._takes_all or (torch is not None and isinstance(tensor, torch.nn.Parameter)):
            return True
        return torch is not None and isinstance(tensor, torch.Tensor) and key[0] in self.buffers

    def add(self, key: Any, fetch: Place, tensor: Any) -> _Entry:
        """Takes a tensor in, under a name of its own."""
        wanted = self._names.get(id(tensor)) or (key[1] if isinstance(key[1], str) and key[1] != "cell" else "weight")
        name, number = wanted, 1
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        entry = _Entry(name, fetch, tensor)
        self.entries.append(entry)
        return entry

    def named(self, name: str) -> _Entry:
        """The weight of a name."""
        return next(entry for entry in self.entries if entry.name == name)

    def are_current(self) -> bool:
        """Whether every tensor is where it was found. Raises StaleWeights for one that is, and has been changed."""
        for entry in self.entries:
            if entry.fetch() is not entry.tensor:
                return False
            if entry.is_stale():
                self._refuse()
        return True

    def watched(self) -> list[tuple[str, Any, Any, Any, int, int | None]]:
        """What are_current looks at, for the compiled call path: place, tensor, address, version."""
        return [(e.fetch.kind, e.fetch.holder, e.fetch.key, e.tensor, e.pointer, e.version) for e in self.entries]

    def _refuse(self) -> None:
        stale = [entry.name for entry in self.entries if entry.is_stale()]
        shown = ", ".join(stale[:3]) + (f" and {len(stale) - 3} more" if len(stale) > 3 else "")
        raise from_diagnostic(
            "E0513",
            "StaleWeights",
            f"E0513 frozen weights have been changed since they were packed: {shown}\n"
            "  hint: change them through the jitted module (load_state_dict, to, half, merge_adapter) or an optimiser of torch,"
            ' call repack() after other changes, or use weights="live"',
        )

    def require_gradients(self) -> bool:
        """Whether a result depends on a tensor that collects gradients."""
        return any(getattr(entry.tensor, "requires_grad", False) for entry in self.entries)

    def named_in(self, refusal: str) -> _Entry | None:
        """The weight that a refusal of a write (E0117) names."""
        found = [entry for entry in self.entries if f"weight {entry.name}" in refusal]
        return max(found, key=lambda entry: len(entry.name), default=None)


def told(tensors: Iterable[Any]) -> str:
    """How many weights, and how large they are, for people."""
    distinct = list({id(tensor): tensor for tensor in tensors}.values())
    size = sum(tensor.nbytes for tensor in distinct)
    return f"{len(distinct)} weights of {size / 1e6:.3g} MB"


def shortest(call: Callable[[], Any]) -> float:
    """The shortest of some calls behind the first, in seconds."""
    call()
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def names_of(target: Any) -> dict[int, str]:
    """Names of the parameters and buffers of a module, by id; of anything else none."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(target, torch.nn.Module):
        return {}
    return {id(tensor): name for name, tensor in (*target.named_buffers(), *target.named_parameters())}


# ------------------------------------------------------------------------------------------------------------- optimisers

_watched: weakref.WeakSet[Jit[..., Any]] = weakref.WeakSet()


def watch_optimisers(jit: Jit[..., Any]) -> None:
    """Packs a function's weights anew after every step of an optimiser of torch that has one of them."""
    _watched.add(jit)
    if "torch" in sys.modules:
        _hear_of_steps()


@functools.cache
def _hear_of_steps() -> None:
    from torch.optim.optimizer import register_optimizer_step_post_hook

    def after(optimiser: Any, _args: Any, _keywords: Any) -> None:
        changed = {id(parameter) for group in optimiser.param_groups for parameter in group["params"]}
        for jit in list(_watched):
            if jit.packs(changed):
                jit.repack()

    register_optimizer_step_post_hook(after)
