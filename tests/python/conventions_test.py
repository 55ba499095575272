# SPDX-License-Identifier: Apache-2.0
"""What other libraries expect of environments: Gymnasium's names, checkers and wrappers with their defaults, copies, pickles,
seeds by environment, texts of nodes and queue, mode preempt, and several traces by turns."""
import copy
import os
import pickle
import subprocess
import sys
import warnings

import numpy
import pytest

import gpusched_sim as gs

gymnasium = pytest.importorskip("gymnasium")
SMALL = {"window_jobs": 32, "stride": 32, "max_jobs": 16}
NAMES = ["gpusched/Philly-v0", "gpusched/PhillyPreempt-v0", "gpusched/Lublin-v0"]


@pytest.fixture(scope="module")
def trace():
    return gs.read_trace("synthetic:philly")


def make(trace, num_envs=3, **options):
    return gs.VectorEnv(trace, "8x8", num_envs, **dict(SMALL, **options))


def same(a, b):
    return a.keys() == b.keys() and all(numpy.array_equal(a[name], b[name]) for name in a)


def go_on(env, steps):
    """Observations and rewards of the heuristic's next steps."""
    results = [env.step(env.heuristic_actions()) for _ in range(steps)]
    return [(result[0], result[1].tolist(), result[2].tolist()) for result in results]


def assert_equal_runs(first, second):
    for a, b in zip(first, second):
        assert same(a[0], b[0]) and a[1:] == b[1:]


@pytest.mark.parametrize("name", NAMES)
def test_gymnasiums_checker_accepts_the_defaults(name):
    from gymnasium.utils.env_checker import check_env
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # boxes without bounds, and random actions that are not allowed
        check_env(gymnasium.make(name).unwrapped)


@pytest.mark.parametrize("name", NAMES)
def test_gymnasium_makes_environments_by_name(name):
    env = gymnasium.make(name, render_mode="ansi")
    observation, _ = env.reset(seed=1)
    assert env.observation_space.contains(observation)
    assert env.render() == env.unwrapped.vector.render()[0]
    many = gymnasium.make_vec(name, num_envs=3)
    assert isinstance(many.unwrapped, gs.VectorEnv) and many.num_envs == 3
    apart = gymnasium.make_vec(name, num_envs=2, vectorization_mode="sync")
    observation, _ = apart.reset(seed=5)
    assert apart.observation_space.contains(observation)
    assert same({key: value[0] for key, value in observation.items()}, gymnasium.make(name).reset(seed=5)[0])
    with pytest.raises(gs.Error, match="did you mean 'max_jobs'"):
        gymnasium.make(name, max_job=3)


@pytest.mark.parametrize("code", [
    "import gymnasium, gpusched_sim; gymnasium.make_vec('gpusched/Philly-v0', num_envs=2)",
    "import gpusched_sim, gymnasium; gymnasium.register_envs(gpusched_sim); gymnasium.make('gpusched/Lublin-v0')",
    "import gymnasium; gymnasium.make('gpusched_sim:gpusched/Philly-v0')"])
def test_names_are_known_after_an_import(code):
    paths = os.path.dirname(os.path.dirname(gs.__file__))
    subprocess.run([sys.executable, "-W", "error", "-c", code], env=dict(os.environ, PYTHONPATH=paths), check=True)


def test_names_take_options(trace):
    env = gymnasium.make("gpusched/Philly-v0", trace=trace, cluster="4x8", max_jobs=9)
    assert env.action_space.n == 10


def test_random_actions_are_replaced_with_a_warning_or_raise(trace):
    env = make(trace)
    env.action_space.seed(1)
    env.reset(seed=1)
    with pytest.warns(UserWarning, match="action_mask forbids"):
        replaced = [env.step(env.action_space.sample())[4].get("replaced_actions", numpy.zeros(3)) for _ in range(20)]
    assert 0 < numpy.sum(replaced) <= 60
    env = make(trace, on_invalid="raise")
    env.reset(seed=1)
    with pytest.raises(gs.Error, match="not allowed"):
        env.step([3, 16, 12])


