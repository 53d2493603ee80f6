"""The clients: one story in each language, on a server that checks who may do what, and that is killed while an answer is
half said. Both tell it in the same words, and see every event once. What a call is called comes from the route table."""

import base64
import json
import os
import re
import secrets
import subprocess
import sys
import threading
import uuid

from parts import HERE, ROOT, OpenFga, Postgres, Provider, Server, check, run, say, set_up
from webhooks import begin, key_file

ANSWER = (
    "In Kyōto it is sunny ☀ with 21 °C and a light wind from the north. It stays dry until the evening, so an umbrella is "
    "not needed; a light jacket is enough after sunset."
)
FIXTURES = [{"match": {}, "response": {"content": ANSWER}, "latency": 100, "chunkSize": 6}]
HALF = "run: the answer is half said"
# The whole show takes about thirty seconds.
MOST_S = 150


def languages():
    python = set_up() / "python-client/bin/python"
    check(python.exists(), f"{python} is missing: run make setup")
    return {
        "typescript": ["node", HERE / "client_story.mjs"],
        "python": [python, "-B", HERE / "client_story.py"],
    }


def told(name, command, world, directory):
    """What a language tells, without its last line, and what it counted. The server is killed at half of the answer."""
    server, token, provider, secret = world
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT / "clients/python"),
        "AGENT_RUNTIME_URL": server.url,
        "AGENT_RUNTIME_TOKEN": token,
        "PROVIDER_URL": f"{provider.url}/v1",
        "SECRET": secret,
        "NAME": name,
    }
    with directory.log(name) as log:
        story = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
        )
    # One that says nothing is ended.
    late = threading.Timer(MOST_S / 2, story.kill)
    late.start()
    lines = []
    try:
        for line in story.stdout:
            lines.append(line.rstrip("\n"))
            if lines[-1] == HALF:
                server.kill()
                server.start()
        code = story.wait()
    finally:
        late.cancel()
        story.kill()
        story.wait()
    check(code == 0, f"the story in {name} ended with {code} after {lines[-1:]}")
    check(HALF in lines, f"the story in {name} was over before the server was killed")
    return lines[:-1], json.loads(lines[-1])


def routes():
    """The routes with a name, and those without."""
    table = (ROOT / "tests/it/snapshots/routes.txt").read_text().splitlines()
    names = [line.split("|")[1].strip() for line in table if not line.startswith("#")]
    named = [name for name in names if re.fullmatch(r"\w+(\.\w+)+", name)]
    return named, len(names) - len(named)


def calls():
    """The calls of each language, counted where they are written."""
    typescript = (ROOT / "clients/typescript/src/resources.js").read_text()
    python = set()
    for path in (ROOT / "clients/python/agent_runtime/resources").glob("*.py"):
        if path.name.startswith(("async_", "_")):
            continue
        # One that takes several forms of a body stands there more than once.
        noun = ""
        for kind, name in re.findall(r"^(class|    def) ((?!_)\w+)\(", path.read_text(), re.MULTILINE):
            if kind == "class":
                noun = name
            else:
                python.add((noun, name))
    return len(re.findall(r"^  (?:async )?(?!constructor)\w+\(.*\) \{$", typescript, re.MULTILINE)), len(python)


def tell(directory, opened):
    provider = Provider(directory, FIXTURES)
    opened.callback(provider.close)
    postgres = Postgres(directory, [OpenFga.DATABASE])
    opened.callback(postgres.close)
    openfga = OpenFga(directory, postgres)
    opened.callback(openfga.close)
    openfga.start()
    token = f"svc_bt_{secrets.token_hex(24)}"
    settings = {
        "SVC_TENANT_ID": str(uuid.uuid4()),
        "SVC_SEED_USER_ID": str(uuid.uuid4()),
        "SVC_SEED_TOKEN": token,
        "SVC_AUTHZ_API_URL": openfga.url,
        "SVC_SECRETS_BACKEND": "postgres",
        "SVC_SECRETS_BACKEND_KMS": "local",
        "SVC_SECRETS_LOCAL_KEY_PATH": key_file(directory, "wrapping.key"),
        "SVC_SECRETS_AAD_KEY_PATH": key_file(directory, "aad.key"),
        # A dead server's runs are taken over after this; the default is 15 s.
        "SVC_RUN_LEASE_MS": "1500",
    }
    server = Server(directory, postgres.url, settings)
    opened.callback(server.close)
    server.start()
    say(f"the server: {server.url} (process {server.process.pid})")
    secret = f"whsec_{base64.b64encode(secrets.token_bytes(24)).decode()}"
    world = (server, token, provider, secret)
    stories = {}
    for name, command in languages().items():
        begin(f"The story in {name}")
        stories[name] = told(name, command, world, directory)
        for line in stories[name][0]:
            say(line)
    (first, _), (second, _) = stories.values()
    check(first == second, f"the stories differ:\n{first}\n{second}")
    named, unnamed = routes()
    typescript, python = calls()
    check(typescript == python == len(named), f"{len(named)} routes have names: {typescript} and {python} calls")
    counts = [count for _, count in stories.values()]
    check(all(count["seen"] == count["events"] for count in counts), f"events: {counts}")
    seen = ", ".join(f"{count['seen']} of {count['events']} in {name}" for name, (_, count) in stories.items())
    return (
        f"clients: {len(named)} routes and {unnamed} without a name, {typescript} calls in TypeScript and {python} in Python; "
        f"events seen once: {seen}"
    )


if __name__ == "__main__":
    sys.exit(run(tell, MOST_S))
