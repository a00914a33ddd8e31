"""Flexor on a real model: 200 and more texts of different lengths, one compilation, beside PyTorch; then the
classic experiment.

Run it with `./dev demo`. PyTorch is only a rival here: without it those columns are left out.
Options: --texts N (distinct lengths), --no-rivals.
"""

import importlib.util
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: E402
from rich.table import Table  # noqa: E402

import flexor  # noqa: E402
from bench import counters, models, programs, weights  # noqa: E402
from bench.pool import Pool  # noqa: E402
from bench.table import figure  # noqa: E402
from demo import picture, texts  # noqa: E402

RIVALS = ("torch-eager", "torch-compile-dynamic")
BINS = (16, 32, 64, 128, 256, 512)
MODULE_FILE = ROOT / "build" / "demo" / "minilm.flx"
PICTURE_FILE = ROOT / "build" / "demo" / "latency.png"
MIN_COSINE = 0.99999

CONSOLE = Console()
if not CONSOLE.is_terminal:
    CONSOLE = Console(width=120)


def progress():
    """A bar redrawn between calls only: no thread of its own beside what is measured."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=CONSOLE, auto_refresh=False)


def timed(call, *arguments):
    start = time.perf_counter()
    result = call(*arguments)
    return time.perf_counter() - start, result


def load_tokenizer():
    """The model's own tokenizer with its padding and truncation switched off."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(weights.minilm_files()["tokenizer.json"]))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def load_module():
    """Builds MiniLM with the Builder, writes it to a file and loads it from there, as a server would."""
    MODULE_FILE.parent.mkdir(parents=True, exist_ok=True)
    build_s, module = timed(models.minilm, weights.minilm_weights(), weights.minilm_config())
    module.save(str(MODULE_FILE))
    load_s, module = timed(flexor.load, str(MODULE_FILE))
    size = MODULE_FILE.stat().st_size
    CONSOLE.print(
        f"built in {figure(build_s)}, {MODULE_FILE.name} has {figure(size, 'bytes')}, loaded in {figure(load_s)}"
    )
    return module


def start_rivals():
    """Rival processes with the model built, or an empty pool when PyTorch is not installed."""
    names = RIVALS if "--no-rivals" not in sys.argv else ()
    if names and importlib.util.find_spec("torch") is None:
        CONSOLE.print("torch is not installed: rival columns and the comparison of embeddings are skipped")
        names = ()
    pool = Pool(names, lambda text: CONSOLE.print("note:", text, style="yellow", markup=False))
    pool.ask_all("build", program="minilm")
    for name in list(pool.workers):
        # Two lengths, so that a compiler that guesses has seen the dim vary before it is timed.
        answer = pool.ask(name, "each", program="minilm", shapes=[{"S": 100}, {"S": 37}])
        if answer:
            CONSOLE.print(f"{name}: first call {figure(answer['s'][0][0])}")
    return pool


def embed_all(session, module, inputs, rivals):
    """Every text through every engine in turn, two calls each.

    Returns embeddings {engine: [N, D] array}, and per text {engine: (first call, repeated call)} in seconds.
    """
    embeddings, latencies = {"flexor": []}, []
    with progress() as bar:
        task = bar.add_task("embedding texts", total=len(inputs))
        for _, ids in inputs:
            array = np.array([ids], np.int64)
            first, embedding = timed(session.run, module, array)
            again, _ = timed(session.run, module, array)
            embeddings["flexor"].append(embedding[0])
            row = {"flexor": (first, again)}
            for name, answer in rivals.ask_all("call", program="minilm", inputs=[[ids]], repeat=1).items():
                embeddings.setdefault(name, []).append(answer["result"][0])
                row[name] = tuple(answer["s"])
            latencies.append(row)
            bar.update(task, advance=1, refresh=True)
    return {name: np.array(rows) for name, rows in embeddings.items() if len(rows) == len(inputs)}, latencies


def print_latency(inputs, latencies):
    """Median latency per range of lengths: a new length's first call and the same call repeated."""
    table = Table(title="latency per length (medians)", title_justify="left")
    table.add_column("tokens")
    table.add_column("texts", justify="right")
    engines = list(latencies[0])
    for name in engines:
        for call in ("first", "repeated"):
            table.add_column(f"{name}\n{call}", justify="right")
    table.add_column("eager ÷ flexor", justify="right")
    low = 3
    for high in BINS:
        rows = [r for (_, ids), r in zip(inputs, latencies) if low <= len(ids) <= high]
        if rows:
            medians = {n: [statistics.median(r[n][i] for r in rows) for i in (0, 1)] for n in engines if n in rows[0]}
            cells = [figure(s) for n in engines for s in medians[n]]
            eager = medians.get("torch-eager")
            ratio = f"{eager[1] / medians['flexor'][1]:.2f}×" if eager else "-"
            table.add_row(f"{low}..{high}", str(len(rows)), *cells, ratio)
        low = high + 1
    CONSOLE.print(table)