def test_gymnasiums_statistics_are_those_of_the_environment(trace):
    from gymnasium.wrappers import RecordEpisodeStatistics
    from gymnasium.wrappers.vector import DictInfoToList
    from gymnasium.wrappers.vector import RecordEpisodeStatistics as RecordVector

    env = RecordVector(make(trace))
    env.reset(seed=1)
    ended = 0
    while ended < 9:
        info = env.step(env.unwrapped.heuristic_actions())[4]
        if "episode" in info:
            mask = info["_episode"]
            assert numpy.array_equal(mask, info["_episode_totals"])
            assert info["episode"]["r"][mask] == pytest.approx(info["episode_totals"]["return"][mask])
            assert numpy.array_equal(info["episode"]["l"][mask], info["episode_totals"]["length"][mask])
            ended += mask.sum()
    one = RecordEpisodeStatistics(gs.Env(trace, "8x8", **SMALL))
    one.reset(seed=1)
    info = {}
    while "episode" not in info:
        info = one.step(numpy.flatnonzero(one.unwrapped.action_masks())[0])[4]
    assert info["episode"]["r"] == pytest.approx(info["episode_totals"]["return"])
    listed = DictInfoToList(make(trace))
    _, infos = listed.reset(seed=1)
    assert [info["action_mask"].shape for info in infos] == [(17,)] * 3
    while not any("episode_totals" in info for info in infos):
        infos = listed.step(listed.unwrapped.heuristic_actions())[4]
    ended = next(info for info in infos if "episode_totals" in info)
    assert ended["episode_totals"]["length"] > 0 and ended["final_obs"]["jobs"].shape == (16, 12)


def test_metadata_says_how_episodes_follow_each_other(trace):
    for mode in gymnasium.vector.AutoresetMode:
        assert make(trace, autoreset_mode=mode).metadata["autoreset_mode"] is mode
    assert gs.Env.metadata["render_modes"] == gs.VectorEnv.metadata["render_modes"] == ["ansi"]


def test_a_text_shows_nodes_and_queue(trace):
    env = make(trace, 2, render_mode="ansi")
    env.reset(seed=1)
    go_on(env, 25)
    for e, text in enumerate(env.render()):
        state = env.look(e)
        lines = text.splitlines()
        held = sum(line.count("#") + line.count("+") for line in lines if line.startswith("node"))
        assert held == sum(numpy.ceil(state["nodes"]["gpus"] - state["nodes"]["free_gpus"]))
        assert held >= state["running"]["gpus"].sum() and f"{state['running'].rows} jobs running" in lines[0]
        assert sum(line.startswith("job") for line in lines) == min(16, state["waiting"].rows) > 0
    assert make(trace, 1).render() is None
    with pytest.raises(TypeError, match="render_mode"):
        make(trace, render_mode="human")


OPTIONS = [{}, {"autoreset_mode": "next_step"}, {"autoreset_mode": "disabled", "window_jobs": 64},
           {"features": ("gpus",), "mode": "reserve"}, {"mode": "preempt", "heuristic": "las"},
           {"choose_nodes": True, "threads": 2, "truncate": True}]


@pytest.mark.parametrize("options", OPTIONS)
def test_copies_and_pickles_go_on_exactly(trace, options):
    env = make(trace, **dict({"window_jobs": 256, "stride": 256}, **options))
    env.reset(seed=3)
    go_on(env, 31)
    env.step_heuristic()
    copied, pickled = copy.deepcopy(env), pickle.loads(pickle.dumps(env))
    state = pickle.loads(pickle.dumps(env.get_state()))
    expected = go_on(env, 15)
    assert_equal_runs(expected, go_on(copied, 15))
    assert_equal_runs(expected, go_on(pickled, 15))
    alike = make(trace, **dict({"window_jobs": 256, "stride": 256}, **options))
    alike.set_state(state)
    assert_equal_runs(expected, go_on(alike, 15))
    assert same(copied.reset()[0], pickled.reset()[0])  # of seeds drawn anew
    env.set_state(copy.deepcopy(state))
    assert_equal_runs(expected, go_on(env, 15))


