"""Storing episodes, and finding them by meaning and by conversation."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import call_command

from language.errors import BadInput, EmptyQuery
from palace.knowledge.episodes.episode_store import (
    MOST_SUMMARY_CHARS,
    episodes_of_conversation,
    search_episodes,
    store_episode,
)
from palace.models import Episode, EpisodeVector, Palace
from palace.storage.indexing.spaces import active_space
from tests.conversations import LISBON
from tests.storage.indexing.test_spaces import other_model  # noqa: F401 - a fixture.


def test_the_closest_comes_first_with_its_cosine(lived_in):
    found = search_episodes(lived_in, "Why is my bread so flat?", k=2)
    assert [episode.conversation for episode, _ in found][:1] == ["sourdough"]
    assert len(found) == 2
    assert 1 >= found[0][1] > found[1][1] >= -1


def test_what_is_stored_is_kept_as_it_is_and_found(lived_in):
    stored = store_episode(
        lived_in,
        conversation="elsewhere",
        summary="  We mapped wells near Smith #1.\n",
        key_decisions=["Drill in May"],
        entities=[{"type": "Well", "id": "42-123"}],
        tools=["map"],
        agent="geo",
    )
    stored.refresh_from_db()
    assert stored.summary == "  We mapped wells near Smith #1.\n"
    assert stored.entities == [{"type": "Well", "id": "42-123"}]
    assert (stored.made_by, stored.tools) == ("caller", ["map"])
    assert search_episodes(lived_in, "which wells did we map?", k=1)[0][0] == stored


def test_a_caller_may_store_several_beside_what_mining_wrote(lived_in):
    for text in ("The first half.", "The second half.", "The second half."):
        store_episode(lived_in, conversation="lisbon", summary=text)
    origins = [episode.made_by for episode in episodes_of_conversation(lived_in, "lisbon")]
    assert origins == ["local", "caller", "caller", "caller"]
    imported = episodes_of_conversation(lived_in, "lisbon", source="chatgpt")
    assert imported == episodes_of_conversation(lived_in, "lisbon")[1:]


def test_an_agents_episodes_are_its_own(palace):
    for agent in ("geo", "law"):
        store_episode(palace, conversation="c", summary=f"Notes of {agent}.", agent=agent)
    assert [episode.agent for episode, _ in search_episodes(palace, "notes", agent="law")] == [
        "law"
    ]
    assert len(search_episodes(palace, "notes")) == 2


def test_as_of_a_day_later_conversations_are_left_out(lived_in):
    before = LISBON.turns[0].said_at - timedelta(hours=1)
    found = {
        one.conversation for one, _ in search_episodes(lived_in, "trip to Lisbon", as_of=before)
    }
    assert found == {"battery", "sourdough"}


def test_a_strangers_are_never_found(lived_in, bob):
    others = Palace.objects.own(bob)
    assert search_episodes(others, "bread") == []
    assert episodes_of_conversation(others, "sourdough") == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"summary": " "},
        {"summary": "a\0b"},
        {"summary": "x" * (MOST_SUMMARY_CHARS + 1)},
        {"conversation": ""},
        {"tools": "hammer"},
        {"entities": [float("nan")]},
        {"key_decisions": ["\0"]},
        {"key_decisions": ["x"] * 201},
        {"tools": [object()]},
        {"started_at": LISBON.turns[1].said_at, "ended_at": LISBON.turns[0].said_at},
    ],
)
def test_what_cannot_be_kept_is_refused_with_a_sentence(palace, wrong):
    with pytest.raises(BadInput, match=r"\w+ \w+.*\.$"):
        store_episode(palace, **({"conversation": "c", "summary": "s"} | wrong))
    assert not Episode.objects.exists()


def test_a_blank_question_is_refused(palace):
    with pytest.raises(EmptyQuery):
        search_episodes(palace, " \n")


def test_another_embedding_model_embeds_episodes_again(lived_in, other_model):  # noqa: F811
    store_episode(lived_in, conversation="c", summary="A note.")
    other_model()
    call_command("reembed")
    assert EpisodeVector.objects.filter(space=active_space()).count() == 4
    assert EpisodeVector.objects.count() == 4
    assert len(search_episodes(lived_in, "A note.", k=9)) == 4
