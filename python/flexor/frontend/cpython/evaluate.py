"""What Python's operators, tests and iterators do to abstract values."""

from __future__ import annotations

import math
import operator
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from flexor.frontend.cpython import attributes, builtin, calls, exceptions, helpers, indexing, instances, methods
from flexor.frontend.cpython.decode import NotTranslated
from flexor.frontend.cpython.values import (
    ArgumentList,
    DictValue,
    DictView,
    Dynamic,
    EnumerateIterator,
    GeneratorValue,
    IndexIterator,
    InstanceValue,
    Known,
    ListValue,
    Null,
    RangeIterator,
    RunList,
    SequenceIterator,
    SetValue,
    StringValue,
    TextValue,
    TupleValue,
    Value,
    ZipIterator,
    is_number,
)
from flexor.frontend.cpython.writer import NotWritten

if TYPE_CHECKING:
    from flexor.frontend.cpython.translate import Translator

_LONGEST_UNROLLED = 32
_LONGEST_LEFT = 8  # of loops that the run may leave: what follows is written for each iteration

# Operator -> (Python's function, its form in place, op of the registry, scalar operator or None)
BINARY: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any], str, str | None]] = {
    "+": (operator.add, operator.iadd, "add", "add"),
    "-": (operator.sub, operator.isub, "sub", "sub"),
    "*": (operator.mul, operator.imul, "mul", "mul"),
    "/": (operator.truediv, operator.itruediv, "div", "true_div"),
    "//": (operator.floordiv, operator.ifloordiv, "floor_divide", "floor_div"),
    "%": (operator.mod, operator.imod, "remainder", "mod"),
    "**": (operator.pow, operator.ipow, "pow", "pow"),
    "@": (operator.matmul, operator.imatmul, "matmul", None),
    "<<": (operator.lshift, operator.ilshift, "shift_left", None),
    ">>": (operator.rshift, operator.irshift, "shift_right", None),
    "&": (operator.and_, operator.iand, "bitwise_and", None),
    "|": (operator.or_, operator.ior, "bitwise_or", None),
    "^": (operator.xor, operator.ixor, "bitwise_xor", None),
}
COMPARE: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "<": (operator.lt, "lt"),
    "<=": (operator.le, "le"),
    "==": (operator.eq, "eq"),
    "!=": (operator.ne, "ne"),
    ">": (operator.gt, "gt"),
    ">=": (operator.ge, "ge"),
}


# ------------------------------------------------------------------------------------------------------- known values

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), range)


def is_plain(obj: Any) -> bool:
    """Whether an object cannot change, nor its class be anybody's: Python computes with it at translation."""
    if type(obj) in _PLAIN or isinstance(obj, type):
        return True
    if type(obj) in (tuple, frozenset, slice):
        parts = (obj.start, obj.stop, obj.step) if type(obj) is slice else obj
        return all(is_plain(part) for part in parts)
    return type(obj).__module__ == "torch" and type(obj).__name__ in ("dtype", "device", "Size", "layout", "memory_format")


def fold(t: Translator, what: str, function: Callable[..., Any], values: list[Value]) -> Value:
    """What Python gives for known operands; where it raises, a call that raises in the run."""
    objects = [v.object for v in values if isinstance(v, Known)]
    try:
        result = function(*objects)
    except Exception:
        return raises(t, what, function, values)
    return _made(t, result)


def _made(t: Translator, obj: Any) -> Value:
    """An object that Python has made at translation: every call gets lists, dicts and sets of its own."""
    if type(obj) is list:
        return ListValue(_made(t, item) for item in obj)
    if type(obj) is dict:
        return DictValue({key: _made(t, item) for key, item in obj.items()})
    if type(obj) is set:
        return SetValue(frozenset(obj))
    if type(obj) is tuple and any(type(item) in (list, dict, set, tuple) for item in obj):
        return TupleValue(_made(t, item) for item in obj)
    return t.known(obj)


