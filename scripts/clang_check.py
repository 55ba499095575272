#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows what clang refuses in a build before anything is built by GCC: some minutes.

    scripts/clang_check.py BUILD_DIR

BUILD_DIR holds compile_commands.json and build.ninja. What GCC compiles there is read by clang, with the warnings of the
build as errors; what clang compiles anyway (most tests) is compiled. Left out is what is not of this repository. Stops at
the first source that clang refuses; exit code 1 then.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What most sources include, read once.
COMMON = ["gpusched/gpusched.hpp", "nlohmann/json.hpp"]
# Who compiles is not among the words, but this one is (cmake/GpuschedTestCompiler.cmake).
BY_CLANG = "-Wno-unknown-warning-option"
# Tests that the build compiles when it has linked the programs that they run: they are read, too.
BEHIND_PROGRAMS = ("/replay_tests.dir/", "/report_tests.dir/", "/cuda_on_cpu_backend_test.dir/")
FLAGS = ["-std=c++20", f"-I{ROOT}", f"-I{ROOT / 'include'}"]


def ours(path):
    """Whether a source, or one that the build made from ours, belongs to this repository."""
    return "/site-packages/" not in path and "/_deps/" not in path


def parts_of(path):
    """The sources that a unit of several includes, or the source itself."""
    if "/Unity/" not in path:
        return {path}
    return set(re.findall(r'#include "(.+)"', pathlib.Path(path).read_text()))


def is_compiled_first(words):
    """Whether clang compiles it, and nothing has to be linked before."""
    return BY_CLANG in words and not any(folder in words[words.index("-o") + 1] for folder in BEHIND_PROGRAMS)


def entries_of(build):
    """(entry of compile_commands.json, its words) for every source that is ours."""
    return [(entry, shlex.split(entry["command"]))
            for entry in json.loads((build / "compile_commands.json").read_text()) if ours(entry["file"])]


def sources_of(entries):
    """(source, its options without those of code generation) for every C++ source that clang would not read otherwise."""
    compiled = set().union(*(parts_of(entry["file"]) for entry, words in entries if is_compiled_first(words)))
    for entry, words in entries:
        if parts_of(entry["file"]) <= compiled or "nvcc" in words[0]:
            continue
        if entry["file"].endswith("/torch_learner.cpp"):  # clang 14 refuses LibTorch's own headers in C++20
            continue
        if "verify_interface_header_sets" in entry["file"]:  # scripts/deep_test.sh compiles each header alone
            continue
        start = next(i for i, word in enumerate(words) if word.startswith("-"))
        options, skip = [], False
        for word in words[start:]:
            if skip or word in ("-o", "-c"):
                skip = word == "-o"
            elif not word.startswith(("-O", "-fPI", "-fsanitize", "-g")) and word != entry["file"]:
                options.append(word)
        yield entry["file"], options, entry["directory"]


def objects_by_clang(entries):
    """The objects of the build that clang compiles, as build.ninja names them."""
    for entry, words in entries:
        if is_compiled_first(words) and "verify_interface_header_sets" not in entry["file"]:
            yield words[words.index("-o") + 1]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    clang = shutil.which("clang++-14") or shutil.which("clang++")
    if clang is None:
        print("Skipped: no clang, so that what only clang refuses is not seen.")
        return 0
    header = build / "clang_check.hpp"
    header.write_text("".join(f"#include <{name}>\n" for name in COMMON))
    precompiled = build / "clang_check.pch"
    # What the headers instantiate is worked out here, once, and not at the end of each source.
    subprocess.run([clang, *FLAGS, "-fpch-instantiate-templates", "-x", "c++-header", header, "-o", precompiled], check=True)

    def check(source):
        file, options, folder = source
        command = [clang, "-fsyntax-only", *options, "-Wno-unknown-warning-option", "-Wno-pragma-once-outside-header"]
        for header in (["-include-pch", str(precompiled)], []):  # a source with machine options of its own takes none
            outcome = subprocess.run([*command, *header, file], cwd=folder, capture_output=True, text=True)
            if outcome.returncode == 0:
                break
        return file, outcome

    entries = entries_of(build)
    sources = list(sources_of(entries))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        pending = [pool.submit(check, source) for source in sources]
        for done in concurrent.futures.as_completed(pending):
            file, outcome = done.result()
            if outcome.returncode != 0:
                print(outcome.stderr, end="")
                print(f"clang refuses {file}")
                pool.shutdown(cancel_futures=True)
                return 1
    print(f"clang reads all {len(sources)} sources without a warning.", flush=True)
    return subprocess.run(["cmake", "--build", build, "--target", *objects_by_clang(entries)]).returncode


if __name__ == "__main__":
    sys.exit(main())
