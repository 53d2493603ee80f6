"""Who may do what: a tenant with people, teams and projects is built over the API of two replicas;
each role is allowed and refused; the replicas stay in step; the authorization server is lost and
comes back; and every decision of it is found in the audit. Only the public API is used, and the
binary's own commands."""

import json
import re
import secrets
import sys
import time
import types
import uuid

import httpx

from access import Book, Caller, check_body, check_equal
from parts import (
    PATIENCE_S, OpenFga, Postgres, Provider, Server, check, end, eventually, run, say,
)

# The whole show takes about fifteen seconds on a quiet machine.
MOST_S = 120
ANSWER = "A short answer."
FIXTURES = [{"match": {}, "response": {"content": ANSWER}}]
# The project roles, the one that includes the others first.
ORDER = ["owner", "admin", "editor", "viewer"]
# Granted on one replica and used on the other, and taken again, so often.
ROUNDS = 5


def begin(title):
    print(f"{title}:", flush=True)


class World:
    """The replicas, and who and what there is in the tenant."""

    def __init__(self, servers, openfga, tenant_id, admin_id, token):
        self.servers, self.openfga = servers, openfga
        self.book = Book()
        self.tenant = f"tenant:{tenant_id}"
        self.book.names[tenant_id] = "the tenant"
        self.http = [httpx.Client(base_url=it.url, timeout=PATIENCE_S) for it in servers]
        self.admin = Caller(self.book, self.http, "tenant admin", admin_id, token)

    def person(self, name, tenant_role="member"):
        """Adds a person, who turns the code into a key of their own."""
        email = f"{name.replace(' ', '-')}@example.com"
        body = {"email": email, "displayName": name, "tenantRole": tenant_role}
        path = "/v1/identity/users"
        added = self.admin.does("POST", path, body, asks=[("admin", self.tenant)])
        nobody = Caller(self.book, self.http, name, added["id"], None)
        code, path = {"code": added["enrolment"]["code"]}, "/v1/identity/enrolments"
        minted = nobody.does("POST", path, code, asks=[("write", self.tenant)], stage="enrolment")
        return nobody.with_key(name, minted["token"])

    def service_account(self, name):
        path, asks = "/v1/service-accounts", [("admin", self.tenant)]
        added = self.admin.does("POST", path, {"name": name}, asks=asks)
        path = f"{path}/{added['id']}/tokens"
        token = self.admin.does("POST", path, {"name": "its key"}, asks=asks)["token"]
        return Caller(self.book, self.http, name, added["id"], token)

    def project(self, name):
        asks = [("write", self.tenant)]
        return self.book.name(self.admin.does("POST", "/v1/projects", {"name": name}, asks=asks), name)

    def team(self, name):
        body, asks = {"name": name, "slug": name}, [("admin", self.tenant)]
        return self.book.name(self.admin.does("POST", "/v1/teams", body, asks=asks), f"team {name}")

    def join(self, team_id, user, role="member"):
        body, asks = {"userId": user.user_id, "role": role}, [("admin", f"team:{team_id}")]
        self.admin.does("POST", f"/v1/teams/{team_id}/memberships", body, asks=asks)

    def grant(self, project_id, team_id, role):
        body = {"teamId": team_id, "role": role}
        asks = [("admin", f"project:{project_id}"), ("read", f"team:{team_id}")]
        self.admin.does("POST", f"/v1/projects/{project_id}/team-grants", body, asks=asks)

    def add(self, project_id, user, role, on=0):
        body, asks = {"userId": user.user_id, "role": role}, [("admin", f"project:{project_id}")]
        self.admin.does("POST", f"/v1/projects/{project_id}/memberships", body, asks=asks, on=on)

    def remove(self, project_id, user, on=0):
        path = f"/v1/projects/{project_id}/memberships/{user.user_id}"
        self.admin.does("DELETE", path, asks=[("admin", f"project:{project_id}")], on=on)


