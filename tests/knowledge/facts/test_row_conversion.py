"""Rows as the plain facts that rules judge beside, and judgements with their rows."""

from __future__ import annotations

from language.facts import Candidate, Judgement, Thing, Verdict, Words
from palace.knowledge.facts.fact_learning import remember
from palace.knowledge.facts.row_conversion import Decision, KnownRows, known_fact_of
from palace.models import Fact
from tests.knowledge.facts.conftest import LONG_AGO, statement

VIEW = Candidate(
    "opinion",
    Thing("TypeScript", "item"),
    "opinion",
    "a pain",
    "User finds generics in TypeScript a pain",
    (Words(0, 0, 5),),
    thing=Thing("Ayaka", "person"),
    aspect="generics",
    stance="negative",
    confidence=0.7,
    category="opinions/code",
    tags=("wife", "code"),
)
SHARED = ("type", "predicate", "object", "text", "aspect", "stance", "category", "confidence")


def row_of(line):
    rows = Fact.objects.select_related("subject", "object_entity", "opened_by__drawer")
    return rows.get(pk=line.fact.pk)


def test_a_plain_fact_has_what_its_row_says(tell, django_assert_num_queries):
    row = row_of(tell(VIEW))
    with django_assert_num_queries(0):
        fact = known_fact_of(row)
    for name in (*SHARED, "subject", "thing", "tags"):
        assert getattr(fact, name) == getattr(VIEW, name)
    assert (fact.key, fact.single, fact.valid_from) == (row.pk, True, LONG_AGO)


def test_what_was_learnt_from_a_message_was_said_in_its_conversation(palace):
    line, *_ = remember(palace, "I live in Porto.", conversation="holidays", now=LONG_AGO)
    fact = known_fact_of(row_of(line))
    assert fact.said_in == ("api", "holidays")
    assert fact.said_order[:2] == (LONG_AGO, "holidays")


def test_what_was_not_was_said_when_it_was_recorded(tell):
    row = row_of(tell(VIEW))
    fact = known_fact_of(row)
    assert fact.said_in == row.recorded_at
    assert fact.said_order[0] == row.settled_at


def test_a_decision_has_the_row_that_the_judgement_names(tell):
    first, second = row_of(tell(VIEW)), row_of(tell(statement("User lives in Porto")))
    rows = KnownRows([(first, 0.9), (second, 0.2)])
    assert [(one.fact.key, one.similarity) for one in rows.known] == [
        (first.pk, 0.9),
        (second.pk, 0.2),
    ]
    judgement = Judgement(Verdict.NONE, VIEW, rows.known[1].fact)
    assert rows.decision(judgement) == Decision(judgement, second)
    added = Judgement(Verdict.ADD, VIEW)
    assert rows.decision(added) == Decision(added, None)
