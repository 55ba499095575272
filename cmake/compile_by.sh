#!/usr/bin/env bash
# A compiler launcher for targets that another compiler builds than the project's (cmake/GpuschedTestCompiler.cmake):
#   compile_by.sh [LAUNCHER] COMPILER -- PROJECT_COMPILER ARGUMENT...     runs [LAUNCHER] COMPILER ARGUMENT...
set -eu
compiler=()
while [ "$1" != -- ]; do
  compiler+=("$1")
  shift
done
shift 2
# A precompiled header must not be made from its earlier state.
for word in "$@"; do
  case $word in *.gch) rm -f "$word" ;; esac
done
exec "${compiler[@]}" "$@"
