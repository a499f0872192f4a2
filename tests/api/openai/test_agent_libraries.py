"""Libraries of agents, with the classes that they use by default: of `/v1/responses`.

Each is imported in its test: at the top, each process that collects tests would import both.
"""

from __future__ import annotations

import asyncio

import openai
import pytest
from pydantic import BaseModel

from tests.api.openai.conftest import kept
from tests.model_server import CHAT, Json, Text

CALL = {
    "index": 0,
    "id": "call-1",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city": "Porto"}'},
}


class Place(BaseModel):
    city: str


def weather(city: str) -> str:
    """How it is outside."""
    return f"Rain in {city}."


class Calling(Text):
    """A call of the tool, whole or streamed."""

    def body(self, request):
        message = {"role": "assistant", "content": None, "tool_calls": [CALL]}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        return super().body(request) | {"choices": [choice]}

    def events(self, request):
        *_, last = super().events(request)
        delta = {"role": "assistant", "content": None, "tool_calls": [CALL]}
        step = {"index": 0, "delta": delta, "finish_reason": None}
        end = {"index": 0, "delta": {}, "finish_reason": "tool_calls"}
        return [{**last, "choices": [each]} for each in (step, end)]


def in_turn(request):
    """Calls the tool until it has answered."""
    has_answered = any(each["role"] == "tool" for each in request.body["messages"])
    return Text("It rains.") if has_answered else Calling("")


@pytest.fixture
def client(client_for, alice):
    return client_for(alice, openai.AsyncOpenAI)


def run(client, steps):
    async def all_of_it():
        async with client:
            return await steps()

    return asyncio.run(all_of_it())


@pytest.mark.exhaustive
def test_openai_agents_run_with_tools_a_schema_and_the_id_of_a_response(client, model, alice):
    import agents  # noqa: PLC0415

    model.answer(in_turn)
    talking = agents.models.openai_responses.OpenAIResponsesModel("loci", client)
    config = agents.RunConfig(tracing_disabled=True)
    helper = agents.Agent(
        name="helper",
        instructions="Be brief.",
        model=talking,
        tools=[agents.function_tool(weather)],
    )

    async def steps():
        first = await agents.Runner.run(helper, "How is the weather?", run_config=config)
        again = await agents.Runner.run(
            helper, "Thanks", previous_response_id=first.last_response_id, run_config=config
        )
        streamed = agents.Runner.run_streamed(helper, "And streamed?", run_config=config)
        kinds = [event.type async for event in streamed.stream_events()]
        model.answer('{"city": "Porto"}')
        finder = agents.Agent(name="finder", model=talking, output_type=Place)
        found = await agents.Runner.run(finder, "Where?", run_config=config)
        return first, again, streamed, kinds, found

    first, again, streamed, kinds, found = run(client, steps)
    assert [each.final_output for each in (first, again, streamed)] == ["It rains."] * 3
    assert "raw_response_event" in kinds
    assert found.final_output == Place(city="Porto")
    texts = [each["content"] for each in model.requests_to(CHAT)[2].body["messages"]]
    said = ["How is the weather?", None, "Rain in Porto.", "It rains.", "Thanks"]
    assert texts[-len(said) :] == said
    assert ("tool", "Rain in Porto.") in kept(alice)


@pytest.mark.exhaustive
def test_pydantic_ai_runs_with_tools_a_schema_and_a_history(client, model, alice):
    from pydantic_ai import Agent  # noqa: PLC0415
    from pydantic_ai.models.openai import OpenAIResponsesModel  # noqa: PLC0415
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

    model.answer(in_turn)
    talking = OpenAIResponsesModel("loci", provider=OpenAIProvider(openai_client=client))
    helper = Agent(talking, instructions="Be brief.", tools=[weather])

    async def steps():
        first = await helper.run("How is the weather?")
        again = await helper.run("Thanks", message_history=first.all_messages())
        async with helper.run_stream("And streamed?") as stream:
            streamed = await stream.get_output()
        called = {"name": "final_result", "arguments": '{"city": "Porto"}'}
        call = {**CALL, "function": called}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        model.answer(Json({"id": "1", "model": "m", "choices": [choice]}))
        found = await Agent(talking, output_type=Place).run("Where?")
        return [first.output, again.output, streamed, found.output]

    outputs = run(client, steps)
    assert outputs == ["It rains.", "It rains.", "It rains.", Place(city="Porto")]
    assert ("user", "And streamed?") in kept(alice)
    assert ("tool", "Rain in Porto.") in kept(alice)
