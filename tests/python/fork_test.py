# SPDX-License-Identifier: Apache-2.0
"""Environments in forked processes, and interpreters that end while a thread works."""
import os
import signal
import subprocess
import sys
import time

import pytest

gs = pytest.importorskip("gpusched_sim")
pytest.importorskip("gymnasium")

SMALL = dict(mode="fit_or_wait", window_jobs=32, warmup_jobs=0)


def ends_well_in_a_child(work):
    """True when a forked child that calls work() ends by itself, and well, within ten seconds."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    for _ in range(200):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_forked_process_steps_the_environment(threads):
    env = gs.VectorEnv("synthetic:philly:500", "6x8", num_envs=8, threads=threads, oversize="drop", **SMALL)
    env.reset(seed=1)
    env.step(env.heuristic_actions())
    state = env.get_state()
    expected = env.step(env.heuristic_actions())[1].tolist()
    env.set_state(state)

    def goes_on():
        assert env.step(env.heuristic_actions())[1].tolist() == expected
        env.reset(seed=3)

    assert ends_well_in_a_child(goes_on)
    assert env.step(env.heuristic_actions())[1].tolist() == expected  # and so does the parent


REPLAYS = """
import threading, time
import gpusched_sim as gs
gs.read_trace("synthetic:philly:10")
threading.Thread(target=lambda: gs.replay("synthetic:philly:400000", "40x8", ["fifo", "las"]), daemon=True).start()
time.sleep(1)
"""
STEPS = """
import threading, time
import gpusched_sim as gs
env = gs.VectorEnv("synthetic:philly:3000", "10x8", num_envs=64, mode="fit_or_wait", window_jobs=64)
env.reset(seed=1)
def work():
    while True:
        env.step(env.heuristic_actions())
threading.Thread(target=work, daemon=True).start()
time.sleep(1)
"""


@pytest.mark.parametrize("program", [REPLAYS, STEPS])
def test_leaving_the_interpreter_while_a_thread_works(program):
    begun = time.monotonic()
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "terminate" not in done.stderr
    assert time.monotonic() - begun < 30
