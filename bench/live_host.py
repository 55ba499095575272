#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a live host costs that announces nothing: half of the events submit a job, half end one; 20 jobs run.
usage: live_host.py GPUSCHED [EVENTS, by default 1000000] [POLICY...]"""
import os
import subprocess
import sys
import tempfile

RUNNING, USERS = 20, 50


def write_session(file, events):
    file.write('{"type":"hello","protocol":"gpusched","version":1,"cluster":"4x8"}\n')
    for i in range(events // 2):
        happened = [f'{{"event":"job_finished","id":"j{i - RUNNING}"}}'] if i >= RUNNING else []
        happened.append(f'{{"event":"job_submitted","job":{{"id":"j{i}","gpu_milli_per_task":1000,"user":"u{i % USERS}",'
                        f'"duration_us":20000,"estimate_us":30000}}}}')
        file.write(f'{{"type":"events","time_us":{i * 1000},"events":[{",".join(happened)}]}}\n')
    file.write('{"type":"end"}\n')


def main():
    program = sys.argv[1]
    events = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    with tempfile.TemporaryFile("w+") as session:
        write_session(session, events)
        for policy in sys.argv[3:] or ["fifo", "fifo+easy", "srtf", "las", "drf", "slurm"]:
            session.seek(0)
            process = subprocess.Popen([program, "serve", "--policy", policy], stdin=session, stdout=subprocess.DEVNULL)
            _, status, used = os.wait4(process.pid, 0)
            print(f"{policy:10} {events} events {used.ru_utime:.1f} s, {used.ru_maxrss / 1024:.0f} MiB", "" if status == 0 else "failed")


if __name__ == "__main__":
    main()
