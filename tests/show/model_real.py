"""Real model servers from the package registries, as tests/setup/model-servers installs them: the server of llama-cpp-python,
`transformers serve`, Ollama, and LiteLLM's proxy before them and before an imitation. Their models are tiny and have random
weights, so what they say means nothing; framing, templates, errors, limits and counts are real. What each is to show, and
where one differs, is in its class."""

import json
import os
import subprocess

import httpx

from model_servers import ANSWERS, TOOLS, TURNS, Imitation, Serving
from parts import Failed, check, end, eventually, free_port, set_up

# Of an answer; each is nonsense, so it is short.
MOST_TOKENS = 12
# More than any context window here, in each tokenizer.
TOO_LONG = "The river takes the light of the day to the sea. " * 1200
# Some of these fill a window, so that the first ones have to be left out.
LONG = "The train goes from the city to the hill. " * 10
TURNS_MOST = int(os.environ.get("AGENT_RUNTIME_TURNS", "8"))
START_S = 120
NOBODY = "nobody-7411"


def have(kind):
    """Why a server could not be had; nothing if it is there."""
    home = set_up() / kind.part
    if (home / ".server").exists():
        return None
    failed = set_up() / f"{kind.part}.failed"
    return failed.read_text().strip() if failed.exists() else f"tests/setup/model-servers {kind.key} has not installed it"


