# SPDX-License-Identifier: Apache-2.0
"""The learning environment for Gymnasium: VectorEnv, many environments stepped together, and Env, one of them."""
from __future__ import annotations

import copy as copies
import dataclasses
import json
import os
import warnings
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

import gymnasium
import numpy
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from . import _core
from .features import Features, check_features, feature_table
from .rendering import nodes_and_queue
from .runs import _cluster_text, _text, read_trace
from .tables import Table, joined

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import EnvOptions

_OBSERVATION = ("jobs", "prior", "action_mask", "groups", "global", "signals")
_JOB_FEATURES, _GROUP_FEATURES, _GLOBAL_FEATURES = 12, 4, 14


def _box(*shape: int) -> spaces.Box:
    return spaces.Box(-numpy.inf, numpy.inf, shape, numpy.float32)


def _observation_space(tokens: int, groups: int, signals: int, features: int) -> spaces.Dict:
    parts = {"jobs": _box(tokens, _JOB_FEATURES), "prior": _box(tokens + 1), "action_mask": spaces.MultiBinary(tokens + 1),
             "groups": _box(groups, _GROUP_FEATURES), "global": _box(_GLOBAL_FEATURES)}
    if signals:
        parts["signals"] = spaces.Box(-1, 1, (signals,), numpy.float32)
    if features:
        parts["features"] = _box(tokens, features)
    return spaces.Dict(parts)


