"""What goes to the model and what comes back, unchanged but for the memories."""

from __future__ import annotations

import asyncio

import httpx2
import openai
import pytest

from llm.models import Usage
from palace.models import Drawer
from settings_app.api_keys import ApiKey, AuditLine
from settings_app.models import MemorySettings
from tests.api.openai.conftest import UPSTREAMS_KEY, ask, assistant, kept, post, user
from tests.chat.conftest import furnished  # noqa: F401 - a palace with something in it.
from tests.model_server import CHAT, CutOff, Json, Status, Text
from tests.polling import until

QUESTION = "What does Nora feed at the aquarium?"
TOOL = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}},
}


def metered():
    """The meter's row: it is written when the stream is over, a moment after its last event."""
    until(Usage.objects.filter(purpose="chat").exists)
    return Usage.objects.get(purpose="chat")


def test_the_model_is_given_memories_and_all_else_as_it_came(program, model, furnished):  # noqa: F811
    system = {"role": "system", "content": "Answer in rhymes."}
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    asked = {"role": "user", "content": [{"type": "text", "text": QUESTION}, picture]}
    model.answer("She feeds the otters.")
    model.requests.clear()  # What mining asked.
    raw = program.chat.completions.with_raw_response.create(
        model="another-model",
        messages=[system, asked],
        temperature=0.3,
        extra_body={"new_field": {"a": [1, 2.5, None]}, "logit_bias": {"5": -1}},
    )
    (sent,) = model.requests_to(CHAT)
    assert sent.headers["authorization"] == f"Bearer {UPSTREAMS_KEY}"
    context, _, instructions = sent.body["messages"][0]["content"].partition("\n\nAnswer in rhymes")
    assert context.startswith("<memory_context>")
    assert "feeds the otters" in context
    assert instructions == "."
    assert sent.body["messages"][1:] == [asked]
    others = {name: value for name, value in sent.body.items() if name != "messages"}
    assert others == {
        "model": "another-model",
        "temperature": 0.3,
        "new_field": {"a": [1, 2.5, None]},
        "logit_bias": {"5": -1},
    }
    assert raw.parse().choices[0].message.content == "She feeds the otters."
    assert raw.headers["X-Loci-Recollection"]
    assert raw.headers["X-Loci-Conversation"]
    assert raw.headers["RateLimit-Limit"]


def test_nothing_is_added_where_nothing_is_found(program, model, alice):
    assert ask(program, "Hello", model="").choices[0].message.content == "OK."
    (sent,) = model.requests_to(CHAT)
    assert sent.body == {"messages": [user("Hello")], "model": "test-model"}
    (line,) = AuditLine.objects.all()
    assert (line.door, line.path, line.status) == ("proxy", "/v1/chat/completions", 200)
    (used,) = Usage.objects.filter(purpose="chat")
    assert (used.owner, used.tokens_in, used.tokens_out) == (alice, 11, 7)


def test_a_stream_is_handed_on_as_it_arrives(program, model, alice):
    model.answer(Text("One word after another.", pause_s=0.01))
    chunks = list(ask(program, "Hello", stream=True, stream_options={"include_usage": True}))
    texts = [each.choices[0].delta.content or "" for each in chunks if each.choices]
    assert len(texts) > 3
    assert "".join(texts) == "One word after another."
    assert chunks[-1].usage.total_tokens == 18
    used = metered()
    assert (used.tokens_in, used.tokens_out, used.outcome) == (11, 7, "ok")
    assert kept(alice) == [("user", "Hello"), ("assistant", "One word after another.")]


def test_several_programs_stream_at_once(client_for, alice, model):
    client = client_for(alice, openai.AsyncOpenAI)
    model.answer(lambda request: Text(f"You said {request.prompt}", pause_s=0.01))

    async def one(number):
        stream = await ask(client, f"number {number}", stream=True)
        return "".join([each.choices[0].delta.content or "" async for each in stream])

    async def all_of_them():
        async with client:
            return await asyncio.gather(*map(one, range(6)))

    answers = asyncio.run(all_of_them())
    assert answers == [f"You said number {number}" for number in range(6)]


