"""Hit rate over random lengths in [32, 256], encoder layer: exact-only mode (the "before") against the
symbolic ladder."""

from .. import counters, programs
from ..rows import measured, timed

CALLS = (64, 500)


def run(context):
    rows = []
    for engine, counts in (("flexor-exact-only", CALLS[:1]), ("flexor", CALLS)):
        with context.built([engine], "encoder") as pool:
            for count in counts:
                if engine not in pool:
                    break
                context.step(f"hit rate: {engine}, {count} calls")
                pool.ask(engine, "reset")
                shapes = [{"S": s} for s in programs.sweep_lengths(count)]
                times = pool.ask(engine, "each", program="encoder", shapes=shapes)
                answer = pool.ask(engine, "stats")
                if not times or not answer:
                    break
                stats, case = answer["stats"], f"{count} calls"
                shape = "8x[32..256]x768"
                rows.append(
                    measured("hit_rate", f"{case}: hit rate", engine, shape, counters.hit_rate(stats), "", count)
                )
                rows.append(
                    measured("hit_rate", f"{case}: compilations", engine, shape, counters.compilations(stats), "count")
                )
                rows.append(timed("hit_rate", f"{case}: latency", engine, shape, [first for (first,) in times["s"]]))
    return rows
