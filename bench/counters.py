"""Reads the figures that bench and demo need out of the dict of `Session.stats()`; its layout is named here and nowhere else."""


def rung_cost_s(stats, rung):
    """Mean sampled cost of a ladder rung in seconds, or None when it was never timed."""
    cost = stats["ladder"][rung]["mean_ns"]
    return cost * 1e-9 if cost else None


def hit_rate(stats):
    return stats["ladder"]["hit_rate"]


def compilations(stats):
    return stats["compile"]["count"]


def compile_s(stats):
    return stats["compile"]["total_ms"] * 1e-3


def pool_peak_bytes(stats):
    return stats["pool"]["peak_bytes"]


def pool_growths(stats):
    return stats["pool"]["growths"]
