import random
import unittest

from agent_runtime import _events
from agent_runtime._events import Reader, ServerSentEvent, TooLong

STREAM = (
    '\ufeffretry: 2000\n\n:\n\nid: 1\nevent: run.created\ndata: {"text": "Kyōto ☀ 🙂"}\n\n'
    "event: text.delta\ndata:one\ndata: two\n\nid: a\0b\ndata\n\ndata: last\n\n: cut\ndata: never"
)
EVENTS = [
    ServerSentEvent("1", "run.created", '{"text": "Kyōto ☀ 🙂"}'),
    ServerSentEvent(None, "text.delta", "one\ntwo"),
    ServerSentEvent(None, "message", ""),
    ServerSentEvent(None, "message", "last"),
]


class Events(unittest.TestCase):
    def test_every_ending_and_every_cut_gives_the_same_events(self) -> None:
        chance = random.Random(7)
        for ending in ("\n", "\r", "\r\n"):
            whole = STREAM.replace("\n", ending).encode()
            for size in (1, 2, 3, 5, 7, 64, 4096):
                reader, events, at = Reader(), list[ServerSentEvent](), 0
                while at < len(whole):
                    step = chance.randint(1, size)
                    events += reader.feed(whole[at : at + step])
                    at += step
                self.assertEqual(events, EVENTS, (ending, size))
                self.assertEqual(reader.retry_ms, 2000)

    def test_a_retry_that_is_no_number_is_left_out(self) -> None:
        reader = Reader()
        reader.feed("retry: 1.5\nretry: -1\nretry: ٣\n\n".encode())
        self.assertIsNone(reader.retry_ms)

    def test_an_event_has_a_bound_and_comments_have_none_together(self) -> None:
        most, _events.MOST_EVENT_BYTES = _events.MOST_EVENT_BYTES, 1000
        self.addCleanup(setattr, _events, "MOST_EVENT_BYTES", most)
        reader = Reader()
        for _ in range(1000):
            reader.feed(b":\n\n")
        with self.assertRaises(TooLong):
            for _ in range(200):
                reader.feed(b"data: more\n")
        with self.assertRaises(TooLong):
            Reader().feed(b"data: " + b"x" * 1001)
