#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An agent that sets the replicas of a service beside a training queue, against the autoscalers, on days that it never saw.

usage: agent.py GPUSCHED [--real QPS.csv] [--hours H] [--days N] [--tests N] [--rounds N] [--seeds N] --out FOLDER

The cost of a day in dollars: .02 a request that breaks its promise or is lost, 2 a GPU-hour of replicas, .1 an hour that a job waits.
Days are drawn: two peaks, another level each day, bursts. The agent is linear in what ServiceVectorEnv tells, rounded up; the
cross-entropy method finds its weights on N days. Each autoscaler gets the best of a grid of its parameters on the same days. Then all
run the same unseen days, and with --real one whose rate a log of a real service tells (its values are anonymised: scaled to the mean of
the drawn ones).
"""
import argparse
import csv
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy

try:
    import gpusched_sim as gs
    gs.ServiceVectorEnv
except ImportError as error:
    print(f"skipped: gpusched_sim and gymnasium are needed ({error}); get them: pip install . gymnasium", file=sys.stderr)
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from student import mean_and_half_width  # noqa: E402
from table_csv import write_rows  # noqa: E402

PERIOD_S = 15
MISSED, GPU_H, WAIT_H = 0.02, 2.0, 0.1
CLUSTER, POLICY = "16x8", "priority"
RULES = {"none": ("replicas", [6, 8, 10, 12]), "hpa": ("target", [0.4, 0.5, 0.6, 0.7, 0.8, 0.9]),
         "kpa": ("utilisation", [0.4, 0.5, 0.6, 0.7, 0.8, 0.9]), "request-rate": ("rate_per_replica", [0.5, 0.6, 0.7, 0.8, 0.9]),
         "erlang": ("window_s", [30, 60, 120, 300])}


def write_table(path, names, rows):
    write_rows(path, [dict(zip(names, row)) for row in rows], names)


def drawn_rates(seed, hours):
    """Requests a second by minute."""
    draw = random.Random(seed)
    level = draw.lognormvariate(0, 0.25)
    phase, second = draw.uniform(0, 1), draw.uniform(0.2, 0.6)
    minutes = int(60 * hours)
    rates = [level * 4 * max(0.15, 1 + 0.6 * math.sin(2 * math.pi * (t / 1440 + phase))
                             + second * math.sin(4 * math.pi * (t / 1440 + phase))) for t in range(minutes)]
    for _ in range(max(1, int(hours / 3))):  # bursts
        begin, length, factor = draw.randrange(minutes), draw.randrange(8, 40), draw.uniform(1.5, 2.5)
        for t in range(begin, min(minutes, begin + length)):
            rates[t] *= factor
    return rates


def real_rates(path, hours, mean):
    """Sums over the containers of a log of rates, by minute, from its first full one."""
    sums = {}
    with open(path, newline="", encoding="utf-8") as source:
        for row in csv.DictReader(source):
            if row["request_type"] == "Generative Requests":
                minute = int(float(row["timestamp_anon"]) // 60)
                sums[minute] = sums.get(minute, 0) + float(row["value"])
    first = min(sums)
    rates = [sums.get(first + t, 0) for t in range(min(max(sums) - first, int(60 * hours)))]
    factor = mean * len(rates) / sum(rates)
    return [rate * factor for rate in rates]


def drawn_jobs(seed, hours):
    draw = random.Random(seed)
    second, rows = 0.0, []
    while True:
        second += draw.expovariate(1 / 540)
        if second > hours * 3600:
            return rows
        gpus = draw.choice([1, 1, 2, 4, 8, 8, 16, 32])
        rows.append((len(rows), round(second), round(draw.lognormvariate(7.5, 1.2)), gpus, 1000, f"u{draw.randrange(6)}"))


class Day:
    """The files of one day in a folder."""

    def __init__(self, folder, name, rates, jobs):
        self.folder = folder / name
        self.folder.mkdir(parents=True)
        self.jobs = self.folder / "jobs.csv"
        write_table(self.jobs, ["job_id", "submit_s", "work_s", "tasks", "gpu_milli_per_task", "user"], jobs)
        write_table(self.folder / "rates.csv", ["time_s", "requests_per_s"], [(60 * t, f"{rate:.6f}") for t, rate in enumerate(rates)])
        self.seconds = 60 * len(rates)

    def services(self, rule=None, **values):
        """A file with that autoscaler."""
        service = {"name": "chat", "requests": {"rate_file": "rates.csv", "duration_s": self.seconds}, "serves": {"mean_s": 4},
                   "at_once": 4, "timeout_s": 60, "promise": {"part": 0.99, "within_s": 25},
                   "replica": {"tasks": 1, "gpus": 2}, "least": 1, "most": 16,
                   "start": {"cold_s": 90, "warm_s": 15, "keep_warm_s": 1800}, "user": "web", "priority": 10}
        if rule is not None:
            service["autoscaler"] = dict({"rule": rule}, **values)
        name = "services" + ("" if rule is None else "_" + "_".join([rule] + [str(value) for value in values.values()])) + ".json"
        path = self.folder / name
        path.write_text(json.dumps({"services": [service]}))
        return path


def totals_of_rule(gpusched, day, rule, **values):
    """(missed, GPU-hours, waiting hours) of a run with that autoscaler."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([gpusched, "replay", day.jobs, "--cluster", CLUSTER, "--policy", POLICY, "--services",
                        day.services(rule, **values), "--out", folder + "/run", "--quiet"], check=True, stdout=subprocess.DEVNULL)
        with open(f"{folder}/run/{POLICY}/services.csv", newline="", encoding="utf-8") as source:
            row = next(csv.DictReader(source))
        with open(f"{folder}/run/{POLICY}/jobs.csv", newline="", encoding="utf-8") as source:
            wait_h = sum(float(job["wait_s"]) for job in csv.DictReader(source) if not job["job_id"].startswith("chat")) / 3600
    return numpy.asarray([float(row["injected"]) * (1 - float(row["slo_attainment"])), float(row["gpu_hours"]), wait_h])


