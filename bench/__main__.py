"""`python -m bench [--json FILE] [--quick] [--force] [--group NAME,...] [--engine NAME,...]`

Measures every group, prints the table, writes the rows. Refuses to start while another process uses the CPU
(--force overrides).
Exit code 0 when every target that was compared is reached, 1 when one is not or nothing ran, 2 on a refusal or
a usage error.
"""

import importlib
import sys

from rich.console import Console

from . import engines, groups, quiet, rows, table, targets
from .context import Context

ENGINES = (*engines.ENGINES, "flexor-cpp")
CONSOLE = Console()
if not CONSOLE.is_terminal:
    CONSOLE = Console(width=180)
ERRORS = Console(stderr=True)


def _options(arguments):
    """{"json", "quick", "force", "group", "engine"}; raises ValueError with one sentence on anything else."""
    options = {"json": None, "quick": False, "force": False, "group": groups.NAMES, "engine": None}
    todo = list(arguments)
    while todo:
        word = todo.pop(0)
        name, equals, text = word.removeprefix("--").partition("=")
        if not word.startswith("--") or name not in options:
            raise ValueError(f"unknown argument {word!r}")
        if name in ("quick", "force"):
            options[name] = True
            continue
        if not equals and not todo:
            raise ValueError(f"--{name} wants a value")
        value = text if equals else todo.pop(0)
        options[name] = value if name == "json" else tuple(value.split(","))
    for name, known in (("group", groups.NAMES), ("engine", ENGINES)):
        unknown = [v for v in options[name] or () if v not in known]
        if unknown:
            raise ValueError(f"unknown {name} {unknown[0]!r}; there are: {', '.join(known)}")
    return options


def main(arguments):
    if "--help" in arguments:
        print(__doc__)
        return 0
    try:
        options = _options(arguments)
    except ValueError as error:
        ERRORS.print(f"bench: {error}")
        return 2
    busy = quiet.complaint()
    if busy and not options["force"]:
        ERRORS.print(f"bench: {busy}. Figures would be wrong; wait, or pass --force.")
        return 2
    if busy:
        ERRORS.print(f"[yellow]warning[/]: {busy}; figures are not to be trusted")

    notes, results = [], []
    with CONSOLE.status("starting") as status:
        for name in options["group"]:
            context = Context(options["quick"], notes.append, status.update, options["engine"])
            results += importlib.import_module(f"bench.groups.{name}").run(context)
    cpu = rows.cpu_name()
    for row in results:
        row.cpu = cpu
    CONSOLE.print(f"{cpu}" + (" · quick: fewer than 20 samples" if options["quick"] else ""))
    CONSOLE.print(table.render(results))
    for note in dict.fromkeys(notes):
        CONSOLE.print("note:", note, style="yellow", markup=False, highlight=False)
    if options["json"]:
        rows.write(options["json"], results)
    verdicts = [targets.reached(row, results) for row in results]
    return 1 if False in verdicts or not results else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
