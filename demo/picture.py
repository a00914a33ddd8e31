"""The picture: latency over length, one curve per engine."""

from pathlib import Path

STYLE = {"flexor": ("#d1495b", 2.0), "torch-eager": ("#8d99ae", 1.2), "torch-compile-dynamic": ("#30638e", 1.2)}


def write(path, latencies):
    """`latencies` is {engine: {length: seconds}}; returns the path, or None when matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 5))
    for engine, by_length in latencies.items():
        lengths = sorted(by_length)
        color, width = STYLE[engine]
        axes.plot(lengths, [by_length[n] * 1e3 for n in lengths], label=engine, color=color, linewidth=width)
    axes.set(xlabel="tokens", ylabel="milliseconds", title="all-MiniLM-L6-v2, one text at a time, every length new")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130, bbox_inches="tight")
    return path