class Real:
    """A server of others, on a port of its own."""

    key = name = part = ""
    model = "tiny"
    # Whether it counts tokens in a stream; what a run comes to whose prompt is too long, or nothing if that is not tried; and
    # what it says of a model that it does not have, or nothing if it answers with another.
    counts, too_long, unknown_model = True, "contextWindow", NOBODY

    def __init__(self, directory, opened, running):
        self.home, self.directory, self.running = set_up() / self.part, directory, running
        self.version = (self.home / ".server").read_text().split()[0]
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self.own = directory.path / self.part
        self.own.mkdir()
        self.environment = {
            "PATH": os.environ.get("PATH", ""), "HOME": str(self.own), "PYTHONDONTWRITEBYTECODE": "1", "HF_HUB_OFFLINE": "1",
            "NO_COLOR": "1",
        }
        with directory.log(self.part) as log:
            self.process = subprocess.Popen(
                self.command(), cwd=self.own, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )
        opened.callback(end, self.process)
        try:
            eventually(self.name, self.is_ready, self.process, patience_s=START_S)
            self.made()
        except Failed as fault:
            raise Failed(f"{fault}; its log ends: {directory.tail(self.part, 5)}") from None
        running[self.key] = self

    def command(self):
        raise NotImplementedError

    def made(self):
        """What is left to do before it can be asked."""

    def is_ready(self):
        try:
            return httpx.get(f"{self.url}/models", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    def shows(self, world):
        """What it is to show, each with True or what was otherwise. A run that is to complete begins with `run`."""
        yield from self.asked(world, self.model, self.key, self.too_long)

    def agent(self, world, what, model, **options):
        provider_id = world.provider(f"{self.key} {what}", self.url, model, options)
        agent_id = world.agent(f"{self.key} {what}", provider_id, model, limits={"maxOutputTokens": MOST_TOKENS})
        return agent_id

    def asked(self, world, model, called, too_long):
        agent_id = self.agent(world, f"{called} talks", model)
        conversation_id = world.conversation(agent_id)
        for n, question in enumerate(("Hello there.", "And then?"), 1):
            run = world.turn(agent_id, question, conversation_id)
            done = run["status"] == "completed"
            yield f"run of turn {n} with {called}", done or run["failureMessage"]
            if done and n == 1:
                text, tokens = world.text(run["id"]), run["usage"]["tokens"]
                yield f"its text is {text[:40]!r}", bool(text) or "no text"
                counted = tokens["prompt"] > 0 and tokens["completion"] > 0
                said = f"prompt {tokens['prompt']}, completion {tokens['completion']}"
                yield f"usage is {'counted' if self.counts else 'not known'}", counted == self.counts or said
                finish = world.finish(run["id"])
                yield "a cut answer says so", finish in ("length", "stop") or f"finishReason {finish}"
        if too_long:
            run = world.turn(agent_id, TOO_LONG, conversation_id)
            words = run["failureMessage"] or run["status"]
            what = "is recognised" if too_long == "contextWindow" else "is cut by the server"
            yield f"too long a conversation {what}: {words[:200]}", too_long in words or words
            yield from self.grows(world, agent_id, called)
        agent_id = self.agent(world, f"{called} is not there", NOBODY)
        run = world.turn(agent_id, "Hello there.")
        words = run["failureMessage"] or run["status"]
        if self.unknown_model is None:
            yield f"an unknown model is answered by the one that it has: {words[:80]}", words == "completed" or words
        else:
            yield f"an unknown model fails with its words: {words[:200]}", self.unknown_model in words or words


    def grows(self, world, agent_id, called):
        """A conversation beyond the model's window, of which the service is told nothing."""
        conversation_id = world.conversation(agent_id)
        for n in range(1, TURNS_MOST + 1):
            run = world.turn(agent_id, f"{n}. {LONG}", conversation_id)
            yield f"run of long turn {n} with {called}", run["status"] == "completed" or run["failureMessage"]


class LlamaCpp(Real):
    """It answers in the one model that it has, whatever a request names, and counts no tokens in a stream."""

    key, name, part = "llama", "llama-cpp-python", "model-servers-llama"
    counts, unknown_model = False, None

    def command(self):
        return [
            self.home / "bin/python", "-B", "-m", "llama_cpp.server", "--model", self.home / "tiny.gguf", "--model_alias",
            self.model, "--n_ctx", "2048", "--n_threads", "1", "--host", "127.0.0.1", "--port", str(self.port),
        ]


class Ollama(Real):
    """It has a store of its own, into which the model is imported. It cuts a prompt that is too long, and does not say so."""

    key, name, part = "ollama", "Ollama", "model-servers-ollama"
    too_long = "completed"

    def command(self):
        self.environment |= {
            "OLLAMA_HOST": f"127.0.0.1:{self.port}", "OLLAMA_MODELS": str(self.own / "models"), "OLLAMA_CONTEXT_LENGTH": "2048",
            "OLLAMA_NUM_PARALLEL": "1", "OLLAMA_NOHISTORY": "1",
        }
        return [self.home / "ollama", "serve"]

    def made(self):
        file = self.own / "Modelfile"
        file.write_text(f"FROM {self.home / 'tiny.gguf'}\nPARAMETER num_ctx 2048\n")
        command = [self.home / "ollama", "create", self.model, "-f", file]
        made = subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        check(made.returncode == 0, f"ollama create: {made.stderr[-300:]}")


class Transformers(Real):
    """A model is named by its directory. It takes what is longer than its model's window, and has no words for one that it does
    not find."""

    key, name, part = "transformers", "transformers serve", "model-servers-transformers"
    too_long, unknown_model = None, "Internal Server Error"

    def command(self):
        self.model = str(self.home / "tiny")
        return [self.home / "bin/transformers", "serve", "--host", "127.0.0.1", "--port", str(self.port), "--device", "cpu"]


class LiteLlm(Real):
    """A proxy before the servers that run already, and before an imitation, which calls tools."""

    key, name, part = "litellm", "LiteLLM", "model-servers-litellm"
    model = "the models behind it"

    def command(self):
        self.own_server = Serving(Imitation())
        models = {"imitation": (self.own_server.url, "talker")}
        models |= {f"tiny-{real.key}": (real.url, real.model) for real in self.running.values()}
        listed = [
            {"model_name": name, "litellm_params": {"model": f"openai/{model}", "api_base": url, "api_key": "none"}}
            for name, (url, model) in models.items()
        ]
        config = self.own / "config.yaml"
        # JSON is YAML.
        config.write_text(json.dumps({"model_list": listed, "litellm_settings": {"num_retries": 0, "telemetry": False}}))
        self.environment |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False", "DISABLE_ADMIN_UI": "True"}
        # It listens on loopback, for the length of the show.
        self.environment["LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"] = "true"
        return [self.home / "bin/litellm", "--config", config, "--host", "127.0.0.1", "--port", str(self.port)]

    def shows(self, world):
        tools = [
            world.tool(name, "/journey", {"type": "object", "properties": fields, "required": list(fields)}, about)
            for name, about, fields in TOOLS
        ]
        provider_id = world.provider("litellm imitation", self.url, "imitation")
        agent_id = world.agent("litellm imitation", provider_id, "imitation", tools)
        run = world.turn(agent_id, TURNS[0])
        done = run["status"] == "completed" and world.text(run["id"]) == ANSWERS[0]
        yield "run of a turn with a tool, on the imitation", done or run["failureMessage"] or world.text(run["id"])
        for real in list(self.running.values()):
            if real is not self:
                yield from self.asked(world, f"tiny-{real.key}", f"{real.key} behind it", real.too_long)


REAL = (LlamaCpp, Ollama, Transformers, LiteLlm)
