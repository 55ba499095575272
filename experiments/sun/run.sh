#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Carbon, waits and money by router, of two zones twelve hours apart (sine.csv) and of three measured grids (measured.csv).
# Options: --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh).
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
routers='local,least-loaded,shortest-completion,random,lowest-carbon,lowest-carbon{patience_s=3600}'
days=14
if $smoke; then days=2; fi

# table NAME [SITE=FILE:COLUMN ...]
table() {
  local name=$1
  shift
  python3 "$here/make_world.py" "$scratch/$name" "$days" "$@"
  "$gpusched" federate "$scratch/$name/jobs.csv" --sites "$scratch/$name/sites.json" --policy fifo --router "$routers" --json \
    > "$scratch/$name.json"
  python3 - "$scratch/$name.json" > "$out/$name.csv" <<'PY'
import json
import sys
print("router,carbon_kg,energy_kwh,network_carbon_kg,avg_wait_h,avg_data_wait_h,egress_usd,transfers")
for run in json.load(open(sys.argv[1]))["runs"]:
    total = run["total"]
    print(f'"{run["router"]}",{total["total_carbon_kg"]:.3f},{total["energy_kwh"]:.3f},{total["network_carbon_kg"]:.3f},'
          f'{total["avg_wait_s"] / 3600:.4f},{total["avg_data_wait_s"] / 3600:.4f},{total["egress_usd"]:.2f},{run["transfers"]}')
PY
  echo "$name"
  cat "$out/$name.csv"
}

if ! $smoke; then
  need "$traces/carbon/em_2023_DE-LU.csv" "$traces/carbon/em_2023_US-CAL-CISO.csv" "$traces/carbon/em_2023_US-TEX-ERCO.csv"
fi
table sine
if ! $smoke; then
  table measured "de=$traces/carbon/em_2023_DE-LU.csv:gco2_direct" "california=$traces/carbon/em_2023_US-CAL-CISO.csv:gco2_direct" \
    "texas=$traces/carbon/em_2023_US-TEX-ERCO.csv:gco2_direct"
fi
