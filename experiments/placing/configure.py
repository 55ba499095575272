#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a training configuration of this folder with its files filled in.

usage: configure.py CONFIG full|smoke LOG CLUSTER THROUGHPUTS      smoke: two generations on small windows
"""
import json
import sys


def main():
    if len(sys.argv) != 6 or sys.argv[2] not in ("full", "smoke"):
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as source:
        config = json.load(source)
    config["trace"], config["cluster"], config["fidelity"]["throughputs"] = sys.argv[3:]
    if sys.argv[2] == "smoke":
        config["windows"] |= {"jobs": 40, "warm_up_jobs": 20, "stride": 20}
        config["search"] |= {"generations": 2, "population": 4, "windows": 2, "validate_every": 1}
        config["ppo"]["validation_windows"] = 2
    print(json.dumps(config, indent=1))


main()
