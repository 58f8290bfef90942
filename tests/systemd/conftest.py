"""A machine for the units: this system's /usr in systemd-nspawn, all else fresh, in memory."""
import ctypes
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import pytest

from service import BUILD, Client, Process, general_programs, poll, sanitized

CLONE_NEWNET, PR_SET_PDEATHSIG = 0x40000000, 1
BOOT = ["systemd-nspawn", "--quiet", "--directory=/", "--volatile=yes", "--boot",
        "--private-network", "--register=no", "--console=pipe",
        "--machine=convolved-test", "--bind-ro=/etc/OpenCL", "--bind-ro=/etc/alternatives",
        # System calls by which the workers confine themselves; systemd-nspawn's own filter does not
        # know them.
        "--system-call-filter=landlock_create_ruleset landlock_add_rule landlock_restrict_self"]
if not os.path.exists("/run/systemd/system"):
    BOOT.append("--keep-unit")  # there is no systemd here to ask for a scope
LOCK = pathlib.Path(tempfile.gettempdir()) / "convolved-machine.lock"


def end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def enter_network(pid):
    """This thread, and those that it starts, are in the network of that process."""
    with open(f"/proc/{pid}/ns/net", "rb") as space:
        if ctypes.CDLL(None, use_errno=True).setns(space.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")


class Machine(Client):
    """The booted machine. Its service is asked as any client would, over TCP."""

    def __init__(self, directory):
        super().__init__("127.0.0.1", 8700)
        self.installed = directory / "installed"
        self.console = directory / "console"
        self.process = self.leader = None

    def install(self):
        subprocess.run(["make", "-s", "-C", BUILD, "install", f"DESTDIR={self.installed}"],
                       check=True, stdout=subprocess.DEVNULL)
        prefix, = (program.parents[1] for program in self.installed.rglob("sbin/convolved"))
        self.inside = pathlib.Path("/") / prefix.relative_to(self.installed)
        self.configuration, = self.installed.rglob("etc/convolved/convolved.conf")
        return f"--bind-ro={prefix}:{self.inside}"

    def boot(self):
        """Returns why it does not boot, or None."""
        bind = self.install()
        with self.console.open("wb") as console:
            self.process = subprocess.Popen([*BOOT, bind, "systemd.unit=basic.target"],
                                            stdin=subprocess.DEVNULL, stdout=console,
                                            stderr=console, preexec_fn=end_with_parent)
        try:
            poll(self.booted, 60, "the boot", 0.1)
        except AssertionError:
            return self.console.read_text(errors="replace")[-2000:] or "it does not boot"
        enter_network(self.leader)
        return None

    def booted(self):
        if self.process.poll() is not None:
            raise AssertionError("it has ended")
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task")
        pids = "".join((task / "children").read_text() for task in tasks.iterdir()).split()
        self.leader = int(pids[0]) if pids else None
        return self.leader and self.run("systemctl", "is-active", "basic.target",
                                        check=False) == "active"

    def path(self, name, pid=None):
        """Returns a path of the machine, or of a process in it, seen from here."""
        return pathlib.Path(f"/proc/{pid or self.leader}/root{name}")

    def enter(self, *command):
        return subprocess.run(["nsenter", "-t", str(self.leader), "-a", *command],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def run(self, *command, check=True):
        result = self.enter(*command)
        assert not check or result.returncode == 0, (command, result, self.journal_text())
        return result.stdout.strip()

    def systemctl(self, *arguments, check=True):
        return self.run("systemctl", "--no-pager", *arguments, check=check)

    def systemctl_fails(self, *arguments):
        """Tells whether this command exits with an error."""
        return self.enter("systemctl", *arguments).returncode != 0

    def show(self, name, unit="convolved.service"):
        return self.systemctl("show", "--value", "-p", name, unit)

    @property
    def main_pid(self):
        return int(self.show("MainPID"))

    def processes(self, beginning="convolved"):
        """Returns {name (15 bytes at most): [process]} of those whose names begin so."""
        found = {}
        group = os.readlink(f"/proc/{self.leader}/ns/pid")
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(entry / "ns/pid") == group:
                    name = (entry / "comm").read_text().strip()
                    if name.startswith(beginning):
                        found.setdefault(name, []).append(Process(int(entry.name)))
            except OSError:
                continue  # it has ended
        return found

    def journal(self, *matches):
        """Returns entries as dictionaries; matches as journalctl takes them."""
        text = self.run("journalctl", "--no-pager", "-o", "json", *matches)
        return [json.loads(line) for line in text.splitlines()]

    def messages(self, since=0):
        """Returns the log of the service, and of systemd about the service, from a position() on."""
        entries = self.journal("_SYSTEMD_UNIT=convolved.service", "+", "UNIT=convolved.service")
        return [entry["MESSAGE"] for entry in entries][since:]

    def position(self):
        return len(self.messages())

    def says(self, text, since, seconds=60):
        """Waits until this is part of a message."""
        poll(lambda: any(text in message for message in self.messages(since)), seconds,
             f"{text!r} in the journal", 0.2)

    def journal_text(self):
        return "\n".join(self.messages())[-4000:]

    def end(self):
        if not self.process:
            return
        if self.leader and self.process.poll() is None:
            self.systemctl("poweroff", "--force", "--force", check=False)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@pytest.fixture(scope="session")
def machine(tmp_path_factory, cache):
    if os.geteuid():
        pytest.skip("only root can boot a machine to test the units in")
    if not shutil.which("systemd-nspawn"):
        pytest.skip("there is no systemd-nspawn (package systemd-container)")
    if sanitized():
        pytest.skip("programs built with a sanitizer do not run within the unit's limits")
    booted = Machine(tmp_path_factory.mktemp("machine"))
    # One at a time: without a systemd here, machines would share their control groups.
    with LOCK.open("w") as lock, open("/proc/self/ns/net", "rb") as home:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            if why := booted.boot():
                pytest.skip(f"systemd-nspawn cannot boot here: {why}")
            shutil.copytree(general_programs(cache), booted.path("/var/cache/convolved"))
            yield booted
        finally:
            booted.end()
            ctypes.CDLL(None).setns(home.fileno(), CLONE_NEWNET)
