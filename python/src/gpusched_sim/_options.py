# SPDX-License-Identifier: Apache-2.0
"""Keyword options by type, for editors and type checkers; written by scripts/python_options.py."""
from __future__ import annotations

import os
from typing import Literal, Mapping, Sequence, TypedDict


class ReplayOptions(TypedDict, total=False):
    format: str | os.PathLike
    columns: str | os.PathLike
    slurm_conf: str | os.PathLike
    slurm_qos: str | os.PathLike
    where: str | os.PathLike
    drop_bad_rows: bool
    backlog: bool
    qos: str | os.PathLike
    limits: str | os.PathLike
    policy: Sequence[str]
    backfill: str | os.PathLike
    placement: Literal["count", "consolidate", "first-fit", "best-fit", "worst-fit", "random", "rack", "yarn", "consolidate@helios", "fastest", "skew"]
    seed: int
    checkpoint_cost: float
    restart_cost: float
    checkpoint_interval: float
    checkpoint_write: float
    failures: str | os.PathLike
    checkpoint_rule: Literal["fixed", "young", "daly"]
    stages: str | os.PathLike
    elastic: str | os.PathLike
    changes: str | os.PathLike
    power: str | os.PathLike
    services: str | os.PathLike
    trials: str | os.PathLike
    kill_at_limit: bool
    profile: str | os.PathLike
    reference_profile: str | os.PathLike
    throughputs: str | os.PathLike
    reference_type: str | os.PathLike
    throughput_fallback: Literal["none", "datasheet"]
    slowdown: float
    span_speed: str | os.PathLike
    communication: str | os.PathLike
    reference_span: Literal["node", "narrowest"]
    interference: Literal["profile", "throughputs", "none"]
    oversize: Literal["error", "drop", "clamp"]
    history_jobs: int
    warmup_jobs: int
    measure_jobs: int
    warmup_time: float
    measure_time: float
    split: Literal["none", "gpus", "user", "vc", "status", "group", "class"]
    recorded: Literal["show", "none"]
    out: str | os.PathLike
    trace_events: bool
    timeline: bool
    waits: bool
    decision_times: bool
    json: bool
    threads: int


class EvaluateOptions(TypedDict, total=False):
    trace: Sequence[str]
    format: Sequence[str]
    columns: Sequence[str]
    slurm_conf: str | os.PathLike
    slurm_qos: str | os.PathLike
    where: str | os.PathLike
    drop_bad_rows: bool
    backlog: bool
    qos: str | os.PathLike
    cluster: Sequence[str]
    limits: str | os.PathLike
    oversize: Literal["error", "drop", "clamp"]
    sites: str | os.PathLike
    router: Sequence[str]
    policy: Sequence[str]
    group: Sequence[str]
    backfill: str | os.PathLike
    placement: Literal["count", "consolidate", "first-fit", "best-fit", "worst-fit", "random", "rack", "yarn", "consolidate@helios", "fastest", "skew"]
    checkpoint_cost: float
    restart_cost: float
    checkpoint_interval: float
    checkpoint_write: float
    failures: str | os.PathLike
    checkpoint_rule: Literal["fixed", "young", "daly"]
    stages: str | os.PathLike
    elastic: str | os.PathLike
    changes: str | os.PathLike
    power: str | os.PathLike
    services: str | os.PathLike
    trials: str | os.PathLike
    kill_at_limit: bool
    profile: str | os.PathLike
    reference_profile: str | os.PathLike
    throughputs: str | os.PathLike
    reference_type: str | os.PathLike
    throughput_fallback: Literal["none", "datasheet"]
    slowdown: float
    span_speed: str | os.PathLike
    communication: str | os.PathLike
    reference_span: Literal["node", "narrowest"]
    interference: Literal["profile", "throughputs", "none"]
    protocol: Literal["windows", "sc20"]
    mode: Literal["auto", "log", "windows", "windows-only"]
    starts: Sequence[str]
    window_jobs: int
    windows: int
    stride: int
    warmup_jobs: int
    history: bool
    from: float
    to: float
    figure: Literal["avg_jct_s", "median_jct_s", "p95_jct_s", "p99_jct_s", "avg_wait_s", "p99_wait_s", "avg_bounded_slowdown", "worst_decile_slowdown", "makespan_s", "last_end_s", "gpu_utilization", "gpu_allocation", "preemptions", "energy_kwh", "gpu_fragmentation", "jain_fairness", "max_finish_time_ratio", "gpu_overhead", "gpu_lost", "goodput", "kills", "cold_starts", "fetched_gib", "deadline_miss_rate", "avg_tardiness_s", "carbon_kg", "cost_usd", "peak_kw", "slo_attainment", "p99_latency_s", "trial_loss", "study_span_s", "study_gpu_hours", "target_s", "targets_met"]
    beside: Sequence[str]
    mean: Literal["arithmetic", "geometric"]
    against: str | os.PathLike
    seed: int
    out: str | os.PathLike
    json: bool
    threads: int


