"""A LangGraph graph that asks a person, on orders: one JSON object a line.

Argument: the URL of its database, which its Postgres checkpointer keeps its tables in.

As its documentation has it: `interrupt` asks, `Command(resume=…)` answers, and the checkpointer is made by
`from_conn_string`. With `durability="sync"` what was decided is on disk before the graph goes on, as on the other sides; its
default writes it beside what goes on.
"""

import json
import sys
import time
import uuid
from importlib.metadata import version
from typing import TypedDict

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

DATABASE = sys.argv[1]


class State(TypedDict):
    decision: str
    went_on: float


def ask(state: State) -> dict:
    return {"decision": interrupt({"title": "Pay a refund"})}


def go_on(state: State) -> dict:
    return {"went_on": time.perf_counter()}


def decision(graph):
    """The seconds from a decision to the node after the one that asked."""
    thread = {"configurable": {"thread_id": str(uuid.uuid4())}}
    asked = graph.invoke({"decision": ""}, thread, durability="sync")
    if "__interrupt__" not in asked:
        raise RuntimeError("the graph did not ask")
    began = time.perf_counter()
    said = graph.invoke(Command(resume="approve"), thread, durability="sync")
    if said["decision"] != "approve":
        raise RuntimeError(f"the graph was told {said['decision']!r}")
    return said["went_on"] - began


def main():
    with PostgresSaver.from_conn_string(DATABASE) as saver:
        saver.setup()
        graph = (
            StateGraph(State)
            .add_node("ask", ask)
            .add_node("go_on", go_on)
            .add_edge(START, "ask")
            .add_edge("ask", "go_on")
            .add_edge("go_on", END)
            .compile(checkpointer=saver)
        )
        names = ("langgraph", "langgraph-checkpoint-postgres")
        print(json.dumps({"versions": [f"{name} {version(name)}" for name in names]}), flush=True)
        for line in sys.stdin:
            took = sorted(decision(graph) for _ in range(json.loads(line)["count"]))
            print(json.dumps({"seconds": took[len(took) // 2]}), flush=True)


main()
