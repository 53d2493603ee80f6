"""Each fault that attacking, reading and operating the service once showed, tried from outside as it was found. A fault counts
as mended if the service does today what its pages promise. Only the public API is used, and the binary's own commands; what
breaks (connections, sessions of the database, descriptors) is broken for real."""

import base64
import contextlib
import http.server
import json
import resource
import secrets
import socket
import subprocess
import sys
import threading
import time
import uuid

import httpx

from parts import PATIENCE_S, Failed, OpenFga, Postgres, Server, check, eventually, free_port, run, say
from relay import Database
from webhooks import Api, Receiver, begin, key_file

MOST_S = 600
FINISHED = ("completed", "failed", "cancelled")
ENVIRONMENT, SECRET = "prod", "RECEIVER_SIGNING"
# What no event, log record or list may tell. Each place where data comes in has one of its own.
CANARIES = {
    place: f"canary-{number}-{place}"
    for number, place in enumerate(("input", "arguments", "tool", "body", "provider", "title", "comment"), 7411)
}


class Bank:
    """Tools and services of others, in this process: a payment that is made and whose answer is lost, answers in forms that
    are seldom tried, and what a service says when it fails."""

    def __init__(self):
        self.payments = []
        bank = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                if self.path == "/pay":
                    # The request was read, so the money is on its way; the answer never comes.
                    bank.payments.append(json.loads(body))
                    self.close_connection = True
                    return
                if self.path == "/refuses":
                    return self.send(404, CANARIES["body"].encode(), "text/plain")
                if self.path == "/latin":
                    return self.send(200, "café".encode("latin-1"), "text/plain; charset=iso-8859-1")
                if self.path.startswith("/v1/chat/completions"):
                    error = json.dumps({"error": {"message": CANARIES["provider"]}}).encode()
                    return self.send(400, error, "application/json")
                self.send(200, json.dumps({"said": CANARIES["tool"]}).encode(), "application/json")

            do_GET = do_POST = answer

            def send(self, status, body, kind):
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, name="bank", daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class World:
    """A server that checks who may do what, what it stands on, and the ones who use it."""

    def __init__(self, directory, opened):
        self.directory, self.opened = directory, opened
        self.bank = Bank()
        opened.callback(self.bank.close)
        self.postgres = Postgres(directory, [OpenFga.DATABASE, "narrow"])
        opened.callback(self.postgres.close)
        self.openfga = OpenFga(directory, self.postgres)
        opened.callback(self.openfga.close)
        self.openfga.start()
        signing = f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"
        self.receiver = Receiver(signing)
        opened.callback(self.receiver.close)
        self.token = f"svc_bt_{secrets.token_hex(24)}"
        self.settings = {
            "SVC_TENANT_ID": str(uuid.uuid4()),
            "SVC_SEED_TOKEN": self.token,
            "SVC_AUTHZ_API_URL": self.openfga.url,
            "SVC_SECRETS_BACKEND": "postgres",
            "SVC_SECRETS_BACKEND_KMS": "local",
            "SVC_SECRETS_LOCAL_KEY_PATH": key_file(directory, "wrapping.key"),
            "SVC_SECRETS_AAD_KEY_PATH": key_file(directory, "aad.key"),
            "SVC_LOG_FORMAT": "json",
        }
        self.server = Server(directory, self.postgres.url, self.settings)
        opened.callback(self.server.close)
        self.server.start()
        self.database = Database(self.postgres)
        opened.callback(self.database.close)
        self.slowest, self.found, self.person = None, None, None
        self.admin = Api(self.server.url, self.token)
        self.project_id = self.admin.does("POST", "/v1/projects", {"name": "faults"})["id"]
        self.admin.does("PUT", f"/v1/secrets/{ENVIRONMENT}/{SECRET}", {"value": signing})
        endpoint = {
            "url": self.receiver.url, "events": ["run.finished", "approval.requested"],
            "secretRef": {"envName": ENVIRONMENT, "name": SECRET},
        }
        self.admin.does("POST", "/v1/webhook-endpoints", endpoint)

    def definition(self, name, tasks, **parts):
        document = {"dsl": "1.0.3", "namespace": "faults", "name": name, "version": "1.0.0"}
        return {"document": document, "do": tasks, **parts}

    def push(self, definition):
        """The answer to a definition: a flow, or a refusal."""
        body = {"projectId": self.project_id, "definition": definition}
        return self.admin.http.post("/v1/flows", json=body)

    def flow(self, name, tasks, **parts):
        answer = self.push(self.definition(name, tasks, **parts))
        check(answer.status_code == 201, f"{name}: {answer.status_code} {answer.text}")
        return answer.json()["flowId"]

    def start(self, flow_id, input=None, **options):
        body = {"flowId": flow_id, "projectId": self.project_id, "input": input or {}, **options}
        return self.admin.does("POST", "/v1/runs", body)["run"]["id"]

    def ended(self, run_id, patience_s=PATIENCE_S):
        def found():
            run = self.admin.does("GET", f"/v1/runs/{run_id}")
            return run if run["status"] in FINISHED else None

        return eventually(f"run {run_id} to end", found, patience_s=patience_s)

    def output(self, name, tasks, input=None, **parts):
        """What a flow gives for an input."""
        run_id = self.start(self.flow(name, tasks, **parts), input)
        run = self.ended(run_id)
        check(run["status"] == "completed", f"{name}: {run['failureMessage']}")
        return self.admin.does("GET", f"/v1/runs/{run_id}/payload")["output"]

    def tool(self, name, path, **fields):
        body = {
            "projectId": self.project_id, "name": name, "description": f"Calls {path}.",
            "argumentsSchema": {"type": "object"}, "url": f"{self.bank.url}{path}", **fields,
        }
        return self.admin.does("POST", "/v1/tools", body)

    def command(self, *arguments):
        return self.server.command(*arguments, token=self.token)

    def log(self):
        """The server's log: its records, and its text."""
        text = self.directory.text(self.server.name)
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")], text

    def finished(self, run_id):
        """The event that the receiver got of this run's end."""

        def found():
            with self.receiver.lock:
                events = list(self.receiver.events.values())
            return next((event for event in events if event["data"].get("run", {}).get("id") == run_id), None)

        return eventually(f"the event of run {run_id}", found)

    def is_alive(self):
        return self.server.process.poll() is None and self.server.is_ready()


