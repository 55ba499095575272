# SPDX-License-Identifier: Apache-2.0
"""Replicas of services as an environment, and signals in the other one."""
import copy as copies
import json

import numpy
import pytest

import gpusched_sim as gs

gymnasium = pytest.importorskip("gymnasium")

JOBS = "job_id,submit_s,work_s,tasks,gpu_milli_per_task\n" + "".join(f"{i},{40 * i},{60 + 7 * i},{1 + i % 3},1000\n" for i in range(20))


@pytest.fixture
def files(tmp_path):
    service = {"name": "chat", "requests": {"rate_per_s": 2, "duration_s": 600}, "serves": {"mean_s": 1}, "promise": {"part": 0.9, "within_s": 5},
               "replica": {"tasks": 1, "gpus": 1}, "least": 1, "most": 4, "priority": 5}
    (tmp_path / "jobs.csv").write_text(JOBS)
    (tmp_path / "services.json").write_text(json.dumps({"services": [service]}))
    (tmp_path / "fixed.json").write_text(json.dumps({"services": [dict(service, autoscaler={"rule": "none", "replicas": 1})]}))
    return tmp_path


def make(files, count=2, **options):
    return gs.ServiceVectorEnv(str(files / "jobs.csv"), "2x4", files / "services.json", count, policy="priority", **options)


def totals_of(env, action):
    env.reset(seed=1)
    for _ in range(10_000):
        _, _, _, _, info = env.step(numpy.full((env.num_envs, 1), action))
        if "episode_totals" in info:
            return info["episode_totals"]
    raise AssertionError("no episode ended")


def test_observations_lie_in_the_space(files):
    env = make(files, 3, period_s=30)
    observation, info = env.reset(seed=1)
    assert env.observation_space.contains(observation) and info == {}
    for _ in range(60):
        observation, rewards, terminated, truncated, info = env.step(env.action_space.sample())
        assert env.observation_space.contains(observation)
        assert rewards.shape == (3,) and terminated.dtype == bool and truncated.dtype == bool
    assert env.service_names == ("chat",) and env.most.tolist() == [4]


def test_one_replica_for_ever_is_the_run_without_an_autoscaler(files):
    totals = totals_of(make(files), 1)
    run = gs.replay(files / "jobs.csv", cluster="2x4", policies=["priority"], services=str(files / "fixed.json")).runs[0]
    jobs = run.jobs
    waits = [wait for job, wait in zip(jobs["job_id"], jobs["wait_s"]) if not str(job).startswith("chat")]
    assert -totals["wait"][0] == pytest.approx(sum(waits), abs=1e-3)
    assert totals["missed"][0] < 0


@pytest.mark.parametrize("policy", ["priority", "fifo"])
@pytest.mark.parametrize("given", range(16))
def test_jobs_wait_as_in_the_run_under_any_conditions(files, policy, given):
    texts = {"failures": {"node": {"mtbf_h": 0.2, "repair_h": 0.03}}, "stages": {"provision_s": 10, "transfer_gib_per_s": 1},
             "power": {"gpus": {"any": {"idle_w": 30, "full_w": 300, "limits": [{"limit_w": 150, "draw": 0.5, "speed": 0.7},
                                                                                  {"limit_w": 300}]}}, "caps": [{"w": 1500}]}}
    for name, text in texts.items():
        (files / f"{name}.json").write_text(json.dumps(text))
    options = {name: files / f"{name}.json" for bit, name in enumerate(texts) if given & 1 << bit}
    if given & 8:
        options["restart_cost"] = 20
    env = gs.ServiceVectorEnv(str(files / "jobs.csv"), "2x4", files / "services.json", 1, policy=policy, period_s=45, **options)
    totals = totals_of(env, 1)
    jobs = gs.replay(files / "jobs.csv", cluster="2x4", policies=[policy], services=files / "fixed.json", **options).runs[0].jobs
    own = [i for i, job in enumerate(jobs["job_id"]) if not str(job).startswith("chat")]
    for name, column in (("wait", "wait_s"), ("jct", "jct_s")):
        assert -totals[name][0] == pytest.approx(sum(jobs[column][i] for i in own), rel=1e-6, abs=1e-3), name


def test_more_replicas_miss_less_and_cost_more(files):
    few, many = totals_of(make(files), 1), totals_of(make(files), 4)
    assert many["missed"][0] > few["missed"][0] and many["replicas"][0] < few["replicas"][0]


def test_queueing_theory_gives_an_action(files):
    env = make(files, period_s=60)
    env.reset(seed=1)
    env.step(numpy.array([[1], [1]]))
    needed = env.needed()
    assert needed.shape == (2, 1) and (needed >= 2).all() and env.action_space.contains(needed.astype(env.action_space.dtype))


def test_several_services_files_are_scenes(files):
    env = gs.ServiceVectorEnv(None, "2x4", [files / "services.json", files / "fixed.json"], 8)
    env.reset(seed=3)
    assert set(env.scenes.tolist()) == {0, 1}


