#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# RLScheduler's mean bounded slowdown and utilisation on ten windows of Lublin-1.
# Options: --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh).
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
need "$traces/swf/lublin_256.swf"
python3 "$here/table.py" "$gpusched" "$traces" --csv "$out/table.csv" $published
