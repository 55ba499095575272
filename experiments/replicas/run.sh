#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An agent that sets the replicas of a service beside a training queue, against the autoscalers, on days that it never saw.
# Options: --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh); --days N and --rounds N of training, --tests N,
# --seeds N, --hours H of a day.
takes=(days rounds tests seeds hours)
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
days=6 rounds=30 tests=10 seeds=3 hours=24 real=()
if $smoke; then
  days=1 rounds=2 tests=2 seeds=1 hours=2
else
  mkdir -p "$scratch/real"
  need "$traces/inference/genai2026/qps.tar.gz"
  tar xzf "$traces/inference/genai2026/qps.tar.gz" -C "$scratch/real"
  real=(--real "$scratch/real/qps.csv")
fi
PYTHONPATH=$build/python${PYTHONPATH:+:$PYTHONPATH} python3 "$here/agent.py" "$gpusched" "${real[@]}" --days "$(value days $days)" \
  --rounds "$(value rounds $rounds)" --tests "$(value tests $tests)" --seeds "$(value seeds $seeds)" --hours "$(value hours $hours)" \
  --out "$out"
