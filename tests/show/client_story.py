"""The story of `tests/show/clients`, told with the Python client. `client_story.mjs` tells the same."""

import http.server
import json
import os
import threading
import time
import urllib.error
import urllib.request

from agent_runtime import AgentRuntime, AuthError, ConflictError
from agent_runtime.webhooks import WebhookSignatureError, parse_event

NAME, SECRET = os.environ["NAME"], os.environ["SECRET"]
ENVIRONMENT = "prod"
PATIENCE_S = 30


def say(line):
    print(line, flush=True)


def check(holds, otherwise):
    if not holds:
        raise SystemExit(otherwise)


class Receiver:
    """Receives webhooks in this process."""

    def __init__(self):
        self.events, self.refused = [], 0
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                try:
                    receiver.events.append(parse_event(body, self.headers, SECRET))
                    self.send_response(204)
                except WebhookSignatureError:
                    receiver.refused += 1
                    self.send_response(400)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, name="receiver", daemon=True).start()

    def first(self):
        deadline = time.monotonic() + PATIENCE_S
        while not self.events:
            check(time.monotonic() < deadline, "no webhook came")
            time.sleep(0.02)
        return self.events[0]


admin = AgentRuntime()

# People.
email = f"ada.{NAME}@example.com"
person = admin.users.add(email=email, display_name="Ada", tenant_role="member")
token = admin.enrolments.redeem(code=person.enrolment.code, name="laptop").token
ada = AgentRuntime(token=token)
say("people: Ada was added, and has a key")

# A project, first without a role in it.
project = admin.projects.create(name=f"story {NAME}")
try:
    ada.projects.access.list(project.id)
    check(False, "Ada reads who may do what")
except AuthError as error:
    check(error.reason == "forbidden" and "permission denied" in error.message and error.request_id, error.message)
    say(f"denial: {error.server_code}")
admin.projects.memberships.add(project.id, email=email.upper(), role="viewer")
try:
    admin.projects.memberships.add(project.id, email=email, role="editor")
    check(False, "a second role was added")
except ConflictError as error:
    say(f"conflict: {error.server_code}, Ada is {error.details['role']}")
admin.projects.memberships.update_role(project.id, person.id, role="editor")
roles = [entry.role for entry in ada.projects.access.list(project.id) if entry.principal.id == person.id]
say(f"project: Ada is {','.join(roles)}")

# Webhooks, which this process receives.
admin.secrets.put(ENVIRONMENT, f"SIGNING_{NAME}", value=SECRET)
receiver = Receiver()
endpoint = admin.webhook_endpoints.create(
    url=receiver.url,
    events=["run.finished"],
    secret_ref={"envName": ENVIRONMENT, "name": f"SIGNING_{NAME}"},
    filter={"projectId": project.id, "flowIds": ["agent.turn"]},
)

# An agent, whose answer is followed while the server is killed.
model = admin.model_providers.create(
    name=f"model {NAME}", base_url=os.environ["PROVIDER_URL"], models=[{"name": "show-model"}]
)
agent = admin.agents.create(project_id=project.id, name="forecaster")
admin.agents.versions.create(
    agent.id, version="1.0.0", instructions="Be brief.", model_provider_id=model.id, model="show-model"
)
say(f"agent: {admin.agents.promote(agent.id, version='1.0.0').live_version} is live")
run = ada.runs.create(agent_id=agent.id, message="What is the weather?").run
seen, text, is_said = [], "", False
for event in ada.runs.follow(run.id, max_silence=10):
    if event.kind != "text.delta":
        seen.append(event.raw)
        if event.kind == "step.started":
            text = ""
        continue
    check(len(text) == event.data.offset, f"text of {event.data.step}.{event.data.attempt} at {event.data.offset}")
    text += event.data.text
    if len(text) >= 40 and not is_said:
        is_said = True
        say("run: the answer is half said")
wanted = ada.runs.progress(run.id, limit=200).raw["data"]
check([dict(event) for event in seen] == wanted, f"{len(seen)} events of {len(wanted)}")
finished = ada.runs.wait(run.id)
check(ada.runs.payload(run.id).output["text"] == text, f"the text is {text}")
say(f"run: {finished.status} by {finished.agent.version}, {text}")
event = receiver.first()
check(event.data.run.id == run.id, event.data.run.id)
forged = {"webhook-id": "1", "webhook-timestamp": "1", "webhook-signature": "v1,AAAA"}
try:
    urllib.request.urlopen(urllib.request.Request(receiver.url, b"{}", forged))
    check(False, "a forged delivery was taken")
except urllib.error.HTTPError as answer:
    check(answer.code == 400 and receiver.refused == 1, "a forged delivery was taken")
say(f"webhook: {event.type}, version {event.data.run.agent.version}, {str(event.data.run.usage.calls > 0).lower()}")
admin.webhook_endpoints.unregister(endpoint.endpoint_id)
receiver.server.shutdown()

# A flow, which asks Ada.
admin.reviewers.register(user_id=person.id, role="finance")
ask = {"call": "approval", "with": {"title": "Refund of 180 EUR", "requiredRole": "finance", "context": "${ . }"}}
definition = {
    "document": {"dsl": "1.0.3", "namespace": f"story-{NAME}", "name": "refund", "version": "1.0.0"},
    "do": [{"ask": ask}],
}
admin.flows.create(project_id=project.id, definition=definition)
with ada.approvals.follow() as events:
    for event in events:
        if event.kind == "stream.start":
            refund = admin.runs.create(flow_id=f"story-{NAME}.refund", input={"orderId": "A-17"}).run
        if event.kind != "approval.waiting":
            continue
        approval = ada.approvals.get(event.data.approval_id)
        counts = ada.inbox.list().answer.raw["counts"]
        context = json.dumps(approval.raw["subject"]["context"], separators=(",", ":"))
        say(f"flow: {approval.title}, {context}, {str(any(count > 0 for count in counts.values())).lower()}")
        ada.approvals.decide(
            approval.id, decision="approve", comment="It came broken.", expected_digest=approval.subject.digest
        )
        break
ended = admin.runs.wait(refund.id)
steps = [f"{step.kind} {step.status}" for step in admin.runs.steps.list(refund.id)]
say(f"flow: {ended.status}, {','.join(steps)}")
first = admin.audit.authz(order="desc", limit=1, outcome="denied").data[0]
say(f"audit: {first.outcome} {str(first.actor_subject == f'user:{person.id}').lower()}")
print(json.dumps({"seen": len(seen), "events": finished.last_seq}))
