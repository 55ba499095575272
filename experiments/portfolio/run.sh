#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Portfolios and bandits against each of their policies, on whole logs.
# Options: --jobs FILE, --cluster SPEC, --history-jobs N, --measure-jobs N, --members LIST, --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh).
takes=(jobs cluster history-jobs measure-jobs members)
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
members=$(value members 'fifo+easy,sjf{estimate=requested}+easy,saf+easy,wfp3+easy,las')
philly=$(value members 'fifo+easy,sjf{estimate=history}+easy,saf{estimate=history}+easy,wfp3{estimate=history}+easy,las')
if $smoke; then
  python3 "$here/table.py" "$gpusched" --log drawn synthetic:philly:400 24x8 0 0 --members "$members" --few --csv "$out"
elif [ -n "$(value jobs '')" ]; then
  python3 "$here/table.py" "$gpusched" --log "$(basename "$(value jobs '')")" "$(value jobs '')" "$(value cluster 160x8)" \
    "$(value history-jobs 0)" "$(value measure-jobs 0)" --members "$members" --csv "$out"
else
  need "$traces"/philly/philly_jobs.csv "$traces"/swf/hpc2n_head_alea.swf "$traces"/swf/lublin_256.swf
  python3 "$here/year.py" "$scratch/year.csv"
  run_part() { # FOLDER, then options of table.py
    mkdir -p "$scratch/$1"
    python3 "$here/table.py" "$gpusched" "${@:2}" --csv "$scratch/$1"
    if [ -e "$out/table.csv" ]; then tail -n +2 "$scratch/$1/table.csv"; else cat "$scratch/$1/table.csv"; fi > "$scratch/rows"
    cat "$scratch/rows" >> "$out/table.csv"
  }
  rm -f "$out/table.csv"
  hpc2n=("$traces"/swf/hpc2n_head_alea.swf 240 0 0) year=("$scratch/year.csv" 16x8 0 0)
  for size in 256x8 200x8 160x8; do logs+=(--log "Philly $size" "$traces/philly/philly_jobs.csv" "$size" 60000 0); done
  run_part all --log HPC2N "${hpc2n[@]}" --log year "${year[@]}" --log Lublin "$traces"/swf/lublin_256.swf 256 0 0 \
    --members "$members" --beside rl:builtin/hpc
  run_part kept --log 'HPC2N, none preempts' "${hpc2n[@]}" --log 'year, none preempts' "${year[@]}" --members "${members%,las}"
  run_part philly "${logs[@]}" --members "$philly" --beside rl:builtin/philly
fi
cat "$out/table.csv"
