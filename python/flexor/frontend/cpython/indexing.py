"""container[index] and container[index] = value."""

from __future__ import annotations

import operator
import types
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard

import numpy as np

from flexor.frontend.cpython import attributes, calls, evaluate, helpers, instances, lowering, methods, special, texts
from flexor.frontend.cpython.decode import NotTranslated
from flexor.frontend.cpython.values import (
    ArgumentDict,
    ArgumentItems,
    ArgumentList,
    ArgumentMapping,
    DictValue,
    Dynamic,
    Element,
    InstanceValue,
    Known,
    ListValue,
    RunList,
    SliceValue,
    TextValue,
    TupleValue,
    Value,
    is_int,
    is_known,
    is_number,
    whole,
)
from flexor.frontend.cpython.writer import NotWritten

if TYPE_CHECKING:
    from flexor.frontend.cpython.translate import Translator


def get(t: Translator, container: Value, index: Value) -> Value | None:
    """container[index]; None: a __getitem__ of Python was entered."""
    if isinstance(container, Dynamic):
        if container.kind == "tensor":
            return t.attempt(lambda: selected(t, container, index), lambda: t.foreign("[]", operator.getitem, [container, index]))
        return t.foreign("[]", operator.getitem, [container, index])
    if instances.is_users(container):
        found = instances.invoke(t, container, "__getitem__", [index])
        if found is not NotImplemented:
            return found  # type: ignore[no-any-return]
    if isinstance(container, (TupleValue, ListValue)):
        return _of_sequence(t, list(container.items), container, index)
    if isinstance(container, RunList) and (isinstance(index, SliceValue) or isinstance(index, Known) and isinstance(index.object, slice)):
        at: Any = index if isinstance(index, SliceValue) else index.object
        start, stop, step = (part if isinstance(part, Value) else Known(part) for part in (at.start, at.stop, at.step))
        step = Known(1) if isinstance(step, Known) and step.object is None else step
        if isinstance(step, Known) and type(step.object) is int and step.object:
            return calls.call(t, Known(helpers.sliced), [container, start, stop, step], {})
    if isinstance(container, RunList) and is_number(index):
        assert isinstance(container.content, Dynamic)
        return t.writer.element(container.content, index, container.element)
    if isinstance(container, DictValue):
        if not isinstance(index, Known):
            return _by_key(t, container, index)
        if isinstance(index.object, int) and container.cls is not dict:
            return list(container.items.values())[index.object]  # results of models are read by place too
        if index.object in container.items:
            return container.items[index.object]
        return _raising(t, whole(DictValue({})), index)
    if isinstance(container, Known):
        return _of_object(t, container.object, index)
    method = special.method(t, container, "__getitem__")
    if method is not None:
        return calls.call(t, method, [index], {})
    raise NotTranslated(f"an item of a {type(container).__name__}", t.state.top.line)


def element(t: Translator, container: Value, index: Value) -> Value:
    """container[index], of a container whose class is no user's."""
    found = get(t, container, index)
    assert found is not None
    return found


def _raising(t: Translator, container: Any, index: Value) -> NoReturn:
    evaluate.raises(t, "[]", operator.getitem, [Known(container), index])


def _by_key(t: Translator, container: Value, index: Value) -> Value | None:
    """An item of a dict for a number that only the run knows."""
    items = container.items if isinstance(container, DictValue) else attributes.items(t, container.object)  # type: ignore[attr-defined]
    if not is_number(index) or len(items) > helpers.MOST_CHOICES:
        raise NotTranslated("a dict asked for a key that only the run knows", t.state.top.line)
    return calls.call(t, Known(helpers.value_of), [DictValue(dict(items)), index], {})


