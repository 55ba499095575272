#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same policies on the same logs, compared on windows and by running the whole log.

usage: table.py GPUSCHED TRACES [--csv FILE] [--smoke]

A row a log and policy: the difference in mean completion time from fifo+easy and the verdict of windows, the difference and
the verdict of the log, which effects on jobs the log tells, and why windows and log disagree where they do.
"""
import argparse
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from table_csv import write_rows  # noqa: E402

POLICIES = "fifo+easy,sjf+easy,saf+easy,sjf{skip=true},saf{skip=true},fifo,las"
LOGS = [  # name, trace below TRACES or synthetic, further options, jobs of a window
    ("Lublin-1, 256 processors", "swf/lublin_256.swf", ["--cluster", "256"], 256),
    ("HPC2N head, 240 processors", "swf/hpc2n_head_alea.swf", ["--cluster", "240"], 64),
    ("NASA, 128 processors", "swf/NASA-iPSC-1993-3.1-cln.swf.gz", ["--cluster", "128"], 256),
    ("NASA, 64 processors", "swf/NASA-iPSC-1993-3.1-cln.swf.gz", ["--cluster", "64", "--oversize", "drop"], 256),
    ("Philly, 160x8", "philly/philly_jobs.csv", ["--cluster", "160x8"], 512),
    ("Philly, last 40 %, 160x8", "philly/philly_jobs.csv", ["--cluster", "160x8", "--from", "0.6", "--history"], 512),
    ("Philly, last 40 %, 200x8", "philly/philly_jobs.csv", ["--cluster", "200x8", "--from", "0.6", "--history"], 512),
    ("synthetic Lublin, 40,000 jobs", "synthetic:lublin:40000", ["--cluster", "256"], 512),
    ("synthetic Philly, 20,000 jobs", "synthetic:philly:20000", ["--cluster", "24x8", "--oversize", "drop"], 256),
]
SMOKE = [("synthetic Lublin", "synthetic:lublin:3000", ["--cluster", "256"], 64)]
FIELDS = ["log", "policy", "windows", "windows_difference", "windows_low", "windows_high", "windows_verdict", "most_windows",
          "whole_log_difference", "batches", "batch_jobs", "log_difference", "log_low", "log_high", "log_verdict", "better",
          "worse", "cannot_be_told", "unended", "why"]


def evaluated(program, trace, options):
    command = [program, "evaluate", trace, "--policy", POLICIES, "--against", "fifo+easy", "--threads", "2", "--json", *options]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    return {entry["policy"]: entry for entry in json.loads(run.stdout)["runs"]}


def relative(entry):
    """The difference of windows' means as a share of the reference's."""
    pair = entry["comparison"]
    other = entry["metrics"]["avg_jct_s"] - pair["difference"]
    return pair["difference"] / other


def row_of(log, policy, windows, whole):
    beside, pair = windows["comparison"], whole["comparison"]
    mean = pair["effects"][0]

    def told(verdict):
        return " ".join(effect["effect"] for effect in pair["effects"] if effect["verdict"] == verdict)

    low, high = beside.get("relative_interval_95") or ("", "")
    log_low, log_high = mean["interval_95"] or ("", "")
    return dict(zip(FIELDS, [
        log, policy, beside["windows"], relative(windows), low, high, beside["verdict"], beside["typical"],
        beside["whole_log_difference"], pair["batches"], pair["batch_jobs"], mean["difference"], log_low, log_high,
        pair["verdict"], told("better"), told("worse"), told("cannot be told"), whole["unended"], beside["why"]]))


def percent(value):
    return "-" if value == "" else f"{100 * value:+.1f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gpusched")
    parser.add_argument("traces")
    parser.add_argument("--csv")
    parser.add_argument("--smoke", action="store_true", help="one small drawn log")
    options = parser.parse_args()
    rows = []
    for name, file, given, jobs in SMOKE if options.smoke else LOGS:
        trace = file if file.startswith("synthetic:") else f"{options.traces}/{file}"
        windows = evaluated(options.gpusched, trace, [*given, "--mode", "windows", "--window-jobs", str(jobs)])
        whole = evaluated(options.gpusched, trace, [*given, "--mode", "log"])
        print(f"\n{name}\n| policy | windows | verdict | whole log | verdict | better | worse |\n|---|---|---|---|---|---|---|")
        for policy, entry in windows.items():
            if "comparison" not in entry or "comparison" not in whole[policy]:
                continue
            row = row_of(name, policy, entry, whole[policy])
            rows.append(row)
            print(f"| `{policy}` | {percent(row['windows_difference'])} | {row['windows_verdict']} | "
                  f"{percent(row['log_difference'])} | {row['log_verdict']} | {row['better']} | {row['worse']} |", flush=True)
            if row["why"]:
                print(f"|  | | {row['why']} | | | | |")
    if options.csv:
        write_rows(options.csv, rows, FIELDS)


if __name__ == "__main__":
    main()
