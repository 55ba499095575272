#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Layouts of MIG, fixed and dynamic, beside whole GPUs, MPS and time slicing.
# Options: --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh).
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
pods=$traces/alibaba/openb2023/openb_pod_list_default.csv small=()
need "$pods"
if $smoke; then small=(--smoke); fi
python3 -B "$here/table.py" "$gpusched" "$pods" --out "$out" "${small[@]}"
