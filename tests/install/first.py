"""From a fresh host to a service that comes up by itself: installed, set up, started, used, killed,
restarted, rebooted."""

import json
import re
import subprocess
import time

from host import CREDENTIALS, OPENFGA, RUNTIME, SETTINGS, UNITS, Tenant, check, eventually
from lab import Failed

MOST_EXPOSED = 1.5
MOST_PACKAGE_MB = 15
MOST_IDLE_MIB = 40
# sysexits.h: EX_CONFIG. A restart comes to the same, so systemd does not try.
WRONG_SETTINGS = "78"
SECRET = re.compile(r"svc_(bt|lk)_[A-Za-z0-9._-]{8,}|BEGIN [A-Z ]*PRIVATE KEY")
# What the operator edits by hand: the model is on this very host, and a dead server's runs are taken
# over sooner than after the default of 15 s.
EDITED = "\n# Edited by hand.\nSVC_HOST_ACCESS=local\nSVC_RUN_LEASE_MS=2000\n"


def the_lab(world):
    """The host boots, and what tries to leave it is seen: the checks of all other steps rest on that."""
    host = world.host
    took_s = host.boot()
    host.sh(
        "echo . >/dev/udp/203.0.113.5/9\n"
        "timeout 1 bash -c 'echo . >/dev/tcp/203.0.113.5/443' || true\n"
        "timeout 1 bash -c 'echo . >/dev/tcp/2001:db8:5::1/443' || true\n"
        "timeout 1 getent hosts telemetry.example.com || true\n"
        # The last one: what was sent before it, a second time too, is seen before it.
        "echo . >/dev/udp/203.0.113.5/10"
    )
    seen = []
    last = "udp to 203.0.113.5 port 10"
    wanted = {
        "udp to 203.0.113.5 port 9",
        "tcp to 203.0.113.5 port 443",
        "tcp to 2001:db8:5::1 port 443",
        "udp to 192.0.2.53 port 53, asking for telemetry.example.com",
        last,
    }

    def all_seen():
        seen.extend(world.lab.trap.take())
        return last in seen

    eventually("the last attempt to leave the host is seen", all_seen)
    check(set(seen) == wanted, f"what left the host on purpose was seen as {sorted(set(seen))}")
    return [f"systemd was up after {took_s:.1f} s", "five attempts to leave the host, made on purpose, were seen"]


def install(world):
    """From the archive alone, as its README says."""
    host = world.host
    archive = world.package("agent-runtime-*-debian12-amd64.tar.gz")
    host.put(archive, f"/root/{archive.name}")
    host.sh(f"cd /root && tar -xzf {archive.name} && mv {archive.name.removesuffix('.tar.gz')} archive")
    host.run("./archive/install", timeout=300, directory="/root")
    for unit in UNITS:
        states = (host.about(unit, "UnitFileState"), host.about(unit, "ActiveState"))
        check(states == ("disabled", "inactive"), f"{unit} was installed {' and '.join(states)}")
    host.check_modes({
        "/usr/bin/agent-runtime": "0755 root:root",
        "/etc/agent-runtime": f"0750 root:{RUNTIME}",
        SETTINGS: f"0640 root:{RUNTIME}",
        CREDENTIALS: "0700 root:root",
        "/etc/agent-runtime-openfga/openfga.env": f"0640 root:{OPENFGA}",
    })
    check(host.run("dpkg", "--audit").stdout == "", "dpkg finds packages half installed")
    check(host.run("dpkg", "--verify", *UNITS).stdout == "", "installed files are not those of the packages")
    program = host.run("agent-runtime", "--version").stdout.strip()
    deb = world.package("agent-runtime_*_amd64.deb")
    size_mb = deb.stat().st_size / 1e6
    check(size_mb < MOST_PACKAGE_MB, f"{deb.name} has {size_mb:.1f} MB")
    world.figures.append(f"package: {size_mb:.1f} MB (under {MOST_PACKAGE_MB})")
    return [f"{program}, with PostgreSQL and OpenFGA, disabled and stopped"]


def doctor_before(world):
    """Says what is missing, and what to do for each."""
    found = world.host.doctor(expect=1)
    return [f"{finding['code']}: {finding['sentence']}" for finding in found["fault"]]


