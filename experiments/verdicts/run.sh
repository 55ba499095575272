#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What windows say of policies and what running the whole log says. Options: --smoke, --out FOLDER, --build FOLDER,
# --traces FOLDER (../run_options.sh).
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
if $smoke; then
  python3 "$here/table.py" "$gpusched" "$traces" --smoke --csv "$out/modes.csv"
else
  need "$traces"/swf/hpc2n_head_alea.swf "$traces"/swf/NASA-iPSC-1993-3.1-cln.swf.gz "$traces"/swf/lublin_256.swf \
    "$traces"/philly/philly_jobs.csv
  python3 "$here/table.py" "$gpusched" "$traces" --csv "$out/modes.csv"
fi
