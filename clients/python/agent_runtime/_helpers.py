"""Calls that are made of several others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._following import MAX_SILENCE
from ._protocol import segment
from ._record import Record
from ._resource import AsyncResource, Resource

if TYPE_CHECKING:
    from .types import Run


class RunsHelpers(Resource):
    """Beside the calls of `runs`."""

    def wait(self, run_id: str, *, timeout: float | None = None) -> Run:
        """Waits until a run has ended, through cuts and restarts, and answers it as it ended.

        ``timeout`` is how many seconds to wait, about; a run that goes on then is a :class:`DeadlineError`, and goes on.
        """
        from .types import Run

        path = f"/v1/runs/{segment(run_id)}"
        with self._stream(
            Record, f"{path}/progress/stream", after=None, max_silence=MAX_SILENCE, timeout=timeout, options=None
        ) as events:
            for _ in events:
                pass
        return self._call(Run, "GET", path)


class AsyncRunsHelpers(AsyncResource):
    """Beside the calls of `runs`."""

    async def wait(self, run_id: str, *, timeout: float | None = None) -> Run:  # noqa: ASYNC109
        """Waits until a run has ended, through cuts and restarts, and answers it as it ended.

        ``timeout`` is how many seconds to wait, about; a run that goes on then is a :class:`DeadlineError`, and goes on.
        """
        from .types import Run

        path = f"/v1/runs/{segment(run_id)}"
        async with self._stream(
            Record, f"{path}/progress/stream", after=None, max_silence=MAX_SILENCE, timeout=timeout, options=None
        ) as events:
            async for _ in events:
                pass
        return await self._call(Run, "GET", path)
