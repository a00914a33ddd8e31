"""Builder: writes a Module from Python, one call per op."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from flexor import _flexor
from flexor._module import Module
from flexor.errors import NotSupported, from_diagnostic

Symbol = _flexor.SymbolicInt
Dim = Any  # int, str (a symbol's name), Symbol, or None (a size of its own)
_THIS_FILE = __file__


class Var:
    """A value of a function under construction. Operators and op names (`x.relu()`, `x.sum(axes=[-1])`) write instructions."""

    __slots__ = ("_function", "_native")

    def __init__(self, function: FunctionBuilder, native: _flexor.NativeVar) -> None:
        self._function = function
        self._native = native

    def __repr__(self) -> str:
        return f"<Var {self._native.type()}>"

    @property
    def type(self) -> str:
        """Text such as "f32[B,S,768]"; "?" where nothing is known before the run."""
        return str(self._native.type())

    @property
    def dtype(self) -> str | None:
        """Framework name of the dtype of a tensor."""
        return self._native.dtype()  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        """Rank of a tensor."""
        return int(self._native.rank())

    @property
    def shape(self) -> tuple[Symbol, ...]:
        """Sizes as symbolic integers, usable in attributes and arithmetic."""
        return tuple(self._native.size(axis) for axis in range(self.ndim))

    def _op(self, name: str, *others: Any, **attrs: Any) -> Any:
        return self._function.op(name, self, *others, **attrs)

    def _scalar_or_op(self, scalar: str, op: str, *operands: Any) -> Any:
        """Scalars alone make a scalar; beside anything else they are operands of the op."""
        if all(_is_scalar(operand) for operand in operands):
            return self._function.scalar(scalar, *operands)
        return self._function.op(op, *operands)

    def __add__(self, other: Any) -> Any:
        return self._scalar_or_op("add", "add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self._scalar_or_op("add", "add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self._scalar_or_op("sub", "sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._scalar_or_op("sub", "sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return self._scalar_or_op("mul", "mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._scalar_or_op("mul", "mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self._scalar_or_op("true_div", "div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._scalar_or_op("true_div", "div", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self._scalar_or_op("floor_div", "floor_divide", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._scalar_or_op("floor_div", "floor_divide", other, self)

    def __mod__(self, other: Any) -> Any:
        return self._scalar_or_op("mod", "remainder", self, other)

    def __rmod__(self, other: Any) -> Any:
        return self._scalar_or_op("mod", "remainder", other, self)

    def __pow__(self, other: Any) -> Any:
        return self._scalar_or_op("pow", "pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return self._scalar_or_op("pow", "pow", other, self)

    def __matmul__(self, other: Any) -> Any:
        return self._op("matmul", other)

    def __neg__(self) -> Any:
        return self._scalar_or_op("neg", "neg", self)

    def __abs__(self) -> Any:
        return self._op("abs")

    def __lt__(self, other: Any) -> Any:
        return self._scalar_or_op("lt", "lt", self, other)

    def __le__(self, other: Any) -> Any:
        return self._scalar_or_op("le", "le", self, other)

    def __gt__(self, other: Any) -> Any:
        return self._scalar_or_op("gt", "gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return self._scalar_or_op("ge", "ge", self, other)

    def __eq__(self, other: Any) -> Any:  # type: ignore[override]
        return self._scalar_or_op("eq", "eq", self, other)

    def __ne__(self, other: Any) -> Any:  # type: ignore[override]
        return self._scalar_or_op("ne", "ne", self, other)

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: Any) -> Any:
        return self._op("bitwise_and", other)

    def __or__(self, other: Any) -> Any:
        return self._op("bitwise_or", other)

    def __xor__(self, other: Any) -> Any:
        return self._op("bitwise_xor", other)

    def __invert__(self) -> Any:
        return self._op("bitwise_not")

    def __iter__(self) -> Any:
        raise TypeError("a value under construction cannot be iterated; split, select or unstack it with ops")

    def __bool__(self) -> bool:
        raise TypeError("a value under construction has no truth value; write a branch with if_else")

    def __getitem__(self, index: Any) -> Any:
        """Basic indexing: integers, slices, None and Ellipsis."""
        items = list(index) if isinstance(index, tuple) else [index]
        named = sum(item is not None and item is not Ellipsis for item in items)
        if Ellipsis in [item for item in items if isinstance(item, type(Ellipsis))]:
            at = next(i for i, item in enumerate(items) if item is Ellipsis)
            items[at : at + 1] = [slice(None)] * (self.ndim - named)
        value: Any = self
        axis = 0
        for item in items:
            if item is None:
                value = value._op("unsqueeze", axis=axis)
                axis += 1
            elif isinstance(item, slice):
                if (item.start, item.stop, item.step) != (None, None, None):
                    value = value._op("slice", axis=axis, start=item.start, stop=item.stop, step=1 if item.step is None else item.step)
                axis += 1
            else:
                value = value._op("select", axis=axis, index=item)
        return value

    def sum(self, axes: Sequence[int] | None = None, keepdim: bool = False) -> Any:
        """reduce_sum."""
        return self._op("reduce_sum", axes=axes, keepdim=keepdim)

    def mean(self, axes: Sequence[int] | None = None, keepdim: bool = False) -> Any:
        """reduce_mean."""
        return self._op("reduce_mean", axes=axes, keepdim=keepdim)

    def max(self, axes: Sequence[int] | None = None, keepdim: bool = False) -> Any:
        """reduce_max."""
        return self._op("reduce_max", axes=axes, keepdim=keepdim)

    def min(self, axes: Sequence[int] | None = None, keepdim: bool = False) -> Any:
        """reduce_min."""
        return self._op("reduce_min", axes=axes, keepdim=keepdim)

    def prod(self, axes: Sequence[int] | None = None, keepdim: bool = False) -> Any:
        """reduce_prod."""
        return self._op("reduce_prod", axes=axes, keepdim=keepdim)

    def any(self, axes: Sequence[int] | None = None, keepdim: bool = False) -> Any:
        """reduce_any."""
        return self._op("reduce_any", axes=axes, keepdim=keepdim)

    def all(self, axes: Sequence[int] | None = None, keepdim: bool = False) -> Any:
        """reduce_all."""
        return self._op("reduce_all", axes=axes, keepdim=keepdim)

    def reshape(self, *shape: Any) -> Any:
        """reshape to a list of sizes, one of which may be -1."""
        sizes = list(shape[0]) if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else list(shape)
        return self._op("reshape", shape=sizes)

    def permute(self, *axes: Any) -> Any:
        """permute the axes."""
        order = list(axes[0]) if len(axes) == 1 and isinstance(axes[0], (list, tuple)) else list(axes)
        return self._op("permute", axes=order)

    def expand(self, *shape: Any) -> Any:
        """expand dims of size 1; -1 keeps a size."""
        sizes = list(shape[0]) if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else list(shape)
        return self._op("expand", shape=sizes)

    def transpose(self, a: int, b: int) -> Any:
        """exchange two axes."""
        return self._op("transpose", a=a, b=b)

    def cast(self, dtype: str) -> Any:
        """convert to a dtype."""
        return self._op("cast", dtype=dtype)

    def item(self) -> Any:
        """The value of a one-element tensor as a scalar of the program."""
        return self._function.item(self)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__") or name not in _op_names():
            raise AttributeError(name)
        return lambda *others, **attrs: self._op(name, *others, **attrs)


@functools.cache
def _operands() -> dict[str, list[str]]:
    return {op["name"]: [operand[0] for operand in op["operands"]] for op in _flexor.registry()}


def _op_names() -> Iterable[str]:
    return _operands().keys()


def _operand_names(op: str) -> list[str]:
    return _operands().get(op, [])


def _is_scalar(value: Any) -> bool:
    """A scalar value of the program, or a number that becomes one."""
    if isinstance(value, Var):
        return value.type in ("int", "float", "bool")
    return isinstance(value, (int, float, Symbol))


def _raw(value: Any) -> Any:
    if isinstance(value, Var):
        return value._native
    if isinstance(value, (list, tuple)):
        return [_raw(item) for item in value]
    return value


class FunctionBuilder:
    """One function under construction. Every op of the registry is a method: operands first, attributes by name."""

    def __init__(self, builder: Builder, name: str) -> None:
        self._builder = builder
        builder._locate()
        self._native = _flexor.begin_function(builder._native, name)
        self.inputs: list[Var] = []
        self._outputs = 0

    def _wrap(self, results: list[Any]) -> Any:
        values = [Var(self, native) for native in results]
        return values[0] if len(values) == 1 else values

    def input(self, name: str, dtype: str, shape: Sequence[Dim] | None = None, *, optional: bool = False) -> Var:
        """Declares an argument: a framework dtype with its dims, or a whole type ("f32[B,S]?", "int", "float")."""
        self._builder._locate()
        kind = dtype
        if shape is not None:
            for size in shape:
                if isinstance(size, Symbol):
                    self._native.require_size(size)
            kind = f"{_text_dtype(dtype)}[{', '.join('?' if d is None else str(d) for d in shape)}]" + ("?" if optional else "")
        value = Var(self, self._native.input(name, kind))
        self.inputs.append(value)
        return value

    def op(self, name: str, *operands: Any, **attrs: Any) -> Any:
        """Writes an op; one Var, or a list of Vars for an op with several results. Operands may be named, as attributes are."""
        self._builder._locate()
        values = [self._lift(operand) for operand in operands]
        given = {key: _raw(value) for key, value in attrs.items()}
        named = [key for key in _operand_names(name) if key in given]
        if named:
            order = _operand_names(name)
            values += [None] * (order.index(named[-1]) + 1 - len(values))
            for key in named:
                if order.index(key) < len(operands):
                    raise TypeError(f"{name} is given {key} twice, by place and by name")
                values[order.index(key)] = self._lift(attrs[key])
                del given[key]
        return self._wrap(self._native.ops(name, values, given))

    def _lift(self, operand: Any) -> Any:
        if isinstance(operand, Weight):
            return self.weight(operand)._native
        if isinstance(operand, (list, tuple)):
            return [self._lift(item) for item in operand]
        return _raw(operand)

    def weight(self, weight: Weight) -> Var:
        """A Module weight as a value of this function."""
        if weight._builder is not self._builder:
            found = f"E0112 nothing of this name is declared\n  found weight {weight.name!r} of another Builder"
            raise from_diagnostic("E0112", "UnknownName", found)
        return Var(self, self._native.weight(weight.name))

    def constant(self, value: Any) -> Var:
        """A scalar, a text, a list of integers or None."""
        return Var(self, self._native.constant(value))

    def scalar(self, name: str, *operands: Any) -> Var:
        """Python arithmetic on scalars: "add", "true_div", "lt", "not", ..."""
        self._builder._locate()
        return Var(self, self._native.scalar(name, [_raw(o) for o in operands]))

    def item(self, value: Var) -> Var:
        """The value of a one-element tensor as a scalar."""
        self._builder._locate()
        return Var(self, self._native.item(value._native))

    def frozen(self, value: Var, axis: int) -> Var:
        """The tensor with one entry per value of that size."""
        self._builder._locate()
        return Var(self, self._native.frozen(value._native, axis))

    def require(self, condition: Any, message: str) -> None:
        """Raises AssertionFailed in the run if the condition does not hold."""
        self._builder._locate()
        self._native.require(_raw(condition), message)

    def list(self, *elements: Any) -> Var:
        """A list value."""
        self._builder._locate()
        return Var(self, self._native.build_list([self._lift(e) for e in elements]))

    def append(self, values: Var, element: Any) -> Var:
        """The list with an element more."""
        self._builder._locate()
        return Var(self, self._native.append(values._native, self._lift(element)))

    def get(self, values: Var, index: Any) -> Var:
        """An element of a list."""
        self._builder._locate()
        return Var(self, self._native.get(values._native, _raw(index)))

    def set(self, values: Var, index: Any, element: Any) -> Var:
        """The list with an element replaced."""
        self._builder._locate()
        return Var(self, self._native.set(values._native, _raw(index), self._lift(element)))

    def length(self, values: Var) -> Var:
        """The length of a list."""
        self._builder._locate()
        return Var(self, self._native.length(values._native))

    def call(self, function: str, *arguments: Any, results: int = 1) -> Any:
        """Calls a function of the Module."""
        self._builder._locate()
        return self._wrap(self._native.call(function, [self._lift(a) for a in arguments], results))

    def call_foreign(self, hook: str, *arguments: Any, promise: str = "any") -> Var:
        """Calls a function of the host, bound by Session.bind. `promise`: the type of its result ("f32[?, 4]", "int")."""
        self._builder._locate()
        return Var(self, self._native.call_foreign(hook, [self._lift(a) for a in arguments], promise))

    def if_else(self, condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """Both functions return the same number of values; the branch's values are returned."""
        self._builder._locate()
        sides = [self._side(then), self._side(otherwise)]
        return self._wrap(self._native.if_else(_raw(condition), *sides))

    def if_none(self, value: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """As if_else on `value is None`."""
        self._builder._locate()
        sides = [self._side(then), self._side(otherwise)]
        return self._wrap(self._native.if_none(_raw(value), *sides))

    def _side(self, function: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> Any:
            result = function()
            values = result if isinstance(result, (list, tuple)) else [result]
            return [self._lift(v) for v in values]

        return run

    def while_loop(self, initial: Sequence[Any], condition: Callable[..., Any], body: Callable[..., Any]) -> Any:
        """while condition(*carried): carried = body(*carried). Returns the carried values after the loop."""
        self._builder._locate()

        def test(carried: Sequence[Any]) -> Any:
            return _raw(condition(*[Var(self, native) for native in carried]))

        def step(carried: Sequence[Any]) -> Any:
            result = body(*[Var(self, native) for native in carried])
            values = result if isinstance(result, (list, tuple)) else [result]
            return [self._lift(v) for v in values]

        return self._wrap(self._native.while_loop([self._lift(v) for v in initial], test, step))

    def output(self, *values: Any, names: Sequence[str] | None = None) -> None:
        """Declares the results, in order."""
        self._builder._locate()
        for position, value in enumerate(values):
            name = names[position] if names else f"out{self._outputs}"
            self._native.output(name, self._lift(value))
            self._outputs += 1

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__") or name not in _op_names():
            raise AttributeError(name)
        return lambda *operands, **attrs: self.op(name, *operands, **attrs)


class Weight:
    """A constant tensor of a Module, usable as an operand in any of its functions."""

    __slots__ = ("_builder", "dtype", "name", "shape")

    def __init__(self, builder: Builder, name: str, dtype: str, shape: tuple[int, ...]) -> None:
        self._builder = builder
        self.name = name
        self.dtype = dtype
        self.shape = shape

    def __repr__(self) -> str:
        return f"<Weight {self.name} {self.dtype}{list(self.shape)}>"


def _text_dtype(name: str) -> str:
    short = {
        "float32": "f32",
        "float64": "f64",
        "float16": "f16",
        "bfloat16": "bf16",
        "int64": "i64",
        "int32": "i32",
        "int8": "i8",
        "uint8": "u8",
    }
    return short.get(name, name)


class Builder:
    """Writes a Module. Errors are raised at the line that writes what cannot be right."""

    def __init__(self, *, promotion: str = "torch") -> None:
        self._native = _flexor.NativeBuilder()
        if promotion == "numpy":
            self._native.numpy_promotion()
        elif promotion != "torch":
            raise ValueError('promotion is "torch" or "numpy"')

    def _locate(self) -> None:
        frame = sys._getframe(1)
        while frame.f_code.co_filename == _THIS_FILE and frame.f_back is not None:
            frame = frame.f_back
        self._native.set_location(frame.f_code.co_filename, frame.f_lineno)

    def symbol(self, name: str, lo: int = 0, hi: int | None = None) -> Symbol:
        """Declares a dim symbol with its range."""
        self._locate()
        return self._native.symbol(name, lo, hi)

    def weight(self, name: str, array: Any) -> Weight:
        """Adds a constant tensor: a NumPy array, a strided torch tensor in CPU memory, or anything np.asarray takes.

        Contiguous memory is shared, not copied: it must not change while the Module lives. Raises NotSupported for other
        tensors of torch and for masked arrays.
        """
        self._locate()
        if hasattr(array, "detach"):
            if array.device.type != "cpu" or str(array.layout) != "torch.strided" or array.is_quantized:
                raise NotSupported(f"weight {name!r} is a {array.layout} tensor on {array.device}; pass a strided one on the CPU")
            array = array.detach().resolve_conj().resolve_neg().contiguous()
            dtype, data, shape = str(array.dtype).removeprefix("torch."), array.data_ptr(), tuple(array.shape)
        else:
            if isinstance(array, np.ma.MaskedArray):
                raise NotSupported(f"weight {name!r} is a masked array; pass array.filled(...)")
            array = np.ascontiguousarray(array) if np.ndim(array) else np.asarray(array)
            dtype, data, shape = str(array.dtype), array.ctypes.data, array.shape
        self._native.weight(name, array, data, dtype, list(shape))
        return Weight(self, name, dtype, shape)

    def function(self, name: str, inputs: Sequence[tuple[Any, ...]] = ()) -> FunctionBuilder:
        """Begins a function; "main" is the entry. `inputs` are (name, dtype, shape) or (name, type)."""
        function = FunctionBuilder(self, name)
        for declaration in inputs:
            function.input(*declaration)
        return function

    def metadata(self, key: str, value: str) -> None:
        """Text that the Module carries."""
        self._native.metadata(key, value)

    def build(self) -> Module:
        """The verified Module."""
        return Module(self._native.build())
