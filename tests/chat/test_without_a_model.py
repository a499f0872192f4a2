"""Replies where no model is set: what was noted, and quotes of the palace."""

from __future__ import annotations

import pytest

from chat import replies
from chat.mining_queue import remember
from chat.models import Message
from chat.prompt import KNOWN, NO_MODEL, NOTED_HERE
from palace.knowledge.facts import learn_unread
from palace.models import Drawer, Fact, RecollectionTrace
from palace.storage.indexing.fact_vectors import fill_missing
from palace.storage.indexing.spaces import active_space
from tests.chat.conftest import finished, say, start
from tests.factories import EntityFactory, FactFactory

QUESTION = "Where does my sister Nora work?"


def test_without_a_model_the_palace_is_quoted(furnished):
    reply = finished(start(furnished, QUESTION))
    assert reply.status == "done"
    assert reply.text.startswith("No language model is set")
    assert "works at the aquarium" in reply.text
    trace = RecollectionTrace.objects.get(uuid=reply.recollection)
    assert trace.hits[0]["pointer"] in reply.text
    assert (reply.mine, reply.model) == (False, "")


MOVED = "I just moved to Porto with my *dog*, near the aquarium."


def test_without_a_model_what_was_noted_is_acknowledged(furnished):
    conversation = start(furnished, MOVED)
    reply = finished(conversation)
    assert reply.text == f"{NO_MODEL}\n\n{NOTED_HERE}\n\n- You live in Porto"
    remember(conversation)
    learn_unread(furnished)
    assert Fact.objects.active().filter(text="User lives in Porto").exists()


@pytest.mark.parametrize(
    ("said", "noted"),
    [
        ("I just moved to Lisbon with my dog", ["You live in Lisbon", "You have a dog"]),
        (
            "I just moved to Porto with my dog Biscuit. I love rowing.",
            ["You have a dog named Biscuit", "You live in Porto", "You love rowing"],
        ),
        ("I just moved to Porto with my friend's dog Rex.", ["You live in Porto"]),
        ("I just moved to Porto with Ana and her dog Rex.", ["You live in Porto"]),
    ],
)
def test_without_a_model_all_that_was_noted_is_acknowledged(palace, said, noted):
    reply = finished(start(palace, said))
    assert reply.text.splitlines()[4:] == [f"- {each}" for each in noted]


def test_without_a_model_a_message_that_states_and_asks_gets_both(furnished):
    reply = finished(start(furnished, f"{MOVED} Where does Nora work?"))
    noted = f"{NO_MODEL}\n\n{NOTED_HERE}\n\n- You live in Porto\n\nClosest are:\n\n>"
    assert reply.text.startswith(noted)
    assert "aquarium" in reply.text


def test_without_a_model_it_says_so_once_and_keeps_quiet_unless_asked(furnished):
    conversation = start(furnished, "Good morning.")
    assert finished(conversation).text == NO_MODEL
    say(conversation, "The kettle is on.")
    quiet = finished(conversation)
    assert (quiet.text, quiet.status, quiet.is_quiet) == ("", "done", True)
    say(conversation, MOVED)
    assert finished(conversation).text == f"{NOTED_HERE}\n\n- You live in Porto"
    say(conversation, QUESTION)
    answer = finished(conversation).text
    assert answer.startswith("Closest are:")
    assert "works at the aquarium" in answer
    remember(conversation)
    assert Drawer.objects.filter(conversation=str(conversation.uuid)).count() == 4


def test_the_pages_say_it_until_there_is_a_conversation(alices, furnished):
    said = "No language model is set."
    assert said in alices.get("/chat/").text
    conversation = start(furnished, "Good morning.")
    finished(conversation)
    assert said not in alices.get("/chat/").text
    say(conversation, "The kettle is on.")
    assert finished(conversation).is_quiet
    page = alices.get(conversation.get_absolute_url()).text
    # A mark to see, words to hear.
    assert page.count('<span class="unseen">Nothing was asked, so there is no reply.</span>') == 1
    assert page.count(">Nothing was asked") == 1


@pytest.mark.parametrize("off", [{"auto_mine": False}, {"enabled": False}], ids=str)
def test_nothing_is_said_to_be_noted_where_nothing_is(furnished, choices, off):
    choices(**off)
    assert finished(start(furnished, MOVED)).text.startswith(NO_MODEL)


def test_without_a_model_and_with_nothing_to_quote_it_says_so(palace):
    reply = finished(start(palace, QUESTION))
    assert "Nothing in your palace fits" in reply.text


@pytest.mark.parametrize("is_filed", [False, True], ids=["waits", "filed"])
def test_without_a_model_the_same_chats_messages_are_quoted(palace, is_filed):
    conversation = start(palace, "My dog Biscuit is a beagle.")
    finished(conversation)
    if is_filed:
        remember(conversation)
    say(conversation, "Which breed is Biscuit?")
    reply = finished(conversation)
    assert "> My dog Biscuit is a beagle" in reply.text
    hits = RecollectionTrace.objects.get(uuid=reply.recollection).hits
    found = Drawer.objects.filter(uuid__in=[hit["drawer"] for hit in hits])
    assert [drawer.text for drawer in found] == ["My dog Biscuit is a beagle."]


def test_without_a_model_a_chat_off_the_record_is_not_quoted(palace):
    conversation = start(palace, "My dog Biscuit is a beagle.")
    finished(conversation)
    replies.choose(conversation, replies.Choices(off_record=True))
    Message.objects.filter(conversation=conversation).update(off_record=True)
    say(conversation, "Which breed is Biscuit?")
    assert "beagle" not in finished(conversation).text
    assert not Drawer.objects.exists()


def test_without_a_model_facts_stand_where_no_message_can_be_quoted(palace):
    user = EntityFactory(palace=palace, name="User", slug="user")
    fact = FactFactory(subject=user, text="User's dog Biscuit is a beagle")
    fill_missing(palace, active_space(), [fact])
    reply = finished(start(palace, "Which breed is Biscuit?"))
    assert reply.text.startswith(f"{NO_MODEL}\n\n{KNOWN}\n\n- Your dog Biscuit is a beagle")
