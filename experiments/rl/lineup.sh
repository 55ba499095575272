#!/bin/sh
# The plain policies that an agent has to beat, on any log, all with the same knowledge of run times.
#
#   experiments/rl/lineup.sh KNOWLEDGE LOG --cluster C [options of gpusched evaluate]
#
# (--window-jobs, --stride, --from, --oversize and others are handed on.)
# KNOWLEDGE: exact, requested or history (predicted from finished jobs). An agent joins with --group NAME=rl:FOLDER and
# must know no more than that. --window-jobs N with the log's N jobs is one run over the whole log. The first table holds
# machines that cannot preempt; the second those that can, with RESTART_S (60) seconds for each restart.
# GPUSCHED names the program.
set -eu
knowledge=$1
log=$2
shift 2
known="estimate=$knowledge"
lineup=fifo-skip,fifo+easy{$known}
for order in sjf saf f1; do
  lineup="$lineup,$order{$known,skip=true},$order{$known}+easy{$known}"
done
compare() {
  "${GPUSCHED:-gpusched}" evaluate "$log" --figure avg_jct_s \
    --beside p99_wait_s,avg_bounded_slowdown,worst_decile_slowdown "$@"
}
compare --policy "$lineup" "$@"
printf '\nwith preemption, %s s for each restart\n' "${RESTART_S:-60}"
compare --policy las,tiresias,srsf --restart-cost "${RESTART_S:-60}" "$@"
