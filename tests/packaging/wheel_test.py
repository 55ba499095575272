#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What scripts/release.sh made is whole, and its wheel needs no Debian package.

    tests/packaging/wheel_test.py SOURCE FOLDER

The wheel for this Python is installed in an empty virtual environment. The program replays the README's example within seconds, finds
CLP for the policy gavel, and loads no library but those of the wheel and those that manylinux allows; so does the module. Where the
machine lets a user make a mount namespace, all of it runs once more with the machine's copies of the wheel's libraries hidden.
Exit code 77 (skipped) with a line where FOLDER holds no wheel for this Python.
"""
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv

SOURCE, FOLDER = (pathlib.Path(word).resolve() for word in sys.argv[1:3]) if len(sys.argv) == 3 else sys.exit(__doc__)
sys.path.insert(0, str(SOURCE / "tests"))
import docs_blocks_test  # noqa: E402

# PEP 600 and auditwheel's policies.
ALLOWED = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libz.so.1",
           "libexpat.so.1", "libatomic.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
GAVEL = ["replay", "synthetic:philly:50", "--policy", "gavel"]
SCRIPT = """
import json, sys
import gpusched_sim as gs
print(json.dumps(gs.replay("synthetic:philly:300", policies=["fifo", "gavel"])["fifo"].metrics["avg_jct_s"]))
"""


def check_sums():
    for line in (FOLDER / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == digest, name
    made = [path.name for path in FOLDER.iterdir() if path.name != "SHA256SUMS"]
    assert len((FOLDER / "SHA256SUMS").read_text().splitlines()) == len(made), "a file without a sum"
    for kind in (r"gpusched_sim-[\d.]+\.tar\.gz", r"gpusched_sim-.*manylinux.*\.whl", r"gpusched_.*\.deb", r"libgpusched-dev_.*\.deb"):
        assert any(re.fullmatch(kind, name) for name in made), (kind, made)


def check_source_archive():
    with tarfile.open(next(FOLDER.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tracked = subprocess.run(["git", "ls-files"], cwd=SOURCE, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    lacking = [name for name in tracked if name not in names and not name.startswith(".")]
    assert not lacking, lacking[:5]
    assert not [name for name in names if name.startswith(("build/", ".git/"))]


def wheel_of_this_python():
    tag = "cp%d%d" % sys.version_info[:2]
    found = [path for path in FOLDER.glob("*.whl") if f"-{tag}-{tag}-" in path.name]
    if not found:
        print(f"skipped: {FOLDER} holds no wheel for {tag}")
        sys.exit(77)
    return found[0]


def install(wheel, folder):
    """(the environment's folder of packages, whether numpy is there, which pip fetches)."""
    venv.create(folder, with_pip=True)
    pip = [folder / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-index", "--no-deps", wheel], check=True)
    has_numpy = subprocess.run([*pip, "--retries", "1", "numpy"], check=False, stderr=subprocess.DEVNULL).returncode == 0
    return next(folder.glob("lib/python*/site-packages")), has_numpy


class Installed:
    """Runs what the wheel brought, as a user without anything else would; `before`: words before each command."""

    def __init__(self, folder, packages, has_numpy, before=()):
        self.folder, self.packages, self.has_numpy, self.before = folder, packages, has_numpy, [*before]
        self.environment = {"PATH": f"{folder / 'bin'}:/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}

    def run(self, *command):
        done = subprocess.run([*self.before, *map(str, command)], cwd=self.folder, env=self.environment, text=True,
                              capture_output=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout

    def loaded(self, *command):
        """Paths of the libraries that the loader took for a command."""
        log = self.folder / "loader"
        for file in self.folder.glob("loader.*"):
            file.unlink()
        self.run("env", "LD_DEBUG=files", f"LD_DEBUG_OUTPUT={log}", *command)  # not of the words before it
        told = "".join(file.read_text() for file in self.folder.glob("loader.*"))
        found = {pathlib.Path(path) for path in re.findall(r"calling init: (/\S+)", told)}
        assert found, told[:2000]
        return found

    def foreign(self, *command):
        return {path for path in self.loaded(*command)
                if self.packages not in path.resolve().parents and self.packages not in path.parents and path.name not in ALLOWED}

    def check_program(self, readme):
        for command, expected in readme:
            begun = time.monotonic()
            found = self.run("bash", "-c", command)
            assert docs_blocks_test.same_output(found, expected), f"`{command}` prints otherwise:\n{found}"
            assert time.monotonic() - begun < 20, f"`{command}` takes {time.monotonic() - begun:.0f} s"
        program = self.packages / "gpusched_program/bin/gpusched"
        for words in (["replay", "synthetic:philly:300", "--policy", "fifo,rl:builtin/philly"], GAVEL, ["train", "--help"], ["search", "--help"]):
            assert self.run(program, *words) == self.run("gpusched", *words)
            assert not self.foreign(program, *words), (words, self.foreign(program, *words))
        self.run("gpusched", *GAVEL, "--out", "runs")
        self.run("gpusched", "report", "runs", "--out", "page.html")

    def check_module(self):
        of_program = json.loads(self.run("gpusched", "replay", "synthetic:philly:300", "--policy", "fifo", "--json"))
        assert f"{self.run('python', '-c', SCRIPT).strip()}" in json.dumps(of_program), of_program
        own = self.foreign("python", "-c", "import numpy, json, sqlite3, hashlib")  # the interpreter's and numpy's
        assert self.foreign("python", "-c", SCRIPT) <= own, self.foreign("python", "-c", SCRIPT) - own


def readme_examples():
    """(command, output) of the README's replay of a synthetic trace."""
    found = []
    for block in docs_blocks_test.blocks_of((SOURCE / "README.md").read_text()):
        if block.language == "console":
            found += [re.match(r"((?:.*\\\n)*.*)\n?((?:.*\n?)*)", example).groups()
                      for example in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]]
    found = [example for example in found if "gpusched replay" in example[0] and "../shared" not in example[0]]
    assert found, "README.md has no block `$ gpusched replay ...`"
    return found


def hiding(packages, scratch):
    """Words before a command that hide the machine's copies of the wheel's libraries from it, or None where that is not allowed."""
    inside = {re.sub(r"-[0-9a-f]{8}(?=\.so)", "", path.name) for path in packages.glob("*.libs/*.so*")} | {"libClp.so.1"}
    inside -= ALLOWED
    cache = subprocess.run(["/sbin/ldconfig", "-p"], stdout=subprocess.PIPE, text=True, check=True).stdout
    system = {str(pathlib.Path(path).resolve()) for name, path in re.findall(r"^\s+(\S+) .* => (\S+)$", cache, re.MULTILINE) if name in inside}
    assert system, "no library of the wheel is on this machine, so that nothing shows that they are its own"
    (scratch / "empty").write_text("")
    mounts = "".join(f"mount --bind {scratch / 'empty'} {path}\n" for path in sorted(system))
    (scratch / "hide.sh").write_text(f'set -e\n{mounts}exec "$@"\n')
    before = ["unshare", "--mount", "--map-root-user", "bash", str(scratch / "hide.sh")]
    if not shutil.which("unshare") or subprocess.run([*before, "true"], capture_output=True, check=False).returncode:
        return None
    for path in system:  # the test of the test: nothing there can be loaded
        assert subprocess.run([*before, "test", "-s", path], check=False).returncode == 1, path
    return before


def main():
    check_sums()
    check_source_archive()
    wheel, readme = wheel_of_this_python(), readme_examples()
    with tempfile.TemporaryDirectory() as holder:
        scratch = pathlib.Path(holder).resolve()
        packages, has_numpy = install(wheel, scratch / "env")
        ways = {"": (), " with the machine's copies hidden": hiding(packages, scratch)}
        for way, before in ways.items():
            if before is None:
                print("no mount namespace is allowed here: the machine's copies of the wheel's libraries are not hidden")
                continue
            installed = Installed(scratch / "env", packages, has_numpy, before)
            installed.check_program(readme)
            if has_numpy:
                installed.check_module()
            else:
                print("pip finds no numpy: the module is not tried")
            print(f"{wheel.name}: the program{' and the module' * has_numpy} need nothing else{way}")


if __name__ == "__main__":
    main()
