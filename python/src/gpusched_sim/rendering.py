# SPDX-License-Identifier: Apache-2.0
"""Nodes and queue of an environment as a text."""
from __future__ import annotations

from typing import Any, Mapping, Sequence

_MOST_NODES, _MOST_JOBS = 32, 16  # lines of each


def _node(number: int, gpus: int, free: float) -> str:
    if gpus > 64:  # as many characters as a line has room for
        return f"node {number:>4}  {gpus - free:g} of {gpus} GPUs held"
    held = int(gpus - free)
    partly = 1 if free != int(free) else 0
    return f"node {number:>4}  " + "#" * held + "+" * partly + "." * (gpus - held - partly)


def nodes_and_queue(state: Mapping[str, Any], ids: Sequence[str]) -> str:
    """What `VectorEnv.look` gives, as lines: a mark for each GPU, # held, + in part, . free, then the oldest waiting jobs."""
    nodes, waiting, running = state["nodes"], state["waiting"], state["running"]
    lines = [f"{state['now_s']:.0f} s: {nodes['free_gpus'].sum():g} of {nodes['gpus'].sum()} GPUs free, "
             f"{running.rows} jobs running, {waiting.rows} waiting"]
    lines += [_node(i, gpus, free) for i, (gpus, free) in
              enumerate(zip(nodes["gpus"][:_MOST_NODES].tolist(), nodes["free_gpus"][:_MOST_NODES].tolist()))]
    if nodes.rows > _MOST_NODES:
        lines.append(f"and {nodes.rows - _MOST_NODES} more nodes")
    for i in waiting["submit_s"].argsort(kind="stable")[:_MOST_JOBS].tolist():
        lines.append(f"job {ids[waiting['job'][i]]:>8}  {waiting['gpus'][i]:g} GPUs, waited {waiting['wait_s'][i]:.0f} s")
    if waiting.rows > _MOST_JOBS:
        lines.append(f"and {waiting.rows - _MOST_JOBS} more jobs")
    return "\n".join(lines)
