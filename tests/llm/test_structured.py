from __future__ import annotations

import pytest
from pydantic import BaseModel, Field

from llm import chat
from llm.chat import strict_schema
from llm.errors import BadModelOutput, ModelRefused
from llm.messages import Completion, parse_answer
from llm.models import Usage
from tests.model_server import Status, Text

pytestmark = pytest.mark.django_db

MESSAGES = [{"role": "user", "content": "Who came to supper?"}]


class Guest(BaseModel):
    name: str
    age: int | None = None


class Supper(BaseModel):
    dish: str = Field(description="What was eaten.")
    guests: list[Guest]


WHOLE = '{"dish": "soup", "guests": [{"name": "Ada", "age": 36}, {"name": "Bo", "age": null}]}'
EXPECTED = Supper(dish="soup", guests=[Guest(name="Ada", age=36), Guest(name="Bo")])


def ask(endpoint, **how):
    return chat.structured(MESSAGES, Supper, endpoint=endpoint, purpose="memory_extract", **how)


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        f"```json\n{WHOLE}\n```",
        f"Of course! Here is what you asked for:\n\n```\n{WHOLE}\n```\nAnything else?",
        f"Sure: {WHOLE} Hope this helps.",
        WHOLE.replace("}]", "},]").replace("null}", "null,}"),
        WHOLE.replace('"', "'").replace("null", "None"),
        WHOLE.replace('"dish"', "dish"),
        f"<think>Perhaps {{'dish': 'stew', 'guests': []}}?</think>{WHOLE}",
        f'For example {{"dish": "?"}}. The answer: {WHOLE}',
        f"[{WHOLE}]",
        WHOLE[:-1],
    ],
    ids=[
        "clean",
        "fenced",
        "fenced in prose",
        "in prose",
        "trailing commas",
        "python",
        "unquoted",
        "thoughts",
        "an example first",
        "in a list",
        "a bracket short",
    ],
)
def test_sloppy_json_is_understood(endpoint, model_server, text):
    model_server.script([text])
    assert ask(endpoint) == EXPECTED
    assert len(model_server.requests) == 1


@pytest.mark.parametrize("text", ["[" * 5_000, "[" * 5_000 + "]" * 5_000, '{"a":' * 5_000])
def test_what_is_nested_too_deeply_is_a_wrong_answer(text):
    with pytest.raises(ValueError, match=r"\S"):
        parse_answer(Completion(text, "m", 0, 0, "stop"), Supper)


def test_a_thought_without_an_end_stays():
    said = f"<think>{{}}</think><think>{WHOLE}"
    assert parse_answer(Completion(said, "m", 0, 0, "stop"), Supper) == EXPECTED


def test_the_schema_is_sent_as_format_and_in_words(endpoint, model_server):
    model_server.script([WHOLE])
    ask(endpoint)
    body = model_server.requests[0].body
    sent = body["response_format"]
    assert sent["type"] == "json_schema"
    assert sent["json_schema"]["name"] == "Supper"
    assert sent["json_schema"]["strict"] is True
    assert body["messages"][0]["role"] == "system"
    assert "What was eaten." in body["messages"][0]["content"]
    assert body["messages"][1:] == MESSAGES


def test_there_is_one_system_message_with_both_instructions(endpoint, model_server):
    model_server.script([WHOLE])
    messages = [{"role": "system", "content": "You are a butler."}, *MESSAGES]
    chat.structured(messages, Supper, endpoint=endpoint, purpose="memory_extract")
    sent = model_server.requests[0].body["messages"]
    assert [message["role"] for message in sent] == ["system", "user"]
    assert sent[0]["content"].startswith("You are a butler.\n\nAnswer with one JSON")


@pytest.mark.parametrize(
    "wrong",
    ["I would rather not.", '{"dish": "soup"}', "   ", "[]", "null", f"[{WHOLE}, {WHOLE}]"],
)
def test_a_wrong_answer_is_shown_its_error_once(endpoint, model_server, wrong):
    model_server.script([wrong, WHOLE])
    assert ask(endpoint) == EXPECTED
    retry = model_server.requests[1].body["messages"]
    assert retry[-2] == {"role": "assistant", "content": wrong}
    assert "does not fit the schema" in retry[-1]["content"]
    assert Usage.objects.filter(purpose="memory_extract", outcome="ok").count() == 2


def test_the_error_shown_names_the_missing_field(endpoint, model_server):
    model_server.script(['{"dish": "soup"}', WHOLE])
    ask(endpoint)
    assert "guests" in model_server.requests[1].body["messages"][-1]["content"]


def test_two_wrong_answers_are_an_error_that_does_not_quote_them(endpoint, model_server):
    model_server.answer('{"dish": "a family secret"}')
    with pytest.raises(BadModelOutput, match="did not answer in the requested format") as raised:
        ask(endpoint)
    assert len(model_server.requests) == 2
    assert "secret" not in str(raised.value)
    assert raised.value.__context__ is None


def test_half_an_answer_is_not_taken_for_a_whole_one(endpoint, model_server):
    model_server.answer(Text(WHOLE[:60], finish_reason="length"))
    with pytest.raises(BadModelOutput, match="ran out of tokens"):
        ask(endpoint)
    assert len(model_server.requests) == 1


@pytest.mark.parametrize("known", ["json_object", None])
def test_a_server_without_schemas_is_asked_as_it_can_be(endpoint, model_server, known):
    def plain(request):
        asked = request.body.get("response_format", {}).get("type")
        if asked != known:
            return Status(400, "This response_format type is unavailable now.")
        return WHOLE

    model_server.answer(plain)
    assert ask(endpoint) == EXPECTED
    asked = len(model_server.requests)
    assert asked == (2 if known else 3)
    assert ask(endpoint) == EXPECTED
    assert len(model_server.requests) == asked + 1


def test_a_refusal_of_something_else_is_not_taken_for_one_of_the_format(endpoint, model_server):
    model_server.answer(Status(400, "This model's context is too short.", code="context_length"))
    with pytest.raises(ModelRefused):
        ask(endpoint)
    assert len(model_server.requests) == 1


def test_what_postgres_cannot_store_is_taken_out(endpoint, model_server):
    model_server.script([r'{"dish": "so\u0000up \ud83d", "guests": []}'])
    assert ask(endpoint).dish == "soup ?"


def test_a_strict_schema_requires_everything_and_allows_nothing_else():
    class Course(BaseModel):
        default: str = "none"
        after: Guest | None = None
        best: Guest = Field(description="Who ate most.")

    schema = strict_schema(Course)
    assert schema["required"] == ["default", "after", "best"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["default"] == {"title": "Default", "type": "string"}
    assert schema["properties"]["best"] == {"$ref": "#/$defs/Guest"}
    assert schema["$defs"]["Guest"]["required"] == ["name", "age"]
