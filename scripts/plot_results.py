#!/usr/bin/env python3
"""Draws figures from the tables of pages of docs, as SVG that follows a light or dark theme.

    scripts/plot_results.py [--check]

Writes docs/results/calibration-cpu.svg and docs/figures/goodput.svg; the same tables give the same bytes. With --check it
writes nothing and fails when a figure is not what the tables of its page give.
"""
import math
import pathlib
import re
import sys
from html import escape

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
NUMBER = r"[-+]?\d+(?:\.\d+)?"
# After the colour-blind-safe palette of Okabe and Ito: darker on a light ground, lighter on a dark one.
STYLE = """
  .ground { fill: #ffffff } text { fill: #1f2328; font: 13px sans-serif } .small { font-size: 12px }
  .grid { stroke: #d0d7de } .zero { stroke: #1f2328; stroke-width: 1.5 }
  .s0 { fill: #0072b2; stroke: #0072b2 } .s1 { fill: #c04f00; stroke: #c04f00 } .s2 { fill: #00805e; stroke: #00805e }
  .s3 { fill: #a3477f; stroke: #a3477f }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117 } text { fill: #e6edf3 } .grid { stroke: #30363d } .zero { stroke: #e6edf3 }
    .s0 { fill: #56b4e9; stroke: #56b4e9 } .s1 { fill: #e69f00; stroke: #e69f00 } .s2 { fill: #2fc79a; stroke: #2fc79a }
    .s3 { fill: #e29ac4; stroke: #e29ac4 }
  }
"""


def tables_of(page, heading):
    """The tables under the heading that begins so: lists of rows, each a list of cells without emphasis."""
    sections = [text for text in re.split(r"^## ", page, flags=re.MULTILINE)[1:] if text.startswith(heading)]
    if len(sections) != 1:
        sys.exit(f"docs: expected one heading that begins with \"{heading}\"")
    blocks = re.findall(r"(?:^\|.*\n)+", sections[0], re.MULTILINE)
    return [[[cell.strip().replace("**", "") for cell in line.strip("|").split("|")] for line in block.splitlines()]
            for block in blocks]


def text(x, y, words, anchor="start", kind="small"):
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def line(x1, y1, x2, y2, kind, width=1):
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke-width="{width}"/>'


def svg(width, height, title, parts):
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            f'role="img"><title>{escape(title)}</title><style>{STYLE}</style>')
    return "\n".join([head, f'<rect class="ground" width="{width}" height="{height}"/>', *parts, "</svg>", ""])


def marker(shape, x, y, kind):
    """A circle, square, diamond or triangle, so that groups differ by more than colour."""
    if shape == 0:
        return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>'
    corners = {1: [(-4, -4), (4, -4), (4, 4), (-4, 4)], 2: [(0, -6), (6, 0), (0, 6), (-6, 0)],
               3: [(0, -6), (5.5, 4.5), (-5.5, 4.5)]}[shape]
    return f'<polygon class="{kind}" points="' + " ".join(f"{x + a:.1f},{y + b:.1f}" for a, b in corners) + '"/>'


def calibration_figure(page):
    """Errors of calibration runs as multiples of what each gate allows, on a logarithmic axis."""
    table = tables_of(page, "Errors")[0]
    groups = [("idle, full (9, 10)", ["9 full", "10 full"]), ("idle, quick (11)", ["11 quick, mix"]),
              ("quiet, quick (7, 8)", ["7 quick, mix", "8 quick, mix"]), ("busy, quick (6)", ["6 quick, mix"])]
    gates = [("repeat, 95th percentile", "repeat"), ("held-out sizes, mean", "held-out sizes"),
             ("  gemm_naive16", "of them gemm_naive16"), ("  gemm_tiled", "gemm_tiled"), ("  gemm_fp32", "gemm_fp32"),
             ("composite steps, mean", "composite steps"), ("pairs on one device", "co-location, mean error"),
             ("job mix, worst schedule", "job mix, mean completion time")]
    left, right, top, step = 190, 690, 62, 30
    bottom = top + step * len(gates)

    def x_of(ratio):
        return left + (right - left) * math.log(ratio / 0.2) / math.log(20 / 0.2)

    parts = [text(12, 22, "Error as a multiple of what the gate allows", kind="title")]
    for at, (name, _) in enumerate(groups):
        parts += [marker(at, 20 + 170 * at, 42, f"s{at}"), text(32 + 170 * at, 46, name)]
    for tick in (0.2, 0.5, 1, 2, 5, 10, 20):
        parts += [line(x_of(tick), top, x_of(tick), bottom, "zero" if tick == 1 else "grid"),
                  text(x_of(tick), bottom + 18, f"{tick:g}", "middle")]
    for row, (label, begin) in enumerate(gates):
        y = top + step * (row + 0.5)
        parts += [line(left, y, right, y, "grid"), text(24 if label.startswith(" ") else 12, y + 4, label.strip())]
        found = next(cells for cells in table if cells[0].startswith(begin))
        for at, (_, columns) in enumerate(groups):
            for column in columns:
                cell = found[table[0].index(column)]
                # Of "20.8 (5.0)" the figure before the brackets; of a list of schedules the worst.
                figures = [float(figure) for figure in re.findall(NUMBER, re.sub(r"\(.*?\)", "", cell))]
                if figures:
                    allowed = float(re.match(NUMBER, found[1]).group())
                    parts.append(marker(at, x_of(max(figures) / allowed), y + 5 * (at - 1.5), f"s{at}"))
    return svg(720, bottom + 34, "Errors of calibration runs as multiples of their gates", parts)


