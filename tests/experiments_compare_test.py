#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""experiments/compare.py and run_all.sh tell what differs. Usage: experiments_compare_test.py EXPERIMENTS"""
import csv
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

EXPERIMENTS = pathlib.Path(sys.argv.pop()).resolve() if len(sys.argv) == 2 else sys.exit(__doc__)
TABLE = "policy,jobs,published,ours,difference\nfifo,10,1.5,2,0.5\nsjf,10,,1000000,\n"
RUN = """#!/bin/bash
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
[ -z "$published" ] && need "$traces/absent"
cp "$here/new.csv" "$out/table.csv"
"""


class Compare(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        for name in ("frozen", "new"):
            (self.folder / name).mkdir()
        (self.folder / "frozen/table.csv").write_text(TABLE)

    def compare(self, table, tolerances=None):
        (self.folder / "new/table.csv").write_text(table)
        command = [EXPERIMENTS / "compare.py", self.folder / "frozen", self.folder / "new"]
        if tolerances is not None:
            (self.folder / "tolerances.json").write_text(tolerances if isinstance(tolerances, str) else json.dumps(tolerances))
            command.append(self.folder / "tolerances.json")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout or done.stderr

    def test_equal_within_tolerances(self):
        self.assertEqual(self.compare(TABLE), (0, ""))
        self.assertEqual(self.compare(TABLE.replace("1000000", "1000000.0005")), (0, ""))
        loose = {"table.csv": {"ours": {"relative": 0.1}, "difference": {"absolute": 0.1}}}
        self.assertEqual(self.compare(TABLE.replace("1000000", "1090000").replace("0.5", "0.59"), loose), (0, ""))

    def test_the_cell_that_differs_is_named(self):
        self.assertEqual(self.compare(TABLE.replace("1000000", "1000001")), (1, "table.csv:3: ours (sjf, 10): 1000001; frozen: "
                                                                             "1000000 (tolerance relative 1e-09, absolute 1e-09)\n"))
        self.assertEqual(self.compare(TABLE.replace("1000000", "1200000"), {"table.csv": {"ours": {"relative": 0.1}}})[0], 1)
        for worse in ("nan", "inf", "", "x"):
            code, told = self.compare(TABLE.replace("1000000", worse))
            self.assertEqual((code, told.count("\n")), (1, 1), worse)
        self.assertIn("table.csv:2: policy (fifo, 10): lifo", self.compare(TABLE.replace("fifo", "lifo"))[1])
        self.assertIn("1 rows; frozen: 2", self.compare(TABLE.rsplit("sjf", 1)[0])[1])
        self.assertIn("columns are", self.compare(TABLE.replace("ours", "theirs"))[1])
        self.assertIn("columns are none", self.compare("")[1])

    def test_what_is_absent_or_wrong(self):
        (self.folder / "frozen/more.csv").write_text(TABLE)
        self.assertIn("more.csv: absent", self.compare(TABLE)[1])
        self.assertEqual(self.compare(TABLE, {"table.csv": {"ours": {"rel": 1}}})[0], 2)
        self.assertEqual(self.compare(TABLE, "{")[0], 2)
        for file in (self.folder / "frozen").iterdir():
            file.unlink()
        self.assertEqual(self.compare(TABLE)[0], 2)


class RunAll(unittest.TestCase):
    """On a copy with two experiments that print what a file says."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name) / "experiments"
        self.folder.mkdir()
        for name in ("run_all.sh", "run_options.sh", "compare.py", "smoke_traces.py", "sources.txt"):
            shutil.copy(EXPERIMENTS / name, self.folder)
        for name in ("one", "two"):
            (self.folder / name).mkdir()
            (self.folder / name / "run.sh").write_text(RUN)
            (self.folder / name / "run.sh").chmod(0o755)
            (self.folder / name / "new.csv").write_text(TABLE)
        build = self.folder / "build"
        build.mkdir()
        (build / "gpusched").write_text("")
        (build / "gpusched").chmod(0o755)

    def run_all(self, *options):
        command = [self.folder / "run_all.sh", "--build", self.folder / "build", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def test_frozen_then_compared(self):
        self.assertIn("one          no frozen tables", self.run_all("--smoke")[1])
        self.assertEqual(self.run_all("--smoke", "--freeze")[0], 0)
        self.assertEqual(self.run_all("--smoke")[0], 0)
        (self.folder / "two/new.csv").write_text(TABLE.replace("sjf", "srtf"))
        code, out, _ = self.run_all("--smoke")
        self.assertEqual(code, 1)
        self.assertIn("table.csv:3: policy (sjf, 10): srtf; frozen: sjf", out)
        self.assertTrue(out.endswith("one          same\ntwo          DIFFERENT\n"), out)
        self.assertEqual(self.run_all("--smoke", "one")[0], 0)

    def test_skipped_and_failed(self):
        code, out, errors = self.run_all("--traces", "/nowhere")
        self.assertEqual((code, "one          skipped" in out), (77, True))
        self.assertIn("skipped: /nowhere/absent is absent; get it: experiments/sources.txt does not say where", errors)
        self.assertIn("skipped: one two (the lines above say what is missing)", errors)
        (self.folder / "one/run.sh").write_text("#!/bin/sh\nexit 3\n")
        self.assertIn("one          FAILED, exit code 3", self.run_all("--smoke")[1])
        self.assertEqual(self.run_all("--traces", "/nowhere")[0], 1)  # a failure counts more than what is skipped
        self.assertEqual(self.run_all("three")[0], 2)
        self.assertEqual(self.run_all("--smok")[0], 2)


    def test_a_program_of_the_build(self):
        script = RUN.replace("cp ", 'need_program experiments/its_table\n"$build/experiments/its_table"\ncp ')
        (self.folder / "one/run.sh").write_text(script)
        code, out, errors = self.run_all("--smoke", "--freeze", "one")
        self.assertEqual((code, "one          FAILED, exit code 2" in out), (1, True))
        self.assertIn("build/experiments/its_table is absent, and", errors)
        build = self.folder / "build"
        (build.parent / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(one NONE)\nadd_custom_target(its_table\n  COMMAND mkdir -p experiments\n"
            "  COMMAND ln -sf /bin/true experiments/its_table)\n")
        subprocess.run(["cmake", "-S", build.parent, "-B", build], check=True, capture_output=True)
        code, _, errors = self.run_all("--smoke", "--freeze", "one")
        self.assertEqual(code, 0, errors)
        self.assertEqual(errors.count("building "), 1, errors)
        self.assertEqual(self.run_all("--smoke", "one"), (0, "== one\n\none          same\n", ""))

    def test_where_each_input_can_be_had(self):
        names = {file.parent.name for file in EXPERIMENTS.glob("*/run.sh") if re.search(r"\bneed ", file.read_text())}
        command = [EXPERIMENTS / "run_all.sh", "--build", self.folder / "build", "--traces", "/nowhere", *sorted(names)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertEqual(done.stderr.count(" is absent; get it: "), len(names), done.stderr)
        self.assertNotIn("does not say where", done.stderr)


class Document(unittest.TestCase):
    """docs/reproduction.md shows what is frozen."""

    def test_its_tables(self):
        page = (EXPERIMENTS.parent / "docs/reproduction.md").read_text()
        lines = [line for line in page.splitlines() if line.startswith("| ")]
        rows = {tuple(cell.strip() for cell in line.strip("|\n").split("|")) for line in lines}
        seen = 0
        for file in EXPERIMENTS.glob("*/reference/full/table.csv"):
            with open(file, newline="") as source:
                published = [row for row in csv.DictReader(source) if row.get("published")]
            seen += len(published)
            if published and all(is_equal(row) for row in published):
                run = f"`experiments/{file.parent.parent.parent.name}/run.sh`"
                self.assertTrue(any(run in line and f"all {len(published)} cells equal" in line for line in lines), run)
                continue
            for row in published:
                keys = tuple(list(row.values())[:list(row).index("published")])
                shown = [line for line in rows if line[:len(keys)] == keys and len(line) == len(keys) + 3]
                figures = [float(row[name]) for name in ("published", "ours", "difference")]
                # Each cell as the page rounds it.
                self.assertTrue(any(all(f"{figure:.{digits(cell)}f}".lstrip("-") == cell.replace(",", "").lstrip("+-")
                                        for figure, cell in zip(figures, line[-3:])) for line in shown),
                                f"docs/reproduction.md lacks the row of {file}: {row}")
        self.assertGreater(seen, 50)


def is_equal(row):
    """Whether ours is what was published, in the digits that were."""
    return f"{float(row['ours']):.{digits(row['published'])}f}" == f"{float(row['published']):.{digits(row['published'])}f}"


def digits(cell):
    return len(cell.partition(".")[2])


unittest.main()
