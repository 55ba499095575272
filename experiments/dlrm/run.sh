#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A partition, mixing and loaning: inference services of Alibaba beside the jobs of openb, on several stretches of a month.
# Options: --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh); --instances FILE and --pods FILE, other inputs;
# --days N a stretch, --one-in N instances, --job-nodes N, --copies N,... of each job.
takes=(instances pods days one-in job-nodes copies)
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"
list=$traces/alibaba/openb2023/openb_pod_list_default.csv days=3 one_in=40
if $smoke; then list=$traces/inference/smoke_pods.csv days=0.5 one_in=1; fi
instances=$(value instances "$traces/inference/alibaba_dlrm_2025.csv")
pods=$(value pods "$list")
need "$instances" "$pods"
python3 "$here/table.py" "$gpusched" "$instances" "$pods" --days "$(value days $days)" --one-in "$(value one-in $one_in)" \
  --job-nodes "$(value job-nodes 3)" --copies "$(value copies 1,3,10)" --out "$out"
