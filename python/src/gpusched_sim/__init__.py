# SPDX-License-Identifier: Apache-2.0
"""gpusched_sim: simulate schedulers of GPU clusters from Python.

>>> import gpusched_sim as gs
>>> result = gs.replay("synthetic:philly", policies=["fifo", "srtf"])
>>> result.metrics()                       # doctest: +SKIP

`replay` runs a trace under policies and gives tables, `evaluate` compares policies on windows of a trace with confidence
intervals, `report` draws folders of runs, `VectorEnv` and `Env` are the learning environment for Gymnasium (imported when
they are first used). pandas is needed only where a table is asked for as a DataFrame.
"""
from ._core import Cluster, Error, Trace, View
from ._core import version as __version__
from .agents import Agent, mark_onnx, onnx_agent
from .runs import Evaluation, Replay, Run, evaluate, parse_cluster, policies, read_trace, replay, report, trace_from_columns
from .tables import Table

__all__ = ["Agent", "Cluster", "Env", "Error", "Evaluation", "Replay", "Run", "Table", "Trace", "VectorEnv", "View", "__version__",
           "evaluate", "mark_onnx", "onnx_agent", "parse_cluster", "policies", "read_trace", "replay", "report", "trace_from_columns"]


def __getattr__(name):
    if name in ("VectorEnv", "Env"):
        from . import envs  # gymnasium is optional
        return getattr(envs, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