def print_agreement(embeddings):
    """Cosine of Flexor's embeddings against each rival's; returns whether all are close enough."""
    agreed = True
    for name, other in embeddings.items():
        if name != "flexor":
            ours = embeddings["flexor"].astype(np.float64)
            cosine = (ours * other).sum(1) / np.linalg.norm(ours, axis=1) / np.linalg.norm(other, axis=1)
            agreed &= bool(cosine.min() >= MIN_COSINE)
            CONSOLE.print(
                f"embeddings against {name}: smallest cosine {cosine.min():.8f} (wanted: at least {MIN_COSINE})"
            )
    return agreed


def print_search(session, module, tokenizer, inputs, embeddings):
    """Semantic search over the texts: the three nearest for each query."""
    table = Table(title="semantic search", title_justify="left", show_lines=True)
    table.add_column("query", ratio=2)
    table.add_column("nearest texts (cosine)", ratio=5)
    for query in texts.QUERIES:
        wanted = session.run(module, np.array([tokenizer.encode(query).ids], np.int64))[0]
        scores = embeddings @ wanted
        best = np.argsort(-scores)[:3]
        hits = "\n".join(f"{scores[i]:.3f}  {inputs[i][0][:95]}{'…' if len(inputs[i][0]) > 95 else ''}" for i in best)
        table.add_row(query, hits)
    CONSOLE.print(table)


def sentence_encoder():
    """Part (a). Returns whether the embeddings agree with PyTorch's."""
    CONSOLE.rule("(a) all-MiniLM-L6-v2 on real texts")
    tokenizer = load_tokenizer()
    wanted = int(sys.argv[sys.argv.index("--texts") + 1]) if "--texts" in sys.argv else 200
    inputs = texts.collect(tokenizer, wanted)
    lengths = [len(ids) for _, ids in inputs]
    CONSOLE.print(
        f"{len(inputs)} texts, {len(set(lengths))} distinct lengths in {min(lengths)}..{max(lengths)} tokens:"
    )
    CONSOLE.print(" ".join(map(str, sorted(set(lengths)))), style="dim", highlight=False)
    module = load_module()
    session = flexor.Session()
    with start_rivals() as rivals:
        embeddings, latencies = embed_all(session, module, inputs, rivals)
        latencies = [{n: t for n, t in row.items() if n in embeddings} for row in latencies]
    print_latency(inputs, latencies)
    agreed = print_agreement(embeddings)
    stats = session.stats()
    CONSOLE.print(f"hit rate {counters.hit_rate(stats):.2%} with {counters.compilations(stats)} compilation(s)")
    print_search(session, module, tokenizer, inputs, embeddings["flexor"])
    curves = {n: {len(ids): row[n][0] for (_, ids), row in zip(inputs, latencies)} for n in embeddings}
    # The very first call of Flexor compiles; the picture shows what every later length costs.
    curves["flexor"][lengths[0]] = latencies[0]["flexor"][1]
    written = picture.write(PICTURE_FILE, curves)
    CONSOLE.print(f"picture: {written.relative_to(ROOT)}" if written else "matplotlib is not installed: no picture")
    CONSOLE.print(session.dashboard(), markup=False, highlight=False)
    return agreed


def classic_experiment(calls=64):
    """Part (b): the encoder layer at random lengths, without symbols and with them."""
    CONSOLE.rule("(b) encoder layer, B=8, S drawn from [32, 256], D=768: exact-only against symbolic")
    module = models.encoder()
    shapes = [{"S": s} for s in programs.sweep_lengths(calls)]
    table = Table(title=f"{calls} calls", title_justify="left")
    for name in ("mode", "hit rate", "compilations", "median latency", "slowest call", "all calls"):
        table.add_column(name, justify="left" if name == "mode" else "right")
    for mode, exact_only in (("exact-only (before)", True), ("symbolic (after)", False)):
        session, times = flexor.Session(exact_only=exact_only), []
        with progress() as bar:
            task = bar.add_task(mode, total=calls)
            for shape in shapes:
                times.append(timed(session.run, module, *programs.inputs("encoder", shape))[0])
                bar.update(task, advance=1, refresh=True)
        stats = session.stats()
        cells = [figure(t) for t in (statistics.median(times), max(times), sum(times))]
        table.add_row(mode, f"{counters.hit_rate(stats):.1%}", str(counters.compilations(stats)), *cells)
    CONSOLE.print(table)
    CONSOLE.print(session.dashboard(), markup=False, highlight=False)


def main():
    agreed = sentence_encoder()
    classic_experiment()
    if not agreed:
        CONSOLE.print("embeddings differ from PyTorch's", style="bold red")
    return 0 if agreed else 1


if __name__ == "__main__":
    sys.exit(main())
