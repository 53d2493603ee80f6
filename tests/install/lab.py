"""A machine to install on: a copy of a minimal Debian, booted with systemd as its first process.

It lives in namespaces of its own, without a network (see trap.py), on a layer in memory over the image
that `tests/setup/lab` made; so nothing of it is on the host, and whatever ends this process, by force
too, ends the machine and takes the layer with it. It is rebooted and powered off as a machine is: by a
command inside.

This process has to be in a mount and a network namespace of its own; `tests/install/run` and
`tests/install/lab` see to that. Not here: virtual hardware, another kernel, a network."""

import contextlib
import os
import pathlib
import pty
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from trap import NAME_SERVER, Trap

HERE = pathlib.Path(__file__).resolve().parent
BOOT_S = 60
COMMAND_S = 120
LAYER_BYTES = 4 << 30
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "DEBIAN_FRONTEND": "noninteractive",
    "container": "agent-runtime-lab",
}


class Failed(Exception):
    """What did not hold, in a sentence."""


def parts():
    """Where `make setup` puts what the tests need."""
    where = [HERE.parent / "setup" / "where"]
    return pathlib.Path(subprocess.run(where, capture_output=True, text=True, check=True).stdout.strip())


def mount(*arguments):
    subprocess.run(["mount", *map(str, arguments)], check=True, stdin=subprocess.DEVNULL)


class Lab:
    """The place that machines are made in: their layers in memory, their cgroups, and the trap."""

    def __init__(self):
        self.parts = parts() / "lab"
        self.image, self.debs = self.parts / "root", self.parts / "debs"
        if not self.image.is_dir():
            raise Failed(f"{self.image} is missing: run tests/setup/lab")
        if [name for _, name in socket.if_nameindex()] != ["lo"]:
            raise Failed("this is not a network namespace of its own: use tests/install/lab")
        self.trap = Trap()
        # Seen by this process and its children alone, and gone with them.
        self.home = self.parts / "machine"
        mount("-t", "tmpfs", "-o", f"mode=0755,size={LAYER_BYTES}", "lab", self.home)
        self.cgroups = self.home / "cgroup"
        self.cgroups.mkdir()
        mount("-t", "cgroup2", "cgroup2", self.cgroups)
        for left in self.cgroups.glob("agent-runtime-lab.*"):
            if not pathlib.Path("/proc", left.name.split(".")[1]).exists():
                remove_cgroup(left)

    def copy(self, name):
        """A root directory of its own over the image, which stays as it is."""
        layer = self.home / name
        for part in ("upper", "work", "root"):
            (layer / part).mkdir(parents=True)
        (layer / "upper").chmod(0o755)
        root = layer / "root"
        options = f"lowerdir={self.image},upperdir={layer / 'upper'},workdir={layer / 'work'}"
        mount("-t", "overlay", "-o", options, name, root)
        (root / "etc/hostname").write_text(f"{name}\n")
        (root / "etc/hosts").write_text(f"127.0.0.1 localhost\n::1 localhost\n127.0.1.1 {name}\n")
        (root / "etc/resolv.conf").write_text(f"nameserver {NAME_SERVER}\n")
        return root


