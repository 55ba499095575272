#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A host: runs the jobs of a csv file (job_id,submit_s,work_s,tasks,gpu_milli_per_task) and lets gpusched decide.

host.py JOBS.csv CLUSTER [NODES_OUT] -- gpusched serve --policy NAME     prints job_id,start_s,end_s

NODES_OUT: nodes that are out of service all the time, by number, such as 0,3"""
import csv, json, subprocess, sys

if "--" not in sys.argv[3:5] or sys.argv[-1] == "--":
    print(__doc__)
    sys.exit(0 if {"-h", "--help"} & {*sys.argv} else 2)
MICRO = 1_000_000
ours, command = sys.argv[1:sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1:]
jobs_file, cluster, nodes_out = ours[0], ours[1], [int(node) for node in ours[2].split(",")] if ours[2:] else []
scheduler = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ask(message):
    print(json.dumps(message), file=scheduler.stdin, flush=True)
    answer = json.loads(scheduler.stdout.readline() or sys.exit("host.py: the scheduler left"))
    return answer if answer["type"] != "error" else sys.exit("host.py: " + answer["message"])


def job(row):
    return {"id": row["job_id"], "submit_us": round(float(row["submit_s"]) * MICRO),
            "duration_us": round(float(row["work_s"]) * MICRO), "tasks": int(row["tasks"]),
            "gpu_milli_per_task": int(row["gpu_milli_per_task"])}


with open(jobs_file) as file:
    jobs = sorted(map(job, csv.DictReader(file)), key=lambda job: job["submit_us"])
left = {job["id"]: job["duration_us"] for job in jobs}
start, end, runs, arriving, call = {}, {}, {}, list(jobs), None  # runs: when each running job will end
ask({"type": "hello", "protocol": "gpusched", "version": 1, "cluster": cluster, "jobs": jobs,
     "nodes_out": nodes_out})
while len(end) < len(jobs) and (arriving or runs or call is not None):  # a call after the last end brings nothing
    now = min([j["submit_us"] for j in arriving[:1]] + list(runs.values()) + [call] * (call is not None))
    events = [{"event": "job_finished", "id": id} for id, at in runs.items() if at == now]
    for event in events:
        end[event["id"]] = runs.pop(event["id"])
    while arriving and arriving[0]["submit_us"] == now:
        events.append({"event": "job_submitted", "id": arriving.pop(0)["id"]})
    answer = ask({"type": "events", "time_us": now, "events": events})
    for decision in answer["decisions"]:
        id = decision["id"]
        if decision["decision"] == "start":
            start.setdefault(id, now)
            runs[id] = now + left[id]
        elif decision["decision"] == "preempt":
            left[id] = runs.pop(id) - now
        elif decision["decision"] == "cancel":
            end[id] = now
    call = answer["call_us"]
ask({"type": "end"})
print("job_id,start_s,end_s", *(f"{j['id']},{start.get(j['id'], end[j['id']]) / MICRO},{end[j['id']] / MICRO}" for j in jobs), sep="\n")