def start(directory, opened):
    """PostgreSQL, OpenFGA on a database of its own there, and two replicas that start at once."""
    postgres = Postgres(directory, [OpenFga.DATABASE])
    opened.callback(postgres.close)
    openfga = OpenFga(directory, postgres)
    opened.callback(openfga.close)
    openfga.start()
    say(f"OpenFGA {openfga.VERSION}: {openfga.url} (process {openfga.process.pid})")
    tenant_id, admin_id = str(uuid.uuid4()), str(uuid.uuid4())
    token = f"svc_bt_{secrets.token_hex(24)}"
    settings = {
        "SVC_TENANT_ID": tenant_id,
        "SVC_SEED_USER_ID": admin_id,
        "SVC_SEED_TOKEN": token,
        "SVC_AUTHZ_API_URL": openfga.url,
    }
    servers = [Server(directory, postgres.url, settings, f"replica-{n}") for n in (1, 2)]
    for server in servers:
        opened.callback(server.close)
        server.launch()
    for server in servers:
        server.wait()
        say(f"{server.name}: {server.url} (process {server.process.pid})")
    seeded = "admin@tenant via FGA bootstrap"

    def said():
        texts = [directory.text(server.name) for server in servers]
        return [line for text in texts for line in text.splitlines() if seeded in line]

    lines = eventually(f"a line of the log says: {seeded}", said)
    check(admin_id in lines[0], f"the log says: {lines[0]}")
    say(f"logged: {lines[0].strip()}")
    stores = httpx.get(f"{openfga.url}/stores", timeout=PATIENCE_S).json()["stores"]
    names = [store["name"] for store in stores]
    check(names == [f"tenant-{tenant_id}"], f"OpenFGA's stores are {names}")
    say(f"OpenFGA's only store: {names[0]}")
    return World(servers, openfga, tenant_id, admin_id, token)


def build(world, provider):
    """The tenant."""
    who, what = types.SimpleNamespace(), types.SimpleNamespace()
    for role in ORDER:
        setattr(who, role, world.person(f"{role} of alpha"))
    for role in ORDER[1:]:
        setattr(who, f"team_{role}", world.person(f"{role} through a team"))
    who.org_admin, who.outsider = world.person("admin of the org"), world.person("outsider")
    who.pipeline = world.service_account("pipeline")
    what.alpha, what.beta = world.project("alpha"), world.project("beta")
    for role in ORDER:
        world.add(what.alpha, getattr(who, role), role)
    for role in ORDER[1:]:
        team_id = world.team(f"{role}s")
        setattr(what, f"{role}s", team_id)
        world.join(team_id, getattr(who, f"team_{role}"))
        world.grant(what.alpha, team_id, role)
    world.add(what.beta, who.pipeline, "editor")
    admin, asks = world.admin, [("admin", world.tenant)]
    what.org = world.book.name(admin.does("POST", "/v1/orgs", {"name": "org"}, asks=asks), "the org")
    body, path = {"userId": who.org_admin.user_id}, f"/v1/orgs/{what.org}/admins"
    admin.does("POST", path, body, asks=[("admin", f"org:{what.org}")])
    body = {"name": "ours", "baseUrl": f"{provider.url}/v1", "models": [{"name": "m"}]}
    model_provider_id = admin.does("POST", "/v1/model-providers", body, asks=asks)["id"]
    body, asks = {"projectId": what.alpha, "name": "agent"}, [("admin", f"project:{what.alpha}")]
    what.agent = world.book.name(admin.does("POST", "/v1/agents", body, asks=asks), "the agent")
    what.version = {
        "instructions": "Answer.", "modelProviderId": model_provider_id, "model": "m",
    }
    return who, what


def show_direct_roles(world, who, what):
    tenant, alpha = world.tenant, f"project:{what.alpha}"
    agent, agents = f"agent:{what.agent}", f"/v1/agents/{what.agent}"
    in_alpha = f"/v1/projects/{what.alpha}"
    begin("A viewer reads the project's pages, and takes no actions")
    who.viewer.may("GET", in_alpha, asks=[("read", alpha)])
    start_run = {"agentId": what.agent, "message": "Hello?"}
    who.viewer.may_not("POST", "/v1/runs", start_run, asks=[("write", agent)])
    begin("An editor also works on agent versions and runs agents, and does not promote them")
    body = {**what.version, "version": "1.0.0"}
    who.editor.may("POST", f"{agents}/versions", body, asks=[("write", agent)])
    promote = {"version": "1.0.0"}
    who.editor.may_not("POST", f"{agents}/promote", promote, asks=[("admin", agent)])
    begin("An admin of a project also promotes versions, and makes no teams")
    who.admin.may("POST", f"{agents}/promote", promote, asks=[("admin", agent)])
    team = {"name": "another", "slug": "another"}
    # Every key of a tenant member is a member key, which is said before the model is asked.
    who.admin.may_not(
        "POST", "/v1/teams", team, asks=[("admin", tenant)], stage="key-role",
        why="it is a member key, and this takes a tenant admin",
    )
    begin("An owner of a project also changes who works there, and has nothing of another project")
    path = f"{in_alpha}/memberships/{who.viewer.user_id}"
    who.owner.may("PATCH", path, {"role": "viewer"}, asks=[("admin", alpha)])
    beta = f"project:{what.beta}"
    who.owner.may_not("GET", f"/v1/projects/{what.beta}", asks=[("read", beta)])
    run_id = world.book.name(
        who.editor.may("POST", "/v1/runs", start_run, asks=[("write", agent)])["run"], "the run"
    )
    return run_id


