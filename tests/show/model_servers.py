"""Eight imitations of model servers, each in the dialect of what it imitates and as strict: what the original refuses is
refused in its words. Each follows one script of three turns, of which the second fails in its own way: `fare` and `weather`
are the tools. Not here: tokens, models, and limits of the originals."""

import contextlib
import http.server
import json
import re
import secrets
import threading
import urllib.parse

MODEL = "talker"
KEY = "show-key-7411"
TURNS = (
    "What is the weather in Paris?",
    "What is the fare from Paris to Lyon?",
    "Once again: the fare from Paris to Lyon, and the weather in Lyon?",
)
RESULTS = {"weather": {"Paris": "sunny", "Lyon": "rainy"}, "fare": "42 euros"}
ANSWERS = ("In Paris it is sunny.", None, "The fare is 42 euros, and in Lyon it is rainy.")
TOOLS = (
    ("weather", "The weather in a city.", {"city": {"type": "string"}}),
    ("fare", "The fare between two cities.", {"from": {"type": "string"}, "to": {"type": "string"}}),
)
USAGE = {"prompt_tokens": 40, "completion_tokens": 8, "total_tokens": 48}


class Refused(Exception):
    """What the server answers in place of a completion."""

    def __init__(self, status, body):
        super().__init__(f"HTTP {status}: {json.dumps(body)}")
        self.status, self.body = status, body


def text_of(message):
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


def is_text(message):
    return message["role"] == "assistant" and not message.get("tool_calls")


def turn_of(messages):
    """Which turn this is, and the messages since the user's last one. A failed turn's question may stand in one message with
    the next one."""
    last = max((n for n, message in enumerate(messages) if message["role"] == "user"), default=0)
    asked = text_of(messages[last]) if messages else ""
    turn = 3 if "again" in asked else 2 if "fare" in asked else 1
    return turn, messages[last + 1 :], last


def plan(messages, fails_at):
    """What is next: calls, or a text; or a failure."""
    turn, since, _ = turn_of(messages)
    results = [text_of(message) for message in since if message["role"] == "tool"]
    if turn == 1:
        return None if results else [("weather", {"city": "Paris"})], f"In Paris it is {''.join(results)}."
    journey = ("fare", {"from": "Paris", "to": "Lyon"})
    if turn == 2:
        if results or fails_at == 1:
            return None, None
        return [journey], ""
    if results:
        return None, f"The fare is {results[0]}, and in Lyon it is {results[-1]}."
    return [journey, ("weather", {"city": "Lyon"})], ""


