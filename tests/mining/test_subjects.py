"""Who and what a palace's talks return to has a wing from the third talk on."""

from __future__ import annotations

import pytest

from language.transcripts import Transcript, Turn
from palace.mining.pipeline import mine, mine_many
from palace.mining.window_reader import Subjects
from palace.models import Palace, Room
from tests.conversations import START

pytestmark = pytest.mark.django_db


def talk(number, *texts):
    """A person asks, an assistant answers."""
    said = [each for text in texts for each in (("user", text), ("assistant", "I see."))]
    turns = tuple(Turn(f"{number}.{at}", *one, START) for at, one in enumerate(said))
    return Transcript("test", f"t{number}", "", turns)


TALKS = [
    talk(1, "I met Gwendolyn, the new vet.", "Do I pay Gwendolyn for the first visit of my cat?"),
    talk(
        2,
        "How long does a cat fast?",
        "I ask because Gwendolyn said ten hours.",
        "Thanks for Gwendolyn.",
    ),
    talk(3, "Is it normal for a cat to limp?", "I told Gwendolyn too.", "I like Gwendolyn a lot."),
]


def wings(palace):
    rooms = Room.objects.within(palace).select_related("wing").order_by("external_id")
    return [(room.wing.kind, room.wing.name) for room in rooms]


@pytest.mark.parametrize("at_once", [False, True])
def test_the_third_talk_about_somebody_has_their_wing_and_the_others_stay(palace, at_once):
    if at_once:
        mine_many(palace, TALKS)
    else:
        for one in TALKS:
            mine(palace, one)
    first, second, third = wings(palace)
    assert first[0] == second[0] == "topic"
    assert third == ("person", "Gwendolyn")


def test_another_palaces_talks_do_not_count(palace, bob):
    mine_many(Palace.objects.own(bob), TALKS[:2])
    mine(palace, TALKS[2])
    assert wings(palace)[0][0] == "topic"


def test_a_talk_that_only_mentions_somebody_does_not_count(palace):
    mine(palace, TALKS[0])
    mine(palace, talk(2, "How long does a cat fast?", "Gwendolyn wants to know."))
    subjects = Subjects(palace)
    subjects.look_up({"Gwendolyn"})
    assert subjects.returning(0, {"Gwendolyn"}) == ()
    mine(palace, talk(3, *(turn.text for turn in TALKS[1].turns[::2])))
    subjects = Subjects(palace)
    subjects.look_up({"Gwendolyn"})
    assert [found.name for found in subjects.returning(0, {"Gwendolyn"})] == ["Gwendolyn"]
