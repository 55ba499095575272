#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the csv files of an experiment with its frozen outputs, cell by cell, and says which cell differs.

usage: compare.py REFERENCE OUT [TOLERANCES]

REFERENCE: the folder of frozen csv files; OUT: the folder with files of the same names; TOLERANCES: a JSON file as
{"table.csv": {"ours": {"relative": 1e-6}, "difference": {"absolute": 0.01}}}. Texts must be equal, and numbers within 1e-9 of
the frozen one (absolute or relative) where nothing else is said; with both kinds a number is right within either of them.
Exit code: 0 equal, 1 different, 2 bad usage.
"""
import csv
import json
import math
import pathlib
import sys

DEFAULT = {"relative": 1e-9, "absolute": 1e-9}
MOST_TOLD = 10


def fail(message):
    print(f"compare.py: {message}", file=sys.stderr)
    sys.exit(2)


def read_rows(path):
    with open(path, newline="", encoding="utf-8") as source:
        return list(csv.reader(source))


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def agree(frozen, ours, tolerance):
    a, b = number(frozen), number(ours)
    if frozen == ours:
        return True
    if a is None or b is None or not (math.isfinite(a) and math.isfinite(b)):
        return False
    return abs(a - b) <= max(tolerance.get("absolute", 0), tolerance.get("relative", 0) * abs(a))


def read_tolerances(path):
    try:
        tolerances = json.loads(path.read_text(encoding="utf-8"))
        for columns in tolerances.values():
            for column, tolerance in columns.items():
                for kind, value in tolerance.items():
                    if kind not in ("relative", "absolute") or not (isinstance(value, (int, float)) and value >= 0):
                        fail(f"{path}: {column}: expected relative or absolute, and a number from 0, not {kind}: {value}")
    except (OSError, ValueError, AttributeError) as error:
        fail(f"{path}: {error}")
    return tolerances


def differences(name, frozen, ours, tolerances):
    """One line for each thing that differs."""
    if frozen[:1] != ours[:1]:
        return [f"{name}: columns are {','.join(ours[0]) if ours else 'none'}; frozen: {','.join(frozen[0])}"]
    header = frozen[0]
    found = []
    if len(frozen) != len(ours):
        found.append(f"{name}: {len(ours) - 1} rows; frozen: {len(frozen) - 1}")
    for line, (theirs, mine) in enumerate(zip(frozen[1:], ours[1:]), start=2):
        if len(theirs) != len(mine):
            found.append(f"{name}:{line}: {len(mine)} cells; frozen: {len(theirs)}")
            continue
        for column, a, b in zip(header, theirs, mine):
            tolerance = tolerances.get(column, DEFAULT)
            if not agree(a, b, tolerance):
                allowed = ", ".join(f"{kind} {value:g}" for kind, value in tolerance.items())
                found.append(f"{name}:{line}: {column} ({', '.join(theirs[:2])}): {b or 'empty'}; frozen: {a or 'empty'} "
                             f"(tolerance {allowed})")
    return found


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    reference, out = map(pathlib.Path, sys.argv[1:3])
    tolerances = read_tolerances(pathlib.Path(sys.argv[3])) if len(sys.argv) == 4 else {}
    files = sorted(reference.glob("*.csv"))
    if not files:
        fail(f"{reference}: no frozen csv file")
    found = []
    for file in files:
        if not (out / file.name).exists():
            found.append(f"{file.name}: absent; frozen: {file}")
            continue
        found += differences(file.name, read_rows(file), read_rows(out / file.name), tolerances.get(file.name, {}))
    for line in found[:MOST_TOLD]:
        print(line)
    if len(found) > MOST_TOLD:
        print(f"... and {len(found) - MOST_TOLD} more")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
