# SPDX-License-Identifier: Apache-2.0
"""Traces, clusters, replays, evaluations and reports."""
from __future__ import annotations

import dataclasses
import json
import os
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, Sequence, Union

from . import _core
from .agents import onnx_agent
from .progress import Progress
from .progress import shown as shown_progress
from .tables import Table

if TYPE_CHECKING:
    import pandas
    from typing_extensions import Unpack

    from ._options import EvaluateOptions, ReplayOptions

Policy = Union[str, Callable[[_core.View], Any]]
Policies = Union[Policy, Sequence[Policy], Mapping[str, Policy]]


def _text(value: Any) -> Any:
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if isinstance(text, str) and ("\0" in text or not text.isprintable() and any("\ud800" <= c <= "\udfff" for c in text)):
        raise _core.Error(f"{text!r}: expected a text in UTF-8 without a zero byte")
    return text


def _cluster_text(cluster: Any) -> str:
    if cluster is None:
        return ""
    text = cluster.text if isinstance(cluster, _core.Cluster) else _text(cluster)
    if isinstance(text, int) and not isinstance(text, bool):
        text = str(text)
    if not isinstance(text, str):
        raise TypeError(f"cluster: expected a Cluster, a text, a path or a number of GPUs, not {type(cluster).__name__}")
    return text


