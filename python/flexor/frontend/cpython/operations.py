"""The stable operations of a stack machine that every supported CPython is read as.

A value is written `[below, top]`. NULL is a mark, not a value: it fills the second slot of a call that has no receiver.
A local holds a value, nothing, or the cell through which closures share the variable; the cells of free variables are there
when the function begins.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any


@enum.unique
class Operation(enum.Enum):
    """Each member's value: what it does, in terms of its argument `arg`."""

    __hash__ = object.__hash__  # Enum's is a function of Python's, called for every step

    # Stack
    POP = "drops the top"
    COPY = "pushes the arg-th value from the top (1 is the top) again"
    SWAP = "exchanges the top and the arg-th value from the top"
    PUSH_NULL = "pushes NULL"
    CONST = "pushes arg"
    # Variables
    LOAD_LOCAL = "pushes what local arg holds; raises UnboundLocalError if it holds nothing"
    LOAD_LOCAL_AND_CLEAR = "pushes what local arg holds, or NULL, and empties it"
    STORE_LOCAL = "pops into local arg; NULL empties it"
    DELETE_LOCAL = "empties local arg; raises UnboundLocalError if it holds nothing"
    MAKE_CELL = "puts a cell into local arg, which holds what the local held"
    LOAD_CELL = "pushes what the cell in local arg holds; raises NameError if it is empty"
    STORE_CELL = "pops into the cell in local arg"
    DELETE_CELL = "empties the cell in local arg; raises NameError if it is empty"
    LOAD_GLOBAL = "pushes global or builtin arg"
    STORE_GLOBAL = "pops into global arg"
    DELETE_GLOBAL = "removes global arg"
    # Objects
    LOAD_ATTR = "[object] -> [object.arg]"
    LOAD_SUPER_ATTR = "[super, class, self] -> [super(class, self).arg]"
    STORE_ATTR = "[value, object] -> []: object.arg = value"
    DELETE_ATTR = "[object] -> []: del object.arg"
    SUBSCR = "[container, index] -> [container[index]]"
    STORE_SUBSCR = "[value, container, index] -> []: container[index] = value"
    DELETE_SUBSCR = "[container, index] -> []: del container[index]"
    # Arithmetic
    BINARY = "[a, b] -> [a arg b], arg an operator such as '+'"
    INPLACE = "[a, b] -> [a], after a arg= b"
    COMPARE = "[a, b] -> [a arg b], arg one of < <= == != > >="
    IS = "[a, b] -> [a is b], or `is not` if arg"
    CONTAINS = "[a, b] -> [a in b], or `not in` if arg"
    NEGATIVE = "[a] -> [-a]"
    POSITIVE = "[a] -> [+a]"
    INVERT = "[a] -> [~a]"
    NOT = "[a] -> [not a]"
    TO_BOOL = "[a] -> [bool(a)]"
    # Control; arg is the index of a step
    JUMP = "goes on at arg"
    BRANCH_TRUE = "pops; goes on at arg if it is true"
    BRANCH_FALSE = "pops; goes on at arg if it is false"
    BRANCH_NONE = "pops; goes on at arg if it is None"
    BRANCH_NOT_NONE = "pops; goes on at arg if it is not None"
    GET_ITER = "[a] -> [iter(a)]"
    FOR_ITER = "[iterator] -> [iterator, next(iterator)]; at its end pops the iterator and goes on at arg"
    RETURN = "pops and returns it"
    YIELD = "[a] -> [what is sent], after a has been yielded"
    SEND = "[iterator, a] -> [iterator, what it gives for a]; at its end [what it returns], and goes on at arg"
    RAISE = "pops arg values (0 to 2) and raises: nothing, exception, or exception from cause"
    # Calls. Two slots lie below the arguments: [f, NULL], [NULL, f], or [f, self], which passes self first.
    CALL = "[slot, slot, arg values] -> [result]"
    CALL_KW = "[slot, slot, arg values, names] -> [result]; the last values are keyword arguments of these names"
    CALL_EX = "[slot, slot, positional, keywords if arg] -> [result]; keywords may be NULL"
    CALL_FUNCTION = "[f, arg values] -> [result]"
    CALL_FUNCTION_KW = "[f, arg values, names] -> [result]"
    CALL_FUNCTION_EX = "[f, positional, keywords if arg] -> [result]"
    # Building
    TUPLE = "[arg values] -> [tuple]"
    LIST = "[arg values] -> [list]"
    SET = "[arg values] -> [set]"
    MAP = "[arg pairs of key and value] -> [dict]"
    CONST_KEY_MAP = "[arg values, tuple of keys] -> [dict]"
    STRING = "[arg strings] -> [their concatenation]"
    SLICE = "[arg values, 2 or 3] -> [slice]"
    LIST_APPEND = "pops a value and appends it to the list that is then arg-th from the top"
    SET_ADD = "pops a value and adds it to the set that is then arg-th from the top"
    MAP_ADD = "pops key and value (on top) and sets them in the dict that is then arg-th from the top"
    LIST_EXTEND = "pops an iterable and extends the list that is then arg-th from the top"
    SET_UPDATE = "pops an iterable and adds its values to the set that is then arg-th from the top"
    DICT_UPDATE = "pops a mapping and updates the dict that is then arg-th from the top"
    DICT_MERGE = "as DICT_UPDATE, for keyword arguments: a key that is there already raises TypeError"
    LIST_TO_TUPLE = "[list] -> [tuple]"
    UNPACK = "[iterable of exactly arg values] -> [them, the first on top]"
    UNPACK_EX = "[iterable] -> [values and one list]; arg = (count before the list, count after), the first on top"
    CONVERT = "[a] -> [arg(a)], arg one of str, repr, ascii"
    FORMAT = "[a] -> [format(a)], or [a, spec] -> [format(a, spec)] if arg"
    MAKE_FUNCTION = "[code] -> [function]; below it, by the bits of arg: 1 defaults, 2 keyword defaults, 4 annotations, 8 closure"
    SET_FUNCTION_ATTRIBUTE = "[value, function] -> [function]; arg as the bit of MAKE_FUNCTION"
    IMPORT_NAME = "[level, from-list] -> [module arg]"
    IMPORT_FROM = "[module] -> [module, its attribute arg]"
    # Bodies of classes, whose names stand in a dict
    BUILD_CLASS = "pushes builtins.__build_class__"
    LOAD_NAME = "pushes name arg of the body, or what LOAD_GLOBAL pushes"
    LOAD_NAME_OR_CELL = "pushes name arg of the body, or what LOAD_CELL pushes"
    STORE_NAME = "pops into name arg of the body"
    DELETE_NAME = "removes name arg of the body; raises NameError if there is none"
    LOAD_NAMES = "pushes the dict of the body's names"
    DECLARE_ANNOTATIONS = "makes the body's __annotations__ a dict, if it is not there"
    # Patterns
    MATCH_MAPPING = "[a] -> [a, whether it is a mapping]"
    MATCH_SEQUENCE = "[a] -> [a, whether it is a sequence]"
    MATCH_KEYS = "[mapping, keys] -> [mapping, keys, tuple of values or None]"
    MATCH_CLASS = "[a, class, names] -> [tuple of attributes or None]; arg positional sub-patterns"
    COPY_WITHOUT_KEYS = "[mapping, keys] -> [mapping, dict of the mapping without the keys]"
    LENGTH = "[a] -> [a, len(a)]"
    # Context managers and exceptions
    WITH_ENTER = "[manager] -> [its bound __exit__, result of __enter__]"
    LOAD_SPECIAL = "[object] -> [type's method arg bound to it, NULL]"
    WITH_EXCEPT = "calls the __exit__ of an exception in flight"
    EXCEPTION_BEGIN = "a handler begins: the exception lies on the stack"
    EXCEPTION_END = "a handler ends"
    EXCEPTION_MATCH = "whether the exception in flight is of a class"
    RERAISE = "raises the exception in flight again"


