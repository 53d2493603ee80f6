"""The Python client, one request after the other. Prints one figure.

  python.py reads client|httpx2 RUN    requests a second: AGENT_RUNTIME_URL, AGENT_RUNTIME_TOKEN
  python.py events                     events of a stream a second, read from memory
  python.py import                     milliseconds that an import takes beyond that of httpx2
"""

import json
import os
import pathlib
import subprocess
import sys
import time

PACKAGE = pathlib.Path(__file__).resolve().parents[3] / "clients/python"
sys.path.insert(0, str(PACKAGE))

READS = 1_000
EVENTS = 200_000
IMPORTS = 9


def reads(how, run):
    import agent_runtime
    import httpx2

    if how == "client":
        runtime = agent_runtime.AgentRuntime()

        def read():
            return runtime.runs.get(run).id
    else:
        headers = {"authorization": f"Bearer {os.environ['AGENT_RUNTIME_TOKEN']}"}
        http = httpx2.Client(base_url=os.environ["AGENT_RUNTIME_URL"], headers=headers, verify=False)

        def read():
            return http.get(f"/v1/runs/{run}").raise_for_status().json()["id"]

    def some(count):
        for _ in range(count):
            assert read() == run

    some(READS // 5)
    began = time.perf_counter()
    some(READS)
    return READS / (time.perf_counter() - began)


def events():
    import agent_runtime
    import httpx2

    data = {"step": 3, "attempt": 1, "type": "tool", "name": "order_status", "callId": "call_2", "isError": False}
    data |= {"output": "shipped, Grüße", "outputTruncated": False}

    def event(seq):
        body = {"seq": seq, "kind": "step.completed", "createdAt": "2026-11-25T09:30:12.043Z", "data": data}
        return f"id: {seq}\nevent: step.completed\ndata: {json.dumps(body, ensure_ascii=False)}\n\n"

    parts = ["".join(map(event, range(first, first + 100))).encode() for first in range(1, EVENTS + 1, 100)]
    parts.append(b'event: stream.end\ndata: {"reason":"run-finished"}\n\n')

    class Memory(httpx2.SyncByteStream):
        def __iter__(self):
            return iter(parts)

    def answer(_):
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Memory())

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    runtime = agent_runtime.AgentRuntime("http://memory.invalid", "t", http_client=http)
    began = time.perf_counter()
    count = sum(1 for _ in runtime.runs.follow("run-1"))
    assert count == EVENTS, count
    return EVENTS / (time.perf_counter() - began)


def imported():
    """Each in a process of its own; the least, since other work only adds."""
    program = (
        "import time, httpx2; began = time.perf_counter(); import agent_runtime; print(time.perf_counter() - began)"
    )
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    command = [sys.executable, "-c", program]
    took = [float(subprocess.check_output(command, env=environment)) for _ in range(IMPORTS)]
    return min(took) * 1_000


what, *more = sys.argv[1:]
print(round({"reads": reads, "events": events, "import": imported}[what](*more)))
