#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes calibration-DEVICE.md and, beside it, calibration-DEVICE-errors.svg from a profile: gates, ceilings beside the
datasheet, and where the errors lie.

    calibration_report.py PROFILE.json FOLDER
"""
import html
import json
import math
import os
import re
import sys


def bar(ratio, full=0.3, width=30):
    return "#" * min(width, round(ratio / full * width))


def quantity(value):
    if value["source"] == "unavailable":
        return "unavailable"
    unit = "" if value["unit"] == "1" else value["unit"]
    if "bound" in value:
        sign, end = (">=", value["ci95"][0]) if value["bound"] == "at_least" else ("<=", value["ci95"][1])
        return f"not identified: {sign} {end:.4g} {unit}".strip()
    text = f"{value['value']:.4g} {unit}".strip()
    if "ci95" in value:
        text += f" [{value['ci95'][0]:.4g}, {value['ci95'][1]:.4g}]"
    return text


def datasheet_of(model):
    """The name and peaks of the shipped profile that the model's name begins with ("A100-SXM4-80GB": A100)."""
    folder = os.path.join(os.path.dirname(__file__), "..", "profiles")
    names = [file[:-len(".json")] for file in os.listdir(folder) if file.endswith(".json")]
    begins = [name for name in names if model.lower().startswith(name.lower())]
    if not begins:
        return "", {}
    name = max(begins, key=len)
    with open(os.path.join(folder, name + ".json")) as file:
        return name, json.load(file)["peaks"]


def kernel_of(point):
    """The group that a point is shown in: its kernel, or 'steps' for composite ones."""
    words = point["id"].split()
    return "steps" if words[0] == "step" else words[1] if words[0] == "held" else words[0]


COLOURS = ["#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#97bbf5", "#9c6b4e", "#9498a0",
           "#1f2a5c", "#8a8a00", "#b5121b", "#00707a", "#d0d000", "#5a1a5a"]


class Plot:
    """One square panel of an SVG with logarithmic axes."""
    SIDE = 300

    def __init__(self, left, title, x_label, y_label, x_range, y_range):
        self.left, self.x_range, self.y_range = left, x_range, y_range
        self.parts = [f'<text x="{left + self.SIDE / 2}" y="20" text-anchor="middle" font-weight="bold">{title}</text>',
                      f'<rect x="{left}" y="30" width="{self.SIDE}" height="{self.SIDE}" fill="none" stroke="#888"/>',
                      f'<text x="{left + self.SIDE / 2}" y="{self.SIDE + 66}" text-anchor="middle">{x_label}</text>',
                      f'<text transform="translate({left - 48} {30 + self.SIDE / 2}) rotate(-90)" '
                      f'text-anchor="middle">{y_label}</text>']

    @staticmethod
    def share(value, low, high):
        return math.log(value / low) / math.log(high / low)

    def at(self, x, y):
        return (self.left + self.SIDE * self.share(x, *self.x_range), 30 + self.SIDE * (1 - self.share(y, *self.y_range)))

    def ticks(self, xs, ys, x_format="{:g}", y_format="{:g}"):
        for x in xs:
            px, _ = self.at(x, self.y_range[0])
            self.parts.append(f'<path d="M{px:.1f} 30V{30 + self.SIDE}" stroke="#e4e4e4"/><text x="{px:.1f}" '
                              f'y="{self.SIDE + 46}" text-anchor="middle">{x_format.format(x)}</text>')
        for y in ys:
            _, py = self.at(self.x_range[0], y)
            self.parts.append(f'<path d="M{self.left} {py:.1f}h{self.SIDE}" stroke="#e4e4e4"/><text x="{self.left - 6}" '
                              f'y="{py + 4:.1f}" text-anchor="end">{y_format.format(y)}</text>')

    def line(self, points, style):
        self.parts.append("<path d='M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in (self.at(*p) for p in points)) +
                          f"' fill='none' {style}/>")

    def dot(self, x, y, colour, hint):
        px, py = self.at(x, y)
        self.parts.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{colour}" fill-opacity="0.75">'
                          f'<title>{html.escape(hint)}</title></circle>')


def decades(low, high):
    exponents = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    step = max(1, round(len(exponents) / 6))
    return [10.0 ** e for e in list(exponents)[::step]]


def error_plot(points):
    """Predicted against timed, and the ratio of the two by size, one colour a kernel; the dashed band is 10 %."""
    kernels = sorted({kernel_of(p) for p in points})
    colour = {kernel: COLOURS[i % len(COLOURS)] for i, kernel in enumerate(kernels)}
    times = [value for p in points for value in (p["timed_us"], p["predicted_us"])]
    span = (min(times) / 1.5, max(times) * 1.5)
    most = max([1.5] + [max(p["predicted_us"] / p["timed_us"], p["timed_us"] / p["predicted_us"]) for p in points]) * 1.05
    left = Plot(70, "predicted against timed", "timed, us", "predicted, us", span, span)
    left.ticks(decades(*span), decades(*span))
    right = Plot(460, "predicted / timed", "timed, us", "ratio", span, (1 / most, most))
    right.ticks(decades(*span), [r for r in (0.1, 0.25, 0.5, 0.67, 0.9, 1, 1.1, 1.5, 2, 4, 10) if 1 / most < r < most])
    for factor, style in ((1, 'stroke="#444"'), (1.1, 'stroke="#444" stroke-dasharray="4 3"'),
                          (1 / 1.1, 'stroke="#444" stroke-dasharray="4 3"')):
        inner = (max(span[0], span[0] / factor), min(span[1], span[1] / factor))
        left.line([(x, x * factor) for x in inner], style)
        right.line([(span[0], factor), (span[1], factor)], style)
    for p in points:
        ratio = p["predicted_us"] / p["timed_us"]
        hint = f"{p['id']}: timed {p['timed_us']:.4g} us, predicted {p['predicted_us']:.4g} us, {ratio:.2f}"
        left.dot(p["timed_us"], p["predicted_us"], colour[kernel_of(p)], hint)
        right.dot(p["timed_us"], ratio, colour[kernel_of(p)], hint)
    legend = [f'<circle cx="790" cy="{40 + 18 * i}" r="4" fill="{colour[k]}"/>'
              f'<text x="800" y="{44 + 18 * i}">{html.escape(k)}</text>' for i, k in enumerate(kernels)]
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="920" height="380" viewBox="0 0 920 380" '
            'font-family="sans-serif" font-size="11"><rect width="920" height="380" fill="white"/>' +
            "\n".join(left.parts + right.parts + legend) + "</svg>\n")


