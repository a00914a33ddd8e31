"""Writes Flexor bytecode for the translator: ops, scalars, blocks and foreign calls over abstract values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from flexor import _flexor
from flexor.errors import FlexorError
from flexor.frontend.cpython import texts
from flexor.frontend.cpython.values import SCALARS, Dynamic, Element, Known, ListValue, RunList, TextValue, TupleValue, Value, dynamics


_EXAMPLES = {"int": 0, "float": 0.0, "bool": False, "object": 0}


_MAKE_MEMORY = frozenset(("map", "reduce", "concat", "index", "contraction", "attention"))  # families of ops whose results are new


class NotWritten(Exception):
    """An op that the Builder refuses, or an operand that no op takes: the call is left to the framework."""


@functools.cache
def registry() -> dict[str, dict[str, Any]]:
    """Ops by name."""
    return {op["name"]: op for op in _flexor.registry()}


@functools.cache
def _attribute_types(op: str) -> dict[str, str]:
    return {name: type_ for name, type_, _ in registry()[op]["attributes"]}


class NotKnown(NotWritten):
    """An op needs a value at translation that is of the run. `began`: the Builder has refused it, and takes nothing after that."""

    def __init__(self, *values: Dynamic, began: bool = False) -> None:
        super().__init__("an argument that has to be known at translation")
        self.values, self.began = values, began


def plain(value: Any) -> Any:
    """What a value is in Python, where that is known whole; raises NotWritten otherwise."""
    if isinstance(value, Known):
        return value.object
    if isinstance(value, TupleValue):
        return tuple(plain(item) for item in value.items)
    if isinstance(value, ListValue):
        return [plain(item) for item in value.items]
    if isinstance(value, Dynamic):
        raise NotKnown(value)
    if isinstance(value, Value):
        raise NotWritten("an argument that has to be known at translation")
    return value


class Writer:
    """One function under construction. Values come in and go out as abstract values."""

    def __init__(self, promotion: str) -> None:
        self.builder = _flexor.NativeBuilder()
        if promotion == "numpy":
            self.builder.numpy_promotion()
        self.inputs: list[Dynamic] = []  # of the main function
        self.hooks: dict[str, Callable[..., Any]] = {}
        self.typed: set[str] = set()  # those of them that say before the run what they give
        self.count = 0  # of instructions that compute or call
        self.refuse_write: Callable[[str], NoReturn] | None = None  # told the name of a weight that an op would write to
        self._begun: dict[str, Any] = {}
        self.declare("main")
        self.begin("main")

    def declare(self, name: str) -> None:
        """A further function, which may be called before it is written, once its parameters are there."""
        self._begun[name] = _flexor.begin_function(self.builder, name)

    def begin(self, name: str) -> None:
        """Goes on with a function that has been declared: what follows is written into it."""
        self.function = self._begun[name]
        self._variables: list[Any] = []
        self._symbols: dict[str, Dynamic] = {}  # sizes of arguments by name
        self._like = {kind: self.function.constant(value) for kind, value in _EXAMPLES.items()}

    # ---------------------------------------------------------------------------------------------------------- values

    def wrap(self, native: Any, anywhere: str | None = None) -> Dynamic:
        """The abstract value of a handle of the Builder."""
        dtype, text = native.dtype(), native.type()
        if dtype is not None or "[" in text:
            return Dynamic("tensor", native, anywhere, dtype, native.rank())
        kind = text.split(" ")[0]
        return Dynamic(kind if kind in ("int", "float", "bool") else "tensor", native, anywhere)

    def input(self, name: str, text: str) -> Dynamic:
        """A further argument of the function, of a type in text form."""
        made = self.wrap(self.function.input(name, text), f"input {name}")
        made.root = made.anywhere
        self.inputs.append(made)
        for axis in range(made.rank):
            size = made.native.size(axis)
            if size.is_known() and str(size).isidentifier():
                self._symbols.setdefault(str(size), Dynamic("int", size, f"size {size}"))
        return made

    def parameter(self, function: str, name: str, like: Dynamic) -> Dynamic:
        """A parameter of a declared function, for values of the kind of another."""
        native = self._begun[function].input(name, promise_text(like.kind, like.dtype, like.rank))
        return Dynamic(like.kind, native, f"parameter {function} {name}", like.dtype, like.rank)

    def parameter_of(self, function: str, name: str, text: str) -> Dynamic:
        """The same for a type in text form."""
        return self.wrap(self._begun[function].input(name, text), f"parameter {function} {name}")

    def call(self, name: str, arguments: Sequence[Dynamic], wanted: Sequence[Dynamic]) -> list[Dynamic]:
        """Calls a function of the Module, whose results are of the kinds of `wanted`."""
        self.count += 1
        made = []
        for native, like in zip(self.function.call(name, [v.native for v in arguments], len(wanted)), wanted):
            text = promise_text(like.kind, like.dtype, like.rank)
            if text != "any":
                self.function.promise(native, text)
            made.append(Dynamic(like.kind, native, None, like.dtype, like.rank))
        return made

    def add_weight(self, name: str, pointer: int, dtype: str, shape: Sequence[int]) -> None:
        """A weight of the Module, copied from memory without gaps."""
        self.builder.weight(name, pointer, dtype, list(shape))

    def weight(self, name: str) -> Dynamic:
        """A weight of the Module as a value of the function."""
        made = self.wrap(self.function.weight(name), f"weight {name}")
        made.weight = name
        return made

    def raw(self, value: Value) -> Any:
        """A value as the Builder takes an operand. Raises NotWritten for what is no value of a program."""
        if isinstance(value, Dynamic):
            if value.kind == "object":
                raise NotWritten("an object of Python")
            return value.native
        if isinstance(value, Known) and (value.object is None or type(value.object) in (*SCALARS, str)):
            return value.object
        if isinstance(value, (TupleValue, ListValue)):
            return [self.function.constant(raw) if isinstance(raw := self.raw(v), (*SCALARS, str)) else raw for v in value.items]
        raise NotWritten(f"a {type(value).__name__}")

    def attribute(self, value: Any) -> Any:
        """A value as the Builder takes an attribute: plain Python, or a handle where only the run knows."""
        if isinstance(value, Known):
            value = value.object
        if isinstance(value, (TupleValue, ListValue)):
            return [self.attribute(item) for item in value.items]
        if isinstance(value, Dynamic):
            if not value.is_scalar:
                raise NotWritten(f"a {value.kind} as an attribute")
            return value.native
        if value is None or isinstance(value, (*SCALARS, str)):
            return value
        if isinstance(value, (list, tuple)):
            return [self.attribute(item) for item in value]
        name = dtype_name(value)
        if name is None:
            raise NotWritten(f"{value!r} as an attribute")
        return name

    # ------------------------------------------------------------------------------------------------------------- ops

    def ops(self, name: str, operands: Sequence[Value], attributes: dict[str, Any]) -> list[Dynamic]:
        """Every result of an op. Raises a FlexorError for what the op is sure to refuse, NotKnown if known attributes might help."""
        given = {key: self.attribute(value) for key, value in attributes.items()}
        for key, value in given.items():
            if value is None and not _attribute_types(name)[key].endswith("?"):
                raise NotWritten(f"None as {key}")
        if any(isinstance(v, (TupleValue, ListValue)) for v in operands):
            raise NotWritten("a list in the place of a tensor")
        weight = operands[0].weight if operands and isinstance(operands[0], Dynamic) else None
        if weight is not None and registry()[name]["writes_first"]:
            assert self.refuse_write is not None
            self.refuse_write(weight)
        of_run = [v for value in attributes.values() for v in dynamics(value)]
        for key, value in attributes.items():
            wanted = _attribute_types(name).get(key, "").split(" ")[0].rstrip("?")
            for item in dynamics(value):
                if item.kind != "int" and item.kind != wanted:
                    raise NotKnown(item)
        try:
            self.count += 1
            results = self.function.ops(name, [self.raw(v) for v in operands], {k: v for k, v in given.items() if v is not None})
        except FlexorError:
            if of_run:
                raise NotKnown(*of_run, began=True) from None
            raise
        made = [self.wrap(native) for native in results]
        family = registry()[name]["family"]
        for result in made:
            if family == "view":
                result.weight = weight
                result.root = operands[0].root if isinstance(operands[0], Dynamic) else None
                result.is_fresh = isinstance(operands[0], Dynamic) and operands[0].is_fresh
            else:
                result.is_fresh = family in _MAKE_MEMORY and not registry()[name]["writes_first"]
        return made

    def op(self, name: str, *operands: Value, **attributes: Any) -> Dynamic:
        """The result of an op that has one."""
        return self.ops(name, operands, attributes)[0]

    def scalar(self, name: str, *operands: Value) -> Dynamic:
        """Python arithmetic on numbers."""
        self.count += 1
        made = self.wrap(self.function.scalar(name, [self.raw(v) for v in operands]))
        return made if made.kind != "tensor" else Dynamic("number", made.native)

    # ----------------------------------------------------------------------------------------------------------- lists

    # A Dynamic of kind "list" has the kind of its elements in the place of a dtype; objects are in it by their handles, and numbers
    # and strings of a list that grows as tensors without axes (rank 0): one program serves such a list whatever its length.

    def list_of(self, items: Sequence[Value], element: Element) -> Dynamic:
        """A list of the run."""
        kind, _, rank = element
        made = Dynamic("list", None, None, kind, rank if kind in IN_TENSORS else -1)
        made.native = self.function.build_list([self._handle(v, made) for v in items])
        return made

    def append(self, content: Dynamic, item: Value) -> Dynamic:
        """The list with an element more."""
        return Dynamic("list", self.function.append(content.native, self._handle(item, content)), None, content.dtype, content.rank)

    def number(self, value: Value) -> Value:
        """The number of a string."""
        return value.number if isinstance(value, TextValue) else Known(texts.number_of(plain(value)))

    def _handle(self, value: Value, content: Dynamic) -> Any:
        if content.dtype == "text":
            value = self.number(value)
        if content.rank == 0:
            value = self.op("full", value, shape=[], dtype=IN_TENSORS[content.dtype or ""])
        elif isinstance(value, RunList):
            value = value.content
        elif isinstance(value, TupleValue):
            value = self.list_of(value.items, ("any", None, -1))
        raw = value.native if isinstance(value, Dynamic) and value.kind == "object" else self.raw(value)
        return raw if isinstance(value, Dynamic) else self.function.constant(raw)

    def element(self, content: Dynamic, index: Value, element: Element) -> Value:
        """An element of a list whose elements are alike."""
        self.count += 1
        kind, dtype, rank = element
        if kind == "tuple":
            held = Dynamic("list", self.function.get(content.native, self.raw(index), "any"), None, "any")
            return TupleValue([self.element(held, Known(at), part) for at, part in enumerate(dtype)])
        if kind == "list":
            native = self.function.get(content.native, self.raw(index), "any")
            return RunList(Dynamic("list", native, None, dtype[0], dtype[2] if dtype[0] in IN_TENSORS else -1), dtype, is_shared=True)
        if content.rank == 0:
            name = IN_TENSORS[kind]
            held = Dynamic("tensor", self.function.get(content.native, self.raw(index), promise_text("tensor", name, 0)), None, name, 0)
            return TextValue(self.item(held)) if kind == "text" else self.item(held)
        native = self.function.get(content.native, self.raw(index), promise_text(kind, dtype, rank))
        return TextValue(Dynamic("int", native)) if kind == "text" else Dynamic(kind, native, None, dtype, rank)

    def set_element(self, content: Dynamic, index: Value, item: Value) -> Dynamic:
        """The list with an element replaced."""
        self.count += 1
        native = self.function.set(content.native, self.raw(index), self._handle(item, content))
        return Dynamic("list", native, None, content.dtype, content.rank)

    def join(self, op: str, content: Dynamic, axis: int, element: Element) -> Dynamic:
        """concat or stack of a list of tensors that are alike; stack of numbers in tensors."""
        kind, dtype, rank = element
        if op == "stack" and rank == 0 and kind in IN_TENSORS and kind != "text":
            kind, dtype = "tensor", IN_TENSORS[kind]
        if kind != "tensor" or not isinstance(dtype, str) or rank < 0:
            raise NotWritten("a list of something else than tensors of one dtype and rank")
        rank += op == "stack"
        native = self.function.ops(op, [content.native], {"axis": axis})[0]
        self.function.promise(native, promise_text("tensor", dtype, rank))
        made = Dynamic("tensor", native, None, dtype, rank)
        made.is_fresh = True
        return made

    def length(self, content: Dynamic) -> Dynamic:
        """The length of a list."""
        return self.wrap(self.function.length(content.native))

    def item(self, tensor: Dynamic) -> Dynamic:
        """The element of a one-element tensor."""
        self.count += 1
        made = self.wrap(self.function.item(tensor.native))
        if made.kind == "tensor":  # of a tensor whose dtype only the run knows
            raise NotWritten("the item of a tensor of unknown dtype")
        return made

    def size(self, tensor: Dynamic, axis: int) -> Value:
        """A size of a tensor."""
        if tensor.sizes is not None and (known := tensor.sizes[axis]) is not None:
            return known
        native = tensor.native.size(axis)
        if not native.is_known():
            return Dynamic("int", native)
        # Symbols are read from the arguments; of an expression over them the tensor at hand is the shorter way.
        known = self._named_size(str(native))
        return known if known is not None else self.wrap(self.function.size(tensor.native, axis))

    def _named_size(self, text: str) -> Value | None:
        if text.lstrip("-").isdigit():
            return Known(int(text))
        return self._symbols.get(text)

    def known_sizes(self, tensor: Dynamic) -> tuple[Value | None, ...] | None:
        """What is known of a tensor's sizes in every basic block: numbers and symbols of the arguments."""
        if tensor.sizes is None and tensor.rank > 0:
            _, _, inside = tensor.native.type().partition("[")
            texts = inside.rstrip("?").removesuffix("]").split(", ")
            # An expression over symbols may have commas of its own; such a type says nothing here.
            tensor.sizes = tuple(map(self._named_size, texts)) if len(texts) == tensor.rank else (None,) * tensor.rank
        return tensor.sizes

    def constant(self, value: Any) -> Dynamic:
        """A number as a value of the program."""
        kind = {bool: "bool", int: "int", float: "float"}[type(value)]
        return Dynamic(kind, self.function.constant(value))

    # --------------------------------------------------------------------------------------------------- foreign calls

    def foreign(
        self,
        hook: str,
        function: Callable[..., Any],
        operands: Sequence[Dynamic],
        result: str,
        promise: tuple[str, int] | None,
        sizes: Sequence[str] = (),
    ) -> Value:
        """Calls `function` of Python in the run. `result`: "none", or a kind; `promise`: dtype and rank of the tensor it gives, of
        sizes that are known as far as `sizes` tells."""
        self.count += 1
        self.hooks[hook] = function
        text = promise_text(result, None, -1) if promise is None else promise_text("tensor", *promise, sizes)
        native = self.function.call_foreign(hook, [v.native for v in operands], text)
        if result == "none":
            return Known(None)
        return Dynamic("tensor", native, None, *promise) if promise is not None else Dynamic(result, native)

    # ---------------------------------------------------------------------------------------------------------- blocks

    def variable(self, number: int) -> Any:
        """The number-th variable that blocks share."""
        while len(self._variables) <= number:
            self._variables.append(self.function.variable(f"s{len(self._variables)}"))
        return self._variables[number]

    def hand_over(self, values: Sequence[Dynamic]) -> None:
        """Stores values where the next block takes them."""
        for number, value in enumerate(values):
            self.function.store(self.variable(number), value.native)

    def take_over(self, values: Sequence[Dynamic], keeps_sizes: bool) -> list[Dynamic]:
        """The values that the block before has handed over, as values of this block; with what was known of sizes, if every way
        that leads here agrees on that."""
        taken = []
        for number, value in enumerate(values):
            like = value.native if value.kind == "tensor" else self._like.get(value.kind)
            native = self.function.take(self.variable(number), like)
            made = Dynamic(value.kind, native, None, value.dtype, value.rank)
            if keeps_sizes and value.kind == "tensor":
                made.sizes, made.is_fresh, made.root = self.known_sizes(value), value.is_fresh, value.root
            made.weight = value.weight
            taken.append(made)
        return taken


