#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks of the table of kinds of schedulers what a reader would hold against it.

usage: checks.py GPUSCHED TRACE SMALL_CLUSTER --out FOLDER [--smoke]

Who pays: waits of the whole trace on the small cluster, by virtual cluster and by the size of jobs (payers.csv). What hangs on a
choice that the table made: how Slurm's queue is blocked, YARN's preemption, how the static partition is divided, what jobs
without a virtual cluster do, what gangs lose by being apart, which oracle (variants.csv). Whether drawn logs agree: policies
compared over seeds (seeds.csv).
"""
import argparse
import collections
import csv
import json
import pathlib
import statistics
import subprocess
import tempfile

from table import LINEUP, write_csv

# Gandiva would write a line for each of its 38 million slices.
PAYERS = [policy for _, policy in LINEUP if not policy.startswith("gandiva")] + ["srsf"]
# An owner or a size with fewer jobs says little about a policy.
LEAST_JOBS = 100

SPAN = ["--span-speed", "nodes=0.8"]
STATIC = "static-partition{by=vc,parts=demand}"
# Question, further options, policies.
VARIANTS = [
    ("blocking", [], ["slurm{by=vc}", "slurm{by=vc}+easy{estimate=history,half_life_jobs=0}", "slurm{by=vc,skip=true}", "fifo-skip",
                      "fifo+easy{estimate=history,half_life_jobs=0}",
                      "fifo+conservative{estimate=history,half_life_jobs=0,depth=100}"]),
    ("preemption of YARN", [], ["yarn-capacity", "yarn-capacity{preemption=true}", "yarn-fair", "yarn-fair{preemption=true}"]),
    ("predicted run times", [], ["sjf{estimate=history,half_life_jobs=0,skip=true}",
                                 "saf{estimate=history,half_life_jobs=0,skip=true}",
                                 "themis{estimate=history,half_life_jobs=0}"]),
    ("oracle", [], ["srtf", "srsf", "saf{estimate=exact,skip=true}"]),
    ("nodes apart at 0.8 of the speed", SPAN, ["fifo-skip", "fgd", "k8s", "drf{by=vc}", "las", "rl:builtin/philly", "srtf"]),
]
# Jobs that name a virtual cluster: on Philly's nodes as the Helios authors divided them, undivided, and where they queue.
OWNED = [("philly-vc", ["fifo"]), ("philly", ["fifo", STATIC, "static-partition{by=vc}"]),
         ("64x8", ["fifo", "fifo-skip", "drf{by=vc}", STATIC, "las"])]
FIGURES = ["avg_jct_s", "median_jct_s", "avg_wait_s", "p99_wait_s", "avg_bounded_slowdown", "gpu_utilization"]
SEEDED = ["fifo-skip", "fifo", "fifo+easy{estimate=history,half_life_jobs=0}", "drf{by=vc}", "fgd", "las", "rl:builtin/philly",
          "agenda{mode=preempt,heuristic=gittins,half_life_jobs=0}", "k8s", "volcano", "srtf"]


def replay(program, trace, cluster, policies, options):
    command = [program, "replay", trace, "--cluster", cluster, "--oversize", "drop", "--policy", ",".join(policies), *options]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def percentile(values, share):
    """Type 7 of Hyndman and Fan (1996), as in the metrics of gpusched."""
    values = sorted(values)
    at = share * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


def size_of(gpus):
    return "1" if gpus <= 1 else "2-8" if gpus <= 8 else "9-"


def payers_of(path):
    """Median and p99 of the waits by owner, by size and of all: rows of group, key, jobs, median, p99."""
    waits = collections.defaultdict(list)
    with open(path, newline="") as source:
        for row in csv.DictReader(source):
            wait = float(row["wait_s"])
            for group in (("all", ""), ("vc", row["vc"] or "(none)"), ("gpus", size_of(float(row["gpus"])))):
                waits[group].append(wait)
    return [[*group, len(values), statistics.median(values), percentile(values, 0.99), max(values)]
            for group, values in sorted(waits.items())]


def payers(options):
    """Rows of policy and payers_of; one replay at a time, as its files are large."""
    rows = []
    for policy in PAYERS:
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch, "out")
            replay(options.gpusched, options.trace, options.cluster, [policy], ["--out", str(folder)])
            [path] = folder.glob("*/jobs.csv")
            rows += [[policy, *row] for row in payers_of(path)]
    return rows


def print_payers(rows):
    by_policy = collections.defaultdict(dict)
    for policy, group, key, jobs, median, p99, worst in rows:
        by_policy[policy][group, key] = (jobs, median, p99, worst)
    print(f"{'waits, hours':42} {'median':>9} {'p99':>9} {'longest':>9} {'p99 1 GPU':>9} {'2-8':>9} {'9-':>9}  "
          "virtual cluster of the longest median")
    for policy, groups in by_policy.items():
        hours = [groups["all", ""][i] / 3600 for i in (1, 2, 3)]
        hours += [groups["gpus", size][2] / 3600 if ("gpus", size) in groups else 0 for size in ("1", "2-8", "9-")]
        owners = [(values[1], key) for (group, key), values in groups.items() if group == "vc" and values[0] >= LEAST_JOBS]
        worst = f"{max(owners)[1]} {max(owners)[0] / 3600:.2f}" if owners and max(owners)[0] > 0 else "-"
        print(f"{policy:42} " + " ".join(f"{value:9.2f}" for value in hours) + "  " + worst)
    print()


def variants(options):
    plans = [(question, options.cluster, policies, more) for question, more, policies in VARIANTS]
    owned = [] if options.smoke else OWNED  # the clusters fit the real trace
    plans += [("jobs with a virtual cluster", cluster, policies, ["--where", "vc!="]) for cluster, policies in owned]
    rows = []
    for question, cluster, policies, more in plans:
        for run in json.loads(replay(options.gpusched, options.trace, cluster, policies, [*more, "--json"]))["runs"]:
            rows.append([question, cluster, run["policy"], *(run["metrics"][figure] for figure in FIGURES)])
    return rows


def print_variants(rows):
    print(f"{'question':34} {'cluster':10} {'policy':46} {'mean, h':>9} {'p99 wait, d':>12} {'slowdown':>9}")
    for question, cluster, policy, *figures in rows:
        of = dict(zip(FIGURES, figures))
        print(f"{question:34} {cluster:10} {policy:46} {of['avg_jct_s'] / 3600:9.2f} {of['p99_wait_s'] / 86400:12.2f} "
              f"{of['avg_bounded_slowdown']:9.2f}")
    print()


def seeds(options):
    """comparison.csv of a sweep over drawn logs, against the first policy."""
    # Ten seeds: with eight, no p of ten comparisons can be below 0.05 after Holm's correction.
    jobs, cluster, last = (300, "16x8", 3) if options.smoke else (10000, "24x8", 10)
    plan = {"base": {"trace": f"synthetic:philly:{jobs}", "cluster": cluster, "oversize": "drop",
                     "preemption": {"restart_s": 60}},
            "grid": {"policy": SEEDED, "seed": {"from": 1, "to": last}}}
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([options.gpusched, "sweep", "--out", scratch, "-"], check=True, input=json.dumps(plan), text=True,
                       stdout=subprocess.DEVNULL)
        with open(pathlib.Path(scratch, "comparison.csv"), newline="") as source:
            return list(csv.DictReader(source))


def print_seeds(rows):
    print("against the first policy over seeds, relative difference of avg_jct_s [95 % interval]")
    for row in rows:
        if row["figure"] != "avg_jct_s":
            continue
        interval = "" if not row["relative_low_95"] else (f"[{100 * float(row['relative_low_95']):+.1f}, "
                                                          f"{100 * float(row['relative_high_95']):+.1f}]")
        print(f"{row['policy']:46} {100 * float(row['relative_difference']):+8.1f} % {interval}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("gpusched", "trace", "cluster"):
        parser.add_argument(name)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--smoke", action="store_true", help="few and small logs")
    options = parser.parse_args()

    rows = payers(options)
    print_payers(rows)
    write_csv(options.out / "payers.csv", ["policy", "group", "key", "jobs", "median_wait_s", "p99_wait_s", "longest_wait_s"], rows)
    rows = variants(options)
    print_variants(rows)
    write_csv(options.out / "variants.csv", ["question", "cluster", "policy", *FIGURES], rows)
    rows = seeds(options)
    print_seeds(rows)
    write_csv(options.out / "seeds.csv", list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    main()
