"""When things were so, and when we knew it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from palace.models import Entity, Fact
from palace.queries.facts import history, timeline
from tests.knowledge.facts.conftest import statement

MARCH = datetime(2024, 3, 1, tzinfo=UTC)
MAY = datetime(2024, 5, 1, tzinfo=UTC)
JUNE = datetime(2024, 6, 1, tzinfo=UTC)


def texts(facts):
    return [fact.text for fact in facts]


def facts(palace):
    return Fact.objects.within(palace)


@pytest.fixture
def moved(tell):
    tell(statement("User lives in Porto", object="Porto"), at=MARCH)
    return tell(statement("User lives in Lisbon", object="Lisbon"), at=MAY)


def test_what_was_so_then_comes_from_then(palace, moved):
    assert texts(facts(palace).as_of(true_at=MARCH + timedelta(days=20))) == ["User lives in Porto"]
    assert texts(facts(palace).as_of(true_at=JUNE)) == ["User lives in Lisbon"]
    assert texts(facts(palace).as_of()) == ["User lives in Lisbon"]
    assert texts(facts(palace).as_of(true_at=MARCH - timedelta(days=1))) == []


def test_what_we_knew_then_comes_from_then(palace, tell):
    tell(statement("User lives in Porto", object="Porto"), at=MARCH)
    before = timezone.now()
    tell(statement("User lives in Lisbon", object="Lisbon"), at=MAY)
    assert texts(facts(palace).as_of(known_at=before)) == ["User lives in Porto"]
    assert texts(facts(palace).as_of(known_at=before, true_at=JUNE)) == ["User lives in Porto"]
    assert texts(facts(palace).as_of(known_at=timezone.now(), true_at=JUNE)) == [
        "User lives in Lisbon"
    ]
    assert texts(facts(palace).as_of(known_at=timezone.now(), true_at=MARCH)) == [
        "User lives in Porto"
    ]


def test_what_was_wrong_was_never_so_but_was_believed(palace, tell):
    tell(statement("User was born in 1988", "birthday", "1988"), at=MARCH)
    believed = timezone.now()
    tell(statement("User was born in 1989", "birthday", "1989", corrects=True), at=MAY)
    assert texts(facts(palace).as_of(true_at=MARCH)) == ["User was born in 1989"]
    assert texts(facts(palace).as_of(known_at=believed)) == ["User was born in 1988"]


def test_nothing_is_overwritten(palace, moved):
    old, new = facts(palace).filter(memory=moved.memory).order_by("recorded_at", "pk")
    assert (old.text, old.fate, old.valid_to) == ("User lives in Porto", "superseded", MAY)
    assert (new.text, new.fate, new.supersedes) == ("User lives in Lisbon", "", old)
    assert [
        (event.event, event.old_text, event.new_text) for event in history(palace, old.memory)
    ] == [
        ("ADD", None, "User lives in Porto"),
        ("UPDATE", "User lives in Porto", "User lives in Lisbon"),
    ]


def test_an_older_conversation_read_later_does_not_undo_the_newer(palace, tell):
    tell(statement("User lives in Lisbon", object="Lisbon"), at=MAY)
    tell(statement("User lives in Porto", object="Porto"), at=MARCH)
    assert texts(facts(palace).as_of()) == ["User lives in Lisbon"]
    assert texts(facts(palace).as_of(true_at=MARCH + timedelta(days=1))) == ["User lives in Porto"]


def test_a_timeline_has_the_whole_story_in_order(palace, moved, tell):
    tell(statement("User owns a red bicycle", "owns", "a red bicycle"), at=JUNE)
    user = Entity.objects.get(palace=palace, slug="user")
    assert texts(timeline(palace, user)) == [
        "User lives in Porto",
        "User lives in Lisbon",
        "User owns a red bicycle",
    ]


def test_what_used_to_be_so_is_kept_as_past(palace, tell):
    line = tell(statement("User lived in Rome", object="Rome", valid_to=MARCH), at=MAY)
    assert line.fact.fate == Fact.Fate.ENDED
    assert texts(facts(palace).as_of()) == []
    assert texts(facts(palace).as_of(true_at=MARCH - timedelta(days=1))) == ["User lived in Rome"]
    assert texts(facts(palace).as_of(true_at=JUNE)) == []


def test_what_is_over_takes_nothings_place(palace, tell):
    tell(statement("User lives in Porto", object="Porto"), at=MARCH)
    tell(
        statement("User lived in Rome", object="Rome", valid_to=datetime(2020, 1, 1, tzinfo=UTC)),
        at=MAY,
    )
    assert texts(facts(palace).as_of()) == ["User lives in Porto"]
