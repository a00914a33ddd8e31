"""Reading and writing what is not on the stack: attributes, globals, cells, elements of Python's own containers.

Whatever is read becomes a guard, so that a call after a change translates anew. Tensors are not guarded but fetched for every call;
so are attributes that the function itself writes.
"""

from __future__ import annotations

import builtins
import collections
import functools
import importlib.util
import sys
import types
from typing import TYPE_CHECKING, Any

import numpy as np

from flexor.frontend.cpython import builtin, calls, constructors, effects, evaluate, instances, reflection
from flexor.frontend.cpython.decode import NotTranslated, Restart
from flexor.frontend.cpython.guards import MISSING, Place
from flexor.frontend.cpython.values import (
    ArgumentObject,
    CellValue,
    DictValue,
    Dynamic,
    FunctionValue,
    GeneratorValue,
    InstanceValue,
    Known,
    ListValue,
    MethodValue,
    PartialValue,
    RunList,
    SetValue,
    SliceValue,
    TupleValue,
    Value,
)
from flexor.frontend.cpython.writer import SHORT_DTYPES, NotWritten, dtype_name

if TYPE_CHECKING:
    from flexor.frontend.cpython.translate import Translator

def is_tensor_object(obj: Any) -> bool:
    """Whether an object is a tensor that the engine reads without a copy."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(obj, torch.Tensor):
        is_exact = type(obj) in (torch.Tensor, torch.nn.Parameter)
        return is_exact and obj.device.type in ("cpu", "cuda") and obj.layout == torch.strided
    return type(obj) is np.ndarray and dtype_name(obj.dtype) is not None


def place_of(obj: Any) -> str:
    """The device of a tensor: "cpu", or one such as "cuda:0"."""
    return "cpu" if isinstance(obj, (np.ndarray, np.generic)) else str(obj.device)


def cuda_index(obj: Any) -> int:
    """The number of a tensor's CUDA device; -1 on the CPU."""
    return -1 if place_of(obj) == "cpu" else int(obj.device.index)


def plain_memory(obj: Any) -> tuple[int, Any]:
    """The address in host memory of a tensor's elements in order and without gaps, and what keeps them alive."""
    if isinstance(obj, np.ndarray):
        array = np.ascontiguousarray(obj)
        return array.ctypes.data, array
    tensor = obj.detach().cpu().resolve_conj().resolve_neg().contiguous()
    return tensor.data_ptr(), tensor


def type_text(obj: Any, with_sizes: bool) -> str:
    """The type of a tensor in text form, with its sizes or with any."""
    name = dtype_name(obj.dtype)
    if name is None:
        raise NotTranslated(f"a tensor of dtype {obj.dtype}")
    return f"{SHORT_DTYPES[name]}[{', '.join(str(size) if with_sizes else '?' for size in obj.shape)}]"


def read(t: Translator, holder: Any, key: str, obj: Any) -> Value:
    """The value of an object that a dict holds under a key: an input if it is a tensor, else known (and guarded by the caller)."""
    if is_tensor_object(obj):
        return t.live((id(holder), key), type_text(obj, with_sizes=True), Place("item", holder, key), obj)
    return t.known(obj)


# ----------------------------------------------------------------------------------------------------- globals and cells


def load_global(t: Translator, globals_: dict[str, Any], name: str) -> Value:
    """A global of the function, or a builtin."""
    if globals_.get("__name__") in calls._OWN and name in globals_:
        return Known(globals_[name])
    if name in globals_ or (id(globals_), name) in t.state.written:
        return item(t, globals_, name)
    t.guards.absent(globals_, name)
    place = vars(builtins)
    if name not in place:

        def fail() -> None:
            raise NameError(f"name {name!r} is not defined")

        evaluate.raises(t, "global", fail, [])
    t.guards.item(place, name, place[name])
    return Known(place[name])


def item(t: Translator, holder: dict[Any, Any], name: Any) -> Value:
    """holder[name], of globals, an instance's attributes or any dict."""
    written = _written(t, holder, name)
    if written is not None:
        return written
    obj = dict.__getitem__(holder, name) if isinstance(holder, dict) else holder[name]
    if (id(holder), name) in t.knowledge.live and type(obj) in (bool, int, float):
        return t.live((id(holder), name), type(obj).__name__, Place("item", holder, name), obj)
    if not is_tensor_object(obj):
        t.guards.item(holder, name, obj)
    return read(t, holder, name, obj)


