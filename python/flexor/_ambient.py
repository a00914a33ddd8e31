"""The state of the frameworks around a call, of those that are loaded."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def framework_of(objects: Any) -> str:
    """The framework of the first tensor in arguments; torch where there is none."""
    torch = sys.modules.get("torch")
    for obj in objects:
        if isinstance(obj, (np.ndarray, np.generic)):
            return "numpy"
        if torch is not None and isinstance(obj, (torch.Tensor, torch.nn.Module)):
            return "torch"
        if isinstance(obj, (tuple, list)):
            found = framework_of(obj)
            if obj and found == "numpy":
                return found
        if isinstance(obj, dict) and obj and framework_of(obj.values()) == "numpy":
            return "numpy"
    return "torch" if torch is not None else "numpy"


def is_recorded() -> bool:
    """Whether torch records what is computed, for gradients."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.is_grad_enabled())


def needs_gradient(objects: list[Any]) -> bool:
    """Whether torch would record a computation on one of these."""
    if not is_recorded():
        return False
    torch: Any = sys.modules["torch"]
    return any(isinstance(obj, torch.Tensor) and obj.requires_grad for obj in objects)


def reason() -> str | None:
    """Why the frameworks are in a state that a program does not follow."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    if torch.is_autocast_enabled("cpu"):
        return "autocast"
    if torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack():
        return "a torch function or dispatch mode"
    return None
