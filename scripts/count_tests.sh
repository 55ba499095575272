#!/usr/bin/env bash
# Prints "N passed, N failed, N skipped" for a JUnit file of ctest, after the reason of each skip.
#   scripts/count_tests.sh build/test/results.xml
set -euo pipefail

attribute() { sed -n "s/.*[[:space:]]$1=\"\([0-9]*\)\".*/\1/p" "$2" | head -n 1; }
tests=$(attribute tests "$1")
failed=$(attribute failures "$1")
skipped=$(grep -c '<skipped' "$1" || true)
sed -n 's/^\(Skipped: .*\)/\1/p' "$1" | sort | uniq -c
echo "$((tests - failed - skipped)) passed, $failed failed, $skipped skipped"
