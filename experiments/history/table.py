#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how kinds of schedulers do on one trace, in the order in which they came up.

usage: table.py GPUSCHED TRACE OWN_CLUSTER SMALL_CLUSTER [--out FOLDER]

The whole trace on its own cluster and on a smaller one, on the smaller one with 0.8 times the load, with 60 s lost at
each restart after a preemption (Tiresias, NSDI'19, measured 62 s; without gandiva, whose slices last 60 s), and the first
60 % of the jobs and the last 40 %, which the learned scheduler has not seen, alone. FOLDER gets table.csv, order.csv (do
the settings agree on the order?), the sweeps in FOLDER/sweep and FOLDER/restart, the runs of one policy of each kind on the
smaller cluster in FOLDER/kinds, and their page in FOLDER/report.html.
"""
import argparse
import csv
import itertools
import json
import pathlib
import subprocess

# Kind, policy as on the command line. Owners are the virtual clusters: the trace names no users.
LINEUP = [
    ("static partition", "static-partition{by=vc,parts=demand}"),
    ("list scheduling", "fifo"),
    ("list scheduling", "fifo-skip"),
    ("backfilling", "fifo+easy{estimate=history,half_life_jobs=0}"),
    ("fair sharing", "drf{by=vc}"),
    ("fair sharing", "max-min{by=vc}"),
    ("packing", "fgd"),
    ("packing", "gandiva{migrate=true}"),
    ("service received", "las"),
    ("service received", "agenda{mode=preempt,heuristic=gittins,half_life_jobs=0}"),
    ("learned", "rl:builtin/philly"),
    ("system", "slurm{by=vc}+easy{estimate=history,half_life_jobs=0}"),
    ("system", "lsf{by=vc}"),
    ("system", "yarn-capacity{preemption=true}"),
    ("system", "k8s"),
    ("system", "volcano"),
    ("oracle", "srtf"),
]
# One of each kind. Gandiva would write a line for each of its 38 million slices.
DRAWN = ["static-partition{by=vc,parts=demand}", "fifo-skip", "fifo+easy{estimate=history,half_life_jobs=0}", "max-min{by=vc}", "fgd", "las",
         "rl:builtin/philly", "srtf"]
FIGURES = ["avg_jct_s", "p99_wait_s", "avg_bounded_slowdown", "worst_decile_slowdown", "jain_fairness",
           "gpu_utilization", "gpu_fragmentation", "preemptions", "saturated"]


WHOLE = {"first_job": 0, "jobs": 0}


def sweep_files(trace, own, small, jobs):
    """The sweeps by folder."""
    def sweep(base, policies, places):
        return {"base": {"trace": trace, "oversize": "drop", **base}, "grid": {"policy": policies}, "list": places}

    seen, policies = jobs * 6 // 10, [policy for _, policy in LINEUP]
    places = [{"cluster": own, "load": 1, "window": WHOLE}]
    places += [{"cluster": small, "load": load, "window": WHOLE} for load in (1, 0.8)]
    places += [{"cluster": small, "load": 1, "window": {"first_job": first, "jobs": count}}
               for first, count in ((0, seen), (seen, jobs - seen))]
    slow = [policy for policy in policies if not policy.startswith("gandiva")]
    return {"sweep": sweep({}, policies, places),
            "restart": sweep({"preemption": {"restart_s": 60}}, slow, [{"cluster": small}])}


def jobs_of(program, trace, cluster):
    """Jobs of the trace that fit the cluster."""
    command = [program, "replay", trace, "--cluster", cluster, "--oversize", "drop", "--policy", "fifo", "--json"]
    asked = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return int(json.loads(asked.stdout)["runs"][0]["metrics"]["jobs"])


def setting_of(row):
    if "load" not in row:
        return row["cluster"] + ", restarts of 60 s"
    text = row["cluster"] + ("" if row["load"] == "1" else f", load x {row['load']}")
    if int(row["window.jobs"]) == 0:
        return text
    return text + (", first 60 %" if row["window.first_job"] == "0" else ", last 40 %")


def rounded(value):
    return f"{float(value):,.0f}" if float(value) >= 1000 else f"{float(value):.4g}"


def print_setting(setting, rows):
    lines = [["kind", "policy", *FIGURES]]
    for kind, policy in LINEUP:
        if policy not in rows:
            continue
        row = rows[policy]
        star = "*" if row["clairvoyant"] == "1" else ""
        lines.append([kind, policy + star, *(rounded(row[figure]) for figure in FIGURES)])
    widths = [max(map(len, column)) for column in zip(*lines)]
    print(setting)
    for line in lines:
        print("  ".join(text.ljust(width) if i < 2 else text.rjust(width)
                        for i, (text, width) in enumerate(zip(line, widths))).rstrip())
    print()


def draw(program, trace, cluster, folder):
    """The page of one policy of each kind."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([program, "replay", trace, "--cluster", cluster, "--oversize", "drop", "--policy", ",".join(DRAWN),
                    "--out", folder / "kinds"], check=True, **quiet)
    # Without Vega there is no page.
    subprocess.run([program, "report", folder / "kinds", "--out", folder / "report.html"], check=False, **quiet)


