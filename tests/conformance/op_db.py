"""flexor.jit against torch's own description of its operators (`op_db`): every sample input of every record, beside eager.

    python tests/conformance/op_db.py --first a --last m --json bench/results/op-db.json

A record's samples run in a row through jitted functions in two manners: "run" hands numbers over as arguments, values of the run,
to one function; "text" writes them into the function, as most code has them. A sample is judged by its results (values, dtypes,
shapes, types, whether they share memory with an argument), by what it wrote, and by the class of what it raised. It is `native` if
the program ran it without a call of Python, `typed` if all such calls had told before what they give, `refused` if Python ran the whole
call, else `foreign`; beside these stand `wrong` and
`other_error`: both raised, but flexor no subclass of what eager raises. Inputs that eager refuses are counted apart, as `errors`: they
are judged like samples, but need not be native. A record is native if all its samples are; its family is that of `op_families`.
Every record has a process of its own, so that a crash is one row.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import multiprocessing
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db

import flexor
from flexor._translation import _interpreter
from flexor.session import default_session

sys.path.append(str(Path(__file__).parent))
from op_families import FAMILIES, family_of  # noqa: E402

DTYPES = (torch.float32, torch.int64, torch.bool)
MANNERS = ("run", "text")
VARIANTS = ("function", "method", "in_place")
COUNTS = ("samples", "native", "typed", "foreign", "refused", "errors", "wrong", "other_error", "crash")
# Leave the order of equal elements open: how many of their results it does not change.
ORDERS = {"argsort": 0, "sort": 1, "topk": 1, "kthvalue": 1, "median": 1, "mode": 1}
OTHER_CLASS = "raised"  # begins what judge says where both raise, but not the same class
TOLERANCE = {torch.float32: (2e-5, 2e-5), torch.float64: (1e-7, 1e-7), torch.complex64: (2e-5, 2e-5), torch.complex128: (1e-7, 1e-7)}


def name_of(record: Any) -> str:
    """The record's name, with its variant."""
    return f"{record.name}.{record.variant_test_name}" if record.variant_test_name else str(record.name)


def records(first: str = "a", last: str = "z") -> list[Any]:
    """Records whose names begin with a letter of first..last, by name."""
    return sorted((r for r in op_db if first <= r.name[0].lower() <= last), key=name_of)


def callable_of(record: Any, variant: str) -> Callable[..., Any] | None:
    """The operator as a function, a method or a method that writes. None: there is no such form."""
    found = {"function": record.op, "method": record.method_variant, "in_place": record.inplace_variant}[variant]
    if isinstance(found, types.FunctionType):
        found.__module__ = __name__  # a wrapper of torch's tests: followed as a user's function, not left to torch
    return found  # type: ignore[no-any-return]


# ------------------------------------------------------------------------------------------------------------- functions


class Program:
    """One jitted function and the function itself, with how a sample's arguments are handed over."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.eager = function
        self.jitted: Any = flexor.jit(function, fallback="silent")


def _run_program(op: Callable[..., Any]) -> Program:
    def call(args: list[Any], kwargs: dict[str, Any]) -> Any:
        return op(*args, **kwargs)

    return Program(call)


class _Text:
    """A sample's call as source, tensors and what has no literal being parameters."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.given: list[Any] = []
        words = [self._of(a) for a in args] + [f"{k}={self._of(v)}" for k, v in kwargs.items()]
        self.source = f"lambda given: op({', '.join(words)})"

    def _of(self, value: Any) -> str:
        if isinstance(value, torch.Size):
            value = tuple(value)
        if type(value) in (tuple, list):
            inside = ", ".join(map(self._of, value))
            return f"[{inside}]" if type(value) is list else f"({inside}{',' * (len(value) == 1)})"
        if type(value) in (bool, int, str, type(None)) or type(value) is float and abs(value) < float("inf"):
            return f"({value!r})"
        if type(value) in (torch.dtype,):
            return str(value)
        if type(value) is slice:
            return f"slice({self._of(value.start)}, {self._of(value.stop)}, {self._of(value.step)})"
        self.given.append(value)
        return f"given[{len(self.given) - 1}]"


class Programs:
    """The jitted functions of one record, made as samples need them."""

    def __init__(self, op: Callable[..., Any], manner: str) -> None:
        self.op, self.manner = op, manner
        self.made: dict[str, Program] = {}

    def of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Program, tuple[Any, ...]]:
        """The function for a sample and its arguments."""
        if self.manner == "run":
            if "" not in self.made:
                self.made[""] = _run_program(self.op)
            return self.made[""], (list(args), kwargs)
        text = _Text(args, kwargs)
        if text.source not in self.made:
            self.made[text.source] = Program(eval(text.source, {"op": self.op, "torch": torch}))
        return self.made[text.source], (text.given,)


