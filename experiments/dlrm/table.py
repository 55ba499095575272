#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A partition, mixing and loaning: the instances of inference services beside batch jobs, on stretches of a month.

usage: table.py GPUSCHED INSTANCES PODS [--days N] [--one-in N] [--job-nodes N] [--copies N,...] --out FOLDER

INSTANCES: alibaba_dlrm_2025.csv; every N-th instance with a GPU is a replica that lives as long as it did. PODS: an openb pod list;
the pods with GPUs of its last days are the jobs, each so often. Assumed: nodes have 8 GPUs and bound nothing else, and a preempted job
loses 60 s. The services own nodes for the most replicas at an instant of the stretch (owned: all), or for the sum of the most that each
service ever had (owned: each).
"""
import argparse
import csv
import math
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from student import mean_and_half_width  # noqa: E402
from table_csv import write_rows  # noqa: E402

GPUS = 8
SERVICE_PRIORITY = 10
RESTART_S = 60


def read_instances(path):
    """(service, creation, scheduled, deletion) in seconds; None: before, or after, the trace."""
    with open(path, newline="", encoding="utf-8") as source:
        for row in csv.DictReader(source):
            if float(row["gpu_request"] or 0) >= 1:
                yield row["app_name"], *(float(row[key]) if row[key] else None
                                         for key in ("creation_time", "scheduled_time", "deletion_time"))


def read_pods(path):
    """(submission, run time, GPUs, thousandths of each) of the pods with GPUs that ran."""
    with open(path, newline="", encoding="utf-8") as source:
        for row in csv.DictReader(source):
            if int(row["num_gpu"]) == 0 or not row["scheduled_time"] or not row["deletion_time"]:
                continue
            gpus = int(row["num_gpu"])
            yield (float(row["creation_time"]), float(row["deletion_time"]) - float(row["scheduled_time"]),
                   gpus * 1000 if gpus > 1 else int(row["gpu_milli"]))


def replicas_of(instances, begin, end):
    """(submission, life) in the stretch, from its begin."""
    for _, first, scheduled, last in instances:
        first = begin if first is None else max(first, begin)
        last = end if last is None else min(last, end)
        up = first if scheduled is None or first == begin else max(scheduled, begin)
        if last > up and first < end:
            yield first - begin, last - up


def most_at_once(replicas):
    changes = sorted([(at, 1) for at, life in replicas] + [(at + life, -1) for at, life in replicas])
    most = now = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


def most_of_each(instances, month):
    """The sum of the most replicas that each service had at an instant."""
    lives = {}
    for instance in instances:
        lives.setdefault(instance[0], []).extend(replicas_of([instance], 0, month))
    return sum(most_at_once(of_service) for of_service in lives.values())


def write_trace(path, replicas, jobs):
    rows = [[f"r{i}", f"{at:.0f}", f"{life:.0f}", 1, 1000, "services", SERVICE_PRIORITY] for i, (at, life) in enumerate(replicas)]
    rows += [[f"j{i}", f"{at:.0f}", f"{work:.0f}", 1, milli, "jobs", 0] for i, (at, work, milli) in enumerate(jobs)]
    with open(path, "w", newline="", encoding="utf-8") as target:
        writer = csv.writer(target, lineterminator="\n")
        writer.writerow(["job_id", "submit_s", "work_s", "tasks", "gpu_milli_per_task", "user", "priority"])
        writer.writerows(rows)


def policies(job_nodes, service_nodes):
    """By what a table calls them; the first is what the others are compared with."""
    part = f"{service_nodes / (job_nodes + service_nodes):.6f}"
    return {"partition": f"loaning{{part={part},lend=false}}",
            "static-partition": f"static-partition{{by=user,weights=[{service_nodes},{job_nodes}]}}",
            "loaning": f"loaning{{part={part}}}",
            "mixing": "priority{aging_s=1e9}"}


def quantile(values, part):
    ordered = sorted(values)
    return ordered[max(math.ceil(part * len(ordered)) - 1, 0)] if ordered else 0.0


def mean(values):
    return sum(values) / len(values) if values else 0.0


def figures_of(folder, span, gpus):
    waits, times, preemptions, held = {"r": [], "j": []}, [], 0, 0.0
    with open(folder / "jobs.csv", newline="", encoding="utf-8") as source:
        for row in csv.DictReader(source):
            waits[row["job_id"][0]].append(float(row["first_start_s"]) - float(row["submit_s"]))
            if row["job_id"][0] == "j":
                times.append(float(row["jct_s"]))
            preemptions += int(row["preemptions"])
    with open(folder / "intervals.csv", newline="", encoding="utf-8") as source:
        for row in csv.DictReader(source):
            held += float(row["gpus"]) * max(min(float(row["end_s"]), span) - float(row["start_s"]), 0)
    return {"replicas_wait_mean_s": mean(waits["r"]), "replicas_wait_p99_s": quantile(waits["r"], 0.99),
            "jobs_time_mean_s": mean(times), "jobs_wait_p99_s": quantile(waits["j"], 0.99),
            "preemptions": preemptions, "utilisation": held / (gpus * span)}


def gain(values, base):
    """By how many percent the values are above the base, as means of pairs, with a 95 % interval."""
    gains = [100 * (value / of - 1) for value, of in zip(values, base)]
    if len(gains) < 2:
        return (mean(gains),) * 3
    middle, half = mean_and_half_width(gains)
    return middle, middle - half, middle + half


def shown(figures):
    digits = {"utilisation": 6, "preemptions": 0}
    return {name: f"{value:.{digits.get(name, 3)}f}" for name, value in figures.items()}


def run_policies(gpusched, replicas, jobs, span, service_nodes, job_nodes):
    """The figures of each policy."""
    figures = {}
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        write_trace(scratch / "trace.csv", replicas, jobs)
        for policy, text in policies(job_nodes, service_nodes).items():
            folder = scratch / policy
            nodes = service_nodes + job_nodes
            subprocess.run([gpusched, "replay", scratch / "trace.csv", "--cluster", f"{nodes}x{GPUS}", "--policy", text,
                            "--restart-cost", str(RESTART_S), "--out", folder, "--quiet", "--json"],
                           check=True, stdout=subprocess.DEVNULL)
            figures[policy] = figures_of(next(folder.glob("*/jobs.csv")).parent, span, nodes * GPUS)
    return figures


def run_stretches(arguments, instances, pods):
    """A row for each stretch, way of owning, number of copies and policy: what it is, and its figures."""
    month = max(at for instance in instances for at in instance[1:] if at is not None)
    shift = max(at for at, _, _ in pods) - month  # both end together
    span = arguments.days * 86400
    each_nodes = math.ceil(most_of_each(instances, month) / arguments.one_in / GPUS)
    for number in range(int(month // span)):
        begin = number * span
        replicas = sorted(replicas_of(instances[arguments.one_in - 1::arguments.one_in], begin, begin + span))
        jobs = [(at - shift - begin, work, milli) for at, work, milli in pods if begin <= at - shift < begin + span and work > 0]
        all_nodes = math.ceil(most_at_once(replicas) / GPUS)
        for owned, nodes in (("all", all_nodes), ("each", max(each_nodes, all_nodes))):
            for copies in arguments.copies:
                figures = run_policies(arguments.gpusched, replicas, [job for job in jobs for _ in range(copies)], span, nodes,
                                       arguments.job_nodes)
                for policy, own in figures.items():
                    yield {"stretch": number, "replicas": len(replicas), "jobs": copies * len(jobs), "service_nodes": nodes,
                           "owned": owned, "copies": copies, "policy": policy}, own


def summarised(rows):
    """Means of the stretches, by way of owning, copies and policy, with the utilisation beside that of the partition."""
    of = {}
    for row, figures in rows:
        of.setdefault((row["owned"], row["copies"], row["policy"]), []).append(figures)
    for (owned, copies, policy), own in of.items():
        base = of[owned, copies, "partition"]
        more, least, most = gain([figures["utilisation"] for figures in own], [figures["utilisation"] for figures in base])
        yield {"owned": owned, "copies": copies, "policy": policy,
               **shown({name: mean([figures[name] for figures in own]) for name in own[0]}),
               "more_utilisation_percent": f"{more:.2f}", "from_percent": f"{least:.2f}", "to_percent": f"{most:.2f}"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gpusched")
    parser.add_argument("instances")
    parser.add_argument("pods")
    parser.add_argument("--days", type=float, default=3)
    parser.add_argument("--one-in", type=int, default=40)
    parser.add_argument("--job-nodes", type=int, default=3)
    parser.add_argument("--copies", type=lambda text: [int(number) for number in text.split(",")], default=[1, 3, 10])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    rows = list(run_stretches(arguments, list(read_instances(arguments.instances)), list(read_pods(arguments.pods))))
    table = list(summarised(rows))
    for row in [{name: name[:16] for name in table[0]}, *table]:
        print("  ".join(f"{value:>16}" for value in row.values()))
    write_rows(arguments.out / "table.csv", table)
    write_rows(arguments.out / "stretches.csv", [{**row, **shown(figures)} for row, figures in rows])


if __name__ == "__main__":
    main()
