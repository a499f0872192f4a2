"""Generic frames act on known facts alone: "the X is history", "no more X", "X is Y now"."""

from __future__ import annotations

import pytest

from language.english.judging.rules import judge_by_rules
from language.facts import Change, Verdict
from tests.language.facts.extracted import facts, known, known_fact


def held(*said):
    """The texts of what is active after messages, judged one after the other."""
    active = []
    for text in said:
        for candidate in facts(text):
            judgement = judge_by_rules(candidate, [one for fact in active for one in fact])
            if judgement.verdict in (Verdict.UPDATE, Verdict.DELETE):
                active = [fact for fact in active if fact[0].fact is not judgement.fact]
            if judgement.verdict in (Verdict.ADD, Verdict.UPDATE):
                active.append(_as_known(judgement, len(active)))
    return sorted(fact[0].fact.text for fact in active)


def _as_known(judgement, key):
    [only] = known("I live in Rome.")  # For its similarity.
    fact = known_fact(judgement.candidate, key)
    text = judgement.text or fact.text
    return [type(only)(type(fact)(**{**_fields(fact), "text": text}), only.similarity)]


def _fields(fact):
    return {name: getattr(fact, name) for name in fact.__dataclass_fields__}


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("I use Jira.", "Jira is history."),
        ("I go to yoga every Monday.", "Yoga is over for me."),
        ("I take metformin.", "No more metformin for me."),
        ("I use Notion.", "I'm not on Notion any more."),
        ("I hate my standing desk.", "I take back what I said about the standing desk."),
        ("I own a piano.", "The piano went to my niece."),
        ("I own a caravan.", "The caravan has a new owner."),
        ("I own a caravan.", "Found a buyer for the caravan last week."),
        ("I have a dog called Rex.", "The dog lives with my aunt now."),
        ("I have a dog called Rex.", "Rex lives with my aunt now."),
        ("I'm learning Hungarian.", "Let the Hungarian slide."),
        ("I have asthma.", "The asthma is gone."),
        ("I own a saxophone.", "Saxophone sold."),
        ("I live in Hackney.", "Bye bye Hackney, hello Margate."),
        ("I'm planning an extension.", "We decided against the extension."),
        ("My manager is Ulla.", "Ulla has left the company."),
        ("I'm planning a trip to Peru.", "The trip fell through."),
    ],
)
def test_a_frame_ends_the_fact_whose_value_stands_in_it(before, now):
    ended = [judge_by_rules(one, known(before)) for one in facts(now)]
    assert (Verdict.DELETE, Change.SHIFT) in [(one.verdict, one.change) for one in ended]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("I'm allergic to penicillin.", "Turns out the penicillin allergy was never real."),
        ("I play the cello.", "Forget the cello."),
    ],
)
def test_what_is_taken_back_was_never_so(before, now):
    [judgement] = [judge_by_rules(one, known(before)) for one in facts(now)]
    assert (judgement.verdict, judgement.change) == (Verdict.DELETE, Change.CORRECTION)


@pytest.mark.parametrize(
    ("before", "now", "text"),
    [
        ("I live in Lyon.", "Lyon is history, it's Nantes now.", "User lives in Nantes"),
        (
            "I live in Leeds.",
            "We are not in Leeds any longer, it is York now.",
            "User lives in York",
        ),
        ("I take metformin.", "Insulin instead of metformin since May.", "User takes insulin"),
        ("I drive a Corolla.", "Traded the Corolla for an old Volvo.", "User drives an old Volvo"),
        (
            "We own a boat called Heron.",
            "We renamed the boat, it is Petrel now.",
            "User owns a boat called Petrel",
        ),
        (
            "We own a boat called Heron.",
            "We renamed Heron, she is Petrel now.",
            "User owns a boat called Petrel",
        ),
        ("I have a dog called Rex.", "The dog is called Bruno now.", "User has a dog named Bruno"),
    ],
)
def test_what_follows_takes_its_place(before, now, text):
    assert [one for one in held(before, now) if one.startswith("User")] == [text]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        # Something else of that name, or of that thing.
        ("I work at Deloitte.", "No more meetings at Deloitte this week!"),
        ("I take magnesium.", "There is no more magnesium in the cupboard."),
        ("I play chess on Fridays.", "No chess today, Friday is off."),
        ("I go for a run on Sundays.", "The run is over, 12 km."),
        # It goes on elsewhere, or only for today.
        ("I have a dog called Bruno.", "Bruno is off to the vet."),
        ("I love jazz.", "The jazz is over at ten."),
        ("I live in Leeds.", "I'm not in Leeds today."),
        # A figure of something else.
        ("I weigh 94 kilos.", "The flat is 54 square metres, not 94."),
        ("I own a piano.", "The piano, sold in 1990, was a gift."),
        # Of a kind that the frame cannot end.
        ("I love jazz.", "The jazz is off."),
        ("My sister Nina lives in Ulm.", "Nina is history."),
        # One of two.
        ("I have a cat called Tom and a cat called Mia.", "The cat lives with my aunt now."),
        # Not said, or said by others.
        ("I use Jira.", "If Jira is history, what comes next?"),
        ("I use Jira.", "My boss says Jira is history."),
    ],
)
def test_a_frame_leaves_what_it_does_not_name(before, now):
    before = known(before)
    changed = [judge_by_rules(one, before).verdict for one in facts(now)]
    assert {Verdict.DELETE, Verdict.UPDATE}.isdisjoint(changed)


def test_nothing_is_learnt_from_a_frame_alone():
    [judgement] = [judge_by_rules(one, []) for one in facts("Jira is history, it is Linear now.")]
    assert judgement.verdict is Verdict.NONE
