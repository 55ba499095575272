#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what the Tiresias simulator gives: published | gpusched | difference.

usage: table.py GPUSCHED TRACES      GPUSCHED: the program; TRACES: the folder with small/tiresias_60_job.csv
"""
import json
import pathlib
import subprocess
import sys
import tempfile

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


def print_table(title, table, results):
    print(title)
    print(f"  {'schedule':<14}{'metric':<16}{'published':>14}{'gpusched':>14}{'difference':>12}")
    for (schedule, _, theirs), metrics in zip(table, results):
        for metric, value in zip(METRICS, theirs):
            ours = metrics[metric]
            print(f"  {schedule:<14}{metric:<16}{value:>14.2f}{ours:>14.2f}{ours - value:>+12.2f}")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    program, traces = sys.argv[1], pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        for title, table, trace, gpus in [
            ("60 jobs, 16 GPUs", SIXTY_JOBS, traces / "small/tiresias_60_job.csv", 16),
            ("5,000 jobs, 128 GPUs", FIVE_THOUSAND_JOBS,
             head_of(traces / "alibaba/pai2020/philly_in_pai_columns_20k.csv", 5000, folder), 128),
        ]:
            print_table(title, table, replay(program, trace, gpus, [row[1] for row in table]))


main()
