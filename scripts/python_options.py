#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes python/src/gpusched_sim/_options.py: the types of the keyword options of the Python package, from the tables of
options that its compiled part was built from.

    PYTHONPATH=build/test/python scripts/python_options.py [--check]

With --check nothing is written: exit code 1 if the file is not what the tables say.
"""
import pathlib
import sys

from gpusched_sim import _core

FILE = pathlib.Path(__file__).resolve().parent.parent / "python/src/gpusched_sim/_options.py"
HEAD = '''# SPDX-License-Identifier: Apache-2.0
"""Keyword options by type, for editors and type checkers; written by scripts/python_options.py."""
from __future__ import annotations

import os
from typing import Literal, Mapping, Sequence, TypedDict
'''
# Arguments of their own, under this or another name.
OWN = {"ReplayOptions": ("trace", "cluster"), "EvaluateOptions": (), "SweepOptions": ("out",),
       "EnvOptions": ("num_envs", "autoreset"), "ServiceEnvOptions": ("num_envs", "policy", "services")}


def options(name, keywords):
    lines = [f"\n\nclass {name}(TypedDict, total=False):"]
    groups = set()
    for keyword, _, _, kind in keywords:
        group = keyword.split(".")[0]
        if group in OWN[name] or group in groups:
            continue
        groups.add(group)
        lines.append(f"    {group}: " + ("Mapping[str, float]" if "." in keyword else kind))
    return "\n".join(lines) + "\n"


def text():
    return HEAD + "".join(options(*each) for each in (
        ("ReplayOptions", _core.replay_keywords()), ("EvaluateOptions", _core.evaluate_keywords()),
        ("SweepOptions", _core.sweep_keywords()), ("EnvOptions", _core.env_keywords()), ("ServiceEnvOptions", _core.service_env_keywords())))


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    if sys.argv[1:]:
        sys.exit(0 if FILE.read_text() == text() else f"{FILE.name}: run scripts/python_options.py")
    FILE.write_text(text())
