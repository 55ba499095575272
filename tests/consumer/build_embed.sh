#!/usr/bin/env bash
# Builds examples/embed as a stranger would, runs it and compares what it prints.
#   build_embed.sh installed|fetched SOURCE_DIR BUILD_DIR WORK_DIR
set -euo pipefail
how=$1 source=$2 build=$3 work=$4

rm -rf "$work"
mkdir -p "$work"
case $how in
  installed)
    cmake --install "$build" --prefix "$work/prefix" >/dev/null
    option=-DCMAKE_PREFIX_PATH=$work/prefix
    ;;
  fetched) option=-DGPUSCHED_SOURCE=$source ;;
esac
cmake -S "$source/examples/embed" -B "$work/build" -DCMAKE_BUILD_TYPE=Release "$option" >/dev/null
cmake --build "$work/build" >/dev/null
diff "$source/examples/embed/expected_output.txt" <("$work/build/embed")