def store_item(t: Translator, holder: dict[str, Any], name: str, value: Value) -> None:
    """holder[name] = value, of globals or an instance's attributes: in the run, and for what follows here."""

    def put(obj: Any) -> None:
        holder[name] = obj

    _write(t, (id(holder), name), f"set {name}", put, value)


def _write(t: Translator, key: tuple[int, str], what: str, put: Any, value: Value) -> None:
    if key not in t.knowledge.live:
        t.knowledge.live.add(key)
        raise Restart
    effects.write(t, key, what, put, value)


_READ = ("get", "items", "keys", "values", "__contains__", "__len__")  # methods of dicts that are followed
CHANGEABLE = (list, dict, set, bytearray, collections.deque)
CONTENTS: Any = type("Contents", (), {"__repr__": lambda self: "contents", "__slots__": ()})()


def mark_changed(t: Translator, holder: Any) -> None:
    """A list, dict or set of somebody else's is changed by a call of the run: what it holds is not known from here on."""
    t.state.written[id(holder), CONTENTS] = Known(None)


def _written(t: Translator, holder: Any, key: Any) -> Value | None:
    """What the function has put there, if it has."""
    if (id(holder), CONTENTS) in t.state.written:
        raise NotTranslated(f"a {type(holder).__name__} read after it has been changed", t.state.top.line)
    try:
        return t.state.written.get((id(holder), key))
    except TypeError:  # no key
        return None


def _whole(t: Translator, holder: Any) -> None:
    """Refuses to look at all of a container that the function has written to."""
    if any(number == id(holder) for number, _ in t.state.written):
        raise NotTranslated(f"a {type(holder).__name__} read after it has been changed", t.state.top.line)


def cell_content(t: Translator, cell: types.CellType) -> Value:
    """What a closure's variable holds."""
    written = t.state.written.get((id(cell), "cell"))
    if written is not None:
        return written
    try:
        obj = cell.cell_contents
    except ValueError:
        raise NotTranslated("a closure's variable that is empty", t.state.top.line) from None
    if is_tensor_object(obj):
        return t.live((id(cell), "cell"), type_text(obj, with_sizes=True), Place("cell", cell), obj)
    if (id(cell), "cell") in t.knowledge.live and type(obj) in (bool, int, float):
        return t.live((id(cell), "cell"), type(obj).__name__, Place("cell", cell), obj)
    t.guards.cell(cell, obj)
    return t.known(obj)


def store_cell(t: Translator, cell: types.CellType, value: Value) -> None:
    """nonlocal writes to a variable of somebody else's."""
    if id(cell) in t.private:
        t.state.written[id(cell), "cell"] = value
        return

    def put(obj: Any) -> None:
        cell.cell_contents = obj

    _write(t, (id(cell), "cell"), "set cell", put, value)


def imported(t: Translator, globals_: dict[str, Any], name: str, level: int, names: Any) -> Value:
    """What `import` in a function gives; only of modules that are there already."""
    full = name
    if level:
        package = globals_.get("__package__") or globals_.get("__name__", "").rpartition(".")[0]
        full = importlib.util.resolve_name("." * level + name, package)
    module = sys.modules.get(full)
    if module is None:
        raise NotTranslated(f"the import of {full}", t.state.top.line)
    t.guards.item(sys.modules, full, module)
    if not names and "." in name and level == 0:
        first = name.partition(".")[0]
        t.guards.item(sys.modules, first, sys.modules[first])
        return Known(sys.modules[first])
    return Known(module)


# -------------------------------------------------------------------------------------------------- Python's containers


def elements(t: Translator, sequence: Any) -> list[Value]:
    """The elements of a list or tuple."""
    if isinstance(sequence, tuple):
        return [t.known(item) for item in sequence]
    _whole(t, sequence)
    t.guards.length(sequence, len(sequence))
    return [element(t, sequence, i) for i in range(len(sequence))]


