from collections.abc import Callable
from typing import Any

class CallerBase:
    _restores: bool  # a run that fails gives back what it has overwritten
    def _bind(
        self,
        native: object,
        module_address: int,
        session: object,
        session_address: int,
        function: int,
        writes: bool,
        parameters: tuple[str, ...],
        kinds: str,
        /,
    ) -> None: ...
    def __call__(self, *inputs: Any, **named_inputs: Any) -> Any:
        """Runs the function on the default session: NumPy arrays or torch CPU tensors of the declared dtypes, ranks and sizes, in
        order or by name, without a copy. One output comes back bare, several as a tuple, in the framework of the inputs. The
        docs of flexor.Module say what is taken, returned and raised."""

class RunnerBase:
    def _bind(self, native: object, address: int, /) -> None: ...
    def run(self, module: CallerBase, /, *inputs: Any, **named_inputs: Any) -> Any:
        """Runs a Module on this session, as calling it does on the default one: NumPy arrays or torch CPU tensors of the declared
        dtypes, ranks and sizes, in order or by name, without a copy. One output comes back bare, several as a tuple, in the
        framework of the inputs. The docs of flexor.Module say what is taken, returned and raised."""

def bind_hook(session_address: int, name: str, function: Callable[..., Any], is_typed: bool = False, /) -> None: ...
def bind_value(session_address: int, name: str, value: Any, /) -> None: ...
def explain(session_address: int, module: CallerBase, profile: bool, /, *inputs: Any, **named_inputs: Any) -> str: ...

class Guards:
    """Assumptions (kind, holder, key, expected) about Python objects; called, whether all of them hold."""

    def __init__(self, guards: list[tuple[str, Any, Any, Any]], missing: object, /) -> None: ...
    def __call__(self) -> bool: ...

class JitBase:
    """The compiled call path of a jitted function."""

    _calls: int
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def _add(
        self,
        positional: int,
        keywords: tuple[str, ...] | None,
        steps: list[tuple[Any, ...]],
        live: list[tuple[Any, ...]],
        packed: list[tuple[Any, ...]],
        guards: list[Any],
        module: CallerBase,
        inputs: int,
        results: tuple[int, ...],
        is_tuple: bool,
        gives_scalars: bool,
        open: Callable[..., Any] | None,
        finish: Callable[..., Any] | None,
        token: object,
        session: RunnerBase,
        /,
    ) -> None: ...
    def _remove(self, token: object, /) -> None: ...
    def _enter_python(self) -> None: ...
    def _leave_python(self) -> None: ...
