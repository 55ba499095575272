#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# GPU allocation on openb under workload inflation.
# Options: --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh).
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
need "$traces/alibaba/openb2023/openb_pod_list_default.csv"
need_program experiments/fgd_table
list=default seeds=20
if $smoke; then list=smoke seeds=3; fi
"$build/experiments/fgd_table" --traces "$traces" --list "$list" --seeds "$seeds" | tee "$out/table.txt"
awk -v OFS=, 'NR == 1 { print "policy,at_percent,published,ours,difference,standard_deviation"; next }
              { gsub("-", "", $3); if ($6 == "-") $6 = ""; sub("[+]", "", $6); print $1, $2, $3, $4, $6, $5 }' \
  "$out/table.txt" > "$out/table.csv"
rm "$out/table.txt"
