"""The host that is installed on: a machine of the lab, with what an operator asks and does there, and the
tenant who uses the service over its API."""

import json
import re
import time
import uuid

import httpx

from lab import Failed, Machine

RUNTIME, OPENFGA = "agent-runtime", "agent-runtime-openfga"
UNITS = (OPENFGA, RUNTIME)
URL = "http://127.0.0.1:4000"
SETTINGS = "/etc/agent-runtime/agent-runtime.env"
CREDENTIALS = "/etc/agent-runtime/credentials"
PATIENCE_S = 60
ENDED = ("completed", "failed", "cancelled")


def check(holds, otherwise):
    if not holds:
        raise Failed(otherwise)


def eventually(what, look, patience_s=PATIENCE_S):
    """Waits until `look` gives something, and gives it."""
    deadline = time.monotonic() + patience_s
    while True:
        found = look()
        if found:
            return found
        check(time.monotonic() < deadline, f"{what}: not within {patience_s} s")
        time.sleep(0.05)


class Host(Machine):
    """A machine with our packages on it, or about to have them."""

    def about(self, unit, name):
        """One property of a unit, as systemd knows it."""
        return self.run("systemctl", "show", "--property", name, "--value", unit).stdout.strip()

    def answers(self, probe):
        """Whether a probe of the server is answered with 200."""
        try:
            return httpx.get(f"{URL}{probe}", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    def is_ready(self):
        return self.answers("/readyz")

    def await_ready(self):
        eventually("the server is ready", self.is_ready)

    def check_running(self):
        """Both units run, and the server is ready."""
        for unit in UNITS:
            state = self.about(unit, "ActiveState")
            check(state == "active", f"{unit} is {state}:\n{self.journal(unit)}")
        self.await_ready()

    def journal(self, unit, lines=25):
        command = ["journalctl", "--no-pager", "--output", "cat", "--lines", lines, "--unit", unit]
        return self.run(*command).stdout

    def mode(self, path):
        """`mode owner:group`, as `0640 root:agent-runtime`."""
        return self.run("stat", "--format", "%04a %U:%G", path).stdout.strip()

    def check_modes(self, wanted):
        for path, mode in wanted.items():
            found = self.mode(path)
            check(found == mode, f"{path} is {found} in place of {mode}")

    def text(self, path):
        return (self.root / path.lstrip("/")).read_text()

    def write(self, path, text, mode=0o600):
        target = self.root / path.lstrip("/")
        target.write_text(text)
        target.chmod(mode)

    def has(self, path):
        target = self.root / path.lstrip("/")
        return target.exists() or target.is_symlink()

    def sql(self, statement, database="postgres"):
        """What a statement gives, run as the database's superuser over the local socket."""
        command = ["psql", "--no-psqlrc", "--tuples-only", "--no-align", "--quiet"]
        command += ["--set", "ON_ERROR_STOP=1", "--dbname", database, "--command", statement]
        return self.run(*command, user="postgres").stdout.strip()

    def as_service(self, *command, expect=0):
        """Runs a command as the service does: its user, settings and credentials."""
        started = ["systemd-run", "--pipe", "--wait", "--collect", "--quiet"]
        started += [f"--property={line}" for line in (
            f"User={RUNTIME}",
            f"EnvironmentFile={SETTINGS}",
            f"LoadCredential=credentials:{CREDENTIALS}",
        )]
        return self.run(*started, *command, expect=expect)

    def doctor(self, expect):
        """What `doctor --json` found, by level."""
        report = json.loads(self.run("agent-runtime", "doctor", "--json", expect=expect).stdout)
        found = {level: [] for level in ("ok", "skipped", "warning", "fault")}
        for finding in report["checks"]:
            found[finding["level"]].append(finding)
        for finding in found["fault"]:
            check(finding.get("remedy"), f"a fault says not what to do: {finding}")
        return found

    def exposure(self, unit):
        """The sandbox's score: 0 is closed, 10 is open."""
        told = self.run("systemd-analyze", "security", "--no-pager", unit).stdout
        return float(re.search(r"Overall exposure level for \S+: ([0-9.]+)", told).group(1))

    def process(self, unit):
        """What the kernel says of a unit's main process."""
        told = self.text_inside(f"/proc/{self.about(unit, 'MainPID')}/status")
        return dict(line.split(":\t", 1) for line in told.splitlines() if ":\t" in line)

    def text_inside(self, path):
        """A file as the machine's own mounts show it."""
        return self.run("cat", path).stdout


class Tenant:
    """The tenant's admin, and a person who was given nothing, with an agent of a provider that is not ours."""

    def __init__(self, token, provider_url):
        self.admin = self._client(token)
        self.project = self.post("/v1/projects", name="installed")["id"]
        provider = self.post(
            "/v1/model-providers", name="elsewhere", baseUrl=f"{provider_url}/v1",
            models=[{"name": "model", "prices": {"prompt": 1, "completion": 2}}],
        )
        self.agent = self.post("/v1/agents", projectId=self.project, name="speaker")["id"]
        version = self.post(
            f"/v1/agents/{self.agent}/versions", version="1.0.0", instructions="Speak.",
            modelProviderId=provider["id"], model="model",
        )
        self.post(f"/v1/agents/{self.agent}/promote", version=version["version"])
        person = f"{uuid.uuid4().hex}@example.com"
        added = self.post(
            "/v1/identity/users", email=person, displayName="outsider", tenantRole="member"
        )
        code = added["enrolment"]["code"]
        minted = self._answer(self._client(None).post("/v1/identity/enrolments", json={"code": code}))
        self.outsider = self._client(minted["token"])
        # What each run answered.
        self.runs = {}

    def start(self, message):
        """Starts a run; its id."""
        return self.post("/v1/runs", agentId=self.agent, message=message)["run"]["id"]

    def await_text(self, run_id):
        """Waits for the first words of a run, so that it is in the middle."""
        path = f"/v1/runs/{run_id}/progress/stream"
        with self.admin.stream("GET", path) as response:
            for line in response.iter_lines():
                if line.startswith("event: text.delta") or line.startswith("event:text.delta"):
                    return
        raise Failed(f"run {run_id} ended without a word")

    def await_end(self, run_id, wanted):
        """Waits until a run is over, and checks that it answered what the provider says."""
        def ended():
            run = self.get(f"/v1/runs/{run_id}")
            return run if run["status"] in ENDED else None

        run = eventually(f"run {run_id} ends", ended)
        check(run["status"] == "completed", f"run {run_id}: {run['status']}: {run['failureMessage']}")
        self.runs[run_id] = wanted
        self.check_run(run_id)

    def check_run(self, run_id):
        """A run is as it was: for who may read it, and for nobody else."""
        output = self.get(f"/v1/runs/{run_id}/payload")["output"]
        check(output == {"text": self.runs[run_id]}, f"run {run_id} answered {output}")
        refused = self.outsider.get(f"/v1/runs/{run_id}")
        check(
            refused.status_code == 403 and refused.json()["error"]["code"] == "permission-denied",
            f"a person without rights on run {run_id} was answered {refused.status_code} {refused.text}",
        )

    def check_all(self):
        for run_id in self.runs:
            self.check_run(run_id)

    def decisions(self):
        """How many decisions of the authorization server are in the audit, by outcome."""
        rows = self.get("/v1/audit/authz?limit=200")["data"]
        return {kind: sum(row["outcome"] == kind for row in rows) for kind in ("allowed", "denied")}

    def get(self, path):
        return self._answer(self.admin.get(path))

    def post(self, path, **body):
        return self._answer(self.admin.post(path, json=body))

    @staticmethod
    def _client(token):
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=URL, headers=headers, timeout=30)

    @staticmethod
    def _answer(response):
        check(response.is_success, f"{response.request.url}: {response.status_code} {response.text}")
        return response.json()