def element(t: Translator, sequence: list[Any], index: int) -> Value:
    """One element of a list."""
    index %= len(sequence)
    written = _written(t, sequence, index)
    if written is not None:
        return written
    obj = sequence[index]
    if is_tensor_object(obj):
        return t.live((id(sequence), index), type_text(obj, with_sizes=True), Place("element", sequence, index), obj)
    if (id(sequence), index) in t.knowledge.live and type(obj) in (bool, int, float):
        return t.live((id(sequence), index), type(obj).__name__, Place("element", sequence, index), obj)
    t.guards.element(sequence, index, obj)
    return t.known(obj)


def items(t: Translator, mapping: dict[Any, Any]) -> dict[Any, Value]:
    """The items of a dict."""
    _whole(t, mapping)
    t.guards.keys(mapping)
    return {key: item(t, mapping, key) for key in mapping}


def contains(t: Translator, mapping: dict[Any, Any], key: Any) -> bool:
    """Whether a dict has a key."""
    if _written(t, mapping, key) is not None:
        return True
    if dict.__contains__(mapping, key) if isinstance(mapping, dict) else key in mapping:
        item(t, mapping, key)
        return True
    t.guards.absent(mapping, key)
    return False


def _children(t: Translator, module: Any) -> list[Value]:
    return list(items(t, module._modules).values())


def iterated(t: Translator, obj: Any) -> list[Value] | None:
    """What iteration over an object gives, or None where that is not known."""
    torch = sys.modules.get("torch")
    if isinstance(obj, (list, tuple)):
        return elements(t, obj)
    if isinstance(obj, (dict, types.MappingProxyType)):
        _whole(t, obj)
        t.guards.keys(obj)
        return [Known(key) for key in obj]
    if torch is not None and isinstance(obj, (torch.nn.ModuleList, torch.nn.Sequential)):
        return _children(t, obj)
    if torch is not None and isinstance(obj, torch.nn.ModuleDict):
        return [Known(key) for key in items(t, obj._modules)]
    if torch is not None and isinstance(obj, torch.nn.ParameterList):
        return [load_parameter(t, obj, str(i)) for i in range(len(obj))]
    if isinstance(obj, frozenset):
        return [Known(item) for item in obj]
    return None


def load_parameter(t: Translator, module: Any, name: str) -> Value:
    """A parameter of a module."""
    return item(t, module._parameters, name)


def length(t: Translator, obj: Any) -> int:
    """len(obj) of something known."""
    torch = sys.modules.get("torch")
    _whole(t, obj)
    if isinstance(obj, (list, dict)):
        t.guards.length(obj, len(obj))
    elif torch is not None and isinstance(obj, (torch.nn.ModuleList, torch.nn.Sequential, torch.nn.ModuleDict)):
        t.guards.length(obj._modules, len(obj._modules))
    elif not isinstance(obj, (tuple, str, bytes, range, frozenset)):
        t.guards.call(obj.__len__, len(obj))
    return len(obj)


# ------------------------------------------------------------------------------------------------------------ attributes


def load(t: Translator, value: Value, name: str) -> Value | None:
    """value.name; None: a property's function was entered."""
    if isinstance(value, Known):
        return _of_object(t, value.object, name)
    if isinstance(value, Dynamic):
        if value.kind == "tensor":
            return _of_tensor(t, value, name)
        return t.foreign("." + name, lambda obj: getattr(obj, name), [value])
    if isinstance(value, constructors.SuperValue):
        cls, self = value.items
        return load_super(t, cls, self, name)
    if isinstance(value, TupleValue) and name != "__class__":
        return _of_tuple(t, value, name)
    if isinstance(value, InstanceValue) and name != "__class__":
        return _of_instance(t, value, name)
    if isinstance(value, (ListValue, RunList, SetValue, DictValue)) and name != "__class__":
        if isinstance(value, DictValue) and value.cls is not dict:
            return _of_output(t, value, name)
        return MethodValue(value, name)
    if name == "__class__":
        own = builtin.class_of(t, value)
        if own is not None:
            return Known(own)
    if isinstance(value, PartialValue) and name in ("func", "args", "keywords"):
        return {"func": value.function, "args": TupleValue(value.arguments), "keywords": DictValue(dict(value.keywords))}[name]
    if isinstance(value, FunctionValue) and name in value.attributes:
        return value.attributes[name]
    if isinstance(value, GeneratorValue) and name in ("__iter__", "__next__", "close", "send"):
        return MethodValue(value, name)
    if isinstance(value, SliceValue) and name in ("start", "stop", "step"):
        return getattr(value, name)  # type: ignore[no-any-return]
    if isinstance(value, FunctionValue) and name in ("__name__", "__qualname__"):
        return Known(value.code.co_name)
    raise NotTranslated(f"the attribute {name} of a {type(value).__name__}", t.state.top.line)


