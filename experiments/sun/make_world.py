#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes jobs.csv, sites.json and the signals of sites whose carbon intensity peaks at different hours.

usage: make_world.py FOLDER DAYS [NAME=CARBON_FILE:COLUMN ...]

Without files: two zones twelve hours apart, 300 + 200 sin g/kWh. With files: a site each, whose first hour is that of the first
job. Each site has 64 GPUs and a thousand jobs in two weeks, about half of what it could run, with 1 to 10 GB of data each. Jobs are
drawn with one multiplicative generator (Park and Miller, 1988); they resemble nobody's workload.
"""
import json
import math
import pathlib
import sys

JOBS_A_DAY = 71


def draws(seed):
    while True:
        seed = seed * 16807 % 2147483647
        yield seed


def write_jobs(path, sites, days):
    random = draws(7)
    rows = []
    for site in sites:
        for _ in range(JOBS_A_DAY * days):
            submit = next(random) % (days * 86400)
            gpus = (1, 1, 2, 4, 8, 8)[next(random) % 6]
            work = 1800 + next(random) % (10 * 3600 if gpus < 8 else 4 * 3600)
            rows.append((submit, gpus, work, site, 1 + next(random) % 10))
    rows.sort()
    lines = ["job_id,submit_s,work_s,tasks,gpu_milli_per_task,estimate_s,site,data_gb"]
    for number, (submit, gpus, work, site, data) in enumerate(rows):
        lines.append(f"{number},{submit},{work},{gpus},1000,{work},{site},{data}")
    path.write_text("\n".join(lines) + "\n")


def write_sine(path, phase_h, days):
    lines = ["time_s,gco2_per_kwh"]
    for hour in range(24 * (days + 7)):
        lines.append(f"{hour * 3600},{300 + 200 * math.sin(2 * math.pi * (hour + phase_h) / 24):.2f}")
    path.write_text("\n".join(lines) + "\n")


def main():
    folder, days = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    carbon = {}
    for given in sys.argv[3:]:
        name, file = given.split("=")
        file, column = file.rsplit(":", 1)
        carbon[name] = {"file": str(pathlib.Path(file).resolve()), "column": column, "unit": "g/kWh", "begins": "with_jobs"}
    if not carbon:
        for name, phase in (("east", 0), ("west", 12)):
            write_sine(folder / f"{name}.csv", phase, days)
            carbon[name] = f"{name}.csv"
    sites = [{"name": name, "cluster": "8x8", "carbon": signal,
              "power": {"gpus": {"GPU": {"idle_w": 50, "full_w": 400}}, "nodes": {"base_w": 200}}}
             for name, signal in carbon.items()]
    names = list(carbon)
    links = [{"between": [a, b], "mbps": 1000, "rtt_ms": 150, "usd_per_gb": 0.02}
             for i, a in enumerate(names) for b in names[i + 1:]]
    (folder / "sites.json").write_text(json.dumps({"sites": sites, "links": links}, indent=2) + "\n")
    write_jobs(folder / "jobs.csv", names, days)


main()
