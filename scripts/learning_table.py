#!/usr/bin/env python3
"""Compares runs of `gpusched train` by PPO: how fast each one is and how fast it learns.

    scripts/learning_table.py METHOD,LEARNER=FOLDER...     a Markdown table; a row for each run

Rates are medians over the iterations but the first, which loads code. A learning curve is the least validation loss until so
many seconds of training; the runs of a METHOD share their instants, up to the shortest of them. A folder without a finished
iteration gets a row that says so. Only the standard library is needed.
"""
import csv
import os
import statistics
import sys

POINTS = 4  # of a learning curve, beside the start


def number(row, column):
    text = row.get(column) or ""
    return float(text) if text else None


class Run:
    def __init__(self, word):
        label, self.folder = word.split("=", 1)
        self.method, self.learner = label.split(",", 1)
        path = os.path.join(self.folder, "metrics.csv")
        self.rows = []
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                self.rows = list(csv.DictReader(file))
        self.iterations = [row for row in self.rows if number(row, "iteration_s") is not None]
        self.seconds = sum(number(row, "iteration_s") for row in self.iterations)

    def median(self, value):
        found = [value(row) for row in self.iterations[1:] or self.iterations]
        found = [x for x in found if x is not None]
        return statistics.median(found) if found else None

    def validated(self):
        """Seconds of training and validation loss, wherever it was measured."""
        spent = 0.0
        for row in self.rows:
            spent += number(row, "iteration_s") or 0.0
            loss = number(row, "validation_loss")
            if loss is not None:
                yield spent, loss

    def best_until(self, seconds):
        return min((loss for spent, loss in self.validated() if spent <= seconds), default=None)


def text(value, form="{:.4g}"):
    return "" if value is None else form.format(value)


def table(runs):
    lines = ["| method | learner on | iterations | decisions/s | decisions/s of the learner | share of the learner "
             "| gradient cosine | heuristic | validation loss: seconds of training |",
             "|---|---|---|---|---|---|---|---|---|"]
    for run in runs:
        if not run.iterations:
            lines.append(f"| {run.method} | {run.learner} | none finished | | | | | | |")
            continue
        shared = min(other.seconds for other in runs if other.method == run.method and other.iterations)
        learned = run.median(lambda row: number(row, "steps_per_s") / max(1e-9, number(row, "learner_share") or 0.0))
        curve = []
        for point in range(POINTS + 1):
            at = shared * point / POINTS
            # the last instant is the whole of the shortest run, however its seconds were rounded
            loss = run.best_until(at * (1 + 1e-9))
            curve.append(f"{text(loss)}: {at:.0f}")
        heuristic = next((number(row, "validation_heuristic_loss") for row in run.rows
                          if number(row, "validation_heuristic_loss") is not None), None)
        cells = [run.method, run.learner, str(len(run.iterations)),
                 text(run.median(lambda row: number(row, "steps_per_s")), "{:.0f}"), text(learned, "{:.0f}"),
                 text(run.median(lambda row: number(row, "learner_share")), "{:.0%}"),
                 text(run.median(lambda row: number(row, "gradient_cosine")), "{:.2f}"), text(heuristic), ", ".join(curve)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(words):
    if not words or not all("=" in word and "," in word.split("=", 1)[0] for word in words):
        print("usage: scripts/learning_table.py METHOD,LEARNER=FOLDER...", file=sys.stderr)
        return 2
    print(table([Run(word) for word in words]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
