"""Trials: recall on the cases, as at their time, without a trace."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from palace.curation.purge import Purge
from palace.mining.pipeline import mine
from palace.models import Drawer, ExpectedDrawer, Palace, RecallCase, RecollectionTrace
from palace.recall.evaluation import (
    DEPTH,
    NotACase,
    all_at,
    any_at,
    case_of,
    expect,
    failures,
    last_scores,
    recall_at,
    reciprocal_rank,
    scores,
    take_back,
    try_case,
    try_now,
    without_model,
)
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from settings_app.models import MemorySettings
from tests.conversations import transcript
from tests.factories import DrawerFactory

WIRE = "Which wire overheated?"
QUESTION = "Which wire overheated?"


@pytest.fixture
def saved(asked, drawer_of):
    """A case that recall gets right, and one it cannot."""
    right = expect(asked(WIRE), drawer_of("12-AWG"))
    wrong = expect(asked("zebra stripes wire"), drawer_of("We booked a flat in Alfama"))
    return right, wrong


@pytest.fixture
def asked(lived_in):
    """Asks, and gives the trace."""

    def ask(question, **options):
        found = recall(lived_in, RecallRequest(question, **options))
        return RecollectionTrace.objects.get(uuid=found.uuid)

    return ask


@pytest.fixture
def drawer_of(lived_in):
    return lambda words: Drawer.objects.within(lived_in).get(text__contains=words)


def test_the_right_drawer_has_its_place(saved, drawer_of):
    trial = try_case(saved[0])
    assert trial.place(drawer_of("12-AWG")) == 1
    assert trial.missed == []
    assert scores([trial]) == {"any@5": 1, "all@5": 1, "recall@10": 1, "mrr": 1}


def test_means_are_over_the_cases(saved, asked, drawer_of):
    expect(asked(WIRE), drawer_of("We booked a flat in Alfama"))
    trials = [try_case(saved[0])]
    assert [drawer.text[:9] for drawer in trials[0].missed] == ["We booked"]
    assert failures(trials) == trials
    figures = scores(trials)
    assert (figures["any@5"], figures["all@5"], figures["mrr"]) == (1, 0, 1)


def test_no_trial_leaves_a_trace(saved):
    before = RecollectionTrace.objects.count()
    try_case(saved[0])
    assert RecollectionTrace.objects.count() == before


def test_the_question_is_asked_at_its_own_time(asked, drawer_of, palace):
    week_later = transcript(
        "The wire overheated once more, the thin one.",
        "Then it must go.",
        id="again",
        start=datetime(2025, 6, 10, 9, tzinfo=UTC),
    )
    mine(palace, week_later)
    then = datetime(2025, 3, 10, 9, tzinfo=UTC)
    question = "Which wire overheated last week?"
    case = expect(asked(question, now=then), drawer_of("12-AWG"))
    assert try_case(case).place(drawer_of("12-AWG")) == 1
    case.now += timedelta(days=98)
    assert try_case(case).place(drawer_of("once more")) == 1


def test_what_is_in_the_trash_is_left_out_and_counted(saved, asked, drawer_of):
    expect(asked(WIRE), drawer_of("8-AWG"))
    drawer_of("8-AWG").trash()
    trial = try_case(saved[0])
    assert (len(trial.wanted), trial.trashed) == (1, 1)
    drawer_of("12-AWG").trash()
    trial = try_case(saved[0])
    assert (trial.is_scored, trial.trashed) == (False, 2)
    assert scores([trial]) == {}


def test_a_question_that_is_itself_a_drawer_does_not_come_before_its_answer(
    asked, drawer_of, palace
):
    mine(palace, transcript(WIRE, "The thin one.", id="chat"))
    case = expect(asked(WIRE), drawer_of("12-AWG"))
    assert drawer_of(WIRE).pk not in try_case(case).found
    expect(asked(WIRE), drawer_of(WIRE))
    # Expected, it is looked for among the rest, and comes after what states something.
    trial = try_case(case)
    assert trial.place(drawer_of("12-AWG")) < trial.place(drawer_of(WIRE))


def test_no_model_is_asked_even_where_the_owner_has_one(saved, alice, model_server):
    MemorySettings.objects.create(
        owner=alice, provider=model_server.base_url, model="cheap", use_rerank=True
    )
    for name in without_model():
        try_case(saved[0], name)
    assert model_server.requests == []


def test_trying_keeps_where_each_came(saved, lived_in, drawer_of):
    assert last_scores(lived_in) == (0, {})
    assert try_now(lived_in, at_most=20, seconds=60) == 2
    places = dict(ExpectedDrawer.objects.values_list("drawer", "place"))
    assert places[drawer_of("12-AWG").pk] == 1
    assert all(case.tried_at for case in RecallCase.objects.all())
    tried, figures = last_scores(lived_in)
    assert tried == 2
    trials = [try_case(case) for case in saved]
    assert figures == pytest.approx(scores(trials))


def test_those_untried_the_longest_are_tried_first(saved, lived_in):
    first, second = saved
    assert try_now(lived_in, at_most=1, seconds=60) == 1
    assert try_now(lived_in, at_most=1, seconds=60) == 1
    for case in saved:
        case.refresh_from_db()
    assert first.tried_at < second.tried_at
    try_now(lived_in, at_most=1, seconds=60)
    first.refresh_from_db()
    assert first.tried_at > second.tried_at


def test_at_least_one_is_tried_however_short_the_time(saved, lived_in):
    assert try_now(lived_in, at_most=20, seconds=0) == 1


def test_only_so_many_hits_count(palace, asked):
    texts = [f"The bicycle chain slipped on ride {n}." for n in range(DEPTH + 10)]
    mine(palace, transcript(*texts, id="rides"))
    trace = asked("bicycle chain slipped on which ride?")
    assert trace.hits
    case = RecallCase.objects.create(
        palace=palace, query=trace.query, now=trace.now, day=trace.now.date()
    )
    for drawer in Drawer.objects.within(palace).filter(conversation="rides"):
        ExpectedDrawer.objects.create(palace=palace, case=case, drawer=drawer)
    trial = try_case(case)
    assert len(trial.found) == DEPTH
    assert sum(trial.place(drawer) is not None for drawer in trial.wanted) == DEPTH


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


@pytest.mark.parametrize(
    ("found", "wanted", "any_2", "all_2", "recall_2", "rank"),
    [
        ("abc", "a", 1, 1, 1, 1),
        ("abc", "b", 1, 1, 1, 1 / 2),
        ("abc", "c", 0, 0, 0, 1 / 3),
        ("abc", "ac", 1, 0, 1 / 2, 1),
        ("abc", "ab", 1, 1, 1, 1),
        ("abc", "x", 0, 0, 0, 0),
        ("", "x", 0, 0, 0, 0),
    ],
)
def test_by_hand(found, wanted, any_2, all_2, recall_2, rank):
    assert any_at(found, wanted, 2) == any_2
    assert all_at(found, wanted, 2) == all_2
    assert recall_at(found, wanted, 2) == recall_2
    assert reciprocal_rank(found, wanted) == rank


@given(
    found=st.lists(st.integers(0, 30), unique=True),
    wanted=st.sets(st.integers(0, 30), min_size=1),
    k=st.integers(1, 30),
)
def test_all_implies_any_and_the_share_is_between(found, wanted, k):
    assert all_at(found, wanted, k) <= recall_at(found, wanted, k) <= any_at(found, wanted, k)
    assert recall_at(found, wanted, k) <= recall_at(found, wanted, k + 1)
    assert (reciprocal_rank(found, wanted) >= 1 / k) == bool(any_at(found, wanted, k))
