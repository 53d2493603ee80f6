"""The rpms, as far as a host without rpm can tell: what is in them, and their scripts on a booted system."""

import re
import subprocess

from host import CREDENTIALS, OPENFGA, RUNTIME, SETTINGS, UNITS, Host, check, eventually

SCRIPTS = {"post": "POSTIN", "preun": "PREUN", "postun": "POSTUN"}


def scripts(package):
    """The package's scripts, as rpm would run them."""
    found = {}
    for name, tag in SCRIPTS.items():
        command = ["rpm", "--query", "--package", "--nosignature", "--queryformat", f"%{{{tag}}}", package]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found[name] = "" if text == "(none)" else text
    return found


def rpms(world):
    """Installed by hand, used by systemd, upgraded and taken away on a second host."""
    host = Host(world.lab, "foreign")
    try:
        host.boot()
        packages = {unit: world.package(f"{unit}-[0-9]*.x86_64.rpm") for unit in UNITS}
        for unit, package in packages.items():
            unpack = 'rpm2cpio "$0" | cpio --extract --make-directories --quiet --unconditional'
            subprocess.run(["sh", "-ec", unpack, package], cwd=host.root, check=True)
        ran = {unit: scripts(package) for unit, package in packages.items()}
        run_scripts(host, ran, "post", 1)
        host.check_modes({
            "/usr/bin/agent-runtime": "0755 root:root",
            "/etc/agent-runtime": f"0750 root:{RUNTIME}",
            SETTINGS: f"0640 root:{RUNTIME}",
            CREDENTIALS: "0700 root:root",
            "/etc/agent-runtime-openfga/openfga.env": f"0640 root:{OPENFGA}",
        })
        for unit in UNITS:
            states = (host.about(unit, "UnitFileState"), host.about(unit, "ActiveState"))
            check(states == ("disabled", "inactive"), f"{unit} was installed {' and '.join(states)}")
        check(re.match(r"agent-runtime \d", host.run("agent-runtime", "--version").stdout), "no version")
        # It waits for a database that is not there: started, not ready.
        host.sh(f"echo SVC_DEV=true >>{SETTINGS}; systemctl enable {RUNTIME}; systemctl start --no-block {RUNTIME}")
        process = started(host)
        run_scripts(host, ran, "post", 2)
        run_scripts(host, ran, "preun", 1)
        run_scripts(host, ran, "postun", 1)
        eventually("an upgrade restarts what ran", lambda: started(host) != process)
        # One that is stopped before its program runs ends as failed: systemd was still at its sandbox.
        eventually("the door answers without a database", lambda: host.answers("/healthz"))
        run_scripts(host, ran, "preun", 0)
        run_scripts(host, ran, "postun", 0)
        states = (host.about(RUNTIME, "UnitFileState"), host.about(RUNTIME, "ActiveState"))
        check(states == ("disabled", "inactive"), f"a removal leaves it {' and '.join(states)}")
        return [f"{package.name}: {package.stat().st_size / 1e6:.1f} MB" for package in packages.values()]
    finally:
        host.close()


def run_scripts(host, ran, name, argument):
    """Runs one script of each package; `argument` is how many of the package are there after it."""
    for unit in UNITS:
        if ran[unit][name]:
            done = host.run("sh", "-e", "-s", str(argument), text=ran[unit][name])
            # The scripts themselves go on whatever happens, as they should.
            wrong = re.search("error|fail|denied|no such|not found", done.stderr, re.I)
            check(not wrong, f"{name} {argument} of {unit} says: {done.stderr}")


def started(host):
    """The main process of the runtime, once there is one."""
    return eventually("the runtime is started", lambda: int(host.about(RUNTIME, "MainPID")))


STEPS = [("the rpms on a second host", rpms)]
