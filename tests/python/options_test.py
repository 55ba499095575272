# SPDX-License-Identifier: Apache-2.0
"""Every keyword option of every function changes something or raises: none is taken and forgotten."""
import json
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

gs = pytest.importorskip("gpusched_sim")
from gpusched_sim import _core  # noqa: E402

HEADER = "job_id,submit_s,work_s,tasks,gpu_milli_per_task,estimate_s,user,family\n"
ROWS = "".join(f"j{i},{3 * i},{5 + 40 * (i % 5 == 0) + i % 7},{1 + i % 4},1000,{60 + i},u{i % 3},{'net' if i % 2 else 'bert'}\n"
               for i in range(60))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A trace and a file of each kind of condition."""
    folder = tmp_path_factory.mktemp("options")

    def write(name, text):
        (folder / name).write_text(text)
        return str(folder / name)

    return {
        "trace": write("jobs.csv", HEADER + ROWS),
        "bad": write("bad.csv", HEADER + ROWS + "x,now,1,1,1000,1,u,net\n"),
        "large": write("large.csv", HEADER + ROWS + "x,400,1,64,1000,1,u,net\n"),
        "failures": write("failures.json", '{"node": {"mtbf_h": 0.05, "repair_h": 0.01}}'),
        "stages": write("stages.json", '{"provision_s": 4}'),
        "elastic": write("elastic.json", '{"others": {"speedup": [[1, 1], [8, 4]]}}'),
        "changes": write("changes.csv", "time_s,job,change,value\n40,j11,cancel,\n"),
        "throughputs": write("speeds.csv", "family,gpu_type,throughput\nnet,GPU,1\nbert,GPU,2\n"),
    }


def condition_values(files):
    """A value of each condition that changes the jobs' runs, or that needs another option."""
    return {
        "placement": "worst-fit", "checkpoint_cost": 5, "restart_cost": 5, "checkpoint_interval": 3, "checkpoint_write": 2,
        "failures": files["failures"], "checkpoint_rule": "young", "stages": files["stages"], "elastic": files["elastic"],
        "changes": files["changes"], "profile": "none.json", "reference_profile": "A100",
        "throughputs": "none.csv", "reference_type": "V100", "throughput_fallback": "datasheet", "slowdown": 2.0,
        "span_speed": "nodes=0.5", "communication": "none.json", "reference_span": "narrowest", "interference": "throughputs",
    }


READING = {"format": "swf", "columns": "submit=nothing", "where": "gpus>1"}


def outcome(call):
    """What a call gives, as a text; of one that raises, its kind alone."""
    try:
        return call()
    except gs.Error:
        return "raises"


def replay_text(trace, **options):
    result = gs.replay(trace, options.pop("cluster", "4x4"), options.pop("policies", ("fifo", "las")), **options)
    return repr([(run.policy, run.metrics, run.jobs["end_s"].tolist(), run.intervals["node"].tolist()) for run in result]
                ) + repr(result.notes)


def test_every_option_of_replay_changes_something_or_raises(files):
    values = condition_values(files) | READING | {
        "backfill": "easy", "history_jobs": 5, "warmup_jobs": 5, "measure_jobs": 7, "warmup_time": 20, "measure_time": 50,
        "split": "user", "recorded": "none", "out": "folder", "trace_events": True, "timeline": True, "decision_times": True,
        "json": True}
    elsewhere = {"seed": (3, {"trace": "synthetic:philly:50", "cluster": "4x8"}), "drop_bad_rows": (True, {"trace": files["bad"]}),
                 "oversize": ("drop", {"trace": files["large"]})}
    own = {"trace", "cluster", "policy", "threads"}  # arguments; the last changes no result
    names = {keyword for keyword, *_ in _core.replay_keywords()}
    assert names == set(values) | set(elsewhere) | own, "a new option needs a value here"
    plain = outcome(lambda: replay_text(files["trace"]))
    for name, value in values.items():
        assert outcome(lambda: replay_text(files["trace"], **{name: value})) != plain, name
    for name, (value, given) in elsewhere.items():
        assert outcome(lambda: replay_text(**given, **{name: value})) != outcome(lambda: replay_text(**given)), name
    for name in ("elastic", "changes", "stages", "failures", "span_speed", "restart_cost", "placement"):
        assert outcome(lambda: replay_text(files["trace"], **{name: values[name]})) != "raises", name


