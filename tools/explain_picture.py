#!/usr/bin/env python3
"""Draws what `flexor explain` prints: the steps of the call down the left, and beside them what the region became, from its ops over
its kernels to the steps of the tape."""

import html
import re
import sys

WIDTH, LINE, PAD, FONT = 1000, 17, 10, 12
STEPS = ["load", "symbolise", "match guards", "specialise", "generate", "register", "run"]


class Drawing:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self.height = 0

    def box(self, x: int, y: int, width: int, title: str, lines: list[str], fill: str) -> int:
        """Returns the y below the box."""
        height = PAD * 2 + LINE * (len(lines) + 1) - 4
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{fill}" stroke="#555"/>')
        self.text(x + PAD, y + PAD + FONT, title, bold=True)
        for i, line in enumerate(lines):
            self.text(x + PAD, y + PAD + FONT + LINE * (i + 1), line)
        self.height = max(self.height, y + height + PAD)
        return y + height

    def text(self, x: int, y: int, text: str, bold: bool = False) -> None:
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(f'<text x="{x}" y="{y}"{weight}>{html.escape(text)}</text>')

    def arrow(self, x1: int, y1: int, x2: int, y2: int) -> None:
        self.parts.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#555" marker-end="url(#head)"/>')

    def svg(self) -> str:
        marker = (
            '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
            '<path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>'
        )
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" '
            f'font-family="monospace" font-size="{FONT}">\n<rect width="100%" height="100%" fill="white"/>'
        )
        return "\n".join([head, marker, *self.parts, "</svg>"]) + "\n"


def folded(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` letters, broken at spaces."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def part(text: str, title: str) -> list[str]:
    """The lines of one part of the listing."""
    for block in text.split("\n\n"):
        if block.startswith(title):
            return block.splitlines()
    return []


def draw(text: str) -> str:
    drawing = Drawing()
    steps = dict(re.match(r"(\S+(?: \S+)*)\s{2,}(.*)", line).groups() for line in text.partition("\n\n")[0].splitlines())  # type: ignore[union-attr]
    y, middles = PAD, {}
    for step in STEPS:
        top = y
        y = drawing.box(PAD, y, 390, step, folded(steps[step], 50), "#eef4fb")
        middles[step] = (top + y) // 2
        if step != STEPS[-1]:
            drawing.arrow(205, y, 205, y + 18)
        y += 18

    ops = [line.strip() for line in part(text, "specialised") if re.match(r"\s+[A-Z_]+ %", line)]
    kernels = [line.strip() for line in part(text, "kernels of") if line.startswith("  kernel")]
    body = [line.strip() for line in part(text, "kernels of") if re.match(r"\s+(v|s)\d+ =|\s+(row )?parallel|\s+row ", line)]
    tape = [line.strip() for line in part(text, "executable") if re.match(r"\s+(alloc|output|launch|call|return|frame)\b", line)]
    guards = [line for line in part(text, "executable") if line.startswith("guards")]
    rows = [
        ("specialise", "the region: ops over symbolic sizes", ops, "#f3f9ee"),
        ("generate", "what they became: " + ", ".join(re.findall(r"kernel (\S+?)\(", " ".join(kernels))), body, "#fdf6e8"),
        ("register", "the tape that a hit runs", [line.partition("  ")[2] for line in guards] + tape, "#f9eef5"),
    ]
    y = PAD
    for step, title, lines, fill in rows:
        top = y
        y = drawing.box(460, y, WIDTH - 460 - PAD, title, [piece for line in lines for piece in folded(line, 70)], fill)
        drawing.arrow(400, middles[step], 458, (top + y) // 2)
        y += 24
    return drawing.svg()


if __name__ == "__main__":
    sys.stdout.write(draw(sys.stdin.read()))
