#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The yardstick for the @muri policies: the Muri artifact's own simulator on the same traces, run beside ours.

usage: muri_peer.py GPUSCHED TRACES CHECKOUT
  GPUSCHED  the program
  TRACES    the folder with philly/muri_trace1.csv
  CHECKOUT  a checkout of github.com/Rivendile/Muri; this Python must have what its simulator imports (numpy, cvxpy)

Checks that both give the same average JCT, then prints jobs per second of processor time. Theirs is from reading the
trace to the last event, its logs included, the start of Python and its imports not; ours is the whole process.
"""
import csv
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

SCHEDULES = [("shortest", "srtf@muri"), ("shortest-gpu", "srsf@muri"), ("dlas-gpu", "tiresias@muri")]
TRACES = ["muri_trace1.csv", "muri_trace2.csv"]
TOLERANCE = 1e-6  # relative, of average JCTs
OUR_RUNS = 20  # one takes milliseconds

# Runs in the simulator's folder; the last line it prints is the processor time of its main(), in seconds.
TIMED_MAIN = """
import time
import run_sim
start = time.process_time()
run_sim.main()
print(time.process_time() - start)
"""


def fail(code, message):
    print(f"muri_peer.py: {message}", file=sys.stderr)
    sys.exit(code)


def need(path, what):
    """The absolute path of a file that must exist."""
    if not path.is_file():
        fail(2, f"{path} is missing: {what}")
    return path.resolve()


def theirs(simulator, trace, schedule):
    """(jobs, average JCT in seconds, processor time in seconds) of the artifact's simulator on 8 nodes of 8 GPUs."""
    with tempfile.TemporaryDirectory() as logs:
        command = [sys.executable, "-B", "-c", TIMED_MAIN, "--cluster_spec=cluster_spec/n8g8.csv", "--scheme=yarn",
                   f"--trace_file={trace}", f"--schedule={schedule}", f"--log_path={logs}"]
        run = subprocess.run(command, cwd=simulator, capture_output=True, text=True)
        if run.returncode != 0:
            lines = run.stderr.strip().splitlines() or ["it says nothing"]
            fail(1, f"{simulator}/run_sim.py, schedule {schedule}: exit code {run.returncode}: {lines[-1]}")
        with open(pathlib.Path(logs) / "job.csv", newline="") as log:
            jcts = [float(row["JCT"]) for row in csv.DictReader(log)]
    if not jcts:
        fail(1, f"{simulator}/run_sim.py, schedule {schedule}: no job in its job.csv")
    return len(jcts), statistics.fmean(jcts), float(run.stdout.splitlines()[-1])


def children_time():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def ours(program, trace, policy):
    """The same of gpusched, the mean time of OUR_RUNS processes."""
    command = [program, "replay", "--trace", trace, "--format", "tiresias", "--cluster", "8x8", "--policy", policy,
               "--json"]
    start = children_time()
    for _ in range(OUR_RUNS):
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode != 0:
            fail(1, f"{program}: exit code {run.returncode}: {run.stderr.strip()}")
    seconds = (children_time() - start) / OUR_RUNS
    report = json.loads(run.stdout)
    return report["manifest"]["trace"]["kept"], report["runs"][0]["metrics"]["avg_jct_s"], seconds


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    program = need(pathlib.Path(sys.argv[1]), "expected the gpusched program")
    traces = [need(pathlib.Path(sys.argv[2]) / "philly" / name, "expected a Muri trace") for name in TRACES]
    simulator = need(pathlib.Path(sys.argv[3]) / "simulator" / "run_sim.py",
                     "expected a checkout of github.com/Rivendile/Muri").parent
    print("| trace | policy | jobs | avg JCT, s | difference | Muri, jobs/s | gpusched, jobs/s | ratio |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for trace in traces:
        for schedule, policy in SCHEDULES:
            their_jobs, their_jct, their_seconds = theirs(simulator, trace, schedule)
            jobs, jct, seconds = ours(program, trace, policy)
            difference = jct / their_jct - 1
            if jobs != their_jobs or abs(difference) > TOLERANCE:
                fail(1, f"{trace.name}, {policy}: {jobs} jobs, average JCT {jct} s; expected, from the artifact's "
                        f"schedule {schedule}, {their_jobs} jobs and {their_jct} s")
            print(f"| {trace.stem} | {policy} | {jobs:,} | {their_jct:.3f} | {difference:+.0e} | "
                  f"{jobs / their_seconds:,.0f} | {jobs / seconds:,.0f} | {their_seconds / seconds:,.0f} |", flush=True)


main()
