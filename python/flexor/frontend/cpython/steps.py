"""What each operation does to the abstract stack: one function a step."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from flexor.frontend.cpython import attributes, builtin, calls, evaluate, exceptions, helpers, indexing, instances, managers, methods, patterns, special
from flexor.frontend.cpython.decode import NotTranslated
from flexor.frontend.cpython.operations import NAMES, Operation
from flexor.frontend.cpython.values import (
    ArgumentDict,
    ArgumentList,
    CellValue,
    DictValue,
    Dynamic,
    FunctionValue,
    Known,
    ListValue,
    MethodValue,
    NULL_VALUE,
    Null,
    RunList,
    SliceValue,
    TupleValue,
    Value,
    is_known,
    is_number,
    whole,
)

if TYPE_CHECKING:
    from flexor.frontend.cpython.translate import Translator

O = Operation
STEPS: dict[Operation, Callable[[Translator, Any], None]] = {}


def step(operation: Operation) -> Callable[[Callable[[Translator, Any], None]], Callable[[Translator, Any], None]]:
    """Registers the function of an operation."""

    def register(function: Callable[[Translator, Any], None]) -> Callable[[Translator, Any], None]:
        STEPS[operation] = function
        return function

    return register


def push(t: Translator, value: Value | None) -> None:
    """Pushes a result; None: a call was entered that pushes it."""
    if value is not None:
        t.state.top.stack.append(value)


# Steps that read an iterator: the place of that from the top, by the step's argument.
READS: dict[Operation, Callable[[Any], int]] = {
    O.UNPACK: lambda count: 1,
    O.UNPACK_EX: lambda counts: 1,
    O.SET_UPDATE: lambda n: 1,
    O.STORE_SUBSCR: lambda _: 3,
    O.CALL_EX: lambda has_keywords: 2 if has_keywords else 1,
    O.CALL_FUNCTION_EX: lambda has_keywords: 2 if has_keywords else 1,
}


def _is_slice(index: Value) -> bool:
    return isinstance(index, SliceValue) or (isinstance(index, Known) and isinstance(index.object, slice))


def reads_ahead(t: Translator, operation: Operation, arg: Any) -> bool:
    """Where a step of READS reads an iterator whose elements are not known at once: enters a call that does, whose result takes the
    iterator's place; the step is then followed again."""
    stack = t.state.top.stack
    place = READS[operation](arg)
    value = stack[-place]
    if operation is O.UNPACK and calls.has_unknown_length(t, value):
        return calls.in_place(t, place, Known(helpers.exactly), [value, Known(arg)])
    if operation is O.UNPACK_EX and calls.has_unknown_length(t, value):
        return calls.in_place(t, place, Known(helpers.apart), [value, *map(Known, arg)])
    if not calls.is_open(value) or (operation is O.STORE_SUBSCR and not (isinstance(stack[-2], ListValue) and _is_slice(stack[-1]))):
        return False
    if operation is O.UNPACK:
        return calls.in_place(t, place, Known(helpers.at_most), [value, Known(arg)])
    return calls.in_place(t, place, Known(helpers.listed), [value])


# ------------------------------------------------------------------------------------------------- stack and variables


@step(O.POP)
def _(t: Translator, _arg: Any) -> None:
    t.state.top.stack.pop()


@step(O.COPY)
def _(t: Translator, n: int) -> None:
    stack = t.state.top.stack
    stack.append(stack[-n])


@step(O.SWAP)
def _(t: Translator, n: int) -> None:
    stack = t.state.top.stack
    stack[-1], stack[-n] = stack[-n], stack[-1]


@step(O.PUSH_NULL)
def _(t: Translator, _arg: Any) -> None:
    t.state.top.stack.append(NULL_VALUE)


@step(O.CONST)
def _(t: Translator, obj: Any) -> None:
    t.state.top.stack.append(Known(obj))


def _unset(t: Translator, name: str) -> NoReturn:
    def fail() -> None:
        raise UnboundLocalError(f"cannot access local variable {name!r} where it is not associated with a value")

    evaluate.raises(t, "unset local", fail, [])


