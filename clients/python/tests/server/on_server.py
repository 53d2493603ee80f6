"""Both clients on a server: what a client of a scripted server cannot show."""

import http.server
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import threading
import time
import unittest
from collections.abc import Callable
from typing import Any

import agent_runtime
import agent_runtime._following
from agent_runtime import AgentRuntime, parse_event, types

from ..both import of_both
from .line import Line, cuts_after, lets_all_through

URL, TOKEN, AGENT, PROJECT = (os.environ[name] for name in ("URL", "TOKEN", "AGENT", "PROJECT"))
SECRET, ENVIRONMENT = os.environ["SECRET"], os.environ["ENVIRONMENT"]
CUTS = int(os.environ.get("AGENT_RUNTIME_CUTS", "50"))
PACKAGE = pathlib.Path(__file__).parents[2]
OTHER_SECRET = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"


def runtime() -> AgentRuntime:
    return AgentRuntime(URL, TOKEN)


def eventually(what: str, look: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within 30 s")


class OnServer(unittest.TestCase):
    def many_events(self) -> tuple[str, list[Any]]:
        """A run that has ended, and its events as pages have them."""
        with runtime() as client:
            started = client.runs.create(flow_id="tests.many")
            self.assertEqual(client.runs.wait(started.run.id, timeout=300).status, "completed")
            wanted, has_more = list[Any](), True
            while has_more:
                page = client.runs.progress(started.run.id, after=wanted[-1].seq if wanted else 0, limit=200)
                wanted += page.data
                has_more = page.has_more
        self.assertGreater(len(wanted), 200)
        return started.run.id, wanted

    @of_both
    def test_events_come_once_and_in_order_over_cuts_at_random_bytes(self, make: Any) -> None:
        run, wanted = self.many_events()
        chance = random.Random(3)
        # About the head of an answer, and so much that all cuts come before the end.
        size = len(json.dumps([event.raw for event in wanted]))

        def begin(number: int) -> Any:
            return cuts_after(int(350 + chance.random() * size / CUTS)) if number <= CUTS else lets_all_through

        with Line(URL, begin, is_cut_by_reset=lambda: chance.random() < 0.5) as line:
            most, agent_runtime._following.MOST_FAILURES = agent_runtime._following.MOST_FAILURES, 1000
            try:
                seen = make(line.url, TOKEN).do(lambda client: client.runs.follow(run))
            finally:
                agent_runtime._following.MOST_FAILURES = most
        self.assertEqual([event.raw for event in seen], [event.raw for event in wanted])
        self.assertGreater(line.connections, CUTS)

    def test_a_program_that_is_killed_while_it_follows_goes_on_where_it_was(self) -> None:
        run, wanted = self.many_events()
        program = """if True:
            import sys, time
            from agent_runtime import AgentRuntime
            run, after = sys.argv[1:]
            for event in AgentRuntime().runs.follow(run, after=int(after)):
                print(event.seq, flush=True)
                time.sleep(0.002)
        """
        environment = {**os.environ, "AGENT_RUNTIME_URL": URL, "AGENT_RUNTIME_TOKEN": TOKEN, "PYTHONPATH": str(PACKAGE)}
        seen, kills = list[int](), 0
        while not seen or seen[-1] != wanted[-1].seq:
            command = [sys.executable, "-c", program, run, str(seen[-1] if seen else 0)]
            with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout is not None
                for count, line in enumerate(process.stdout, 1):
                    # What was half written when it died is not had.
                    if line.endswith("\n"):
                        seen.append(int(line))
                    if count == 20 and kills < 4:
                        process.send_signal(signal.SIGKILL)
                        kills += 1
        self.assertEqual(seen, [event.seq for event in wanted])
        self.assertEqual(kills, 4)

    @of_both
    def test_a_start_whose_answer_is_lost_is_one_run(self, make: Any) -> None:
        lost: list[int] = []

        def begin(number: int) -> Any:
            def pass_on(part: bytes) -> tuple[bytes, bool]:
                lost.append(number)
                return (b"", False) if len(lost) == 1 else (part, True)

            return pass_on

        with Line(URL, begin, is_cut_by_reset=lambda: True) as line:
            client = make(line.url, TOKEN)
            label = type(client).__name__
            started = client.do(
                lambda one: one.runs.create(agent_id=AGENT, message="Once", labels={"python-client": label})
            )
            self.assertGreater(len(lost), 1, "the answer was lost")
            with runtime() as direct:
                runs = [run.id for run in direct.runs.list(label=[f"python-client:{label}"])]
            self.assertEqual(runs, [started.run.id])
            # Without a key nobody knows, and the caller is told.
            lost.clear()
            client = make(line.url, TOKEN)
            with self.assertRaises(agent_runtime.NetworkError):
                client.do(lambda one: one.projects.create(name="lost"))

    @of_both
    def test_a_turn_is_followed_with_a_public_token_and_its_text_comes_once(self, make: Any) -> None:
        client = make(URL, TOKEN)
        started = client.do(lambda one: one.runs.create(agent_id=AGENT, message="Hello"))
        assert started.public_token is not None
        reader = type(client.client).for_run(URL, started.public_token.token)
        events = client.do(lambda _: reader.follow(started.run.id))
        text = "".join(event.data.text for event in events if event.kind == "text.delta")
        whole = [event.data.text for event in events if event.kind == "step.completed"][-1]
        self.assertTrue(text and whole.startswith(text), text)
        self.assertEqual(
            [type(event) for event in events if event.kind == "step.completed"], [types.StepCompletedEvent]
        )
        self.assertEqual(client.do(lambda _: reader.progress(started.run.id)).run.status, "completed")
        other = client.do(lambda one: one.runs.create(agent_id=AGENT, message="Hello"))
        with self.assertRaises(agent_runtime.AuthError) as raised:
            client.do(lambda _: reader.progress(other.run.id))
        self.assertEqual(raised.exception.reason, "forbidden")
        client.do(lambda _: reader.close())
        run = client.do(lambda one: one.runs.wait(other.run.id, timeout=300))
        self.assertEqual((run.status, run.agent.id, run.created_at.tzname()), ("completed", AGENT, "UTC"))

    def test_webhooks_of_the_server_verify_and_no_longer_with_another_secret(self) -> None:
        events: list[Any] = []
        with Receiver(events) as receiver, runtime() as client:
            endpoint = client.webhook_endpoints.create(
                url=receiver,
                events=["run.finished", "approval.requested"],
                secret_ref={"envName": ENVIRONMENT, "name": "signing"},
            )
            client.webhook_endpoints.send_test(endpoint.endpoint_id)
            started = client.runs.create(agent_id=AGENT, message="Hello")
            finished = eventually("the delivery of the run", lambda: [
                event for event in events if event.type == "run.finished" and event.data.run.id == started.run.id
            ])  # fmt: skip
            test = eventually("the test", lambda: [event for event in events if event.type == "webhook.test"])
            self.assertEqual(finished[0].data.run.agent.id, AGENT)
            self.assertEqual(test[0].data.endpoint_id, endpoint.endpoint_id)
            client.webhook_endpoints.unregister(endpoint.endpoint_id)
            with self.assertRaises(agent_runtime.NotFoundError):
                client.webhook_endpoints.get(endpoint.endpoint_id)

    @of_both
    def test_a_list_of_the_server_is_read_by_pages_and_may_be_left(self, make: Any) -> None:
        client = make(URL, TOKEN)
        label = f"{type(client).__name__}-list"
        for _ in range(5):
            client.do(lambda one: one.runs.create(agent_id=AGENT, message="Hello", labels={"python-client": label}))
        listed = [f"python-client:{label}"]
        self.assertEqual(len({run.id for run in client.do(lambda one: one.runs.list(label=listed, limit=2))}), 5)
        self.assertEqual(len(client.do(lambda one: one.runs.list(label=listed, limit=2), 3)), 3)
        pool = client.client._transport._http._transport._pool
        self.assertEqual([one.is_idle() for one in pool.connections], [True])

    @of_both
    def test_a_reviewers_stream_tells_of_an_approval_and_the_decision_goes_on(self, make: Any) -> None:
        client = make(URL, TOKEN)
        with runtime() as other, other.approvals.follow() as told:
            self.assertEqual(next(told).kind, "stream.start")
            started = client.do(lambda one: one.runs.create(flow_id="billing.refund"))
            asked = next(event for event in told if event.kind == "approval.waiting")
            assert isinstance(asked, types.ApprovalEvent)
            self.assertEqual((asked.data.run_id, asked.data.title), (started.run.id, "Pay a refund"))
            whole = client.do(lambda one: one.approvals.get(asked.data.approval_id))
            self.assertEqual(whole.status, "waiting")
            decided = client.do(lambda one: one.approvals.decide(whole.id, decision="approve", comment="Paid"))
            self.assertEqual(decided.status, "approved")
        self.assertEqual(client.do(lambda one: one.runs.wait(started.run.id, timeout=300)).status, "completed")

    def test_the_programs_of_the_readme_run(self) -> None:
        blocks = re.findall(r"```python\n(.*?)```", (PACKAGE / "README.md").read_text(encoding="utf-8"), re.DOTALL)
        self.assertEqual(len(blocks), 7)
        body = json.dumps({"id": "e", "type": "webhook.test", "data": {}}).encode()
        events: list[Any] = []
        with Receiver(events) as receiver:
            given = {
                "agent_id": AGENT, "signing_secret": SECRET, "receiver": receiver, "body": body,
                "headers": {"webhook-id": "e", "webhook-timestamp": "0", "webhook-signature": "v1,"},
            }  # fmt: skip
            for block in blocks:
                # A denial needs a server that checks: `denied`.
                if "token_of_a_viewer" not in block:
                    exec(compile(block, "README.md", "exec"), given)


class Receiver:
    """Takes webhooks, and keeps those that verify."""

    def __init__(self, events: list[Any]) -> None:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                event = parse_event(body, self.headers, [OTHER_SECRET, SECRET])
                try:
                    parse_event(body, self.headers, OTHER_SECRET)
                except agent_runtime.WebhookSignatureError:
                    events.append(event)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, name="receiver", daemon=True).start()

    def __enter__(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/hooks"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
