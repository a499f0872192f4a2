"""Drawers of what is said through the proxy."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from api.openai.chat_request import Said, read_history
from api.openai.conversation_matching import SOURCE
from api.openai.message_filing import file_messages, find_place, keep_reply
from chat.prompt import NO_MODEL, NOTED
from chat.tasks import mine_proxied
from palace.curation.purge import Purge
from palace.curation.trash import trash_drawers
from palace.models import Drawer
from tests.api.openai.conftest import assistant, user


def tell(palace, *messages, named=None, reply=None, later=timedelta(0), **kept_with):
    """A request, and what was answered."""
    now = timezone.now() + later
    history = read_history([user(each) if isinstance(each, str) else each for each in messages])
    place = file_messages(palace, history, named, now)
    if reply:
        keep_reply(palace, place, history, Said("assistant", reply), now, kept_with)
    return place.conversation


def conversations(palace):
    """The texts of each, in order."""
    drawers = Drawer.objects.within(palace).filter(source=SOURCE).order_by("room_id", "position")
    found = {}
    for conversation, text in drawers.values_list("conversation", "text"):
        found.setdefault(conversation, []).append(text)
    return found


def test_a_conversation_grows_in_one_place(palace):
    first = tell(palace, " Hi\n", reply="Hello")
    second = tell(palace, " Hi\n", assistant("Hello"), "How are you?", reply="Well.")
    assert first == second
    assert conversations(palace) == {first: [" Hi\n", "Hello", "How are you?", "Well."]}


def test_one_that_begins_alike_is_another(palace):
    first = tell(palace, "Hi", reply="Hello")
    tell(palace, "Hi", assistant("Hello"), "What is salt?", reply="A mineral.")
    second = tell(palace, "Hi", reply="Good day")
    third = tell(palace, "Hi", assistant("Good day"), "And sugar?", reply="A carbohydrate.")
    assert second == third
    assert conversations(palace) == {
        first: ["Hi", "Hello", "What is salt?", "A mineral."],
        second: ["Hi", "Good day", "And sugar?", "A carbohydrate."],
    }


def test_a_request_sent_again_is_kept_once(palace):
    for _ in range(2):
        tell(palace, "Hi", reply="Hello")
    assert list(conversations(palace).values()) == [["Hi", "Hello"]]
    tell(palace, "Hi", reply="Another try")
    assert list(conversations(palace).values()) == [["Hi", "Hello", "Another try"]]


def test_a_reply_that_the_next_request_sent_first_is_kept_once(palace):
    history = read_history([user("Hi")])
    place = file_messages(palace, history, None, timezone.now())
    tell(palace, "Hi", assistant("Hello"), "How?")
    keep_reply(palace, place, history, Said("assistant", "Hello"), timezone.now(), {})
    assert list(conversations(palace).values()) == [["Hi", "Hello", "How?"]]


def test_a_window_that_slides_stays_in_the_conversation(palace):
    tell(palace, "One", reply="First")
    tell(palace, "One", assistant("First"), "Two", reply="Second")
    tell(palace, "Two", assistant("Second"), "Three", reply="Third")
    tell(palace, assistant("Second"), "Three", assistant("Third"), "Four", reply="Fourth")
    said = ["One", "First", "Two", "Second", "Three", "Third", "Four", "Fourth"]
    assert list(conversations(palace).values()) == [said]


def test_an_edit_loses_and_doubles_nothing(palace):
    tell(palace, "I like salt", reply="Noted.", named="c")
    tell(palace, "I like salt", assistant("Noted."), "Why?", reply="Taste.", named="c")
    tell(palace, "I like sugar", assistant("Noted."), "Why?", assistant("Taste."), "So", named="c")
    texts = conversations(palace)["c"]
    assert sorted(texts[:3]) == ["I like salt", "I like sugar", "Noted."]
    assert texts[3:] == ["Why?", "Taste.", "So"]


def test_a_program_may_name_its_conversation_and_tell_only_what_is_new(palace):
    tell(palace, "Yes", named="mine", reply="Fine.")
    tell(palace, "No", named="mine", reply="Fine!")
    tell(palace, "Yes", named="mine", reply="Fine?")
    assert conversations(palace) == {"mine": ["Yes", "Fine.", "No", "Fine!", "Yes", "Fine?"]}


@pytest.mark.parametrize("own", [f"{NO_MODEL} Closest are: …", f"{NOTED}\n\n- User is Ana"])
def test_replies_without_a_model_do_not_come_back_into_the_palace(palace, own):
    tell(palace, "Hi", assistant(own), "And?")
    assert list(conversations(palace).values()) == [["Hi", "And?"]]


def test_what_was_deleted_for_good_is_not_repeated(palace):
    name = tell(palace, "My code is 1234.", reply="Noted.")
    secret = Drawer.objects.within(palace).filter(text__contains="1234")
    trash_drawers(palace, secret)
    Purge(palace).run(Drawer.objects.within(palace).filter(text__contains="1234"))
    tell(palace, "My code is 1234.", assistant("Noted."), "What is salt?", reply="A mineral.")
    assert conversations(palace) == {name: ["Noted.", "What is salt?", "A mineral."]}


def test_a_reply_that_broke_off_is_marked_and_continued(palace):
    name = tell(palace, "Hi", reply="Hello my dear fr", status="stopped", model="m")
    tell(palace, "Hi", assistant("Hello my"), "Go on", reply="iend")
    assert conversations(palace) == {name: ["Hi", "Hello my dear fr", "Go on", "iend"]}
    marked = Drawer.objects.get(palace=palace, text="Hello my dear fr")
    assert marked.metadata == {"status": "stopped", "model": "m"}


def test_nothing_is_kept_where_it_is_only_looked_for(palace):
    history = read_history([user("Hi")])
    place = find_place(palace, history, None, timezone.now())
    assert not Drawer.objects.exists()
    assert tell(palace, "Hi") == place.conversation


@pytest.mark.django_db(transaction=True)
def test_it_is_mined_once_it_rests(palace, queued, settings):
    settings.MINE_AFTER_S = 0
    tell(palace, "My sister Nora works at the aquarium.", reply="How nice.")
    first = Drawer.objects.order_by("pk").first()
    assert queued() == ["mine_proxied"]
    mine_proxied(first.room_id, first.pk)
    assert Drawer.objects.filter(mined_at=None).count() == 2  # More was said since.
    mine_proxied(first.room_id, Drawer.objects.latest("pk").pk)
    assert not Drawer.objects.filter(mined_at=None).exists()
