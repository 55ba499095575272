# SPDX-License-Identifier: Apache-2.0
"""gpusched_sim: simulate schedulers of GPU clusters from Python.

>>> import gpusched_sim as gs
>>> result = gs.replay("synthetic:philly", policies=["fifo", "srtf"])
>>> result.metrics()                       # doctest: +SKIP

`replay` runs a trace under policies and gives tables, `evaluate` compares policies on windows of a trace with confidence
intervals, `sweep` runs a grid on all processors, `report` draws folders of runs. `VectorEnv` and `Env` are the learning
environment for Gymnasium, `ServiceVectorEnv` and `ServiceEnv` that of replicas beside jobs (imported when they are first
used). pandas is needed only where a table is asked for as a DataFrame.
"""
from ._core import Cluster, Error, Trace, View
from ._core import version as __version__
from .agents import Agent, mark_onnx, onnx_agent
from .columns import trace_from_columns
from .runs import Evaluation, Replay, Run, evaluate, parse_cluster, policies, read_trace, replay, report
from .sweeps import Sweep, sweep, sweep_list
from .tables import Table

__all__ = ["Agent", "Cluster", "Env", "Error", "Evaluation", "Replay", "Run", "ServiceEnv", "ServiceVectorEnv", "Steps", "Sweep", "Table", "Trace", "VectorEnv", "View", "__version__",
           "evaluate", "export_onnx", "load_model", "mark_onnx", "onnx_agent", "parse_cluster", "policies", "read_trace", "replay", "report",
           "sweep", "sweep_list", "trace_from_columns"]


try:
    from .registration import register
    register()
except ImportError:  # gymnasium is optional
    pass


def __getattr__(name):
    if name in ("VectorEnv", "Env", "Steps"):
        from . import envs  # gymnasium is optional
        return getattr(envs, name)
    if name in ("ServiceVectorEnv", "ServiceEnv"):
        from . import service_envs  # likewise
        return getattr(service_envs, name)
    if name == "load_model":
        from .models import load_model  # numpy is loaded where it is used
        return load_model
    if name == "export_onnx":
        from .onnx_export import export_onnx  # as is onnx
        return export_onnx
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