@step(O.LOAD_LOCAL)
def _(t: Translator, name: str) -> None:
    frame = t.state.top
    push(t, frame.locals[name] if name in frame.locals else _unset(t, name))


@step(O.LOAD_LOCAL_AND_CLEAR)
def _(t: Translator, name: str) -> None:
    frame = t.state.top
    frame.stack.append(frame.locals.pop(name, NULL_VALUE))


@step(O.STORE_LOCAL)
def _(t: Translator, name: str) -> None:
    frame = t.state.top
    value = frame.stack.pop()
    if isinstance(value, Null):
        frame.locals.pop(name, None)
    else:
        frame.locals[name] = value


@step(O.DELETE_LOCAL)
def _(t: Translator, name: str) -> None:
    if t.state.top.locals.pop(name, None) is None:
        _unset(t, name)


@step(O.MAKE_CELL)
def _(t: Translator, name: str) -> None:
    frame = t.state.top
    frame.locals[name] = CellValue(frame.locals.get(name))


@step(O.LOAD_CELL)
def _(t: Translator, name: str) -> None:
    cell = t.state.top.locals[name]
    if isinstance(cell, Known):
        push(t, attributes.cell_content(t, cell.object))
        return
    assert isinstance(cell, CellValue)
    push(t, cell.content if cell.content is not None else _unset(t, name))


@step(O.STORE_CELL)
def _(t: Translator, name: str) -> None:
    frame = t.state.top
    cell = frame.locals[name]
    value = frame.stack.pop()
    if isinstance(cell, CellValue):
        cell.content = value
    else:
        assert isinstance(cell, Known)
        attributes.store_cell(t, cell.object, value)


@step(O.DELETE_CELL)
def _(t: Translator, name: str) -> None:
    cell = t.state.top.locals[name]
    if not isinstance(cell, CellValue):
        raise NotTranslated("del of a closure's variable", t.state.top.line)
    if cell.content is None:
        _unset(t, name)
    cell.content = None


@step(O.LOAD_GLOBAL)
def _(t: Translator, name: str) -> None:
    push(t, attributes.load_global(t, t.state.top.globals, name))


@step(O.STORE_GLOBAL)
def _(t: Translator, name: str) -> None:
    frame = t.state.top
    attributes.store_item(t, frame.globals, name, frame.stack.pop())


# --------------------------------------------------------------------------------------------------------------- objects


@step(O.LOAD_ATTR)
def _(t: Translator, name: str) -> None:
    frame = t.state.top
    value = frame.stack.pop()
    if isinstance(value, Dynamic) and value.kind == "object" and frame.steps[frame.pc].operation is O.PUSH_NULL:
        frame.stack.append(MethodValue(value, name))  # a call follows
    else:
        push(t, attributes.load(t, value, name))


@step(O.LOAD_SUPER_ATTR)
def _(t: Translator, name: str) -> None:
    _, cls, self = t.state.top.pop(3)
    push(t, attributes.load_super(t, cls, self, name))


@step(O.STORE_ATTR)
def _(t: Translator, name: str) -> None:
    value, obj = t.state.top.pop(2)
    attributes.store(t, obj, name, value)


@step(O.DELETE_ATTR)
def _(t: Translator, name: str) -> None:
    instances.delete(t, t.state.top.stack.pop(), name)


@step(O.SUBSCR)
def _(t: Translator, _arg: Any) -> None:
    container, index = t.state.top.pop(2)
    push(t, indexing.get(t, container, index))


@step(O.STORE_SUBSCR)
def _(t: Translator, _arg: Any) -> None:
    value, container, index = t.state.top.pop(3)
    indexing.set_item(t, container, index, value)


