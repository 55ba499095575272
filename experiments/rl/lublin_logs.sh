#!/bin/bash
# lublin_logs.sh GPUSCHED LUBLIN_256.SWF FOLDER: logs drawn from the Lublin-Feitelson model as fitted to jobs 0 to 5,999 of
# Lublin-1: FOLDER/train.csv to learn from, and to test on windows.csv, windows2.csv and windows3.csv (300 windows of 1,024
# jobs each) and log1.csv to log20.csv (whole logs of 30,000 jobs). Later windows and log11 to log20 came when those before
# had been looked at.
set -euo pipefail
gpusched=$1 lublin=$2 folder=$3
mkdir -p "$folder"
awk '/^;/ { print; next } jobs < 6000 { print; ++jobs }' "$lublin" > "$folder/head.swf"
draw() {
  "$gpusched" trace generate --model lublin --like "$folder/head.swf" --cluster 256 --no-check --jobs "$1" --seed "$2" \
    --out "$folder/$3.csv"
}
draw 1000000 11 train
draw 307200 12 windows
draw 307200 112 windows2
draw 307200 212 windows3
for i in {1..10}; do draw 30000 $((30 + i)) "log$i"; done
for i in {11..20}; do draw 30000 $((120 + i)) "log$i"; done
