#!/usr/bin/env bash
# Installs what is missing, builds the programs and the tests and runs them: about forty minutes on two cores. What does not
# compile shows before a test runs: first what clang refuses in sources and tests, then what GCC refuses. What takes longer
# is in scripts/deep_test.sh. Ends with the line "N passed, N failed, N skipped".
set -euo pipefail
cd "$(dirname "$0")/.."

stage() { printf '== %d min %02d s: %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$*"; }

stage "packages"
scripts/install_packages.sh scripts/packages_build.txt scripts/packages_test.txt
scripts/python_tools.sh
export PATH="$PWD/build/tools/bin:$PATH"

stage "clang reads the sources that GCC compiles, and compiles tests"
[ -f build/test/build.ninja ] || cmake --preset test
scripts/clang_check.py build/test

stage "the library and the programs, by GCC"
cmake --build --preset test --target gpusched_programs

stage "the other tests, and all are linked"
cmake --build --preset test

stage "the tests run"
status=0
ctest --preset test --output-junit results.xml || status=$?
stage "done"
scripts/count_tests.sh build/test/results.xml
exit $status