@step(O.DELETE_SUBSCR)
def _(t: Translator, _arg: Any) -> None:
    container, index = t.state.top.pop(2)
    if isinstance(container, (ArgumentList, ArgumentDict)):
        t.objects.mirror(container)
    if isinstance(container, DictValue) and not isinstance(container, ArgumentDict) and evaluate.all_plain([index]):
        if index.object not in container.items:  # type: ignore[attr-defined]
            evaluate.raises(t, "del", operator.delitem, [Known({}), index])
        del container.items[index.object]  # type: ignore[attr-defined]
    elif indexing.is_key_of_the_run(t, container, index):
        if isinstance(container, DictValue) and not container.items:
            evaluate.raises(t, "del", {}.__getitem__, [index])
        if isinstance(container, DictValue):
            container = indexing.table_of(t, container, index, next(iter(container.items.values())))
        instances.dropped(t, calls.call(t, Known(helpers.Table.__delitem__), [container, index], {}))
    elif isinstance(container, RunList) and is_number(index):
        instances.dropped(t, calls.call(t, Known(helpers.pop), [container, index], {}))
    elif isinstance(container, ListValue) and is_known(index) and isinstance(whole(index), slice):
        del container.items[whole(index)]
    elif isinstance(container, ListValue) and isinstance(index, Known) and isinstance(index.object, int):
        if not -len(container.items) <= index.object < len(container.items):
            evaluate.raises(t, "del", operator.delitem, [Known([]), index])
        del container.items[index.object]
    else:
        raise NotTranslated("del of an item", t.state.top.line)


# ------------------------------------------------------------------------------------------------------------ arithmetic


@step(O.BINARY)
def _(t: Translator, op: str) -> None:
    a, b = t.state.top.pop(2)
    push(t, evaluate.binary(t, op, a, b))


@step(O.INPLACE)
def _(t: Translator, op: str) -> None:
    a, b = t.state.top.pop(2)
    push(t, evaluate.binary(t, op, a, b, in_place=True))


@step(O.COMPARE)
def _(t: Translator, op: str) -> None:
    a, b = t.state.top.pop(2)
    push(t, evaluate.compare(t, op, a, b))


@step(O.IS)
def _(t: Translator, inverted: Any) -> None:
    a, b = t.state.top.pop(2)
    result = evaluate.identical(t, a, b)
    if inverted:
        result = Known(not result.object) if isinstance(result, Known) else t.writer.scalar("not", result)
    push(t, result)


@step(O.CONTAINS)
def _(t: Translator, inverted: Any) -> None:
    item, container = t.state.top.pop(2)
    if special.ask_contains(t, item, container, bool(inverted)):
        return
    if calls.is_open(container):
        push(t, calls.call(t, Known(helpers.is_not_in if inverted else helpers.is_in), [container, item], {}))
        return
    result = evaluate.contains(t, item, container)
    if inverted:
        result = Known(not result.object) if isinstance(result, Known) else t.writer.scalar("not", evaluate.to_bool(t, result))
    push(t, result)


@step(O.NEGATIVE)
def _(t: Translator, _arg: Any) -> None:
    push(t, evaluate.unary(t, "-", operator.neg, "neg", "neg", t.state.top.stack.pop()))


@step(O.POSITIVE)
def _(t: Translator, _arg: Any) -> None:
    value = t.state.top.stack.pop()
    if isinstance(value, Dynamic) and value.kind == "bool":
        push(t, t.writer.scalar("to_int", value))
    elif isinstance(value, Dynamic) and value.is_scalar:
        push(t, value)
    elif evaluate.is_tensor(value) and t.lowering.framework == "torch" and value.dtype not in (None, "bool"):  # type: ignore[attr-defined]
        push(t, value)  # torch gives the tensor itself
    elif evaluate.is_tensor(value) and value.dtype not in (None, "bool"):  # type: ignore[attr-defined]
        push(t, evaluate.unary(t, "+", operator.pos, "clone", None, value))
    elif evaluate.all_plain([value]):
        push(t, evaluate.fold(t, "+", operator.pos, [value]))
    else:
        push(t, t.foreign("+", operator.pos, [value]))


@step(O.INVERT)
def _(t: Translator, _arg: Any) -> None:
    push(t, evaluate.unary(t, "~", operator.invert, "bitwise_not", None, t.state.top.stack.pop()))


