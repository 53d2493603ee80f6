"""An operator's night: a model provider that is away, a tool that fails, a database that goes and comes back. Each
fault has to be seen in the server's log, in its metrics, and as an alert of a real Prometheus with the rules of the
packages, which names the page that says what to do."""

import json
import re
import secrets
import subprocess
import uuid

import httpx

from parts import PATIENCE_S, ROOT, Failed, Postgres, Provider, Server, check, end, eventually, free_port, say, set_up
from story import FINISHED, Api

RULES = ROOT / "packaging/monitoring/alerts.yml"
# What the rule asks for before it speaks of tools.
TOOL_CALLS = 12
FIXTURES = [
    {"match": {"hasToolResult": True}, "response": {"content": "The printer does not answer."}},
    {
        "match": {"hasToolResult": False},
        "response": {"toolCalls": [{"name": "print", "arguments": {"page": n}} for n in range(TOOL_CALLS)]},
    },
]


class Prometheus:
    """A real one, with the packages' rules. What a rule waits before it speaks is cut to a second."""

    def __init__(self, directory, server):
        program = set_up() / "prometheus/prometheus"
        if not program.exists():
            raise Failed(f"{program} is missing: run make setup")
        home = directory.path / "prometheus"
        home.mkdir()
        rules = re.sub(r"^(\s+for:) .*$", r"\1 1s", RULES.read_text(), flags=re.MULTILINE)
        (home / "alerts.yml").write_text(rules)
        (home / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(home / "alerts.yml")],
            "scrape_configs": [{
                "job_name": "agent-runtime",
                "static_configs": [{"targets": [f"127.0.0.1:{server.port}"]}],
            }],
        }))
        port = free_port()
        with directory.log("prometheus") as log:
            self.process = subprocess.Popen(
                [program, f"--config.file={home / 'prometheus.yml'}", f"--storage.tsdb.path={home / 'data'}"]
                + [f"--web.listen-address=127.0.0.1:{port}"],
                cwd=home, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S)
        try:
            eventually("Prometheus", self.scrapes, self.process)
        except BaseException:
            self.close()
            raise

    def scrapes(self):
        """Whether it has read the server's metrics, twice: the growth of a counter takes two samples."""
        try:
            query = {"query": "count_over_time(agent_runtime_ready[1m])"}
            found = self.http.get("/api/v1/query", params=query).json()["data"]["result"]
        except (httpx.TransportError, KeyError, ValueError):
            return False
        return bool(found) and float(found[0]["value"][1]) >= 2

    def firing(self, name):
        alerts = self.http.get("/api/v1/alerts").json()["data"]["alerts"]
        return [one for one in alerts if one["labels"]["alertname"] == name and one["state"] == "firing"]

    def close(self):
        end(self.process)


class Night:
    """What an operator can look at, and a count of what was seen there."""

    def __init__(self, directory, server, prometheus):
        self.directory, self.server, self.prometheus = directory, server, prometheus
        self.made = self.seen = 0

    def records(self, message):
        """The log's records with this message. A line may be half written."""
        for line in self.directory.text(self.server.name).splitlines():
            if message in line and line.endswith("}"):
                record = json.loads(line[line.index("{"):])
                if record["message"] == message:
                    yield record

    def record(self, message, **fields):
        def found():
            return [one for one in self.records(message) if fields.items() <= one.items()]

        return eventually(f"the record {message} {fields}", found)

    def metric(self, series):
        """A series of /metrics, as it stands there."""
        for line in httpx.get(f"{self.server.url}/metrics", timeout=PATIENCE_S).text.splitlines():
            name, _, value = line.rpartition(" ")
            if name == series:
                return float(value)
        raise Failed(f"/metrics has no {series}")

    def shows(self, title, records, series, alert):
        """Whether log, metrics and alerts show a fault that was made."""
        self.made += 1
        say(f"{title}:")
        # Of several records of one kind the newest, which is the fault's own.
        for message, fields, *told in records:
            found = self.record(message, **fields)[-1]
            words = ", ".join(f"{name} {self.text(found[name])}" for name in told)
            say(f"  log      {found['level']} {message}: {words}")
        for one in series:
            value = eventually(one, lambda one=one: self.metric(one))
            say(f"  metrics  {one} {value:g}")
        fired = eventually(alert, lambda: self.prometheus.firing(alert))[0]
        say(f"  alert    {fired['labels']['severity']} {alert}: {fired['annotations']['summary']}")
        page, _, anchor = fired["annotations"]["runbook"].partition("#")
        headings = re.findall(r"^## (\S+)$", (ROOT / page).read_text(), re.MULTILINE)
        check(anchor in [heading.lower() for heading in headings], f"{page} has no part {anchor}")
        say(f"  to do    {page}#{anchor}")
        self.seen += 1

    @staticmethod
    def text(value):
        return value["message"] if isinstance(value, dict) else value


