#!/bin/bash
# hpc_log.sh GPUSCHED OUT.csv: the log that rl:builtin/hpc learned from, 72 stretches of 6,144 jobs of the Lublin-Feitelson
# model on 256 processors: jobs for machines of 64, 128 and 256 processors, offered loads of 0.7, 0.85 and 1, users who ask
# for up to 1.5 and 5 times the run time, four times each. Stretches follow each other at once.
set -euo pipefail
gpusched=$1 out=$2
part=$(mktemp)
trap 'rm -f "$part"' EXIT
seed=0
offset=0
echo job_id,submit_s,work_s,tasks,gpu_milli_per_task,estimate_s > "$out"
for _ in 1 2 3 4; do
  for model in processors={64,128,256}; do
    for load in 0.7 0.85 1; do
      for factor in 0.5 4; do
        seed=$((seed + 1))
        "$gpusched" trace generate --model "lublin{type=all,$model,estimate_factor=$factor}" --cluster 256 \
          --load "$load" --jobs 6144 --seed "$seed" --out "$part" > /dev/null
        awk -F, -v OFS=, -v offset="$offset" -v first=$(((seed - 1) * 6144)) '
          NR == 1 { for (i = 1; i <= NF; ++i) column[$i] = i; next }
          { printf "%d,%.6f,%s,%s,%s,%s\n", first + $column["job_id"], offset + $column["submit_s"], $column["work_s"],
                   $column["tasks"], $column["gpu_milli_per_task"], $column["estimate_s"] }' "$part" >> "$out"
        offset=$(tail -1 "$out" | cut -d, -f2)
      done
    done
  done
done
