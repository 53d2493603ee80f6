import base64
import datetime
import email.message
import json
import time
import unittest

import standardwebhooks

from agent_runtime import InvalidError, ProtocolError, WebhookSignatureError, types
from agent_runtime.webhooks import parse_event

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_" + base64.b64encode(bytes(range(32))).decode()
RUN = {"id": "r", "projectId": "p", "flowId": "agent.turn", "status": "completed"}
AGENT = {"id": "a", "version": "1.2.0", "conversationId": None, "via": "live"}


def signed(body: bytes, secret: str = SECRET, at: float | None = None, identity: str = "e") -> dict[str, str]:
    when = int(time.time() if at is None else at)
    hook = standardwebhooks.Webhook(secret)
    time_of = datetime.datetime.fromtimestamp(when, datetime.UTC)
    signature = hook.sign(identity, time_of, body.decode())
    return {"webhook-id": identity, "webhook-timestamp": str(when), "webhook-signature": signature}


def event(kind: str = "run.finished", **data: object) -> bytes:
    return json.dumps({"id": "e", "type": kind, "createdAt": "2026-11-25T09:30:12.043Z", "data": data}).encode()


class Webhooks(unittest.TestCase):
    def test_the_vector_of_the_standard(self) -> None:
        body = b'{"test": 2432232314}'
        headers = {
            "Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "Webhook-Timestamp": "1614265330",
            "Webhook-Signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        }
        # It is signed, but has no type.
        with self.assertRaisesRegex(ProtocolError, "is no event"):
            parse_event(body, headers, SECRET, now=1614265331)

    def test_events_are_read_also_those_that_are_not_known(self) -> None:
        body = event(run={**RUN, "agent": AGENT})
        parsed = parse_event(body, signed(body), SECRET)
        assert isinstance(parsed, types.RunFinishedWebhookEvent)
        assert parsed.data.run.agent is not None
        self.assertEqual((parsed.id, parsed.data.run.agent.version), ("e", "1.2.0"))
        self.assertEqual(parsed.created_at.year, 2026)

        body = event(run=RUN)
        parsed = parse_event(body, signed(body), SECRET)
        assert parsed.type == "run.finished"
        self.assertEqual((parsed.data.run.agent, parsed.data.run.usage), (None, None))

        body = event("webhook.test", endpointId="n", message="This is a test.")
        parsed = parse_event(body, signed(body), SECRET)
        self.assertEqual((type(parsed), parsed.data.message), (types.TestWebhookEvent, "This is a test."))

        body = event("improvement-pass.finished", **{"pass": {"id": "p", "outcome": {"proposalId": "q"}}})
        parsed = parse_event(body, signed(body), SECRET)
        assert isinstance(parsed, types.ImprovementPassFinishedWebhookEvent)
        assert parsed.data.pass_.outcome is not None
        self.assertEqual(parsed.data.pass_.outcome.proposal_id, "q")

        body = event("run.sneezed", loud=True)
        parsed = parse_event(body, signed(body), SECRET)
        self.assertEqual(
            (type(parsed), parsed.type, parsed.data), (types.OtherWebhookEvent, "run.sneezed", {"loud": True})
        )

    def test_bodies_and_headers_of_many_servers(self) -> None:
        body = event(run=RUN)
        headers = signed(body)
        message = email.message.Message()
        for name, value in headers.items():
            message[name.title()] = value
        for given in (
            headers,
            message,
            list(headers.items()),
            {name.upper(): value for name, value in headers.items()},
        ):
            for same in (body, bytearray(body), memoryview(body), body.decode()):
                self.assertEqual(parse_event(same, given, SECRET).id, "e")

    def test_an_event_under_the_id_of_another_is_refused(self) -> None:
        body = event(run=RUN)
        with self.assertRaisesRegex(ProtocolError, "not the id of its event"):
            parse_event(body, signed(body, identity="another"), SECRET)

    def test_while_a_secret_is_changed_either_will_do(self) -> None:
        body = event(run=RUN)
        now = time.time()
        old, new = signed(body, SECRET, now), signed(body, OTHER, now)
        both = {**new, "webhook-signature": f"{new['webhook-signature']} v2,x {old['webhook-signature']}"}
        for secret in (SECRET, OTHER, [SECRET, OTHER], (OTHER,)):
            self.assertEqual(parse_event(body, both, secret).id, "e")
        self.assertEqual(parse_event(body, old, [OTHER, SECRET]).id, "e")
        with self.assertRaises(WebhookSignatureError):
            parse_event(body, old, OTHER)

    def test_a_secret_that_is_none_is_said_without_it(self) -> None:
        body = event(run=RUN)
        for secret in ("", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_short", "whsec_%%%%", "whsec_c2hvcnQ="):
            with self.assertRaises(InvalidError) as raised:
                parse_event(body, signed(body), secret)
            self.assertNotIn(secret or "none", str(raised.exception))
        with self.assertRaises(InvalidError):
            parse_event(body, signed(body), [])

    def test_a_body_that_something_has_parsed_is_refused(self) -> None:
        headers = signed(event(run=RUN))
        for body in ({"type": "run.finished"}, None, 7):
            with self.assertRaises(InvalidError):
                parse_event(body, headers, SECRET)  # type: ignore[arg-type]

    def test_forty_forged_deliveries_are_refused_here_and_by_the_library_of_the_standard(self) -> None:
        forged = list(forgeries())
        self.assertEqual(len(forged), 40)
        hook = standardwebhooks.Webhook(SECRET)
        for number, (body, headers) in enumerate(forged):
            with self.subTest(number):
                with self.assertRaises(WebhookSignatureError):
                    parse_event(body, headers, SECRET)
                with self.assertRaises(Exception):  # noqa: B017
                    hook.verify(body, headers)

    def test_what_is_not_forged_is_taken_by_both(self) -> None:
        hook = standardwebhooks.Webhook(SECRET)
        for seconds in (-290, -1, 0, 1, 290):
            body = event(run={**RUN, "flowId": "Kyōto ☀"})
            headers = signed(body, at=time.time() + seconds)
            hook.verify(body, headers)
            self.assertEqual(parse_event(body, headers, SECRET).id, "e")


def forgeries():
    """Deliveries that nobody with the secret sent, or not now, or not so."""
    body = event(run=RUN)
    now = time.time()
    good = signed(body, at=now)
    # Bodies that are not the one that was signed.
    for other in (
        b"",
        b"{}",
        body + b" ",
        b" " + body,
        body[:-1],
        body.replace(b"completed", b"cancelled"),
        body.replace(b"{", b"{ ", 1),
        body.upper(),
        body * 2,
        body.replace(b'"r"', b'"s"'),
    ):
        yield other, good
    # Headers that are missing, or another's.
    for name in good:
        yield body, {key: value for key, value in good.items() if key != name}
        yield body, {**good, name: ""}
    yield body, {**good, "webhook-id": "f"}
    yield body, {**good, "webhook-id": "e."}
    yield body, {**good, "webhook-timestamp": str(int(now) + 1)}
    # Times at which it was not signed, or too long ago.
    for at in (now - 301, now + 302, now - 86400, 0):
        yield body, signed(body, at=at)
    for stamp in ("now", "1e9", "-1", f"{now:.3f}x", "9" * 30):
        yield body, {**good, "webhook-timestamp": stamp}
    # Signatures of others, and of other forms.
    signature = good["webhook-signature"]
    yield body, signed(body, OTHER)
    yield body, {**good, "webhook-signature": signature.removeprefix("v1,")}
    yield body, {**good, "webhook-signature": signature.replace("v1,", "v2,")}
    yield body, {**good, "webhook-signature": signature.replace("v1,", "v1a,")}
    yield body, {**good, "webhook-signature": signature[:-2]}
    yield body, {**good, "webhook-signature": signature.swapcase()}
    yield body, {**good, "webhook-signature": "v1,"}
    yield body, {**good, "webhook-signature": " ".join(["v1,AAAA"] * 50)}
    yield body, {**good, "webhook-signature": signature.replace("v1,", "v1,AAAA")}
    yield body, {**good, "webhook-signature": f"v1, {signature[3:]}"}
    yield body, {**good, "webhook-signature": base64.b64encode(body).decode()}
    other = "B" if signature[10] == "A" else "A"
    yield body, {**good, "webhook-signature": f"{signature[:10]}{other}{signature[11:]}"}
