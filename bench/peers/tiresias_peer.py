#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The yardstick for tiresias@code: the Tiresias simulator on the same jobs, run beside ours.

usage: tiresias_peer.py GPUSCHED TRACES CHECKOUT PYTHON2
  GPUSCHED  the program
  TRACES    the folder with alibaba/pai2020/philly_in_pai_columns_20k.csv, of which the first 5,000 jobs are taken
  CHECKOUT  a checkout of github.com/SymbioticLab/Tiresias
  PYTHON2   a Python 2.7 that has numpy: under Python 3 the simulator does not run, and would divide otherwise

Fails unless both give the same average JCT, and prints jobs per second of processor time (peer_run.py says of what).
"""
import itertools
import pathlib
import sys
import tempfile

import peer_run

SCHEDULES = [("fifo", "fifo"), ("fjf", "fifo-skip"), ("shortest", "srtf"), ("shortest-gpu", "srsf"),
             ("dlas-gpu", "tiresias@code")]
JOBS = 5000


def head_of(path, folder):
    """A copy of the header and the first JOBS rows of a csv file."""
    copy = pathlib.Path(folder) / f"philly_{JOBS}.csv"
    with open(path) as source:
        copy.write_text("".join(itertools.islice(source, JOBS + 1)))
    return copy


def main():
    if len(sys.argv) != 5:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    program = peer_run.need_program(sys.argv[1], "the gpusched program")
    jobs = peer_run.need_file(pathlib.Path(sys.argv[2]) / "alibaba/pai2020/philly_in_pai_columns_20k.csv",
                              "Philly jobs in the columns of PAI")
    simulator = peer_run.need_file(pathlib.Path(sys.argv[3]) / "simulator" / "run_sim.py",
                                   "a checkout of github.com/SymbioticLab/Tiresias").parent
    python = peer_run.need_program(sys.argv[4], "a Python 2.7")
    peer_run.print_head("Tiresias")
    with tempfile.TemporaryDirectory() as folder:
        trace = head_of(jobs, folder)
        for schedule, policy in SCHEDULES:
            their = peer_run.theirs(python, simulator, [
                "--cluster_spec=n32g4.csv", "--scheme=count", f"--schedule={schedule}", f"--trace_file={trace}"])
            our = peer_run.ours(program, [
                "--trace", trace, "--format", "csv", "--cluster", "128", "--columns",
                "submit=submit_time,gpus=num_gpu,duration=duration", "--policy", policy])
            peer_run.print_row(trace.stem, schedule, policy, their, our)


main()
