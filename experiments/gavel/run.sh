#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makespans of Gavel's static trace, and mean completion times of jobs that arrive.
# Options: --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh).
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
need "$traces/profiles/gavel/gavel_simulation_throughputs.json"
need_program experiments/gavel_table

# table FILE OPTION...: what gavel_table prints; without CLP the experiment is skipped.
table() {
  local file=$1 status=0
  shift
  "$build/experiments/gavel_table" --traces "$traces" "$@" > "$scratch/$file" 2> "$scratch/errors.txt" || status=$?
  cat "$scratch/errors.txt" >&2
  if [ $status -ne 0 ] && grep -q CLP "$scratch/errors.txt"; then
    echo "skipped: gpusched was built without CLP" >&2
    exit 77
  fi
  [ $status -eq 0 ] || exit $status
}

# The last column, seconds, is no result; the difference there is a percentage.
makespans() {
  awk -v OFS=, -v smoke=$smoke 'NR == 1 { print "policy,jobs,published,ours,difference"; next }
    { if (smoke == "true") print $1, $2, "", $4, ""; else print $1, $2, $3, $4, sprintf("%.1f", $4 - $3) }' "$1"
}
completions() {
  awk -v OFS=, 'NR == 1 { print "policy,seed,gap_s,jobs,published,ours,difference"; next }
    { known = $5 != "-"; print $1, $2, $3, $4, known ? $5 : "", $6, known ? sprintf("%.3f", $6 - $5) : "" }' "$1"
}

if $smoke; then
  table makespan.txt --most-jobs 100 --seeds 1
  makespans "$scratch/makespan.txt" > "$out/table.csv"
  echo "policy,ours" > "$out/completion.csv"
  for policy in allox@gavel 'gavel@gavel{objective=fifo}' allox; do
    table mean.txt --policy "$policy" --seed 1 --gap 900 --first 30 --last 60
    echo "$policy,$(cat "$scratch/mean.txt")" >> "$out/completion.csv"
  done
  cat "$out"/*.csv
  exit 0
fi
table makespan.txt
makespans "$scratch/makespan.txt" > "$out/table.csv"
for name in allox gavel; do
  table $name.txt --table $name
  completions "$scratch/$name.txt" > "$out/completion_$name.csv"
done
cat "$scratch/makespan.txt" "$scratch/allox.txt" "$scratch/gavel.txt"