class Imitation:
    """A server which keeps to the API, but checks what strict ones check."""

    name, source, thinks = "plain", "", False
    path = "/v1"
    # What the provider's row says of it; nothing is what a user would hope for.
    options = {}
    # The step of the second turn that fails, and a word of what the failure is to say.
    fails_at, fails_with = 1, "out of memory"
    ids = staticmethod(lambda: f"call_{secrets.token_hex(12)}")

    def __init__(self):
        self.lock = threading.Lock()
        self.requests, self.refused, self.given, self.earlier = 0, [], {}, False

    # What it checks.

    def refuse(self, words, status=400):
        raise Refused(status, {"error": {"message": words, "type": "invalid_request_error", "param": None, "code": None}})

    def check(self, request, handler):
        messages = request["messages"]
        self.check_calls(messages)
        self.check_roles(messages)
        for n, message in enumerate(messages):
            self.check_message(n, message)

    def check_message(self, n, message):
        if not text_of(message) and not message.get("tool_calls") and message["role"] != "tool":
            self.refuse(f"messages.{n}: content must not be empty")

    def check_calls(self, messages):
        """Each call has an id of its own and arguments that are an object, and is answered once, at once."""
        seen, open_ids = set(), []
        for n, message in enumerate(messages):
            if message["role"] == "tool":
                if message.get("tool_call_id") not in open_ids:
                    self.refuse(f"messages.{n}: a result without its call: {message.get('tool_call_id')}")
                open_ids.remove(message["tool_call_id"])
                continue
            if open_ids:
                self.refuse(
                    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                    f"'tool_call_id'. These did not: {', '.join(open_ids)}"
                )
            for call in message.get("tool_calls") or []:
                if not call.get("id") or call["id"] in seen:
                    self.refuse(f"messages.{n}: the id of a call stands twice, or is empty: {call.get('id')!r}")
                seen.add(call["id"])
                open_ids.append(call["id"])
                self.check_arguments(call["function"]["arguments"])
        if open_ids:
            self.refuse(f"No tool output found for function call {open_ids[0]}.")

    def check_arguments(self, arguments):
        try:
            fits = isinstance(json.loads(arguments), dict)
        except ValueError as fault:
            self.refuse(str(fault))
        if not fits:
            self.refuse("Can only get item pairs from a mapping.")

    def check_roles(self, messages):
        """Users and assistants alternate, as most templates of chats demand; calls and their results stand between them."""
        roles = [message["role"] for message in messages if message["role"] == "user" or is_text(message)]
        if any(role != ("user", "assistant")[n % 2] for n, role in enumerate(roles)):
            self.refuse("Conversation roles must alternate user/assistant/user/assistant/...")
        if "system" in [message["role"] for message in messages[1:]]:
            self.refuse("System message must be at the beginning.")

    # What it answers.

    def answer(self, request, handler):
        """The answer's events; or a whole message."""
        self.check(request, handler)
        turn, _, last = turn_of(request["messages"])
        if turn == 3 and any(message["role"] == "tool" for message in request["messages"][:last]):
            self.earlier = True
        calls, text = plan(request["messages"], self.fails_at)
        if calls is None and text is None:
            return self.failure()
        if calls:
            return self.calls([(self.ids(), name, arguments) for name, arguments in calls])
        return self.says(text)

    def failure(self):
        raise Refused(500, {"error": {"message": "CUDA error: out of memory", "type": "server_error"}})

    def chunk(self, delta, finish=None, **more):
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": [choice], **more}

    def end(self, finish):
        return [self.chunk({}, finish), {"id": "c", "choices": [], "model": MODEL, "usage": USAGE}, "[DONE]"]

    def calls(self, calls):
        events = [self.chunk({"role": "assistant", "content": None})]
        for n, (id, name, arguments) in enumerate(calls):
            text = json.dumps(arguments)
            head = {"index": n, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}
            events.append(self.chunk({"tool_calls": [head]}))
            for part in (text[:7], text[7:]):
                events.append(self.chunk({"tool_calls": [{"index": n, "function": {"arguments": part}}]}))
        return events + self.end("tool_calls")

    def says(self, text):
        parts = [self.chunk({"content": part}) for part in re.findall(r"\S+\s*", text)]
        return [self.chunk({"role": "assistant", "content": ""}), *parts, *self.end("stop")]


class Vllm(Imitation):
    """A template without a system role, such as Gemma's; errors are flat objects."""

    name, source, fails_at = "vLLM", "vllm-project/vllm", 2
    fails_with = "EngineCore died"
    ids = staticmethod(lambda: f"chatcmpl-tool-{secrets.token_hex(16)}")

    def refuse(self, words, status=400):
        raise Refused(status, {"object": "error", "message": words, "type": "BadRequestError", "param": None, "code": status})

    def check(self, request, handler):
        if any(message["role"] == "system" for message in request["messages"]):
            self.refuse("System role not supported")
        super().check(request, handler)

    def failure(self):
        return [self.chunk({"content": "The fa"}), {"error": {"object": "error", "message": "EngineCore died", "code": 500}}]