def value_or(t: Translator, items: dict[Any, Value], key: Value, otherwise: Value = Known(None)) -> Any:
    """What get(key, otherwise) of a dict gives for a number or string that only the run knows; NotImplemented for another key, and where
    many values are not alike. None: a function was entered that gives it."""
    if t.lowering.framework == "numpy" and _is_integer(key):  # equal to the number that it is
        key = t.writer.item(key)
    is_text = isinstance(key, TextValue)
    if not is_text and not is_number(key):
        return NotImplemented
    is_small = len(items) <= helpers.MOST_CHOICES
    if (is_text or (is_int(key) and not is_small)) and (found := _chosen(t, items, key, otherwise)) is not None:
        return found
    if is_small:
        return calls.call(t, Known(helpers.value_or), [DictValue(dict(items)), key, otherwise], {})
    element = methods.element_of(list(items.values()))
    if element is None or not all(type(own) is (str if is_text else int) for own in items):
        return NotImplemented
    return calls.call(t, Known(helpers.Table.get), [_tabled(t, items, element), key, otherwise], {})


def _chosen(t: Translator, items: dict[Any, Value], key: Value, otherwise: Value) -> Value | None:
    """get(key, otherwise) of a dict of integers or strings, known as all of it is, in one step; None where it is another dict."""
    values = [v.object if isinstance(v, Known) else None for v in (*items.values(), otherwise)]
    kind = type(values[0])
    if kind not in (int, str) or not all(type(v) is kind for v in values):
        return None
    if not all(type(own) is (str if isinstance(key, TextValue) else int) for own in items):
        return None
    *numbers, default = map(_number, values)
    keys = list(map(_number, items))
    if not all(-(2**63) <= n < 2**63 for n in (*keys, *numbers, default)):
        return None
    own_keys, own_values = (t.constant(tuple(part)) for part in (keys, numbers))
    op = t.writer.op
    is_own = op("eq", own_keys, t.writer.number(key) if isinstance(key, TextValue) else key)
    chosen = op("reduce_sum", op("where", is_own, own_values, Known(0)))
    found = t.writer.item(op("where", op("reduce_any", is_own), chosen, Known(default)))
    return TextValue(found) if kind is str else found


def _number(obj: Any) -> int:
    return texts.number_of(obj) if type(obj) is str else obj  # type: ignore[no-any-return]


def _tabled(t: Translator, items: dict[Any, Value], element: Element) -> InstanceValue:
    """A dict of values that are alike as a table, with keys of one kind."""
    keys: list[Value] = [Known(own) for own in items]
    of_keys = methods.element_of(keys) or ("int", None, -1)
    held = RunList(t.writer.list_of(keys, of_keys), of_keys), RunList(t.writer.list_of(list(items.values()), element), element)
    return InstanceValue(helpers.Table, dict(zip(("_keys", "_values"), held)))


def _by_place(t: Translator, items: list[Value], container: Value, index: Value) -> Value | None:
    """An item for a place that only the run knows: of a list of the run if they are alike, else a branch for each."""
    if not isinstance(index, Dynamic) or index.kind not in ("int", "bool"):
        raise NotTranslated("a list or tuple asked for a place that only the run knows", t.state.top.line)
    element = methods.element_of(items)
    if element is not None and index.kind == "int" and (element[0] != "text" or len(items) > helpers.MOST_CHOICES):
        return t.writer.element(t.writer.list_of(items, element), index, element)
    if len(items) > helpers.MOST_CHOICES:
        raise NotTranslated(f"a place that only the run knows, among more than {helpers.MOST_CHOICES} values that are not alike", t.state.top.line)
    is_list = isinstance(container, (ListValue, ArgumentList)) or (isinstance(container, Known) and isinstance(container.object, list))
    return calls.call(t, Known(helpers.item_at), [ListValue(items) if is_list else TupleValue(items), index], {})


def _of_sequence(t: Translator, items: list[Value], container: Value, index: Value) -> Value | None:
    if is_known(index):
        at = whole(index)
        if isinstance(at, slice):
            chosen = items[at]
            if isinstance(container, (ListValue, ArgumentList)):
                return ListValue(chosen)
            cls = container.cls if isinstance(container, TupleValue) and not hasattr(container.cls, "_fields") else tuple
            return TupleValue(chosen, cls)
        if isinstance(at, int) and -len(items) <= at < len(items):
            return items[at]
        return _raising(t, [None] * len(items) if isinstance(container, (ListValue, ArgumentList)) else (None,) * len(items), index)
    return _by_place(t, items, container, index)