def _of_tuple(t: Translator, value: TupleValue, name: str) -> Value | None:
    fields: tuple[str, ...] = getattr(value.cls, "_fields", ()) or getattr(value.cls, "__match_args__", ())
    if name in fields:
        return value.items[fields.index(name)]
    raw = _raw(value.cls, name)
    if raw is _ABSENT or isinstance(raw, (types.MethodDescriptorType, types.WrapperDescriptorType, types.BuiltinFunctionType)):
        if not hasattr(value.cls, name):
            raise NotTranslated(f"the attribute {name} of a {value.cls.__name__}", t.state.top.line)
        return MethodValue(value, name)
    t.guards.class_attribute(value.cls, name, raw)
    return _bound(t, value, value.cls, raw, name)


def _of_output(t: Translator, value: DictValue, name: str) -> Value:
    if name in value.items:
        return value.items[name]  # mappings whose keys are attributes too
    raw = _raw(value.cls, name)
    if raw is None:
        return Known(None)  # a field that is not there
    if callable(raw):
        return MethodValue(value, name)
    raise NotTranslated(f"the attribute {name} of a {value.cls.__name__}", t.state.top.line)


def _bound(t: Translator, value: Value, cls: type, raw: Any, name: str) -> Value | None:
    """What a class's attribute gives when it is read of an instance that the program made."""
    if isinstance(raw, types.FunctionType):
        return MethodValue(value, Known(raw))
    if isinstance(raw, property) and raw.fget is not None:
        return calls.call(t, Known(raw.fget), [value], {})
    if isinstance(raw, staticmethod):
        return Known(raw.__func__)
    if isinstance(raw, classmethod):
        return MethodValue(Known(cls), Known(raw.__func__))
    if raw is _ABSENT or hasattr(type(raw), "__get__"):
        raise NotTranslated(f"the attribute {name} of a {cls.__name__}", t.state.top.line)
    return t.known(raw)


def _requires_grad(t: Translator, value: Dynamic) -> Value:
    """Tensors that the program makes require none; others may, outside of grad mode."""
    if value.is_fresh:
        return Known(False)
    find = t.finder(value)
    if find is None:
        return t.foreign(".requires_grad", lambda obj: obj.requires_grad, [value], result="bool")
    t.guards.call(lambda: bool(find().requires_grad), answer := bool(find().requires_grad))
    return Known(answer)


def _of_tensor(t: Translator, value: Dynamic, name: str) -> Value:
    lowering = t.lowering
    is_torch = lowering.framework == "torch"

    def write() -> Value:
        if name == "shape":
            return lowering.shape(value)
        if name == "dtype":
            dtype = lowering.dtype_of(value)
            return Known(getattr(sys.modules["torch"], dtype) if is_torch else np.dtype(dtype))
        if name == "ndim":
            return lowering.rank(value)  # type: ignore[no-any-return]
        if name in ("T", "mT", "H", "mH"):  # of real numbers, which are their own conjugates
            rank = lowering.rank(value).object
            if name in ("T", "H") and (rank == 2 or name == "T" and not is_torch):
                return t.writer.op("permute", value, axes=list(range(rank))[::-1])
            if name in ("mT", "mH") and rank >= 2:
                return t.writer.op("transpose", value, a=-2, b=-1)
        if is_torch and name == "device":
            return Known(sys.modules["torch"].device(lowering.device))
        if is_torch and name in ("is_cpu", "is_cuda"):
            return Known((lowering.device == "cpu") == (name == "is_cpu"))
        if is_torch and name in ("is_sparse", "is_quantized", "is_nested", "is_meta", "is_mps"):
            return Known(False)
        if is_torch and name == "requires_grad":
            return _requires_grad(t, value)
        if is_torch and name == "data":
            return lowering.view_of(value)  # type: ignore[no-any-return]
        if not is_torch and name == "size":
            return lowering.count(value)  # type: ignore[no-any-return]
        if callable(getattr(_tensor_class(is_torch), name, None)):
            return MethodValue(value, name)
        raise NotWritten(name)

    return t.attempt(write, lambda: t.foreign("." + name, lambda obj: getattr(obj, name), [value]))