class SweepOptions(TypedDict, total=False):
    threads: int
    time_limit: float
    files: bool
    launcher: Literal["local", "slurm"]
    slurm_options: str | os.PathLike
    runs_per_task: int


class EnvOptions(TypedDict, total=False):
    mode: Literal["fit_or_wait", "select_blocking", "backfill", "reserve", "inspect", "preempt"]
    knowledge: Literal["none", "user", "predicted", "oracle"]
    heuristic: Literal["fcfs", "sjf", "saf", "f1", "las", "srtf", "gittins"]
    max_jobs: int
    choose_nodes: bool
    node_speeds: bool
    sc20_backfill: bool
    starvation_s: float
    signals: bool
    forecast: Literal["persistence", "perfect", "noisy"]
    forecast_sigma: float
    placement: Literal["count", "consolidate", "first-fit", "best-fit", "worst-fit", "random", "rack", "yarn", "consolidate@helios", "fastest", "skew"]
    checkpoint_cost: float
    restart_cost: float
    checkpoint_interval: float
    checkpoint_write: float
    failures: str | os.PathLike
    checkpoint_rule: Literal["fixed", "young", "daly"]
    stages: str | os.PathLike
    elastic: str | os.PathLike
    changes: str | os.PathLike
    power: str | os.PathLike
    kill_at_limit: bool
    profile: str | os.PathLike
    reference_profile: str | os.PathLike
    throughputs: str | os.PathLike
    reference_type: str | os.PathLike
    throughput_fallback: Literal["none", "datasheet"]
    slowdown: float
    span_speed: str | os.PathLike
    communication: str | os.PathLike
    reference_span: Literal["node", "narrowest"]
    interference: Literal["profile", "throughputs", "none"]
    weights: Mapping[str, float]
    discount_per_s: float
    envs_per_window: int
    threads: int
    window_jobs: int
    warmup_jobs: int
    stride: int
    train_fraction: float
    validation_fraction: float
    arrival_scale: float
    truncate: bool
    split: Literal["train", "validation", "test"]
    oversize: Literal["error", "drop", "clamp"]


class ServiceEnvOptions(TypedDict, total=False):
    placement: Literal["count", "consolidate", "first-fit", "best-fit", "worst-fit", "random", "rack", "yarn", "consolidate@helios", "fastest", "skew"]
    checkpoint_cost: float
    restart_cost: float
    checkpoint_interval: float
    checkpoint_write: float
    failures: str | os.PathLike
    checkpoint_rule: Literal["fixed", "young", "daly"]
    stages: str | os.PathLike
    elastic: str | os.PathLike
    changes: str | os.PathLike
    power: str | os.PathLike
    trials: str | os.PathLike
    kill_at_limit: bool
    profile: str | os.PathLike
    reference_profile: str | os.PathLike
    throughputs: str | os.PathLike
    reference_type: str | os.PathLike
    throughput_fallback: Literal["none", "datasheet"]
    slowdown: float
    span_speed: str | os.PathLike
    communication: str | os.PathLike
    reference_span: Literal["node", "narrowest"]
    interference: Literal["profile", "throughputs", "none"]
    weights: Mapping[str, float]
    period_s: float
    longest_s: float
    threads: int
    oversize: Literal["error", "drop", "clamp"]