def raises(t: Translator, what: str, function: Callable[..., Any], values: list[Value]) -> NoReturn:
    """A call that raises, as it has at translation: in the run, where the block ends, if no handler of the function's looks at it."""
    exceptions.throw(t, function, values)
    t.foreign(what, function, values, result="none", raises=True)
    t.unreachable()


def all_plain(values: list[Value]) -> bool:
    return all(isinstance(v, builtin.Settled) or (isinstance(v, Known) and is_plain(v.object)) for v in values)


def is_tensor(value: Value) -> bool:
    return isinstance(value, Dynamic) and value.kind == "tensor"


def as_sequence(t: Translator, value: Value) -> list[Value] | None:
    """The elements of a list or tuple, or None for anything else."""
    if isinstance(value, (TupleValue, ListValue)):
        return list(value.items)
    if isinstance(value, Known) and isinstance(value.object, (tuple, list)):
        return attributes.elements(t, value.object)
    return None


# ---------------------------------------------------------------------------------------------------------- arithmetic


def binary(t: Translator, op: str, a: Value, b: Value, in_place: bool = False) -> Value | None:
    """a op b, or a op= b."""
    function, inplace, name, scalar = BINARY[op]
    if t.lowering.framework == "torch" or not (is_tensor(a) or is_tensor(b)):  # NumPy asks for the class of a number
        a, b = (_as_builtin(v, function.__name__.rstrip("_")) for v in (a, b))
    if all_plain([a, b]):
        return fold(t, op, function, [a, b])
    if in_place and t.lowering.framework == "numpy" and isinstance(a, Dynamic) and a.rank == 0 and t.class_of_input(a) is not np.ndarray:
        in_place = False  # NumPy's scalars do not change
    by_method = instances.binary(t, op, a, b, in_place)
    if by_method is not NotImplemented:
        return by_method  # type: ignore[no-any-return]
    python = inplace if in_place else function
    if is_tensor(a) or is_tensor(b):

        def write() -> Value:
            return t.lowering.operated(name + "_" * (in_place and is_tensor(a) and op != "@"), a, b)  # type: ignore[no-any-return]

        return t.attempt(write, lambda: _foreign_operator(t, op, python, a, b, in_place))
    if is_number(a) and is_number(b):
        if op == "**" and any(class_name(v) in ("float", "number") for v in (a, b)):
            return t.attempt(lambda: _power(t, a, b), lambda: t.foreign(op, function, [a, b], result="float"))
        if scalar is not None:
            return t.writer.scalar(scalar, a, b)
        kinds = {v.kind if isinstance(v, Dynamic) else type(v.object).__name__ for v in (a, b) if isinstance(v, (Dynamic, Known))}
        return t.foreign(op, function, [a, b], result="bool" if kinds == {"bool"} and op in "&|^" else "int")
    if isinstance(a, SetValue) and isinstance(b, SetValue) and op in "&|^-":
        objects = function(a.objects, b.objects)
        if in_place:
            a.objects = objects
        return a if in_place else SetValue(objects)
    if op == "+" and not in_place and isinstance(a, RunList) and isinstance(b, ListValue) and all(methods.suits(i, a.element) for i in b.items):
        longer = RunList(a.content, a.element)  # lists of the run are values
        for item in b.items:
            methods.append(t, longer, item)
        return longer
    if op == "+" and (in_place or not isinstance(a, RunList)):
        joined = _joined(t, a, b, in_place)
        if joined is not NotImplemented:
            return joined  # type: ignore[no-any-return]
    if op == "*":
        for sequence, count in ((a, b), (b, a)):
            if isinstance(sequence, (TupleValue, ListValue)) and isinstance(count, Known) and isinstance(count.object, int):
                items = list(sequence.items) * count.object
                if in_place and isinstance(sequence, ListValue) and sequence is a:
                    sequence.items = items
                    return sequence
                if in_place and isinstance(sequence, ArgumentList):
                    t.objects.mirror(sequence)
                    raise NotTranslated("a list of the caller's that grows", t.state.top.line)
                return ListValue(items) if _is_list(sequence) else TupleValue(items)
    return _foreign_operator(t, op, python, a, b, in_place)


