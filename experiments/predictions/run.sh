#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How long predictions should remember: half-lives chosen on a first part of logs, and what they do on the rest.
# Options: --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh).
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
if $smoke; then
  python3 "$here/table.py" "$gpusched" "$traces" --smoke --csv "$out"
else
  need "$traces"/swf/hpc2n_head_alea.swf "$traces"/swf/NASA-iPSC-1993-3.1-cln.swf.gz "$traces"/philly/philly_jobs.csv
  python3 "$here/table.py" "$gpusched" "$traces" --csv "$out"
fi