@step(O.NOT)
def _(t: Translator, _arg: Any) -> None:
    value = t.state.top.stack.pop()
    if special.has_own_truth(t, value):
        special.ask_truth(t, value, negated=True)
        return
    value = evaluate.to_bool(t, value)
    push(t, Known(not value.object) if isinstance(value, Known) else t.writer.scalar("not", value))


@step(O.TO_BOOL)
def _(t: Translator, _arg: Any) -> None:
    # A branch or a `not` follows, which looks at the truth itself.
    del t


@step(O.GET_ITER)
def _(t: Translator, _arg: Any) -> None:
    value = t.state.top.stack.pop()
    method = instances.method(t, value, "__iter__") if instances.is_users(value) else None
    push(t, evaluate.iterator_of(t, value) if method is None else calls.call(t, method, [value], {}))


@step(O.RAISE)
def _(t: Translator, count: int) -> None:
    values = t.state.top.pop(count)
    if not values and (handled := exceptions.handled(t)) is not None:
        exceptions.throw_again(t, handled)

    def fail(*parts: Any) -> None:
        if len(parts) == 2:
            raise parts[0] from parts[1]
        raise parts[0] if parts else RuntimeError("No active exception to reraise")

    evaluate.raises(t, "raise", fail, values)


# Handlers of exceptions: reached by those that are known at translation. Below the exception lies the one that was handled before.


@step(O.EXCEPTION_BEGIN)
def _(t: Translator, _arg: Any) -> None:
    frame = t.state.top
    error = frame.stack.pop()
    frame.handled.append(error)
    frame.stack += [Known(None), error]


@step(O.EXCEPTION_MATCH)
def _(t: Translator, _arg: Any) -> None:
    frame = t.state.top
    classes, error = frame.stack.pop(), frame.stack[-1]
    if not is_known(classes) or not isinstance(error, Known):
        raise NotTranslated("a handler of exceptions that only the run knows", frame.line)
    frame.stack.append(Known(isinstance(error.object, whole(classes))))


@step(O.EXCEPTION_END)
def _(t: Translator, _arg: Any) -> None:
    frame = t.state.top
    frame.stack.pop()
    if frame.handled:
        frame.handled.pop()


@step(O.WITH_EXCEPT)
def _(t: Translator, _arg: Any) -> None:
    t.state.top.stack.append(Known(None))  # context managers that are followed do not look at exceptions


@step(O.RERAISE)
def _(t: Translator, _arg: Any) -> None:
    error = t.state.top.stack.pop()
    if not isinstance(error, Known):
        raise NotTranslated("an exception of the run raised again", t.state.top.line)
    exceptions.throw_again(t, error.object)


# ----------------------------------------------------------------------------------------------------------------- calls


def _callee(slots: list[Value], arguments: list[Value]) -> tuple[Value, list[Value]]:
    first, second = slots
    if isinstance(second, Null):
        return first, arguments
    if isinstance(first, Null):
        return second, arguments
    return first, [second, *arguments]


def _with_names(values: list[Value], names: Value) -> tuple[list[Value], dict[str, Value]]:
    assert isinstance(names, Known)
    count = len(names.object)
    return values[: len(values) - count], dict(zip(names.object, values[len(values) - count :]))


@step(O.CALL)
def _(t: Translator, count: int) -> None:
    arguments = t.state.top.pop(count)
    callee, arguments = _callee(t.state.top.pop(2), arguments)
    push(t, calls.call(t, callee, arguments, {}))


@step(O.CALL_KW)
def _(t: Translator, count: int) -> None:
    names = t.state.top.stack.pop()
    positional, keywords = _with_names(t.state.top.pop(count), names)
    callee, positional = _callee(t.state.top.pop(2), positional)
    push(t, calls.call(t, callee, positional, keywords))


@step(O.CALL_FUNCTION)
def _(t: Translator, count: int) -> None:
    arguments = t.state.top.pop(count)
    push(t, calls.call(t, t.state.top.stack.pop(), arguments, {}))


