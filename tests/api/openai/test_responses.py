"""The newer endpoint with OpenAI's client: the same memory, in another format."""

from __future__ import annotations

import httpx2
import openai
import pytest
from django.utils import timezone
from pydantic import BaseModel

from chat.prompt import NO_MODEL
from llm.chat_calls import Dialect, learn_dialect
from palace.curation.purge import Purge
from palace.curation.trash import trash_drawers
from palace.models import WRITES_KEPT_FOR, Drawer, IdempotentWrite, Palace
from settings_app.models import MemorySettings
from tests.api.openai.conftest import ask, kept
from tests.chat.conftest import furnished  # noqa: F401 - a palace with something in it.
from tests.model_server import CHAT, CutOff, Json, Status, Text

QUESTION = "What does Nora feed at the aquarium?"
WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "How it is outside.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    "strict": None,
}
CALLED = {"name": "weather", "arguments": '{"city": "Porto"}'}
CALL = {"id": "call-1", "type": "function", "function": CALLED}


def sent_to(model):
    return model.requests_to(CHAT)[-1].body


def calling(*calls):
    message = {"role": "assistant", "content": None, "tool_calls": list(calls)}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return Json({"id": "1", "object": "chat.completion", "created": 1, "choices": [choice]})


class Steps:
    """A stream with these deltas."""

    def __init__(self, *deltas, reason="stop"):
        self.choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        self.choices.append({"index": 0, "delta": {}, "finish_reason": reason})

    def send(self, handler, request):
        head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        for choice in self.choices:
            handler.send_event({**head, "choices": [choice]})
        handler.end_events()


def ask_for(program, said, **options):
    return program.responses.create(model="loci", input=said, **options)


def test_a_response_is_answered_from_memory_and_remembered(
    program,
    model,
    furnished,  # noqa: F811
    alice,
):
    model.answer("She feeds the otters.")
    raw = program.responses.with_raw_response.create(
        model="loci",
        instructions="Answer in rhymes.",
        input=QUESTION,
        temperature=0.3,
        max_output_tokens=90,
        reasoning={"effort": "low"},
        metadata={"a": "b"},
    )
    body = sent_to(model)
    context, _, instructions = body["messages"][0]["content"].partition("\n\nAnswer in rhymes")
    assert context.startswith("<memory_context>")
    assert "feeds the otters" in context
    assert instructions == "."
    assert body["messages"][1:] == [{"role": "user", "content": QUESTION}]
    others = {name: value for name, value in body.items() if name != "messages"}
    assert others == {
        "model": "test-model",
        "temperature": 0.3,
        "max_tokens": 90,
        "reasoning_effort": "low",
    }
    response = raw.parse()
    assert response.output_text == "She feeds the otters."
    assert (response.status, response.model, response.store) == ("completed", "test-model", True)
    assert (response.usage.input_tokens, response.usage.output_tokens) == (11, 7)
    assert (response.instructions, response.metadata) == ("Answer in rhymes.", {"a": "b"})
    assert raw.headers["X-Loci-Memory"] == "on"
    assert raw.headers["X-Loci-Recollection"]
    assert kept(alice)[-2:] == [("user", QUESTION), ("assistant", "She feeds the otters.")]


def test_chat_and_responses_are_one_conversation(program, model, alice):
    ask(program, "Hi")
    said = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "OK."}]},
        {"role": "user", "content": [{"type": "input_text", "text": "Again"}]},
    ]
    ask_for(program, said)
    assert [each["content"] for each in sent_to(model)["messages"]] == ["Hi", "OK.", "Again"]
    assert [text for _, text in kept(alice)] == ["Hi", "OK.", "Again", "OK."]


