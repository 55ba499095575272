# SPDX-License-Identifier: Apache-2.0
"""The Gymnasium environment: autoreset, seeds, snapshots and bad input."""
import warnings

import numpy
import pytest

import gpusched_sim as gs

gymnasium = pytest.importorskip("gymnasium")
SMALL = {"window_jobs": 32, "stride": 32, "max_jobs": 16}


@pytest.fixture(scope="module")
def trace():
    return gs.read_trace("synthetic:philly")


def make(trace, num_envs=4, **options):
    return gs.VectorEnv(trace, "8x8", num_envs, **dict(SMALL, on_invalid="raise", **options))


def until_an_end(env, mode_heuristic=True):
    for _ in range(10000):
        result = env.step(env.heuristic_actions())
        if "episode_totals" in result[4]:
            return result
    raise AssertionError("no episode ended")


def test_observations_lie_in_the_space(trace):
    env = make(trace)
    observation, info = env.reset(seed=1)
    assert env.observation_space.contains(observation)
    assert numpy.array_equal(info["action_mask"], observation["action_mask"])
    for _ in range(50):
        observation, rewards, terminated, truncated, info = env.step(env.heuristic_actions())
        assert env.observation_space.contains(observation)
        assert rewards.shape == (4,) and terminated.dtype == bool and truncated.dtype == bool


def test_equal_seeds_give_equal_episodes_for_any_number_of_threads(trace):
    first, second = make(trace), make(trace, threads=2)
    first.reset(seed=7), second.reset(seed=7)
    for _ in range(100):
        a, b = first.step(first.heuristic_actions()), second.step(second.heuristic_actions())
        assert all(numpy.array_equal(a[0][name], b[0][name]) for name in a[0])
        assert numpy.array_equal(a[1], b[1])


def test_padded_rows_are_the_ragged_ones(trace):
    env = make(trace)
    env.reset(seed=3)
    for _ in range(60):
        observation = env.step(env.heuristic_actions())[0]
        ragged = env.ragged()
        for e in range(env.num_envs):
            begin, end = ragged["job_begin"][e:e + 2]
            count = end - begin
            assert numpy.array_equal(observation["jobs"][e, :count], ragged["jobs"][begin:end])
            assert not observation["jobs"][e, count:].any() and not observation["action_mask"][e, count:-1].any()
            assert observation["action_mask"][e, -1] == ragged["action_mask"][end + e]


def test_same_step_gives_the_last_observation_and_statistics(trace):
    env = make(trace)
    env.reset(seed=1)
    observation, _, terminated, _, info = until_an_end(env)
    ended = numpy.flatnonzero(info["_episode_totals"])
    assert terminated[ended].all() and numpy.array_equal(info["_final_obs"], info["_episode_totals"])
    assert env.single_observation_space.contains(info["final_obs"][ended[0]])
    assert (info["episode_totals"]["length"][ended] > 0).all()
    assert info["episode_totals"]["return"][ended] == pytest.approx(info["episode_totals"]["bounded_slowdown"][ended], abs=1e3)
    assert observation["action_mask"][ended].any()


def test_next_step_resets_at_the_step_after(trace):
    env = make(trace, autoreset_mode="next_step")
    env.reset(seed=1)
    _, _, terminated, _, info = until_an_end(env)
    ended = numpy.flatnonzero(info["_episode_totals"])[0]
    assert terminated[ended] and "final_obs" not in info
    _, rewards, terminated, _, _ = env.step(env.heuristic_actions())
    assert rewards[ended] == 0 and not terminated[ended]


def test_disabled_waits_for_a_reset_mask(trace):
    env = make(trace, autoreset_mode="disabled")
    env.reset(seed=1)
    _, _, terminated, truncated, _ = until_an_end(env)
    done = terminated | truncated
    with pytest.raises(gs.Error, match="reset_mask"):
        env.reset(options={"reset_mask": ~done})
    observation, _ = env.reset(options={"reset_mask": done})
    assert observation["action_mask"].any(axis=1).all()


