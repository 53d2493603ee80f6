"""Starts a server with what the tests beside this file need, and runs them on it: once on a server whose secrets and
webhooks are on, once on one that checks who may do what. Its parts are those of `tests/show`.

  served.py PYTHON    the Python that runs the tests, with what the client needs
"""

import base64
import contextlib
import os
import pathlib
import secrets
import subprocess
import sys
import uuid

PACKAGE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PACKAGE.parents[1] / "tests/show"))

import httpx  # noqa: E402
import parts  # noqa: E402

ENVIRONMENT = "live"
TASKS = 120
# They take about five seconds, during which the server is killed.
SLOW_TASKS = 20
KILLS = 2
# The name of a database, and of the server on it.
AUTHORIZED = "authorized"
# It takes about half a second, so that its text is seen while it is written.
ANSWER = {
    "match": {},
    "response": {"content": "Grüße 👋 aus dem Modell, das sich mit jedem Wort ein wenig Zeit lässt."},
    "latency": 40,
    "chunkSize": 6,
}
MOST_S = 240


class Api:
    """The API, with a client that is not ours."""

    def __init__(self, url, token):
        self.http = httpx.Client(base_url=url, headers={"authorization": f"Bearer {token}"}, timeout=parts.PATIENCE_S)

    def post(self, path, method="POST", **body):
        answer = self.http.request(method, path, json=body)
        parts.check(answer.is_success, f"{method} {path}: {answer.text}")
        return answer.json()


def key_file(directory, name):
    path = directory.path / name
    path.write_bytes(secrets.token_bytes(32))
    path.chmod(0o600)
    return str(path)


def serve(opened, directory, database_url, name, **settings):
    """A server, and its address and token as the client reads them."""
    token = f"svc_bt_{secrets.token_hex(24)}"
    settings = {"SVC_TENANT_ID": str(uuid.uuid4()), "SVC_SEED_TOKEN": token, **settings}
    server = parts.Server(directory, database_url, settings, name)
    opened.enter_context(contextlib.closing(server))
    server.start()
    named = {"URL": server.url, "TOKEN": token, "AGENT_RUNTIME_URL": server.url, "AGENT_RUNTIME_TOKEN": token}
    return Api(server.url, token), named, server


def test(files, environment):
    command = [sys.argv[1], "-B", "-W", "error::ResourceWarning", "-m", "unittest", "discover"]
    command += ["--start-directory", "tests/server", "--top-level-directory", ".", "--pattern", files]
    done = subprocess.run(command, cwd=PACKAGE, env={**os.environ, **environment}, timeout=MOST_S)
    parts.check(done.returncode == 0, f"tests of {files} failed")


def count(postgres, statement):
    """What the database counts."""
    psql = ["psql", "--no-psqlrc", "-h", postgres.home, "-U", "show", "-d", "postgres", "-Atc", statement]
    return int(subprocess.run(psql, capture_output=True, text=True, check=True).stdout)


def killed(api, named, server):
    """Both clients follow a run while its server is killed, and get each event once."""
    run = api.post("/v1/runs", flowId="tests.slow")["run"]["id"]
    environment = {**os.environ, **named}
    followers = {
        kind: subprocess.Popen(
            [sys.argv[1], "-B", "-m", "tests.server.follower", kind, run],
            cwd=PACKAGE, env=environment, stdout=subprocess.PIPE, text=True,
        )
        for kind in ("sync", "async")
    }  # fmt: skip
    try:
        for _ in range(KILLS):
            begun = latest(api, run) + 3
            parts.eventually("the run goes on", lambda begun=begun: latest(api, run) >= begun)
            server.kill()
            server.start()
        for kind, follower in followers.items():
            said, _ = follower.communicate(timeout=MOST_S)
            last = latest(api, run)
            numbers = [int(line) for line in said.split()]
            parts.check(numbers == list(range(1, last + 1)), f"the {kind} client was told {numbers} of 1 to {last}")
            print(f"killed {KILLS} times, {kind}: {len(numbers)} of {last} events, each once", flush=True)
    finally:
        for follower in followers.values():
            follower.kill()
            follower.wait()


