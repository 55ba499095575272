#!/usr/bin/env bash
# Searches for inputs that crash, hang or leak: libFuzzer on the targets of tests/fuzz, one for each processor at a time.
#   scripts/fuzz.sh [--repeat] [SECONDS [TARGET...]]   60 seconds each; all targets, as `gpusched_fuzz --list` names them
# Installs clang 14 and its runtime where they are missing. Inputs that reach new code are kept in build/fuzz/corpus/TARGET
# and used the next time. With --repeat none is kept or used and the random seed is fixed: a commit is given the same inputs
# again, as many as the time allows. What fails lies in build/fuzz/found/TARGET-*; build/fuzz/results.xml (JUnit) says which
# targets did. Exit code 1 if something failed.
set -euo pipefail
cd "$(dirname "$0")/.."

repeat=
if [ "${1:-}" = --repeat ]; then
  repeat=yes
  shift
fi
seconds=${1:-60}
[ $# -eq 0 ] || shift
results=build/fuzz/results.xml
rm -f "$results"
scripts/install_packages.sh scripts/packages_build.txt scripts/packages_fuzz.txt
[ -f build/fuzz/build.ninja ] || cmake --preset fuzz
cmake --build --preset fuzz

fuzzer=build/fuzz/tests/fuzz/gpusched_fuzz
targets=("$@")
[ $# -gt 0 ] || mapfile -t targets < <("$fuzzer" --list)

# One target; its last lines are shown when it fails. An input of 10 seconds or 2 GiB counts as a failure. Entropic schedules took a
# quarter of the time.
fuzz() {
  local target=$1 log=build/fuzz/logs/$1.txt corpus=()
  mkdir -p build/fuzz/found build/fuzz/logs
  rm -f "$log.passed"
  if [ -n "$repeat" ]; then
    # By name: a folder lists its files in the order of its file system.
    corpus=(-seed=1 "-seed_inputs=$(printf '%s\n' tests/fuzz/corpus/"$target"/* | LC_ALL=C sort | paste -sd,)")
  else
    mkdir -p build/fuzz/corpus/"$target"
    corpus=(build/fuzz/corpus/"$target" tests/fuzz/corpus/"$target")
  fi
  if "$fuzzer" --target="$target" -max_total_time="$seconds" -max_len=8192 -entropic=0 -timeout=10 -rss_limit_mb=2048 \
    -print_final_stats=1 -artifact_prefix=build/fuzz/found/"$target"- "${corpus[@]}" >"$log" 2>&1; then
    touch "$log.passed"
    echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs, nothing found"
  else
    tail -n 40 "$log"
    echo "$target: failed; see $log and build/fuzz/found"
    return 1
  fi
}
export -f fuzz
export fuzzer seconds repeat

status=0
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I{} bash -euo pipefail -c 'fuzz {}' || status=1

failures=0 cases=
for target in "${targets[@]}"; do
  if [ -f build/fuzz/logs/"$target".txt.passed ]; then
    cases+="  <testcase name=\"$target\"/>"$'\n'
  else
    failures=$((failures + 1))
    cases+="  <testcase name=\"$target\"><failure message=\"see build/fuzz/logs/$target.txt\"/></testcase>"$'\n'
  fi
done
printf '<testsuite name="fuzz" tests="%s" failures="%s">\n%s</testsuite>\n' "${#targets[@]}" "$failures" "$cases" >"$results"
exit $status
