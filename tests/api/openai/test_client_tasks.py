"""What chat programs ask by themselves is answered, and no memory."""

from __future__ import annotations

import openai
import pytest

from settings_app.models import MemorySettings
from tests.api.openai.conftest import ask, assistant, kept, user
from tests.chat.conftest import furnished  # noqa: F401 - a palace with something in it.
from tests.model_server import CHAT

HISTORY = "USER: What does Nora feed at the aquarium?\nASSISTANT: The otters."


def template(what, key, history=HISTORY, heading="### Task:", after=""):
    """As Open WebUI asks: headings, the answer's form, and the conversation between tags."""
    return (
        f"{heading}\n{what}\n### Guidelines:\n- Be brief.\n### Output:\n"
        f'JSON format: {{ "{key}": ["…"] }}\n### Chat History:\n'
        f"<chat_history>\n{history}\n</chat_history>{after}"
    )


TITLE_SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "language": {"type": "string"}},
}
TITLE_TOOL = {"type": "function", "function": {"name": "extract", "parameters": TITLE_SCHEMA}}
TITLE_FORM = {"type": "json_schema", "json_schema": {"name": "title", "schema": TITLE_SCHEMA}}
TALK = "User: What does Nora feed?\nAI: The otters."
COMPLETION = "<type>General</type>\n<text>Where does No</text>\n#### Output:\n"
TOOLS_WANTED = 'Available tools: []. Answer in the form {"tool_calls": []}.'

TASKS = {
    "a title": [user(template("Name the talk.", "title"))],
    "tags": [user(template("Sort the talk.", "tags"))],
    "questions": [user(template("What could come next?", "follow_ups"))],
    "searches": [user(template("What to look up?", "queries"))],
    "a completion": [user(template("Go on.", "text", "", "# Task", f"\n{COMPLETION}"))],
    "in another language": [user(template("Dê um título.", "title", heading="### Tarefa:"))],
    "a title without a form": [
        user(
            f"A title of three words, with an emoji.\n\n<chat_history>\n{HISTORY}\n</chat_history>"
        )
    ],
    "with a system prompt": [
        {"role": "system", "content": "Be kind."},
        user(template("Name it.", "title")),
    ],
    "in parts": [user([{"type": "text", "text": template("Name it.", "title")}])],
    "a choice of tools": [
        {"role": "system", "content": TOOLS_WANTED},
        user('Query: History:\nUSER: """Hello"""\nQuery: And the weather?'),
    ],
    "LibreChat's title": [user(f"A title of five words, please.\n\nConversation:\n{TALK}")],
    "an old title": [
        {"role": "system", "content": 'Title it.\n\n||>User:\n"Hi"\n||>Response:\n"Ho"\n||>Title:'}
    ],
}
SPOKEN = {
    "a heading by hand": [user("### Task:\nPlan my move to Porto.\n### Output:\nA list.")],
    "a template amid words": [
        user(f"Why does it send this?\n\n{template('Name it.', 'title')}"),
    ],
    "a template with words after it": [
        user(template("Name it.", "title", after="\nWhat is this?"))
    ],
    "a template in a conversation": [
        user("Hello"),
        assistant("Good day."),
        user(template("Name it.", "title")),
    ],
    "tags by hand": [user("### Notes\n<chat_history>\nUSER: Hi\n</chat_history>")],
    "a wish for a title": [user("Suggest a title for my book about my sister Nora.")],
    "a talk without a wish": [user(f"My sister and I talked:\n\n{TALK}")],
    "a picture": [
        user(
            [
                {"type": "text", "text": "### Task:"},
                {"type": "image_url", "image_url": {"url": "x"}},
            ]
        )
    ],
}


@pytest.mark.some(4)
@pytest.mark.parametrize("messages", TASKS.values(), ids=TASKS)
def test_a_programs_task_is_passed_on_without_memory(
    program,
    model,
    furnished,  # noqa: F811
    alice,
    messages,
):
    model.answer('{"title": "Otters"}')
    model.requests.clear()
    before = kept(alice)
    raw = program.chat.completions.with_raw_response.create(model="loci", messages=messages)
    assert raw.headers["X-Loci-Memory"] == "off; reason=task"
    assert raw.parse().choices[0].message.content == '{"title": "Otters"}'
    assert model.requests_to(CHAT)[-1].body["messages"] == messages
    assert kept(alice) == before


@pytest.mark.parametrize(
    "options",
    [{"tools": [TITLE_TOOL]}, {"response_format": TITLE_FORM, "stream": True}],
    ids=["by a tool", "by a schema"],
)
def test_a_title_in_a_schema_is_a_task(program, model, alice, options):
    list(ask(program, f"Analysiere dies:\n\n{TALK}", **options))
    assert kept(alice) == []


@pytest.mark.some(3)
@pytest.mark.parametrize("messages", SPOKEN.values(), ids=SPOKEN)
def test_what_a_person_says_is_remembered_whatever_it_looks_like(program, model, alice, messages):
    raw = program.chat.completions.with_raw_response.create(model="loci", messages=messages)
    assert raw.headers["X-Loci-Memory"] == "on"
    said = messages[-1]["content"]
    text = said if isinstance(said, str) else said[0]["text"]
    assert ("user", text) in kept(alice)


def test_a_person_who_pastes_a_task_and_reads_along_is_remembered(program, model, alice):
    text = template("Name it.", "title")
    list(ask(program, text, stream=True))
    assert kept(alice)[0] == ("user", text)
    once_more = template("Name it again.", "title")
    ask(program, once_more, headers={"X-Loci-Memory": "on"})
    assert ("user", once_more) in kept(alice)


def test_an_emoji_is_a_task_only_where_nothing_longer_is_wanted(program, model, alice):
    text = "Show the face of whoever says this.\n\nMessage: ```I passed!```"
    ask(program, text, max_tokens=4)
    assert kept(alice) == []
    ask(program, text)
    assert kept(alice)[0] == ("user", text)


def test_another_model_name_leaves_memory_out(program, model, alice):
    raw = program.chat.completions.with_raw_response.create(
        model="loci-off",
        messages=[user("Name this talk.")],
        extra_headers={"X-Loci-Memory": "on"},
    )
    assert raw.headers["X-Loci-Memory"] == "off"
    assert model.requests_to(CHAT)[-1].body["model"] == "test-model"
    assert kept(alice) == []
    assert program.models.retrieve("loci-off").id == "loci-off"


@pytest.mark.parametrize(
    "options",
    [
        {"messages": TASKS["a title"]},
        {"tools": [TITLE_TOOL]},
        {"response_format": TITLE_FORM},
        {"response_format": {"type": "json_object"}},
    ],
    ids=["a task", "a tool", "a schema", "an object"],
)
def test_what_only_a_model_can_do_is_refused_without_one(program, alice, options):
    MemorySettings.objects.create(owner=alice, provider="none")
    asked = {"model": "loci", "messages": [user("Hello")], **options}
    with pytest.raises(openai.BadRequestError) as caught:
        program.chat.completions.create(**asked)
    assert caught.value.code == "model_required"
    assert "/settings/model/" in caught.value.message
    assert kept(alice) == []
    quoted = ask(program, "Hello", tools=[TITLE_TOOL], tool_choice="none")
    assert quoted.choices[0].message.content
