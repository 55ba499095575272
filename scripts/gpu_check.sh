#!/usr/bin/env bash
# Everything that needs a CUDA device, on a machine that has one: builds with CUDA and LibTorch, runs the GPU tests,
# calibrates, validates the profile, runs the kernels under compute-sanitizer, trains on the device beside the CPU, and
# ends with a table of what passed. Exit code 0: nothing failed; 1: something did, or there is no device; 2: bad usage.
#
#   scripts/gpu_check.sh [--dry] [--quick] [STAGE...]      stages, by default all: build test calibrate sanitize train
#
# The most important stages come first, in case the device is lost before the last. Where a command may take only ten
# minutes, run one stage per command: builds, measurements and the table stay in the build folder. Log and table are
# written continuously, so that an interrupted command keeps what it found. Each further `train` trains on from where the
# last one ended, and writes the speeds and learning curves so far, on the device beside the CPU, to train.md.
#
# --dry     the same steps on the CPU, to test this script without a device
# --quick   only the short suite; otherwise the full one follows. Training of few short episodes
#
# No network access is needed. Environment:
#   OUT            folder of the results, at most 8 files (default build/gpu_check/results)
#   GPUSCHED_DEPS  folder made by scripts/collect_deps.sh, where Debian's packages are missing
#   GPUSCHED_BUILD build folder (default build/gpu_check); what it already holds is not built again
#   GPU_CHECK_LIMIT_S  time limit of each step in seconds (default 420; tests at most 180), less where its stage would
#                  exceed nine minutes; an interrupted calibration continues in the next run
#   GPU_CHECK_TRAIN_S  seconds that each of the four training runs trains in a call (default 110; with --dry 15)
#   GPU_CHECK_DEVICE   cpu: as --dry
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

dry=0
quick=0
stages=()
for argument in "$@"; do
  case $argument in
    --dry) dry=1 ;;
    --quick) quick=1 ;;
    build | test | calibrate | sanitize | train) stages+=("$argument") ;;
    *)
      sed -n '/^#   scripts/,/^#$/s/^#   *//p' "$0" >&2
      exit 2
      ;;
  esac
done
[ ${#stages[@]} -gt 0 ] || stages=(build test calibrate sanitize train)

build=${GPUSCHED_BUILD:-build/gpu_check}
out=${OUT:-build/gpu_check/results}
limit=${GPU_CHECK_LIMIT_S:-420}
[ "${GPU_CHECK_DEVICE:-cuda}" != cpu ] || dry=1
train_s=${GPU_CHECK_TRAIN_S:-$([ $dry -eq 0 ] && echo 110 || echo 15)}
device=cuda
[ $dry -eq 0 ] || device=cpu

if [ $dry -eq 0 ] && ! nvidia-smi -L 2>/dev/null | grep -q GPU && [ ! -e /dev/nvidia0 ]; then
  echo "gpu_check: no CUDA device here (nvidia-smi finds none, nor is there /dev/nvidia0); --dry runs the same steps on the CPU" >&2
  exit 1
fi
mkdir -p "$build" "$out"
out=$(cd "$out" && pwd)
log=$out/log.txt
: >"$log"

# ---- the table ----

rows=$build/rows.txt # of all stages since the last build: NAME<tab>RESULT<tab>NOTE, the last of each name
[[ ! " ${stages[*]} " =~ " build " ]] || rm -f "$rows"
touch "$rows"
failed=0
print_table() {
  echo "| step | result | |"
  echo "|---|---|---|"
  awk -F '\t' '{print "| " $1 " | " $2 " | " $3 " |"}' "$rows"
}
device_line=
[ $dry -eq 1 ] || device_line=$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null)
write_summary() {
  {
    echo "# gpu_check, $(date -u +%FT%TZ)$([ $dry -eq 0 ] || echo ', dry: on the CPU')"
    echo
    [ -z "$device_line" ] || echo "$device_line"
    echo
    print_table
  } >"$out/summary.md"
}
row() { # NAME pass|fail|skip NOTE
  awk -F '\t' -v name="$1" '$1 != name' "$rows" >"$rows.new"
  printf '%s\t%s\t%s\n' "$1" "$2" "$(tr '\t|' ' /' <<<"$3")" >>"$rows.new"
  mv "$rows.new" "$rows"
  [ "$2" != fail ] || failed=$((failed + 1))
  printf '%-4s  %s  %s\n' "$2" "$1" "$3"
  write_summary
}

# Seconds that the stage may still take, and the next test or calibration of it.
stage_s=540
[ $dry -eq 0 ] || stage_s=36000
stage_end=0
stage_left() { echo $((stage_end - SECONDS > 5 ? stage_end - SECONDS : 5)); }
left() { # [AT_MOST]
  local most=$(($(stage_left) < limit ? $(stage_left) : limit))
  echo $((${1:-$most} < most ? ${1:-$most} : most))
}

# Runs a command and writes its output to the log continuously; its last lines explain a failure.
logged() { # NAME COMMAND...
  local name=$1 status=0 begin=$SECONDS
  shift
  echo "== $name: $*" >>"$log"
  "$@" 2>&1 | tee "$build/last.txt" >>"$log"
  status=${PIPESTATUS[0]}
  echo "== $name: exit $status after $((SECONDS - begin)) s" >>"$log"
  return "$status"
}
last_line() { grep -v '^$' "$build/last.txt" | tail -n 1 | cut -c1-160; }

step() { # NAME COMMAND...
  if logged "$@"; then row "$1" pass "$(last_line)"; else row "$1" fail "$(last_line)"; fi
}

# ---- build ----

configure() { # WITH_TESTS WITH_TORCH
  local prefix=() options=()
  [ -z "${GPUSCHED_DEPS:-}" ] || {
    local deps
    deps=$(cd "$GPUSCHED_DEPS" && pwd)
    prefix+=("$deps")
    # Shared libraries of that folder are found by programs built with it; libarchive there is a linker script.
    options+=("-DCMAKE_EXE_LINKER_FLAGS=-L$deps/lib -Wl,-rpath,$deps/lib" "-DOPENSSL_ROOT_DIR=$deps" "-DOPENSSL_USE_STATIC_LIBS=ON")
  }
  local torch
  torch=$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)' 2>/dev/null) && prefix+=("$torch")
  local joined
  joined=$(IFS=';' && echo "${prefix[*]:-}")
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DGPUSCHED_BUILD_BENCH=OFF -DGPUSCHED_WERROR=OFF \
    "-DGPUSCHED_BUILD_TESTS=$1" "-DGPUSCHED_WITH_TORCH=$2" "-DGPUSCHED_WITH_CUDA=$([ $dry -eq 0 ] && echo ON || echo AUTO)" \
    "-DCMAKE_PREFIX_PATH=$joined" "${options[@]}"
}