def _power(t: Translator, a: Value, b: Value) -> Value:
    """A power of numbers of which one is a float: of a positive base, and finite. Of others Python raises, or makes complex numbers."""
    if any(class_name(v) not in ("int", "float") for v in (a, b)):
        raise NotWritten("a power of numbers of unknown kinds")
    a, b = (v if class_name(v) == "float" else t.writer.scalar("to_float", v) for v in (a, b))
    t.assume(tested(t, ">", a, Known(0.0)), "a base that is positive")
    result = t.writer.scalar("pow", a, b)
    t.assume(t.writer.scalar("lt", result, Known(math.inf)), "a power that is finite")
    return result


_BUILTIN: dict[type, Callable[[Any], Any]] = {int: int.__int__, float: float.__float__, str: str.__str__}


def _as_builtin(value: Value, name: str) -> Value:
    """A member of an IntEnum and its like as the number or text that it is, for an operator that its class leaves alone."""
    if not isinstance(value, Known) or is_plain(value.object):
        return value
    cls = type(value.object)
    for base, plain in _BUILTIN.items():
        if isinstance(value.object, base):
            methods = (f"__{name}__", f"__r{name}__", f"__i{name}__")
            if all(attributes._raw(cls, method) is attributes._raw(base, method) for method in methods):
                return Known(plain(value.object))
    return value


def computed(t: Translator, op: str, a: Value, b: Value) -> Value:
    """a op b, of numbers."""
    result = binary(t, op, a, b)
    assert result is not None
    return result


def _foreign_operator(t: Translator, op: str, function: Callable[[Any, Any], Any], a: Value, b: Value, in_place: bool) -> Value:
    if in_place and is_tensor(a):
        t.foreign(op + "=", function, [a, b], result="none", is_pure=False)
        return a
    is_users = _is_users(a) or _is_users(b)
    result = t.foreign(op + "=" * in_place, function, [a, b], is_pure=not in_place and not is_users, clobbers=is_users)
    if in_place and isinstance(a, Known) and isinstance(a.object, attributes.CHANGEABLE):
        attributes.mark_changed(t, a.object)
    return result


def _joined(t: Translator, a: Value, b: Value, in_place: bool) -> Any:
    if isinstance(a, ListValue) and in_place and (isinstance(b, RunList) or calls.is_open(b)):
        return calls.call(t, Known(helpers.extended), [a, b], {})
    if isinstance(a, ListValue) and in_place and isinstance(b, (SequenceIterator, DictValue)):
        a.items += unpacked(t, b)
        return a
    first, second = as_sequence(t, a), as_sequence(t, b)
    if first is None or second is None:
        return NotImplemented
    if isinstance(a, ListValue) and in_place:
        a.items += second
        return a
    a_list, b_list = _is_list(a), _is_list(b)
    if in_place and isinstance(a, ArgumentList):
        t.objects.mirror(a)
        raise NotTranslated("a list of the caller's that grows", t.state.top.line)
    if a_list != b_list or (in_place and isinstance(a, Known) and a_list):
        return NotImplemented
    return ListValue(first + second) if a_list else TupleValue(first + second)


def _is_list(value: Value) -> bool:
    return isinstance(value, (ListValue, ArgumentList)) or (isinstance(value, Known) and isinstance(value.object, list))


def _is_users(value: Value) -> bool:
    """An object whose operators may be a user's own functions."""
    if not isinstance(value, Known) or isinstance(value.object, (type, types.ModuleType, types.FunctionType)):
        return False
    return bool(type(value.object).__flags__ & 1 << 9) and type(value.object).__module__.split(".")[0] not in ("torch", "numpy")


