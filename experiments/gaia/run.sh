#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Carbon, cost and mean wait of GAIA's policies, by reserved cpus.
# Options: --jobs FILE, --carbon FILE, --from-hour HOURS, --reserved COUNTS, --forecast NAME, --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh).
takes=(jobs carbon from-hour reserved forecast)
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
jobs=$(value jobs "$traces/gaia/pai_1k.csv") carbon=$(value carbon "$traces/carbon/em_2022_AU-SA.csv")
need "$jobs" "$carbon"
need_program experiments/gaia_table
"$build/experiments/gaia_table" --jobs "$jobs" --carbon "$carbon" --from-hour "$(value from-hour 7000)" \
  --reserved "$(value reserved 0,3,9,24)" --forecast "$(value forecast perfect)" > "$out/table.csv"
cat "$out/table.csv"
