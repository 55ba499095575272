# SPDX-License-Identifier: Apache-2.0
"""How results look in notebooks: tables as HTML, and figures by matplotlib, which is optional."""
from __future__ import annotations

from html import escape
from typing import Any, Iterable, Sequence

import numpy

from . import _core

_MOST_ROWS = 10


def html_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> str:
    """A table of HTML; numbers have at most four digits behind the point."""
    def cell(value):
        return f"{value:,.4f}".rstrip("0").rstrip(".") if isinstance(value, (float, numpy.floating)) else escape(str(value))

    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{cell(value)}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def first_rows(table: Any) -> str:
    """The first rows of a Table; numbers of names as the names."""
    names = {column: table.names(column) for column in table if table.has_names(column)}
    shown = min(table.rows, _MOST_ROWS)
    rows = [[names[column][values[i]] if column in names else values[i] for column, values in table.items()] for i in range(shown)]
    return html_table(list(table), rows, f"{shown} of {table.rows} rows")


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots()[1]


def plot_shares(runs: Sequence[Any], column: str, ax: Any) -> Any:
    """For each run the share of jobs whose `column` is at most x."""
    ax = _axes(ax)
    for run in runs:
        if run.jobs is None:
            raise _core.Error("plot: the replay was made with tables=False")
        if column not in run.jobs:
            raise _core.Error(f"plot: no column {column!r} of jobs; expected one of {', '.join(run.jobs)}")
        values = numpy.sort(numpy.asarray(run.jobs[column], dtype=numpy.float64))
        values = values[~numpy.isnan(values)]
        ax.step(values, numpy.arange(1, len(values) + 1) / max(1, len(values)), where="post", label=run.policy)
    ax.set_xscale("symlog", linthresh=1)
    ax.set_xlabel(column.replace("_s", " (seconds)") if column.endswith("_s") else column)
    ax.set_ylabel("share of jobs")
    ax.legend()
    return ax


def plot_differences(table: Any, ax: Any) -> Any:
    """Each row's difference from the policy it is compared with, and its interval; a line where there is none."""
    ax = _axes(ax)
    rows = table[table["difference"].notna()].iloc[::-1]
    if rows.empty:
        raise _core.Error("plot: nothing was compared; an evaluation of several policies has differences")
    place = numpy.arange(len(rows))
    middle = rows["difference"].to_numpy()
    reach = numpy.stack([middle - rows["low_95"].fillna(rows["difference"]), rows["high_95"].fillna(rows["difference"]) - middle])
    ax.errorbar(middle, place, xerr=numpy.maximum(reach, 0), fmt="o", capsize=3)
    ax.axvline(0, color="gray", linewidth=1)
    ax.set_yticks(place, [f"{name}, {trace}" if rows["trace"].nunique() > 1 else name
                          for name, trace in zip(rows["name"], rows["trace"])])
    against = ", ".join(sorted(set(rows["against"].astype(str))))
    ax.set_xlabel(f"{rows['figure'].iloc[0]}: difference from {against}, 95 % interval; smaller is left")
    return ax