def goodput_figure(page):
    """Goodput, overhead and lost GPU time against the interval of checkpoints, which is logarithmic."""
    table = next(table for table in tables_of(page, "What comes out") if table[0][0] == "interval")
    columns = [("goodput", 1), ("overhead: checkpoints, restarts", 2), ("lost: done again", 3)]
    fixed = [(float(cells[0].rstrip(" s").replace(",", "")), cells) for cells in table[2:] if cells[0].endswith(" s")]
    left, right = 56, 690
    panels = [(62, 200, 90, 100, [90, 92, 94, 96, 98, 100]), (236, 374, 0, 10, [0, 2, 4, 6, 8, 10])]  # percent

    def x_of(interval):
        return left + (right - left) * math.log(interval / 500) / math.log(100_000 / 500)

    parts = [text(12, 22, "GPU time that jobs held, by checkpoint interval: Philly at RSC-1's rate of failures", kind="title")]
    for at, (name, _) in enumerate(columns):
        parts += [marker(at, 20 + 240 * at, 42, f"s{at}"), text(32 + 240 * at, 46, name)]
    for top, bottom, low, high, ticks in panels:
        for tick in ticks:
            y = bottom - (bottom - top) * (tick - low) / (high - low)
            parts += [line(left, y, right, y, "grid"), text(left - 6, y + 4, f"{tick} %", "end")]
    for interval, _ in fixed:
        parts += [line(x_of(interval), panels[0][0], x_of(interval), panels[1][1], "grid"),
                  text(x_of(interval), panels[1][1] + 18, f"{interval:,.0f} s", "middle")]
    young = next(cells for cells in table if cells[0] == "Young")
    for at, (_, column) in enumerate(columns):
        top, bottom, low, high, _ = panels[0 if at == 0 else 1]

        def y_of(cells):
            return bottom - (bottom - top) * (float(re.match(NUMBER, cells[column]).group()) - low) / (high - low)

        points = [(x_of(interval), y_of(cells)) for interval, cells in fixed]
        parts += [line(*a, *b, f"s{at}", 1.5) for a, b in zip(points, points[1:])]
        parts += [marker(at, x, y, f"s{at}") for x, y in points]
        # Young's interval differs from job to job: a line across.
        parts.append(line(left, y_of(young), right, y_of(young), f"s{at}", 0.75))
    parts.append(text(12, panels[1][1] + 40, "Thin lines: Young's interval, which depends on the nodes of each job."))
    return svg(720, panels[1][1] + 52, "Goodput, overhead and lost GPU time by checkpoint interval", parts)


FIGURES = (  # page, figure, how it is drawn
    ("results/calibration-cpu.md", "results/calibration-cpu.svg", calibration_figure),
    ("failures.md", "figures/goodput.svg", goodput_figure),
)


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    stale = []
    for page, name, draw in FIGURES:
        drawn = draw((DOCS / page).read_text(encoding="utf-8"))
        figure = DOCS / name
        if not check:
            figure.write_text(drawn, encoding="utf-8")
        elif not figure.is_file() or figure.read_text(encoding="utf-8") != drawn:
            stale.append(f"docs/{name}: not what the tables give; run scripts/plot_results.py")
    print("\n".join(stale) if stale else "the figures show what the tables say")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
