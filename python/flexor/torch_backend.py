"""The back end "flexor" of torch.compile: `torch.compile(model, backend="flexor", dynamic=True)`.

An installed package is found by its entry point; importing this module registers the name in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx._lazy_graph_module import _LazyGraphModule

from flexor._decorator import jit


def compile_graph(graph: torch.fx.GraphModule, _inputs: Sequence[Any]) -> Callable[..., Any]:
    """A graph that torch.compile has captured, as a program for every shape. What no op expresses stays torch's, per call."""
    _LazyGraphModule.force_recompile(graph)  # type: ignore[no-untyped-call]  # its code is there only then
    return jit(graph.forward, fallback="warn")


torch._dynamo.register_backend(compiler_fn=compile_graph, name="flexor")