def test_gymnasium_checks_one_environment(files):
    env = gs.ServiceEnv(str(files / "jobs.csv"), "2x4", files / "services.json", policy="priority", period_s=60)
    from gymnasium.utils.env_checker import check_env
    check_env(env, skip_render_check=True)
    env.reset(seed=1)
    while True:
        _, _, terminated, truncated, info = env.step(numpy.array([2]))
        if terminated or truncated:
            break
    assert terminated and info["episode_totals"]["replicas"] < 0


@pytest.mark.parametrize("call, message", [
    (lambda files: gs.ServiceVectorEnv(str(files / "jobs.csv"), "2x4"), "services: expected a file of services"),
    (lambda files: make(files, period_s=0), "period_s"),
    (lambda files: make(files, weights={"speed": 1}), "speed"),
    (lambda files: make(files).step(numpy.array([[1], [1]])), "reset"),
    (lambda files: gs.ServiceVectorEnv(str(files / "jobs.csv"), "2x4", str(files / "services.json"), policy="fifo,sjf"), "policy"),
])
def test_bad_input_is_one_line(files, call, message):
    with pytest.raises(gs.Error) as raised:
        call(files)
    assert message in str(raised.value) and "\n" not in str(raised.value)


def test_copies_and_states_go_on_alike(files):
    env = make(files, 3, period_s=30)
    with pytest.raises(gs.Error, match="reset"):
        env.get_state()
    env.reset(seed=4)
    actions = [env.action_space.sample() for _ in range(60)]
    for action in actions[:20]:
        env.step(action)
    state, copy = env.get_state(), copies.deepcopy(env)
    first = [env.step(action) for action in actions[20:]]
    second = [copy.step(action) for action in actions[20:]]
    env.set_state(state)
    third = [env.step(action) for action in actions[20:]]
    for one, two, three in zip(first, second, third):
        assert all(numpy.array_equal(one[0][name], two[0][name]) and numpy.array_equal(one[0][name], three[0][name]) for name in one[0])
        assert numpy.array_equal(one[1], two[1]) and numpy.array_equal(one[1], three[1])
    for wrong in (3, make(files, 3).fork):
        with pytest.raises(gs.Error, match="state"):
            env.set_state(wrong)
    other = make(files, 3)
    other.reset(seed=1)
    with pytest.raises(gs.Error, match="state"):
        env.set_state(other.get_state())


def test_actions_must_be_numbers_of_replicas(files):
    env = make(files)
    env.reset(seed=1)
    for wrong in ([[5], [1]], [[-1], [1]], [[1]], [[1.5], [1.0]]):
        with pytest.raises(gs.Error):
            env.step(numpy.array(wrong))


# ---- carbon and prices in the environment of jobs ----

@pytest.fixture
def power(tmp_path):
    (tmp_path / "carbon.csv").write_text("hour,carbon_intensity\n" + "".join(f"{h},{300 + 200 * ((h * 7) % 5)}\n" for h in range(2000)))
    path = tmp_path / "power.json"
    path.write_text(json.dumps({"gpus": {"any": {"idle_w": 30, "full_w": 300}}, "carbon": "carbon.csv"}))
    return path


def test_signals_are_seen_and_rewarded(power):
    env = gs.VectorEnv("synthetic:philly", "8x8", 3, window_jobs=32, stride=32, power=power, signals=True, weights={"carbon": 1})
    observation, _ = env.reset(seed=1)
    assert observation["signals"].shape == (3, 22)
    seen = [observation["signals"]]
    for _ in range(200):
        observation, rewards, _, _, _ = env.step(env.heuristic_actions())
        assert env.observation_space.contains(observation)
        assert numpy.allclose(rewards, env.reward_components[:, env.reward_terms.index("carbon")])
        seen.append(observation["signals"])
    assert numpy.ptp(numpy.concatenate(seen)[:, 0]) > 0.1
    assert "signals" not in gs.VectorEnv("synthetic:philly", "8x8", 1, window_jobs=32).reset(seed=1)[0]


def test_signals_need_a_power_file():
    with pytest.raises(gs.Error, match="signals: expected False without power"):
        gs.VectorEnv("synthetic:philly", "8x8", 1, window_jobs=32, signals=True)


def test_an_agent_that_reads_signals_runs_where_there_are_some(power):
    env = gs.VectorEnv("synthetic:philly", "8x8", 1, window_jobs=32, power=power, signals=True, forecast="perfect")
    agent = gs.Agent(lambda seen: numpy.where(seen["action_mask"][0] == 1, seen["prior"][0] - seen["signals"][0, 0], -1e9), env, name="seer")
    result = gs.replay("synthetic:philly:200", cluster="8x8", policies=[agent], power=power)
    assert result.runs[0].clairvoyant
    with pytest.raises(gs.Error, match="reads signals"):
        gs.replay("synthetic:philly:200", cluster="8x8", policies=[agent])