# --------------------------------------------------------------------------------------------------------------- judging


def _outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[str, Any]:
    torch.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return "returned", function(*arguments)
    except Exception as error:  # noqa: BLE001
        return "raised", error


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Every tensor of nested lists, tuples and dicts."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))


def _memory(tensor: torch.Tensor) -> range:
    if tensor.layout != torch.strided or not tensor.numel():
        return range(0)
    storage = tensor.untyped_storage()
    return range(storage.data_ptr(), storage.data_ptr() + storage.nbytes())


def sharing(result: Any, arguments: Any) -> list[list[int]]:
    """For every tensor of a result: the tensors of the arguments whose memory it shares."""
    held = [_memory(t) for t in tensors(arguments)]
    return [[i for i, memory in enumerate(held) if t.numel() and t.layout == torch.strided and t.data_ptr() in memory] for t in tensors(result)]


def difference(got: Any, wanted: Any, settled: int | None = None) -> str | None:
    """What distinguishes two results; None: nothing that counts. Elements are looked at in the `settled` first results (None: in all)."""
    if isinstance(wanted, torch.Tensor):
        if type(got) is not type(wanted):
            return f"a {type(got).__name__} in place of a {type(wanted).__name__}"
        for what in ("dtype", "shape", "layout", "requires_grad"):
            if getattr(got, what) != getattr(wanted, what):
                return f"{what} {getattr(got, what)}, not {getattr(wanted, what)}"
        rtol, atol = TOLERANCE.get(wanted.dtype, (1e-2, 1e-2) if wanted.is_floating_point() else (0, 0))
        try:
            if settled != 0 and wanted.layout == torch.strided:
                torch.testing.assert_close(got, wanted, rtol=rtol, atol=atol, equal_nan=True)
        except AssertionError as error:
            return " ".join(str(error).split())[:160]
        return None
    if isinstance(wanted, (tuple, list)):
        if type(got) is not type(wanted) or len(got) != len(wanted):
            return f"{type(got).__name__} in place of {type(wanted).__name__}, or of another length"
        each = [None if settled is None else int(i < settled) for i in range(len(wanted))]
        return next((d for d in map(difference, got, wanted, each) if d), None)
    if isinstance(wanted, float) and isinstance(got, float):
        return None if abs(got - wanted) <= 1e-5 * max(1, abs(wanted)) or repr(got) == repr(wanted) else f"{got}, not {wanted}"
    return None if type(got) is type(wanted) and repr(got) == repr(wanted) else f"{got!r}, not {wanted!r}"


