"""Model servers as they are: recorded answers, strict imitations, a server with one slot, and real servers. Only the public
API is used. What is not as a user expects is printed and counted, and everything else goes on."""

import base64
import collections
import concurrent.futures
import http.server
import json
import pathlib
import secrets
import sys
import threading
import time
import uuid

from model_real import REAL, have
from model_replay import FASTER, SUNNY, Case, Replay, judge
from model_servers import ALL, ANSWERS, KEY, MODEL, RESULTS, TOOLS, TURNS, Serving, Slot
from parts import ROOT, Failed, Postgres, Server, check, eventually, run, say
from webhooks import Api, begin

# Of which most is for a hundred turns with each real server, in a soak.
MOST_S = 3600
FINISHED = ("completed", "failed", "cancelled")
EXPECTED = pathlib.Path(__file__).with_name("models_expected.json")
FILES = ROOT / "tests" / "cases" / "models"
OBJECT = {"type": "object", "properties": {}}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
AT_ONCE = 24
SLOT_RUNS = 30
PATIENCE_S = 240


class Tools:
    """The tools' server: it knows which run called, and with which arguments."""

    def __init__(self):
        self.calls = collections.defaultdict(list)
        tools = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                tools.calls[body["runId"]].append([body["tool"], body["arguments"]])
                answer = tools.answer(self.path, body["tool"], body["arguments"]).encode()
                self.send_response(200)
                self.send_header("content-type", "text/plain; charset=utf-8")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, name="tools", daemon=True).start()

    @staticmethod
    def answer(path, tool, arguments):
        if path == "/replay":
            return "noon" if tool == "now" else SUNNY.replace("Paris", str(arguments.get("city")))
        return RESULTS[tool] if tool == "fare" else RESULTS[tool][arguments["city"]]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class World:
    """The server, and the one who uses it."""

    def __init__(self, directory, opened, keys):
        self.tools = Tools()
        opened.callback(self.tools.close)
        postgres = Postgres(directory)
        opened.callback(postgres.close)
        token = f"svc_bt_{secrets.token_hex(24)}"
        settings = {"SVC_TENANT_ID": str(uuid.uuid4()), "SVC_SEED_TOKEN": token, "SVC_LOG_FORMAT": "json"}
        if keys:
            settings["SVC_MODEL_KEYS"] = ",".join(f"{name}={origin}" for name, (origin, _) in keys.items())
            settings |= {name: key for name, (_, key) in keys.items()}
        self.server = Server(directory, postgres.url, settings)
        opened.callback(self.server.close)
        self.server.start()
        self.admin = Api(self.server.url, token)
        self.project_id = None

    def project(self, name):
        """From here on all is in a project of its own, since tools of one name are."""
        self.project_id = self.admin.does("POST", "/v1/projects", {"name": name})["id"]

    def tool(self, name, path, schema, description="A tool."):
        body = {
            "projectId": self.project_id, "name": name, "description": description, "argumentsSchema": schema,
            "url": f"{self.tools.url}{path}",
        }
        return self.admin.does("POST", "/v1/tools", body)["id"]

    def provider(self, name, url, model, options=None, key=None, window=None):
        about = {"name": model, "prices": {"prompt": 1, "completion": 2}} | ({"contextWindow": window} if window else {})
        body = {"name": name, "baseUrl": url, "models": [about], "serverOptions": options or {}}
        return self.admin.does("POST", "/v1/model-providers", body | ({"apiKeyName": key} if key else {}))["id"]

    def agent(self, name, provider_id, model, tools=(), **version):
        agent = self.admin.does("POST", "/v1/agents", {"projectId": self.project_id, "name": name})
        body = {"version": "1.0.0", "instructions": "Answer from the tools.", "modelProviderId": provider_id, "model": model}
        self.admin.does("POST", f"/v1/agents/{agent['id']}/versions", {**body, "toolIds": list(tools), **version})
        return agent["id"]

    def conversation(self, agent_id):
        return self.admin.does("POST", "/v1/conversations", {"agentId": agent_id})["id"]

    def start(self, agent_id, message, conversation_id=None):
        body = {"agentId": agent_id, "message": message}
        if conversation_id is not None:
            body["conversationId"] = conversation_id
        return self.admin.does("POST", "/v1/runs", body)["run"]["id"]

    def ended(self, run_id, patience_s=PATIENCE_S):
        def found():
            run = self.admin.does("GET", f"/v1/runs/{run_id}")
            return run if run["status"] in FINISHED else None

        # Many look at once.
        return eventually(f"run {run_id} to end", found, patience_s=patience_s, every_s=0.2)

    def text(self, run_id):
        output = self.admin.does("GET", f"/v1/runs/{run_id}/payload")["output"]
        return output.get("text") if output else None

    def events(self, run_id):
        return self.admin.does("GET", f"/v1/runs/{run_id}/progress?limit=200")["data"]

    def answers(self, run_id):
        """What the run's steps of a model ended with."""
        ended = [event["data"] for event in self.events(run_id) if event["kind"] == "step.completed"]
        return [data for data in ended if data["type"] == "model"]

    def finish(self, run_id):
        answers = self.answers(run_id)
        return answers[-1].get("finishReason") if answers else None

    def turn(self, agent_id, message, conversation_id=None):
        run_id = self.start(agent_id, message, conversation_id)
        return self.ended(run_id)


