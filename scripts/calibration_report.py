#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes calibration-DEVICE.md from a profile: gates, ceilings beside the datasheet, and where the errors lie.

    calibration_report.py PROFILE.json FOLDER
"""
import json
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
    here = os.path.join(os.path.dirname(__file__), "..", "profiles", model + ".json")
    if not os.path.exists(here):
        return {}
    with open(here) as file:
        return json.load(file)["peaks"]


def report(profile):
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
    lines += ["", "## Ceilings", "", "| | measured | datasheet | share |", "|---|---|---|---|"]
    sheet = datasheet_of(profile["model"])
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
    matrix = profile.get("interference")
    if matrix:
        lines += ["", f"## Slowdown of the row beside the column ({matrix['mode']})", "",
                  "| | " + " | ".join(matrix["kernels"]) + " |", "|---" * (len(matrix["kernels"]) + 1) + "|"]
        for name, row in zip(matrix["kernels"], matrix["slowdown"]):
            lines.append(f"| {name} | " + " | ".join(f"{cell:.2f}" for cell in row) + " |")
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1]) as file:
        profile = json.load(file)
    device = re.sub(r"[^a-z0-9]+", "-", profile["model"].lower()).strip("-")
    path = os.path.join(sys.argv[2], f"calibration-{device}.md")
    with open(path + ".partial", "w") as file:
        file.write(report(profile))
    os.replace(path + ".partial", path)
    print(path)


if __name__ == "__main__":
    main()