def setup(world):
    """Makes what is missing and tells no secret; a second time it changes nothing."""
    host = world.host
    license = subprocess.run(
        [world.program, "license", "sign", "--key", world.issuer, "--licensee", "Install test"]
        + ["--days", "60"],
        capture_output=True, text=True, check=True,
    ).stdout
    host.write("/root/license.key", license)
    told = host.run("agent-runtime", "setup", "--license-file", "/root/license.key").stdout
    check(not SECRET.search(told), "setup printed a secret")
    again = host.run("agent-runtime", "setup", "--license-file", "/root/license.key").stdout
    check(not re.search(r"^(made|changed)\b", again, re.M), f"a second setup did more:\n{again}")
    keys = host.run("ls", CREDENTIALS).stdout.split()
    check("SVC_SEED_TOKEN" in keys, f"the credentials are {keys}")
    host.check_modes({f"{CREDENTIALS}/{key}": "0600 root:root" for key in keys})
    host.check_modes({SETTINGS: f"0640 root:{RUNTIME}", CREDENTIALS: "0700 root:root"})
    with open(host.root / SETTINGS.lstrip("/"), "a") as settings:
        settings.write(EDITED)
    return told.splitlines()


def start(world):
    """Enabled and started, and doctor finds no fault."""
    host = world.host
    host.run("systemctl", "enable", "--now", *UNITS)
    host.check_running()
    found = host.doctor(expect=0)
    check(not found["fault"], f"doctor finds faults: {found['fault']}")
    return [f"{len(found[level])} checks: {level}" for level in ("ok", "skipped", "warning") if found[level]]


def sandbox(world):
    """The score, taken from the system that runs it, and what the kernel says of the process."""
    told = []
    for unit in UNITS:
        score = world.host.exposure(unit)
        check(score <= MOST_EXPOSED, f"{unit} scores {score}")
        process = world.host.process(unit)
        for name, wanted in {"Seccomp": "2", "NoNewPrivs": "1", "CapBnd": "0" * 16}.items():
            check(process[name] == wanted, f"{unit}: {name} is {process[name]}")
        check(process["Uid"].split()[0] != "0", f"{unit} runs as root")
        told.append(f"{unit} {score}")
    world.figures.append(f"sandbox: {', '.join(told)} (at most {MOST_EXPOSED})")
    return told


def use(world):
    """One authorized run over the API; a person without rights is refused it."""
    host = world.host
    world.tenant = Tenant(host.text(f"{CREDENTIALS}/SVC_SEED_TOKEN").strip(), world.provider.url)
    run_once(world)
    decisions = world.tenant.decisions()
    check(decisions["allowed"] and decisions["denied"], f"the audit has the decisions {decisions}")
    return [f"one run; decisions in the audit: {decisions}"]


def run_once(world):
    world.tenant.await_end(world.tenant.start("Say something."), world.answer)


def logs(world):
    """The journal has the server's lines as JSON, with priorities."""
    told = world.host.run(
        "journalctl", "--output", "json", "--unit", RUNTIME, "_COMM=agent-runtime", "--no-pager"
    ).stdout
    lines = [json.loads(line) for line in told.splitlines()]
    check(lines, "the journal has nothing of the server")
    for line in lines:
        try:
            record = json.loads(line["MESSAGE"])
        except ValueError:
            raise Failed(f"a line of the journal is not JSON: {line['MESSAGE']}") from None
        wanted = {"error": "3", "warn": "4", "info": "6"}.get(record["level"].lower())
        check(line["PRIORITY"] == wanted, f"priority {line['PRIORITY']}: {line['MESSAGE']}")
        check(not SECRET.search(line["MESSAGE"]), "a secret is in the journal")
    return [f"{len(lines)} lines"]


def kill(world):
    """Killed in the middle of a run: systemd starts it again, and the run goes on to its end."""
    host, tenant = world.host, world.tenant
    run_id = tenant.start("Say something long.")
    tenant.await_text(run_id)
    process = host.about(RUNTIME, "MainPID")
    began = time.monotonic()
    host.sh(f"kill -9 {process}")
    eventually("systemd starts it again", lambda: host.about(RUNTIME, "MainPID") not in ("0", process))
    host.await_ready()
    took_s = time.monotonic() - began
    tenant.await_end(run_id, world.answer)
    restarts = host.about(RUNTIME, "NRestarts")
    check(restarts == "1", f"systemd restarted it {restarts} times")
    tenant.check_all()
    return [f"ready again after {took_s:.1f} s; the run that was under way answered in full"]


