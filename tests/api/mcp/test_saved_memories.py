"""save_memory: one text with a category and tags, and how it is found by them."""

from __future__ import annotations

import pytest

from palace.curation.deletion import delete_drawers
from palace.mining.pipeline import mine_rooms
from palace.models import Drawer, Palace, Room, Telling
from palace.sdk import Memory

LESSON = "Don't send mail without asking for the address first.\r\n It went to the wrong Ada. "
LABELS = {"category": "anti-patterns/email", "tags": ["anti-pattern", "mail"]}


@pytest.fixture
def call(door, owner):
    def called(tool, **arguments):
        result = door.call(owner, tool, arguments)
        assert not result.is_error, result.content
        return result.structured_content

    return called


def contents(found):
    return [each["content"] for each in found["results"]]


def test_a_lesson_is_found_by_its_category_and_tags(call, owner):
    kept = call("save_memory", content=LESSON, **LABELS)
    again = call("save_memory", content=LESSON, **LABELS)
    assert again["drawers"] == kept["drawers"], "The same one is stored once."
    call("remember", messages=[{"content": "I wrote a mail to Ada about her address."}])
    asked = {"query": "How do I send mail?"}
    assert len(contents(call("search", **asked))) == 2
    assert contents(call("search", **asked, category="anti-patterns")) == [LESSON]
    assert contents(call("search", **asked, category="anti-patterns/email/")) == [LESSON]
    assert contents(call("search", **asked, tags=["mail", "anti-pattern"])) == [LESSON]
    assert contents(call("search", **asked, category="anti")) == []
    assert contents(call("search", **asked, tags=["mail", "other"])) == []
    [drawer] = Drawer.objects.filter(text=LESSON)
    assert drawer.metadata == LABELS


def test_its_facts_have_the_labels_before_ours(call, owner):
    [fact] = call("save_memory", content="I live in Lisbon.", category="family", tags=["city"])[
        "facts"
    ]
    assert (fact["category"], fact["tags"]) == ("family", ["city"])
    for wanted in ({"category": "family"}, {"tags": ["city"]}, {"category": "family", "tags": []}):
        assert [each["id"] for each in call("facts_as_of", **wanted)["facts"]] == [fact["id"]]
    assert call("facts_as_of", category="home")["facts"] == [], "It is ours."
    assert call("facts_as_of", tags=["city", "other"])["facts"] == []
    assert {"category": "family", "facts": 1} in call("list_categories")["categories"]
    assert not Telling.objects.exists(), "They are with the facts now."


def test_without_labels_it_is_a_plain_message(call, owner):
    [fact] = call("save_memory", content="I live in Lisbon.")["facts"]
    assert fact["category"] == "home/place"
    assert Drawer.objects.get().metadata is None


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"content": " "}, "content"),
        ({"content": "x", "category": "c" * 201}, "category"),
        ({"content": "x", "tags": ["t"] * 21}, "tags"),
        ({"content": "x", "tags": [""]}, "tags"),
        ({"content": "x", "tags": ["a\0"]}, "tags"),
    ],
)
def test_bad_input_is_said(door, owner, arguments, field):
    result = door.call(owner, "save_memory", arguments)
    assert result.is_error
    assert result.content[0].text.startswith(field)


def test_what_was_deleted_for_good_is_saved_again_but_not_brought_back_by_a_repeated_call(
    call, owner
):
    palace = Palace.objects.own(owner)
    said = {"messages": [{"content": "I live in Lisbon."}], "idempotency_key": "once"}
    call("remember", **said)
    call("save_memory", content=LESSON)
    delete_drawers(palace, Drawer.objects.within(palace))
    assert call("remember", **said)["drawers"] == []
    assert len(call("save_memory", content=LESSON)["drawers"]) == 1
    assert Drawer.objects.get().text == LESSON


@pytest.mark.parametrize("agent", ["a" * 250, " butler "])
def test_an_agent_of_any_name_finds_its_own_words(call, owner, agent):
    Memory(owner).add("The spare key lies under the flowerpot.", agent_id=agent)
    mine_rooms(list(Room.objects.within(Palace.objects.own(owner))))
    asked = {"query": "Where does the spare key lie?"}
    assert len(contents(call("search", **asked, agent_id=agent))) == 1
    assert "flowerpot" in call("recall", **asked, agent_id=agent)["context"]
    assert contents(call("search", **asked, agent_id="butler")) == []
