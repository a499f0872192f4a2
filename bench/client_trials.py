"""The calls that each client is tried with. A call that returns has worked.

The libraries are optional, so each call imports its own.
"""

# ruff: noqa: PLC0415
from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path
from shutil import which
from typing import Any

from django.conf import settings

from bench import mem0_calls
from bench.stub_servers import PLACE

QUESTION = "Where do I live?"
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
TIMEOUT_S = 120
# The newest of each line of mem0's client; `make clients` installs them.
MEM0_VERSIONS = ("2.2.1", "1.0.11", "0.1.118")


@dataclass(frozen=True, slots=True)
class Loci:
    """
    Attributes:
        url: Of a running Loci, with a palace that knows where its owner lives, and a model.
    """

    url: str
    key: str

    @property
    def proxy(self) -> dict[str, Any]:
        """How OpenAI's clients are given it."""
        return {"base_url": f"{self.url}/v1", "api_key": self.key}


class WrongAnswer(Exception):
    """The call came back, but without what Loci knows."""


def check(answer: object) -> None:
    if PLACE not in str(answer):
        raise WrongAnswer(f"it answered {str(answer)[:200]!r}")


@dataclass(frozen=True, slots=True)
class Client:
    """
    Attributes:
        package: The distribution whose version counts; of Node's, the package.
        calls: By what a reader would call them.
        folder: With what `make clients` has installed apart from our own packages.
    """

    name: str
    package: str
    calls: Mapping[str, Callable[[Loci], None]]
    node_folder: Path | None = None
    folder: Path | None = None

    def version(self) -> str | None:
        """The installed one; None if it is not installed."""
        if self.package == "locipalace":
            return str(settings.VERSION)  # Also in a checkout, where it is not installed.
        if self.folder is not None:
            found = distributions(name=self.package, path=[str(self.folder)])
            return next((each.version for each in found), None)
        if self.node_folder is None:
            try:
                return version(self.package)
            except PackageNotFoundError:
                return None
        manifest = self.node_folder / "node_modules" / self.package / "package.json"
        if which("node") is None or not manifest.exists():
            return None
        return str(json.loads(manifest.read_text())["version"])


def _chat(loci: Loci) -> None:
    import openai

    with openai.OpenAI(**loci.proxy) as client:
        said: Any = [{"role": "user", "content": QUESTION}]
        reply = client.chat.completions.create(model="loci", messages=said)
        check(reply.choices[0].message.content)


def _chat_streamed(loci: Loci) -> None:
    import openai

    with openai.OpenAI(**loci.proxy) as client:
        said: Any = [{"role": "user", "content": QUESTION}]
        chunks = client.chat.completions.create(model="loci", messages=said, stream=True)
        check("".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices))


def _response(loci: Loci) -> None:
    import openai

    with openai.OpenAI(**loci.proxy) as client:
        check(client.responses.create(model="loci", input=QUESTION).output_text)


def _response_streamed(loci: Loci) -> None:
    import openai

    with (
        openai.OpenAI(**loci.proxy) as client,
        client.responses.stream(model="loci", input=QUESTION) as stream,
    ):
        check(stream.get_final_response().output_text)


def _vectors(loci: Loci) -> None:
    import openai

    with openai.OpenAI(**loci.proxy) as client:
        near, far = client.embeddings.create(model="loci", input=["a boat", "a tax"]).data
        if len(near.embedding) != len(far.embedding):
            raise WrongAnswer("the vectors differ in length")


def _models(loci: Loci) -> None:
    import openai

    with openai.OpenAI(**loci.proxy) as client:
        if client.models.retrieve("loci").id != "loci":
            raise WrongAnswer("the model “loci” has another name")


def _langchain(loci: Loci) -> Any:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model="loci", **loci.proxy)


def _invoke(loci: Loci) -> None:
    check(_langchain(loci).invoke(QUESTION).text)


def _langchain_stream(loci: Loci) -> None:
    check("".join(chunk.text for chunk in _langchain(loci).stream(QUESTION)))


def _langchain_tool(loci: Loci) -> None:
    from langchain_core.tools import tool

    @tool
    def weather(city: str) -> str:
        """How the weather is in a city."""
        return city

    reply = _langchain(loci).bind_tools([weather]).invoke(QUESTION)
    check(weather.invoke(reply.tool_calls[0]["args"]))


def _langgraph(loci: Loci) -> None:
    from langgraph.graph import START, MessagesState, StateGraph

    model = _langchain(loci)

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": model.invoke(state["messages"])}

    graph = StateGraph(MessagesState).add_node(answer).add_edge(START, "answer").compile()
    said: Any = {"messages": [{"role": "user", "content": QUESTION}]}
    check(graph.invoke(said)["messages"][-1].text)


def _agent(loci: Loci) -> None:
    asyncio.run(_run_agent(loci, streams=False))


def _agent_streamed(loci: Loci) -> None:
    asyncio.run(_run_agent(loci, streams=True))


