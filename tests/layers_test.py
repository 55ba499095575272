#!/usr/bin/env python3
"""Keeps the table "Folders are layers" of ARCHITECTURE.md: a file includes only what its folder may include, no file
includes itself by way of others, every folder of the table has a README.md that says the same, and every folder that holds
code has one of three to ten lines.

    tests/layers_test.py SOURCE_DIR

The table is read from ARCHITECTURE.md itself: its first column is a folder, its third the folders that it may include
(itself always; a folder stands for what lies below it unless the table has a row for that). The README.md of a folder of
the table has a paragraph "May include ..." (the third column), that of every folder "Read first: ..." with its files. A
lambda of a public header names what it captures. No two files define a class or an inline variable of one name
outside unnamed namespaces. The hash that a policy in a shared library compares holds all headers that it includes.
Prints everything that breaks a rule; exit code 1 if there is something.
"""
import pathlib
import re
import sys
import tempfile

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.MULTILINE)
# Compilers order what a template's lambda captures by default in different ways, and programs may link objects of two.
CAPTURES_BY_DEFAULT = re.compile(r"\[\s*[&=]\s*[,\]]")
# As clang-format leaves them, in column 1: the beginning and the end of a namespace, a class that is defined, and
# an inline variable.
NAMESPACE = re.compile(r"(?:inline )?namespace ?([\w:]*) ?\{$")
NAMESPACE_END = re.compile(r"\}  // (?:inline )?namespace")
CLASS = re.compile(r"(?:template <.*> )?(?:class|struct|union|enum(?: class)?) (?:alignas\(.*?\) |\[\[.*?\]\] )?([\w:]+)(?: final)?"
                   r"(?:$| \{| :)")
VARIABLE = re.compile(r"inline (?:constexpr |const )?(?!namespace)[^(=]*?(\w+)(?:\{| =)")
SUFFIXES = (".hpp", ".h", ".cpp", ".cu", ".cuh", ".def", ".in")
# The standard library's headers that the header library uses; another one is added here.
STANDARD = set("""algorithm array atomic bit charconv chrono cmath compare concepts condition_variable cstddef cstdint cstdio deque
    cstdlib cstring exception functional iterator limits map memory mutex numeric optional queue ranges set span stdexcept string
    string_view thread tuple type_traits unordered_map utility variant vector""".split())
# Made by the build (cmake/GpuschedPlugin.cmake).
OPTIONAL = {"unistd.h"}  # where __has_include() finds it: the number of the process
GENERATED = {"gpusched/plugin/headers_hash.hpp"}
# What is compiled into programs of its own by foreign rules: headers in the place of NVIDIA's.
FOREIGN = ("tests/cuda/on_cpu/include",)
CODE = ("include", "src", "traces", "cuda", "tests", "bench", "examples", "experiments", "python")
# Folders that hold scripts, beside CODE.
SCRIPTS = ("scripts", "docs")


def quoted(text):
    """The names between backquotes; `gpusched/...` is short for `include/gpusched/...`."""
    return ["include/" + name if name.startswith("gpusched/") else name for name in re.findall(r"`([^`]+)`", text)]


def read_table(text):
    """{folder: set of folders it may include}, from the rows `| `folder` | what | may include |`."""
    section = text.split("## Folders are layers", 1)[1].split("\n## ", 1)[0]
    table = {}
    for folder, may_include in re.findall(r"^\| (`[^|]*`) \|[^|]*\|([^|]*)\|$", section, re.MULTILINE):
        names = quoted(folder + may_include)
        table[names[0]] = set(names)
    return table


def folders_of_code(root):
    """Every folder that holds a file of code, scripts included; without foreign headers and build folders."""
    files = (file.relative_to(root) for top in CODE + SCRIPTS for file in (root / top).rglob("*")
             if file.suffix in (".hpp", ".cpp", ".cu", ".py", ".sh"))
    return sorted({file.parent.as_posix() for file in files
                   if not file.as_posix().startswith(FOREIGN) and "/build/" not in file.as_posix()})