# The recorded cases.


def replayed(world, case, tools):
    """What becomes of a case's run, or of its last turn."""
    told = case.told
    provider_id = world.provider(f"replay {case.name}", f"{case.url}/{case.name}/v1", "m", told.get("options"))
    version = dict(told.get("version", {}))
    version.setdefault("limits", {})["turnTimeoutMs"] = 200_000
    agent_id = world.agent(case.name.lower(), provider_id, "m", tools, **version)
    conversation_id = world.conversation(agent_id) if told.get("fails") else None
    began = time.monotonic()
    before = []
    if told.get("fails"):
        first = world.turn(agent_id, "one", conversation_id)
        if first["status"] != "failed":
            before.append(f"the first turn {first['status']}")
    run_id = world.start(agent_id, "two" if told.get("fails") else "What is the weather in Paris?", conversation_id)
    run = world.ended(run_id)
    models = world.answers(run_id)
    times = case.times
    return {
        "status": run["status"], "failure": run["failureMessage"],
        "text": world.text(run_id) if run["status"] == "completed" else None,
        "calls": world.tools.calls[run_id], "tokens": (models[-1].get("tokens") or {}) if models else {},
        "finish": models[-1].get("finishReason") if models else None, "requests": len(case.requests),
        "took_s": time.monotonic() - began, "gap_s": times[1] - times[0] if len(times) > 1 else 0,
        "problems": before + case.problems(),
    }


def replay(world, cases, scores):
    world.project("replay")
    tools = [world.tool("weather", "/replay", CITY), world.tool("now", "/replay", OBJECT)]
    vendors = collections.defaultdict(lambda: [0, 0])

    def one(case):
        try:
            found = replayed(world, case, tools)
            return case, found, judge(case.told, found)
        except Failed as fault:
            return case, {"status": "unknown", "failure": str(fault)}, [str(fault)]

    # The slow ones begin first, so that the others go on beside them.
    queue = sorted(cases, key=lambda case: not case.told.get("slow", False))
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        results = sorted(pool.map(one, queue), key=lambda result: result[0].name)
    for case, found, wrong in results:
        became = found["failure"] or f"{(found['text'] or '')[:60]!r}"
        verdict = f"NOT AS EXPECTED: {'; '.join(wrong)}" if wrong else "as expected"
        say(f"{case.name} ({case.told['vendor']}): {verdict} · {found['status']} · {became[:160]}")
        row = vendors[case.told["vendor"]]
        row[0] += not wrong
        row[1] += 1
        scores["as expected"] += not wrong
        scores["cases"] += 1
        scores["wrong"] += bool(wrong)
    begin("By vendor, as expected of cases")
    for vendor, (good, of) in sorted(vendors.items(), key=lambda row: row[0].lower()):
        say(f"{vendor:<24} {good:>3} of {of}")


# The same agent on eight servers.


def converse(world, serving, tools, scores):
    """Three turns of one conversation, of which the second one fails."""
    imitation = serving.imitation
    key = "SHOW_KEY" if imitation.name == "Azure" else None
    provider_id = world.provider(imitation.name, serving.url, MODEL, imitation.options, key)
    agent_id = world.agent(f"on {imitation.name}", provider_id, MODEL, tools)
    conversation_id = world.conversation(agent_id)
    wrong, calls = [], []
    for turn, (question, answer) in enumerate(zip(TURNS, ANSWERS, strict=True), 1):
        run_id = world.start(agent_id, question, conversation_id)
        run = world.ended(run_id)
        calls += world.tools.calls[run_id]
        if answer is None:
            if run["status"] != "failed":
                wrong.append(f"turn {turn} {run['status']}")
            elif imitation.fails_with not in run["failureMessage"]:
                wrong.append(f"turn {turn} does not say {imitation.fails_with!r}: {run['failureMessage']}")
            else:
                say(f"{imitation.name}: turn {turn} fails as its server does: {run['failureMessage'][:140]}")
            continue
        scores["runs"] += 1
        if run["status"] != "completed":
            wrong.append(f"turn {turn}: {run['failureMessage']}")
        elif world.text(run_id) != answer:
            wrong.append(f"turn {turn} says {world.text(run_id)!r}")
        else:
            scores["completed"] += 1
    failed = [["fare", {"from": "Paris", "to": "Lyon"}]] if imitation.fails_at == 2 else []
    wanted = [["weather", {"city": "Paris"}], *failed, ["fare", {"from": "Paris", "to": "Lyon"}], ["weather", {"city": "Lyon"}]]
    if calls != wanted:
        wrong.append(f"the tools were called as {calls}")
    if not imitation.earlier:
        wrong.append("the third turn does not have what the first one's tools answered")
    scores["wrong"] += bool(wrong)
    asked = f"{imitation.requests} requests, {len(imitation.refused)} of them refused"
    say(f"{imitation.name}{' (thinks)' if imitation.thinks else ''}: {'NOT AS EXPECTED: ' if wrong else 'as expected'}"
        f"{'; '.join(wrong)} · {asked}")
    for words in dict.fromkeys(imitation.refused):
        say(f"    it refused: {words[:150]}")


