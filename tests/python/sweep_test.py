# SPDX-License-Identifier: Apache-2.0
"""Sweeps from Python: the program's files byte for byte, going on, failures, bad input, interrupts."""
import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

gs = pytest.importorskip("gpusched_sim")
pandas = pytest.importorskip("pandas")
PROGRAM = os.environ.get("GPUSCHED_PROGRAM")
JOBS = "job_id,submit_s,num_gpus,duration_s\n" + "".join(f"j{i},{i * 7},{1 + i % 5},{20 + i * 13 % 97}\n" for i in range(60))


@pytest.fixture
def grid(tmp_path):
    (tmp_path / "jobs.csv").write_text(JOBS)
    return {"base": {"trace": tmp_path / "jobs.csv", "cluster": "4x2"},
            "grid": {"policy": ["fifo", "sjf", "las"], "load": [0.5, 1, 2, 4]}}


def test_a_sweep_is_the_programs_byte_for_byte(grid, tmp_path):
    if not PROGRAM:
        pytest.skip("GPUSCHED_PROGRAM is not set")
    result = gs.sweep(grid, tmp_path / "ours", threads=2)
    assert (result.size, result.done, result.failed, result.timeouts, result.failures) == (12, 12, 0, 0, [])
    (tmp_path / "grid.json").write_text(json.dumps(grid, default=os.fspath))
    subprocess.run([PROGRAM, "sweep", tmp_path / "grid.json", "--out", tmp_path / "theirs"], check=True, capture_output=True)
    for name in ("runs.csv", "comparison.csv"):
        assert (tmp_path / "ours" / name).read_bytes() == (tmp_path / "theirs" / name).read_bytes()
    again = gs.sweep(str(tmp_path / "grid.json"), tmp_path / "theirs")
    assert again.stored_before == 12  # one folder for both


def test_tables_and_report(grid, tmp_path):
    result = gs.sweep(grid, tmp_path / "out")
    runs = result.runs()
    assert len(runs) == 12 and set(runs["status"]) == {"done"}
    replayed = gs.replay(tmp_path / "jobs.csv", "4x2", "sjf", tables=False)["sjf"].metrics["avg_jct_s"]
    assert runs[(runs["policy"] == "sjf") & (runs["load"] == 1)]["avg_jct_s"].tolist() == [replayed]
    assert "policy" in result.comparison().columns


def test_a_sweep_goes_on_and_lists(grid, tmp_path):
    half = dict(grid, grid=dict(grid["grid"], policy=["fifo"]))
    assert gs.sweep(half, tmp_path / "out").size == 4
    listed = gs.sweep_list(grid, tmp_path / "out")
    assert listed.count("stored") >= 1 and "12 runs" in listed
    whole = gs.sweep(grid, tmp_path / "out")
    assert (whole.stored_before, whole.done) == (4, 12)


def test_a_run_that_fails_is_told(tmp_path):
    (tmp_path / "jobs.csv").write_text(JOBS)
    grid = {"base": {"trace": tmp_path / "jobs.csv", "policy": "fifo"}, "grid": {"cluster": ["4x2", "1x2"]}}
    result = gs.sweep(grid, tmp_path / "out")
    assert (result.done, result.failed) == (1, 1)
    number, name, why = result.failures[0]
    assert number == 2 and "1x2" in name and why
    assert gs.sweep(grid, tmp_path / "out").stored_before == 2
    assert gs.sweep(grid, tmp_path / "out", retry=True).stored_before == 1


@pytest.mark.parametrize("change, words", [
    ({"grid": {"policy": ["fiffo"]}}, "fiffo"),
    ({"grid": {"polcy": ["fifo"]}}, "polcy"),
    ({"base": {"trace": "/nowhere.csv"}}, "/nowhere.csv"),
    ({"base": {"trace": {1, 2}}}, "JSON"),
    ({"launcher": "slurm"}, "launcher"),
])
def test_bad_input_is_one_line(grid, tmp_path, change, words):
    with pytest.raises(gs.Error) as error:
        gs.sweep(dict(grid, **change), tmp_path / "out")
    assert words in str(error.value) and "\n" not in str(error.value)


def test_wrong_arguments(grid, tmp_path):
    with pytest.raises(gs.Error, match="out"):
        gs.sweep(grid)
    with pytest.raises(gs.Error, match="thread"):
        gs.sweep(grid, tmp_path / "out", thread=2)
    with pytest.raises(TypeError):
        gs.sweep(7)
    (tmp_path / "file").write_text("")
    with pytest.raises(gs.Error):
        gs.sweep(grid, tmp_path / "file")


def test_an_interrupt_keeps_what_has_ended(tmp_path):
    script = textwrap.dedent(f"""
        import gpusched_sim as gs
        grid = {{"base": {{"trace": "synthetic:philly", "cluster": "philly"}},
                 "grid": {{"policy": ["fifo", "las"], "seed": {{"from": 1, "to": 20000}}}}}}
        print("begun", flush=True)
        try:
            gs.sweep(grid, {str(tmp_path / "out")!r})
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """)
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    database = tmp_path / "out" / "runs.csv"
    while not database.exists() or len(database.read_text().splitlines()) < 3:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[0] == "interrupted\n"
    assert process.returncode == 0
    assert len(database.read_text().splitlines()) >= 3