def check_every_readme(root, folder):
    """What is wrong with the README.md of any folder of code, as a list of lines."""
    path = f"{folder}/README.md"
    if not (root / path).is_file():
        return [f"{path}: missing; expected what lives here, what it may include, which file to read first"]
    text = (root / path).read_text()
    problems = []
    lines = len(text.splitlines())
    if not 3 <= lines <= 10:
        problems.append(f"{path}: {lines} lines; expected three to ten")
    first = [quoted(sentence) for sentence in re.findall(r"Read first: (.*)", text)]
    if len(first) != 1 or not first[0] or not all((root / folder / name).is_file() for name in first[0]):
        problems.append(f"{path}: expected one \"Read first: ...\" with files of this folder")
    return problems


def check_readme(root, folder, may_include):
    """What is wrong with "May include ..." in the README.md of a folder of the table, as a list of lines."""
    path = f"{folder}/README.md"
    paragraphs = (root / path).read_text().split("\n\n") if (root / path).is_file() else []
    said = [set(quoted(text)) for text in paragraphs if text.startswith("May include ")]
    if said != [may_include - {folder}]:
        return [f"{path}: expected one paragraph \"May include ...\" with the folders of ARCHITECTURE.md's table"]
    return []


def row_of(path, table):
    """The longest row of the table that `path` lies in, or None. A row may name a file."""
    rows = [row for row in table if path == row or path.startswith(row + "/")]
    return max(rows, key=len, default=None)


def allowed(row, target, table):
    """Whether a file of `row` may include `target`: the target's own row, or one above it, is listed."""
    target_row = row_of(target, table)
    return target_row in table[row] or any(
        listed.endswith("/*") and target.startswith(listed[:-1]) for listed in table[row])


def find_cycle(graph):
    """One cycle of `graph` {file: files it includes} as a list, or None."""
    state = {}

    def visit(node, path):
        state[node] = "open"
        for target in graph.get(node, ()):
            if state.get(target) == "open":
                return path[path.index(target):] + [target] if target in path else [node, target]
            if target not in state:
                found = visit(target, path + [target])
                if found:
                    return found
        state[node] = "done"
        return None

    for start in sorted(graph):
        if start not in state:
            found = visit(start, [start])
            if found:
                return found
    return None


def includes_of(file):
    """The names that a source file includes, outside comments."""
    return [name for _, name in INCLUDE.findall(COMMENT.sub("", file.read_text()))]


def target_of(root, path, name):
    """The file of this project that `name`, included by `path`, means; None: it is of somebody else."""
    for candidate in ("include/" + name, name, f"{pathlib.PurePosixPath(path).parent}/{name}"):
        if (root / candidate).is_file():
            return candidate
    return None


def shared_names_of(file):
    """The full names of the classes and inline variables that a source file defines, without those of an unnamed namespace or
    of a class."""
    names, spaces = set(), []
    for line in COMMENT.sub("", file.read_text()).splitlines():
        space, defined = NAMESPACE.match(line), CLASS.match(line) or VARIABLE.match(line)
        if space:
            spaces.append(space[1])
        elif NAMESPACE_END.match(line) and spaces:
            spaces.pop()
        elif defined and "" not in spaces:
            names.add("::".join(spaces + [defined[1]]))
    return names


def check_shared_names(defined):
    """Names with two meanings, from {file: names}, as a list of lines. The linker takes the constructor of one class for that of
    the other: gpusched::Figure of reports and of policies corrupted the stack without optimisation."""
    files = {}
    for path, names in defined.items():
        for name in names:
            files.setdefault(name, []).append(path)
    return [f"{', '.join(paths)}: define {name}; expected one meaning of a name" for name, paths in sorted(files.items())
            if len(paths) > 1]


def check_hashed_headers(root, graph):
    """Headers that a policy in a shared library includes outside the folders whose hash it compares, as a list of lines."""
    path = "cmake/GpuschedPlugin.cmake"
    folders = re.findall(r"^foreach\(folder (.*)\)$", (root / path).read_text(), re.MULTILINE)[0].split()
    reached, to_visit = set(), [file for file in graph if file.startswith("include/gpusched/plugin/")]
    while to_visit:
        file = to_visit.pop()
        if file not in reached:
            reached.add(file)
            to_visit += graph.get(file, ())
    return [f"{path}: the hash of headers leaves out {file}, which policies in shared libraries include"
            for file in sorted(reached) if file.split("/")[2] not in folders]