def compare(t: Translator, op: str, a: Value, b: Value) -> Value | None:
    """a op b, op one of < <= == != > >=."""
    function, name = COMPARE[op]
    a, b = (_as_builtin(v, name) for v in (a, b))
    if all_plain([a, b]):
        return fold(t, op, function, [a, b])
    by_method = instances.compare(t, op, a, b)
    if by_method is not NotImplemented:
        return by_method  # type: ignore[no-any-return]
    if is_tensor(a) or is_tensor(b):
        other = b if is_tensor(a) else a
        if isinstance(other, Known) and other.object is None and op in ("==", "!=") and t.lowering.framework == "torch":
            return Known(op == "!=")
        return t.attempt(lambda: t.writer.op(name, a, b), lambda: t.foreign(op, function, [a, b]))
    if is_number(a) and is_number(b):
        return t.writer.scalar(name, a, b)
    if op in ("==", "!=") and any(isinstance(v, TextValue) for v in (a, b)) and all(isinstance(v, TextValue) or all_plain([v]) for v in (a, b)):
        if any(isinstance(v, Known) and type(v.object) is not str for v in (a, b)):
            return Known(op == "!=")
        return t.writer.scalar(name, t.writer.number(a), t.writer.number(b))
    if op in ("==", "!="):
        first, second = as_sequence(t, a), as_sequence(t, b)
        if first is not None and second is not None:
            if _is_list(a) != _is_list(b):
                return Known(op == "!=")
            return _equal_sequences(t, op, first, second)
        if isinstance(a, (DictValue, SetValue)) or isinstance(b, (DictValue, SetValue)):
            return _equal_tables(t, op, a, b)
        if any(isinstance(v, Known) and (v.object is None or isinstance(v.object, str)) for v in (a, b)) and any(is_number(v) for v in (a, b)):
            return Known(op == "!=")
        if isinstance(a, Known) and isinstance(b, Known) and all(_has_plain_equality(t, v.object) for v in (a, b)):
            return Known((a.object == b.object) == (op == "=="))
    is_users = _is_users(a) or _is_users(b)
    return t.foreign(op, function, [a, b], is_pure=not is_users, clobbers=is_users)


_EQUALITIES: tuple[Any, ...] = tuple(cls.__eq__ for cls in (object, str, bytes, int, float))


def _has_plain_equality(t: Translator, obj: Any) -> bool:
    """Whether an object is compared by identity, or as the text or number that it is (members of enumerations)."""
    cls = type(obj)
    if cls.__eq__ not in _EQUALITIES or cls.__ne__ not in _INEQUALITIES:
        return False
    for name in ("__eq__", "__ne__"):
        t.guards.class_attribute(cls, name, attributes._raw(cls, name))
    return True


_INEQUALITIES: tuple[Any, ...] = tuple(cls.__ne__ for cls in (object, str, bytes, int, float))


def _equal_tables(t: Translator, op: str, a: Value, b: Value) -> Value:
    """== or != where one is a dict or set of the program."""
    function = COMPARE[op][0]
    if isinstance(a, SetValue) and isinstance(b, SetValue):
        return Known(function(a.objects, b.objects))
    dicts = [v for v in (a, b) if isinstance(v, DictValue) and v.cls is dict]
    if len(dicts) == 2:
        first, second = dicts
        if first.items.keys() != second.items.keys():
            return Known(op == "!=")
        return _equal_sequences(t, op, list(first.items.values()), [second.items[key] for key in first.items])
    if all(isinstance(v, (DictValue, SetValue, ListValue, TupleValue)) or (isinstance(v, Known) and is_plain(v.object)) for v in (a, b)):
        if len({builtin.class_of(t, v) for v in (a, b)}) == 2 and all(builtin.class_of(t, v) in _UNLIKE for v in (a, b)):
            return Known(op == "!=")
    return t.foreign(op, function, [a, b])


_UNLIKE = (dict, set, list, tuple, str, bytes, int, float, bool, type(None))  # no two of which are equal, numbers aside


