#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The lineups that agents have to beat; small, a training of two generations too. Trainings on whole logs take hours:
# README.md has their commands.
# Options: --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh).
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
need "$traces"/swf/lublin_256.swf
if ! $smoke; then need "$traces"/swf/{hpc2n_head_alea.swf,NASA-iPSC-1993-3.1-cln.swf.gz}; fi
python3 "$here/table.py" "$gpusched" "$traces" --csv "$out/table.csv" $published
if $smoke; then
  python3 - "$here/lublin_es.json" "$traces" > "$scratch/small.json" << 'END'
import json, sys
config = json.load(open(sys.argv[1]))
config["trace"] = sys.argv[2] + "/swf/lublin_256.swf"
config["windows"] = {"jobs": 512, "train_fraction": 0.45, "validation_fraction": 0.15}
config["search"] |= {"generations": 2, "population": 8, "validate_every": 1}
config["ppo"]["validation_windows"] = 4
print(json.dumps(config))
END
  need_program gpusched-train
  "$gpusched" train --config "$scratch/small.json" --out "$scratch/trained"
  # The last column is the time taken.
  cut -d, -f1-7 "$scratch/trained/metrics.csv" > "$out/training.csv"
fi
