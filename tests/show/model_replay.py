"""Answers of model servers as they came over the wire, sent again: a server that replays the case files, and what becomes of
a run for each. A file has comments, `--- request N` before each answer, its bytes, and `(wait N s)` where the server paused.
What `models_expected.json` says of a case: its vendor, how its server and its agent are set, and what a user expects."""

import contextlib
import datetime
import email.utils
import json
import re
import socket
import socketserver
import struct
import threading
import time

GOOD_TEXT = "Hello there."
SUNNY = "sunny in Paris"
# Long pauses are shortened by this, together with the limits that they are compared with.
FASTER = 10
LONG_S = 5
WAIT = re.compile(rb"\(wait ([0-9.]+) s\)\n?")
RESET = "RST"


def stream(*deltas, finish="stop"):
    """A good answer."""
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    events = [{"id": "x", "object": "chat.completion.chunk", "model": "m", "choices": [choice]} for choice in choices]
    events[-1]["usage"] = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    return head(200, "text/event-stream", body)


def head(status, kind, body, more=""):
    data = body.encode()
    return f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\n{more}Content-Length: {len(data)}\r\n\r\n".encode() + data


def error(status, message):
    return head(status, "application/json", json.dumps({"error": {"message": message}}))


def whole(text):
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"prompt_tokens": 11, "completion_tokens": 7}
    return head(200, "application/json", json.dumps({"id": "x", "model": "m", "choices": [choice], "usage": usage}))


# Files that are too long to keep whole are made anew from what they begin with.
MADE = {
    "C67-1MB-chunk": lambda: stream({"content": "x" * 1_000_000}),
    "C67b-5MB-chunk": lambda: stream({"content": "y" * 5_000_000}),
    "C72-big-headers": lambda: stream({"content": GOOD_TEXT}).replace(
        b"\r\n", b"\r\n" + b"".join(b"X-H%d: %s\r\n" % (n, b"v" * 3000) for n in range(8)), 1
    ),
    "C83-50k-tokens-answer": lambda: stream(*[{"content": " tok"}] * 50_000),
    "C83b-50k-reasoning-tokens": lambda: stream(*[{"reasoning_content": " tok"}] * 50_000, {"content": GOOD_TEXT}),
}


def calls_of(request):
    return [call for message in request["messages"] for call in message.get("tool_calls") or []]


def since_user(request):
    messages = request["messages"]
    last = max((n for n, message in enumerate(messages) if message["role"] == "user"), default=0)
    return [message for message in messages[last:] if message["role"] == "assistant"]


def is_object(text):
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def takes_roles(request):
    roles = [message["role"] for message in request["messages"] if message["role"] in ("user", "assistant")]
    return all(role == ("user", "assistant")[n % 2] for n, role in enumerate(roles))


def form(request):
    return request.get("response_format") or {}


# What a strict server takes, and what it says of anything else.
GUARDS = {
    "stream_options": (lambda request: "stream_options" not in request, "Unrecognized request argument supplied: stream_options"),
    "content": (
        lambda request: all(isinstance(message.get("content"), (str, list)) for message in request["messages"]),
        "messages: Input should be a valid string (content)",
    ),
    "signature": (
        lambda request: all(
            call.get("extra_content", {}).get("google", {}).get("thought_signature") == "SIG" for call in calls_of(request)
        ),
        "Function call is missing a thought_signature in functionCall parts.",
    ),
    "reasoning": (
        lambda request: all(message.get("reasoning_content") == "think" for message in since_user(request)),
        "Missing `reasoning_content` field in the assistant message at message index 2.",
    ),
    "arguments": (
        lambda request: all(is_object(call["function"]["arguments"]) for call in calls_of(request)),
        "Expecting value: line 1 column 1 (char 0)",
    ),
    "system": (
        lambda request: all(message["role"] != "system" for message in request["messages"]),
        "System role not supported",
    ),
    "stream": (lambda request: not request.get("stream"), "Your organization must be verified to stream this model."),
    "max_tokens": (lambda request: "max_tokens" not in request, "Unsupported parameter: 'max_tokens'."),
    "json_schema": (lambda request: form(request).get("type") != "json_schema", "This response_format type is unavailable now"),
    "response_format": (lambda request: not form(request), "no"),
    "strict": (
        lambda request: form(request).get("type") != "json_schema" or "strict" in form(request)["json_schema"],
        "response_format.json_schema.strict: Field required",
    ),
    "alternating": (takes_roles, "Conversation roles must alternate user/assistant/user/assistant/..."),
    "no empty message": (
        lambda request: all(
            message.get("content") or message.get("tool_calls") or message["role"] == "tool" for message in request["messages"]
        ),
        "Assistant message must have either content or tool_calls, but not none.",
    ),
}


