"""A primary database that dies under load: three nodes with Patroni and etcd, each in a network namespace of its own,
with the configuration that docs/high-availability.md shows. The service and OpenFGA are outside, as on hosts of their own."""

import base64
import collections
import contextlib
import datetime
import glob
import json
import os
import pathlib
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
import uuid

import httpx

import parts
from parts import ROOT, Failed, OpenFga, Postgres, Provider, Server, check, end, eventually, run, say
from webhooks import ENVIRONMENT, SECRET, Receiver, key_file

NODES = ("db1", "db2", "db3")
BRIDGE = "arha"
ADDRESS = "10.77.26.%d"
CASES = ("killed", "partitioned", "unfenced")
# From the promotion to the first answer.
LONGEST_S = 2.0
MOST_S = 900
# A promotion takes ttl and some seconds.
PATIENCE_S = 90
LOAD_S = 5
FINISHED = ("completed", "failed", "cancelled")
ANSWER = "It is looked up and told."
# A machine may be busy, and four programs begin here.
parts.PATIENCE_S = 60
FIXTURES = [
    {"match": {"hasToolResult": True}, "response": {"content": ANSWER}, "latency": 30, "chunkSize": 6},
    {
        "match": {"hasToolResult": False},
        "response": {"toolCalls": [{"name": "look", "arguments": {"city": "Kyoto"}}]},
    },
]


