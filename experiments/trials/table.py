#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Searches beside jobs: searches.csv, targets.csv and front.csv.

usage: table.py GPUSCHED --jobs FILE --history N --cluster SPEC --losses CSV --trials N --begin-s S --windows JOBS WARMUP COUNT FROM
                --most UNITS --windows-cluster SPEC --out FOLDER

The search draws its trials in the order of seed 1. Policies know run times from the log before (history) or not at all.
"""
import argparse
import csv
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from table_csv import write_rows  # noqa: E402

POLICIES = ("static-partition{by=vc,parts=demand}", "fifo", "fifo+easy", "saf{estimate=history}+easy", "las", "max-min")
SEARCHES = {"promotion, late": {"search": "asha-promotion", "asks": "late"},
            "promotion, early": {"search": "asha-promotion", "asks": "early"},
            "stopping": {"search": "asha-stopping"}, "hyperband": {"search": "hyperband"}, "halving": {"search": "halving"},
            "random": {"search": "random"}}
COMPARED = ("name", "windows", "saturated", "mean", "difference", "low_95", "high_95", "relative_low_95", "relative_high_95",
            "verdict")
TARGETS = ("gpu_utilization", "avg_jct_s", "study_span_s")


def study(options, kind, **more):
    own = dict(SEARCHES[kind])
    if own["search"] not in ("hyperband", "halving"):
        own["trials"] = options.trials
    return {"name": "search", "workers": 9, "most_units": options.most, "vc": "search", "user": "search", **own, **more}


def write_studies(path, *studies):
    path.write_text(json.dumps({"studies": studies}, indent=1), encoding="utf-8")
    return str(path)


def run(options, *words):
    done = subprocess.run([options.gpusched, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def searches(options, scratch):
    rows = []
    for kind in SEARCHES:
        rungs, trials = 1, 1
        while trials < options.most:
            rungs, trials = rungs + 1, trials * 3
        needs = {"hyperband": sum(-(-rungs * 3**s // (s + 1)) for s in range(rungs)), "halving": 3 ** (rungs - 1)}
        if needs.get(SEARCHES[kind]["search"], 0) > options.trials:  # brackets of more trials than were measured
            continue
        files = [write_studies(scratch / f"{loss}.json", study(options, kind, begin_s=options.begin_s, target_loss=loss,
                                                               loss={"table": options.losses, "order_seed": 1}))
                 for loss in (0.4, 0.35)]
        for policy in POLICIES:
            found = []
            for file in files:
                report = run(options, "replay", options.jobs, "--cluster", options.cluster, "--history-jobs",
                             str(options.history), "--oversize", "drop", "--policy", policy, "--trials", file, "--json")
                found.append(json.loads(report)["runs"][0])
            own, missed = found[0]["studies"]["search"], found[1]["studies"]["search"]
            target = own["target"] or {"at_s": "", "gpu_hours": ""}
            rows.append({"search": kind, "policy": policy, "trials": own["trials"],
                         "by_rung": "/".join(map(str, own["by_rung"])), "span_s": own["span_s"],
                         "wait_s": f'{own["mean_wait_s"]:.1f}', "gpu_hours": f'{own["gpu_hours"]:.3f}',
                         "best_accuracy": f'{1 - own["best"]["loss"]:.2f}', "60%_s": target["at_s"],
                         "60%_gpu_hours": target["gpu_hours"], "65%": "met" if missed["target_met"] else "missed",
                         "revised": own["revised"], "avg_jct_s": f'{found[0]["metrics"]["avg_jct_s"]:.1f}'})
    write_rows(options.out / "searches.csv", rows)


def targets(options, scratch):
    big = {"name": "search", "search": "asha-promotion", "trials": 243, "workers": 64, "most_units": 81, "unit_s": 600,
           "loss": {"law": "drawn", "least": 0.1, "most": 0.9, "half_units": [1, 12]}, "vc": "search", "user": "search"}
    if options.most < 81:
        big.update(trials=27, workers=9, most_units=9)
    file = write_studies(scratch / "big.json", big)
    jobs, warmup, count, begin = options.windows
    rows = []
    for figure in TARGETS:
        out = scratch / figure
        run(options, "evaluate", options.jobs, "--cluster", options.windows_cluster, "--oversize", "drop", "--mode", "windows-only",
            "--window-jobs", jobs, "--warmup-jobs", warmup, "--windows", count, "--from", begin, "--history", "--trials", file,
            "--figure", figure, "--against", POLICIES[0], "--policy", ",".join(POLICIES[:1] + POLICIES[2:5]), "--out", str(out))
        with open(out / "comparison.csv", newline="", encoding="utf-8") as source:
            rows += [{"figure": figure, **{name: row[name] for name in COMPARED}} for row in csv.DictReader(source)]
    write_rows(options.out / "targets.csv", rows)


def front(options, scratch):
    files = []
    loss = {"law": "drawn", "least": 0.1, "most": 0.9, "half_units": [1, 12]}
    for kind, trials in (("promotion, late", 81), ("promotion, late", 27), ("stopping", 81), ("random", 27), ("random", 9)):
        name = f"{kind.split(',')[0]}-{trials}.json"
        files.append(write_studies(scratch / name, study(options, kind, trials=trials, unit_s=120, loss=loss)))
    powers = []
    gpu = {"idle_w": 50, "full_w": 250, "limits": [{"limit_w": 150, "draw": 0.5, "speed": 0.8}, {"limit_w": 250}]}
    nodes, gpus = map(int, options.windows_cluster.split("x"))
    for share in (50, 100):  # of what all GPUs draw at most
        path = scratch / f"cap{share}.json"
        path.write_text(json.dumps({"gpus": {"any": gpu}, "caps": [{"w": nodes * gpus * 2.5 * share}], "cap_rule": "uniform"}),
                        encoding="utf-8")
        powers.append(str(path))
    jobs, warmup, count, begin = options.windows
    document = {"base": {"trace": options.jobs, "cluster": options.windows_cluster, "oversize": "drop", "trials": files[0],
                         "power": powers[-1]},
                "policies": [{"policy": policy, "parameters": {"base.trials": {"choices": files},
                                                               "base.power": {"choices": powers}}}
                             for policy in POLICIES[1:5]],
                "objectives": ["trial_loss", "energy_kwh", "study_span_s"], "compare": ["fifo", POLICIES[0]],
                "windows": {"jobs": int(jobs), "warmup_jobs": int(warmup), "train": 2, "held_out": 2}, "method": "nsga2",
                "population": 16, "generations": 6, "seed": 1, "out": str(scratch / "front")}
    path = scratch / "search.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    done = subprocess.run([options.gpusched, "search", str(path)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"front.csv: left out: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return
    with open(scratch / "front" / "front.csv", newline="", encoding="utf-8") as source:
        rows = list(csv.DictReader(source))
    for row in rows:
        for name in ("policy", "message"):
            del row[name]
        for name, value in row.items():
            row[name] = value.replace(str(scratch) + "/", "").replace(".json", "")
    write_rows(options.out / "front.csv", rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gpusched")
    for name in ("--jobs", "--cluster", "--windows-cluster", "--losses"):
        parser.add_argument(name, required=True)
    for name in ("--history", "--trials", "--begin-s", "--most"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--windows", nargs=4, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--scratch", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="searches,targets,front")
    options = parser.parse_args()
    for part in options.only.split(","):
        {"searches": searches, "targets": targets, "front": front}[part](options, options.scratch)


if __name__ == "__main__":
    main()
