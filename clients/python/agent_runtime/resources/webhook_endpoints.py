# Written by clients/generate from the API description.
"""Receivers of events, and what became of each delivery."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from .. import inputs, types
from .._options import CallOptions
from .._page import Page
from .._protocol import Null, body_of, segment
from .._resource import Resource
from .._transport import Transport


class WebhookEndpointsDeliveries(Resource):
    """Calls of ``webhook_endpoints.deliveries``."""

    def list(
        self,
        webhook_endpoint_id: str,
        *,
        state: types.WebhookDeliveryState | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> Page[types.WebhookDelivery]:
        """List the deliveries to a webhook endpoint, newest first unless asked otherwise.

        Access: admin on webhook-endpoint in path. May also be refused with ``not-found``, ``not-configured``.

        - ``state``: In this state alone.
        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.WebhookDelivery,
            f"/v1/webhook-endpoints/{segment(webhook_endpoint_id)}/deliveries",
            query={"state": state, "cursor": cursor, "limit": limit, "order": order},
            options=options,
        )

    def get(
        self,
        webhook_endpoint_id: str,
        webhook_delivery_id: str,
        *,
        options: CallOptions | None = None,
    ) -> types.WebhookDeliveryWithAttempts:
        """Read a delivery with its attempts and its event.

        Access: admin on webhook-endpoint in path. May also be refused with ``not-found``, ``not-configured``.
        """
        return self._call(
            types.WebhookDeliveryWithAttempts,
            "GET",
            f"/v1/webhook-endpoints/{segment(webhook_endpoint_id)}/deliveries/{segment(webhook_delivery_id)}",
            options=options,
        )

    def resend(
        self,
        webhook_endpoint_id: str,
        webhook_delivery_id: str,
        *,
        options: CallOptions | None = None,
    ) -> types.WebhookDelivery:
        """Send a delivery again: a new delivery of the same event, with the event's id.

        Access: admin on webhook-endpoint in path. May also be refused with ``not-found``, ``conflict``,
        ``not-configured``.
        """
        return self._call(
            types.WebhookDelivery,
            "POST",
            f"/v1/webhook-endpoints/{segment(webhook_endpoint_id)}/deliveries/{segment(webhook_delivery_id)}/resend",
            options=options,
        )


class WebhookEndpoints(Resource):
    """Receivers of events, and what became of each delivery."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.deliveries = WebhookEndpointsDeliveries(transport)

    def create(
        self,
        *,
        url: str,
        events: Sequence[types.WebhookEventKind],
        secret_ref: inputs.SecretRefInput | types.SecretRef,
        filter: inputs.WebhookFilterInput | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.WebhookEndpoint:
        """Register a receiver of webhooks.

        Access: admin on tenant. May also be refused with ``webhook-url-refused``, ``webhook-secret-not-found``,
        ``webhook-secret-weak``, ``key-project-mismatch``, ``not-found``, ``conflict``, ``idempotency-in-flight``,
        ``idempotency-mismatch``, ``not-configured``, ``secrets-unavailable``. Is sent again after a cut under one
        idempotency key, so it happens once.

        - ``url``: Where events are posted to.
        - ``events``: Each kind once.
        - ``secret_ref``: The secret that signs: ``whsec_`` and the base64 of at least 24 bytes.
        - ``filter``: Left out: every event of these kinds.
        """
        return self._call(
            types.WebhookEndpoint,
            "POST",
            "/v1/webhook-endpoints",
            body=body_of({"url": url, "events": events, "secretRef": secret_ref, "filter": filter}),
            is_idempotent=True,
            options=options,
        )

    def list(
        self,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> Page[types.WebhookEndpoint]:
        """List the webhook endpoints.

        Access: admin on tenant. May also be refused with ``not-configured``.

        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.WebhookEndpoint,
            "/v1/webhook-endpoints",
            query={"cursor": cursor, "limit": limit, "order": order},
            options=options,
        )

    def check_url(self, *, url: str, options: CallOptions | None = None) -> types.CheckedUrl:
        """Say whether webhooks may go to a URL, and which rule refuses which address; nothing is registered.

        Access: admin on tenant. May also be refused with ``not-configured``.

        - ``url``: One of more than 2048 bytes is none that can be registered, and the answer says so.
        """
        return self._call(
            types.CheckedUrl,
            "POST",
            "/v1/webhook-endpoints/check-url",
            body=body_of({"url": url}),
            options=options,
        )

    def get(self, webhook_endpoint_id: str, *, options: CallOptions | None = None) -> types.WebhookEndpoint:
        """Read a webhook endpoint.

        Access: admin on webhook-endpoint in path. May also be refused with ``not-found``, ``not-configured``.
        """
        return self._call(
            types.WebhookEndpoint,
            "GET",
            f"/v1/webhook-endpoints/{segment(webhook_endpoint_id)}",
            options=options,
        )

    def update(
        self,
        webhook_endpoint_id: str,
        *,
        url: str | Null | None = None,
        events: Sequence[types.WebhookEventKind] | Null | None = None,
        secret_ref: inputs.SecretRefInput | types.SecretRef | Null | None = None,
        filter: inputs.WebhookFilterInput | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.WebhookEndpoint:
        """Change a webhook endpoint: what is left out stays, a null filter is removed, another secret signs beside the
        earlier one for 24 hours.

        Access: admin on webhook-endpoint in path. May also be refused with ``webhook-url-refused``,
        ``webhook-secret-not-found``, ``webhook-secret-weak``, ``key-project-mismatch``, ``not-found``,
        ``not-configured``, ``secrets-unavailable``.

        - ``url``: What waits goes there, too.
        - ``filter``: Replaces the one that stands. Null: every event of the endpoint's kinds.
        """
        return self._call(
            types.WebhookEndpoint,
            "PATCH",
            f"/v1/webhook-endpoints/{segment(webhook_endpoint_id)}",
            body=body_of({"url": url, "events": events, "secretRef": secret_ref, "filter": filter}),
            options=options,
        )

    def unregister(self, webhook_endpoint_id: str, *, options: CallOptions | None = None) -> None:
        """Unregister a webhook endpoint: what waits fails, and the answer comes once nothing is under way.

        Access: admin on webhook-endpoint in path. May also be refused with ``not-found``, ``conflict``,
        ``not-configured``.
        """
        self._do("DELETE", f"/v1/webhook-endpoints/{segment(webhook_endpoint_id)}", options=options)

    def send_test(self, webhook_endpoint_id: str, *, options: CallOptions | None = None) -> types.WebhookDelivery:
        """Send a test to a webhook endpoint, whichever events it takes.

        Access: admin on webhook-endpoint in path. May also be refused with ``not-found``, ``conflict``,
        ``not-configured``.
        """
        return self._call(
            types.WebhookDelivery,
            "POST",
            f"/v1/webhook-endpoints/{segment(webhook_endpoint_id)}/test",
            options=options,
        )

    def resend_failed(
        self,
        webhook_endpoint_id: str,
        *,
        failed_since: datetime | str,
        options: CallOptions | None = None,
    ) -> types.Resent:
        """Send again what failed for good since a time: the oldest 1000 deliveries that were not sent again yet.

        Access: admin on webhook-endpoint in path. May also be refused with ``not-found``, ``conflict``,
        ``not-configured``.

        - ``failed_since``: Deliveries that failed for good then or later.
        """
        return self._call(
            types.Resent,
            "POST",
            f"/v1/webhook-endpoints/{segment(webhook_endpoint_id)}/resend",
            body=body_of({"failedSince": failed_since}),
            options=options,
        )
