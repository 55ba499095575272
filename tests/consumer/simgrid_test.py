#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The jobs of examples/simgrid beside those of `gpusched replay`, with whole seconds, where many events share an instant, and
with microseconds; then a network, which makes jobs of several nodes longer than their policy knows.

    simgrid_test.py SIMGRID_HOST GPUSCHED FOLDER"""
import csv
import pathlib
import subprocess
import sys

host, gpusched, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
problems = []


def numbers():
    state = 2024
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state >> 33


def write_jobs(path, whole):
    draw, submit = numbers(), 0
    with open(path, "w") as file:
        print("job_id,submit_s,work_s,tasks,gpu_milli_per_task", file=file)
        for i in range(150):
            submit += (0, 0, 3, 7, 20)[next(draw) % 5] if whole else next(draw) % 15_000_000 / 1e6
            work = next(draw) % 300 if whole else next(draw) % 300_000_000 / 1e6
            print(f"j{i},{submit:.6f},{work},{(1, 1, 2, 4, 6, 8)[next(draw) % 6]},1000", file=file)


def rows(lines, start):
    return {row["job_id"]: (float(row[start]), float(row["end_s"])) for row in csv.DictReader(lines)}


def hosted(*arguments):
    done = subprocess.run([host, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        problems.append(f"{arguments}: {done.stderr[-300:]}")
        return {}
    return rows(done.stdout.splitlines(), "start_s")


for whole in (True, False):
    jobs = folder / f"jobs-{whole}.csv"
    write_jobs(jobs, whole)
    for number, policy in enumerate(["fifo", "fifo+easy", "sjf", "srtf", "las", "gandiva{slice_s=60}"]):
        out = folder / f"out-{whole}-{number}"
        subprocess.run([gpusched, "replay", jobs, "--cluster", "6x4", "--policy", policy, "--out", out], check=True,
                       capture_output=True)
        [table] = out.glob("*/jobs.csv")
        with open(table) as file:
            expected = rows(file, "first_start_s")
        found = hosted(jobs, "6x4", policy)
        wrong = [job for job in expected if found.get(job) != expected[job]]
        if wrong or len(found) != 150:
            problems.append(f"{policy}, whole={whole}: {len(wrong)} jobs differ, e.g. {wrong[:1]}")

quiet, loaded = hosted(jobs, "6x4", "las"), hosted(jobs, "6x4", "las", 1e8)
hosted(folder / "jobs-True.csv", "6x4", "las", 1e9)
if not sum(end for _, end in loaded.values()) > sum(end for _, end in quiet.values()):
    problems.append("the network changed nothing")
done = subprocess.run([host, jobs, "6x4", "sjf", "1e8"], capture_output=True, text=True)
if (done.returncode, done.stderr.count("\n")) != (1, 1) or "sjf reads run times" not in done.stderr:
    problems.append(f"a policy that needs run times: {done.returncode}, {done.stderr!r}")
print("\n".join(problems) if problems else "the same jobs at the same instants")
sys.exit(1 if problems else 0)
