# SPDX-License-Identifier: Apache-2.0
# Sourced by experiments/*/run.sh: reads their options and sets the variables that experiments/README.md lists.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[1]}")" && pwd)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
fixtures=$root/traces/fixtures
smoke=false out='' build=$root/build/release traces=${GPUSCHED_TRACES:-$root/../shared/traces}
while [ $# -gt 0 ]; do
  case $1 in
    --smoke) smoke=true ;;
    --out | --build | --traces)
      [ $# -gt 1 ] || { echo "$1: expected a folder" >&2; exit 2; }
      case $1 in --out) out=$2 ;; --build) build=$2 ;; --traces) traces=$2 ;; esac
      shift ;;
    *) echo "usage: $0 [--smoke] [--out FOLDER] [--build FOLDER] [--traces FOLDER]" >&2; exit 2 ;;
  esac
  shift
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
out=${out:-$scratch/out}
mkdir -p "$out"
[ -x "$build/gpusched" ] || { echo "$build/gpusched is absent; build it, or name the folder with --build" >&2; exit 2; }
out=$(cd "$out" && pwd) build=$(cd "$build" && pwd)
gpusched=$build/gpusched

# Another input than that of the published figures: nothing to compare with.
published=''
if $smoke; then
  traces=$scratch/traces published=--no-published
  python3 "$root/experiments/smoke_traces.py" "$traces"
fi

# need FILE...: ends the experiment as skipped where one of its inputs is absent.
need() {
  local file
  for file in "$@"; do
    [ -e "$file" ] || { echo "skipped: $file is absent" >&2; exit 77; }
  done
}
