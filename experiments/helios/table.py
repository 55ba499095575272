#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the average JCT of HeliosArtifact's policies on Philly, by virtual cluster: published | gpusched | difference.

usage: table.py GPUSCHED CLUSTER_LOG [--csv FILE]      GPUSCHED: the program; CLUSTER_LOG: the artifact's Philly/cluster_log.csv
"""
import csv
import datetime
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from table_csv import Table, options_of  # noqa: E402

POLICIES = ["fifo@helios", "sjf@helios", "srtf@helios", "qssf@helios"]
PUBLISHED = {  # seconds, rounded down; framework/QSSF Service/plot/result_plot.ipynb (Figure 13 of the paper)
    "6214e9": [97501, 23337, 19532, 26022],
    "7f04ca": [133826, 133271, 132980, 133941],
    "11cb48": [82540, 14444, 9057, 21051],
    "b436b2": [28732, 28610, 28291, 28642],
    "ee9e8c": [243144, 130493, 122609, 132367],
    "e13805": [87265, 85949, 85314, 85886],
    "6c71a0": [31088, 31030, 31020, 31019],
    "2869ce": [70215, 56388, 53128, 58088],
    "ed69ec": [28345, 28346, 28346, 28346],
    "103959": [24743, 23283, 22735, 23219],
    "0e4a51": [233539, 168747, 146023, 196886],
    "all": [86072, 34272, 30683, 37324],
}
FIRST = datetime.datetime(2017, 10, 1)
LAST = datetime.datetime(2017, 11, 30, 23, 59)


def simulated_jobs(cluster_log):
    """(submit, gpus, duration, vc) of the jobs that the artifact simulates, seconds from the first of them."""
    rows = []
    with open(cluster_log, newline="") as source:
        for row in csv.DictReader(source):
            submit = datetime.datetime.fromisoformat(row["submit_time"])
            if int(row["gpu_num"]) > 0 and row["vc"] in PUBLISHED and submit >= FIRST:
                rows.append((submit, int(row["gpu_num"]), int(float(row["duration"])), row["vc"]))
    zero = rows[0][0]  # the first in the file, as in the artifact
    seconds = [(int((submit - zero).total_seconds()), *rest) for submit, *rest in rows]
    return sorted((row for row in seconds if 0 <= row[0] <= (LAST - FIRST).total_seconds()), key=lambda row: row[0])


def write_trace(path, jobs):
    with open(path, "w", newline="") as target:
        writer = csv.writer(target)
        writer.writerow(["job_id", "submit_s", "num_gpus", "duration_s", "vc"])
        writer.writerows([number, *job] for number, job in enumerate(jobs))


def average_jct(program, trace, policy, jobs, folder):
    """By virtual cluster."""
    subprocess.run([program, "replay", "--trace", trace, "--format", "philly-csv", "--cluster", "philly-vc",
                    "--policy", policy, "--out", folder], check=True, stdout=subprocess.DEVNULL)
    sums = {}
    for file in pathlib.Path(folder).rglob("jobs.csv"):
        with open(file, newline="") as source:
            for row in csv.DictReader(source):
                for name in (jobs[int(row["job_id"])][3], "all"):
                    total, count = sums.get(name, (0.0, 0))
                    sums[name] = (total + float(row["jct_s"]), count + 1)
    return {name: total / count for name, (total, count) in sums.items()}


def main():
    options = options_of(__doc__, "cluster_log")
    cluster_log = pathlib.Path(options.cluster_log)
    if not cluster_log.exists():
        print(f"skipped: {cluster_log} is absent; HeliosArtifact's README says how to make it from the Philly trace",
              file=sys.stderr)
        sys.exit(77)
    jobs = simulated_jobs(cluster_log)
    table = Table(["vc", "policy"], options)
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder) / "philly.csv"
        write_trace(trace, jobs)
        ours = {policy: average_jct(options.gpusched, trace, policy, jobs, pathlib.Path(folder) / policy)
                for policy in POLICIES}
    for vc, published in PUBLISHED.items():
        for policy, theirs in zip(POLICIES, published):
            mean = ours[policy].get(vc)
            if mean is not None:  # the artifact rounds down
                table.add(vc, policy, published=theirs, ours=mean if options.no_published else int(mean))
    table.write(digits=1)


main()