def ip(*arguments, otherwise=None):
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    if done.returncode != 0 and otherwise is None:
        raise Failed(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def page():
    """The configuration that the documentation shows: its blocks, by what they begin with."""
    text = (ROOT / "docs/high-availability.md").read_text()
    blocks = re.findall(r"```\w*\n(.*?)```", text, re.S)

    def block(beginning):
        found = [one for one in blocks if one.startswith(beginning)]
        check(len(found) == 1, f"docs/high-availability.md has {len(found)} blocks that begin with {beginning}")
        return found[0]

    return {
        "etcd": block("ETCD_NAME"),
        "patroni": block("scope:"),
        "service": block("SVC_DATABASE_URL"),
        "openfga": block("OPENFGA_DATASTORE_URI"),
    }


def addressed(text):
    for number, name in enumerate(NODES, 1):
        text = re.sub(rf"\b{name}:(?=\d)", ADDRESS % number + ":", text)
    return text


def values(block):
    """What its lines NAME='VALUE' set."""
    pairs = (line.split("=", 1) for line in block.strip().splitlines())
    return {name: addressed(value.strip("'")) for name, value in pairs}


def binaries():
    """Debian's newest: others do not have all that Patroni calls."""
    places = glob.glob("/usr/lib/postgresql/*/bin/pg_rewind")
    check(places, "PostgreSQL's pg_rewind is not here: run tests/setup/postgres")
    return os.path.dirname(max(places, key=lambda place: int(place.split("/")[4])))


class Node:
    """A host: a network namespace with etcd, Patroni and PostgreSQL."""

    def __init__(self, number, directory, blocks):
        self.name, self.address = NODES[number - 1], ADDRESS % number
        self.space, self.link = f"arha-{self.name}", f"arha{number}"
        self.directory = directory
        self.home = directory.path / self.name
        self.processes = {}
        user = Postgres.system_user()
        self.account = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self.home.mkdir(mode=0o700)
        os.chown(self.home, user.pw_uid, user.pw_gid)
        # The blocks are those of the first node.
        lines = blocks["etcd"].splitlines()
        own = lambda line: line if line.startswith("ETCD_INITIAL_CLUSTER=") else line.replace("db1", self.name)
        self.etcd = dict(addressed(own(line)).split("=", 1) for line in lines)
        self.etcd["ETCD_DATA_DIR"] = str(self.home / "etcd")
        text = "\n".join(
            line if line.startswith("  hosts:") else line.replace("db1", self.name)
            for line in blocks["patroni"].splitlines()
        )
        text = addressed(text).replace("/var/lib/postgresql/15/main", str(self.home / "data"))
        text = text.replace("/usr/lib/postgresql/15/bin", binaries())
        text = re.sub(r"\w+-PASSWORD", "secret", text)
        text = text.replace("local all all peer", "local all all trust")
        text = text.replace("        max_connections: 100", "        max_connections: 100\n        log_timezone: UTC")
        # A namespace has no watchdog: that is the third case.
        text = text.replace("mode: required", 'mode: "off"')
        text = text.replace("  pg_hba:", f"  parameters: {{unix_socket_directories: {self.home}}}\n"
                            f"  pgpass: {self.home}/pgpass\n  pg_hba:")
        self.config = self.home / "patroni.yml"
        self.config.write_text(text + "\n")

    def plug(self, number):
        ip("netns", "add", self.space)
        ip("link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", self.space)
        ip("link", "set", self.link, "master", BRIDGE, "up")
        inside = ("-n", self.space)
        ip(*inside, "link", "set", "lo", "up")
        ip(*inside, "addr", "add", f"{self.address}/24", "dev", "eth0")
        ip(*inside, "link", "set", "eth0", "up")

    def spawn(self, name, command, environment):
        with self.directory.log(f"{self.name}-{name}") as log:
            self.processes[name] = subprocess.Popen(
                ["ip", "netns", "exec", self.space, "setpriv", f"--reuid={self.account['user']}",
                 f"--regid={self.account['group']}", "--clear-groups", *map(str, command)],
                cwd="/", env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(self.home), "TZ": "UTC", **environment},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )

    def start(self):
        # Three hosts share one machine here: with etcd's defaults a busy one changes its leader all the time.
        patience = {"ETCD_HEARTBEAT_INTERVAL": "300", "ETCD_ELECTION_TIMEOUT": "3000"}
        self.spawn("etcd", ["etcd"], {"ETCD_LOG_LEVEL": "warn", **patience, **self.etcd})
        self.start_patroni()

    def start_patroni(self):
        self.spawn("patroni", ["patroni", self.config], {})

    def pids(self):
        return [int(pid) for pid in ip("netns", "pids", self.space, otherwise="").split()]

    def kill(self, chosen=lambda line: True):
        for pid in self.pids():
            with contextlib.suppress(OSError):
                line = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                if chosen(line):
                    os.kill(pid, signal.SIGKILL)
        for process in self.processes.values():
            process.poll()

    def cut(self):
        """Packets are dropped in both directions, and nobody is told."""
        ip("link", "set", self.link, "nomaster")

    def mend(self):
        ip("link", "set", self.link, "master", BRIDGE, "up")

    def is_primary(self):
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"http://{self.address}:8008/primary", timeout=1).status_code == 200
        return False

    def is_replica(self, path="replica"):
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"http://{self.address}:8008/{path}", timeout=1).status_code == 200
        return False

    def said_after(self, when, what):
        """The first moment after `when` that its PostgreSQL logged this, as seconds since the epoch."""
        text = self.directory.text(f"{self.name}-patroni")
        stamp = r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) UTC \[\d+\] LOG:  " + what
        moments = (
            datetime.datetime.fromisoformat(at).replace(tzinfo=datetime.timezone.utc).timestamp()
            for at in re.findall(stamp, text)
        )
        return next((moment for moment in moments if moment > when), None)

    def promoted_after(self, when):
        return self.said_after(when, "archive recovery complete")

    def confirms_after(self, when):
        """When it has a standby, without which it confirms no commit."""
        return self.said_after(when, r'standby "\w+" is now a synchronous standby')

    def sql(self, text, database="postgres"):
        done = subprocess.run(
            ["ip", "netns", "exec", self.space, "psql", "-h", str(self.home), "-U", "postgres", "-d", database, "-qAt"],
            input=text, capture_output=True, text=True, timeout=PATIENCE_S,
        )
        if done.returncode != 0:
            raise Failed(f"{text}: {done.stderr}")
        return done.stdout.strip()


