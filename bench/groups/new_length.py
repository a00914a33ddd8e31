"""What a never-seen length costs against the same length repeated, over 100 lengths, the largest having run once.

A stall of the engine's own comes back in every fresh session, one of the machine does not: the worst stall is taken over
lengths, of the least that a length cost in several sessions. The same figure for repeated calls stands beside it. An
encoder of dim 64 takes the steps of the large one with a hundredth of the arithmetic, so that a stall of the engine is not lost
in what the machine does to a call of 100 ms.
"""

import statistics

from .. import programs
from ..rows import measured

RIVALS = ("torch-compile-dynamic", "onnxruntime")
PROGRAMS = {"chain": RIVALS, "encoder": RIVALS, "narrow_encoder": ()}
REPEAT = 3
SESSIONS = 3  # of Flexor; a fresh session of a rival would compile again, so it has one


def run(context):
    rows = []
    for program, rivals in PROGRAMS.items():
        with context.built(("flexor", *rivals), program) as pool:
            count = 10 if context.quick else 100
            lengths = [s for s in programs.distinct_lengths(count + 2) if s not in (256, 80)][:count]
            sessions = {}
            for turn in range(SESSIONS):
                context.step(f"new lengths: {program}, session {turn + 1} of {SESSIONS}")
                for engine in list(pool.workers) if turn == 0 else ["flexor"]:
                    if turn:
                        pool.ask(engine, "reset")
                    warmed = pool.ask(engine, "each", program=program, shapes=[{"S": 256}, {"S": 80}], repeat=1)
                    answer = warmed and pool.ask(
                        engine, "each", program=program, shapes=[{"S": s} for s in lengths], repeat=REPEAT
                    )
                    if answer:
                        sessions.setdefault(engine, []).append(answer["s"])
            for engine, of_engine in sessions.items():
                rows += _rows(program, engine, of_engine)
    return rows


def _rows(program, engine, sessions):
    """`sessions[k][i]` is [first, again, ...] of length i."""
    per_length = list(zip(*sessions))
    usual = [statistics.median(t for _, *again in runs for t in again) for runs in per_length]
    ratios = [statistics.median(first for first, *_ in runs) / u for runs, u in zip(per_length, usual)]
    first_of, again_of = ([min(run[k] for run in runs) for runs in per_length] for k in (0, -1))
    stall, jitter = (max(t - u for t, u in zip(times, usual)) for times in (first_of, again_of))
    dim = programs.NARROW if program == "narrow_encoder" else programs.DIM
    shape, n = f"8x[32..256]x{dim}", len(per_length) * len(sessions)
    return [
        measured("new_length", f"{program}: new / repeated", engine, shape, statistics.median(ratios), "×", n),
        measured("new_length", f"{program}: worst stall", engine, shape, stall, "s", n),
        measured("new_length", f"{program}: jitter of repeats", engine, shape, jitter, "s", n),
    ]
