"""A long talk with a model: what was recalled, mined, spent and noted tells the same story."""

from __future__ import annotations

import json

import pytest
from django.db.models import Sum

from chat.models import Message
from llm.models import Usage
from palace.models import Activity, Drawer, RecollectionTrace
from tests.chat.conftest import current, finished, rest, say, start

TURNS = 30
THINGS = [
    "a green canoe",
    "the shed key",
    "two chairs",
    "an old radio",
    "the boiler",
    "a map of Lisbon",
    "seven tulip bulbs",
    "her bicycle",
    "a pressure cooker",
    "the roof",
    "a pair of skis",
    "the allotment lease",
    "a violin case",
    "some rye flour",
    "the cat",
    "a crimping tool",
    "the ferry timetable",
    "a wool coat",
    "my passport",
    "the piano",
    "a fishing licence",
    "the garden hose",
    "a box of slides",
    "the tent",
    "a bread knife",
    "the phone bill",
    "a lamp from 1930",
    "the spare tyre",
    "a jar of honey",
    "the stairs",
]
# Each is said once, so that every recall is of its own.
SAID = [
    f"{name} {did} {what}."
    for name, did, what in zip(
        ["Nora", "Derek", "My aunt", "The landlord", "Our cellist"] * 6,
        ["bought", "lost", "painted", "repaired", "lent me", "asked about"] * 5,
        THINGS,
        strict=True,
    )
]


def answer(request):
    """What a model says: JSON where it is asked for data, else a few words that name the turn."""
    if "response_format" in request.body:
        return json.dumps(
            {
                "title": "Household",
                "wing": {"kind": "topic", "name": "Household"},
                "topics": [{"title": "Things", "first_turn": 0}],
                "entities": [],
            }
        )
    return f"Noted: {request.body['messages'][-1]['content']}"


@pytest.fixture
def talk(furnished, model):
    model.answer(answer)
    conversation = start(furnished, SAID[0])
    finished(conversation)
    for number, text in enumerate(SAID[1:], start=2):
        say(conversation, text)
        finished(conversation)
        if number % 5 == 0:
            conversation = rest(conversation)
    return conversation


@pytest.mark.exhaustive
def test_recall_mining_costs_and_activity_agree(talk, furnished, model, alice):
    messages = list(current(talk))
    replies = [message for message in messages if message.role == "assistant"]
    assert [message.text for message in messages[::2]] == SAID
    assert [reply.text for reply in replies] == [f"Noted: {text}" for text in SAID]

    # Before each reply: one recall of what was said, and its block at the head of the prompt.
    prompts = [r.body["messages"] for r in model.requests if "response_format" not in r.body]
    traces = {trace.uuid: trace for trace in RecollectionTrace.objects.filter(palace=furnished)}
    assert len(prompts) == len(replies) == len(traces) == TURNS
    for text, reply, prompt in zip(SAID, replies, prompts, strict=True):
        trace = traces[reply.recollection]
        assert trace.query == text == prompt[-1]["content"]
        assert prompt[0]["content"].startswith(trace.context)
        assert ("<memory_context>" in prompt[0]["content"]) == bool(
            trace.hits or trace.facts or trace.carried
        )
        said_before = {message["content"] for message in prompt[1:]}
        found = Drawer.objects.filter(uuid__in=[hit["drawer"] for hit in trace.hits])
        assert said_before.isdisjoint(found.values_list("text", flat=True))

    # After them: each message in one drawer, and the activities tell how many.
    drawers = Drawer.objects.filter(palace=furnished, source="chat").in_order()
    assert [drawer.text for drawer in drawers] == [message.text for message in messages]
    mined = Activity.objects.filter(palace=furnished, kind=Activity.Kind.MEMORY_MINED)
    made = [activity.detail["made"]["drawers"] for activity in mined]
    assert sum(made) == Drawer.objects.filter(palace=furnished).count() == 2 * TURNS + 4
    assert not Message.objects.filter(mined_at=None).exists()

    # Each call is paid for once, by her for whom it was made.
    spent = Usage.objects.filter(owner=alice).exclude(purpose="memory_embed")
    assert spent.count() == len(model.requests)
    assert spent.filter(purpose="chat").count() == TURNS
    assert spent.aggregate(Sum("tokens_in"))["tokens_in__sum"] == 11 * len(model.requests)
    assert not Usage.objects.exclude(owner=alice).exists()
    assert not Usage.objects.exclude(outcome="ok").exists()


@pytest.mark.exhaustive
def test_each_switch_changes_what_it_names(talk, furnished, model, choices):
    def next_turn(text):
        model.requests.clear()
        before = Drawer.objects.count()
        say(talk, text)
        reply = finished(talk)
        rest(talk)
        calls = {"extract" if "response_format" in r.body else "chat" for r in model.requests}
        return reply, calls, Drawer.objects.count() - before

    reply, calls, mined = next_turn("Where does Nora work?")
    assert (reply.recollection is not None, calls, mined) == (True, {"chat", "extract"}, 2)

    choices(auto_mine=False)
    reply, calls, mined = next_turn("And what does she feed there?")
    assert (reply.recollection is not None, calls, mined) == (True, {"chat"}, 0)

    choices(auto_mine=True, top_k=1)
    reply, _calls, mined = next_turn("What am I allergic to?")
    assert len(RecollectionTrace.objects.get(uuid=reply.recollection).hits) == 1
    assert mined == 4, "What waited by hand goes along."

    choices(top_k=5, enabled=False)
    reply, calls, mined = next_turn("Who asked about the roof?")
    assert (reply.recollection, calls, mined) == (None, {"chat"}, 0)

    choices(enabled=True, provider="none")
    reply, calls, mined = next_turn("Who lost the shed key?")
    assert reply.text.startswith("No language model is set")
    assert (calls, mined) == (set(), 3), "What was said while it was off was still said."
