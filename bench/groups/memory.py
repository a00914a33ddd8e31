"""Memory of the encoder sweep: the pool's peak against the least that any schedule of the fused kernels needs."""

from .. import counters, programs
from ..rows import measured

LENGTHS = (33, 64, 100, 128, 177, 256)


def lower_bound_bytes(batch, length, dim=programs.DIM, ffn=4 * programs.DIM):
    """Maximum over the layer's fused steps of the bytes of live intermediates; input and output belong to the caller.

    Steps in order with what each writes (in floats per token): values live from the step that writes them to
    their last reader.
    """
    # name, floats per token, reads
    steps = (
        ("qkv", 3 * dim, ()),
        ("attended", dim, ("qkv",)),
        ("summed1", dim, ("attended",)),
        ("y", dim, ("summed1",)),
        ("hidden", ffn, ("y",)),
        ("summed2", dim, ("hidden", "y")),
        ("out", 0, ("summed2",)),
    )
    sizes = {name: size for name, size, _ in steps}
    last = {
        name: max((i for i, (_, _, reads) in enumerate(steps) if name in reads), default=i)
        for i, (name, _, _) in enumerate(steps)
    }
    # The last result is the caller's memory; a step's operands and what it writes are live together.
    worst = 0
    for i in range(len(steps)):
        worst = max(worst, sum(sizes[name] for j, (name, _, _) in enumerate(steps) if j <= i <= last[name]))
    return worst * batch * length * 4


def run(context):
    rows = []
    with context.built(("flexor",), "encoder") as pool:
        if "flexor" not in pool:
            return rows
        context.step("memory: encoder sweep")
        pool.ask("flexor", "reset")
        pool.ask("flexor", "each", program="encoder", shapes=[{"S": s} for s in LENGTHS], repeat=1)
        answer = pool.ask("flexor", "stats")
        if answer:
            peak, bound = counters.pool_peak_bytes(answer["stats"]), lower_bound_bytes(programs.BATCH, max(LENGTHS))
            shape = f"8x{max(LENGTHS)}x768"
            rows.append(measured("memory", "encoder sweep: pool peak", "flexor", shape, peak, "bytes"))
            rows.append(measured("memory", "encoder sweep: lower bound", "flexor", shape, bound, "bytes"))
            rows.append(measured("memory", "encoder sweep: peak / bound", "flexor", shape, peak / bound, "×"))
        growth = counters.pool_growths(answer["stats"]) if answer else None
        pool.ask("flexor", "each", program="encoder", shapes=[{"S": s} for s in LENGTHS], repeat=3)
        answer = pool.ask("flexor", "stats")
        if answer:
            again = counters.pool_growths(answer["stats"]) - growth
            rows.append(measured("memory", "steady state: pool growths", "flexor", "sweep", again, "count"))
    return rows
