#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what the Tiresias simulator gives: published | gpusched | difference.

usage: table.py GPUSCHED TRACES [--csv FILE]      GPUSCHED: the program; TRACES: the folder with small/tiresias_60_job.csv
"""
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from table_csv import Table, options_of  # noqa: E402

# Without costs of a preemption, the simulator's pending time is what we call waiting.
METRICS = ["avg_jct_s", "avg_wait_s", "last_end_s", "preemptions"]
# The simulator's schedule, our policy, then the metrics in that order.
SIXTY_JOBS = [
    ("fifo", "fifo", [200.82, 22.40, 3335, 0]),
    ("fjf", "fifo-skip", [190.68, 12.27, 3271, 0]),
    ("shortest", "srtf", [192.12, 13.70, 3271, 4]),
    ("shortest-gpu", "srsf", [195.90, 17.48, 3315, 7]),
    ("dlas-gpu", "tiresias@code", [190.68, 12.27, 3271, 0]),
]
FIVE_THOUSAND_JOBS = [
    ("fifo", "fifo", [732343.26, 724491.18, 1994727, 0]),
    ("shortest", "srtf", [14666.15, 6814.06, 2067861, 6279]),
    ("dlas-gpu", "tiresias@code", [19549.01, 11696.92, 2012692, 1962]),
]


def replay(program, trace, gpus, policies):
    command = [program, "replay", "--trace", trace, "--format", "csv", "--cluster", str(gpus),
               "--columns", "submit=submit_time,gpus=num_gpu,duration=duration",
               "--policy", ",".join(policies), "--json"]
    runs = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["runs"]
    return [run["metrics"] for run in runs]


def head_of(path, rows, folder):
    """A copy of the first rows of a csv file."""
    copy = pathlib.Path(folder) / path.name
    copy.write_text("".join(path.open().readlines()[: rows + 1]))
    return copy


def main():
    options = options_of(__doc__, "traces")
    traces = pathlib.Path(options.traces)
    table = Table(["jobs", "gpus", "schedule", "metric"], options)
    with tempfile.TemporaryDirectory() as folder:
        for jobs, schedules, trace, gpus in [
            (60, SIXTY_JOBS, traces / "small/tiresias_60_job.csv", 16),
            (5000, FIVE_THOUSAND_JOBS,
             head_of(traces / "alibaba/pai2020/philly_in_pai_columns_20k.csv", 5000, folder), 128),
        ]:
            results = replay(options.gpusched, trace, gpus, [row[1] for row in schedules])
            for (schedule, _, published), metrics in zip(schedules, results):
                for metric, value in zip(METRICS, published):
                    table.add(jobs, gpus, schedule, metric, published=value, ours=metrics[metric])
    table.write(digits=2)


main()
