#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Policies that choose sizes, and others, in the engine, on the workloads of the Pollux artifact; beside its published results.
# Options: --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh).
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
need "$traces/workloads/pollux" "$traces/profiles/pollux"
need_program experiments/pollux_elastic
python3 "$here/table.py" "$gpusched" "$build/experiments/pollux_elastic" "$traces" --csv "$out/table.csv" $published