has_target() { ninja -C "$build" -t query "$1" >/dev/null 2>&1; }

do_build() {
  # A LibTorch that does not match the toolkit stops CMake. Then build without it, because the GPU tests matter more; and
  # without tests rather than without the program.
  local attempt done=0
  for attempt in "ON AUTO" "ON OFF" "OFF OFF"; do
    # shellcheck disable=SC2086 # two words on purpose
    if logged configure configure $attempt; then
      done=1
      break
    fi
    row "configure, tests and Torch $attempt" "$([ "$attempt" = "OFF OFF" ] && echo fail || echo skip)" \
      "$(grep -m 1 -A 3 'CMake Error' "$build/last.txt" | tr '\n' ' ' | cut -c1-160)"
  done
  [ $done -eq 1 ] || return
  row configure pass "$(grep -oE 'CUDA backend: [A-Z]+|LibTorch\): [A-Z]+' "$log" | tail -n 2 | tr '\n' ' ')"
  for target in gpusched_program gpusched_train gpusched_calibrate cuda_device_test cuda_backend_test rl_test; do
    if has_target "$target"; then
      step "build $target" timeout "$(stage_left)" cmake --build "$build" --target "$target"
    else
      row "build $target" skip "not configured: a package, CUDA or LibTorch is missing"
    fi
  done
}

# ---- tests ----

# A GoogleTest program. With a device, tests that are skipped for lack of one are failures.
test_program() { # NAME FILTER
  local program=$build/tests/$1 name=$1
  [ -x "$program" ] || {
    row "$1" skip "not built"
    return
  }
  # A test that hangs must not use up the time of the next steps.
  if logged "$name" timeout -k 10 "$(left 180)" "$program" "--gtest_filter=$2"; then
    local skipped passed
    passed=$(grep -oE '\[  PASSED  \] [0-9]+' "$build/last.txt" | grep -oE '[0-9]+')
    skipped=$(grep -oE '\[  SKIPPED \] [0-9]+ test' "$build/last.txt" | grep -oE '[0-9]+' || true)
    if [ "${passed:-0}" -eq 0 ]; then
      row "$name" "$([ $dry -eq 1 ] && echo skip || echo fail)" "all ${skipped:-} tests skipped"
    elif [ $dry -eq 0 ] && [ "${skipped:-0}" -gt 2 ]; then
      # One test applies only without a device, one needs an energy counter.
      row "$name" fail "$skipped tests skipped though there is a device"
    else
      row "$name" pass "$passed passed, ${skipped:-0} skipped"
    fi
  else
    local reason
    reason=$(grep -m 1 -A 1 -E 'Failure|FAILED|ERROR' "$build/last.txt" | tr '\n' ' ' | cut -c1-160)
    row "$name" fail "${reason:-no end within its time, or a crash: $(last_line)}"
  fi
}

