#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Searches of trials: tasks by rung, work, first full training, end, best loss.
# Options: --eta N, --most UNITS, --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh).
takes=(eta most)
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
need_program experiments/asha_table
"$build/experiments/asha_table" --eta "$(value eta 3)" --most "$(value most 27)" > "$out/table.csv"
cat "$out/table.csv"
