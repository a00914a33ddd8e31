"""The rows of `signatures` and of the registry: which functions of torch and NumPy are ops, and how their arguments are read."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import types
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flexor.frontend.cpython import signatures
from flexor.frontend.cpython.lowering import lifted
from flexor.frontend.cpython.values import Known, Value, is_number
from flexor.frontend.cpython.writer import NotWritten, plain, registry

if TYPE_CHECKING:
    from flexor.frontend.cpython.lowering import Lowering


class Row:
    """One signature: bind arguments, then evaluate. A row is read when its function is called for the first time."""

    def __init__(self, parameters: str, expression: str, torch_name: str | None = None) -> None:
        self._parameters, self._expression, self._torch_name = parameters, expression, torch_name

    @functools.cached_property
    def fixed(self) -> dict[str, Any]:
        """Parameters that have to have a value."""
        words = [word.strip() for word in _split(self._parameters)]
        return {word[1:].split("=")[0]: ast.literal_eval(word.split("=", 1)[1]) for word in words if word.startswith("!")}

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        """The parameters."""
        words = ", ".join(word.strip().lstrip("!") for word in _split(self._parameters))
        return inspect.signature(eval(compile(f"lambda {words}: 0", "<row>", "eval")))

    @functools.cached_property
    def overloads(self) -> Sequence[dict[str, str]]:
        """Of torch's own signature: kinds ("Tensor", "number") by parameter."""
        return _overloads(self._torch_name, tuple(self.signature.parameters)) if self._torch_name is not None else ()

    @functools.cached_property
    def rest(self) -> str:
        """The parameter that takes any number of arguments, or an empty text."""
        kinds = self.signature.parameters.items()
        return next((name for name, parameter in kinds if parameter.kind == inspect.Parameter.VAR_POSITIONAL), "")

    @functools.cached_property
    def before_rest(self) -> int:
        """The number of parameters before that."""
        return list(self.signature.parameters).index(self.rest) if self.rest else 0

    @functools.cached_property
    def expression(self) -> types.CodeType:
        """What the call computes."""
        return compile(_Qualify().visit(ast.parse(self._expression, mode="eval")), "<row>", "eval")

    def __call__(self, lowering: Lowering, arguments: Sequence[Value], keywords: dict[str, Value]) -> Any:
        """The value of the call. Raises NotWritten where the row does not cover it."""
        if self.rest in keywords and len(arguments) == self.before_rest:  # Tensor.permute(dims=...)
            arguments = [*arguments, keywords[self.rest]]
            keywords = {name: value for name, value in keywords.items() if name != self.rest}
        try:
            bound = self.signature.bind(*arguments, **keywords)
        except TypeError as error:
            raise NotWritten(str(error)) from None
        if self.overloads and not any(_takes(overload, bound.arguments) for overload in self.overloads):
            raise NotWritten("a number in the place of a tensor, or a tensor in the place of a number")
        bound.apply_defaults()
        for name, default in self.fixed.items():
            if plain(bound.arguments[name]) != default:
                raise NotWritten(f"the argument {name}")
        scope = {name: value if isinstance(value, (Value, tuple)) else Known(value) for name, value in bound.arguments.items()}
        return lifted(eval(self.expression, {"ops": lowering}, scope))


def _takes(overload: dict[str, str], arguments: Mapping[str, Any]) -> bool:
    """Whether tensors and numbers among arguments stand where an overload has them. Parameters it does not name take anything."""
    for name, value in arguments.items():
        kind = overload.get(name)
        if kind == "Tensor" and (is_number(value) or isinstance(value, Known) and value.object is None):
            return False
        if kind == "Tensor?" and is_number(value):
            return False
    return True


