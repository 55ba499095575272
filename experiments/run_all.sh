#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs experiments and compares their tables with the frozen ones.
#
#   experiments/run_all.sh [--smoke] [--freeze] [--out FOLDER] [--build FOLDER] [--traces FOLDER] [NAME...]
#
# NAME: folders of experiments; without, all that have a run.sh. --smoke: small, without real traces. --freeze: write the frozen
# tables anew instead of comparing. --out keeps what each wrote in FOLDER/NAME. Exit code: 0 all agree, 1 one does not, 2 bad
# usage, 77 one was skipped, for want of an input or of CLP, and the others agree.
set -euo pipefail
experiments=$(cd "$(dirname "$0")" && pwd)
smoke=() kind=full freeze=false out='' options=() names=()
while [ $# -gt 0 ]; do
  case $1 in
    --smoke) smoke=(--smoke) kind=smoke ;;
    --freeze) freeze=true ;;
    --out | --build | --traces)
      [ $# -gt 1 ] || { echo "$1: expected a folder" >&2; exit 2; }
      if [ "$1" = --out ]; then out=$2; else options+=("$1" "$2"); fi
      shift ;;
    -h | --help) sed -n '3,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "unknown option $1 (see $0 --help)" >&2; exit 2 ;;
    *) names+=("$1") ;;
  esac
  shift
done
if [ ${#names[@]} -eq 0 ]; then
  for script in "$experiments"/*/run.sh; do names+=("$(basename "$(dirname "$script")")"); done
fi
for name in "${names[@]}"; do
  [ -x "$experiments/$name/run.sh" ] || { echo "there is no experiment $name (experiments/$name/run.sh)" >&2; exit 2; }
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
out=${out:-$scratch}

# compare_or_freeze NAME: what became of the tables of an experiment that has run.
compare_or_freeze() {
  local reference=$experiments/$1/reference tolerances=()
  if $freeze; then
    mkdir -p "$reference/$kind"
    rm -f "$reference/$kind"/*.csv
    cp "$out/$1"/*.csv "$reference/$kind/"
    verdict=frozen
  elif [ ! -d "$reference/$kind" ]; then
    verdict='no frozen tables'
  else
    if [ -f "$reference/tolerances.json" ]; then tolerances=("$reference/tolerances.json"); fi
    verdict=same
    "$experiments/compare.py" "$reference/$kind" "$out/$1" "${tolerances[@]}" || verdict=DIFFERENT
  fi
}

failed=0 skipped='' summary=''
for name in "${names[@]}"; do
  echo "== $name"
  mkdir -p "$out/$name"
  status=0
  "$experiments/$name/run.sh" "${smoke[@]}" --out "$out/$name" "${options[@]}" || status=$?
  case $status in
    0) compare_or_freeze "$name" ;;
    77) verdict=skipped skipped+=" $name" ;;
    *) verdict="FAILED, exit code $status" ;;
  esac
  case $verdict in DIFFERENT | FAILED* | 'no frozen tables') failed=1 ;; esac
  summary+=$(printf '%-12s %s' "$name" "$verdict")$'\n'
done
printf '\n%s' "$summary"
[ $failed -eq 0 ] || exit 1
[ -z "$skipped" ] || { echo "skipped:$skipped (the lines above say what is missing)" >&2; exit 77; }
