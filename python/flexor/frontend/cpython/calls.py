"""Calls: of Python functions, which are followed; of the frameworks, which are ops; of anything else, which Python does in the run."""

from __future__ import annotations

import functools
import inspect
import sys
import types
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from flexor.frontend.cpython import (
    arrays,
    attributes,
    builtin,
    classes,
    constructors,
    effects,
    evaluate,
    helpers,
    instances,
    library,
    lowering,
    managers,
    methods,
    modules,
    recipes,
    recurrent,
    rows,
    special,
    typed,
)
from flexor.frontend.cpython.decode import NotTranslated
from flexor.frontend.cpython.values import (
    Arguments,
    DictValue,
    Dynamic,
    EnumerateIterator,
    FunctionValue,
    GeneratorValue,
    IndexIterator,
    InstanceValue,
    Keywords,
    Known,
    ListValue,
    MethodValue,
    PartialValue,
    RangeIterator,
    RunList,
    SequenceIterator,
    StringValue,
    TupleValue,
    Value,
    ZipIterator,
    dynamics,
)
from flexor.frontend.cpython.writer import NotWritten, registry

if TYPE_CHECKING:
    from flexor.frontend.cpython.translate import Translator


def call(t: Translator, callee: Value, arguments: Arguments, keywords: Keywords) -> Value | None:
    """The result of a call; None: a Python function was entered, whose return pushes it."""
    if isinstance(callee, MethodValue):
        if isinstance(callee.function, str):
            return methods.invoke(t, callee.receiver, callee.function, arguments, keywords)
        return call(t, callee.function, [callee.receiver, *arguments], keywords)
    if isinstance(callee, FunctionValue):
        return enter(t, callee.code, callee.globals, callee.defaults, callee.keyword_defaults, callee.cells, arguments, keywords)
    if isinstance(callee, Dynamic):
        return t.foreign("call", lambda f, *a, **k: f(*a, **k), [callee, *arguments], keywords, is_pure=False, clobbers=True)
    if isinstance(callee, Known):
        return _object(t, callee.object, arguments, keywords)
    if isinstance(callee, PartialValue):
        return call(t, callee.function, [*callee.arguments, *arguments], {**callee.keywords, **keywords})
    method = special.method(t, callee, "__call__")
    if method is not None:
        return call(t, method, arguments, keywords)
    raise NotTranslated(f"a call of a {type(callee).__name__}", t.state.top.line)


def in_place(t: Translator, place: int, function: Value, arguments: Arguments) -> bool:
    """Calls a function of Python whose result replaces the value that is place-th from the top. Gives True."""
    if call(t, function, arguments, {}) is not None:
        raise NotTranslated("a call that gives its result at once", t.state.top.line)
    t.state.top.place = place
    return True


_KEYS_OF_BUILTINS = (type, types.BuiltinFunctionType, types.FunctionType)


