# SPDX-License-Identifier: Apache-2.0
"""The environment of an agent that sets the replicas of services beside jobs."""
from __future__ import annotations

import copy as copies
import os
from typing import TYPE_CHECKING, Any, Sequence

import gymnasium
import numpy
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from . import _core
from .envs import _box, _by_environment, _options_text
from .runs import _cluster_text, _text, read_trace

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import ServiceEnvOptions

_SERVICE_FEATURES, _CLUSTER_FEATURES = 10, 7


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


class ServiceVectorEnv(gymnasium.vector.VectorEnv):
    """Replicas of services, set every `period_s` beside jobs on one cluster; docs/environment.md says what is seen and rewarded.

    An observation is a dict: `services` [num_envs, services, 10] and `cluster` [num_envs, 7], float32. An action is a number
    of replicas for each service, [num_envs, services] of whole numbers from 0 to its most. What replicas do not hold the
    scheduler gives to jobs. Episodes begin anew at once (autoreset same_step).

    Parameters
    ----------
    trace : str, os.PathLike or Trace, or several, or None
        The jobs, as `read_trace` takes them. None: services alone.
    cluster : str, int, os.PathLike or Cluster, or several, optional
        By default what the trace states.
    services : str or os.PathLike, or several
        Files as `replay` takes them; their autoscalers are not asked. Several of any of the three are scenes, of which each
        episode draws one: the same services on other days, say.
    num_envs : int
    policy : str
        The scheduler that places jobs and replicas.
    **options
        period_s, longest_s (an episode is truncated after it; 0: never), weights (a dict of reward terms, by default missed
        alone), threads (which changes no result), oversize; every condition of `replay` by the same name.

    Raises
    ------
    Error
        An option out of range, a file that cannot be read, a replica or job that does not fit, scenes of other services.
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, trace: str | os.PathLike | _core.Trace | Sequence[Any] | None,
                 cluster: str | int | os.PathLike | _core.Cluster | Sequence[Any] | None = None,
                 services: str | os.PathLike | Sequence[str | os.PathLike] = "", num_envs: int = 1, *, policy: str = "fifo",
                 **options: Unpack[ServiceEnvOptions]):
        traces = [each if isinstance(each, _core.Trace) else read_trace(_text(each))
                  for each in ([] if trace is None else _listed(trace))]
        files = [_text(each) for each in _listed(services)]
        if not all(files):
            raise _core.Error("services: expected a file of services")
        text = _options_text(dict(options, num_envs=num_envs, policy=policy))
        self._adopt(_core.make_service_env(traces, [_cluster_text(each) for each in _listed(cluster)], files, text), num_envs)

    def _adopt(self, core: Any, num_envs: int) -> None:
        self._core = core
        self.num_envs = num_envs
        self.service_names = tuple(self._core.names)
        self.most = numpy.asarray(self._core.most, dtype=numpy.int32)
        self.single_observation_space = spaces.Dict({
            "services": _box(len(self.most), _SERVICE_FEATURES), "cluster": _box(_CLUSTER_FEATURES)})
        self.single_action_space = spaces.MultiDiscrete(self.most + 1)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)

    def _parts(self, rows: numpy.ndarray) -> dict[str, numpy.ndarray]:
        split = len(self.most) * _SERVICE_FEATURES
        return {"services": rows[:, :split].reshape(len(rows), len(self.most), _SERVICE_FEATURES), "cluster": rows[:, split:]}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Starts first episodes, whose scenes are drawn by `seed` and the number of the environment."""
        if seed is not None and not (isinstance(seed, (int, numpy.integer)) and 0 <= int(seed) < 2**64):
            raise _core.Error(f"seed: expected a whole number from 0 to 2**64 - 1, not {seed!r}")
        super().reset(seed=None if seed is None else int(seed))
        self._core.reset(int(seed) if seed is not None else int(self.np_random.integers(2**63)))
        return self._parts(self._core.observation()), {}

    def step(self, actions: Any):
        """The replicas of each service of each environment. When episodes ended `info` has episode_totals {<reward terms>} and
        final_obs, each with the mask of the environments that it holds for."""
        given = numpy.asarray(actions)
        if given.dtype.kind not in "iu":
            raise _core.Error(f"actions: expected whole numbers, not {given.dtype}")
        if given.shape != (self.num_envs, len(self.most)) or (given < 0).any() or (given > self.most).any():
            raise _core.Error(f"actions: expected numbers [{self.num_envs}, {len(self.most)}] from 0 to {self.most.tolist()}")
        self._core.step(numpy.ascontiguousarray(given, dtype=numpy.int32))
        info: dict[str, Any] = {}
        ended = self._core.ended()
        if len(ended):
            episode, mask = _by_environment(self.num_envs, ended, _core.service_reward_terms, self._core.episode_totals())
            episode.update({f"_{name}": mask for name in list(episode)})
            final = numpy.full(self.num_envs, None, dtype=object)
            for e, row in zip(ended, self._core.final_observation()):
                final[e] = {name: values[0] for name, values in self._parts(row[None]).items()}
            info = {"episode_totals": episode, "_episode_totals": mask, "final_obs": final, "_final_obs": mask.copy()}
        return (self._parts(self._core.observation()), self._core.rewards(), self._core.terminated().view(numpy.bool_),
                self._core.truncated().view(numpy.bool_), info)

    def get_state(self) -> _core.ServiceEnvState:
        """A snapshot for `set_state` of this environment or of its copies."""
        return self._core.save()

    def set_state(self, state: _core.ServiceEnvState):
        """Goes on exactly from where `get_state` was called; gives what `reset` does."""
        if not isinstance(state, _core.ServiceEnvState):
            raise _core.Error(f"state: expected what get_state() gave, not {type(state).__name__}")
        self._core.restore(state)
        return self._parts(self._core.observation()), {}

    def fork(self) -> ServiceVectorEnv:
        """A second environment in the same state, on the same jobs in memory, that goes on independently."""
        other = ServiceVectorEnv.__new__(type(self))
        other._np_random, other._np_random_seed = copies.deepcopy(self._np_random), self._np_random_seed
        other._adopt(self._core.fork(), self.num_envs)
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> ServiceVectorEnv:
        return self.fork()

    def needed(self) -> numpy.ndarray:
        """The replicas with which M/M/c keeps each promise at the last period's rate, [num_envs, services]: an action."""
        return self._core.needed()

    @property
    def reward_components(self) -> numpy.ndarray:
        """[num_envs, reward terms] of the last step, in the order of `reward_terms`."""
        return self._core.components()

    @property
    def reward_terms(self) -> tuple[str, ...]:
        """Names of the components of the reward."""
        return tuple(_core.service_reward_terms)

    @property
    def scenes(self) -> numpy.ndarray:
        """[num_envs]: the scene of each open episode."""
        return self._core.scenes()

    @property
    def now_s(self) -> numpy.ndarray:
        """[num_envs]: the simulated instant of each."""
        return self._core.now_s()


