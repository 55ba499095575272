#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makespans of Gavel's static trace.
# Options: --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh).
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
need "$traces/profiles/gavel/gavel_simulation_throughputs.json"
need_program experiments/gavel_table
small=()
if $smoke; then small=(--most-jobs 100 --seeds 1); fi
status=0
"$build/experiments/gavel_table" --traces "$traces" "${small[@]}" > "$out/table.txt" 2> "$out/errors.txt" || status=$?
cat "$out/errors.txt" >&2
if [ $status -ne 0 ] && grep -q CLP "$out/errors.txt"; then
  echo "skipped: gpusched was built without CLP" >&2
  status=77
fi
[ $status -eq 0 ] || exit $status
# The last column, seconds, is no result; the difference there is a percentage.
awk -v OFS=, -v smoke=$smoke 'NR == 1 { print "policy,jobs,published,ours,difference"; next }
  { if (smoke == "true") print $1, $2, "", $4, ""; else print $1, $2, $3, $4, sprintf("%.1f", $4 - $3) }' \
  "$out/table.txt" > "$out/table.csv"
if $smoke; then cat "$out/table.csv"; else cat "$out/table.txt"; fi
rm "$out/table.txt" "$out/errors.txt"
