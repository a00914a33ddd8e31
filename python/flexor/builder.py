"""Builder: writes a Module from Python, one call per op."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from flexor import _flexor, _kinds, _ops
from flexor._module import Module
from flexor._ops import OPS, FunctionOps, VarOps
from flexor.errors import FlexorError

if TYPE_CHECKING:
    from flexor._ops import DType, Integer, Integers, Scalar, Tensor

T = TypeVar("T")
Symbol = _flexor.SymbolicInt
Dim = Any  # int, str (a symbol's name), Symbol, or None (a size of its own)
# The value None, a number, a str, a size, a value of the program or a list of values of the program.
Operand = Any
Vars = list["Var"]
_FILES = (__file__, _ops.__file__)


class Var(VarOps):
    """A value of a function under construction.

    Operators and op names (`x + 1`, `x.relu()`, `x.sum(axes=[-1])`) write instructions. Every op of the registry whose
    first operand the value can be is a method. A kind that an op does not take raises DTypeError (E0404), shapes and dtypes
    that cannot fit raise ShapeError and DTypeError, at the line that writes the op.
    """

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
        """Framework name of the dtype of a tensor ("float32"); None where it is not known before the run."""
        return self._native.dtype()

    @property
    def ndim(self) -> int:
        """Rank of a tensor; -1 where it is not known before the run, and of other values."""
        return int(self._native.rank())

    @property
    def shape(self) -> tuple[Symbol, ...]:
        """Sizes as symbolic integers, usable in attributes and arithmetic. Raises ShapeError (E0302) if the rank is not known."""
        return tuple(self._function._checked(self._native.shape))

    def size(self, axis: int) -> Symbol:
        """The size of an axis; negative counts from the end. Known before the run where it is an expression over symbols, else
        read at run time. Raises ShapeError (E0303) for an axis that the tensor does not have."""
        number = _kinds.integer("size", "axis", axis, bits=32)
        return self._function._checked(lambda: self._native.size(number))

    def _op(self, name: str, /, *operands: Any, **attributes: Any) -> Any:
        return self._function.op(name, self, *operands, **attributes)

    def _scalar_or_op(self, scalar: str, op: str, *operands: Any) -> Var:
        """Scalars alone make a scalar; beside anything else they are operands of the op."""
        if all(_is_scalar(operand) for operand in operands):
            return self._function.scalar(scalar, *operands)
        return self._function.ops(op, *operands)[0]

    def __add__(self, other: Tensor | Scalar) -> Var:
        return self._scalar_or_op("add", "add", self, other)

    def __radd__(self, other: Tensor | Scalar) -> Var:
        return self._scalar_or_op("add", "add", other, self)

    def __sub__(self, other: Tensor | Scalar) -> Var:
        return self._scalar_or_op("sub", "sub", self, other)

    def __rsub__(self, other: Tensor | Scalar) -> Var:
        return self._scalar_or_op("sub", "sub", other, self)

    def __mul__(self, other: Tensor | Scalar) -> Var:
        return self._scalar_or_op("mul", "mul", self, other)

    def __rmul__(self, other: Tensor | Scalar) -> Var:
        return self._scalar_or_op("mul", "mul", other, self)

    def __truediv__(self, other: Tensor | Scalar) -> Var:
        return self._scalar_or_op("true_div", "div", self, other)

    def __rtruediv__(self, other: Tensor | Scalar) -> Var:
        return self._scalar_or_op("true_div", "div", other, self)

    def __floordiv__(self, other: Tensor | Scalar) -> Var:
        return self._scalar_or_op("floor_div", "floor_divide", self, other)

    def __rfloordiv__(self, other: Tensor | Scalar) -> Var:
        return self._scalar_or_op("floor_div", "floor_divide", other, self)

    def __mod__(self, other: Tensor | Scalar) -> Var:
        return self._scalar_or_op("mod", "remainder", self, other)

    def __rmod__(self, other: Tensor | Scalar) -> Var:
        return self._scalar_or_op("mod", "remainder", other, self)

    def __pow__(self, other: Tensor | Scalar) -> Var:
        return self._scalar_or_op("pow", "pow", self, other)

    def __rpow__(self, other: Tensor | Scalar) -> Var:
        return self._scalar_or_op("pow", "pow", other, self)

    def __matmul__(self, other: Tensor) -> Var:
        return self.matmul(other)

    def __neg__(self) -> Var:
        return self._scalar_or_op("neg", "neg", self)

    def __abs__(self) -> Var:
        return self.abs()

    def __lt__(self, other: Tensor | Scalar) -> Var:
        return self._scalar_or_op("lt", "lt", self, other)

    def __le__(self, other: Tensor | Scalar) -> Var:
        return self._scalar_or_op("le", "le", self, other)

    def __gt__(self, other: Tensor | Scalar) -> Var:
        return self._scalar_or_op("gt", "gt", self, other)

    def __ge__(self, other: Tensor | Scalar) -> Var:
        return self._scalar_or_op("ge", "ge", self, other)

    def __eq__(self, other: object) -> Var:  # type: ignore[override]
        return self._scalar_or_op("eq", "eq", self, other)

    def __ne__(self, other: object) -> Var:  # type: ignore[override]
        return self._scalar_or_op("ne", "ne", self, other)

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: Tensor | Scalar) -> Var:
        return self.bitwise_and(other)

    def __or__(self, other: Tensor | Scalar) -> Var:
        return self.bitwise_or(other)

    def __xor__(self, other: Tensor | Scalar) -> Var:
        return self.bitwise_xor(other)

    def __invert__(self) -> Var:
        return self.bitwise_not()

    def __iter__(self) -> Any:
        raise TypeError("a value under construction cannot be iterated; split, select or unstack it with ops")

    def __bool__(self) -> bool:
        raise TypeError("a value under construction has no truth value; write a branch with if_else")

    def __getitem__(self, index: Any) -> Var:
        """Basic indexing: integers, slices, None and Ellipsis."""
        items = list(index) if isinstance(index, tuple) else [index]
        named = sum(item is not None and item is not Ellipsis for item in items)
        if Ellipsis in [item for item in items if isinstance(item, type(Ellipsis))]:
            at = next(i for i, item in enumerate(items) if item is Ellipsis)
            items[at : at + 1] = [slice(None)] * (len(self.shape) - named)
        value = self
        axis = 0
        for item in items:
            if item is None:
                value = value.unsqueeze(axis=axis)
                axis += 1
            elif isinstance(item, slice):
                if (item.start, item.stop, item.step) != (None, None, None):
                    step = 1 if item.step is None else item.step
                    value = value.slice(axis=axis, start=item.start, stop=item.stop, step=step)
                axis += 1
            else:
                value = value.select(axis=axis, index=item)
        return value

    def sum(self, axes: Integers | None = None, keepdim: bool = False) -> Var:
        """reduce_sum."""
        return self.reduce_sum(axes=axes, keepdim=keepdim)

    def mean(self, axes: Integers | None = None, keepdim: bool = False) -> Var:
        """reduce_mean."""
        return self.reduce_mean(axes=axes, keepdim=keepdim)

    def max(self, axes: Integers | None = None, keepdim: bool = False) -> Var:
        """reduce_max."""
        return self.reduce_max(axes=axes, keepdim=keepdim)

    def min(self, axes: Integers | None = None, keepdim: bool = False) -> Var:
        """reduce_min."""
        return self.reduce_min(axes=axes, keepdim=keepdim)

    def prod(self, axes: Integers | None = None, keepdim: bool = False) -> Var:
        """reduce_prod."""
        return self.reduce_prod(axes=axes, keepdim=keepdim)

    def any(self, axes: Integers | None = None, keepdim: bool = False) -> Var:
        """reduce_any."""
        return self.reduce_any(axes=axes, keepdim=keepdim)

    def all(self, axes: Integers | None = None, keepdim: bool = False) -> Var:
        """reduce_all."""
        return self.reduce_all(axes=axes, keepdim=keepdim)

    def reshape(self, *sizes: Integer | Sequence[Integer], shape: Integers | None = None) -> Var:
        """reshape: sizes in order or as one list, one of which may be -1."""
        return self._function.ops("reshape", self, shape=_list_of("reshape", "shape", sizes, shape))[0]

    def permute(self, *order: Integer | Sequence[Integer], axes: Integers | None = None) -> Var:
        """permute: the axes in their new order, one by one or as one list."""
        return self._function.ops("permute", self, axes=_list_of("permute", "axes", order, axes))[0]

    def expand(self, *sizes: Integer | Sequence[Integer], shape: Integers | None = None) -> Var:
        """expand: dims of size 1 get these sizes, in order or as one list; -1 keeps a size."""
        return self._function.ops("expand", self, shape=_list_of("expand", "shape", sizes, shape))[0]

    def transpose(self, a: Integer, b: Integer) -> Var:
        """transpose: exchanges two axes."""
        return self._function.ops("transpose", self, a=a, b=b)[0]

    def cast(self, dtype: DType) -> Var:
        """cast: the elements in another dtype."""
        return self._function.ops("cast", self, dtype=dtype)[0]

    def item(self) -> Var:
        """The value of a one-element tensor as a scalar of the program."""
        return self._function.item(self)


def _list_of(verb: str, argument: str, given: tuple[Any, ...], named: Any) -> Any:
    """A list given element by element, as one list, or by name."""
    if named is not None and given:
        raise TypeError(f"{verb} is given {argument} twice, by place and by name")
    if named is not None:
        return named
    return given[0] if len(given) == 1 and isinstance(given[0], (list, tuple)) else list(given)


def _is_scalar(value: Any) -> bool:
    """A scalar value of the program, or a number that becomes one."""
    if isinstance(value, Var):
        return value.type in ("int", "float", "bool")
    return isinstance(value, Symbol) or isinstance(_kinds.plain(value), (int, float))


# Kinds of attributes: what they are here, and how they are called. What only the run knows is a native value.
_ATTRIBUTES: dict[str, tuple[tuple[type, ...], str]] = {
    "bool": ((bool,), "True or False"),
    "int": ((int, Symbol, _flexor.NativeVar), "an int or a size"),
    "float": ((int, float, Symbol, _flexor.NativeVar), "a number"),
    "string": ((str,), "a str"),
    "dtype": ((str,), "a dtype or its name"),
    "int list": ((list, _flexor.NativeVar), "a list of ints and sizes"),
}


def _plain_attribute(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain_attribute(item) for item in value]
    return value._native if isinstance(value, Var) else _kinds.plain(value)


class FunctionBuilder(FunctionOps):
    """One function under construction. Every op of the registry is a method: operands first, attributes by name.

    What cannot be right is refused at the line that writes it: ModuleError, ShapeError or DTypeError. The first refusal is
    kept: after it the Builder only repeats it.
    """

    def __init__(self, builder: Builder, name: str) -> None:
        self._builder = builder
        builder._locate()
        self._native = _flexor.begin_function(builder._native, _kinds.text("function", "name", name))
        self.inputs: list[Var] = []
        self._outputs = 0

    # ---- Python values to operands

    def _operand(self, verb: str, argument: str, value: Any) -> Any:
        """What the native function takes as an operand; kinds that it does not know are refused there."""
        if isinstance(value, Var):
            return value._native
        if isinstance(value, Weight):
            return self.weight(value)._native
        if isinstance(value, (list, tuple)):
            return [self._operand(verb, argument, item) for item in value]
        return _kinds.plain(value)

    def _operands(self, verb: str, argument: str, values: Any) -> Sequence[Any]:
        return [self._operand(verb, argument, value) for value in _kinds.items(verb, argument, values)]

    def _value(self, verb: str, argument: str, value: Any) -> _flexor.NativeVar:
        """A value of the program, and nothing else."""
        if not isinstance(value, (Var, Weight)):
            raise _kinds.wrong_kind(verb, argument, value, "a value of the program")
        native: _flexor.NativeVar = self._operand(verb, argument, value)
        return native

    def _attribute(self, verb: str, argument: str, value: Any) -> Any:
        """What the native function takes as an attribute; refused if the registry declares another kind."""
        kind = OPS[verb].attributes.get(argument) if verb in OPS else None
        given = _kinds.dtype_name(value) if kind in ("dtype", "dtype?") else _plain_attribute(value)
        if kind is not None and not (given is None and kind.endswith("?")):
            types, expected = _ATTRIBUTES[kind.rstrip("?")]
            if not isinstance(given, types):
                raise _kinds.wrong_kind(verb, argument, value, expected + (" or None" if kind.endswith("?") else ""))
        return given

    def _var(self, native: _flexor.NativeVar) -> Var:
        return Var(self, native)

    def _bare(self, results: Sequence[_flexor.NativeVar]) -> Any:
        """One Var, or a list of them."""
        values = [Var(self, native) for native in results]
        return values[0] if len(values) == 1 else values

    def _checked(self, read: Callable[[], T]) -> T:
        self._builder._locate()
        value = read()
        self._builder._native.check()
        return value

    # ---- inputs, weights, constants

    def input(
        self, name: str, dtype: DType, shape: Sequence[Dim] | None = None, *, optional: bool = False
    ) -> Var:
        """Declares an argument: a dtype with its dims, or a whole type ("f32[B,S]?", "int", "float", "any").

        A dim is a size, the name of a symbol, "FROZEN S" (one compilation per value), an expression over symbols, or None
        for a size of its own. Raises TextError or ModuleError for a type that cannot be read.
        """
        self._builder._locate()
        _kinds.text("input", "name", name)
        kind = _kinds.text("input", "dtype", _kinds.dtype_name(dtype))
        if shape is not None:
            sizes = _kinds.items("input", "shape", shape)
            for size in sizes:
                if isinstance(size, Symbol):
                    self._native.require_size(size)
            dims = ", ".join("?" if size is None else str(_kinds.plain(size)) for size in sizes)
            kind = f"{_flexor.dtypes().get(kind, kind)}[{dims}]" + ("?" if optional else "")
        value = self._var(self._native.input(name, kind))
        self.inputs.append(value)
        return value

    def weight(self, weight: Weight) -> Var:
        """A Module weight as a value of this function. Raises ModuleError (E0112) for a weight of another Builder."""
        if not isinstance(weight, Weight):
            raise _kinds.wrong_kind("weight", "weight", weight, "a weight of the Builder")
        if weight._builder is not self._builder:
            found = f"weight {weight.name!r} of another Builder"
            raise _kinds.refusal(112, verb="weight", argument="weight", found=found, expected="a weight of this Builder")
        return self._var(self._native.weight(weight.name))

    def constant(self, value: Operand) -> Var:
        """A number, a text, a size or None as a value."""
        return self._var(self._native.constant(self._operand("constant", "value", value)))

    # ---- ops and scalars

    def op(self, name: str, /, *operands: Operand, **attributes: Any) -> Any:
        """Writes an op; one Var, or a list of Vars for an op with several results.

        Operands may stand by name, as attributes do. A scalar operand may be a Python or NumPy number. Raises ModuleError for
        an unknown op (E0108), a wrong number of operands (E0109) and a wrong attribute (E0110), DTypeError (E0404) for an
        argument of a wrong kind, ShapeError (E03xx) for shapes that cannot fit.
        """
        results = self.ops(name, *operands, **attributes)
        several = name in OPS and OPS[name].several
        return results if several or len(results) != 1 else results[0]

    def ops(self, name: str, /, *operands: Operand, **attributes: Any) -> Vars:
        """Writes an op; all its results, whatever their number. Raises as `op` does."""
        self._builder._locate()
        _kinds.text("op", "name", name)
        order = OPS[name].operands if name in OPS else []
        values = [self._operand(name, "", operand) for operand in operands]
        given = {}
        named = {}
        for key, value in attributes.items():
            if key in order:
                named[key] = self._operand(name, key, value)
            else:
                given[key] = self._attribute(name, key, value)
        for key, operand in sorted(named.items(), key=lambda item: order.index(item[0])):
            place = order.index(key)
            if place < len(operands):
                raise TypeError(f"{name} is given {key} twice, by place and by name")
            values += [None] * (place + 1 - len(values))
            values[place] = operand
        return [self._var(native) for native in self._native.ops(name, values, given)]

    def scalar(self, name: str, *operands: Operand) -> Var:
        """Python arithmetic on scalars: "add", "true_div", "floor_div", "mod", "lt", "not", "to_int", ..."""
        self._builder._locate()
        return self._var(self._native.scalar(_kinds.text("scalar", "name", name), self._operands("scalar", "", operands)))

    def item(self, value: Tensor) -> Var:
        """The value of a one-element tensor as a scalar."""
        self._builder._locate()
        return self._var(self._native.item(self._value("item", "value", value)))

    def size(self, value: Tensor, axis: int) -> Var:
        """The size of an axis as a value, read in the run; Var.size gives an expression."""
        self._builder._locate()
        number = _kinds.integer("size", "axis", axis, bits=32)
        return self._var(self._native.size(self._value("size", "value", value), number))

    def frozen(self, value: Tensor, axis: int) -> Var:
        """The tensor with one entry per value of that size."""
        self._builder._locate()
        number = _kinds.integer("frozen", "axis", axis, bits=32)
        return self._var(self._native.frozen(self._value("frozen", "value", value), number))

    def require(self, condition: Operand, message: str) -> None:
        """Raises AssertionFailed (E0508) in the run if the condition does not hold."""
        self._builder._locate()
        text = _kinds.text("require", "message", message)
        self._native.require(self._operand("require", "condition", condition), text)

    # ---- lists and dicts

    def list(self, *elements: Operand) -> Var:
        """A list value."""
        self._builder._locate()
        return self._var(self._native.build_list(self._operands("list", "elements", elements)))

    def append(self, values: Var, element: Operand) -> Var:
        """The list with an element more."""
        self._builder._locate()
        return self._var(self._native.append(self._value("append", "values", values), self._operand("append", "element", element)))

    def get(self, values: Var, index: Operand, *, promise: str = "any") -> Var:
        """An element of a list; negative counts from the end. Raises IndexShapeError (E0307) in the run if there is none.
        `promise`: the type of an element that is not known from the list, in text form."""
        self._builder._locate()
        kind = _kinds.text("get", "promise", promise)
        return self._var(self._native.get(self._value("get", "values", values), self._operand("get", "index", index), kind))

    def promise(self, value: Var, type: str) -> None:
        """States the type, in text form, of a value that nothing is known of: the result of an op on a list whose length only
        the run knows. A value whose type is known keeps it."""
        self._builder._locate()
        self._native.promise(self._value("promise", "value", value), _kinds.text("promise", "type", type))

    def set(self, values: Var, index: Operand, element: Operand) -> Var:
        """The list with an element replaced."""
        self._builder._locate()
        place = self._operand("set", "index", index)
        return self._var(
            self._native.set(self._value("set", "values", values), place, self._operand("set", "element", element))
        )

    def length(self, values: Var) -> Var:
        """The length of a list."""
        self._builder._locate()
        return self._var(self._native.length(self._value("length", "values", values)))

    def unpack(self, values: Var, count: int) -> Vars:
        """The `count` elements of a list, always as a Python list. Raises ModuleError (E0117) for a list of another length."""
        self._builder._locate()
        number = _kinds.integer("unpack", "count", count, bits=32)
        return [self._var(native) for native in self._native.unpack(self._value("unpack", "values", values), number)]

    def dict(self, items: Mapping[str, Operand]) -> Var:
        """A dict value with keys of str."""
        self._builder._locate()
        if not isinstance(items, Mapping):
            raise _kinds.wrong_kind("dict", "items", items, "a dict with keys of str")
        values = {_kinds.text("dict", "keys", key): self._operand("dict", key, item) for key, item in items.items()}
        return self._var(self._native.build_dict(values))

    def dict_get(self, items: Var, key: str) -> Var:
        """The value of a key. Raises ModuleError (E0112) in the run if the dict has none."""
        self._builder._locate()
        name = _kinds.text("dict_get", "key", key)
        return self._var(self._native.dict_get(self._value("dict_get", "items", items), name))

    # ---- calls

    def call(self, function: str, *arguments: Operand, results: int = 1) -> Any:
        """Calls a function of the Module, which may be this one; one Var, or a list of Vars for several results.

        `results` counts where the function has no outputs yet.
        """
        self._builder._locate()
        name = _kinds.text("call", "function", function)
        count = _kinds.integer("call", "results", results, bits=32)
        return self._bare(self._native.call(name, self._operands("call", "arguments", arguments), count))

    def call_foreign(self, hook: str, *arguments: Operand, promise: str = "any") -> Var:
        """Calls a function of the host, bound by Session.bind. `promise`: the type of its result ("f32[?, 4]", "int")."""
        self._builder._locate()
        name = _kinds.text("call_foreign", "hook", hook)
        kind = _kinds.text("call_foreign", "promise", promise)
        return self._var(self._native.call_foreign(name, self._operands("call_foreign", "arguments", arguments), kind))

    def function_value(self, name: str) -> Var:
        """A function of the Module as a value, for call_value."""
        self._builder._locate()
        return self._var(self._native.function_value(_kinds.text("function_value", "name", name)))

    def foreign_value(self, name: str) -> Var:
        """An object or function of the host, bound by Session.bind_value or Session.bind."""
        self._builder._locate()
        return self._var(self._native.foreign_value(_kinds.text("foreign_value", "name", name)))

    def attribute_of(self, foreign: Var, name: str) -> Var:
        """An attribute of an object of the host. What it raises leaves the run as it is."""
        self._builder._locate()
        text = _kinds.text("attribute_of", "name", name)
        return self._var(self._native.attribute_of(self._value("attribute_of", "foreign", foreign), text))

    def call_value(self, callee: Var, *arguments: Operand) -> Var:
        """Calls a value: a function of the Module or an object of the host. Several results come as one list value."""
        self._builder._locate()
        values = self._operands("call_value", "arguments", arguments)
        return self._var(self._native.call_value(self._value("call_value", "callee", callee), values))

    # ---- branches and loops

    def if_else(self, condition: Operand, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """Both functions return the same number of values; the branch's values are returned, one bare, several as a list."""
        self._builder._locate()
        sides = [self._side("if_else", "then", then), self._side("if_else", "otherwise", otherwise)]
        return self._bare(self._native.if_else(self._operand("if_else", "condition", condition), *sides))

    def if_none(self, value: Operand, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """As if_else on `value is None`."""
        self._builder._locate()
        sides = [self._side("if_none", "then", then), self._side("if_none", "otherwise", otherwise)]
        return self._bare(self._native.if_none(self._operand("if_none", "value", value), *sides))

    def _side(self, verb: str, argument: str, function: Callable[[], Any]) -> Callable[[], Any]:
        _kinds.function(verb, argument, function)

        def run() -> Any:
            result = function()
            return self._operands(verb, argument, result if isinstance(result, (list, tuple)) else [result])

        return run

    def while_loop(self, initial: Sequence[Operand], condition: Callable[..., Any], body: Callable[..., Any]) -> Any:
        """while condition(*carried): carried = body(*carried). Returns the carried values after the loop, one bare, several as a
        list. The functions may be called more than once: a type that changes from one round to the next is widened and the loop
        written again."""
        self._builder._locate()
        _kinds.function("while_loop", "condition", condition)
        _kinds.function("while_loop", "body", body)

        def test(carried: Sequence[Any]) -> Any:
            return self._operand("while_loop", "condition", condition(*[self._var(native) for native in carried]))

        def step(carried: Sequence[Any]) -> Any:
            result = body(*[self._var(native) for native in carried])
            return self._operands("while_loop", "body", result if isinstance(result, (list, tuple)) else [result])

        return self._bare(self._native.while_loop(self._operands("while_loop", "initial", initial), test, step))

    # ---- unstructured code

    def label(self) -> Label:
        """A place in the code that jumps lead to.

        A function with labels consists of basic blocks alone: `place` begins one, `jump`, `branch`, `branch_none` or `give` ends
        it. The first that is placed is the entry. Arguments, weights and constants may be used everywhere, other values in the
        block that made them; what must outlive it goes through a variable. Handles belong to this function.
        """
        return Label(self._native.label())

    def _label(self, verb: str, argument: str, label: Label) -> _flexor.NativeLabel:
        if not isinstance(label, Label):
            raise _kinds.wrong_kind(verb, argument, label, "a label of this function")
        return label._native

    def _variable(self, verb: str, variable: Variable) -> _flexor.NativeVariable:
        if not isinstance(variable, Variable):
            raise _kinds.wrong_kind(verb, "variable", variable, "a variable of this function")
        return variable._native

    def place(self, label: Label) -> None:
        """Begins the block of a label."""
        self._builder._locate()
        self._native.place(self._label("place", "label", label))

    def jump(self, target: Label) -> None:
        """Ends the block: goes on at the label."""
        self._builder._locate()
        self._native.jump(self._label("jump", "target", target))

    def branch(self, condition: Operand, then: Label, otherwise: Label) -> None:
        """Ends the block: goes on at `then` if the condition holds, else at `otherwise`."""
        self._builder._locate()
        labels = [self._label("branch", "then", then), self._label("branch", "otherwise", otherwise)]
        self._native.branch(self._operand("branch", "condition", condition), *labels)

    def branch_none(self, value: Operand, then: Label, otherwise: Label) -> None:
        """As branch on `value is None`."""
        self._builder._locate()
        labels = [self._label("branch_none", "then", then), self._label("branch_none", "otherwise", otherwise)]
        self._native.branch_none(self._operand("branch_none", "value", value), *labels)

    def give(self, *results: Operand) -> None:
        """Ends the block: returns the results, as many from every block."""
        self._builder._locate()
        self._native.give(self._operands("give", "results", results))

    def variable(self, name: str) -> Variable:
        """A cell that the blocks of the function share."""
        self._builder._locate()
        return Variable(self._native.variable(_kinds.text("variable", "name", name)))

    def store(self, variable: Variable, value: Operand) -> None:
        """Sets a variable."""
        self._builder._locate()
        self._native.store(self._variable("store", variable), self._operand("store", "value", value))

    def load(self, variable: Variable, like: Var | None = None) -> Var:
        """The value of a variable (FunctionBuilder::take in C++; take is an op here), which is unset then. It has the kind, dtype
        and rank of `like`, a value of any block: every store that reaches here promises that. None: nothing is known."""
        self._builder._locate()
        known = None if like is None else self._value("load", "like", like)
        return self._var(self._native.take(self._variable("load", variable), known))

    # ---- outputs

    def output(self, *values: Operand, names: Sequence[str] | None = None) -> None:
        """Declares results, in order, with names or as out0, out1, ..."""
        self._builder._locate()
        given = None if names is None else [_kinds.text("output", "names", name) for name in _kinds.items("output", "names", names)]
        if given is not None and len(given) != len(values):
            found = f"{len(given)} names for {len(values)} values"
            raise _kinds.refusal(118, verb="output", argument="names", found=found, expected="a name for each value")
        for position, value in enumerate(values):
            name = given[position] if given else f"out{self._outputs}"
            self._native.output(name, self._operand("output", name, value))
            self._outputs += 1


class Label:
    """A place in the code of a function that jumps lead to; made by FunctionBuilder.label."""

    __slots__ = ("_native",)

    def __init__(self, native: _flexor.NativeLabel) -> None:
        self._native = native


class Variable:
    """A cell that the basic blocks of a function share; made by FunctionBuilder.variable."""

    __slots__ = ("_native",)

    def __init__(self, native: _flexor.NativeVariable) -> None:
        self._native = native


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


def _unsupported(weight: str, found: str, expected: str) -> FlexorError:
    return _kinds.refusal(704, verb="weight", argument=weight, found=found, expected=expected)


class Builder:
    """Writes a Module. Errors are raised at the line that writes what cannot be right.

    promotion     "torch" or "numpy": how operands of different dtypes combine, a property of the program
    """

    def __init__(self, *, promotion: str = "torch") -> None:
        self._native = _flexor.NativeBuilder()
        if promotion not in ("torch", "numpy"):
            raise _kinds.refusal(507, argument="promotion", found=repr(promotion), expected='"torch" or "numpy"')
        if promotion == "numpy":
            self._native.numpy_promotion()

    def _locate(self) -> None:
        frame = sys._getframe(1)
        while frame.f_code.co_filename in _FILES and frame.f_back is not None:
            frame = frame.f_back
        self._native.set_location(frame.f_code.co_filename, frame.f_lineno)

    def symbol(self, name: str, lo: int = 0, hi: int | None = None) -> Symbol:
        """Declares a dim symbol with its range, ends included; None: no upper end. Raises ModuleError (E0111, E0113)."""
        self._locate()
        upper = None if hi is None else _kinds.integer("symbol", "hi", hi)
        return self._native.symbol(_kinds.text("symbol", "name", name), _kinds.integer("symbol", "lo", lo), upper)

    def weight(self, name: str, array: Any) -> Weight:
        """Adds a constant tensor: a NumPy array, a strided torch tensor on the CPU or a CUDA device, or anything np.asarray takes.

        The memory is copied: what becomes of the array later does not reach the Module. Raises NotSupported for other
        tensors of torch and for masked arrays, DTypeError (E0401) for a dtype that there is not, ModuleError (E0111) for a name
        that is taken.
        """
        self._locate()
        _kinds.text("weight", "name", name)
        if hasattr(array, "detach"):
            if array.device.type not in ("cpu", "cuda") or str(array.layout) != "torch.strided" or array.is_quantized:
                raise _unsupported(name, f"a {array.layout} tensor on {array.device}", "a strided tensor on the CPU or a CUDA device")
            array = array.detach().cpu().resolve_conj().resolve_neg().contiguous()
            dtype, data, shape = str(array.dtype).removeprefix("torch."), array.data_ptr(), tuple(array.shape)
        else:
            if isinstance(array, np.ma.MaskedArray):
                raise _unsupported(name, "a masked array", "array.filled(...)")
            try:
                array = np.ascontiguousarray(array) if np.ndim(array) else np.asarray(array)
            except (TypeError, ValueError) as error:
                raise _unsupported(name, f"a value of type {type(array).__name__}", "what NumPy makes an array of") from error
            dtype, data, shape = str(array.dtype), array.ctypes.data, array.shape
        self._native.weight(name, data, dtype, list(shape))  # copies while `array` is alive
        return Weight(self, name, dtype, shape)

    def function(self, name: str, inputs: Sequence[tuple[Any, ...]] = ()) -> FunctionBuilder:
        """Begins a function; "main" is the entry. `inputs` are (name, dtype, shape) or (name, type)."""
        function = FunctionBuilder(self, name)
        for declaration in _kinds.items("function", "inputs", inputs):
            function.input(*_kinds.items("function", "inputs", declaration))
        return function

    def metadata(self, key: str, value: str) -> None:
        """Text that the Module carries."""
        self._native.metadata(_kinds.text("metadata", "key", key), _kinds.text("metadata", "value", value))

    def build(self) -> Module:
        """The verified Module; the Builder may go on. Raises ModuleError for what only the whole shows."""
        return Module(self._native.build())
