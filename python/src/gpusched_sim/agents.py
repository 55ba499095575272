# SPDX-License-Identifier: Apache-2.0
"""Trained networks as policies: Agent holds a function of observations, onnx_agent() reads one from an ONNX file."""
from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Callable, Mapping

from . import _core
from .features import Features, check_features, feature_table

if TYPE_CHECKING:
    import numpy

_OPTIONS = ("mode", "knowledge", "heuristic", "max_jobs", "choose_nodes", "node_speeds", "sc20_backfill", "starvation_s",
            "signals", "forecast", "forecast_sigma")
_METADATA = "gpusched_sim.agent"  # key in an ONNX file
_INPUTS = ("jobs", "prior", "action_mask", "groups", "global", "signals", "features")


class Agent:
    """A function of observations as a policy of `replay` and `evaluate`.

    At every choice it is called with what a `VectorEnv` of one environment shows: a dict of arrays [1, ...]. It answers
    with an action, or with a score for each action; then the allowed action of the greatest score is taken, of equal ones the
    first. In mode preempt it answers with a score for each token [2 * max_jobs].

    Parameters
    ----------
    act : callable
        Takes the observation; gives a whole number, or numbers of shape [max_jobs + 1] or [1, max_jobs + 1].
    env : VectorEnv or Env, optional
        In which it was trained, whose options it takes.
    name : str, optional
        In tables.
    features : as of `VectorEnv`, optional
        By default the environment's.
    **options
        mode, knowledge, heuristic, max_jobs, choose_nodes, node_speeds, sc20_backfill, starvation_s, signals, forecast and
        forecast_sigma as of `VectorEnv`; by default the environment's, or else VectorEnv's own defaults.

    Raises
    ------
    Error
        An option that does not exist, or a value that is no text, number or truth value.
    TypeError
        `act` is not callable.
    """

    def __init__(self, act: Callable[[Mapping[str, numpy.ndarray]], Any], env: Any = None, *, name: str = "",
                 features: Features | None = None, **options: Any):
        if not callable(act):
            raise TypeError(f"act: expected a callable, not {type(act).__name__}")
        unknown = sorted(set(options) - set(_OPTIONS))
        if unknown:
            raise _core.Error(f"{unknown[0]}: no such option of an agent; expected one of {', '.join(_OPTIONS)}")
        self._act = act
        self.features = check_features(getattr(env, "features", None) if features is None else features)
        self.options: dict[str, Any] = dict(env.agent_options if env is not None else {}, **options)
        try:
            self.options_json = json.dumps(self.options, allow_nan=False)  # what the compiled part reads
        except (TypeError, ValueError) as error:
            raise _core.Error(f"options of the agent: {error}") from None
        self.__name__ = str(name or getattr(act, "__name__", type(act).__name__))

    def __call__(self, observation: Mapping[str, numpy.ndarray]) -> Any:
        return self._act(observation)

    def job_features(self, columns: Mapping[str, Any]) -> numpy.ndarray:
        """The features of a run's jobs, as `features_of` takes them."""
        return feature_table(self.features, columns)

    @staticmethod
    def features_of(table: numpy.ndarray, jobs: numpy.ndarray) -> numpy.ndarray:
        """The features of jobs by number; of -1, no job, they are 0."""
        return table[jobs]

    def choose(self, observation: Mapping[str, numpy.ndarray]) -> Any:
        """The number of the action that `act` takes, which may be one that is not allowed; in mode preempt the scores.

        Raises
        ------
        Error
            The answer is neither a whole number nor a score for each action.
        """
        import numpy

        answer = numpy.asarray(self._act(observation))
        if self.options.get("mode") == "preempt":
            if answer.dtype.kind != "f":
                raise _core.Error(f"agent {self.__name__} answered {answer.dtype}; expected a score for each token")
            return numpy.ascontiguousarray(answer, dtype=numpy.float32).reshape(-1)
        if answer.dtype.kind in "iu" and answer.size == 1:
            return int(answer.reshape(()))
        mask = observation["action_mask"].reshape(-1) != 0
        scores = answer.reshape(-1)
        if answer.dtype.kind != "f" or answer.shape not in (mask.shape, (1, *mask.shape)):
            raise _core.Error(f"agent {self.__name__} answered {answer.dtype} of shape {answer.shape}; expected a whole number or "
                              f"{mask.size} scores")
        if numpy.isnan(scores[mask]).any():
            raise _core.Error(f"agent {self.__name__} gave an allowed action the score NaN")
        allowed = numpy.flatnonzero(mask)
        return int(allowed[numpy.argmax(scores[allowed])])


