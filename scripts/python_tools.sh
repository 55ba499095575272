#!/usr/bin/env bash
# Makes the Python environments of the tests, build/tools and build/clients. Where pip finds nothing, their tests are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

# TensorBoard, with which a test reads the training logs, SciPy, whose p values others are compared with, and what the Python
# package is built and tested with. The stamp is the list, so that a longer list is installed too.
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
