# SPDX-License-Identifier: Apache-2.0
"""The learning environment for Gymnasium: VectorEnv, many environments stepped together, and Env, one of them."""
from __future__ import annotations

import json
import os
import warnings
from typing import TYPE_CHECKING, Any, Mapping

import gymnasium
import numpy
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from . import _core
from .runs import _cluster_text, _text, read_trace

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import EnvOptions

_OBSERVATION = ("jobs", "prior", "action_mask", "groups", "global")
_JOB_FEATURES, _GROUP_FEATURES, _GLOBAL_FEATURES = 12, 4, 14


def _observation_space(tokens: int, groups: int) -> spaces.Dict:
    def box(*shape):
        return spaces.Box(-numpy.inf, numpy.inf, shape, numpy.float32)

    return spaces.Dict({"jobs": box(tokens, _JOB_FEATURES), "prior": box(tokens + 1),
                        "action_mask": spaces.MultiBinary(tokens + 1), "groups": box(groups, _GROUP_FEATURES),
                        "global": box(_GLOBAL_FEATURES)})


class VectorEnv(gymnasium.vector.VectorEnv):
    """Episodes on windows of a trace, many at a time. docs/environment.md says what is chosen, observed and rewarded.

    A padded observation is a dict of arrays [num_envs, ...]: `jobs` [max_jobs, 12], `prior` and `action_mask`
    [max_jobs + 1], `groups` and `global`. Action `max_jobs` is WAIT; rows beyond the waiting jobs are 0 and may not be chosen.

    Parameters
    ----------
    trace : str, os.PathLike or Trace
        What `read_trace` takes, or gave.
    cluster : str, int, os.PathLike or Cluster, optional
        By default what the trace states.
    num_envs : int
    autoreset_mode : gymnasium.vector.AutoresetMode or str
    copy : bool
        False: every step gives the same arrays with new contents, which torch.from_numpy() takes as they are.
    on_invalid : {"raise", "heuristic"}
        What an action means that the mask forbids: an Error, or the heuristic's action instead, counted in
        `info["replaced_actions"]`.
    **options
        mode, knowledge, heuristic, max_jobs, choose_nodes, sc20_backfill, weights (a dict of reward terms), discount_per_s;
        window_jobs, warmup_jobs, stride, train_fraction, validation_fraction, arrival_scale, truncate, split (train,
        validation, test); oversize (error, drop or clamp jobs that do not fit the cluster); envs_per_window, threads
        (which changes no result); every condition of `replay` by the same name: placement, failures (a file of laws),
        restart_cost, checkpoint_interval, stages, elastic, changes, throughputs, span_speed, ...

    Raises
    ------
    Error
        An option out of range, a trace that cannot be read, no window of that length, no window that offers a choice.

    Warns
    -----
    UserWarning
        No window asks for more GPUs at once than the cluster has: no job waits, so that most rewards are 0.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, trace: str | os.PathLike | _core.Trace,
                 cluster: str | int | os.PathLike | _core.Cluster | None = None, num_envs: int = 16, *,
                 autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP, copy: bool = True,
                 on_invalid: str = "raise", **options: Unpack[EnvOptions]):
        for name in ("num_envs", "autoreset"):
            if name in options:
                raise _core.Error(f"{name}: an argument of its own" + (": autoreset_mode" if name == "autoreset" else ""))
        if on_invalid not in ("raise", "heuristic"):
            raise _core.Error(f"on_invalid: expected 'raise' or 'heuristic', not {on_invalid!r}")
        try:
            mode = {"next_step": AutoresetMode.NEXT_STEP, "same_step": AutoresetMode.SAME_STEP,
                    "disabled": AutoresetMode.DISABLED}.get(autoreset_mode) or AutoresetMode(autoreset_mode)
        except ValueError:
            raise _core.Error(f"autoreset_mode: expected next_step, same_step or disabled, not {autoreset_mode!r}") from None
        given = dict(options, num_envs=num_envs, autoreset=mode.name.lower())
        try:
            text = json.dumps({name: _text(value) for name, value in given.items()}, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise _core.Error(f"options: {error}") from None
        read = trace if isinstance(trace, _core.Trace) else read_trace(_text(trace))
        self._adopt(_core.make_env(read, _cluster_text(cluster), text), num_envs, mode, copy, on_invalid)
        if self._core.note:
            warnings.warn(self._core.note, stacklevel=2)

    def _adopt(self, core: Any, num_envs: int, mode: AutoresetMode, copy: bool, on_invalid: str) -> None:
        self._core, self._copy, self._on_invalid, self._mode = core, copy, on_invalid, mode
        self._arrays = core.arrays()
        for name in ("terminated", "truncated"):
            self._arrays[name] = self._arrays[name].view(numpy.bool_)
        self._seen = {name: self._arrays[name] for name in _OBSERVATION}
        self.num_envs = num_envs
        self.metadata = dict(type(self).metadata, autoreset_mode=mode)
        self.single_observation_space = _observation_space(core.tokens, core.groups)
        self.single_action_space = spaces.Discrete(core.tokens + 1)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)

    def _observation(self) -> dict[str, numpy.ndarray]:
        if not self._copy:
            return dict(self._seen)
        return {name: array.copy() for name, array in self._seen.items()}

    def _info(self, observation: Mapping[str, Any]) -> dict[str, Any]:
        privileged = self._arrays["privileged"]
        return {"action_mask": observation["action_mask"], "privileged": privileged.copy() if self._copy else privileged}

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None):
        """Starts first episodes; with options={"reset_mask": array of bool} new ones in the finished environments that it
        names, which must be all of them (autoreset disabled).

        `seed` is one whole number: environment e draws its windows from it and e. Without, it is drawn anew.
        """
        if options is not None and not isinstance(options, Mapping):
            raise _core.Error(f"options: expected a dict, not {type(options).__name__}")
        mask = (options or {}).get("reset_mask")
        if mask is not None:
            done = self._core.done().view(numpy.bool_)
            mask = numpy.asarray(mask)
            if mask.dtype != numpy.bool_ or mask.shape != done.shape or not numpy.array_equal(mask, done):
                raise _core.Error("reset_mask: expected one truth value for each environment, true for those that are "
                                  f"finished ({numpy.flatnonzero(done).tolist()})")
            self._core.reset_done()
        else:
            is_number = isinstance(seed, (int, numpy.integer)) and not isinstance(seed, bool)
            if seed is not None and not (is_number and 0 <= int(seed) < 2**64):
                raise _core.Error(f"seed: expected a whole number from 0 to 2**64 - 1, not {seed!r}")
            super().reset(seed=None if seed is None else int(seed))
            self._core.reset(int(seed) if seed is not None else int(self.np_random.integers(2**63)))
        observation = self._observation()
        return observation, self._info(observation)

    def step(self, actions: Any):
        """One action for each environment. `info` has action_mask and privileged (what a critic may see in training); when
        episodes ended also episode {r, l, <reward terms>} and, with autoreset same_step, final_obs, each with the mask of
        the environments it holds for (`_episode`, `_final_obs`)."""
        given = numpy.asarray(actions)
        if given.dtype.kind not in "iu" or given.shape != (self.num_envs,):
            raise _core.Error(f"actions: expected {self.num_envs} whole numbers in one dimension, not {given.dtype} of shape "
                              f"{given.shape}")
        if given.dtype != numpy.int64 or not given.flags.c_contiguous:
            given = numpy.ascontiguousarray(given, dtype=numpy.int64)
        replaced = self._core.step(given, self._on_invalid == "heuristic")
        return self._result(replaced)

    def step_heuristic(self):
        """The same with the actions that the heuristic would choose."""
        self._core.step_heuristic()
        return self._result(0)

    def heuristic_actions(self) -> numpy.ndarray:
        """The action that the heuristic prefers in each environment."""
        return self._core.heuristic_actions()

    def _result(self, replaced: int):
        observation = self._observation()
        info = self._info(observation)
        if self._on_invalid == "heuristic":
            info["replaced_actions"] = replaced
        ended = self._core.ended()
        arrays = self._arrays
        if len(ended):
            self._add_episodes(info, ended)
        if not self._copy:
            return observation, arrays["rewards"], arrays["terminated"], arrays["truncated"], info
        return (observation, arrays["rewards"].copy(), arrays["terminated"].copy(), arrays["truncated"].copy(), info)

    def _add_episodes(self, info: dict[str, Any], ended: numpy.ndarray) -> None:
        mask = numpy.zeros(self.num_envs, dtype=numpy.bool_)
        mask[ended] = True
        totals = numpy.zeros((self.num_envs, len(_core.reward_terms)))
        totals[ended] = self._core.episode_totals()
        episode = {"r": numpy.where(mask, self._arrays["episode_returns"], 0.0),
                   "l": numpy.where(mask, self._arrays["episode_lengths"], 0)}
        episode.update({name: totals[:, i].copy() for i, name in enumerate(_core.reward_terms)})
        info["episode"], info["_episode"] = episode, mask
        if self._mode == AutoresetMode.SAME_STEP:
            final = numpy.full(self.num_envs, None, dtype=object)
            for i, e in enumerate(ended):
                final[e] = self._core.final_observation(i)
            info["final_obs"], info["_final_obs"] = final, mask.copy()

    def ragged(self) -> dict[str, numpy.ndarray]:
        """The open observations without padding, as copies: rows job_begin[e] to job_begin[e + 1] of `jobs` are environment
        e's, its prior and action_mask have one entry more (WAIT) and begin at job_begin[e] + e."""
        return self._core.ragged()

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

    def get_state(self) -> Any:
        """A snapshot for set_state() of this environment or a fork of it."""
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
        other = VectorEnv.__new__(VectorEnv)
        other._adopt(self._core.fork(), self.num_envs, self._mode, self._copy, self._on_invalid)
        return other


