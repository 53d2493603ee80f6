"""The story of some webhooks: a secret is stored, two receivers are registered, runs finish, the server
is killed before an event and during an attempt, and every event arrives. What arrives is verified by a
library that is not ours. Only the public API is used, and nothing is hastened."""

import base64
import collections
import glob
import http.server
import json
import re
import secrets
import socket
import sys
import threading
import time
import uuid

import httpx
from standardwebhooks import Webhook, WebhookVerificationError

from parts import PATIENCE_S, Failed, Postgres, Provider, Server, check, eventually, run, say

FAST, SLOW = "Say it.", "Say it slowly."
ANSWER = "It is said, and what was said is not in the event: who wants it reads it from the run."
FIXTURES = [
    # About three seconds, so that there is time to kill.
    {
        "match": {"userMessage": SLOW},
        "response": {"content": ANSWER},
        "latency": 200,
        "chunkSize": 6,
    },
    {"match": {}, "response": {"content": ANSWER}},
]
ENVIRONMENT, SECRET = "prod", "RECEIVER_SIGNING"
# The whole show takes about 30 seconds, of which the attempt that a kill hid takes twelve.
MOST_S = 90
FINISHED = ("completed", "failed", "cancelled")
# Of one attempt; the default is 10 s. What a kill hid is found this and 7 s after it began.
ATTEMPT_MS = 4000
AGAIN = r"retrying after \d+ attempts?: %s, (next attempt \S+Z|an attempt is under way)"
NOTHING_LISTENING = re.compile(AGAIN % "nothing listening")
HIDDEN = re.compile(AGAIN % "connection failed")
DELIVERED = re.compile(r"delivered after \d+ attempts?")


def begin(title):
    print(f"{title}:", flush=True)


class Api:
    """The public API, with a tenant admin's key."""

    def __init__(self, url, token):
        headers = {"authorization": f"Bearer {token}"}
        self.http = httpx.Client(base_url=url, headers=headers, timeout=PATIENCE_S)

    def does(self, method, path, body=None, status=None):
        """The answer, which has this status, or a good one."""
        response = self.http.request(method, path, json=body)
        good = response.is_success if status is None else response.status_code == status
        check(good, f"{method} {path}: {response.status_code} {response.text}")
        return response.json() if response.content else None


class Receiver:
    """Somebody's receiver, in this process: it verifies what comes, keeps each event once, and can hold
    an answer back."""

    def __init__(self, secret):
        self.webhook = Webhook(secret)
        self.events, self.times = {}, collections.Counter()
        self.refused = []
        self.lock = threading.Lock()
        self.holds = None
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                status = receiver.take(dict(self.headers), body)
                try:
                    self.send_response(status)
                    self.send_header("content-length", "0")
                    self.end_headers()
                except OSError:
                    # The server was killed while the answer was held back.
                    self.close_connection = True

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/webhooks"
        self.thread = threading.Thread(target=self.server.serve_forever, name="receiver", daemon=True)
        self.thread.start()

    def take(self, headers, body):
        """Verifies one request and keeps it; the status of the answer."""
        headers = {name.lower(): value for name, value in headers.items()}
        try:
            event = self.webhook.verify(body, headers)
        except WebhookVerificationError as fault:
            self.refused.append(f"{fault}: {headers} {body!r}")
            return 400
        wrong = self.wrong(headers, body, event)
        if wrong:
            self.refused.append(wrong)
            return 400
        with self.lock:
            self.events.setdefault(event["id"], event)
            self.times[event["id"]] += 1
            held, self.holds = self.holds, None
        if held:
            held.event = event
            held.came.set()
            held.over.wait(PATIENCE_S)
        return 204

    def wrong(self, headers, body, event):
        """What is not as it is to be, beside the signature."""
        wanted = {"content-type": "application/json", "user-agent": "Svc-Webhooks/1"}
        for name, value in wanted.items():
            if headers.get(name) != value:
                return f"{name} is {headers.get(name)}"
        if headers["webhook-id"] != event["id"]:
            return f"webhook-id is {headers['webhook-id']}, and the event's id {event['id']}"
        # A receiver that takes anything would verify nothing.
        try:
            self.webhook.verify(body.replace(b"}", b" }", 1), headers)
        except WebhookVerificationError:
            return None
        return "an altered body was verified, too"

    def hold(self):
        """Holds the answer to the next request back."""
        self.holds = Held()
        return self.holds

    def runs(self):
        """The runs that events told of, by id: each event once."""
        with self.lock:
            events = [event for event in self.events.values() if event["type"] == "run.finished"]
        runs = {event["data"]["run"]["id"]: event for event in events}
        check(len(runs) == len(events), "two events tell of one run")
        return runs

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Held:
    """An answer that is held back until `over` is set."""

    def __init__(self):
        self.came, self.over = threading.Event(), threading.Event()
        self.event = None