class Ollama(Imitation):
    """Whole calls in one chunk, each of them index 0; thinks in a field `reasoning`; its finish is `stop`."""

    name, source, thinks = "Ollama", "ollama/ollama", True
    fails_with = "runner process has terminated"
    ids = staticmethod(lambda: f"call_{secrets.token_hex(4)}")

    def refuse(self, words, status=400):
        raise Refused(status, {"error": {"message": words, "type": "api_error", "param": None, "code": None}})

    def calls(self, calls):
        events = [self.chunk({"role": "assistant", "content": "", "reasoning": part}) for part in ("I look ", "it up.")]
        for id, name, arguments in calls:
            function = {"name": name, "arguments": json.dumps(arguments)}
            call = {"id": id, "index": 0, "type": "function", "function": function}
            events.append(self.chunk({"role": "assistant", "content": "", "tool_calls": [call]}))
        return events + self.end("stop")

    def failure(self):
        self.refuse("llama runner process has terminated: exit status 2", 500)


class LlamaCpp(Imitation):
    """Loads its model first; its strict template fails with HTTP 500 where roles do not alternate."""

    name, source, fails_at = "llama.cpp", "ggml-org/llama.cpp", 2
    fails_with = "Failed to parse grammar"
    ids = staticmethod(lambda: secrets.token_urlsafe(24))
    LOADS = 2

    def refuse(self, words, status=500):
        raise Refused(status, {"error": {"code": status, "message": words, "type": "server_error"}})

    def check(self, request, handler):
        if self.requests <= self.LOADS:
            raise Refused(503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}})
        super().check(request, handler)

    def end(self, finish):
        return [self.chunk({}, finish, usage=USAGE, timings={"prompt_n": 40, "predicted_per_second": 7.5}), "[DONE]"]

    def failure(self):
        raise Refused(400, {"error": {"code": 400, "message": "Failed to parse grammar", "type": "invalid_request_error"}})


class Mistral(Imitation):
    """Ids of nine letters and digits, no further fields, and its own order of roles."""

    name, source, fails_at = "Mistral", "mistralai/mistral-common", 2
    fails_with = "capacity exceeded"
    ids = staticmethod(lambda: secrets.token_hex(5)[:9])
    FIELDS = {
        "system": {"role", "content"},
        "user": {"role", "content"},
        "assistant": {"role", "content", "tool_calls", "prefix"},
        "tool": {"role", "content", "tool_call_id", "name"},
    }

    def refuse(self, words, status=400):
        raise Refused(status, {"object": "error", "message": words, "type": "invalid_request_message_order", "code": "3230"})

    def check_message(self, n, message):
        role = message["role"]
        for field in set(message) - self.FIELDS[role]:
            detail = {"type": "extra_forbidden", "loc": ["body", "messages", n, role, field], "msg": "Extra inputs are not permitted"}
            raise Refused(422, {"detail": [detail]})
        if role == "assistant" and not text_of(message) and not message.get("tool_calls"):
            self.refuse("Assistant message must have either content or tool_calls, but not none.")
        for call in message.get("tool_calls") or []:
            if not re.fullmatch("[a-zA-Z0-9]{9}", call["id"]):
                self.refuse(f"Tool call id was {call['id']} but must be a-z, A-Z, 0-9, with a length of 9.")

    def check_roles(self, messages):
        for before, after in zip(messages, messages[1:], strict=False):
            pair = before["role"], after["role"]
            if pair in (("tool", "user"), ("user", "user"), ("assistant", "assistant"), ("system", "assistant")):
                self.refuse(f"Unexpected role '{pair[1]}' after role '{pair[0]}'")

    def calls(self, calls):
        named = [(id, {"name": name, "arguments": json.dumps(arguments)}) for id, name, arguments in calls]
        parts = [{"id": id, "function": function, "index": n} for n, (id, function) in enumerate(named)]
        return [self.chunk({"role": "assistant", "content": ""}),
                self.chunk({"content": "", "tool_calls": parts}, "tool_calls", usage=USAGE), "[DONE]"]

    def failure(self):
        raise Refused(400, {"object": "error", "message": "Service tier capacity exceeded for this model.", "code": "3505"})


