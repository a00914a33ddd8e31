"""Reads the figures that bench and demo need out of the dict of `Session.stats()`; its layout is named here
and nowhere else."""


def rung_cost_s(stats, rung):
    """Mean sampled cost of a ladder rung in seconds, or None when it was never timed."""
    (found,) = (r for r in stats["rungs"] if r["name"] == rung)
    return found["mean_ns"] * 1e-9 if found["samples"] else None


def hit_rate(stats):
    """Look-ups answered without a compilation, over all look-ups."""
    return stats["hit_rate"]


def compilations(stats):
    return stats["compilations"]


def compile_s(stats):
    """Seconds spent compiling, all entries together."""
    return stats["compile_seconds"]


def fallback_rate(stats):
    return stats["fallback_rate"]


def pool_peak_bytes(stats):
    """The most memory ever taken from the system for intermediates."""
    return stats["pool"]["peak_reserved_bytes"]


def pool_growths(stats):
    return stats["pool"]["growth_events"]