class Shown:
    """What there is, and what has finished."""

    def __init__(self, server, api, agent_id):
        self.server, self.api, self.agent_id = server, api, agent_id
        self.finished = {}

    def start_run(self, message=FAST):
        body = {"agentId": self.agent_id, "message": message}
        return self.api.does("POST", "/v1/runs", body)["run"]["id"]

    def completed(self, run_id):
        """The run, once it has."""

        def ended():
            run = self.api.does("GET", f"/v1/runs/{run_id}")
            return run if run["status"] in FINISHED else None

        run = eventually(f"run {run_id} to end", ended)
        check(run["status"] == "completed", f"run {run_id} {run['status']}: {run['failureMessage']}")
        return run

    def finish(self, run_id):
        """Waits until it has completed, which is to be told."""
        self.finished[run_id] = self.completed(run_id)
        return self.finished[run_id]

    def register(self, url):
        body = {
            "url": url,
            "events": ["run.finished"],
            "secretRef": {"envName": ENVIRONMENT, "name": SECRET},
        }
        made = self.api.does("POST", "/v1/webhook-endpoints", body, status=201)
        check(made["url"] == url and made["state"] == "healthy", f"the endpoint is {made}")
        return f"/v1/webhook-endpoints/{made['endpointId']}"

    def deliveries(self, endpoint):
        """Newest first."""
        page = self.api.does("GET", f"{endpoint}/deliveries?limit=200")
        check(not page["hasMore"], "there are more deliveries than there were events")
        return page["data"]

    def delivery(self, endpoint, delivery_id):
        return self.api.does("GET", f"{endpoint}/deliveries/{delivery_id}")

    def rests(self, endpoint, story):
        """Waits until this is the story of every delivery, so that a kill hides no attempt there."""

        def all_told():
            return all(story.fullmatch(one["summary"]) for one in self.deliveries(endpoint))

        eventually("the attempts to end", all_told)

    def told(self, endpoint, delivery_id, story, what):
        """The delivery, once its story is this."""

        def found():
            delivery = self.delivery(endpoint, delivery_id)
            return delivery if story.fullmatch(delivery["summary"]) else None

        return eventually(what, found)


def make_agent(api, provider):
    project = api.does("POST", "/v1/projects", {"name": "show"})
    body = {"name": "elsewhere", "baseUrl": f"{provider.url}/v1", "models": [{"name": "m"}]}
    made = api.does("POST", "/v1/model-providers", body)
    agent = api.does("POST", "/v1/agents", {"projectId": project["id"], "name": "speaker"})
    version = {"version": "1.0.0", "instructions": "Answer.", "modelProviderId": made["id"]}
    api.does("POST", f"/v1/agents/{agent['id']}/versions", {**version, "model": "m"})
    api.does("POST", f"/v1/agents/{agent['id']}/promote", {"version": "1.0.0"})
    return agent["id"]


def key_file(directory, name):
    """A key of 32 bytes that its owner alone can read."""
    path = directory.path / name
    path.touch(mode=0o600)
    path.write_bytes(secrets.token_bytes(32))
    return str(path)