def show_team_roles(world, who, what, run_id):
    alpha, agent = f"project:{what.alpha}", f"agent:{what.agent}"
    in_alpha = f"/v1/projects/{what.alpha}"
    begin("Through a team: a viewer")
    who.team_viewer.may("GET", f"/v1/runs/{run_id}", asks=[("read", f"run:{run_id}")])
    who.team_viewer.may_not("GET", f"{in_alpha}/memberships", asks=[("write", alpha)])
    begin("Through a team: an editor")
    who.team_editor.may("GET", f"{in_alpha}/memberships", asks=[("write", alpha)])
    body = {"userId": who.outsider.user_id, "role": "viewer"}
    who.team_editor.may_not("POST", f"{in_alpha}/memberships", body, asks=[("admin", alpha)])
    begin("Through a team: an admin, who is a plain member of the team")
    body = {"name": "renamed agent"}
    who.team_admin.may("PATCH", f"/v1/agents/{what.agent}", body, asks=[("admin", agent)])
    team = f"team:{what.admins}"
    path = f"/v1/teams/{what.admins}"
    who.team_admin.may("GET", path, asks=[("read", team)])
    who.team_admin.may_not("GET", f"{path}/memberships", asks=[("admin", team)])
    begin("No team is an owner")
    body, path = {"teamId": what.admins, "role": "owner"}, f"{in_alpha}/team-grants"
    asks = [("admin", alpha), ("read", team)]
    refused = world.admin.does("POST", path, body, asks=asks, status=400)
    say(f"as owner 400 {json.dumps(refused)}")


def show_tenant_roles(world, who, what):
    tenant, alpha = world.tenant, f"project:{what.alpha}"
    begin("A tenant admin is admin of every project; a member key of theirs takes no tenant admin's action")
    path = f"/v1/projects/{what.beta}/memberships"
    world.admin.may("GET", path, asks=[("write", f"project:{what.beta}")])
    minted = world.admin.does("POST", "/v1/tokens", {"name": "member key", "role": "member"})
    member = world.admin.with_key("tenant admin with a member key", minted["token"])
    why = "it is a member key, and this takes a tenant admin"
    path, asks = "/v1/identity/users", [("admin", tenant)]
    member.may_not("GET", path, asks=asks, stage="key-role", why=why)
    why = "it is a member key, and no role of its owner but tenant admin allows this"
    path, asks = f"/v1/orgs/{what.org}", [("read", f"org:{what.org}")]
    member.may_not("GET", path, asks=asks, stage="key-role", why=why)
    begin("An org admin is admin of the org's projects, and of no other's")
    path = f"/v1/orgs/{what.org}/projects"
    made = who.org_admin.may("POST", path, {"name": "gamma"}, asks=[("admin", f"org:{what.org}")])
    what.gamma = world.book.name(made, "gamma")
    who.org_admin.may_not("GET", f"/v1/projects/{what.alpha}", asks=[("read", alpha)])
    begin("A service account has the role that it was given, and is never an owner")
    beta = f"project:{what.beta}"
    who.pipeline.may("GET", f"/v1/projects/{what.beta}/access", asks=[("write", beta)])
    body = {"name": "renamed"}
    who.pipeline.may_not("PATCH", f"/v1/projects/{what.beta}", body, asks=[("admin", beta)])
    path = f"/v1/projects/{what.beta}/memberships/{who.pipeline.user_id}"
    asks = [("admin", beta)]
    refused = world.admin.does("PATCH", path, {"role": "owner"}, asks=asks, status=400)
    say(f"as owner 400 {json.dumps(refused)}")
    begin("An outsider is of the tenant, and of no project")
    listed = who.outsider.may("GET", "/v1/projects", asks=[("read", tenant)])
    check(listed["data"] == [], f"an outsider's list of projects has {listed['data']}")
    say("         their list of projects is empty")
    who.outsider.may_not("GET", f"/v1/projects/{what.alpha}", asks=[("read", alpha)])


