#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The yardstick for bench/rl_bench: PPO on the same workload as a plain Python program would do it.

A select-blocking scheduler (RLScheduler, SC'20) on a pool of 256 GPUs: episodes of 1,024 jobs, eight features a waiting
job, the 961-parameter network 8-32-16-8-1, a critic on mean features, 4 epochs of minibatches of 512. The environment
is Python, the network is numpy with a backward pass by hand. One process, one thread. Prints processor time a step.

    OMP_NUM_THREADS=1 bench/peers/ppo_numpy.py [steps an iteration] [iterations]
"""
import heapq
import math
import random
import sys
import time

import numpy as np

GPUS = 256
JOBS = 1024
FEATURES = 8


def draw_jobs(rng):
    """(submit, run, gpus) of one episode: the distribution of bench/env_bench.cpp."""
    jobs, submit = [], 0.0
    for _ in range(JOBS):
        submit += rng.expovariate(1 / 600)
        jobs.append((submit, rng.lognormvariate(6.5, 1.6), 1 << rng.randrange(8)))
    return jobs


class Env:
    """step(i) starts the i-th waiting job as soon as it fits; the reward is minus the bounded slowdown it gets."""

    def __init__(self, rng):
        self.rng = rng

    def reset(self):
        self.jobs, self.next, self.now, self.free = draw_jobs(self.rng), 0, 0.0, GPUS
        self.waiting, self.running = [], []
        return self._to_choice()

    def _event(self):
        if self.next < JOBS and (not self.running or self.jobs[self.next][0] <= self.running[0][0]):
            self.now = max(self.now, self.jobs[self.next][0])
            self.waiting.append(self.jobs[self.next])
            self.next += 1
        else:
            self.now, gpus = heapq.heappop(self.running)
            self.free += gpus

    def _to_choice(self):
        while not self.waiting:
            if self.next == JOBS:
                return None
            self._event()
        return self.observe()

    def step(self, action):
        submit, run, gpus = self.waiting.pop(action)
        while gpus > self.free:
            self._event()
        self.free -= gpus
        heapq.heappush(self.running, (self.now + run, gpus))
        slowdown = max(1.0, (self.now - submit + run) / max(run, 10.0))
        return self._to_choice(), -slowdown / 100

    def observe(self):
        rows = []
        for i, (submit, run, gpus) in enumerate(self.waiting):
            wait = self.now - submit
            rows.append((math.log1p(wait) / 10, math.log1p(run) / 10, math.log1p(gpus) / 5,
                         min(4.0, gpus / max(self.free, 1)) / 4, math.log1p(wait / max(run, 10.0)) / 5,
                         float(gpus <= self.free), math.log1p(run * gpus) / 15, i / len(self.waiting)))
        return np.array(rows, dtype=np.float32)


class Net:
    """Dense layers with ReLU; forward keeps what backward needs."""

    def __init__(self, sizes, rng):
        self.w = [rng.normal(0, math.sqrt(2 / a), (a, b)).astype(np.float32) for a, b in zip(sizes, sizes[1:])]
        self.b = [np.zeros(b, np.float32) for b in sizes[1:]]
        self.m = [np.zeros_like(p) for p in self.w + self.b]
        self.v = [np.zeros_like(p) for p in self.w + self.b]
        self.steps = 0

    def forward(self, x):
        self.inputs = []
        for i, (w, b) in enumerate(zip(self.w, self.b)):
            self.inputs.append(x)
            x = x @ w + b
            if i + 1 < len(self.w):
                x = np.maximum(x, 0)
        return x

    def backward(self, grad):
        dw, db = [None] * len(self.w), [None] * len(self.b)
        for i in reversed(range(len(self.w))):
            dw[i], db[i] = self.inputs[i].T @ grad, grad.sum(0)
            grad = (grad @ self.w[i].T) * (self.inputs[i] > 0)
        return dw + db

    def descend(self, grads, rate=1e-3):
        self.steps += 1
        norm = math.sqrt(sum(float((g * g).sum()) for g in grads))
        scale = min(1.0, 0.5 / (norm + 1e-9))
        for p, g, m, v in zip(self.w + self.b, grads, self.m, self.v):
            g = g * scale
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            p -= rate * (m / (1 - 0.9**self.steps)) / (np.sqrt(v / (1 - 0.999**self.steps)) + 1e-5)


def log_softmax(logits):
    logits = logits - logits.max()
    return logits - math.log(np.exp(logits).sum())


def learn(policy, critic, steps, order):
    """One epoch of clipped PPO; steps are (observation, action, log probability, advantage, return)."""
    for first in range(0, len(order), 512):
        batch = [steps[i] for i in order[first:first + 512]]
        tokens = np.concatenate([s[0] for s in batch])
        begin = np.cumsum([0] + [len(s[0]) for s in batch])
        logits = policy.forward(tokens)[:, 0]
        grad = np.zeros_like(logits)
        for k, (_, action, old, advantage, _) in enumerate(batch):
            own = slice(begin[k], begin[k + 1])
            log_p = log_softmax(logits[own])
            ratio = math.exp(log_p[action] - old)
            clipped = (ratio > 1.2 and advantage > 0) or (ratio < 0.8 and advantage < 0)
            if not clipped:
                g = np.exp(log_p) * ratio * advantage
                g[action] -= ratio * advantage
                grad[own] = g / len(batch)
        policy.descend(policy.backward(grad[:, None]))
        value = critic.forward(np.stack([s[0].mean(0) for s in batch]))[:, 0]
        target = np.array([s[4] for s in batch], np.float32)
        critic.descend(critic.backward(((value - target) / len(batch))[:, None].astype(np.float32)))


def main():
    want = int(sys.argv[1]) if len(sys.argv) > 1 else 2048
    iterations = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    rng, np_rng = random.Random(1), np.random.default_rng(1)
    policy, critic, env = Net([FEATURES, 32, 16, 8, 1], np_rng), Net([FEATURES, 32, 32, 1], np_rng), Env(rng)
    env_s = inference_s = learner_s = 0.0
    total = tokens = 0
    for _ in range(iterations):
        steps = []
        while len(steps) < want:
            episode, seen = [], env.reset()
            while seen is not None:
                t0 = time.process_time()
                log_p = log_softmax(policy.forward(seen)[:, 0])
                action = int(np_rng.choice(len(log_p), p=np.exp(log_p) / np.exp(log_p).sum()))
                t1 = time.process_time()
                then, reward = env.step(action)
                episode.append((seen, action, float(log_p[action]), reward))
                tokens += len(seen)
                seen = then
                inference_s += t1 - t0
                env_s += time.process_time() - t1
            to_go = 0.0
            for seen, action, log_p, reward in reversed(episode):
                to_go += reward
                steps.append((seen, action, log_p, to_go))
        t0 = time.process_time()
        values = critic.forward(np.stack([s[0].mean(0) for s in steps]))[:, 0]
        advantage = np.array([s[3] for s in steps]) - values
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        steps = [(s[0], s[1], s[2], float(a), s[3]) for s, a in zip(steps, advantage)]
        for _ in range(4):
            learn(policy, critic, steps, np_rng.permutation(len(steps)))
        learner_s += time.process_time() - t0
        total += len(steps)
    for name, seconds in (("environment", env_s), ("inference", inference_s), ("learner", learner_s)):
        print(f"{name:12s} {1e6 * seconds / total:8.1f} us a step")
    print(f"{'all':12s} {1e6 * (env_s + inference_s + learner_s) / total:8.1f} us a step, "
          f"{total / (env_s + inference_s + learner_s):.0f} steps/s, {tokens / total:.1f} tokens a step")


if __name__ == "__main__":
    main()
