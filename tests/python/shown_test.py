# SPDX-License-Identifier: Apache-2.0
"""Results in notebooks: tables as HTML, figures whose lines are the numbers of the tables."""
import xml.etree.ElementTree

import numpy
import pytest

import gpusched_sim as gs

pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def replay():
    return gs.replay("synthetic:philly:300", "4x8", ["fifo", "sjf"], oversize="drop")


@pytest.fixture(scope="module")
def evaluation():
    return gs.evaluate("synthetic:philly:6000", "8x8", ["fifo", "sjf", "las"], window_jobs=64, windows=24, mode="windows",
                       oversize="drop", against="fifo")


def cells(html):
    table = xml.etree.ElementTree.fromstring(html)
    return [[cell.text or "" for cell in row] for row in table.iter("tr")], table.find("caption").text


def test_tables_are_html(replay):
    rows, caption = cells(replay[0].jobs._repr_html_())
    assert caption == f"10 of {replay[0].jobs.rows} rows" and len(rows) == 11 and rows[0] == list(replay[0].jobs)
    user = rows[0].index("user")
    jobs = replay[0].jobs
    assert [row[user] for row in rows[1:]] == [jobs.names("user")[number] for number in jobs["user"][:10]]
    rows, _ = cells(replay._repr_html_())
    assert [row[0] for row in rows] == ["policy", "fifo", "sjf"]
    assert float(rows[1][1].replace(",", "")) == pytest.approx(replay["fifo"].metrics["avg_jct_s"], abs=1e-3)
    assert repr(replay) == "Replay of fifo, sjf"


def test_names_are_escaped():
    trace = gs.trace_from_columns([0, 0], [10, 10], [1, 1], user=["<b>&", "x"])
    run = gs.replay(trace, "1x1", "fifo")[0]
    rows, _ = cells(run.jobs._repr_html_())
    assert {row[rows[0].index("user")] for row in rows[1:]} == {"<b>&", "x"}


def test_an_evaluation_is_its_text(evaluation):
    assert xml.etree.ElementTree.fromstring(evaluation._repr_html_()).text == evaluation.text
    assert repr(evaluation) == "Evaluation of fifo, sjf, las, mode windows"


def test_figures_hold_the_numbers(replay, evaluation):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    ax = replay.plot("jct_s")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["fifo", "sjf"]
    for line, run in zip(ax.get_lines(), replay):
        x, y = line.get_data()
        for share in (0.25, 0.5, 0.9):
            at = x[numpy.searchsorted(y, share)]
            assert at == numpy.quantile(run.jobs["jct_s"], share, method="inverted_cdf")
    assert replay.plot(ax=ax) is ax
    with pytest.raises(gs.Error, match="no column 'speed'"):
        replay.plot("speed")
    ax = evaluation.plot()
    table = evaluation.comparison().set_index("name")
    names = [label.get_text() for label in ax.get_yticklabels()]
    points = ax.containers[0].lines[0].get_xdata()
    assert sorted(names) == ["las", "sjf"] and points == pytest.approx(table.loc[names, "difference"].to_numpy())
    with pytest.raises(gs.Error, match="nothing was compared"):
        gs.evaluate("synthetic:philly:3000", "8x8", ["fifo"], window_jobs=64, windows=6, mode="windows", oversize="drop").plot()


def test_intervals_are_bars_and_missing_ones_none():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import pandas

    from gpusched_sim.shown import plot_differences
    nan = float("nan")
    table = pandas.DataFrame({"trace": "t", "name": ["a", "b", "c"], "figure": "avg_wait_s", "against": [nan, "a", "a"],
                              "difference": [nan, -2.0, 3.0], "low_95": [nan, -5.0, nan], "high_95": [nan, 1.5, nan]})
    ax = plot_differences(table, None)
    bars = [[point[0] for point in bar] for bar in ax.containers[0].lines[2][0].get_segments()]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["c", "b"] and bars == [[3.0, 3.0], [-5.0, 1.5]]
    assert ax.get_xlabel().startswith("avg_wait_s: difference from a, 95 %")