def _equal_sequences(t: Translator, op: str, first: list[Value], second: list[Value]) -> Value:
    if len(first) != len(second):
        return Known(op == "!=")
    result: Value = Known(True)
    for x, y in zip(first, second):
        if x is y or (isinstance(x, Known) and isinstance(y, Known) and x.object is y.object):
            continue  # what is one object is equal, a NaN too
        equal = tested(t, "==", x, y)
        if isinstance(equal, Known):
            if not equal.object:
                return Known(op == "!=")
        elif isinstance(equal, Dynamic) and equal.is_scalar:
            equal = to_bool(t, equal)
            result = equal if isinstance(result, Known) else t.writer.scalar("and", result, equal)
        else:
            raise NotTranslated("sequences of tensors compared", t.state.top.line)
    if op == "==":
        return result
    return Known(not result.object) if isinstance(result, Known) else t.writer.scalar("not", result)


def tested(t: Translator, op: str, a: Value, b: Value) -> Value:
    """a op b, of what no class of Python compares in its own way."""
    result = compare(t, op, a, b)
    if result is None:
        raise NotTranslated("objects with comparisons of their own, in a sequence", t.state.top.line)
    return result


def unary(t: Translator, what: str, function: Callable[[Any], Any], op: str, scalar: str | None, a: Value) -> Value | None:
    """An operator with one operand."""
    by_method = instances.invoke(t, a, f"__{function.__name__.strip('_')}__", []) if instances.is_users(a) else NotImplemented
    if by_method is not NotImplemented:
        return by_method  # type: ignore[no-any-return]
    if all_plain([a]):
        return fold(t, what, function, [a])
    if is_tensor(a):
        return t.attempt(lambda: t.writer.op(op, a), lambda: t.foreign(what, function, [a]))
    if is_number(a) and scalar is not None:
        return t.writer.scalar(scalar, a)
    is_users = _is_users(a)
    return t.foreign(what, function, [a], is_pure=not is_users, clobbers=is_users)


def truth(t: Translator, value: Value) -> tuple[bool, Value | None]:
    """(bool(value), None) where that is known, else (_, the value of the run that decides)."""
    if isinstance(value, Dynamic):
        if value.kind == "object":
            return False, t.foreign("bool", bool, [value], result="bool")
        return False, value
    if isinstance(value, (TupleValue, DictValue, InstanceValue)) and value.cls not in (tuple, list, dict):
        _refuse_own_truth(t, value.cls)
    if isinstance(value, (TupleValue, ListValue, DictValue)):
        return bool(value.items), None
    if isinstance(value, SetValue):
        return bool(value.objects), None
    if isinstance(value, DictView):
        return bool(view_items(t, value)), None
    if isinstance(value, (RunList, StringValue)):
        return truth(t, tested(t, ">", builtin.length(t, value), Known(0)))
    if isinstance(value, TextValue):
        return truth(t, tested(t, "!=", value, Known("")))
    if isinstance(value, Known):
        obj = value.object
        if type(obj) in (list, dict):
            return attributes.length(t, obj) > 0, None
        if is_plain(obj):
            return bool(obj), None
        if not (hasattr(type(obj), "__bool__") or hasattr(type(obj), "__len__")):
            for name in ("__bool__", "__len__"):
                t.guards.class_attribute(type(obj), name, None)
            return True, None
        if not hasattr(type(obj), "__bool__"):
            return attributes.length(t, obj) > 0, None
        raise NotTranslated(f"the truth of a {type(obj).__name__}", t.state.top.line)
    return True, None


def _refuse_own_truth(t: Translator, cls: type) -> None:
    for name in ("__bool__", "__len__"):
        raw = attributes._raw(cls, name)
        if isinstance(raw, types.FunctionType):
            raise NotTranslated(f"the truth of a {cls.__name__}", t.state.top.line)
        t.guards.class_attribute(cls, name, raw)


