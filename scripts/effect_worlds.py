#!/usr/bin/env python3
"""Writes small inputs that switch on every effect of the engine, one world a folder, each with the options of `gpusched
replay` that run it. scripts/compare_programs.sh replays them with two programs.

    scripts/effect_worlds.py FOLDER

The same files each time: nothing but a fixed sequence of pseudo-random numbers decides them.
"""
import json
import pathlib
import sys

FAMILIES = ("resnet", "bert", "gpt")


class Draws:
    """A linear congruential generator (Knuth's MMIX constants): the same numbers in every version of Python."""

    def __init__(self, seed):
        self.state = seed

    def below(self, bound):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % bound


def jobs(draws, count, shares, linked, attempts):
    header = "job_id,submit_s,work_s,tasks,gpu_milli_per_task,user,vc,family,priority,estimate_s,deadline_s,after,attempts_s"
    rows, clock, submitted = [header], 0, []
    for i in range(count):
        clock += draws.below(40)
        work = 1 + draws.below(20) ** 2 * (1 + draws.below(6))
        tasks = (1, 1, 1, 2, 2, 4, 8)[draws.below(7)]
        milli = (250, 400, 500, 1000)[draws.below(4)] if shares and tasks == 1 else 1000
        after = f"j{draws.below(i)}" if linked and i > 0 and draws.below(6) == 0 else ""
        parts = ""
        if attempts and work > 3 and draws.below(5) == 0:
            first = 1 + draws.below(work - 1)
            parts = f"{first};{work - first}"
        rows.append(f"j{i},{clock},{work},{tasks},{milli},u{draws.below(5)},v{draws.below(2)},{FAMILIES[draws.below(3)]},"
                    f"{draws.below(4)},{work * (1 + draws.below(3))},{clock + 3 * work + draws.below(2000)},{after},{parts}")
        submitted.append((clock, milli))
    return "\n".join(rows) + "\n", submitted


def changes(draws, submitted):
    rows = []
    for i, (submit, milli) in enumerate(submitted):
        kind = draws.below(12)
        time = submit + 1 + draws.below(600)
        if kind == 0:
            rows.append((time, i, "cancel", ""))
        elif kind == 1:
            rows.append((time, i, "priority", draws.below(9)))
        elif kind == 2 and milli == 1000:
            rows.append((time, i, "gpus", 1 + draws.below(8)))
    return "time_s,job,change,value\n" + "".join(f"{t},j{i},{c},{v}\n" for t, i, c, v in sorted(rows))


def outages(draws, nodes, clock):
    rows = []
    for node in range(nodes):
        begin = draws.below(clock)
        rows.append((begin, node, ("down", "drain")[draws.below(2)]))
        rows.append((begin + 60 + draws.below(900), node, "up"))
    return "time_s,node,event\n" + "".join(f"{t},{n},{e}\n" for t, n, e in sorted(rows))


THROUGHPUTS = ["family,gpu_type,throughput,beside"] + [
    f"{family},{gpu},{(f + 1) * speed}," for f, family in enumerate(FAMILIES) for gpu, speed in (("K80", 1), ("V100", 3))
] + [f"{family},{gpu},{round((f + 1) * speed * 0.7, 3)},{other}" for f, family in enumerate(FAMILIES)
     for gpu, speed in (("K80", 1), ("V100", 3)) for other in FAMILIES]
MIXED = {"nodes": [{"count": 3, "name": "k", "gpus": 4, "gpu_type": "K80", "rack": "a"},
                   {"count": 3, "name": "v", "gpus": 4, "gpu_type": "V100", "rack": "b"}]}
TURNS = {"nodes": [{"count": 4, "gpus": 4, "sharing": "time-slicing"}, {"count": 2, "gpus": 4}]}
MIG = {"gpu_types": {"A100-40GB": {"memory_gib": 40}},
       "nodes": [{"count": 2, "gpus": 4, "gpu_type": "A100-40GB"},
                 {"count": 2, "gpus": 4, "gpu_type": "A100-40GB", "mig": ["3g.20gb", "2g.10gb", "1g.5gb", "1g.5gb"]},
                 {"count": 2, "gpus": 4, "gpu_type": "A100-40GB", "mig": {"layout": "dynamic", "reconfigure_s": 7}}]}
STAGES = {"provision_s": 5, "keep_alive_s": 300, "cache_gib": 20, "transfer_gib_per_s": 1, "storage_gib_per_s": 2,
          "uplink_gib_per_s": 1.5, "images": {"by": "user", "gib": 8, "unpack_s": 3, "load_s": 2},
          "weights": {"gib": 5, "load_s": 4}}
ELASTIC = {"families": {"resnet": {"speedup": [[1, 1], [2, 1.9], [4, 3.5], [8, 5.6]]},
                        "bert": {"speedup": [[1, 1], [2, 1.4], [4, 1.7], [8, 1.8]]}}}
