"""Recurrent layers of torch in functions of torch, which the translator follows: a loop over the steps of a sequence."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flexor.frontend.cpython import evaluate
from flexor.frontend.cpython.values import Arguments, Keywords, Known, ListValue, TupleValue

if TYPE_CHECKING:
    from flexor.frontend.cpython.translate import Translator

Step = Callable[[Any, Any, Any], Any]  # (projected input, projected state, state) → the next state


def _lstm(given: Any, own: Any, state: Any) -> Any:
    into, forget, new, out = (given + own).chunk(4, 1)
    cell = forget.sigmoid() * state[1] + into.sigmoid() * new.tanh()
    return out.sigmoid() * cell.tanh(), cell


def _gru(given: Any, own: Any, state: Any) -> Any:
    reset, update, new = given.chunk(3, 1)
    own_reset, own_update, own_new = own.chunk(3, 1)
    new = (new + (reset + own_reset).sigmoid() * own_new).tanh()
    return (new + (update + own_update).sigmoid() * (state[0] - new),)


def _rnn_tanh(given: Any, own: Any, state: Any) -> Any:
    return ((given + own).tanh(),)


def _rnn_relu(given: Any, own: Any, state: Any) -> Any:
    return ((given + own).relu(),)


def _layers(
    torch: Any, step: Step, x: Any, begins: Any, params: Any, biased: bool, layers: int, dropout: float, train: bool, both: bool, batch_first: bool
) -> Any:
    """As torch.lstm and its like: `begins` are the states of all layers and directions, each [layers * directions, N, width]."""
    if batch_first:
        x = x.transpose(0, 1)
    ends: tuple[Any, ...] = ()
    for layer in range(layers):
        found: tuple[Any, ...] = ()
        for way in range(2 if both else 1):
            at = layer * (2 if both else 1) + way
            own = params[at * 4 : at * 4 + 4] if biased else (*params[at * 2 : at * 2 + 2], None, None)
            given = torch.nn.functional.linear(x, own[0], own[2])
            state = tuple([begin[at] for begin in begins])
            steps = []
            for place in range(x.shape[0]):
                at_place = given[x.shape[0] - 1 - place] if way else given[place]
                state = step(at_place, torch.nn.functional.linear(state[0], own[1], own[3]), state)
                steps.append(state[0])
            sequence = torch.stack(steps)
            found = (*found, sequence.flip(0) if way else sequence)
            ends = (*ends, state)
        x = torch.cat(found, 2) if both else found[0]
    if batch_first:
        x = x.transpose(0, 1)
    return (x, *[torch.stack([end[part] for end in ends]) for part in range(len(begins))])


def _have_changed(self: Any) -> bool:
    """RNNBase._weights_have_changed by the parameters themselves in place of weak references to them."""
    for name, weight in zip(self._flat_weights_names, self._flat_weights):
        if getattr(self, name) is not weight:
            return True
    return False


_STEPS = {"lstm": _lstm, "gru": _gru, "rnn_tanh": _rnn_tanh, "rnn_relu": _rnn_relu}


@functools.cache
def _functions() -> dict[int, tuple[str, Any]]:
    torch = sys.modules.get("torch")
    return {} if torch is None else {id(getattr(torch, name)): (name, getattr(torch, name)) for name in _STEPS}


def call_of(t: Translator, function: Any, arguments: Arguments, keywords: Keywords) -> tuple[Any, Arguments] | None:
    """The function to follow in place of a recurrent layer of torch, and what it is given; None where it is torch's own:
    packed sequences, dropout in training, dtypes whose rounding differs, flags of the run."""
    name, _ = _functions().get(id(function), (None, None))
    if name is None or keywords or len(arguments) != 9:
        return None
    x, begins, params, *options = arguments
    tensors = begins.items if name == "lstm" and isinstance(begins, (TupleValue, ListValue)) else [begins]
    if not all(evaluate.is_tensor(v) and v.dtype in ("float32", "float64") and v.rank == 3 for v in (x, *tensors)):  # type: ignore[attr-defined]
        return None
    if not all(isinstance(option, Known) for option in options) or len(tensors) != (2 if name == "lstm" else 1):
        return None
    _, _, dropout, train, _, _ = (option.object for option in options)  # type: ignore[attr-defined]
    if train and dropout:
        return None
    return _layers, [Known(sys.modules["torch"]), Known(_STEPS[name]), x, TupleValue(tensors), params, *options]


@functools.cache
def replaced() -> dict[Any, Callable[..., Any]]:
    """Functions of Python that are followed in another form."""
    torch = sys.modules.get("torch")
    own = getattr(torch.nn.RNNBase, "_weights_have_changed", None) if torch is not None else None
    return {} if own is None else {own: _have_changed}
