"""What is looked at closely: the best by each of meaning and words, and what stands beside them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from palace.models import Drawer
from palace.recall.candidates import find_candidates
from palace.recall.keyword import by_words
from palace.recall.query import read_query
from palace.recall.semantic import by_meaning
from palace.storage.indexing.spaces import active_space
from tests.conversations import EVERYTHING, long_transcript
from tests.furnished_palaces import furnish_with


@pytest.fixture
def lived_in(palace):
    furnish_with(palace, long_transcript(60), *EVERYTHING)
    # Gaps of one, of two, and at the start.
    long = Drawer.objects.filter(conversation="long")
    long.filter(position__in=[0, 7, 20, 21]).update(trashed_at="2025-03-12T10:00Z")
    return palace


def candidates(palace, question, *, as_of=None, best_each=200):
    space = active_space()
    now = Drawer.objects.latest("said_at").said_at
    query = read_query(palace, space, question, now=now, as_of=as_of, by_meaning=True)
    meaning = by_meaning(palace, space, query.adapted, unadapted=query.vector)
    words = by_words(palace, query.terms)
    return find_candidates(palace, query, meaning, words, best_each=best_each)


def beside(drawer):
    """The kept messages right before and after, by Django; None where there is none."""
    kept = Drawer.objects.filter(conversation=drawer.conversation, trashed_at=None)
    return (
        kept.filter(position__lt=drawer.position).order_by("-position").first(),
        kept.filter(position__gt=drawer.position).order_by("position").first(),
    )


@pytest.mark.parametrize("best_each", [4, 20, 200])
def test_each_comes_once_with_what_is_right_beside_it(lived_in, best_each):
    found = candidates(lived_in, "Which wire overheated near the shed?", best_each=best_each)
    keys = found.drawers.tolist()
    assert keys == sorted(set(keys))
    for row, key in enumerate(keys):
        drawer = Drawer.objects.get(pk=key, trashed_at=None)
        before, after = beside(drawer)
        assert found.before[row] == (before.pk if before else 0)
        assert found.after[row] == (after.pk if after else 0)
        assert found.before_terms[row] == (before.terms if before else 0)
        assert found.before_traits[row] == (before.traits if before else 0)
        assert found.after_traits[row] == (after.traits if after else 0)
        assert found.after_terms[row] == (after.terms if after else 0)
        assert (found.roles[row], found.speakers[row]) == (drawer.role, drawer.speaker)
        assert (found.rooms[row], found.terms[row]) == (drawer.room_id, drawer.terms)
        assert found.said_at[row] == drawer.said_at.timestamp()
        assert found.traits[row] == drawer.traits
        assert found.preference[row] == pytest.approx(drawer.preference)


def test_what_stands_beside_the_closest_is_looked_at_too(lived_in):
    drawer = Drawer.objects.get(conversation="long", position=8)
    keys = candidates(lived_in, drawer.text, best_each=2).drawers.tolist()
    assert drawer.pk in keys
    assert {other.pk for other in beside(drawer)} <= set(keys)
    assert len(keys) < Drawer.objects.count()


def test_what_was_said_later_is_no_candidate_not_even_beside_one(lived_in):
    drawer = Drawer.objects.get(conversation="long", position=8)
    found = candidates(lived_in, drawer.text, as_of=drawer.said_at)
    assert drawer.pk in found.drawers
    assert found.said_at.max() <= drawer.said_at.timestamp()


def test_nothing_said_so_early_gives_no_candidates(lived_in):
    first = Drawer.objects.earliest("said_at").said_at
    found = candidates(lived_in, "Which wire?", as_of=first - timedelta(seconds=1))
    assert len(found) == len(found.quoted) == 0


def test_quotations_are_counted_word_by_word(lived_in):
    drawer = Drawer.objects.get(conversation="long", position=8)
    words = " ".join(drawer.text.split()[:3])
    found = candidates(lived_in, f'Who said "{words}" and not "such a thing as was never said"?')
    shares = dict(zip(found.drawers.tolist(), found.quoted.tolist(), strict=True))
    assert shares[drawer.pk] == 0.5
    for key, share in shares.items():
        text = Drawer.objects.get(pk=key).text.lower()
        assert share == 0.5 * (words.lower() in text)


def test_a_speaker_may_have_any_name(lived_in):
    drawer = Drawer.objects.get(conversation="long", position=8)
    Drawer.objects.filter(pk=drawer.pk).update(speaker="Ann: of {x}, \\ %s")
    found = candidates(lived_in, drawer.text)
    [row] = (found.drawers == drawer.pk).nonzero()[0]
    assert (found.roles[row], found.speakers[row]) == (drawer.role, "Ann: of {x}, \\ %s")