def _object(t: Translator, function: Any, arguments: Arguments, keywords: Keywords) -> Value | None:
    if function is managers.leave_context:
        return Known(None)
    if function is managers.opened or function is managers.closed:
        return t.foreign(name_of(function), function, arguments, result="none", bookkeeping=True)
    if function is getattr(sys.modules.get("flexor"), "jit", None) and len(arguments) == 1:
        return arguments[0]  # followed as it is
    if len(arguments) == 2 and function is getattr(getattr(sys.modules.get("torch"), "jit", None), "annotate", None):
        return arguments[1]
    if function is helpers.refuse_dict:
        raise NotTranslated("this use of a dict with keys of the run", t.state.frames[-3].line if len(t.state.frames) > 2 else None)
    if function is helpers.new_apart:
        return TupleValue(arguments, helpers.Apart)
    if function is helpers.refuse_length or function is helpers.refuse_few:
        evaluate.raises(t, "unpack", function, arguments)
    with_function = helpers.WITH_FUNCTION.get(function) if isinstance(function, (type, types.BuiltinFunctionType)) else None
    if with_function is not None and _is_function(keywords.get("key") if function in (sorted, max, min) else arguments[0] if arguments else None):
        assert isinstance(with_function, types.FunctionType)
        return _python(t, with_function, arguments, keywords)
    if function is helpers.in_order:
        return _in_order(t, arguments)
    if function is helpers.become:
        methods.become(t, *arguments)
        return Known(None)
    if function is sorted and arguments and _are_items_of_table(arguments[0]) and set(keywords) <= {"reverse"}:
        return _python(t, helpers.sorted_items, arguments, keywords)  # type: ignore[arg-type]
    in_python = helpers.IN_PYTHON.get(function) if isinstance(function, (type, types.BuiltinFunctionType)) else None
    reads = arguments and (is_open(arguments[0]) or (isinstance(arguments[0], (RunList, StringValue)) and function in helpers.OF_LISTS))
    if in_python is not None and reads and "key" not in keywords:
        assert isinstance(in_python, types.FunctionType)
        return _python(t, in_python, arguments, keywords)
    if _is_about_state(function):
        return _state(t, function, arguments)
    if getattr(function, "__module__", None) == "torch._dynamo.decorators" and function.__name__ in _HINTS:
        return Known(None)
    of_class = classes.call_of(t, function, arguments, keywords)
    if of_class is not NotImplemented:
        return of_class  # type: ignore[no-any-return]
    own = builtin.BUILTINS.get(function) if isinstance(function, _KEYS_OF_BUILTINS) else None
    if own is not None:
        result = own(t, arguments, keywords)
        if result is not NotImplemented:
            return result  # type: ignore[no-any-return]
    followed = recurrent.call_of(t, function, arguments, keywords)
    if followed is not None:
        return _python(t, *followed, {})
    known = rows.functions().get(id(function))
    if known is not None:
        return _framework(t, known[0], function, arguments, keywords)
    rule = getattr(function, "_flexor_rule", None)
    if rule is not None:
        return typed.of_rule(t, name_of(function), function, rule, arguments, keywords)
    overload = typed.overload_of(function)
    if overload is not None:
        return typed.of_overload(t, function, overload, arguments, keywords)
    if getattr(function, "_flexor_disabled", False):
        return t.foreign(name_of(function), function, arguments, keywords, is_pure=False, clobbers=True)
    if isinstance(function, types.MethodType):  # asked first: it has the attributes of its function
        return call(t, Known(function.__func__), [Known(function.__self__), *arguments], keywords)
    inner = getattr(function, "_flexor_function", None)
    if inner is not None:  # a jitted function: what it decorates
        return _object(t, inner, arguments, keywords)
    if isinstance(function, functools.partial):
        given = [t.known(a) for a in function.args]
        return _object(t, function.func, given + arguments, {**{k: t.known(v) for k, v in function.keywords.items()}, **keywords})
    if isinstance(function, types.FunctionType):
        return _python(t, function, arguments, keywords)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(function, torch.nn.Module):
        return modules.called(t, function, arguments, keywords)
    if isinstance(function, type):
        return constructors.construct(t, function, arguments, keywords)
    if isinstance(function, library.GETTERS):
        return library.getter(t, function, arguments)
    if isinstance(function, functools._lru_cache_wrapper):
        return library.cached(t, function, arguments, keywords)
    if function is object.__init__ and arguments and isinstance(arguments[0], InstanceValue) and len(arguments) == 1:
        return Known(None)
    if function is object.__setattr__ and arguments and isinstance(arguments[0], InstanceValue):
        arguments[0].fields[lowering.plain(arguments[1])] = arguments[2]
        return Known(None)
    if getattr(function, "__objclass__", None) is object and function.__name__ == "__getattribute__":
        *receiver, name = [getattr(function, "__self__", None), *arguments][-2:]
        holder = receiver[0].object if isinstance(receiver[0], Known) else receiver[0]
        return attributes.by_the_rules(t, holder, lowering.plain(name))
    if isinstance(function, (types.BuiltinFunctionType, types.BuiltinMethodType, types.MethodWrapperType, types.MethodDescriptorType)):
        return builtin.call(t, function, arguments, keywords)
    method = attributes._raw(type(function), "__call__")
    if isinstance(method, types.FunctionType):
        t.guards.class_attribute(type(function), "__call__", method)
        return _python(t, method, [Known(function), *arguments], keywords)
    return opaque(t, function, arguments, keywords)


def _is_function(value: Value | None) -> bool:
    return isinstance(value, (FunctionValue, MethodValue, PartialValue)) or (isinstance(value, Known) and callable(value.object))


def _are_items_of_table(value: Value) -> bool:
    return isinstance(value, GeneratorValue) and value.code is helpers.Table.items.__code__ and not value.pc and not value.stack


def _in_order(t: Translator, arguments: Arguments) -> Value:
    items, keys = (evaluate.unpacked(t, argument) for argument in arguments[:2])
    if not evaluate.all_plain([*keys, arguments[2]]):
        raise NotTranslated("an order that only the run knows", t.state.top.line)
    try:
        return ListValue(helpers.in_order(items, [key.object for key in keys], arguments[2].object))  # type: ignore[attr-defined]
    except TypeError:
        raise NotTranslated("an order of keys that cannot be compared", t.state.top.line) from None


