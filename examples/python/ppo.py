#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PPO in one file: trains a scheduler on gpusched_sim.VectorEnv, writes it as an ONNX file and compares it on fresh jobs.

Proximal policy optimisation after Schulman et al., arXiv:1707.06347, with generalised advantage estimation (arXiv:1506.02438) and
invalid actions masked (arXiv:2006.14171). Needs torch (1.13 or later), gymnasium and onnxruntime.

    python3 examples/python/ppo.py --out agent.onnx
    gpusched_sim.evaluate("jobs.csv", "8x8", ["sjf", "agent.onnx"])     # from then on
"""
import argparse
import time

TRACE, CLUSTER = "synthetic:lublin", "256x1"


def read_options(given=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="agent.onnx")
    parser.add_argument("--trace", default=TRACE)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--envs", type=int, default=32)
    parser.add_argument("--steps", type=int, default=128)
    parser.add_argument("--window-jobs", type=int, default=96)
    parser.add_argument("--windows", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--minibatch", type=int, default=1024)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--gamma", type=float, default=1.0)
    parser.add_argument("--lam", type=float, default=0.97)
    parser.add_argument("--clip", type=float, default=0.2)
    parser.add_argument("--entropy", type=float, default=0.005)
    parser.add_argument("--width", type=int, default=32)
    return parser.parse_args(given)


if __name__ == "__main__":
    read_options()  # before the imports below, so that --help and a wrong option need none of them

import numpy  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

import gpusched_sim as gs  # noqa: E402


class Network(nn.Module):
    """A score for each waiting job, from its features and the cluster's, by the same small network for every job; one for
    WAIT; and the value of the state, from the mean over the jobs."""

    def __init__(self, width: int):
        super().__init__()
        self.job = nn.Sequential(nn.Linear(12 + 14, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.score = nn.Linear(width, 1)
        self.wait = nn.Sequential(nn.Linear(14, width), nn.Tanh(), nn.Linear(width, 1))
        self.critic = nn.Sequential(nn.Linear(width + 14, width), nn.Tanh(), nn.Linear(width, 1))
        for layer in (self.score, self.wait[-1]):  # at first all actions are about as likely
            nn.init.orthogonal_(layer.weight, 0.01)
            nn.init.zeros_(layer.bias)

    def hidden(self, jobs, state):
        around = state.unsqueeze(1).expand(-1, jobs.shape[1], -1)
        return self.job(torch.cat([jobs, around], dim=2))

    def forward(self, jobs, action_mask, state):
        """Logits [environments, max_jobs + 1]; those of forbidden actions are very low. What is exported."""
        logits = torch.cat([self.score(self.hidden(jobs, state)).squeeze(2), self.wait(state)], dim=1)
        return torch.where(action_mask > 0, logits, torch.full_like(logits, -1e9))

    def value(self, jobs, action_mask, state):
        there = (jobs.abs().sum(dim=2, keepdim=True) > 0).float()
        mean = (self.hidden(jobs, state) * there).sum(dim=1) / there.sum(dim=1).clamp(min=1)
        return self.critic(torch.cat([mean, state], dim=1)).squeeze(1)


def tensors(observation):
    """What the network reads. With copy=False the arrays are those of the environment: the buffer copies them."""
    mask = torch.from_numpy(observation["action_mask"]).float()
    return torch.from_numpy(observation["jobs"]), mask, torch.from_numpy(observation["global"])


def make_env(trace, arguments, num_envs=None, **options):
    return gs.VectorEnv(trace, CLUSTER, num_envs or arguments.envs, mode="fit_or_wait", knowledge="predicted", max_jobs=32,
                        window_jobs=arguments.window_jobs, warmup_jobs=32, stride=32, oversize="drop", copy=False, **options)


class Buffer:
    """The steps of one round: [steps, environments, ...]."""

    def __init__(self, steps, env):
        tokens = env.single_action_space.n - 1
        shape = (steps, env.num_envs)
        self.jobs = torch.zeros(*shape, tokens, 12)
        self.mask = torch.zeros(*shape, tokens + 1)
        self.state = torch.zeros(*shape, 14)
        self.actions = torch.zeros(shape, dtype=torch.int64)
        self.log_probs, self.values, self.rewards, self.done = (torch.zeros(shape) for _ in range(4))

    def put(self, step, observation):
        for kept, seen in zip((self.jobs, self.mask, self.state), tensors(observation)):
            kept[step] = seen
        return self.seen(step)

    def seen(self, step):
        return self.jobs[step], self.mask[step], self.state[step]

    def flat(self):
        return [array.flatten(0, 1) for array in (self.jobs, self.mask, self.state)]

    def advantages(self, last_value, gamma, lam):
        """Generalised advantage estimates. A value behind the end of an episode counts as 0."""
        result, next_advantage, next_value = torch.zeros_like(self.rewards), 0.0, last_value
        for step in reversed(range(len(self.rewards))):
            goes_on = 1.0 - self.done[step]
            error = self.rewards[step] + gamma * next_value * goes_on - self.values[step]
            next_advantage = error + gamma * lam * goes_on * next_advantage
            result[step], next_value = next_advantage, self.values[step]
        return result


class Scale:
    """Running deviation of the rewards' discounted sums, by which rewards are divided."""

    def __init__(self, num_envs, gamma):
        self.total, self.gamma = numpy.zeros(num_envs), gamma
        self.count, self.mean, self.squares = 1e-4, 0.0, 0.0

    def __call__(self, rewards, done):
        self.total = self.total * self.gamma + rewards
        for value in self.total:
            self.count += 1
            before = value - self.mean
            self.mean += before / self.count
            self.squares += before * (value - self.mean)
        self.total[done] = 0.0
        return rewards / max((self.squares / self.count) ** 0.5, 1e-8)


