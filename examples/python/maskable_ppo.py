#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains MaskablePPO of sb3-contrib on gpusched_sim.VectorEnv through an adapter, and compares it on fresh jobs.

Needs sb3-contrib (2.9 was tried) and what ppo.py needs but onnxruntime: the trained policy is compared as a Python callable.
"""
import argparse

TRACE, CLUSTER = "synthetic:lublin", "256x1"


def read_options(given=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trace", default=TRACE)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=40_000)
    parser.add_argument("--windows", type=int, default=64)
    return parser.parse_args(given)


if __name__ == "__main__":
    read_options()  # before the imports below, so that --help and a wrong option need none of them

import numpy  # noqa: E402
import torch  # noqa: E402
from sb3_contrib import MaskablePPO  # noqa: E402
from sb3_contrib.common.maskable.policies import MaskableMultiInputActorCriticPolicy  # noqa: E402
from stable_baselines3.common.logger import Logger  # noqa: E402
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor  # noqa: E402
from stable_baselines3.common.vec_env import VecEnv, VecNormalize  # noqa: E402
from torch import nn  # noqa: E402

import gpusched_sim as gs  # noqa: E402

KEYS = ("jobs", "action_mask", "global")


class Sb3Env(VecEnv):
    """A gpusched_sim.VectorEnv (autoreset same_step) as a VecEnv of Stable-Baselines3."""

    def __init__(self, env):
        space = type(env.single_observation_space)({key: env.single_observation_space[key] for key in KEYS})
        super().__init__(env.num_envs, space, env.single_action_space)
        self.env = env

    def _keep(self, observation):
        self.mask = observation["action_mask"].astype(bool)
        return {key: observation[key] for key in KEYS}

    def reset(self):
        return self._keep(self.env.reset(seed=self._seeds[0])[0])

    def step_async(self, actions):
        self.actions = actions

    def step_wait(self):
        observation, rewards, terminated, truncated, info = self.env.step(self.actions)
        infos = [{} for _ in range(self.num_envs)]
        for e in numpy.flatnonzero(info.get("_episode_totals", ())):
            final = info["final_obs"][e]
            infos[e] = {"terminal_observation": {key: final[key] for key in KEYS},
                        "TimeLimit.truncated": bool(truncated[e] and not terminated[e]),
                        "episode": {"r": info["episode_totals"]["return"][e], "l": info["episode_totals"]["length"][e], "t": 0.0}}
        return self._keep(observation), rewards, terminated | truncated, infos

    def env_method(self, method_name, *args, indices=None, **kwargs):
        if method_name != "action_masks":
            raise AttributeError(method_name)
        return list(self.mask[self._get_indices(indices)])

    def get_attr(self, attr_name, indices=None):
        found = self.action_masks if attr_name == "action_masks" else getattr(self.env, attr_name)
        return [found for _ in self._get_indices(indices)]

    def action_masks(self):
        return self.mask

    def set_attr(self, attr_name, value, indices=None):
        raise AttributeError(f"{attr_name} cannot be set for one environment")

    def env_is_wrapped(self, wrapper_class, indices=None):
        return [False for _ in self._get_indices(indices)]

    def close(self):
        self.env.close()


class JobScores(BaseFeaturesExtractor):
    """A score for each job and for WAIT, then the mean over the jobs and the cluster's features, for the critic."""

    def __init__(self, space, width=32):
        tokens, features = space["jobs"].shape
        around = space["global"].shape[0]
        super().__init__(space, tokens + 1 + width + around)
        self.job = nn.Sequential(nn.Linear(features + around, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.score, self.wait = nn.Linear(width, 1), nn.Linear(around, 1)

    def forward(self, observation):
        jobs, state = observation["jobs"], observation["global"]
        hidden = self.job(torch.cat([jobs, state.unsqueeze(1).expand(-1, jobs.shape[1], -1)], dim=2))
        there = (jobs.abs().sum(dim=2, keepdim=True) > 0).float()
        mean = (hidden * there).sum(dim=1) / there.sum(dim=1).clamp(min=1)
        return torch.cat([self.score(hidden).squeeze(2), self.wait(state), mean, state], dim=1)


class Leading(nn.Module):
    """The first entries: the scores are the logits themselves."""

    def __init__(self, count):
        super().__init__()
        self.count = count

    def forward(self, features):
        return features[:, :self.count]


class ScorePolicy(MaskableMultiInputActorCriticPolicy):
    """Takes the extractor's scores as logits."""

    def _build(self, lr_schedule):
        super()._build(lr_schedule)
        self.action_net = Leading(self.action_space.n)
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)


def act_of(model):
    """The trained policy as a function of observations, which gives its likeliest action."""
    def act(observation):
        seen = {key: observation[key] for key in KEYS}
        return model.predict(seen, action_masks=observation["action_mask"].astype(bool), deterministic=True)[0]

    return act


def main(given=None):
    arguments = read_options(given)
    torch.set_num_threads(1)
    trace = gs.read_trace(arguments.trace, seed=arguments.seed)
    env = gs.VectorEnv(trace, CLUSTER, 16, mode="fit_or_wait", knowledge="predicted", max_jobs=32, window_jobs=96,
                       warmup_jobs=32, stride=32, oversize="drop")

    def new_model():
        vec_env = VecNormalize(Sb3Env(env), norm_obs=False, gamma=1.0)
        vec_env.seed(arguments.seed)
        return MaskablePPO(ScorePolicy, vec_env, seed=arguments.seed, n_steps=128, batch_size=512, n_epochs=4, gamma=1.0,
                           gae_lambda=0.97, learning_rate=2e-3, ent_coef=0.005, device="cpu",
                           policy_kwargs={"net_arch": {"pi": [], "vf": [32]}, "features_extractor_class": JobScores})

    untrained, model = new_model(), new_model()
    model.set_logger(Logger(None, []))  # no folder of logs
    model.learn(arguments.steps)
    policies = {"fifo": "fifo", "saf": "saf", "saf+easy": "saf+easy", "untrained": gs.Agent(act_of(untrained), env),
                "maskable-ppo": gs.Agent(act_of(model), env)}
    # Windows of jobs that training did not see: the same model of jobs, drawn with another seed.
    result = gs.evaluate(arguments.trace, CLUSTER, policies, seed=arguments.seed + 1, window_jobs=96, warmup_jobs=32,
                         oversize="drop", windows=arguments.windows, against="saf+easy",
                         figure="avg_bounded_slowdown", mean="geometric")
    print(result)
    return result


if __name__ == "__main__":
    main()
