# SPDX-License-Identifier: Apache-2.0
"""Rewards and features of one's own: what jobs a step shows, against replays of the same jobs, and what they change."""
import numpy
import pytest

import gpusched_sim as gs

pytest.importorskip("gymnasium")
JOBS = 60
POLICY = "agenda{mode=fit_or_wait,heuristic=sjf,knowledge=oracle}"


@pytest.fixture(scope="module")
def trace():
    """More than the cluster holds at once: there is a choice at the first instant."""
    draw = numpy.random.default_rng(7)
    submit = numpy.sort(draw.integers(0, 4000, JOBS)).astype(float)
    submit[:20] = 0
    return gs.trace_from_columns(submit, draw.integers(50, 3000, JOBS), draw.integers(1, 9, JOBS),
                                 estimate_s=draw.integers(1000, 9000, JOBS), user=[f"u{i % 3}" for i in range(JOBS)],
                                 job_id=[f"id{i:03}" for i in range(JOBS)])


def make(trace, num_envs=1, **options):
    """One window: the whole trace."""
    return gs.VectorEnv(trace, "4x4", num_envs, **dict(
        {"mode": "fit_or_wait", "heuristic": "sjf", "knowledge": "oracle", "window_jobs": JOBS, "train_fraction": 1.0,
         "validation_fraction": 0.0, "max_jobs": 64, "oversize": "clamp"}, **options))


def run_episode(env, seed=1):
    env.reset(seed=seed)
    rewards = []
    for _ in range(10000):
        _, reward, _, _, info = env.step(env.heuristic_actions())
        rewards.append(reward.copy())
        if "episode_totals" in info:
            return rewards, info["episode_totals"]
    raise AssertionError("no episode ended")


@pytest.mark.parametrize("conditions", [{}, {"kill_at_limit": True}])
def test_jobs_of_steps_are_those_of_a_replay(trace, conditions):
    steps = []
    run_episode(make(trace, reward=lambda step: steps.append(step) or numpy.zeros(1), **conditions))
    played = gs.replay(trace, "4x4", POLICY, oversize="clamp", **conditions)[0].jobs

    def all_of(name, column):
        return numpy.concatenate([getattr(step, name)[column] for step in steps])

    for name, column, replayed in (("finished", "end_s", "end_s"), ("started", "start_s", "first_start_s")):
        order = all_of(name, "job")
        assert sorted(order) == list(range(JOBS))
        assert all_of(name, column) == pytest.approx(played[replayed][order], abs=1e-6)
    order = all_of("finished", "job")
    assert all_of("finished", "wait_s") == pytest.approx(played["wait_s"][order], abs=1e-6)
    assert (all_of("finished", "ran_s") + all_of("finished", "wait_s")) == pytest.approx(played["jct_s"][order], abs=1e-6)
    columns = trace.columns()
    assert numpy.array_equal(all_of("finished", "duration_s"), columns["duration_s"][order])
    assert numpy.array_equal(all_of("waiting", "gpus"), columns["gpus"][all_of("waiting", "job")])
    for step in steps:
        now = step.now_s[0]
        waits = (columns["submit_s"] <= now) & (played["first_start_s"] >= now)
        assert set(step.waiting["job"]) <= set(numpy.flatnonzero(waits))
        assert step.waiting["wait_s"] == pytest.approx(now - step.waiting["submit_s"])
    assert sum(step.seconds[0] for step in steps) == pytest.approx(played["end_s"].max())


def test_the_weighted_sum_can_be_computed(trace):
    plain = run_episode(make(trace, 3, weights={"jct": 1.0, "energy": 5.0}))
    terms = gs.VectorEnv(trace, "4x4", 1, window_jobs=8).reward_terms
    weight = numpy.array([{"jct": 1.0, "energy": 5.0}.get(term, 0.0) for term in terms])
    own = run_episode(make(trace, 3, reward=lambda step: step.components @ weight))
    assert numpy.allclose(plain[0], own[0], rtol=1e-12)
    assert plain[1]["return"] == pytest.approx(own[1]["return"])


@pytest.mark.parametrize("autoreset_mode", ["same_step", "next_step", "disabled"])
def test_returns_are_sums_of_own_rewards(trace, autoreset_mode):
    env = make(trace, 2, autoreset_mode=autoreset_mode, reward=lambda step: step.sums(step.finished, step.finished["gpus"]))
    rewards, totals = run_episode(env)
    assert totals["return"] == pytest.approx(numpy.sum(rewards, axis=0))
    assert totals["return"] == pytest.approx([trace.columns()["gpus"].sum()] * 2)


