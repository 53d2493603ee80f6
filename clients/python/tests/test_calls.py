"""The table of calls that every client makes (`clients/README.md`)."""

import inspect
import json
import pathlib
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

from agent_runtime import Record
from agent_runtime._record import snake

from .both import TOKEN, of_both

TABLE = json.loads((pathlib.Path(__file__).parents[2] / "calls_table.json").read_text(encoding="utf-8"))


class Handler(BaseHTTPRequestHandler):
    """Answers as the row says, and keeps what came."""

    protocol_version = "HTTP/1.1"
    # Head and body leave together.
    wbufsize = -1
    row: dict[str, Any]
    came: dict[str, Any]

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        path, _, query = self.path.partition("?")
        type(self).came = {
            "request": f"{self.command} {path}",
            "query": parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)),
            "body": json.loads(body) if body else None,
            "headers": self.headers,
        }
        is_stream = "stream" in self.row
        content = self.row["stream"].encode() if is_stream else b""
        if "answer" in self.row:
            content = json.dumps(self.row["answer"]).encode()
        self.send_response(self.row["status"])
        self.send_header("content-type", "text/event-stream" if is_stream else "application/json")
        if self.row["status"] != 204:
            self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815

    def log_message(self, *_: Any) -> None:
        pass


def text(value: Any) -> str:
    return {True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def method(client: Any, call: str) -> Any:
    for word in call.split("."):
        client = getattr(client, snake(word))
    return client


class Calls(unittest.TestCase):
    @of_both
    def test_every_row_sends_its_request_and_reads_its_answer(self, make: Any) -> None:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        client = make(f"http://127.0.0.1:{server.server_port}")
        for row in TABLE:
            with self.subTest(row["call"], query=bool(row.get("query"))):
                Handler.row = row
                self._row(client, row)

    def _row(self, client: Any, row: dict[str, Any]) -> None:
        given = {snake(name): value for name, value in {**row.get("body", {}), **row.get("query", {})}.items()}
        call = method(client.client, row["call"])
        answer = client.do(lambda _: call(*row["ids"], **given), len(row.get("kinds", [0])))
        came = Handler.came
        self.assertEqual(came["request"], row["request"])
        self.assertEqual(came["body"], row.get("body"))
        expected = [
            (name, text(one))
            for name, value in row.get("query", {}).items()
            for one in (value if isinstance(value, list) else [value])
        ]
        self.assertEqual(sorted(came["query"]), sorted(expected))
        self.assertEqual(came["headers"]["authorization"], f"Bearer {TOKEN}")
        self.assertRegex(came["headers"]["user-agent"], r"^agent-runtime-python/\d+\.\d+\.\d+$")
        if "stream" in row:
            self.assertEqual([event.kind for event in answer], row["kinds"])
        elif "answer" not in row:
            self.assertIsNone(answer)
        elif isinstance(answer, list):
            self.assertEqual([one.raw for one in answer], row["answer"]["data"][:1])
            self._whole(answer[0])
        else:
            self.assertEqual(answer.raw, row["answer"])
            self._whole(answer)

    def _whole(self, record: Record) -> None:
        """Every field of an answer can be read, also the one that nobody knows."""
        for name in record:
            value = getattr(record, snake(name))
            for one in value if isinstance(value, tuple) else [value]:
                if isinstance(one, Record):
                    self._whole(one)

    def test_every_call_of_the_clients_is_in_the_table(self) -> None:
        from agent_runtime._resource import AsyncResource, Resource
        from agent_runtime.resources import AsyncNouns, Nouns

        known = {row["call"] for row in TABLE}
        for nouns, base in ((Nouns, Resource), (AsyncNouns, AsyncResource)):
            root = nouns()
            vars(root)["_transport"] = None
            found = {
                f"{noun}.{name}"
                for noun in vars(nouns)
                if not noun.startswith("_")
                for name in calls_of(getattr(root, noun), base)
            }
            # The one helper that is made of other calls.
            self.assertEqual(found - {"runs.wait"}, {".".join(map(snake, call.split("."))) for call in known})


def calls_of(noun: Any, base: type) -> list[str]:
    """The calls of a noun and of those in it."""
    within = {name: value for name, value in vars(noun).items() if isinstance(value, base)}
    own = [name for name, _ in inspect.getmembers(type(noun), inspect.isfunction) if not name.startswith("_")]
    return own + [f"{name}.{call}" for name, value in within.items() for call in calls_of(value, base)]
