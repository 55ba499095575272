#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Both directions of the process boundary, with the programs of examples/process and with programs that misbehave.

    tests/online/process_boundary_test.py SOURCE_DIR GPUSCHED"""
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

source, gpusched = pathlib.Path(sys.argv[1]), sys.argv[2]
examples = source / "examples/process"
problems = []


def expect(what, found, expected):
    if found != expected:
        problems.append(f"{what}:\n  found    {found!r}\n  expected {expected!r}")


def run(*command, text=""):
    return subprocess.run([str(word) for word in command], input=text, capture_output=True, text=True, timeout=300)


def job_rows(count):
    """Collisions of instants, gangs, jobs without length; the same on every machine."""
    state = 12345
    for i in range(count):
        state = (state * 1103515245 + 12345) % 2**31
        yield i // 3 * 7, state // 7 % 40, 1 + state // 11 % 6


def native(jobs, policy, folder, *more):
    cluster = [] if "--cluster" in more else ["--cluster", "2x4"]
    done = run(gpusched, "replay", jobs, *cluster, "--policy", policy, "--out", folder, *more)
    if done.returncode != 0:
        sys.exit(done.stderr)
    [table] = folder.glob("*/jobs.csv")
    with open(table) as file:
        return {row["job_id"]: (float(row["first_start_s"]), float(row["end_s"])) for row in csv.DictReader(file)}


def hosted(jobs, policy, *nodes_out):
    done = run(sys.executable, examples / "host.py", jobs, "2x4", *nodes_out, "--", gpusched, "serve", "--policy", policy)
    expect(f"exit code of host.py with {policy}", (done.returncode, done.stderr), (0, ""))
    rows = csv.DictReader(done.stdout.splitlines())
    return {row["job_id"]: (float(row["start_s"]), float(row["end_s"])) for row in rows}


HELLO = '{"type":"hello","protocol":"gpusched","version":1,"cluster":"1x2"}'
JOB = '{"event":"job_submitted","job":{"id":"a","gpu_milli_per_task":1000,"duration_us":5}}'


def events(time, *list):
    return '{"type":"events","time_us":%d,"events":[%s]}' % (time, ",".join(list))


def expect_refused(lines, reason, policy="fifo"):
    """The host's last line is wrong, or its end is missing."""
    done = run(gpusched, "serve", "--policy", policy, text="".join(line + "\n" for line in lines))
    expect(f"serve: {lines[-1:]}", (done.returncode, done.stderr), (2, f"gpusched: {reason}\n"))
    if lines:
        expect(f"serve tells its host: {lines[-1:]}", json.loads(done.stdout.splitlines()[-1]),
               {"type": "error", "message": reason})


def expect_failure(jobs, folder, program, reason, parameters=""):
    """A scheduler that misbehaves."""
    path = folder / "scheduler.py"
    path.write_text("import json, sys\ndef send(m): print(json.dumps(m) if not isinstance(m, str) else m, flush=True)\n"
                    "hello = json.loads(sys.stdin.readline())\n" + program)
    done = run(gpusched, "replay", jobs, "--cluster", "2x4", "--policy", f"program:{sys.executable} {path}{parameters}")
    expect(f"exit code after {program!r}", done.returncode, 1)
    if reason not in done.stderr or "Traceback" in done.stderr:
        problems.append(f"after {program!r}:\n  found    {done.stderr!r}\n  expected {reason!r}")


GREET = 'send({"type": "hello", "protocol": "gpusched", "version": 1, "name": "x"})\ne = json.loads(sys.stdin.readline())\n'