def start(directory, opened):
    """Everything that runs, with an agent and no webhooks yet."""
    provider = Provider(directory, FIXTURES)
    opened.callback(provider.close)
    postgres = Postgres(directory)
    opened.callback(postgres.close)
    token = f"svc_bt_{secrets.token_hex(24)}"
    server = Server(
        directory,
        postgres.url,
        {
            "SVC_TENANT_ID": str(uuid.uuid4()),
            "SVC_SEED_TOKEN": token,
            "SVC_SECRETS_BACKEND": "postgres",
            "SVC_SECRETS_BACKEND_KMS": "local",
            "SVC_SECRETS_LOCAL_KEY_PATH": key_file(directory, "wrapping.key"),
            "SVC_SECRETS_AAD_KEY_PATH": key_file(directory, "aad.key"),
            "SVC_WEBHOOK_TIMEOUT_MS": str(ATTEMPT_MS),
            # A dead server's runs and attempts are taken over after this; the default is 15 s.
            "SVC_RUN_LEASE_MS": "1500",
        },
    )
    opened.callback(server.close)
    server.start()
    say(f"the server: {server.url} (process {server.process.pid}), secrets in its database")
    api = Api(server.url, token)
    return Shown(server, api, make_agent(api, provider))


def holds(path, secret):
    try:
        with open(path, "rb") as arguments:
            return secret[len("whsec_") :].encode() in arguments.read()
    except OSError:
        return False  # The process has ended.


def show_secret(shown, secret):
    begin("A signing secret goes in, and does not come out")
    path = f"/v1/secrets/{ENVIRONMENT}/{SECRET}"
    unknown = {"url": "http://127.0.0.1:9/", "events": ["run.finished"]}
    unknown["secretRef"] = {"envName": ENVIRONMENT, "name": SECRET}
    answer = shown.api.does("POST", "/v1/webhook-endpoints", unknown, status=400)["error"]
    check(answer["code"] == "webhook-secret-not-found", f"without a secret: {answer}")
    say(f"before it is there: 400 {answer['code']}: {answer['message']}")
    put = shown.api.does("PUT", path, {"value": secret}, status=201)
    say(f"put: 201 {json.dumps({name: put[name] for name in ('environment', 'name', 'version')})}")
    seen = json.dumps([put, shown.api.does("GET", path), shown.api.does("GET", "/v1/secrets")])
    check(secret[len("whsec_") :] not in seen, "the API showed the secret's value")
    shown_to_all = [path for path in glob.glob("/proc/[0-9]*/cmdline") if holds(path, secret)]
    check(not shown_to_all, f"a process has the secret among its arguments: {shown_to_all}")


def show_addresses(shown):
    begin("Where webhooks may not go, whatever the settings")
    address = "169.254.169.254"
    url = f"https://{address}/latest/meta-data"
    checked = shown.api.does("POST", "/v1/webhook-endpoints/check-url", {"url": url})
    refusal = checked.get("refusal", {})
    check(not checked["allowed"] and refusal["address"] == address, f"{url}: {checked}")
    say(f"{url}: {refusal['message']}")


def show_tests(shown, alive, dead):
    begin("A test to each")
    for name, endpoint, story in (("alive", alive, DELIVERED), ("dead", dead, NOTHING_LISTENING)):
        sent = shown.api.does("POST", f"{endpoint}/test", status=202)
        check(sent["isTest"], f"the list does not show a test as one: {sent}")
        told = shown.told(endpoint, sent["id"], story, f"the test of the {name} receiver")
        say(f"{name}: {told['summary']}")


def show_runs(shown, receiver, count):
    begin(f"{count} runs finish")
    run_ids = [shown.start_run() for _ in range(count)]
    for run_id in run_ids:
        shown.finish(run_id)
        event = arrived(receiver, run_id)
        check_event(event, shown.finished[run_id])
        say(f"run {run_id}: {event['type']} arrived and verified, as the run is read")


