# SPDX-License-Identifier: Apache-2.0
"""What muri_peer.py and tiresias_peer.py share: run a simulator of that family, run gpusched beside it, compare.

Seconds are processor time. Theirs are from reading the trace to the last event, the logs included, the start of Python
and its imports not; ours are those of the whole process, the mean of OUR_RUNS.
"""
import csv
import dataclasses
import json
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

TOLERANCE = 1e-9  # relative, of average JCTs; one demotion check a second off moves them by 1e-7
OUR_RUNS = 20  # one takes milliseconds

# Runs in the simulator's folder, under Python 2 or 3; the last line it prints is the time of its main().
TIMED_MAIN = """
import resource
import run_sim

def seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime

start = seconds()
run_sim.main()
print(seconds() - start)
"""


@dataclasses.dataclass(frozen=True)
class Run:
    jobs: int
    avg_jct_s: float
    seconds: float


def fail(code, message):
    print(f"{pathlib.Path(sys.argv[0]).name}: {message}", file=sys.stderr)
    sys.exit(code)


def need_file(path, what):
    """The absolute path of a file that must exist."""
    if not path.is_file():
        fail(2, f"{path} is missing: expected {what}")
    return path.resolve()


def need_program(name, what):
    path = shutil.which(name)
    if path is None:
        fail(2, f"{name} is missing or cannot be run: expected {what}")
    return pathlib.Path(path).absolute()


def theirs(python, simulator, arguments):
    """A run of the checkout's run_sim.py in its own folder."""
    with tempfile.TemporaryDirectory() as logs:
        command = [python, "-B", "-c", TIMED_MAIN, *arguments, f"--log_path={logs}"]
        run = subprocess.run(command, cwd=simulator, capture_output=True, text=True)
        if run.returncode != 0:
            lines = run.stderr.strip().splitlines() or ["it says nothing"]
            fail(1, f"{simulator}/run_sim.py: exit code {run.returncode}: {lines[-1]}")
        try:
            with open(pathlib.Path(logs) / "job.csv", newline="") as log:
                jcts = [float(row["JCT"]) for row in csv.DictReader(log)]
        except (OSError, KeyError, ValueError) as error:
            fail(1, f"{simulator}/run_sim.py: its job.csv cannot be read: {error!r}")
    if not jcts:
        fail(1, f"{simulator}/run_sim.py: no job in its job.csv")
    return Run(len(jcts), statistics.fmean(jcts), float(run.stdout.splitlines()[-1]))


def children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def ours(program, arguments):
    command = [program, "replay", *arguments, "--json"]
    start = children_seconds()
    for _ in range(OUR_RUNS):
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode != 0:
            fail(1, f"{program}: exit code {run.returncode}: {run.stderr.strip()}")
    seconds = (children_seconds() - start) / OUR_RUNS
    report = json.loads(run.stdout)
    return Run(report["manifest"]["trace"]["kept"], report["runs"][0]["metrics"]["avg_jct_s"], seconds)


def print_head(peer):
    print(f"| trace | schedule | policy | jobs | avg JCT, s | difference | {peer}, jobs/s | gpusched, jobs/s | ratio |")
    print("|---" * 9 + "|", flush=True)


def print_row(trace, schedule, policy, their, our):
    """One line of the table; ends the program if the two did not simulate the same."""
    difference = our.avg_jct_s / their.avg_jct_s - 1
    if our.jobs != their.jobs or abs(difference) > TOLERANCE:
        fail(1, f"{trace}, {policy}: {our.jobs} jobs, average JCT {our.avg_jct_s} s; "
                f"expected, from schedule {schedule}, {their.jobs} jobs and {their.avg_jct_s} s")
    print(f"| {trace} | {schedule} | {policy} | {our.jobs:,} | {their.avg_jct_s:.3f} | {difference:+.0e} | "
          f"{their.jobs / their.seconds:,.0f} | {our.jobs / our.seconds:,.0f} | {their.seconds / our.seconds:,.0f} |",
          flush=True)