def restart(world):
    """In order: the process ends by itself, with success."""
    host = world.host
    began = time.monotonic()
    host.run("systemctl", "restart", RUNTIME)
    host.await_ready()
    took_s = time.monotonic() - began
    world.tenant.check_all()
    return [f"ready again after {took_s:.1f} s"]


def reboot(world):
    """It comes up by itself, and all is there."""
    host = world.host
    took_s = host.reboot()
    host.check_running()
    world.tenant.check_all()
    run_once(world)
    return [f"down and up in {took_s:.1f} s"]


def idle(world):
    """Memory of a server that was just started and that nobody uses."""
    host = world.host
    host.run("systemctl", "restart", RUNTIME)
    host.await_ready()
    # Its periodic work has run by then: it asks the database again and again.
    worked = "select xact_commit from pg_stat_database where datname = 'agent_runtime'"
    enough = int(host.sql(worked)) + 50
    eventually("the server's periodic work", lambda: int(host.sql(worked)) >= enough)
    resident_mib = int(host.process(RUNTIME)["VmRSS"].split()[0]) / 1024
    check(resident_mib < MOST_IDLE_MIB, f"it holds {resident_mib:.1f} MiB")
    world.figures.append(f"idle memory: {resident_mib:.1f} MiB resident (under {MOST_IDLE_MIB})")


def wrong_modes(world):
    """A key that others can read is refused with a sentence that names it, and not retried for ever."""
    host = world.host
    key = "/var/lib/agent-runtime/audit.pem"
    host.run("openssl", "genpkey", "-algorithm", "ed25519", "-out", key)
    host.sh(f"chown {RUNTIME}: {key} && chmod 0644 {key}")
    settings = host.text(SETTINGS)
    (host.root / SETTINGS.lstrip("/")).write_text(f"{settings}SVC_AUDIT_SIGNING_KEY_PATH={key}\n")
    host.run("systemctl", "restart", RUNTIME, expect=1)
    state, restarts = host.about(RUNTIME, "ActiveState"), host.about(RUNTIME, "NRestarts")
    check((state, restarts) == ("failed", "0"), f"it is {state} after {restarts} restarts")
    ended = host.about(RUNTIME, "ExecMainStatus")
    check(ended == WRONG_SETTINGS, f"it ended with {ended} in place of {WRONG_SETTINGS}")
    told = host.journal(RUNTIME)
    check("SVC_AUDIT_SIGNING_KEY_PATH" in told and "0644" in told, f"the journal says: {told}")
    found = host.doctor(expect=1)
    host.run("chmod", "0600", key)
    host.sh(f"systemctl reset-failed {RUNTIME}; systemctl restart {RUNTIME}")
    host.await_ready()
    (host.root / SETTINGS.lstrip("/")).write_text(settings)
    host.run("chmod", "0644", f"{CREDENTIALS}/SVC_SEED_TOKEN")
    seen = [f for f in host.doctor(expect=1)["fault"] if "SVC_SEED_TOKEN" in f["sentence"]]
    check(seen, "doctor finds nothing wrong with a credential that everybody may read")
    host.run("chmod", "0600", f"{CREDENTIALS}/SVC_SEED_TOKEN")
    host.run("systemctl", "restart", RUNTIME)
    host.await_ready()
    check(not host.doctor(expect=0)["fault"], "doctor finds faults after the modes were put right")
    return [finding["sentence"] for finding in found["fault"] + seen]


STEPS = [
    ("boot a host without a network", the_lab),
    ("install from the archive", install),
    ("doctor before anything is configured", doctor_before),
    ("setup, twice", setup),
    ("start", start),
    ("the sandbox it runs in", sandbox),
    ("use: an authorized run over the API", use),
    ("logs in the journal", logs),
    ("kill -9 in the middle of a run", kill),
    ("restart", restart),
    ("reboot", reboot),
    ("idle memory", idle),
    ("keys with the wrong mode", wrong_modes),
]