def _copied(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    sparse = {id(t): t.clone() for t in tensors(arguments) if t.layout != torch.strided}
    return copy.deepcopy(arguments, sparse)


def judge(program: Program, arguments: tuple[Any, ...], settled: int | None = None) -> str | None:
    """What is wrong with one call beside eager; None: nothing. `settled` is as for `difference`."""
    mine, theirs = _copied(arguments), _copied(arguments)
    wanted, got = _outcome(program.eager, theirs), _outcome(program.jitted, mine)
    if wanted[0] != got[0]:
        return f"{got[0]} {_short(got[1])} where eager {wanted[0]} {_short(wanted[1])}"
    if wanted[0] == "raised":
        return None if isinstance(got[1], type(wanted[1])) else f"{OTHER_CLASS} {_short(got[1])}, not {_short(wanted[1])}"
    found = difference(got[1], wanted[1], settled) or difference(list(tensors(mine)), list(tensors(theirs)))
    if found is None and sharing(got[1], mine) != sharing(wanted[1], theirs):
        found = f"memory shared with arguments {sharing(got[1], mine)}, not {sharing(wanted[1], theirs)}"
    return found


def _short(obj: Any) -> str:
    if isinstance(obj, BaseException):
        return f"{type(obj).__name__}({' '.join(str(obj).split())[:120]!r})"
    return repr(tuple(obj.shape)) if isinstance(obj, torch.Tensor) else type(obj).__name__


# --------------------------------------------------------------------------------------------------------------- counting


def _typed() -> int:
    """Calls of Python that have told before what they give."""
    return int(default_session().stats()["typed_calls"] + _interpreter().stats()["typed_calls"])


def _interpreted() -> tuple[int, ...]:
    """Op executions outside of compiled programs, and calls of programs that are still to learn what foreign calls give."""
    return default_session().stats()["interpreted_ops"], _interpreter().stats()["calls"]


def _why_interpreted() -> str:
    rows = default_session().stats()["fallbacks"]
    return "interpreted: " + ", ".join(sorted({f"{row['op']} {row['reason']}" for row in rows if not row["op"].startswith("foreign")}))


def _tally(program: Program, arguments: tuple[Any, ...], settled: int | None, row: dict[str, Any], what: str, is_error: bool = False) -> None:
    fallbacks = dict(program.jitted.stats()["fallbacks"])
    default_session().reset_stats()
    before, typed = _interpreted(), _typed()
    problem = judge(program, arguments, settled)
    stats = program.jitted.stats()
    refused = next((reason for reason, n in stats["fallbacks"].items() if n != fallbacks.get(reason, 0)), None)
    if problem is not None:
        row["other_error" if problem.startswith(OTHER_CLASS) and "where eager" not in problem else "wrong"] += 1
        row["problems"].append(f"{what}: {problem}")
    row["errors" if is_error else "samples"] += 1
    if is_error:
        return
    if refused is not None:
        row["refused"] += 1
        _reason(row, refused)
    elif _interpreted() != before:
        row["foreign"] += 1
        _reason(row, ", ".join(sorted({call[2] for call in stats["foreign_calls"]})) or _why_interpreted())
    elif _typed() != typed:
        row["typed"] += 1
        _reason(row, ", ".join(sorted({call[2] for call in stats["typed_calls"]})))
    else:
        row["native"] += 1


def _reason(row: dict[str, Any], reason: str) -> None:
    row["reasons"][reason] = row["reasons"].get(reason, 0) + 1


def run_record(
    record: Any,
    manner: str,
    variant: str = "function",
    dtypes: tuple[torch.dtype, ...] = DTYPES,
    most: int | None = None,
    most_errors: int | None = None,
) -> dict[str, Any] | None:
    """The row of a record: counts of samples by how they ran, the reasons, and each problem. None: it has no such variant."""
    op = callable_of(record, variant)
    if op is None:
        return None
    row: dict[str, Any] = {"name": name_of(record), "manner": manner, "variant": variant}
    row |= {key: 0 for key in COUNTS} | {"reasons": {}, "problems": []}
    programs = Programs(op, manner)
    settled = 0 if record.name.startswith(("empty", "new_empty")) else None  # of uninitialised memory
    with torch.no_grad():
        for dtype in dtypes:
            if dtype not in record.dtypes:
                continue
            for number, sample in enumerate(itertools.islice(record.sample_inputs("cpu", dtype, requires_grad=False), most)):
                program, arguments = programs.of((sample.input, *sample.args), sample.kwargs)
                is_open = record.name in ORDERS and sample.input.unique().numel() < sample.input.numel()
                _tally(program, arguments, ORDERS[record.name] if is_open else settled, row, f"{str(dtype)[6:]} sample {number} {_summary(sample)}")
        if record.error_inputs_func is not None and variant == "function":
            for number, error in enumerate(itertools.islice(record.error_inputs("cpu"), most_errors)):
                sample = error.sample_input
                program, arguments = programs.of((sample.input, *sample.args), sample.kwargs)
                _tally(program, arguments, settled, row, f"error input {number} {_summary(sample)}", is_error=True)
    return row


def _summary(sample: Any) -> str:
    def text(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype)[6:]}{list(value.shape)}"
        if isinstance(value, (list, tuple)):
            return f"({', '.join(map(text, value))})"
        return repr(value)

    words = [text(sample.input), *map(text, sample.args), *(f"{k}={text(v)}" for k, v in sample.kwargs.items())]
    return f"({', '.join(words)})"[:200]


# ------------------------------------------------------------------------------------------------------------- processes


def _child(pipe: Any, record: Any, manner: str, variant: str, dtypes: tuple[torch.dtype, ...], most: int | None) -> None:
    pipe.send(run_record(record, manner, variant, dtypes, most))
    pipe.close()


def run_apart(record: Any, manner: str, variant: str, dtypes: tuple[torch.dtype, ...], most: int | None, seconds: float) -> dict[str, Any] | None:
    """run_record in a process of its own."""
    context: Any = multiprocessing.get_context("fork")
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(writer, record, manner, variant, dtypes, most))
    process.start()
    writer.close()
    row: dict[str, Any] | None
    try:
        row = reader.recv() if reader.poll(seconds) else _lost(record, manner, variant, f"no end after {seconds:g} s")
    except EOFError:
        process.join()
        row = _lost(record, manner, variant, f"the process ended with {process.exitcode}")
    process.kill()
    process.join()
    return row


