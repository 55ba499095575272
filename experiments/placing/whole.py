#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays whole logs that no agent has seen under the agents and policies of table.py, each on an empty cluster.

usage: whole.py GPUSCHED THROUGHPUTS RUNS [--csv FILE] [--no-published]      --no-published: one small log a rate

A figure of an agent is the mean over its training seeds. "difference" is the mean over the logs of a policy's completion time over
the agent's, less 1, with Student's interval of 95 % over the logs' logarithms.
"""
import csv
import json
import math
import pathlib
import statistics
import subprocess
import sys

from table import HERE, LINEUPS, RESTART_S, draw_log, options_of

RATES = ("1.4", "2.0")  # jobs an hour
SEEDS = ("2001", "2002", "2003", "2004", "2005")  # of the logs
STUDENT_4 = 2.776445  # 97.5 % point of Student's t with 4 degrees of freedom, for 5 logs


def completion_times(options, log, knowledge):
    """Mean completion time in seconds by policy; "agent" is the mean over its seeds."""
    agents = ["rl:" + str(run) for run in sorted((pathlib.Path(options.runs) / knowledge).glob("seed-*"))]
    done = subprocess.run([options.gpusched, "replay", log, "--cluster", HERE / "cluster.json", "--throughputs",
                           options.throughputs, "--reference-type", "v100", "--placement", "fastest", "--restart-cost", RESTART_S,
                           "--policy", ",".join(agents + LINEUPS[knowledge]), "--json"], check=True, capture_output=True, text=True)
    times = {run["policy"]: run["metrics"]["avg_jct_s"] for run in json.loads(done.stdout)["runs"]}
    own = [times.pop(agent) for agent in agents]
    return {"agent": statistics.fmean(own)} | times


def difference(own, agents):
    """The mean ratio less 1 and its interval, in percent; no interval for a single log."""
    logs = [math.log(a / b) for a, b in zip(own, agents)]
    middle = statistics.fmean(logs)
    half = STUDENT_4 * statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) == len(SEEDS) else None
    ends = [None, None] if half is None else [middle - half, middle + half]
    return [None if at is None else 100 * math.expm1(at) for at in (middle, *ends)]


def main():
    options = options_of(__doc__, "throughputs", "runs")
    jobs, seeds = (120, SEEDS[:1]) if options.no_published else (4000, SEEDS)
    rows = [["jobs an hour", "knowledge", "policy", "avg_jct_s", "difference_percent", "low_95", "high_95"]]
    for rate in RATES:
        logs = [f"{options.runs}/whole-{rate}-{seed}.csv" for seed in seeds]
        for seed, log in zip(seeds, logs):
            draw_log(options.throughputs, jobs, rate, log, seed)
        for knowledge in LINEUPS:
            runs = [completion_times(options, log, knowledge) for log in logs]
            agents = [run["agent"] for run in runs]
            for policy in runs[0]:
                own = [run[policy] for run in runs]
                told = difference(own, agents) if policy != "agent" else [None] * 3
                rows.append([rate, knowledge, policy, statistics.fmean(own), *told])
    for row in rows:
        print("  ".join("-" if cell is None else f"{cell:.2f}" if isinstance(cell, float) else cell for cell in row))
    if options.csv:
        with open(options.csv, "w", newline="", encoding="utf-8") as target:
            csv.writer(target, lineterminator="\n").writerows([["" if cell is None else cell for cell in row] for row in rows])


main()