def definitions_that_nest(world):
    """Functions in a chain once ended the process; a stored definition did so again and again."""
    pid, accepted, refusal = world.server.process.pid, 0, None
    for depth in (8, 16, 32, 64, 120, 1000, 4000):
        functions = {f"f{n}": {"call": f"f{n + 1}"} for n in range(depth)}
        functions[f"f{depth}"] = {"set": {"done": True}}
        answer = world.push(world.definition(f"chain-{depth}", [{"go": {"call": "f0"}}], use={"functions": functions}))
        check(answer.status_code in (201, 400, 413), f"{depth} functions: {answer.status_code} {answer.text}")
        if answer.status_code == 201:
            run = world.ended(world.start(answer.json()["flowId"]))
            check(run["status"] == "completed", f"a chain of {depth} that was accepted: {run['failureMessage']}")
            accepted = depth
        elif refusal is None:
            refusal = depth, answer.json()["error"]["code"]
    check(accepted and refusal and refusal[0] > accepted, f"accepted {accepted}, refused {refusal}")
    check(world.is_alive() and world.server.process.pid == pid, "the server ended")
    return f"{accepted} functions in a chain run, {refusal[0]} are refused with {refusal[1]}, and the server goes on"


def a_binding_takes_the_whole_expression(world):
    tasks = [{"a": {"set": {"total": "${ .price * .qty as $sum | $sum + .ship }"}}}]
    output = world.output("as", tasks, {"price": 10, "qty": 3, "ship": 5})
    check(output == {"total": 35}, f"10 * 3 and 5 of shipping: {output}")
    return "`.price * .qty as $sum | $sum + .ship` of 10, 3 and 5 is 35"


def a_skipped_task_leads_to_the_next(world):
    guard = {"if": ".bad", "raise": {"error": {"type": "t", "status": 400, "title": "bad"}}, "then": "end"}
    output = world.output("guard", [{"guard": guard}, {"work": {"set": {"done": True}}}], {"bad": False})
    check(output == {"done": True}, f"behind a guard that was skipped: {output}")
    return "behind a guard that was skipped the work is done"


def a_declared_charset_is_read(world):
    call = {"call": "http", "with": {"method": "get", "endpoint": f"{world.bank.url}/latin"}}
    output = world.output("latin", [{"a": call}])
    check(output == "café", f"an answer in ISO-8859-1: {output!r}")
    return "an answer in ISO-8859-1 reads café"


