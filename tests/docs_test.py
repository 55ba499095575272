#!/usr/bin/env python3
"""Checks that what the documentation names exists; tests/docs_blocks_test.py runs its code.

    tests/docs_test.py SOURCE_DIR PROGRAM

Over every Markdown page of the project: relative links and their headings, the form of other links; cells of table rows; tables of fields, which are
those of the code's enumerations; formulas of all policies, with their sources; paths of the repository in code; in command lines the program's subcommands, options and
replay's policies, scripts and their options, and files (of ../shared only where that folder is); options in running text. Programs in Python of examples/ explain themselves.
Before that, the checks must find the errors planted in a page of their own.
Prints every problem; exit code 1 if there is one.
"""
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

FOLDERS = ("bench", "cmake", "cuda", "docs", "examples", "experiments", "include", "profiles", "python", "scripts", "src",
           "tests", "traces")
PLANTED = """
| a | b |
|---|---|
| `one|bar too many` | c |

[gone](no_such_page.md) [odd](https:/example.org) [odd](htps://example.org) [odd](https://example) [gone](README.md#no-such-heading) `src/no_such_file.cpp` `no_such_file.hpp` `--no-such-option`

    gpusched replay --trace synthetic:philly \\
      --no-such-option 1
    gpusched replay --trace synthetic:philly --policy fifo,no-such-policy
    zcat jobs.csv.gz | gpusched no-such-command
    gpusched trace no-such-command
    scripts/no_such_script.sh
    scripts/gpu_check.sh --no-such-option
    build/release/bench/no_such_bench
    experiments/muri/table.py build/no_such_preset/gpusched TRACES
    gpusched train --config experiments/rl/no_such_file.json

| policy | goes first | source |
|---|---|---|
| **no-such-policy** | $s$ | nobody |

### GroupFeature

| # | field |
|---|---|
| 0 | `idle_fraction` |
| 1 | `log_node_gpus` |

### NoSuchFeature

| # | field |
|---|---|
"""


class Program:
    """What `gpusched --help` and the help of its subcommands tell."""

    def __init__(self, path):
        self.path = path

    def run(self, words, folder):
        return subprocess.run([self.path, *words], cwd=folder, capture_output=True, text=True, check=False)

    @functools.lru_cache(maxsize=None)
    def help(self, *command):
        """(subcommands, options) of a subcommand, or None where the program has no help for it (train, not built)."""
        result = self.run([*command, "--help"], None)
        if result.returncode != 0:
            return None
        section = re.search(r"^Subcommands:\n((?:  .*\n)*)", result.stdout, re.MULTILINE)
        names = re.findall(r"^  ([a-z][a-z-]*)", section.group(1), re.MULTILINE) if section else []
        return set(names), set(re.findall(r"(?:^  |,)(--[a-z][a-z-]*)", result.stdout, re.MULTILINE))

    @functools.cached_property
    def options(self):
        """All options of all subcommands."""
        options, open_commands = set(), [()]
        while open_commands:
            command = open_commands.pop()
            names, found = self.help(*command) or (set(), set())
            options |= found
            open_commands += [(*command, name) for name in names]
        return options

    @functools.cached_property
    def policies(self):
        return set(re.findall(r"^(\S+)  ", self.run(["policies"], None).stdout, re.MULTILINE))


class Page:
    """One Markdown page of `root`, as text, code blocks and spans of code."""

    def __init__(self, root, file, text):
        self.root, self.file = root, file
        self.blocks, kept, block = [], [], None  # (language, lines)
        for line in text.split("\n"):
            fence = re.match(r"```(\w*)", line)
            if fence and block is None:
                block = (fence.group(1), [])
            elif fence:
                self.blocks.append(block)
                block = None
            elif block is not None:
                block[1].append(line)
            elif line.startswith("    ") and kept and kept[-1] is None:  # None: a line of an indented block
                self.blocks[-1][1].append(line[4:])
            elif line.startswith("    ") and not (kept and kept[-1]):
                kept.append(None)
                self.blocks.append(("", [line[4:]]))
            else:
                kept.append(line)
        self.text = "\n".join(line or "" for line in kept)
        self.spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", self.text)]

    def command_lines(self):
        """The commands of code blocks, and of spans that begin with the program or a path, without comments."""
        for language, lines in self.blocks:
            if language in ("", "sh", "console"):
                for line in re.sub(r"\\\n\s*", " ", "\n".join(lines)).split("\n"):
                    yield re.sub(r"(^|\s)#.*", "", line).removeprefix("$ ")
        yield from (span for span in self.spans
                    if span.startswith("gpusched ") or re.match(rf"({'|'.join(FOLDERS)}|build)/\S+ ", span))


def check_tables(page):
    """Rows have as many cells as their header; a bar within code must be escaped too."""
    cells = None
    for line in page.text.split("\n"):
        if not line.startswith("|"):
            cells = None
            continue
        found = len(re.findall(r"(?<!\\)\|", line)) - 1
        cells = cells or found
        if found != cells:
            yield f"a table row has {found} cells, its header {cells}: {line[:60]}"