# Questions about the state of the frameworks: the answer is guarded.
_STATE = (
    "is_grad_enabled", "is_inference_mode_enabled", "is_autocast_enabled", "is_autocast_cpu_enabled", "get_default_dtype",
    "get_default_device", "jit.is_scripting", "jit.is_tracing", "compiler.is_compiling", "compiler.is_dynamo_compiling", "compiler.is_exporting",
    "overrides.has_torch_function", "overrides.has_torch_function_unary", "overrides.has_torch_function_variadic",
    "overrides.is_tensor_method_or_property", "_C._get_tracing_state", "_C._is_torch_function_enabled",
    "backends.mha.get_fastpath_enabled", "cuda.is_current_stream_capturing", "xpu.is_current_stream_capturing", "are_deterministic_algorithms_enabled",
)  # fmt: skip


# What torch's own compiler is told of a tensor: nothing that is computed here depends on it.
_HINTS = ("mark_dynamic", "mark_static", "mark_static_address", "mark_unbacked", "maybe_mark_dynamic")


@functools.cache
def _state_functions() -> dict[int, Any]:
    torch = sys.modules.get("torch")
    out: dict[int, Any] = {}
    for path in _STATE if torch is not None else ():
        function = torch
        for name in path.split("."):
            function = getattr(function, name, None)
        if function is not None:
            out[id(function)] = function
    return out


def _is_about_state(function: Any) -> bool:
    return id(function) in _state_functions()


def _state(t: Translator, function: Any, arguments: Arguments) -> Value:
    if "has_torch_function" in getattr(function, "__name__", ""):
        return Known(False)  # tensors of the program are plain, and modes are looked for before every call
    if function.__name__ == "get_fastpath_enabled":
        return Known(False)  # a fused form that torch has in C++: the layer's own terms give the same
    given = tuple(lowering.plain(a) for a in arguments)
    ask = functools.partial(function, *given) if given else function
    try:
        answer = ask()
    except Exception:  # nothing to ask on this machine
        t.guards.call(functools.partial(_raises, ask), True)
        return evaluate.raises(t, function.__name__, ask, [])
    t.guards.call(ask, answer)
    return Known(answer)


def _raises(function: Callable[[], Any]) -> bool:
    try:
        function()
    except Exception:
        return True
    return False


def is_open(value: Value) -> bool:
    """An iterator whose elements are not known at once, or an object with an __iter__ of Python."""
    if isinstance(value, RangeIterator | IndexIterator | GeneratorValue):
        return True
    if isinstance(value, EnumerateIterator):
        return is_open(value.inner)
    if isinstance(value, InstanceValue):
        return isinstance(attributes._raw(value.cls, "__iter__"), types.FunctionType)
    return isinstance(value, ZipIterator) and any(is_open(part) for part in value.parts)


def has_unknown_length(t: Translator, value: Value) -> bool:
    """A list of the run, or a tensor of so many rows as only the run knows."""
    if isinstance(value, RunList):
        return True
    return evaluate.is_tensor(value) and value.rank > 0 and not isinstance(t.writer.size(value, 0), Known)  # type: ignore[attr-defined, arg-type]


def name_of(function: Any) -> str:
    """What a callable is called in reports."""
    qualified, name = getattr(function, "__qualname__", None) or "", getattr(function, "__name__", None) or ""
    if qualified.startswith("_VariableFunctionsClass."):
        return f"torch.{name}"
    if "<locals>" in qualified and not qualified.endswith("." + name):  # made by a function that has named it
        return str(name)
    return str(getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or type(function).__name__)


def opaque(t: Translator, function: Any, arguments: Arguments, keywords: Keywords) -> Value:
    """A call that Python does in the run."""
    module = (getattr(function, "__module__", None) or "").split(".")[0]
    is_pure = module in ("math", "operator") or rows.is_pure(function) or builtin.is_pure(function)
    owner = getattr(function, "__self__", None)
    if isinstance(function, types.BuiltinMethodType) and type(owner) in (str, bytes, int, float):
        is_pure = not any(instances.is_users(a) for a in (*arguments, *keywords.values()))
    if function is print:
        return t.foreign("print", print, arguments, keywords, result="none", is_pure=False)
    if function is warnings.warn and effects.warn(t, arguments, keywords):
        return Known(None)
    clobbers = not is_pure and module not in ("torch", "numpy", "time", "logging", "_warnings", "warnings", "random")
    learns = module in ("torch", "numpy")
    return t.foreign(name_of(function), function, arguments, keywords, is_pure=is_pure, learns=learns, clobbers=clobbers)