def remove_cgroup(path):
    """The directory and those in it, deepest first. Those of processes that are just ending stay."""
    for directory, _, _ in os.walk(path, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(directory)


class Machine:
    """One copy of the image, which is booted, used, rebooted and powered off."""

    def __init__(self, lab, name):
        self.lab, self.name = lab, name
        self.root = lab.copy(name)
        self.console = bytearray()
        self.cgroup = lab.cgroups / f"agent-runtime-lab.{os.getpid()}.{name}"
        self._process = self._init = None
        # Abstract, so that it is found by whoever is in this network namespace.
        self._told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._told.bind(f"\0{name}")
        self._ready = threading.Event()
        self._thread("notify", self._hear)

    def boot(self):
        """Starts systemd, and returns when it has started what it starts; the seconds it took."""
        remove_cgroup(self.cgroup)
        self.cgroup.mkdir(exist_ok=True)
        self._ready.clear()
        # Of its own for each boot: the last act of a system is to hang its console up.
        terminal, console = pty.openpty()
        self._thread("console", self._watch, terminal)
        began = time.monotonic()
        # The cgroup namespace begins where the process stands that makes it. Each of the chain ends
        # with the one before it.
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "sh", "-c", 'echo $$ >"$0/cgroup.procs"; exec "$@"']
            + [self.cgroup, "unshare", "--pid", "--mount", "--uts", "--ipc", "--cgroup", "--fork"]
            + ["--kill-child", HERE / "enter", self.root, os.ttyname(console), "/sbin/init"],
            stdin=subprocess.DEVNULL, stdout=console, stderr=console,
            env={**ENVIRONMENT, "NOTIFY_SOCKET": f"@{self.name}"},
            start_new_session=True,
        )
        os.close(console)
        self._await_ready(began + BOOT_S)
        self._init = self._first_process()
        state = self.run("systemctl", "is-system-running", expect=None).stdout.strip()
        if state != "running":
            failed = self.run("systemctl", "--failed", "--no-legend", "--plain", expect=None).stdout
            raise Failed(f"{self.name} is {state} after its boot: {failed.strip()}")
        return time.monotonic() - began

    def run(self, *command, expect=0, text=None, timeout=COMMAND_S, user=None, directory="/"):
        """Runs a command inside, and checks its exit code unless `expect` is None. `text` is its
        standard input, else empty."""
        ended = subprocess.run(
            self.inside(user, directory) + [str(part) for part in command],
            env=ENVIRONMENT, input=text or "", capture_output=True, text=True, timeout=timeout,
        )
        if expect is not None and ended.returncode != expect:
            told = (ended.stdout + ended.stderr).strip()[-3000:]
            shown = " ".join(map(str, command))
            raise Failed(f"`{shown}` ended with {ended.returncode} in place of {expect}: {told}")
        return ended

    def inside(self, user=None, directory="/"):
        """What goes before a command to run it inside."""
        enter = ["nsenter", f"--target={self._init}", "--mount", "--uts", "--ipc", "--pid"]
        enter += ["--cgroup", "--root", "--wd", "--"]
        enter += ["env", f"--chdir={directory}"]
        return enter + (["runuser", "-u", user, "--"] if user else [])

    def sh(self, script, **options):
        """Runs a shell's commands inside."""
        return self.run("bash", "-euc", script, **options)

    def put(self, source, target):
        """Copies a file of the host's into the machine; `target` is a path inside."""
        shutil.copy(source, self.root / target.lstrip("/"))

    def reboot(self):
        """As an operator reboots; the seconds until it is up again."""
        began = time.monotonic()
        self.run("systemctl", "--no-block", "reboot")
        self._await_end()
        self.boot()
        return time.monotonic() - began

    def power_off(self):
        self.run("systemctl", "--no-block", "poweroff")
        self._await_end()

    def close(self):
        """As when the plug is pulled. Ends everything inside, whatever state it is in."""
        if self._process is not None:
            # It ends when all others in its namespace have ended, and the one that waits for it after it.
            with contextlib.suppress(OSError, IndexError):
                os.kill(self._first_process(), signal.SIGKILL)
            self._process.wait()
            self._process = self._init = None
        remove_cgroup(self.cgroup)

    def tail(self):
        """The end of what the console showed."""
        return "\n".join(self.console.decode(errors="replace").splitlines()[-30:])

    def _await_ready(self, deadline):
        while not self._ready.wait(0.5):
            if self._process.poll() is not None:
                raise Failed(f"{self.name} ended while it booted:\n{self.tail()}")
            if time.monotonic() > deadline:
                raise Failed(f"{self.name} did not boot within {BOOT_S} s:\n{self.tail()}")

    def _first_process(self):
        pid = self._process.pid
        return int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])

    def _await_end(self):
        try:
            self._process.wait(timeout=BOOT_S)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.name} did not go down within {BOOT_S} s:\n{self.tail()}") from None
        self._process = self._init = None

    def _thread(self, name, target, *arguments):
        threading.Thread(target=target, args=arguments, name=f"{self.name}-{name}", daemon=True).start()

    def _hear(self):
        """Takes what the first process says of its state (sd_notify): it waits until it is taken."""
        while True:
            if b"READY=1" in self._told.recv(65_536).splitlines():
                self._ready.set()

    def _watch(self, terminal):
        with contextlib.suppress(OSError):
            while True:
                self.console += os.read(terminal, 4096)
        os.close(terminal)


def main(arguments):
    """Boots a machine, runs one command in it (a shell, if none is named), and says what tried to
    leave. For people; the tests use the classes."""
    lab = Lab()
    machine = Machine(lab, "lab")
    try:
        print(f"booted in {machine.boot():.1f} s", file=sys.stderr)
        ended = subprocess.run(machine.inside() + (arguments or ["bash", "-l"]), env=ENVIRONMENT)
    finally:
        machine.close()
    for told in lab.trap.take():
        print(f"tried to leave the host: {told}", file=sys.stderr)
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
