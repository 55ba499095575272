#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A year of jobs whose kind changes from month to month, for 128 GPUs, as native csv.

usage: year.py CSV [MONTHS]

Four kinds in turn: short ones of one GPU; long gangs; both, with heavy tails; bursts by day. Each month asks for 0.6 to 0.9 of the
GPUs. A request is 1 to 5 times the run time. The same bytes always.
"""
import math
import random
import sys

MONTH_S, GPUS = 30 * 86400, 128


def short(draw):
    return 1, draw.lognormvariate(math.log(1200), 1.0)


def gangs(draw):
    return draw.choice((8, 16, 32)), draw.lognormvariate(math.log(4 * 3600), 0.8)


def mixed(draw):
    return draw.choice((1, 1, 1, 2, 4, 8, 16)), draw.lognormvariate(math.log(7200), 2.0)


def bursts(draw):
    return draw.choice((2, 4, 8)), draw.lognormvariate(math.log(4 * 3600), 1.2)


KINDS = ((short, 0.6), (gangs, 0.7), (mixed, 0.8), (bursts, 0.9))


def month_jobs(number):
    """(submit, gpus, run time, request, user) of the jobs of a month."""
    draw = random.Random(number)
    kind, load = KINDS[number % len(KINDS)]
    asked, jobs = 0.0, []
    while asked < load * GPUS * MONTH_S:
        gpus, run_s = kind(draw)
        run_s = min(max(run_s, 30), 4 * 86400)
        submit = draw.uniform(0, MONTH_S)
        if kind is bursts:
            submit = submit // 86400 * 86400 + draw.triangular(8, 20, 11) * 3600
        asked += gpus * run_s
        jobs.append((number * MONTH_S + submit, gpus, run_s, run_s * draw.uniform(1, 5), f"u{draw.randrange(40)}"))
        if len(jobs) == 1500 and kind is short:  # few short jobs suffice; what else is asked for are gangs
            kind = gangs
    return jobs


def main():
    months = int(sys.argv[2]) if len(sys.argv) > 2 else 12
    jobs = sorted(job for month in range(months) for job in month_jobs(month))
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write("job_id,submit_s,num_gpus,duration_s,estimate_s,user\n")
        for number, (submit, gpus, run_s, request_s, user) in enumerate(jobs):
            out.write(f"{number},{submit:.0f},{gpus},{run_s:.0f},{request_s:.0f},{user}\n")


if __name__ == "__main__":
    main()
