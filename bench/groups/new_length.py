"""What a never-seen length costs against the same length repeated, over 100 lengths, the largest having run once."""

import statistics

from .. import programs
from ..rows import measured

ENGINES = ("flexor", "torch-compile-dynamic", "onnxruntime")
REPEAT = 5


def run(context):
    rows = []
    for program in ("chain", "encoder"):
        with context.built(ENGINES, program) as pool:
            count = 10 if context.quick else 100
            lengths = [s for s in programs.distinct_lengths(count + 2) if s not in (256, 80)][:count]
            context.step(f"new lengths: {program}")
            pool.ask_all("each", program=program, shapes=[{"S": 256}, {"S": 80}], repeat=1)
            answers = pool.ask_all("each", program=program, shapes=[{"S": s} for s in lengths], repeat=REPEAT)
            for engine, answer in answers.items():
                rows += _rows(program, engine, answer["s"])
    return rows


def _rows(program, engine, per_length):
    """Ratio and worst stall of first calls; the worst repeat against its own median is this machine's jitter,
    shown beside."""
    usual = [statistics.median(again) for _, *again in per_length]
    ratios = [first / u for (first, *_), u in zip(per_length, usual)]
    stall = max(first - u for (first, *_), u in zip(per_length, usual))
    jitter = max(max(again) - u for (_, *again), u in zip(per_length, usual))
    shape, n = "8x[32..256]x768", len(per_length)
    return [
        measured("new_length", f"{program}: new / repeated", engine, shape, statistics.median(ratios), "×", n),
        measured("new_length", f"{program}: worst stall", engine, shape, stall, "s", n),
        measured("new_length", f"{program}: jitter of repeats", engine, shape, jitter, "s", n * REPEAT),
    ]
