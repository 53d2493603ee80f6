"""Removed and installed again, purged, and upgraded from an earlier package."""

import pathlib
import secrets
import subprocess
import tempfile

from first import EDITED, run_once
from host import CREDENTIALS, OPENFGA, RUNTIME, SETTINGS, UNITS, Tenant, check

DATABASES = ("agent_runtime", "agent_runtime_openfga")
DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs/install-debian.md"
# What a purge leaves, as docs/packages.md says, and what is not ours: the cluster's files and the journal.
LEFT = (
    "/root/", "/tmp/", "/var/log/", "/var/lib/postgresql/", "/var/backups/", "/var/lib/dpkg/",
    "/var/cache/", "/var/lib/systemd/", "/var/lib/apt/",
)
ADDED_BY_USERS = {"/etc/passwd-", "/etc/shadow-", "/etc/group-", "/etc/gshadow-"}


def files(host):
    """Every path of the machine that is on its disk."""
    found = host.sh("find / -xdev -not -path '/dev/*' -not -path '/run/*' -printf '%p\\n'").stdout
    return {path for path in found.splitlines() if not path.startswith(LEFT)}


def remove(world):
    """The programs go, settings and data stay, and installing again takes up where it was."""
    host = world.host
    settings, rows = host.text(SETTINGS), count_runs(host)
    host.run("apt-get", "remove", "--yes", *UNITS)
    for unit in UNITS:
        check(host.about(unit, "LoadState") != "loaded", f"{unit} is still there")
    check(not host.has("/usr/bin/agent-runtime"), "the program is still there")
    check(host.text(SETTINGS) == settings, "the settings are not as they were")
    check(count_runs(host) == rows, "runs are gone")
    check(host.has(f"{CREDENTIALS}/SVC_SEED_TOKEN"), "the credentials are gone")
    check(host.has("/var/lib/agent-runtime"), "the state is gone")
    host.run("./archive/install", timeout=300, directory="/root")
    host.run("systemctl", "enable", "--now", *UNITS)
    host.check_running()
    world.tenant.check_all()
    return [f"{rows} runs before, between and after"]


def count_runs(host):
    return int(host.sql("select count(*) from runs", database="agent_runtime"))


def purge(world):
    """Nothing of ours is left but what the documentation says: databases, roles and users."""
    host = world.host
    ours = set()
    for unit in UNITS:
        ours |= set(host.run("dpkg", "--listfiles", unit).stdout.splitlines())
    shared = {path for path in ours if (host.root / path[1:]).is_dir() and "agent-runtime" not in path}
    before = files(host)
    host.run("apt-get", "purge", "--yes", *UNITS)
    after = files(host)
    taken = before - after
    wrong = {path for path in taken - ours if "agent-runtime" not in path} - ADDED_BY_USERS
    check(not wrong, f"a purge took what is not ours: {sorted(wrong)}")
    left = {path for path in after if "agent-runtime" in path} | (ours - shared) & after
    check(not left, f"a purge left {sorted(left)}")
    new = after - before - ADDED_BY_USERS
    check(not new, f"a purge made {sorted(new)}")
    for database in DATABASES:
        found = host.sql(f"select count(*) from pg_database where datname = '{database}'")
        check(found == "1", f"database {database} is gone")
    host.run("getent", "passwd", RUNTIME)
    check(host.run("dpkg", "--list", *UNITS, expect=None).stdout.count("\nii") == 0, "not purged")
    return [f"{len(taken)} files and directories went; databases, roles and system users are there"]


def earlier_package(world):
    """Today's package with an earlier program and its own settings file, as a lower version."""
    deb = world.package("agent-runtime_*_amd64.deb")
    with tempfile.TemporaryDirectory() as scratch:
        tree = pathlib.Path(scratch) / "tree"
        subprocess.run(["dpkg-deb", "--raw-extract", deb, tree], check=True)
        subprocess.run(["install", "-m", "755", world.earlier, tree / "usr/bin/agent-runtime"], check=True)
        # Today's program has no sample beside it: it stands for the earlier one while the schema is today's
        # (tests/upgrade/earlier), and today's settings file is its own.
        sample = world.earlier.parent / "agent-runtime.env.sample"
        if world.earlier != world.program:
            (tree / SETTINGS[1:]).write_bytes(sample.read_bytes())
        control = tree / "DEBIAN/control"
        lines = control.read_text().splitlines()
        (version,) = (line for line in lines if line.startswith("Version: "))
        lines[lines.index(version)] = f"{version}~earlier"
        control.write_text("\n".join(lines) + "\n")
        # Those of the two files that were exchanged are no longer true.
        (tree / "DEBIAN/md5sums").unlink(missing_ok=True)
        made = world.host.root / "root/earlier.deb"
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, made],
                       check=True, stdout=subprocess.DEVNULL)


