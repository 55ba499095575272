#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Tiresias simulator's example and 5,000 Philly jobs.
# Options: --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh).
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
need "$traces/small/tiresias_60_job.csv" "$traces/alibaba/pai2020/philly_in_pai_columns_20k.csv"
python3 "$here/table.py" "$gpusched" "$traces" --csv "$out/table.csv" $published