def _tensor_class(is_torch: bool) -> Any:
    return sys.modules["torch"].Tensor if is_torch else np.ndarray


def _raw(cls: type, name: str) -> Any:
    for base in cls.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return _ABSENT


_ABSENT: Any = object()
_LOOKS_UP = (object.__getattribute__, types.SimpleNamespace.__getattribute__)  # the same function


def _of_instance(t: Translator, value: InstanceValue, name: str) -> Value | None:
    if _raw(value.cls, "__getattribute__") not in _LOOKS_UP:
        raise NotTranslated(f"the attribute {name} of a {value.cls.__name__}", t.state.top.line)
    raw = _raw(value.cls, name)
    is_first = hasattr(type(raw), "__set__") and not isinstance(raw, types.MemberDescriptorType)  # before what the instance holds
    found = None if is_first else field(t, value, name)
    if found is not None:
        return found
    t.guards.class_attribute(value.cls, name, raw)
    if raw is _ABSENT or isinstance(raw, types.MemberDescriptorType):  # a slot that is empty
        return instances.missing(t, value, name)
    if isinstance(raw, functools.cached_property):
        return instances.cached_property(t, value, name, raw)
    return _bound(t, value, value.cls, raw, name)


def field(t: Translator, value: InstanceValue, name: str) -> Value | None:
    """What an instance itself holds under a name, or None."""
    return t.objects.field(value, name) if isinstance(value, ArgumentObject) else value.fields.get(name)


def _of_object(t: Translator, obj: Any, name: str) -> Value | None:
    if isinstance(obj, types.ModuleType):
        place = vars(obj)
        if name in place or (id(place), name) in t.state.written:
            return item(t, place, name)
        return _opaque(t, obj, name)
    if isinstance(obj, type):
        raw = _raw(obj, name)
        if raw is _ABSENT or isinstance(_raw(type(obj), name), property):
            return _opaque(t, obj, name)
        t.guards.class_attribute(obj, name, raw)
        if isinstance(raw, staticmethod):
            return Known(raw.__func__)
        if isinstance(raw, classmethod):
            return MethodValue(Known(obj), Known(raw.__func__))
        if isinstance(raw, types.FunctionType):
            return Known(raw)
        return t.known(getattr(obj, name))
    return _of_plain_instance(t, obj, name)


def _of_plain_instance(t: Translator, obj: Any, name: str) -> Value | None:
    cls = type(obj)
    if cls.__flags__ & 1 << 9:  # a class of Python's
        t.guards.class_of(obj)
    looks_up = _raw(cls, "__getattribute__")
    if looks_up is not object.__getattribute__ and isinstance(looks_up, types.FunctionType):
        t.guards.class_attribute(cls, "__getattribute__", looks_up)
        return calls.call(t, Known(looks_up), [Known(obj), Known(name)], {})
    return by_the_rules(t, obj, name)


