#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Cost of the cloud, mean wait and jobs in the cloud by Starburst's waiting policies.
# Options: --jobs FILE, --nodes COUNT, --gpus-per-node COUNT, --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh).
takes=(jobs nodes gpus-per-node)
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
jobs=$(value jobs "$traces/starburst/starburst_tab4_rate16.csv")
need "$jobs"
need_program experiments/starburst_table
"$build/experiments/starburst_table" --jobs "$jobs" --nodes "$(value nodes 4)" --gpus-per-node "$(value gpus-per-node 8)" > "$out/table.csv"
cat "$out/table.csv"
