#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Latencies of vLLM servers, measured and simulated from tables of their kernels.
# With --requests FILE --kernels FOLDER --meta FILE --layers COUNT: table.csv (and requests.jsonl, the simulated log) of that server; also
# --tensor-parallel COUNT --link-gb-s NUMBER --link-us NUMBER --hidden COUNT, --host-ms NUMBER, --kv-tokens COUNT. Without:
# servers.csv, two servers without a constant and with that of each.
# Options besides: --smoke, --out FOLDER, --build FOLDER, --traces FOLDER (../run_options.sh).
takes=(requests kernels meta layers tensor-parallel link-gb-s link-us hidden host-ms kv-tokens)
. "$(dirname "${BASH_SOURCE[0]}")/../run_options.sh"

if [ ${#given[@]} -gt 0 ]; then
  options=()
  for name in "${takes[@]}"; do
    if [ -n "${given[$name]+given}" ]; then options+=("--$name=${given[$name]}"); fi
  done
  need_program experiments/vllm_table
  "$build/experiments/vllm_table" "${options[@]}" --log "$out/requests.jsonl" > "$scratch/table.csv"
  mv "$scratch/table.csv" "$out/table.csv"
  cat "$out/table.csv"
  exit
fi

inference=$traces/inference
# A constant a step, in milliseconds, with which the mean latency of the server is met: the one thing that is fitted.
declare -A host_ms=([rtx4090]=-1.1 [rtxpro6000]=1.1)
need "$inference/vllm/rtx4090_llama-3.1-8b.requests.jsonl" "$inference/kernels"
need_program experiments/vllm_table
echo server,constant_of,host_ms,figure,measured,simulated,error_percent > "$out/servers.csv"
for server in rtx4090 rtxpro6000; do
  for constant_of in none rtx4090 rtxpro6000; do
    constant=${host_ms[$constant_of]-0}
    "$build/experiments/vllm_table" --requests "$inference/vllm/${server}_llama-3.1-8b.requests.jsonl" \
      --meta "$inference/vllm/${server}_llama-3.1-8b.meta.json" --kernels "$inference/kernels/${server}_meta-llama_llama-3.1-8b" \
      --layers 32 --host-ms="$constant" > "$scratch/table.csv"
    sed "1d; s/^/$server,$constant_of,$constant,/" "$scratch/table.csv" >> "$out/servers.csv"
  done
done
cat "$out/servers.csv"