class Cluster:
    def __init__(self, directory):
        self.blocks = page()
        self.nodes = [Node(number, directory, self.blocks) for number in (1, 2, 3)]

    def start(self):
        ip("link", "add", BRIDGE, "type", "bridge")
        ip("addr", "add", ADDRESS % 254 + "/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        for number, node in enumerate(self.nodes, 1):
            node.plug(number)
            node.start()
        self.settle()

    def settle(self):
        """Waits for a primary, a synchronous standby and a third one."""

        def settled():
            replicas = [node for node in self.nodes if node.is_replica()]
            return self.primary() and len(replicas) == 2 and any(node.is_replica("sync") for node in replicas)

        patient("a primary and two standbys", settled)
        return self.primary()

    def primary(self):
        return next((node for node in self.nodes if node.is_primary()), None)

    def close(self):
        for node in self.nodes:
            node.kill()
        for node in self.nodes:
            for process in node.processes.values():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=5)
            ip("netns", "del", node.space, otherwise="")
            ip("link", "del", node.link, otherwise="")
        ip("link", "del", BRIDGE, otherwise="")


def waited(look):
    """What it finds in time, or None."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.1)
    return None


def patient(what, look):
    found = waited(look)
    check(found, f"{what}: not within {PATIENCE_S} s")
    return found


class Tool(parts.Tool):
    """A tool that may not be called twice, and counts its calls by their key."""

    def __init__(self):
        super().__init__("looked up")
        self.keys = keys = collections.Counter()
        handler = self.server.RequestHandlerClass
        answer = handler.do_POST

        def do_POST(request):
            keys[request.headers["idempotency-key"]] += 1
            answer(request)

        handler.do_POST = do_POST


class Load:
    """Clients that begin until told to stop, and come again with the same key until they are answered."""

    def __init__(self, world):
        self.world = world
        self.stopped = threading.Event()
        self.accepted, self.faults = [], []
        # Who knows one of these was answered by the new primary: when each run was accepted.
        self.accepted_at = {}
        self.answers = collections.defaultdict(list)
        # Every request: its kind, when it was sent and was over, and what it came to.
        self.requests = []
        self.streams = {}
        self.threads = []
        for work in (self.read, self.write, self.write, self.start_runs, self.start_runs):
            self.begin(work)

    def begin(self, work, *arguments):
        def guarded():
            try:
                work(*arguments)
            except Exception as fault:  # Reported by the case.
                self.faults.append(f"{work.__name__}: {type(fault).__name__}: {fault}")

        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()
        self.threads.append(thread)

    def client(self):
        # As impatient as clients are that look for another replica.
        return httpx.Client(base_url=self.world.url, headers=self.world.headers, timeout=1.0)

    def until_answered(self, client, kind, method, path, body=None, key=None):
        headers = {"idempotency-key": key} if key else {}
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            sent = time.time()
            try:
                answer = client.request(method, path, json=body, headers=headers)
            except httpx.TransportError as fault:
                self.requests.append((kind, sent, time.time(), type(fault).__name__))
            else:
                self.requests.append((kind, sent, time.time(), said_of(answer)))
                if answer.is_success:
                    said = answer.json()
                    # One that was sent before the promotion may have been answered by the old primary.
                    self.answers[kind].append((sent, time.time(), said))
                    return said
                if answer.status_code not in (409, 429, 500, 503, 504):
                    raise Failed(f"{method} {path}: {answer.status_code} {answer.text}")
            time.sleep(0.05)
        raise Failed(f"{method} {path} was not answered within {PATIENCE_S} s")

    def read(self):
        with self.client() as client:
            while not self.stopped.wait(0.05):
                self.until_answered(client, "read", "GET", "/v1/runs?order=desc&limit=5")

    def write(self):
        with self.client() as client:
            while not self.stopped.wait(0.1):
                body = {"agentId": self.world.agent_id, "message": "Wait for nothing."}
                self.start_run(client, "write", body, False)

    def start_runs(self):
        with self.client() as client:
            while not self.stopped.wait(0.3):
                body = {"agentId": self.world.agent_id, "message": "Look it up."}
                self.start_run(client, "run", body, True)

    def start_run(self, client, kind, body, followed):
        made = self.until_answered(client, kind, "POST", "/v1/runs", body, str(uuid.uuid4()))
        run_id = made["run"]["id"]
        self.accepted.append(run_id)
        self.accepted_at[run_id] = time.time()
        if followed:
            self.begin(self.follow, run_id)

    def follow(self, run_id):
        """Reads a run's events to its end, and comes back where the line broke."""
        seen = self.streams[run_id] = []
        timeout = httpx.Timeout(5.0, read=20.0)
        deadline = time.monotonic() + 2 * PATIENCE_S
        while time.monotonic() < deadline:
            headers = {**self.world.headers, **({"last-event-id": str(seen[-1][0])} if seen else {})}
            url = f"{self.world.url}/v1/runs/{run_id}/progress/stream"
            with contextlib.suppress(httpx.TransportError):
                with httpx.stream("GET", url, headers=headers, timeout=timeout) as answer:
                    lines = answer.iter_lines() if answer.is_success else ()
                    for line in lines:
                        if line.startswith("data: "):
                            event = json.loads(line[6:])
                            if "seq" in event:
                                seen.append((event["seq"], event["kind"]))
            if seen and seen[-1][1] in ("run.completed", "run.failed", "run.cancelled"):
                return
            time.sleep(0.2)
        raise Failed(f"the stream of run {run_id} did not end: {seen[-1:]}")

    def stop(self):
        self.stopped.set()
        for thread in list(self.threads):
            thread.join(2 * PATIENCE_S + 10)
        for thread in list(self.threads):
            thread.join(2 * PATIENCE_S)


