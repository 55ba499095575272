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


waiting, order, gpus = [], {}, {}  # ids in order of submission, the place of each there, its GPUs
nodes, free = [], 0  # GPUs of each node, idle ones
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        nodes = [node["gpus"] for node in message["cluster"]["nodes"]]
        free = sum(nodes) - sum(nodes[node] for node in message.get("nodes_out", []))
        send({"type": "hello", "protocol": "gpusched", "version": 1, "name": "fifo"})
    elif message["type"] == "end":
        break
    else:
        for event in message["events"]:
            if event["event"] == "job_submitted":
                job = event["job"]
                gpus[job["id"]] = job["tasks"] * job["gpu_milli_per_task"] // 1000
                order.setdefault(job["id"], len(order))
                waiting.append(job["id"])
            elif event["event"] == "job_requeued":  # it lost its nodes and waits again, in its place
                free += gpus[event["id"]]
                bisect.insort(waiting, event["id"], key=order.get)
            elif event["event"] == "job_finished":
                free += gpus[event["id"]]
            elif event["event"] == "node_down":  # its jobs were requeued before
                free -= nodes[event["node"]]
            elif event["event"] == "node_up":
                free += nodes[event["node"]]
        starts = []
        while waiting and gpus[waiting[0]] <= free:
            free -= gpus[waiting[0]]
            starts.append({"decision": "start", "id": waiting.pop(0)})
        send({"type": "decisions", "time_us": message["time_us"], "decisions": starts})