def _options_text(options: Mapping[str, Any]) -> str:
    try:
        return json.dumps({name: _text(value) for name, value in options.items()}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise _core.Error(f"options: {error}") from None


def _by_environment(num_envs: int, ended: numpy.ndarray, names: Sequence[str],
                    rows: numpy.ndarray) -> tuple[dict[str, numpy.ndarray], numpy.ndarray]:
    """Columns [num_envs] of what only the environments that ended have, [ended, names], and the mask of these."""
    mask = numpy.zeros(num_envs, dtype=numpy.bool_)
    mask[ended] = True
    totals = numpy.zeros((num_envs, len(names)))
    totals[ended] = rows
    return {name: totals[:, i].copy() for i, name in enumerate(names)}, mask


def _seeds(seed: Any, count: int) -> Any:
    """One whole number, or a list of one for each environment, of which those that are None are drawn."""
    def is_seed(value):
        is_number = isinstance(value, (int, numpy.integer)) and not isinstance(value, bool)
        return value is None or is_number and 0 <= int(value) < 2**64

    several = isinstance(seed, (list, tuple, numpy.ndarray))
    for value in seed if several else [seed]:
        if not is_seed(value):
            raise _core.Error(f"seed: expected a whole number from 0 to 2**64 - 1, not {value!r}")
    if several and len(seed) != count:
        raise _core.Error(f"seed: expected {count}, one for each environment, not {len(seed)}")
    return seed


@dataclasses.dataclass(frozen=True)
class Steps:
    """What a step of all environments brought, for a reward of one's own.

    Jobs are columns of equal length: `env`, the number of the environment; `job`, the number of the job, a row of
    `VectorEnv.jobs` and an entry of `VectorEnv.job_ids`; `submit_s`, `start_s` (of the first start) and `end_s`, instants on
    the clock of the episode, NaN where they have not come; `wait_s` and `ran_s`, time in queues and on nodes so far; `gpus`
    asked for; `duration_s`, the true run time. Jobs of the warm-up, which no reward counts, are in none of them.

    Attributes
    ----------
    finished, started, waiting : dict of str to array
        Jobs that finished or started in the step, in order (again after each preemption), and those that wait after it.
    seconds : array [num_envs] of float64
        Simulated time of the step.
    now_s : array [num_envs] of float64
        The instant after it on the episode's clock.
    components : array [num_envs, reward terms] of float64
        As `VectorEnv.reward_components`.
    terminated, truncated : array [num_envs] of bool
    """

    finished: Mapping[str, numpy.ndarray]
    started: Mapping[str, numpy.ndarray]
    waiting: Mapping[str, numpy.ndarray]
    seconds: numpy.ndarray
    now_s: numpy.ndarray
    components: numpy.ndarray
    terminated: numpy.ndarray
    truncated: numpy.ndarray

    def sums(self, jobs: Mapping[str, numpy.ndarray], values: Any) -> numpy.ndarray:
        """Sums of a value of each job by environment, [num_envs]: `step.sums(step.finished, step.finished["wait_s"])`."""
        return numpy.bincount(jobs["env"], weights=values, minlength=len(self.seconds))


class VectorEnv(gymnasium.vector.VectorEnv):
    """Episodes on windows of a trace, many at a time. docs/environment.md says what is chosen, observed and rewarded.

    A padded observation is a dict of arrays [num_envs, ...]: `jobs` [max_jobs, 12], `prior` and `action_mask`
    [max_jobs + 1], `groups` and `global`, with the option signals also `signals` [22]. Action `max_jobs` is WAIT; rows beyond the waiting jobs are 0 and may not be chosen.
    In mode preempt there are 2 * max_jobs rows, and an action is a finite score for each; jobs beyond them get the heuristic's.

    Parameters
    ----------
    trace : str, os.PathLike or Trace, or several
        What `read_trace` takes, or gave. The episodes of an environment go through several by turns.
    cluster : str, int, os.PathLike or Cluster, or several, optional
        By default what the trace states. One for all traces, or one for each; several for one trace are turns, too.
    num_envs : int
    autoreset_mode : gymnasium.vector.AutoresetMode or str
    copy : bool
        False: every step gives the same arrays with new contents, which torch.from_numpy() takes as they are.
    on_invalid : {"warn", "raise", "heuristic"}
        What an action means that the mask forbids: an Error, or the heuristic's action instead, told in
        `info["replaced_actions"]` [num_envs] of bool, and by "warn" at the first one. Numbers that are no action are an Error.
    reward : callable, optional
        Takes `Steps`, gives the reward of each environment, [num_envs], in place of the weighted sum of `weights`.
    features : sequence of str, or callable, optional
        What the observation tells of each job as `features` [num_envs, rows, features]: numeric columns of the trace by name
        (priority, user, ...), or a function of all of them but true run times that gives [jobs, features].
    render_mode : {"ansi"}, optional
        `render()` gives a text of nodes and queue for each environment.
    **options
        mode, knowledge, heuristic, max_jobs, choose_nodes, node_speeds, sc20_backfill, starvation_s, signals, forecast,
        forecast_sigma, weights (a dict of reward terms), discount_per_s;
        window_jobs, warmup_jobs, stride, train_fraction, validation_fraction, arrival_scale, truncate, split (train,
        validation, test); oversize (error, drop or clamp jobs that do not fit the cluster); envs_per_window, threads
        (which changes no result); every condition of `replay` by the same name: placement, failures (a file of laws),
        restart_cost, checkpoint_interval, stages, elastic, changes, throughputs, span_speed, ...

    Raises
    ------
    Error
        An option out of range, a trace that cannot be read, no window of that length, no window that offers a choice.
    TypeError
        Another render_mode.

    Warns
    -----
    UserWarning
        No window asks for more GPUs at once than the cluster has: no job waits, so that most rewards are 0. With
        on_invalid="warn", an action was forbidden.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1, "autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, trace: str | os.PathLike | _core.Trace | Sequence[str | os.PathLike | _core.Trace],
                 cluster: str | int | os.PathLike | _core.Cluster | Sequence[Any] | None = None, num_envs: int = 16, *,
                 autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP, copy: bool = True, on_invalid: str = "warn",
                 reward: Callable[[Steps], Any] | None = None, features: Features | None = None,
                 render_mode: str | None = None, **options: Unpack[EnvOptions]):
        for name in ("num_envs", "autoreset"):
            if name in options:
                raise _core.Error(f"{name}: an argument of its own" + (": autoreset_mode" if name == "autoreset" else ""))
        if on_invalid not in ("warn", "raise", "heuristic"):
            raise _core.Error(f"on_invalid: expected 'warn', 'raise' or 'heuristic', not {on_invalid!r}")
        if render_mode not in (None, "ansi"):
            # A TypeError tells Stable-Baselines3's make_vec_env, which asks for pictures first, to do without.
            raise TypeError(f"render_mode: expected None or 'ansi', not {render_mode!r}")
        if reward is not None and not callable(reward):
            raise _core.Error(f"reward: expected a callable, not {type(reward).__name__}")
        try:
            mode = {"next_step": AutoresetMode.NEXT_STEP, "same_step": AutoresetMode.SAME_STEP,
                    "disabled": AutoresetMode.DISABLED}.get(autoreset_mode) or AutoresetMode(autoreset_mode)
        except ValueError:
            raise _core.Error(f"autoreset_mode: expected next_step, same_step or disabled, not {autoreset_mode!r}") from None
        text = _options_text(dict(options, num_envs=num_envs, autoreset=mode.name.lower()))
        traces = list(trace) if isinstance(trace, (list, tuple)) else [trace]
        clusters = list(cluster) if isinstance(cluster, (list, tuple)) else [cluster]
        self._made = ([each if isinstance(each, _core.Trace) else read_trace(_text(each)) for each in traces],
                      [_cluster_text(each) for each in clusters], text)
        self._copy, self._on_invalid, self._mode = copy, on_invalid, mode
        self._reward, self._features, self.render_mode = reward, check_features(features), render_mode
        self._adopt(_core.make_env(*self._made, reward is not None, features is not None), num_envs)
        if self._core.note:
            warnings.warn(self._core.note, stacklevel=2)

    def _adopt(self, core: Any, num_envs: int) -> None:
        self._core, mode = core, self._mode
        self._arrays = core.arrays()
        self._all = numpy.ones(num_envs, dtype=numpy.bool_)
        self._rows = None if self._features is None else feature_table(self._features, self._columns(False))
        for name in ("terminated", "truncated", "replaced"):
            self._arrays[name] = self._arrays[name].view(numpy.bool_)
        self._seen = {name: self._arrays[name] for name in _OBSERVATION if name in self._arrays}
        signals = self._arrays["signals"].shape[1] if "signals" in self._arrays else 0
        self.num_envs = num_envs
        self.metadata = dict(type(self).metadata, autoreset_mode=mode)
        self.single_observation_space = _observation_space(core.tokens, core.groups, signals,
                                                           0 if self._rows is None else self._rows.shape[1])
        self.single_action_space = _box(core.tokens) if core.ranks else spaces.Discrete(core.tokens + 1)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)

    def _columns(self, true_times: bool) -> dict[str, Any]:
        return joined([self._core.job_table(trace, true_times) for trace in range(self._core.traces)])

    def _observation(self) -> dict[str, numpy.ndarray]:
        if self._rows is not None:
            features = self._rows[self._core.token_jobs()]
            return dict(self._seen if not self._copy else {name: array.copy() for name, array in self._seen.items()},
                        features=features)
        if not self._copy:
            return dict(self._seen)
        return {name: array.copy() for name, array in self._seen.items()}

    def _info(self, observation: Mapping[str, Any]) -> dict[str, Any]:
        privileged = self._arrays["privileged"]
        return {"action_mask": observation["action_mask"], "_action_mask": self._all,
                "privileged": privileged.copy() if self._copy else privileged, "_privileged": self._all}

    def reset(self, *, seed: int | Sequence[int | None] | None = None, options: Mapping[str, Any] | None = None):
        """Starts first episodes; with options={"reset_mask": array of bool} new ones in the finished environments that it
        names, which must be all of them (autoreset disabled).

        `seed` is one whole number: environment e draws its windows from it and e. Of a list each environment draws from a
        number of its own, as the first of a VectorEnv does, and an Env. Without, seeds are drawn anew.
        """
        if options is not None and not isinstance(options, Mapping):
            raise _core.Error(f"options: expected a dict, not {type(options).__name__}")
        unknown = sorted(set(options or {}) - {"reset_mask"})
        if unknown:
            raise _core.Error(f"options: no such option {unknown[0]!r}; expected reset_mask")
        mask = (options or {}).get("reset_mask")
        if mask is not None:
            done = self._core.done().view(numpy.bool_)
            mask = numpy.asarray(mask)
            if mask.dtype != numpy.bool_ or mask.shape != done.shape or not numpy.array_equal(mask, done):
                raise _core.Error("reset_mask: expected one truth value for each environment, true for those that are "
                                  f"finished ({numpy.flatnonzero(done).tolist()})")
            self._core.reset_done()
        else:
            seed = _seeds(seed, self.num_envs)
            if isinstance(seed, (list, tuple, numpy.ndarray)):
                self._core.reset_each([int(self.np_random.integers(2**63) if one is None else one) for one in seed])
            else:
                super().reset(seed=None if seed is None else int(seed))
                self._core.reset(int(seed) if seed is not None else int(self.np_random.integers(2**63)))
        observation = self._observation()
        return observation, self._info(observation)

    def step(self, actions: Any):
        """One action for each environment, [num_envs] of whole numbers, or in mode preempt [num_envs, 2 * max_jobs] scores.

        `info` has action_mask and privileged (what a critic may see in training); when episodes ended also episode_totals
        {return, length, <reward terms>} and, with autoreset same_step, final_obs, each with the mask of the environments it
        holds for (`_episode_totals`, `_final_obs`)."""
        given = numpy.asarray(actions)
        if self._core.ranks:
            shape = (self.num_envs, self._core.tokens)
            if given.dtype.kind != "f" or given.shape != shape:
                raise _core.Error(f"actions: expected scores of shape {shape}, not {given.dtype} of shape {given.shape}")
            self._core.step_scores(numpy.ascontiguousarray(given, dtype=numpy.float32))
            return self._result(0)
        if given.dtype.kind not in "iu" or given.shape != (self.num_envs,):
            raise _core.Error(f"actions: expected {self.num_envs} whole numbers in one dimension, not {given.dtype} of shape "
                              f"{given.shape}")
        if given.dtype != numpy.int64 or not given.flags.c_contiguous:
            given = numpy.ascontiguousarray(given, dtype=numpy.int64)
        replaced = self._core.step(given, self._on_invalid != "raise")
        if replaced and self._on_invalid == "warn":
            warnings.warn("an action was chosen that action_mask forbids, and the heuristic's taken instead; "
                          "on_invalid='raise' makes it an error, 'heuristic' is silent", stacklevel=2)
            self._on_invalid = "heuristic"
        return self._result(replaced)

    def step_heuristic(self):
        """The same with the actions that the heuristic would choose."""
        self._core.step_heuristic()
        return self._result(0)

    def heuristic_actions(self) -> numpy.ndarray:
        """The action that the heuristic prefers in each environment; in mode preempt its scores."""
        return self._core.heuristic_actions()

    def _own_rewards(self) -> None:
        arrays = self._arrays
        steps = Steps(**self._core.step_jobs(), components=arrays["components"].copy(),
                      terminated=arrays["terminated"].copy(), truncated=arrays["truncated"].copy())
        rewards = numpy.asarray(self._reward(steps))
        if rewards.dtype.kind not in "fiub" or rewards.shape != (self.num_envs,):
            raise _core.Error(f"reward: expected {self.num_envs} numbers in one dimension, not {rewards.dtype} of shape "
                              f"{rewards.shape}")
        self._core.set_rewards(numpy.ascontiguousarray(rewards, dtype=numpy.float64))

    def _result(self, replaced: int):
        if self._reward is not None:
            self._own_rewards()
        observation = self._observation()
        info = self._info(observation)
        if replaced:
            info["replaced_actions"] = self._arrays["replaced"].copy()
            info["_replaced_actions"] = self._all
        ended = self._core.ended()
        arrays = self._arrays
        if len(ended):
            self._add_episodes(info, ended)
        if not self._copy:
            return observation, arrays["rewards"], arrays["terminated"], arrays["truncated"], info
        return (observation, arrays["rewards"].copy(), arrays["terminated"].copy(), arrays["truncated"].copy(), info)

    def _add_episodes(self, info: dict[str, Any], ended: numpy.ndarray) -> None:
        totals, mask = _by_environment(self.num_envs, ended, _core.reward_terms, self._core.episode_totals())
        episode = {"return": numpy.where(mask, self._arrays["episode_returns"], 0.0),
                   "length": numpy.where(mask, self._arrays["episode_lengths"], 0)}
        episode.update(totals)
        episode.update({f"_{name}": mask for name in list(episode)})
        info["episode_totals"], info["_episode_totals"] = episode, mask
        if self._mode == AutoresetMode.SAME_STEP:
            final = numpy.full(self.num_envs, None, dtype=object)
            for i, e in enumerate(ended):
                final[e] = self._core.final_observation(i)
            if self._rows is not None:
                for i, features in enumerate(self._rows[self._core.final_token_jobs()]):
                    final[ended[i]]["features"] = features
            info["final_obs"], info["_final_obs"] = final, mask.copy()

    def ragged(self) -> dict[str, numpy.ndarray]:
        """The open observations without padding, as copies: rows job_begin[e] to job_begin[e + 1] of `jobs` are environment
        e's, its prior and action_mask have one entry more (WAIT) and begin at job_begin[e] + e."""
        return self._core.ragged()

    @property
    def features(self) -> Features | None:
        """As it was given."""
        return self._features

    @property
    def jobs(self) -> Table:
        """Columns of the jobs of all traces, those that the cluster cannot hold left out: what job numbers are rows of."""
        return Table(self._columns(True))

    @property
    def job_ids(self) -> list[str]:
        """The ids of these jobs, as the traces write them."""
        return self._core.job_ids()

    @property
    def token_jobs(self) -> numpy.ndarray:
        """The number of the job that each row of the open observations tells of, [num_envs, rows] of int64; -1: none."""
        return self._core.token_jobs()

    def look(self, env: int = 0) -> dict[str, Any]:
        """The open state of one environment: now_s on the episode's clock, `nodes` {gpus, free_gpus}, `waiting` and `running`
        jobs with the columns of `Steps`."""
        found = self._core.look(env)
        return dict(found, **{name: Table(found[name]) for name in ("nodes", "waiting", "running")})

    def render(self) -> tuple[str, ...] | None:
        """Nodes and queue of each environment as a text, where render_mode is "ansi"."""
        if self.render_mode is None:
            return None
        ids = self.job_ids
        return tuple(nodes_and_queue(self.look(e), ids) for e in range(self.num_envs))

    @property
    def reward_components(self) -> numpy.ndarray:
        """[num_envs, reward terms] of the last step, undiscounted, in the order of `reward_terms`."""
        return self._arrays["components"].copy()

    @property
    def reward_terms(self) -> tuple[str, ...]:
        """The names of the reward's components."""
        return tuple(_core.reward_terms)

    @property
    def agent_options(self) -> dict[str, Any]:
        """What is chosen and known, as an `Agent` that was trained here needs it."""
        return json.loads(self._core.agent_options)

    @property
    def windows(self) -> numpy.ndarray:
        """The number of the window that each environment's episode runs."""
        return self._arrays["window"].copy()

    @property
    def traces(self) -> numpy.ndarray:
        """The number of the trace, of several, that each environment's episode is of."""
        return self._arrays["trace"].copy()

    def get_state(self) -> Any:
        """A snapshot for set_state() of this environment, a fork of it, or one made alike, if need be elsewhere: it can be
        pickled."""
        return self._core.save()

    def set_state(self, state: Any):
        """Goes on exactly from where get_state() was called; gives observation and info as reset() does.

        Raises
        ------
        Error
            The snapshot is of another environment.
        """
        if not isinstance(state, _core.EnvState):
            raise _core.Error(f"state: expected what get_state() gave, not {type(state).__name__}")
        self._core.restore(state)
        observation = self._observation()
        return observation, self._info(observation)

    def fork(self) -> VectorEnv:
        """A second environment in the same state, on the same jobs in memory, that goes on independently."""
        other = VectorEnv.__new__(type(self))
        other.__dict__.update(self._settings())
        other._adopt(self._core.fork(), self.num_envs)
        return other

    def _settings(self) -> dict[str, Any]:
        names = ("_made", "_copy", "_on_invalid", "_mode", "_reward", "_features", "render_mode", "_np_random_seed", "spec")
        return dict({name: getattr(self, name) for name in names}, _np_random=copies.deepcopy(self._np_random))

    def __deepcopy__(self, memo: dict[int, Any]) -> VectorEnv:
        return self.fork()

    def __getstate__(self) -> dict[str, Any]:
        return dict(self._settings(), num_envs=self.num_envs, state=self._core.save() if self._core.is_open else None)

    def __setstate__(self, kept: dict[str, Any]) -> None:
        num_envs, state = kept.pop("num_envs"), kept.pop("state")
        self.__dict__.update(kept)
        self._adopt(_core.make_env(*self._made, self._reward is not None, self._features is not None), num_envs)
        if state is not None:
            self._core.restore(state)


class Env(gymnasium.Env):
    """One environment, for libraries that want a gymnasium.Env. `action_masks()` is what sb3-contrib's MaskablePPO calls.

    Parameters
    ----------
    trace, cluster, on_invalid, reward, features, render_mode, **options : as of VectorEnv
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}

    def __init__(self, trace: str | os.PathLike | _core.Trace | Sequence[str | os.PathLike | _core.Trace],
                 cluster: str | int | os.PathLike | _core.Cluster | Sequence[Any] | None = None, *,
                 on_invalid: str = "warn", reward: Callable[[Steps], Any] | None = None, features: Features | None = None,
                 render_mode: str | None = None, **options: Unpack[EnvOptions]):
        self._env = VectorEnv(trace, cluster, 1, autoreset_mode=AutoresetMode.DISABLED, on_invalid=on_invalid, reward=reward,
                              features=features, render_mode=render_mode, **options)
        self.render_mode = render_mode
        self.observation_space = self._env.single_observation_space
        self.action_space = self._env.single_action_space

    @staticmethod
    def _first(observation: Mapping[str, numpy.ndarray], info: Mapping[str, Any]):
        info = {name: info[name][0] if hasattr(info[name], "__getitem__") else info[name]
                for name in ("action_mask", "privileged", "replaced_actions") if name in info}
        return {name: array[0] for name, array in observation.items()}, info

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None):
        """Starts an episode; without a seed, the next one of the sequence that the last seed began."""
        if seed is None and self._np_random is not None:
            seed = int(self.np_random.integers(2**63))
            return self._first(*self._env.reset(seed=seed))
        super().reset(seed=seed)
        return self._first(*self._env.reset(seed=seed))

    def step(self, action: Any):
        """Carries an action out and goes to the next choice."""
        observation, reward, terminated, truncated, info = self._env.step(numpy.asarray(action)[None])
        episode = info.get("episode_totals")
        observation, info = self._first(observation, info)
        if episode is not None:
            info["episode_totals"] = {name: values[0].item() for name, values in episode.items() if name[0] != "_"}
        return observation, float(reward[0]), bool(terminated[0]), bool(truncated[0]), info

    def render(self) -> str | None:
        """Nodes and queue as a text, where render_mode is "ansi"."""
        texts = self._env.render()
        return None if texts is None else texts[0]

    @property
    def vector(self) -> VectorEnv:
        """The VectorEnv of one environment that this is: jobs, job_ids, token_jobs, look(), get_state(), set_state()."""
        return self._env

    @property
    def features(self) -> Features | None:
        """As of VectorEnv."""
        return self._env.features

    @property
    def agent_options(self) -> dict[str, Any]:
        """As of VectorEnv."""
        return self._env.agent_options

    def action_masks(self) -> numpy.ndarray:
        """The mask of the open choice, as booleans."""
        return self._env._arrays["action_mask"][0].astype(numpy.bool_)
