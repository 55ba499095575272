#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the jobs of "Let's Wait Awhile" emit, and how much less when they wait.
# Options: --jobs FILE, --carbon FILE, --forecast NAME, --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh).
takes=(jobs carbon forecast)
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
jobs=$(value jobs "$traces/carbon/lwa_ml_jobs.csv") carbon=$(value carbon "$traces/carbon/lwa_2020_ger.csv")
need "$jobs" "$carbon"
need_program experiments/lwa_table
"$build/experiments/lwa_table" --jobs "$jobs" --carbon "$carbon" --forecast "$(value forecast perfect)" > "$out/table.csv"
cat "$out/table.csv"
