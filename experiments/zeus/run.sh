#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The power limits that Zeus chooses, and energy and time against the largest limit.
# Options: --table FILE, --eta NUMBER, --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh).
takes=(table eta)
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
table=$(value table "$traces/profiles/zeus/summary_power_v100.csv")
need "$table"
need_program experiments/zeus_table
"$build/experiments/zeus_table" --table "$table" --eta "$(value eta 0.5)" > "$out/table.csv"
cat "$out/table.csv"