def read_pieces(part):
    """One answer as it is sent: bytes, pauses in seconds, and a reset. The file puts a line's end between two writes."""
    pieces, rest = [], part
    while (found := WAIT.match(rest)) is not None:
        pieces.append(float(found[1]))
        rest = rest[found.end() :]
    start, split, body = rest.partition(b"\r\n\r\n")
    pieces.append(start + split)
    body = body.removeprefix(b"\n")
    if b"\nTransfer-Encoding: chunked" not in start:
        return [*pieces, *pauses(body.removesuffix(b"\n"))]
    while body:
        if (found := WAIT.match(body)) is not None:
            pieces.append(float(found[1]))
            body = body[found.end() :]
        elif body.startswith(b"RST"):
            pieces.append(RESET)
            break
        elif body.startswith(b"\n"):
            body = body[1:]
        else:
            size, _, rest = body.partition(b"\r\n")
            length = int(size.split(b";")[0], 16)
            if length == 0:
                pieces.append(body.removesuffix(b"\n"))
                break
            pieces.append(size + b"\r\n" + rest[:length] + b"\r\n")
            body = rest[length + 2 :]
    return pieces


def pauses(body):
    """A body without chunks, cut at its pauses."""
    parts = WAIT.split(body)
    return [float(part) if n % 2 else part for n, part in enumerate(parts) if part]


class Case:
    """One case: what its server answers, and what came to it."""

    def __init__(self, name, file, told):
        self.name, self.told = name, told
        self.lock = threading.Lock()
        self.times, self.requests, self.refused = [], [], []
        self.guard = told.get("guard")
        self.answers = self.read(file)
        self.refusal = None
        if self.guard is not None:
            self.refusal = [error(400, GUARDS[self.guard][1])]
            if self.answers and self.answers[0][0].split()[1] != b"200":
                self.refusal = self.answers.pop(0)
        self.left = self.answers * told.get("times", 1)

    def read(self, file):
        if self.name in MADE:
            return [[MADE[self.name]()]]
        lines = file.read_bytes()
        if b"HTTP/1." not in lines:
            return []
        text = re.sub(rb"\A(#[^\n]*\n)*", b"", lines)
        if self.name in ("C65-bytes-one-by-one", "C68-gzip"):
            text = re.sub(rb"\\x([0-9a-f]{2})", lambda found: bytes([int(found[1], 16)]), text)
        return [read_pieces(part) for part in re.split(rb"^--- request \d+\n", text, flags=re.M) if part.strip()]

    def next(self, request):
        """The answer to a request, as pieces."""
        with self.lock:
            self.times.append(time.monotonic())
            self.requests.append(request)
            for name in filter(None, [self.guard, *self.told.get("guards", [])]):
                if not GUARDS[name][0](request):
                    self.refused.append(name)
                    return self.refusal or [error(400, GUARDS[name][1])]
            last = request["messages"][-1]
            if self.told.get("fails") and "two" not in str(last.get("content")):
                return self.failing()
            if self.left:
                return self.left.pop(0)
            if self.told.get("then") == "again":
                return self.answers[-1]
            if self.told.get("loads_s", 0) > self.times[-1] - self.times[0]:
                return self.answers[-1]
        if last["role"] == "tool":
            return [stream({"content": f"It is {last['content'][:60]}."})]
        if "stream" not in request or not request["stream"]:
            return [whole(self.told.get("json", GOOD_TEXT))]
        return [stream({"content": self.told.get("json", GOOD_TEXT)})]

    def failing(self):
        if self.told["fails"] == "empty":
            return [stream({"role": "assistant", "content": ""})]
        return [error(400, "no")]

    def problems(self):
        """What no server may get: ids that repeat, calls without an answer, arguments that are no object."""
        found = []
        for request in self.requests:
            ids = [call["id"] for call in calls_of(request)]
            if len(ids) != len(set(ids)):
                found.append(f"ids repeat: {ids}")
            answered = [message.get("tool_call_id") for message in request["messages"] if message["role"] == "tool"]
            if sorted(ids) != sorted(answered):
                found.append(f"calls {ids}, answers {answered}")
            if not GUARDS["arguments"][0](request):
                found.append("arguments that are no object")
        return found[:1]