def _of_object(t: Translator, obj: Any, index: Value) -> Value | None:
    known = is_known(index)
    at = whole(index) if known else None
    if isinstance(obj, (list, tuple)) and known:
        if isinstance(obj, list):
            t.guards.length(obj, len(obj))
        if isinstance(at, slice):
            chosen = attributes.elements(t, obj)[at]
            return ListValue(chosen) if isinstance(obj, list) else TupleValue(chosen)
        if isinstance(at, int) and -len(obj) <= at < len(obj):
            return attributes.element(t, obj, at) if isinstance(obj, list) else t.known(obj[at])
        return _raising(t, obj, index)
    if isinstance(obj, dict) and known and type(obj).__getitem__ is dict.__getitem__:
        if attributes.contains(t, obj, at):
            return attributes.item(t, obj, at)
        if hasattr(type(obj), "__missing__"):
            raise NotTranslated(f"a {type(obj).__name__} asked for what it has not", t.state.top.line)
        return _raising(t, {}, index)
    if isinstance(obj, (list, tuple)) and isinstance(index, Dynamic):
        return _by_place(t, attributes.elements(t, obj), Known(obj), index)
    if isinstance(obj, dict) and isinstance(index, Dynamic) and type(obj) is dict:
        return _by_key(t, Known(obj), index)
    if known and evaluate.is_plain(obj):
        if isinstance(obj, type):
            return Known(obj[at])  # type: ignore[index]
        return evaluate.fold(t, "[]", operator.getitem, [Known(obj), Known(at)])
    method = attributes._raw(type(obj), "__getitem__")
    if isinstance(method, types.FunctionType):
        children = attributes.iterated(t, obj)
        if children is not None and isinstance(at, int) and hasattr(obj, "_modules"):
            return _of_sequence(t, children, TupleValue(children), index)
        t.guards.class_attribute(type(obj), "__getitem__", method)
        return calls.call(t, Known(method), [Known(obj), index], {})
    raise NotTranslated(f"an item of a {type(obj).__name__} that only the run knows", t.state.top.line)


# ---------------------------------------------------------------------------------------------------------------- tensors


def _steps(t: Translator, tensor: Dynamic, index: Value) -> list[Value]:
    """One item for each axis and each new axis, lists of integers as tensors; raises NotWritten for what basic indexing does not cover."""
    items = list(index.items) if isinstance(index, TupleValue) else [index]
    if isinstance(index, Known) and isinstance(index.object, tuple):
        items = [Known(item) for item in index.object]
    named = sum(i.rank if _is_mask(i) else not (isinstance(i, Known) and (i.object is None or i.object is Ellipsis)) for i in items)
    if tensor.rank < 0:
        raise NotWritten("an index into a tensor of unknown rank")
    if named > tensor.rank:
        raise NotWritten("too many indices")
    dots = [i for i, item in enumerate(items) if isinstance(item, Known) and item.object is Ellipsis]
    if len(dots) > 1:
        raise NotWritten("two ellipses")
    whole: Value = Known(slice(None))
    if dots:
        items[dots[0] : dots[0] + 1] = [whole] * (tensor.rank - named)
    return [_row_of(t, item) for item in items]


