# SPDX-License-Identifier: Apache-2.0
"""Traces made of columns: arrays, lists, or those of a DataFrame."""
from __future__ import annotations

import csv
import io
import re
from typing import Any, Callable, Iterable, Sequence

from . import _core
from .runs import _trace_of

# Columns of the native csv besides those that every trace has, in its order; the last are texts.
_NUMBERS = ("cpu_milli_per_task", "memory_mib_per_task", "estimate_s", "deadline_s", "start_s", "priority", "after_delay_s")
_TEXTS = ("gpu_spec", "user", "group", "vc", "qos", "name", "family", "status")
# What the reader of the native csv calls a column that has another name here.
_CALLED = {"work_s": "duration_s", "gpu_milli_per_task": "gpus"}


def _numbers(name: str, values: Any) -> Any:
    """Floats; instants are seconds since 1970, and spans seconds, as pandas and polars have them."""
    import numpy

    try:
        array = numpy.asarray(values)
        if array.dtype == object and array.size > 0 and any(hasattr(value, "timestamp") for value in array.flat):
            array = numpy.array([value.timestamp() if value == value and value is not None else float("nan") for value in array])
        elif array.dtype.kind in "mM":
            whole = array.astype("datetime64[us]" if array.dtype.kind == "M" else "timedelta64[us]")
            array = numpy.where(numpy.isnat(whole), numpy.nan, whole.astype("int64") / 1e6)
        array = numpy.ascontiguousarray(array, dtype=numpy.float64)
    except (TypeError, ValueError, AttributeError):
        raise _core.Error(f"{name}: expected numbers") from None
    if array.ndim != 1:
        raise _core.Error(f"{name}: expected one dimension, not {array.ndim}")
    return array


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _texts(values: Iterable[Any]) -> list[str]:
    return ["" if _is_missing(value) else str(value) for value in values]


def _joined(values: Iterable[Any], text: Callable[[Any], str]) -> list[str]:
    """Lists of a job's parts, or one text with semicolons as the native csv has it."""
    return ["" if not isinstance(value, (list, tuple)) and not hasattr(value, "tolist") and _is_missing(value)
            else value if isinstance(value, str) else ";".join(text(part) for part in value) for value in values]


def _seconds(value: float) -> str:
    return "" if value != value else f"{value:.6f}".rstrip("0").rstrip(".") if abs(value) < 1e16 else repr(float(value))


def _whole(value: float) -> str:
    return "" if value != value else f"{value:.0f}" if abs(value) < 1e16 and value == round(value) else repr(float(value))


def _in_one_line(text: str) -> str:
    return re.sub(r"[\r\n]", lambda match: f"\\x{ord(match.group()):02X}", text)


def trace_from_columns(submit_s: Any, duration_s: Any, gpus: Any, *, tasks: Any = None, estimate_s: Any = None,
                       deadline_s: Any = None, start_s: Any = None, cpu_milli_per_task: Any = None,
                       memory_mib_per_task: Any = None, priority: Any = None, job_id: Sequence[str] = (),
                       user: Sequence[str] = (), group: Sequence[str] = (), vc: Sequence[str] = (), qos: Sequence[str] = (),
                       name: Sequence[str] = (), family: Sequence[str] = (), gpu_spec: Sequence[str] = (),
                       status: Sequence[str] = (), attempts_s: Sequence[Any] = (), after: Sequence[Any] = (),
                       after_delay_s: Any = None) -> _core.Trace:
    """Makes a trace of arrays, such as the columns of a DataFrame: each is one of the native csv (`gpusched trace convert`).

    Parameters
    ----------
    submit_s, duration_s, gpus : array_like
        Instant of submission and true run time: seconds, or datetimes and timedeltas. GPUs of a job, whole or thousandths of
        one; with `tasks` of each task.
    tasks, cpu_milli_per_task, memory_mib_per_task, priority : array_like of float, optional
        Equal tasks, each on one node, and what each takes; larger priorities are more urgent. NaN: as without.
    estimate_s, deadline_s, start_s : array_like, optional
        What the user asked for, the instant by which the job should end, and its recorded start; NaN where nothing was.
    job_id, user, group, vc, qos, name, family, gpu_spec, status : sequence of str, optional
        Names, None or NaN where unknown; ids must be distinct. A status is `passed`, `failed` or `killed`.
    attempts_s, after : sequence of sequences, optional
        The work of each attempt, with sum `duration_s`; ids of the jobs that must have ended.
    after_delay_s : array_like, optional
        How long ago the last of those must have ended (a think time); NaN where that does not matter.

    Returns
    -------
    Trace

    Raises
    ------
    Error
        Lengths differ, or a value is out of range.
    """
    times = [_numbers("submit_s", submit_s), _numbers("duration_s", duration_s), _numbers("gpus", gpus)]
    given = {"estimate_s": estimate_s, "deadline_s": deadline_s, "start_s": start_s, "cpu_milli_per_task": cpu_milli_per_task,
             "memory_mib_per_task": memory_mib_per_task, "priority": priority, "tasks": tasks,
             "after_delay_s": after_delay_s}
    numbers = {key: _numbers(key, values) for key, values in given.items() if values is not None}
    texts = {key: _texts(values) for key, values in
             {"user": user, "group": group, "vc": vc, "qos": qos, "name": name, "family": family, "gpu_spec": gpu_spec,
              "status": status, "job_id": job_id}.items()}
    texts["attempts_s"] = _joined(attempts_s, lambda part: _seconds(float(part)))
    texts["after"] = _joined(after, str)
    texts = {key: values for key, values in texts.items() if values}
    if not set(numbers) - {"estimate_s"} and not set(texts) - {"user", "vc", "job_id"}:
        return _core.trace_from_columns(*times, numbers.get("estimate_s"), texts.get("user", []), texts.get("vc", []),
                                        texts.get("job_id", []))
    return _read(*times, numbers, texts)


