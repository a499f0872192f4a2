"""In whatever order messages arrive, what is held in the end is what was said last."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from language.transcripts import Turn
from palace.knowledge.facts.fact_edits import delete, forget, rewrite
from palace.knowledge.facts.fact_extraction import Scope
from palace.knowledge.facts.fact_learning import remember
from palace.models import Fact, FactEvent, Palace, Statement
from tests.knowledge.facts.conftest import facts_answer, judgements_answer

START = datetime(2024, 1, 1, 9, 0, tzinfo=UTC)

SAYINGS = (
    "I live in Rome.",
    "I live in Berlin.",
    "I no longer live in Berlin.",
    "I moved to Porto.",
    "My favourite colour is green.",
    "it is blue now, not green",
    "I have a dog named Biscuit.",
    "Actually, it's not Biscuit but Rusk.",
    "I work at Siemens.",
    "I work at Bosch as an engineer.",
    "I left Siemens.",
    "I love coffee.",
    "I don't like coffee any more.",
    "I'm allergic to nuts.",
    "We moved to Kubernetes last month.",
    "I used to live in Rome.",
    "I have a dog.",
    "I smoke.",
    "I quit smoking.",
)

# When, in which conversation, and what.
messages = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 2), st.sampled_from(SAYINGS)),
    min_size=2,
    max_size=6,
)


def held(palace):
    facts = Fact.objects.within(palace).active()
    return sorted(
        (f.text, f.predicate, f.object, str(f.valid_from), str(f.valid_to)) for f in facts
    )


def tell(palace, said, order):
    """Tell each message by itself, in this order."""
    for at in order:
        day, talk, text = said[at]
        turn = Turn(f"m{at}", "user", text, START + timedelta(days=day))
        remember(palace, [turn], conversation=f"talk-{talk}-m{at}")


def tell_talks(palace, said, talks):
    """Tell whole conversations, in this order."""
    for talk in talks:
        lines = sorted((day, at, text) for at, (day, of, text) in enumerate(said) if of == talk)
        turns = [
            Turn(f"m{at}", "user", text, START + timedelta(days=day)) for day, at, text in lines
        ]
        if turns:
            remember(palace, turns, conversation=f"talk-{talk}")


_count = iter(range(10**9))


def someone():
    owner = User.objects.create(username=f"in-any-order-{next(_count)}")
    return Palace.objects.own(owner)


def tried(examples):
    return settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )


def check_messages(said, random):
    in_order = sorted(range(len(said)), key=lambda at: (said[at][0], f"talk-{said[at][1]}-m{at}"))
    other = list(reversed(in_order))
    if random is not None:
        random.shuffle(other)
    first, second = someone(), someone()
    tell(first, said, in_order)
    tell(second, said, other)
    assert held(first) == held(second)


def check_talks(said, order):
    first, second = someone(), someone()
    tell_talks(first, said, (0, 1, 2))
    tell_talks(second, said, order)
    assert held(first) == held(second)


@pytest.mark.django_db
@tried(6)
@given(messages, st.randoms(use_true_random=False))
@example([(4, 0, SAYINGS[4]), (1, 1, SAYINGS[5])], None)
@example([(0, 0, SAYINGS[6]), (3, 1, SAYINGS[6]), (1, 2, SAYINGS[7])], None)
def test_any_order_of_arrival_ends_in_the_same(db, said, random):
    check_messages(said, random)


@pytest.mark.exhaustive
@pytest.mark.django_db
@tried(4)
@given(messages, st.permutations((0, 1, 2)))
@example([(4, 0, SAYINGS[4]), (1, 1, SAYINGS[5])], (1, 0, 2))
def test_any_order_of_whole_conversations_too(db, said, order):
    check_talks(said, order)


@pytest.mark.lengthy
@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
@pytest.mark.django_db
@tried(30)
@given(messages, st.randoms(use_true_random=False), st.permutations((0, 1, 2)))
def test_any_order_at_length(db, said, random, talks):
    check_messages(said, random)
    check_talks(said, talks)


def say(palace, text, day):
    return remember(palace, text, now=START + timedelta(days=day))


def test_an_older_correction_overrules_nothing(palace):
    say(palace, "My favourite colour is green.", 300)
    say(palace, "it is blue now, not green", 1)
    [fact] = Fact.objects.within(palace).active()
    assert (fact.object, fact.valid_from) == ("green", START + timedelta(days=300))
    assert FactEvent.objects.filter(palace=palace).count() == 1


def test_an_older_denial_ends_nothing(palace):
    say(palace, "I live in Berlin.", 300)
    say(palace, "I no longer live in Berlin.", 1)
    assert [row[0] for row in held(palace)] == ["User lives in Berlin"]


def test_a_newer_denial_ends_what_is_said_later(palace):
    say(palace, "I no longer live in Berlin.", 300)
    assert held(palace) == []
    [line] = say(palace, "I live in Berlin.", 1)
    assert held(palace) == []
    assert (line.fact.fate, line.fact.valid_to) == ("ended", START + timedelta(days=300))


def test_between_two_homes_a_third_is_one_that_was(palace):
    say(palace, "I live in Rome.", 0)
    say(palace, "I live in Berlin.", 100)
    [line] = say(palace, "I live in Paris.", 50)
    assert (line.verdict, line.why) == ("COEXIST", "it was so before")
    assert [row[0] for row in held(palace)] == ["User lives in Berlin"]
    for day, home in ((10, "Rome"), (60, "Paris"), (110, "Berlin")):
        facts = Fact.objects.within(palace).true_at(START + timedelta(days=day))
        assert [fact.object for fact in facts] == [home]


def test_said_earlier_too_it_has_been_so_for_longer(palace):
    say(palace, "I live in Rome.", 100)
    [before] = Fact.objects.within(palace).active()
    [line] = say(palace, "I live in Rome.", 3)
    assert line.verdict == "NONE"
    [fact] = Fact.objects.within(palace).active()
    assert fact.memory == before.memory
    assert fact.valid_from == START + timedelta(days=3)
    assert fact.evidence.count() == 2
    assert FactEvent.objects.filter(palace=palace).count() == 1


def test_what_was_put_by_hand_is_not_overruled_by_what_was_said_before(palace):
    [line] = say(palace, "I live in Rome.", 100)
    rewrite(palace, line.memory, "User lives in Rome, near the river", Scope("person"))
    say(palace, "I live in Oslo.", 50)
    say(palace, "I live in Rome.", 40)
    assert [row[0] for row in held(palace)] == ["User lives in Rome, near the river"]
    delete(palace, line.memory, Scope("person"))
    say(palace, "I live in Bonn.", 30)
    assert held(palace) == []


BERLIN = {"turn": 0, "subject": "User", "predicate": "lives_in", "object": "Berlin"}
BERLIN |= {"text": "User lives in Berlin"}
PORTO = BERLIN | {"object": "Porto", "text": "User lives in Porto"}


@pytest.mark.parametrize("change", ["shift", "correction", "refinement"])
def test_nor_does_a_model_let_an_older_message_replace_a_newer_one(palace, model, change):
    judged = judgements_answer({"new": 0, "verdict": "UPDATE", "fact": 0, "change": change})
    model.script([facts_answer(BERLIN), facts_answer(PORTO), judged])
    say(palace, "Berlin it is.", 300)
    say(palace, "Porto it is.", 1)
    assert [row[0] for row in held(palace)] == ["User lives in Berlin"]


def test_nor_end_it(palace, model):
    left = PORTO | {"predicate": "did", "object": "left", "text": "User has left Berlin"}
    judged = judgements_answer({"new": 0, "verdict": "DELETE", "fact": 0})
    model.script([facts_answer(BERLIN), facts_answer(left), judged])
    say(palace, "Berlin it is.", 300)
    say(palace, "I have left Berlin.", 1)
    assert "User lives in Berlin" in [row[0] for row in held(palace)]


def test_a_models_judgement_is_kept_when_its_statement_is_judged_again(palace, model):
    wording = "User lives in Porto, once in Berlin"
    judged = judgements_answer({"new": 0, "verdict": "UPDATE", "fact": 0, "text": wording})
    cat = PORTO | {"predicate": "has_pet", "object": "Mia", "text": "User has a cat, Mia"}
    model.script([facts_answer(BERLIN), facts_answer(PORTO), judged, facts_answer(cat)])
    say(palace, "Berlin it is.", 1)
    say(palace, "Porto it is.", 300)
    model.answer(judgements_answer())
    say(palace, "Mia is my cat.", 100)
    assert [row[0] for row in held(palace)] == ["User has a cat, Mia", wording]


def test_facts_from_before_statements_were_kept_are_not_overruled_either(palace):
    say(palace, "My favourite colour is green.", 300)
    Fact.objects.update(opened_by=None)
    Statement.objects.all().delete()
    say(palace, "it is blue now, not green", 1)
    say(palace, "My favourite colour is red.", 2)
    assert [row[2] for row in held(palace)] == ["green"]
    say(palace, "My favourite colour is grey.", 301)
    assert [row[2] for row in held(palace)] == ["grey"]


def test_what_was_forgotten_does_not_come_again(palace):
    say(palace, "I live in Berlin.", 3)
    say(palace, "I live in Berlin.", 4)
    forget(palace, Fact.objects.all())
    say(palace, "I have a cat called Mia.", 1)
    assert [row[2] for row in held(palace)] == ["Mia"]


def test_each_agent_has_an_order_of_its_own(palace):
    remember(palace, "I live in Berlin.", agent="one", now=START + timedelta(days=9))
    remember(palace, "I live in Rome.", agent="two", now=START)
    assert [row[2] for row in held(palace)] == ["Berlin", "Rome"]
