"""What each release of CPython calls the stable operations.

A table maps a name of `dis` to the steps it stands for: an Operation (with the instruction's own argument), a tuple of
(Operation, argument) pairs, or a function of the instruction that gives such a tuple. A release's table is the one before it
with rows changed; None removes a row. What is in no table is not translated. Python 3.14 is untested.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Callable
from typing import Any

from flexor.frontend.cpython.operations import Operation as O

Pair = tuple[O, Any]
Row = O | tuple[Pair, ...] | Callable[[dis.Instruction, types.CodeType], tuple[Pair, ...] | None] | None
Table = dict[str, Row]


def _number(instruction: dis.Instruction) -> int:
    return instruction.arg or 0


def _as(operation: O, arg: Any) -> Row:
    return ((operation, arg),)


def _rotate(count: int) -> Row:
    return tuple((O.SWAP, n) for n in range(count, 1, -1))


def _global(null_first: bool) -> Row:
    def steps(instruction: dis.Instruction, code: types.CodeType) -> tuple[Pair, ...]:
        load = (O.LOAD_GLOBAL, instruction.argval)
        if not _number(instruction) & 1:
            return (load,)
        return ((O.PUSH_NULL, None), load) if null_first else (load, (O.PUSH_NULL, None))

    return steps


def _attribute(instruction: dis.Instruction, code: types.CodeType) -> tuple[Pair, ...]:
    load = (O.LOAD_ATTR, instruction.argval)
    return (load, (O.PUSH_NULL, None)) if _number(instruction) & 1 else (load,)


def _super_attribute(instruction: dis.Instruction, code: types.CodeType) -> tuple[Pair, ...]:
    load = (O.LOAD_SUPER_ATTR, instruction.argval)
    return (load, (O.PUSH_NULL, None)) if _number(instruction) & 1 else (load,)


def _binary_op(instruction: dis.Instruction, code: types.CodeType) -> tuple[Pair, ...]:
    text = instruction.argrepr
    if text.startswith("["):
        return ((O.SUBSCR, None),)
    return ((O.INPLACE, text[:-1]),) if text.endswith("=") else ((O.BINARY, text),)


def _convert(kind: int) -> tuple[Pair, ...]:
    return ((O.CONVERT, (str, repr, ascii)[kind - 1]),) if kind else ()


def _format(instruction: dis.Instruction, code: types.CodeType) -> tuple[Pair, ...]:
    kind, spec = _number(instruction) & 3, bool(_number(instruction) & 4)
    if not spec:
        return (*_convert(kind), (O.FORMAT, False))
    if not kind:
        return ((O.FORMAT, True),)
    return ((O.SWAP, 2), *_convert(kind), (O.SWAP, 2), (O.FORMAT, True))


def _local_pair(first: O, second: O) -> Row:
    def steps(instruction: dis.Instruction, code: types.CodeType) -> tuple[Pair, ...]:
        return tuple(zip((first, second), instruction.argval))

    return steps


def _intrinsic(instruction: dis.Instruction, code: types.CodeType) -> tuple[Pair, ...] | None:
    known: dict[int, tuple[Pair, ...]] = {3: ((O.RERAISE, 1),), 5: ((O.POSITIVE, None),), 6: ((O.LIST_TO_TUPLE, None),)}
    return known.get(_number(instruction))


def _common_constant(instruction: dis.Instruction, code: types.CodeType) -> tuple[Pair, ...]:
    known = (AssertionError, NotImplementedError, tuple, all, any)
    return ((O.CONST, known[_number(instruction)]),)


def _special(instruction: dis.Instruction, code: types.CodeType) -> tuple[Pair, ...] | None:
    name = {0: "__enter__", 1: "__exit__"}.get(_number(instruction))
    return ((O.LOAD_SPECIAL, name),) if name else None


def _delegate(instruction: dis.Instruction, code: types.CodeType) -> tuple[Pair, ...]:
    """3.10 says in one instruction what later releases write out as a loop."""
    return ((O.SEND, instruction.offset + 2), (O.YIELD, None), (O.JUMP, instruction.offset))


_OPERATORS = {
    "ADD": "+",
    "SUBTRACT": "-",
    "MULTIPLY": "*",
    "TRUE_DIVIDE": "/",
    "FLOOR_DIVIDE": "//",
    "MODULO": "%",
    "POWER": "**",
    "MATRIX_MULTIPLY": "@",
    "LSHIFT": "<<",
    "RSHIFT": ">>",
    "AND": "&",
    "OR": "|",
    "XOR": "^",
}
# What 3.11 and later say of a match that failed, with the truth value that 3.10 pushes beside it.
_WITH_TRUTH: tuple[Pair, ...] = ((O.COPY, 1), (O.CONST, None), (O.IS, 1))

_ALWAYS: Table = {
    "NOP": (),
    "EXTENDED_ARG": (),
    "POP_TOP": _as(O.POP, None),
    "LOAD_CONST": O.CONST,
    "STORE_FAST": O.STORE_LOCAL,
    "DELETE_FAST": O.DELETE_LOCAL,
    "LOAD_DEREF": O.LOAD_CELL,
    "STORE_DEREF": O.STORE_CELL,
    "DELETE_DEREF": O.DELETE_CELL,
    "STORE_GLOBAL": O.STORE_GLOBAL,
    "DELETE_GLOBAL": O.DELETE_GLOBAL,
    "STORE_ATTR": O.STORE_ATTR,
    "DELETE_ATTR": O.DELETE_ATTR,
    "STORE_SUBSCR": O.STORE_SUBSCR,
    "DELETE_SUBSCR": O.DELETE_SUBSCR,
    "UNARY_NEGATIVE": O.NEGATIVE,
    "UNARY_INVERT": O.INVERT,
    "UNARY_NOT": O.NOT,
    "COMPARE_OP": O.COMPARE,
    "IS_OP": O.IS,
    "CONTAINS_OP": O.CONTAINS,
    "GET_ITER": O.GET_ITER,
    "FOR_ITER": O.FOR_ITER,
    "JUMP_FORWARD": O.JUMP,
    "RETURN_VALUE": _as(O.RETURN, None),
    "RAISE_VARARGS": O.RAISE,
    "BUILD_TUPLE": O.TUPLE,
    "BUILD_LIST": O.LIST,
    "BUILD_SET": O.SET,
    "BUILD_MAP": O.MAP,
    "BUILD_STRING": O.STRING,
    "BUILD_SLICE": O.SLICE,
    "LIST_APPEND": O.LIST_APPEND,
    "SET_ADD": O.SET_ADD,
    "MAP_ADD": O.MAP_ADD,
    "LIST_EXTEND": O.LIST_EXTEND,
    "SET_UPDATE": O.SET_UPDATE,
    "DICT_UPDATE": O.DICT_UPDATE,
    "DICT_MERGE": O.DICT_MERGE,
    "UNPACK_SEQUENCE": O.UNPACK,
    "UNPACK_EX": lambda i, code: ((O.UNPACK_EX, (_number(i) & 0xFF, _number(i) >> 8)),),
    "IMPORT_NAME": O.IMPORT_NAME,
    "IMPORT_FROM": O.IMPORT_FROM,
    "LOAD_BUILD_CLASS": O.BUILD_CLASS,
    "LOAD_NAME": O.LOAD_NAME,
    "STORE_NAME": O.STORE_NAME,
    "DELETE_NAME": O.DELETE_NAME,
    "LOAD_CLASSDEREF": O.LOAD_NAME_OR_CELL,
    "SETUP_ANNOTATIONS": _as(O.DECLARE_ANNOTATIONS, None),
    "GET_LEN": O.LENGTH,
    "MATCH_MAPPING": O.MATCH_MAPPING,
    "MATCH_SEQUENCE": O.MATCH_SEQUENCE,
    "WITH_EXCEPT_START": O.WITH_EXCEPT,
    "POP_EXCEPT": O.EXCEPTION_END,
    "RERAISE": O.RERAISE,
    "YIELD_VALUE": _as(O.YIELD, None),
    "GET_YIELD_FROM_ITER": O.GET_ITER,
}

PY310: Table = {
    **_ALWAYS,
    "LOAD_FAST": O.LOAD_LOCAL,
    "LOAD_CLOSURE": O.LOAD_LOCAL,
    "LOAD_GLOBAL": O.LOAD_GLOBAL,
    "LOAD_ATTR": O.LOAD_ATTR,
    "LOAD_METHOD": lambda i, code: ((O.LOAD_ATTR, i.argval), (O.PUSH_NULL, None)),
    "LOAD_ASSERTION_ERROR": _as(O.CONST, AssertionError),
    "ROT_TWO": _rotate(2),
    "ROT_THREE": _rotate(3),
    "ROT_FOUR": _rotate(4),
    "ROT_N": lambda i, code: tuple((O.SWAP, n) for n in range(_number(i), 1, -1)),
    "DUP_TOP": _as(O.COPY, 1),
    "DUP_TOP_TWO": ((O.COPY, 2), (O.COPY, 2)),
    **{f"BINARY_{name}": _as(O.BINARY, text) for name, text in _OPERATORS.items()},
    **{f"INPLACE_{name}": _as(O.INPLACE, text) for name, text in _OPERATORS.items()},
    "UNARY_POSITIVE": O.POSITIVE,
    "BINARY_SUBSCR": O.SUBSCR,
    "LIST_TO_TUPLE": O.LIST_TO_TUPLE,
    "FORMAT_VALUE": _format,
    "BUILD_CONST_KEY_MAP": O.CONST_KEY_MAP,
    "JUMP_ABSOLUTE": O.JUMP,
    "POP_JUMP_IF_TRUE": O.BRANCH_TRUE,
    "POP_JUMP_IF_FALSE": O.BRANCH_FALSE,
    "JUMP_IF_TRUE_OR_POP": lambda i, code: ((O.COPY, 1), (O.BRANCH_TRUE, i.argval), (O.POP, None)),
    "JUMP_IF_FALSE_OR_POP": lambda i, code: ((O.COPY, 1), (O.BRANCH_FALSE, i.argval), (O.POP, None)),
    "CALL_FUNCTION": O.CALL_FUNCTION,
    "CALL_FUNCTION_KW": O.CALL_FUNCTION_KW,
    "CALL_FUNCTION_EX": lambda i, code: ((O.CALL_FUNCTION_EX, bool(_number(i) & 1)),),
    "CALL_METHOD": O.CALL,
    "MAKE_FUNCTION": lambda i, code: ((O.POP, None), (O.MAKE_FUNCTION, i.arg)),
    "MATCH_KEYS": ((O.MATCH_KEYS, None), *_WITH_TRUTH),
    "MATCH_CLASS": lambda i, code: ((O.MATCH_CLASS, i.arg), *_WITH_TRUTH),
    "COPY_DICT_WITHOUT_KEYS": O.COPY_WITHOUT_KEYS,
    "SETUP_WITH": _as(O.WITH_ENTER, None),
    "SETUP_FINALLY": (),
    "POP_BLOCK": (),
    "GEN_START": _as(O.POP, None),
    "YIELD_FROM": _delegate,
    "JUMP_IF_NOT_EXC_MATCH": O.EXCEPTION_MATCH,
}

PY311: Table = {
    **{name: row for name, row in PY310.items() if not name.startswith(("ROT_", "DUP_", "BINARY_", "INPLACE_", "CALL_"))},
    "RESUME": (),
    "CACHE": (),
    "PRECALL": (),
    "COPY_FREE_VARS": (),
    "RETURN_GENERATOR": _as(O.CONST, None),  # what is sent first
    "GEN_START": None,
    "YIELD_FROM": None,
    "SEND": O.SEND,
    "MAKE_CELL": O.MAKE_CELL,
    "PUSH_NULL": O.PUSH_NULL,
    "COPY": O.COPY,
    "SWAP": O.SWAP,
    "LOAD_GLOBAL": _global(null_first=True),
    "BINARY_OP": _binary_op,
    "BINARY_SUBSCR": O.SUBSCR,
    "CALL": O.CALL,
    "CALL_FUNCTION_EX": lambda i, code: ((O.CALL_EX, bool(_number(i) & 1)),),
    "MAKE_FUNCTION": O.MAKE_FUNCTION,
    "MATCH_KEYS": O.MATCH_KEYS,
    "MATCH_CLASS": O.MATCH_CLASS,
    **{
        f"POP_JUMP_{way}_IF_{case}": operation
        for way in ("FORWARD", "BACKWARD")
        for case, operation in (
            ("TRUE", O.BRANCH_TRUE),
            ("FALSE", O.BRANCH_FALSE),
            ("NONE", O.BRANCH_NONE),
            ("NOT_NONE", O.BRANCH_NOT_NONE),
        )
    },
    "JUMP_BACKWARD": O.JUMP,
    "JUMP_BACKWARD_NO_INTERRUPT": O.JUMP,
    "BEFORE_WITH": _as(O.WITH_ENTER, None),
    "PUSH_EXC_INFO": O.EXCEPTION_BEGIN,
    "CHECK_EXC_MATCH": O.EXCEPTION_MATCH,
    "COPY_DICT_WITHOUT_KEYS": None,
    "SETUP_WITH": None,
    "SETUP_FINALLY": None,
    "POP_BLOCK": None,
    "JUMP_ABSOLUTE": None,
    "JUMP_IF_NOT_EXC_MATCH": None,
}

PY312: Table = {
    **{name: row for name, row in PY311.items() if not name.startswith(("POP_JUMP_", "JUMP_IF_"))},
    "PRECALL": None,
    "LOAD_METHOD": None,
    "UNARY_POSITIVE": None,
    "LIST_TO_TUPLE": None,
    "LOAD_ATTR": _attribute,
    "LOAD_SUPER_ATTR": _super_attribute,
    "LOAD_FAST_CHECK": O.LOAD_LOCAL,
    "LOAD_CLASSDEREF": None,
    "LOAD_LOCALS": _as(O.LOAD_NAMES, None),
    "LOAD_FROM_DICT_OR_DEREF": lambda i, code: ((O.POP, None), (O.LOAD_NAME_OR_CELL, i.argval)),
    "LOAD_FAST_AND_CLEAR": O.LOAD_LOCAL_AND_CLEAR,
    "RETURN_CONST": lambda i, code: ((O.CONST, i.argval), (O.RETURN, None)),
    "BINARY_SLICE": ((O.SLICE, 2), (O.SUBSCR, None)),
    "STORE_SLICE": ((O.SLICE, 2), (O.STORE_SUBSCR, None)),
    "CALL_INTRINSIC_1": _intrinsic,
    "POP_JUMP_IF_TRUE": O.BRANCH_TRUE,
    "POP_JUMP_IF_FALSE": O.BRANCH_FALSE,
    "POP_JUMP_IF_NONE": O.BRANCH_NONE,
    "POP_JUMP_IF_NOT_NONE": O.BRANCH_NOT_NONE,
    "END_FOR": (),  # FOR_ITER has popped the iterator
    "END_SEND": (),  # so has SEND
    "CLEANUP_THROW": _as(O.RERAISE, 0),  # what throw() and close() do to the iterator
}

PY313: Table = {
    **PY312,
    "LOAD_GLOBAL": _global(null_first=False),
    "LOAD_CLOSURE": None,
    "LOAD_FAST_LOAD_FAST": _local_pair(O.LOAD_LOCAL, O.LOAD_LOCAL),
    "STORE_FAST_LOAD_FAST": _local_pair(O.STORE_LOCAL, O.LOAD_LOCAL),
    "STORE_FAST_STORE_FAST": _local_pair(O.STORE_LOCAL, O.STORE_LOCAL),
    "TO_BOOL": O.TO_BOOL,
    "CALL_KW": O.CALL_KW,
    "FORMAT_VALUE": None,
    "CONVERT_VALUE": lambda i, code: _convert(_number(i)),
    "FORMAT_SIMPLE": _as(O.FORMAT, False),
    "FORMAT_WITH_SPEC": _as(O.FORMAT, True),
    "SET_FUNCTION_ATTRIBUTE": O.SET_FUNCTION_ATTRIBUTE,
    "MAKE_FUNCTION": _as(O.MAKE_FUNCTION, 0),
    # The POP_TOP behind it would pop the iterator, which FOR_ITER has popped.
    "END_FOR": _as(O.PUSH_NULL, None),
}

PY314: Table = {
    **PY313,
    "BINARY_SUBSCR": None,
    "RETURN_CONST": None,
    "BEFORE_WITH": None,
    "LOAD_ASSERTION_ERROR": None,
    "LOAD_FAST_BORROW": O.LOAD_LOCAL,
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": _local_pair(O.LOAD_LOCAL, O.LOAD_LOCAL),
    "LOAD_SMALL_INT": lambda i, code: ((O.CONST, i.arg),),
    "LOAD_COMMON_CONSTANT": _common_constant,
    "LOAD_SPECIAL": _special,
    "CALL_FUNCTION_EX": _as(O.CALL_EX, True),
    "POP_ITER": _as(O.POP, None),
    "NOT_TAKEN": (),
}

TABLES: dict[tuple[int, int], Table] = {(3, 10): PY310, (3, 11): PY311, (3, 12): PY312, (3, 13): PY313, (3, 14): PY314}