def a_tree_without_end(world):
    """A flow that runs itself 60 times in parallel, beside a run of another tenant."""
    made = world.server.command("tenant", "create", "--name", "Other", "--json")
    check(made.returncode == 0, f"tenant create: {made.stderr}")
    other = Api(world.server.url, json.loads(made.stdout)["token"])
    project_id = other.does("POST", "/v1/projects", {"name": "other"})["id"]
    definition = world.definition("quick", [{"a": {"set": {"done": True}}}])
    other.does("POST", "/v1/flows", {"projectId": project_id, "definition": definition})

    def took():
        """How long a run of the other tenant takes, from its start to its end."""
        began = time.monotonic()
        run_id = other.does("POST", "/v1/runs", {"flowId": "faults.quick", "input": {}})["run"]["id"]
        path = f"/v1/runs/{run_id}"
        eventually("the other tenant's run", lambda: other.does("GET", path)["status"] == "completed", patience_s=60)
        return time.monotonic() - began

    usual = max(took() for _ in range(5))
    # Without a version the latest runs: the second one runs itself.
    body = {"projectId": world.project_id, "definition": world.definition("again", [{"a": {"set": {}}}])}
    flow = world.admin.does("POST", "/v1/flows", body)
    again = {"run": {"workflow": {"namespace": "faults", "name": "again", "input": {}}}}
    loop = {"for": {"in": "${ [range(60)] }"}, "metadata": {"concurrency": 60}, "do": [{"again": again}]}
    definition = world.definition("again", [{"all": loop}])
    definition["document"]["version"] = "1.1.0"
    world.admin.does("POST", f"/v1/flows/{flow['id']}/versions", {"definition": definition})
    root = world.start(flow["flowId"])
    count = f"select count(*) from runs where root_run_id = '{root}'"
    eventually("the tree to grow", lambda: int(world.database.ask(count)) > 2000, patience_s=120)
    beside = max(took() for _ in range(5))
    began = time.monotonic()
    world.admin.does("POST", f"/v1/runs/{root}/cancel", {})
    cancelled = time.monotonic() - began
    check(cancelled < 1, f"the cancel was answered after {cancelled:.1f} s")
    left = f"{count} and status not in ('completed', 'failed', 'cancelled')"
    eventually("nothing of the tree to be left", lambda: world.database.ask(left) == "0", patience_s=120)
    grown = int(world.database.ask(count))
    check(world.ended(root)["status"] == "cancelled", "the root was not cancelled")
    world.slowest = beside, usual
    return f"{grown} runs of one root; its cancel was answered in {cancelled * 1000:.0f} ms, and none of it is left"


def a_payment_whose_answer_is_lost(world):
    """The request was read and the connection broke. Whoever reads that nothing was sent pays twice."""
    world.tool("payments_pay", "/pay")
    ask = {"call": "tool", "with": {"tool": "payments_pay", "arguments": {"amount": 180}}}
    run_id = world.start(world.flow("pay", [{"pay": ask}]))
    run = world.ended(run_id)
    check(run["status"] == "failed", f"the run {run['status']}")
    check(len(world.bank.payments) == 1, f"{len(world.bank.payments)} payments were made")
    records, _ = world.log()
    ends = [record for record in records if record.get("runId") == run_id and "failure" in json.dumps(record).lower()]
    event = world.finished(run_id)
    said = {
        "the run": run["failureMessage"],
        "the webhook": event["data"]["run"]["failureMessage"],
        "runs show": world.command("runs", "show", run_id).stdout,
        "the log": json.dumps(ends),
        "the stream": json.dumps(world.admin.does("GET", f"/v1/runs/{run_id}/progress?limit=200")),
    }
    for place, text in said.items():
        check("could not be called" not in text, f"{place} says of a call that was made: {text}")
        check("nows whether" in text or "unknown" in text, f"{place} does not say that the outcome is unknown: {text}")
    return "run, webhook, command line, log and stream say that the outcome of the call is unknown"


