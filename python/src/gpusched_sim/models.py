# SPDX-License-Identifier: Apache-2.0
"""Folders that `gpusched train` wrote, as functions of observations: the forward passes in numpy.

A folder holds `model.json` (what is chosen and known, the network's shape, means and scales of its inputs) and `weights.bin`
(all parameters, little-endian single precision). The parameters are alpha, the weight of the prior, then the layers that
`_layers` lists, in that order: each has its weights [outputs, inputs] row by row, then its biases. What training alone needs,
the critic, comes last and is not read. The logit of an action is alpha times its prior plus its score.
"""
from __future__ import annotations

import json
import os
from typing import Any, Mapping, NamedTuple

import numpy

from . import _core
from .agents import Agent

_MASKED = numpy.float32(-1e30)
_JOB, _GROUP, _GLOBAL, _SIGNALS = 12, 4, 14, 22
_LOG_KNOWN = 1  # of a job's features
# Terms: (feature, the feature of the job it is multiplied by or None, the same of the whole), by their numbers in
# docs/environment.md.
_INDEX_TERMS = ([(i, None, None) for i in (1, 2, 8, 0, 4, 9, 10)]
                + [(1, 1, None), (1, 2, None), (1, 8, None), (2, 2, None), (5, None, None), (5, 1, None), (5, 8, None),
                   (5, None, 0), (5, None, 1), (11, None, None), (11, 11, None), (11, 1, None), (11, 8, None), (11, None, 0),
                   (11, None, 1)])
_RANK_TERMS = ([(i, None, None) for i in range(9)]
               + [(0, 1, None), (0, 3, None), (0, 5, None), (1, 1, None), (1, 3, None), (1, 4, None), (1, 2, None),
                  (3, 3, None), (3, 4, None), (3, 2, None), (3, 7, None), (4, 4, None), (2, 2, None), (5, 3, None), (7, 1, None)])
_INDEX_WAIT = [0, 1]


class _Layer(NamedTuple):
    weights: numpy.ndarray  # [outputs, inputs]
    biases: numpy.ndarray  # [outputs]

    def __call__(self, inputs: numpy.ndarray) -> numpy.ndarray:
        # In 64 bits: products of matrices sum the same row in an order that hangs on its place, and equal jobs score alike.
        return (inputs.astype(numpy.float64) @ self.weights.T + self.biases).astype(numpy.float32)