def test_pickles_over_ends_of_episodes(trace):
    env = make(trace)
    env.reset(seed=[5, 6, 7])
    for _ in range(12):
        other = pickle.loads(pickle.dumps(env))
        assert_equal_runs(go_on(env, 23), go_on(other, 23))
    assert env.windows.tolist() == other.windows.tolist()


def test_single_environments_are_copied(trace):
    env = gs.Env(trace, "8x8", **SMALL)
    env.reset(seed=2)
    for _ in range(10):
        env.step(int(numpy.flatnonzero(env.action_masks())[0]))
    others = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    action = int(numpy.flatnonzero(env.action_masks())[-1])
    expected = env.step(action)
    for other in others:
        result = other.step(action)
        assert same(result[0], expected[0]) and result[1:4] == expected[1:4]


def test_traces_and_clusters_are_pickled_whole(tmp_path):
    columns = {"submit_s": [3.5, 0.0, 7.25], "duration_s": [10, 20.125, 30], "gpus": [1, 0.5, 8]}
    trace = gs.trace_from_columns(**columns, estimate_s=[30, float("nan"), 60], user=["a,b", 'c"d', ""], vc=["x", "", "x"],
                                  job_id=["one", "two", "thrée"])
    for one in (trace, gs.read_trace("synthetic:philly:300"), gs.read_trace("synthetic:lublin:200", seed=4)):
        other = pickle.loads(pickle.dumps(one))
        assert other.report == one.report and other.job_ids() == one.job_ids() and repr(other) == repr(one)
        a, b = one.columns(), other.columns()
        assert a.keys() == b.keys()
        for name in a:
            assert numpy.array_equal(a[name], b[name]) if name.endswith("_names") else \
                numpy.array_equal(a[name], b[name], equal_nan=True), name
        assert copy.deepcopy(one) is one
    default = pickle.loads(pickle.dumps(gs.read_trace("synthetic:philly:300")))
    assert gs.replay(default, policies="fifo")[0].metrics == gs.replay("synthetic:philly:300", policies="fifo")[0].metrics
    cluster = pickle.loads(pickle.dumps(gs.parse_cluster("3x8")))
    assert (cluster.text, cluster.gpus, repr(cluster)) == ("3x8", 24, "Cluster('3x8')")


def test_each_environment_may_have_a_seed_of_its_own(trace):
    env = make(trace)
    together, _ = env.reset(seed=[11, 12, 11])
    for e, seed in enumerate((11, 12, 11)):
        alone, _ = gs.Env(trace, "8x8", **SMALL).reset(seed=seed)
        assert same({name: array[e] for name, array in together.items()}, alone)
    first = go_on(env, 80)
    env.reset(seed=numpy.array([11, 12, 11]))
    assert_equal_runs(first, go_on(env, 80))
    env.reset(seed=[None, 12, None])
    for seed, line in (([1, 2], "expected 3"), ([1, 2, -1], "whole number"), ([1, 2, 0.5], "whole number")):
        with pytest.raises(gs.Error, match=line):
            env.reset(seed=seed)
    with pytest.raises(gs.Error, match="no such option 'reset_masks'"):
        env.reset(options={"reset_masks": [True] * 3})


def test_mode_preempt_takes_scores(trace):
    env = make(trace, mode="preempt", heuristic="las", weights={"jct": 1.0})
    other = make(trace, mode="preempt", heuristic="las", weights={"jct": 1.0})
    observation, _ = env.reset(seed=1)
    other.reset(seed=1)
    assert env.action_space.shape == (3, 32) and env.observation_space.contains(observation)
    for _ in range(300):  # the heuristic's scores do what the heuristic does
        a, b = env.step(env.heuristic_actions()), other.step_heuristic()
        assert same(a[0], b[0]) and a[1].tolist() == b[1].tolist()
    turned = [env.step(-env.heuristic_actions())[1].tolist() for _ in range(300)]
    assert turned != [other.step_heuristic()[1].tolist() for _ in range(300)]
    for actions, line in ((numpy.zeros((3, 3), numpy.float32), "scores of shape"), (numpy.zeros((3, 32), int), "scores of shape"),
                          (numpy.full((3, 32), numpy.nan, numpy.float32), "finite")):
        with pytest.raises(gs.Error, match=line):
            env.step(actions)


