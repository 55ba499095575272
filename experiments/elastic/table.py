#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Average JCT of policies with elastic jobs on the workloads of the Pollux artifact, beside the artifact's own results.

usage: table.py GPUSCHED POLLUX_ELASTIC TRACES [--csv FILE] [--no-published]
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from table_csv import write_rows  # noqa: E402

CLUSTER = "16x4"
# The policy here, and whose published result stands beside it, for batch sizes as the file gives them and tuned ones.
POLICIES = {
    "fixed": [("tiresias@pollux", "tiresias"), ("optimus{round_s=60}", "optimus"), ("srtf", None)],
    "tuned": [("pollux", "pollux"), ("elasticflow", None), ("optimus{round_s=60}", None), ("srtf", None),
              ("tiresias@pollux", None)],
}
STAGES = {"provision_s": 30}  # every start, the first too


def published_mean(traces, policy, load, workload):
    path = traces / "workloads/pollux/published" / f"{policy}-{load}.json"
    if policy is None or not path.exists():
        return None
    jcts = json.loads(path.read_text(encoding="utf-8"))["jcts"][workload]
    return sum(jcts.values()) / len(jcts)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gpusched")
    parser.add_argument("pollux_elastic")
    parser.add_argument("traces", type=pathlib.Path)
    parser.add_argument("--csv")
    parser.add_argument("--no-published", action="store_true")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        stages = pathlib.Path(scratch) / "stages.json"
        stages.write_text(json.dumps(STAGES), encoding="utf-8")
        for workload in sorted(arguments.traces.glob("workloads/pollux/load-*/*.csv")):
            load = workload.parent.name.removeprefix("load-")
            for batches, policies in POLICIES.items():
                base = f"{scratch}/jobs"
                subprocess.run([arguments.pollux_elastic, arguments.traces / "profiles/pollux", workload, base,
                                *(["--tuned"] if batches == "tuned" else [])], check=True)
                replay = subprocess.run(
                    [arguments.gpusched, "replay", base + ".csv", "--cluster", CLUSTER, "--elastic", base + ".json",
                     "--stages", stages, "--policy", ",".join(name for name, _ in policies), "--json"],
                    check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                runs = json.loads(replay.stdout)["runs"]
                for (policy, theirs), run in zip(policies, runs):
                    published = None if arguments.no_published else published_mean(arguments.traces, theirs, load,
                                                                                   workload.stem)
                    ours = run["metrics"]["avg_jct_s"]
                    rows.append({"load": load, "workload": workload.stem, "batches": batches, "policy": policy,
                                 "artifact_avg_jct_s": "" if published is None else f"{published:.4f}", "avg_jct_s": f"{ours:.6f}",
                                 "ratio": "" if published is None else f"{ours / published:.4f}",
                                 "preemptions": run["metrics"]["preemptions"],
                                 "gpu_allocation": f"{run['metrics']['gpu_allocation']:.6f}"})
    print(f"{'load':8} {'batches':8} {'policy':22} {'published':>10} {'gpusched':>10} {'ratio':>7}   mean of the workloads")
    for load in sorted({row["load"] for row in rows}):
        for batches, policies in POLICIES.items():
            for policy, _ in policies:
                of = [row for row in rows if (row["load"], row["batches"], row["policy"]) == (load, batches, policy)]
                ours = sum(float(row["avg_jct_s"]) for row in of) / len(of)
                known = [float(row["artifact_avg_jct_s"]) for row in of if row["artifact_avg_jct_s"]]
                theirs = sum(known) / len(known) if known else None
                print(f"{load:8} {batches:8} {policy:22} {'-' if theirs is None else f'{theirs:.1f}':>10} {ours:10.1f} "
                      f"{'-' if theirs is None else f'{ours / theirs:.3f}':>7}")
    if arguments.csv:
        write_rows(arguments.csv, rows)


if __name__ == "__main__":
    main()
