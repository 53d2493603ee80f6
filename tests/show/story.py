"""The story: an agent with a tool is made and asked, its answer is watched, the line is cut, the
server is killed, and nothing is lost or done twice. Only the public API is used, through an HTTP
client and an SSE client that are not ours."""

import json
import secrets
import sys
import time
import uuid

import httpx
import httpx_sse

from parts import PATIENCE_S, Postgres, Provider, Server, Tool, check, run, say

QUESTION = "What is the weather in Kyōto?"
WEATHER = "sunny, 21 °C, light wind from the north"
ANSWER = (
    "In Kyōto it is sunny ☀ with 21 °C and a light wind from the north. It stays dry until the "
    "evening, so an umbrella is not needed; a light jacket is enough after sunset. Tomorrow begins "
    "with fog on the river and clears up by noon."
)
# The answer takes about six seconds, so that there is time to cut and to kill.
CHUNK_CHARACTERS = 6
CHUNK_EVERY_MS = 150
FIXTURES = [
    {
        "match": {"hasToolResult": True},
        "response": {"content": ANSWER, "usage": {"prompt_tokens": 80, "completion_tokens": 50}},
        "latency": CHUNK_EVERY_MS,
        "chunkSize": CHUNK_CHARACTERS,
    },
    {
        "match": {"hasToolResult": False},
        "response": {
            "toolCalls": [{"name": "weather", "arguments": {"city": "Kyōto"}}],
            "usage": {"prompt_tokens": 40, "completion_tokens": 10},
        },
    },
]
# The whole show takes about twenty seconds.
MOST_S = 90
FINISHED = ("run.completed", "run.failed", "run.cancelled")


class Api:
    """The public API, with one token."""

    def __init__(self, url, token):
        headers = {"authorization": f"Bearer {token}"}
        self.http = httpx.Client(base_url=url, headers=headers, timeout=PATIENCE_S)

    def get(self, path):
        return self.answer(self.http.get(path))

    def post(self, path, **body):
        return self.answer(self.http.post(path, json=body))

    @staticmethod
    def answer(response):
        check(response.is_success, f"{response.request.url}: {response.status_code} {response.text}")
        return response.json()


class Watcher:
    """A reader of one run's stream over several connections: what it saw, in order."""

    def __init__(self, api, run_id):
        self.api, self.path = api, f"/v1/runs/{run_id}/progress/stream"
        self.events = []
        self.texts = {}
        self.connections = 0

    @property
    def last(self):
        return self.events[-1]["seq"] if self.events else 0

    def read(self, until):
        """Connects, from the last number on, and reads until `until` says so or the stream ends.
        Leaving cuts the connection."""
        headers = {"last-event-id": str(self.last)} if self.events else {}
        self.connections += 1
        with httpx_sse.connect_sse(self.api.http, "GET", self.path, headers=headers) as source:
            status = source.response.status_code
            check(status == 200, f"the stream answered {status}")
            for event in source.iter_sse():
                # This client also gives what has no data, which the standard drops: the first
                # line of a stream, which says when to come back.
                if not event.data:
                    continue
                self.take(event.event, event.json())
                if until(self):
                    return

    def take(self, kind, data):
        if kind == "text.delta":
            key = (data["step"], data["attempt"])
            had = self.texts.get(key, "")
            # A new connection begins the text of the step anew, or goes on where it stands.
            check(data["offset"] <= len(had), f"text is missing before {data['offset']} in {key}")
            self.texts[key] = had[: data["offset"]] + data["text"]
        elif "seq" in data:
            check(data["kind"] == kind, f"event {data['seq']} is {kind} and {data['kind']}")
            self.events.append(data)
        else:
            check(kind == "stream.end", f"the stream said {kind}: {data}")

    def text(self):
        return self.texts[max(self.texts)] if self.texts else ""

    def is_finished(self):
        return bool(self.events) and self.events[-1]["kind"] in FINISHED


