#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The trained schedulers that come with the program, bare and guarded, against plain policies on whole logs.

usage: table.py GPUSCHED [--traces FOLDER] [--jobs N] [--rows bare|guarded|all] --csv FOLDER

table.csv: of each log and policy the mean completion time, the 99th percentile of the waits and the mean bounded slowdown.
against.csv: of each log and figure the plain policy that is best in it, and by how many percent other rows differ from it:
the plain policy that guards begin with, `agent`, `guarded`, and `past`, a guard without an agent: the plain policy of the past. Without
--traces drawn logs alone, of N jobs.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from table_csv import write_rows  # noqa: E402

FIGURES = ("avg_jct_s", "p99_wait_s", "avg_bounded_slowdown")
PREEMPT = ("agenda{mode=preempt,heuristic=gittins}", "agenda{mode=preempt,heuristic=gittins,half_life_jobs=0}",
           "las{quantum_gpu_s=20000}", "las", "agenda{mode=preempt,heuristic=las}", "agenda{mode=preempt,heuristic=srtf}",
           "tiresias", "sjf{estimate=history,skip=true}", "saf{estimate=history,skip=true}",
           "saf{estimate=history}+easy{estimate=history}")
RESERVE = ("saf{estimate=requested}+easy{estimate=requested}", "sjf{estimate=requested}+easy{estimate=requested}",
           "sjf{estimate=requested,skip=true}", "saf{estimate=requested,skip=true}", "fifo+easy{estimate=requested}",
           "f1{estimate=requested}+easy{estimate=requested}", "wfp3{estimate=requested}+easy{estimate=requested}")
# Between these a guard chooses; the first begins.
GUARDS = {"philly": ("avg_jct_s", PREEMPT[:5] + PREEMPT[8:9]), "hpc": ("avg_bounded_slowdown", RESERVE[:6])}
PLAIN = {"philly": PREEMPT, "hpc": RESERVE}
STARTS = (48323, 49934, 51545, 53156, 54767)  # 60, 62 ... 68 % of Philly
DRAWN_HPC = [(901, 64, 0.7, 1), (902, 100, 0.9, 3), (903, 200, 0.8, 2), (904, 128, 1.0, 1), (905, 256, 0.9, 6), (906, 180, 0.7, 3),
             (907, 96, 1.0, 2), (908, 256, 1.0, 0.5)]
DRAWN_PHILLY = [(901, "16x8", 0.9), (902, "24x8", 1.0), (903, "40x8", 1.1), (904, "32x8", 0.8)]


def drawn(options, folder, model, cluster, load, seed):
    path = f"{folder}/{model.split('{')[0]}-{seed}.csv"
    subprocess.run([options.gpusched, "trace", "generate", "--model", model, "--cluster", cluster, "--load", str(load), "--jobs",
                    str(options.jobs), "--seed", str(seed), "--out", path], check=True, stdout=subprocess.DEVNULL)
    return path


def logs(options, folder):
    """(agent, name, trace, options of the replay), each unseen in training."""
    if options.traces:
        philly = options.traces + "/philly/philly_jobs.csv"
        for nodes in (24, 40, 96):
            for start in STARTS:
                cut = [philly, "--cluster", f"{nodes}x8", "--restart-cost", "60"]
                yield "philly", f"Philly from {start}, {nodes}x8", cut + ["--where", f"job_id>={start}"]
                yield "philly", f"Philly from {start} with history, {nodes}x8", cut + ["--history-jobs", str(start)]
        swf = options.traces + "/swf/"
        real = {"HPC2N": [swf + "hpc2n_head_alea.swf", "--cluster", "240"],
                "NASA": [swf + "NASA-iPSC-1993-3.1-cln.swf.gz", "--cluster", "64", "--oversize", "clamp"],
                "Lublin-1": [swf + "lublin_256.swf", "--cluster", "256"]}
        for name, cut in real.items():
            yield "hpc", name, cut
        for name, cut in real.items():
            yield "philly", name, cut + ["--restart-cost", "60"]
    for seed, processors, load, factor in DRAWN_HPC[:None if options.traces else 2]:
        model = f"lublin{{type=all,processors={processors},estimate_factor={factor}}}"
        yield "hpc", f"Lublin {seed}", [drawn(options, folder, model, "256", load, seed), "--cluster", "256"]
    for seed, cluster, load in DRAWN_PHILLY[:None if options.traces else 1]:
        path = drawn(options, folder, "philly", cluster, load, seed)
        yield "philly", f"Philly-like {seed}, {cluster}", [path, "--cluster", cluster, "--restart-cost", "60"]


def policies_of(options, agent):
    figure, plain = GUARDS[agent]
    held = f"figure={figure},policies=[{','.join(plain)}]"
    bare = {policy: policy for policy in PLAIN[agent]} | {"agent": "rl:builtin/" + agent}
    guarded = {"past": f"guarded{{agents=[],{held}}}", "guarded": f"guarded{{agents=[rl:builtin/{agent}],{held}}}"}
    return {"bare": bare, "guarded": guarded, "all": bare | guarded}[options.rows]


def replayed(options, cut, policy):
    done = subprocess.run([options.gpusched, "replay", *cut, "--threads", "1", "--json", "--policy", policy], capture_output=True,
                          text=True)
    if done.returncode != 0:
        sys.exit(f"{policy} on {cut}: {done.stderr.strip().splitlines()[-1:]}")
    metrics = json.loads(done.stdout)["runs"][0]["metrics"]
    return {figure: f"{metrics[figure]:.6g}" for figure in FIGURES}


def against(rows):
    """Percent from the best plain policy in each figure."""
    result = []
    for agent, log in dict.fromkeys((row["model"], row["log"]) for row in rows):
        of_log = [row for row in rows if (row["model"], row["log"]) == (agent, log)]
        plain = [row for row in of_log if row["policy"] in PLAIN[agent]]
        for figure in FIGURES if plain else ():
            best = min(plain, key=lambda row: float(row[figure]))
            line = {"model": agent, "log": log, "figure": figure, "best": best["policy"], "value": best[figure]}
            for row in of_log:
                name = "first" if row["policy"] == GUARDS[agent][1][0] else row["policy"]
                if float(best[figure]) > 0:
                    line[name] = f'{100 * (float(row[figure]) / float(best[figure]) - 1):.1f}'
            result.append(line)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gpusched")
    parser.add_argument("--traces", default="")
    parser.add_argument("--jobs", type=int, default=10000)
    parser.add_argument("--rows", choices=("bare", "guarded", "all"), default="all")
    parser.add_argument("--csv", required=True)
    options = parser.parse_args()
    out = pathlib.Path(options.csv)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for agent, log, cut in logs(options, folder):
            for name, policy in policies_of(options, agent).items():
                rows.append({"model": agent, "log": log, "policy": name, **replayed(options, cut, policy)})
            write_rows(out / "table.csv", rows)
    names = ("model", "log", "figure", "best", "value", "first", "agent", "past", "guarded")
    write_rows(out / "against.csv", [{name: row.get(name, "") for name in names} for row in against(rows)], names)


if __name__ == "__main__":
    main()
