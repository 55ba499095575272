#!/usr/bin/env bash
# Runs every given build of the probe; all must print what the first prints, and no build may complain.
set -euo pipefail
expected=$("$1")
if grep -q differs <<<"$expected"; then
  echo "$expected" | grep differs
  exit 1
fi
for probe in "$@"; do
  if ! diff <(echo "$expected") <("$probe"); then
    echo "$(basename "$probe") prints other hashes than $(basename "$1")"
    exit 1
  fi
done
echo "$# builds, $(wc -l <<<"$expected") runs each: the same history"
