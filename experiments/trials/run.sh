#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Searches of trials beside Philly's jobs: under several policies, against the static partition, and a multi-objective search.
# Options: --only searches,targets,front, --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh).
takes=(only)
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
need "$traces"/profiles/zeus/summary_train.csv
need_program gpusched-search
dataset=cifar100 jobs=$traces/philly/philly_jobs.csv sizes=(--history 60000 --cluster 200x8 --begin-s 864000 --most 27 --windows 250 1500 40 0.75 --windows-cluster 60x8)
if $smoke; then
  dataset=smoke jobs=$scratch/jobs.csv sizes=(--history 20 --cluster 6x8 --begin-s 600 --most 9 --windows 40 10 3 0 --windows-cluster 6x8)
  "$gpusched" trace generate --model philly --jobs 200 --seed 1 --out "$jobs" > /dev/null
fi
need "$jobs"
mkdir -p "$scratch/work"
trials=$(python3 "$here/losses.py" "$traces/profiles/zeus" "$dataset" "$scratch/work/losses.csv")
python3 "$here/table.py" "$gpusched" --jobs "$jobs" "${sizes[@]}" --losses "$scratch/work/losses.csv" --trials "$trials" \
  --scratch "$scratch/work" --out "$out" --only "$(value only searches,targets,front)"
cat "$out"/*.csv
