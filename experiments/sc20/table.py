#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints RLScheduler's table of mean bounded slowdowns on Lublin-1: published | gpusched | difference.

usage: table.py GPUSCHED TRACES [--csv FILE]      GPUSCHED: the program; TRACES: the folder with swf/lublin_256.swf
"""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from table_csv import Table, options_of  # noqa: E402

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


def main():
    options = options_of(__doc__, "traces")
    trace = str(pathlib.Path(options.traces) / "swf" / "lublin_256.swf")
    table = Table(["backfilling", "policy", "metric"], options)
    for column, backfill in enumerate(["none", "sc20"]):
        for policy, metrics in evaluate(options.gpusched, trace, backfill).items():
            for place, metric in [(column, "avg_bounded_slowdown"), (column + 2, "utilization")]:
                table.add(backfill, policy, metric, published=TABLE[policy][place], ours=metrics[metric])
    table.write(digits=3)


main()
