"""Methods of tensors, which are ops, and of Python's structures, which are followed."""

from __future__ import annotations

import functools
import sys
import types
from typing import TYPE_CHECKING, Any

from flexor.frontend.cpython import arrays, calls, constructors, evaluate, helpers, indexing, lowering, rows
from flexor.frontend.cpython.decode import NotTranslated
from flexor.frontend.cpython.guards import MISSING
from flexor.frontend.cpython.values import (
    ArgumentDict,
    ArgumentList,
    Arguments,
    DictValue,
    DictView,
    Dynamic,
    Element,
    GeneratorValue,
    Keywords,
    Known,
    ListValue,
    RunList,
    SetValue,
    TextValue,
    TupleValue,
    Value,
    is_known,
)
from flexor.frontend.cpython.writer import NotWritten, growing

if TYPE_CHECKING:
    from flexor.frontend.cpython.translate import Translator


def invoke(t: Translator, receiver: Value, name: str, arguments: Arguments, keywords: Keywords) -> Value | None:
    """receiver.name(...); None: a Python function was entered, whose return pushes it."""
    if isinstance(receiver, Dynamic):
        return tensor_method(t, receiver, name, arguments, keywords)
    if isinstance(receiver, constructors.SuperValue):
        raise NotTranslated(f"super().{name}", t.state.top.line)
    if isinstance(receiver, RunList) and name == "append":
        append(t, receiver, arguments[0])
        return Known(None)
    if isinstance(receiver, RunList) and name in helpers.OF_RUN_LISTS and not keywords:
        return calls.call(t, Known(helpers.OF_RUN_LISTS[name]), [receiver, *arguments], {})
    if isinstance(receiver, ListValue):
        return _list_method(t, receiver, name, arguments, keywords)
    if isinstance(receiver, ArgumentList) and name == "copy":
        return ListValue(receiver.items)
    if isinstance(receiver, ArgumentList) and name in _CHANGE_LISTS:
        t.objects.mirror(receiver)
        raise NotTranslated("a list of the caller's that changes", t.state.top.line)
    if isinstance(receiver, ArgumentDict) and name in ("update", "setdefault", "pop", "clear", "popitem"):
        t.objects.mirror(receiver)
        raise NotTranslated("a dict of the caller's that changes", t.state.top.line)
    if isinstance(receiver, DictValue):
        return _dict_method(t, receiver, name, arguments, keywords)
    if isinstance(receiver, SetValue) and not keywords:
        return _set_method(t, receiver, name, arguments)
    if isinstance(receiver, TupleValue):
        if name == "numel" and hasattr(receiver.cls, "numel"):
            total: Value = Known(1)
            for size in receiver.items:
                total = evaluate.computed(t, "*", total, size)
            return total
        if name == "index" or name == "count":
            if is_known(receiver) and is_known(arguments):
                return evaluate.fold(t, name, getattr(tuple, name), [Known(tuple(lowering.plain(receiver))), *arguments])
    if isinstance(receiver, GeneratorValue) and not keywords:
        return _generator_method(t, receiver, name, arguments)
    raise NotTranslated(f"the method {name} of a {type(receiver).__name__}", t.state.top.line)


_CHANGE_LISTS = frozenset(("append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"))


def _generator_method(t: Translator, generator: GeneratorValue, name: str, arguments: Arguments) -> Value | None:
    if name == "send" and len(arguments) == 1:
        if generator.pc >= 0 and not generator.receive(arguments[0]):
            calls.refuse_misfit(t, "can't send non-None value to a just-started generator")
        return calls.call(t, Known(helpers.IN_PYTHON[next]), [generator], {})
    if name == "__next__" and not arguments:
        return calls.call(t, Known(helpers.IN_PYTHON[next]), [generator], {})
    if name == "__iter__" and not arguments:
        return generator
    if name == "close" and not arguments and not generator.is_managed:
        generator.locals, generator.stack, generator.pc = {}, [], -1  # it stands in no try: none is left to be followed
        return Known(None)
    raise NotTranslated(f"the method {name} of a generator", t.state.top.line)


# Methods after which a tensor object has another shape, other strides, memory or flags: the program's tensors are not that object.
_CHANGE_THE_OBJECT = {
    "torch": frozenset(
        "as_strided_ detach_ rename_ requires_grad_ resize_ resize_as_ set_ share_memory_ squeeze_ swapaxes_ swapdims_ t_ transpose_"
        " unsqueeze_".split()
    ),
    "numpy": frozenset(("byteswap", "resize", "setfield", "setflags")),
}
_NUMPY_WRITES = frozenset(("fill", "partition", "put", "sort"))


