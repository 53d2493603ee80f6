"""Follows a run to its end with one of the clients, and prints the number of each event.

python -m tests.server.follower sync|async RUN
"""

import asyncio
import sys

from agent_runtime import AgentRuntime, AsyncAgentRuntime


async def follow(run: str) -> None:
    async with AsyncAgentRuntime() as runtime:
        async for event in runtime.runs.follow(run):
            print(event["seq"], flush=True)


kind, run = sys.argv[1:]
if kind == "async":
    asyncio.run(follow(run))
else:
    with AgentRuntime() as runtime:
        for event in runtime.runs.follow(run):
            print(event["seq"], flush=True)
