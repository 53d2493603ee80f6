"""The story of a refund, as a flow: the order is read, then what is known of it, in two branches at once: the customer has no
terms, so the usual ones hold, and get a week more for each line, one line after the other. An agent assesses the order, two
people are asked one after the other, a night passes, each line of the order goes back into stock, two at once, and another flow
pays the money, which the shop refuses at first. The server is killed at every statement of it: before the database has the
statement, and after the database has done it and before the server knows. Each effect is done once. Only the public API is
used, and the binary's own commands."""

import base64
import collections
import contextlib
import http.server
import json
import re
import secrets
import sys
import threading
import time
import uuid

import httpx

from parts import (
    HERE, PATIENCE_S, Failed, OpenFga, Postgres, Provider, Server, check, eventually, run, say,
)
from relay import AFTER, BEFORE, COMMIT, Database, Relay
from webhooks import Receiver, begin, key_file

ADVICE = "The parcel came broken, which the photo shows. I advise to refund the whole amount."
ORDER = {
    "id": "A-17", "amount": 180, "customer": "C-5", "lines": ["cup", "saucer"],
    "reason": "It came broken. My iban is CANARY-4711.",
}
# What no event may tell: it is in the tool's answer, and so in the agent's message and in the approval's context.
CANARY = "CANARY-4711"
FIXTURES = [
    {"match": {}, "response": {"content": ADVICE, "usage": {"prompt_tokens": 40, "completion_tokens": 20}}}
]
ENVIRONMENT, SECRET = "prod", "RECEIVER_SIGNING"
# What everybody gets, in days, and what comes to it for each line.
USUAL, WEEK = {"days": 0}, 7
MOST_S = 900
LEAST_KILLS = 60
# How often a run is taken up, so that the show ends. About 80 times are met; more where the runs interleave in more ways, as on a
# busy machine.
MOST_TAKES = 130
TAKES = "select coalesce(max(attempt), 0) from job_jobs"
FINISHED = ("completed", "failed", "cancelled")
# What is done to a run, its job and its approvals; not what a server asks again and again while nothing happens.
STATEMENT = re.compile(r"\b(run_(?!starters)\w+|approval_\w+|flow_\w+|child_\w+|job_(?:end|snooze|insert)\w*)\s*\(")
# Of a transaction that begins with it the commit alone: it only reads.
READ = "flow_load"
# Where everything stands. A statement that comes again at the same place is not killed again.
PLACE = """select concat_ws(' ',
  (select string_agg(concat_ws(':', status, cancel_requested_at), ',' order by run_id) from runs),
  (select string_agg(concat_ws(':', step, status), ',' order by run_id, step) from run_steps),
  (select string_agg(status, ',' order by approval_id) from approvals))"""
# The steps under way: the kind of each, and the path of its task.
UNDER_WAY = "select coalesce(string_agg(distinct kind || ' ' || path, ','), '') from run_steps where status = 'running'"
# The steps that the server must have been killed in, by their kind and task.
LEAST_MET = {
    ("tool", "order"): "a tool",
    ("child", "known"): "branches",
    ("tool", "usual"): "the handler of an error",
    ("wait", "look"): "a loop whose iterations follow each other",
    ("child", "assess"): "an agent's turn",
    ("approval", "ask"): "an approval",
    ("wait", "night"): "a wait",
    ("child", "restock"): "a loop whose iterations go side by side",
    ("child", "pay"): "another flow",
    ("tool", "refund"): "what is tried",
    ("wait", "pay"): "the pause before another try",
}


