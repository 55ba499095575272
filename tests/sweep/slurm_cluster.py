# SPDX-License-Identifier: Apache-2.0
"""SlurmCluster: slurmctld, slurmd and munged on this machine, in a folder of their own, for as long as a `with` lasts."""
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import time

DAEMONS = ["munged", "slurmctld", "slurmd"]
COMMANDS = ["sbatch", "squeue", "scontrol", "sinfo", "scancel"]
PATIENCE_S = 180  # until a daemon answers, on a machine that is loaded

# No cgroups, no accounting database, no e-mail: what a container without systemd can run.
CONFIGURATION = """\
ClusterName=gpusched_test
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
SlurmctldPort={control_port}
SlurmdPort={node_port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MailProg=/bin/true
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=0
SlurmctldTimeout=600
SlurmdTimeout=600
MessageTimeout=60
KillWait=1
MinJobAge={min_job_age}
MaxArraySize=100
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=tests Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


class CannotStart(Exception):
    """In words why there is no cluster."""


def missing_programs():
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return [name for name in DAEMONS + COMMANDS if shutil.which(name, path=path) is None]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class SlurmCluster:
    """One node of `cpus` processors. `environment` is what programs need to find it."""

    def __init__(self, folder, cpus=2, min_job_age=300):
        self.folder = pathlib.Path(folder)
        self.host = socket.gethostname().split(".")[0]
        self.processes = {}
        self.environment = dict(os.environ, SLURM_CONF=str(self.folder / "slurm.conf"),
                                PATH=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        self.folder.chmod(0o755)  # munged wants to own what leads to its socket
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(
            host=self.host, user=pwd.getpwuid(os.getuid()).pw_name, folder=self.folder, control_port=free_port(),
            node_port=free_port(), cpus=cpus, min_job_age=min_job_age))
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)

    def __enter__(self):
        try:
            folder = self.folder
            self.start("munged", "--foreground", "--force", f"--socket={folder}/munge.socket",
                       f"--key-file={folder}/munge.key", f"--pid-file={folder}/munged.pid",
                       f"--log-file={folder}/munged.log", f"--seed-file={folder}/munged.seed")
            self.wait_for("munged", lambda: (folder / "munge.socket").exists())
            self.start("slurmctld", "-D", "-c", "-f", str(folder / "slurm.conf"))
            self.wait_for("slurmctld", lambda: self.run("scontrol", "ping").returncode == 0)
            self.start("slurmd", "-D", "-f", str(folder / "slurm.conf"), "-N", self.host)
            self.wait_for("slurmd", lambda: self.run("sinfo", "-h", "-o", "%T").stdout.strip() == "idle")
            return self
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_):
        self.stop()

    def start(self, name, *arguments):
        with (self.folder / f"{name}.out").open("wb") as log:
            try:
                self.processes[name] = subprocess.Popen([name, *arguments], env=self.environment, stdout=log, stderr=log,
                                                        stdin=subprocess.DEVNULL, start_new_session=True)
            except OSError as error:
                raise CannotStart(f"{name}: {error.strerror}") from None

    def wait_for(self, name, ready):
        deadline = time.monotonic() + PATIENCE_S
        while not ready():
            if self.processes[name].poll() is not None:
                raise CannotStart(f"{name} ended with {self.processes[name].returncode}: {self.last_words(name)}")
            if time.monotonic() > deadline:
                raise CannotStart(f"{name} did not answer within {PATIENCE_S} s: {self.last_words(name)}")
            time.sleep(0.05)

    def last_words(self, name):
        lines = [line for line in (self.folder / f"{name}.out").read_text(errors="replace").splitlines() if line]
        return lines[-1] if lines else "it said nothing"

    def run(self, *command):
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)

    def stop(self):
        """The jobs first, so that no slurmstepd is left."""
        if "slurmd" in self.processes:
            self.run("scancel", "--full", f"--user={pwd.getpwuid(os.getuid()).pw_name}")
            deadline = time.monotonic() + PATIENCE_S
            while self.run("squeue", "-h").stdout.strip() and time.monotonic() < deadline:
                time.sleep(0.05)
        for process in reversed(self.processes.values()):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
