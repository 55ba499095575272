#!/usr/bin/env bash
# From a fresh clone to a first result: installs what is missing, builds the program that replays, compares policies, a trained one
# too: four minutes on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_packages.sh scripts/packages_build.txt
[ -f build/release/build.ninja ] || cmake --preset release
cmake --build --preset release --target gpusched_program

program=build/release/gpusched
echo
echo "\$ $program replay synthetic:philly --policy fifo,sjf,las,rl:builtin/philly,srtf --out out"
$program replay synthetic:philly --policy fifo,sjf,las,rl:builtin/philly,srtf --out out
echo
echo "Replay a real trace of your own the same way:"
echo "  $program replay YOUR_TRACE --cluster 352x8 --policy fifo,sjf,srtf"
if [ -f ../shared/traces/philly/philly_jobs.csv ]; then
  echo "or Microsoft's Philly trace, 80,539 jobs:"
  echo "  $program replay ../shared/traces/philly/philly_jobs.csv --cluster philly-vc --policy fifo,sjf,srtf"
fi
echo "Draw the runs in the folder out as a page of figures:"
echo "  $program report out --out out/report.html"
echo "train, search and calibrate are programs of their own: cmake --build --preset release --target gpusched_programs"
echo "More: $program --help, and README.md"