class DeepSeek(Imitation):
    """Thinks, and takes no call of this turn without the thought that led to it."""

    name, source, thinks, fails_at = "DeepSeek", "api-docs of DeepSeek; MoonshotAI/kimi-agent-sdk#169", True, 2
    fails_with = "insufficient_system_resource"
    ids = staticmethod(lambda: f"call_00_{secrets.token_urlsafe(18)}")
    THOUGHT = ("The user wants ", "facts: I ", "look — « them » up.\n")

    def check(self, request, handler):
        super().check(request, handler)
        _, since, last = turn_of(request["messages"])
        for n, message in enumerate(since, last + 1):
            if message["role"] == "assistant" and message.get("reasoning_content") != "".join(self.THOUGHT):
                self.refuse(f"Missing `reasoning_content` field in the assistant message at message index {n}.")

    def calls(self, calls):
        thought = [self.chunk({"role": "assistant", "content": None, "reasoning_content": part}) for part in self.THOUGHT]
        return [": keep-alive", *thought, *super().calls(calls)]

    def end(self, finish):
        return [self.chunk({"content": ""}, finish, usage={**USAGE, "prompt_cache_hit_tokens": 32}), "[DONE]"]

    def failure(self):
        return [self.chunk({"content": "The fa"}), *self.end("insufficient_system_resource")]