def _keywords(options: Mapping[str, Any]) -> str:
    try:
        return json.dumps({name: _text(value) for name, value in options.items() if value is not None}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise _core.Error(f"options: expected texts, numbers, truth values and lists of them: {error}") from None


def _frame(csv: str) -> pandas.DataFrame:
    """A DataFrame with the very numbers that the text has."""
    import io

    import pandas

    version = tuple(int(part) for part in pandas.__version__.split(".")[:2])
    exact: Any = {} if version >= (3, 1) else {"float_precision": "round_trip"}  # the default since
    return pandas.read_csv(io.StringIO(csv), **exact)


def _split_policies(policies: Any) -> tuple[list[str], dict[str, Callable], dict[str, str]]:
    """(texts for the registry, callables by their name there, what each of those is called)."""
    given = [policies] if isinstance(policies, (str, os.PathLike)) or callable(policies) else policies
    if isinstance(given, Mapping):
        pairs = list(given.items())
    elif isinstance(given, Iterable):
        pairs = [(None, policy) for policy in given]
    else:
        raise TypeError(f"policies: expected a policy or several, not {type(policies).__name__}")
    texts: list[str] = []
    callables: dict[str, Callable] = {}
    shown: dict[str, str] = {}
    for name, policy in pairs:
        policy = _text(policy)
        if isinstance(policy, str) and policy.endswith(".onnx"):
            policy = onnx_agent(policy)
        if isinstance(policy, str):
            texts.append(policy)
        elif callable(policy):
            own = str(name or getattr(policy, "__name__", type(policy).__name__))
            if any(not character.isprintable() for character in own):
                raise _core.Error(f"policies: expected a name of printable characters, not {own!r}")
            key = own if _core.is_free_policy_name(own) and own not in callables else f"python-{len(callables) + 1}"
            callables[key] = policy
            shown[key] = own
            texts.append(key)
        else:
            raise TypeError(f"policies: expected texts and callables, not {type(policy).__name__}")
    return texts, callables, shown


def _alias(options: dict[str, Any], name: str, parameter: str, value: Any, default: Any = None) -> Any:
    """The value of a parameter that may be called by the name of the program's flag too."""
    given = options.pop(name, None)
    if given is None:
        return default if value is None else value
    if value is not None:
        raise _core.Error(f"{name}: another name of {parameter}, which is given too")
    return given


def read_trace(path: str | os.PathLike, *, format: str = "auto", columns: str = "", where: str = "", qos: str = "",
               seed: int = 0, drop_bad_rows: bool = False, backlog: bool = False) -> _core.Trace:
    """Reads a job trace of any format that `gpusched trace --help` lists.

    Parameters
    ----------
    path : str or os.PathLike
        A file, plain or compressed, a folder of PAI tables, or `"synthetic:NAME"`.
    format : str
        A trace format, or `"auto"`.
    columns : str
        Of format csv: `"submit=COLUMN[:UNIT],gpus=COLUMN,duration=COLUMN[:UNIT][,user=...]"`.
    where : str
        Which jobs to keep: `"vc=gpu,gpus>=8"`.
    qos : str
        Priorities by quality of service: `"high=1000,normal=10"`.
    seed : int
        Of a synthetic trace.
    drop_bad_rows : bool
        Count rows with bad values as dropped instead of refusing the trace.
    backlog : bool
        Keep jobs that had not ended when the log was written; their time limit is their run time.

    Returns
    -------
    Trace

    Raises
    ------
    Error
        The file cannot be read; the line names file, line and field.
    """
    return _core.read_trace(str(_text(path)), format, columns, where, qos, seed, drop_bad_rows, backlog)


def _trace_of(text: bytes, *report: Any) -> _core.Trace:
    """The trace that pickle kept as native csv, with its report."""
    import tempfile

    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        file.write(text)
        file.flush()
        return _core.reported_trace(_core.read_trace(file.name, "native", "", "", "", 0, False, False), *report)


def parse_cluster(cluster: str | int | os.PathLike | _core.Cluster) -> _core.Cluster:
    """Makes a cluster of a built-in name, `"NODESxGPUS[:TYPE]"`, `"RACKSxNODESxGPUS[:TYPE]"`, a number of GPUs or
    a file, each with `"+NODESxGPUS[:TYPE]"` behind it for more nodes.

    Parameters
    ----------
    cluster : str, int or os.PathLike

    Returns
    -------
    Cluster

    Raises
    ------
    Error
        It is none of these.
    """
    return _core.parse_cluster(_cluster_text(cluster))


@dataclasses.dataclass(frozen=True)
class Run:
    """One policy's run.

    Attributes
    ----------
    policy : str
        As given; the name of a callable.
    metrics : dict of str to float
        As `gpusched replay --json` calls them; the name of each ends in its unit.
    clairvoyant : bool
        Whether the policy reads true run times, which no real scheduler knows.
    run_times : str
        What the policy knew of run times.
    jobs, intervals : Table or None
        A row for each job, and one for each stretch of a job on a node (`job` is a row of `jobs`, `node` of the cluster).
    decisions : int
        Of a callable: how often it was called.
    decision_us : float
        Of a callable: mean microseconds of a call.
    """

    policy: str
    metrics: dict[str, float]
    clairvoyant: bool
    run_times: str
    sim_seconds: float
    history_hash: int | None
    jobs: Table | None
    intervals: Table | None
    decisions: int = 0
    decision_us: float = 0.0

    def __repr__(self) -> str:
        return f"Run({self.policy!r}, avg_jct_s={self.metrics.get('avg_jct_s', float('nan')):.2f})"


@dataclasses.dataclass(frozen=True)
class Replay(Sequence):
    """The runs of a replay, in the order of the policies.

    Attributes
    ----------
    runs : tuple of Run
    notes : list of str
        Rows of the trace that were left out, and why.
    """

    runs: tuple[Run, ...]
    notes: list[str]

    def __getitem__(self, which: Any) -> Any:
        if not isinstance(which, str):
            return self.runs[which]
        for run in self.runs:
            if run.policy == which:
                return run
        raise KeyError(f"no run of {which!r}; there are {', '.join(run.policy for run in self.runs)}")

    def __len__(self) -> int:
        return len(self.runs)

    def __repr__(self) -> str:
        return f"Replay of {', '.join(run.policy for run in self.runs)}"

    def _repr_html_(self) -> str:
        from .shown import html_table

        shown = ("avg_jct_s", "p99_jct_s", "avg_wait_s", "p99_wait_s", "makespan_s", "gpu_utilization")
        rows = [[run.policy] + [run.metrics[name] for name in shown] for run in self.runs]
        return html_table(("policy", *shown), rows, "; ".join(self.notes))

    def plot(self, column: str = "wait_s", ax: Any = None) -> Any:
        """The share of jobs whose `column` (wait_s, jct_s, ...) is at most so much, a line a policy.

        Returns
        -------
        matplotlib.axes.Axes
            `ax`, or new ones.

        Raises
        ------
        Error
            There is no such column, or the replay has no tables.
        ImportError
            matplotlib is not installed.
        """
        from .shown import plot_shares

        return plot_shares(self.runs, column, ax)

    def metrics(self) -> pandas.DataFrame:
        """One row a policy, one column a metric."""
        import pandas

        return pandas.DataFrame([run.metrics for run in self.runs],
                                index=pandas.Index([run.policy for run in self.runs], name="policy"))


def replay(trace: str | os.PathLike | _core.Trace, cluster: str | int | os.PathLike | _core.Cluster | None = None,
           policies: Policies | None = None, *, tables: bool = True, progress: Progress = False,
           **options: Unpack[ReplayOptions]) -> Replay:
    """Runs a trace under one policy or several.

    Other threads run meanwhile; a callable holds the interpreter's lock while it decides.

    Parameters
    ----------
    trace : str, os.PathLike or Trace
        What `read_trace` takes, or gave.
    cluster : str, int, os.PathLike or Cluster, optional
        What `parse_cluster` takes, or gave; by default what the trace states.
    policies : str, callable, sequence or dict of them
        By default `"fifo"`; `policy` is another name of it. Names as `gpusched policies` lists them, with parameters (`"las{thresholds_gpu_s=[3600]}"`), `"rl:DIR"`, a file
        `"agent.onnx"` (see `onnx_agent`), an `Agent`, or callables that take a `View`; a dict names its callables. A callable starts jobs by the view, or returns the numbers of waiting
        jobs, which are started in that order as far as they fit. Where it has a method `begin_run`, that is called with the
        first view of each run.
    tables : bool
        False: metrics alone, which takes less time and memory.
    progress : bool or callable
        True: a bar of tqdm or, without that, a line on standard error. A callable is given (done, total), of jobs of all
        policies, now and then and at the end.
    **options
        Options of `gpusched replay` by the name of their flag: `seed=1`, `backfill="easy"`, `placement="best-fit"`,
        `warmup_jobs=100`, `threads=0`, `where="gpus>=8"`, ...

    Returns
    -------
    Replay

    Raises
    ------
    Error
        Bad input or usage, a policy that leaves jobs waiting for ever, a callable that returns no jobs.
    Exception
        Whatever a callable raises.
    """
    texts, callables, shown = _split_policies(_alias(options, "policy", "policies", policies, "fifo"))
    given = dict(options, policy=texts, cluster=_cluster_text(cluster) or None)
    held = trace if isinstance(trace, _core.Trace) else None
    for name in ("format", "columns", "where", "drop_bad_rows", "backlog", "qos"):
        if held is not None and options.get(name) is not None:
            raise _core.Error(f"{name}: of reading a trace, and this one was read; give it to read_trace()")
    if held is None:
        given["trace"] = str(_text(trace))
    with shown_progress(progress, "jobs") as told:
        result = _core.replay(_keywords(given), held, callables, tables, told)
    runs = []
    for row in result["runs"]:
        name = shown.get(row["policy"], row["policy"])
        if row["why_unfinished"]:
            raise _core.Error(f"policy {name} {row['why_unfinished']}")
        calls, seconds = result["costs"].get(row["policy"], (0, 0.0))
        runs.append(Run(policy=name, metrics=row["metrics"], clairvoyant=row["clairvoyant"], run_times=row["run_times"],
                        sim_seconds=row["sim_seconds"], history_hash=row.get("history_hash"),
                        jobs=Table(row["jobs"]) if "jobs" in row else None,
                        intervals=Table(row["intervals"]) if "intervals" in row else None, decisions=calls,
                        decision_us=1e6 * seconds / calls if calls else 0.0))
    return Replay(tuple(runs), result["notes"])


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What `evaluate` found.

    Attributes
    ----------
    text : str
        The table that `gpusched evaluate` prints.
    data : dict
        What `gpusched evaluate --json` prints.
    costs : dict of str to (int, float)
        Of each callable: how often it was called, and mean microseconds of a call.
    csv : dict of str to str
        The texts of the csv files of `gpusched evaluate --out`: comparison.csv and windows.csv of windows, effects.csv and
        batches.csv of whole logs.
    """

    text: str
    data: dict[str, Any]
    costs: dict[str, tuple[int, float]]
    csv: dict[str, str] = dataclasses.field(repr=False)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Evaluation of {', '.join(dict.fromkeys(run['policy'] for run in self.data['runs']))}, mode {self.mode}"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.text)}</pre>"

    def plot(self, ax: Any = None) -> Any:
        """Differences from the policy compared with, and their 95 % intervals, in the unit of the figure; of whole logs
        relative ones of the mean.

        Returns
        -------
        matplotlib.axes.Axes
            `ax`, or new ones.

        Raises
        ------
        Error
            Nothing was compared.
        ImportError
            matplotlib or pandas is not installed.
        """
        from .shown import plot_differences

        if self.mode == "windows":
            return plot_differences(self.comparison(), ax)
        effects = self.effects()
        return plot_differences(effects[effects["effect"] == "mean"], ax)

    @property
    def mode(self) -> str:
        """What was compared: "log" or "windows"."""
        return self.data["mode"]

    def comparison(self) -> pandas.DataFrame:
        """comparison.csv of `gpusched evaluate --out`: a row a policy and trace, in full precision. Of windows."""
        return self._table("comparison.csv", "windows")

    def windows(self) -> pandas.DataFrame:
        """windows.csv: a row a policy and window, a column a metric."""
        return self._table("windows.csv", "windows")

    def effects(self) -> pandas.DataFrame:
        """effects.csv: a row a policy, trace and effect on the jobs of whole logs."""
        return self._table("effects.csv", "log")

    def batches(self) -> pandas.DataFrame:
        """batches.csv: a row a policy and batch of consecutive jobs of a whole log."""
        return self._table("batches.csv", "log")

    def _table(self, name: str, mode: str) -> pandas.DataFrame:
        if name not in self.csv:
            raise ValueError(f"{name} is of mode {mode!r}; this evaluation is of mode {self.mode!r}")
        return _frame(self.csv[name])


def evaluate(traces: str | os.PathLike | Sequence[str | os.PathLike],
             clusters: str | int | os.PathLike | _core.Cluster | Sequence[Any] | None = None,
             policies: Policies | None = None, *, progress: Progress = False,
             **options: Unpack[EvaluateOptions]) -> Evaluation:
    """Compares policies on a whole log, or on the same windows of it, with confidence intervals.

    Parameters
    ----------
    traces : str or os.PathLike, or several
        Several give a matrix.
    clusters : str, int or os.PathLike, or several, optional
        One for all traces, or one for each.
    policies : as of `replay`
        By default `("fifo", "sjf")`. `policy`, `trace` and `cluster` are other names of these three.
    progress : as of `replay`
        Of runs.
    **options
        Options of `gpusched evaluate` by the name of their flag: `mode="log"`, `window_jobs=512`, `figure="avg_wait_s"`, ...

    Returns
    -------
    Evaluation

    Raises
    ------
    Error
        Bad input or usage, or a run that failed.
    Exception
        Whatever a callable raises.
    """
    def several(values):
        return [values] if isinstance(values, (str, int, os.PathLike, _core.Cluster)) else list(values)

    traces = _alias(options, "trace", "traces", traces)
    clusters = _alias(options, "cluster", "clusters", clusters)
    texts, callables, shown = _split_policies(_alias(options, "policy", "policies", policies, ("fifo", "sjf")))
    given = dict(options, policy=texts, trace=[str(_text(trace)) for trace in several(traces)])
    if clusters is not None:
        given["cluster"] = [_cluster_text(cluster) for cluster in several(clusters)]
    against = [key for key, name in shown.items() if name == given.get("against")]
    if against:
        given["against"] = against[0]
    with shown_progress(progress, "runs") as told:
        result = _core.evaluate(_keywords(given), callables, shown, told)
    return Evaluation(result["text"], json.loads(result["json"]), _costs(result["costs"], shown), result["csv"])


def _costs(costs: Mapping[str, Any], shown: Mapping[str, str]) -> dict[str, tuple[int, float]]:
    return {shown[key]: (calls, 1e6 * seconds / calls if calls else 0.0) for key, (calls, seconds) in costs.items()}


def report(folders: str | os.PathLike | Sequence[str | os.PathLike], out: str | os.PathLike | None = None) -> str:
    """Draws what `gpusched replay`, `evaluate` or `train` wrote by --out as one HTML page.

    Parameters
    ----------
    folders : str or os.PathLike, or several
    out : str or os.PathLike, optional
        The file of the page.

    Returns
    -------
    str
        The page.

    Raises
    ------
    Error
        A folder holds no results, or the package was built without Vega.
    """
    several = [folders] if isinstance(folders, (str, os.PathLike)) else folders
    page, _ = _core.report([str(_text(folder)) for folder in several])
    if out is not None:
        with open(out, "w", encoding="utf-8") as file:
            file.write(page)
    return page


def policies() -> list[dict[str, Any]]:
    """Every policy: name, summary, source, whether it preempts, and its parameters with their meaning."""
    return _core.policies()
