"""A graph of one node that streams one chat completion from the local provider."""

import os

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph

model = ChatOpenAI(
    model="m",
    base_url=os.environ["PROVIDER_URL"],
    api_key="none",
    streaming=True,
    max_retries=0,
)


async def answer(state: MessagesState) -> dict:
    return {"messages": [await model.ainvoke(state["messages"])]}


graph = (
    StateGraph(MessagesState)
    .add_node("answer", answer)
    .add_edge(START, "answer")
    .add_edge("answer", END)
    .compile()
)