def headings(text):
    """The anchors of a page, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}


def check_links(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.text):
        if re.match(r"[a-z]+:", target):
            if not re.fullmatch(r"https?://[\w-]+(\.[\w-]+)+(:\d+)?(/[^\s<>\"{}|\\^`]*)?|mailto:[^@\s]+@[^@\s]+", target):
                yield f"the link {target} is no address"  # whether it answers is not asked: tests have no network
            continue
        path, _, anchor = target.partition("#")
        file = (page.root / page.file).parent / path if path else page.root / page.file
        if not file.exists():
            yield f"the link {target} leads nowhere"
        elif anchor and anchor not in headings(file.read_text()):
            yield f"the link {target} names no heading of that page"


@functools.lru_cache(maxsize=None)
def build_folders(root):
    """build/NAME of every preset, and what scripts build in."""
    presets = json.loads((root / "CMakePresets.json").read_text())["configurePresets"]
    return {preset["name"] for preset in presets} | {"gpu_check", "dist"}


def missing_path(page, word):
    """A problem if `word` is a path that should exist and does not."""
    word = word.strip("'\",;")
    if word.startswith("build/"):
        if word.split("/")[1] not in build_folders(page.root):
            yield f"no preset builds {word}"
        return
    shared = page.root / "../shared"
    if word.startswith("../shared/"):
        exists = not shared.is_dir() or (page.root / word).exists()
    elif word.split("/")[0] in FOLDERS and re.fullmatch(r"[\w./@*{},+-]+", word) and not re.search(r"[A-Z]{4}|\.\.\.", word):
        alternatives = re.fullmatch(r"(.*)\{(.*)\}(.*)", word)
        words = [word]
        if alternatives:
            before, middle, after = alternatives.groups()
            words = [before + choice + after for choice in middle.split(",")]
        exists = all(any(page.root.glob(one)) for one in words)
    else:
        return
    if not exists:
        yield f"there is no {word}"


@functools.lru_cache(maxsize=None)
def source_names(root):
    """The names of all files of the project, without their folders."""
    return {file.name for folder in FOLDERS for file in (root / folder).rglob("*")}


@functools.lru_cache(maxsize=None)
def other_options(root):
    """The text of all scripts and programs but gpusched: an option that is in it may be named."""
    files = [root / "src/program/train_options.hpp"]  # not built everywhere, and then it has no --help
    for folder in ("scripts", "bench", "tests", "experiments"):
        files += [file for file in sorted((root / folder).rglob("*")) if file.suffix in (".sh", ".py", ".cpp")]
    return "\n".join(file.read_text() for file in files if file.name != "docs_test.py")


def check_spans(page, program):
    beside = (page.root / page.file).parent
    known = other_options(page.root)
    for span in page.spans:
        if "/" in span and " " not in span and not (beside / span).exists():
            yield from missing_path(page, span)
        if re.fullmatch(r"[\w.]+\.(hpp|cpp|cu|def|py|sh)", span) and span not in source_names(page.root):
            yield f"there is no file called {span}"
        option = re.match(r"--[a-z][a-z-]+", span)
        if option and option.group() not in program.options and option.group() not in known:
            yield f"no command has the option {option.group()}"


def check_gpusched(program, words):
    command, rest = (), list(words[1:])
    while rest and re.match(r"[a-z]", rest[0]):
        names = rest[0].split("|")
        known = program.help(*command)
        if known is None or not known[0]:
            break
        unknown = [name for name in names if name not in known[0]]
        if unknown:
            yield f"gpusched has no command {' '.join((*command, unknown[0]))}"
            return
        command = (*command, names[0])
        rest.pop(0)
    known = program.help(*command)
    if known is None:
        return
    for word in rest:
        option = re.match(r"--[a-z][a-z-]*", word)
        if option and option.group() not in known[1]:
            yield f"gpusched {' '.join(command)} has no option {option.group()}"
    if command == ("replay",) and "--policy" in rest[:-1]:
        value = re.sub(r"\{[^{}]*\}", "", rest[rest.index("--policy") + 1])
        for policy in value.split(","):
            if not policy.startswith(("rl:", "./")) and policy.split("+")[0] not in program.policies | {"NAME"}:
                yield f"there is no policy {policy}"


def commands_of(line):
    """The commands of a shell line, each a list of words without assignments before it."""
    try:
        split = shlex.shlex(line, posix=True, punctuation_chars="&;")
        split.whitespace_split = True
        words = list(split)
    except ValueError:  # a quote that ends on another line
        words = line.split()
    while words:
        end = next((at for at, word in enumerate(words) if word in ("&&", ";", "|")), len(words))
        command, words = words[:end], words[end + 1:]
        while command and (re.match(r"[A-Z_]+=", command[0]) or command[0] == "nice"):
            command.pop(0)
        if command:
            yield command


def check_script(page, path, arguments):
    """A script of the repository: it exists, and so do its options."""
    yield from missing_path(page, path)
    if (page.root / path).is_file():
        text = (page.root / path).read_text()
        for word in arguments:
            if word.startswith("--") and word.split("=")[0] not in text:
                yield f"{path} has no option {word}"


def check_commands(page, program):
    for line in page.command_lines():
        for command in commands_of(line):
            name = command[0].removeprefix("./")
            if name == "gpusched":
                yield from check_gpusched(program, command)
            elif name.startswith("build/"):
                yield from missing_path(page, name)
                source = os.path.basename(name)
                tests = "".join(file.read_text() for file in (page.root / "tests").rglob("CMakeLists.txt"))
                if (source != "gpusched" and f"{source}.cpp" not in source_names(page.root)
                        and not re.search(rf"(gpusched_test|add_executable)\({source}[ )]", tests)):
                    yield f"nothing builds {name}"
            elif name.split("/")[0] in FOLDERS and "/" in name:
                yield from check_script(page, name, command[1:])
            for word in command[1:]:
                if "/" in word:
                    yield from missing_path(page, word)


ENUMS = ("gpusched/learn/observation.hpp", "gpusched/learn/env.hpp")


@functools.lru_cache(maxsize=None)
def fields_of(root, enum):
    """The names of an enumeration of fields, without the number of them at its end; None where there is none."""
    for header in ENUMS:
        body = re.search(rf"^enum {enum} : .*\{{\n((?:  .*\n)*)\}};", (root / "include" / header).read_text(), re.MULTILINE)
        if body:
            return re.findall(r"^  (\w+),", body.group(1), re.MULTILINE)[:-1]
    return None


def check_fields(page):
    """A table with a column "field" under the name of an enumeration holds its names, numbered, and nothing else."""
    for section in re.split(r"^#+ ", page.text, flags=re.MULTILINE)[1:]:
        enum = section.split("\n", 1)[0]
        rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", section, re.MULTILINE)
        if not re.search(r"^\| # \| field \|", section, re.MULTILINE):
            continue
        known = fields_of(page.root, enum)
        if known is None:
            yield f"there is no enumeration {enum}"
        elif rows != [(str(at), name) for at, name in enumerate(known)]:
            wrong = next((at for at, row in enumerate(rows) if at >= len(known) or row != (str(at), known[at])), len(rows))
            yield f"the fields of {enum} differ from row {wrong} on: the code has {', '.join(known[wrong:]) or 'no more'}"


def check_formulas(page, program):
    """The table of formulas has a row for every policy, with the source that the program tells, or "as" one that has the same."""
    if "| policy | goes first | source |" not in page.text:
        return
    rows = dict(re.findall(r"^\| \*\*(\S+)\*\* \| .* \| (.*) \|$", page.text, re.MULTILINE))
    known = {policy["name"]: policy["source"] for policy in json.loads(program.run(["policies", "--json"], None).stdout)["policies"]
             if not policy["name"].startswith("rl:")}
    yield from (f"no formula of policy {name}" for name in known.keys() - rows.keys())
    yield from (f"a formula of {name}, which is no policy" for name in rows.keys() - known.keys())
    yield from (f"the source of {name} is not what the program tells: {known[name]}" for name in known.keys() & rows.keys()
                if known.get(rows[name].removeprefix("as "), rows[name]) != known[name])


def check(page, program):
    problems = [*check_links(page), *check_tables(page), *check_fields(page), *check_formulas(page, program), *check_spans(page, program),
                *check_commands(page, program)]
    return [f"{page.file}: {problem}" for problem in dict.fromkeys(problems)]


def pages(root):
    # build/ and hidden folders are not looked into: other tests make and remove files there meanwhile.
    folders = [folder for folder in root.iterdir() if folder.is_dir() and folder.name != "build" and folder.name[0] != "."]
    files = [*root.glob("*.md"), *(file for folder in folders for file in folder.rglob("*.md"))]
    for file in sorted(files):
        path = file.relative_to(root)
        if path.parts[:2] != ("docs", "site"):  # site_test.py looks at those
            yield Page(root, path.as_posix(), file.read_text())


def check_examples(root):
    """Each program in Python of examples/ explains itself, without any package (-S)."""
    for file in sorted(root.glob("examples/**/*.py")):
        done = subprocess.run([sys.executable, "-S", file, "--help"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode or file.name not in done.stdout:
            yield f"{file.relative_to(root)} --help: exit code {done.returncode}: {(done.stdout + done.stderr)[-300:]}"


def main(root, program):
    planted = check(Page(root, "PLANTED.md", PLANTED), program)
    planted = [problem for problem in planted if "no formula of policy" not in problem]  # one for each policy
    if len(planted) != 21:
        print("\n".join(planted))
        return [f"21 errors are planted, {len(planted)} were found"]
    return [*check_examples(root), *(problem for page in pages(root) for problem in check(page, program))]


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    found = main(pathlib.Path(sys.argv[1]).resolve(), Program(os.path.abspath(sys.argv[2])))
    print("\n".join(found) if found else "every link, path and command of the documentation holds")
    sys.exit(1 if found else 0)