def show_keys(world, who, what):
    begin("A key that is limited to a project stays in it")
    alpha, beta = f"project:{what.alpha}", f"project:{what.beta}"
    body = {"name": "for alpha", "projectId": what.alpha}
    minted = world.admin.does("POST", "/v1/tokens", body, asks=[("read", alpha)])
    limited = world.admin.with_key("tenant admin with a key for alpha", minted["token"])
    limited.may("GET", f"/v1/projects/{what.alpha}", asks=[("read", alpha)])
    mismatch = (
        f"The key is limited to {alpha}, and the request names {beta}. "
        "Use a key of that project, or one without a limit."
    )
    limited.may_not(
        "GET", f"/v1/agents?projectId={what.beta}", asks=[("read", beta)],
        stage="key-project-mismatch", why=mismatch,
    )
    limited.may_not(
        "POST", "/v1/tokens", {"name": "for beta", "projectId": what.beta},
        asks=[("write", beta)], stage="key-project-mismatch",
        why=mismatch,
    )
    begin("A key without a capability does not do what takes it")
    body = {"name": "reads", "capabilities": []}
    minted = world.admin.does("POST", "/v1/tokens", body)
    plain = world.admin.with_key("tenant admin with a key without capabilities", minted["token"])
    body = {"userId": who.outsider.user_id, "role": "viewer"}
    plain.may_not(
        "POST", f"/v1/projects/{what.alpha}/memberships", body, asks=[("admin", alpha)],
        stage="key-capability",
        why="the key lacks the capability access:write",
    )


def show_replicas(world, who, what):
    begin("What one replica answered, the other one knows")
    path, asks = f"/v1/projects/{what.beta}", [("read", f"project:{what.beta}")]
    for n in range(ROUNDS):
        here, there = n % 2, 1 - n % 2
        world.add(what.beta, who.outsider, "viewer", on=here)
        who.outsider.does("GET", path, asks=asks, on=there)
        world.remove(what.beta, who.outsider, on=here)
        who.outsider.may_not("GET", path, asks=asks, on=there, quiet=True)
    say(f"{ROUNDS} times granted on one replica and used at once on the other")
    say(f"{ROUNDS} times taken on one replica and refused at once on the other")


def show_access(world, what):
    begin("Who has access to alpha")
    path, asks = f"/v1/projects/{what.alpha}/access", [("write", f"project:{what.alpha}")]
    entries = world.admin.does("GET", path, asks=asks)["data"]
    roles = {world.book.names[it["principal"]["id"]]: it["role"] for it in entries}
    wanted = {f"{role} of alpha": role for role in ORDER}
    wanted |= {f"{role} through a team": role for role in ORDER[1:]}
    # They made it, so they own it.
    wanted["tenant admin"] = "owner"
    check(roles == wanted, f"the access list has {roles}")
    ranks = [(ORDER.index(it["role"]), it["displayName"].lower()) for it in entries]
    check(ranks == sorted(ranks), f"the access list is not in order: {ranks}")
    for entry in entries:
        ways = []
        for way in entry["via"]:
            name = f"{way['kind']} {way['teamName']}" if way["kind"] == "team" else way["kind"]
            ways.append(f"{name} ({way['role']})" if "role" in way else name)
        say(f"{entry['role']:<7} {entry['displayName']:<22} via {', '.join(ways)}")


