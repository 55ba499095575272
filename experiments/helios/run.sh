#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Average JCT of HeliosArtifact's policies on Philly, by virtual cluster.
# Options: --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh).
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
need "$traces/Philly/cluster_log.csv"
python3 "$here/table.py" "$gpusched" "$traces/Philly/cluster_log.csv" --csv "$out/table.csv" $published