def error_rows(points):
    rows = ["| kernel | points | mean error | largest | of the roofline of peaks |", "|---|---|---|---|---|"]
    for kernel in sorted({kernel_of(p) for p in points}):
        own = [p for p in points if kernel_of(p) == kernel]
        errors = [abs(p["predicted_us"] / p["timed_us"] - 1) for p in own]
        roofline = [abs(p["roofline_us"] / p["timed_us"] - 1) for p in own]
        mean = sum(errors) / len(own)
        rows.append(f"| {kernel} | {len(own)} | {mean:.1%} `{bar(mean)}` | {max(errors):.1%} | "
                    f"{sum(roofline) / len(own):.1%} |")
    return rows


def matrix_lines(matrix):
    lines = ["", f"## Slowdown of the row beside the column ({matrix['mode']})", "",
             "| | " + " | ".join(matrix["kernels"]) + " |", "|---" * (len(matrix["kernels"]) + 1) + "|"]
    for name, row in zip(matrix["kernels"], matrix["slowdown"]):
        lines.append(f"| {name} | " + " | ".join(f"{cell:.2f}" for cell in row) + " |")
    return lines


def report(profile, plot_name):
    lines = [f"# Calibration of {profile['model']}", ""]
    lines.append(f"Backend {profile['backend']}, {profile['created_utc']}, program {profile['tool'].get('version')} "
                 f"(commit {profile['tool'].get('git')}). Verdict: **{profile['validation']['verdict']}**.")
    lines += ["", "## The machine as found", ""]
    lines += [f"- {name}: {fact}" for name, fact in profile["environment"].items()]
    lines += ["", "## Gates", "", "| gate | verdict | found | allowed | n | |", "|---|---|---|---|---|---|"]
    for gate in profile["validation"]["gates"]:
        ran = gate["status"] != "not_run"
        lines.append(f"| {gate['name']} | {gate['status']} | {gate['value_ratio']:.1%} | {gate['limit_ratio']:.1%} | "
                     f"{gate['n']} | {gate.get('note', '')} |" if ran else
                     f"| {gate['name']} | not run | | | | {gate.get('note', '')} |")
    sheet_name, sheet = datasheet_of(profile["model"])
    lines += ["", "## Ceilings", "", f"| | measured | datasheet{' of ' + sheet_name if sheet_name else ''} | share |",
              "|---|---|---|---|"]
    for name, value in profile["peaks"].items():
        known = sheet.get(name)
        share = f"{value['value'] / known['value']:.0%}" if known else ""
        lines.append(f"| {name} | {quantity(value)} | {quantity(known) if known else ''} | {share} |")
    lines += ["", "## Fits", "", "| kernel | t0 | P | W | gamma | mean error of the fit |", "|---|---|---|---|---|---|"]
    for name, fit in profile["fits"].items():
        error = fit.get("train_mape_ratio")
        lines.append(f"| {name} | {quantity(fit['t0_us'])} | {quantity(fit['p_tflops'])} | {quantity(fit['w_gbs'])} | "
                     f"{quantity(fit['gamma'])} | {error['value']:.1%} `{bar(error['value'])}` |" if error else
                     f"| {name} | {quantity(fit['t0_us'])} | {quantity(fit['p_tflops'])} | {quantity(fit['w_gbs'])} | "
                     f"{quantity(fit['gamma'])} | |")
    lines += ["", "| kernel bound by memory | t0 | W |", "|---|---|---|"]
    lines += [f"| {name} | {quantity(op['t0_us'])} | {quantity(op['w_gbs'])} |" for name, op in profile["ops"].items()]
    points = profile["validation"].get("points", [])
    if points:
        lines += ["", "## Errors at what was never fitted", "", f"![predicted against timed]({plot_name})", ""]
        lines += error_rows(points)
    for matrix in (profile.get("interference"), profile.get("process_interference")):
        if matrix:
            lines += matrix_lines(matrix)
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1]) as file:
        profile = json.load(file)
    device = re.sub(r"[^a-z0-9]+", "-", profile["model"].lower()).strip("-")
    plot_name = f"calibration-{device}-errors.svg"
    points = profile["validation"].get("points", [])
    files = {f"calibration-{device}.md": report(profile, plot_name)}
    if points:
        files[plot_name] = error_plot(points)
    os.makedirs(sys.argv[2], exist_ok=True)
    for name, text in files.items():
        path = os.path.join(sys.argv[2], name)
        with open(path + ".partial", "w") as file:
            file.write(text)
        os.replace(path + ".partial", path)
        print(path)


if __name__ == "__main__":
    main()
