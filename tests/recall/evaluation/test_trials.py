"""Trials: recall on the cases, as at their time, without a trace."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from palace.models import Drawer, ExpectedDrawer, RecallCase, RecollectionTrace
from palace.pipeline.mine import mine
from palace.recall.evaluation.cases import expect
from palace.recall.evaluation.trials import (
    DEPTH,
    failures,
    last_scores,
    scores,
    try_case,
    try_now,
    without_model,
)
from settings_app.models import MemorySettings
from tests.conversations import transcript

WIRE = "Which wire overheated?"


@pytest.fixture
def saved(asked, drawer_of):
    """A case that recall gets right, and one it cannot."""
    right = expect(asked(WIRE), drawer_of("12-AWG"))
    wrong = expect(asked("zebra stripes wire"), drawer_of("We booked a flat in Alfama"))
    return right, wrong


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
    # Expected, it is looked for among the rest, and comes after what tells something.
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