NAMES = ".names"  # the local of a class's body that holds the dict of its names
NULL: Any = type("Null", (), {"__repr__": lambda self: "NULL", "__slots__": ()})()

O = Operation
# Handlers of exceptions: reached by a raise alone, each release arranges their stack in its own way.
IN_HANDLERS = frozenset({O.WITH_EXCEPT, O.EXCEPTION_BEGIN, O.EXCEPTION_END, O.EXCEPTION_MATCH, O.RERAISE})
BRANCHES = frozenset({O.BRANCH_TRUE, O.BRANCH_FALSE, O.BRANCH_NONE, O.BRANCH_NOT_NONE})
JUMPS = BRANCHES | {O.JUMP, O.FOR_ITER, O.SEND}  # arg is the index of a step
ENDS = frozenset({O.JUMP, O.RETURN, O.RAISE, O.RERAISE})  # the next step is not reached from here

_Effect = tuple[int, int] | Callable[[Any], tuple[int, int]]
_EFFECTS: dict[Operation, _Effect] = {
    O.POP: (1, 0),
    O.COPY: lambda n: (n, n + 1),
    O.SWAP: lambda n: (n, n),
    O.PUSH_NULL: (0, 1),
    O.CONST: (0, 1),
    O.LOAD_LOCAL: (0, 1),
    O.LOAD_LOCAL_AND_CLEAR: (0, 1),
    O.STORE_LOCAL: (1, 0),
    O.DELETE_LOCAL: (0, 0),
    O.LOAD_CELL: (0, 1),
    O.STORE_CELL: (1, 0),
    O.DELETE_CELL: (0, 0),
    O.MAKE_CELL: (0, 0),
    O.LOAD_GLOBAL: (0, 1),
    O.STORE_GLOBAL: (1, 0),
    O.DELETE_GLOBAL: (0, 0),
    O.LOAD_ATTR: (1, 1),
    O.LOAD_SUPER_ATTR: (3, 1),
    O.STORE_ATTR: (2, 0),
    O.DELETE_ATTR: (1, 0),
    O.SUBSCR: (2, 1),
    O.STORE_SUBSCR: (3, 0),
    O.DELETE_SUBSCR: (2, 0),
    O.BINARY: (2, 1),
    O.INPLACE: (2, 1),
    O.COMPARE: (2, 1),
    O.IS: (2, 1),
    O.CONTAINS: (2, 1),
    O.NEGATIVE: (1, 1),
    O.POSITIVE: (1, 1),
    O.INVERT: (1, 1),
    O.NOT: (1, 1),
    O.TO_BOOL: (1, 1),
    O.JUMP: (0, 0),
    O.BRANCH_TRUE: (1, 0),
    O.BRANCH_FALSE: (1, 0),
    O.BRANCH_NONE: (1, 0),
    O.BRANCH_NOT_NONE: (1, 0),
    O.GET_ITER: (1, 1),
    O.FOR_ITER: (1, 2),
    O.RETURN: (1, 0),
    O.YIELD: (1, 1),
    O.SEND: (2, 2),
    O.RAISE: lambda n: (n, 0),
    O.CALL: lambda n: (n + 2, 1),
    O.CALL_KW: lambda n: (n + 3, 1),
    O.CALL_EX: lambda keywords: (4 if keywords else 3, 1),
    O.CALL_FUNCTION: lambda n: (n + 1, 1),
    O.CALL_FUNCTION_KW: lambda n: (n + 2, 1),
    O.CALL_FUNCTION_EX: lambda keywords: (3 if keywords else 2, 1),
    O.TUPLE: lambda n: (n, 1),
    O.LIST: lambda n: (n, 1),
    O.SET: lambda n: (n, 1),
    O.MAP: lambda n: (2 * n, 1),
    O.CONST_KEY_MAP: lambda n: (n + 1, 1),
    O.STRING: lambda n: (n, 1),
    O.SLICE: lambda n: (n, 1),
    O.LIST_APPEND: lambda n: (n + 1, n),
    O.SET_ADD: lambda n: (n + 1, n),
    O.MAP_ADD: lambda n: (n + 2, n),
    O.LIST_EXTEND: lambda n: (n + 1, n),
    O.SET_UPDATE: lambda n: (n + 1, n),
    O.DICT_UPDATE: lambda n: (n + 1, n),
    O.DICT_MERGE: lambda n: (n + 1, n),
    O.LIST_TO_TUPLE: (1, 1),
    O.UNPACK: lambda n: (1, n),
    O.UNPACK_EX: lambda counts: (1, counts[0] + counts[1] + 1),
    O.CONVERT: (1, 1),
    O.FORMAT: lambda spec: (2 if spec else 1, 1),
    O.MAKE_FUNCTION: lambda bits: (1 + bits.bit_count(), 1),
    O.SET_FUNCTION_ATTRIBUTE: (2, 1),
    O.IMPORT_NAME: (2, 1),
    O.IMPORT_FROM: (1, 2),
    O.BUILD_CLASS: (0, 1),
    O.LOAD_NAME: (0, 1),
    O.LOAD_NAME_OR_CELL: (0, 1),
    O.STORE_NAME: (1, 0),
    O.DELETE_NAME: (0, 0),
    O.LOAD_NAMES: (0, 1),
    O.DECLARE_ANNOTATIONS: (0, 0),
    O.MATCH_MAPPING: (1, 2),
    O.MATCH_SEQUENCE: (1, 2),
    O.MATCH_KEYS: (2, 3),
    O.MATCH_CLASS: (3, 1),
    O.COPY_WITHOUT_KEYS: (2, 2),
    O.LENGTH: (1, 2),
    O.WITH_ENTER: (1, 2),
    O.LOAD_SPECIAL: (1, 2),
}
assert _EFFECTS.keys() == set(Operation) - IN_HANDLERS


def stack_effect(operation: Operation, arg: Any) -> tuple[int, int]:
    """(values popped, values pushed) where the next step is reached; values that are only looked at count as both."""
    effect = _EFFECTS[operation]
    return effect(arg) if callable(effect) else effect
