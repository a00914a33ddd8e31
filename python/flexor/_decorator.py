"""The decorator `flexor.jit`: what it takes, and what it makes of each."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypedDict, TypeVar, overload

from flexor import _jit_module, _kinds
from flexor._jit import Jit
from flexor._options import Dim, Frozen, Options

if TYPE_CHECKING:
    from typing_extensions import Unpack

P = ParamSpec("P")
R = TypeVar("R")
_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")


class _Module(Protocol):
    """A module of torch, for type checkers."""

    @property
    def forward(self) -> Callable[..., Any]: ...
    def state_dict(self, *args: Any, **kwargs: Any) -> Any: ...
    def register_forward_hook(self, *args: Any, **kwargs: Any) -> Any: ...


_M = TypeVar("_M", bound=_Module)


class _Given(TypedDict, total=False):
    """The options of `jit`, which tells what they mean."""

    dims: Mapping[str, Sequence[Dim | Frozen | str | int | None]] | None
    weights: str
    compile: bool | str
    fallback: str
    exact_only: bool
    soft_limit: int | str | None
    hard_limit: int | str | None


class _Decorator(Protocol):
    """`flexor.jit` with options."""

    # A class and a staticmethod are callable too; the first that fits is taken.
    @overload
    def __call__(self, target: type[_T], /) -> type[_T]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, target: staticmethod[P, R], /) -> staticmethod[P, R]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, target: classmethod[_T, P, R], /) -> classmethod[_T, P, R]: ...
    @overload
    def __call__(self, target: _M, /) -> _M: ...
    @overload
    def __call__(self, target: Callable[P, R], /) -> Jit[P, R]: ...


@overload
def jit(target: None = None, **options: Unpack[_Given]) -> _Decorator: ...
@overload
def jit(target: type[_T], **options: Unpack[_Given]) -> type[_T]: ...  # type: ignore[overload-overlap]
@overload
def jit(target: staticmethod[P, R], **options: Unpack[_Given]) -> staticmethod[P, R]: ...  # type: ignore[overload-overlap]
@overload
def jit(target: classmethod[_T, P, R], **options: Unpack[_Given]) -> classmethod[_T, P, R]: ...
@overload
def jit(target: _M, **options: Unpack[_Given]) -> _M: ...
@overload
def jit(target: Callable[P, R], **options: Unpack[_Given]) -> Jit[P, R]: ...
def jit(
    target: Any = None,
    *,
    dims: Any = None,
    weights: str = "live",
    compile: bool | str = True,
    fallback: str = "warn",
    exact_only: bool = False,
    soft_limit: int | str | None = None,
    hard_limit: int | str | None = None,
) -> Any:
    """Compiles a function of torch or NumPy tensors, or a torch module, for every shape that it is called with.

    Methods, static and class methods are decorated alike, below or above @staticmethod and @classmethod. Of a class the calls of
    its instances are compiled: its `forward`, or its `__call__`.

    dims        sizes of arguments by name: {"x": ["B", flexor.Dim("S", 1, 4096), flexor.FROZEN]}; None: any. Python runs calls of other
                sizes
    weights     "live": parameters and buffers of modules are read anew at every call; "frozen": they are packed with the program,
                anew after a change through the jitted module or an optimiser; another change raises StaleWeights
    compile     False: programs are interpreted; "async": no call waits for the compiler; Python runs those of a new program
                until it is compiled, the interpreter those of sizes that need another compilation
    fallback    what happens where a function cannot be followed and Python runs it: "warn" (once per reason, by logging),
                "raise" (NotSupported, or the error of the program that refuses a call), "silent" (counted in stats() as always)
    exact_only  one compilation per exact shape, in a session of the function's own
    soft_limit  bytes of pool memory kept, in a session of the function's own: a count or text such as "256MB"; None: the default's
    hard_limit  bytes that the pool never exceeds, likewise; results of compiled code on the CPU are not counted

    Raises ArgumentError (E0507) for a value that an option does not take.
    """
    options = Options(dims or {}, fallback, weights, compile, exact_only, soft_limit, hard_limit)
    return _decorate(options) if target is None else _jitted(target, options)


def _decorate(options: Options) -> Callable[[Any], Any]:
    return lambda target: _jitted(target, options)


def _jitted(target: Any, options: Options) -> Any:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(target, torch.nn.Module):
        return _jit_module.wrapped(target, options)
    if isinstance(target, (staticmethod, classmethod)):
        return type(target)(_jitted(target.__func__, options))
    if isinstance(target, type):
        return _jitted_class(target, options)
    if not callable(target):
        raise TypeError(f"flexor.jit takes a function, a class or a module, not a {type(target).__name__}")
    if isinstance(target, types.MethodType) and isinstance(target.__func__, Jit):
        return types.MethodType(Jit(target.__func__._flexor_function, options), target.__self__)
    return Jit(target._flexor_function if isinstance(target, Jit) else target, options)


def _jitted_class(cls: type, options: Options) -> type:
    """The class itself, with the method that its calls lead to as a program."""
    torch = sys.modules.get("torch")
    name = "forward" if torch is not None and issubclass(cls, torch.nn.Module) else "__call__"
    method = next((base.__dict__[name] for base in cls.__mro__ if name in base.__dict__), None)
    if not isinstance(method, (types.FunctionType, Jit)):
        raise TypeError(f"flexor.jit takes a class of modules or one with __call__; {cls.__name__} has no {name} of Python")
    setattr(cls, name, _jitted(method, options))
    return cls


def disable(function: _F) -> _F:
    """Marks a function that programs do not follow: it stays a call of Python."""
    function._flexor_disabled = True  # type: ignore[attr-defined]
    return function


def op(*, result: Callable[..., Any]) -> Callable[[_F], _F]:
    """Marks a function of tensors as an op: programs call it where it stands, and know its result before the run.

    `result` gets the function's arguments, a `flexor.TensorType` in the place of each tensor and None in that of a number that only
    the run knows, and gives the TensorType of what the function returns, or (dtype, sizes), or a list of such for a tuple of tensors.
    Sizes are symbolic where a program is made: they can be calculated with, but not compared. What the function returns is
    compared with the rule in every run; ShapeError (E0301) says where they differ. The function changes nothing, its arguments
    among it.

        @flexor.op(result=lambda x, w: (x.dtype, (x.shape[0], w.shape[1])))
        def product(x, w): ...
    """
    _kinds.function("op", "result", result)

    def mark(function: _F) -> _F:
        function._flexor_rule = result  # type: ignore[attr-defined]
        return function

    return mark
