#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# JCT, wait and makespan of the PAI simulator's orders.
# Options: --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh).
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
need "$traces/pai_job_duration_estimate_100K.csv"
need_program experiments/pai_table
small=()
if $smoke; then small=(--jobs 500 --gpus 100 --arrivals 20); fi
"$build/experiments/pai_table" "$traces/pai_job_duration_estimate_100K.csv" "${small[@]}" | tee "$out/table.txt"
awk -v OFS=, 'NR == 1 { next }
              NR == 2 { print "order,metric,published,ours,difference"; next }
              NF == 1 { order = $1; next }
              { metric = $1; for (i = 2; i <= NF - 3; ++i) metric = metric "_" $i
                theirs = $(NF - 2); difference = $NF; sub("[+]", "", difference)
                if (theirs == "-") theirs = difference = ""
                print order, metric, theirs, $(NF - 1), difference }' "$out/table.txt" > "$out/table.csv"
rm "$out/table.txt"