def selected(t: Translator, tensor: Dynamic, index: Value, *, writes: bool = False) -> Value:
    """A view by basic indexing, or the elements that tensors of indices and masks name; for one element NumPy has a scalar, but where
    it `writes`."""
    steps = _steps(t, tensor, index)
    if len(steps) == 1 and _is_mask(steps[0]) and not _may_pass_over(t):
        _fits(t, tensor, steps[0])
        return t.writer.op("mask_select", tensor, steps[0])
    value, indices = _walked(t, tensor, steps, writes=False)
    if not indices:
        if t.lowering.framework == "numpy" and value.rank == 0 and not writes:
            return _scalar(t, value, index)
        return t.lowering.view_of(tensor) if value is tensor else value  # type: ignore[no-any-return]
    if writes:
        raise NotWritten("elements that are no view")
    value, axis = _adjacent(t, value, [at for at, _ in indices])
    parts = [part for _, part in indices]
    if len(parts) > 1:
        parts = [_flat_places(t, [t.writer.size(value, axis + i) for i in range(len(parts))], parts)]
        value = t.writer.op("flatten", value, start_axis=axis, end_axis=axis + len(indices) - 1)
    if t.lowering.framework == "torch" and value.rank > 1:
        # Looked at where there is something to copy, or nothing to choose from.
        some = t.lowering.positive(t.writer.size(value, axis))
        if not (isinstance(some, Known) and some.object):
            none = t.lowering.zero(t.lowering.count(parts[0]))
            t.assume(t.lowering.either(some, none), "something to choose from", IndexError)
        return t.writer.op("take", value, parts[0], axis=axis, wrap=True)
    return t.lowering.taken(value, parts[0], axis, wrap=True)  # type: ignore[no-any-return]


def _walked(t: Translator, tensor: Dynamic, steps: list[Value], *, writes: bool) -> tuple[Dynamic, list[tuple[int, Dynamic]]]:
    """What slices, integers and new axes leave, a view where it `writes`; and which of its axes which tensors of indices are for."""
    value, axis = tensor, 0
    op = t.writer.op
    indices: list[tuple[int, Dynamic]] = []
    items = list(steps)
    chooses = t.lowering.framework == "torch" or all(_is_integer(item) or not evaluate.is_tensor(item) for item in items)
    copies = chooses and any(_is_integer(item) and t.class_of_input(item) is np.ndarray for item in items)  # as NumPy does
    if chooses and (writes or t.knowledge.selects):
        items = [t.writer.item(item) if _is_integer(item) else item for item in items]
    if t.lowering.framework == "numpy":  # which takes integers for tensors without axes, where there are tensors
        places = [i for i, item in enumerate(items) if evaluate.is_tensor(item) or _is_place(item)]
        if any(map(evaluate.is_tensor, items)) and places[-1] - places[0] + 1 != len(places):
            raise NotWritten("indices on both sides of a slice, which moves their axes to the front")
    for item in items:
        if isinstance(item, Known) and isinstance(item.object, slice):
            item = SliceValue(*(Known(part) for part in (item.object.start, item.object.stop, item.object.step)))
        if isinstance(item, Known) and item.object is None:
            value = op("unsqueeze", value, axis=axis)
            axis += 1
        elif isinstance(item, SliceValue):
            parts = [_bound(t, part) for part in (item.start, item.stop, item.step)]
            if not all(isinstance(p, Known) and p.object is None for p in parts):
                step = parts[2] if not (isinstance(parts[2], Known) and parts[2].object is None) else Known(1)
                if t.lowering.framework == "torch" and lowering.plain(step) < 1:
                    raise NotWritten("a step that torch refuses")
                value = op("slice", value, axis=axis, start=parts[0], stop=parts[1], step=step)
            axis += 1
        elif isinstance(item, Known) and type(item.object) is int:
            value = op("select", value, axis=axis, index=item.object)
        elif isinstance(item, Dynamic) and item.kind == "int":
            value = op("select", value, axis=axis, index=item)
        elif _is_mask(item):
            _fits(t, value, item, axis)
            rows = op("nonzero", item)
            indices += [(axis + i, op("select", rows, axis=1, index=i)) for i in range(item.rank)]
            axis += item.rank
        elif chooses and _is_integer(item):
            value = t.lowering.taken(value, item, axis, wrap=True)
            if not copies:  # a copy in the place of a view, as long as nobody can tell
                value.is_fresh, t.has_copied = False, True
        elif isinstance(item, Dynamic) and item.kind == "tensor" and item.dtype in ("int64", "int32") and item.rank >= 0:
            indices.append((axis, item))
            axis += 1
        else:
            raise NotWritten("an index that is no integer, slice or tensor of integers")
    if writes and any(item.rank == 0 for _, item in indices) and indices[-1][0] - indices[0][0] + 1 != len(indices):
        raise NotWritten("an index without axes on the other side of a slice")
    return (op("clone", value) if copies and t.knowledge.selects else value), indices