def make_agent(api, project, name, base_url, tools=()):
    provider = api.post("/v1/model-providers", name=name, baseUrl=base_url, models=[{"name": "night-model"}])
    agent = api.post("/v1/agents", projectId=project, name=name)["id"]
    api.post(
        f"/v1/agents/{agent}/versions", instructions="Print what is asked for.", model="night-model",
        modelProviderId=provider["id"], toolIds=list(tools),
    )
    return agent


def ended(api, agent, status):
    run = api.post("/v1/runs", agentId=agent, message="Print it.")["run"]["id"]
    is_over = [kind.removeprefix("run.") for kind in FINISHED]

    def over():
        read = api.get(f"/v1/runs/{run}")
        return read["status"] in is_over and read

    read = eventually("the end of a run", over)
    check(read["status"] == status, f"the run {read['status']}: {read['failureMessage']}")


def bad_night(directory, opened):
    provider = Provider(directory, FIXTURES)
    opened.callback(provider.close)
    postgres = Postgres(directory)
    opened.callback(postgres.close)
    token = f"svc_bt_{secrets.token_hex(24)}"
    settings = {"SVC_TENANT_ID": str(uuid.uuid4()), "SVC_SEED_TOKEN": token, "SVC_LOG_FORMAT": "json"}
    server = Server(directory, postgres.url, settings)
    opened.callback(server.close)
    server.start()
    prometheus = Prometheus(directory, server)
    opened.callback(prometheus.close)
    night = Night(directory, server, prometheus)
    api = Api(server.url, token)
    project = api.post("/v1/projects", name="night")["id"]

    # Nothing listens there.
    nowhere = f"127.0.0.1:{free_port()}"
    ended(api, make_agent(api, project, "away", f"http://{nowhere}/v1"), "failed")
    night.shows(
        "a model provider that is away",
        [
            ("A model provider is away", {"level": "warn", "address": nowhere}, "address", "error"),
            ("A run ended", {"level": "warn", "status": "failed"}, "status", "failureMessage"),
        ],
        ['agent_runtime_away{what="model-provider"}', 'agent_runtime_runs_ended_total{status="failed"}'],
        "AgentRuntimeModelProviderAway",
    )

    unreachable = f"127.0.0.1:{free_port()}"
    tool = api.post(
        "/v1/tools", projectId=project, name="print", description="Prints a page.",
        argumentsSchema={"type": "object"}, url=f"http://{unreachable}/print",
    )
    # Its model tells the asker, so the run completes.
    ended(api, make_agent(api, project, "printer", f"{provider.url}/v1", [tool["id"]]), "completed")
    night.shows(
        "a tool that fails",
        [("A tool is away", {"level": "warn", "address": unreachable}, "address", "error")],
        ['agent_runtime_away{what="tool"}', 'agent_runtime_tool_calls_total{kind="http",outcome="unreachable"}'],
        "AgentRuntimeToolsFail",
    )

    postgres.stop()
    night.shows(
        "a database that goes and comes back",
        [("The database is away", {"level": "warn"}, "address", "error")],
        ['agent_runtime_away{what="database"}'],
        "AgentRuntimeDatabaseAway",
    )
    postgres.start()
    back = night.record("The database is back", level="info")[-1]
    say(f"  log      {back['level']} The database is back: awayMs {back['awayMs']}, failures {back['failures']}")
    eventually("the end of the alert", lambda: not prometheus.firing("AgentRuntimeDatabaseAway"))
    warnings = list(night.records("The database is away"))
    check(len(warnings) == 1, f"the database was said to be away {len(warnings)} times")
    return night.seen, night.made
