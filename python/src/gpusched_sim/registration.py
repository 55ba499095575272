# SPDX-License-Identifier: Apache-2.0
"""Names by which gymnasium.make() and gymnasium.make_vec() know the environments."""
from __future__ import annotations

from typing import Any

_NAMES: dict[str, dict[str, Any]] = {
    "gpusched/Philly-v0": {"trace": "synthetic:philly", "cluster": "8x8", "oversize": "drop", "window_jobs": 256},
    "gpusched/PhillyPreempt-v0": {"trace": "synthetic:philly", "cluster": "8x8", "oversize": "drop", "window_jobs": 256,
                                  "mode": "preempt", "heuristic": "las", "max_jobs": 64},
    "gpusched/Lublin-v0": {"trace": "synthetic:lublin", "cluster": "256x1", "oversize": "drop", "window_jobs": 96,
                           "warmup_jobs": 32, "stride": 32, "max_jobs": 32},
}


def register() -> None:
    """Makes them known; importing gpusched_sim does it."""
    from gymnasium.envs.registration import register as register_name
    from gymnasium.envs.registration import registry

    for name, options in _NAMES.items():
        if name not in registry:
            register_name(name, entry_point="gpusched_sim.envs:Env", vector_entry_point="gpusched_sim.envs:VectorEnv",
                          kwargs=options)