def by_the_rules(t: Translator, obj: Any, name: str) -> Value | None:
    """What object.__getattribute__ finds, and __getattr__ where it finds nothing."""
    cls = type(obj)
    raw = _raw(cls, name)
    place = getattr(obj, "__dict__", None)
    if isinstance(raw, property):
        t.guards.class_attribute(cls, name, raw)
        if isinstance(obj, reflection.VALUES):
            return Known(getattr(obj, name))
        assert raw.fget is not None
        if isinstance(raw.fget, types.FunctionType):
            return calls.call(t, Known(raw.fget), [Known(obj)], {})
        return _opaque(t, obj, name)
    gets = _raw(type(raw), "__get__")
    is_followed = isinstance(gets, types.FunctionType) and not isinstance(raw, functools.cached_property)
    if is_followed and hasattr(type(raw), "__set__"):
        return _of_descriptor(t, obj, name, raw, gets)
    if isinstance(place, dict):
        if name in place or (id(place), name) in t.state.written:
            return item(t, place, name)
    if isinstance(raw, types.MemberDescriptorType):
        return _of_slot(t, obj, name)
    if raw is not _ABSENT:
        if isinstance(place, dict):
            t.guards.absent(place, name)
        if isinstance(raw, types.FunctionType):
            t.guards.class_attribute(cls, name, raw)
            return MethodValue(Known(obj), Known(raw))
        if isinstance(raw, staticmethod):
            t.guards.class_attribute(cls, name, raw)
            return Known(raw.__func__)
        if isinstance(raw, classmethod):
            t.guards.class_attribute(cls, name, raw)
            return MethodValue(Known(cls), Known(raw.__func__))
        if not hasattr(type(raw), "__get__"):
            t.guards.class_attribute(cls, name, raw)
            return t.known(raw)
        if is_followed and not hasattr(raw, "_flexor_function"):
            return _of_descriptor(t, obj, name, raw, gets)
        return _opaque(t, obj, name)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(obj, torch.nn.Module):
        if t.weights is not None:
            t.weights.buffers.add(id(obj._buffers))
        for held in (obj._parameters, obj._buffers, obj._modules):
            if name in held:
                return item(t, held, name)
            t.guards.absent(held, name)
        return _opaque(t, obj, name)
    otherwise = _raw(cls, "__getattr__")
    if isinstance(otherwise, types.FunctionType):
        t.guards.class_attribute(cls, "__getattr__", otherwise)
        t.guards.class_attribute(cls, name, _ABSENT)
        if isinstance(place, dict):
            t.guards.absent(place, name)
        return calls.call(t, Known(otherwise), [Known(obj), Known(name)], {})
    return _opaque(t, obj, name)


def _of_slot(t: Translator, obj: Any, name: str) -> Value:
    """An attribute that __slots__ names."""
    written = t.state.written.get((id(obj), name))
    if written is not None:
        return written
    found = getattr(obj, name, MISSING)
    if (id(obj), name) in t.knowledge.live and type(found) in (bool, int, float):
        return t.live((id(obj), name), type(found).__name__, Place("attribute", obj, name), found)
    return _opaque(t, obj, name)


def _of_descriptor(t: Translator, obj: Any, name: str, raw: Any, gets: types.FunctionType) -> Value | None:
    """An attribute whose class has a __get__ of Python's."""
    t.guards.class_attribute(type(obj), name, raw)
    t.guards.class_attribute(type(raw), "__get__", gets)
    return calls.call(t, Known(gets), [Known(raw), Known(obj), Known(type(obj))], {})


def _opaque(t: Translator, obj: Any, name: str) -> Value:
    """An attribute behind something that is not followed: asked for now, and again by the guard."""
    if id(obj) in t.private and isinstance(obj, CHANGEABLE) and name not in _READ:
        raise NotTranslated("a method of what a class of the function's own holds", t.state.top.line)
    try:
        found = getattr(obj, name)
    except AttributeError:
        t.guards.attribute(obj, name, MISSING)
        evaluate.raises(t, "." + name, Place("attribute", obj, name), [])
    if is_tensor_object(found):
        return t.live((id(obj), name), type_text(found, with_sizes=True), Place("attribute", obj, name), found)
    if not isinstance(found, (types.BuiltinMethodType, types.MethodType, types.MethodWrapperType)):
        t.guards.attribute(obj, name, found)
    return t.known(found)


def load_super(t: Translator, cls: Value, self: Value, name: str) -> Value | None:
    """super(cls, self).name."""
    assert isinstance(cls, Known)
    own = self.object if isinstance(self, Known) else getattr(self, "cls", None)
    start = own if isinstance(own, type) and not isinstance(self, Known) else type(own)
    if isinstance(own, type) and isinstance(self, Known):
        start = own
    order = start.__mro__
    for base in order[order.index(cls.object) + 1 :]:
        if name in base.__dict__:
            raw = base.__dict__[name]
            t.guards.class_attribute(base, name, raw)
            if isinstance(raw, types.FunctionType):
                return MethodValue(self, Known(raw))
            if isinstance(raw, property) and isinstance(raw.fget, types.FunctionType):
                return calls.call(t, Known(raw.fget), [self], {})
            if isinstance(raw, staticmethod):
                return Known(raw.__func__)
            if isinstance(raw, classmethod):
                return MethodValue(Known(start), Known(raw.__func__))
            if isinstance(self, Known):
                return t.known(getattr(super(cls.object, self.object), name))
            if raw in (object.__init__, object.__setattr__):
                return MethodValue(self, Known(raw))
            break
    raise NotTranslated(f"super().{name}", t.state.top.line)


