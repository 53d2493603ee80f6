"""What is sent again, what is not, and which error comes of what."""

import logging
import os
import pathlib
import pickle
import re
import socket
import tempfile
import threading
import traceback
import unittest
from datetime import UTC, datetime
from typing import Any
from unittest import mock

import agent_runtime
from agent_runtime import _errors, _protocol
from agent_runtime._protocol import pause, retry_after

from .both import TOKEN, of_both
from .scripted import Scripted, answers, close, refuses, reset, silent, text

ROOT = pathlib.Path(__file__).parents[3]
RUN = {"id": "r", "status": "queued"}
STARTED = {"run": RUN}


def get(client: Any) -> Any:
    return client.runs.get("r")


def start(client: Any) -> Any:
    return client.runs.create(agent_id="a", message="Hello")


def cancel(client: Any) -> Any:
    return client.runs.cancel("r")


class Protocol(unittest.TestCase):
    def setUp(self) -> None:
        quick = mock.patch.object(_protocol, "_FIRST_PAUSE", 0.01)
        quick.start()
        self.addCleanup(quick.stop)

    @of_both
    def test_a_read_is_sent_again_after_every_passing_fault(self, make: Any) -> None:
        passing = [
            *BROKEN,
            text(b"<html>Bad gateway", status=502),
            refuses(503, "overloaded"),
            refuses(504, "deadline-exceeded"),
        ]
        passing += [refuses(408, "request-timeout"), refuses(429, "too-many-requests", {"retry-after": "0"})]
        passing += [refuses(503, "database-unavailable"), refuses(500, "authorization-unavailable")]
        for fault in passing:
            with Scripted([fault, fault, answers(200, RUN)]) as server:
                self.assertEqual(make(server.url).do(get).raw, RUN)
                self.assertEqual(len(server.came), 3)

    @of_both
    def test_tries_have_an_end(self, make: Any) -> None:
        with Scripted([refuses(503, "overloaded")]) as server:
            with self.assertRaises(agent_runtime.UnavailableError) as raised:
                make(server.url, retries=3).do(get)
            self.assertEqual((len(server.came), raised.exception.server_code), (4, "overloaded"))
        with Scripted([reset]) as server:
            with self.assertRaises(agent_runtime.NetworkError):
                make(server.url).do(lambda client: client.runs.get("r", options={"retries": 0}))
            self.assertEqual(len(server.came), 1)

    @of_both
    def test_a_start_goes_under_one_key_through_all_its_tries(self, make: Any) -> None:
        faults = [reset, cut_body, refuses(409, "idempotency-in-flight"), refuses(503, "database-unavailable")]
        with Scripted([*faults, answers(202, STARTED)]) as server:
            self.assertEqual(make(server.url, retries=4).do(start).run.id, "r")
            keys = {came.headers["idempotency-key"] for came in server.came}
            self.assertEqual((len(server.came), len(keys)), (5, 1))
            self.assertEqual({came.body for came in server.came}, {b'{"agentId":"a","message":"Hello"}'})
        # Another call has another key, and a caller may give one.
        with Scripted([answers(202, STARTED)]) as server:
            client = make(server.url)
            client.do(start)
            client.do(start)
            client.do(lambda one: one.runs.create(flow_id="f.g", options={"idempotency_key": "mine"}))
            keys = [came.headers["idempotency-key"] for came in server.came]
            self.assertEqual((len(set(keys)), keys[2]), (3, "mine"))

    @of_both
    def test_what_a_lost_try_has_removed_is_removed(self, make: Any) -> None:
        gone = refuses(404, "not-found")
        for faults in (
            [reset],
            [text(b"", status=502)],
            [refuses(504, "deadline-exceeded"), refuses(503, "overloaded")],
        ):
            with Scripted([*faults, gone]) as server:
                self.assertIsNone(make(server.url).do(lambda one: one.tools.delete("t")))
        for faults in ([], [refuses(503, "overloaded")]):
            with Scripted([*faults, gone]) as server, self.assertRaises(agent_runtime.NotFoundError):
                make(server.url).do(lambda one: one.tools.delete("t"))

    @of_both
    def test_what_must_not_happen_twice_is_sent_again_only_where_nothing_was_done(self, make: Any) -> None:
        for fault in (
            refuses(503, "overloaded"),
            refuses(503, "shutting-down"),
            refuses(503, "audit-unavailable"),
            refuses(429, "too-many-requests"),
        ):
            with Scripted([fault, answers(202, RUN)]) as server:
                self.assertEqual(make(server.url).do(cancel).id, "r")
        faults: list[tuple[Any, type[Exception]]] = [
            *((broken, agent_runtime.NetworkError) for broken in BROKEN),
            (text(b"", status=503), agent_runtime.UnavailableError),
            (refuses(503, "database-unavailable"), agent_runtime.UnavailableError),
            (refuses(504, "deadline-exceeded"), agent_runtime.DeadlineError),
        ]
        for fault, kind in faults:
            with Scripted([fault, answers(202, RUN)]) as server:
                with self.assertRaises(kind):
                    make(server.url).do(cancel)
                self.assertEqual(len(server.came), 1)
        with self.assertRaisesRegex(agent_runtime.InvalidError, "takes no idempotency key"):
            make("http://127.0.0.1:1").do(lambda one: one.runs.cancel("r", options={"idempotency_key": "k"}))

    @of_both
    def test_an_option_that_a_call_does_not_have_is_refused(self, make: Any) -> None:
        client = make("http://127.0.0.1:1")
        with self.assertRaisesRegex(agent_runtime.InvalidError, "no options timeouts. It has timeout, retries"):
            client.do(lambda one: one.runs.get("r", options={"timeouts": 1}))
        with self.assertRaisesRegex(agent_runtime.InvalidError, "no options retries. It has headers, on_answer"):
            client.do(lambda one: one.runs.follow("r", options={"retries": 1}))

    @of_both
    def test_a_server_that_is_not_there_is_said(self, make: Any) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        client = make(url, retries=1)
        with self.assertRaises(agent_runtime.NetworkError) as raised:
            client.do(cancel)
        self.assertRegex(str(raised.exception), r"^POST /v1/runs/r/cancel got no answer: .")

    @of_both
    def test_a_silent_server_and_a_slow_body_meet_the_deadline(self, make: Any) -> None:
        for script in (silent, slow_body):
            with Scripted([script]) as server, self.assertRaisesRegex(agent_runtime.DeadlineError, r"within 0\.3 s"):
                make(server.url, timeout=0.3, retries=0).do(get)

    @of_both
    def test_a_kept_connection_that_went_half_open_is_left_for_another(self, make: Any) -> None:
        used: list[socket.socket] = []

        def on(script: Any) -> Any:
            def noted(connection: socket.socket, came: Any) -> None:
                used.append(connection)
                script(connection, came)

            return noted

        with Scripted([on(answers(200, RUN)), on(silent), on(answers(200, RUN))]) as server:
            client = make(server.url, timeout=0.3)
            for _ in range(2):
                self.assertEqual(client.do(get).raw, RUN)
        self.assertIs(used[0], used[1])
        self.assertIsNot(used[1], used[2])

    @of_both
    def test_after_a_slow_body_a_read_is_sent_again_and_what_must_not_happen_twice_is_not(self, make: Any) -> None:
        with Scripted([slow_body, slow_body, answers(200, RUN)]) as server:
            self.assertEqual(make(server.url, timeout=0.3).do(get).raw, RUN)
            self.assertEqual(len(server.came), 3)
        with Scripted([slow_body, answers(202, STARTED)]) as server:
            self.assertEqual(make(server.url, timeout=0.3).do(start).run.id, "r")
            self.assertEqual(len({came.headers["idempotency-key"] for came in server.came}), 1)
        with Scripted([slow_body, answers(202, RUN)]) as server:
            with self.assertRaises(agent_runtime.DeadlineError):
                make(server.url, timeout=0.3).do(cancel)
            self.assertEqual(len(server.came), 1)

    @of_both
    def test_what_the_server_asks_for_is_waited_for_up_to_a_bound(self, make: Any) -> None:
        with Scripted([refuses(429, "too-many-requests", {"retry-after": "9"}), answers(200, RUN)]) as server:
            with self.assertRaises(agent_runtime.RateLimitError):
                make(server.url).do(get)
            self.assertEqual(len(server.came), 1)

    def test_retry_after_is_seconds_or_a_date(self) -> None:
        self.assertEqual(retry_after({"retry-after": "2"}), 2.0)
        self.assertEqual(retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}), 0.0)
        self.assertIsNone(retry_after({"retry-after": "soon"}))
        self.assertIsNone(retry_after({}))
        self.assertTrue(all(0.0 < pause(attempt) <= 8.0 for attempt in range(1, 30)))

    @of_both
    def test_an_error_has_what_the_server_said(self, make: Any) -> None:
        with Scripted([refuses(409, "membership-exists", role="viewer")]) as server:
            with self.assertRaises(agent_runtime.ConflictError) as raised:
                make(server.url).do(lambda one: one.projects.memberships.add("p", user_id="u", role="editor"))
        error = raised.exception
        self.assertEqual((error.code, error.server_code, error.status), ("conflict", "membership-exists", 409))
        self.assertEqual((error.details, error.request_id, error.reason), ({"role": "viewer"}, "req-1", None))
        self.assertEqual(str(error), "It is membership-exists. (req-1)")
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((type(again), vars(again)), (type(error), vars(error)))

    @of_both
    def test_a_denial_is_an_auth_error(self, make: Any) -> None:
        for status, code, reason in (
            (403, "permission-denied", "forbidden"),
            (401, "unauthenticated", "unauthenticated"),
        ):
            with Scripted([refuses(status, code)]) as server, self.assertRaises(agent_runtime.AuthError) as raised:
                make(server.url).do(lambda one: one.projects.access.list("p"))
            self.assertEqual((raised.exception.server_code, raised.exception.reason), (code, reason))

    def test_the_table_of_errors_says_what_becomes_of_every_code_of_the_server(self) -> None:
        page = (ROOT / "clients/README.md").read_text(encoding="utf-8")
        said: dict[str, tuple[str, str]] = {}
        for word, name, statuses in re.findall(r"^\| `([\w-]+)` \| `(\w+)` \| (.*?) \|$", page, re.MULTILINE):
            for status in re.findall(r"\b\d{3}(?: [a-z-]+)?\b", statuses):
                said[status] = (name, word)
        codes = re.findall(
            r"Self::\w+ => \((\d+), \"([\w-]+)\"\)", (ROOT / "src/error/mod.rs").read_text(encoding="utf-8")
        )
        self.assertGreater(len(codes), 40)
        for status, code in codes:
            kind = _errors.class_of(int(status), code)
            row = said.get(f"{status} {code}") or said.get(status)
            self.assertEqual(row, (kind.__name__, kind.code), f"the row of {status} {code} in clients/README.md")
        here = {kind.__name__ for kind in agent_runtime.AgentRuntimeError.__subclasses__()}
        named = set(re.findall(r"`(\w+Error)`", page))
        self.assertEqual(here, named - {"AgentRuntimeError"})

    def test_codes_that_no_client_knows_go_by_their_status(self) -> None:
        expected = {
            400: "invalid",
            401: "auth",
            403: "auth",
            404: "not-found",
            405: "invalid",
            409: "conflict",
            418: "invalid",
            429: "rate-limit",
            500: "server",
            502: "unavailable",
            503: "unavailable",
            504: "timeout",
            599: "server",
            302: "protocol",
        }
        self.assertEqual({status: _errors.class_of(status, "later").code for status in expected}, expected)

    @of_both
    def test_what_is_no_answer_of_this_api_is_said(self, make: Any) -> None:
        redirect = answers(302, None, {"location": "http://127.0.0.1:1/elsewhere"})
        for script, message in (
            (text(b"<html>Sign in"), "no JSON, but text/html"),
            (redirect, "redirects are not followed"),
            (answers(200, {"rows": []}), "no page of a list"),
        ):
            with Scripted([script]) as server, self.assertRaisesRegex(agent_runtime.ProtocolError, message):
                make(server.url).do(lambda one: one.projects.list())
        with Scripted([text(b"<h1>Too\n large", status=413)]) as server:
            with self.assertRaisesRegex(agent_runtime.InvalidError, "answered 413: <h1>Too large"):
                make(server.url).do(get)

    @of_both
    def test_an_answer_has_a_bound(self, make: Any) -> None:
        with (
            mock.patch.object(_protocol, "MOST_ANSWER_BYTES", 100),
            Scripted([answers(200, {"id": "x" * 200})]) as server,
        ):
            with self.assertRaisesRegex(agent_runtime.ProtocolError, "longer than 100 bytes"):
                make(server.url).do(get)

    @of_both
    def test_null_is_sent_and_none_is_left_out(self, make: Any) -> None:
        with Scripted([answers(200, {"endpointId": "e"})]) as server:
            client = make(server.url)
            client.do(lambda one: one.webhook_endpoints.update("e", filter=agent_runtime.NULL, url=None))
            record = agent_runtime.Record({"envName": "production", "name": "SIGNING"})
            client.do(lambda one: one.webhook_endpoints.update("e", secret_ref=record))
            at = datetime(2026, 11, 25, 9, 30, tzinfo=UTC)
            client.do(lambda one: one.webhook_endpoints.resend_failed("e", failed_since=at))
            self.assertEqual(
                [came.json for came in server.came],
                [
                    {"filter": None},
                    {"secretRef": {"envName": "production", "name": "SIGNING"}},
                    {"failedSince": "2026-11-25T09:30:00.000Z"},
                ],
            )
        self.assertIs(pickle.loads(pickle.dumps(agent_runtime.NULL)), agent_runtime.NULL)

    @of_both
    def test_ids_are_one_part_of_the_path(self, make: Any) -> None:
        with Scripted([answers(200, {})]) as server:
            client = make(server.url + "/behind/a/proxy/")
            client.do(lambda one: one.secrets.get("prod/../x", "a b?#ü"))
            self.assertEqual(server.came[0].target, "/behind/a/proxy/v1/secrets/prod%2F..%2Fx/a%20b%3F%23%C3%BC")
            for bad in ("", ".", ".."):
                with self.assertRaises(agent_runtime.InvalidError):
                    client.do(lambda one, bad=bad: one.runs.get(bad))
            self.assertEqual(len(server.came), 1)

    @of_both
    def test_a_page_that_is_left_leaves_nothing_open(self, make: Any) -> None:
        page = {"data": [{"id": "1"}, {"id": "2"}], "hasMore": True, "nextCursor": "c 1"}
        last = {"data": [{"id": "3"}], "hasMore": False}
        with Scripted([answers(200, page), answers(200, last), answers(200, page)]) as server:
            client = make(server.url)
            rows = client.do(lambda one: one.runs.list(project_id="p", limit=2))
            self.assertEqual([row.id for row in rows], ["1", "2", "3"])
            self.assertEqual(server.came[1].target, "/v1/runs?projectId=p&cursor=c%201&limit=2")
            rows = client.do(lambda one: one.runs.list(), 1)
            self.assertEqual((len(rows), len(server.came)), (1, 3))
            # One connection serves them all, and stays for the next request.
            self.assertEqual(server.open, 1)
            pool = client.client._transport._http._transport._pool
            self.assertEqual([one.is_idle() for one in pool.connections], [True])

    @of_both
    def test_routes_that_the_client_does_not_know_are_called_as_well(self, make: Any) -> None:
        with Scripted([reset, answers(200, {"data": [{"later": 1}]})]) as server:
            client = make(server.url)
            answer = client.do(
                lambda one: one.request(
                    "post",
                    "/v1/later",
                    query={"a": ["x", "y"], "b": True},
                    body={"c": 1},
                    options={"idempotency_key": "k"},
                )
            )
            self.assertEqual((answer.data[0].later, server.came[1].target), (1, "/v1/later?a=x&a=y&b=true"))
            self.assertEqual((server.came[1].method, server.came[1].json), ("POST", {"c": 1}))
            for path in ("v1/later", "/v1/later?a=1"):
                with self.assertRaises(agent_runtime.InvalidError):
                    client.do(lambda one, path=path: one.request("GET", path))

    @of_both
    def test_each_answer_is_told(self, make: Any) -> None:
        told: list[agent_runtime.Answer] = []
        with Scripted([refuses(503, "overloaded", {"x-request-id": "req-7"}), answers(200, RUN)]) as server:
            make(server.url, on_answer=told.append, headers={"X-Team": "blue"}).do(get)
            self.assertEqual(server.came[0].headers["x-team"], "blue")
        self.assertEqual(
            [(one.status, one.attempt, one.path) for one in told], [(503, 1, "/v1/runs/r"), (200, 2, "/v1/runs/r")]
        )
        self.assertEqual((told[0].request_id, told[1].request_id), ("req-7", None))

    @of_both
    def test_a_token_is_asked_for_each_try(self, make: Any) -> None:
        tokens = iter(["svc_bt_one", " svc_bt_two\n"])
        with Scripted([refuses(503, "overloaded"), answers(200, RUN)]) as server:
            make(server.url, lambda: next(tokens)).do(get)
            sent = [came.headers["authorization"] for came in server.came]
            self.assertEqual(sent, ["Bearer svc_bt_one", "Bearer svc_bt_two"])

    @of_both
    def test_no_token_is_in_a_message_a_log_or_what_is_shown(self, make: Any) -> None:
        records: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: records.append(handler.format(record))
        root = logging.getLogger()
        level, handlers = root.level, root.handlers
        root.setLevel(logging.DEBUG)
        root.handlers = [handler]
        try:
            said = list(self._faults(make))
        finally:
            root.setLevel(level)
            root.handlers = handlers
        self.assertGreater(len(said), 10)
        for one in [*said, *records]:
            self.assertNotIn(TOKEN, one)
            self.assertNotIn(TOKEN[7:40], one)

    def _faults(self, make: Any) -> Any:
        repeats = {
            "error": {"code": "unauthenticated", "message": f"No {TOKEN} here.", "details": {}, "requestId": "req-1"}
        }
        scripts = [
            reset,
            cut_body,
            silent,
            text(f"<p>{TOKEN}</p>".encode(), status=400),
            answers(401, repeats),
            answers(307, None, {"location": "/x"}),
        ]
        for script in scripts:
            with Scripted([script]) as server:
                client = make(server.url, retries=1, timeout=0.2)
                try:
                    client.do(get)
                except agent_runtime.AgentRuntimeError as error:
                    yield from (str(error), repr(error), "".join(traceback.format_exception(error)))
                transport = client.client._transport
                yield from (
                    repr(client.client),
                    repr(transport),
                    repr(transport.settings),
                    repr(transport.settings.token),
                )
        for bad in (f"{TOKEN}\r\nX-Other: 1", f"{TOKEN}é"):
            with self.assertRaises(agent_runtime.InvalidError) as raised:
                make("http://127.0.0.1:1", bad)
            yield str(raised.exception)
        for url in (f"http://{TOKEN}@host", f"http://user:{TOKEN}@host"):
            with self.assertRaises(agent_runtime.InvalidError) as raised:
                make(url)
            yield str(raised.exception)

    def test_addresses_and_tokens_come_from_the_environment_as_in_the_command_line(self) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".token") as file, Scripted([answers(200, RUN)]) as server:
            file.write("svc_bt_of_file\n")
            file.flush()
            for variables, token in (
                ({"AGENT_RUNTIME_TOKEN": "svc_bt_text"}, "svc_bt_text"),
                ({"AGENT_RUNTIME_TOKEN": "x", "AGENT_RUNTIME_TOKEN_FILE": file.name}, "svc_bt_of_file"),
            ):
                with mock.patch.dict(os.environ, {**variables, "AGENT_RUNTIME_URL": server.url}):
                    with agent_runtime.AgentRuntime() as runtime:
                        runtime.runs.get("r")
                self.assertEqual(server.came[-1].headers["authorization"], f"Bearer {token}")
        with mock.patch.dict(os.environ, {"AGENT_RUNTIME_TOKEN_FILE": "/nowhere"}):
            with agent_runtime.AgentRuntime() as runtime:
                with self.assertRaisesRegex(agent_runtime.InvalidError, "AGENT_RUNTIME_TOKEN_FILE names /nowhere"):
                    runtime.runs.get("r")
        for url in (
            "",
            "runtime.example",
            "ftp://host",
            "http://host?x=1",
            "http://host#x",
            "http://",
            "http://[",
            "http://h:x",
        ):
            with self.assertRaises(agent_runtime.InvalidError):
                agent_runtime.AgentRuntime(url)
        for options in ({"timeout": 0}, {"retries": -1}):
            with self.assertRaises(agent_runtime.InvalidError):
                agent_runtime.AgentRuntime(**options)  # type: ignore[arg-type]

    @of_both
    def test_the_file_of_a_token_is_read_for_each_try(self, make: Any) -> None:
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory) / "token"

            def replaced(connection: socket.socket, came: Any) -> None:
                file.write_text("svc_bt_second\n", encoding="utf-8")
                refuses(503, "overloaded")(connection, came)

            file.write_text("svc_bt_first\n", encoding="utf-8")
            with mock.patch.dict(os.environ, {"AGENT_RUNTIME_TOKEN_FILE": str(file)}):
                with Scripted([replaced, answers(200, RUN)]) as server:
                    make(server.url, None).do(get)
                    sent = [came.headers["authorization"] for came in server.came]
            self.assertEqual(sent, ["Bearer svc_bt_first", "Bearer svc_bt_second"])

    @of_both
    def test_an_empty_token_is_none(self, make: Any) -> None:
        with mock.patch.dict(os.environ, {"AGENT_RUNTIME_TOKEN": "svc_bt_text"}):
            for empty in ("", lambda: ""):
                with Scripted([answers(200, RUN)]) as server:
                    make(server.url, empty).do(get)
                    self.assertNotIn("authorization", server.came[0].headers)
            client = make("http://127.0.0.1:1")
            for missing in ("", None):
                with self.assertRaisesRegex(agent_runtime.InvalidError, "public token"):
                    type(client.client).for_run("http://127.0.0.1:1", missing)

    @of_both
    def test_bounds_are_those_of_a_call_too(self, make: Any) -> None:
        client = make("http://127.0.0.1:1")
        for options in ({"timeout": 0}, {"timeout": float("nan")}, {"retries": -1}):
            with self.assertRaises(agent_runtime.InvalidError):
                client.do(lambda one, options=options: one.runs.get("r", options=options))

    def test_threads_share_a_client(self) -> None:
        with Scripted([answers(200, RUN)]) as server, agent_runtime.AgentRuntime(server.url, TOKEN) as runtime:
            threads = [threading.Thread(target=lambda: [runtime.runs.get("r") for _ in range(20)]) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(len(server.came), 160)


def cut_body(connection: socket.socket, came: Any) -> None:
    """Half an answer, and a reset."""
    connection.sendall(HALF)
    reset(connection)


def short_body(connection: socket.socket, came: Any) -> None:
    """Half an answer, and a clean end."""
    connection.sendall(HALF)
    close(connection)


def no_answer(connection: socket.socket, came: Any) -> None:
    """A clean end in place of an answer."""
    close(connection)


def no_http(connection: socket.socket, came: Any) -> None:
    """What another service says."""
    connection.sendall(b"SMTP ready\r\n")
    close(connection)


HALF = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"id":'

# What a connection may do in place of an answer: whether a try is sent again must not depend on which.
BROKEN = (reset, no_answer, cut_body, short_body, no_http)


def slow_body(connection: socket.socket, came: Any) -> None:
    """A byte now and then, for ever."""
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n")
    ended = threading.Event()
    while not ended.wait(0.05):
        connection.sendall(b" ")
