"""The figures to reach, as data; the table marks each row with them."""

import dataclasses
import operator

from .engines import NOT_RIVALS


@dataclasses.dataclass(frozen=True)
class Target:
    """`kind`: "speed-up" against the best rival's median (or the one in `rival`), or "at most" / "at least" /
    "below" of the figure itself."""

    group: str
    case: str
    engine: str
    kind: str
    limit: float
    rival: str | None = None


def _encoder(case):
    return Target("encoder", case, "flexor", "speed-up", 1.0, "torch-compile-dynamic")


TARGETS = (
    *(_encoder(f"S={s}") for s in (33, 64, 100, 128, 177, 256)),
    _encoder("random lengths, each new"),
    Target("hit_rate", "64 calls: hit rate", "flexor-exact-only", "below", 0.20),
    Target("hit_rate", "64 calls: hit rate", "flexor", "at least", 0.98),
    Target("hit_rate", "500 calls: hit rate", "flexor", "at least", 0.995),
    Target("hit_rate", "500 calls: compilations", "flexor", "at most", 1),
    Target("new_length", "encoder: new / repeated", "flexor", "at most", 1.05),
    Target("new_length", "encoder: worst stall", "flexor", "at most", 2e-3),
    Target("new_length", "narrow_encoder: worst stall", "flexor", "at most", 2e-3),
    Target("new_length", "chain: new / repeated", "flexor", "at most", 1.05),
    Target("new_length", "chain: worst stall", "flexor", "at most", 2e-3),
    Target("overhead", "python", "flexor", "at most", 2e-6),
    Target("overhead", "python", "flexor-torch", "at most", 2e-6),
    Target("overhead", "jitted function, 3 tensors", "flexor-jit", "at most", 2.5e-6),
    Target("overhead", "c++", "flexor-cpp", "at most", 0.4e-6),
    Target("overhead", "exact rung", "flexor", "at most", 100e-9),
    Target("overhead", "symbolic rung", "flexor", "at most", 500e-9),
    Target("add_relu_sum", "add-relu-sum, sweep", "flexor", "speed-up", 1.08),
    Target("add_relu_sum", "add-relu-sum, hot", "flexor", "speed-up", 1.7),
    Target("chain", "sweep", "flexor", "speed-up", 1.45),
    Target("chain", "hot", "flexor", "speed-up", 1.6),
    Target("loops", "newton", "flexor-jit", "at most", 60e-6),
    Target("loops", "lstm", "flexor-jit", "at most", 2.3e-3),
    Target("loops", "nms", "flexor-jit", "at most", 0.5e-3),
    Target("loops", "nms_mask", "flexor-jit", "speed-up", 1.0, "torch-compile-dynamic"),
    Target("loops", "kv_cache", "flexor-jit", "speed-up", 1.0, "torch-compile-dynamic"),
    Target("loops", "early_exit", "flexor-jit", "speed-up", 1.5, "torch-eager"),
    Target("loops", "greedy", "flexor-jit", "speed-up", 1.5, "torch-eager"),
    Target("loops", "compact", "flexor-jit", "at most", 0.107e-3),
    *(Target("minilm", f"batch 1, S={s}", "flexor-jit", "speed-up", 1.0, "torch-eager") for s in (16, 64)),
    *(Target("minilm", f"batch 1, S={s}", "flexor-jit-frozen", "speed-up", 1.25, "torch-eager") for s in (16, 64)),
    Target("compile_time", "encoder layer: counted", "flexor", "at most", 0.150),
    Target("compile_time", "12 layers: counted", "flexor", "at most", 0.250),
    Target("compile_time", "cold process: MiniLM import, load, first result", "flexor", "at most", 1.0),
    Target("memory", "encoder sweep: peak / bound", "flexor", "at most", 1.1),
    Target("memory", "steady state: pool growths", "flexor", "at most", 0),
)

_COMPARE = {"speed-up": operator.ge, "at least": operator.ge, "at most": operator.le, "below": operator.lt}


def of(row):
    """The target of a row, or None."""
    return next((t for t in TARGETS if (t.group, t.case, t.engine) == (row.group, row.case, row.engine)), None)


def best_rival(row, rows, name=None):
    """The fastest rival row of the same case, or the one named; None when no rival ran."""
    same = [r for r in rows if (r.group, r.case) == (row.group, row.case) and r.median_s is not None]
    rivals = [r for r in same if (r.engine == name if name else r.engine not in NOT_RIVALS)]
    return min(rivals, key=lambda r: r.median_s, default=None)


def reached(row, rows):
    """True or False for a row with a target, None without one or when what it is compared with did not run."""
    target = of(row)
    if target is None:
        return None
    figure = row.median_s if row.value is None else row.value
    if target.kind == "speed-up":
        rival = best_rival(row, rows, target.rival)
        if rival is None:
            return None
        figure = rival.median_s / row.median_s
    return None if figure is None else _COMPARE[target.kind](figure, target.limit)