def store(t: Translator, obj: Value, name: str, value: Value) -> None:
    """obj.name = value."""
    if isinstance(obj, FunctionValue):
        obj.attributes[name] = value
        return
    if isinstance(obj, InstanceValue):
        if not _by_setter(t, obj, obj.cls, name, value):
            _refuse_setters(t, obj.cls, name)
            instances.refuse_without_slot(t, obj, name)
            obj.fields[name] = value
        return
    if isinstance(obj, CellValue) or not isinstance(obj, Known):
        if isinstance(obj, Dynamic):
            t.foreign("." + name + " =", lambda target, v: setattr(target, name, v), [obj, value], result="none", is_pure=False)
            return
        raise NotTranslated(f"{name} of a {type(obj).__name__} written", t.state.top.line)
    target = obj.object
    place = getattr(target, "__dict__", None)
    if not isinstance(target, (type, types.ModuleType)) and _by_setter(t, obj, type(target), name, value):
        return
    if isinstance(_raw(type(target), name), types.MemberDescriptorType):
        _refuse_setters(t, type(target), name)
        _write(t, (id(target), name), f"set .{name}", functools.partial(setattr, target, name), value)
        return
    if not isinstance(place, dict):
        raise NotTranslated(f"the attribute {name} of a {type(target).__name__} written", t.state.top.line)
    if not isinstance(target, types.ModuleType):
        _refuse_setters(t, type(target), name)

    def put(new: Any) -> None:
        setattr(target, name, new)

    torch = sys.modules.get("torch")
    holder = place
    if torch is not None and isinstance(target, torch.nn.Module):
        holder = next((h for h in (target._parameters, target._buffers, target._modules) if name in h), place)
    _write(t, (id(holder), name), f"set .{name}", put, value)


def _by_setter(t: Translator, obj: Value, cls: type, name: str, value: Value) -> bool:
    """Follows the function of Python that a write of an attribute calls: a property's, or the class's own __setattr__."""
    sets, raw = _raw(cls, "__setattr__"), _raw(cls, name)
    torch = sys.modules.get("torch")
    if isinstance(sets, types.FunctionType) and not (torch is not None and sets is torch.nn.Module.__setattr__):
        t.guards.class_attribute(cls, "__setattr__", sets)
        instances.dropped(t, calls.call(t, Known(sets), [obj, Known(name), value], {}))
        return True
    if isinstance(raw, property) and isinstance(raw.fset, types.FunctionType):
        t.guards.class_attribute(cls, name, raw)
        instances.dropped(t, calls.call(t, Known(raw.fset), [obj, value], {}))
        return True
    return False


def _refuse_setters(t: Translator, cls: type, name: str) -> None:
    """Refuses to write an attribute of a class that does something of its own then."""
    torch = sys.modules.get("torch")
    plain = [object.__setattr__, types.SimpleNamespace.__setattr__] + ([torch.nn.Module.__setattr__] if torch is not None else [])
    sets, raw = _raw(cls, "__setattr__"), _raw(cls, name)
    if all(sets is not own for own in plain) or (hasattr(type(raw), "__set__") and not isinstance(raw, types.MemberDescriptorType)):
        raise NotTranslated(f"the attribute {name} of a {cls.__name__} written", t.state.top.line)
    t.guards.class_attribute(cls, "__setattr__", sets)
    t.guards.class_attribute(cls, name, raw)


def store_element(t: Translator, container: Any, index: Any, value: Value) -> None:
    """An item of a list or dict of somebody else's written."""

    def put(new: Any) -> None:
        container[index] = new

    if isinstance(container, list):
        if type(index) is not int or not -len(container) <= index < len(container):
            t.foreign("[] =", put, [value], result="none", is_pure=False)
            mark_changed(t, container)
            return
        t.guards.length(container, len(container))
        index %= len(container)
    elif index not in container:
        # A key more is a change of the whole: nothing but this key is read from here on.
        t.guards.absent(container, index)
    _write(t, (id(container), index), "[] =", put, value)