def on_eight_servers(world, servings, scores):
    world.project("eight servers")
    tools = [world.tool(f"{name}", "/journey", {"type": "object", "properties": fields, "required": list(fields)}, about)
             for name, about, fields in TOOLS]
    for serving in servings:
        try:
            converse(world, serving, tools, scores)
        except Failed as fault:
            say(f"{serving.imitation.name}: NOT AS EXPECTED: {fault}")
            scores["wrong"] += 1


# Thirty runs, one slot.


def on_one_slot(world, serving, scores):
    world.project("one slot")
    slot = serving.imitation
    provider_id = world.provider(slot.name, serving.url, MODEL, {"callsAtOnce": 1})
    agent_id = world.agent("thirty at once", provider_id, MODEL)
    began = time.monotonic()
    ids = [world.start(agent_id, f"Hello, {n}.") for n in range(SLOT_RUNS)]
    ended = [world.ended(run_id) for run_id in ids]
    completed = sum(run["status"] == "completed" for run in ended)
    scores["runs"] += SLOT_RUNS
    scores["completed"] += completed
    good = completed == slot.requests == SLOT_RUNS and slot.most == 1
    scores["wrong"] += not good
    say(f"{'as expected' if good else 'NOT AS EXPECTED'}: {completed} of {SLOT_RUNS} runs completed with {slot.requests} requests, "
        f"{slot.most} at once at most, in {time.monotonic() - began:.0f} s")


# Real servers.


def on_real_servers(world, directory, opened, scores):
    world.project("real servers")
    running = {}
    for kind in REAL:
        missing = have(kind)
        if missing:
            say(f"{kind.name}: could not be had: {missing}")
            continue
        try:
            real = kind(directory, opened, running)
            say(f"{real.name} {real.version} with {real.model}")
            for what, works in real.shows(world):
                if what.startswith("run "):
                    scores["runs"] += 1
                    scores["completed"] += works is True
                scores["wrong"] += works is not True
                say(f"  {what}: {'as expected' if works is True else f'NOT AS EXPECTED: {works}'}")
        except Failed as fault:
            say(f"{kind.name}: NOT AS EXPECTED: {fault}")
            scores["wrong"] += 1


def tell(directory, opened):
    parts = sys.argv[1:] or ["replay", "servers", "slot", "real"]
    scores = collections.Counter()
    told = json.loads(EXPECTED.read_text())
    cases = {name: Case(name, FILES / f"{name}.txt", about) for name, about in told.items()}
    served = Replay(cases)
    opened.callback(served.close)
    for case in cases.values():
        case.url = served.url
    servings = [Serving(imitation()) for imitation in ALL]
    slot = Serving(Slot(0.2))
    for serving in [*servings, slot]:
        opened.callback(serving.close)
    azure = next(serving for serving in servings if serving.imitation.name == "Azure")
    world = World(directory, opened, {"SHOW_KEY": (azure.origin, KEY)})
    say(f"the server: {world.server.url}, {world.server.binary}")
    if "replay" in parts:
        begin(f"Each recorded case; pauses of the slow ones are {FASTER} times as short, and so are their limits")
        replay(world, list(cases.values()), scores)
    if "servers" in parts:
        begin("One agent with two tools on eight servers, three turns each, of which the second one fails")
        on_eight_servers(world, servings, scores)
    if "slot" in parts:
        begin("Thirty runs on a server with one slot")
        on_one_slot(world, slot, scores)
    if "real" in parts:
        begin("Real servers, with a tiny model of random weights")
        on_real_servers(world, directory, opened, scores)
    figure = (f"models: {scores['as expected']} of {scores['cases']} cases as expected, {scores['completed']} of "
              f"{scores['runs']} runs completed")
    if scores["wrong"]:
        print(figure)
        raise Failed(f"{scores['wrong']} things are not as expected")
    return figure


if __name__ == "__main__":
    sys.exit(run(tell, MOST_S))
