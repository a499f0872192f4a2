"""Episodes rest on words: they go with them, and come back with them."""

from __future__ import annotations

from palace.curation.purge import Purge
from palace.curation.trash import batch_of, move_to_trash, restore
from palace.curation.wings import merge_wings
from palace.knowledge.episodes import write_due_episodes
from palace.knowledge.episodes.episode_store import (
    episodes_of_conversation,
    search_episodes,
    store_episode,
)
from palace.mining.pipeline import mine
from palace.models import Drawer, Episode, EpisodeVector, Room
from tests.conversations import BATTERY, LISBON, SOURDOUGH, transcript
from tests.curation.test_purge import words_in_the_database
from tests.knowledge.episodes.conftest import answering, asked_for_episodes

SAFE = transcript(
    "We decided on a code for the safe, and it is Xylophone-4711, which nobody else may know.",
    "Understood. I will keep that to myself and never say it aloud.",
    "Now let us talk about the garden and about its old apple trees instead.",
    "Apple trees are best pruned in late winter, before the buds open.",
    id="secret",
    title="Apple trees",
)


def first_drawer(conversation):
    return Drawer.objects.filter(conversation=conversation).order_by("position").first()


def test_what_quotes_words_in_the_trash_is_found_by_nobody_and_made_again(palace):
    mine(palace, SAFE)
    assert "Xylophone" in Episode.objects.get().summary
    batch = move_to_trash(first_drawer("secret"))
    assert search_episodes(palace, "the code of the safe") == []
    assert episodes_of_conversation(palace, "secret") == []
    write_due_episodes(palace)
    [episode] = episodes_of_conversation(palace, "secret")
    assert episode.messages == 3
    assert "xylophone" not in str(Episode.objects.values().get()).lower()
    restore(palace, batch_of(palace, batch.at))
    write_due_episodes(palace)
    assert "Xylophone" in Episode.objects.get().summary


def test_a_conversation_that_comes_back_whole_is_not_summed_up_again(palace, model):
    model.answer(answering("They measured the current."))
    mine(palace, BATTERY)
    batch = move_to_trash(Room.objects.get())
    write_due_episodes(palace)
    assert episodes_of_conversation(palace, "battery") == []
    restore(palace, batch_of(palace, batch.at))
    write_due_episodes(palace)
    [episode] = episodes_of_conversation(palace, "battery")
    assert episode.made_by == "model"
    assert len(asked_for_episodes(model)) == 1


def test_purged_words_are_in_no_episode(palace):
    mine(palace, SAFE)
    move_to_trash(first_drawer("secret"))
    Purge(palace).run(Drawer.objects.all())
    assert "xylophone" not in words_in_the_database()
    write_due_episodes(palace)
    assert Episode.objects.get().messages == 3
    assert "xylophone" not in words_in_the_database()


def test_with_the_last_of_a_conversation_all_its_episodes_go(palace):
    mine(palace, SAFE)
    store_episode(palace, conversation="secret", summary="The code is Xylophone-4711.")
    kept = store_episode(
        palace, conversation="elsewhere", summary="Nothing of this was filed here."
    )
    move_to_trash(first_drawer("secret"))
    assert Episode.objects.stored().kept().count() == 2
    batch = move_to_trash(Room.objects.get())
    assert [found for found, _ in search_episodes(palace, "code")] == [kept]
    restore(palace, batch_of(palace, batch.at))
    assert Episode.objects.stored().kept().count() == 2
    move_to_trash(Room.objects.get())
    Purge(palace).run(Drawer.objects.all())
    assert list(Episode.objects.all()) == [kept]
    assert EpisodeVector.objects.count() == 1
    assert "xylophone" not in words_in_the_database()


def test_what_was_written_since_stays_when_the_trash_is_emptied(palace):
    mine(palace, SAFE)
    move_to_trash(first_drawer("secret"))
    write_due_episodes(palace)
    left = Episode.objects.values().get()
    Purge(palace).run(Drawer.objects.all())
    assert Episode.objects.values().get() == left


def test_merging_wings_keeps_episodes(palace):
    for one in (BATTERY, SOURDOUGH, LISBON):
        mine(palace, one)
    before = list(Episode.objects.order_by("pk").values())
    wings = list({room.wing for room in Room.objects.select_related("wing")})
    for wing in wings[1:]:
        merge_wings(wing, wings[0])
    write_due_episodes(palace)
    assert list(Episode.objects.order_by("pk").values()) == before
