#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small traces of the names and formats that the experiments read, for runs without real traces.

usage: smoke_traces.py FOLDER

Jobs are drawn with one multiplicative generator (Park and Miller, "Random number generators: good ones are hard to find",
1988), so that every machine writes the same bytes. They resemble nobody's workload; the same files always give the same tables.
"""
import csv
import datetime
import json
import pathlib
import sys


class Draws:
    def __init__(self, seed):
        self.state = seed

    def below(self, count):
        self.state = self.state * 16807 % 2147483647
        return self.state % count

    def of(self, values):
        return values[self.below(len(values))]


def write_csv(path, header, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="") as target:
        writer = csv.writer(target, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def submissions(draws, count, most_between):
    now = 0
    for number in range(count):
        yield number, now
        now += draws.below(most_between)


def write_tiresias(folder):
    draws = Draws(1)
    header = ["job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration", "interval"]
    write_csv(folder / "small/tiresias_60_job.csv", header,
              [[number, draws.of([1, 1, 2, 4, 8]), now, 100, "vgg11", 20 + draws.below(400), 0]
               for number, now in submissions(draws, 60, 60)])
    header = ["job_id", "user", "submit_time", "duration", "num_inst", "num_gpu", "num_cpu", "user_dur", "user_gpu_dur",
              "group_dur", "group_gpu_dur", "gpu_type"]
    write_csv(folder / "alibaba/pai2020/philly_in_pai_columns_20k.csv", header,
              [[number, "u", now, draws.of([60, 900, 7200, 86400]) + draws.below(60), 1, draws.of([1, 1, 2, 8, 16]), 4,
                1.0, 1.0, 1.0, 1.0, "V100"] for number, now in submissions(draws, 600, 900)])


def write_muri(folder):
    header = ["job_id", "num_gpu", "submit_time", "iterations", "model_name", "batch_size", "duration", "interval",
              "iteration_time", "resource_time_0", "resource_time_1", "resource_time_2", "priority"]
    for number in (1, 2):
        draws = Draws(10 + number)
        rows = []
        for job, now in submissions(draws, 120, 400_000):
            step = 100 + draws.below(400)
            iterations = 1000 + draws.below(40_000)
            rows.append([job, draws.of([1, 1, 2, 4, 8]), now, iterations, "dqn", 128, iterations * step, 0, step, step // 2,
                         step // 3, 8, 0, 1][:len(header)])
        write_csv(folder / f"philly/muri_trace{number}.csv", header, rows)


def write_lublin(folder):
    """The protocol's last window ends at job 10,000."""
    draws = Draws(21)
    lines = ["; MaxNodes: 256", "; MaxProcs: 256"]
    for job, now in submissions(draws, 10_000, 700):
        run = 10 + draws.below(draws.of([100, 1000, 30_000]))
        lines.append(" ".join(map(str, [job + 1, now, 0, run, draws.of([1, 2, 4, 8, 16, 32, 64]), -1, -1,
                                        -1, run + draws.below(run), -1, 1, 1 + draws.below(9), -1, -1, -1, -1, -1, -1])))
    path = folder / "swf/lublin_256.swf"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def write_openb(folder):
    draws = Draws(31)
    openb = folder / "alibaba/openb2023"
    write_csv(openb / "openb_node_list_gpu_node.csv", ["sn", "cpu_milli", "memory_mib", "gpu", "model"],
              [[f"node-{i}", draws.of([32000, 64000, 96000]), 393216, draws.of([2, 4, 8]), "P100"] for i in range(400)])
    header = ["name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase", "creation_time",
              "deletion_time", "scheduled_time"]
    sizes = [(1, 200), (1, 300), (1, 460), (1, 700), (1, 1000), (2, 1000), (4, 1000)]
    pods = [[f"pod-{i}", draws.of([2000, 4000, 8000, 16000]), 8192, *draws.of(sizes), "", "LS", "Running", 0, 100, 0]
            for i in range(600)]
    for name in ("default", "smoke"):  # fgd_table knows published figures of "default"
        write_csv(openb / f"openb_pod_list_{name}.csv", header, pods)


def write_philly_attempts(folder):
    """HeliosArtifact's Philly/cluster_log.csv; virtual clusters and dates are those that its notebook takes."""
    draws = Draws(41)
    first = datetime.datetime(2017, 10, 1)
    rows = []
    for job, now in submissions(draws, 800, 20):
        run = 30 + draws.below(draws.of([300, 5000, 60_000]))
        rows.append([job, f"u{draws.below(20)}", draws.of(["6214e9", "b436b2", "ee9e8c"]), draws.of([4, 8, 16, 32]), 1,
                     "COMPLETED", first + datetime.timedelta(seconds=now), "", "", run, 0])
    write_csv(folder / "Philly/cluster_log.csv",
              ["job_id", "user", "vc", "gpu_num", "node_num", "state", "submit_time", "start_time", "end_time", "duration",
               "queue"], rows)