def test_tools_are_called_and_answered(program, model, alice):
    call = {"id": "call-1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    wanted = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": wanted, "finish_reason": "tool_calls"}
    model.script(
        [Json({"id": "1", "object": "chat.completion", "created": 1, "choices": [choice]})]
    )
    first = ask(program, "How is the weather?", tools=[TOOL])
    assert first.choices[0].message.tool_calls[0].function.name == "weather"
    model.answer("Rain.")
    result = {"role": "tool", "tool_call_id": "call-1", "content": '{"rain": true}'}
    ask(program, "How is the weather?", wanted, result, tools=[TOOL])
    assert model.requests_to(CHAT)[1].body["messages"][-2:] == [wanted, result]
    assert kept(alice) == [
        ("user", "How is the weather?"),
        ("tool", '{"rain": true}'),
        ("assistant", "Rain."),
    ]


def test_of_several_choices_the_first_is_kept(program, model, alice):
    choices = [
        {"index": place, "message": assistant(text), "finish_reason": "stop"}
        for place, text in ((1, "Second."), (0, "First."))
    ]
    model.answer(Json({"id": "1", "object": "chat.completion", "created": 1, "choices": choices}))
    assert [each.message.content for each in ask(program, "Hi", n=2).choices] == [
        "Second.",
        "First.",
    ]
    assert kept(alice) == [("user", "Hi"), ("assistant", "First.")]


@pytest.mark.exhaustive
def test_langchain_talks_to_it(server, program, model, alice):
    # Not at the top: each process that collects tests would import it, for most of a second.
    from langchain_openai import ChatOpenAI  # noqa: PLC0415

    model.answer("Certainly.")
    chat = ChatOpenAI(base_url=str(program.base_url), api_key=program.api_key, model="loci")
    assert chat.invoke("Can you hear me?").content == "Certainly."
    assert "".join(each.content for each in chat.stream("And now?")) == "Certainly."
    assert ("user", "And now?") in kept(alice)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, openai.BadRequestError),
        (429, openai.RateLimitError),
        (503, openai.InternalServerError),
    ],
)
def test_the_models_own_errors_come_back_as_they_are(program, model, status, kind):
    model.answer(Status(status, "Not like this.", "its_code", "its_param", retry_after_s=7))
    with pytest.raises(kind) as caught:
        ask(program, "Hello", stream=True)
    error = caught.value
    assert (error.status_code, error.code, error.param) == (status, "its_code", "its_param")
    assert error.response.headers["Retry-After"] == "7"
    assert len(model.requests_to(CHAT)) == 1


def test_an_error_does_not_tell_the_owners_key(program, model):
    model.api_key = "another"
    with pytest.raises(openai.AuthenticationError) as caught:
        ask(program, "Hello")
    assert "Incorrect API key provided" in str(caught.value)
    assert UPSTREAMS_KEY not in caught.value.response.text


def test_a_stream_that_breaks_off_says_so_and_is_kept_so_far(program, model, alice):
    model.answer(CutOff("Half of this is all there is."))
    with pytest.raises(openai.APIError, match=r"in the middle of its answer|not be reached; check"):
        list(ask(program, "Hello", stream=True))
    assert metered().outcome == "model_unavailable"
    assert kept(alice) == [("user", "Hello"), ("assistant", "Half of this ")]


def test_a_key_revoked_within_a_stream_lets_it_end_and_opens_nothing_after(program, model, alice):
    model.answer(Text("One word after another, to the very end.", pause_s=0.05))
    stream = iter(ask(program, "Hello", stream=True))
    chunks = [next(stream)]
    ApiKey.objects.get(owner=alice).revoke()
    chunks += stream
    texts = [each.choices[0].delta.content or "" for each in chunks if each.choices]
    assert "".join(texts) == "One word after another, to the very end."
    assert metered().outcome == "ok"
    assert kept(alice) == [("user", "Hello"), ("assistant", "".join(texts))]
    with pytest.raises(openai.AuthenticationError):
        ask(program, "And now?")


