#!/usr/bin/env bash
# Every kernel of cuda/kernels.cu compiles for each architecture, alone, and spills no register to memory.
#   cuda_compile_test.sh SOURCE_FOLDER [NVCC]      exit 77: skipped, there is no nvcc
set -euo pipefail

root=$1
nvcc=${2:-nvcc}
if ! command -v "$nvcc" >/dev/null; then
  echo "Skipped: no CUDA compiler (nvcc), so that the kernels are not compiled here"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

mapfile -t kernels < <(grep -oE '__global__ void [a-z0-9_]+' "$root/cuda/kernels.cu" | awk '{print $3}')
status=0
for architecture in 75 80 90; do
  "$nvcc" -std=c++17 -O3 -Werror=all-warnings -Xcompiler=-Wall,-Wextra,-Werror -cubin -arch="sm_$architecture" -Xptxas -v -I "$root" -I "$root/include" \
    -o "$folder/kernels.$architecture.cubin" "$root/cuda/kernels.cu" 2>"$folder/report" || {
    cat "$folder/report"
    exit 1
  }
  for kernel in "${kernels[@]}"; do
    grep -q "Compiling entry function '.*${#kernel}$kernel" "$folder/report" || {
      echo "sm_$architecture: kernel $kernel was not compiled"
      status=1
    }
  done
  spills=$(grep -oE '[0-9]+ bytes spill stores' "$folder/report" | awk '$1 > 0' | wc -l)
  [ "$spills" -eq 0 ] || { echo "sm_$architecture: $spills kernels spill registers"; status=1; }
  echo "sm_$architecture: ${#kernels[@]} kernels compiled"
done
exit $status
