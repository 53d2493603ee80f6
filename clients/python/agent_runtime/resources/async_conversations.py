# Written by clients/generate from the API description.
"""Conversations with an agent: runs that know what was said before."""

from __future__ import annotations

from .. import types
from .._options import CallOptions
from .._page import AsyncPages
from .._protocol import Null, body_of, segment
from .._resource import AsyncResource
from .._transport import AsyncTransport


class AsyncConversationsMessages(AsyncResource):
    """Calls of ``conversations.messages``."""

    def list(
        self,
        conversation_id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> AsyncPages[types.ConversationMessage]:
        """List the messages of a conversation.

        Access: read on conversation in path. May also be refused with ``not-found``.

        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most. A page of long messages holds fewer.
        - ``order``: The direction.
        """
        return self._list(
            types.ConversationMessage,
            f"/v1/conversations/{segment(conversation_id)}/messages",
            query={"cursor": cursor, "limit": limit, "order": order},
            options=options,
        )


class AsyncConversations(AsyncResource):
    """Conversations with an agent: runs that know what was said before."""

    def __init__(self, transport: AsyncTransport) -> None:
        super().__init__(transport)
        self.messages = AsyncConversationsMessages(transport)

    async def create(
        self,
        *,
        agent_id: str,
        version: str | Null | None = None,
        title: str | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.Conversation:
        """Begin a conversation with an agent.

        Access: write on agent in body. May also be refused with ``not-found``, ``project-archived``,
        ``agent-archived``.

        - ``version``: The version that its turns are to run; left out: the live one, else the latest, at each turn.
        """
        return await self._call(
            types.Conversation,
            "POST",
            "/v1/conversations",
            body=body_of({"agentId": agent_id, "version": version, "title": title}),
            options=options,
        )

    def list(
        self,
        *,
        agent_id: str | None = None,
        project_id: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> AsyncPages[types.Conversation]:
        """List the conversations that the caller may read.

        Access: readable conversations. May also be refused with ``key-project-mismatch``.

        - ``agent_id``: With this agent.
        - ``project_id``: In this project.
        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.Conversation,
            "/v1/conversations",
            query={
                "agentId": agent_id,
                "projectId": project_id,
                "cursor": cursor,
                "limit": limit,
                "order": order,
            },
            options=options,
        )

    async def get(self, conversation_id: str, *, options: CallOptions | None = None) -> types.Conversation:
        """Read a conversation.

        Access: read on conversation in path. May also be refused with ``not-found``.
        """
        return await self._call(
            types.Conversation,
            "GET",
            f"/v1/conversations/{segment(conversation_id)}",
            options=options,
        )

    async def erase(self, conversation_id: str, *, options: CallOptions | None = None) -> types.Conversation:
        """Erase a conversation: its messages, and what its runs were given, said and answered. Their rows stay.

        Access: admin on conversation in path, or write on it by who began it. May also be refused with ``not-found``,
        ``conflict``.
        """
        return await self._call(
            types.Conversation,
            "DELETE",
            f"/v1/conversations/{segment(conversation_id)}",
            options=options,
        )