def test_threads_change_no_own_reward(trace):
    def lists(threads):
        seen = []
        run_episode(make(trace, 6, threads=threads, reward=lambda step: seen.append(step) or -step.seconds))
        return [(list(step.finished["env"]), list(step.finished["job"]), list(step.waiting["job"])) for step in seen]

    assert lists(1) == lists(3)


def test_a_snapshot_keeps_the_reward(trace):
    env = make(trace, 2, reward=lambda step: 1.0 + step.sums(step.started, step.started["gpus"]))
    env.reset(seed=2)
    other = env.fork()
    for _ in range(20):
        assert numpy.array_equal(env.step(env.heuristic_actions())[1], other.step(other.heuristic_actions())[1])


@pytest.mark.parametrize("answer, line", [
    ([0.0], "expected 2 numbers"), (numpy.zeros((2, 1)), "expected 2 numbers"), ([0.0, float("nan")], "finite"),
    (["a", "b"], "expected 2 numbers"), (None, "expected 2 numbers"),
])
def test_bad_rewards_are_one_line(trace, answer, line):
    env = make(trace, 2, reward=lambda step: answer)
    env.reset(seed=1)
    with pytest.raises(gs.Error, match=line):
        env.step(env.heuristic_actions())


def test_what_a_reward_raises_step_raises(trace):
    def broken(step):
        raise KeyError("mine")

    env = make(trace, reward=broken)
    env.reset(seed=1)
    with pytest.raises(KeyError, match="mine"):
        env.step(env.heuristic_actions())
    with pytest.raises(gs.Error, match="reward: expected a callable"):
        make(trace, reward=3)


def test_tokens_tell_their_jobs(trace):
    env = make(trace, 3)
    env.reset(seed=1)
    gpus, ids = env.jobs["gpus"], env.job_ids
    assert ids == trace.job_ids()
    for _ in range(60):
        env.step(env.heuristic_actions())
        jobs, rows = env.token_jobs, env._seen["jobs"]
        there = rows.any(axis=2)
        assert numpy.array_equal(jobs >= 0, there)
        assert numpy.log1p(gpus[jobs[there]]) / 5 == pytest.approx(rows[there][:, 2], abs=1e-3)


def test_features_are_those_of_the_jobs(trace):
    def own(columns):
        assert "duration_s" not in columns  # true run times
        return numpy.stack([columns["gpus"], numpy.log1p(columns["estimate_s"])], axis=1)

    for features, expected in ((("gpus", "user"), ("gpus", "user")), (own, None)):
        env = make(trace, 2, features=features, truncate=True)
        observation, _ = env.reset(seed=1)
        assert env.observation_space.contains(observation)
        columns = env.jobs
        table = numpy.stack([columns[name] for name in expected], axis=1) if expected else own(
            {name: column for name, column in columns.items() if name != "duration_s"})
        for _ in range(10000):
            jobs = env.token_jobs
            there = jobs >= 0
            assert observation["features"][there] == pytest.approx(table[jobs[there]])
            assert not observation["features"][~there].any()
            observation, _, _, _, info = env.step(env.heuristic_actions())
            if "final_obs" in info:
                break
        final = info["final_obs"][0]
        assert env.single_observation_space.contains(final)
        there = final["jobs"].any(axis=1)
        assert there.any()  # the window is truncated while jobs wait
        assert numpy.log1p(final["features"][there][:, 0]) / 5 == pytest.approx(final["jobs"][there][:, 2], abs=1e-3)


@pytest.mark.parametrize("features, line", [
    (("speed",), "no column 'speed'"), (("duration_s",), "no column 'duration_s'"), ("gpus", "expected names"), ((), "expected names"),
    (lambda columns: numpy.zeros(3), "expected 60 rows"), (3, "expected names"),
])
def test_bad_features_are_one_line(trace, features, line):
    with pytest.raises((gs.Error, TypeError), match=line):
        make(trace, features=features)


def test_an_agent_sees_the_features_it_was_trained_with(trace):
    env = make(trace, features=lambda columns: columns["gpus"])
    by_feature = gs.Agent(lambda observation: numpy.append(-observation["features"][0, :, 0], -1e9), env)
    by_row = gs.Agent(lambda observation: numpy.append(-observation["jobs"][0, :, 2], -1e9), make(trace))
    runs = gs.replay(trace, "4x4", {"by_feature": by_feature, "by_row": by_row, "fifo": "fifo"}, oversize="clamp")
    assert runs["by_feature"].history_hash == runs["by_row"].history_hash != runs["fifo"].history_hash
