#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps a second of processor time of the vector environment in Python beside those of the C++ one on the same jobs, by turns.

    PYTHONPATH=build/test/python bench/python_env.py build/test/bench/vector_env_steps [--envs 256] [--seconds 2] [--turns 5]
"""
import argparse
import statistics
import subprocess
import time

import gpusched_sim as gs


def rate(env, step, seconds):
    env.reset(seed=1)
    begin, steps = time.process_time(), 0
    while time.process_time() - begin < seconds:
        for _ in range(20):
            step()
        steps += 20 * env.num_envs
    return steps / (time.process_time() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", help="the program bench/vector_env_steps.cpp")
    parser.add_argument("--envs", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--mode", default="select_blocking")
    arguments = parser.parse_args()
    trace = gs.read_trace("synthetic:philly")
    rates = {}
    for _ in range(arguments.turns):
        for copy in (False, True):
            env = gs.VectorEnv(trace, None, arguments.envs, mode=arguments.mode, window_jobs=256, copy=copy)
            rates.setdefault(f"step_heuristic, copy={copy}", []).append(rate(env, env.step_heuristic, arguments.seconds))
            rates.setdefault(f"step(actions), copy={copy}", []).append(
                rate(env, lambda env=env: env.step(env.heuristic_actions()), arguments.seconds))
        words = [arguments.peer, arguments.mode, str(arguments.envs), str(arguments.seconds)]
        rates.setdefault("C++", []).append(float(subprocess.run(words, check=True, capture_output=True, text=True).stdout))
    whole = statistics.median(rates["C++"])
    for name, values in rates.items():
        print(f"{name:28} {statistics.median(values):12,.0f} steps/s {statistics.median(values) / whole:7.1%}")


if __name__ == "__main__":
    main()
