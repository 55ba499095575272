# SPDX-License-Identifier: Apache-2.0
"""The trainers of examples/python as clients: short trainings that must be better than the networks they began with, on
jobs that training did not see, and the tables that judge them."""
import importlib.util
import os
import warnings

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


def test_stable_baselines_checker_and_ppo_take_the_environment_as_it_is():
    """No adapter: Gymnasium's name, SB3's checker with its defaults, DummyVecEnv, Monitor and MaskablePPO."""
    sb3 = pytest.importorskip("sb3_contrib")
    import gymnasium
    from stable_baselines3.common.env_checker import check_env
    from stable_baselines3.common.env_util import make_vec_env

    options = {"max_jobs": 8, "window_jobs": 32, "warmup_jobs": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # random actions that are not allowed, boxes without bounds
        check_env(gymnasium.make("gpusched/Lublin-v0", **options))
    env = make_vec_env("gpusched/Lublin-v0", n_envs=2, seed=3, env_kwargs=dict(options, on_invalid="raise"))
    model = sb3.MaskablePPO("MultiInputPolicy", env, n_steps=32, batch_size=32, n_epochs=1, seed=3, device="cpu")
    before = [parameter.clone() for parameter in model.policy.parameters()]
    model.learn(256)  # which raises if an action is not allowed
    assert any((a != b).any() for a, b in zip(before, model.policy.parameters()))
    assert model.ep_info_buffer and all(info["l"] > 0 for info in model.ep_info_buffer)


def test_maskable_ppo_learns_and_is_judged():
    pytest.importorskip("sb3_contrib")
    mean = means(example("maskable_ppo").main(["--steps", "20480"]))
    assert list(mean) == ["fifo", "saf", "saf+easy", "untrained", "maskable-ppo"]
    assert mean["maskable-ppo"] < min(mean["untrained"], mean["fifo"])
