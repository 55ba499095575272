# SPDX-License-Identifier: Apache-2.0
"""Folders that `gpusched train` wrote, as ONNX files: the forward passes of `gpusched_sim.models` as graphs."""
from __future__ import annotations

import json
import os
from typing import Any

import numpy

from .agents import _METADATA
from .models import _GLOBAL, _GROUP, _INDEX_TERMS, _INDEX_WAIT, _JOB, _LOG_KNOWN, _MASKED, _RANK_TERMS, _SIGNALS, _Network, _read

_OPSET = 17


class _Graph:
    """Nodes of a graph; every operation gives the name of its result. E environments, R rows, G groups."""

    def __init__(self, network: _Network):
        import onnx

        self.onnx, self.network = onnx, network
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any, kind: Any = numpy.float32) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(numpy.asarray(value, dtype=kind), name))
        return name

    def __call__(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = f"n{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(values, numpy.int64)

    def layer(self, name: str, rows: str) -> str:
        """In 64 bits, as models._Layer."""
        weights, biases = self.network.layers[name]
        product = self("MatMul", self("Cast", rows, to=self.onnx.TensorProto.DOUBLE), self.constant(weights.T, numpy.float64))
        return self("Cast", self("Add", product, self.constant(biases, numpy.float64)), to=self.onnx.TensorProto.FLOAT)

    def relu_layer(self, name: str, rows: str) -> str:
        return self("Relu", self.layer(name, rows))

    def columns(self, values: str, numbers: list[int]) -> str:
        return self("Gather", values, self.integers(*numbers), axis=-1)

    def normalised(self, values: str, mean: str, scale: str) -> str:
        means = self.network.means
        return self("Mul", self("Sub", values, self.constant(means[mean])), self.constant(means[scale]))

    def there(self, rows: str) -> str:
        """[E, rows, 1]: which rows are no padding."""
        return self("Greater", self("ReduceMax", self("Abs", rows), axes=[2]), self.constant(0))

    def beside(self, rows: str, whole: str) -> str:
        """[E, R, columns of both]: `whole`, [E, columns], beside every row."""
        count = self("Slice", self("Shape", rows), self.integers(0), self.integers(2))
        shape = self("Concat", count, self("Slice", self("Shape", whole), self.integers(1), self.integers(2)), axis=0)
        return self("Concat", rows, self("Expand", self("Unsqueeze", whole, self.integers(1)), shape), axis=2)

    def with_wait(self, rows: str) -> str:
        """A row of zeros after the others."""
        return self("Pad", rows, self.integers(0, 0, 0, 0, 1, 0))

    def scores(self, jobs: str, groups: str, whole: str, there: str) -> str:
        """[E, R + 1]: of the rows and of WAIT."""
        scaled = self.normalised(jobs, "job_mean", "job_scale")
        whole = self.normalised(whole, "global_mean", "global_scale")
        kind = self.network.kind
        if kind in ("kernel", "kernel@sc20"):
            rows = self.beside(self.with_wait(scaled), whole) if kind == "kernel" else self.with_wait(self.columns(scaled, list(range(8))))
            for name in ("encode1", "encode2", "score1"):
                rows = self.relu_layer(name, rows)
            return self("Squeeze", self.layer("score2", rows), self.integers(2))
        rows, wait = self.linear(scaled, whole) if kind in ("index", "rank") else self.together(scaled, groups, whole, there)
        return self("Concat", self("Squeeze", rows, self.integers(2)), wait, axis=1)

    def products(self, terms: list, jobs: str, whole: str) -> str:
        """As models._products."""
        ones = [term[1] is None for term in terms]
        product = self.columns(jobs, [term[0] for term in terms])
        others = self.columns(jobs, [term[1] or 0 for term in terms])
        product = self("Mul", product, self("Where", self.constant(ones, numpy.bool_), self.constant(1), others))
        if all(term[2] is None for term in terms):
            return product
        ones = [term[2] is None for term in terms]
        of_whole = self("Unsqueeze", self.columns(whole, [term[2] or 0 for term in terms]), self.integers(1))
        return self("Mul", product, self("Where", self.constant(ones, numpy.bool_), self.constant(1), of_whole))

    def linear(self, jobs: str, whole: str) -> tuple[str, str]:
        is_index = self.network.kind == "index"
        terms = self.products(_INDEX_TERMS if is_index else _RANK_TERMS, jobs, whole)
        scores = self.layer("score2", terms)
        if "correct1" in self.network.layers:
            seen = self.beside(terms, whole) if is_index else terms
            scores = self("Add", scores, self.layer("correct2", self.relu_layer("correct1", seen)))
        if "signal_wait" in self.network.layers:
            gain = self("Unsqueeze", self.layer("signal_known", "signals"), self.integers(1))
            scores = self("Add", scores, self("Mul", self.columns(jobs, [_LOG_KNOWN]), gain))
            return scores, self("Add", self.layer("wait", self.columns(whole, _INDEX_WAIT)), self.layer("signal_wait", "signals"))
        if is_index:
            return scores, self.layer("wait", self.columns(whole, _INDEX_WAIT))
        return scores, self("Mul", self.columns(whole, [0]), self.constant(0))

    def mean_of(self, rows: str, there: str) -> str:
        """[E, columns]: of the rows that are there; 0 where none is."""
        present = self("Cast", there, to=self.onnx.TensorProto.FLOAT)
        total = self("ReduceSum", self("Mul", rows, present), self.integers(1), keepdims=0)
        count = self("ReduceSum", present, self.integers(1), keepdims=0)
        return self("Div", total, self("Max", count, self.constant(1)))

    def together(self, jobs: str, groups: str, whole: str, there: str) -> tuple[str, str]:
        own = self.relu_layer("encode2", self.relu_layer("encode1", jobs))
        if self.network.kind == "attention":
            own = self("Add", own, self.relu_layer("mix", self.attended(own, there)))
        around = self.mean_of(self.relu_layer("group", groups), self.there(groups))
        most = self("ReduceMax", self("Where", there, own, self.constant(_MASKED)), axes=[1], keepdims=0)
        context = self.relu_layer("context", self("Concat", self.mean_of(own, there), most, around, whole, axis=1))
        hidden = self.relu_layer("score1", self.beside(own, context))
        return self.layer("score2", hidden), self.layer("wait", context)

    def attended(self, own: str, there: str) -> str:
        width = self.network.layers["query"].weights.shape[1]
        size = width // self.network.heads
        absent = self("Where", self("Transpose", there, perm=[0, 2, 1]), self.constant(0), self.constant(_MASKED))
        parts = {name: self.layer(name, own) for name in ("query", "key", "value")}
        heads = []
        for head in range(self.network.heads):
            query, key, value = (self.columns(parts[name], list(range(head * size, (head + 1) * size))) for name in parts)
            weight = self("MatMul", query, self("Transpose", key, perm=[0, 2, 1]))
            weight = self("Add", self("Div", weight, self.constant(numpy.sqrt(size))), absent)
            heads.append(self("MatMul", self("Softmax", weight, axis=2), value))
        return self("Concat", *heads, axis=2)

    def model(self, is_preempt: bool) -> Any:
        """The file: inputs and output as `onnx_agent` reads them."""
        helper, kinds = self.onnx.helper, self.onnx.TensorProto
        shapes = {"jobs": ["E", "R", _JOB], "groups": ["E", "G", _GROUP], "global": ["E", _GLOBAL], "prior": ["E", "A"],
                  "action_mask": ["E", "A"], "signals": ["E", _SIGNALS]}
        there = self.there("jobs")
        every = self("Pad", self("Squeeze", self("Cast", there, to=kinds.FLOAT), self.integers(2)), self.integers(0, 0, 0, 1),
                     self.constant(1))
        scores = self("Add", self("Mul", "prior", self.constant(self.network.alpha)), self.scores("jobs", "groups", "global", there))
        allowed = self("And", self("Cast", every, to=kinds.BOOL), self("Cast", "action_mask", to=kinds.BOOL))
        last = self("Where", allowed, scores, self.constant(_MASKED))
        if is_preempt:
            last = self("Slice", last, self.integers(0), self.integers(-1), self.integers(1))
        self.nodes[-1].output[0] = "logits"
        used = {name for node in self.nodes for name in node.input}
        inputs = [helper.make_tensor_value_info(name, kinds.FLOAT, shape) for name, shape in shapes.items() if name in used]
        output = helper.make_tensor_value_info("logits", kinds.FLOAT, ["E", "B"])
        graph = helper.make_graph(self.nodes, "gpusched", inputs, [output], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=8)


def export_onnx(folder: str | os.PathLike, path: str | os.PathLike) -> None:
    """Writes what `gpusched train` wrote as an ONNX file, which is a policy by itself (`onnx_agent`).

    Parameters
    ----------
    folder : str or os.PathLike
        As `load_model` takes it.
    path : str or os.PathLike
        The file. Inputs: `jobs` [E, R, 12], `groups` [E, G, 4], `global` [E, 14], `signals` [E, 22], `prior` and `action_mask`
        [E, R + 1], those that the network needs, in single precision, with any E and R; output: `logits` [E, R + 1], in mode preempt [E, R].

    Raises
    ------
    Error
        As `load_model`.
    ImportError
        onnx is not installed (`pip install 'gpusched-sim[onnx]'`).
    """
    options, network = _read(os.fspath(folder))
    model = _Graph(network).model(options["mode"] == "preempt")
    model.metadata_props.add(key=_METADATA, value=json.dumps(options))
    import onnx

    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, os.fspath(path))