def test_agents_of_mode_preempt_rank_jobs():
    """An agent that gives the prior as its scores is the heuristic, in a replay as in training."""
    env = gs.VectorEnv("synthetic:philly", "8x8", 1, mode="preempt", heuristic="las", max_jobs=512, window_jobs=256)
    agent = gs.Agent(lambda observation: observation["prior"][:, :-1], env)
    runs = gs.replay("synthetic:philly:800", "4x8", ["agenda{mode=preempt,heuristic=las}", agent, "fifo"], oversize="drop")
    assert runs[0].history_hash == runs[1].history_hash != runs[2].history_hash
    assert runs[1].metrics["preemptions"] > 0


def test_a_limit_on_starvation_holds(trace):
    def longest(**options):
        waits = []
        env = make(trace, 4, heuristic="sjf", reward=lambda step: waits.append(step.finished["wait_s"]) or numpy.zeros(4), **options)
        env.reset(seed=1)
        go_on(env, 400)
        return numpy.concatenate(waits).max()

    assert longest(starvation_s=600.0, knowledge="oracle") < longest(knowledge="oracle")
    with pytest.raises(gs.Error, match="starvation"):
        make(trace, mode="preempt", heuristic="las", starvation_s=60.0)


def test_episodes_take_traces_and_clusters_by_turns(trace):
    small = gs.read_trace("synthetic:lublin:4000", seed=2)
    env = gs.VectorEnv([trace, small], ["8x8", "128x1"], 4, reward=lambda step: step.sums(step.started, step.started["gpus"]),
                       features=("gpus",), **SMALL)
    env.reset(seed=1)
    seen = [env.traces.tolist()]
    total = numpy.zeros(4)
    for _ in range(600):
        _, rewards, terminated, _, _ = env.step(env.heuristic_actions())
        total += rewards
        if terminated.any():
            seen.append(env.traces.tolist())
        jobs, rows = env.token_jobs, env._seen["jobs"]
        there = jobs >= 0
        assert numpy.log1p(env_gpus(env)[jobs[there]]) / 5 == pytest.approx(rows[there][:, 2], abs=1e-3)
    assert seen[0] == [0, 1, 0, 1]
    assert all(len({row[e] for row in seen}) == 2 for e in range(4))
    for e in range(4):  # strictly by turns
        changes = [row[e] for row in seen]
        assert env.look(e)["nodes"].rows == (8 if changes[-1] == 0 else 128)
    assert len(env.job_ids) == env.jobs.rows == len(trace) + len(small)
    alone = gs.VectorEnv(small, "128x1", 2, **SMALL)
    alone.reset(seed=1)
    assert alone._arrays["groups"].shape[1] <= env._arrays["groups"].shape[1]
    with pytest.raises(gs.Error, match="one for all traces"):
        gs.VectorEnv([trace, small, small], ["8x8", "128x1"], 2, **SMALL)
    with pytest.raises(gs.Error, match="mode: no window offers a choice"):
        gs.VectorEnv([trace, small], ["8x8", "20000x1"], 2, mode="backfill", **SMALL)


def env_gpus(env, known={}):
    if id(env) not in known:
        known[id(env)] = env.jobs["gpus"]
    return known[id(env)]


def test_names_of_several_traces_are_one_list():
    one = gs.trace_from_columns([0, 1, 2] * 20, [500] * 60, [4] * 60, user=["a", "b", "c"] * 20)
    two = gs.trace_from_columns([0, 1, 2] * 20, [500] * 60, [4] * 60, user=["c", "d", ""] * 20)
    env = gs.VectorEnv([one, two], "2x4", 2, **SMALL)
    names = [env.jobs.names("user")[number] for number in env.jobs["user"]]
    expected = [trace.columns() for trace in (one, two)]
    assert names == [columns["user_names"][number] for columns in expected for number in columns["user"]]
