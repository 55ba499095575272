#!/usr/bin/env bash
# Shows that two builds of gpusched behave alike: replays every policy that OLD knows, alone and under EASY and
# conservative backfilling (or their refusal), and compares exit codes, tables and every byte of `--out` but the manifest
# (which names the build). A row or folder may be named with its backfilling ("sjf+easy") or without; messages may differ.
#
#   scripts/compare_programs.sh OLD NEW [TRACES]      TRACES: default $GPUSCHED_TRACES or ../shared/traces
#
# Traces: Philly (12,000 jobs on 75x8, preempting with a restart cost), Lublin-1 and HPC2N whole. Then the worlds of
# effect_worlds.py: failures, stages, elastic jobs, changes, sharing, MIG, dependencies, throughputs, spans, and all at
# once. COMPARE_ONLY=traces or =worlds leaves the others out; POLICIES names the policies to run. Prints a line for each
# difference, then how many runs were alike; exit code 1: one differed.
set -euo pipefail

[ $# -ge 2 ] || { sed -n 's/^#   //p' "$0" >&2; exit 2; }
old=$(realpath "$1")
new=$(realpath "$2")
traces=$(realpath "${3:-${GPUSCHED_TRACES:-$(dirname "$0")/../../shared/traces}}")
limit_s=${COMPARE_LIMIT_S:-120}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ "${COMPARE_ONLY:-}" = worlds ] || head -n 12001 "$traces/philly/philly_jobs.csv" >"$work/philly.csv"
alike=0 different=0 slow=0

run() { # PROGRAM OUT ARGUMENTS...
  local program=$1 out=$2 status=0
  shift 2
  mkdir -p "$out"
  (cd "${folder:-$work}" && timeout "$limit_s" "$program" replay "$@" --out "$out/files") >"$out/stdout" 2>"$out/stderr" || status=$?
  echo "$status" >"$out/status"
  rm -f "$out/stderr" "$out/files/manifest.json"
  # One policy ran: its folder and its row get one name, whatever the width of the column.
  for folder in "$out"/files/*/; do [ ! -d "$folder" ] || mv "$folder" "$out/files/policy"; done
  sed -i -E 's/\+(easy|conservative)//; s/ +/ /g; s/-{9,}//' "$out/stdout"
}

compare() { # NAME ARGUMENTS...
  local name=$1
  shift
  rm -rf "$work/a" "$work/b"
  run "$old" "$work/a" "$@" &
  run "$new" "$work/b" "$@"
  wait
  find "$work/a" "$work/b" -name summary.json -exec sed -i -E 's/\+(easy|conservative)//' {} +
  if [ "$(cat "$work/a/status")" = 124 ]; then
    slow=$((slow + 1))
    echo "not compared, over $limit_s s: $name"
  elif diff -rq "$work/a" "$work/b" >"$work/difference"; then
    alike=$((alike + 1))
  else
    different=$((different + 1))
    echo "different: $name: $(sed "s#$work/##g" "$work/difference" | tr '\n' ';')"
  fi
}

policies=${POLICIES:-$("$old" policies | sed -n '/^$/q;s/ .*//p')}
worlds=()
[ "${COMPARE_ONLY:-}" = traces ] || read -r -a worlds < <("$(dirname "$(realpath "$0")")/effect_worlds.py" "$work/worlds")
for world in "${worlds[@]}"; do
  read -r -a arguments <"$work/worlds/$world/options"
  for policy in $policies fifo+easy fifo+conservative sjf+easy saf+conservative; do
    folder=$work/worlds/$world compare "$policy, $world" jobs.csv "${arguments[@]}" --policy "$policy"
  done
done
[ "${COMPARE_ONLY:-}" != worlds ] || policies=
for policy in $policies; do
  for trace in philly lublin hpc2n; do
    case $trace in
      philly) arguments=(--trace philly.csv --cluster 75x8 --restart-cost 30) ;;
      lublin) arguments=(--trace "$traces/swf/lublin_256.swf" --cluster 256) ;;
      hpc2n) arguments=(--trace "$traces/swf/hpc2n_head_alea.swf") ;;
    esac
    for backfill in none easy conservative; do
      compare "$policy, $trace, backfill $backfill" "${arguments[@]}" --policy "$policy" --backfill "$backfill"
    done
  done
done
echo "$alike alike, $different different, $slow not compared"
[ $different -eq 0 ]
