#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs per second with devices that differ and gangs that are apart, beside the same with both off.

usage: devices_topology.py GPUSCHED TRACES

Philly's 80,539 jobs on 280 nodes of 8 GPUs, in 28 racks: 100 nodes of type a, 90 of b at 0.8 of its speed, 90 of c at half.
Gangs run at 0.9 of their speed on several nodes and at 0.7 on several racks. Then 1,000,000 generated jobs at a load of 0.95
on 100,000 such GPUs. All is of the process `gpusched replay`, jobs/s of the simulation alone.
"""
import csv
import json
import pathlib
import subprocess
import sys
import tempfile
import time

SPEEDS = {"a": 1.0, "b": 0.8, "c": 0.5}
APART = ["--span-speed", "nodes=0.9,racks=0.7", "--reference-span", "narrowest"]


def write_cluster(path, racks, nodes):
    kinds = list(SPEEDS)
    rows = [{"count": nodes, "gpus": 8, "gpu_type": kinds[rack % 3], "rack": f"rack{rack}"} for rack in range(racks)]
    path.write_text(json.dumps({"name": "mixed", "nodes": rows}))


def write_speeds(path):
    with open(path, "w", newline="") as target:
        csv.writer(target).writerows([["family", "gpu_type", "throughput"], *(["", *row] for row in SPEEDS.items())])


def show(program, trace, what, options):
    begin = time.monotonic()
    asked = subprocess.run([str(word) for word in [program, "replay", trace, "--json", "--oversize", "drop", *options]],
                           check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    seconds = time.monotonic() - begin
    run = json.loads(asked.stdout)["runs"][0]
    memory = json.loads(asked.stdout)["manifest"]["execution"]["peak_memory_bytes"]
    print(f"{what:32} {run['policy']:9} {run['metrics']['jobs_per_s']:12,.0f} jobs/s {seconds:7.2f} s {memory / 2**20:7,.0f} MiB"
          f"   avg JCT {run['metrics']['avg_jct_s']:,.0f} s", flush=True)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    program, traces = sys.argv[1], pathlib.Path(sys.argv[2])
    philly = traces / "philly/philly_jobs.csv"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_cluster(folder / "mixed.json", 28, 10)
        write_cluster(folder / "large.json", 500, 25)
        write_speeds(folder / "speeds.csv")
        mixed = ["--cluster", folder / "mixed.json", "--throughputs", folder / "speeds.csv"]
        for policy in ["fifo", "srtf"]:
            show(program, philly, "off", ["--policy", policy, "--cluster", "280x8"])
            show(program, philly, "devices", ["--policy", policy, *mixed])
            show(program, philly, "devices, topology", ["--policy", policy, *mixed, *APART])
            show(program, philly, "devices, topology, fastest", ["--policy", policy, *mixed, *APART, "--placement", "fastest"])
        jobs = folder / "jobs.csv"
        subprocess.run([program, "trace", "generate", "--model", "philly", "--jobs", "1000000", "--load", "0.95", "--cluster",
                        "12500x8", "--out", jobs], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        large = ["--cluster", folder / "large.json", "--throughputs", folder / "speeds.csv", *APART]
        for policy in ["fifo", "srtf", "tiresias"]:
            show(program, jobs, "100,000 GPUs, 1,000,000 jobs", ["--policy", policy, *large])


if __name__ == "__main__":
    main()
