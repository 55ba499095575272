#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the fenced code blocks of Markdown pages, and compares what they print with what the page shows, and the cells of notebooks.

    tests/docs_blocks_test.py SOURCE_DIR BUILD_DIR [PAGE ...]

Without PAGE: every Markdown page and notebook of SOURCE_DIR. The blocks of a page run in order in one scratch folder, which
holds links to everything in SOURCE_DIR, with $PREFIX an installed package's headers. On the path are the programs of BUILD_DIR that
scripts/quickstart.sh builds and no others: a block `cmake --build build/release --target NAME` adds one. Each page, in blocks that are
run or not, builds a program before it uses it, and installs the Python package before it imports it.

    bash, sh   run by bash; must succeed
    console    each line "$ COMMAND" is run by bash; what follows it must be its standard output
    python     run by this Python, all blocks of a page in one process; skipped with a line where gpusched_sim cannot be imported
    cpp        compiled
    json       must be JSON
    text, none not run

A line "..." of an output stands for any lines, "..." within a line for any text. Comments before a block, which readers do not see:

    <!-- file: NAME -->      the block is written to NAME, for later blocks, and nothing else is done
    <!-- check: COMMAND -->  the block is written to the file BLOCK, and this command must succeed instead
    <!-- behind: CODE -->    (cpp) compiled behind this code; where CODE leaves braces open they are closed
    <!-- prepare: COMMAND --> run before the block, which is then run as usual
    <!-- output -->          what the block before it prints
    <!-- skip: REASON -->    not run

Before that, the planted errors must be found. Prints every problem; exit code 1 if there is one.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

RUN = ("bash", "sh", "console", "python", "cpp", "json", "cmake")
MARK = re.compile(r"<!-- (file|check|behind|prepare|output|skip)(?::\s((?:(?!-->).)*))?\s-->\s*\Z", re.DOTALL)
FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```[ ]*$", re.DOTALL | re.MULTILINE)
PLANTED = """
```bash
false
```
```console
$ echo right
right
$ echo wrong
right
$ printf 'a\\nb\\n'
...
c
```
```json
{"a": 1,}
```
```cpp
int f() { return "no number"; }
```
<!-- check: test "$(cat BLOCK)" = other -->
```json
"one"
```
<!-- output -->
```text
an output of nothing
```
```fortran
      END
```
<!-- skip -->
```bash
true
```
```python
print(no_such_name)
```
```python
print("one")
```
<!-- output -->
```text
two
```
    gpusched train --help
    gpusched train --help
    build/release/bench/no_bench
    cmake --build build/release --target gpusched-search
    gpusched search --help
```bash
cmake --build build/release --target no_such_target
```
"""
PLANTED_ERRORS, PLANTED_PYTHON_ERRORS = 12, 2
# Runs blocks of Python in one namespace: a JSON line in (code, its name), a JSON line out (what it printed, its error).
DRIVER = """
import contextlib, io, json, sys, traceback
names, answers = {"__name__": "__main__"}, sys.stdout
for line in sys.stdin:
    block, printed, error = json.loads(line), io.StringIO(), ""
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(block["code"], block["name"], "exec"), names)
        except BaseException:
            error = traceback.format_exc()
    answers.write(json.dumps({"printed": printed.getvalue(), "error": error}) + chr(10))
    answers.flush()
"""


# What a line of code uses that the quickstart does not build, and what builds it.
USES = ((re.compile(r"(?:^\s*|[|;&(] *|\$ )gpusched (train|search|calibrate)\b"), "gpusched-{}"),
        (re.compile(r"\bbuild/release/bench/(\w+)"), "{}"), (re.compile(r"\bbuild/(test)/"), "test"),
        (re.compile(r"^import (gpusched_sim)\b"), "gpusched_sim"))
GROUPS = {"gpusched-{}": ("gpusched_programs", "everything"), "{}": ("gpusched_benchmarks", "everything")}
BUILDS = ((re.compile(r"\bcmake --build (?:build/release|--preset release) --target ([\w -]+)"), None),
          (re.compile(r"pip install .*gpusched.sim|pip install '?\."), "gpusched_sim"),
          (re.compile(r"scripts/test\.sh|cmake --build --preset test"), "test"),
          (re.compile(r"cmake --build --preset release(?! --target)"), "everything"))


def unbuilt(text):
    """(line, what) that a page uses before it says how to build it."""
    built, is_code = set(), False
    for number, line in enumerate(text.splitlines(), 1):
        is_code ^= line.startswith("```")
        for pattern, name in BUILDS:
            for match in pattern.finditer(line):
                built |= {name} if name else {*match.group(1).split()}
        for pattern, name in USES:
            match = pattern.search(line) if is_code or line.startswith("    ") else None
            need = name.format(match.group(1)) if match else ""
            if need and not built & {need, *GROUPS.get(name, ())}:
                yield number, need
                built.add(need)