def canaries(world):
    """Every kind of failure with data in it: none of it is in an event, a log record or a list."""
    expression = {"a": {"set": {"x": "${ .secret + 1 }"}}}
    raised = {"a": {"raise": {"error": {"type": "t", "status": 400, "title": "${ .title }"}}}}
    schema = {"schema": {"document": {"type": "object", "properties": {"secret": {"type": "number"}}}}}
    unfit = {"a": {"set": {"secret": "${ .secret }"}, "output": schema}}
    called = {"a": {"call": "http", "with": {"method": "get", "endpoint": f"{world.bank.url}/refuses"}}}
    world.tool("orders_get", "/orders", argumentsSchema={
        "type": "object", "properties": {"id": {"type": "string", "maxLength": 3}}, "additionalProperties": False,
    })
    misses = {"a": {"call": "tool", "with": {"tool": "orders_get", "arguments": {"id": "${ .arguments }"}}}}
    data = {"secret": CANARIES["input"], "title": CANARIES["title"], "arguments": CANARIES["arguments"]}
    flows = {
        "operand": ([expression], {}), "title": ([raised], {}), "schema": ([unfit], {}),
        "body": ([called], {}), "misses": ([misses], {}),
    }
    runs = [world.start(world.flow(f"canary-{name}", tasks, **parts), data) for name, (tasks, parts) in flows.items()]
    provider = {"name": "echo", "baseUrl": f"{world.bank.url}/v1", "models": [{"name": "m"}]}
    provider_id = world.admin.does("POST", "/v1/model-providers", provider)["id"]
    agent = world.admin.does("POST", "/v1/agents", {"projectId": world.project_id, "name": "echo"})["id"]
    version = {"version": "1.0.0", "instructions": "Echo.", "modelProviderId": provider_id, "model": "m"}
    world.admin.does("POST", f"/v1/agents/{agent}/versions", version)
    message = {"agentId": agent, "message": CANARIES["input"]}
    runs.append(world.admin.does("POST", "/v1/runs", message)["run"]["id"])
    for run_id in runs:
        run = world.ended(run_id, patience_s=60)
        check(run["status"] == "failed", f"run {run_id} {run['status']}")
    # The run itself keeps the whole text for those who may read it.
    whole = [world.admin.does("GET", f"/v1/runs/{run_id}")["failureMessage"] for run_id in runs]
    check(any(CANARIES["body"] in text for text in whole), f"no run says what the service answered: {whole}")
    events = [world.finished(run_id) for run_id in runs]
    places = {
        "events of webhooks": json.dumps(events),
        "the log": world.log()[1],
        "the list of runs": json.dumps(world.admin.does("GET", "/v1/runs?limit=200&children=true")),
        "the metrics": httpx.get(f"{world.server.url}/metrics", timeout=PATIENCE_S).text,
        "runs list": world.command("runs", "--children", "--limit", "200").stdout,
    }
    world.found = [f"{name} in {place}" for place, text in places.items() for name in CANARIES if CANARIES[name] in text]
    check(not world.found, f"data left the service: {world.found}")
    return f"{len(CANARIES)} canaries in {len(runs)} failures, none in {', '.join(places)}"


def a_list_of_starts(world):
    """Four starts of a flow with iterations, and a list of what was started."""
    each = {"for": {"in": "${ [range(4)] }"}, "metadata": {"concurrency": 4}, "do": [{"one": {"set": {"done": True}}}]}
    flow = world.flow("starts", [{"each": each}])
    started = [world.start(flow) for _ in range(4)]
    for run_id in started:
        check(world.ended(run_id)["status"] == "completed", f"run {run_id} did not complete")
    listed = f"/v1/runs?flowId={flow}&order=asc&limit=100"
    rows = world.admin.does("GET", listed)["data"]
    check([row["id"] for row in rows] == started, f"{len(rows)} rows of {len(started)} starts")
    check(all(row["childCount"] == 4 and "parentRunId" not in row for row in rows), f"the rows are {rows}")
    every = world.admin.does("GET", f"{listed}&children=true")["data"]
    children = [row for row in every if row.get("parentRunId") in started]
    check(len(every) == 20 and len(children) == 16, f"{len(every)} rows with child runs, {len(children)} of these below a start")
    check({row["branch"]["index"] for row in children} == set(range(4)), "an iteration has no index")
    lines = world.command("runs", "--flow", flow).stdout.splitlines()
    check(len(lines) == 5, f"`runs` shows {len(lines)} lines")
    lines = world.command("runs", "--flow", flow, "--children").stdout
    check("(each 4)" in lines, "`runs --children` does not name the iterations")
    return f"four starts: {len(rows)} rows, and {len(every)} with child runs"


