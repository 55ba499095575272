# SPDX-License-Identifier: Apache-2.0
"""Agents as policies: the same choices as the environment's, ONNX files, the program's digits, and bad answers."""
import json
import os
import subprocess

import numpy
import pytest

import gpusched_sim as gs

TRACE = "synthetic:philly"
OPTIONS = {"mode": "select_blocking", "knowledge": "user", "heuristic": "sjf", "max_jobs": 64}
WINDOWS = {"window_jobs": 128, "windows": 6}


def by_prior(observation):
    """What the heuristic prefers: the greatest prior."""
    return observation["prior"].astype(numpy.float64)


def field(number, content):
    """A length-delimited field, or a number, of a protocol buffer."""
    def varint(value):
        return bytes([value]) if value < 128 else bytes([value % 128 + 128]) + varint(value // 128)

    if isinstance(content, int):
        return varint(number * 8) + varint(content)
    content = content.encode() if isinstance(content, str) else content
    return varint(number * 8 + 2) + varint(len(content)) + content


def onnx_of_prior(operator="Identity", given="prior"):
    """The network scores = prior as an ONNX file, field by field as onnx.proto3 numbers them."""
    def value(name):
        shape = field(2, field(1, field(2, "environments")) + field(1, field(2, "actions")))
        return field(1, name) + field(2, field(1, field(1, 1) + shape))

    node = field(1, given) + field(2, "scores") + field(4, operator)
    graph = field(1, node) + field(2, "prior") + field(11, value(given)) + field(12, value("scores"))
    return field(1, 8) + field(7, graph) + field(8, field(2, 17))


@pytest.fixture
def onnx_file(tmp_path):
    pytest.importorskip("onnxruntime")
    path = tmp_path / "agent.onnx"
    path.write_bytes(onnx_of_prior())
    return path


def program(*arguments):
    path = os.environ.get("GPUSCHED_PROGRAM")
    if not path:
        pytest.skip("GPUSCHED_PROGRAM is not set")
    return subprocess.run([path, *arguments], check=True, capture_output=True, text=True).stdout


def test_an_agent_that_follows_the_prior_is_the_policy_agenda():
    estimate = numpy.random.default_rng(1).permutation(200) + 1.0  # all distinct: no ties of rounded priors
    trace = gs.trace_from_columns(numpy.arange(200.0) * 20, estimate, estimate % 4 + 1, estimate_s=estimate)
    named, mine = gs.replay(trace, 6, ["agenda{mode=select_blocking,heuristic=sjf,knowledge=user}",
                                      gs.Agent(by_prior, name="mine", **dict(OPTIONS, max_jobs=4096))])
    assert mine.policy == "mine" and mine.decisions > 0 and mine.run_times == named.run_times == "requested"
    assert mine.history_hash == named.history_hash


def test_an_agent_takes_the_options_of_its_environment():
    pytest.importorskip("gymnasium")
    env = gs.VectorEnv(TRACE, None, 2, window_jobs=64, **OPTIONS)
    agent = gs.Agent(by_prior, env)
    assert {name: agent.options[name] for name in OPTIONS} == OPTIONS
    observation = env.reset(seed=1)[0]
    one = {name: array[:1] for name, array in observation.items()}
    assert agent.choose(one) == env.heuristic_actions()[0]


def test_an_environment_shows_what_the_policy_sees():
    """Actions chosen in an episode and by the policy on the same jobs are the same."""
    pytest.importorskip("gymnasium")
    trace = gs.trace_from_columns([0, 1, 2, 3, 4, 5], [50, 40, 30, 20, 10, 5], [2, 2, 1, 1, 2, 1])
    env = gs.VectorEnv(trace, 2, 1, window_jobs=6, train_fraction=1, validation_fraction=0, autoreset_mode="disabled",
                       **OPTIONS)
    seen, shown = [], []
    observation = env.reset(seed=1)[0]
    for _ in range(100):
        seen.append({name: array.tobytes() for name, array in observation.items()})
        observation, _, terminated, truncated, _ = env.step(env.heuristic_actions())
        if terminated[0] or truncated[0]:
            break

    def watch(given):
        shown.append({name: array.tobytes() for name, array in given.items()})
        return by_prior(given)

    gs.replay(trace, 2, gs.Agent(watch, env))
    assert len(shown) >= 3 and shown == seen


def test_an_onnx_file_is_a_policy(onnx_file):
    agent = gs.onnx_agent(onnx_file, **OPTIONS)
    reversed_prior = gs.Agent(lambda observation: -by_prior(observation), **OPTIONS)
    result = gs.evaluate(TRACE, "4x8", {"onnx": agent, "python": gs.Agent(by_prior, **OPTIONS), "reversed": reversed_prior},
                         oversize="drop", **WINDOWS)
    runs = {run["policy"]: run for run in result.data["runs"]}
    assert runs["onnx"]["windows"] == runs["python"]["windows"] != runs["reversed"]["windows"]
    assert result.costs["onnx"][0] > 0 and result.costs["onnx"][1] > 0


def test_a_marked_onnx_file_needs_no_options(onnx_file):
    pytest.importorskip("gymnasium")
    with pytest.raises(gs.Error, match="does not say what it chooses"):
        gs.evaluate(TRACE, None, ["fifo", str(onnx_file)], **WINDOWS)
    gs.mark_onnx(onnx_file, gs.VectorEnv(TRACE, None, 1, window_jobs=64, **OPTIONS))
    assert {name: gs.onnx_agent(onnx_file).options[name] for name in OPTIONS} == OPTIONS
    result = gs.evaluate(TRACE, None, ["fifo", onnx_file], **WINDOWS)
    assert str(onnx_file) in result.text and "python-" not in result.text


@pytest.mark.parametrize("content, line", [
    (b"", "agent.onnx"), (b"not a network", "agent.onnx"), (onnx_of_prior()[:-7], "agent.onnx"),
    (onnx_of_prior("NoSuchOperator"), "NoSuchOperator"), (onnx_of_prior(given="queue"), "input queue"),
])
def test_bad_onnx_files_are_one_line(onnx_file, content, line):
    onnx_file.write_bytes(content)
    with pytest.raises(gs.Error, match=line) as error:
        gs.onnx_agent(onnx_file, **OPTIONS)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("answer, line", [
    (-1, "not allowed"), (10**6, "not allowed"), (2**80, "answered object"), (None, "answered object"),
    ("x", "answered"), ([1, 2, 3], "65 scores"), (numpy.zeros(64), "65 scores"), (numpy.zeros((2, 65)), "65 scores"),
    (numpy.full(65, numpy.nan), "NaN"), (True, "answered bool"), (0.5, "65 scores"),
])
def test_a_bad_answer_is_one_line(answer, line):
    with pytest.raises(gs.Error, match=line) as error:
        gs.replay(TRACE, None, gs.Agent(lambda observation: answer, **OPTIONS))
    assert "\n" not in str(error.value)


def test_an_agent_that_raises_ends_the_run_with_its_exception():
    def act(observation):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        gs.evaluate(TRACE, None, ["fifo", gs.Agent(act, **OPTIONS)], **WINDOWS)


def test_arrays_that_an_agent_kept_or_changed_change_nothing():
    kept = []

    def act(observation):
        scores = by_prior(observation)
        kept.append((observation["jobs"], observation["jobs"].copy()))
        observation["prior"][:] = 0
        return scores

    first, second = gs.replay(TRACE, None, {"a": gs.Agent(act, **OPTIONS), "b": gs.Agent(by_prior, **OPTIONS)})
    assert first.history_hash == second.history_hash
    assert all(numpy.array_equal(array, copy) for array, copy in kept)


@pytest.mark.parametrize("options, line", [
    ({"mod": "inspect"}, "mod: no such option"), ({"mode": "no"}, "mode: expected one of"), ({"mode": "preempt", "choose_nodes": True}, "preempt"),
    ({"max_jobs": 1}, "max_jobs"), ({"max_jobs": "x"}, "max_jobs"), ({"mode": object()}, "options of the agent"),
])
def test_bad_options_of_an_agent_are_one_line(options, line):
    with pytest.raises(gs.Error, match=line):
        gs.replay(TRACE, None, gs.Agent(by_prior, **options))


def test_an_evaluation_has_the_digits_of_the_program(tmp_path):
    printed = program("evaluate", TRACE, "--policy", "fifo,sjf,las", "--window-jobs", "128", "--windows", "6",
                      "--out", str(tmp_path / "out"))
    result = gs.evaluate(TRACE, None, ["fifo", "sjf", "las"], **WINDOWS)
    assert result.text == printed
    for name, text in result.csv.items():
        assert text == (tmp_path / "out" / name).read_text()
    loud = json.loads(program("evaluate", TRACE, "--policy", "fifo,sjf,las", "--window-jobs", "128", "--windows", "6", "--json"))
    assert result.data["runs"] == loud["runs"]


def test_trained_folders_are_evaluated_as_by_the_program():
    folder = os.path.join(os.path.dirname(__file__), "../../models/philly")
    rows = ["fifo", "rl:builtin/philly", f"rl:{folder}"]
    printed = program("evaluate", TRACE, "--policy", ",".join(rows), "--window-jobs", "128", "--windows", "6")
    assert gs.evaluate(TRACE, None, rows, **WINDOWS).text == printed


@pytest.mark.parametrize("name", ["fifo", "a b", "{x}", "rl:x", "./mine.so", "naïve", "a,b", "python-2"])
def test_callables_keep_their_names(name):
    result = gs.evaluate(TRACE, None, {"plain": "sjf", name: gs.Agent(by_prior, **OPTIONS), "other": gs.Agent(by_prior, **OPTIONS)},
                         against=name, **WINDOWS)
    assert [run["policy"] for run in result.data["runs"]] == ["sjf", name, "other"]
    assert result.data["runs"][0]["comparison"]["against"] == name
    assert f"compared with {name}" in result.text


def test_tables_of_an_evaluation():
    pandas = pytest.importorskip("pandas")
    result = gs.evaluate(TRACE, None, ["fifo", "sjf"], **WINDOWS)
    assert isinstance(result.comparison(), pandas.DataFrame) and list(result.comparison()["name"]) == ["fifo", "sjf"]
    assert len(result.windows()) == 12
