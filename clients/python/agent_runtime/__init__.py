"""Client of agent-runtime: starts runs of agents and flows, and follows them through cuts and restarts.

with AgentRuntime("https://runtime.plant.example") as runtime:
    started = runtime.runs.create(agent_id=agent_id, message="What time is it?")
    for event in runtime.runs.follow(started.run.id):
        print(event.kind)
"""

from ._client import AgentRuntime, AsyncAgentRuntime, AsyncRunReader, RunReader
from ._errors import (
    AgentRuntimeError,
    AuthError,
    ConflictError,
    DeadlineError,
    InvalidError,
    NetworkError,
    NotFoundError,
    ProtocolError,
    RateLimitError,
    ServerError,
    UnavailableError,
    WebhookSignatureError,
)
from ._options import Answer, CallOptions
from ._page import AsyncPage, AsyncPages, Page
from ._protocol import NULL, Null
from ._record import Record
from ._stream import AsyncStream, Stream
from ._version import __version__
from .webhooks import parse_event

__all__ = [
    "NULL",
    "AgentRuntime",
    "AgentRuntimeError",
    "Answer",
    "AsyncAgentRuntime",
    "AsyncPage",
    "AsyncPages",
    "AsyncRunReader",
    "AsyncStream",
    "AuthError",
    "CallOptions",
    "ConflictError",
    "DeadlineError",
    "InvalidError",
    "NetworkError",
    "NotFoundError",
    "Null",
    "Page",
    "ProtocolError",
    "RateLimitError",
    "Record",
    "RunReader",
    "ServerError",
    "Stream",
    "UnavailableError",
    "WebhookSignatureError",
    "__version__",
    "parse_event",
]
