#!/usr/bin/env python3
"""The tables of README.md and docs/rivals.md, from the newest of bench/results/*.json for each processor and from the sessions that ran on
cards. Without results there are no tables. The README shows the processor of which the most is measured; docs/rivals.md shows all.

tools/generate.py writes them; run alone, this prints those of the README."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
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
    """The goals on the processor of which most groups are measured (of equals the newest), and the programs on cards."""
    of_cpus = sorted(results(), key=lambda result: (len({row.group for row in result[1]}), result[0].name))
    tables = [_goals_table(path, rows) for path, rows in of_cpus[-1:]]
    return "\n".join(tables + [_card_table(path) for path in sessions_on_cards()]) or NOTHING_YET


def _goals_table(path: Path, rows: list[Row]) -> str:
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


def rivals_tables() -> str:
    """Two tables a processor: each figure with a goal or a rival, and every engine of every timed case."""
    both = (part for path, rows in results() for part in (_goals_table(path, rows), _engines_table(path, rows)))
    return "\n".join(both) or NOTHING_YET


def _engines_table(path: Path, rows: list[Row]) -> str:
    timed = [row for row in rows if row.median_s is not None]
    engines = list(dict.fromkeys(row.engine for row in timed))
    engines.sort(key=lambda name: (not name.startswith("flexor"), name in NOT_RIVALS, name))
    by_place = {(row.group, row.case, row.engine): row for row in timed}
    body = []
    for group, case in cases(timed):
        line = [by_place.get((group, case, engine)) for engine in engines]
        body.append([f"{group}: {case}", *(figure(row.median_s) if row else "" for row in line)])
    return "All engines:\n\n" + table(["case", *engines], body)


def sessions_on_cards() -> list[Path]:
    return sorted((ROOT / "bench/results").glob("gpu-session-*.json"))


def beside_torch(case: dict[str, Any]) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """The places of a case of tools/gpu/session.py where both engines were timed: the keys that lead there, and the dict of the times."""
    if isinstance(case.get("flexor"), dict) and isinstance(case.get("torch"), dict):
        yield [], case
    for key, value in case.items():
        if isinstance(value, dict):
            yield from (([key, *keys], times) for keys, times in beside_torch(value))


def _card_table(path: Path) -> str:
    session = json.loads(path.read_text())
    body = []
    for case in session["cases"]:
        for keys, times in beside_torch(case):
            sizes = "".join(", " + re.sub(r"^(?:(.*)_)?(\d+)$", r"\1 S=\2", key).strip() for key in keys if key != "timed")
            ours, torch = (times[engine]["back_to_back_us"] * 1e-6 for engine in ("flexor", "torch"))
            host = figure(times["flexor"]["host_us"] * 1e-6)
            body.append([case["case"] + sizes, figure(ours), figure(torch), f"{torch / ours:.2f}×", host])
        if "sweep_flexor_us" in case and "sweep_torch_us" in case:
            ours, torch = (case[f"sweep_{engine}_us"]["mean"] * 1e-6 for engine in ("flexor", "torch"))
            body.append([case["case"] + ", lengths as they come, mean", figure(ours), figure(torch), f"{torch / ours:.2f}×", ""])
    head = ["program", "Flexor", "torch, eager", "torch ÷ Flexor", "host time of a call"]
    return f"{session['card']}; calls back to back, or each with a wait where lengths change from call to call; `bench/results/{path.name}`.\n\n" + table(head, body)


if __name__ == "__main__":
    print(readme_table(), end="")
