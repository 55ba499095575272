#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A million jobs on 100,000 GPUs with everything on: failures, checkpoints, stages, changes, speeds by type, spans, shares.

    bench/all_effects.py GPUSCHED TRACES [--jobs 1000000] [--gpus 60000 220000] [--policies "fifo las"]

Draws the jobs by TRACES/repro/scale/all_effects.py. --gpus: for how many GPUs they are drawn; above the cluster's 100,000 they
queue. Prints csv: gpus,policy,seconds (of processor time),memory_mib."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
POLICIES = "fifo fifo+easy srtf las slurm"


def command(program, scale, jobs, policy):
    return [program, "replay", jobs, "--cluster", scale / "large.json", "--throughputs", scale / "speeds.csv",
            "--span-speed", "nodes=0.9,racks=0.7", "--reference-span", "narrowest", "--stages", scale / "stages.json",
            "--failures", ROOT / "examples" / "failures" / "rsc.json", "--checkpoint-interval", "3600",
            "--restart-cost", "30", "--oversize", "drop", "--changes", f"{jobs}.changes", "--policy", policy,
            "--threads", "1"]


def measure(words):
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"all_effects.py: failed: {' '.join(map(str, words))}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("traces", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--gpus", type=int, nargs="+", default=[60_000, 220_000])
    parser.add_argument("--policies", default=POLICIES)
    options = parser.parse_args()
    scale = options.traces / "repro" / "scale"
    print("gpus,policy,seconds,memory_mib")
    with tempfile.TemporaryDirectory() as folder:
        for gpus in options.gpus:
            jobs = pathlib.Path(folder) / f"{gpus}.csv"
            subprocess.run([sys.executable, scale / "all_effects.py", str(options.jobs), str(gpus), "1000", jobs, "1"],
                           check=True)
            for policy in options.policies.split():
                seconds, memory = measure(command(options.program, scale, jobs, policy))
                print(f"{gpus},{policy},{seconds:.1f},{memory:.0f}", flush=True)


if __name__ == "__main__":
    main()
