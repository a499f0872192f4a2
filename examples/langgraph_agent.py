"""A LangGraph graph with two nodes: recall from Loci, then answer; what was said is stored.

Needs: pip install langgraph langchain-openai, and locipalace for its client; a running Loci and
LOCI_API_KEY. The model is Loci's too; any other chat model of LangChain will do.
"""

import os

from langchain_core.messages import SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph

from locipalace.client import Memory

URL = os.environ.get("LOCI_URL", "http://localhost:8000")
memory = Memory(URL, os.environ["LOCI_API_KEY"])
# `loci-off` is the model without memory: this graph does the remembering itself.
model = ChatOpenAI(base_url=f"{URL}/v1", api_key=os.environ["LOCI_API_KEY"], model="loci-off")


class State(MessagesState):
    user_id: str
    session_id: str
    context: str


def recall(state):
    question = state["messages"][-1].text
    return {"context": memory.recall(question, user_id=state["user_id"])["context"]}


def answer(state):
    reply = model.invoke([SystemMessage(state["context"] or "Be brief."), *state["messages"]])
    said = [
        {"role": "user", "content": state["messages"][-1].text},
        {"role": "assistant", "content": reply.text},
    ]
    memory.add_turn(state["session_id"], said, user_id=state["user_id"])
    return {"messages": reply}


graph = (
    StateGraph(State)
    .add_node(recall)
    .add_node(answer)
    .add_edge(START, "recall")
    .add_edge("recall", "answer")
    .compile()
)

for session, text in (("monday", "I just moved to Lisbon."), ("tuesday", "Where do I live?")):
    said = {"role": "user", "content": text}
    ended = graph.invoke({"messages": [said], "user_id": "ada", "session_id": session})
    print(ended["context"])
    print(ended["messages"][-1].text)
memory.close()
