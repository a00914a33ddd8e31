"""softmax(gelu(layer_norm(x)) + x, -1) on [8, S, 768]: 20 lengths out of cache, one hot. The floor is the
hand-written kernel."""

import statistics

from .. import programs
from ..rows import timed

ENGINES = ("flexor", "torch-eager", "torch-compile", "torch-compile-dynamic", "onnxruntime", "hand")
HOT = 129


def run(context):
    rows = []
    with context.built(ENGINES, "chain") as pool:
        context.step("chain: warming up")
        pool.ask_all("each", program="chain", shapes=[{"S": 256}, {"S": 80}])
        shapes = [{"S": s} for s in programs.sweep_lengths()]
        for case, cmd, shape, request in (
            ("sweep", "sweep", "20 lengths of 8xSx768", {"shapes": shapes}),
            ("hot", "time", f"8x{HOT}x768", {"shape": {"S": HOT}, "warm": 5, "inner": 5}),
        ):
            samples = context.interleaved(pool, f"chain {case}", cmd, program="chain", **request)
            floor = statistics.median(samples["hand"]) if "hand" in samples else None
            rows += [timed("chain", case, e, shape, s, floor) for e, s in samples.items()]
    return rows