def _scalar(t: Translator, element: Dynamic, index: Value) -> Dynamic:
    """An element of an array as NumPy's scalar, which later writes to the array do not change."""
    items = index.items if isinstance(index, TupleValue) else [index]
    if any(isinstance(i, Known) and (i.object is Ellipsis or isinstance(i.object, tuple) and Ellipsis in i.object) for i in items):
        raise NotWritten("an array without axes")
    if t.knowledge.copies:
        return t.writer.op("clone", element)
    t.has_viewed = True  # a view in its place, as long as nothing is written
    return element


def _adjacent(t: Translator, value: Dynamic, axes: list[int]) -> tuple[Dynamic, int]:
    """Moves axes that do not stand next to each other to the front: there stand the axes of what they give. The first of them."""
    if axes == list(range(axes[0], axes[0] + len(axes))):
        return value, axes[0]
    rest = [axis for axis in range(value.rank) if axis not in axes]
    return t.writer.op("permute", value, axes=[*axes, *rest]), 0


def _flat_places(t: Translator, sizes: list[Value], indices: list[Dynamic]) -> Dynamic:
    """The places, among the elements of axes of these sizes, of indices that are broadcast against each other. Each of them is looked
    up in the places of its axis, which counts from the end where it is negative and refuses what is out of range."""
    op = t.writer.op
    flat: Dynamic | None = None
    for size, index in zip(sizes, indices):
        place = op("take", op("arange", start=Known(0), stop=size, step=Known(1), dtype="int64"), index, axis=0, wrap=True)
        flat = place if flat is None else op("add", op("mul", flat, size), place)
    assert flat is not None
    return flat


def _row_of(t: Translator, item: Value) -> Value:
    """A list of integers as the tensor that it stands for, where torch takes it for one."""
    if not isinstance(item, (ListValue, ArgumentList)) or t.lowering.framework != "torch" or not item.items or not all(map(is_int, item.items)):
        return item
    return t.lowering.made_tensor(item, Known(None), Known(None))  # type: ignore[no-any-return]


def _is_mask(value: Value) -> TypeGuard[Dynamic]:
    return isinstance(value, Dynamic) and value.kind == "tensor" and value.dtype == "bool" and value.rank > 0


def _fits(t: Translator, tensor: Dynamic, mask: Value, first: int = 0) -> None:
    """A mask has the sizes of what it is used on, from an axis on; where not, Python raises what it raises."""
    assert isinstance(mask, Dynamic)
    for axis in range(mask.rank):
        size = t.writer.size(mask, axis)
        same = evaluate.tested(t, "==", t.writer.size(tensor, first + axis), size)
        if _may_pass_over(t):
            same = t.lowering.either(same, t.lowering.zero(size))
        t.assume(same, "a mask of the sizes of its tensor", IndexError)


def _may_pass_over(t: Translator) -> bool:
    """Whether a mask without elements, which NumPy takes for any axis, has to be one of the program: behind an effect."""
    return t.lowering.framework == "numpy" and t.lowering.has_acted()