def evaluate_text(traces, **options):
    result = gs.evaluate(traces, options.pop("clusters", "4x4"), options.pop("policies", ("fifo", "las")),
                         **{"window_jobs": 15, **options})
    return result.text + result.csv["windows.csv"]


def test_every_option_of_evaluate_changes_something_or_raises(files):
    values = condition_values(files) | READING | {
        "group": ["pair=sjf,saf"], "backfill": "easy", "protocol": "sc20", "window_jobs": 10, "windows": 2, "stride": 5,
        "warmup_jobs": 4, "from": 0.4, "to": 0.6, "figure": "avg_wait_s", "beside": ["p99_wait_s"], "mean": "geometric",
        "against": "las", "out": "folder", "json": True}
    values["elastic"] = "none.json"  # whose notes only the program prints
    elsewhere = {"seed": (3, {"traces": "synthetic:philly:50", "clusters": "4x8"}),
                 "drop_bad_rows": (True, {"traces": files["bad"]}), "oversize": ("drop", {"traces": files["large"]}),
                 "history": (True, {"traces": "synthetic:philly:400", "clusters": "2x8", "window_jobs": 100,
                                    "policies": ("sjf{estimate=history}", "fifo"), "windows": 2})}
    own = {"trace", "cluster", "policy", "threads"}
    names = {keyword for keyword, *_ in _core.evaluate_keywords()}
    assert names == set(values) | set(elsewhere) | own, "a new option needs a value here"
    plain = outcome(lambda: evaluate_text(files["trace"]))
    for name, value in values.items():
        assert outcome(lambda: evaluate_text(files["trace"], **{name: value})) != plain, name
    for name, (value, given) in elsewhere.items():
        assert outcome(lambda: evaluate_text(**given, **{name: value})) != outcome(lambda: evaluate_text(**given)), name


def test_every_option_of_a_sweep_changes_something_or_raises(files, tmp_path):
    sweep = {"base": {"trace": files["trace"], "cluster": "4x4"}, "grid": {"policy": ["fifo", "sjf"]}}

    def text(name, sweep=sweep, **options):
        done = gs.sweep(sweep, tmp_path / name, **options)
        return repr((done.done, done.timeouts, sorted(path.name for path in Path(done.out).iterdir())))

    plain = text("plain")
    values = {"time_limit": "soon", "files": True, "launcher": "slurm", "slurm_options": "--partition=x", "runs_per_task": 2}
    assert {keyword for keyword, *_ in _core.sweep_keywords()} == set(values) | {"out", "threads"}
    for name, value in values.items():
        assert outcome(lambda: text(name, **{name: value})) != plain, name


def env_text(files, **options):
    env = gs.VectorEnv(options.pop("trace", files["trace"]), options.pop("cluster", "4x4"), options.pop("num_envs", 2),
                       **{"window_jobs": 15, "stride": 5, **options})
    seen = [env.reset(seed=1)[0]]
    text = [repr(env.agent_options), repr(env.observation_space.shape)]
    for _ in range(12):
        observation, reward, *_ = env.step(env.heuristic_actions())
        seen.append(observation)
        text.append(repr(reward))
    return "".join(text) + repr([[numpy.round(array, 5).tolist() for array in step.values()] for step in seen])