def tensor_method(t: Translator, receiver: Dynamic, name: str, arguments: Arguments, keywords: Keywords) -> Value:
    """receiver.name(...), of a tensor or an object of the run."""
    if receiver.kind == "tensor" and name == "__setitem__" and len(arguments) == 2 and not keywords:
        indexing.set_item(t, receiver, *arguments)
        return Known(None)
    framework = t.lowering.framework
    row = rows.of(framework).get(f"{rows.prefix(framework)}.{name}")
    writes = name.endswith("_") and not name.endswith("__")
    if name in _CHANGE_THE_OBJECT[framework] and receiver.kind == "tensor":
        raise NotTranslated(f"{name}, which changes what a tensor is and not what it holds", t.state.top.line)
    if framework == "numpy" and name in _NUMPY_WRITES and receiver.kind == "tensor":
        t.foreign("." + name, functools.partial(_invoke, name), [receiver, *arguments], keywords, result="none", is_pure=False)
        return Known(None)

    own = MISSING
    if framework == "torch" and receiver.kind == "tensor":  # whose methods may be replaced
        torch = sys.modules["torch"]
        own = vars(torch.Tensor).get(name, MISSING)
        t.guards.own_attribute(torch.Tensor, name, own)
    is_replaced = isinstance(own, types.FunctionType) and not (own.__module__ or "").startswith("torch")

    def write() -> Value:
        if row is None or is_replaced:
            raise NotWritten(name)
        return arrays.check_axes(f"{rows.prefix(framework)}.{name}", row(t.lowering, [receiver, *arguments], keywords))  # type: ignore[no-any-return]

    def otherwise() -> Value:
        function = functools.partial(_invoke, name)
        if writes:
            t.foreign("." + name, function, [receiver, *arguments], keywords, result="none", is_pure=False)
            return receiver
        is_opaque = receiver.kind == "object"
        is_pure = not is_opaque and not rows.draws(name)
        learns = not is_opaque
        return t.foreign("." + name, function, [receiver, *arguments], keywords, is_pure=is_pure, learns=learns, clobbers=is_opaque)

    return t.attempt(write, otherwise)


def _invoke(name: str, receiver: Any, *arguments: Any, **keywords: Any) -> Any:
    return getattr(receiver, name)(*arguments, **keywords)


_invoke.__module__ = "operator"  # reads what it is given, as the operators do


def append(t: Translator, target: Value, item: Value) -> None:
    """target.append(item)."""
    if isinstance(target, ListValue):
        target.items.append(item)
    elif isinstance(target, RunList) and suits(item, target.element):
        assert isinstance(target.content, Dynamic)
        refuse_shared(t, target)
        target.content = t.writer.append(target.content, item)
        if isinstance(item, RunList):
            item.is_shared = True
    else:
        raise NotTranslated("a list of values of several kinds, or of somebody else's, that grows in a loop", t.state.top.line)


def become(t: Translator, target: Value, source: Value) -> None:
    """Puts what one list holds in the place of what another one, of the run, holds."""
    if isinstance(target, ListValue) and isinstance(source, ListValue):
        target.items[:] = source.items
        return
    if not isinstance(target, RunList):
        raise NotTranslated("a list that gets a length that only the run knows", t.state.top.line)
    refuse_shared(t, target)
    if isinstance(source, ListValue) and all(suits(item, target.element) for item in source.items):
        target.content = t.writer.list_of(source.items, target.element)
    elif isinstance(source, RunList) and source.element in (target.element, growing(target.element)):
        target.content, target.element = source.content, source.element
    else:
        raise NotTranslated("a list of values of several kinds", t.state.top.line)


def refuse_shared(t: Translator, value: RunList) -> None:
    """Refuses to change a list that stands in a list of the run."""
    if value.is_shared:
        raise NotTranslated("a list that stands in another one of the run changed", t.state.top.line)


def suits(item: Value, element: Element) -> bool:
    """Whether a list of the run takes an item."""
    found = element_of([item])
    return found is not None and element in (found, growing(found))


def element_of(items: list[Value]) -> Element | None:
    """What elements have in common; None where they have nothing."""
    kinds: set[Element] = set()
    for item in items:
        if isinstance(item, Dynamic) and item.kind not in ("list", "number"):
            kinds.add((item.kind, item.dtype, item.rank))
        elif isinstance(item, Known) and type(item.object) in (bool, int, float):
            kinds.add((type(item.object).__name__, None, -1))
        elif isinstance(item, TextValue) or (isinstance(item, Known) and type(item.object) is str):
            kinds.add(("text", None, -1))
        elif isinstance(item, RunList) and item.element[0] not in ("object", "text"):
            kinds.add(("list", item.element, -1))
        elif isinstance(item, TupleValue) and item.cls is tuple and item.items:
            parts = tuple(element_of([part]) for part in item.items)
            if not all(part is not None and part[0] not in ("object", "list", "text") for part in parts):
                return None
            kinds.add(("tuple", parts, -1))
        else:
            return None
    return kinds.pop() if len(kinds) == 1 else None


