#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What an elastic job emits by CarbonScaler's plan, and on one replica at once.
# Options: --profile FILE, --carbon FILE, --from-hour HOURS, --work-h HOURS, --deadline-h HOURS, --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh).
takes=(profile carbon from-hour work-h deadline-h)
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
profile=$(value profile "$traces/energy/carbonadvisor_scale_profile.yaml") carbon=$(value carbon "$traces/carbon/em_2022_AU-SA.csv")
need "$profile" "$carbon"
need_program experiments/carbonscaler_table
"$build/experiments/carbonscaler_table" --profile "$profile" --carbon "$carbon" --from-hour "$(value from-hour 7000)" \
  --work-h "$(value work-h 24)" --deadline-h "$(value deadline-h 48)" > "$out/table.csv"
cat "$out/table.csv"
