#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The trained schedulers that come with the program, bare and guarded, against plain policies on whole logs.
# Options: --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh).
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
if $smoke; then
  python3 "$here/table.py" "$gpusched" --jobs 1500 --csv "$out"
else
  need "$traces"/philly/philly_jobs.csv "$traces"/swf/hpc2n_head_alea.swf "$traces"/swf/lublin_256.swf \
    "$traces"/swf/NASA-iPSC-1993-3.1-cln.swf.gz
  python3 "$here/table.py" "$gpusched" --traces "$traces" --csv "$out"
fi
cat "$out/against.csv"