class ServiceEnv(gymnasium.Env):
    """One environment of a `ServiceVectorEnv`, for libraries that want a gymnasium.Env.

    Parameters
    ----------
    trace, cluster, services, policy, **options : as of ServiceVectorEnv
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, trace: Any, cluster: Any = None, services: Any = "", *, policy: str = "fifo",
                 **options: Unpack[ServiceEnvOptions]):
        self._env = ServiceVectorEnv(trace, cluster, services, 1, policy=policy, **options)
        self.observation_space = self._env.single_observation_space
        self.action_space = self._env.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Starts an episode; without a seed, the next one of the sequence that the last seed began."""
        if seed is None and self._np_random is not None:
            seed = int(self.np_random.integers(2**63))
        else:
            super().reset(seed=seed)
        observation, _ = self._env.reset(seed=seed)
        return {name: values[0] for name, values in observation.items()}, {}

    def step(self, action: Any):
        """Sets the replicas and goes on to the next action; the last observation of an episode is its own."""
        observation, reward, terminated, truncated, info = self._env.step(numpy.asarray(action)[None])
        seen = {name: values[0] for name, values in observation.items()}
        told = {}
        if "final_obs" in info:
            seen = info["final_obs"][0]
            told = {"episode_totals": {name: float(values[0]) for name, values in info["episode_totals"].items()
                                       if name[0] != "_"}}
        return seen, float(reward[0]), bool(terminated[0]), bool(truncated[0]), told

    @property
    def vector(self) -> ServiceVectorEnv:
        """The ServiceVectorEnv of one environment that this is."""
        return self._env
