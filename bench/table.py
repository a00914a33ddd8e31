"""The table of results: per row its figure, its ratio to the best rival, the target, reached or not."""

from rich.table import Table

from . import targets


def figure(value, unit="s"):
    """A number with its unit, three digits."""
    if value is None:
        return "-"
    if unit == "bytes":
        return f"{value / 2**20:.2f} MB"
    if unit != "s":
        return f"{value:.4g}{unit if unit == '×' else ''}"
    for scale, name in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(value) >= scale:
            return f"{value / scale:.3g} {name}"
    return f"{value / 1e-9:.3g} ns"


def _target_text(target, unit):
    sign = {"speed-up": "≥", "at least": "≥", "at most": "≤", "below": "<"}[target.kind]
    if target.kind == "speed-up":
        return f"{sign} {target.limit:g} × {target.rival or 'best rival'}"
    return f"{sign} {figure(target.limit, unit)}"


def render(rows):
    """One rich table over all groups."""
    table = Table(title="flexor bench", title_justify="left")
    for name, justify in (
        ("case", "left"),
        ("engine", "left"),
        ("median", "right"),
        ("min", "right"),
        ("n", "right"),
        ("floor", "right"),
        ("best rival ÷ this", "right"),
        ("target", "left"),
        ("", "left"),
    ):
        table.add_column(name, justify=justify, no_wrap=name in ("median", "min", ""))
    last = None
    for row in rows:
        if last is not None and row.group != last[0]:
            table.add_section()
        label = f"{row.group}: {row.case}" if (row.group, row.case) != last else ""
        last = (row.group, row.case)
        rival = targets.best_rival(row, rows) if row.median_s else None
        ratio = f"{rival.median_s / row.median_s:.2f}×" if rival else "-"
        target, verdict = targets.of(row), targets.reached(row, rows)
        main = figure(row.median_s) if row.value is None else figure(row.value, row.unit)
        mark = {
            True: "[green]reached[/]",
            False: "[red]not reached[/]",
            None: "[yellow]not compared[/]" if target else "",
        }[verdict]
        cells = (main, figure(row.min_s), str(row.n), figure(row.floor_s), ratio)
        style = "bold" if row.engine.startswith("flexor") else None
        table.add_row(label, row.engine, *cells, _target_text(target, row.unit) if target else "", mark, style=style)
    return table
