#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The yardstick for the @muri policies: the Muri artifact's own simulator on the same traces, run beside ours.

usage: muri_peer.py GPUSCHED TRACES CHECKOUT
  GPUSCHED  the program
  TRACES    the folder with philly/muri_trace1.csv
  CHECKOUT  a checkout of github.com/Rivendile/Muri; this Python must have what its simulator imports (numpy, cvxpy)

Fails unless both give the same average JCT, and prints jobs per second of processor time (peer_run.py says of what).
"""
import pathlib
import sys

import peer_run

SCHEDULES = [("shortest", "srtf@muri"), ("shortest-gpu", "srsf@muri"), ("dlas-gpu", "tiresias@muri")]
TRACES = ["muri_trace1.csv", "muri_trace2.csv"]


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    program = peer_run.need_program(sys.argv[1], "the gpusched program")
    traces = [peer_run.need_file(pathlib.Path(sys.argv[2]) / "philly" / name, "a Muri trace") for name in TRACES]
    simulator = peer_run.need_file(pathlib.Path(sys.argv[3]) / "simulator" / "run_sim.py",
                                   "a checkout of github.com/Rivendile/Muri").parent
    peer_run.print_head("Muri")
    for trace in traces:
        for schedule, policy in SCHEDULES:
            their = peer_run.theirs(sys.executable, simulator, [
                "--cluster_spec=cluster_spec/n8g8.csv", "--scheme=yarn", f"--schedule={schedule}",
                f"--trace_file={trace}"])
            our = peer_run.ours(program, [
                "--trace", trace, "--format", "tiresias", "--cluster", "8x8", "--policy", policy])
            peer_run.print_row(trace.stem, schedule, policy, their, our)


main()