def to_bool(t: Translator, value: Value) -> Value:
    """bool(value)."""
    known, condition = truth(t, value)
    if condition is None:
        return Known(known)
    if is_tensor(condition):
        return t.attempt(
            lambda: t.writer.scalar("to_bool", t.writer.item(condition)),  # type: ignore[arg-type]
            lambda: t.foreign("bool", bool, [condition], result="bool"),
        )
    return condition if isinstance(condition, Dynamic) and condition.kind == "bool" else t.writer.scalar("to_bool", condition)


# ----------------------------------------------------------------------------------------------------------- iterators


def iterator_of(t: Translator, value: Value) -> Value:
    """iter(value)."""
    if isinstance(value, (SequenceIterator, RangeIterator, IndexIterator, ZipIterator, EnumerateIterator, GeneratorValue)):
        return value
    if isinstance(value, ListValue):
        return SequenceIterator((), source=value)
    if isinstance(value, TupleValue):
        return SequenceIterator(value.items)
    if isinstance(value, DictValue):
        return SequenceIterator((Known(key) for key in value.items), source=value)
    if isinstance(value, DictView):
        return SequenceIterator(view_items(t, value), source=value.source if isinstance(value.source, DictValue) else None)
    if isinstance(value, SetValue):
        return SequenceIterator(Known(item) for item in set(value.objects))
    if isinstance(value, (RunList, StringValue)):
        return IndexIterator(value, t.writer.constant(0))
    if is_tensor(value):
        return IndexIterator(value, t.writer.constant(0))
    if isinstance(value, Known):
        obj = value.object
        if isinstance(obj, range) and len(obj) > (_LONGEST_LEFT if _may_be_left(t) else _LONGEST_UNROLLED) and not t.knowledge.unrolls:
            t.has_rolled = True
            return RangeIterator(t.writer.constant(obj.start), Known(obj.stop), obj.step)
        if isinstance(obj, (str, bytes, range)):
            return SequenceIterator(Known(item) for item in obj)
        items = attributes.iterated(t, obj)
        if items is not None:
            return SequenceIterator(items)
        raise NotTranslated(f"iteration over a {type(obj).__name__}", t.state.top.line)
    if isinstance(value, Dynamic) and value.kind == "object":
        # Read once, as a for loop reads it; element by element from then on.
        return IndexIterator(t.foreign("iterate", tuple, [value]), t.writer.constant(0))
    raise NotTranslated(f"iteration over a {type(value).__name__}", t.state.top.line)


def _may_be_left(t: Translator) -> bool:
    """Whether a loop of a user's begins here that has a `break` or `return`."""
    frame = t.state.top
    return frame.pc in frame.flow.left and frame.globals.get("__name__") not in calls._OWN


def is_static(iterator: Value) -> bool:
    """Whether it is known at translation how often an iterator gives something."""
    if isinstance(iterator, (SequenceIterator, GeneratorValue)):
        return True
    if isinstance(iterator, RangeIterator):
        return isinstance(iterator.following, Known) and isinstance(iterator.stop, Known)
    if isinstance(iterator, ZipIterator):
        return all(is_static(part) for part in iterator.parts)
    return isinstance(iterator, EnumerateIterator) and is_static(iterator.inner)


def has_next(t: Translator, iterator: Value) -> tuple[bool, Value | None]:
    """As `truth`: whether an iterator gives something more."""
    if isinstance(iterator, SequenceIterator):
        return remaining(t, iterator) > 0, None
    if isinstance(iterator, GeneratorValue):
        if iterator.pc < 0:
            return False, None
        raise NotTranslated("a generator inside zip, enumerate or next", t.state.top.line)
    if isinstance(iterator, (Known, Dynamic)):
        raise NotTranslated("an iterator of somebody else's", t.state.top.line)
    if isinstance(iterator, RangeIterator):
        more = tested(t, "<" if iterator.step > 0 else ">", iterator.following, iterator.stop)
        return truth(t, more)
    if isinstance(iterator, IndexIterator):
        count = builtin.length(t, iterator.container)
        return truth(t, tested(t, "<", iterator.at, count))
    if isinstance(iterator, EnumerateIterator):
        return has_next(t, iterator.inner)
    assert isinstance(iterator, ZipIterator)
    decides: Value | None = None
    for number, part in enumerate(iterator.parts):
        known, condition = has_next(t, part)
        if condition is None:
            if not known:
                for before in iterator.parts[:number]:
                    advance(t, before)  # zip has taken their elements by then
                return False, None
        else:
            decides = condition if decides is None else t.writer.scalar("and", decides, condition)
    return True, decides