def test_nobody_there(program, model, alice):
    model.__exit__()
    with pytest.raises(openai.InternalServerError) as caught:
        ask(program, "Hello")
    assert (caught.value.status_code, caught.value.code) == (502, "model_unavailable")
    assert kept(alice) == [("user", "Hello")]


def test_models_are_the_owners_choice_and_the_providers(program, model):
    assert [each.id for each in program.models.list()] == ["loci", "loci-off", "test-model"]
    assert program.models.retrieve("loci").id == "loci"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "bad_json"),
        (b"[]", 400, "bad_input"),
        (b'{"messages": []}', 400, "bad_input"),
        (b'{"messages": ["Hi"]}', 400, "bad_input"),
        (b'{"messages": [{"role": "user", "content": "Hi"}], "user": 7}', 400, "bad_input"),
        (b'{"messages": [{"role": "user", "content": "Hi"}], "model": ["x"]}', 400, "bad_input"),
        (b'{"messages": [{"role": "user", "content": "Hi"}], "top_p": true}', 400, "bad_input"),
        (
            b'{"messages": [{"role": "user", "content": "Hi"}], "temperature": "hot"}',
            400,
            "bad_input",
        ),
        (b'{"messages": [{"role": "user", "content": "Hi"}], "stream": "yes"}', 400, "bad_input"),
        (b'{"messages": [{"role": "user", "content": "Hi"}], "n": "two"}', 400, "bad_input"),
        (
            b'{"messages": [{"role": "user", "content": "Hi"}], "response_format": "json_object"}',
            400,
            "bad_input",
        ),
        (b'{"messages": [{"role": "user", "content": 7}]}', 400, "bad_input"),
        (b'{"messages": [{"role": "user", "content": ["Hi"]}]}', 400, "bad_input"),
        (b'{"messages": [{"role": "user", "text": "Hi"}]}', 400, "bad_input"),
        (b'{"messages": [{"role": "user", "content": "\\u0000"}]}', 400, "unstorable_text"),
    ],
)
def test_bad_input_is_refused_in_openais_shape(program, body, status, code):
    answer = post(program, body)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert (error["code"], error["type"]) == (code, "invalid_request_error")
    assert error["message"]


def test_without_a_key_or_a_scope_nobody_comes_in(client_for, program, alice, model):
    answer = post(program, b"{}", Authorization="Bearer loci_wrong")
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "bad_key")
    assert answer.headers["WWW-Authenticate"]
    with pytest.raises(openai.PermissionDeniedError):
        ask(client_for(alice, scopes=["read"]), "Hello")
    writer = client_for(alice, scopes=["write"])
    with pytest.raises(openai.PermissionDeniedError):
        ask(writer, "Hello")
    assert ask(writer, "Hello", headers={"X-Loci-Memory": "remember"})
    assert httpx2.get(f"{program.base_url}chat/completions").status_code == 405


def test_what_is_forwarded_is_listed_as_sent(program, model, alice):
    ask(program, "I live in Porto now.")
    [received] = model.requests
    call = Usage.objects.get(purpose="chat", requests=1)
    assert call.host == model.base_url.split("/")[2]
    assert call.characters == sum(len(each["content"]) for each in received.body["messages"])
    drawers = Drawer.objects.filter(palace__owner=alice, role="user").values_list("pk", flat=True)
    assert call.references == ["instructions:program", *(f"drawer:{key}" for key in drawers)]


def test_a_forwarded_request_that_fails_is_listed_too(program, model):
    model.script([Status(500)])
    with pytest.raises(openai.InternalServerError):
        ask(program, "Hello?")
    call = Usage.objects.get(purpose="chat", requests=1)
    assert (call.outcome, len(model.requests)) == ("model_unavailable", 1)


def test_where_replies_are_off_the_palace_is_quoted(program, model, alice):
    MemorySettings.objects.filter(owner=alice).update(uses=["facts"])
    answer = ask(program, "Where do I live?")
    assert answer.choices[0].message.content
    assert [each.id for each in program.models.list()] == ["loci", "loci-off"]
    assert model.requests == []