class Env(gymnasium.Env):
    """One environment, for libraries that want a gymnasium.Env. `action_masks()` is what sb3-contrib's MaskablePPO calls.

    Parameters
    ----------
    trace, cluster, on_invalid, **options : as of VectorEnv
    """

    metadata = {"render_modes": []}

    def __init__(self, trace: str | os.PathLike | _core.Trace,
                 cluster: str | int | os.PathLike | _core.Cluster | None = None, *, on_invalid: str = "raise",
                 **options: Unpack[EnvOptions]):
        self._env = VectorEnv(trace, cluster, 1, autoreset_mode=AutoresetMode.DISABLED, on_invalid=on_invalid, **options)
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
        observation, reward, terminated, truncated, info = self._env.step(numpy.asarray([action]))
        episode = info.get("episode")
        observation, info = self._first(observation, info)
        if episode is not None:
            info["episode"] = {name: values[0].item() for name, values in episode.items()}
        return observation, float(reward[0]), bool(terminated[0]), bool(truncated[0]), info

    @property
    def agent_options(self) -> dict[str, Any]:
        """As of VectorEnv."""
        return self._env.agent_options

    def action_masks(self) -> numpy.ndarray:
        """The mask of the open choice, as booleans."""
        return self._env._arrays["action_mask"][0].astype(numpy.bool_)
