# SPDX-License-Identifier: Apache-2.0
"""The command `gpusched` of the Python package: the program itself, beside this file, takes the place of the interpreter.

A package of its own, because `gpusched_sim` imports numpy, which the program does not need.
"""
import os
import pathlib
import sys

PROGRAM = pathlib.Path(__file__).parent / "bin/gpusched"


def main():
    if not PROGRAM.exists():
        sys.exit(f"gpusched: the program was not built with this package ({PROGRAM} is absent)")
    os.execv(PROGRAM, ["gpusched", *sys.argv[1:]])
