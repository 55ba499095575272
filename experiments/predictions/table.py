#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long predictions should remember.

usage: table.py GPUSCHED TRACES [--csv FOLDER] [--smoke]

errors.csv: the root mean square error of the logarithm of predicted run times (estimate=history), by half-life in finished
jobs, on jobs 40 to 60 % of each log, from which the half-life is chosen (the least mean over the logs), and on the last 40 %,
each with all earlier jobs as history. 0: nothing fades; "none": nothing fades and no history.
orders.csv: mean completion time on the last part of Philly with history and without, by policy and half-life, from several
starts, which tell chance from difference; gittins also on a first part, from which its half-life is chosen (the least mean).
"""
import argparse
import csv
import json
import math
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from table_csv import write_rows  # noqa: E402

HALF_LIVES = (0, 100, 300, 1000, 3000, 10000, 30000)
HISTORY_HALF_LIFE = 300  # in use: chosen by errors.csv
FIRST_STARTS = (0.30, 0.33, 0.36, 0.39, 0.42, 0.45)
LAST_STARTS = (0.56, 0.58, 0.60, 0.62, 0.64, 0.66)
LOGS = [("Philly", "philly/philly_jobs.csv", "2000x8"), ("NASA", "swf/NASA-iPSC-1993-3.1-cln.swf.gz", "1000000"),
        ("HPC2N", "swf/hpc2n_head_alea.swf", "1000000")]
PHILLY = ("Philly, 160x8", "philly/philly_jobs.csv", "160x8")
SMOKE_LOGS = [("drawn", "synthetic:philly:1500", "1000x8")]
SMOKE_PHILLY = ("drawn, 24x8", "synthetic:philly:1500", "24x8")
ORDERS = ("qssf{%s}", "qssf{%s,skip=true}", "saf{estimate=history,%s}", "saf{estimate=history,%s,skip=true}",
          "fifo+easy{estimate=history,%s}")
GITTINS = "agenda{mode=preempt,heuristic=gittins,%s}"


def jobs_of(program, trace):
    command = [program, "trace", "info", trace, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["jobs"]


def replayed(program, trace, cluster, policies, out, first, jobs):
    """Runs from job `first` on, with those before as history, and measures so many."""
    command = [program, "replay", trace, "--cluster", cluster, "--oversize", "clamp", "--threads", "2", "--json", "--policy",
               ",".join(policies), "--measure-jobs", str(jobs)]
    command += ["--history-jobs", str(first), "--out", out]
    subprocess.run(command, check=True, capture_output=True)


def error_of(folder):
    """Of the measured jobs that had an estimate, in the one folder of a policy."""
    (path,) = pathlib.Path(folder).glob("*/jobs.csv")
    squares = count = 0
    with open(path, newline="", encoding="utf-8") as source:
        for row in csv.DictReader(source):
            if row["measured"] == "true" and row["estimate_s"]:
                squares += (math.log1p(float(row["run_s"])) - math.log1p(float(row["estimate_s"]))) ** 2
                count += 1
    return math.sqrt(squares / count)


def errors(options, logs):
    rows = []
    for name, trace, cluster in logs:
        count = jobs_of(options.gpusched, trace)
        for part, begin, end in (("40 to 60 %", 0.4, 0.6), ("last 40 %", 0.6, 1)):
            first, jobs = int(begin * count), int(end * count) - int(begin * count)
            for half_life in HALF_LIVES:
                with tempfile.TemporaryDirectory() as folder:
                    policy = f"sjf{{estimate=history,half_life_jobs={half_life}}}"
                    replayed(options.gpusched, trace, cluster, [policy], folder + "/run", first, jobs)
                    rows.append({"log": name, "part": part, "half_life_jobs": half_life, "error": error_of(folder + "/run")})
                    print(f"{name:8} {part:12} {half_life:6} {rows[-1]['error']:.4f}", flush=True)
    first_parts = {h: [r["error"] for r in rows if r["half_life_jobs"] == h and r["part"] == "40 to 60 %"] for h in HALF_LIVES}
    chosen = min(first_parts, key=lambda h: sum(first_parts[h]) / len(first_parts[h]))
    print(f"chosen on the first parts: {chosen}")
    return rows


def orders(options, log):
    name, trace, cluster = log
    rows = []

    def add(part, starts, end, policies, told):
        means = dict.fromkeys(policies, 0.0)
        for start in starts:
            command = [options.gpusched, "evaluate", trace, "--cluster", cluster, "--oversize", "clamp", "--threads", "2", "--json",
                       "--mode", "log", "--starts", "none", "--from", str(start), "--to", str(end), "--policy", ",".join(policies)]
            command += ["--history"] if told else []
            runs = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["runs"]
            for run in runs:
                means[run["policy"]] += run["runs"][0]["metrics"]["avg_jct_s"] / len(starts)
        for policy, mean in means.items():
            rows.append({"log": name, "part": part, "policy": policy, "history": told, "avg_jct_s": mean})
            print(f"{part:6} {'history' if told else 'none':8} {mean:12.0f}  {policy}", flush=True)

    gittins = [GITTINS % f"half_life_jobs={half_life}" for half_life in HALF_LIVES]
    both = [policy % f"half_life_jobs={half_life}" for half_life in (0, HISTORY_HALF_LIFE) for policy in ORDERS]
    add("first", FIRST_STARTS, 0.6, gittins, True)
    for told in (True, False):
        add("last", LAST_STARTS, 1, gittins + both, told)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gpusched")
    parser.add_argument("traces")
    parser.add_argument("--csv", help="folder for both tables")
    parser.add_argument("--smoke", action="store_true", help="one small drawn log")
    options = parser.parse_args()
    place = (lambda file: file) if options.smoke else (lambda file: f"{options.traces}/{file}")
    logs = [(name, place(file), cluster) for name, file, cluster in (SMOKE_LOGS if options.smoke else LOGS)]
    name, file, cluster = SMOKE_PHILLY if options.smoke else PHILLY
    tables = {"errors": errors(options, logs), "orders": orders(options, (name, place(file), cluster))}
    if options.csv:
        for table, rows in tables.items():
            write_rows(f"{options.csv}/{table}.csv", rows)


if __name__ == "__main__":
    main()