def write_pai(folder):
    draws = Draws(51)
    write_csv(folder / "pai_job_duration_estimate_100K.csv",
              ["job_id", "user", "submit_time", "duration", "num_inst", "num_gpu", "num_cpu", "user_dur", "user_gpu_dur",
               "group_dur", "group_gpu_dur", "gpu_type"],
              [[job, f"u{draws.below(9)}", now, 60 + draws.below(draws.of([100, 5000, 40_000])), draws.of([1, 1, 2]),
                draws.of([0.25, 0.5, 1, 2, 8]), 4, *(100.0 + draws.below(5000) for _ in range(4)), draws.of(["V100", "MISC"])]
               for job, now in submissions(draws, 3000, 60)])


def write_gavel(folder):
    """The artifact's models and batch sizes, on 1, 2, 4 and 8 GPUs of each type."""
    draws = Draws(61)
    sizes = {"ResNet-18": [16, 32, 64, 128, 256], "ResNet-50": [16, 32, 64, 128], "Transformer": [16, 32, 64, 128, 256],
             "LM": [5, 10, 20, 40, 80], "Recommendation": [512, 1024, 2048, 4096, 8192]}
    models = [f"{model} (batch size {size})" for model, batches in sizes.items() for size in batches] + ["A3C", "CycleGAN"]
    speed = {"v100": 12, "p100": 6, "k80": 2}
    rates = {gpu + place: {} for gpu in speed for place in ("", "_unconsolidated")}
    for model in models:
        base = 1 + draws.below(20)
        for gpu, factor in speed.items():
            for gpus in (1, 2, 4, 8):
                rate = base * (factor + draws.below(4)) * gpus / 4
                for place in ("", "_unconsolidated"):
                    rates[gpu + place][f"('{model}', {gpus})"] = {"null": rate if not place else rate / 2}
    path = folder / "profiles/gavel/gavel_simulation_throughputs.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rates))