def _fill_where(t: Translator, tensor: Dynamic, mask: Dynamic, value: Value) -> Value:
    """tensor[mask] = number."""
    kind = value.kind if isinstance(value, Dynamic) else type(value.object).__name__ if isinstance(value, Known) else ""
    if kind not in (("int", "bool", "float") if "float" in (tensor.dtype or "") else ("int", "bool")):
        raise NotWritten("a write of anything but a number of the tensor's kind")
    if mask.rank > tensor.rank:
        raise NotWritten("too many indices")
    if _may_pass_over(t):
        return _put(t, tensor, [mask], value)
    _fits(t, tensor, mask)
    for axis in range(mask.rank, tensor.rank):
        mask = t.writer.op("unsqueeze", mask, axis=axis)
    return t.lowering.written(tensor, "masked_fill_", mask, value)  # type: ignore[no-any-return]


def _put(t: Translator, tensor: Dynamic, steps: list[Value], value: Value) -> Value:
    """tensor[...] = value where tensors of indices or masks are among the steps."""
    view, indices = _walked(t, tensor, steps, writes=True)
    view, axis = _adjacent(t, view, [at for at, _ in indices])
    t.lowering.put_from(view, axis, [part for _, part in indices], value, in_place=True)
    return tensor


def added_at(t: Translator, tensor: Dynamic, index: Value, value: Value) -> Value:
    """np.add.at: what stands at the places that tensors of indices name grows as often as they name it."""
    view, indices = _walked(t, tensor, _steps(t, tensor, index), writes=True)
    if not indices or tensor.dtype == "bool":
        raise NotWritten("places that are no arrays")
    if evaluate.is_tensor(value) and value.dtype != tensor.dtype:  # type: ignore[attr-defined]
        raise NotWritten("values of another dtype")
    view, axis = _adjacent(t, view, [at for at, _ in indices])
    t.lowering.put_from(view, axis, [part for _, part in indices], value, accumulate=True, in_place=True)
    return Known(None)


def _is_integer(value: Value) -> TypeGuard[Dynamic]:
    """A tensor without axes that the frameworks take for an integer: what it selects is a view."""
    return isinstance(value, Dynamic) and value.kind == "tensor" and value.rank == 0 and value.dtype in ("int64", "int32")


def _is_place(value: Value) -> bool:
    return isinstance(value, Dynamic) and value.kind == "int" or (isinstance(value, Known) and type(value.object) is int)


def _bound(t: Translator, value: Value) -> Value:
    if _is_integer(value):
        return t.writer.item(value)
    if isinstance(value, Known) and (value.object is None or type(value.object) is int):
        return value
    if isinstance(value, Dynamic) and value.kind == "int":
        return value
    raise NotWritten("a bound that is no integer")


def is_key_of_the_run(t: Translator, container: Value, key: Value) -> bool:
    """Whether a key makes a dict a table, or is one of a table."""
    if isinstance(container, InstanceValue) and container.cls is helpers.Table:
        return True
    return isinstance(container, DictValue) and isinstance(key, Dynamic) and is_number(key)


def put_new(t: Translator, container: Value, key: Value, value: Value) -> None:
    """container[key] = value, of a dict that is a table from now on: the key may be a new one, and is a number of the run."""
    table = table_of(t, container, key, value)
    instances.dropped(t, calls.call(t, Known(helpers.Table.__setitem__), [table, key, value], {}))


def table_of(t: Translator, container: Value, key: Value, value: Value) -> InstanceValue:
    """A dict as a table, wherever it stands, which may get that item."""
    frame = t.state.top
    if not is_int(key) or sum(other.code is frame.code for other in t.state.frames) > 1:
        raise NotTranslated("a key that only the run knows written, which may be new", frame.line)
    if isinstance(container, DictValue):
        element = methods.element_of([*container.items.values(), value])
        is_plain = container.cls is dict and not isinstance(container, (ArgumentDict, ArgumentMapping))
        if element is None or not is_plain or not all(type(own) is int for own in container.items):
            raise NotTranslated("a key that only the run knows written to a dict of other keys, or of values of several kinds", frame.line)
        made = _tabled(t, container.items, element)
        t.state = t.state.copy({id(container): made})  # every name of the dict has to see it
        container = made
    assert isinstance(container, InstanceValue)
    return container