LAWS = {"node": {"per_1000_days": 20000, "detect_s": 20, "repair_h": 0.1, "repair": "exponential"}}
COSTS = "--checkpoint-cost 2 --restart-cost 5"
PERIODIC = "--restart-cost 5 --checkpoint-interval 40 --checkpoint-write 2"
SPEEDS = "--throughputs throughputs.csv --reference-type K80"


def write(folder, files, options):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content) + "\n")
    (folder / "options").write_text(options + "\n")


SERVICES = {"services": [
    {"name": "chat", "requests": {"rate_per_s": 0.5, "duration_s": 3000}, "serves": {"mean_s": 3}, "at_once": 2, "timeout_s": 20,
     "promise": {"part": 0.9, "within_s": 15}, "replica": {"gpus": 2}, "least": 0, "most": 4,
     "autoscaler": {"rule": "kpa", "concurrency": 2}, "start": {"cold_s": 10, "warm_s": 2, "keep_warm_s": 200}},
    {"name": "drive", "begin_s": 100, "requests": {"rate_per_s": 2, "duration_s": 2000, "arrivals": "even"},
     "serves": {"batch_s": [0.1, 0.15, 0.18], "delay_s": 0.2}, "lost": "drop", "replica": {"gpus": 1}, "most": 2}]}

STUDIES = {"studies": [
    {"name": "asha", "search": "asha-promotion", "trials": 27, "workers": 6, "unit_s": 20, "loss": {"law": "falling"}},
    {"name": "ray", "begin_s": 100, "search": "asha-stopping", "trials": 20, "workers": 4, "most_units": 9, "unit_s": 30,
     "loss": {"law": "lasting"}, "task": {"gpus": 2}, "target_loss": 0.1, "stop_at_target": True}]}


def main():
    root = pathlib.Path(sys.argv[1])
    plain, submitted = jobs(Draws(1), 300, False, False, False)
    shared, _ = jobs(Draws(2), 300, True, False, False)
    linked, _ = jobs(Draws(3), 300, False, True, True)
    every, submitted_every = jobs(Draws(4), 300, True, True, True)
    clock = submitted[-1][0]
    files = {"jobs.csv": plain, "changes.csv": changes(Draws(5), submitted), "down.csv": outages(Draws(6), 6, clock),
             "laws.json": LAWS, "throughputs.csv": "\n".join(THROUGHPUTS) + "\n", "mixed.json": MIXED, "turns.json": TURNS,
             "mig.json": MIG, "stages.json": STAGES, "elastic.json": ELASTIC,
             "moving.json": STAGES | {"checkpoint_gib_per_gpu": 3}}
    files["services.json"] = SERVICES
    files["trials.json"] = STUDIES
    worlds = {
        "failures": ({}, f"--cluster 6x4 --failures down.csv {COSTS}"),
        "laws": ({}, f"--cluster 6x4 --failures laws.json {PERIODIC}"),
        "young": ({}, "--cluster 6x4 --failures laws.json --checkpoint-rule young --checkpoint-write 2 --restart-cost 5"),
        "stages": ({}, f"--cluster mixed.json --stages stages.json --failures down.csv {COSTS}"),
        "moving": ({}, "--cluster mixed.json --stages moving.json --failures laws.json --checkpoint-interval 60"),
        "elastic": ({}, f"--cluster 6x4 --elastic elastic.json {COSTS}"),
        "changes": ({}, f"--cluster 6x4 --changes changes.csv {COSTS}"),
        "turns": ({"jobs.csv": shared}, f"--cluster turns.json {PERIODIC}"),
        "company": ({"jobs.csv": shared}, f"--cluster mixed.json {SPEEDS} --interference throughputs"),
        "mig": ({"jobs.csv": shared}, f"--cluster mig.json {COSTS}"),
        "linked": ({"jobs.csv": linked}, f"--cluster 6x4 {COSTS}"),
        "speeds": ({}, f"--cluster mixed.json {SPEEDS} --placement fastest {COSTS}"),
        "spans": ({}, f"--cluster mixed.json --span-speed nodes=0.8,racks=0.5 {COSTS}"),
        "services": ({}, f"--cluster 6x4 --services services.json --failures down.csv {COSTS}"),
        "trials": ({}, f"--cluster 6x4 --trials trials.json --failures down.csv {COSTS}"),
        "everything": ({"jobs.csv": every, "changes.csv": changes(Draws(7), submitted_every)},
                       f"--cluster mixed.json {SPEEDS} --interference throughputs --span-speed nodes=0.8,racks=0.5 --stages "
                       f"stages.json --failures laws.json --changes changes.csv {PERIODIC}"),
    }
    for name, (own, options) in worlds.items():
        write(root / name, files | own, options)
    print(" ".join(worlds))


main()
