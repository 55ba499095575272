#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the Debian packages of a build, unpacks them elsewhere and uses what is in them, away from the source and the build.

usage: deb_package_test.py SOURCE BUILD
"""
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PROGRAM_FILES = ["usr/bin/gpusched", "usr/bin/gpusched-train", "usr/bin/gpusched-search",
                 "usr/bin/gpusched-calibrate", "usr/share/man/man1/gpusched-calibrate.1.gz",
                 "usr/share/man/man1/gpusched.1.gz", "usr/share/man/man1/gpusched-train.1.gz",
                 "usr/share/man/man1/gpusched-search.1.gz", "usr/share/bash-completion/completions/gpusched",
                 "usr/share/zsh/vendor-completions/_gpusched", "usr/share/fish/vendor_completions.d/gpusched.fish",
                 "usr/share/gpusched/sample/philly.csv", "usr/share/gpusched/sample/README.md",
                 "usr/share/gpusched/sample/sacct.txt", "usr/share/gpusched/sample/nodes.txt",
                 "usr/share/doc/gpusched/copyright", "usr/share/doc/gpusched/changelog.gz",
                 "usr/share/doc/gpusched/CHANGELOG.md"]
DEVELOPMENT_FILES = ["include/gpusched/gpusched.hpp", "include/gpusched/plugin/headers_hash.hpp",
                     "include/gpusched-sim/src/sim/replay.hpp", "include/gpusched-sim/traces/core/trace_reader.hpp",
                     "cmake/gpusched/gpuschedConfig.cmake", "cmake/gpusched/gpuschedSimTargets.cmake", "libgpusched.a",
                     "share/doc/libgpusched-dev/copyright", "share/doc/libgpusched-dev/changelog.gz",
                     "share/doc/libgpusched-dev/examples/policy/mine.cpp",
                     "share/doc/libgpusched-dev/examples/simulate/simulate.cpp"]


def run(*command, **options):
    return subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def make_packages(build, folder):
    """gpusched and libgpusched-dev. gzip packs in a second, which xz does in twenty."""
    run("cpack", "-G", "DEB", "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip", "--config", build / "CPackConfig.cmake", "-B",
        folder, cwd=build)
    packages = sorted(folder.glob("*.deb"))
    assert [package.name.split("_")[0] for package in packages] == ["gpusched", "libgpusched-dev"], packages
    return packages


def check_control(package, version, libraries):
    field = lambda name: run("dpkg-deb", "-f", package, name).strip()  # noqa: E731
    assert field("Version") == version, field("Version")
    assert package.name == f"{field('Package')}_{version}_{field('Architecture')}.deb", package.name
    assert re.fullmatch(r".+ <\S+@\S+>", field("Maintainer")), field("Maintainer")
    for library in libraries:
        assert re.search(rf"\b{library}\b", field("Depends")), (library, field("Depends"))


def files_below(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def check_program_files(root, version):
    found = files_below(root)
    assert found == set(PROGRAM_FILES), sorted(found ^ set(PROGRAM_FILES))
    page = gzip.open(root / "usr/share/man/man1/gpusched.1.gz", "rt").read()
    assert re.search(rf'^\.TH GPUSCHED 1 "[^"]*" "gpusched {re.escape(version)}"', page, re.M), page[:200]
    assert gzip.open(root / "usr/share/doc/gpusched/changelog.gz", "rt").read().startswith(f"gpusched ({version}) ")
    for name in ("gpusched-train", "gpusched-search", "gpusched-calibrate"):
        assert os.readlink(root / f"usr/share/man/man1/{name}.1.gz") == "gpusched.1.gz"
    assert "Licensed under the Apache License" in (root / "usr/share/doc/gpusched/copyright").read_text()


def check_development_files(root):
    found = files_below(root)
    for file in DEVELOPMENT_FILES:
        assert any(name.endswith("/" + file) for name in found), file
    assert not [name for name in found if name.startswith("usr/bin") or name.endswith((".cpp.o", ".so"))], found


def use_program(root, folder):
    program = root / "usr/bin/gpusched"
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}
    sample = root / "usr/share/gpusched/sample"
    text = run(program, "replay", sample / "philly.csv", "--cluster", "8x8", "--policy", "fifo,rl:builtin/philly,las",
               "--out", "run", cwd=folder, env=clean)
    assert "rl:builtin/philly" in text and "las" in text, text
    text = run(program, "replay", sample / "sacct.txt", "--cluster", sample / "nodes.txt", "--policy", "fifo", cwd=folder,
               env=clean)
    assert "(recorded)" in text, text
    assert "V100" in run(program, "profile", "show", "V100", cwd=folder, env=clean)
    run(program, "trace", "generate", "--model", "philly", "--jobs", "50", "--out", "drawn.csv", cwd=folder, env=clean)
    assert '"$schema"' in run(program, "replay", "--print-schema", cwd=folder, env=clean)
    for command in ("train", "search", "calibrate"):  # programs of their own, found beside the first
        assert f"Usage: gpusched {command}" in run(program, command, "--help", cwd=folder, env=clean)
    page = subprocess.run([program, "report", "run", "--out", "page.html"], cwd=folder, env=clean, text=True,
                          stderr=subprocess.PIPE)
    assert page.returncode == 0 or "libjs-vega" in page.stderr, page.stderr  # built without Vega


def check_that_no_program_lacks(source, folder):
    """What CPack runs before it packs refuses a tree without one of the programs."""
    binaries = folder / "tree/program/usr/bin"
    binaries.mkdir(parents=True)
    command = ["cmake", f"-DCPACK_TEMPORARY_INSTALL_DIRECTORY={folder / 'tree'}", "-DCPACK_COMPONENTS_ALL=development;program",
               "-DCPACK_GPUSCHED_PROGRAMS=gpusched;gpusched-train;gpusched-search", "-P",
               source.resolve() / "cmake/all_programs.cmake"]
    for name in ("gpusched", "gpusched-train", "gpusched-search"):
        refused = subprocess.run(command, stderr=subprocess.PIPE, text=True)
        assert refused.returncode and f"{name} is not built" in refused.stderr, (name, refused.stderr)
        (binaries / name).write_text("")
    subprocess.run(command, check=True)


def main():
    missing = [tool for tool in ("cpack", "dpkg-deb", "dpkg-shlibdeps", "file", "strip") if not shutil.which(tool)]
    if missing:
        print(f"skipped: {missing[0]} is absent")
        sys.exit(77)
    source, build = map(pathlib.Path, sys.argv[1:])
    version = re.search(r"project\(gpusched VERSION (\S+)", (source / "CMakeLists.txt").read_text()).group(1)
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        check_that_no_program_lacks(source, folder)
        program, development = make_packages(build.resolve(), folder / "made")
        check_control(program, version, ["libc6", "libarchive13", "libsqlite3-0", "zlib1g"])
        check_control(development, version, ["nlohmann-json3-dev", "libeigen3-dev", "libarchive-dev", "libsqlite3-dev", "zlib1g-dev"])
        run("dpkg-deb", "-x", program, folder / "program")
        run("dpkg-deb", "-x", development, folder / "development")
        check_program_files(folder / "program", version)
        check_development_files(folder / "development")
        elsewhere = folder / "elsewhere"
        elsewhere.mkdir()
        use_program(folder / "program", elsewhere)
    print("the packages hold what they should, and run")


main()
