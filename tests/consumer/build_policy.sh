#!/usr/bin/env bash
# Builds examples/policy against the installed package as a stranger would, replays, evaluates and sweeps with it; then tries
# libraries that are no policy, that were built for another program, and a policy that does what none should. Builds
# examples/simulate against gpusched::sim.
#   build_policy.sh SOURCE_DIR BUILD_DIR WORK_DIR
set -uo pipefail
source=$1 build=$2 work=$3
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 1
failures=0
fail() { echo "FAILED: $*" >&2; failures=$((failures + 1)); }

cmake --install "$build" --prefix "$work/prefix" >/dev/null || exit 1
gpusched=$work/prefix/bin/gpusched
cat >jobs.csv <<'CSV'
job_id,submit_s,work_s,tasks,gpu_milli_per_task
1,0,40,2,1000
2,1,20,4,1000
3,2,30,1,1000
4,10,10,2,1000
5,30,10,1,1000
CSV

# The example, and beside it the odd policy: one project, two lines.
cp -r "$source/examples/policy" own
cp "$source/tests/consumer/odd_policy.cpp" own/
echo 'gpusched_add_policy(odd odd_policy.cpp)' >>own/CMakeLists.txt
cmake -S own -B own/build -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null || exit 1
cmake --build own/build >/dev/null || exit 1
cp own/build/mine.so own/build/odd.so .

replay() { "$gpusched" replay jobs.csv --cluster 2x2 "$@"; }
replay --policy 'fifo,./mine.so,./mine.so{alpha=0}' --out out >table.txt 2>&1 || fail "replay: $(cat table.txt)"
hash=$(sha256sum mine.so | cut -d' ' -f1)
grep -q "\"sha256\": \"$hash\"" out/manifest.json || fail "the manifest does not tell the library's SHA-256"
grep -q '"path": "./mine.so"' out/manifest.json || fail "the manifest does not tell the library's path"
# By hand, 4 GPUs: job 1 holds 2 until 40 s, job 3 one until 32 s, job 5 the last from 30 s on. At 10 s job 4 does not fit; at
# 40 s both it (score 2/31) and job 2 (4/40) wait, job 4 goes first and ends at 50 s, then job 2 runs until 70 s. With alpha=0
# job 2, which waited longer, goes first: it ends at 60 s, job 4 at 70 s.
python3 - <<'PY' || fail "the policy's schedule is another than the one worked out by hand"
import csv, sys
def ends(folder):
    return {row["job_id"]: float(row["end_s"]) for row in csv.DictReader(open(f"out/{folder}/jobs.csv"))}
one, zero = ends("mine.so"), ends("mine.so_alpha=0_")
print(one, zero)
sys.exit(one != {"1": 40, "2": 70, "3": 32, "4": 50, "5": 40} or zero != {"1": 40, "2": 60, "3": 32, "4": 70, "5": 40})
PY
mkdir -p 'odd name' && cp mine.so 'odd name/my+policy v2'
replay --policy "$PWD/odd name/my+policy v2{alpha=2},mine.so" >odd.txt 2>&1 || fail "an odd name: $(cat odd.txt)"
replay --config out/manifest.json --out again >/dev/null 2>&1 || fail "the manifest does not repeat the run"
cmp -s out/mine.so/jobs.csv again/mine.so/jobs.csv || fail "the repeated run differs"
"$gpusched" evaluate jobs.csv --cluster 2x2 --policy fifo,./mine.so --window-jobs 3 >evaluate.txt 2>&1 ||
  fail "evaluate: $(cat evaluate.txt)"
grep -q '^\./mine.so' evaluate.txt || fail "evaluate does not tell the policy"

# A sweep runs again what another library decides.
cat >sweep.json <<'JSON'
{"base": {"trace": {"path": "jobs.csv"}, "cluster": "2x2"},
 "grid": {"policy": ["fifo", "./lib.so"]}, "out": "sweep"}
JSON
cp mine.so lib.so
"$gpusched" sweep sweep.json >sweep1.txt 2>&1 || fail "sweep: $(cat sweep1.txt)"
rm lib.so && cp odd.so lib.so
"$gpusched" sweep sweep.json >sweep2.txt 2>&1 || fail "second sweep: $(cat sweep2.txt)"
grep -q '1 run of 2 stored already' sweep2.txt || fail "the sweep took no notice of the new library: $(cat sweep2.txt)"