def _list_method(t: Translator, receiver: ListValue, name: str, arguments: Arguments, keywords: Keywords) -> Value | None:
    items = receiver.items
    if name == "append":
        append(t, receiver, arguments[0])
    elif name == "extend" and (calls.is_open(arguments[0]) or isinstance(arguments[0], RunList)):
        return calls.call(t, Known(helpers.extend), [receiver, *arguments], keywords)
    elif name == "extend":
        items.extend(evaluate.unpacked(t, arguments[0]))
    elif name == "clear":
        items.clear()
    elif name == "reverse":
        items.reverse()
    elif name == "sort" and not keywords and evaluate.all_plain(items):
        values = evaluate.fold(t, "sort", lambda *objects: tuple(sorted(objects)), list(items))
        assert isinstance(values, Known)
        items[:] = [Known(obj) for obj in values.object]
    elif name == "sort" and not arguments and set(keywords) <= {"key", "reverse"}:
        return calls.call(t, Known(helpers.sort), [receiver], keywords)
    elif name == "remove" and evaluate.all_plain([*items, *arguments]):
        at = next((i for i, item in enumerate(items) if item.object == arguments[0].object), None)  # type: ignore[attr-defined]
        if at is None:
            evaluate.raises(t, "remove", [].remove, arguments)
        del items[at]
    elif name == "copy":
        return ListValue(items)
    elif name == "insert" and isinstance(arguments[0], Known):
        items.insert(arguments[0].object, arguments[1])
    elif name == "pop":
        at = arguments[0].object if arguments and isinstance(arguments[0], Known) else -1
        if not items or not -len(items) <= at < len(items) or (arguments and not isinstance(arguments[0], Known)):
            raise NotTranslated("list.pop", t.state.top.line)
        return items.pop(at)
    elif name in ("index", "count") and is_known(receiver) and is_known(arguments):
        return evaluate.fold(t, name, getattr(list, name), [Known(lowering.plain(receiver)), *arguments])
    else:
        raise NotTranslated(f"list.{name}", t.state.top.line)
    return Known(None)


def _set_method(t: Translator, receiver: SetValue, name: str, arguments: Arguments) -> Value:
    """Methods of a set of plain objects. Those that change it keep it the object that it is."""
    others = [evaluate.unpacked(t, other) for other in arguments] if name in _OF_SETS else [arguments]
    if not hasattr(set, name) or name.startswith("_") or name == "pop" or not all(map(evaluate.all_plain, others)):
        raise NotTranslated(f"set.{name} of values of the run", t.state.top.line)
    objects = [[item.object for item in items] for items in others]  # type: ignore[attr-defined]
    changed = set(receiver.objects)
    method, given = getattr(changed, name), objects if name in _OF_SETS else objects[0]
    try:
        result = method(*given)
    except Exception:
        evaluate.raises(t, f"set.{name}", lambda: getattr(set(receiver.objects), name)(*given), [])
    receiver.objects = frozenset(changed)
    return SetValue(frozenset(result)) if isinstance(result, set) else Known(result)


_OF_SETS = frozenset(name for name in dir(set) if name.endswith("update") or name in ("union", "intersection", "difference", "symmetric_difference") or name.startswith("is"))


def _dict_method(t: Translator, receiver: DictValue, name: str, arguments: Arguments, keywords: Keywords) -> Value | None:
    items = receiver.items
    key = arguments[0].object if arguments and isinstance(arguments[0], Known) else None
    if name in ("items", "keys", "values") and not arguments:
        return DictView(receiver, name)
    if name == "to_tuple":
        return TupleValue(items.values())
    if name == "copy":
        return DictValue(dict(items), receiver.cls)
    if name == "clear" and not arguments:
        items.clear()
        return Known(None)
    if name == "update" and items and len(arguments) == 1 and not keywords and getattr(arguments[0], "cls", None) is helpers.Table:
        table = indexing.table_of(t, receiver, Known(0), next(iter(items.values())))
        return calls.call(t, Known(helpers.Table.update), [table, *arguments], {})
    if name == "update":
        for other in arguments:
            items.update(evaluate.spread(t, TupleValue([]), other)[1])
        items.update(keywords)
        return Known(None)
    if arguments and isinstance(arguments[0], Known):
        if name == "get":
            return items.get(key, arguments[1] if len(arguments) > 1 else Known(None))
        if name == "setdefault":
            return items.setdefault(key, arguments[1] if len(arguments) > 1 else Known(None))
        if name == "pop" and (key in items or len(arguments) > 1):
            return items.pop(key) if key in items else arguments[1]
    if name == "pop" and arguments and not items and not keywords:
        if len(arguments) > 1:
            return arguments[1]
        evaluate.raises(t, "pop", {}.__getitem__, arguments)
    if name == "pop" and arguments and items and not keywords and indexing.is_key_of_the_run(t, receiver, arguments[0]):
        table = indexing.table_of(t, receiver, arguments[0], next(iter(items.values())))
        return calls.call(t, Known(helpers.Table.pop), [table, *arguments], {})
    if name == "setdefault" and not keywords and indexing.is_key_of_the_run(t, receiver, arguments[0]):
        value = arguments[1] if len(arguments) > 1 else Known(None)
        table = indexing.table_of(t, receiver, arguments[0], value)
        return calls.call(t, Known(helpers.Table.setdefault), [table, arguments[0], value], {})
    if name == "get" and not keywords and len(arguments) in (1, 2):
        found = indexing.value_or(t, items, *arguments)
        if found is not NotImplemented:
            return found  # type: ignore[no-any-return]
    raise NotTranslated(f"dict.{name}", t.state.top.line)
