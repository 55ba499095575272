# SPDX-License-Identifier: Apache-2.0
"""Folders of trained networks, read in Python: the same choices as the program makes with them, for every kind of network."""
import json
import os
import zlib

import numpy
import pytest

import gpusched_sim as gs
from gpusched_sim import models

MODELS = os.path.join(os.path.dirname(__file__), "../../models")
TRACE = "synthetic:philly:600"
SHAPES = {"job_mean": 12, "job_scale": 12, "global_mean": 14, "global_scale": 14}


def random_model(folder, kind, hidden=0, mode="fit_or_wait", seed=1, signals=False):
    """A folder with random weights; the critic behind them has two hidden layers of 4 units."""
    draw = numpy.random.default_rng(seed)
    width, critic, seen = 8, 4, 12 + 4 + 14 + 6
    count = 1 + sum((i + 1) * o for i, o in models._layers(kind, width, hidden, signals).values())
    count += (seen + 1) * critic + (critic + 1) * critic + critic + 1
    parameters = draw.normal(0, 0.5, count).astype("<f4")
    folder.mkdir()
    (folder / "weights.bin").write_bytes(parameters.tobytes())
    (folder / "model.json").write_text(json.dumps({
        "format": "gpusched trained scheduler", "version": 1, "job_features": 12, "global_features": 14, "group_features": 4,
        "agenda": {"mode": mode, "knowledge": "oracle", "heuristic": "sjf", "max_jobs": 64, "choose_nodes": False,
                   "sc20_backfill": False, "starvation_s": 7200.0 if mode == "fit_or_wait" else 0.0, "signals": signals},
        "network": {"kind": kind, "width": width, "heads": 2, "critic_width": critic, "alpha": 1.0, "hidden": hidden, "hold_s": 0.0,
                    "deviation": 0.1},
        "normaliser": {name: (draw.uniform(0.5, 1.5, size) if "scale" in name else draw.normal(0, 0.3, size)).astype("f4").tolist()
                       for name, size in SHAPES.items()},
        **({"signal_features": 22} if signals else {}), "parameters": count, "weights_crc32c": models._crc32c(parameters.tobytes())}))
    return str(folder)


def hashes(folder, **options):
    runs = gs.replay(TRACE, "4x8", [f"rl:{folder}", gs.load_model(folder), "fifo"], oversize="drop", **options)
    assert runs[0].history_hash != runs[2].history_hash
    return runs[0].history_hash, runs[1].history_hash


@pytest.mark.parametrize("name", ["hpc", "philly"])
def test_shipped_models_choose_alike(name):
    program, python = hashes(os.path.join(MODELS, name))
    assert program == python


@pytest.fixture
def power(tmp_path):
    hours = "".join(f"{hour},{200 + 90 * ((hour * 7) % 5)}\n" for hour in range(400))
    (tmp_path / "carbon.csv").write_text("hour,carbon_intensity\n" + hours)
    (tmp_path / "power.json").write_text(json.dumps({"gpus": {"any": {"full_w": 300}}, "carbon": "carbon.csv"}))
    return tmp_path / "power.json"


@pytest.mark.parametrize("hidden", [0, 5])
def test_a_network_that_reads_signals_chooses_alike(tmp_path, power, hidden):
    folder = random_model(tmp_path / "model", "index", hidden, signals=True)
    program, python = hashes(folder, power=power)
    assert program == python
    with pytest.raises(gs.Error, match="power caps"):
        hashes(folder)


@pytest.mark.parametrize("hidden", [0, 5])
def test_a_network_that_reads_signals_is_an_onnx_file(tmp_path, power, hidden):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    folder = random_model(tmp_path / "model", "index", hidden, signals=True)
    gs.export_onnx(folder, tmp_path / "model.onnx")
    runs = gs.replay(TRACE, "4x8", [f"rl:{folder}", gs.onnx_agent(tmp_path / "model.onnx")], oversize="drop", power=power)
    assert runs[0].history_hash == runs[1].history_hash


EVERY_NETWORK = pytest.mark.parametrize("kind, hidden, mode", [
    ("index", 0, "fit_or_wait"), ("index", 5, "reserve"), ("rank", 0, "preempt"), ("rank", 6, "preempt"), ("kernel", 0, "fit_or_wait"),
    ("kernel@sc20", 0, "select_blocking"), ("deepsets", 0, "fit_or_wait"), ("attention", 0, "backfill"),
])


@EVERY_NETWORK
def test_every_network_chooses_alike(tmp_path, kind, hidden, mode):
    program, python = hashes(random_model(tmp_path / "model", kind, hidden, mode))
    assert program == python


@EVERY_NETWORK
def test_every_network_is_an_onnx_file(tmp_path, kind, hidden, mode):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    folder, file = random_model(tmp_path / "model", kind, hidden, mode), str(tmp_path / "model.onnx")
    gs.export_onnx(folder, file)
    function, network = gs.load_model(folder), gs.onnx_agent(file)
    assert network.options == function.options
    env = gs.VectorEnv("synthetic:philly", "4x8", 5, window_jobs=64, oversize="drop", **function.options)
    observation, _ = env.reset(seed=1)
    for _ in range(30):
        logits = function(observation)
        numpy.testing.assert_allclose(network(observation), logits, rtol=1e-4, atol=1e-5)
        observation = env.step(logits if mode == "preempt" else logits.argmax(axis=1))[0]
    runs = gs.replay(TRACE, "4x8", [f"rl:{folder}", file], oversize="drop")
    assert runs[0].history_hash == runs[1].history_hash


def test_a_model_is_a_function_of_observations():
    agent = gs.load_model(os.path.join(MODELS, "hpc"))
    env = gs.VectorEnv("synthetic:philly", "8x8", 5, window_jobs=64, oversize="drop", **agent.options)
    observation, _ = env.reset(seed=1)
    for _ in range(50):
        logits = agent(observation)
        assert logits.shape == (5, 129) and logits.dtype == numpy.float32
        assert ((logits > -1e29) == (observation["action_mask"] != 0)).all()
        observation = env.step(logits.argmax(axis=1))[0]


def test_the_checksum_is_crc32c():
    assert models._crc32c(b"123456789") == 0xE3069283 != zlib.crc32(b"123456789")  # RFC 3720


def test_bad_folders_are_one_line(tmp_path):
    with pytest.raises(gs.Error, match="model.json"):
        gs.load_model(tmp_path)
    folder = random_model(tmp_path / "model", "kernel")
    for file, change, line in (("weights.bin", lambda data: data[:-4], "checksum"),
                               ("weights.bin", lambda data: data[:-1] + b"\1", "checksum"),
                               ("model.json", lambda data: data.replace(b'"version": 1', b'"version": 2'), "version 1"),
                               ("model.json", lambda data: b"[]", "expected the format"),
                               ("model.json", lambda data: data.replace(b'"hold_s": 0.0', b'"hold_s": 60.0'), "steers")):
        path = os.path.join(folder, file)
        with open(path, "rb") as opened:
            before = opened.read()
        with open(path, "wb") as opened:
            opened.write(change(before))
        with pytest.raises(gs.Error, match=line):
            gs.load_model(folder)
        with open(path, "wb") as opened:
            opened.write(before)
    gs.load_model(folder)