# refused CODE TEXT ARGUMENTS...: one line on standard error that holds TEXT, nothing on standard output, that exit code.
refused() {
  local code=$1 text=$2
  shift 2
  "$gpusched" "$@" >refused.out 2>refused.err
  local got=$?
  [[ $got == "$code" && ! -s refused.out && $(wc -l <refused.err) == 1 ]] && grep -qF -- "$text" refused.err && return
  fail "$* (exit $got, expected $code and one line with '$text'): $(head -c 600 refused.out refused.err)"
}
bad() { refused 2 "$1" replay jobs.csv --cluster 2x2 --policy "$2"; }
breaks() { refused 1 "$1" replay jobs.csv --cluster 2x2 --policy "$2"; }

bad 'no such file' ./absent.so
bad 'no such file' ./absent
bad 'cannot be loaded as a library' ./jobs.csv
mkdir folder.so && bad 'is no file' ./folder.so
echo 'no library' >text.so && bad 'cannot be loaded as a library' ./text.so
head -c 700 mine.so >short.so && breaks 'while it was loaded' ./short.so
echo 'int nothing(void) { return 0; }' | cc -shared -fPIC -xc - -o other.so && bad 'no function gpusched_policy_plugin' other.so
echo 'void *gpusched_policy_plugin(void) { return 0; }' | cc -shared -fPIC -xc - -o empty.so &&
  bad 'returned nothing' ./empty.so
echo 'unsigned plugin[2] = {8, 99}; void *gpusched_policy_plugin(void) { return plugin; }' |
  cc -shared -fPIC -xc - -o future.so && bad 'was built for version 99 of the boundary' ./future.so
headers=$(sed -n 's/.*HEADERS_HASH "\(.*\)"/\1/p' prefix/include/gpusched/plugin/headers_hash.hpp)
sed "s/$headers/${headers//[0-9a-f]/0}/" mine.so >stale.so && bad 'other headers of gpusched: 000000000000' ./stale.so
# Without CMake, and with a default outside its range.
sed 's/"alpha", 1, /"alpha", 11, /' "$source/examples/policy/mine.cpp" >wrong.cpp
"${CXX:-c++}" -std=c++20 -shared -fPIC -I prefix/include wrong.cpp -o wrong.so || fail "the compiler without CMake"
bad "declares its parameters wrongly: expected a default of 'alpha' in its range" ./wrong.so
bad "has no parameter 'alhpa' (did you mean 'alpha'?)" './mine.so{alhpa=2}'
bad 'parameter alpha: expected a number between 0 and 10' './mine.so{alpha=11}'
bad 'cannot be backfilled' './mine.so+easy'
bad 'no licence' './odd.so{what=make}'
bad "reads a parameter 'none'" './odd.so{what=parameter}'

breaks 'failed at 30 s: out of ideas' './odd.so{what=throw}'
breaks 'threw something that is no std::exception' './odd.so{what=throw-int}'
breaks 'no such job: 5 of 5' './odd.so{what=unknown-job}'
breaks 'no such job: 4294967295 of 5' './odd.so{what=no-job}'
breaks 'no such node: 77 of 2' './odd.so{what=unknown-node}'
breaks 'the work left must lie between' './odd.so{what=work}'
breaks 'it vacated a job that it neither moved nor preempted' './odd.so{what=vacate}'
breaks 'policy ./odd.so broke down in a decision: it aborted' './odd.so{what=abort}'
breaks 'policy ./odd.so broke down in a decision: it ended the process' './odd.so{what=exit}'
breaks 'broke down in a decision: a bad address' './odd.so{what=null}'
breaks 'broke down in a decision: a bad address' './odd.so{what=recursion}'
refused 1 'window at job 0: it failed at' evaluate jobs.csv --cluster 2x2 --policy 'fifo,./odd.so{what=throw}' \
  --window-jobs 5
# What the engine refuses changes nothing: the run ends as without it.
replay --policy './odd.so,./odd.so{what=refused}' --out refusals >refusals.txt 2>&1 || fail "$(cat refusals.txt)"
cmp -s refusals/odd.so/jobs.csv refusals/odd.so_what=refused_/jobs.csv || fail "a refused command changed something"
# The others keep their results.
replay --policy 'fifo,./odd.so{what=throw}' --out kept >kept.txt 2>&1
[[ -s kept/fifo/jobs.csv ]] || fail "the result of fifo was lost: $(cat kept.txt)"

cmake -S "$source/examples/simulate" -B simulate -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null || exit 1
cmake --build simulate >/dev/null || exit 1
simulate/simulate jobs.csv 2x2 fifo ./mine.so './odd.so{what=throw}' >simulate.txt 2>&1
diff - simulate.txt <<'TXT' || fail "examples/simulate prints something else"
fifo            57.40 s
./mine.so       37.80 s
./odd.so{what=throw} failed at 30 s: out of ideas
TXT
exit $((failures > 0))