def _framework(t: Translator, name: str, function: Any, arguments: Arguments, keywords: Keywords) -> Value:
    """A function of torch or NumPy that a row describes."""
    framework = "numpy" if name.startswith("np.") else "torch"

    def write() -> Value:
        tensors = [v for v in (*arguments, *keywords.values()) if evaluate.is_tensor(v)]
        nested = [i for v in arguments if isinstance(v, (TupleValue, ListValue)) for i in v.items if evaluate.is_tensor(i)]
        if framework != t.lowering.framework:
            if name in arrays.MADE_OF_NUMBERS or (name in arrays.MADE_OF_LISTS and arguments and arrays.is_list(arguments[0])):
                t.begin_in("numpy")
            raise NotWritten("a function of another framework")
        if framework == "numpy" and not (tensors or nested or _has_arrays(arguments)) and name not in arrays.MADE_OF_NUMBERS:
            if name not in arrays.MADE_OF_LISTS or not arguments or not arrays.is_list(arguments[0]):
                raise NotWritten("numbers that NumPy makes scalars of")
        if "out" in keywords and framework == "torch":
            return _into(t, name, arguments, keywords)
        return arrays.check_axes(name, rows.of(framework)[name](t.lowering, arguments, keywords))  # type: ignore[no-any-return]

    if framework == "torch" and "out" in keywords and (t.has_effects or t.lowering.has_writes):
        raise NotTranslated("an output argument, which may get another shape, behind effects", t.state.top.line)
    return t.attempt(write, lambda: t.foreign(name, function, arguments, keywords, is_pure=not rows.draws(name), learns=True))


def _has_arrays(arguments: Arguments) -> bool:
    return any(isinstance(v, RunList) and v.element[0] == "tensor" for v in arguments)


def _is_by_element(name: str) -> bool:
    """Whether a function of torch reads of its operands what stands where it writes, and may so write to one of them."""
    op = registry().get(name.rpartition(".")[2])
    return op is not None and bool(op["family"] == "map")


def _into(t: Translator, name: str, arguments: Arguments, keywords: Keywords) -> Value:
    """A function of torch whose result goes into a tensor that has its shape; where not, Python gives that another one."""
    target = keywords["out"]
    result = rows.of("torch")[name](t.lowering, arguments, {k: v for k, v in keywords.items() if k != "out"})
    if not (isinstance(target, Dynamic) and isinstance(result, Dynamic) and target.kind == result.kind == "tensor"):
        raise NotTranslated("an output argument that is no tensor", t.state.top.line)
    if (target.dtype, target.rank) != (result.dtype, result.rank):
        raise NotTranslated("an output argument of another dtype or rank than the result", t.state.top.line)
    reads = [v for v in dynamics((*arguments, *(v for k, v in keywords.items() if k != "out"))) if v.kind == "tensor"]
    if any(v is target or (v.root is not None and v.root == target.root) for v in reads) and not _is_by_element(name):
        raise NotTranslated("an output argument that is read as well", t.state.top.line)
    for axis in range(result.rank):
        same = evaluate.tested(t, "==", t.writer.size(target, axis), t.writer.size(result, axis))
        t.assume(same, "an output argument of the shape of the result")
    return t.lowering.written(target, "assign", result)  # type: ignore[no-any-return]


# ------------------------------------------------------------------------------------------------------ Python functions


def _python(
    t: Translator, function: types.FunctionType, arguments: Arguments, keywords: Keywords, on_return: Value | None = None
) -> Value | None:
    walk = modules.walks().get(function)
    if walk is not None and arguments and isinstance(arguments[0], Known) and not keywords and len(arguments) == 1:
        return SequenceIterator(walk(t, "", arguments[0].object))
    library.install(t, function, arguments)
    asked = library.configuration(t, function, arguments, keywords)
    if asked is not None:
        return asked
    function = recurrent.replaced().get(function, function)  # type: ignore[assignment]
    torch = sys.modules.get("torch")
    if torch is not None and function is torch.nn.Module.__call__ and arguments and isinstance(arguments[0], Known):
        return modules.forward(t, arguments[0].object, arguments[1:], keywords)
    if function.__module__ in _OWN:
        return enter(
            t,
            function.__code__,
            function.__globals__,
            tuple(map(Known, function.__defaults__ or ())),
            {name: Known(value) for name, value in (function.__kwdefaults__ or {}).items()},
            tuple(Known(cell) for cell in function.__closure__ or ()),
            arguments,
            keywords,
        )
    t.guards.attribute(function, "__code__", function.__code__)
    if managers.makes_manager(function):
        return managers.manager_of(t, function, arguments, keywords)
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is not None and _is_context_decorator(function):
        return _object(t, wrapped, arguments, keywords)
    defaults = tuple(t.known(v) for v in function.__defaults__ or ())
    if function.__defaults__ is not None:
        t.guards.attribute(function, "__defaults__", function.__defaults__)
    else:
        t.guards.attribute(function, "__defaults__", None)
    t.guards.attribute(function, "__kwdefaults__", function.__kwdefaults__)
    keyword_defaults = attributes.items(t, function.__kwdefaults__) if function.__kwdefaults__ else {}
    cells: tuple[Value, ...] = tuple(Known(cell) for cell in function.__closure__ or ())
    if torch is not None and (function.__module__ or "").split(".")[0] == "torch" and not _is_followed(function):
        return t.foreign(name_of(function), function, arguments, keywords, is_pure=rows.is_pure(function))
    return enter(t, function.__code__, function.__globals__, defaults, keyword_defaults, cells, arguments, keywords, on_return)


