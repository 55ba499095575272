# SPDX-License-Identifier: Apache-2.0
# Sourced by experiments/*/run.sh: reads their options and sets the variables that experiments/README.md lists. Before, an experiment
# may set takes=(NAME...), options of its own with a value; value NAME DEFAULT is what was given, else the default.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[1]}")" && pwd)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
fixtures=$root/traces/fixtures
declare -A given=()
smoke=false out='' build=$root/build/release traces=${GPUSCHED_TRACES:-$root/../shared/traces}
while [ $# -gt 0 ]; do
  case $1 in
    --smoke) smoke=true ;;
    --out | --build | --traces)
      [ $# -gt 1 ] || { echo "$1: expected a folder" >&2; exit 2; }
      case $1 in --out) out=$2 ;; --build) build=$2 ;; --traces) traces=$2 ;; esac
      shift ;;
    *)
      if [[ $1 != --* || " ${takes[*]-} " != *" ${1#--} "* ]]; then
        echo "usage: $0 [--smoke] [--out FOLDER] [--build FOLDER] [--traces FOLDER]${takes[*]:+$(printf ' [--%s VALUE]' "${takes[@]}")}" >&2
        exit 2
      fi
      [ $# -gt 1 ] || { echo "$1: expected a value" >&2; exit 2; }
      given[${1#--}]=$2
      shift ;;
  esac
  shift
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
out=${out:-$scratch/out}
mkdir -p "$out"
[ -x "$build/gpusched" ] || { echo "$build/gpusched is absent; scripts/quickstart.sh builds it, --build names another folder" >&2; exit 2; }
out=$(cd "$out" && pwd) build=$(cd "$build" && pwd)
gpusched=$build/gpusched

# Another input than that of the published figures: nothing to compare with.
published=''
if $smoke; then
  traces=$scratch/traces published=--no-published
  python3 "$root/experiments/smoke_traces.py" "$traces"
fi

value() {
  printf '%s' "${given[$1]:-$2}"
}

# need FILE...: ends the experiment as skipped where one of its inputs is absent, and says where that can be had.
need() {
  local file source
  for file in "$@"; do
    [ -e "$file" ] && continue
    source=$(awk -F' *[|] *' -v file="${file#"$traces"/}" '!/^#/ && index(file, $1) == 1 { print $2; exit }' "$root/experiments/sources.txt")
    echo "skipped: $file is absent; get it: ${source:-experiments/sources.txt does not say where}" >&2
    exit 77
  done
}

# need_program FILE: builds a program of the build folder where it is absent: scripts/quickstart.sh builds `gpusched` alone.
need_program() {
  [ ! -x "$build/$1" ] || return 0
  [ -f "$build/CMakeCache.txt" ] || { echo "$build/$1 is absent, and $build is no build folder" >&2; exit 2; }
  local target
  target=$(basename "$1")
  target=${target//-/_}
  echo "building $build/$1: cmake --build $build --target $target" >&2
  cmake --build "$build" --target "$target" >&2 || exit 1
}