class Gemini(Imitation):
    """Thinks, and takes no call of this turn without its signature; refuses unknown names; its errors are arrays."""

    name, source, thinks = "Gemini", "manthanabc/paws#103, nanbingxyz/5ire#405", True
    fails_with = "overloaded"
    ids = staticmethod(lambda: f"function-call-{secrets.randbelow(10**18)}")
    NAMES = {
        "model", "messages", "tools", "tool_choice", "stream", "stream_options", "temperature", "max_tokens",
        "max_completion_tokens", "parallel_tool_calls", "reasoning_effort", "response_format", "stop", "top_p", "n",
    }

    def refuse(self, words, status=400, code="INVALID_ARGUMENT"):
        raise Refused(status, [{"error": {"code": status, "message": words, "status": code}}])

    def check(self, request, handler):
        for name in sorted(set(request) - self.NAMES):
            self.refuse(f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.')
        super().check(request, handler)
        _, since, last = turn_of(request["messages"])
        for n, message in enumerate(since, last + 1):
            # Of calls in parallel the first one is signed.
            for call in (message.get("tool_calls") or [])[:1]:
                signed = call.get("extra_content", {}).get("google", {}).get("thought_signature")
                name = call["function"]["name"]
                if signed != self.given.get("signature"):
                    self.refuse(f"Function call `{name}` in the {n}. content block is missing a `thought_signature`.")

    def calls(self, calls):
        self.given["signature"] = secrets.token_urlsafe(60)
        events = []
        for n, (id, name, arguments) in enumerate(calls):
            call = {"index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            if n == 0:
                call["extra_content"] = {"google": {"thought_signature": self.given["signature"]}}
            events.append(self.chunk({"role": "assistant", "tool_calls": [call]}, usage={**USAGE, "total_tokens": 73}))
        return [*events, self.chunk({"role": "assistant"}, "stop", usage={**USAGE, "total_tokens": 73}), "[DONE]"]

    def failure(self):
        self.refuse("The model is overloaded. Please try again later.", 503, "UNAVAILABLE")


class Azure(Imitation):
    """Its own key header, its own path, a version, and no `stream_options`; a filter's chunks beside the answer."""

    name, source, path = "Azure", "Azure OpenAI's reference", "/openai/deployments/talker"
    fails_with = "content management policy"
    options = {"keyHeader": "api-key", "apiVersion": "2024-06-01"}

    def check(self, request, handler):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(handler.path).query)
        if query.get("api-version") != ["2024-06-01"]:
            raise Refused(404, {"error": {"code": "404", "message": "Resource not found"}})
        if handler.headers.get("api-key") != KEY or handler.headers.get("authorization"):
            words = "Access denied due to invalid subscription key or wrong API endpoint."
            raise Refused(401, {"error": {"code": "401", "message": words}})
        if "stream_options" in request:
            self.refuse("Unrecognized request argument supplied: stream_options")
        super().check(request, handler)

    def answer(self, request, handler):
        events = super().answer(request, handler)
        first = {"choices": [], "created": 0, "id": "", "model": "", "object": "", "prompt_filter_results": [{"prompt_index": 0}]}
        # It was not asked for usage, and gives none.
        return [first, *[event for event in events if "usage" not in event]]

    def failure(self):
        words = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."
        raise Refused(400, {"error": {"message": words, "type": None, "param": "prompt", "code": "content_filter", "status": 400}})


class Whole(Imitation):
    """A gateway which does not stream and wants a text in each message; its errors are FastAPI's."""

    name, source, fails_at = "a gateway that does not stream", "vidaiUK/VidaiMock, home-made gateways", 2

    def refuse(self, words, status=422):
        raise Refused(status, {"detail": [{"type": "value_error", "loc": ["body", "messages"], "msg": words}]})

    def check(self, request, handler):
        if request.get("stream"):
            raise Refused(400, {"error": {"message": "Streaming is not supported: set stream to false", "type": "bad_request"}})
        super().check(request, handler)

    def check_message(self, n, message):
        if not isinstance(message.get("content"), (str, list)):
            detail = {"type": "string_type", "loc": ["body", "messages", n, "content"], "msg": "Input should be a valid string"}
            raise Refused(422, {"detail": [detail]})
        super().check_message(n, message)

    def whole(self, message, finish):
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
        return {"id": "c", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice], "usage": USAGE}

    def calls(self, calls):
        parts = [{"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
                 for id, name, arguments in calls]
        return self.whole({"content": None, "tool_calls": parts}, "tool_calls")

    def says(self, text):
        return self.whole({"content": text}, "stop")


ALL = (Vllm, Ollama, LlamaCpp, Mistral, DeepSeek, Gemini, Azure, Whole)


class Slot(Imitation):
    """A server with one slot: a second call at once is refused."""

    name = "a server with one slot"

    def __init__(self, takes_s):
        super().__init__()
        self.takes_s, self.busy, self.most = takes_s, 0, 0

    def answer(self, request, handler):
        with self.lock:
            self.busy += 1
            busy, self.most = self.busy, max(self.most, self.busy)
        try:
            if busy > 1:
                raise Refused(503, {"error": {"message": "no slot available", "type": "unavailable_error", "code": 503}})
            threading.Event().wait(self.takes_s)
            return self.says("Hello there.")
        finally:
            with self.lock:
                self.busy -= 1


class Serving:
    """One imitation, on a port of its own."""

    def __init__(self, imitation):
        self.imitation = imitation

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                with contextlib.suppress(OSError):
                    respond(imitation, self, body)

            def do_GET(self):
                whole(self, 200, {"object": "list", "data": [{"id": MODEL, "object": "model"}]})

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.origin = f"http://127.0.0.1:{self.server.server_port}"
        self.url = f"{self.origin}{imitation.path}"
        threading.Thread(target=self.server.serve_forever, name=imitation.name, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def respond(imitation, handler, body):
    with imitation.lock:
        imitation.requests += 1
    try:
        if urllib.parse.urlsplit(handler.path).path != f"{imitation.path}/chat/completions":
            raise Refused(404, {"error": {"message": f"there is nothing at {handler.path}"}})
        answer = imitation.answer(json.loads(body), handler)
    except Refused as refused:
        imitation.refused.append(str(refused))
        return whole(handler, refused.status, refused.body)
    if isinstance(answer, dict):
        return whole(handler, 200, answer)
    handler.send_response(200)
    handler.send_header("content-type", "text/event-stream")
    handler.send_header("transfer-encoding", "chunked")
    handler.end_headers()
    for event in answer:
        if isinstance(event, dict):
            event = json.dumps(event)
        data = (f"{event}\n\n" if event.startswith(":") else f"data: {event}\n\n").encode()
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
    handler.wfile.write(b"0\r\n\r\n")


def whole(handler, status, body):
    data = json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)