class Shop:
    """The tools: what is read, and effects, which are done once for each idempotency key, as docs/tools.md says that a
    receiver does. The first payment is refused, however often it is asked for under its key."""

    READS = {"/orders": ORDER, "/customers": {"refunds": 0}}

    def __init__(self):
        self.calls, self.effects = collections.Counter(), {"/payments": {}, "/stock": {}}
        self.refused_key = None
        shop = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                status, answer = shop.take(self.path, self.headers["idempotency-key"], body["arguments"])
                answer = json.dumps(answer).encode()
                try:
                    self.send_response(status)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)
                except OSError:
                    self.close_connection = True

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, name="shop", daemon=True).start()

    def take(self, path, key, arguments):
        """The status, and the answer."""
        self.calls[path] += 1
        if path in self.READS:
            return 200, self.READS[path]
        if path == "/terms":
            is_usual = arguments["of"] == "everybody"
            return (200, USUAL) if is_usual else (404, "This customer has no terms.")
        if path == "/payments":
            self.refused_key = self.refused_key or key
            if key == self.refused_key:
                return 503, "The bank is closed for a moment."
        return 200, self.effects[path].setdefault(key, arguments)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Caller:
    """Somebody with a key, who asks again when the server was killed under the question."""

    def __init__(self, world, token):
        self.world, self.token = world, token

    def send(self, method, path, body=None):
        # The same each time that it is asked: what was done before a kill is not done again.
        headers = {"idempotency-key": str(uuid.uuid4())}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        deadline = time.monotonic() + MOST_S
        while time.monotonic() < deadline:
            # A server that has just started says 503 until it is ready.
            with contextlib.suppress(httpx.TransportError):
                url = f"{self.world.server.url}{path}"
                response = httpx.request(method, url, json=body, headers=headers, timeout=PATIENCE_S)
                if response.status_code != 503 and "idempotency-in-flight" not in response.text:
                    return response
            time.sleep(0.05)
        raise Failed(f"{method} {path}: nothing answers")

    def does(self, method, path, body=None):
        response = self.send(method, path, body)
        check(response.is_success, f"{method} {path}: {response.status_code} {response.text}")
        return response.json() if response.content else None

    def refused(self, method, path, body, status):
        response = self.send(method, path, body)
        check(response.status_code == status, f"{method} {path}: {response.status_code} {response.text}")
        return response.json()


class Killer(threading.Thread):
    """Kills the server at each statement that it has not been killed at where everything stands, and starts it again, until
    it is told to stop. What a transaction has done goes with its connection: after a statement is before the next one there."""

    def __init__(self, relay, server, database):
        super().__init__(name="killer", daemon=True)
        self.relay, self.server, self.database = relay, server, database
        self.kills, self.met, self.takes = collections.Counter(), set(), 0
        # The kills by the step that was under way, of which there may be several.
        self.steps = collections.Counter()
        self.stopped, self.fault = threading.Event(), None

    def run(self):
        try:
            held = self.relay.arm(self.meets)
            while not self.stopped.is_set():
                if held.wait(0.05):
                    self.server.kill()
                    held = self.relay.arm(self.meets)
                    # It may be killed again before it is ready.
                    self.server.launch()
            held = self.relay.disarm()
            if held:
                held.wait(PATIENCE_S)
                self.server.kill()
                self.server.start()
        except Exception as fault:
            self.fault = fault
            self.relay.disarm()

    def meets(self, statement, is_uncommitted):
        named = STATEMENT.search(statement)
        is_commit = statement.startswith(COMMIT)
        if not named or named[1] == READ and not is_commit:
            return None
        self.takes = max(self.takes, int(self.database.ask(TAKES)))
        if self.takes >= MOST_TAKES:
            return None
        name = f"{COMMIT} of {named[1]}" if is_commit else named[1]
        place = self.database.ask(PLACE)
        for how in (BEFORE,) if is_uncommitted else (BEFORE, AFTER):
            if (place, name, how) not in self.met:
                self.met.add((place, name, how))
                self.kills[name] += 1
                steps = filter(None, self.database.ask(UNDER_WAY).split(","))
                self.steps.update({(step.split(" ")[0], step.rsplit("/")[-1]) for step in steps})
                return how
        return None

    def stop(self):
        self.stopped.set()
        self.join(PATIENCE_S)
        if self.fault:
            raise self.fault


