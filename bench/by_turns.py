#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether a change costs speed: two programs replay the same jobs by turns, old, new, old, new.

    bench/by_turns.py OLD_PROGRAM NEW_PROGRAM [--runs 5] [--jobs 1000000] [--crowd 100000] [--env OLD_BENCH NEW_BENCH]
    bench/by_turns.py OLD_PROGRAM NEW_PROGRAM --trace FILE --cluster 280x8 --policies "allox pollux" [--runs 3]

Prints the least processor time of each and their ratio: per policy on --jobs jobs of the model `philly` at load 0.9, and
on --crowd jobs at load 3, where queues are long; both on 40x8, on one thread. --env: two builds of env_bench, whose steps
are compared in the same way. --trace: those policies on that trace, and jobs a second. Reading the trace is part of each time. Waiting does not count, but a busy
machine still adds some per cent: repeat a ratio that matters."""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

POLICIES = ["fifo", "srtf", "tiresias", "fifo+easy", "las"]
CLUSTER = "40x8"


def processor_s(command):
    """User and system seconds of a command, its children's included, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"by_turns.py: {' '.join(map(str, command))}: {done.stderr.strip()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, done.stdout


def least_by_turns(runs, measure, programs):
    """The least of `runs` measures of each program; the first goes first in even turns, so that neither always does."""
    least = {}
    for turn in range(runs):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            value = measure(programs[which])
            least[which] = min(value, least.get(which, value))
    return least[0], least[1]


def print_row(name, old, new, unit):
    print(f"| {name} | {old:.2f} | {new:.2f} | {unit} | {new / old:.3f} |", flush=True)


def replay_rows(arguments, programs, folder):
    for label, jobs, load in [("load .9", arguments.jobs, "0.9"), ("load 3", arguments.crowd, "3")]:
        if jobs == 0:
            continue
        trace = folder / f"{label}.csv"
        processor_s([programs[0], "trace", "generate", "--model", "philly", "--jobs", jobs, "--load", load, "--cluster",
                     CLUSTER, "--seed", "1", "--out", trace])
        for policy in POLICIES:
            def seconds(program):
                return processor_s([program, "replay", trace, "--cluster", CLUSTER, "--policy", policy, "--threads", 1])[0]
            old, new = least_by_turns(arguments.runs, seconds, programs)
            print_row(f"{policy}, {jobs:,} jobs, {label}", old, new, "s")


def trace_rows(arguments, programs):
    """Policies on a trace of a job a line."""
    jobs = sum(1 for _ in open(arguments.trace, encoding="utf-8")) - 1
    for policy in arguments.policies.split():
        def jobs_per_s(program):
            return -jobs / processor_s([program, "replay", arguments.trace, "--cluster", arguments.cluster, "--policy",
                                        policy, "--threads", 1])[0]
        old, new = least_by_turns(arguments.runs, jobs_per_s, programs)
        print(f"{policy},{-old:.0f},{-new:.0f}", flush=True)


def env_rows(arguments):
    """Every benchmark of env_bench whose processor time counts; those of several threads are timed by the clock."""
    least = ({}, {})
    for turn in range(arguments.runs):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            done = processor_s([arguments.env[which], "--benchmark_format=json"])[1]
            for one in json.loads(done)["benchmarks"]:
                name = f"{one['name']}, {one['time_unit']}"
                least[which][name] = min(one["cpu_time"], least[which].get(name, one["cpu_time"]))
    for name, old in least[0].items():
        if name in least[1]:
            print_row(name.rpartition(", ")[0], old, least[1][name], name.rpartition(", ")[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs=2, metavar="PROGRAM")
    parser.add_argument("--runs", type=int, default=5, help="turns of each; the least counts")
    parser.add_argument("--jobs", type=int, default=1_000_000, help="at load .9; 0: none")
    parser.add_argument("--crowd", type=int, default=100_000, help="at load 3; 0: none")
    parser.add_argument("--env", nargs=2, metavar="ENV_BENCH")
    parser.add_argument("--trace", help="jobs a second of --policies on this file alone")
    parser.add_argument("--cluster", default=CLUSTER, help="of --trace")
    parser.add_argument("--policies", default=" ".join(POLICIES), help="of --trace")
    arguments = parser.parse_args()
    for program in arguments.programs + (arguments.env or []):
        if not os.access(program, os.X_OK):
            parser.error(f"{program} cannot be run")
    if arguments.trace:
        print("policy,old_jobs_per_s,new_jobs_per_s", flush=True)
        return trace_rows(arguments, arguments.programs)
    print("| what | old | new | unit | new / old |\n|---|--:|--:|---|--:|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        replay_rows(arguments, arguments.programs, pathlib.Path(folder))
    if arguments.env:
        env_rows(arguments)


if __name__ == "__main__":
    main()
