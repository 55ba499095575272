#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A scheduler: first come, first served, for gangs of one-GPU tasks that may stand anywhere.

gpusched replay jobs.csv --cluster 4x8 --policy 'program:python3 fifo_scheduler.py'"""
import bisect, json, sys

if len(sys.argv) > 1:  # it takes no options: gpusched talks to it by its standard input
    print(__doc__)
    sys.exit(0 if {"-h", "--help"} & {*sys.argv} else 2)

def send(message):
    print(json.dumps(message), flush=True)


def wait(id):  # in its place
    bisect.insort(waiting, id, key=place.get)


def release(id):  # its GPUs are free, but for those on nodes that are out
    return gpus[id] - sum(jobs.pop(id, 0) for jobs in out.values())


waiting, place, gpus = [], {}, {}  # ids by place, the place of each, its GPUs
nodes, free = [], 0  # GPUs of each node, idle ones
out = {}  # of each node that is out of service, the jobs that run on there, with their GPUs on it
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        nodes = [node["gpus"] for node in message["cluster"]["nodes"]]
        out = {node: {} for node in message.get("nodes_out", [])}
        free = sum(nodes) - sum(nodes[node] for node in out)
        send({"type": "hello", "protocol": "gpusched", "version": 1, "name": "fifo"})
    elif message["type"] == "end":
        break
    else:
        for event in message["events"]:
            if event["event"] == "job_submitted":
                job = event["job"]
                gpus[job["id"]] = job["tasks"] * job["gpu_milli_per_task"] // 1000
                place[job["id"]] = event["place"]
                wait(job["id"])
            elif event["event"] in ("job_requeued", "start_refused"):  # it lost its nodes, or a limit forbids its start
                free += release(event["id"])
                wait(event["id"])
            elif event["event"] == "job_finished":
                free += release(event["id"])
            elif event["event"] == "job_cancelled":  # a limit holds it back, say: it may be submitted again
                if event["id"] in waiting:
                    waiting.remove(event["id"])
            elif event["event"] == "node_down":  # jobs that do not run on were requeued before
                jobs = out[event["node"]] = {job["id"]: job["tasks"] for job in event.get("jobs", [])}
                free -= nodes[event["node"]] - sum(jobs.values())
            elif event["event"] == "node_up":
                free += nodes[event["node"]] - sum(out.pop(event["node"]).values())
        starts = []
        while waiting and gpus[waiting[0]] <= free:
            free -= gpus[waiting[0]]
            starts.append({"decision": "start", "id": waiting.pop(0)})
        send({"type": "decisions", "time_us": message["time_us"], "decisions": starts})
