"""Is the machine quiet enough to measure on? Answers from /proc, over a short sample."""

import os
import time
from pathlib import Path

LIMIT = 0.10  # of one core, used by processes other than this one and its children


def _process_times():
    """{pid: (name, ticks used, parent)} of every readable process."""
    out = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                head, tail = (entry / "stat").read_text().rsplit(")", 1)
            except OSError:
                continue  # ended in the meantime
            fields = tail.split()
            out[int(entry.name)] = (head.split("(", 1)[1], int(fields[11]) + int(fields[12]), int(fields[1]))
    return out


def _busy_ticks():
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return user + nice + system + irq + softirq + steal


def _family(processes, root):
    """Pids of `root` and everything below it."""
    family, grew = {root}, True
    while grew:
        below = {pid for pid, (_, _, parent) in processes.items() if parent in family} - family
        family |= below
        grew = bool(below)
    return family


def others(sample_s=0.5):
    """(cores used by others, [(cores, name, pid), ...] with the largest first); stolen time counts as others."""
    tick = os.sysconf("SC_CLK_TCK")
    before, busy_before = _process_times(), _busy_ticks()
    time.sleep(sample_s)
    after, busy_after = _process_times(), _busy_ticks()
    used = {pid: (ticks - before.get(pid, ("", 0, 0))[1]) / tick / sample_s for pid, (_, ticks, _) in after.items()}
    ours = _family(after, os.getpid())
    total = (busy_after - busy_before) / tick / sample_s
    list_ = sorted(((u, after[p][0], p) for p, u in used.items() if p not in ours and u > 0), reverse=True)
    return max(0.0, total - sum(used[p] for p in ours)), list_


def complaint(sample_s=0.5):
    """None when quiet, else one sentence naming who is busy."""
    cores, busiest = others(sample_s)
    if cores <= LIMIT:
        return None
    names = ", ".join(f"{name} (pid {pid}, {share:.0%} of a core)" for share, name, pid in busiest[:3] if share > 0.02)
    return f"other processes use {cores:.2f} cores: {names or 'unnamed (host steal or short-lived)'}"