_OWN = (helpers.__name__, recipes.__name__, recurrent.__name__)  # which nobody changes
_FOLLOWED = ("torch.nn.modules.", "torch.nn.functional", "torch.nn._reduction")


def _is_followed(function: types.FunctionType) -> bool:
    """Functions of torch itself reach into its inside; layers and nn.functional are written in its public terms."""
    return (function.__module__ or "").startswith(_FOLLOWED)


def _is_context_decorator(function: types.FunctionType) -> bool:
    """A function under torch.no_grad() as a decorator."""
    return (function.__module__ or "") == "torch.utils._contextlib" or function.__code__.co_filename.endswith("_contextlib.py")


def enter(
    t: Translator,
    code: types.CodeType,
    globals_: dict[str, Any],
    defaults: tuple[Value, ...],
    keyword_defaults: dict[str, Value],
    cells: tuple[Value, ...],
    arguments: Arguments,
    keywords: Keywords,
    on_return: Value | None = None,
) -> Value | None:
    bound = bind(code, defaults, keyword_defaults, arguments, keywords)
    if isinstance(bound, str):
        refuse_misfit(t, f"{code.co_name}() {bound}")
    locals_: dict[str, Value] = dict(bound)
    locals_.update(zip(code.co_freevars, cells))
    if code.co_flags & inspect.CO_GENERATOR:
        return GeneratorValue(code, globals_, locals_)
    if on_return is None and t.functions.are_called(code):
        return t.functions.call(code, globals_, locals_)
    t.enter(code, globals_, locals_, on_return)
    return None


def bind(
    code: types.CodeType,
    defaults: tuple[Value, ...],
    keyword_defaults: dict[str, Value],
    arguments: Arguments,
    keywords: Keywords,
) -> dict[str, Value] | str:
    """Arguments by the names of parameters, as CPython binds them; a text: why they do not fit."""
    names = code.co_varnames
    positional = code.co_argcount
    only_keyword = names[positional : positional + code.co_kwonlyargcount]
    rest = positional + code.co_kwonlyargcount
    out: dict[str, Value] = dict(zip(names[:positional], arguments))
    if len(arguments) > positional and not code.co_flags & inspect.CO_VARARGS:
        return f"takes {positional} positional arguments but {len(arguments)} were given"
    if code.co_flags & inspect.CO_VARARGS:
        out[names[rest]] = TupleValue(arguments[positional:])
        rest += 1
    extra: dict[str, Value] = {}
    accepted = set(names[code.co_posonlyargcount : positional]) | set(only_keyword)
    for name, value in keywords.items():
        if name in accepted:
            if name in out:
                return f"got multiple values for argument '{name}'"
            out[name] = value
        elif code.co_flags & inspect.CO_VARKEYWORDS:
            extra[name] = value
        else:
            return f"got an unexpected keyword argument '{name}'"
    if code.co_flags & inspect.CO_VARKEYWORDS:
        out[names[rest]] = DictValue(extra)
    for name, value in zip(names[positional - len(defaults) : positional], defaults):
        out.setdefault(name, value)
    for name, value in keyword_defaults.items():
        out.setdefault(name, value)
    missing = [name for name in (*names[:positional], *only_keyword) if name not in out]
    if missing:
        return f"missing {len(missing)} required arguments: {', '.join(map(repr, missing))}"
    return out


def refuse_misfit(t: Translator, message: str) -> NoReturn:
    """A call whose arguments do not fit."""

    def fail() -> None:
        raise TypeError(message)

    evaluate.raises(t, "call", fail, [])