class Programs:
    """The programs of a build that scripts/quickstart.sh makes, as copies in a folder (a program looks for others beside itself),
    and in another one `cmake`, which adds those that a page builds."""

    def __init__(self, source, build, scratch):
        self.folder, self.shims = scratch / "programs", scratch / "shims"
        targets = re.search(r"^cmake --build --preset release --target (.*)$", (source / "scripts/quickstart.sh").read_text(), re.MULTILINE)
        self.first = programs_of(build, targets.group(1).split())
        self.shims.mkdir()
        shim = self.shims / "cmake"
        shim.write_text(f"""#!/bin/sh
if [ "$1 $2 $3" = "--build build/release --target" ] || [ "$1 $2 $3 $4" = "--build --preset release --target" ]; then
  while [ "$1" != --target ]; do shift; done
  shift
  exec {sys.executable} {pathlib.Path(__file__).resolve()} --add {build} {self.folder} "$@"
fi
exec {shutil.which("cmake")} "$@"
""")
        shim.chmod(0o755)

    def reset(self):
        """As it is after the quickstart: each page begins there."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        copy_programs(self.first, self.folder)


def programs_of(build, targets):
    """The programs that targets make, and that are made on the way, brought up to date."""
    subprocess.run([shutil.which("cmake"), "--build", build, "--target", *targets], check=True, stdout=subprocess.DEVNULL)
    # A target of CMake's is an alias of its file, which `query` names; `inputs` names what it is made of.
    told = [subprocess.run(["ninja", "-C", build, "-t", tool, *targets], check=True, capture_output=True, text=True).stdout
            for tool in ("query", "inputs")]
    return [build / name for name in {*targets, *"".join(told).split()}
            if name.startswith("gpusched") and (build / name).is_file() and os.access(build / name, os.X_OK)]


def copy_programs(programs, folder):
    for program in programs:
        shutil.copy2(program, folder)


class Block:
    """A fenced block: language, text, line of the page, and the mark before it (kind, value)."""

    def __init__(self, language, text, before, line):
        self.language, self.text, self.line = language.strip(), text, line
        mark = MARK.search(before)
        self.mark, self.value = (mark.group(1), (mark.group(2) or "").strip()) if mark else (None, "")


def blocks_of(text):
    """The fenced blocks of a page, in order."""
    found, end = [], 0
    for match in FENCE.finditer(text):
        found.append(Block(match.group(1), match.group(2), text[end:match.start()], text.count("\n", 0, match.start()) + 1))
        end = match.end()
    return found


def cells_of(text):
    """The cells of code of a notebook as blocks: Python, and those of the magics %%bash and %%writefile."""
    found = []
    for number, cell in enumerate(json.loads(text)["cells"]):
        code = "".join(cell["source"]) + "\n"
        magic = re.match(r"%%(bash|writefile)(?: (\S+))?\n", code)
        if cell["cell_type"] == "code":
            mark = f"<!-- file: {magic.group(2)} -->" if magic and magic.group(1) == "writefile" else ""
            found.append(Block("bash" if magic else "python", code[magic.end():] if magic else code, mark, number))
    return found


def same_output(found, expected):
    """Whether `found` is `expected`, in which "..." stands for any lines or any text of a line. Blanks at line ends do not count."""
    pattern = ""
    for line in expected.strip("\n").split("\n"):
        line = line.rstrip()
        pattern += r"(?:.*\n)*?" if line == "..." else r".*?".join(map(re.escape, line.split("..."))) + r" *\n"
    text = "\n".join(line.rstrip() for line in found.strip("\n").split("\n")) + "\n"
    return re.fullmatch(pattern, text) is not None


class Page:
    """Runs the blocks of one page in a scratch folder."""

    def __init__(self, source, build, scratch, python, programs):
        programs.reset()
        self.source, self.scratch, self.python = source, scratch, python
        for entry in source.iterdir():
            if entry.name not in ("build", ".git"):
                (scratch / entry.name).symlink_to(entry)
        prefix = scratch.parent / "prefix"
        self.environment = {**os.environ, "PATH": f"{programs.shims}:{programs.folder}:{os.environ['PATH']}", "PREFIX": str(prefix),
                            "PYTHONPATH": str(build / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
        self.driver, self.printed = None, None  # printed: what the last block printed, if it was run

    def shell(self, command):
        """(standard output, a problem or None) of a command."""
        result = subprocess.run(["bash", "-eo", "pipefail", "-c", command], cwd=self.scratch, env=self.environment, text=True,
                                capture_output=True, check=False, stdin=subprocess.DEVNULL)
        problem = f"exit code {result.returncode}:\n{(result.stdout + result.stderr)[-2000:]}" if result.returncode else None
        return result.stdout, problem

    def run_bash(self, block):
        self.printed, problem = self.shell(block.text)
        return [problem] if problem else []

    run_sh = run_bash

    def run_console(self, block):
        problems = []
        for example in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, expected = re.match(r"((?:.*\\\n)*.*)\n?((?:.*\n?)*)", example).groups()
            found, problem = self.shell(command)
            if problem:
                problems.append(f"`{command}`: {problem}")
            elif not same_output(found, expected):
                problems.append(f"`{command}` prints otherwise:\n{found}")
        return problems

    def run_python(self, block):
        if self.driver is None:
            self.driver = subprocess.Popen([sys.executable, "-c", DRIVER], cwd=self.scratch, env=self.environment, text=True,
                                           stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.driver.stdin.write(json.dumps({"code": block.text, "name": f"line {block.line}"}) + "\n")
        self.driver.stdin.flush()
        answer = self.driver.stdout.readline()
        if not answer:
            return ["Python ended"]
        answer = json.loads(answer)
        self.printed = answer["printed"]
        return [answer["error"]] if answer["error"] else []

    def run_cpp(self, block):
        code = f"{block.value if block.mark == 'behind' else ''}\n{block.text}\n"
        code += "}\n" * (code.count("{") - code.count("}"))
        (self.scratch / "BLOCK.cpp").write_text(code)
        compiler = os.environ.get("CXX", "c++")
        return [problem for problem in [self.shell(f"{compiler} -std=c++20 -fsyntax-only -I $PREFIX/include BLOCK.cpp")[1]] if problem]

    def run_json(self, block):
        try:
            json.loads(block.text)
        except ValueError as error:
            return [f"is no JSON: {error}"]
        return []

    def run_cmake(self, block):
        return ["give it a mark: file, check or skip"]

    def compare(self, block):
        if self.printed is None:
            return ["no block before this output printed anything"]
        return [] if same_output(self.printed, block.text) else [f"is not what the block before it prints:\n{self.printed}"]

    def run(self, block):
        """The problems of one block."""
        if block.mark == "output":
            return [] if block.language == "text" and self.printed == "skipped" else self.compare(block)
        self.printed = None
        if block.mark == "skip":
            return [] if block.value else ["is left out without a reason"]
        if block.language in ("text", "") or block.language.startswith("{"):  # "{...}": a directive of Sphinx
            return []
        if block.language not in RUN:
            return [f"nobody runs the language {block.language}"]
        if block.mark == "file":
            (self.scratch / block.value).write_text(block.text)
            return []
        if block.mark == "prepare":
            problem = self.shell(block.value)[1]
            if problem:
                return [f"`{block.value}`: {problem}"]
        if block.mark == "check":
            (self.scratch / "BLOCK").write_text(block.text)
            problem = self.shell(block.value)[1]
            return [f"`{block.value}`: {problem}"] if problem else []
        if block.language == "python" and not self.python:
            self.printed = "skipped"
            return []
        return getattr(self, f"run_{block.language}")(block)

    def close(self):
        if self.driver is not None:
            self.driver.stdin.close()
            self.driver.wait()


def check(name, text, source, build, scratch, python, programs):
    """The problems of a page, each with its place."""
    folder = scratch / re.sub(r"\W", "_", name)
    folder.mkdir()
    page = Page(source, build, folder, python, programs)
    try:
        problems = [] if name.endswith(".ipynb") else [f"{name}:{line}: {need} is used before the page says how to build it"
                                                       for line, need in unbuilt(text)]
        return problems + [f"{name}:{block.line}: {problem}" for block in (cells_of if name.endswith(".ipynb") else blocks_of)(text)
                for problem in page.run(block)]
    finally:
        page.close()


def pages(source):
    """The pages that are run, as paths relative to `source`."""
    files = [file.relative_to(source) for kind in ("*.md", "*.ipynb") for file in sorted(source.rglob(kind))]
    return [file.as_posix() for file in files if file.parts[0] not in ("build", ".git")]


def has_python(build):
    """Whether this Python has the built package and pandas, whose tables the pages print."""
    result = subprocess.run([sys.executable, "-c", "import gpusched_sim, pandas, gymnasium"], capture_output=True, check=False,
                            env={**os.environ, "PYTHONPATH": str(build / "python")})
    return result.returncode == 0


def main(source, build, names):
    python = has_python(build)
    if not python:
        print("gpusched_sim, pandas or gymnasium is not there: blocks of Python are left out")
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        shutil.copytree(source / "include", scratch / "prefix/include")
        shutil.copytree(build / "generated", scratch / "prefix/include", dirs_exist_ok=True)
        programs = Programs(source, build, scratch)
        planted = check("planted", PLANTED, source, build, scratch, python, programs)
        if len(planted) != PLANTED_ERRORS + python * PLANTED_PYTHON_ERRORS:
            return [*planted, f"{PLANTED_ERRORS + python * PLANTED_PYTHON_ERRORS} errors are planted, {len(planted)} were found"]
        return [problem for name in names or pages(source)
                for problem in check(name, (source / name).read_text(), source, build, scratch, python, programs)]


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    if sys.argv[1] == "--add":  # called by the shim of cmake
        sys.exit(copy_programs(programs_of(pathlib.Path(sys.argv[2]), sys.argv[4:]), sys.argv[3]))
    found = main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:])
    print("\n".join(found) if found else "every block of the documentation runs and prints what the page shows")
    sys.exit(bool(found))