def a_shortage_of_descriptors(world):
    """Idle connections take every descriptor while the database ends the sessions of a pool of two."""
    # Without authorization: the tenant's store is the other server's.
    settings = {**world.settings, "SVC_DATABASE_POOL_SIZE": "2"}
    del settings["SVC_AUTHZ_API_URL"]
    url = world.postgres.url.rsplit("/", 1)[0] + "/narrow"
    server = Server(world.directory, url, settings, "narrow")
    world.opened.callback(server.close)
    server.start()
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (256, 256))
    api = Api(server.url, world.token)
    crowd = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(400)]
    ended = "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = 'narrow'"
    world.database.ask(ended)
    with contextlib.suppress(Failed, httpx.TransportError):
        api.does("GET", "/v1/projects")
    for connection in crowd:
        connection.close()

    def answers():
        with contextlib.suppress(httpx.TransportError):
            return api.http.get("/v1/projects").status_code == 200

    eventually("the pool to work again", answers, server.process)
    check("panicked" not in world.directory.text("narrow"), "a thread panicked")
    server.close()
    return "after 400 idle connections and ended sessions of the database every request is answered again"


def arguments_that_miss_the_schema(world):
    """Once raised as a failed call, and tried again."""
    world.tool("orders_find", "/orders", argumentsSchema={"type": "object", "required": ["id"]})
    call = {"a": {"call": "tool", "with": {"tool": "orders_find", "arguments": {}}}}
    caught = {"catch": {"errors": {"with": {"status": 400}}, "as": "error", "do": [
        {"b": {"set": {"type": "${ $error.type }"}}},
    ]}}
    output = world.output("misses", [{"t": {"try": [call], **caught}}])
    check(output["type"].endswith("/errors/validation"), f"it raises {output}")
    return "arguments that miss a tool's schema raise validation, 400"


def a_failure_looks_like_one(world):
    call = {"a": {"call": "http", "with": {"method": "get", "endpoint": f"{world.bank.url}/refuses"}}}
    run_id = world.start(world.flow("refused", [{"lookup": call["a"]}]))
    world.ended(run_id)
    shown = world.command("runs", "show", run_id).stdout
    steps = [line for line in shown.splitlines() if "lookup" in line and not line.startswith("why")]
    line = next(iter(steps), None)
    check(line and "fail" in line.lower() and "done" not in line.split(), f"runs show says of the step: {shown}")
    return f"runs show: {' '.join(line.split())}"


def somebody_without_a_role(world):
    """A person of the tenant, with a key."""
    if world.person is None:
        body = {"email": "pat@example.com", "displayName": "Pat", "tenantRole": "member"}
        code = world.admin.does("POST", "/v1/identity/users", body)["enrolment"]["code"]
        answer = httpx.post(f"{world.server.url}/v1/identity/enrolments", json={"code": code}, timeout=PATIENCE_S)
        world.person = Api(world.server.url, answer.json()["token"])
    return world.person


def a_refusal_names_the_reviewer_role(world):
    refusal = somebody_without_a_role(world).does("GET", "/v1/approvals", status=403)["error"]["message"]
    check("review" in refusal and "can_read on tenant" not in refusal, f"it says: {refusal}")
    return refusal


def a_reported_request(world):
    """Somebody reports the id of a request that was refused to them."""
    refused = somebody_without_a_role(world).does("GET", f"/v1/projects/{world.project_id}", status=403)
    request_id = refused["error"]["requestId"]
    found = world.admin.does("GET", f"/v1/audit/authz?requestId={request_id}")["data"]
    check(found and all(one["requestId"] == request_id for one in found), f"the audit has {found} of {request_id}")
    shown = world.command("audit", "show", "--request", request_id)
    check(shown.returncode == 0 and "can_read" in shown.stdout, f"audit show: {shown.stdout}{shown.stderr}")
    return f"audit show --request {request_id[:12]}… finds the refusal"


def a_cookie_of_a_sibling_host(world):
    """A sibling host can set a cookie whose name begins with a space that is none of the protocol's."""
    page = {"origin": world.server.url, "sec-fetch-site": "same-origin"}
    answer = httpx.post(f"{world.server.url}/v1/sign-in/token", json={"token": world.token}, headers=page)
    check(answer.status_code == 204, f"signing in: {answer.status_code} {answer.text}")
    cookie = answer.headers["set-cookie"].split(";")[0]
    for prefix, status in (("", 200), ("\u00a0", 401), ("\u2003", 401), ("\x0b", 401)):
        sent = {**page, "cookie": (prefix + cookie).encode()}
        try:
            answer = httpx.get(f"{world.server.url}/v1/identity/me", headers=sent).status_code
        except httpx.TransportError:
            answer = 400
        good = answer == status or status == 401 and answer == 400
        check(good, f"a cookie behind {prefix!r} is answered {answer}")
    return "a cookie behind U+00A0 or U+2003 is no session"