def answer(decisions, more=""):
    return GREET + 'send({"type": "decisions", "time_us": e["time_us"], "decisions": %s%s})\nsys.stdin.readline()\n' % (
        decisions, more)


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    jobs = folder / "jobs.csv"
    lines = [f"j{i},{submit},{work},{tasks},1000" for i, (submit, work, tasks) in enumerate(job_rows(60))]
    jobs.write_text("\n".join(["job_id,submit_s,work_s,tasks,gpu_milli_per_task"] + lines) + "\n")

    # gpusched decides, an external host has the jobs.
    for number, policy in enumerate(["fifo", "sjf", "fifo+easy", "saf+conservative", "srtf", "las", "gandiva{slice_s=5}"]):
        expect(f"host with {policy}", hosted(jobs, policy), native(jobs, policy, folder / f"host{number}"))

    # gpusched simulates, an external scheduler decides.
    program = f"program:{sys.executable} {examples / 'fifo_scheduler.py'}"
    expect("external scheduler", native(jobs, program, folder / "program"), native(jobs, "fifo", folder / "fifo"))

    failing = folder / "failures.json"
    failing.write_text('{"node": {"per_1000_days": 200000, "detect_s": 1, "repair_h": 0.01}}')
    more = ["--failures", failing, "--seed", "5"]
    found = native(jobs, program, folder / "failing-program", *more)
    expect("external scheduler under failures", found, native(jobs, "fifo", folder / "failing-fifo", *more))
    if found == native(jobs, "fifo", folder / "sound-fifo"):
        problems.append("no failure changed anything")

    # Nodes that are out when the run begins, in both directions: the scheduler starts nothing there.
    out = folder / "out.csv"
    out.write_text("time_s,node,event\n-5,0,down\n130,0,up\n")
    away = folder / "away.csv"
    away.write_text("time_s,node,event\n-5,1,down\n")
    small_jobs = folder / "small_jobs.csv"
    small_jobs.write_text("\n".join(["job_id,submit_s,work_s,tasks,gpu_milli_per_task"] + [
        f"j{i},{submit},{work},{1 + tasks % 4},1000" for i, (submit, work, tasks) in enumerate(job_rows(60))]) + "\n")
    for number, file in enumerate([out, away]):
        expect(f"external scheduler with {file.name}",
               native(small_jobs, program, folder / f"out-program{number}", "--failures", file),
               native(small_jobs, "fifo", folder / f"out-fifo{number}", "--failures", file))
    for number, policy in enumerate(["fifo", "saf+conservative", "srtf"]):
        expect(f"host without a node, {policy}", hosted(small_jobs, policy, "1"),
               native(small_jobs, policy, folder / f"out-host{number}", "--failures", away))

    # A drained node, whose job runs on, and limits, which hold jobs back and refuse starts.
    drain = folder / "drain.csv"
    drain.write_text("time_s,node,event\n3,0,drain\n8,0,up\n")
    for number, (cluster, rows, more) in enumerate([
            ("2x2", "a,0,5,1 b,4,30,2 c,9,10,3", ["--failures", drain]),
            ("1x2", "h,0,10,1,u a,1,10,2,u c,2,10,2,w", []),
            ("1x2", "a,0,10,1,u b,0,5,1,u c,20,10,2,w", []),
            ("2x2", "z,0,10,1,v a,1,10,2,u b,1,5,2,u c,2,5,1,w", []),
            ("1x4", "a,0,10,2,u z,0,5,3,v b,0,5,1,u", [])]):
        few = folder / "few.csv"
        few.write_text("\n".join(["job_id,submit_s,work_s,tasks,user,gpu_milli_per_task"] + [
            ",".join((row + ",u").split(",")[:5]) + ",1000" for row in rows.split()]) + "\n")
        more = more or ["--limits", "user{jobs=1}"]
        expect(f"external scheduler with {rows}", native(few, program, folder / f"few-program{number}", "--cluster", cluster, *more),
               native(few, "fifo", folder / f"few-fifo{number}", "--cluster", cluster, *more))

    # What a scheduler asks for when every job is done counts for nothing; nor may it ask for every microsecond.
    waker = folder / "waker.py"
    waker.write_text("import json, sys\ndef send(m): print(json.dumps(m), flush=True)\nsys.stdin.readline()\n"
                     "send({'type': 'hello', 'protocol': 'gpusched', 'version': 1})\n"
                     "for line in sys.stdin:\n  m = json.loads(line)\n  if m['type'] == 'end': break\n"
                     "  send({'type': 'decisions', 'time_us': m['time_us'], 'call_us': m['time_us'] + int(sys.argv[1]), 'decisions':"
                     " [{'decision': 'start', 'id': e['job']['id']} for e in m['events'] if e['event'] == 'job_submitted' and sys.argv[2:]]})\n")
    done = run(gpusched, "replay", jobs, "--cluster", "20x8", "--policy", f"program:{sys.executable} {waker} 1000000 starts")
    expect("a scheduler that always asks to be called", (done.returncode, done.stderr), (0, ""))
    done = run(gpusched, "replay", jobs, "--cluster", "20x8", "--policy", f"program:{sys.executable} {waker} 1")
    expect("a scheduler that only asks to be called", (done.returncode, "to be called, while nothing ran or happened" in done.stderr),
           (1, True))

    # What the greeting says of them: nodes that are out, spares, and nothing where all are in service, so that
    # schedulers that know nothing of it go on.
    recorder = folder / "recorder.py"
    recorder.write_text("import json, sys\nhello = json.loads(sys.stdin.readline())\nout = open(sys.argv[1], 'w')\n"
                        "def send(m): print(json.dumps(m), flush=True)\n"
                        "send({'type': 'hello', 'protocol': 'gpusched', 'version': 1})\nprint(json.dumps(hello.get('nodes_out')), file=out)\n"
                        "for line in sys.stdin:\n  m = json.loads(line)\n  if m['type'] == 'end': break\n"
                        "  print(m['time_us'], *(e['event'] + str(e.get('node', '')) for e in m['events']), file=out, flush=True)\n"
                        "  send({'type': 'decisions', 'time_us': m['time_us'], 'decisions': [{'decision': 'start', 'id': e['job']['id']}"
                        " for e in m['events'] if e['event'] == 'job_submitted']})\n")
    late = folder / "late.csv"
    late.write_text("job_id,submit_s,work_s,tasks,gpu_milli_per_task\na,100,10,1,1000\nb,200,10,1,1000\n")
    log, spares, at_start = folder / "log.csv", folder / "spares.json", folder / "at_start.csv"
    log.write_text("time_s,node,event\n0,0,down\n200,0,up\n")
    spares.write_text('{"spares": 2, "trace": "log.csv"}')
    at_start.write_text("time_s,node,event\n100,1,down\n150,1,up\n150,2,down\n")
    for more, said in [([], ["null", "100000000 job_submitted", "110000000 job_finished", "200000000 job_submitted",
                             "210000000 job_finished"]),
                       (["--failures", log], ["[0]", "100000000 job_submitted", "110000000 job_finished",
                                              "200000000 node_up0 job_submitted", "210000000 job_finished"]),
                       (["--failures", spares], ["[0, 3]", "100000000 job_submitted", "110000000 job_finished",
                                                 "200000000 job_submitted", "210000000 job_finished"]),
                       (["--failures", at_start], ["[1]", "100000000 job_submitted", "110000000 job_finished",
                                                   "150000000 node_up1 node_down2", "200000000 job_submitted",
                                                   "210000000 job_finished"])]:
        written = folder / "heard.txt"
        done = run(gpusched, "replay", late, "--cluster", "4x1", "--policy",
                   f"program:{sys.executable} {recorder} {written}", *more)
        expect(f"exit code with {more[1:]}", (done.returncode, done.stderr), (0, ""))
        expect(f"what a scheduler hears with {more[1:]}", written.read_text().splitlines(), said)

    # What is wrong with the policy is no matter of the host's lines.
    for policy, reason in [("las{quantum_gpu_s=-1}", "policy las, parameter quantum_gpu_s"), ("fifo{x=1}", "no parameter 'x'"),
                           ("fifo+easy{estimate=foo}", "backfill easy, parameter estimate")]:
        done = run(gpusched, "serve", "--policy", policy)
        expect(f"serve with {policy}", (done.returncode, done.stderr.startswith("gpusched: --policy: "), reason in done.stderr),
               (2, True, True))

    # Jobs that the policy gives up, in both directions: one that runs, and one that waits.
    canceller = folder / "canceller.py"
    canceller.write_text("import json, sys\nhello = json.loads(sys.stdin.readline())\ndef send(m): print(json.dumps(m), flush=True)\n"
                         "send({'type': 'hello', 'protocol': 'gpusched', 'version': 1})\n"
                         "said = iter([[('start', 'a')], [], [('cancel', 'a'), ('cancel', 'b'), ('start', 'c')], []])\n"
                         "for line in sys.stdin:\n  m = json.loads(line)\n  if m['type'] == 'end': break\n"
                         "  send({'type': 'decisions', 'time_us': m['time_us'], 'decisions': [{'decision': d, 'id': i} for d, i in next(said)]})\n")
    three = folder / "three.csv"
    three.write_text("job_id,submit_s,work_s,tasks,gpu_milli_per_task\na,0,100,4,1000\nb,10,100,4,1000\nc,20,30,4,1000\n")
    done = run(gpusched, "replay", three, "--cluster", "1x4", "--policy", f"program:{sys.executable} {canceller}", "--out", folder / "three")
    expect("exit code of a policy that cancels", (done.returncode, done.stderr), (0, ""))
    expect("what is told of it", [line for line in done.stdout.splitlines() if "policy cancels" in line],
           [f"jobs that the policy cancels, which no average counts: program:{sys.executable} {canceller} 2"])
    rows = [line.split(",") for line in next((folder / "three").rglob("jobs.csv")).read_text().splitlines()]
    columns = [rows[0].index(key) for key in ("job_id", "first_start_s", "end_s", "cancelled", "averaged")]
    expect("jobs that a policy cancels", [[row[at] for at in columns] for row in rows[1:]],
           [["a", "0", "20", "true", "false"], ["b", "", "20", "true", "false"], ["c", "20", "50", "false", "true"]])

    # What docs/process-boundary.md shows.
    shown = [line for line in (source / "docs/process-boundary.md").read_text().splitlines() if line.startswith('{"')]
    said, answers = shown[:len(shown) // 2], shown[len(shown) // 2:]
    done = run(gpusched, "serve", "--policy", "fifo", text="".join(line + "\n" for line in said))
    expect("the example of docs/process-boundary.md", done.stdout.splitlines(), answers)

    # Hosts that are wrong.
    at = "standard input:"
    expect_refused([], 'standard input ended before the message "end"')
    expect_refused([HELLO], 'standard input ended before the message "end"')
    expect_refused([HELLO.replace("1,", "2,")],
                   f"{at}1: /version: expected 1, the version of the protocol that this program has")
    expect_refused([HELLO.replace('"cluster":', '"clusters":')], f"{at}1: /clusters: unknown key (did you mean 'cluster'?)")
    expect_refused(['{"type":"events"}'], f"{at}1: /protocol: is missing")
    expect_refused([HELLO, "[]"], f"{at}2: expected an object")
    expect_refused([HELLO, '{"type":"stop"}'], f"{at}2: /type: expected events|end")
    expect_refused([HELLO, events(0, JOB.replace("1000", "1500"))],
                   f"{at}2: /events/0/job/gpu_milli_per_task: expected 0 to 1000 or a multiple of 1000")
    expect_refused([HELLO, events(0, '{"event":"job_finished","id":"b"}')], f"{at}2: /events/0: no job 'b' is known")
    expect_refused([HELLO, events(0, '{"event":"node_down","node":0}')],
                   f"{at}2: /events/0: node 0 changes, but the scheduler was made for nodes that do not")
    failing_hello = HELLO.replace('"version"', '"nodes_may_fail":true,"version"')
    for nodes, what in [("[7]", "/nodes_out/0: no node 7; there are 1"), ("[-1]", "/nodes_out/0: no node -1"), ("[0,0]", "/nodes_out/1: node 0 is out of service already"),
                        ("0", '/nodes_out: expected a list of numbers, not 0')]:
        expect_refused([HELLO.replace('"version"', f'"nodes_out":{nodes},"version"')], f"{at}1: {what}")
    expect_refused([failing_hello, events(0, '{"event":"node_down","node":9}')], f"{at}2: /events/0: no node 9; there are 1")
    said = [failing_hello, events(0, JOB), events(3, '{"event":"node_down","node":0}'), events(4, '{"event":"node_up","node":0}'),
            '{"type":"end"}']
    done = run(gpusched, "serve", "--policy", "fifo", text="".join(line + "\n" for line in said))
    expect("a node that fails", [[d["decision"] for d in json.loads(line)["decisions"]] for line in done.stdout.splitlines()[1:-1]],
           [["start"], [], ["start"]])
    expect_refused([HELLO, events(5, JOB), events(4)], f"{at}3: time goes back from 5 us to 4 us")
    expect_refused([HELLO, events(0, JOB.replace('"a"', '"a","tasks":3'))],
                   f"{at}2: job 'a' does not fit the empty cluster")
    expect_refused([HELLO, events(0, JOB.replace(',"duration_us":5', ""))],
                   f"{at}2: policy sjf reads run times, and job 'a' comes without its duration", "sjf")
    done = run(gpusched, "serve", "--policy", "fif")
    expect("unknown policy", (done.returncode, done.stdout), (2, ""))

    # Ids are the host's.
    names = [" a ", "a", "a\nb"]
    said = [HELLO.replace("1x2", "1x4"), events(0, *(JOB.replace('"a"', json.dumps(name)) for name in names)),
            events(1, *(json.dumps({"event": "job_finished", "id": name}) for name in names)), '{"type":"end"}']
    done = run(gpusched, "serve", "--policy", "fifo", text="".join(line + "\n" for line in said))
    expect("ids as the host gave them", sorted(d["id"] for d in json.loads(done.stdout.splitlines()[1])["decisions"]), sorted(names))
    expect("exit code with such ids", (done.returncode, done.stderr), (0, ""))

    # A host that leaves without reading.
    host = subprocess.Popen([gpusched, "serve", "--policy", "fifo"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)
    host.stdout.close()
    host.stdin.write(HELLO + "\n")
    host.stdin.close()
    expect("a host that left", (host.stderr.read(), host.wait()),
           ("gpusched: the host closed the pipe that decisions go to\n", 1))

    # Schedulers that are wrong.
    small = folder / "small.csv"
    small.write_text("job_id,submit_s,work_s,tasks,gpu_milli_per_task\na,0,5,9,1000\nb,0,5,1,1000\n".replace(",9,", ",8,"))
    expect_failure(small, folder, "sys.exit(3)\n", "the program ended with exit code 3")
    expect_failure(small, folder, "send('{')\nsys.stdin.readline()\n", "its output:1: ")
    expect_failure(small, folder, 'send({"type": "hello", "protocol": "gpusched", "version": 2})\nsys.stdin.readline()\n',
                   "its output:1: /version: expected 1")
    expect_failure(small, folder, answer('[{"decision": "start", "id": "c"}]'), "start of job 'c': no such job was submitted")
    expect_failure(small, folder, answer('[{"decision": "preempt", "id": "a"}]'), "preempt of job 'a': it does not run")
    expect_failure(small, folder, answer('[{"decision": "cancel", "id": "a"}, {"decision": "start", "id": "a"}]'),
                   "start of job 'a': it does not wait")
    expect_failure(small, folder, answer('[{"decision": "stop", "id": "a"}]'), "expected start|preempt|cancel")
    expect_failure(small, folder, answer('[{"decision": "cancel", "id": "a", "nodes": [{"node": 0, "tasks": 1}]}]'),
                   "a job that is to stop has no nodes")
    expect_failure(small, folder, answer('[{"decision": "start", "id": "a"}, {"decision": "start", "id": "b"}]'),
                   "start of job 'b': it does not fit")
    expect_failure(small, folder, answer('[{"decision": "start", "id": "b", "nodes": [{"node": 7, "tasks": 1}]}]'),
                   "start of job 'b': no node 7")
    expect_failure(small, folder, answer("[]", ', "call_us": 0'), "/call_us: expected an instant after 0")
    expect_failure(small, folder, answer("[]", ', "later": 0'), "/later: unknown key")
    expect_failure(small, folder, "import time\ntime.sleep(600)\n", "the program did not answer within 0.2 s", "{time_limit_s=0.2}")
    done = run(gpusched, "replay", small, "--cluster", "2x4", "--policy", "program:/no/such/program")
    expect("no such program", done.returncode, 1)

print("\n".join(problems) if problems else "both directions give the native replay, and misuse is one line")
sys.exit(1 if problems else 0)