async def _run_agent(loci: Loci, *, streams: bool) -> None:
    import agents
    import openai

    def weather(city: str) -> str:
        """How the weather is in a city."""
        return f"Rain in {city}."

    async with openai.AsyncOpenAI(**loci.proxy) as client:
        model = agents.OpenAIResponsesModel("loci", client)
        agent = agents.Agent("helper", model=model, tools=[agents.function_tool(weather)])
        config = agents.RunConfig(tracing_disabled=True)
        if not streams:
            check((await agents.Runner.run(agent, QUESTION, run_config=config)).final_output)
            return
        run = agents.Runner.run_streamed(agent, QUESTION, run_config=config)
        async for _ in run.stream_events():
            pass
        check(run.final_output)


def _pydantic_ai(loci: Loci) -> None:
    asyncio.run(_run_pydantic_ai(loci, streams=False))


def _pydantic_ai_streamed(loci: Loci) -> None:
    asyncio.run(_run_pydantic_ai(loci, streams=True))


async def _run_pydantic_ai(loci: Loci, *, streams: bool) -> None:
    import openai
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async with openai.AsyncOpenAI(**loci.proxy) as client:
        model = OpenAIResponsesModel("loci", provider=OpenAIProvider(openai_client=client))
        agent = Agent(model)
        if not streams:
            check((await agent.run(QUESTION)).output)
            return
        async with agent.run_stream(QUESTION) as run:
            check(await run.get_output())


def _mcp_recall(loci: Loci) -> None:
    check(asyncio.run(_call_tool(loci, "recall", {"query": QUESTION})))


def _mcp_save(loci: Loci) -> None:
    asyncio.run(_call_tool(loci, "save_memory", {"content": f"The pool in {PLACE} is closed."}))
    check(asyncio.run(_call_tool(loci, "search", {"query": "the pool"})))


async def _call_tool(loci: Loci, name: str, arguments: dict[str, Any]) -> str:
    import httpx2
    from mcp.client import Client as McpClient
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Authorization": f"Bearer {loci.key}"}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        McpClient(streamable_http_client(f"{loci.url}/mcp", http_client=http)) as client,
    ):
        found = await client.call_tool(name, arguments)
        return found.model_dump_json()


def _mem0(call: str, folder: Path, loci: Loci) -> None:
    environment = {**os.environ, "PYTHONPATH": str(folder), "MEM0_TELEMETRY": "False"}
    _run([sys.executable, mem0_calls.__file__, loci.url, loci.key, call], environment)


def _own_client(loci: Loci) -> None:
    from locipalace.client import Memory

    with Memory(loci.url, loci.key) as memory:
        memory.add(f"I just moved to {PLACE}.", user_id="bea")
        check(memory.search(QUESTION, user_id="bea"))
        check(memory.recall(QUESTION, user_id="bea")["context"])


def _ai_sdk(loci: Loci) -> None:
    environment = {**os.environ, "LOCI_URL": loci.url, "LOCI_API_KEY": loci.key}
    check(_run(["node", "chat.mjs", QUESTION], environment, EXAMPLES / "ai-sdk"))


def _run(command: list[str], environment: dict[str, str], folder: Path | None = None) -> str:
    """What a program prints.

    Raises:
        WrongAnswer: it failed.
    """
    done = subprocess.run(  # noqa: S603 - our own programs.
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        raise WrongAnswer(done.stderr.strip()[-200:])
    return done.stdout


def _mem0_of(wanted: str) -> Client:
    folder = settings.BASE_DIR / ".loci" / "clients" / f"mem0-{wanted}"
    calls = {call: partial(_mem0, call, folder) for call in mem0_calls.CALLS}
    return Client("mem0's `MemoryClient`", "mem0ai", calls, folder=folder)


CLIENTS = (
    Client(
        "openai for Python",
        "openai",
        {
            "`chat.completions.create`": _chat,
            "the same, streamed": _chat_streamed,
            "`responses.create`": _response,
            "`responses.stream`": _response_streamed,
            "`embeddings.create`": _vectors,
            "`models.retrieve`": _models,
        },
    ),
    Client(
        "LangChain",
        "langchain-openai",
        {
            "`ChatOpenAI.invoke`": _invoke,
            "`ChatOpenAI.stream`": _langchain_stream,
            "`bind_tools`, and a call": _langchain_tool,
        },
    ),
    Client("LangGraph", "langgraph", {"a graph around `ChatOpenAI`": _langgraph}),
    Client(
        "openai-agents",
        "openai-agents",
        {
            "`Runner.run`, with a tool": _agent,
            "`Runner.run_streamed`, with a tool": _agent_streamed,
        },
    ),
    Client(
        "pydantic-ai",
        "pydantic-ai-slim",
        {"`Agent.run`": _pydantic_ai, "`Agent.run_stream`": _pydantic_ai_streamed},
    ),
    Client(
        "AI SDK",
        "ai",
        {"`streamText`": _ai_sdk},
        node_folder=EXAMPLES / "ai-sdk",
    ),
    Client(
        "MCP for Python", "mcp", {"`recall`": _mcp_recall, "`save_memory`, `search`": _mcp_save}
    ),
    *map(_mem0_of, MEM0_VERSIONS),
    Client("`locipalace.client`", "locipalace", {"`add`, `search`, `recall`": _own_client}),
)