def make_agent(api, provider, tool):
    project = api.post("/v1/projects", name="show")
    model = {"name": "show-model", "prices": {"prompt": 1, "completion": 2}}
    made = api.post(
        "/v1/model-providers", name="elsewhere", baseUrl=f"{provider.url}/v1", models=[model]
    )
    weather = api.post(
        "/v1/tools",
        projectId=project["id"],
        name="weather",
        description="The weather in a city.",
        argumentsSchema={
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
        url=tool.url,
        timeoutMs=5000,
    )
    agent = api.post("/v1/agents", projectId=project["id"], name="forecaster")
    version = api.post(
        f"/v1/agents/{agent['id']}/versions",
        version="1.0.0",
        instructions="Answer from the tool.",
        modelProviderId=made["id"],
        model="show-model",
        toolIds=[weather["id"]],
    )
    api.post(f"/v1/agents/{agent['id']}/promote", version=version["version"])
    return agent["id"]


def watch(api, server, run_id):
    """The run from its first event to its last, over a cut and a kill. Returns the watcher, and the
    seconds from the restart to the end."""
    watcher = Watcher(api, run_id)
    watcher.read(until=lambda seen: seen.last >= 4)
    say(f"cut the line after event {watcher.last}")
    watcher.read(until=lambda seen: len(seen.text()) >= 40)
    say(f"resumed, and cut it after event {watcher.last} and {len(watcher.text())} characters")
    watcher.read(until=lambda seen: len(seen.text()) >= 120)
    say(f"resumed again: now {len(watcher.text())} characters")
    check(ANSWER.startswith(watcher.text()), f"the text reads {watcher.text()!r}")
    check(not watcher.is_finished(), "the run ended before the server was killed")
    server.kill()
    began = time.monotonic()
    say(f"killed the server (process {server.process.pid}) with the answer half said")
    server.start()
    say(f"started it again: ready after {time.monotonic() - began:.1f} s")
    watcher.read(until=lambda seen: False)
    return watcher, time.monotonic() - began


def check_events(api, run_id, watcher):
    """Every event came once, in order, and is what the API tells of the run afterwards."""
    numbers = [event["seq"] for event in watcher.events]
    wanted = list(range(1, len(numbers) + 1))
    check(numbers == wanted, f"event numbers came as {numbers}")
    progress = api.get(f"/v1/runs/{run_id}/progress?limit=200")
    check(progress["data"] == watcher.events, "the stream and the progress route differ")
    check(progress["run"]["lastSeq"] == len(numbers), f"there are {progress['run']['lastSeq']} events")


def check_steps(watcher, provider, tool):
    """What was finished was not done again; what was lost was."""
    kinds = [event["kind"] for event in watcher.events]
    started = [
        (event["data"]["step"], event["data"]["attempt"], event["data"]["type"])
        for event in watcher.events
        if event["kind"] == "step.started"
    ]
    wanted = [(1, 1, "model"), (2, 1, "tool"), (3, 1, "model"), (3, 2, "model")]
    check(started == wanted, f"the steps began as {started}")
    check(kinds.count("step.completed") == 3, f"the events are {kinds}")
    check(kinds.count("step.restarted") == 1, f"readers were not told of the lost call: {kinds}")
    check(len(tool.calls) == 1, f"the tool was called {len(tool.calls)} times")
    check(tool.calls[0]["arguments"] == {"city": "Kyōto"}, f"the tool got {tool.calls[0]}")
    calls = len(provider.calls())
    check(calls == 3, f"the provider was called {calls} times")


def check_answer(api, run, watcher):
    """The text that was streamed after the restart is the run's answer, and its usage counts all."""
    check(run["status"] == "completed", f"the run is {run['status']}: {run['failureMessage']}")
    output = api.get(f"/v1/runs/{run['id']}/payload")["output"]
    check(output == {"text": ANSWER}, f"the run's output is {output}")
    check(watcher.texts[(3, 2)] == ANSWER, f"the streamed text is {watcher.texts[(3, 2)]!r}")
    usage = run["usage"]
    check(usage["calls"] == 3, f"the lost call is not counted: {usage}")
    tokens = usage["tokens"]
    check((tokens["prompt"], tokens["completion"]) == (120, 60), f"the tokens are {tokens}")
    check(abs(usage["costUsd"] - 0.00024) < 1e-9, f"the cost is {usage['costUsd']}")


def tell(directory, opened):
    tool = Tool(WEATHER)
    opened.callback(tool.close)
    provider = Provider(directory, FIXTURES)
    opened.callback(provider.close)
    say(f"a model provider that is not ours: {provider.url}")
    postgres = Postgres(directory)
    opened.callback(postgres.close)
    token = f"svc_bt_{secrets.token_hex(24)}"
    server = Server(
        directory,
        postgres.url,
        {
            "SVC_TENANT_ID": str(uuid.uuid4()),
            "SVC_SEED_TOKEN": token,
            # A dead server's runs are taken over after this; the default is 15 s.
            "SVC_RUN_LEASE_MS": "5000",
        },
    )
    opened.callback(server.close)
    server.start()
    say(f"the server: {server.url} (process {server.process.pid})")
    api = Api(server.url, token)
    agent_id = make_agent(api, provider, tool)
    say("made over the API: a project, a model provider, a tool, an agent with a live version")
    started = api.post("/v1/runs", agentId=agent_id, message=QUESTION)["run"]
    say(f"run {started['id']}: {QUESTION}")
    watcher, took_s = watch(api, server, started["id"])
    ended = api.get(f"/v1/runs/{started['id']}")
    check_answer(api, ended, watcher)
    check_events(api, ended["id"], watcher)
    check_steps(watcher, provider, tool)
    for event in watcher.events:
        step = event["data"].get("step")
        where = f" (step {step}, attempt {event['data'].get('attempt', '–')})" if step else ""
        say(f"  {event['seq']:>2} {event['kind']}{where}")
    say(f"the answer: {ANSWER[:60]}…")
    say(f"its usage: {json.dumps(ended['usage'])}")
    say("the tool was called once, the provider three times: for the tool, lost, and again")
    return (
        f"events seen once: {len(watcher.events)}/{ended['lastSeq']} over {watcher.connections} "
        f"connections, lost call counted: yes, restart to finished: {took_s:.1f} s"
    )


if __name__ == "__main__":
    sys.exit(run(tell, MOST_S))