def kendall(first, second):
    """Kendall's tau-a between two rankings of the same policies."""
    pairs = list(itertools.combinations(range(len(first)), 2))
    signs = [(first[i] - first[j]) * (second[i] - second[j]) for i, j in pairs]
    return sum((sign > 0) - (sign < 0) for sign in signs) / len(pairs)


def write_csv(path, header, rows):
    with open(path, "w", newline="") as target:
        writer = csv.writer(target, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("gpusched", "trace", "own_cluster", "small_cluster"):
        parser.add_argument(name)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    options = parser.parse_args()
    jobs = jobs_of(options.gpusched, options.trace, options.small_cluster)
    settings = {}
    for name, plan in sweep_files(options.trace, options.own_cluster, options.small_cluster, jobs).items():
        folder = options.out / name
        subprocess.run([options.gpusched, "sweep", "--out", folder, "-"], check=True, input=json.dumps(plan), text=True,
                       stdout=subprocess.DEVNULL)
        with open(folder / "runs.csv", newline="") as source:
            for row in csv.DictReader(source):
                row.setdefault("cluster", options.small_cluster)
                settings.setdefault(setting_of(row), {})[row["policy"]] = row
    draw(options.gpusched, options.trace, options.small_cluster, options.out)

    kinds = {policy: kind for kind, policy in LINEUP}
    for setting, rows in settings.items():
        print_setting(setting, rows)
    print("* knows true run times, which no real scheduler does; saturated: the queue grows for as long as jobs arrive")
    write_csv(options.out / "table.csv", ["setting", "kind", "policy", "clairvoyant", "figure", "published", "ours",
                                          "difference"],
              [[setting, kinds[policy], policy, row["clairvoyant"], figure, "", row[figure], ""]
               for setting, rows in settings.items() for policy, row in rows.items() for figure in FIGURES])

    # On its own cluster nobody waits; the order is that of the smaller one.
    names = [policy for _, policy in LINEUP if all(policy in rows for rows in settings.values())]
    orders = {setting: [float(rows[policy]["avg_jct_s"]) for policy in names] for setting, rows in settings.items()}
    first = options.small_cluster
    agreement = [[setting, "avg_jct_s", "", kendall(orders[first], order), ""]
                 for setting, order in orders.items() if setting not in (first, options.own_cluster)]
    write_csv(options.out / "order.csv", ["setting", "figure", "published", "ours", "difference"], agreement)
    print(f"\nKendall's tau of the order by avg_jct_s with that on {first}: " +
          "; ".join(f"{setting} {tau:.2f}" for setting, _, _, tau, _ in agreement))


if __name__ == "__main__":
    main()