do_test() {
  local nvcc status=0
  nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
  logged cuda_compile tests/cuda/cuda_compile_test.sh . "$nvcc" || status=$?
  case $status in
    0) row cuda_compile pass "$(last_line)" ;;
    77) row cuda_compile skip "$(last_line)" ;;
    *) row cuda_compile fail "$(last_line)" ;;
  esac
  test_program cuda_device_test '*'
  test_program cuda_backend_test '*'
  # Checks also that this version of LibTorch computes what the formulas say.
  test_program rl_test '*EveryNetwork*'
  grep -E 'largest difference of a parameter' "$build/last.txt" || true
}

# ---- calibration ----

# NAME: "quick" or "full". Measurements are copied to the results even if a later step fails.
calibrate() {
  local name=$1 program=$build/gpusched profile=$build/$1.json size=() status=0
  [ "$name" = full ] || size=(--quick)
  local mix=()
  [ "$name" = quick ] && [ $quick -eq 0 ] || mix=(--job-mix)
  # The signal of Ctrl-C, so that measurements are kept and the next run continues from there.
  logged "calibrate $name" timeout -s INT -k 30 "$(left)" "$program" calibrate --backend $device "${size[@]}" \
    "${mix[@]}" --checkpoint-folder "$build" --out "$profile" || status=$?
  cp "$profile.samples.csv" "$out/samples-$name.csv" 2>/dev/null
  if [ $status -ne 0 ]; then
    row "calibrate $name" fail "$(last_line)"
    return 1
  fi
  cp "$profile" "$out/profile.json"
  row "calibrate $name" pass "$(wc -l <"$profile.samples.csv") measurements"
}

do_calibrate() {
  [ -x "$build/gpusched" ] || {
    row calibrate fail "the program is not built"
    return
  }
  # The short suite first, so that there is a profile after a minute.
  local best=
  calibrate quick && best=quick
  [ $quick -eq 1 ] || { calibrate full && best=full; }
  [ -n "$best" ] || return
  local profile=$build/$best.json
  step "profile validate" "$build/gpusched" profile validate "$profile"
  step "calibration report" python3 scripts/calibration_report.py "$profile" "$out"
  local verdicts
  verdicts=$(
    python3 - "$profile" <<'PYTHON'
import json, sys
for gate in json.load(open(sys.argv[1]))["validation"]["gates"]:
    result = {"pass": "pass", "fail": "fail"}.get(gate["status"], "skip")
    found = f"{gate['value_ratio']:.1%} of at most {gate['limit_ratio']:.1%}, n {gate['n']}" if result != "skip" else "not run"
    print(f"{result}\t{gate['name']}\t{found}")
PYTHON
  ) || row gates fail "the profile cannot be read"
  while IFS=$'\t' read -r result name found; do
    [ -z "$name" ] || row "gate: $name" "$result" "$found"
  done <<<"$verdicts"
}

# ---- memory and races ----

do_sanitize() {
  local sanitizer
  sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
  if [ -x "$sanitizer" ] && [ -x "$build/tests/cuda_device_test" ] && [ $dry -eq 0 ]; then
    # A checker changes all times, so only the computed results are tested.
    for tool in memcheck racecheck; do
      if logged "compute-sanitizer $tool" timeout -k 10 "$(left 260)" "$sanitizer" --tool $tool --error-exitcode 1 \
        "$build/tests/cuda_device_test" '--gtest_filter=*EveryKernel*'; then
        row "compute-sanitizer $tool" pass "$(last_line)"
      elif grep -q 'Device not supported' "$build/last.txt"; then
        row "compute-sanitizer $tool" skip "the checker does not support this machine's device"
      else
        row "compute-sanitizer $tool" fail "$(last_line)"
      fi
    done
  else
    row compute-sanitizer skip "not there"
  fi
}

# ---- training ----

# PPO by choices and coherent PPO (steering), each on the CPU and on the device: a chunk of each run in a call, which goes
# on where the last one ended.

