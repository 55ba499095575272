#!/usr/bin/env bash
# Searches for inputs that crash, hang or leak: libFuzzer on the targets of tests/fuzz, one for each processor at a time.
#   scripts/fuzz.sh [SECONDS [TARGET...]]        60 seconds each; all targets, as `gpusched_fuzz --list` names them
# Installs clang 14 and its runtime where they are missing. Inputs that reach new code are kept in
# build/fuzz/corpus/TARGET and used the next time; what fails lies in build/fuzz/found/TARGET-*. Exit code 1 if something failed.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
[ $# -eq 0 ] || shift
scripts/install_packages.sh scripts/packages_build.txt scripts/packages_fuzz.txt
[ -f build/fuzz/build.ninja ] || cmake --preset fuzz
cmake --build --preset fuzz

fuzzer=build/fuzz/tests/fuzz/gpusched_fuzz
targets=("$@")
[ $# -gt 0 ] || mapfile -t targets < <("$fuzzer" --list)

# One target; its last lines are shown when it fails. An input of 10 seconds or 2 GiB counts as a failure.
fuzz() {
  local target=$1 kept=build/fuzz/corpus/$1 log=build/fuzz/logs/$1.txt
  mkdir -p "$kept" build/fuzz/found build/fuzz/logs
  if "$fuzzer" --target="$target" -max_total_time="$seconds" -max_len=8192 -timeout=10 -rss_limit_mb=2048 \
    -print_final_stats=1 -artifact_prefix=build/fuzz/found/"$target"- "$kept" tests/fuzz/corpus/"$target" >"$log" 2>&1; then
    echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs, nothing found"
  else
    tail -n 40 "$log"
    echo "$target: failed; see $log and build/fuzz/found"
    return 1
  fi
}
export -f fuzz
export fuzzer seconds

status=0
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I{} bash -euo pipefail -c 'fuzz {}' || status=1
exit $status
