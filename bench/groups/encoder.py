"""Encoder layer float32, B=8: six lengths side by side, and a sweep of lengths that are all new."""

from .. import floors, programs
from ..rows import timed

LENGTHS = (33, 64, 100, 128, 177, 256)
ENGINES = ("flexor", "torch-eager", "torch-compile", "torch-compile-dynamic", "onnxruntime", "onnxruntime-mha")
WARM = (256, 80)  # the largest first; two lengths, so that a compiler that guesses has seen the dim vary


def run(context):
    rows = []
    peak = floors.fma_peak()
    with context.built(ENGINES, "encoder") as pool:
        context.step("encoder: warming up")
        pool.ask_all("each", program="encoder", shapes=[{"S": s} for s in WARM])

        fresh = [s for s in programs.distinct_lengths(60) if s not in LENGTHS + WARM][: 8 if context.quick else 40]
        context.step(f"encoder: {len(fresh)} new lengths")
        floor = [programs.encoder_flops(programs.BATCH, s) / peak for s in fresh]
        answers = pool.ask_all("each", program="encoder", shapes=[{"S": s} for s in fresh])
        for engine, answer in answers.items():
            samples = [first for (first,) in answer["s"]]
            row = timed("encoder", "random lengths, each new", engine, "8x[32..256]x768", samples)
            row.floor_s = sorted(floor)[len(floor) // 2]
            rows.append(row)

        for length in LENGTHS:
            label = f"encoder S={length}"
            samples = context.interleaved(pool, label, "time", program="encoder", shape={"S": length}, warm=1)
            floor = programs.encoder_flops(programs.BATCH, length) / peak
            rows += [timed("encoder", f"S={length}", e, f"8x{length}x768", s, floor) for e, s in samples.items()]
            pool.ask_all("drop")
    return rows