def write_pollux(folder):
    """An application on 1 to 8 GPUs, two batch sizes; step times fall with GPUs on one node and rise between nodes."""
    draws = Draws(71)
    profile = folder / "profiles/pollux/smoke"
    placements = ["1", "2", "3", "4", "14", "24", "34", "44", "11", "12", "13", "22", "23", "33"]
    write_csv(profile / "placements.csv", ["placement", "local_bsz", "step_time", "sync_time"],
              [[place, batch, batch / 64 + len(place) / 8, len(place) / 8] for place in placements for batch in (4, 32, 64)])
    for batch in (32, 128):
        write_csv(profile / f"validation-{batch}.csv", ["progress", "iteration", "metric", "grad_sqr", "grad_var"],
                  [[400 * epoch, 12800 * epoch // batch, 0, 1, 2 + epoch] for epoch in range(1, 6)])
    write_csv(folder / "workloads/pollux/load-smoke/workload-1.csv",
              ["name", "time", "application", "num_replicas", "batch_size"],
              [[f"smoke-{job}", now, "smoke", draws.of([1, 2, 4, 8]), draws.of([32, 128])]
               for job, now in submissions(draws, 60, 300)])


def write_carbon(folder):
    """Hours and quarters of an hour with a daily wave; jobs for GAIA and for Let's Wait Awhile; a measured profile."""
    draws = Draws(81)

    def intensity(hour):
        return 200 + 15 * abs(hour % 24 - 12) + draws.below(50)

    write_csv(folder / "carbon/em_2022_AU-SA.csv", ["hour_of_2022", "gco2_per_kwh"],
              [[hour, intensity(hour)] for hour in range(8760)])
    begin = datetime.datetime(2019, 12, 31)
    write_csv(folder / "carbon/lwa_2020_ger.csv", ["Time", "Carbon Intensity"],
              [[begin + datetime.timedelta(minutes=15 * i), intensity(i // 4)] for i in range(4000)])
    write_csv(folder / "carbon/lwa_ml_jobs.csv", ["job", "submit_min", "duration_min"],
              [[job, 30 * draws.below(1000), 30 * (1 + draws.below(100))] for job in range(80)])
    write_csv(folder / "gaia/pai_1k.csv", ["arrival_time", "length", "cpus"],
              [[now, 5 + draws.below(draws.of([600, 9000, 40_000])), draws.of([1, 1, 2, 8])]
               for _, now in submissions(draws, 120, 2000)])
    lines = ["smoke:", "  instance: none", "  replicas:"]
    for replicas in range(1, 6):
        lines += [f"    {replicas}:", f"      power: {replicas * 100 + draws.below(60)}.5",
                  f"      throughput: {replicas * 1000 - draws.below(300)}"]
    path = folder / "energy/carbonadvisor_scale_profile.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def write_zeus(folder):
    draws = Draws(91)
    header = ["dataset", "network", "batch_size", "optimizer", "power_limit", "time_per_epoch", "average_power"]
    write_csv(folder / "profiles/zeus/summary_power_v100.csv", header,
              [["smoke", "net", batch, "adam", limit, 10 + 2000 / (limit + draws.below(40)), limit * 3 / 4 + draws.below(20)]
               for batch in (16, 32, 64) for limit in range(100, 275, 25)])
    write_csv(folder / "profiles/zeus/summary_train.csv",
              ["dataset", "network", "batch_size", "optimizer", "learning_rate", "run", "target_metric", "target_epoch"],
              [["smoke", "net", batch, "adam", "1e-3", run, metric / 20, metric - 6 + draws.below(3) if metric < 13 else "nan"]
               for batch in (16, 32, 64) for run in range(1, 5) for metric in range(8, 15)])


def write_starburst(folder):
    draws = Draws(101)
    write_csv(folder / "starburst/starburst_tab4_rate16.csv", ["job", "submit_h", "runtime_h", "gpus"],
              [[job, now / 64, (1 + draws.below(200)) / 64, draws.of([1, 1, 2, 4, 8, 12])]
               for job, now in submissions(draws, 150, 8)])


def write_vllm(folder):
    """Kernels whose times rise in straight lines, and logs of two servers."""
    draws = Draws(111)
    for server, speed in (("rtx4090", 2), ("rtxpro6000", 1)):
        kernels = folder / f"inference/kernels/{server}_meta-llama_llama-3.1-8b"
        write_csv(kernels / "dense.csv", ["layer", "tokens", "time_us"],
                  [[layer, tokens, speed * (scale + tokens * scale / 64)]
                   for layer, scale in (("embedding", 2), ("layernorm", 4), ("qkv_proj", 20), ("final_layernorm", 4))
                   for tokens in (1, 16, 256, 2048)])
        write_csv(kernels / "per_sequence.csv", ["layer", "sequences", "time_us"],
                  [[layer, count, speed * (100 + count)] for layer in ("lm_head", "sampler") for count in (1, 64, 256)])
        points = [(0, 0, decodes, kv) for decodes in (1, 16, 256) for kv in (16, 1024, 16384)]
        points += [(chunk, before, 0, 0) for chunk in (16, 256, 2048) for before in (0, 1024, 16384)]
        points += [(chunk, before, decodes, kv) for chunk in (16, 2048) for before in (0, 16384)
                   for decodes in (1, 256) for kv in (16, 16384)]
        write_csv(kernels / "attention.csv", ["prefill_chunk", "kv_prefill", "n_decode", "kv_decode", "time_us"],
                  [[*point, speed * (8 + (point[0] * (point[1] + point[0] / 2) / 8 + point[2] * point[3]) / 256)]
                   for point in points])
        served = folder / f"inference/vllm/{server}_llama-3.1-8b"
        served.parent.mkdir(parents=True, exist_ok=True)
        cache = {"kv_cache": {"num_gpu_blocks": 400, "block_size": 16}} if speed == 2 else {}
        meta = {"engine_kwargs": {"max_num_seqs": 32, "max_num_batched_tokens": 2048, "dtype": "bfloat16"}, **cache}
        served.with_name(served.name + ".meta.json").write_text(json.dumps(meta))
        lines = []
        for number, now in submissions(draws, 60, 400):
            first = now / 1000 + 0.25
            lines.append(json.dumps({"request_id": f"smoke-{number}", "input_toks": 1 + draws.below(3000),
                                     "output_toks": 1 + draws.below(200), "arrival_time": now / 1000, "queued_ts": now / 1000,
                                     "first_token_ts": first, "last_token_ts": first + 1}))
        served.with_name(served.name + ".requests.jsonl").write_text("\n".join(lines) + "\n")


def write_dlrm(folder):
    """Instances of four services that come and go in four days, and pods that they leave room for."""
    draws = Draws(121)
    end = 4 * 86400
    rows = []
    for number in range(160):
        first = draws.below(2 * end) - end
        last = first + 3600 * (1 + draws.below(48))
        if last <= 0:
            continue
        rows.append([f"instance_{number}", "HN", f"app_{draws.below(4)}", 8, draws.of([1, 1, 1, 0]),
                     first if first > 0 else "", first if first > 0 else "", min(last, end) if last <= end else ""])
    write_csv(folder / "inference/alibaba_dlrm_2025.csv",
              ["instance_sn", "role", "app_name", "cpu_request", "gpu_request", "creation_time", "scheduled_time", "deletion_time"], rows)
    header = ["name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase", "creation_time",
              "deletion_time", "scheduled_time"]
    write_csv(folder / "inference/smoke_pods.csv", header,
              [[f"pod-{job}", 8000, 8192, *draws.of([(1, 200), (1, 700), (1, 1000), (2, 1000), (8, 1000)]), "", "BE", "Succeeded", now,
                now + 600 + draws.below(draws.of([600, 9000, 90_000])), now] for job, now in submissions(draws, 200, 3400)])


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    for write in (write_tiresias, write_muri, write_lublin, write_openb, write_philly_attempts, write_pai, write_gavel,
                  write_pollux, write_carbon, write_zeus, write_starburst, write_vllm, write_dlrm):
        write(folder)


main()
