"""Cases: what should have come is saved once, and goes when its drawers go."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from palace.curation.purge import Purge
from palace.models import Drawer, ExpectedDrawer, Palace, RecallCase
from palace.recall.evaluation.cases import NotACase, case_of, expect, take_back
from settings_app.models import MemorySettings
from tests.factories import DrawerFactory

QUESTION = "Which wire overheated?"


def purge(palace, drawer):
    drawer.trash(timezone.now())
    assert Purge(palace).run(Drawer.objects.filter(pk=drawer.pk))


def expected_of(case):
    return [each.drawer for each in ExpectedDrawer.objects.filter(case=case)]


def test_saving_twice_saves_once(asked, drawer_of):
    trace, wire = asked(QUESTION), drawer_of("12-AWG")
    assert expect(trace, wire) == expect(trace, wire)
    assert expected_of(RecallCase.objects.get()) == [wire]


def test_the_same_question_of_the_same_day_adds_to_its_case(asked, drawer_of):
    morning, evening = (datetime(2025, 3, 9, hour, tzinfo=UTC) for hour in (6, 22))
    first = expect(asked(QUESTION, now=morning), drawer_of("12-AWG"))
    second = expect(asked(f" {QUESTION} ", now=evening), drawer_of("8-AWG"))
    assert first == second
    assert first.now == morning
    assert expected_of(first) == [drawer_of("12-AWG"), drawer_of("8-AWG")]


def test_the_same_question_of_another_day_is_another_case(asked, drawer_of):
    for day in (9, 10):
        expect(asked(QUESTION, now=datetime(2025, 3, day, tzinfo=UTC)), drawer_of("12-AWG"))
    assert RecallCase.objects.count() == 2


def test_the_day_is_the_owners(asked, drawer_of, alice):
    MemorySettings.objects.create(owner=alice, time_zone="Asia/Tokyo")
    case = expect(asked(QUESTION, now=datetime(2025, 3, 9, 20, tzinfo=UTC)), drawer_of("12-AWG"))
    assert str(case.day) == "2025-03-10"


def test_the_longest_question_can_be_saved(asked, drawer_of):
    trace = asked("Which wire, 字? " * 1000)
    assert expect(trace, drawer_of("12-AWG")) == case_of(trace)


def test_what_is_in_the_trash_cannot_be_expected(asked, drawer_of):
    wire = drawer_of("12-AWG")
    wire.trash()
    with pytest.raises(NotACase, match="restore it first"):
        expect(asked(QUESTION), wire)
    assert not RecallCase.objects.exists()


def test_what_was_just_purged_cannot_be_expected(asked, drawer_of, lived_in):
    trace, wire = asked(QUESTION), drawer_of("12-AWG")
    key = wire.pk
    purge(lived_in, wire)
    wire.pk = key
    with pytest.raises(NotACase, match="deleted for good"):
        expect(trace, wire)


def test_a_strangers_drawer_cannot_be_expected(asked):
    with pytest.raises(NotACase):
        expect(asked(QUESTION), DrawerFactory())


@pytest.mark.django_db(transaction=True)
def test_nor_does_the_database_take_a_strangers_drawer(asked, drawer_of, bob):
    case = expect(asked(QUESTION), drawer_of("12-AWG"))
    other = DrawerFactory(
        palace=Palace.objects.own(bob), room__wing__palace=Palace.objects.own(bob)
    )
    with pytest.raises(IntegrityError, match="same_palace"), transaction.atomic():
        ExpectedDrawer.objects.create(palace=case.palace, case=case, drawer=other)


def test_taking_the_last_one_back_deletes_the_case(asked, drawer_of):
    trace = asked(QUESTION)
    for words in ("12-AWG", "8-AWG"):
        case = expect(trace, drawer_of(words))
    assert not take_back(case, drawer_of("12-AWG"))
    assert not take_back(case, drawer_of("12-AWG"))
    assert take_back(case, drawer_of("8-AWG"))
    assert take_back(case, drawer_of("8-AWG"))
    assert not RecallCase.objects.exists()


def test_a_purged_drawer_leaves_its_cases(asked, drawer_of, lived_in):
    trace = asked(QUESTION)
    wire, other = drawer_of("12-AWG"), drawer_of("8-AWG")
    case = expect(trace, wire)
    expect(trace, other)
    purge(lived_in, wire)
    assert expected_of(case) == [other]
    purge(lived_in, other)
    assert not RecallCase.objects.exists()


def test_a_case_that_asked_with_a_purged_text_goes(asked, drawer_of, lived_in):
    said = drawer_of("My sourdough starter smells")
    expect(asked(said.text), drawer_of("It sounds hungry"))
    expect(asked("Why are the loaves flat?"), drawer_of("It sounds hungry"))
    purge(lived_in, said)
    assert [case.query for case in RecallCase.objects.all()] == ["Why are the loaves flat?"]


def test_a_question_that_was_purged_makes_no_case(asked, drawer_of, lived_in):
    said = drawer_of("My sourdough starter smells")
    trace = asked(said.text)
    purge(lived_in, said)
    with pytest.raises(NotACase, match="The question was deleted"):
        expect(trace, drawer_of("It sounds hungry"))


def test_a_new_drawer_makes_the_last_try_void(asked, drawer_of):
    trace = asked(QUESTION)
    case = expect(trace, drawer_of("12-AWG"))
    RecallCase.objects.update(tried_at=timezone.now())
    expect(trace, drawer_of("12-AWG"))
    case.refresh_from_db()
    assert case.tried_at
    expect(trace, drawer_of("8-AWG"))
    case.refresh_from_db()
    assert case.tried_at is None


@pytest.mark.django_db(transaction=True)
def test_many_at_once_make_one_case(asked, drawer_of):
    trace, drawers = asked(QUESTION), [drawer_of("12-AWG"), drawer_of("8-AWG")]

    def save(drawer):
        try:
            return expect(trace, drawer).pk
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        cases = set(pool.map(save, drawers * 6))
    assert len(cases) == 1
    assert ExpectedDrawer.objects.count() == 2


def test_the_cases_go_with_the_palace(asked, drawer_of, alice):
    expect(asked(QUESTION), drawer_of("12-AWG"))
    alice.delete()
    assert not RecallCase.objects.exists()
    assert not ExpectedDrawer.objects.exists()