def show_loss(world, who, what):
    """OpenFGA goes, and comes back."""
    begin("Without OpenFGA nothing is decided, and what needs no decision goes on")
    path, asks = f"/v1/projects/{what.alpha}", [("read", f"project:{what.alpha}")]
    end(world.openfga.process)
    say(f"stopped OpenFGA (process {world.openfga.process.pid})")
    for on in (0, 1):
        failed = who.viewer.send("GET", path, on=on)
        message = failed.json()["error"]["message"]
        check(message.startswith("FGA Error: "), f"without OpenFGA: {failed.text}")
        check_body(failed, 500, "authorization-unavailable", message, {})
    say(f"500 {failed.text}")
    for http in world.http:
        probe = eventually("/readyz to say so", lambda: not_ready(http))
    check("authz" in probe.json()["missing"], f"/readyz says {probe.text}")
    say(f"/readyz: {probe.status_code} {probe.text.strip()}")
    answer = who.viewer.does("GET", "/v1/tokens")
    say(f"GET /v1/tokens goes on: 200 with {len(answer['data'])} key")
    began = time.monotonic()
    world.openfga.start()
    say(f"started OpenFGA again (process {world.openfga.process.pid})")
    for on in (0, 1):
        eventually("checks work again", lambda: again(who.viewer, path, asks, on))
        eventually("ready", world.servers[on].is_ready)
    say(f"checks work on both replicas again, {time.monotonic() - began:.1f} s later, not restarted")


def not_ready(http):
    response = http.get("/readyz")
    return response if response.status_code == 503 else None


def again(caller, path, asks, on):
    """Whether a check is answered again; until then it is the same error."""
    response = caller.send("GET", path, on=on)
    if response.is_success:
        caller.enter(response, asks[0], "allowed", "model")
        return True
    message = response.json()["error"]["message"]
    check(message.startswith("FGA Error: "), f"after a loss: {response.text}")
    return False


def show_audit(world):
    """The whole record through the API. The pages are decisions themselves, of which the last one
    read may be on none of them."""
    begin("The audit of all of it")
    made = list(world.book.made)
    rows, pages, query = [], [], "limit=100"
    while True:
        path = f"/v1/audit/authz?{query}"
        page = world.admin.does("GET", path, asks=[("admin", world.tenant)])
        pages.append(world.book.made[-1].request_id)
        rows += page["data"]
        if not page["hasMore"]:
            break
        query = f"limit=100&cursor={page['nextCursor']}"
    rows = [row for row in rows if row["requestId"] not in pages]
    check_equal(world.book, made, rows, "GET /v1/audit/authz")
    times = [row["timestamp"] for row in rows]
    check(times == sorted(times), "the audit is not oldest first")
    for row in rows:
        actor, resource = (
            world.book.readable(row[it], "{}") for it in ("actorSubject", "resource")
        )
        say(
            f"{row['timestamp'][11:23]}  {actor.removeprefix('user:'):<21}  {row['action']:<5}  "
            f"{resource:<18}  {row['outcome']:<7}  {row['stage']}"
        )


def verify(server, *arguments):
    done = server.command(*arguments)
    said = f"{done.stdout}{done.stderr}".strip()
    check(done.returncode == 0, f"{' '.join(arguments)}: exit code {done.returncode}\n{said}")
    say(f"{' '.join(arguments)}: exit code 0: {said.splitlines()[-1] if said else ''}")


def export(server):
    """What the binary's own export gives."""
    done = server.command("audit", "export", "--format", "jsonl")
    check(done.returncode == 0, f"audit export: exit code {done.returncode}\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def written(world):
    """How many decisions the replicas say that they wrote."""
    total = 0
    for http in world.http:
        found = re.search(r"^agent_runtime_audit_rows_total (\d+)$", http.get("/metrics").text, re.M)
        check(found, "/metrics has no agent_runtime_audit_rows_total")
        total += int(found.group(1))
    return total


def tell(directory, opened):
    begin("What runs")
    provider = Provider(directory, FIXTURES)
    opened.callback(provider.close)
    world = start(directory, opened)
    who, what = build(world, provider)
    say("made over the API: people who enrolled, a service account, an org, teams, projects, an agent")
    run_id = show_direct_roles(world, who, what)
    show_team_roles(world, who, what, run_id)
    show_tenant_roles(world, who, what)
    show_keys(world, who, what)
    show_replicas(world, who, what)
    show_access(world, what)
    show_loss(world, who, what)
    show_audit(world)
    begin("What verifies it")
    verify(world.servers[0], "audit", "verify")
    verify(world.servers[0], "authz", "verify")
    made, rows = world.book.made, export(world.servers[0])
    check_equal(world.book, made, rows, "audit export")
    counted = written(world)
    check(counted == len(rows), f"the replicas wrote {counted} rows, {len(rows)} are exported")
    return f"decisions made: {len(made)}, decisions recorded: {len(rows)}"


if __name__ == "__main__":
    sys.exit(run(tell, MOST_S))
