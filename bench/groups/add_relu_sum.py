"""(a + b).relu().sum(-1) on [8, S, 768]: 20 lengths out of cache, one hot; the classic relu(x + 1.0).sum()
beside it."""

from .. import floors, programs
from ..rows import timed

ENGINES = ("flexor", "torch-eager", "torch-compile", "torch-compile-dynamic", "onnxruntime", "numpy", "hand")
HOT = 129


def _bytes(program, length):
    return (2 if program == "add_relu_sum" else 1) * programs.BATCH * length * programs.DIM * 4


def run(context):
    rows = []
    lengths = programs.sweep_lengths()
    for program in ("add_relu_sum", "relu_sum"):
        with context.built(ENGINES, program) as pool:
            label = program.replace("_", "-")
            shapes = [{"S": s} for s in lengths]
            context.step(f"{label}: warming up")
            pool.ask_all("each", program=program, shapes=[{"S": 256}, {"S": 80}])
            samples = context.interleaved(pool, f"{label} sweep", "sweep", program=program, shapes=shapes)
            total = sum(_bytes(program, s) for s in lengths)
            floor = total / floors.read_bandwidth(total)
            rows += [
                timed("add_relu_sum", f"{label}, sweep", e, "20 lengths of 8xSx768", s, floor)
                for e, s in samples.items()
            ]
            pool.ask_all("drop")
            hot = {"program": program, "shape": {"S": HOT}, "warm": 5, "inner": 20}
            samples = context.interleaved(pool, f"{label} hot", "time", **hot)
            floor = _bytes(program, HOT) / floors.read_bandwidth(_bytes(program, HOT))
            rows += [timed("add_relu_sum", f"{label}, hot", e, f"8x{HOT}x768", s, floor) for e, s in samples.items()]
    return rows
