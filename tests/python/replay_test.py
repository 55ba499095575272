# SPDX-License-Identifier: Apache-2.0
"""Replays, evaluations and policies in Python: results worked out by hand, the program's own, and bad input."""
import json
import os
import subprocess
import sys
import threading

import numpy
import pytest

import gpusched_sim as gs

FIXTURES = os.path.join(os.path.dirname(__file__), "../../traces/fixtures")


def three_jobs():
    """Two GPUs; a long job first, then a short one of two GPUs, then one that would fit beside the first."""
    return gs.trace_from_columns([0, 1, 2], [100, 10, 50], [1, 2, 1], user=["ann", "bob", "ann"])


def test_columns_take_every_role_of_the_native_csv():
    nan = float("nan")
    given = dict(tasks=[3, nan], estimate_s=[12, nan], deadline_s=[100, nan], start_s=[5, nan], cpu_milli_per_task=[1000, 2000],
                 memory_mib_per_task=[nan, 2], priority=[-3, 7], job_id=["a", "b"], user=["ann", None], group=[nan, "g"],
                 vc=["v", ""], qos=["high", None], name=['a,"b"\nc', nan], family=["bert", ""], gpu_spec=["V100|P100", ""],
                 status=["failed", "passed"], attempts_s=[[4, 6.5], []], after=[[], ["a"]])
    trace = gs.trace_from_columns([0, 1.25], [10.5, 20], [2, 0.5], **given)
    text = b"".join(trace.__reduce__()[1][:1]).decode()
    assert text.splitlines()[1:] == [
        'a,0,10.5,3,2000,1000,0,V100|P100,12,5,100,ann,,v,high,"a,""b""\\x0Ac",bert,failed,-3,4;6.5,',
        "b,1.25,20,1,500,2000,2,,,,,,g,,,,,passed,7,,a"]
    assert gs.replay(trace, "2x8", "fifo")[0].jobs["first_start_s"].tolist() == [0, 10.5]


def test_columns_of_a_data_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"at": pandas.to_datetime(["2025-03-03 08:00:00", "2025-03-03 08:00:01"]),
                              "ran": pandas.to_timedelta([60, 90], unit="s"), "gpus": [1, 8], "who": ["ann", None]})
    for at in (frame["at"], frame["at"].dt.tz_localize("UTC")):
        trace = gs.trace_from_columns(at, frame["ran"], frame["gpus"], user=frame["who"])
        columns = trace.columns()
        assert columns["submit_s"].tolist() == [1740988800, 1740988801] and columns["duration_s"].tolist() == [60, 90]
        assert columns["user_names"] == ["", "ann"]  # who is missing has no name


def first_come(view):
    for job in view.waiting:
        if not view.start(job):
            break


def test_a_schedule_worked_out_by_hand():
    fifo, skip = gs.replay(three_jobs(), 2, ["fifo", "fifo-skip"])
    assert fifo.jobs["first_start_s"].tolist() == [0, 100, 110]
    assert fifo.jobs["end_s"].tolist() == [100, 110, 160]
    assert skip.jobs["end_s"].tolist() == [100, 110, 52]
    assert fifo.metrics["avg_jct_s"] == pytest.approx((100 + 109 + 158) / 3)
    assert fifo.intervals["job"].tolist() == [0, 1, 2]
    assert fifo.intervals["gpus"].tolist() == [1, 2, 1]
    assert fifo.jobs.names("user")[fifo.jobs["user"][1]] == "bob"


def test_tables_become_data_frames():
    pandas = pytest.importorskip("pandas")
    result = gs.replay(three_jobs(), 2, ["fifo"])
    frame = result[0].jobs.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and len(frame) == 3
    assert list(frame["user"]) == ["ann", "bob", "ann"]
    assert result.metrics().loc["fifo", "jobs"] == 3


