#!/usr/bin/env python3
"""Compares the tests of src/base/paired_tests.hpp, read through the probe, with SciPy and rliable.

    tests/base/paired_tests_oracle.py PROBE     skipped (77) with a line where SciPy is missing
    tests/base/paired_tests_oracle.py --rliable                      prints what rliable gives for the frozen runs

The probe prints "p positive negative" of each line of differences that it reads. rliable 1.2.0 pulls in arch, pandas, seaborn
and matplotlib (510 MB): its figures are frozen in paired_tests_rliable.txt, and this script makes them anew.
"""
import pathlib
import random
import subprocess
import sys

FROZEN = pathlib.Path(__file__).with_name("paired_tests_rliable.txt")


def cases():
    """Lines of differences: distinct, tied, with zeros, few and many."""
    draw = random.Random(20261123)
    for count in (1, 2, 5, 6, 9, 12, 20, 35, 50):
        yield [draw.gauss(0.4, 1) for _ in range(count)]
    for count in (60, 200, 1000):
        yield [draw.gauss(0.1, 1) for _ in range(count)]
        yield [float(draw.randint(-4, 5)) for _ in range(count)]


def answers(probe, rows, zeros):
    text = "\n".join(" ".join(map(repr, row)) for row in rows) + "\n"
    done = subprocess.run([probe, zeros], input=text, capture_output=True, text=True, check=True)
    return [tuple(map(float, line.split())) for line in done.stdout.splitlines()]


def close(a, b):
    return abs(a - b) <= 1e-9 * max(1, abs(b))


def check_wilcoxon(probe):
    import numpy
    from scipy import stats
    rows, wrong = list(cases()), []
    for zeros in ("pratt", "wilcox"):
        for row, (p, positive, negative) in zip(rows, answers(probe, rows, zeros)):
            nonzero = [d for d in row if d != 0]
            distinct = len({abs(d) for d in row}) == len(row) and len(nonzero) == len(row)
            if len(nonzero) <= 50 and not distinct:
                continue  # SciPy has no exact p for ties
            method = "exact" if len(nonzero) <= 50 else "approx"
            theirs = stats.wilcoxon(row, zero_method=zeros, method=method, correction=False)
            if not close(p, theirs.pvalue) or not close(min(positive, negative), theirs.statistic):
                wrong.append(f"{zeros}, {len(row)} differences: p {p}, SciPy {theirs.pvalue}")
    # Ties and zeros, few: all signs, counted by SciPy's permutation test of the same statistic.
    small = [[0.0, 1.0, 2.0, -2.0, 3.0], [1.0, 1.0, -1.0, 2.0, 2.0, 5.0, 0.0, 0.0], [3.0, -3.0, 3.0, 3.0, 3.0, 3.0, 1.0]]
    for row, (p, _, _) in zip(small, answers(probe, small, "pratt")):
        ranks = stats.rankdata(numpy.abs(row))
        signs = numpy.array([(1 if d > 0 else -1) for d in row if d != 0])
        kept = ranks[numpy.array(row) != 0]
        all_signs = numpy.array(numpy.meshgrid(*[[-1, 1]] * len(kept))).reshape(len(kept), -1)
        sums, own = kept @ all_signs, kept @ signs
        expected = min(1, 2 * min((sums <= own).mean(), (sums >= own).mean()))
        if not close(p, expected):
            wrong.append(f"{row}: p {p}, of all signs {expected}")
    return wrong


def runs_of_agents():
    draw = random.Random(7)
    ours = [[draw.lognormvariate(0.0, 0.5) for _ in range(12)] for _ in range(6)]
    theirs = [[draw.lognormvariate(0.3, 0.5) for _ in range(12)] for _ in range(5)]
    return ours, theirs


def rliable_figures():
    """Probability of improvement (rliable compares larger-is-better: signs turned), and the interquartile mean."""
    import numpy
    from rliable import metrics
    ours, theirs = map(numpy.array, runs_of_agents())
    return (float(metrics.probability_of_improvement(-ours, -theirs)), float(metrics.aggregate_iqm(ours)))


def check_runs(probe):
    ours, theirs = runs_of_agents()
    text = "\n".join(" ".join(map(repr, run)) for run in ours) + "\n\n" + "\n".join(" ".join(map(repr, r)) for r in theirs) + "\n"
    done = subprocess.run([probe, "runs"], input=text, capture_output=True, text=True, check=True)
    found = tuple(map(float, done.stdout.split()))
    frozen = tuple(float(line.split()[-1]) for line in FROZEN.read_text().splitlines() if not line.startswith("#"))
    try:
        if any(not close(a, b) for a, b in zip(rliable_figures(), frozen)):
            return ["rliable gives other figures than those frozen in " + FROZEN.name]
    except ImportError:
        pass
    return [] if all(map(close, found, frozen)) else [f"of runs: {found}, rliable {frozen}"]


def main(words):
    if words == ["--rliable"]:
        below, mean = rliable_figures()
        print(f"# rliable 1.2.0 on runs_of_agents() of paired_tests_oracle.py\nprobability_of_improvement {below!r}\naggregate_iqm {mean!r}")
        return 0
    problems = check_runs(words[0])
    try:
        problems += check_wilcoxon(words[0])
    except ImportError:
        print("\n".join(problems) or "skipped: SciPy is not here (pip install -r tests/requirements.txt)")
        return 1 if problems else 77
    print("\n".join(problems) or "as SciPy and rliable have it")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
