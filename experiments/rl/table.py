#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what lineup.sh gives on the logs of docs/results/rl.md: the plain policies that an agent has to beat.

usage: table.py GPUSCHED TRACES [--csv FILE] [--no-published]      --no-published: on the first log alone, 2,000 jobs a window
"""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from table_csv import Table, options_of  # noqa: E402

LUBLIN = "swf/lublin_256.swf"
LINEUPS = [  # name, what is known of run times, log, options of gpusched evaluate
    ("Lublin-1, windows", "exact", LUBLIN, ["--cluster", "256", "--window-jobs", "1024", "--stride", "20", "--from", "0.6"]),
    ("Lublin-1", "exact", LUBLIN, ["--cluster", "256", "--window-jobs", "10000"]),
    ("HPC2N", "requested", "swf/hpc2n_head_alea.swf", ["--cluster", "240", "--window-jobs", "3145"]),
    ("NASA iPSC", "history", "swf/NASA-iPSC-1993-3.1-cln.swf.gz",
     ["--cluster", "64", "--oversize", "clamp", "--window-jobs", "18239"]),
]
SMALL = [("small log", "exact", LUBLIN, ["--cluster", "256", "--window-jobs", "2000"])]
METRICS = ["avg_jct_s", "p99_wait_s", "avg_bounded_slowdown", "worst_decile_slowdown"]


def runs_of(program, knowledge, log, options):
    """Those without preemption, then those with it."""
    command = [pathlib.Path(__file__).resolve().parent / "lineup.sh", knowledge, log, *options, "--json"]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True,
                          env=dict(os.environ, GPUSCHED=program)).stdout
    reader = json.JSONDecoder()
    runs = []
    while "{" in text:
        document, end = reader.raw_decode(text, text.index("{"))
        runs += document["runs"]
        text = text[end:]
    return runs


def main():
    options = options_of(__doc__, "traces")
    table = Table(["log", "knowledge", "policy", "metric"], options)
    for name, knowledge, log, evaluation in SMALL if options.no_published else LINEUPS:
        for run in runs_of(options.gpusched, knowledge, pathlib.Path(options.traces) / log, evaluation):
            for metric in METRICS:
                table.add(name, knowledge, run["policy"], metric, published=None, ours=run["metrics"][metric])
    table.write(digits=2)


main()
