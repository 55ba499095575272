#!/usr/bin/env bash
# Builds examples/simgrid against the installed package as a stranger would and compares its jobs with those of `gpusched replay`.
# Skipped (77) without libsimgrid-dev.
#   build_simgrid.sh SOURCE_DIR BUILD_DIR WORK_DIR
set -euo pipefail
source=$1 build=$2 work=$3
echo '#include <simgrid/s4u.hpp>' | "${CXX:-c++}" -std=c++20 -fsyntax-only -xc++ - 2>/dev/null || {
  echo "skipped: no SimGrid (libsimgrid-dev)"
  exit 77
}
rm -rf "$work" && mkdir -p "$work"
cmake --install "$build" --prefix "$work/prefix" >/dev/null
cmake -S "$source/examples/simgrid" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/build" >/dev/null
python3 "$source/tests/consumer/simgrid_test.py" "$work/build/simgrid_host" "$work/prefix/bin/gpusched" "$work"
