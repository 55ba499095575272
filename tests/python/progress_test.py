# SPDX-License-Identifier: Apache-2.0
"""What long calls tell of their progress: the last thing is that all is done."""
import sys

import pytest

import gpusched_sim as gs
from gpusched_sim import progress

TRACE = "synthetic:philly:2000"


def calls_of(call):
    told = []
    call(lambda done, total: told.append((done, total)))
    assert told == sorted(told) and len(set(told)) == len(told)
    return told


def test_calls_tell_how_much_is_done(tmp_path):
    jobs = gs.read_trace(TRACE)
    told = calls_of(lambda f: gs.replay(jobs, "40x8", ["fifo", "srtf"], progress=f))
    assert told[-1] == (2 * len(jobs), 2 * len(jobs))
    told = calls_of(lambda f: gs.evaluate("synthetic:philly", "40x8", ["fifo", "sjf"], mode="windows", windows=5, window_jobs=100,
                                          progress=f))
    assert told[-1] == (12, 12)  # the windows, and the whole log beside them
    plan = {"base": {"trace": "synthetic:philly:100"}, "grid": {"policy": ["fifo", "sjf"], "seed": [1, 2]}}
    assert calls_of(lambda f: gs.sweep(plan, tmp_path / "sweep", progress=f))[-1] == (4, 4)


def test_an_error_of_the_callable_ends_the_call():
    def fails(done, total):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        gs.replay(TRACE, "40x8", progress=fails)
    with pytest.raises(TypeError, match="progress: expected"):
        gs.replay(TRACE, "40x8", progress="yes")


def test_true_shows_a_bar_or_a_line(monkeypatch, capsys):
    gs.replay(TRACE, "40x8", progress=True)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    gs.replay(TRACE, "40x8", progress=True)
    assert capsys.readouterr().err.endswith("2,000 of 2,000 100 %\n")
    with progress.shown(False, "jobs") as told:
        assert told is None
