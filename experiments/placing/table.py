#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares agents that choose GPU types with policies that know no more, on logs that no agent has seen, at four loads.

usage: table.py GPUSCHED THROUGHPUTS RUNS [--csv FILE] [--no-published]      --no-published: small logs

RUNS: the folder with the trained agents, exact/seed-N (they know true run times) and unknown/seed-N (they know none).
"""
import csv
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from table_csv import Table, options_of  # noqa: E402

RATES = ("1.4", "1.7", "2.0", "2.4")  # jobs an hour; agents were trained at 1.4 and 2.0
TEST_SEED = "1001"      # of the logs, one above another by the rate
KNOWN = "estimate=exact,skip=true,best_speed=true"
LINEUPS = {
    "exact": [f"sjf{{{KNOWN}}}", f"saf{{{KNOWN}}}", "allox", "srtf", "srsf", "gavel", "gavel{objective=finish-time-fairness}"],
    "unknown": ["fifo", "fifo-skip", "las", "gavel{objective=fifo}", "gavel", "gavel{aware=false}"],
}
FIGURES = ["avg_jct_s", "p99_wait_s", "avg_bounded_slowdown", "worst_decile_slowdown"]
FULL = (12300, ["--window-jobs", "300", "--warmup-jobs", "150", "--stride", "300", "--threads", "2"])
SMALL = (240, ["--window-jobs", "60", "--warmup-jobs", "20", "--stride", "60"])  # jobs of a log, options of gpusched evaluate
RESTART_S = "60"


def draw_log(throughputs, jobs, rate, path, seed=TEST_SEED):
    with open(path, "w", encoding="utf-8") as log:
        subprocess.run([sys.executable, HERE / "jobs.py", throughputs, str(jobs), rate, seed], check=True, stdout=log)


def compared(options, knowledge, log, evaluation):
    """The agent and the policies that know no more, as `gpusched evaluate` prints and writes them."""
    agents = sorted(str(run) for run in (pathlib.Path(options.runs) / knowledge).glob("seed-*"))
    out = f"{log}-{knowledge}"
    subprocess.run([options.gpusched, "evaluate", log, "--cluster", HERE / "cluster.json", "--throughputs", options.throughputs,
                    "--reference-type", "v100", "--placement", "fastest", "--restart-cost", RESTART_S,
                    "--group", "agent=" + ",".join("rl:" + run for run in agents), "--policy", ",".join(LINEUPS[knowledge]),
                    "--against", "agent", "--figure", FIGURES[0], "--beside", ",".join(FIGURES[1:]), *evaluation,
                    "--out", out], check=True)
    with open(out + "/comparison.csv", newline="", encoding="utf-8") as source:
        return list(csv.DictReader(source))


def main():
    options = options_of(__doc__, "throughputs", "runs")
    jobs, evaluation = SMALL if options.no_published else FULL
    table = Table(["jobs an hour", "knowledge", "policy", "metric"], options)
    for rate in RATES:
        log = f"{options.runs}/log-{rate}.csv"
        draw_log(options.throughputs, jobs, rate, log)
        for knowledge in LINEUPS:
            for run in compared(options, knowledge, log, evaluation):
                for metric in FIGURES:
                    value = run["mean" if metric == FIGURES[0] else metric]
                    table.add(rate, knowledge, run["name"], metric, published=None, ours=float(value))
    table.write(digits=2)


if __name__ == "__main__":
    main()