def test_a_finished_environment_is_not_stepped(trace):
    env = make(trace, autoreset_mode="disabled")
    env.reset(seed=1)
    _, _, terminated, truncated, _ = until_an_end(env)
    finished = numpy.flatnonzero(terminated | truncated)[0]
    with pytest.raises(RuntimeError, match=f"environment {finished} is finished; call reset"):
        env.step(env.heuristic_actions())
    with pytest.raises(RuntimeError, match="is finished"):
        env.step_heuristic()
    env.reset(options={"reset_mask": terminated | truncated})
    env.step(env.heuristic_actions())
    one = gs.Env(trace, "8x8", **SMALL)
    one.reset(seed=1)
    done = False
    while not done:
        _, _, terminated, truncated, _ = one.step(int(numpy.flatnonzero(one.action_masks())[0]))
        done = terminated or truncated
    with pytest.raises(RuntimeError, match="is finished"):
        one.step(0)


def test_windows_without_a_choice_are_an_error():
    with pytest.raises(gs.Error, match="^mode: no window offers a choice: in none of the .* mode backfill"):
        gs.VectorEnv("synthetic:philly:2000", "40x8", 1, mode="backfill", window_jobs=64)


def test_windows_that_never_queue_are_noted():
    with pytest.warns(UserWarning, match="no window asks for more GPUs at once than the cluster has"):
        gs.VectorEnv("synthetic:philly:500", "1000x8", 1, mode="fit_or_wait", window_jobs=64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gs.VectorEnv("synthetic:philly:500", "2x8", 1, mode="fit_or_wait", window_jobs=64, oversize="drop")


def test_the_documented_example_has_contention():
    """docs/python.md: the environments of its first example have rewards."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gs.VectorEnv("synthetic:philly", "8x8", num_envs=16, mode="select_blocking", window_jobs=256, oversize="drop")
    env.reset(seed=1)
    rewards = numpy.array([env.step(env.heuristic_actions())[1] for _ in range(200)])
    assert (rewards != 0).mean() > 0.5


@pytest.mark.parametrize("path", ["bad\0name.csv", "bad\udc80name.csv"])
def test_paths_that_are_no_text_are_one_line(path):
    for call in (lambda: gs.read_trace(path), lambda: gs.replay(path, "8x8", ["fifo"]), lambda: gs.VectorEnv(path, "8x8"),
                 lambda: gs.parse_cluster(path), lambda: gs.evaluate(path, policies=["fifo", "las"])):
        with pytest.raises(gs.Error, match="^'bad.*expected a text in UTF-8 without a zero byte$"):
            call()


@pytest.mark.parametrize("autoreset_mode", ["same_step", "next_step", "disabled"])
@pytest.mark.parametrize("how", ["set_state", "fork"])
def test_a_snapshot_goes_on_exactly(trace, how, autoreset_mode):
    env = make(trace, autoreset_mode=autoreset_mode, window_jobs=256, stride=256)  # longer than the steps below
    env.reset(seed=5)
    for _ in range(30):
        env.step(env.heuristic_actions())
    state, other = env.get_state(), env.fork()
    expected = [env.step(env.heuristic_actions())[1].tolist() for _ in range(100)]
    if how == "set_state":
        env.set_state(state)
        other = env
    assert [other.step(other.heuristic_actions())[1].tolist() for _ in range(100)] == expected


def test_arrays_without_copies_are_one_memory_and_outlive_the_environment(trace):
    env = make(trace, copy=False)
    first, _ = env.reset(seed=1)
    second = env.step(env.heuristic_actions())[0]
    assert numpy.shares_memory(first["jobs"], second["jobs"])
    before = first["jobs"].copy()
    del env
    assert numpy.array_equal(first["jobs"], before)


def test_torch_takes_the_arrays_as_they_are(trace):
    torch = pytest.importorskip("torch")
    env = make(trace, copy=False)
    observation, _ = env.reset(seed=1)
    tensors = {name: torch.from_numpy(array) for name, array in observation.items()}
    assert all(tensors[name].data_ptr() == array.ctypes.data for name, array in observation.items())
    before = tensors["jobs"].clone()
    for _ in range(20):
        observation = env.step(env.heuristic_actions())[0]
    assert not torch.equal(before, tensors["jobs"])
    assert all(numpy.array_equal(tensors[name].numpy(), observation[name]) for name in tensors)


@pytest.mark.parametrize("actions, line", [
    ([0, 0, 0], "expected 4 whole numbers"), ([0.5] * 4, "expected 4 whole numbers"), ([[0] * 4], "expected 4 whole numbers"),
    ([99] * 4, "not allowed"), ([-1] * 4, "not allowed"), (["a"] * 4, "expected 4 whole numbers"),
])
def test_bad_actions_are_one_line_and_change_nothing(trace, actions, line):
    env = make(trace)
    before = env.reset(seed=1)[0]
    with pytest.raises(gs.Error, match=line):
        env.step(actions)
    assert numpy.array_equal(env.set_state(env.get_state())[0]["jobs"], before["jobs"])


@pytest.mark.parametrize("options, line", [
    ({"mode": "no"}, "mode: expected one of"), ({"mode": "preempt", "choose_nodes": True}, "preempt"), ({"max_jobs": 2}, "max_jobs"),
    ({"weights": {"speed": 1}}, "weights.speed: unknown key"), ({"window_jobs": 10**6}, "windows"), ({"threads": 0}, "threads"),
    ({"max_job": 3}, "did you mean 'max_jobs'"), ({"autoreset_mode": "never"}, "autoreset_mode"), ({"num_envs": 0}, "num_envs"),
    ({"num_envs": 1.5}, "num_envs"), ({"heuristic": "las"}, "mode preempt"), ({"truncate": 1}, "truncate: expected true or false"),
])
def test_bad_options_are_one_line(trace, options, line):
    with pytest.raises(gs.Error, match=line):
        make(trace, **options)


@pytest.mark.parametrize("keywords, line", [
    ({"seed": -1}, "seed"), ({"seed": 2**64}, "seed"), ({"seed": True}, "seed"), ({"seed": 1.0}, "seed"),
    ({"options": 5}, "options: expected a dict"), ({"options": {"reset_mask": [1]}}, "reset_mask"),
])
def test_bad_resets_are_one_line_and_change_nothing(trace, keywords, line):
    env = make(trace)
    before = env.reset(seed=2**64 - 1)[0]
    with pytest.raises(gs.Error, match=line):
        env.reset(**keywords)
    assert numpy.array_equal(env.set_state(env.get_state())[0]["jobs"], before["jobs"])


def test_nodes_fail_by_laws(trace, tmp_path):
    laws = tmp_path / "laws.json"
    laws.write_text('{"node": {"mtbf_h": 2, "repair_h": 1}}')

    def outcome(**more):
        env = make(trace, 2, **more)
        env.reset(seed=1)
        total, least = 0.0, 1.0
        for _ in range(300):
            _, rewards, _, _, _ = env.step(env.heuristic_actions())
            total += float(rewards.sum())
            least = min(least, float(env._seen["groups"][:, :, 3].sum(axis=1).min()))
        return total, least

    calm, stormy = outcome(), outcome(failures=str(laws), checkpoint_interval=60)
    assert stormy == outcome(failures=str(laws), checkpoint_interval=60)
    assert stormy[0] < calm[0]
    assert calm[1] == pytest.approx(1) and stormy[1] < 0.9  # nodes out of service are in no group
    with pytest.raises(gs.Error, match="checkpoint-interval"):
        outcome(failures=str(laws), checkpoint_write=5)
    with pytest.raises(gs.Error, match="failures: expected a text"):
        outcome(failures=3)
    with pytest.raises(gs.Error, match="none.json"):
        outcome(failures="none.json")


def test_misuse_raises(trace):
    env = make(trace)
    with pytest.raises(RuntimeError, match="reset"):
        env.step([0] * 4)
    env.reset(seed=1)
    with pytest.raises(gs.Error, match="state"):
        make(trace, window_jobs=64).set_state(env.get_state())
    with pytest.raises(gs.Error, match="state: expected one of 2 environments, not 4"):
        make(trace, 2).set_state(env.get_state())
    with pytest.raises(gs.Error, match="seed"):
        env.reset(seed="x")
