#!/usr/bin/env bash
# Prints "N passed, N failed, N skipped" for JUnit files, after the reason of each skip. A file that is missing counts as a
# failure: what should have written it did not get that far.
#   scripts/count_tests.sh build/test/results.xml [...]
set -euo pipefail

attribute() { sed -n "s/.*[[:space:]]$1=\"\([0-9]*\)\".*/\1/p" "$2" | head -n 1; }
passed=0 failed=0 skipped=0
for results in "$@"; do
  if [ ! -f "$results" ]; then
    echo "$results was not written."
    failed=$((failed + 1))
    continue
  fi
  left_out=$(grep -c '<skipped' "$results" || true)
  passed=$((passed + $(attribute tests "$results") - $(attribute failures "$results") - left_out))
  failed=$((failed + $(attribute failures "$results")))
  skipped=$((skipped + left_out))
  sed -n 's/^\(Skipped: .*\)/\1/p' "$results" | sort | uniq -c
done
echo "$passed passed, $failed failed, $skipped skipped"
