#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The version has one home, project() in CMakeLists.txt; whatever repeats it agrees.

usage: version_test.py SOURCE PROGRAM
"""
import json
import pathlib
import re
import subprocess
import sys


def main():
    source, program = pathlib.Path(sys.argv[1]), sys.argv[2]
    read = lambda name: (source / name).read_text()  # noqa: E731
    version = re.search(r"project\(gpusched VERSION (\S+)", read("CMakeLists.txt")).group(1)
    minor = version.rpartition(".")[0]
    parts = dict(re.findall(r"#define GPUSCHED_VERSION_(\w+) (\d+)", read("include/gpusched/core/config.hpp")))
    found = {
        "CITATION.cff": re.search(r"^version: (\S+)$", read("CITATION.cff"), re.M).group(1),
        "pyproject.toml": re.search(r'^version = "(\S+)"$', read("pyproject.toml"), re.M).group(1),
        "CHANGELOG.md, first heading": re.search(r"^## (\S+)", read("CHANGELOG.md"), re.M).group(1),
        "config.hpp": re.search(r'#define GPUSCHED_VERSION "(\S+)"', read("include/gpusched/core/config.hpp")).group(1),
        "config.hpp, in parts": ".".join(parts[name] for name in ("MAJOR", "MINOR", "PATCH")),
        "vcpkg.json": json.loads(read("packaging/vcpkg/ports/gpusched/vcpkg.json"))["version-semver"],
        "manual page": re.search(r'^\.TH GPUSCHED 1 "[^"]*" "gpusched (\S+)"', subprocess.run(
            [program, "help", "--man"], check=True, stdout=subprocess.PIPE, text=True).stdout, re.M).group(1),
        "gpusched --version": subprocess.run([program, "--version"], check=True, stdout=subprocess.PIPE,
                                             text=True).stdout.split()[1],
    }
    for example in ("embed", "policy", "simulate"):
        asked = re.search(r"find_package\(gpusched (\S+) REQUIRED", read(f"examples/{example}/CMakeLists.txt")).group(1)
        found[f"examples/{example}/CMakeLists.txt"] = version if asked == minor else asked
    released = re.search(r"^## \S+ \((\S+)\)", read("CHANGELOG.md"), re.M).group(1)
    cited = re.search(r"^date-released: (\S+)$", read("CITATION.cff"), re.M).group(1)
    if released not in ("unreleased", cited):
        found["CITATION.cff, date of"] = f"{cited} there, {released} in CHANGELOG.md"
    wrong = {place: other for place, other in found.items() if other != version}
    for place, other in wrong.items():
        print(f"{place}: {other}, but CMakeLists.txt says {version}")
    sys.exit(1 if wrong else 0)


main()
