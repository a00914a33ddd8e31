#!/usr/bin/env python3
"""The tables of README.md and docs/rivals.md, from the newest of bench/results/*.json for each processor. Without one there are no tables.

tools/generate.py writes them; run alone, this prints the table of the README."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench import targets  # noqa: E402
from bench.engines import NOT_RIVALS  # noqa: E402
from bench.rows import Row  # noqa: E402

NOTHING_YET = "No result file is committed yet; `./dev bench` prints the table of this machine.\n"


def figure(value: float | None, unit: str = "s") -> str:
    """A number with its unit, three digits."""
    if value is None:
        return ""
    if unit == "bytes":
        return f"{value / 2**20:.2f} MB"
    if unit != "s":
        return f"{value:.4g}{unit if unit == '×' else ''}"
    for scale, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(value) >= scale:
            return f"{value / scale:.3g} {name}"
    return f"{value / 1e-9:.3g} ns"


def results() -> list[tuple[Path, list[Row]]]:
    """Of each processor the result file with the last name, by the date that names begin with, and its rows."""
    known = set(Row.__dataclass_fields__)
    of_cpu: dict[str, tuple[Path, list[Row]]] = {}
    for path in sorted((ROOT / "bench/results").glob("[0-9]*.json")):
        rows = [Row(**{key: value for key, value in row.items() if key in known}) for row in json.loads(path.read_text())]
        of_cpu[next((row.cpu for row in rows if row.cpu), "an unnamed processor")] = path, rows
    return list(of_cpu.values())


def cases(rows: list[Row]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((row.group, row.case) for row in rows))


def goal(row: Row) -> str:
    target = targets.of(row)
    if target is None:
        return ""
    sign = {"speed-up": "≥", "at least": "≥", "at most": "≤", "below": "<"}[target.kind]
    return f"{sign} {target.limit:g}×" if target.kind == "speed-up" else f"{sign} {figure(target.limit, row.unit)}"


def verdict(row: Row, rows: list[Row]) -> str:
    return {True: "reached", False: "**not reached**", None: ""}[targets.reached(row, rows)]


def source(path: Path, rows: list[Row]) -> str:
    cpu = next((row.cpu for row in rows if row.cpu), "an unnamed processor")
    return f"{cpu}; medians, `bench/results/{path.name}`."


def table(head: list[str], body: list[list[Any]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in body]) + "\n"


def readme_table() -> str:
    """A table a processor: one line for each figure with a goal, and for each case in which a rival ran."""
    return "\n".join(_readme_table(path, rows) for path, rows in results()) or NOTHING_YET


def _readme_table(path: Path, rows: list[Row]) -> str:
    body = []
    for group, case in cases(rows):
        for row in rows:
            if (row.group, row.case) != (group, case) or not row.engine.startswith("flexor"):
                continue
            rival = targets.best_rival(row, rows) if row.median_s else None
            if targets.of(row) is None and (rival is None or row.engine != "flexor"):
                continue
            value = figure(row.median_s) if row.value is None else figure(row.value, row.unit)
            beside = f"{figure(rival.median_s)} ({rival.engine})" if rival else ""
            ratio = f"{rival.median_s / row.median_s:.2f}×" if rival and rival.median_s and row.median_s else ""
            name = "" if row.engine == "flexor" else f" ({row.engine})"
            body.append([f"{group}: {case}{name}", value, beside, ratio, goal(row), verdict(row, rows)])
    head = ["case", "Flexor", "best rival", "rival ÷ Flexor", "goal", ""]
    return source(path, rows) + " Above 1.00× Flexor is faster.\n\n" + table(head, body)


def rivals_table() -> str:
    """A table a processor: every engine of every timed case."""
    return "\n".join(_rivals_table(path, rows) for path, rows in results()) or NOTHING_YET


def _rivals_table(path: Path, rows: list[Row]) -> str:
    timed = [row for row in rows if row.median_s is not None]
    engines = list(dict.fromkeys(row.engine for row in timed))
    engines.sort(key=lambda name: (not name.startswith("flexor"), name in NOT_RIVALS, name))
    by_place = {(row.group, row.case, row.engine): row for row in timed}
    body = []
    for group, case in cases(timed):
        line = [by_place.get((group, case, engine)) for engine in engines]
        body.append([f"{group}: {case}", *(figure(row.median_s) if row else "" for row in line)])
    return source(path, rows) + "\n\n" + table(["case", *engines], body)


if __name__ == "__main__":
    print(readme_table(), end="")
