#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Average JCT of the Muri artifact's baselines on its traces.
# Options: --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh).
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
need "$traces/philly/muri_trace1.csv" "$traces/philly/muri_trace2.csv"
python3 "$here/table.py" "$gpusched" "$traces" --csv "$out/table.csv" $published
