"""Workflows of the DBOS library on orders, one JSON object a line: turns of three steps (model, HTTP tool, model), flows of
three calls of the tool, branches that do nothing, and messages that a workflow waits for.

Arguments: the URL of its database, the model provider's base URL, the tool's URL.

Its settings, all from its own documentation of `DBOSConfig` and of workflows:
- no telemetry, no connection to its hosted console, log of errors alone (the defaults but the log's level);
- a pool of database connections with one for every turn at once (`sys_db_pool_size`), not asked before every use whether
  they are alive (`db_engine_kwargs`): both cost it turns;
- its own serializer, which is its fastest;
- a workflow is called directly, which runs it on the caller's thread or event loop: no queue, nothing is polled for;
- branches are on a queue, as it documents for many of them; it and its results are polled ten times as often as by default.
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
        "name": "bench",
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


def to_tool(call, run_id, step):
    """The arguments of a request to the tool."""
    body = {"tool": call["name"], "arguments": json.loads(call["arguments"]), "runId": run_id, "step": step}
    return {"json": body, "headers": {"idempotency-key": f"{run_id}-{step}"}}


@DBOS.step()
def ask_model(messages, tools):
    return said(HTTP.post(COMPLETIONS, json=asked(messages, tools)))


@DBOS.step()
def call_tool(call, step=2):
    return HTTP.post(TOOL, **to_tool(call, DBOS.workflow_id, step)).raise_for_status().text


@DBOS.workflow()
def turn(message, tools):
    (call,) = ask_model(first(message), tools)["calls"]
    return ask_model(second(message, call, call_tool(call)), tools)["text"]


@DBOS.step()
async def ask_model_async(messages, tools):
    return said(await ASYNC_HTTP.post(COMPLETIONS, json=asked(messages, tools)))


@DBOS.step()
async def call_tool_async(call, step=2):
    response = await ASYNC_HTTP.post(TOOL, **to_tool(call, DBOS.workflow_id, step))
    return response.raise_for_status().text


@DBOS.workflow()
async def turn_async(message, tools):
    (call,) = (await ask_model_async(first(message), tools))["calls"]
    output = await call_tool_async(call)
    return (await ask_model_async(second(message, call, output), tools))["text"]


CALL = {"name": "weather", "arguments": json.dumps({"city": "Kyoto"})}


@DBOS.workflow()
def flow(message, tools):
    for step in range(1, 4):
        said = call_tool(CALL, step)
    return said


@DBOS.workflow()
async def flow_async(message, tools):
    for step in range(1, 4):
        said = await call_tool_async(CALL, step)
    return said


# Of each workflow: on threads, and on the event loop.
RUNS = {"turn": (turn, turn_async), "flow": (flow, flow_async)}
QUEUE = "branches"


@DBOS.workflow()
def branch(number):
    return number


@DBOS.workflow()
def fan_out(count):
    handles = [DBOS.enqueue_workflow(QUEUE, branch, number) for number in range(count)]
    return [handle.get_result(polling_interval_sec=0.1) for handle in handles]


def branches(order):
    """Seconds of a workflow with so many branches."""
    count = order["count"]
    began = time.perf_counter()
    if fan_out(count) != list(range(count)):
        raise RuntimeError("a branch is missing")
    return time.perf_counter() - began


@DBOS.workflow()
def decided():
    """When the message came, by the process's clock."""
    DBOS.recv("decision", timeout_seconds=60)
    return time.perf_counter()


def decisions(order):
    """The seconds that half of so many workflows stay below, from a message's sending to what follows it."""
    took = []
    for _ in range(order["count"]):
        handle = DBOS.start_workflow(decided)
        # Until it listens.
        time.sleep(0.1)
        began = time.perf_counter()
        DBOS.send(handle.workflow_id, "approve", "decision")
        took.append(handle.get_result() - began)
    return sorted(took)[len(took) // 2]


def on_threads(order):
    """Seconds of so many runs of so many threads, after one of each."""
    clients, each, run = order["clients"], order["each"], RUNS[order["workflow"]][0]
    start, faults, ends = threading.Barrier(clients + 1), [], []

    def client():
        try:
            run(order["message"], order["tools"])
            start.wait()
            for _ in range(each):
                if not run(order["message"], order["tools"]):
                    raise RuntimeError("a run said nothing")
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
    clients, each, run = order["clients"], order["each"], RUNS[order["workflow"]][1]

    async def client(runs):
        for _ in range(runs):
            if not await run(order["message"], order["tools"]):
                raise RuntimeError("a run said nothing")

    await asyncio.gather(*(client(1) for _ in range(clients)))
    began = time.perf_counter()
    await asyncio.gather(*(client(each) for _ in range(clients)))
    return time.perf_counter() - began


def main():
    DBOS.launch()
    DBOS.register_queue(QUEUE, polling_interval_sec=0.1)
    loop = asyncio.new_event_loop()
    python = ".".join(str(part) for part in sys.version_info[:3])
    print(json.dumps({"versions": [f"dbos {version('dbos')}", f"Python {python}"]}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if "do" in order:
            seconds = {"branches": branches, "decisions": decisions}[order["do"]](order)
        elif order["way"] == "threads":
            seconds = on_threads(order)
        else:
            seconds = loop.run_until_complete(on_loop(order))
        print(json.dumps({"seconds": seconds}), flush=True)
    DBOS.destroy()


main()
