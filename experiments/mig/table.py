#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how long jobs wait for parts of GPUs, by how the GPUs are shared.

usage: table.py GPUSCHED PODS [--out FOLDER] [--smoke]

Two mixes of jobs on nodes of 8 A100-40GB under fifo with EASY backfilling by known run times, arrivals Poisson:
  openb   demands and run times of the pods of at most one GPU of PODS (openb_pod_list_default.csv)
  small   1/7 to 4/7 of a GPU, as inference and notebooks ask for, and one job in twenty for a whole GPU; run times
          exponential with a mean of half an hour (made up)
Jobs of less than a GPU ask for thousandths of one and, in proportion, for its memory. FOLDER gets table.csv.
"""
import argparse
import csv
import itertools
import json
import pathlib
import random
import subprocess
import tempfile

GPUS_PER_NODE, MEMORY_GIB = 8, 40
SEVEN = ["1g.5gb"] * 7
MIXED = ["3g.20gb", "2g.10gb", "1g.5gb", "1g.5gb"]
HALVES = ["4g.20gb", "3g.20gb"]
WHOLE = ["7g.40gb"]

# Name of the layout, what stands in the cluster file for a node, and options of replay.
LAYOUTS = [
    ("whole GPUs", {}, []),
    ("MIG, 2 of 8 GPUs 7 x 1g", {"mig": [SEVEN] * 2 + [WHOLE] * 6}, []),
    ("MIG, 4 of 8 GPUs 4g + 3g", {"mig": [HALVES] * 4 + [WHOLE] * 4}, []),
    ("MIG, 4 of 8 GPUs 3g + 2g + 1g + 1g", {"mig": [MIXED] * 4 + [WHOLE] * 4}, []),
    ("MIG, all but one 3g + 2g + 1g + 1g", {"mig": [MIXED] * 7 + [WHOLE]}, []),
    ("MIG, dynamic, 10 s", {"mig": "dynamic"}, []),
    ("MIG, dynamic, first fit, 10 s", {"mig": "dynamic-first-fit"}, []),
    ("MIG, dynamic, 60 s", {"mig": {"layout": "dynamic", "reconfigure_s": 60}}, []),
    ("MPS, pairs of Lucid", {}, ["pairs"]),
    ("MPS, no interference", {}, []),
    ("time slicing", {"sharing": "time-slicing"}, []),
]
LOADS = [0.6, 0.9]  # GPU time that the jobs ask for over that of the GPUs
FIGURES = ["avg_wait_s", "p99_wait_s", "avg_jct_s", "avg_bounded_slowdown", "gpu_utilization"]
# Mean speed of a job beside another on an RTX 3090, measured by Lucid (ASPLOS'23), over its pairs of jobs.
PAIR_SPEED = 0.937


def openb_mix(pods, jobs):
    """(GPU thousandths, seconds) of pods of one GPU or less that ran, in the order of the file."""
    mix = []
    with open(pods, newline="") as source:
        for row in csv.DictReader(source):
            if int(row["num_gpu"]) != 1 or not row["scheduled_time"] or not row["deletion_time"]:
                continue
            seconds = int(row["deletion_time"]) - int(row["scheduled_time"])
            if seconds > 0:
                mix.append((int(row["gpu_milli"]), seconds))
    return mix[:jobs]


def small_mix(jobs, rng):
    sizes = [142, 142, 142, 142, 285, 285, 428, 571]
    return [(1000 if rng.random() < 0.05 else rng.choice(sizes), max(1, round(rng.expovariate(1 / 1800))))
            for _ in range(jobs)]


def write_jobs(path, mix, gpus, load, rng, whole):
    """Native csv; at this load by what the jobs ask for."""
    demand = sum(milli / 1000 * seconds for milli, seconds in mix)
    gap = demand / (load * gpus) / len(mix)
    now = 0.0
    with open(path, "w", newline="") as target:
        writer = csv.writer(target, lineterminator="\n")
        writer.writerow(["job_id", "submit_s", "work_s", "tasks", "gpu_milli_per_task", "gpu_spec", "estimate_s", "family"])
        for number, (milli, seconds) in enumerate(mix):
            now += rng.expovariate(1 / gap)
            share = milli < 1000 and not whole
            mib = milli * MEMORY_GIB * 1024 // 1000 // 8 * 7 if share else 0  # an instance of n sevenths has n eighths
            writer.writerow([number, f"{now:.3f}", seconds, 1, milli if share else 1000,
                             f"@{mib}MiB" if share else "", seconds, "job"])


def write_cluster(path, nodes, sharing):
    node = {"count": nodes, "gpus": GPUS_PER_NODE, "gpu_type": "A100-40GB", **sharing}
    path.write_text(json.dumps({"name": "a100", "gpu_types": {"A100-40GB": {"memory_gib": MEMORY_GIB}}, "nodes": [node]}))


def replay(program, folder, jobs, options):
    command = [program, "replay", jobs, "--cluster", folder / "cluster.json", "--policy",
               "fifo+easy{estimate=user,overrun=double}",  # as when the frozen tables were made
               "--json", *options]
    asked = subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE)
    return json.loads(asked.stdout)["runs"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gpusched")
    parser.add_argument("pods")
    parser.add_argument("--out", default=".")
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    count, nodes = (200, 2) if options.smoke else (8000, 8)
    lines = [["load", "mix", "layout", *FIGURES, "reconfigurations", "reconfiguration_gpu_h"]]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        pairs = folder / "pairs.csv"
        pairs.write_text("family,gpu_type,throughput,gpus,beside\n"
                         f"job,A100-40GB,1,0,\njob,A100-40GB,{PAIR_SPEED},1,job\n")
        mixes = {"openb": openb_mix(options.pods, count), "small": small_mix(count, random.Random(1))}
        for load, mix_name, (layout, sharing, extra) in itertools.product(LOADS, mixes, LAYOUTS):
            mix = mixes[mix_name]
            jobs = folder / "jobs.csv"
            write_jobs(jobs, mix, nodes * GPUS_PER_NODE, load, random.Random(2), layout == "whole GPUs")
            write_cluster(folder / "cluster.json", nodes, sharing)
            given = ["--throughputs", pairs, "--interference", "throughputs"] if extra else []
            run = replay(options.gpusched, folder, jobs, given)
            mig = run.get("mig", {"reconfigurations": 0, "reconfiguration_gpu_hours": 0})
            lines.append([load, mix_name, layout, *[run["metrics"][figure] for figure in FIGURES],
                          mig["reconfigurations"], mig["reconfiguration_gpu_hours"]])
    show(lines)
    with open(pathlib.Path(options.out) / "table.csv", "w", newline="") as target:
        csv.writer(target, lineterminator="\n").writerows(lines)


def show(lines):
    texts = [lines[0]] + [[str(line[0]), *line[1:3], *[f"{value:,.4g}" if value < 1000 else f"{value:,.0f}" for value in line[3:]]]
                          for line in lines[1:]]
    widths = [max(map(len, column)) for column in zip(*texts)]
    for line in texts:
        print("  ".join([text.ljust(width) for text, width in zip(line[:3], widths)] +
                        [text.rjust(width) for text, width in zip(line[3:], widths[3:])]))


if __name__ == "__main__":
    main()