IN_TENSORS = {"bool": "bool", "int": "int64", "float": "float64", "text": "int64"}


def growing(element: Element) -> Element:
    """The elements of a list that grows."""
    return (element[0], None, 0) if element[0] in IN_TENSORS else element


SHORT_DTYPES: dict[str, str] = _flexor.dtypes()  # by framework name
_PYTHON_DTYPES = {float: "float64", int: "int64", bool: "bool"}


def promise_text(kind: str, dtype: str | None, rank: int, sizes: Sequence[str] = ()) -> str:
    """The text form of the type of a Dynamic."""
    if kind == "tensor" and dtype is not None and rank >= 0:
        return f"{SHORT_DTYPES[dtype]}[{', '.join(sizes or '?' * rank)}]"
    return {"int": "int", "float": "float", "bool": "bool", "object": "int", "text": "int"}.get(kind, "any")


def dtype_name(obj: Any) -> str | None:
    """The framework name of a dtype of torch or NumPy (or a Python class that NumPy takes for one)."""
    text = str(obj)
    if text.startswith("torch.") and text[6:] in SHORT_DTYPES:
        return text[6:]
    if isinstance(obj, type) and obj in _PYTHON_DTYPES:
        return _PYTHON_DTYPES[obj]
    name = getattr(obj, "name", None) or getattr(obj, "__name__", None)
    return name.rstrip("_") if isinstance(name, str) and name.rstrip("_") in SHORT_DTYPES else None