def remaining(t: Translator, iterator: SequenceIterator) -> int:
    """How many elements are to come."""
    return max(0, len(_elements(t, iterator)) - iterator.at)


def _elements(t: Translator, iterator: SequenceIterator) -> Sequence[Value]:
    """What an iterator runs over, as it is by now."""
    if iterator.source is None:
        return iterator.items
    if isinstance(iterator.source, ListValue):
        return iterator.source.items
    if isinstance(iterator.source, DictValue) and len(iterator.source.items) == iterator.length:
        return iterator.items
    raise NotTranslated("a list or dict that changes while it is iterated over", t.state.top.line)


def view_items(t: Translator, view: DictView) -> list[Value]:
    """The elements of a view of a dict, as they are by now."""
    items = view.source.items if isinstance(view.source, DictValue) else attributes.items(t, view.source.object)  # type: ignore[attr-defined]
    if view.which == "items":
        return [TupleValue([Known(key), value]) for key, value in items.items()]
    return [Known(key) for key in items] if view.which == "keys" else list(items.values())


def advance(t: Translator, iterator: Value) -> Value:
    """next(iterator), of one that has something more."""
    if isinstance(iterator, SequenceIterator):
        iterator.at += 1
        return _elements(t, iterator)[iterator.at - 1]
    if isinstance(iterator, RangeIterator):
        item: Value = iterator.following
        following = computed(t, "+", item, Known(iterator.step))
        iterator.following = following
        return item
    if isinstance(iterator, IndexIterator):
        if isinstance(iterator.container, StringValue):
            letter = t.writer.op("select", t.read_letters(iterator.container), axis=0, index=iterator.at)
            item = TextValue(t.writer.item(letter))
        else:
            item = indexing.element(t, iterator.container, iterator.at)
        following = computed(t, "+", iterator.at, Known(1))
        iterator.at = following
        return item
    if isinstance(iterator, EnumerateIterator):
        item, count = advance(t, iterator.inner), iterator.count
        following = computed(t, "+", count, Known(1))
        iterator.count = following
        return TupleValue([count, item])
    assert isinstance(iterator, ZipIterator)
    return TupleValue([advance(t, part) for part in iterator.parts])


def unpacked(t: Translator, value: Value) -> list[Value]:
    """Every element of something whose length is known."""
    items = as_sequence(t, value)
    if items is not None:
        return items
    if is_tensor(value):
        count = builtin.length(t, value)
        if isinstance(count, Known):
            return [indexing.element(t, value, Known(i)) for i in range(count.object)]
        raise NotTranslated("a tensor unpacked into rows of a number that only the run knows", t.state.top.line)
    iterator = iterator_of(t, value)
    if not is_static(iterator) or isinstance(iterator, GeneratorValue):
        raise NotTranslated("an iteration whose length only the run knows, as one value", t.state.top.line)
    out = []
    while has_next(t, iterator)[0]:
        out.append(advance(t, iterator))
    return out