def test_same_figures_as_the_program():
    program = os.environ.get("GPUSCHED_PROGRAM")
    if not program:
        pytest.skip("GPUSCHED_PROGRAM is not set")
    path = os.path.join(FIXTURES, "swf.swf")
    printed = json.loads(subprocess.run([program, "replay", path, "--cluster", "128", "--policy", "fifo,srtf", "--json"],
                                        check=True, capture_output=True, text=True).stdout)
    for run, expected in zip(gs.replay(path, 128, ["fifo", "srtf"]), printed["runs"]):
        assert run.policy == expected["policy"]
        for name, value in run.metrics.items():
            assert value == pytest.approx(expected["metrics"][name], rel=1e-12), name


def test_a_callable_decides_as_the_policy_it_repeats():
    named, called = gs.replay("synthetic:philly", None, {"": "fifo", "mine": first_come})
    assert called.policy == "mine" and called.decisions > 0 and called.decision_us > 0
    assert called.history_hash == named.history_hash


def test_a_callable_returns_an_order():
    run = gs.replay(three_jobs(), 2, lambda view: view.waiting[::-1])[0]
    assert run.jobs["end_s"].tolist() == [100, 110, 52]


def test_a_callable_preempts_and_wakes():
    def policy(view):
        if view.now_s == 0:
            assert view.start(0)
            view.wake(5)
        elif view.now_s == 5:
            view.preempt(0)
            assert not view.fits(0) or view.start(1)
        else:
            return view.waiting
        return None

    run = gs.replay(gs.trace_from_columns([0, 1], [10, 3], [2, 2]), 2, policy)[0]
    assert run.jobs["end_s"].tolist() == [13, 8]
    assert run.jobs["preemptions"].tolist() == [1, 0]


def test_a_callable_cancels_what_runs_or_waits():
    def policy(view):
        if view.now_s == 0:
            return [0]
        if view.now_s == 1:
            view.cancel(0)
            view.cancel(1)
            with pytest.raises(gs.Error, match="job 1, which is finished, is not to be cancelled"):
                view.cancel(1)
            with pytest.raises(gs.Error, match="job 0 is finished, not waiting"):
                view.start(0)
        return view.waiting

    run = gs.replay(gs.trace_from_columns([0, 1, 1], [10, 3, 4], [2, 2, 2]), 2, policy)[0]
    assert run.jobs["end_s"].tolist() == [1, 1, 5]
    assert run.metrics["policy_cancelled_jobs"] == 2 and run.metrics["avg_jct_s"] == 4


def test_a_policy_that_raises_ends_the_run_with_its_exception():
    def policy(view):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        gs.replay(three_jobs(), 2, policy)


@pytest.mark.parametrize("answer, line", [
    ([7], "job 7 does not exist"), ([-1], "job -1 does not exist"), (["x"], "among jobs"), ([0.5], "among jobs"),
    (3, "expected None or the numbers"), ("abc", "expected None or the numbers"), ([0, 0], "job 0 is running, not waiting"),
    ([2], "job 2 is not submitted yet"), ([2**80], "no job"),
])
def test_nonsense_from_a_policy_is_one_line(answer, line):
    with pytest.raises(gs.Error, match=line) as error:
        gs.replay(three_jobs(), 2, lambda view: answer)
    assert "\n" not in str(error.value)


def test_a_view_that_was_kept_raises_and_its_arrays_live_on():
    kept = []

    def policy(view):
        kept.append((view, view.waiting, view.jobs["gpus"]))
        return view.waiting

    gs.replay(three_jobs(), 2, policy)
    view, waiting, gpus = kept[0]
    assert waiting.tolist() == [0] and gpus.tolist() == [1, 2, 1]
    for use in (lambda: view.now_s, lambda: view.waiting, lambda: view.start(0), lambda: view.wake(1e6)):
        with pytest.raises(RuntimeError, match="decision that is over"):
            use()
    assert "duration_s" not in view.jobs  # true run times stay hidden