class World:
    """All that there is."""

    def __init__(self, directory, opened):
        self.provider = Provider(directory, FIXTURES)
        opened.callback(self.provider.close)
        self.shop = Shop()
        opened.callback(self.shop.close)
        self.signing = f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"
        self.receiver = Receiver(self.signing)
        opened.callback(self.receiver.close)
        self.postgres = Postgres(directory, [OpenFga.DATABASE])
        opened.callback(self.postgres.close)
        self.openfga = OpenFga(directory, self.postgres)
        opened.callback(self.openfga.close)
        self.openfga.start()
        self.relay = Relay(self.postgres)
        opened.callback(self.relay.close)
        token = f"svc_bt_{secrets.token_hex(24)}"
        settings = {
            "SVC_TENANT_ID": str(uuid.uuid4()),
            "SVC_SEED_TOKEN": token,
            "SVC_AUTHZ_API_URL": self.openfga.url,
            "SVC_SECRETS_BACKEND": "postgres",
            "SVC_SECRETS_BACKEND_KMS": "local",
            "SVC_SECRETS_LOCAL_KEY_PATH": key_file(directory, "wrapping.key"),
            "SVC_SECRETS_AAD_KEY_PATH": key_file(directory, "aad.key"),
            # A dead server's runs are taken over after this; the default is 15 s.
            # A branch dies at one statement as often as the other one moves on beside it.
            "SVC_MAX_RUN_DEATHS": "50",
            "SVC_RUN_LEASE_MS": "500",
        }
        self.server = Server(directory, self.relay.url, settings)
        opened.callback(self.server.close)
        self.server.start()
        self.database = Database(self.postgres)
        opened.callback(self.database.close)
        self.admin = Caller(self, token)

    def person(self, name, *roles):
        """Adds a person with reviewer roles, who turns the code into a key."""
        email = f"{name.lower().replace(' ', '.')}@example.com"
        body = {"email": email, "displayName": name, "tenantRole": "member"}
        added = self.admin.does("POST", "/v1/identity/users", body)
        code = {"code": added["enrolment"]["code"]}
        minted = Caller(self, None).does("POST", "/v1/identity/enrolments", code)
        for role in roles:
            self.admin.does("POST", "/v1/reviewers", {"userId": added["id"], "role": role})
        caller = Caller(self, minted["token"])
        caller.user_id = added["id"]
        return caller


def build(world, directory):
    """The project, its tools, its agent and its flow; the receiver of webhooks."""
    admin = world.admin
    project_id = admin.does("POST", "/v1/projects", {"name": "billing"})["id"]
    body = {"name": "elsewhere", "baseUrl": f"{world.provider.url}/v1", "models": [{"name": "m"}]}
    provider_id = admin.does("POST", "/v1/model-providers", body)["id"]
    tools = {
        "orders_get": ("orders", "Reads an order.", {"id": {"type": "string"}}),
        "customers_get": ("customers", "Reads what is known of a customer.", {"id": {"type": "string"}}),
        "terms_get": ("terms", "Reads the terms of a customer, or those of everybody.", {"of": {"type": "string"}}),
        "stock_return": (
            "stock", "Puts a line of an order back into stock.",
            {"order": {"type": "string"}, "line": {"type": "string"}},
        ),
        "payments_refund": (
            "payments", "Pays money back.", {"order": {"type": "string"}, "amount": {"type": "number"}},
        ),
    }
    for name, (path, description, properties) in tools.items():
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        body = {
            "projectId": project_id, "name": name, "description": description, "argumentsSchema": schema,
            "url": f"{world.shop.url}/{path}", "idempotent": True,
        }
        admin.does("POST", "/v1/tools", body)
    agent_id = admin.does("POST", "/v1/agents", {"projectId": project_id, "name": "refund-clerk"})["id"]
    version = {"version": "1.0.0", "instructions": "Assess refunds.", "modelProviderId": provider_id}
    admin.does("POST", f"/v1/agents/{agent_id}/versions", {**version, "model": "m"})
    admin.does("POST", f"/v1/agents/{agent_id}/promote", {"version": "1.0.0"})
    # The refund runs the payment, which has to be there before.
    for name in ("pay.json", "refund.json"):
        definition = directory.path / name
        definition.write_text((HERE / name).read_text())
        checked = world.server.command("flow", "validate", str(definition))
        check(checked.returncode == 0, f"flow validate: {checked.stdout}{checked.stderr}")
        say(f"agent-runtime flow validate {name}: {checked.stdout.strip().splitlines()[0]}")
        body = {"projectId": project_id, "definition": json.loads(definition.read_text())}
        flow = admin.does("POST", "/v1/flows", body)
        admin.does("POST", f"/v1/flows/{flow['id']}/promote", {"version": "1.0.0"})
    admin.does("PUT", f"/v1/secrets/{ENVIRONMENT}/{SECRET}", {"value": world.signing})
    body = {
        "url": world.receiver.url, "events": ["run.finished", "approval.requested"],
        "secretRef": {"envName": ENVIRONMENT, "name": SECRET},
    }
    admin.does("POST", "/v1/webhook-endpoints", body)
    return project_id, flow["flowId"]


