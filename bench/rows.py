"""The result rows: one per (group, case, engine), written to JSON as they stand."""

import dataclasses
import json
import statistics
from pathlib import Path


@dataclasses.dataclass
class Row:
    """`median_s`, `min_s` and `floor_s` are seconds; a figure that is no time stands in `value` with its
    `unit` and leaves them None."""

    group: str
    case: str
    engine: str
    shape: str
    median_s: float | None = None
    min_s: float | None = None
    n: int = 0
    floor_s: float | None = None
    value: float | None = None
    unit: str = "s"
    precision: str = "float32"
    device: str = "cpu"
    cpu: str = ""


def timed(group, case, engine, shape, samples, floor_s=None):
    """A row from time samples in seconds."""
    return Row(group, case, engine, shape, statistics.median(samples), min(samples), len(samples), floor_s)


def measured(group, case, engine, shape, value, unit, n=1):
    """A row for a figure that is not a time: a rate, a ratio, bytes, a count."""
    return Row(group, case, engine, shape, value=value, unit=unit, n=n)


def cpu_name():
    """Model name, number of cores available, and the widest vector set."""
    import os

    fields = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, text = line.partition(":")
        fields.setdefault(key.strip(), text.strip())
    flags = fields.get("flags", fields.get("Features", "")).split()
    vectors = next((f for f in ("avx512_bf16", "avx512f", "avx2", "sve", "asimd") if f in flags), "scalar")
    name = fields.get("model name", "unknown")
    numbers = f"family {fields.get('cpu family', '?')} model {fields.get('model', '?')}"
    return f"{name} ({numbers}), {len(os.sched_getaffinity(0))} cores, {vectors}"


def write(path, rows):
    """One JSON object per line inside an array, so that differences between two result files stay readable."""
    text = ",\n".join(json.dumps(dataclasses.asdict(row)) for row in rows)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(f"[\n{text}\n]\n")