class World:
    """The service, OpenFGA, and what they work on."""

    def __init__(self, directory, opened, cluster):
        primary = cluster.settle()
        blocks = cluster.blocks
        for role in ("agent_runtime", "openfga"):
            primary.sql(f"create role {role} login password 'PASSWORD'")
            primary.sql(f"create database {role} owner {role}")
        self.cluster, self.directory = cluster, directory
        openfga = self.openfga(directory, values(blocks["openfga"]))
        opened.callback(openfga.close)
        openfga.start()
        provider = Provider(directory, FIXTURES)
        opened.callback(provider.close)
        self.tool = Tool()
        opened.callback(self.tool.close)
        token = f"svc_bt_{secrets.token_hex(24)}"
        self.server = Server(
            directory,
            values(blocks["service"])["SVC_DATABASE_URL"],
            {
                "SVC_TENANT_ID": str(uuid.uuid4()),
                "SVC_SEED_USER_ID": str(uuid.uuid4()),
                "SVC_SEED_TOKEN": token,
                "SVC_AUTHZ_API_URL": openfga.url,
                "SVC_SECRETS_BACKEND": "postgres",
                "SVC_SECRETS_BACKEND_KMS": "local",
                "SVC_SECRETS_LOCAL_KEY_PATH": key_file(directory, "wrapping.key"),
                "SVC_SECRETS_AAD_KEY_PATH": key_file(directory, "aad.key"),
            },
        )
        opened.callback(self.server.close)
        self.server.start()
        self.url, self.headers = self.server.url, {"authorization": f"Bearer {token}"}
        self.make(opened, provider)

    @staticmethod
    def openfga(directory, settings):
        uri = settings["OPENFGA_DATASTORE_URI"]

        class OnCluster(OpenFga):
            # Its migration opens no pool.
            migrated = re.sub(r"&pool_\w+=\w+", "", uri)

            @classmethod
            def datastore_uri(cls, _):
                return cls.migrated

        openfga = OnCluster(directory, None)
        openfga.datastore = ["--datastore-engine=postgres", f"--datastore-uri={uri}"]
        openfga.options["env"] |= {name: value for name, value in settings.items() if not name.endswith("_URI")}
        return openfga

    def does(self, method, path, body=None):
        answer = httpx.request(method, self.url + path, json=body, headers=self.headers, timeout=20)
        check(answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}")
        return answer.json() if answer.content else None

    def make(self, opened, provider):
        secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
        self.receiver = Receiver(secret)
        opened.callback(self.receiver.close)
        project_id = self.does("POST", "/v1/projects", {"name": "failover"})["id"]
        models = {"name": "elsewhere", "baseUrl": f"{provider.url}/v1", "models": [{"name": "m"}]}
        provider_id = self.does("POST", "/v1/model-providers", models)["id"]
        schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
        tool = {
            "projectId": project_id, "name": "look", "description": "Looks a city up.",
            "url": self.tool.url, "argumentsSchema": schema, "timeoutMs": 5000,
        }
        tool_id = self.does("POST", "/v1/tools", tool)["id"]
        self.agent_id = self.does("POST", "/v1/agents", {"projectId": project_id, "name": "teller"})["id"]
        version = {
            "version": "1.0.0", "instructions": "Look, then tell.", "modelProviderId": provider_id,
            "model": "m", "toolIds": [tool_id],
        }
        self.does("POST", f"/v1/agents/{self.agent_id}/versions", version)
        self.does("POST", f"/v1/agents/{self.agent_id}/promote", {"version": "1.0.0"})
        self.does("PUT", f"/v1/secrets/{ENVIRONMENT}/{SECRET}", {"value": secret})
        endpoint = {"url": self.receiver.url, "events": ["run.finished"],
                    "secretRef": {"envName": ENVIRONMENT, "name": SECRET}}
        self.does("POST", "/v1/webhook-endpoints", endpoint)