@step(O.CALL_FUNCTION_KW)
def _(t: Translator, count: int) -> None:
    names = t.state.top.stack.pop()
    positional, keywords = _with_names(t.state.top.pop(count), names)
    push(t, calls.call(t, t.state.top.stack.pop(), positional, keywords))


@step(O.CALL_EX)
def _(t: Translator, has_keywords: bool) -> None:
    keywords = t.state.top.stack.pop() if has_keywords else None
    positional = t.state.top.stack.pop()
    arguments, named = evaluate.spread(t, positional, keywords)
    callee, arguments = _callee(t.state.top.pop(2), arguments)
    push(t, calls.call(t, callee, arguments, named))


@step(O.CALL_FUNCTION_EX)
def _(t: Translator, has_keywords: bool) -> None:
    keywords = t.state.top.stack.pop() if has_keywords else None
    positional = t.state.top.stack.pop()
    arguments, named = evaluate.spread(t, positional, keywords)
    push(t, calls.call(t, t.state.top.stack.pop(), arguments, named))


@step(O.MAKE_FUNCTION)
def _(t: Translator, bits: int) -> None:
    frame = t.state.top
    code = frame.stack.pop()
    assert isinstance(code, Known)
    made = FunctionValue(code.object, frame.globals)
    for bit in (8, 4, 2, 1):
        if bits & bit:
            _set_function_attribute(t, made, bit, frame.stack.pop())
    frame.stack.append(made)


@step(O.SET_FUNCTION_ATTRIBUTE)
def _(t: Translator, bit: int) -> None:
    value, function = t.state.top.pop(2)
    assert isinstance(function, FunctionValue)
    _set_function_attribute(t, function, bit, value)
    t.state.top.stack.append(function)


def _set_function_attribute(t: Translator, function: FunctionValue, bit: int, value: Value) -> None:
    if bit == 1:
        function.defaults = tuple(evaluate.unpacked(t, value))
    elif bit == 2:
        function.keyword_defaults = evaluate.spread(t, TupleValue([]), value)[1]
    elif bit == 8:
        function.cells = tuple(evaluate.unpacked(t, value))


# -------------------------------------------------------------------------------------------------------------- building


@step(O.TUPLE)
def _(t: Translator, count: int) -> None:
    items = t.state.top.pop(count)
    push(t, Known(tuple(v.object for v in items if isinstance(v, Known))) if evaluate.all_plain(items) else TupleValue(items))


@step(O.LIST)
def _(t: Translator, count: int) -> None:
    push(t, ListValue(t.state.top.pop(count)))


@step(O.SET)
def _(t: Translator, count: int) -> None:
    push(t, builtin.set_of(t, t.state.top.pop(count)))


@step(O.SET_UPDATE)
def _(t: Translator, n: int) -> None:
    items = evaluate.unpacked(t, t.state.top.stack.pop())
    t.state.top.stack[-n] = builtin.set_with(t, t.state.top.stack[-n], items)


@step(O.SET_ADD)
def _(t: Translator, n: int) -> None:
    item = t.state.top.stack.pop()
    t.state.top.stack[-n] = builtin.set_with(t, t.state.top.stack[-n], [item])


@step(O.MAP)
def _(t: Translator, count: int) -> None:
    parts = t.state.top.pop(2 * count)
    push(t, DictValue({evaluate.key_of(t, k): v for k, v in zip(parts[::2], parts[1::2])}))


@step(O.CONST_KEY_MAP)
def _(t: Translator, count: int) -> None:
    keys = t.state.top.stack.pop()
    assert isinstance(keys, Known)
    push(t, DictValue(dict(zip(keys.object, t.state.top.pop(count)))))


@step(O.STRING)
def _(t: Translator, count: int) -> None:
    parts = t.state.top.pop(count)
    push(t, evaluate.fold(t, "f-string", _concatenated, parts) if evaluate.all_plain(parts) else t.foreign("f-string", _concatenated, parts))


def _concatenated(*parts: str) -> str:
    return "".join(parts)


@step(O.SLICE)
def _(t: Translator, count: int) -> None:
    parts = t.state.top.pop(count) + [Known(None)] * (3 - count)
    push(t, SliceValue(*parts))