def _read(submits: Any, durations: Any, gpus: Any, numbers: dict[str, Any], texts: dict[str, list[str]]) -> _core.Trace:
    """Through the reader of the native csv, which has the rules of every column."""
    rows = len(submits)
    if rows == 0:
        raise _core.Error("submit_s: expected at least one job")
    for key, values in [("duration_s", durations), ("gpus", gpus), *numbers.items(), *texts.items()]:
        if len(values) != rows:
            raise _core.Error(f"{key}: expected {rows} entries, as submit_s has, not {len(values)}")
    has_tasks = "tasks" in numbers
    columns: dict[str, list[str]] = {"job_id": texts.get("job_id", [str(row) for row in range(rows)])}
    columns["submit_s"], columns["work_s"] = [_seconds(v) for v in submits], [_seconds(v) for v in durations]
    gangs = [(numbers["tasks"][row] if has_tasks and numbers["tasks"][row] == numbers["tasks"][row] else None, count)
             for row, count in enumerate(gpus)]
    for row, (_, count) in enumerate(gangs):
        if not (0 <= count <= 1e6 and (count == round(count) or count < 1 and round(count * 1000) == count * 1000)):
            raise _core.Error(f"gpus[{row}]: expected a whole number of GPUs or thousandths of one GPU")
    columns["tasks"] = [_whole(tasks) if tasks is not None else _whole(max(count, 1)) if count >= 1 else "1"
                        for tasks, count in gangs]
    columns["gpu_milli_per_task"] = [_whole(round(count * 1000)) if tasks is not None or count < 1 else "1000"
                                     for tasks, count in gangs]
    for key in _NUMBERS:
        if key in numbers:
            columns[key] = [(_seconds if key.endswith("_s") else _whole)(value) for value in numbers[key]]
    for key in (*_TEXTS, "attempts_s", "after"):
        if key in texts:
            columns[key] = [_in_one_line(value) for value in texts[key]]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values()))
    try:
        return _trace_of(text.getvalue().encode(errors="surrogateescape"), "columns", "columns", "", rows, rows, [], "", 0, [], 0)
    except _core.Error as error:
        raise _core.Error(_as_cell(str(error))) from None


def _as_cell(message: str) -> str:
    """`FILE:3: work_s: ...` is `duration_s[1]: ...`."""
    found = re.search(r":(\d+): (\w+): (.*)", message)
    if not found:
        return re.sub(r"^\S+: ", "", message)
    text = re.sub(r"; [\d,]+ rows? (is|are) bad.*", "", found.group(3))
    for native, called in _CALLED.items():
        text = text.replace(native, called)
    return f"{_CALLED.get(found.group(2), found.group(2))}[{int(found.group(1)) - 2}]: {text}"
