#!/usr/bin/env python3
"""Prints the JSON of policy_bench as Markdown: the Philly replay, and the time of an instant as the queue doubles.

usage: policy_bench --benchmark_out=FILE --benchmark_out_format=json && bench/policy_table.py FILE
"""
import json
import sys


def short(value):
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g}"


def philly_table(runs):
    print("| policy | jobs/s | events/s | decision p50, us | p99, us | peak queue |\n|---|---|---|---|---|---|")
    for run in runs:
        if not run["name"].startswith("philly_280x8/"):
            continue
        policy = run["name"].split("/")[1]
        if run.get("error_occurred"):
            print(f"| {policy} | {run['error_message']} | | | | |")
            continue
        print(
            f"| {policy} | {short(run['jobs_per_s'])} | {short(run['events_per_s'])} | {run['decide_p50_us']:.3g}"
            f" | {run['decide_p99_us']:.3g} | {int(run['peak_queue'])} |"
        )


def queue_table(runs):
    times = {}  # policy -> waiting jobs -> microseconds an instant
    for run in runs:
        if run["name"].startswith("queue/") and not run.get("error_occurred"):
            _, policy, waiting = run["name"].split("/")[:3]
            times.setdefault(policy, {})[int(waiting)] = 1e6 / run["instants_per_s"]
    sizes = sorted({size for row in times.values() for size in row})
    print("| policy | " + " | ".join(str(size) for size in sizes) + " | last / first |")
    print("|---" * (len(sizes) + 2) + "|")
    for policy, row in times.items():
        cells = [f"{row[size]:.3g}" if size in row else "" for size in sizes]
        growth = f"{row[max(row)] / row[min(row)]:.2g}" if len(row) > 1 else ""
        print(f"| {policy} | " + " | ".join(cells) + f" | {growth} |")


with open(sys.argv[1], encoding="utf-8") as file:
    benchmarks = json.load(file)["benchmarks"]
philly_table(benchmarks)
print("\nMicroseconds an instant, by the number of waiting jobs:\n")
queue_table(benchmarks)
