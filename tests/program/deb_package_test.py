#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the Debian package of a build, unpacks it elsewhere and uses what is in it.

usage: deb_package_test.py SOURCE BUILD
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FILES = ["usr/bin/gpusched", "usr/bin/gpusched-train", "usr/share/man/man1/gpusched.1",
         "usr/share/bash-completion/completions/gpusched", "usr/share/zsh/site-functions/_gpusched",
         "usr/share/fish/vendor_completions.d/gpusched.fish", "usr/include/gpusched/gpusched.hpp",
         "usr/share/gpusched/sample/philly.csv", "usr/share/doc/gpusched/LICENSE"]


def run(*command, **options):
    return subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def make_package(build, folder):
    run("cpack", "-G", "DEB", "--config", build / "CPackConfig.cmake", "-B", folder, cwd=build)
    packages = list(folder.glob("*.deb"))
    assert len(packages) == 1, packages
    return packages[0]


def check_control(package, source):
    version = re.search(r"project\(gpusched VERSION (\S+)", (source / "CMakeLists.txt").read_text()).group(1)
    field = lambda name: run("dpkg-deb", "-f", package, name).strip()  # noqa: E731
    assert field("Package") == "gpusched", field("Package")
    assert field("Version") == version, field("Version")
    assert package.name == f"gpusched_{version}_{field('Architecture')}.deb", package.name
    for library in ("libc6", "libarchive13", "libsqlite3-0"):
        assert re.search(rf"\b{library}\b", field("Depends")), (library, field("Depends"))


def use(root, folder):
    """The program alone, in a folder where nothing of the source or the build is."""
    program = root / "usr/bin/gpusched"
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}
    sample = root / "usr/share/gpusched/sample/philly.csv"
    text = run(program, "replay", sample, "--cluster", "8x8", "--oversize", "drop", "--policy",
               "fifo,rl:builtin/philly,las", "--out", "run", cwd=folder, env=clean)
    assert "rl:builtin/philly" in text and "las" in text, text
    assert "V100" in run(program, "profile", "show", "V100", cwd=folder, env=clean)
    run(program, "trace", "generate", "--model", "philly", "--jobs", "50", "--out", "drawn.csv", cwd=folder, env=clean)
    page = subprocess.run([program, "report", "run", "--out", "page.html"], cwd=folder, env=clean, text=True,
                          stderr=subprocess.PIPE)
    assert page.returncode == 0 or "libjs-vega" in page.stderr, page.stderr  # built without Vega


def main():
    missing = [tool for tool in ("cpack", "dpkg-deb", "dpkg-shlibdeps", "strip") if not shutil.which(tool)]
    if missing:
        print(f"skipped: {missing[0]} is absent")
        sys.exit(77)
    source, build = map(pathlib.Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        package = make_package(build.resolve(), folder / "made")
        check_control(package, source)
        root, elsewhere = folder / "root", folder / "elsewhere"
        run("dpkg-deb", "-x", package, root)
        elsewhere.mkdir()
        for file in FILES:
            assert (root / file).is_file(), file
        assert (root / "usr/share/man/man1/gpusched.1").read_text().count("\n.TH GPUSCHED 1 ") == 1, "manual page"
        assert not [name for name in os.listdir(root) if name != "usr"], os.listdir(root)
        use(root, elsewhere)
    print("the package holds what it should, and runs")


main()
