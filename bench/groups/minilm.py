"""all-MiniLM-L6-v2 as a module of PyTorch, batch 1, warm: jitted with live and with frozen weights, beside eager."""

from ..rows import timed

ENGINES = ("flexor-jit", "flexor-jit-frozen", "torch-eager", "torch-compile-dynamic")
LENGTHS = (16, 64)


def run(context):
    rows = []
    with context.built(ENGINES, "minilm") as pool:
        context.step("minilm: warming up")
        pool.ask_all("each", program="minilm", shapes=[{"S": s} for s in (48, 12)])
        for length in LENGTHS:
            samples = context.interleaved(pool, f"minilm S={length}", "time", program="minilm", shape={"S": length}, warm=3)
            rows += [timed("minilm", f"batch 1, S={length}", e, f"1x{length}", s) for e, s in samples.items()]
    return rows