def latest(api, run):
    return api.http.get(f"/v1/runs/{run}").json()["lastSeq"]


def on_server(opened, directory, postgres, provider):
    signing = f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"
    api, named, server = serve(
        opened,
        directory,
        postgres.url,
        "server",
        SVC_RUN_LEASE_MS="1500",
        SVC_SECRETS_BACKEND="postgres",
        SVC_SECRETS_BACKEND_KMS="local",
        SVC_SECRETS_LOCAL_KEY_PATH=key_file(directory, "wrapping.key"),
        SVC_SECRETS_AAD_KEY_PATH=key_file(directory, "aad.key"),
    )
    project = api.post("/v1/projects", name="Tests")["id"]
    models = api.post("/v1/model-providers", name="m", baseUrl=f"{provider.url}/v1", models=[{"name": "m1"}])["id"]
    agent = api.post("/v1/agents", projectId=project, name="Agent")["id"]
    version = {"version": "1.0.0", "instructions": "Answer.", "modelProviderId": models, "model": "m1"}
    api.post(f"/v1/agents/{agent}/versions", **version)
    many = [{f"task{number}": {"set": {"at": number, "text": "Grüße 👋"}}} for number in range(TASKS)]
    ask = [{"ask": {"call": "approval", "with": {"title": "Pay a refund", "requiredRole": "standard"}}}]
    slow = [{f"task{number}": {"wait": {"milliseconds": 250}}} for number in range(SLOW_TASKS)]
    for namespace, name, tasks in (("tests", "many", many), ("tests", "slow", slow), ("billing", "refund", ask)):
        document = {"dsl": "1.0.3", "namespace": namespace, "name": name, "version": "1.0.0"}
        api.post("/v1/flows", projectId=project, definition={"document": document, "do": tasks})
    api.post(f"/v1/secrets/{ENVIRONMENT}/signing", "PUT", value=signing)
    given = {"AGENT": agent, "PROJECT": project, "SECRET": signing, "ENVIRONMENT": ENVIRONMENT}
    test("on_server.py", {**named, **given})
    counted = "select count(*) from run_labels where key = 'python-client' and value in ('Sync', 'Async')"
    parts.check(count(postgres, counted) == 2, "a start whose answer was lost made another run")
    killed(api, named, server)


def denied(opened, directory, postgres):
    authorization = opened.enter_context(contextlib.closing(parts.OpenFga(directory, postgres)))
    authorization.start()
    database_url = f"{postgres.url.removesuffix('postgres')}{AUTHORIZED}"
    api, named, _ = serve(opened, directory, database_url, AUTHORIZED, SVC_AUTHZ_API_URL=authorization.url)
    project = api.post("/v1/projects", name="Tests")["id"]
    added = api.post("/v1/identity/users", email="viewer@example.com", displayName="Viewer", tenantRole="member")
    minted = api.post("/v1/identity/enrolments", code=added["enrolment"]["code"])
    api.post(f"/v1/projects/{project}/memberships", userId=added["id"], role="viewer")
    given = {"PROJECT": project, "VIEWER": added["id"], "TOKEN_OF_VIEWER": minted["token"]}
    test("denied.py", {**named, **given})


def tell(directory, opened):
    postgres = opened.enter_context(contextlib.closing(parts.Postgres(directory, [AUTHORIZED, parts.OpenFga.DATABASE])))
    provider = opened.enter_context(contextlib.closing(parts.Provider(directory, [ANSWER])))
    on_server(opened, directory, postgres, provider)
    denied(opened, directory, postgres)
    return "the Python client holds on a server, and on one that checks"


sys.exit(parts.run(tell, MOST_S))
