#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The kinds of schedulers in the order of their history, and five systems in production, on one trace.
# Options: --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh).
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
if $smoke; then
  trace=synthetic:philly:400 clusters=(24x8 17x8)
else
  trace=$traces/philly/philly_jobs.csv clusters=(philly 160x8)
  need "$trace"
fi
python3 "$here/table.py" "$gpusched" "$trace" "${clusters[@]}" --out "$out"
small=()
if $smoke; then small=(--smoke); fi
python3 -B "$here/checks.py" "$gpusched" "$trace" "${clusters[1]}" --out "$out" "${small[@]}"