def identical(t: Translator, a: Value, b: Value) -> Value:
    """a is b."""
    if isinstance(a, Known) and isinstance(b, Known):
        return Known(a.object is b.object)
    if any(isinstance(v, Dynamic) and v.kind == "object" for v in (a, b)):
        return t.foreign("is", operator.is_, [a, b], result="bool")
    if a is b:
        return Known(True)
    t.objects.compare(a, b)
    if any(isinstance(v, (StringValue, TextValue)) for v in (a, b)) and all(builtin.class_of(t, v) is str for v in (a, b)):
        raise NotTranslated("whether two strings are one object", t.state.top.line)
    if all(class_name(v) == "bool" for v in (a, b)):
        return t.writer.scalar("eq", a, b)  # there are two of them
    if class_name(a) == class_name(b) and class_name(a) in ("int", "float"):
        raise NotTranslated("whether two numbers are one object", t.state.top.line)
    if any(isinstance(v, RunList) and v.is_shared for v in (a, b)):
        raise NotTranslated("whether two lists that stand in a list of the run are one object", t.state.top.line)
    # Arguments that are one object are one value here; what the program computes is an object of its own.
    if t.is_live(a) and t.is_live(b):
        return Known(t.are_one(a, b))
    if any(t.is_live(v) for v in (a, b)) and all(isinstance(v, Dynamic) and v.anywhere is not None for v in (a, b)):
        raise NotTranslated("whether two tensors are one object", t.state.top.line)
    return Known(False)


def class_name(value: Value) -> str | None:
    """The class of a number."""
    if isinstance(value, Dynamic) and value.is_scalar:
        return value.kind
    return type(value.object).__name__ if isinstance(value, Known) and type(value.object) in (bool, int, float) else None


def contains(t: Translator, item: Value, container: Value) -> Value:
    """item in container."""
    if isinstance(container, DictView):
        return contains(t, item, container.source if container.which == "keys" else TupleValue(view_items(t, container)))
    if isinstance(container, DictValue) and isinstance(item, Known):
        return Known(item.object in container.items)
    if isinstance(container, Known) and type(container.object) is frozenset:
        container = SetValue(container.object)
    if isinstance(container, (DictValue, SetValue)) and isinstance(item, Dynamic) and item.is_scalar:
        keys = container.items if isinstance(container, DictValue) else container.objects
        container = TupleValue([Known(key) for key in keys if type(key) in (bool, int, float)])
    if isinstance(container, SetValue) and isinstance(item, TextValue):
        container = TupleValue([Known(obj) for obj in container.objects if type(obj) is str])
    if isinstance(container, SetValue) and all_plain([item]):
        return Known(item.object in container.objects)  # type: ignore[attr-defined]
    if isinstance(container, Known) and isinstance(item, Known):
        if isinstance(container.object, dict):
            return Known(attributes.contains(t, container.object, item.object))
        if is_plain(container.object) and is_plain(item.object):
            return fold(t, "in", lambda x, c: x in c, [item, container])
    if is_tensor(container) and is_number(item) and t.lowering.framework == "torch":
        return t.attempt(
            lambda: t.writer.item(t.writer.op("reduce_any", t.writer.op("eq", container, item))),
            lambda: t.foreign("in", lambda x, c: x in c, [item, container], result="bool"),
        )
    items = as_sequence(t, container)
    if items is None:
        return t.foreign("in", lambda x, c: x in c, [item, container], result="bool")
    result: Value = Known(False)
    for other in items:
        if item is other or (isinstance(item, Known) and isinstance(other, Known) and item.object is other.object):
            return Known(True)
        equal = to_bool(t, tested(t, "==", item, other))
        if isinstance(equal, Known):
            if equal.object:
                return equal
        else:
            result = equal if isinstance(result, Known) else t.writer.scalar("or", result, equal)
    return result


def key_of(t: Translator, value: Value) -> Any:
    """The Python object that a key of a dict is."""
    if isinstance(value, Known):
        return value.object
    raise NotTranslated("a dict whose keys only the run knows", t.state.top.line)


def spread(t: Translator, positional: Value, keywords: Value | None) -> tuple[list[Value], dict[str, Value]]:
    """The arguments that * and ** of a call stand for."""
    named: dict[str, Value] = {}
    if isinstance(keywords, DictValue):
        named = dict(keywords.items)
    elif isinstance(keywords, Known) and isinstance(keywords.object, dict):
        named = attributes.items(t, keywords.object)
    elif keywords is not None and not isinstance(keywords, Null):
        raise NotTranslated("** of something else than a dict", t.state.top.line)
    return unpacked(t, positional), named