def _list_at(t: Translator, n: int) -> ListValue:
    value = t.state.top.stack[-n]
    if not isinstance(value, ListValue):
        raise NotTranslated("a list of somebody else's that grows", t.state.top.line)
    return value


@step(O.LIST_APPEND)
def _(t: Translator, n: int) -> None:
    item = t.state.top.stack.pop()
    methods.append(t, t.state.top.stack[-n], item)


@step(O.MAP_ADD)
def _(t: Translator, n: int) -> None:
    key, value = t.state.top.pop(2)
    target = t.state.top.stack[-n]
    if indexing.is_key_of_the_run(t, target, key):
        indexing.put_new(t, target, key, value)
        return
    assert isinstance(target, DictValue)
    target.items[evaluate.key_of(t, key)] = value


@step(O.LIST_EXTEND)
def _(t: Translator, n: int) -> None:
    value = t.state.top.stack.pop()
    target = _list_at(t, n)
    if calls.is_open(value) or isinstance(value, RunList):
        instances.dropped(t, calls.call(t, Known(helpers.extend), [target, value], {}))
        return
    target.items.extend(evaluate.unpacked(t, value))


def _update(t: Translator, n: int, refuse_doubles: bool) -> None:
    _, named = evaluate.spread(t, TupleValue([]), t.state.top.stack.pop())
    target = t.state.top.stack[-n]
    assert isinstance(target, DictValue)
    double = next((key for key in named if key in target.items), None)
    if refuse_doubles and double is not None:
        def fail() -> None:
            raise TypeError(f"got multiple values for keyword argument {double!r}")

        evaluate.raises(t, "call", fail, [])
    target.items.update(named)


@step(O.DICT_UPDATE)
def _(t: Translator, n: int) -> None:
    _update(t, n, refuse_doubles=False)


@step(O.DICT_MERGE)
def _(t: Translator, n: int) -> None:
    _update(t, n, refuse_doubles=True)


@step(O.LIST_TO_TUPLE)
def _(t: Translator, _arg: Any) -> None:
    value = t.state.top.stack.pop()
    assert isinstance(value, ListValue)
    push(t, TupleValue(value.items))


@step(O.UNPACK)
def _(t: Translator, count: int) -> None:
    value = t.state.top.stack.pop()
    if isinstance(value, Dynamic) and value.kind == "object":
        whole = t.foreign("unpack", lambda x: _exactly(tuple(x), count), [value])
        items: list[Value] = [t.foreign("unpack", operator.getitem, [whole, Known(i)]) for i in range(count)]
    else:
        items = evaluate.unpacked(t, value)
    if len(items) != count:
        found = len(items)
        evaluate.raises(t, "unpack", lambda: _exactly(tuple(range(found)), count), [])
    t.state.top.stack.extend(reversed(items))


