"""Streams: each event once and in order, whatever becomes of their connections."""

import asyncio
import gc
import os
import random
import socket
import time
import unittest
from collections.abc import Callable
from typing import Any
from unittest import mock

import agent_runtime
from agent_runtime import _following, _helpers, types

from .both import TOKEN, of_both
from .scripted import (
    END,
    SOON,
    Came,
    Scripted,
    answers,
    beats,
    close,
    event,
    head,
    number_in,
    passing,
    refuses,
    reset,
    sends,
    silent,
)

# How often the streams of the longest test are cut: 500 in the soak.
CUTS = int(os.environ.get("AGENT_RUNTIME_CUTS", "50"))
QUICK = b"retry: 1\n\n"


def follow(client: Any, **options: Any) -> Any:
    return client.runs.follow("r", **options)


class Following(unittest.TestCase):
    @of_both
    def test_every_event_comes_once_and_in_order_through_cuts_at_any_byte(self, make: Any) -> None:
        chance = random.Random(11)
        count = CUTS * 30
        told = [
            event(number, "task.started", path=f"/do/{number}/Kyōto ☀ 🙂", type="set") for number in range(1, count)
        ]
        told.append(event(count, "run.completed"))
        cuts = [0]

        def script(connection: socket.socket, came: Came) -> None:
            rest = b"".join([QUICK, *told[(number_in(came) or 0) :], END])
            connection.sendall(head(200, {"content-type": "text/event-stream", "connection": "close"}))
            if cuts[0] == CUTS:
                connection.sendall(rest)
                close(connection)
            cuts[0] += 1
            connection.sendall(rest[: chance.randrange(len(rest) * 2 // CUTS)])
            (close if chance.random() < 0.5 else reset)(connection)

        with Scripted([script]) as server:
            events = make(server.url).do(follow)
        self.assertEqual([one.seq for one in events], list(range(1, count + 1)))
        self.assertEqual(events[0].data.path, "/do/1/Kyōto ☀ 🙂")
        self.assertEqual(cuts[0], CUTS)

    @of_both
    def test_a_stream_goes_on_after_what_was_given(self, make: Any) -> None:
        with Scripted([sends(SOON, event(8), END)]) as server:
            client = make(server.url)
            self.assertEqual([one.seq for one in client.do(lambda one: follow(one, after=7))], [8])
            self.assertEqual(server.came[0].target, "/v1/runs/r/progress/stream?after=7")
            self.assertEqual(server.came[0].headers["last-event-id"], "7")
            self.assertEqual(server.came[0].headers["authorization"], f"Bearer {TOKEN}")

    @of_both
    def test_what_passes_is_come_back_from(self, make: Any) -> None:
        scripts = [
            reset,
            refuses(503, "shutting-down"),
            refuses(500, "authorization-unavailable"),
            refuses(429, "too-many-requests"),
            sends(SOON, event(1), passing("stream.end", reason="server-stopping")),
            sends(SOON, event(2), passing("stream.reset", reason="reader-too-slow")),
            sends(SOON, passing("stream.end", reason="a-later-reason")),
            # What was given already, and then what follows.
            sends(SOON, event(2), event(3, "run.failed", failureMessage="no"), END),
        ]
        self._patch("_RETRY", 0.01)
        with Scripted(scripts) as server:
            self.assertEqual([one.seq for one in make(server.url).do(follow)], [1, 2, 3])
            self.assertEqual([number_in(came) for came in server.came], [None] * 5 + [1, 2, 2])

    @of_both
    def test_what_coming_back_does_not_mend_is_raised(self, make: Any) -> None:
        ends = sends(SOON, event(1), passing("stream.end", reason="credential-ended"))
        for refusal, kind in (
            (refuses(401, "unauthenticated"), agent_runtime.AuthError),
            (refuses(403, "permission-denied"), agent_runtime.AuthError),
            (refuses(404, "not-found"), agent_runtime.NotFoundError),
            (refuses(500, "internal"), agent_runtime.ServerError),
            (answers(200, {"data": []}), agent_runtime.ProtocolError),
            (sends(b"id: 2\ndata: no JSON\n\n"), agent_runtime.ProtocolError),
            (sends(b"id: two\ndata: {}\n\n"), agent_runtime.ProtocolError),
        ):
            with Scripted([ends, refusal]) as server:
                client, events = make(server.url), list[Any]()
                with self.assertRaises(kind):
                    client.do(lambda one, events=events: gather(one, events))
                self.assertEqual(([one.seq for one in events], len(server.came)), ([1], 2))

    @of_both
    def test_another_token_is_asked_for_when_one_ends(self, make: Any) -> None:
        tokens = iter(["svc_bt_first", "svc_bt_second"])
        ends = sends(SOON, event(1), passing("stream.end", reason="credential-ended"))
        with Scripted([ends, sends(event(2, "run.completed"), END)]) as server:
            self.assertEqual(len(make(server.url, lambda: next(tokens)).do(follow)), 2)
            self.assertEqual(server.came[1].headers["authorization"], "Bearer svc_bt_second")

    @of_both
    def test_connections_that_bring_nothing_have_an_end(self, make: Any) -> None:
        self._patch("MOST_FAILURES", 5)
        for script, kind in (
            (sends(), agent_runtime.NetworkError),
            (reset, agent_runtime.NetworkError),
            (refuses(503, "overloaded"), agent_runtime.UnavailableError),
        ):
            self._patch("_RETRY", 0.001)
            with Scripted([script]) as server:
                with self.assertRaises(kind):
                    make(server.url).do(follow)
                self.assertEqual(len(server.came), 5)

    @of_both
    def test_a_quiet_run_outlasts_any_number_of_its_connections(self, make: Any) -> None:
        self._patch("MOST_FAILURES", 3)
        quiet = [
            sends(QUICK, b":\n\n"),
            sends(QUICK, then=reset),
            sends(QUICK, passing("stream.end", reason="server-stopping")),
            sends(QUICK, passing("stream.reset", reason="reader-too-slow")),
        ]
        with Scripted([*(quiet * 3), sends(event(1, "run.completed"), END)]) as server:
            self.assertEqual([one.seq for one in make(server.url).do(follow)], [1])
            self.assertEqual(len(server.came), 13)

    @of_both
    def test_a_connection_that_is_half_open_is_left(self, make: Any) -> None:
        first, second = sends(SOON, event(1), then=silent), sends(event(2, "run.completed"), END)

        def script(connection: socket.socket, came: Came) -> None:
            # On a busy machine a connection may be left before its first event has come.
            (first if number_in(came) is None else second)(connection, came)

        with Scripted([script]) as server:
            events = make(server.url).do(lambda one: follow(one, max_silence=0.2))
            self.assertEqual([one.seq for one in events], [1, 2])

    @of_both
    def test_comments_keep_a_quiet_stream(self, make: Any) -> None:
        silence = 3.0

        def quiet(connection: socket.socket) -> None:
            beats(connection, silence + 0.5)
            connection.sendall(event(2, "run.completed") + END)
            close(connection)

        with Scripted([sends(SOON, event(1), then=quiet), sends(event(2, "run.completed"), END)]) as server:
            self.assertEqual(len(make(server.url).do(lambda one: follow(one, max_silence=silence))), 2)
            self.assertEqual(len(server.came), 1)

    @of_both
    def test_after_the_last_event_nothing_is_waited_for(self, make: Any) -> None:
        with Scripted([sends(event(1, "run.cancelled"))]) as server:
            self.assertEqual(len(make(server.url).do(follow)), 1)
            self.assertEqual(len(server.came), 1)

    @of_both
    def test_each_piece_of_text_comes_once(self, make: Any) -> None:
        step = {"step": 1, "attempt": 1}
        begun = event(1, "step.started", **step, type="model", name="m")
        first = [
            passing("text.delta", **step, offset=0, text="Kyō"),
            passing("text.delta", **step, offset=3, text="to 🙂"),
        ]
        again = [
            passing("text.delta", **step, offset=0, text="Kyōto"),
            passing("text.delta", **step, offset=5, text=" 🙂 is"),
        ]
        failed = event(2, "step.failed", **step, type="model", name="m", reason="cut", willRetry=True)
        late = passing("text.delta", **step, offset=9, text="late")
        second = {"step": 1, "attempt": 2}
        anew = [
            event(3, "step.started", **second, type="model", name="m"),
            passing("text.delta", **second, offset=0, text="In"),
            passing("text.delta", **second, offset=4, text="gap"),
        ]
        done = event(4, "step.completed", **second, type="model", name="m", text="In Kyōto")
        over = passing("text.delta", **second, offset=7, text="over")
        scripts = [
            sends(QUICK, begun, *first),
            sends(*again, failed, late, *anew, done, over, event(5, "run.completed"), END),
        ]
        with Scripted(scripts) as server:
            events = make(server.url).do(follow)
        deltas = [(one.data.attempt, one.data.offset, one.data.text) for one in events if one.kind == "text.delta"]
        self.assertEqual(deltas, [(1, 0, "Kyō"), (1, 3, "to 🙂"), (1, 7, " is"), (2, 0, "In"), (2, 4, "gap")])

    @of_both
    def test_events_that_nobody_knows_are_events(self, make: Any) -> None:
        with Scripted([sends(event(1, "run.sneezed", loud=True), passing("later.hint", n=[1]), END)]) as server:
            numbered, hint = make(server.url).do(follow)
        self.assertEqual(
            (type(numbered), numbered.kind, numbered.data), (types.OtherRunEvent, "run.sneezed", {"loud": True})
        )
        self.assertEqual((hint.kind, hint.data, hint.seq), ("later.hint", {"n": [1]}, None))

    @of_both
    def test_the_reviewers_stream_tells_where_it_begins_and_goes_on_from_there(self, make: Any) -> None:
        start = b'id: 41\nevent: stream.start\ndata: {"seq":41}\n\n'
        elsewhere = b'id: 99\nevent: stream.start\ndata: {"seq":99}\n\n'
        scripts = [sends(QUICK, start), sends(QUICK, elsewhere, event(43, "approval.waiting", title="Pay")), silent]
        with Scripted(scripts) as server:
            events = make(server.url).do(lambda one: one.approvals.follow(), 2)
            self.assertEqual(
                [(one.kind, type(one)) for one in events],
                [("stream.start", types.StreamStartEvent), ("approval.waiting", types.ApprovalEvent)],
            )
            self.assertEqual((events[0].data.seq, events[1].data.title), (41, "Pay"))
            self.assertEqual([number_in(came) for came in server.came], [None, 41])

    @of_both
    def test_waiting_ends_with_the_run_or_with_the_time(self, make: Any) -> None:
        run = {"id": "r", "status": "completed"}
        with Scripted([sends(QUICK, event(1)), sends(event(2, "run.completed"), END), answers(200, run)]) as server:
            self.assertEqual(make(server.url).do(lambda one: one.runs.wait("r")).status, "completed")
        # By itself none of these ends: not the silence, not the tries, and not the limit of a silence, which is a day.
        with mock.patch.object(_helpers, "MAX_SILENCE", 86_400.0):
            for script in (sends(event(1), then=silent), sends(QUICK)):
                with Scripted([script]) as server:
                    with self.assertRaisesRegex(agent_runtime.DeadlineError, r"within 0\.3 s"):
                        make(server.url).do(lambda one: one.runs.wait("r", timeout=0.3))

    @of_both
    def test_a_public_token_opens_progress_and_nothing_else(self, make: Any) -> None:
        with Scripted(
            [sends(event(1, "run.completed"), END), answers(200, {"run": {}, "data": [], "hasMore": False})]
        ) as server:
            client = make(server.url)
            reader = type(client.client).for_run(server.url, "svc_pt_a.b")
            self.assertEqual(len(client.do(lambda _: reader.follow("r"))), 1)
            self.assertEqual(client.do(lambda _: reader.progress("r", after=3, limit=2)).has_more, False)
            client.do(lambda _: reader.close())
            self.assertEqual({came.headers["authorization"] for came in server.came}, {"Bearer svc_pt_a.b"})
        self.assertEqual(
            [name for name in dir(reader) if not name.startswith("_")], ["base_url", "close", "follow", "progress"]
        )

    @of_both
    def test_a_stream_that_is_left_is_closed(self, make: Any) -> None:
        with Scripted([sends(SOON, event(1), event(2), then=silent)]) as server:
            client = make(server.url)
            for _ in range(5):
                self.assertEqual(len(client.do(follow, 1)), 1)
            self._none_open(server)

    def test_a_stream_that_is_let_go_is_closed(self) -> None:
        with Scripted([sends(SOON, event(1), event(2), then=silent)]) as server:
            with agent_runtime.AgentRuntime(server.url, TOKEN) as runtime:
                for one in runtime.runs.follow("r"):
                    self.assertEqual(one.seq, 1)  # type: ignore[union-attr]
                    break
                gc.collect()
                self._none_open(server)

            async def leave() -> None:
                async with agent_runtime.AsyncAgentRuntime(server.url, TOKEN) as client:
                    async for _ in client.runs.follow("r"):
                        break
                    gc.collect()
                    # The event loop closes it when it comes to it.
                    await asyncio.to_thread(self._none_open, server)

            asyncio.run(leave())

    def test_a_task_that_is_cancelled_leaves_its_stream(self) -> None:
        async def cancelled(server: Scripted) -> None:
            async with agent_runtime.AsyncAgentRuntime(server.url, TOKEN) as client:
                task = asyncio.create_task(client.runs.wait("r"))
                await asyncio.to_thread(self._eventually, lambda: bool(server.came))
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self._none_open(server)

        with Scripted([sends(SOON, event(1), then=silent)]) as server:
            asyncio.run(cancelled(server))

    def test_a_stream_knows_its_place(self) -> None:
        with Scripted(
            [sends(SOON, event(4), passing("text.delta", step=1, attempt=1, offset=0, text="a"), event(5), then=silent)]
        ) as server:
            with agent_runtime.AgentRuntime(server.url, TOKEN) as runtime, runtime.runs.follow("r", after=3) as events:
                places = [events.last_event_id]
                for _ in range(3):
                    next(events)
                    places.append(events.last_event_id)
                self.assertEqual(places, [3, 4, 4, 5])

    def test_many_streams_at_once(self) -> None:
        async def all_of(url: str) -> list[int]:
            async def one(client: agent_runtime.AsyncAgentRuntime) -> int:
                return len([each async for each in client.runs.follow("r")])

            async with agent_runtime.AsyncAgentRuntime(url, TOKEN) as client:
                return await asyncio.gather(*(one(client) for _ in range(50)))

        with Scripted([sends(SOON, event(1), event(2, "run.completed"), END)]) as server:
            self.assertEqual(asyncio.run(all_of(server.url)), [2] * 50)

    def _none_open(self, server: Scripted) -> None:
        self._eventually(lambda: server.open == 0)

    def _eventually(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not holds():
            self.assertLess(time.monotonic(), deadline, "waited in vain")
            time.sleep(0.01)

    def _patch(self, name: str, value: Any) -> None:
        self.addCleanup(setattr, _following, name, getattr(_following, name))
        setattr(_following, name, value)


def gather(client: Any, events: list[Any]) -> Any:
    """Follows, and keeps what comes before an error."""
    given = follow(client)
    if isinstance(given, agent_runtime.Stream):
        events.extend(given)
        return None

    async def read() -> None:
        async for one in given:
            events.append(one)

    return read()
