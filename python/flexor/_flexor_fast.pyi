from collections.abc import Callable
from typing import Any

class CallerBase:
    def _bind(
        self,
        native: object,
        module_address: int,
        session: object,
        session_address: int,
        function: int,
        writes: bool,
        parameters: tuple[str, ...],
        /,
    ) -> None: ...
    def __call__(self, *inputs: Any, **named_inputs: Any) -> Any: ...

class RunnerBase:
    def _bind(self, native: object, address: int, /) -> None: ...
    def run(self, module: CallerBase, /, *inputs: Any, **named_inputs: Any) -> Any: ...

def bind_hook(session_address: int, name: str, function: Callable[..., Any], /) -> None: ...
def explain(session_address: int, module: CallerBase, /, *inputs: Any) -> str: ...
