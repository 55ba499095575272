#!/usr/bin/env bash
# Installs what is missing, builds everything, runs every test, then gives each fuzz target 10 seconds: less than 40 minutes
# in all on two cores. Ends with the line "N passed, N failed, N skipped".
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_packages.sh scripts/packages_build.txt scripts/packages_test.txt
# From pip: TensorBoard, with which a test reads the training logs, SciPy, whose p values others are compared with, and what the
# Python package is built and tested with. Where pip finds none, those tests are skipped. The stamp is the list, so that a longer
# list is installed too.
tools=$PWD/build/tools
if ! cmp -s tests/requirements.txt "$tools/ready"; then
  { python3 -m venv "$tools" && "$tools/bin/pip" install -q --retries 1 --timeout 60 -r tests/requirements.txt && cp tests/requirements.txt "$tools/ready"; } ||
    echo "TensorBoard, SciPy and nanobind are not all to be had from pip: their tests will be skipped."
fi
# The clients of the Python package train with Debian's torch, which needs Debian's Python and numpy. Without it their tests are
# not there.
clients=$PWD/build/clients
if /usr/bin/python3 -c 'import torch' 2>/dev/null && ! cmp -s tests/python/clients_requirements.txt "$clients/ready"; then
  { /usr/bin/python3 -m venv --system-site-packages "$clients" &&
    "$clients/bin/pip" install -q --no-deps --retries 1 --timeout 60 -r tests/python/clients_requirements.txt &&
    cp tests/python/clients_requirements.txt "$clients/ready"; } ||
    echo "sb3-contrib and onnxruntime are not all to be had from pip: tests of trainers in Python will be missing."
fi
export PATH="$tools/bin:$PATH"

[ -f build/test/build.ninja ] || cmake --preset test
cmake --build --preset test

status=0
ctest --preset test --output-junit results.xml || status=$?
scripts/fuzz.sh --repeat 10 || status=1
scripts/count_tests.sh build/test/results.xml build/fuzz/results.xml
exit $status