class Replay:
    """All cases on one port: the first part of a request's path names the case."""

    def __init__(self, cases):
        self.cases = cases
        replay = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                with contextlib.suppress(OSError):
                    while replay.one(self.rfile, self.connection):
                        pass

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads, allow_reuse_address, request_queue_size = True, True, 256

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, name="replay", daemon=True).start()

    def one(self, reader, connection):
        """Reads a request and answers it; whether another one may follow."""
        line = reader.readline()
        headers = {}
        while (header := reader.readline().strip()):
            name, _, value = header.partition(b":")
            headers[name.lower()] = value.strip()
        body = reader.read(int(headers.get(b"content-length", 0)))
        if not line or not body:
            return False
        case = self.cases[line.split()[1].decode().split("/")[1]]
        pieces = case.next(json.loads(body))
        faster = FASTER if case.told.get("faster") else 1
        for piece in pieces:
            if piece == RESET:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return False
            if isinstance(piece, float):
                time.sleep(piece / faster)
            else:
                connection.sendall(dated(piece))
        if case.told.get("reset_at_end") and len(case.requests) == 1:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        if case.told.get("closes") or not isinstance(pieces[0], bytes):
            return False
        return b"chunked" in pieces[0] or b"Content-Length" in pieces[0]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def dated(piece):
    """A date of the recording becomes one of today, and what is six seconds later stays so."""
    if b"\r\nRetry-After: Sat, " not in piece:
        return piece
    now = datetime.datetime.now(datetime.timezone.utc)
    later = now + datetime.timedelta(seconds=6)
    piece = re.sub(rb"\r\nDate: [^\r]*", b"\r\nDate: " + email.utils.format_datetime(now, usegmt=True).encode(), piece)
    return re.sub(rb"\r\nRetry-After: [^\r]*", b"\r\nRetry-After: " + email.utils.format_datetime(later, usegmt=True).encode(), piece)


def judge(told, found):
    """What is not as a user expects, in words; nothing if all is."""
    wrong = []

    def expect(holds, words):
        if not holds:
            wrong.append(words)

    # Where both are right, it is a list.
    expect(found["status"] in told["status"], found["status"])
    text = found["text"] or ""
    if "text" in told:
        expect(text == told["text"], f"text {text[:60]!r}")
    if "begins" in told:
        expect(text.startswith(told["begins"]), f"text {text[:60]!r}")
    if "length" in told:
        expect(len(text) == told["length"], f"{len(text)} characters")
    for word in told.get("words", []):
        expect(word.lower() in (found["failure"] or "").lower(), f"the failure lacks {word!r}")
    for word in told.get("lacks", []):
        expect(word.lower() not in (found["failure"] or "").lower(), f"the failure has {word!r}")
    if "calls" in told:
        expect(found["calls"] == told["calls"], f"tools {found['calls']}")
    if "finish" in told:
        expect(found["finish"] == told["finish"], f"finishReason {found['finish']}")
    for name in ("prompt", "completion", "cacheRead", "reasoning"):
        if name in told.get("usage", {}):
            expect(found["tokens"].get(name) == told["usage"][name], f"{name} {found['tokens'].get(name)}")
    if "requests" in told:
        expect(found["requests"] == told["requests"], f"{found['requests']} requests")
    if "within_s" in told:
        expect(found["took_s"] <= told["within_s"], f"took {found['took_s']:.0f} s")
    if "gap_s" in told:
        expect(found["gap_s"] >= told["gap_s"], f"came again after {found['gap_s']:.1f} s")
    return wrong + found["problems"]