def waiting(caller, run_id, role):
    """The approval of the run that waits for this role, once there is one."""

    def found():
        path = f"/v1/approvals?runId={run_id}&role={role}&status=waiting"
        return next(iter(caller.does("GET", path)["data"]), None)

    return eventually(f"an approval that waits for {role}", found, patience_s=MOST_S)


def decide(caller, approval):
    """Approves what was read."""
    read = caller.does("GET", f"/v1/approvals/{approval['id']}")
    check(CANARY in json.dumps(read["subject"]), f"the reviewer is not shown the order: {read['subject']}")
    days, lines = read["subject"]["context"]["days"], len(ORDER["lines"])
    check(days == USUAL["days"] + WEEK * lines, f"a week for each of {lines} lines makes {days} days")
    body = {"decision": "approve", "comment": "The photo is clear.", "expectedDigest": read["subject"]["digest"]}
    path = f"/v1/approvals/{approval['id']}/decide"
    return caller.does("POST", path, body)


def ended(caller, run_id):
    def found():
        run = caller.does("GET", f"/v1/runs/{run_id}")
        return run if run["status"] in FINISHED else None

    return eventually("the run to end", found, patience_s=MOST_S)


def live(world, people, project_id, flow_id):
    """The run from its start to its end, with a server that is killed all the time."""
    requester, lead = people["requester"], people["lead"]
    begin("A refund of 180 EUR is asked for; from here on the server is killed at every statement of it")
    killer = Killer(world.relay, world.server, world.database)
    killer.start()
    try:
        body = {"flowId": flow_id, "projectId": project_id, "input": {"orderId": ORDER["id"]}}
        run_id = requester.does("POST", "/v1/runs", body)["run"]["id"]
        say(f"run {run_id} of {flow_id}")
        asked = waiting(requester, run_id, "finance")
        say(f"a reviewer is asked: {asked['title']!r}, role {asked['requiredRole']}, until {asked['expiresAt']}")
        path = f"/v1/approvals/{asked['id']}/decide"
        refusal = requester.refused("POST", path, {"decision": "approve"}, 403)["error"]
        check(refusal["code"] == "approval-own-request", f"the requester is refused with {refusal}")
        say(f"the requester, who has the role, decides: 403 {refusal['code']}: {refusal['message']}")
        escalated = waiting(lead, run_id, "finance-lead")
        check(escalated["escalatedFrom"] == asked["id"], f"it was escalated from {escalated['escalatedFrom']}")
        say("nobody else decides: it is escalated to finance-lead, as a new approval")
        closed = decide(lead, escalated)
        say(f"the lead approves: {closed['status']}")
        run = ended(requester, run_id)
    finally:
        killer.stop()
    check(run["status"] == "completed", f"the run {run['status']}: {run['failureMessage']}")
    # At each statement of the run and of the six below it; which of these meet differs from time to time.
    check(sum(killer.kills.values()) > LEAST_KILLS, f"it was killed {sum(killer.kills.values())} times only")
    say(f"the run {run['status']}, after {sum(killer.kills.values())} kills; one job was taken up {killer.takes} times:")
    for name, count in sorted(killer.kills.items()):
        say(f"  {count:>3} at {name}")
    say("The steps that were under way then, of which there may be several:")
    for (kind, name), count in sorted(killer.steps.items()):
        say(f"  {count:>3} in the {kind} {name}")
    missed = [what for step, what in LEAST_MET.items() if step not in killer.steps]
    check(not missed, f"it was never killed in {', '.join(missed)}")
    return run, [asked["id"], escalated["id"]], sum(killer.kills.values())


def told(world, reader, run_id):
    """What the product's own command says of a run that has ended, to somebody who followed it."""
    done = world.server.command("follow", run_id, token=reader.token)
    check(done.returncode == 0, f"follow: {done.stdout}{done.stderr}")
    # The notes are on stderr; stdout has the output, which comes last.
    return [*done.stderr.splitlines(), *done.stdout.splitlines()]


def show_story(world, reader, run):
    begin("What the run says of itself: agent-runtime follow")
    for line in told(world, reader, run["id"]):
        say(line)
    events = reader.does("GET", f"/v1/runs/{run['id']}/progress?limit=200")["data"]
    check([event["seq"] for event in events] == list(range(1, len(events) + 1)), "an event is missing")
    below = reader.does("GET", f"/v1/runs?rootRunId={run['id']}&limit=200")["data"]
    # Two branches, a turn, two lines of the order, a flow.
    check([other["status"] for other in below] == ["completed"] * 6, "the runs below it are not six that completed")
    payment = next(other for other in below if other["flowId"] == "billing.pay")
    begin("What the payment says of itself")
    lines = told(world, reader, payment["id"])
    for line in lines:
        say(line)
    check(any("It will be tried again" in line for line in lines), "the payment was not tried again")