def hurt(case, node):
    if case == "killed":
        node.cut()
        node.kill()
    elif case == "partitioned":
        node.cut()
    else:
        node.kill(lambda line: "patroni" in line.split(" -D ")[0] and "bin/postgres" not in line.split(" ")[0])


def heal(case, node):
    """The old primary comes back and becomes a standby."""
    if case == "unfenced":
        node.kill(lambda line: line.startswith("postgres:") or "bin/postgres" in line.split(" ")[0])
        node.start_patroni()
    node.mend()
    if case == "killed":
        node.start()


def said_of(answer):
    """A status, and the code and sentence of an error."""
    if answer.is_success:
        return str(answer.status_code)
    error = answer.json().get("error", {})
    return f"{answer.status_code} {error.get('code')}: {error.get('message')}"


def timeline(load, promoted_at):
    """The requests from just before the promotion to a second after the wanted answer, in seconds from the promotion."""
    for kind, sent, ended, said in sorted(load.requests, key=lambda one: one[2]):
        if -1 < ended - promoted_at < LONGEST_S + 1:
            say(f"{sent - promoted_at:+.2f} to {ended - promoted_at:+.2f}: {kind}: {said}")


def first_answers(load, promoted_at):
    """The seconds from the promotion to the first answer of the new primary, by what was asked."""
    # An old primary that nobody fenced goes on to answer reads, and a commit on it is never confirmed: a read is one of
    # the new primary if it knows a run that was accepted after the promotion.
    of_new = {run_id for run_id, at in load.accepted_at.items() if at > promoted_at}

    def knows(kind, said):
        return kind != "read" or any(run["id"] in of_new for run in said["data"])

    return {
        kind: min((answered - promoted_at for sent, answered, said in load.answers[kind] if sent > promoted_at - 1.5
                   and answered > promoted_at and knows(kind, said)), default=float("inf"))
        for kind in ("read", "write", "run")
    }


