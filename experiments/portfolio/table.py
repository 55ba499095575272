#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Portfolios and bandits against each of their policies.

usage: table.py GPUSCHED --log NAME FILE CLUSTER HISTORY_JOBS MEASURE_JOBS [--log ...] --members LIST [--beside LIST] [--few]
                --csv FOLDER

table.csv: of each log and policy the averages, the 99th percentiles, the mean slowdown of the worst tenth, how often another
policy took over, the events of the run, the processor seconds of the whole run on this machine, and the mean completion time over
that of the best member. "best in hindsight" is the member of the least mean completion time. --beside: policies that run alone and
are no members. Rows are written as runs end; those that table.csv has are not run again. --few: one portfolio and one bandit, without processor seconds.
"""
import argparse
import csv
import json
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from table_csv import write_rows  # noqa: E402

FIGURES = ("avg_jct_s", "avg_wait_s", "avg_bounded_slowdown", "p99_wait_s", "p99_jct_s", "worst_decile_slowdown")
COLUMNS = ["log", "policy", *FIGURES, "switches", "events", "cpu_s", "of_best"]
PORTFOLIOS = ("portfolio{%s}", "portfolio{horizon_s=14400,%s}", "portfolio{horizon_s=604800,%s}", "portfolio{every_s=14400,%s}",
              "portfolio{arrivals=resampled,%s}", "portfolio{ties=stay,%s}", "portfolio{figure=avg_bounded_slowdown,%s}",
              "portfolio{estimate=user-mean,%s}", "portfolio{budget_events=2000,%s}", "portfolio{runtimes=exact,%s}")
BANDITS = ("bandit{rule=ucb1,%s}", "bandit{rule=ducb,%s}", "bandit{rule=exp3,%s}")
FEW = ("portfolio{%s}", "portfolio{arrivals=resampled,%s}", "bandit{every_s=3600,%s}")


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
                   "--policy", policy, "--out", folder + "/run"]
        if int(history) > 0:
            command += ["--history-jobs", history]
        if int(measured) > 0:
            command += ["--measure-jobs", measured]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode != 0:
            print(f"{policy}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
            return None
        (run,) = json.loads(done.stdout)["runs"]
        row = {figure: f'{run["metrics"][figure]:.6g}' for figure in FIGURES}
        row["switches"] = switches_of(folder + "/run")
        row["events"] = run["metrics"]["events"]
        row["cpu_s"] = "" if options.few else f"{after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime:.1f}"
        return row


class Table:
    """The rows of table.csv, which is written after each run."""

    def __init__(self, folder):
        self.path = pathlib.Path(folder) / "table.csv"
        self.rows, self.earlier = [], {}
        if self.path.exists():
            with open(self.path, newline="", encoding="utf-8") as source:
                self.earlier = {(row["log"], row["policy"]): row for row in csv.DictReader(source)}

    def add(self, options, log, policy, name):
        """The row of a policy, from the table or from a run; None where it could not run."""
        row = self.earlier.get((log[0], name))
        if row is None:
            found = replayed(options, log, policy)
            if found is None:
                return None
            row = {"log": log[0], "policy": name, **found}
        return self.keep(row)

    def keep(self, row):
        own = [other for other in self.rows if other["log"] == row["log"]]
        best = next((other for other in own if other["policy"] == "best in hindsight"), None)
        row["of_best"] = f'{float(row["avg_jct_s"]) / float(best["avg_jct_s"]):.4f}' if best else ""
        self.rows.append(row)
        write_rows(self.path, self.rows, COLUMNS)
        return row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gpusched")
    parser.add_argument("--log", nargs=5, action="append", required=True)
    parser.add_argument("--members", required=True)
    parser.add_argument("--beside", default="")
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--csv", required=True)
    options = parser.parse_args()
    members = split_members(options.members)
    held = "policies=[" + ",".join(members) + "]"
    table = Table(options.csv)
    for log in options.log:
        alone = [row for row in (table.add(options, log, policy, policy) for policy in members) if row is not None]
        if alone:
            best = min(alone, key=lambda row: float(row["avg_jct_s"]))
            table.keep({**best, "policy": "best in hindsight"})
        for pattern in FEW if options.few else PORTFOLIOS + BANDITS:
            name = re.sub(r",?policies=\[.*\]", "", pattern % held).replace("{}", "")
            table.add(options, log, pattern % held, name)
        for policy in filter(None, split_members(options.beside)):
            table.add(options, log, policy, policy)


if __name__ == "__main__":
    main()
