"""Webhooks: verify what came, then read it.

Guarantees: an event is returned only if one of the secrets signed exactly these bytes, at most five minutes ago
(Standard Webhooks 1.0). Comparing takes the same time whatever differs. What is not here: recognising an event that came before;
`event.id` is the same each time.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from ._errors import InvalidError, ProtocolError, WebhookSignatureError
from ._json import json_object

if TYPE_CHECKING:
    from .types import WebhookEvent

__all__ = ["WebhookSignatureError", "parse_event"]

_PREFIX = "whsec_"
_LEAST_KEY_BYTES = 24
_VERSION = "v1,"


def parse_event(
    body: bytes | bytearray | memoryview | str,
    headers: Mapping[str, Any] | Iterable[tuple[str, str]],
    secret: str | Iterable[str],
    *,
    tolerance: float = 300.0,
    now: float | None = None,
) -> WebhookEvent:
    """Verifies a delivery and returns its event. Raises :class:`WebhookSignatureError`, or
    :class:`ProtocolError` for what is signed and no event.

    ``body`` is what came, byte for byte. ``headers`` are those of the request, in any case. ``secret`` is the signing
    secret, ``whsec_`` included, or several while one is changed. ``tolerance`` is how many seconds the sender's clock
    may differ; ``now`` is the time to compare with, in Unix seconds.

    A kind of event that this client does not know has its fields ``type`` and ``data`` as they came.
    """
    content = _bytes(body)
    named = _headers(headers)
    identity, timestamp = named.get("webhook-id", ""), named.get("webhook-timestamp", "")
    signatures = named.get("webhook-signature", "")
    if not (identity and timestamp and signatures):
        raise WebhookSignatureError("webhook-id, webhook-timestamp and webhook-signature are not all there.")
    keys = [_key(one) for one in ([secret] if isinstance(secret, str) else secret)]
    if not keys:
        raise InvalidError("A webhook is verified with a secret, and there is none.")
    _check_time(timestamp, time.time() if now is None else now, tolerance)
    signed = f"{identity}.{timestamp}.".encode() + content
    expected = [base64.b64encode(hmac.digest(key, signed, hashlib.sha256)) for key in keys]
    given = [one.removeprefix(_VERSION).encode() for one in signatures.split(" ") if one.startswith(_VERSION)]
    # No early end: every signature is compared with every key.
    matches = [hmac.compare_digest(one, other) for one in given for other in expected]
    if not any(matches):
        raise WebhookSignatureError("No signature of the delivery is one of the secret over these bytes.")
    return _event(content, identity)


def _bytes(body: object) -> bytes:
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(cast("bytes", body))
    raise InvalidError("parse_event takes the body as it came: text or bytes, before anything has parsed it.")


def _headers(headers: Mapping[str, Any] | Iterable[tuple[str, str]]) -> dict[str, str]:
    pairs = cast("Mapping[str, Any]", headers).items() if hasattr(headers, "items") else headers
    return {str(name).lower(): str(value) for name, value in cast("Iterable[tuple[str, Any]]", pairs)}


def _key(secret: str) -> bytes:
    try:
        if not secret.startswith(_PREFIX):
            raise ValueError
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (ValueError, binascii.Error):
        key = b""
    if len(key) < _LEAST_KEY_BYTES:
        raise InvalidError(f"A webhook's secret is {_PREFIX} and the base64 of {_LEAST_KEY_BYTES} bytes or more.")
    return key


def _check_time(timestamp: str, now: float, tolerance: float) -> None:
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= 12):
        raise WebhookSignatureError("webhook-timestamp is no time in Unix seconds.")
    if abs(now - int(timestamp)) > tolerance:
        raise WebhookSignatureError(
            f"The delivery was signed more than {tolerance:g} s before or after now. Is this machine's clock right?"
        )


def _event(content: bytes, identity: str) -> WebhookEvent:
    from .types import MAKERS

    try:
        raw = json_object(json.loads(content))
    except (ValueError, RecursionError):
        raw = None
    if raw is None or not isinstance(raw.get("type"), str):
        raise ProtocolError("The delivery is signed, but is no event: it has no type.")
    if raw.get("id") != identity:
        raise ProtocolError("The delivery is signed, but webhook-id is not the id of its event.")
    return cast("WebhookEvent", MAKERS["WebhookEvent"](raw))
