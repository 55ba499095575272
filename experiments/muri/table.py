#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the average JCT of the Muri artifact's baselines: published | gpusched | difference.

usage: table.py GPUSCHED TRACES [--csv FILE]      GPUSCHED: the program; TRACES: the folder with philly/muri_trace1.csv
"""
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from table_csv import Table, options_of  # noqa: E402

POLICIES = ["srtf@muri", "srsf@muri", "tiresias@muri"]
PUBLISHED = {  # seconds; trace 1' is trace 1 with every job submitted at 0
    "1": [1370603.198, 980140.5699, 3330371.307],
    "1'": [2303543.816, 1801859.995, 6921682.793],
    "2": [2665607.375, 2213949.687, 7396368.514],
}


def all_at_zero(trace, folder):
    """A copy of the trace whose jobs are all submitted at 0."""
    copy = pathlib.Path(folder) / "muri_trace1_at_zero.csv"
    with open(trace, newline="") as source, open(copy, "w", newline="") as target:
        rows = csv.DictReader(source)
        writer = csv.DictWriter(target, rows.fieldnames)
        writer.writeheader()
        for row in rows:
            writer.writerow(row | {"submit_time": "0"})
    return copy


def replay(program, trace):
    command = [program, "replay", "--trace", trace, "--format", "tiresias", "--cluster", "8x8",
               "--policy", ",".join(POLICIES), "--json"]
    runs = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["runs"]
    return [run["metrics"]["avg_jct_s"] for run in runs]


def main():
    options = options_of(__doc__, "traces")
    traces = pathlib.Path(options.traces)
    table = Table(["trace", "policy"], options)
    with tempfile.TemporaryDirectory() as folder:
        first = traces / "philly" / "muri_trace1.csv"
        files = {"1": first, "1'": all_at_zero(first, folder), "2": traces / "philly" / "muri_trace2.csv"}
        for name, published in PUBLISHED.items():
            for policy, theirs, ours in zip(POLICIES, published, replay(options.gpusched, files[name])):
                table.add(name, policy, published=theirs, ours=ours)
    table.write(digits=3)


main()