class _Qualify(ast.NodeTransformer):
    """Names that are called are attributes of the lowering."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name):
            node.func = ast.Attribute(ast.Name("ops", ast.Load()), node.func.id, ast.Load())
        return ast.fix_missing_locations(node)


def _split(parameters: str) -> list[str]:
    """At commas outside of brackets."""
    out, depth = [""], 0
    for char in parameters:
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            out.append("")
        else:
            out[-1] += char
    return out


# Functions of torch that take a number for any tensor, if one of their arguments is a tensor.
_TAKE_NUMBERS = ("add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide")


@functools.cache
def _overloads(name: str, parameters: tuple[str, ...]) -> tuple[dict[str, str], ...]:
    """What the overloads of a function or method of torch take for the parameters of its row: as torch declares them."""
    place, _, last = name.partition(".")
    torch: Any = sys.modules.get("torch")
    first = next((p for p in parameters if p in ("input", "self", "tensor", "x", "query")), parameters[0] if parameters else "")
    if torch is None or place in ("F", "masked"):
        return ({first: "Tensor"},) if torch is not None else ()
    out = []
    for schema in torch._C._jit_get_schemas_for_operator("aten::" + last):
        kinds = {first if a.name == "self" and "self" not in parameters else a.name: str(a.type) for a in schema.arguments if not a.is_out}
        is_maker = "dtype" in kinds and "Tensor" not in kinds.values()  # of a new tensor from numbers
        if (is_maker or "Tensor" in kinds.values()) and len(kinds) == len(schema.arguments):
            out.append({k: {"Tensor": "Tensor", "Optional[Tensor]": "Tensor?"}.get(t, "") for k, t in kinds.items()})
    if last in _TAKE_NUMBERS:
        out = [{p: "Tensor" if p == chosen else "" for p in parameters} for chosen in parameters[:2]]
    if place == "Tensor":
        out = out or [{}]
        out = [overload | {first: "Tensor"} for overload in out]
    return tuple(out)


@functools.cache
def of(framework: str) -> dict[str, Row]:
    """Rows by qualified name ("torch.softmax", "Tensor.view", "np.sum")."""
    out: dict[str, Row] = {}
    for name, op in registry().items():
        if op["attributes"] or any("list" in operand[1] for operand in op["operands"]):
            continue
        operands = [_TORCH_NAMES.get(operand[0], operand[0]) if framework == "torch" else operand[0] for operand in op["operands"]]
        given = ", ".join(operands)
        path = op[framework]
        if path:
            module, _, last = path.rpartition(".")
            short = {"torch": "torch", "torch.nn.functional": "F", "torch.Tensor": "Tensor", "numpy": "np"}.get(module)
            for place in (short, "Tensor") if short == "torch" else (short,) if short else ():
                made = f"written({given[:len(operands[0])]}, '{name}'{given[len(operands[0]):]})" if name.endswith("_") else f"{name}({given})"
                qualified = f"{place}.{last}"
                out[qualified] = Row(given, made, qualified if framework == "torch" else None)
    table = signatures.TORCH if framework == "torch" else signatures.NUMPY
    for line in table.strip().splitlines():
        names, _, rest = line.partition(": ")
        parameters, _, expression = rest.partition(" -> ")
        for name in names.split():
            out[name] = Row(parameters, expression, name if framework == "torch" else None)
    return out


_TORCH_NAMES = {"x": "input", "y": "other"}  # of operands, where torch calls them otherwise


@functools.cache
def functions() -> dict[int, tuple[str, Any]]:
    """Callables of the frameworks that rows describe, by identity: (framework, qualified name). Holds them alive."""
    out: dict[int, tuple[str, Any]] = {}
    torch, numpy = sys.modules.get("torch"), sys.modules["numpy"]
    places: dict[str, tuple[str, Any]] = {"np": ("numpy", numpy)}
    if torch is not None:
        places |= {"torch": ("torch", torch), "F": ("torch", torch.nn.functional), "nn": ("torch", torch._C._nn)}
        places |= {name: ("torch", getattr(torch, name)) for name in ("linalg", "special", "fft", "masked")}
    for framework in ("torch", "numpy"):
        for name in of(framework):
            place, _, last = name.partition(".")
            if place in places:
                found = functools.reduce(lambda holder, key: getattr(holder, key, None), last.split("."), places[place][1])
                if found is not None:
                    out[id(found)] = (name, found)
    return out


_IMPURE = ("rand", "bernoulli", "multinomial", "normal", "poisson", "exponential", "geometric", "dropout", "seed", "set_", "save", "load", "print", "use_", "shuffle")


@functools.cache
def _pure() -> frozenset[int]:
    out: set[int] = set()
    torch, numpy = sys.modules.get("torch"), sys.modules["numpy"]
    places = [numpy, numpy.linalg, numpy.fft]
    if torch is not None:
        places += [torch, torch.nn.functional, torch.linalg, torch.special, torch.fft, torch._C._nn]
    for place in places:
        for name, value in vars(place).items():
            if callable(value) and not isinstance(value, type) and not name.endswith("_") and not draws(name):
                out.add(id(value))
    return frozenset(out)


def draws(name: str) -> bool:
    """Whether a function or method of this name takes random numbers or changes something."""
    return any(word in name.replace("normaliz", "") for word in _IMPURE)


def is_pure(function: Any) -> bool:
    """Whether a function of a framework is known to change nothing."""
    return id(function) in _pure()


def prefix(framework: str) -> str:
    """The prefix of a framework's tensor methods in the rows."""
    return "Tensor" if framework == "torch" else "ndarray"