def arrived(receiver, run_id):
    return eventually(f"the event of run {run_id}", lambda: receiver.runs().get(run_id))


def check_event(event, run):
    """The event's fields are those of the run as it is read."""
    told = event["data"]["run"]
    for name, value in told.items():
        check(run[name] == value, f"run {run['id']}: {name} is {run[name]}, the event says {value}")
    check({"id", "status", "usage", "agent"} <= set(told), f"the event has only {list(told)}")
    check("input" not in told and "output" not in told, f"the event carries {list(told)}")


def kill(shown, what):
    shown.server.kill()
    say(f"killed the server (process {shown.server.process.pid}) {what}")


def start_again(shown):
    began = time.monotonic()
    shown.server.start()
    say(f"started it again: ready after {time.monotonic() - began:.1f} s")


def show_kill_before(shown, receiver, alive, dead):
    begin("Killed while runs are being answered")
    shown.rests(alive, DELIVERED)
    shown.rests(dead, NOTHING_LISTENING)
    run_ids = [shown.start_run(SLOW) for _ in range(2)]

    def speaking():
        progress = (shown.api.does("GET", f"/v1/runs/{run_id}/progress") for run_id in run_ids)
        kinds = [[event["kind"] for event in page["data"]] for page in progress]
        return all("step.started" in one for one in kinds)

    eventually("the runs to speak", speaking)
    kill(shown, "with two answers half said")
    early = set(run_ids) & set(receiver.runs())
    check(not early, f"ended before the server was killed: {early}")
    start_again(shown)
    for run_id in run_ids:
        shown.finish(run_id)
        check_event(arrived(receiver, run_id), shown.finished[run_id])
        say(f"run {run_id}: carried on, ended, and its event arrived and verified")


def show_kill_during(shown, receiver, alive, dead):
    """The receiver has the event, and the server dies before it hears so."""
    begin("Killed during an attempt, after the receiver has the event and before it has answered")
    shown.rests(alive, DELIVERED)
    held = receiver.hold()
    run_id = shown.start_run()
    check(held.came.wait(PATIENCE_S), "nothing was sent")
    check(held.event["data"]["run"]["id"] == run_id, "another event came")
    shown.rests(dead, NOTHING_LISTENING)
    kill(shown, "with the answer held back")
    start_again(shown)
    held.over.set()
    shown.finish(run_id)
    of_it = [one for one in shown.deliveries(alive) if one["eventId"] == held.event["id"]]
    check(len(of_it) == 1, f"the event has {len(of_it)} deliveries")
    say(f"its delivery: {of_it[0]['summary']}")
    say("what became of it is not known; whoever finds it waits until it cannot be in flight any more")
    told = shown.told(alive, of_it[0]["id"], HIDDEN, "the attempt to be found")
    say(f"its delivery: {told['summary']}")
    attempt = told["attempts"][0]
    check(attempt["reason"] == "connection-failed", f"the attempt is {attempt}")
    say(f"its attempt 1: {attempt['reason']}: {attempt['message']}")
    return told


def show_again(shown, receiver, alive, hidden):
    begin("Sent again, by hand, instead of a minute later by itself")
    event_id = hidden["eventId"]
    before = receiver.times[event_id]
    path = f"{alive}/deliveries/{hidden['id']}/resend"
    again = shown.api.does("POST", path, status=202)
    check(again["eventId"] == event_id, f"it is another event: {again}")
    check(again["id"] != hidden["id"], "it is no delivery of its own")
    told = shown.told(alive, again["id"], DELIVERED, "the event to arrive again")
    check(receiver.times[event_id] > before, "the receiver did not get it again")
    say(f"the new delivery: {told['summary']}")
    say(f"the receiver had it {receiver.times[event_id]} times under one webhook-id, and kept it once")


