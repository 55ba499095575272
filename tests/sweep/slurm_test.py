#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpusched sweep --launcher slurm, on a slurmctld and a slurmd of its own.

usage: slurm_test.py PROGRAM        exit code 77: skipped, with the reason on standard output
"""
import contextlib
import csv
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from slurm_cluster import PATIENCE_S, CannotStart, SlurmCluster, missing_programs

PROGRAM = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
CLUSTER = None  # while the tests run

# Half a minute of work: every one of thousands of waiting jobs has a reservation.
SLOW = {"trace": "synthetic:philly", "policy": "sjf+conservative{depth=1e6}", "cluster": "4x8",
        "oversize": "drop"}
QUICK = {"trace": "synthetic:philly:50", "policy": "fifo", "cluster": "4x8", "oversize": "drop"}


def wait_until(what, ready):
    deadline = time.monotonic() + PATIENCE_S
    while not ready():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {PATIENCE_S} s: {what}")
        time.sleep(0.05)


class SlurmSweep(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="gpusched_sweep_")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.out = self.folder / "out"
        self.addCleanup(lambda: CLUSTER.run("scancel", "--full", *self.jobs()))

    def file(self, document):
        path = self.folder / "sweep.json"
        path.write_text(json.dumps(document))
        return path

    def grid(self, **own):
        """Twelve runs of milliseconds on three inputs; values of every type."""
        trace = self.folder / "jobs.csv"
        trace.write_text("job_id,submit_s,work_s,tasks,gpu_milli_per_task,user\n" + "".join(
            f"j{i},{i * 7 % 50},{30 + i * 13 % 90},{1 + i % 4},{1000 if i % 3 else 500},u{i % 3}\n" for i in range(40)))
        return self.file({"base": {"trace": "jobs.csv", "cluster": "2x4", "oversize": "drop", "seed": 3},
                          "grid": {"policy": ["fifo", "las", "sjf+easy"], "load": [0.7, 1.1],
                                   "window": [{"first_job": 0, "jobs": 0}, {"first_job": 5, "jobs": 20}]}} | own)

    def sweep(self, file, *options, launcher="slurm", out=None, environment=None):
        return subprocess.run(self.command(file, *options, launcher=launcher, out=out), capture_output=True, text=True,
                              cwd=self.folder, env=environment or CLUSTER.environment, check=False)

    def command(self, file, *options, launcher="slurm", out=None):
        return [PROGRAM, "sweep", str(file), "--out", str(out or self.out), "--launcher", launcher, *options]

    def jobs(self):
        """The numbers of the jobs that wait or run."""
        return sorted(set(CLUSTER.run("squeue", "-h", "-o", "%F").stdout.split()))

    def csv(self, out=None):
        return ((out or self.out) / "runs.csv").read_bytes()

    def rows(self):
        with open(self.out / "runs.csv", newline="") as source:
            return list(csv.DictReader(source))

    def local_csv(self, file):
        done = self.sweep(file, launcher="local", out=self.folder / "local")
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.csv(self.folder / "local")

    def begun(self):
        return list(self.out.glob("tasks/*/results/*.begun"))

    # What Slurm runs is what this machine runs, from a folder whose name a shell and sbatch would misread.
    def test_the_same_bytes_as_the_local_launcher(self):
        file = self.grid(files=True, threads=2)
        out = self.folder / "out %a 'and' \"more\" $HOME"
        done = self.sweep(file, "--runs-per-task", "5", out=out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, f"12 runs: 12 done\n{out}/runs.csv\n")
        self.assertRegex(done.stderr, r"^note: 12 runs submitted; Slurm job \d+\n$")
        self.assertEqual(self.csv(out), self.local_csv(file))
        self.assertFalse((out / "tasks").exists())
        for run in (self.folder / "local" / "runs").iterdir():
            for name in ("fifo/jobs.csv", "las/jobs.csv", "sjf+easy/jobs.csv"):
                if (run / name).exists():
                    self.assertEqual((out / "runs" / run.name / name).read_bytes(), (run / name).read_bytes())
        self.assertEqual(len(list((out / "runs").iterdir())), 12)
        again = self.sweep(file, out=out)
        self.assertEqual((again.returncode, again.stderr), (0, "note: 12 runs of 12 stored already\n"))
        self.assertEqual(self.csv(out), self.csv(self.folder / "local"))

    def test_the_same_command_goes_on(self):
        """What waits in Slurm is not submitted twice, also where the first start was killed before it knew the job."""
        file = self.grid(slurm={"options": "--hold --comment 'two words'", "runs_per_task": 4})
        first = self.sweep(file, "--no-wait")
        self.assertEqual(first.returncode, 0, first.stderr)
        job, = self.jobs()
        self.assertIn(f"note: 12 runs left in Slurm (the same command gathers them, scancel {job} ends them)\n", first.stderr)
        self.assertEqual(CLUSTER.run("squeue", "-h", "-r", "-o", "%k").stdout, "two words\n" * 3)
        description = self.out / "tasks/0001/array.json"
        description.write_text(description.read_text().replace(f'"job":"{job}"', '"job":""'))
        listed = self.sweep(file, "--dry-run")
        self.assertRegex(listed.stdout, r"12 runs, 0 stored, 12 queued, 0 to run\nnothing to submit\n$")
        second = self.sweep(file, "--no-wait")
        self.assertIn(f"note: 12 runs in Slurm already, job {job}\n", second.stderr)
        self.assertEqual(self.jobs(), [job])
        gathered = self.sweep(file, "--gather")
        self.assertEqual(gathered.returncode, 0, gathered.stderr)
        self.assertEqual(gathered.stdout, f"12 runs: 0 done, 12 not run\n{self.out}/runs.csv\n")
        # A value more is a run more: only it is submitted.
        self.assertEqual(CLUSTER.run("scontrol", "release", job).returncode, 0)
        document = json.loads(file.read_text())
        document["grid"]["load"].append(2)
        document["slurm"] = {}
        file = self.file(document)
        last = self.sweep(file)
        self.assertEqual(last.returncode, 0, last.stderr)
        self.assertIn("note: 6 runs submitted; ", last.stderr)
        self.assertEqual(self.csv(), self.local_csv(file))

    def test_ctrl_c_leaves_the_job(self):
        file = self.grid(slurm={"options": "--hold"})
        waiting = subprocess.Popen(self.command(file), cwd=self.folder, env=CLUSTER.environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_until("the job is there", self.jobs)
        job, = self.jobs()
        wait_until("its number is stored", lambda: f'"job":"{job}"' in (self.out / "tasks/0001/array.json").read_text())
        waiting.send_signal(signal.SIGINT)
        _, errors = waiting.communicate(timeout=PATIENCE_S)
        self.assertEqual(waiting.returncode, 130, errors)
        self.assertIn(f"gpusched: SIGINT: interrupted; 12 runs left in Slurm (the same command gathers them, scancel {job} "
                      "ends them)\n", errors)
        self.assertEqual(self.jobs(), [job])
        # Someone cancels the job: its runs are to be run again.
        CLUSTER.run("scancel", job)
        wait_until("it is cancelled", lambda: not self.jobs())
        gathered = self.sweep(file, "--gather")
        self.assertEqual(gathered.returncode, 1)
        self.assertIn("gpusched: 12 runs not run; the same command submits them\n", gathered.stderr)

    def test_a_run_that_hangs_and_one_that_dies(self):
        """One is over its time limit, one ends with its array task; the sweep goes on, and --retry runs them again."""
        file = self.file({"list": [SLOW, QUICK, QUICK | {"seed": 2}], "time_limit_s": 4, "slurm": {"runs_per_task": 1}})
        done = self.sweep(file)
        self.assertEqual(done.returncode, 1)
        self.assertEqual([row["status"] for row in self.rows()], ["timeout", "done", "done"])
        self.assertIn("took longer than 4 s", self.rows()[0]["message"])
        waiting = subprocess.Popen(self.command(file, "--retry", "--time-limit", "0"), cwd=self.folder,
                                   env=CLUSTER.environment, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        wait_until("the run has begun", self.begun)
        job, = self.jobs()
        task, = self.processes_of("task_0.json")
        for process in task:
            with contextlib.suppress(ProcessLookupError):  # a worker ends with its parent
                os.kill(process, signal.SIGKILL)
        _, errors = waiting.communicate(timeout=PATIENCE_S)
        self.assertEqual(waiting.returncode, 1, errors)
        self.assertEqual([row["status"] for row in self.rows()], ["failed", "done", "done"])
        self.assertIn(f"array task {job}_0 ended as FAILED without a result", self.rows()[0]["message"])

    def processes_of(self, file):
        """The pids whose command line names a file, the parents of others first; one list for each file."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                for word in words:
                    if word.startswith(bytes(self.out)) and word.endswith(file.encode()):
                        found.setdefault(word, []).append(int(entry.name))
        return [sorted(processes) for processes in found.values()]

    def test_a_task_that_cannot_work_is_told(self):
        file = self.grid(slurm={"options": "--hold"})
        self.sweep(file, "--no-wait", "--runs-per-task", "12")
        job, = self.jobs()
        trace = self.folder / "jobs.csv"
        text = trace.read_text()
        trace.write_text(text + "late,60,1,1,1000,u1\n")
        CLUSTER.run("scontrol", "release", job)
        wait_until("it has ended", lambda: not self.jobs())
        trace.write_text(text)
        done = self.sweep(file, "--gather")
        self.assertEqual(done.returncode, 1)
        self.assertEqual({row["message"] for row in self.rows()}, {
            f"array task {job}_0 ended as FAILED without a result: gpusched: the trace, another file or gpusched itself has "
            "changed since this was submitted"})
        self.assertTrue((self.out / "tasks/0001/0.log").exists())
        retried = self.sweep(self.grid(), "--retry")
        self.assertEqual(retried.returncode, 0, retried.stderr)
        self.assertEqual(self.csv(), self.local_csv(file))

    def test_what_is_refused(self):
        file = self.grid()
        for options, code, message in [
                (["--slurm-options=--partition=nowhere"], 1, "sbatch: error: "),
                (["--slurm-options=--array=1-2"], 2, "/slurm/options: --array is the sweep's own option of sbatch"),
                (["--slurm-options='open"], 2, "/slurm/options: the quote ' is not closed in 'open"),
                (["--runs-per-task", "x"], 2, "--runs-per-task: expected a whole number, 0 to 1000000, not 'x'"),
                (["--launcher", "lsf"], 2, "--launcher: expected one of local|slurm, not 'lsf'")]:
            command = [PROGRAM, "sweep", str(file), "--out", str(self.out), *options]
            if "--launcher" not in options:
                command += ["--launcher", "slurm"]
            done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, env=CLUSTER.environment,
                                  check=False)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(message, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertFalse((self.out / "tasks").exists())
        nowhere = subprocess.run([PROGRAM, "sweep", str(file), "--launcher", "slurm", "--dry-run"], capture_output=True,
                                 text=True, cwd=self.folder, env=CLUSTER.environment, check=False)
        self.assertEqual(nowhere.returncode, 2)
        self.assertIn("no folder for the results", nowhere.stderr)
        many = self.grid(grid={"policy": ["fifo"], "seed": {"from": 1, "to": 150}})
        done = self.sweep(many, "--runs-per-task", "1")
        self.assertIn("/slurm/runs_per_task: 150 array tasks, and Slurm takes 100 (MaxArraySize); give 2 or more",
                      done.stderr)
        self.assertEqual(self.jobs(), [])
        local = self.sweep(file, "--no-wait", launcher="local")
        self.assertEqual((local.returncode, local.stderr), (2, "gpusched: --no-wait and --gather are for --launcher slurm\n"))
        nothing = self.sweep(file, environment=dict(os.environ, PATH="/nowhere"))
        self.assertEqual(nothing.returncode, 1)
        self.assertEqual(nothing.stderr, "gpusched: sbatch: not installed, or not in PATH; what was stored is kept, the "
                         "same command goes on\n")

    def test_what_slurm_says_of_tasks_that_ended(self):
        """A time limit of Slurm lasts a minute at least, and a node does not fail on demand: squeue's words are played."""
        file = self.grid(slurm={"options": "--hold", "runs_per_task": 3})
        self.sweep(file, "--no-wait")
        job, = self.jobs()
        CLUSTER.run("scancel", job)
        keys = json.loads((self.out / "tasks/0001/array.json").read_text())["tasks"]
        for key in (keys[0][0], keys[1][1], keys[2][0]):
            (self.out / f"tasks/0001/results/{key}.begun").touch()
        played = self.folder / "played"
        played.mkdir()
        (played / "squeue").write_text(f"#!/bin/sh\necho '{job}|0|TIMEOUT|TimeLimit'\necho '{job}|1|OUT_OF_MEMORY|OutOfMemory'\n"
                                       f"echo '{job}|2|NODE_FAIL|NodeDown'\necho '{job}|3|TIMEOUT|TimeLimit'\n")
        (played / "squeue").chmod(0o755)
        environment = dict(CLUSTER.environment, PATH=f"{played}:{CLUSTER.environment['PATH']}")
        done = self.sweep(file, "--gather", environment=environment)
        self.assertEqual(done.returncode, 1, done.stderr)
        told = sorted((row["status"], row["message"]) for row in self.rows())
        self.assertEqual(told, [("failed", f"array task {job}_1 ended as OUT_OF_MEMORY without a result"),
                                ("timeout", f"array task {job}_0 reached Slurm's time limit")] +
                         [("timeout", f"array task {job}_3 reached Slurm's time limit")] * 3)


def main():
    global CLUSTER  # pylint: disable=global-statement
    missing = missing_programs()
    if missing:
        print(f"skipped: Slurm is not installed ({', '.join(missing)}); scripts/packages_test.txt names its packages")
        return 77
    holder = tempfile.mkdtemp(prefix="gpusched_slurm_")
    try:
        with SlurmCluster(holder) as CLUSTER:
            return 0 if unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result.wasSuccessful() else 1
    except CannotStart as error:
        print(f"skipped: no Slurm on this machine: {error}")
        return 77
    finally:
        shutil.rmtree(holder, ignore_errors=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main())
