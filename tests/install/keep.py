"""Backup and restore, beside what pg_dump alone takes."""

import time

from first import run_once
from host import OPENFGA, RUNTIME, check

MOST_TIMES_AS_LONG = 1.2
ROUNDS = 3
# What else the machine does only adds to a round: more of them while the best of each side are too far apart.
MOST_ROUNDS = 8
# Both databases one after the other, by pg_dump itself and not by the script on the path that looks for it.
PLAIN = f"""
dump="/usr/lib/postgresql/15/bin/pg_dump --format=custom --host=/var/run/postgresql"
$dump --file=/var/backups/agent-runtime/plain.runtime agent_runtime
$dump --file=/var/backups/agent-runtime/plain.openfga --role={OPENFGA} agent_runtime_openfga
"""
# Of events of one run, each with a kilobyte that compresses as text of models does.
EVENTS = 80_000
# The events of a finished run are told again under the numbers after its last; its row counts them.
MORE_EVENTS = f"""
with finished as (
  select tenant_id, run_id, last_seq from runs where status = 'completed' order by run_id limit 1
), told as (
  insert into run_events (tenant_id, run_id, seq, kind, data, created_at)
  select tenant_id, run_id, last_seq + n, 'text.kept', jsonb_build_object('text',
    (select string_agg(md5((n * 100 + part)::text), ' ') from generate_series(1, 30) part)), now()
  from finished, generate_series(1, {EVENTS}) n
  returning 1
)
update runs set last_seq = last_seq + (select count(*) from told)
where run_id = (select run_id from finished)
"""


def backup(world):
    """While the server serves, about as fast as pg_dump alone."""
    host = world.host
    host.sql(MORE_EVENTS, database="agent_runtime")
    host.sh(f"install -d -o {RUNTIME} -g {RUNTIME} -m 0700 /var/backups/agent-runtime")
    ours, plain = [], []
    for number in range(MOST_ROUNDS):
        if number >= ROUNDS and min(ours) <= MOST_TIMES_AS_LONG * min(plain):
            break
        began = time.monotonic()
        host.as_service("sh", "-ec", PLAIN)
        plain.append(time.monotonic() - began)
        began = time.monotonic()
        world.backup = f"/var/backups/agent-runtime/{number}"
        host.as_service("agent-runtime", "backup", world.backup)
        ours.append(time.monotonic() - began)
    ratio = min(ours) / min(plain)
    size_mb = sum(path.stat().st_size for path in (host.root / world.backup[1:]).iterdir()) / 1e6
    told = f"{min(ours):.2f} s for {size_mb:.0f} MB, {ratio:.2f} times pg_dump alone"
    check(ratio <= MOST_TIMES_AS_LONG, f"a backup takes {told}")
    host.check_modes({world.backup: f"0700 {RUNTIME}:{RUNTIME}"})
    world.figures.append(f"backup: {told} (at most {MOST_TIMES_AS_LONG})")
    world.tenant.check_all()


def restore(world):
    """What came after the backup is gone, what was before it is there, and rights hold."""
    host, tenant = world.host, world.tenant
    before = dict(tenant.runs)
    run_once(world)
    (later,) = set(tenant.runs) - set(before)
    refused = host.as_service("agent-runtime", "restore", "--replace", world.backup, expect=None)
    check(refused.returncode == 1, f"a restore under a running server ended with {refused.returncode}")
    host.run("systemctl", "stop", RUNTIME)
    host.as_service("agent-runtime", "restore", "--dry-run", "--replace", world.backup)
    began = time.monotonic()
    told = host.as_service("agent-runtime", "restore", "--replace", world.backup).stdout
    took_s = time.monotonic() - began
    host.run("systemctl", "start", RUNTIME)
    host.await_ready()
    tenant.runs = before
    tenant.check_all()
    gone = tenant.admin.get(f"/v1/runs/{later}")
    check(gone.status_code in (403, 404), f"a run from after the backup: {gone.status_code} {gone.text}")
    run_once(world)
    check(not host.doctor(expect=0)["fault"], "doctor finds faults after the restore")
    return [f"in {took_s:.1f} s", *told.splitlines()[-3:], f"refused while it serves: {refused.stderr.splitlines()[0]}"]


STEPS = [("backup", backup), ("restore", restore)]