train_config() { # METHOD DEVICE
  local windows=32 jobs=512 minibatch=16384 validated=32 nodes=16
  [ $dry -eq 0 ] && [ $quick -eq 0 ] || windows=2 jobs=64 minibatch=256 validated=4 nodes=2
  local all
  all='"device": "'$2'", "threads": '$(nproc)
  local ppo='"iterations": 1000000, "time_limit_s": '$train_s', "windows": '$windows', "group": 8, "minibatch": '$minibatch',
  "validate_every": 2, "validation_windows": '$validated
  if [ "$1" = choices ]; then
    cat <<JSON
{"trace": "synthetic:lublin:20000", "cluster": "256", $all,
 "env": {"mode": "fit_or_wait", "knowledge": "oracle", "heuristic": "saf"},
 "windows": {"jobs": $jobs, "train_fraction": 0.45, "validation_fraction": 0.15, "shuffled": 500, "stretch": 0.1},
 "network": {"kind": "deepsets", "width": 64, "alpha": 2},
 "ppo": {$ppo, "epochs": 2, "learning_rate": 3e-4, "kl_stop": 0.01, "sampling_cost": 0.02, "start_kl": 0.01}}
JSON
  else
    cat <<JSON
{"trace": "synthetic:philly:20000", "cluster": "${nodes}x8", $all,
 "preemption": {"restart_s": 60},
 "env": {"mode": "preempt", "heuristic": "las", "weights": {"jct": 1}},
 "windows": {"jobs": $jobs, "warm_up_jobs": 64, "stride": 64, "train_fraction": 0.5, "validation_fraction": 0.2},
 "network": {"kind": "rank", "alpha": 1, "hold_jobs": 16},
 "ppo": {$ppo, "lambda_time_s": 14400}}
JSON
  fi
}

iterations_in() { # FOLDER; the header and the untrained model's row are none
  awk 'END {print (NR > 2) ? NR - 2 : 0}' "$1/metrics.csv" 2>/dev/null || echo 0
}

# Lets a run go on for another chunk, from what its checkpoint says that it has trained: a line, 8 bytes of length, JSON.
more_time() { # FOLDER
  python3 - "$1" "$train_s" <<'PYTHON'
import json, os, sys
folder, more = sys.argv[1], float(sys.argv[2])
with open(folder + "/checkpoint.bin", "rb") as file:
    file.readline()
    trained = json.loads(file.read(int.from_bytes(file.read(8), "little")))["trained_s"]
path = folder + "/config.json"
with open(path) as file:
    config = json.load(file)
config["ppo"]["time_limit_s"] = trained + more
with open(path + ".new", "w") as file:
    json.dump(config, file)
os.replace(path + ".new", path)
PYTHON
}

train_chunk() { # METHOD LEARNER DEVICE
  local name="$1 on $2" run=$build/train_$1_$2 begin=(--resume "$build/train_$1_$2") before after
  before=$(iterations_in "$run")
  if [ -e "$run/checkpoint.bin" ]; then
    more_time "$run"
  else
    rm -rf "$run"
    train_config "$1" "$3" >"$run.json"
    begin=(--config "$run.json" --out "$run")
  fi
  # Killed where it does not end by itself: what its checkpoint holds is kept.
  logged "train $name" timeout -k 10 "$(left)" "$build/gpusched-train" "${begin[@]}"
  after=$(iterations_in "$run")
  if [ "$after" -gt "$before" ]; then
    row "train $name" pass "$after iterations, $((after - before)) of them in this call"
  else
    row "train $name" fail "no iteration ended: $(last_line)"
  fi
}

do_train() {
  "$build/gpusched" --version 2>/dev/null | grep -q 'LibTorch: yes' || {
    row train skip "built without LibTorch"
    return
  }
  local method on_device=$device runs=()
  [ $dry -eq 0 ] || on_device=cpu_again
  for method in choices steering; do
    train_chunk $method cpu cpu
    train_chunk $method $on_device $device
    runs+=("$method,cpu=$build/train_${method}_cpu" "$method,$on_device=$build/train_${method}_$on_device")
  done
  if python3 scripts/learning_table.py "${runs[@]}" >"$out/train.md"; then
    cat "$out/train.md"
  else
    row "training table" fail "scripts/learning_table.py"
  fi
}

# ---- all of it ----

# Finds cuBLAS where it is installed only as a Python package.
python_libraries=$(python3 -c 'import glob, os, nvidia
print(":".join(sorted({os.path.dirname(f) for p in nvidia.__path__ for f in glob.glob(p + "/**/libcublas.so*", recursive=True)})))' \
  2>/dev/null) || python_libraries=
[ -z "$python_libraries" ] || export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$python_libraries"

echo "== $(uname -srm), $(nproc) cores, $(date -u +%FT%TZ)" >>"$log"
[ $dry -eq 1 ] || nvidia-smi >>"$log" 2>&1
for stage in "${stages[@]}"; do
  stage_end=$((SECONDS + stage_s))
  "do_$stage"
done
write_summary
echo
print_table
echo "$failed failed; results in $out"
[ $failed -eq 0 ]
