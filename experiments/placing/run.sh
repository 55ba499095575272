#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Trains two agents that choose GPU types on a K80/P100/V100 mix, and compares them with policies of equal knowledge.
# Options: --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh). SEEDS=1..5 trains so many of each.
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
throughputs=$traces/profiles/gavel/gavel_simulation_throughputs.json
need "$throughputs"
need_program gpusched-train
size=full seeds=${SEEDS:-1..3} training=20000
if $smoke; then size=smoke training=600 seeds=1..1; fi
"$here/jobs.py" "$throughputs" $training 1.4,2.0 1 > "$scratch/training.csv"
for knowledge in exact unknown; do
  python3 "$here/configure.py" "$here/$knowledge.json" $size "$scratch/training.csv" "$here/cluster.json" "$throughputs" \
    > "$scratch/$knowledge.json"
  "$gpusched" train --config "$scratch/$knowledge.json" --seeds "$seeds" --out "$scratch/$knowledge" 2> "$scratch/$knowledge.log" ||
    { cat "$scratch/$knowledge.log" >&2; exit 1; }
done
# compare SCRIPT: what it prints, and its csv; 77 where there is no CLP, which the policy gavel needs.
compare() {
  local status=0
  python3 "$here/$1.py" "$gpusched" "$throughputs" "$scratch" --csv "$out/$1.csv" $published 2> "$scratch/errors.txt" ||
    status=$?
  cat "$scratch/errors.txt" >&2
  if [ $status -ne 0 ] && grep -q CLP "$scratch/errors.txt"; then
    echo "skipped: gpusched was built without CLP" >&2
    status=77
  fi
  return $status
}
compare table
compare whole