def show_stories(shown, alive, dead, hidden):
    """Every event has a delivery to each receiver, and each of them a story."""
    for name, endpoint, story in (("alive", alive, DELIVERED), ("dead", dead, NOTHING_LISTENING)):

        def fits(one):
            is_hidden = one["id"] == hidden["id"] and endpoint == alive
            wanted = (story, HIDDEN) if is_hidden else (story,)
            return any(one_story.fullmatch(one["summary"]) for one_story in wanted)

        def settled():
            deliveries = shown.deliveries(endpoint)
            return deliveries if all(fits(one) for one in deliveries) else None

        begin(f"The {name} receiver's deliveries, newest first")
        deliveries = eventually(f"the stories of the {name} receiver", settled)
        of_runs = {one["runId"] for one in deliveries if not one["isTest"]}
        check(of_runs == set(shown.finished), f"the {name} receiver has deliveries of {of_runs}")
        for one in deliveries:
            what = "a test" if one["isTest"] else f"run {one['runId'][-12:]} {one['runStatus']}"
            what += ", sent again" if one.get("resends") else ""
            say(f"{one['createdAt'][11:23]}  {what:<40}  {one['summary']}")
        view = shown.api.does("GET", endpoint)
        say(f"{view['state']}: {json.dumps(view['deliveries'])}")


def queued(shown):
    """How many deliveries the server says that it has written."""
    figure = r'^agent_runtime_webhook_deliveries_total\{state="queued"\} (\d+)$'
    found = re.search(figure, shown.api.http.get("/metrics").text, re.M)
    check(found, "/metrics has no figure of deliveries queued")
    return int(found.group(1))


def show_end(shown, receiver, endpoints):
    begin("Unregistered: nothing goes out any more")
    for name, endpoint in endpoints.items():
        shown.api.does("DELETE", endpoint, status=204)
        gone = shown.api.does("GET", endpoint, status=404)["error"]
        say(f"{name}: 204, and then 404: {gone['message']}")
    before = (sum(receiver.times.values()), queued(shown))
    run = shown.completed(shown.start_run())
    after = (sum(receiver.times.values()), queued(shown))
    check(after == before, f"received and queued before the end: {before}, and after it: {after}")
    say(f"run {run['id']} {run['status']}: nobody is told")


def tell(directory, opened):
    secret = f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"
    begin("What runs")
    shown = start(directory, opened)
    receiver = Receiver(secret)
    opened.callback(receiver.close)
    # Bound and not listening: nobody else can have the port.
    nobody = opened.enter_context(socket.socket())
    nobody.bind(("127.0.0.1", 0))
    dead_url = f"http://127.0.0.1:{nobody.getsockname()[1]}/webhooks"
    show_secret(shown, secret)
    show_addresses(shown)
    begin("Two receivers")
    alive, dead = shown.register(receiver.url), shown.register(dead_url)
    say(f"alive: {receiver.url}, which verifies with standardwebhooks from PyPI")
    say(f"dead:  {dead_url}, where nothing listens")
    show_tests(shown, alive, dead)
    show_runs(shown, receiver, 3)
    show_kill_before(shown, receiver, alive, dead)
    hidden = show_kill_during(shown, receiver, alive, dead)
    show_runs(shown, receiver, 2)
    show_again(shown, receiver, alive, hidden)
    show_stories(shown, alive, dead, hidden)
    show_end(shown, receiver, {"alive": alive, "dead": dead})
    check(not receiver.refused, f"the receiver refused: {receiver.refused}")
    check(secret[len("whsec_") :] not in directory.text("server"), "the secret is in the log")
    received = receiver.runs()
    lost = set(shown.finished) - set(received)
    if lost or set(received) != set(shown.finished):
        raise Failed(f"lost: {sorted(lost)}; received: {sorted(received)}")
    return (
        f"events finished: {len(shown.finished)}, received and verified: {len(received)}, "
        f"lost: {len(lost)}"
    )


if __name__ == "__main__":
    sys.exit(run(tell, MOST_S))