def a_stream_of_strange_separators(world):
    """Readers that split lines as Unicode does broke at U+2028."""
    text = "one\u2028two\u2029three\u0085four"
    run_id = world.start(world.flow("separators", [{"a": {"raise": {"error": {
        "type": "t", "status": 400, "title": text,
    }}}}]))
    world.ended(run_id)
    answer = world.admin.http.get(f"/v1/runs/{run_id}/progress/stream")
    check(answer.status_code == 200, f"the stream: {answer.status_code}")
    for line in answer.text.splitlines():
        if line.startswith("data:"):
            json.loads(line[5:])
    return "each line of a stream is JSON for a reader that splits lines as Unicode does"


def a_receiver_that_fails(world):
    """An operator once learned of it after days."""
    url = f"http://127.0.0.1:{free_port()}/hooks"
    body = {"url": url, "events": ["run.finished"], "secretRef": {"envName": ENVIRONMENT, "name": SECRET}}
    endpoint_id = world.admin.does("POST", "/v1/webhook-endpoints", body)["endpointId"]
    world.admin.does("POST", f"/v1/webhook-endpoints/{endpoint_id}/test", {})

    def recorded():
        records, _ = world.log()
        return [one for one in records if endpoint_id in json.dumps(one) and one["level"] in ("warn", "error")]

    said = eventually("a record of the endpoint that fails", recorded, patience_s=60)[0]
    listed = world.command("webhooks").stdout
    check(url in listed and "failing" in listed, f"agent-runtime webhooks: {listed}")
    world.admin.does("DELETE", f"/v1/webhook-endpoints/{endpoint_id}")
    return f"the log: {said['message']!r}; agent-runtime webhooks shows it as failing"


def a_demonstration_on_a_closed_host(world):
    environment = {
        **world.server.environment, "SVC_HOST_ACCESS": "deployed", "HOME": "/nonexistent",
        "XDG_DATA_HOME": str(world.directory.path / "dev"),
    }
    for name in [name for name in environment if name.startswith("SVC_") and name != "SVC_HOST_ACCESS"]:
        del environment[name]
    command = [world.server.binary, "dev", "--demo", "--exit", "--port", "0"]
    done = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, timeout=120)
    check(done.returncode == 0, f"dev: {done.stdout}{done.stderr}")
    check("I asked the tool" in done.stdout, f"dev: {done.stdout}")
    return "SVC_HOST_ACCESS=deployed agent-runtime dev answers with its own example"


# Each fault, and what shows that it is mended.
FAULTS = {
    "a definition that nests": definitions_that_nest,
    "a tree of runs without end": a_tree_without_end,
    "a list of starts": a_list_of_starts,
    "a lost payment": a_payment_whose_answer_is_lost,
    "a binding of less than its expression": a_binding_takes_the_whole_expression,
    "a shortage of descriptors": a_shortage_of_descriptors,
    "data in what leaves": canaries,
    "the work behind a skipped task": a_skipped_task_leads_to_the_next,
    "a charset": a_declared_charset_is_read,
    "arguments that miss their schema": arguments_that_miss_the_schema,
    "a failure that looks like success": a_failure_looks_like_one,
    "a refusal that names the wrong right": a_refusal_names_the_reviewer_role,
    "a reported request": a_reported_request,
    "a cookie of a sibling host": a_cookie_of_a_sibling_host,
    "a stream of strange separators": a_stream_of_strange_separators,
    "a receiver that fails": a_receiver_that_fails,
    "a demonstration on a closed host": a_demonstration_on_a_closed_host,
}


def tell(directory, opened):
    begin("What runs")
    world = World(directory, opened)
    say(f"the server: {world.server.url}, {world.server.binary}")
    mended, failed = 0, []
    for name, look in FAULTS.items():
        begin(name[0].upper() + name[1:])
        try:
            say(look(world))
            mended += 1
        except (Failed, httpx.HTTPError) as fault:
            say(f"NOT MENDED: {fault}")
            failed.append(name)
            # The others are looked at as well.
            if not world.is_alive():
                world.server.close()
                world.server.start()
    check(not failed, f"not mended: {', '.join(failed)}")
    beside, usual = world.slowest
    return (
        f"faults mended: {mended} of {len(FAULTS)}, canaries found: {len(world.found)}, slowest run of the other tenant: "
        f"{beside * 1000:.0f} ms beside {usual * 1000:.0f} ms"
    )


if __name__ == "__main__":
    sys.exit(run(tell, MOST_S))
