#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Portfolios and bandits against each of their policies.

usage: table.py GPUSCHED --log NAME FILE CLUSTER HISTORY_JOBS MEASURE_JOBS [--log ...] --members LIST [--few] --csv FOLDER

table.csv: of each log and policy the averages, the 99th percentiles, how often another policy took over, and the seconds of all
decisions by this machine's clock. "best in hindsight" is the member of the least mean completion time. --few: one portfolio and
one bandit, without decision times.
"""
import argparse
import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from table_csv import write_rows  # noqa: E402

FIGURES = ("avg_jct_s", "avg_wait_s", "avg_bounded_slowdown", "p99_wait_s", "p99_jct_s")
PORTFOLIOS = ("portfolio{horizon_s=14400,%s}", "portfolio{%s}", "portfolio{horizon_s=604800,%s}",
              "portfolio{ties=stay,%s}", "portfolio{every_s=600,%s}", "portfolio{figure=avg_bounded_slowdown,%s}",
              "portfolio{estimate=user-mean,%s}", "portfolio{runtimes=exact,%s}")
BANDITS = ("bandit{rule=ucb1,%s}", "bandit{rule=ducb,%s}", "bandit{rule=exp3,%s}")
FEW = ("portfolio{%s}", "bandit{every_s=3600,%s}")


def split_members(text):
    """At the commas outside of braces."""
    members, depth = [""], 0
    for letter in text:
        depth += (letter in "{[") - (letter in "}]")
        if letter == "," and depth == 0:
            members.append("")
        else:
            members[-1] += letter
    return members


def switches_of(folder):
    """How often another policy took over; 0 where none can."""
    for name in ("portfolio.csv", "bandit.csv"):
        for path in pathlib.Path(folder).glob("*/" + name):
            with open(path, newline="", encoding="utf-8") as source:
                chosen = [row["policy"] for row in csv.DictReader(source) if row.get("active", "1") == "1"]
            return sum(before != after for before, after in zip(chosen, chosen[1:]))
    return 0


def replayed(options, log, policy):
    _, trace, cluster, history, measured = log
    with tempfile.TemporaryDirectory() as folder:
        command = [options.gpusched, "replay", trace, "--cluster", cluster, "--oversize", "clamp", "--threads", "1", "--json",
                   "--policy", policy, "--decision-times", "--out", folder + "/run"]
        if int(history) > 0:
            command += ["--history-jobs", history]
        if int(measured) > 0:
            command += ["--measure-jobs", measured]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            print(f"{policy}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
            return None
        (run,) = json.loads(done.stdout)["runs"]
        metrics = run["metrics"]
        times = run["decision_times"]
        row = {figure: metrics[figure] for figure in FIGURES}
        row["switches"] = switches_of(folder + "/run")
        row["decision_s"] = "" if options.few else f'{times["decisions"] * times["mean_us"] / 1e6:.1f}'
        return row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gpusched")
    parser.add_argument("--log", nargs=5, action="append", required=True)
    parser.add_argument("--members", required=True)
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--csv", required=True)
    options = parser.parse_args()
    members = split_members(options.members)
    held = "policies=[" + ",".join(members) + "]"
    rows = []
    for log in options.log:
        alone = []
        for policy in members:
            row = replayed(options, log, policy)
            if row is not None:
                alone.append({"log": log[0], "policy": policy, **row})
        rows += alone
        if alone:
            best = min(alone, key=lambda row: float(row["avg_jct_s"]))
            rows.append({**best, "policy": "best in hindsight"})
        for pattern in FEW if options.few else PORTFOLIOS + BANDITS:
            row = replayed(options, log, pattern % held)
            if row is not None:
                rows.append({"log": log[0], "policy": re.sub(r",?policies=\[.*\]", "", pattern % held).replace("{}", ""), **row})
    write_rows(pathlib.Path(options.csv) / "table.csv", rows, ["log", "policy", *FIGURES, "switches", "decision_s"])


if __name__ == "__main__":
    main()
