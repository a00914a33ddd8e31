"""Programs with loops and branches on values (bench/loops.py), as written for PyTorch: one size, hot, after another size."""

from ..rows import timed

ENGINES = ("flexor-jit", "torch-eager", "torch-compile-dynamic")
CASES = {"newton": 1024, "lstm": 50, "nms": 200, "nms_mask": 200, "kv_cache": 512, "early_exit": 4, "greedy": 1, "compact": 101_000}


def run(context):
    rows = []
    for program, size in CASES.items():
        with context.built(ENGINES, program) as pool:
            context.step(f"{program}: warming up")
            pool.ask_all("each", program=program, shapes=[{"N": size}, {"N": size + 1}, {"N": size}], repeat=2)
            samples = context.interleaved(pool, f"{program} hot", "time", program=program, shape={"N": size}, warm=3, inner=3)
            rows += [timed("loops", program, e, f"N={size}", s) for e, s in samples.items()]
    return rows
