#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes everything of a release in one folder: the source archive, a manylinux wheel (the program and the Python package, with
# their libraries inside), the two Debian packages, and SHA256SUMS of all.
#
#   scripts/release.sh [--draft] [--out FOLDER] [--python PYTHON]...
#
# --out: the folder, by default build/dist; what it holds is replaced. --python: an interpreter to make a wheel for, by default
# python3. --draft: also from a working tree with changes. Exit code: 0 made, 1 not, 2 bad usage.
set -euo pipefail
cd "$(dirname "$0")/.."

out=build/dist draft=false pythons=()
while [ $# -gt 0 ]; do
  case $1 in
    --draft) draft=true ;;
    --out | --python)
      [ $# -gt 1 ] || { echo "$1: expected a value" >&2; exit 2; }
      if [ "$1" = --out ]; then out=$2; else pythons+=("$2"); fi
      shift ;;
    -h | --help) sed -n '3,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "unknown option $1 (see $0 --help)" >&2; exit 2 ;;
  esac
  shift
done
[ ${#pythons[@]} -gt 0 ] || pythons=(python3)
if ! $draft && [ -n "$(git status --porcelain)" ]; then
  echo "the working tree has changes: commit them, or say --draft" >&2
  exit 1
fi

scripts/install_packages.sh scripts/packages_build.txt scripts/packages_release.txt
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
rm -rf "$out"
mkdir -p "$out"
out=$(cd "$out" && pwd)

# The packages first: the wheels link the library of their build, which has neither LibTorch nor CUDA.
cmake --workflow --preset deb
cp build/deb/gpusched_*.deb build/deb/libgpusched-dev_*.deb "$out"

for python in "${pythons[@]}"; do
  tools=$PWD/build/release-tools-$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
  if ! cmp -s scripts/release_requirements.txt "$tools/ready"; then
    "$python" -m venv --clear "$tools"
    "$tools/bin/pip" install -q -r scripts/release_requirements.txt
    cp scripts/release_requirements.txt "$tools/ready"
  fi
  [ -f "$(echo "$out"/*.tar.gz)" ] || "$tools/bin/python" -m build --no-isolation --sdist --outdir "$out" .
  raw=$(mktemp -d)
  "$tools/bin/python" -m build --no-isolation --wheel --outdir "$raw" -Cbuild-dir=build/release-{wheel_tag} \
    -Ccmake.define.GPUSCHED_SIM_OF="$PWD/build/deb" .
  PATH=$tools/bin:$PATH "$tools/bin/python" scripts/release_wheel.py "$raw"/*.whl "$out"
  rm -rf "$raw"
done

(cd "$out" && sha256sum -- *.tar.gz *.whl *.deb > SHA256SUMS)
ls -l "$out"