def _field(number: int, content: bytes) -> bytes:
    """A length-delimited field of a protocol buffer."""
    def varint(value):
        head = bytearray()
        while value >= 128:
            head.append(value % 128 + 128)
            value //= 128
        return bytes(head) + bytes([value])

    return varint(number * 8 + 2) + varint(len(content)) + content


def mark_onnx(path: Any, env: Any) -> None:
    """Notes in an ONNX file what its network chooses and knows, so that `"FILE.onnx"` is a policy by itself.

    Parameters
    ----------
    path : str or os.PathLike
        The file, which is appended to: a further entry of `metadata_props` (field 14 of ModelProto in onnx.proto3).
    env : VectorEnv or Env
        In which the network was trained.
    """
    text = json.dumps(env.agent_options)
    entry = _field(1, _METADATA.encode()) + _field(2, text.encode())
    with open(path, "ab") as file:
        file.write(_field(14, entry))


def onnx_agent(path: Any, env: Any = None, *, name: str = "", **options: Any) -> Agent:
    """Reads an agent from an ONNX file; onnxruntime runs it on one thread.

    The network's inputs are called as arrays of the observation are (`jobs`, `prior`, `action_mask`, `groups`, `global`,
    `signals`; not all need be there) and have a first axis for environments. Its first output is an action or a score for each.

    Parameters
    ----------
    path : str or os.PathLike
    env, name, **options : as of `Agent`
        By default what `mark_onnx` noted in the file.

    Returns
    -------
    Agent

    Raises
    ------
    Error
        The file is no ONNX network of such inputs, or says nothing of its options and none are given.
    ImportError
        onnxruntime is not installed.
    """
    import numpy
    import onnxruntime

    path = os.fspath(path)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    settings.log_severity_level = 4  # what is wrong with a file is told by the exception
    try:
        session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own classes have no common base of its
        raise _core.Error(f"{path}: {str(error).splitlines()[0]}") from None
    kinds = {"tensor(float)": numpy.float32, "tensor(double)": numpy.float64, "tensor(bool)": numpy.bool_,
             "tensor(int8)": numpy.int8, "tensor(uint8)": numpy.uint8, "tensor(int64)": numpy.int64}
    inputs = {}
    for given in session.get_inputs():
        if given.name not in _INPUTS or given.type not in kinds:
            raise _core.Error(f"{path}: input {given.name} of type {given.type}; expected some of {', '.join(_INPUTS)}, of numbers "
                              "or truth values")
        inputs[given.name] = kinds[given.type]
    noted = session.get_modelmeta().custom_metadata_map.get(_METADATA)
    if noted is not None:
        try:
            noted = json.loads(noted)
            if not isinstance(noted, dict):
                raise ValueError
        except ValueError:
            raise _core.Error(f"{path}: metadata {_METADATA}: expected a JSON object") from None
    elif env is None and not options:
        raise _core.Error(f"{path}: the file does not say what it chooses (mark_onnx); give env or mode, max_jobs, ...")
    output = session.get_outputs()[0].name

    def act(observation: Mapping[str, numpy.ndarray]) -> Any:
        given = {name: observation[name].astype(kind, copy=False) for name, kind in inputs.items()}
        try:
            return session.run([output], given)[0]
        except Exception as error:
            raise _core.Error(f"{path}: {str(error).splitlines()[0]}") from None

    if noted is not None and env is None:
        options = dict(noted, **options)
    return Agent(act, env, name=name or path, **options)