def test_every_option_of_an_environment_changes_something_or_raises(files):
    pytest.importorskip("gymnasium")
    values = condition_values(files) | {
        "mode": "select_blocking", "knowledge": "oracle", "heuristic": "fcfs", "max_jobs": 4, "choose_nodes": True,
        "sc20_backfill": True, "weights": {"jct": 1}, "discount_per_s": 0.01, "window_jobs": 10,
        "warmup_jobs": 5, "stride": 3, "train_fraction": 0.3, "validation_fraction": 0.5, "arrival_scale": 0.5,
        "truncate": True, "split": "validation"}
    values |= {"elastic": "none.json", "restart_cost": "much", "checkpoint_cost": "much", "checkpoint_interval": "long"}
    elsewhere = {"oversize": ("drop", {"trace": files["large"], "split": "test", "window_jobs": 5}),
                 "envs_per_window": (4, {"num_envs": 4}), "split": ("test", {}), "truncate": (True, {"window_jobs": 6})}
    own = {"num_envs", "autoreset", "threads"}  # arguments; the last changes no result
    names = {keyword.split(".")[0] for keyword, *_ in _core.env_keywords()}
    assert names == set(values) | set(elsewhere) | own, "a new option needs a value here"
    plain = outcome(lambda: env_text(files))
    assert plain != "raises"
    for name in sorted(set(values) - set(elsewhere) - {"validation_fraction"}):
        assert outcome(lambda: env_text(files, **{name: values[name]})) != plain, name
    for name, (value, given) in elsewhere.items():
        changed = outcome(lambda: env_text(files, **given, **{name: value}))
        assert changed != outcome(lambda: env_text(files, **given)), name
    assert outcome(lambda: env_text(files, split="validation", validation_fraction=0.4)) != outcome(
        lambda: env_text(files, split="validation", validation_fraction=0.3))


def test_an_environment_takes_every_condition_by_the_name_of_its_flag():
    taken = {keyword for keyword, *_ in _core.env_keywords()}
    assert {keyword for keyword, *_ in _core.condition_keywords()} <= taken


@pytest.mark.parametrize("old, now", [("restart_cost_s", "restart_cost"), ("checkpoint_write_s", "checkpoint_write")])
def test_an_environment_says_what_an_option_is_called_now(files, old, now):
    pytest.importorskip("gymnasium")
    with pytest.raises(gs.Error, match=f"{old}: is called /?{now} now"):
        gs.VectorEnv(files["trace"], "4x4", **{old: 3})


def test_the_programs_name_of_an_argument_is_another_name_of_it(files):
    assert [run.policy for run in gs.replay(files["trace"], "4x4", policy="las")] == ["las"]
    assert [run.policy for run in gs.replay(files["trace"], "4x4", policy=["las", "sjf"])] == ["las", "sjf"]
    assert [run.policy for run in gs.replay(files["trace"], "4x4")] == ["fifo"]
    with pytest.raises(gs.Error, match="nonsense"):
        gs.replay(files["trace"], "4x4", policy="nonsense")
    with pytest.raises(gs.Error, match="policy: another name of policies, which is given too"):
        gs.replay(files["trace"], "4x4", "fifo", policy="las")
    both = gs.evaluate(files["trace"], policy=["las", "sjf"], cluster="4x4", window_jobs=15)
    assert [run["policy"] for run in both.data["runs"]] == ["las", "sjf"]
    for name, value in (("trace", files["trace"]), ("cluster", "4x4"), ("policy", "las")):
        with pytest.raises(gs.Error, match=f"{name}: another name of"):
            gs.evaluate(files["trace"], "4x4", "fifo", **{name: value})


def test_reading_options_are_not_for_a_trace_that_was_read(files):
    trace = gs.read_trace(files["trace"])
    with pytest.raises(gs.Error, match="where: of reading a trace"):
        gs.replay(trace, "4x4", where="gpus>1")


def test_the_types_of_options_are_those_of_the_tables():
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, root / "scripts/python_options.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_options_with_values_of_no_type_are_refused(files):
    for name in ("restart_cost", "seed", "placement"):
        with pytest.raises(gs.Error, match=f"{name}: expected"):
            gs.replay(files["trace"], "4x4", **{name: [1]})
    with pytest.raises(gs.Error):
        gs.replay(files["trace"], "4x4", seed=json)
