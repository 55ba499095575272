#!/usr/bin/env bash
# Runs everything there is, for hours: what scripts/test.sh leaves out, and the same tests under other compilers and checkers.
#   scripts/deep_test.sh [--record] [PART...]     all parts by default; --list names them
# Each part runs whatever became of the others; its output is build/deep/PART.log. With --record the result of each part, with date
# and commit, replaces that part's row in docs/results/deep-test.md. Exit code 1 if a part failed.
set -euo pipefail
cd "$(dirname "$0")/.."

# What each part does, as the page says it.
declare -A meaning=(
  [gcc]="every file by itself by GCC at -O2, assertions on; all tests"
  [clang]="every file by itself by clang at -O1, each public header alone; all tests"
  [debug]="-O0 with GPUSCHED_VALIDATE: capacity and conservation derived anew after every event; all tests"
  [asan]="address and undefined-behaviour sanitizers; all tests"
  [tsan]="thread sanitizer; all tests"
  [tidy]="clang-tidy on every file"
  [fuzz]="libFuzzer with sanitizers, every target for 60 s"
  [seeds]="2,000 cases of every random test, 20,000 of the whole world"
  [cuda]="cuda/ by nvcc for sm_75, sm_80, sm_90, warnings as errors"
  [python]="the Python bindings with sanitizers under their tests"
  [deb]="Debian packages built, unpacked and used"
  [release]="scripts/release.sh; its wheel in an empty environment, the machine's copies of its libraries hidden"
  [bench]="every benchmark built and started"
  [simgrid]="examples/simgrid on the installed package"
)
parts=(gcc clang debug asan tsan tidy fuzz seeds cuda python deb release bench simgrid)

build_and_test() { # PRESET
  cmake --preset "$1"
  cmake --build --preset "$1"
  ctest --preset "$1"
}

part_gcc() { build_and_test gcc; }
part_clang() {
  cmake --preset clang
  cmake --build build/clang --target all_verify_interface_header_sets
  build_and_test clang
}
part_debug() { build_and_test debug; }
part_asan() { build_and_test asan; }
part_tsan() { build_and_test tsan; }
part_tidy() {
  cmake --preset tidy
  cmake --build --preset tidy
}
part_fuzz() { scripts/fuzz.sh --repeat 60; }

build_test() {
  [ -f build/test/build.ninja ] || cmake --preset test
  cmake --build --preset test "$@"
}
part_seeds() {
  build_test
  GPUSCHED_RANDOM_RUNS=2000 ctest --preset test --timeout 7200
  GPUSCHED_RANDOM_RUNS=20000 ctest --preset test --tests-regex '^WorldReference' --timeout 7200
}

# The installed toolkit's nvcc, otherwise the one that pip has.
find_nvcc() {
  local nvcc venv=$PWD/build/nvcc
  for nvcc in "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc; do
    [ ! -x "$nvcc" ] || { echo "$nvcc" && return; }
  done
  [ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
  "$venv/bin/pip" install -q nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-cuda-cccl nvidia-cuda-crt nvidia-nvvm >&2
  find "$venv" -type f -name nvcc | head -n 1
}
part_cuda() {
  local nvcc file
  nvcc=$(find_nvcc)
  tests/cuda/cuda_compile_test.sh "$PWD" "$nvcc"
  for file in cuda/*.cpp; do
    g++ -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror \
      -DGPUSCHED_HAS_CUDA_BACKEND -I. -Iinclude -isystem "$(dirname "$nvcc")/../include" "$file"
  done
}

part_python() {
  cmake --preset python
  cmake --build --preset python --target gpusched_programs gpusched_python_sanitized
  ctest --preset python -R '^python_.*_sanitized$'
}
part_deb() {
  build_test
  ctest --test-dir build/test --output-on-failure -R '^deb_package$'
}
part_release() {
  scripts/release.sh --draft
  python3 tests/packaging/wheel_test.py . build/dist
}
part_bench() {
  build_test --target gpusched_benchmarks
  local program
  for program in engine_bench policy_bench env_bench rl_bench; do
    echo "-- $program"
    "build/test/bench/$program" --benchmark_list_tests
  done
}
part_simgrid() {
  build_test
  ctest --test-dir build/test --output-on-failure -R '^consumer_simgrid$'
}

record() { # PART RESULT MINUTES
  python3 - "$@" "${meaning[$1]}" "$(git describe --always --dirty=+changes --abbrev=12 --exclude='*')" <<'PYTHON'
import datetime, pathlib, sys
part, result, minutes, meaning, commit = sys.argv[1:]
page = pathlib.Path("docs/results/deep-test.md")
row = f"| `{part}` | {meaning} | {datetime.date.today()} | {commit} | {result} | {minutes} |"
lines = page.read_text().splitlines()
at = [i for i, line in enumerate(lines) if line.startswith(f"| `{part}` |")]
lines[at[0]:at[0] + 1] = [row] if at else []
if not at:
    lines.append(row)
page.write_text("\n".join(lines) + "\n")
PYTHON
}

recorded= chosen=()
for argument in "$@"; do
  case $argument in
    --record) recorded=yes ;;
    --list)
      for part in "${parts[@]}"; do echo "$part: ${meaning[$part]}"; done
      exit 0
      ;;
    *)
      [ -n "${meaning[$argument]:-}" ] || {
        echo "no part '$argument'; scripts/deep_test.sh --list names them" >&2
        exit 2
      }
      chosen+=("$argument")
      ;;
  esac
done
[ ${#chosen[@]} -gt 0 ] || chosen=("${parts[@]}")

scripts/install_packages.sh scripts/packages_build.txt scripts/packages_test.txt scripts/packages_fuzz.txt scripts/packages_deep.txt
scripts/python_tools.sh
export PATH="$PWD/build/tools/bin:$PATH"
mkdir -p build/deep
failed=0
for part in "${chosen[@]}"; do
  begin=$SECONDS log=build/deep/$part.log
  echo "== $part: ${meaning[$part]}"
  set +e  # in a condition the first failure would not end the part
  (set -e; "part_$part") >"$log" 2>&1
  status=$?
  set -e
  result=$([ $status -eq 0 ] && echo passed || echo failed)
  # What the tests count, where they do.
  counts=$(sed -n 's/^\([0-9]*% tests passed, [0-9]* tests failed out of [0-9]*\)$/\1/p' "$log" | tail -n 1)
  [ $result = passed ] || {
    failed=$((failed + 1))
    tail -n 30 "$log"
  }
  minutes=$(((SECONDS - begin + 59) / 60))
  echo "$part $result in $minutes min${counts:+: $counts}; $log"
  [ -z "$recorded" ] || record "$part" "$result${counts:+: $counts}" "$minutes"
done
echo "$((${#chosen[@]} - failed)) parts passed, $failed failed"
[ $failed -eq 0 ]
