#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel of this machine one for every Linux of its age: puts the libraries that it needs inside.

    scripts/release_wheel.py WHEEL FOLDER

Writes the repaired wheel into FOLDER. Needs auditwheel, patchelf and wheel on the path, and the Debian packages that the programs are
linked to. CLP, which the policy gavel loads when it is asked for, comes in as well. The licences of the Debian packages whose libraries are
inside lie in the wheel's folder licenses/.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

CLP = "libClp.so.1"
# The reference BLAS and LAPACK, not the variant that Debian's alternatives choose here: CLP needs no faster one, and it is 40 MB less.
SMALL_ALGEBRA = ("blas", "lapack")


def run(*command, **options):
    return subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def library_folder():
    """Debian's folder of libraries of this processor."""
    return pathlib.Path("/usr/lib") / run("dpkg-architecture", "-qDEB_HOST_MULTIARCH").strip()


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def add_clp(tree, libraries):
    """Lays CLP beside the programs, where they and the module look for it before they look on the machine."""
    folder = tree / "gpusched_program/lib"
    folder.mkdir()
    loaders = [path for path in tree.rglob("*") if path.is_file() and is_elf(path)]
    shutil.copy(libraries / CLP, folder / CLP)
    for path in loaders:
        run("patchelf", "--add-rpath", "$ORIGIN/" + os.path.relpath(folder, path.parent), path)


def repair(wheel, folder, libraries):
    """The path of the wheel that auditwheel makes in `folder`."""
    path = ":".join([*(str(libraries / name) for name in SMALL_ALGEBRA), os.environ.get("LD_LIBRARY_PATH", "")])
    run("auditwheel", "repair", wheel, "-w", folder, env={**os.environ, "LD_LIBRARY_PATH": path})
    return next(folder.glob("*.whl"))


def add_licences(tree, libraries):
    """Copies what Debian says of each library inside."""
    licences = next(tree.glob("*.dist-info")) / "licenses"
    licences.mkdir(exist_ok=True)
    inside = [CLP] + [re.sub(r"-[0-9a-f]{8}(?=\.so)", "", path.name) for path in tree.glob("*.libs/*.so*")]
    for name in inside:
        found = [path for folder in ("", *SMALL_ALGEBRA) if (path := libraries / folder / name).exists()]
        if not found:
            sys.exit(f"{name} is in the wheel, and no Debian package has it")
        package = debian_package(found[0])
        shutil.copy(f"/usr/share/doc/{package}/copyright", licences / f"{package}.txt")


def debian_package(library):
    for path in (library, library.resolve(), *(pathlib.Path(str(p).removeprefix("/usr")) for p in (library, library.resolve()))):
        found = subprocess.run(["dpkg-query", "-S", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        if found.returncode == 0:
            return found.stdout.partition(":")[0]
    sys.exit(f"no Debian package holds {library}")


def main(wheel, folder):
    libraries = library_folder()
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        for name in ("first", "second", "with_clp", "repaired"):
            (scratch / name).mkdir()
        run("wheel", "unpack", "-d", scratch / "first", wheel)
        tree = next((scratch / "first").iterdir())
        add_clp(tree, libraries)
        run("wheel", "pack", "-d", scratch / "with_clp", tree)
        repaired = repair(next((scratch / "with_clp").iterdir()), scratch / "repaired", libraries)
        run("wheel", "unpack", "-d", scratch / "second", repaired)
        tree = next((scratch / "second").iterdir())
        add_licences(tree, libraries)
        run("wheel", "pack", "-d", folder, tree)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*(pathlib.Path(word).resolve() for word in sys.argv[1:]))