def _lost(record: Any, manner: str, variant: str, why: str) -> dict[str, Any]:
    counts = dict.fromkeys(COUNTS, 0) | {"crash": 1}
    return {"name": name_of(record), "manner": manner, "variant": variant, **counts, "reasons": {}, "problems": [why]}


def shown(row: dict[str, Any]) -> str:
    """A row in one line, and its problems below."""
    counts = ", ".join(f"{row[k]} {k}" for k in COUNTS[1:] if row[k])
    reasons = "; ".join(sorted(row["reasons"], key=lambda r: -row["reasons"][r])[:3])
    lines = [f"{row['name']} [{row['manner']}, {row['variant']}] {row['samples']} samples: {counts}  {reasons[:150]}"]
    return "\n    ".join(lines + row["problems"][:4])


def result(row: dict[str, Any]) -> dict[str, Any]:
    """A row as it is kept: with its family, the commonest reason why samples were not native, and the first problem."""
    reason = max(row["reasons"], key=row["reasons"].get, default="")
    kept = {key: row[key] for key in ("name", "manner", "variant", *COUNTS)}
    return {"family": family_of(row["name"]), **kept, "reason": reason, "problem": row["problems"][0] if row["problems"] else ""}


def is_native(row: dict[str, Any]) -> bool:
    """Whether every sample of a record ran without a foreign call or an op outside of compiled programs."""
    return bool(row["native"] == row["samples"] and not row["crash"])


def totals(rows: list[dict[str, Any]]) -> str:
    """What rows as they are kept sum to, by manner and by family, and what stands between records of families and being native."""
    lines = []
    for manner, variant in itertools.product(MANNERS, VARIANTS):
        chosen = [r for r in rows if (r["manner"], r["variant"]) == (manner, variant) and r["samples"] + r["errors"] + r["crash"]]
        if not chosen:
            continue
        sums = ", ".join(f"{sum(r[k] for r in chosen)} {k}" for k in COUNTS)
        lines.append(f"{manner}, {variant}: {_share(chosen)} records native; {sums}")
        lines.append(f"  in families: {_share([r for r in chosen if r['family'] in FAMILIES])}")
        lines += [f"    {family}: {_share([r for r in chosen if r['family'] == family])}" for family in FAMILIES]
        open_ = [r for r in chosen if r["family"] in FAMILIES and not is_native(r)]
        lines += [f"  {r['family']} {r['name']}: {r['native']} of {r['samples']}, {r['reason'][:110]}" for r in open_]
    return "\n".join(lines)


def _share(rows: list[dict[str, Any]]) -> str:
    native = sum(map(is_native, rows))
    return f"{native} of {len(rows)}" + (f" ({100 * native / len(rows):.1f} %)" if rows else "")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", default="a")
    parser.add_argument("--last", default="z")
    parser.add_argument("--only", help="names, separated by commas")
    parser.add_argument("--manners", default=",".join(MANNERS))
    parser.add_argument("--variants", default="function")
    parser.add_argument("--dtypes", default=",".join(str(d)[6:] for d in DTYPES))
    parser.add_argument("--most", type=int, help="samples of a record and dtype")
    parser.add_argument("--seconds", type=float, default=120, help="of one record")
    parser.add_argument("--json", type=Path, help="where rows are kept; rows of other records stay")
    options = parser.parse_args()
    only = options.only.split(",") if options.only else None
    dtypes = tuple(getattr(torch, d) for d in options.dtypes.split(","))
    torch.set_num_threads(1)
    rows = []
    for record in records(options.first, options.last):
        if only is not None and name_of(record) not in only and record.name not in only:
            continue
        for manner in options.manners.split(","):
            for variant in options.variants.split(","):
                row = run_apart(record, manner, variant, dtypes, options.most, options.seconds)
                if row is not None:
                    print(shown(row), flush=True)
                    rows.append(result(row))
    print(totals(rows))
    if options.json is not None:
        names = {row["name"] for row in rows}
        old = [r for r in json.loads(options.json.read_text()) if r["name"] not in names] if options.json.exists() else []
        kept = sorted(old + rows, key=lambda r: (r["name"], r["variant"], r["manner"]))
        options.json.write_text("[\n" + ",\n".join(json.dumps(row) for row in kept) + "\n]\n")


if __name__ == "__main__":
    main()