def _exactly(items: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    if len(items) > count:
        raise ValueError(f"too many values to unpack (expected {count})")
    if len(items) < count:
        raise ValueError(f"not enough values to unpack (expected {count}, got {len(items)})")
    return items


@step(O.UNPACK_EX)
def _(t: Translator, counts: tuple[int, int]) -> None:
    before, after = counts
    value = t.state.top.stack.pop()
    if isinstance(value, TupleValue) and value.cls is helpers.Apart:
        t.state.top.stack.extend(reversed(value.items))
        return
    items = evaluate.unpacked(t, value)
    if len(items) < before + after:
        found = len(items)

        def fail() -> None:
            raise ValueError(f"not enough values to unpack (expected at least {before + after}, got {found})")

        evaluate.raises(t, "unpack", fail, [])
    middle = ListValue(items[before : len(items) - after])
    t.state.top.stack.extend(reversed([*items[:before], middle, *items[len(items) - after :]]))


@step(O.CONVERT)
def _(t: Translator, function: Callable[[Any], str]) -> None:
    value = t.state.top.stack.pop()
    name = function.__name__
    push(t, evaluate.fold(t, name, function, [value]) if evaluate.all_plain([value]) else t.foreign(name, function, [value]))


@step(O.FORMAT)
def _(t: Translator, has_spec: bool) -> None:
    values = t.state.top.pop(2 if has_spec else 1)
    push(t, evaluate.fold(t, "format", format, values) if evaluate.all_plain(values) else t.foreign("format", format, values))


@step(O.IMPORT_NAME)
def _(t: Translator, name: str) -> None:
    level, names = t.state.top.pop(2)
    assert isinstance(level, Known) and isinstance(names, Known)
    push(t, attributes.imported(t, t.state.top.globals, name, level.object, names.object))


@step(O.IMPORT_FROM)
def _(t: Translator, name: str) -> None:
    push(t, attributes.load(t, t.state.top.stack[-1], name))


# ------------------------------------------------------------------------------------------------------ bodies of classes


def _names(t: Translator) -> dict[Any, Value]:
    names = t.state.top.locals[NAMES]
    assert isinstance(names, DictValue)
    return names.items


@step(O.BUILD_CLASS)
def _(t: Translator, _arg: Any) -> None:
    push(t, attributes.load_global(t, vars(builtins), "__build_class__"))


@step(O.LOAD_NAME)
def _(t: Translator, name: str) -> None:
    found = _names(t).get(name)
    push(t, found if found is not None else attributes.load_global(t, t.state.top.globals, name))


@step(O.LOAD_NAME_OR_CELL)
def _(t: Translator, name: str) -> None:
    found = _names(t).get(name)
    if found is None:
        STEPS[O.LOAD_CELL](t, name)
    else:
        push(t, found)


@step(O.STORE_NAME)
def _(t: Translator, name: str) -> None:
    value = t.state.top.stack.pop()
    _names(t)[name] = value


@step(O.DELETE_NAME)
def _(t: Translator, name: str) -> None:
    def fail() -> None:
        raise NameError(f"name {name!r} is not defined")

    if _names(t).pop(name, None) is None:
        evaluate.raises(t, "del", fail, [])


@step(O.LOAD_NAMES)
def _(t: Translator, _arg: Any) -> None:
    push(t, t.state.top.locals[NAMES])


@step(O.DECLARE_ANNOTATIONS)
def _(t: Translator, _arg: Any) -> None:
    _names(t).setdefault("__annotations__", DictValue({}))


# -------------------------------------------------------------------------------------------------------------- patterns


@step(O.MATCH_SEQUENCE)
def _(t: Translator, _arg: Any) -> None:
    push(t, patterns.is_sequence(t, t.state.top.stack[-1]))


@step(O.MATCH_MAPPING)
def _(t: Translator, _arg: Any) -> None:
    push(t, patterns.is_mapping(t, t.state.top.stack[-1]))


@step(O.MATCH_KEYS)
def _(t: Translator, _arg: Any) -> None:
    push(t, patterns.values_of(t, *t.state.top.stack[-2:]))


@step(O.MATCH_CLASS)
def _(t: Translator, positional: int) -> None:
    subject, cls, names = t.state.top.pop(3)
    push(t, patterns.attributes_of(t, subject, cls, positional or 0, names))


@step(O.COPY_WITHOUT_KEYS)
def _(t: Translator, _arg: Any) -> None:
    keys = t.state.top.stack.pop()
    push(t, patterns.without(t, t.state.top.stack[-1], keys))


@step(O.LENGTH)
def _(t: Translator, _arg: Any) -> None:
    push(t, builtin.length(t, t.state.top.stack[-1]))


# ------------------------------------------------------------------------------------------------------ context managers


@step(O.WITH_ENTER)
def _(t: Translator, _arg: Any) -> None:
    stack = t.state.top.stack
    manager = stack.pop()
    at = len(stack)
    stack.append(manager)  # what its __exit__ is put in the place of
    leaving, bound = managers.enter(t, manager)
    stack[at] = leaving
    push(t, bound)


@step(O.LOAD_SPECIAL)
def _(t: Translator, name: str) -> None:
    raise NotTranslated("a context manager of Python 3.14", t.state.top.line)