def check(root):
    table = read_table((root / "ARCHITECTURE.md").read_text())
    if not table:
        return ["ARCHITECTURE.md has no table of folders"]
    problems, graph, used, defined = [], {}, set(), {}
    for top in CODE:
        for file in sorted((root / top).rglob("*")):
            path = file.relative_to(root).as_posix()
            if file.suffix not in SUFFIXES or path.startswith(FOREIGN) or "/build/" in path:
                continue
            row = row_of(path, table)
            if row is None:
                problems.append(f"{path}: no row of the table in ARCHITECTURE.md holds this folder")
                continue
            used.add(row)
            graph[path] = []
            defined[path] = shared_names_of(file)
            if path.startswith("include/") and CAPTURES_BY_DEFAULT.search(COMMENT.sub("", file.read_text())):
                problems.append(f"{path}: a lambda captures by default; expected the names of what it captures")
            for name in includes_of(file):
                if ".." in name.split("/"):
                    problems.append(f"{path}: includes {name}; expected a path from the project's root, without ..")
                    continue
                target = target_of(root, path, name)
                if target is None:
                    if path.startswith("include/") and name not in STANDARD | GENERATED | OPTIONAL:
                        problems.append(f"{path}: the header library includes <{name}>; only the standard library may")
                    continue
                graph[path].append(target)
                if not allowed(row, target, table):
                    problems.append(f"{path}: {row} may not include {target}")
    for row in sorted(set(table) - used):
        problems.append(f"ARCHITECTURE.md: the table's row {row} holds no code")
    for row in sorted(used):
        if (root / row).is_dir():
            problems += check_readme(root, row, table[row])
    for folder in folders_of_code(root):
        problems += check_every_readme(root, folder)
    problems += check_shared_names(defined) + check_hashed_headers(root, graph)
    cycle = find_cycle(graph)
    if cycle:
        problems.append("a cycle: " + " -> ".join(cycle))
    return problems


PLANTED = {
    "include/gpusched/low/up.hpp": ('#include "gpusched/high/b.hpp"', "may not include"),
    "include/gpusched/low/foreign.hpp": ("#include <boost/any.hpp>", "only the standard library"),
    "include/gpusched/low/dots.hpp": ('#include "../high/b.hpp"', "without .."),
    "include/gpusched/low/behind.hpp": ('/* a comment */ # include"gpusched/high/b.hpp"', "may not include"),
    "include/gpusched/high/b.hpp": ('#include "gpusched/high/c.hpp"', "a cycle"),
    "include/gpusched/high/c.hpp": ('#include "gpusched/high/b.hpp"', "a cycle"),
    "include/gpusched/low/lambda.hpp": ("auto f = [&](int a) { return a; };", "captures by default"),
    "include/gpusched/lost/d.hpp": ("", "no row of the table"),
    "include/gpusched/low/one.hpp": ("namespace a {\nstruct Twice {\n};\n}  // namespace a", "define a::Twice"),
    "include/gpusched/low/three.hpp": ("namespace a {\ninline constexpr int two_values = 1;", "define a::two_values"),
    "include/gpusched/high/three.hpp": ("namespace a {\ninline constexpr std::array two_values{", "define a::two_values"),
    "include/gpusched/plugin/p.hpp": ('#include "gpusched/low/one.hpp"', "leaves out include/gpusched/low/one.hpp"),
    "include/gpusched/high/two.hpp": ("namespace a {\nclass Twice final : public B {", "define a::Twice"),
}


def missed():
    """The planted errors that check() does not find in a tree of their own: the test of this test."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "ARCHITECTURE.md").write_text("## Folders are layers\n\n| `gpusched/low` | a | |\n"
                                              "| `gpusched/high` | b | `gpusched/low` |\n"
                                              "| `gpusched/plugin` | c | `gpusched/low` |\n")
        (root / "cmake").mkdir()
        (root / "cmake/GpuschedPlugin.cmake").write_text("foreach(folder plugin)\n")
        for path, (line, _) in PLANTED.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(line + "\n")
        found = check(root)
    return [f"not found: {line!r} in {path}" for path, (line, said) in PLANTED.items()
            if not any(said in problem and (pathlib.PurePosixPath(path).name in problem or "leaves out" in said)
                       for problem in found)]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if missed():
        sys.exit("\n".join(missed()))
    found = check(pathlib.Path(sys.argv[1]).resolve())
    print("\n".join(found) if found else "every include and every folder's README.md follow the table of ARCHITECTURE.md")
    sys.exit(1 if found else 0)