def set_item(t: Translator, container: Value, index: Value, value: Value) -> None:
    """container[index] = value."""
    if isinstance(container, ListValue) and isinstance(index, Known) and isinstance(index.object, int):
        if -len(container.items) <= index.object < len(container.items):
            container.items[index.object] = value
            return
    if instances.is_users(container):
        method = instances.method(t, container, "__setitem__")
        if method is not None:
            instances.dropped(t, calls.call(t, method, [container, index, value], {}))
            return
    if isinstance(container, ListValue) and is_known(index) and isinstance(at := whole(index), slice):
        items = evaluate.unpacked(t, value)
        try:
            container.items[at] = items
        except ValueError:
            evaluate.raises(t, "[] =", operator.setitem, [Known([None] * len(container.items)), index, Known([None] * len(items))])
        return
    if isinstance(container, ArgumentItems) and not is_known(index):
        raise NotTranslated("a place that only the run knows written, of a list of the caller's", t.state.top.line)
    if isinstance(container, ListValue) and isinstance(index, Dynamic) and index.kind == "int":
        element = methods.element_of([*container.items, value])
        if element is None or (element[0] == "text" and len(container.items) <= helpers.MOST_CHOICES):
            if len(container.items) > helpers.MOST_CHOICES:
                raise NotTranslated("a place that only the run knows written, of values that are not alike", t.state.top.line)
            instances.dropped(t, calls.call(t, Known(helpers.put_at), [container, index, value], {}))
            return
        # Every name of the list has to see the new one.
        made = RunList(t.writer.list_of(container.items, element), element)
        t.state = t.state.copy({id(container): made})
        container = made
    if isinstance(container, RunList) and is_number(index) and methods.suits(value, container.element):
        assert isinstance(container.content, Dynamic)
        methods.refuse_shared(t, container)
        container.content = t.writer.set_element(container.content, index, value)
        if isinstance(value, RunList):
            value.is_shared = True
        return
    if isinstance(container, (ArgumentList, ArgumentDict)):
        t.objects.mirror(container)
    if isinstance(container, DictValue) and isinstance(index, Known) and not isinstance(container, ArgumentDict):
        container.items[index.object] = value
        return
    if isinstance(container, DictValue) and is_number(index) and not isinstance(container, ArgumentDict):
        if len(container.items) > helpers.MOST_CHOICES:
            raise NotTranslated("a key that only the run knows written, of a dict of many", t.state.top.line)
        has = evaluate.to_bool(t, evaluate.contains(t, index, container))
        are_alike = all(type(key) is int for key in container.items) and methods.element_of([*container.items.values(), value]) is not None
        if (isinstance(has, Known) and not has.object) or t.state.has_acted or (are_alike and is_int(index)):
            put_new(t, container, index, value)
            return
        t.assume(has, "a key that the dict has")
        instances.dropped(t, calls.call(t, Known(helpers.put_by), [container, index, value], {}))
        return
    if isinstance(container, Dynamic):

        def write() -> Value:
            if container.kind != "tensor":
                raise NotWritten("an object")
            if _is_mask(index) and not (isinstance(value, Dynamic) and value.kind == "tensor" and value.rank > 0):
                return _fill_where(t, container, index, value)
            steps = _steps(t, container, index)
            if any(isinstance(i, Dynamic) and i.kind == "tensor" and not _is_integer(i) for i in steps):
                return _put(t, container, steps, value)
            view = selected(t, container, index, writes=True)
            return t.lowering.written(view, "assign", value)  # type: ignore[no-any-return]

        t.attempt(
            write,
            lambda: t.foreign("[] =", operator.setitem, [container, index, value], result="none", is_pure=False),
        )
        return
    if isinstance(container, Known) and isinstance(index, Known) and type(container.object) in (list, dict):
        attributes.store_element(t, container.object, index.object, value)
        return
    raise NotTranslated(f"an item of a {type(container).__name__} written", t.state.top.line)