def environment(days, count):
    return gs.ServiceVectorEnv([str(day.jobs) for day in days], CLUSTER, [day.services() for day in days], count, policy=POLICY,
                               period_s=PERIOD_S, threads=2,
                               weights={"missed": MISSED, "replicas": GPU_H, "wait": WAIT_H / 3600})


def replicas_of(weights, observation, most):
    """[environments, 1] of the linear agent: weights [environments, features + 1]."""
    seen = observation["services"][:, 0, :].astype(numpy.float64)
    total = numpy.zeros(len(seen)) + weights[..., -1]
    for feature in range(seen.shape[1]):  # one after the other: the same sum on every machine
        total = total + seen[:, feature] * weights[..., feature]
    return numpy.clip(numpy.ceil(total * most - 1e-6), 1, most).astype(numpy.int32)[:, None]


def totals_of(episodes):
    """(missed, GPU-hours, waiting hours) of each environment, [environments, 3]."""
    return -numpy.stack([episodes["missed"], episodes["replicas"], episodes["wait"] / 3600], axis=1)


def run_day(day, weights):
    """Totals of a day under one set of weights."""
    env = environment([day], 1)
    observation, _ = env.reset(seed=1)
    while True:
        observation, _, _, _, info = env.step(replicas_of(weights, observation, env.most[0]))
        if "episode_totals" in info:
            return totals_of(info["episode_totals"])[0]


def cost(totals):
    return totals @ numpy.asarray([MISSED, GPU_H, WAIT_H])


def trained(days, rounds, seed, population=24, elite=6):
    """The cross-entropy method over the weights, from the rule of queueing theory on: the mean of the last elite. Candidates of a
    round run the same day each."""
    draw = numpy.random.default_rng(seed)
    mean = numpy.zeros(11)
    mean[8] = 1.0  # service_needed
    spread = numpy.full(11, 0.25)
    spread[10] = 0.1
    for turn in range(rounds):
        candidates = mean + spread * draw.standard_normal((population, len(mean)))
        candidates[0] = mean
        env = environment([days[(seed + turn) % len(days)]], population)
        observation, _ = env.reset(seed=1)
        costs = numpy.full(population, numpy.nan)
        while numpy.isnan(costs).any():
            observation, _, _, _, info = env.step(replicas_of(candidates, observation, env.most[0]))
            if "episode_totals" in info:
                ended = info["_episode_totals"] & numpy.isnan(costs)
                costs[ended] = cost(totals_of(info["episode_totals"]))[ended]
        best = candidates[numpy.argsort(costs, kind="stable")[:elite]]
        mean = 0.5 * mean + 0.5 * best.mean(axis=0)
        spread = numpy.maximum(0.02, 0.7 * spread + 0.3 * best.std(axis=0))
    return mean


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gpusched")
    parser.add_argument("--real")
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--days", type=int, default=6)
    parser.add_argument("--tests", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", required=True)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        rates = {seed: drawn_rates(seed, given.hours) for seed in range(given.days + given.tests)}
        days = {seed: Day(folder, f"day{seed}", rates[seed], drawn_jobs(1000 + seed, given.hours)) for seed in rates}
        train, unseen = [days[seed] for seed in range(given.days)], [days[seed] for seed in range(given.days, len(days))]
        mean = float(numpy.mean([numpy.mean(each) for each in rates.values()]))
        sets = [("drawn", unseen)]
        if given.real:
            real = real_rates(given.real, given.hours, mean)
            sets.append(("real", [Day(folder, "real", real, drawn_jobs(2000, len(real) / 60))]))
        found = {}  # (days, rule) -> [days, 3]
        for rule, (name, values) in RULES.items():
            choices = [{name: value} for value in values]
            best = min(choices, key=lambda choice: sum(cost(totals_of_rule(given.gpusched, day, rule, **choice)) for day in train))
            for label, group in sets:
                found[label, f"{rule} ({name} {best[name]:g})"] = numpy.asarray(
                    [totals_of_rule(given.gpusched, day, rule, **best) for day in group])
        for seed in range(given.seeds):
            weights = trained(train, given.rounds, seed)
            for label, group in sets:
                found[label, f"agent {seed}"] = numpy.asarray([run_day(day, weights) for day in group])
    rows = []
    for label, group in sets:
        rules = {name: totals for (of, name), totals in found.items() if of == label and not name.startswith("agent")}
        best = min(rules, key=lambda name: cost(rules[name]).mean())
        for (of, name), totals in found.items():
            if of != label:
                continue
            differences = cost(totals) - cost(rules[best])
            half = f"{mean_and_half_width(differences)[1]:.2f}" if len(group) > 1 else ""
            rows.append((label, name, len(group), f"{cost(totals).mean():.2f}", f"{differences.mean():.2f}", half,
                         *(f"{value:.1f}" for value in totals.mean(axis=0))))
    write_table(pathlib.Path(given.out) / "table.csv", ["days", "rule", "count", "cost_usd", "over_best_rule_usd", "half_width_usd",
                                                        "missed", "gpu_hours", "wait_hours"], rows)
    for row in rows:
        print(*row, sep="  ")


if __name__ == "__main__":
    main()