def show_logs(world, readers, approval_ids):
    """Each is read by somebody who has its role."""
    begin("The log of each approval")
    people = world.admin.does("GET", "/v1/identity/users?limit=200")["data"]
    names = {person["id"]: person["displayName"] for person in people}
    for reader, approval_id in zip(readers, approval_ids, strict=True):
        approval = reader.does("GET", f"/v1/approvals/{approval_id}")
        say(f"{approval['title']}, asked of {approval['requiredRole']}: {approval['status']}")
        for line in approval["log"]:
            by = f" by {names[line['userId']]}" if line.get("userId") else ""
            say(f"  {line['at'][11:19]}  {line['kind']}{by}")


def show_webhooks(receiver, run, approval_ids):
    begin("The webhook events received")
    wanted = {*approval_ids, "finished"}

    def told():
        with receiver.lock:
            events = list(receiver.events.values())
        names = [event["id"] if event["type"] == "approval.requested" else "finished" for event in events]
        return events if set(names) >= wanted else None

    # A kill may have cut an attempt: the next one comes after a minute, the one after that after five.
    events = eventually("the events to arrive", told, patience_s=MOST_S)
    for event in events:
        what = event["data"].get("approval", event["data"].get("run"))
        say(f"{event['type']:<20} {json.dumps(what)[:150]}")
    check(not receiver.refused, f"the receiver refused: {receiver.refused}")
    check(CANARY not in json.dumps(events), "an event tells what the order says")
    finished = [event for event in events if event["type"] == "run.finished"]
    told = finished[0]["data"]["run"]
    check(told["id"] == run["id"] and "agent" not in told, f"run.finished says {told}")
    asked = collections.Counter(event["id"] for event in events if event["type"] == "approval.requested")
    return {
        "the requester's approval told once": asked[approval_ids[0]] == 1,
        "the lead's approval told once": asked[approval_ids[1]] == 1,
        "no other approval told": len(asked) == 2,
        "the end told once": len(finished) == 1,
    }


def tell(directory, opened):
    begin("What runs")
    world = World(directory, opened)
    say(f"the server: {world.server.url}; OpenFGA {OpenFga.VERSION}; PostgreSQL behind a relay")
    project_id, flow_id = build(world, directory)
    people = {
        "requester": world.person("Requester", "finance"),
        "lead": world.person("Finance lead", "finance-lead"),
    }
    body = {"userId": people["requester"].user_id, "role": "editor"}
    world.admin.does("POST", f"/v1/projects/{project_id}/memberships", body)
    run, approval_ids, kills = live(world, people, project_id, flow_id)
    show_story(world, people["requester"], run)
    show_logs(world, people.values(), approval_ids)
    done = show_webhooks(world.receiver, run, approval_ids)
    begin("What the tools were called for")
    for path, effects in world.shop.effects.items():
        keys = len(effects) + (path == "/payments")
        say(f"{path}: {world.shop.calls[path]} calls under {keys} idempotency keys, {len(effects)} done")
    payments, returns = (list(effects.values()) for effects in world.shop.effects.values())
    paid = sum(payment["amount"] for payment in payments)
    say(f"paid: {paid} EUR")
    # A call is counted as it begins: a kill may come before the provider has it.
    calls, had = run["usage"]["calls"], len(world.provider.calls())
    say(f"the agent's calls of its model, those that a kill cut among them: {calls}; the provider had {had}")
    check(1 <= had <= calls, f"the provider was called {had} times, of which the run counts {calls}")
    done["paid once"] = len(payments) == 1 and paid == ORDER["amount"]
    for line in ORDER["lines"]:
        done[f"{line} put back once"] = [put["line"] for put in returns].count(line) == 1
    check(all(done.values()), f"not done once: {[what for what, was in done.items() if not was]}")
    return f"kills: {kills}, effects done once: {sum(done.values())} of {len(done)}"


if __name__ == "__main__":
    sys.exit(run(tell, MOST_S))
