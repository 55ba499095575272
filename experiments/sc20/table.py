#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints RLScheduler's table of mean bounded slowdowns on Lublin-1: published | gpusched | difference.

usage: table.py GPUSCHED TRACES      GPUSCHED: the program; TRACES: the folder with swf/lublin_256.swf
"""
import json
import pathlib
import subprocess
import sys

# Policy: without and with backfilling, then the same of utilisation. None: not published.
TABLE = {
    "fcfs": (7273.77, 235.82, 0.657, 0.868),
    "wfp3@sc20": (19753.53, 133.87, 0.747, 0.864),
    "unicep@sc20": (22274.74, 307.23, 0.691, 0.883),
    "sjf": (277.35, 73.31, 0.762, 0.778),
    "f1": (258.37, 75.07, 0.816, 0.840),
    "wfp3": (None, None, None, None),
    "unicep": (None, None, None, None),
    "saf": (None, None, None, None),
}


def evaluate(program, trace, backfill):
    command = [program, "evaluate", "--trace", trace, "--protocol", "sc20", "--backfill", backfill,
               "--policy", ",".join(TABLE), "--json"]
    runs = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["runs"]
    return {run["policy"]: run["metrics"] for run in runs}


def cell(published, ours, digits):
    if published is None:
        return f"{'-':>12}{ours:>12.{digits}f}{'':>12}"
    return f"{published:>12.{digits}f}{ours:>12.{digits}f}{ours - published:>+12.{digits}f}"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    trace = str(pathlib.Path(sys.argv[2]) / "swf" / "lublin_256.swf")
    for column, backfill in enumerate(["none", "sc20"]):
        print(f"backfilling: {backfill}")
        print(f"  {'policy':<14}{'slowdown':>12}{'gpusched':>12}{'difference':>12}{'utilization':>12}{'gpusched':>12}{'difference':>12}")
        for policy, metrics in evaluate(sys.argv[1], trace, backfill).items():
            published = TABLE[policy]
            print(f"  {policy:<14}" + cell(published[column], metrics["avg_bounded_slowdown"], 2) +
                  cell(published[column + 2], metrics["utilization"], 3))


main()