def test_a_policy_that_starts_nothing_is_told():
    with pytest.raises(gs.Error, match="left 3 jobs waiting for ever"):
        gs.replay(three_jobs(), 2, lambda view: None)


@pytest.mark.parametrize("call, line", [
    (lambda: gs.read_trace("/no/such/file.csv"), "/no/such/file.csv"),
    (lambda: gs.replay(three_jobs(), 2, "fifoo"), "fifo"),
    (lambda: gs.replay(three_jobs(), 2, "fifo", sed=1), "sed: no such argument"),
    (lambda: gs.replay(three_jobs(), 2, "fifo", seed="x"), "seed"),
    (lambda: gs.replay(three_jobs(), 1, "fifo"), "GPU"),
    (lambda: gs.replay(three_jobs(), "no-cluster", "fifo"), "no-cluster"),
    (lambda: gs.replay(three_jobs(), None, "fifo"), "cluster"),
    (lambda: gs.trace_from_columns([0, 1], [1], [1, 1]), "duration_s: expected 2"),
    (lambda: gs.trace_from_columns([0], [-1], [1]), r"duration_s\[0\]"),
    (lambda: gs.trace_from_columns([float("nan")], [1], [1]), r"submit_s\[0\]"),
    (lambda: gs.trace_from_columns([0], [1], [1.5]), r"gpus\[0\]"),
    (lambda: gs.trace_from_columns([], [], []), "at least one job"),
    (lambda: gs.trace_from_columns(["a"], [1], [1]), "submit_s: expected numbers"),
    (lambda: gs.trace_from_columns([[0]], [1], [1]), "one dimension"),
    (lambda: gs.trace_from_columns([0, 1], [1, 1], [1, 1], job_id=["a", "a"]), "twice"),
    (lambda: gs.trace_from_columns([0, 1], [1, 1], [1, 1], tasks=[1, 0]), r"^tasks\[1\]: expected an integer >= 1"),
    (lambda: gs.trace_from_columns([0, 1], [1, 1], [1, 1], priority=[0.5, 1]), r"^priority\[0\]: expected an integer, found '0.5'"),
    (lambda: gs.trace_from_columns([0], [9], [1], attempts_s=[[1]]), r"^attempts_s\[0\]: .* add up to duration_s"),
    (lambda: gs.trace_from_columns([0], [9], [1], after=["zz"]), r"^after\[0\]: job '0' waits for job 'zz'"),
    (lambda: gs.trace_from_columns([0], [9], [1.5], group=["a"]), r"^gpus\[0\]"),
    (lambda: gs.trace_from_columns([0], [9], [1], qos=["a", "b"]), "^qos: expected 1 entries"),
])
def test_bad_input_is_one_line(call, line):
    with pytest.raises(gs.Error, match=line) as error:
        call()
    assert "\n" not in str(error.value)


def test_replays_on_several_threads_agree():
    trace = gs.read_trace("synthetic:philly")
    expected = gs.replay(trace, "40x8", "sjf")[0].history_hash
    found = []
    threads = [threading.Thread(target=lambda: found.append(gs.replay(trace, "40x8", "sjf")[0].history_hash))
               for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 3


def test_an_evaluation_judges_a_callable():
    result = gs.evaluate("synthetic:philly", None, {"a": "fifo", "mine": first_come}, window_jobs=256, windows=8)
    assert "mine" in result.text and "python-1" not in result.text
    runs = {run["policy"]: run for run in result.data["runs"]}
    assert set(runs) == {"fifo", "mine"}


def test_columns_own_their_memory():
    columns = gs.read_trace("synthetic:philly").columns()
    submit = columns["submit_s"]
    del columns
    assert numpy.all(numpy.diff(submit) >= 0)


def test_the_package_is_imported_without_numpy():
    """Building the wheel imports it where nothing but its build requirements is installed."""
    blocked = "import sys; sys.modules['numpy'] = sys.modules['pandas'] = None; import gpusched_sim"
    subprocess.run([sys.executable, "-c", blocked], check=True)
