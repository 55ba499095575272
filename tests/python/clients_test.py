# SPDX-License-Identifier: Apache-2.0
"""The trainers of examples/python as clients: short trainings that must be better than the networks they began with, on
jobs that training did not see, and the tables that judge them."""
import importlib.util
import os

import pytest

gs = pytest.importorskip("gpusched_sim")
pytest.importorskip("torch")
pytest.importorskip("gymnasium")
EXAMPLES = os.path.join(os.path.dirname(__file__), "../../examples/python")
FIGURE = "avg_bounded_slowdown"


def example(name):
    spec = importlib.util.spec_from_file_location(name, os.path.join(EXAMPLES, f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def means(result):
    return {run["policy"]: run["metrics"][FIGURE] for run in result.data["runs"]}


def test_ppo_learns_and_its_onnx_file_is_judged(tmp_path):
    pytest.importorskip("onnxruntime")
    path = str(tmp_path / "agent.onnx")
    result = example("ppo").main(["--out", path, "--rounds", "10"])
    mean = means(result)
    assert list(mean) == ["fifo", "saf", "saf+easy", "untrained", "ppo"]
    assert mean["ppo"] < min(mean["untrained"], mean["fifo"])
    again = gs.evaluate("synthetic:lublin", "256x1", {"untrained": str(tmp_path / "agent-untrained.onnx"), "ppo": path}, seed=2,
                        window_jobs=96, warmup_jobs=32, oversize="drop", windows=64, figure=FIGURE, mean="geometric")
    assert [run["windows"] for run in again.data["runs"]] == [run["windows"] for run in result.data["runs"][3:]]


def test_maskable_ppo_learns_and_is_judged():
    pytest.importorskip("sb3_contrib")
    mean = means(example("maskable_ppo").main(["--steps", "20480"]))
    assert list(mean) == ["fifo", "saf", "saf+easy", "untrained", "maskable-ppo"]
    assert mean["maskable-ppo"] < min(mean["untrained"], mean["fifo"])
