#!/usr/bin/env bash
# Installs what is missing, builds everything, runs every test. Ends with the line "N passed, N failed".
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_packages.sh scripts/packages_build.txt scripts/packages_test.txt
[ -f build/test/build.ninja ] || cmake --preset test
cmake --build --preset test

status=0
ctest --preset test --output-junit results.xml || status=$?
scripts/count_tests.sh build/test/results.xml
exit $status
