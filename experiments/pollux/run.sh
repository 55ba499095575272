#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Average JCT of the Pollux artifact's Tiresias and Optimus on its workloads, and how many jobs differ.
# Options: --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh).
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
need "$traces/workloads/pollux" "$traces/profiles/pollux"
need_program experiments/pollux_table
"$build/experiments/pollux_table" "$traces" --csv "$out/table.csv" $published