def _layers(kind: str, width: int, hidden: int, signals: bool = False) -> dict[str, tuple[int, int]]:
    """(inputs, outputs) of each layer, in the order of the parameters."""
    if kind in ("kernel", "kernel@sc20"):
        return {"encode1": (_JOB + _GLOBAL if kind == "kernel" else 8, 32), "encode2": (32, 16), "score1": (16, 8),
                "score2": (8, 1)}
    if kind in ("index", "rank"):
        terms = len(_INDEX_TERMS if kind == "index" else _RANK_TERMS)
        shapes = {"score2": (terms, 1)}
        if kind == "index":
            shapes["wait"] = (len(_INDEX_WAIT), 1)
        if kind == "index" and signals:
            shapes.update(signal_wait=(_SIGNALS, 1), signal_known=(_SIGNALS, 1))
        if hidden:
            shapes.update(correct1=(terms + (_GLOBAL if kind == "index" else 0), hidden), correct2=(hidden, 1))
        return shapes
    shapes = {"encode1": (_JOB, width), "encode2": (width, width)}
    if kind == "attention":
        shapes.update({name: (width, width) for name in ("query", "key", "value", "mix")})
    return dict(shapes, group=(_GROUP, width // 2), context=(2 * width + width // 2 + _GLOBAL, width),
                score1=(2 * width, width), score2=(width, 1), wait=(width, 1))


def _relu(values: numpy.ndarray) -> numpy.ndarray:
    return numpy.maximum(values, numpy.float32(0))


def _products(terms: list, jobs: numpy.ndarray, whole: numpy.ndarray) -> numpy.ndarray:
    columns = []
    for feature, by_job, by_whole in terms:
        value = jobs[:, feature]
        if by_job is not None:
            value = value * jobs[:, by_job]
        if by_whole is not None:
            value = value * whole[by_whole]
        columns.append(value)
    return numpy.stack(columns, axis=1)


class _Network:
    """Scores of the tokens of one state and of WAIT."""

    def __init__(self, model: Mapping[str, Any], parameters: numpy.ndarray):
        network, normaliser = model["network"], model["normaliser"]
        self.kind, self.heads = network["kind"], network["heads"]
        self.alpha, at = parameters[0], 1
        self.layers = {}
        for name, (inputs, outputs) in _layers(self.kind, network["width"], network["hidden"], model["agenda"].get("signals", False)).items():
            weights = parameters[at:at + inputs * outputs].reshape(outputs, inputs)
            at += inputs * outputs
            self.layers[name] = _Layer(weights, parameters[at:at + outputs])
            at += outputs
        self.means = {name: numpy.asarray(normaliser[name], dtype=numpy.float32) for name in normaliser}

    def scores(self, jobs: numpy.ndarray, groups: numpy.ndarray, whole: numpy.ndarray,
               signals: numpy.ndarray | None = None) -> tuple[numpy.ndarray, Any]:
        jobs = (jobs - self.means["job_mean"]) * self.means["job_scale"]
        whole = (whole - self.means["global_mean"]) * self.means["global_scale"]
        if self.kind in ("kernel", "kernel@sc20"):
            return self._alone(jobs, whole)
        if self.kind in ("index", "rank"):
            return self._linear(jobs, whole, signals)
        return self._together(jobs, groups, whole)

    def _alone(self, jobs, whole):
        layers = self.layers
        rows = jobs[:, :8]
        if self.kind == "kernel":  # WAIT is a job without features of its own
            rows = numpy.concatenate([numpy.concatenate([jobs, numpy.zeros((1, _JOB), numpy.float32)]),
                                      numpy.broadcast_to(whole, (len(jobs) + 1, _GLOBAL))], axis=1)
        else:
            rows = numpy.concatenate([rows, numpy.zeros((1, 8), numpy.float32)])
        for name in ("encode1", "encode2", "score1"):
            rows = _relu(layers[name](rows))
        scores = layers["score2"](rows)[:, 0]
        return scores[:-1], scores[-1]

    def _linear(self, jobs, whole, signals):
        layers, index = self.layers, self.kind == "index"
        terms = _products(_INDEX_TERMS if index else _RANK_TERMS, jobs, whole)
        scores = layers["score2"](terms)[:, 0]
        if "correct1" in layers:
            seen = numpy.concatenate([terms, numpy.broadcast_to(whole, (len(jobs), _GLOBAL))], axis=1) if index else terms
            scores = scores + layers["correct2"](_relu(layers["correct1"](seen)))[:, 0]
        wait = layers["wait"](whole[_INDEX_WAIT])[0] if index else 0.0
        if "signal_wait" in layers:  # which also weigh the known run time
            wait = wait + layers["signal_wait"](signals)[0]
            scores = scores + jobs[:, _LOG_KNOWN] * layers["signal_known"](signals)[0]
        return scores, wait

    def _together(self, jobs, groups, whole):
        layers = self.layers
        own = _relu(layers["encode2"](_relu(layers["encode1"](jobs))))
        if self.kind == "attention":
            own = own + _relu(layers["mix"](self._attended(own)))
        width = own.shape[1]
        around = _relu(layers["group"](groups)).mean(axis=0) if len(groups) else numpy.zeros(width // 2, numpy.float32)
        context = _relu(layers["context"](numpy.concatenate([own.mean(axis=0), own.max(axis=0), around, whole])))
        hidden = _relu(layers["score1"](numpy.concatenate([own, numpy.broadcast_to(context, own.shape)], axis=1)))
        return layers["score2"](hidden)[:, 0], layers["wait"](context)[0]

    def _attended(self, own):
        parts = [numpy.split(self.layers[name](own), self.heads, axis=1) for name in ("query", "key", "value")]
        heads = []
        for query, key, value in zip(*parts):
            weight = query @ key.T / numpy.float32(numpy.sqrt(query.shape[1]))
            weight = numpy.exp(weight - weight.max(axis=1, keepdims=True))
            heads.append(weight / weight.sum(axis=1, keepdims=True) @ value)
        return numpy.concatenate(heads, axis=1)

    def __call__(self, observation: Mapping[str, numpy.ndarray]) -> numpy.ndarray:
        prior, mask = observation["prior"], observation["action_mask"]
        logits = numpy.full(prior.shape, _MASKED, dtype=numpy.float32)
        for e, jobs in enumerate(observation["jobs"]):
            there = jobs.any(axis=1)
            if not there.any():
                continue
            groups = observation["groups"][e]
            signals = observation["signals"][e] if "signal_wait" in self.layers else None
            scores, wait = self.scores(jobs[there], groups[groups.any(axis=1)], observation["global"][e], signals)
            logits[e, :-1][there] = self.alpha * prior[e, :-1][there] + scores
            logits[e, -1] = self.alpha * prior[e, -1] + wait
        return numpy.where(mask != 0, logits, _MASKED)


def _crc32c(data: bytes) -> int:
    table = []
    for rest in range(256):
        for _ in range(8):
            rest = (rest >> 1) ^ (0x82F63B78 if rest & 1 else 0)
        table.append(rest)
    total = 0xFFFFFFFF
    for byte in data:
        total = (total >> 8) ^ table[(total ^ byte) & 255]
    return total ^ 0xFFFFFFFF


def _read(folder: str) -> tuple[dict[str, Any], _Network]:
    """What the network of the folder chooses and knows, and the network."""
    path = os.path.join(folder, "model.json")
    try:
        with open(path, encoding="utf-8") as file:
            model = json.load(file)
        with open(os.path.join(folder, "weights.bin"), "rb") as file:
            data = file.read()
    except (OSError, ValueError) as error:
        raise _core.Error(f"{folder}: {error}") from None
    if not isinstance(model, dict) or (model.get("format"), model.get("version")) != ("gpusched trained scheduler", 1):
        raise _core.Error(f"{path}: expected the format 'gpusched trained scheduler', version 1")
    if len(data) != 4 * model["parameters"] or _crc32c(data) != model["weights_crc32c"]:
        raise _core.Error(f"{folder}/weights.bin: does not match size and checksum in model.json")
    network = model["network"] = dict({"hidden": 0, "hold_s": 0, "hold_jobs": 0, "heads": 4, "width": 32}, **model["network"])
    if network["hold_s"] or network["hold_jobs"] or model["agenda"].get("node_speeds"):
        raise _core.Error(f"{path}: a network that steers or chooses GPU types; run it as 'rl:{folder}'")
    options = {name: value for name, value in model["agenda"].items() if value != 0 or name != "starvation_s"}
    return options, _Network(model, numpy.frombuffer(data, dtype="<f4"))


def load_model(folder: str | os.PathLike) -> Agent:
    """Reads what `gpusched train` wrote as a function of observations, which needs numpy alone.

    Parameters
    ----------
    folder : str or os.PathLike
        It holds model.json and weights.bin, whose format this module's documentation tells.

    Returns
    -------
    Agent
        Takes an observation of a `VectorEnv` with its `options`; gives logits [num_envs, rows + 1], very low ones where
        action_mask is 0, or in mode preempt scores [num_envs, rows]. As a policy it chooses as `"rl:FOLDER"` does, but for
        ties and rounding.

    Raises
    ------
    Error
        A file is missing or is no such model; or the network is one whose weights are actions themselves (hold_s, hold_jobs)
        or that chooses GPU types (node_speeds), which `"rl:FOLDER"` runs.
    """
    options, act = _read(os.fspath(folder))
    preempt = options["mode"] == "preempt"

    def scores(observation: Mapping[str, numpy.ndarray]) -> numpy.ndarray:
        return act(observation)[:, :-1]

    return Agent(scores if preempt else act, name=os.path.basename(os.path.normpath(os.fspath(folder))), **options)