def show(case, world):
    """One case. Its figures, and what did not hold."""
    old = world.cluster.settle()
    calls_before = sum(world.tool.keys.values())
    load = Load(world)
    load.stopped.wait(LOAD_S)
    hurt_at = time.time()
    hurt(case, old)

    def promoted():
        others = [node for node in world.cluster.nodes if node is not old]
        return next(((node, at) for node in others if (at := node.promoted_after(hurt_at))), None)

    new, promoted_at = patient("a promotion", promoted)
    load.stopped.wait(2 * LOAD_S)
    load.stop()
    back = first_answers(load, promoted_at)
    figures = judge(load, world, calls_before)
    heal(case, old)
    longest = max(back["read"], min(back["write"], back["run"]))
    print(
        f"failover: {case}: accepted={len(load.accepted)} lost={figures['lost']} doneTwice={figures['twice']}"
        f" promotedAfterS={promoted_at - hurt_at:.1f}"
        f" standbyS={(new.confirms_after(promoted_at) or float('inf')) - promoted_at:.2f} firstReadS={back['read']:.2f}"
        f" firstWriteS={min(back['write'], back['run']):.2f} failedRuns={figures['failed']}"
        f" newPrimary={new.name}", flush=True,
    )
    faults = load.faults + figures["faults"]
    if figures["lost"] or figures["twice"] or figures["failed"]:
        faults.append("something was lost, failed or was done twice")
    if longest > LONGEST_S:
        timeline(load, promoted_at)
        faults.append(f"answers were back {longest:.1f} s after the promotion, {LONGEST_S} s at most")
    return [f"{case}: {fault}" for fault in faults]


def judge(load, world, calls_before):
    faults = []
    runs = {}

    def over():
        waiting = [run_id for run_id in load.accepted if run_id not in runs]
        for run_id in waiting:
            answer = httpx.get(f"{world.url}/v1/runs/{run_id}", headers=world.headers, timeout=20)
            if answer.status_code == 404 or (answer.is_success and answer.json()["status"] in FINISHED):
                runs[run_id] = answer.json() if answer.is_success else None
        return len(runs) == len(set(load.accepted))

    waited(over)
    unfinished = [run_id for run_id in load.accepted if run_id not in runs]
    lost = [run_id for run_id, run in runs.items() if run is None] + unfinished
    if lost:
        faults.append(f"lost: {lost[:5]}")
    failed = [run for run in runs.values() if run and run["status"] != "completed"]
    for run in failed[:3]:
        faults.append(f"run {run['id']} {run['status']}: {run['failureMessage']}")
    waited(lambda: set(load.accepted) <= events(world).keys())
    told = events(world)
    missing = [run_id for run_id in load.accepted if run_id not in told]
    if missing:
        faults.append(f"no webhook told of {len(missing)} runs: {missing[:3]}")
    twice = [key for key, count in world.tool.keys.items() if count > 1]
    if twice:
        faults.append(f"the tool was called twice: {twice[:3]}")
    twice += [run_id for run_id, ids in told.items() if len(ids) > 1]
    for run_id, seen in load.streams.items():
        numbers = [number for number, _ in seen]
        if numbers != list(range(1, len(numbers) + 1)):
            twice.append(run_id)
            faults.append(f"the stream of run {run_id} has {numbers}")
    faults += [f"a webhook was refused: {one}" for one in world.receiver.refused[:3]]
    return {"lost": len(lost) + len(missing), "twice": len(twice), "failed": len(failed), "faults": faults}


def events(world):
    """The ids of the events that told of a run's end."""
    told = collections.defaultdict(set)
    with world.receiver.lock:
        for event in world.receiver.events.values():
            told[event["data"]["run"]["id"]].add(event["id"])
    return told


def tell(cases):
    def told(directory, opened):
        cluster = Cluster(directory)
        opened.callback(cluster.close)
        cluster.start()
        say(f"the primary is {cluster.primary().name}")
        world = World(directory, opened, cluster)
        faults = []
        for case in cases:
            faults += show(case, world)
        if faults and os.environ.get("FAILOVER_KEEP"):
            subprocess.run(["cp", "-r", directory.path, os.environ["FAILOVER_KEEP"]])
        check(not faults, "\n  ".join(["", *faults]))
        return f"failover: {len(cases)} cases held"

    return told


if __name__ == "__main__":
    chosen = sys.argv[1:] or CASES
    if not set(chosen) <= set(CASES):
        sys.exit(f"usage: tests/soak/failover [{'|'.join(CASES)}]…")
    if os.geteuid() != 0:
        sys.exit("soak: root alone can make network namespaces")
    sys.exit(run(tell(chosen), MOST_S))