def install_earlier(world):
    """An earlier version, configured by hand, in use, with a settings file that was edited."""
    host = world.host
    token = f"svc_bt_{secrets.token_hex(24)}"
    earlier_package(world)
    for database in DATABASES:
        host.sql(f'drop database if exists "{database}"')
    host.run("apt-get", "install", "--yes", "/root/earlier.deb")
    companion = next((host.root / "root/archive/packages").glob("agent-runtime-openfga_*.deb")).name
    host.run("apt-get", "install", "--yes", f"/root/archive/packages/{companion}")
    host.sql(f'create database agent_runtime owner "{RUNTIME}" encoding UTF8 template template0')
    host.sql(f'create database agent_runtime_openfga owner "{OPENFGA}" encoding UTF8 template template0')
    with open(host.root / SETTINGS[1:], "a") as settings:
        settings.write(
            EDITED
            + f"SVC_DATABASE_URL=postgres://{RUNTIME}@%2Fvar%2Frun%2Fpostgresql:5432/agent_runtime\n"
            + "SVC_AUTHZ_API_URL=http://127.0.0.1:8180\n"
            + "SVC_TENANT_ID=01a1f000-0000-7000-8000-000000000001\n"
            + "SVC_SEED_USER_ID=01a1f000-0000-7000-8000-000000000002\n"
            + f"SVC_SEED_TOKEN={token}\nSVC_LICENSE_KEY={host.text('/root/license.key').strip()}\n"
        )
    host.run("systemctl", "enable", "--now", *UNITS)
    host.check_running()
    world.tenant = Tenant(token, world.provider.url)
    run_once(world)
    version = host.run("dpkg-query", "--show", "--showformat", "${Version}", RUNTIME).stdout
    schema = host.sql("select count(*) from agent_runtime_migrations", database="agent_runtime")
    return [f"{RUNTIME} {version}, {schema} migrations, one run"]


def upgrade(world):
    """From the archive, while it serves: no question is asked, and settings and data are kept."""
    host, tenant = world.host, world.tenant
    settings, process = host.text(SETTINGS), host.about(RUNTIME, "MainPID")
    run_id = tenant.start("Say something while the program is exchanged.")
    tenant.await_text(run_id)
    host.run("./archive/install", timeout=300, directory="/root")
    # The packages do not wait for the restart that they ask for: a start joins it.
    host.run("systemctl", "start", *UNITS, timeout=300)
    host.check_running()
    check(host.about(RUNTIME, "MainPID") != process, "the earlier program still runs")
    check(host.text(SETTINGS) == settings, "the edited settings were changed")
    check(host.about(RUNTIME, "UnitFileState") == "enabled", "it is no longer enabled")
    check(host.mode(SETTINGS) == f"0640 root:{RUNTIME}", f"the settings are {host.mode(SETTINGS)}")
    tenant.await_end(run_id, world.answer)
    tenant.check_all()
    run_once(world)
    host.run("agent-runtime", "setup")
    check(not host.doctor(expect=0)["fault"], "doctor finds faults after the upgrade")
    version = host.run("dpkg-query", "--show", "--showformat", "${Version}", RUNTIME).stdout
    return [f"{RUNTIME} {version}; the run that was under way answered in full"]


def documented(world):
    """What docs/install-debian.md says, word for word, on a host that has PostgreSQL."""
    host = world.host
    for database in DATABASES:
        host.sql(f'drop database if exists "{database}"')
    host.sh("mkdir /root/debs")
    for deb in world.lab.debs.glob("*.deb"):
        host.put(deb, f"/root/debs/{deb.name}")
    host.sh("apt-get install --yes --no-install-recommends /root/debs/*.deb")
    blocks, block = [], None
    for line in DOCUMENT.read_text().splitlines():
        if line == "```sh run":
            block = []
        elif line == "```" and block is not None:
            blocks.append("\n".join(block))
            block = None
        elif block is not None:
            block.append(line)
    check(blocks, f"{DOCUMENT} has no commands to run")
    host.sh("mkdir /root/download; cp /root/archive/packages/agent-runtime*.deb /root/download")
    host.sh("cp /root/license.key /root/download/license-key")
    for block in blocks:
        host.run("bash", "-euo", "pipefail", "-c", block, directory="/root/download")
    host.check_running()
    host.run("apt-get", "purge", "--yes", *UNITS)
    return [line for block in blocks for line in block.splitlines()]


STEPS = [
    ("remove, and install again", remove),
    ("purge", purge),
    ("the commands of docs/install-debian.md", documented),
    ("install an earlier version, and use it", install_earlier),
    ("upgrade it", upgrade),
]
