#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the sample traces of traces/sample by the generator.

    scripts/sample_traces.py PROGRAM [--check]

philly.csv is a synthetic trace. sacct.txt and nodes.txt are what sacct and scontrol of a small Slurm cluster would have printed that
ran a second synthetic trace under fifo+easy. With --check nothing is written: exit code 1 if a file is not what the program makes.
"""
import csv
import datetime
import math
import pathlib
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "traces" / "sample"
NODES, GPUS_PER_NODE, CPUS_PER_GPU, GIB_PER_GPU = 4, 8, 8, 64
TIME_LIMITS_MIN = (60, 240, 1440, 4320, 10080, 43200)  # what users of the sample ask for: the least that holds the job
STATES = {"passed": "COMPLETED", "failed": "FAILED", "killed": "CANCELLED by 1001"}
FIELDS = ("JobID", "User", "Account", "Partition", "QOS", "State", "Submit", "Eligible", "Start", "End", "ElapsedRaw",
          "TimelimitRaw", "ReqTRES", "AllocTRES", "NNodes", "JobName")


def run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def clock(seconds):
    return (datetime.datetime(2024, 1, 1) + datetime.timedelta(seconds=seconds)).isoformat()


def sacct_line(number, job):
    """A job of replay's jobs.csv as sacct prints it, in whole seconds."""
    gpus, submit, start = int(job["gpus"]), int(float(job["submit_s"])), math.ceil(float(job["first_start_s"]))
    elapsed = max(1, math.ceil(float(job["run_s"])))
    nodes = math.ceil(gpus / GPUS_PER_NODE)
    limit = next((limit for limit in TIME_LIMITS_MIN if 60 * limit >= elapsed), TIME_LIMITS_MIN[-1])
    resources = f"cpu={CPUS_PER_GPU * gpus},gres/gpu={gpus},mem={GIB_PER_GPU * gpus}G,node={nodes}"
    values = (1000 + number, job["user"], job["vc"], "gpu", "normal", STATES[job["status"]], clock(submit), clock(submit),
              clock(start), clock(start + elapsed), elapsed, limit, resources, resources, nodes, "train")
    return "|".join(map(str, values)) + "\n"


def node_line(number):
    gpus = GPUS_PER_NODE
    return (f"NodeName=gpu{number} Arch=x86_64 CPUTot={CPUS_PER_GPU * gpus} RealMemory={1024 * GIB_PER_GPU * gpus} "
            f"Gres=gpu:{gpus} State=IDLE Partitions=gpu\n")


def make(program, folder):
    run(program, "trace", "generate", "--model", "philly", "--jobs", "1000", "--load", "0.6", "--cluster", "8x8", "--seed", "1",
        "--out", folder / "philly.csv")
    cluster = f"{NODES}x{GPUS_PER_NODE}"
    with tempfile.TemporaryDirectory() as scratch:
        trace, out = f"{scratch}/jobs.csv", f"{scratch}/out"
        run(program, "trace", "generate", "--model", "philly", "--jobs", "400", "--load", "0.5", "--cluster", cluster, "--seed", "10",
            "--out", trace)
        run(program, "replay", trace, "--cluster", cluster, "--policy", "fifo+easy", "--out", out)
        with open(f"{out}/fifo+easy/jobs.csv", encoding="utf-8") as file:
            lines = [sacct_line(number, job) for number, job in enumerate(csv.DictReader(file))]
    (folder / "sacct.txt").write_text("|".join(FIELDS) + "\n" + "".join(lines))
    (folder / "nodes.txt").write_text("".join(node_line(number) for number in range(NODES)))


def check(program):
    with tempfile.TemporaryDirectory() as scratch:
        made = pathlib.Path(scratch)
        make(program, made)
        return [file.name for file in sorted(made.iterdir()) if file.read_bytes() != (FOLDER / file.name).read_bytes()]


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--check"]):
        sys.exit(__doc__)
    if sys.argv[2:]:
        changed = check(sys.argv[1])
        sys.exit(f"traces/sample: not what the program makes: {', '.join(changed)}" if changed else 0)
    make(sys.argv[1], FOLDER)
