"""Turns of three steps (model, HTTP tool, model) as workflows of the DBOS library, on orders: one JSON object a line.

Arguments: the URL of its database, the model provider's base URL, the tool's URL.

Its settings, all from its own documentation of `DBOSConfig` and of workflows:
- no telemetry, no connection to its hosted console, log of errors alone (the defaults but the log's level);
- a pool of database connections with one for every turn at once (`sys_db_pool_size`), not asked before every use whether
  they are alive (`db_engine_kwargs`): both cost it turns;
- its own serializer, which is its fastest;
- a workflow is called directly, which runs it on the caller's thread or event loop: no queue, nothing is polled for.
Both ways that it documents are here, plain functions on threads and coroutines on one event loop.
"""

import asyncio
import json
import re
import sys
import threading
import time
from importlib.metadata import version

import httpx
from dbos import DBOS

DATABASE, PROVIDER, TOOL = sys.argv[1:4]
# Its way to say where a Unix socket is.
USER, HOST, PORT, NAME = re.fullmatch(r"postgresql://(.+)@(.+):(\d+)/(.+)", DATABASE).groups()
DATABASE = f"postgresql+psycopg://{USER}@/{NAME}?host={HOST}&port={PORT}"
MOST_AT_ONCE = 64
COMPLETIONS = f"{PROVIDER}/chat/completions"
LIMITS = httpx.Limits(max_connections=MOST_AT_ONCE, max_keepalive_connections=MOST_AT_ONCE)
HTTP = httpx.Client(limits=LIMITS, timeout=30, trust_env=False)
ASYNC_HTTP = httpx.AsyncClient(limits=LIMITS, timeout=30, trust_env=False)

DBOS(
    config={
        "name": "turns",
        "system_database_url": DATABASE,
        "application_version": "1",
        "sys_db_pool_size": MOST_AT_ONCE,
        "db_engine_kwargs": {"pool_pre_ping": False},
        "max_executor_threads": 2 * MOST_AT_ONCE,
        "log_level": "ERROR",
        "console_log_level": "ERROR",
    }
)


def asked(messages, tools):
    """The body of a model call."""
    return {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": messages,
        "tools": [{"type": "function", "function": tool} for tool in tools],
    }


def said(response):
    """What a streamed answer says: its text, its tool calls, its usage."""
    response.raise_for_status()
    text, calls, usage = [], [], None
    for line in response.text.splitlines():
        if not line.startswith("data: ") or line == "data: [DONE]":
            continue
        event = json.loads(line[6:])
        usage = event.get("usage") or usage
        for choice in event["choices"]:
            delta = choice["delta"]
            text.append(delta.get("content") or "")
            for part in delta.get("tool_calls", ()):
                while len(calls) <= part["index"]:
                    calls.append({"id": "", "name": "", "arguments": ""})
                call, function = calls[part["index"]], part.get("function", {})
                call["id"] += part.get("id") or ""
                call["name"] += function.get("name") or ""
                call["arguments"] += function.get("arguments") or ""
    return {"text": "".join(text), "calls": calls, "usage": usage}


def first(message):
    return [{"role": "system", "content": "Answer."}, {"role": "user", "content": message}]


def second(message, call, output):
    function = {"name": call["name"], "arguments": call["arguments"]}
    wanted = {"role": "assistant", "content": None}
    wanted["tool_calls"] = [{"id": call["id"], "type": "function", "function": function}]
    return [*first(message), wanted, {"role": "tool", "tool_call_id": call["id"], "content": output}]


def to_tool(call, run_id):
    """The arguments of a request to the tool."""
    body = {"tool": call["name"], "arguments": json.loads(call["arguments"]), "runId": run_id, "step": 2}
    return {"json": body, "headers": {"idempotency-key": f"{run_id}-2"}}


@DBOS.step()
def ask_model(messages, tools):
    return said(HTTP.post(COMPLETIONS, json=asked(messages, tools)))


@DBOS.step()
def call_tool(call):
    return HTTP.post(TOOL, **to_tool(call, DBOS.workflow_id)).raise_for_status().text


@DBOS.workflow()
def turn(message, tools):
    (call,) = ask_model(first(message), tools)["calls"]
    return ask_model(second(message, call, call_tool(call)), tools)["text"]


@DBOS.step()
async def ask_model_async(messages, tools):
    return said(await ASYNC_HTTP.post(COMPLETIONS, json=asked(messages, tools)))


@DBOS.step()
async def call_tool_async(call):
    response = await ASYNC_HTTP.post(TOOL, **to_tool(call, DBOS.workflow_id))
    return response.raise_for_status().text


@DBOS.workflow()
async def turn_async(message, tools):
    (call,) = (await ask_model_async(first(message), tools))["calls"]
    output = await call_tool_async(call)
    return (await ask_model_async(second(message, call, output), tools))["text"]


def on_threads(order):
    """Seconds of so many turns of so many threads, after one of each."""
    clients, each = order["clients"], order["each"]
    start, faults, ends = threading.Barrier(clients + 1), [], []

    def client():
        try:
            turn(order["message"], order["tools"])
            start.wait()
            for _ in range(each):
                if not turn(order["message"], order["tools"]):
                    raise RuntimeError("a turn said nothing")
            ends.append(time.perf_counter())
        except Exception as fault:
            faults.append(repr(fault))
            start.abort()

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        start.wait()
    except threading.BrokenBarrierError:
        pass
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    if faults:
        raise RuntimeError(faults[0])
    return max(ends) - began


async def on_loop(order):
    """The same of so many coroutines."""
    clients, each = order["clients"], order["each"]

    async def client(turns):
        for _ in range(turns):
            if not await turn_async(order["message"], order["tools"]):
                raise RuntimeError("a turn said nothing")

    await asyncio.gather(*(client(1) for _ in range(clients)))
    began = time.perf_counter()
    await asyncio.gather(*(client(each) for _ in range(clients)))
    return time.perf_counter() - began


def main():
    DBOS.launch()
    loop = asyncio.new_event_loop()
    python = ".".join(str(part) for part in sys.version_info[:3])
    print(json.dumps({"versions": [f"dbos {version('dbos')}", f"Python {python}"]}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if order["way"] == "threads":
            seconds = on_threads(order)
        else:
            seconds = loop.run_until_complete(on_loop(order))
        print(json.dumps({"seconds": seconds}), flush=True)
    DBOS.destroy()


main()
