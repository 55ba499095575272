#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loss curves from the trainings that Zeus measured, as `--trials` reads them.

usage: losses.py FOLDER DATASET CSV

FOLDER has summary_train.csv and summary_power_v100.csv. A trial is a run of the data set with one batch size; a unit is an epoch; its
loss is 1 less the best accuracy that was reached, in steps of 0.05 as they were measured; a unit takes as long as the epoch did at
the largest power limit. Prints how many trials there are.
"""
import collections
import csv
import pathlib
import sys


def main():
    folder, dataset, target = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    reached, seconds = collections.defaultdict(list), {}
    with open(folder / "summary_train.csv", newline="", encoding="utf-8") as source:
        for row in csv.DictReader(source):
            if row["dataset"] == dataset and row["target_epoch"] != "nan":
                key = (int(row["batch_size"]), row["optimizer"], row["learning_rate"], int(row["run"]))
                reached[key].append((int(row["target_epoch"]), float(row["target_metric"])))
    with open(folder / "summary_power_v100.csv", newline="", encoding="utf-8") as source:
        for row in csv.DictReader(source):
            if row["dataset"] == dataset:
                key = (int(row["batch_size"]), row["optimizer"])
                limit, epoch_s = float(row["power_limit"]), float(row["time_per_epoch"])
                seconds[key] = max(seconds.get(key, (0, 0)), (limit, epoch_s))
    trials = [key for key in sorted(reached) if key[:2] in seconds]
    with open(target, "w", encoding="utf-8") as out:
        out.write("trial,units,loss,unit_s\n")
        for number, key in enumerate(trials):
            epoch_s = seconds[key[:2]][1]
            losses = {0: 1.0}
            for epoch, metric in sorted(reached[key]):
                losses[epoch] = min(1 - metric, *losses.values())
            for epoch, loss in sorted(losses.items()):
                out.write(f"{number},{epoch},{loss:.4g},{epoch_s:.6f}\n")
    print(len(trials))


if __name__ == "__main__":
    main()