def collect(env, network, buffer, observation, scale):
    """Fills the buffer; gives the observation after it and the returns of the episodes that ended."""
    returns = []
    with torch.no_grad():
        for step in range(len(buffer.rewards)):
            seen = buffer.put(step, observation)
            choice = torch.distributions.Categorical(logits=network(*seen))
            buffer.actions[step] = choice.sample()
            buffer.log_probs[step] = choice.log_prob(buffer.actions[step])
            buffer.values[step] = network.value(*seen)
            observation, rewards, terminated, truncated, info = env.step(buffer.actions[step].numpy())
            done = terminated | truncated
            buffer.rewards[step] = torch.from_numpy(scale(rewards, done)).float()
            buffer.done[step] = torch.from_numpy(done).float()
            if "episode_totals" in info:
                returns += info["episode_totals"]["return"][info["_episode_totals"]].tolist()
    return observation, returns


def update(network, optimizer, buffer, advantages, arguments):
    """Some epochs of clipped policy gradient over the buffer in minibatches."""
    seen = buffer.flat()
    actions, log_probs = buffer.actions.flatten(), buffer.log_probs.flatten()
    advantages, targets = advantages.flatten(), (advantages + buffer.values).flatten()
    for _ in range(arguments.epochs):
        for rows in torch.randperm(len(actions)).split(arguments.minibatch):
            part = [array[rows] for array in seen]
            choice = torch.distributions.Categorical(logits=network(*part))
            ratio = (choice.log_prob(actions[rows]) - log_probs[rows]).exp()
            gain = advantages[rows]
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            clipped = ratio.clamp(1 - arguments.clip, 1 + arguments.clip)
            policy_loss = -torch.min(gain * ratio, gain * clipped).mean()
            value_loss = 0.5 * (network.value(*part) - targets[rows]).pow(2).mean()
            loss = policy_loss + 0.5 * value_loss - arguments.entropy * choice.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 0.5)
            optimizer.step()


def train(network, trace, arguments):
    env = make_env(trace, arguments)
    optimizer = torch.optim.Adam(network.parameters(), lr=arguments.rate, eps=1e-5)
    buffer, scale = Buffer(arguments.steps, env), Scale(env.num_envs, arguments.gamma)
    observation, _ = env.reset(seed=arguments.seed)
    begin = time.monotonic()
    for round_number in range(arguments.rounds):
        for group in optimizer.param_groups:
            group["lr"] = arguments.rate * (1 - round_number / arguments.rounds)
        observation, returns = collect(env, network, buffer, observation, scale)
        with torch.no_grad():
            last_value = network.value(*tensors(observation))
        update(network, optimizer, buffer, buffer.advantages(last_value, arguments.gamma, arguments.lam), arguments)
        if (round_number + 1) % 5 == 0 and returns:
            rate = (round_number + 1) * buffer.actions.numel() / (time.monotonic() - begin)
            print(f"round {round_number + 1}: mean return {numpy.mean(returns):.2f}, {rate:,.0f} steps/s", flush=True)
    return env


def export(network, env, path):
    """Writes the policy as an ONNX file, inputs called as the arrays of an observation are."""
    observation, _ = env.reset(seed=0)
    names = ("jobs", "action_mask", "global")
    torch.onnx.export(network, tensors(observation), path, input_names=list(names), output_names=["logits"],
                      dynamic_axes={name: {0: "environments"} for name in (*names, "logits")}, opset_version=14)
    gs.mark_onnx(path, env)


def main(given=None):
    arguments = read_options(given)
    torch.manual_seed(arguments.seed)
    torch.set_num_threads(1)  # sums in one order: the same seed gives the same agent
    network = Network(arguments.width)
    trace = gs.read_trace(arguments.trace, seed=arguments.seed)
    untrained = arguments.out.removesuffix(".onnx") + "-untrained.onnx"
    export(network, make_env(trace, arguments, 1), untrained)
    export(network, train(network, trace, arguments), arguments.out)
    policies = {"fifo": "fifo", "saf": "saf", "saf+easy": "saf+easy", "untrained": gs.onnx_agent(untrained),
                "ppo": gs.onnx_agent(arguments.out)}
    # Windows of jobs that training did not see: the same model of jobs, drawn with another seed.
    result = gs.evaluate(arguments.trace, CLUSTER, policies, seed=arguments.seed + 1, window_jobs=arguments.window_jobs,
                         warmup_jobs=32, oversize="drop", windows=arguments.windows, against="saf+easy",
                         figure="avg_bounded_slowdown", mean="geometric")
    print(result)
    return result


if __name__ == "__main__":
    main()
