"""Runs decoded steps as their one-sentence definitions say: what CPython does with the same function is the oracle.

Handlers of exceptions are not entered: an exception leaves the function.
"""

import builtins
import collections.abc
import operator
import types

from flexor.frontend.cpython.operations import NULL, Operation

BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "@": operator.matmul, "<<": operator.lshift, ">>": operator.rshift,
    "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip
INPLACE = {
    "+": operator.iadd, "-": operator.isub, "*": operator.imul, "/": operator.itruediv, "//": operator.ifloordiv,
    "%": operator.imod, "**": operator.ipow, "@": operator.imatmul, "<<": operator.ilshift, ">>": operator.irshift,
    "&": operator.iand, "|": operator.ior, "^": operator.ixor,
}  # fmt: skip
COMPARE = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
TAKEN = {
    Operation.BRANCH_TRUE: bool,
    Operation.BRANCH_FALSE: operator.not_,
    Operation.BRANCH_NONE: lambda x: x is None,
    Operation.BRANCH_NOT_NONE: lambda x: x is not None,
}


class Frame:
    """One call of `function`, given its arguments by name."""

    def __init__(self, function, arguments):
        self.function, self.code = function, function.__code__
        self.globals = function.__globals__
        self.stack, self.pc = [], 0
        self.locals = {**arguments, **dict(zip(self.code.co_freevars, function.__closure__ or ()))}

    def pop(self, count=None):
        if count is None:
            return self.stack.pop()
        if count == 0:
            return []
        values = self.stack[-count:]
        del self.stack[-count:]
        return values

    def run(self, steps):
        while True:
            step = steps[self.pc]
            self.pc += 1
            operation, arg = step.operation, step.arg
            if operation is Operation.RETURN:
                return self.pop()
            if operation is Operation.JUMP:
                self.pc = arg
            elif operation in TAKEN:
                if TAKEN[operation](self.pop()):
                    self.pc = arg
            elif operation is Operation.FOR_ITER:
                try:
                    self.stack.append(next(self.stack[-1]))
                except StopIteration:
                    self.pop()
                    self.pc = arg
            else:
                getattr(self, operation.name.lower())(arg)

    # Stack and variables
    def copy(self, n):
        self.stack.append(self.stack[-n])

    def swap(self, n):
        self.stack[-1], self.stack[-n] = self.stack[-n], self.stack[-1]

    def push_null(self, _):
        self.stack.append(NULL)

    def const(self, value):
        self.stack.append(value)

    def load_local(self, name):
        if name not in self.locals:
            raise UnboundLocalError(name)
        self.stack.append(self.locals[name])

    def load_local_and_clear(self, name):
        self.stack.append(self.locals.pop(name, NULL))

    def store_local(self, name):
        value = self.pop()
        if value is NULL:
            self.locals.pop(name, None)
        else:
            self.locals[name] = value

    def delete_local(self, name):
        if name not in self.locals:
            raise UnboundLocalError(name)
        del self.locals[name]

    def make_cell(self, name):
        cell = types.CellType()
        if name in self.locals:
            cell.cell_contents = self.locals[name]
        self.locals[name] = cell

    def load_cell(self, name):
        try:
            self.stack.append(self.locals[name].cell_contents)
        except ValueError:
            raise NameError(name) from None

    def store_cell(self, name):
        self.locals[name].cell_contents = self.pop()

    def delete_cell(self, name):
        del self.locals[name].cell_contents

    def load_global(self, name):
        if name in self.globals:
            self.stack.append(self.globals[name])
        else:
            try:
                self.stack.append(getattr(builtins, name))
            except AttributeError:
                raise NameError(name) from None

    def store_global(self, name):
        self.globals[name] = self.pop()

    def delete_global(self, name):
        del self.globals[name]

    # Objects and arithmetic
    def load_attr(self, name):
        self.stack.append(getattr(self.pop(), name))

    def load_super_attr(self, name):
        make, cls, instance = self.pop(3)
        self.stack.append(getattr(make(cls, instance), name))

    def store_attr(self, name):
        value, target = self.pop(2)
        setattr(target, name, value)

    def delete_attr(self, name):
        delattr(self.pop(), name)

    def subscr(self, _):
        container, index = self.pop(2)
        self.stack.append(container[index])

    def store_subscr(self, _):
        value, container, index = self.pop(3)
        container[index] = value

    def delete_subscr(self, _):
        container, index = self.pop(2)
        del container[index]

    def binary(self, text):
        a, b = self.pop(2)
        self.stack.append(BINARY[text](a, b))

    def inplace(self, text):
        a, b = self.pop(2)
        self.stack.append(INPLACE[text](a, b))

    def compare(self, text):
        a, b = self.pop(2)
        self.stack.append(COMPARE[text](a, b))

    def contains(self, inverted):
        a, b = self.pop(2)
        self.stack.append((a in b) != bool(inverted))

    def negative(self, _):
        self.stack.append(-self.pop())

    def positive(self, _):
        self.stack.append(+self.pop())

    def invert(self, _):
        self.stack.append(~self.pop())

    def to_bool(self, _):
        self.stack.append(bool(self.pop()))

    def get_iter(self, _):
        self.stack.append(iter(self.pop()))

    # Calls
    def callee(self):
        first, second = self.pop(2)
        if first is NULL:
            return second, ()
        return first, () if second is NULL else (second,)

    def call(self, count):
        arguments = self.pop(count)
        function, receiver = self.callee()
        self.stack.append(function(*receiver, *arguments))

    def call_kw(self, count):
        names = self.pop()
        arguments = self.pop(count)
        function, receiver = self.callee()
        split = count - len(names)
        self.stack.append(function(*receiver, *arguments[:split], **dict(zip(names, arguments[split:]))))

    def call_ex(self, has_keywords):
        keywords = self.pop() if has_keywords else NULL
        positional = self.pop()
        function, receiver = self.callee()
        self.stack.append(function(*receiver, *positional, **({} if keywords is NULL else keywords)))

    def call_function(self, count):
        arguments = self.pop(count)
        self.stack.append(self.pop()(*arguments))

    def call_function_kw(self, count):
        names = self.pop()
        arguments = self.pop(count)
        split = count - len(names)
        self.stack.append(self.pop()(*arguments[:split], **dict(zip(names, arguments[split:]))))

    def call_function_ex(self, has_keywords):
        keywords = self.pop() if has_keywords else {}
        positional = self.pop()
        self.stack.append(self.pop()(*positional, **keywords))

    # Building
    def tuple(self, count):
        self.stack.append(tuple(self.pop(count)))

    def list(self, count):
        self.stack.append(list(self.pop(count)))

    def set(self, count):
        self.stack.append(set(self.pop(count)))

    def map(self, count):
        flat = self.pop(2 * count)
        self.stack.append(dict(zip(flat[::2], flat[1::2])))

    def const_key_map(self, count):
        keys = self.pop()
        self.stack.append(dict(zip(keys, self.pop(count))))

    def string(self, count):
        self.stack.append("".join(self.pop(count)))

    def slice(self, count):
        self.stack.append(slice(*self.pop(count)))

    def list_append(self, n):
        value = self.pop()
        self.stack[-n].append(value)

    def set_add(self, n):
        value = self.pop()
        self.stack[-n].add(value)

    def map_add(self, n):
        key, value = self.pop(2)
        self.stack[-n][key] = value

    def list_extend(self, n):
        values = self.pop()
        self.stack[-n].extend(values)

    def set_update(self, n):
        values = self.pop()
        self.stack[-n].update(values)

    def dict_update(self, n):
        values = self.pop()
        self.stack[-n].update(values)

    def dict_merge(self, n):
        values = self.pop()
        if self.stack[-n].keys() & values.keys():
            raise TypeError("multiple values for a keyword argument")
        self.stack[-n].update(values)

    def list_to_tuple(self, _):
        self.stack.append(tuple(self.pop()))

    def unpack(self, count):
        values = list(self.pop())
        if len(values) != count:
            raise ValueError(f"{len(values)} values, not {count}")
        self.stack.extend(reversed(values))

    def unpack_ex(self, counts):
        before, after = counts
        values = list(self.pop())
        if len(values) < before + after:
            raise ValueError("not enough values to unpack")
        middle = len(values) - after
        parts = [*values[:before], values[before:middle], *values[middle:]]
        self.stack.extend(reversed(parts))

    def convert(self, function):
        self.stack.append(function(self.pop()))

    def format(self, has_spec):
        value, spec = self.pop(2) if has_spec else (self.pop(), "")
        self.stack.append(format(value, spec))

    def make_function(self, bits):
        code = self.pop()
        # From 3.13 on the closure is set afterwards.
        closure = self.pop() if bits & 8 else tuple(types.CellType() for _ in code.co_freevars)
        annotations = self.pop() if bits & 4 else ()
        keyword_defaults = self.pop() if bits & 2 else None
        defaults = self.pop() if bits & 1 else None
        function = types.FunctionType(code, self.globals, code.co_name, defaults, closure)
        function.__kwdefaults__ = keyword_defaults
        if annotations:
            function.__annotations__ = dict(zip(annotations[::2], annotations[1::2]))
        self.stack.append(function)

    def set_function_attribute(self, bit):
        value, function = self.pop(2)
        if bit == 8:
            made = types.FunctionType(function.__code__, self.globals, function.__name__, function.__defaults__, value)
            made.__kwdefaults__ = function.__kwdefaults__
            function = made
        elif bit == 4:
            function.__annotations__ = dict(zip(value[::2], value[1::2]))
        elif bit == 2:
            function.__kwdefaults__ = value
        else:
            function.__defaults__ = value
        self.stack.append(function)

    def import_name(self, name):
        level, names = self.pop(2)
        self.stack.append(__import__(name, self.globals, None, names or (), level))

    def import_from(self, name):
        self.stack.append(getattr(self.stack[-1], name))

    def build_class(self, _):
        self.stack.append(builtins.__build_class__)

    def raise_(self, count):
        values = self.pop(count)
        if count == 2:
            raise values[0] from values[1]
        raise values[0]

    # Patterns
    def match_mapping(self, _):
        self.stack.append(isinstance(self.stack[-1], collections.abc.Mapping))

    def match_sequence(self, _):
        subject = self.stack[-1]
        self.stack.append(isinstance(subject, collections.abc.Sequence) and not isinstance(subject, (str, bytes, bytearray)))

    def match_keys(self, _):
        mapping, keys = self.stack[-2:]
        self.stack.append(tuple(mapping[k] for k in keys) if all(k in mapping for k in keys) else None)

    def match_class(self, count):
        subject, cls, names = self.pop(3)
        if not isinstance(subject, cls):
            self.stack.append(None)
            return
        if count and cls in (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple):
            self.stack.append((subject, *(getattr(subject, name) for name in names)))
            return
        wanted = (*getattr(cls, "__match_args__", ())[:count], *names)
        self.stack.append(tuple(getattr(subject, n) for n in wanted) if all(hasattr(subject, n) for n in wanted) else None)

    def copy_without_keys(self, _):
        mapping, keys = self.stack[-2], self.pop()
        self.stack.append({k: v for k, v in mapping.items() if k not in keys})

    def length(self, _):
        self.stack.append(len(self.stack[-1]))

    def with_enter(self, _):
        manager = self.pop()
        leave = type(manager).__exit__.__get__(manager)
        self.stack += [leave, type(manager).__enter__(manager)]

    def load_special(self, name):
        owner = self.pop()
        self.stack += [getattr(type(owner), name).__get__(owner), NULL]


setattr(Frame, "is", lambda self, inverted: self.stack.append((self.stack.pop(-2) is self.stack.pop()) != bool(inverted)))
setattr(Frame, "not", lambda self, _: self.stack.append(not self.stack.pop()))
setattr(Frame, "raise", Frame.raise_)