def test_a_stream_has_the_events_of_a_response(program, model, alice):
    model.answer(Text("One word after another."))
    with program.responses.stream(model="loci", input="Hello") as stream:
        events = list(stream)
        final = stream.get_final_response()
    kinds = [each.type for each in events]
    assert kinds[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert kinds[-4:] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [each.sequence_number for each in events] == list(range(len(events)))
    deltas = [each.delta for each in events if each.type == "response.output_text.delta"]
    assert len(deltas) == 4
    assert "".join(deltas) == final.output_text == "One word after another."
    assert final.usage.total_tokens == 18
    assert kept(alice) == [("user", "Hello"), ("assistant", "One word after another.")]


def test_tools_are_called_and_the_call_is_continued_by_its_id(program, model, alice):
    model.script([calling(CALL)])
    choice = {"type": "function", "name": "weather"}
    first = ask_for(program, "How is the weather?", tools=[WEATHER], tool_choice=choice)
    function = {name: WEATHER[name] for name in ("name", "description", "parameters")}
    assert sent_to(model)["tools"] == [{"type": "function", "function": function}]
    assert sent_to(model)["tool_choice"] == {"type": "function", "function": {"name": "weather"}}
    (call,) = first.output
    assert (call.type, call.call_id, call.name) == ("function_call", "call-1", "weather")
    assert call.arguments == CALLED["arguments"]
    model.answer("Rain.")
    result = {"type": "function_call_output", "call_id": "call-1", "output": "wet"}
    second = ask_for(program, [result], previous_response_id=first.id, tools=[WEATHER])
    assert sent_to(model)["messages"] == [
        {"role": "user", "content": "How is the weather?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call-1", "content": "wet"},
    ]
    assert second.output_text == "Rain."
    third = ask_for(program, "Thanks", previous_response_id=second.id, instructions="Be brief.")
    assert len(sent_to(model)["messages"]) == 6
    assert third.previous_response_id == second.id
    said = ["How is the weather?", "wet", "Rain.", "Thanks", "Rain."]
    assert [text for _, text in kept(alice)] == said
    assert Drawer.objects.values("conversation").distinct().count() == 1


def test_calls_arrive_in_a_stream_piece_by_piece(program, model):
    begun = {"index": 0, "id": "call-1", "function": {"name": "weather", "arguments": ""}}
    more = {"index": 0, "function": {"arguments": CALLED["arguments"]}}
    # Some servers number every call alike.
    other = {"index": 0, "id": "call-2", "function": {"name": "time", "arguments": "{}"}}
    deltas = [
        {"content": "Let me look."},
        *({"tool_calls": [each]} for each in (begun, more, other)),
    ]
    model.answer(Steps(*deltas, reason="tool_calls"))
    with program.responses.stream(model="loci", input="Weather?", tools=[WEATHER]) as stream:
        kinds = [each.type for each in stream]
        final = stream.get_final_response()
    assert kinds.count("response.function_call_arguments.done") == 2
    assert [each.type for each in final.output] == ["message", "function_call", "function_call"]
    assert [each.call_id for each in final.output[1:]] == ["call-1", "call-2"]
    assert final.output[1].arguments == CALLED["arguments"]


def test_an_answer_in_a_schema_is_read_by_the_client(program, model):
    class Place(BaseModel):
        city: str

    model.answer('{"city": "Porto"}')
    parsed = program.responses.parse(model="loci", input="Where?", text_format=Place)
    assert parsed.output_parsed == Place(city="Porto")
    form = sent_to(model)["response_format"]
    assert (form["type"], form["json_schema"]["name"]) == ("json_schema", "Place")
    assert form["json_schema"]["schema"]["properties"]["city"]


def test_only_ones_own_responses_can_be_continued(program, client_for, model, alice, bob):
    MemorySettings.objects.create(owner=bob, provider=model.base_url, model="test-model")
    mine = ask_for(program, "My code is 1234.")
    anns = ask_for(program, "I am Ann.", user="ann")
    loose = ask_for(program, "Of no use.", store=False)
    off = ask_for(program, "Nobody knows.", extra_headers={"X-Loci-Memory": "off"})
    assert (loose.store, off.store) == (False, False)
    model.requests.clear()
    bound = client_for(alice, subject="ann")
    for client, name, user in (
        (client_for(bob), mine.id, None),
        (bound, mine.id, None),
        (program, mine.id, "ann"),
        (program, anns.id, None),
        (program, loose.id, None),
        (program, off.id, None),
        (program, "resp_unknown", None),
        (program, "x" * 5000, None),
    ):
        with pytest.raises(openai.NotFoundError) as caught:
            ask_for(client, "Go on", previous_response_id=name, user=user or openai.omit)
        assert caught.value.code == "previous_response_not_found"
    assert model.requests == []
    assert ask_for(bound, "Go on", previous_response_id=anns.id).output_text == "OK."


def test_items_are_referred_to_by_their_ids(program, client_for, model, alice, bob):
    MemorySettings.objects.create(owner=bob, provider=model.base_url, model="test-model")
    model.script([calling(CALL), "It rains."])
    first = ask_for(program, "Weather?", tools=[WEATHER])
    result = {"type": "function_call_output", "call_id": "call-1", "output": "wet"}
    asked = {"role": "user", "content": "Weather?"}
    second = ask_for(program, [asked, {"type": "item_reference", "id": first.output[0].id}, result])
    said = [asked, {"id": first.output[0].id}, result, {"id": second.output[0].id}]
    thanks = {"role": "user", "content": "Thanks"}
    ask_for(program, [*said, thanks])
    assert sent_to(model)["messages"] == [
        asked,
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call-1", "content": "wet"},
        {"role": "assistant", "content": "It rains."},
        thanks,
    ]
    for client, whose in ((client_for(bob), None), (program, "ann")):
        with pytest.raises(openai.NotFoundError) as caught:
            ask_for(client, [said[-1], thanks], user=whose or openai.omit)
        assert caught.value.code == "item_not_found"
    # A day later the words are still in their drawer.
    IdempotentWrite.objects.update(claimed_at=timezone.now() - WRITES_KEPT_FOR)
    ask_for(program, [asked, said[-1], thanks])
    assert sent_to(model)["messages"][1] == {"role": "assistant", "content": "It rains."}
    trash_drawers(Palace.objects.own(alice), Drawer.objects.filter(text="It rains."))
    with pytest.raises(openai.NotFoundError):
        ask_for(program, [asked, said[-1], thanks])


def test_what_is_deleted_is_not_continued(program, model, alice):
    first = ask_for(program, "My code is 1234.")
    palace = Palace.objects.own(alice)
    trash_drawers(palace, Drawer.objects.within(palace).filter(text__contains="1234"))
    Purge(palace).run(Drawer.objects.within(palace).filter(text__contains="1234"))
    with pytest.raises(openai.NotFoundError):
        ask_for(program, "What is my code?", previous_response_id=first.id)


def test_a_reply_that_is_cut_off_is_incomplete(program, model):
    model.answer(Text("Too long", finish_reason="length"))
    response = ask_for(program, "Hello")
    assert (response.status, response.incomplete_details.reason) == (
        "incomplete",
        "max_output_tokens",
    )


def test_a_stream_that_breaks_off_has_failed_and_is_kept_so_far(program, model, alice):
    for reply in (CutOff("Half of this is all there is."), CutOff(cleanly=True)):
        model.answer(reply)
        *_, last = ask_for(program, "Hello", stream=True)
        assert (last.type, last.response.status) == ("response.failed", "failed")
        assert last.response.error.message
    assert ("assistant", "Half of this ") in kept(alice)
    with pytest.raises(openai.NotFoundError):
        ask_for(program, "Go on", previous_response_id=last.response.id)


def test_what_loci_adds_is_what_the_server_is_known_to_accept(program, model, alice):
    endpoint = MemorySettings.objects.get(owner=alice).endpoint()
    known = Dialect(max_tokens_name="max_completion_tokens", stream_usage=False)
    learn_dialect(endpoint, known)
    *_, last = ask_for(program, "Hello", stream=True, max_output_tokens=50)
    assert sent_to(model)["max_completion_tokens"] == 50
    assert not {"stream_options", "max_tokens"} & set(sent_to(model))
    assert (last.type, last.response.usage) == ("response.completed", None)


def test_the_models_own_errors_come_back_as_they_are(program, model):
    model.answer(Status(429, "Not like this.", "its_code", "its_param", retry_after_s=7))
    with pytest.raises(openai.RateLimitError) as caught:
        ask_for(program, "Hello", stream=True)
    assert (caught.value.code, caught.value.response.headers["Retry-After"]) == ("its_code", "7")
    model.answer(Json({"choices": []}))
    with pytest.raises(openai.InternalServerError) as caught:
        ask_for(program, "Hello")
    assert (caught.value.status_code, caught.value.code) == (502, "model_unavailable")


def test_without_a_model_the_palace_is_quoted(program, alice, furnished):  # noqa: F811
    MemorySettings.objects.create(owner=alice, provider="none")
    response = ask_for(program, QUESTION)
    assert response.output_text.startswith(NO_MODEL)
    assert "otters" in response.output_text
    with program.responses.stream(model="loci", input=QUESTION) as stream:
        assert stream.get_final_response().output_text == response.output_text
    with pytest.raises(openai.BadRequestError) as caught:
        ask_for(program, QUESTION, tools=[WEATHER])
    assert caught.value.code == "model_required"
    again = ask_for(program, QUESTION, previous_response_id=response.id)
    assert again.output_text.startswith(NO_MODEL)


@pytest.mark.some(5)
@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({"input": []}, "input"),
        ({"input": ["Hi"]}, "input[0]"),
        ({"input": [{"type": "web_search_call", "id": "x"}]}, "input[0]"),
        ({"input": [{"type": "item_reference"}]}, "input[0].id"),
        ({"input": [{"type": ["x"]}]}, "input[0]"),
        ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user"}]}, "input[0].content"),
        ({"input": [{"role": "user", "content": ["x"]}]}, "input[0].content[0]"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "x"}]}]},
            "input[0].content[0]",
        ),
        ({"input": [{"type": "function_call_output", "output": "x"}]}, "input[0].call_id"),
        ({"tools": [{"type": "web_search"}]}, "tools[0]"),
        ({"tools": "x"}, "tools"),
        ({"tools": [WEATHER], "tool_choice": "any"}, "tool_choice"),
        ({"text": "x"}, "text"),
        ({"reasoning": ["x"]}, "reasoning"),
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"previous_response_id": 7}, "previous_response_id"),
        ({"instructions": ["x"]}, "instructions"),
        ({"store": 0}, "store"),
        ({"tool_choice": 7}, "tool_choice"),
        ({"metadata": "x"}, "metadata"),
        ({"truncation": 7}, "truncation"),
        ({"parallel_tool_calls": "x"}, "parallel_tool_calls"),
        ({"max_output_tokens": "7"}, "max_output_tokens"),
        ({"max_output_tokens": True}, "max_output_tokens"),
        ({"stream": "false"}, "stream"),
        ({"user": 7}, "user"),
    ],
    ids=str,
)
def test_what_cannot_be_translated_is_refused_by_name(program, model, wrong, param):
    answer = httpx2.post(
        f"{program.base_url}responses",
        json={"input": "Hi", **wrong},
        headers={"Authorization": f"Bearer {program.api_key}"},
    )
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    assert model.requests == []


def test_pictures_files_and_results_in_parts_are_passed_on(program, model):
    picture = {"type": "input_image", "image_url": "data:image/png;base64,AA", "detail": "low"}
    file = {
        "type": "input_file",
        "filename": "a.pdf",
        "file_data": "data:application/pdf;base64,AA",
    }
    said = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "input_text", "text": "What?"}, picture, file]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "call_id": "1", **CALLED},
        {"type": "function_call", "call_id": "2", **CALLED},
        {"type": "function_call_output", "call_id": "1", "output": "wet"},
        {
            "type": "function_call_output",
            "call_id": "2",
            "output": [{"type": "input_text", "text": "dry"}],
        },
    ]
    ask_for(program, said)
    system, asked, calls, *results = sent_to(model)["messages"]
    assert system == {"role": "system", "content": "Be brief."}
    assert [each["type"] for each in asked["content"]] == ["text", "image_url", "file"]
    assert asked["content"][1]["image_url"]["detail"] == "low"
    assert [each["id"] for each in calls["tool_calls"]] == ["1", "2"]
    assert [each["content"] for each in results] == ["wet", "dry"]
