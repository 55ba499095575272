#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws a log of training jobs with the models, sizes and run times of Gavel's evaluation, which come at random times.

usage: jobs.py THROUGHPUTS JOBS PER_HOUR SEED > log.csv

THROUGHPUTS: gavel_simulation_throughputs.json of its artifact. Sizes and run times are those of Narayanan et al., OSDI'20, section
7.1: 70 % of the jobs have 1 GPU, 10 % 2, 15 % 4 and 5 % 8; run times on a V100 are 10^x minutes, x uniform from 1.5 to 3 for 80 % of
them and from 3 to 4 for the others. A job's model is any that was measured with as many GPUs, each as probable; it may use the GPU
types on which it ran. Arrivals are a Poisson process of PER_HOUR jobs an hour; of several rates, 1.4,2.0, each holds for 1,000 jobs
by turns.
"""
import ast
import csv
import json
import math
import random
import sys

TYPES = ("v100", "p100", "k80")


def measured(path):
    """Names of the models by GPUs, each with the GPU types where it ran; throughputs are steps a second."""
    models = {}
    with open(path, encoding="utf-8") as source:
        table = json.load(source)
    for gpu_type in TYPES:
        for key, row in table[gpu_type].items():
            name, gpus = ast.literal_eval(key)
            if row["null"] > 0:
                models.setdefault(gpus, {}).setdefault(name, []).append(gpu_type)
    return {gpus: sorted(of.items()) for gpus, of in models.items()}


def size(rng):
    at = rng.random()
    return 8 if at >= 0.95 else 4 if at >= 0.8 else 2 if at >= 0.7 else 1


def seconds(rng):
    low, high = (3, 4) if rng.random() >= 0.8 else (1.5, 3)
    return 60 * 10 ** (low + (high - low) * rng.random())


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    models = measured(sys.argv[1])
    jobs, rates = int(sys.argv[2]), [float(rate) for rate in sys.argv[3].split(",")]
    rng = random.Random(int(sys.argv[4]))
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["job_id", "submit_s", "work_s", "tasks", "gpu_milli_per_task", "gpu_spec", "family"])
    now = 0.0
    for job in range(jobs):
        now -= math.log(1 - rng.random()) * 3600 / rates[job // 1000 % len(rates)]
        gpus, run = size(rng), seconds(rng)
        known = models.get(gpus)
        if not known:
            sys.exit(f"{sys.argv[1]}: no model was measured with {gpus} GPUs")
        name, types = known[int(rng.random() * len(known))]
        spec = "" if len(types) == len(TYPES) else "|".join(types)
        out.writerow([job, round(now), round(run), gpus, 1000, spec, name])


main()
