"""The rules of judging: the verdict on a statement, given the known facts."""

from __future__ import annotations

import pytest

from language.english.judging.rules import judge_by_rules
from language.facts import Candidate, Change, Known, Thing, Verdict, Words
from tests.language.facts.extracted import facts, known, known_fact


def candidate(said):
    """The last candidate in a message."""
    return facts(said)[-1]


def judged(now, *before):
    return judge_by_rules(candidate(now), known(*before, similarity=0.5))


@pytest.mark.parametrize(
    ("before", "now", "verdict", "change"),
    [
        # Of what there is one at a time.
        ("User lives in NYC", "User moved to San Francisco", Verdict.UPDATE, Change.SHIFT),
        ("I live in Porto", "I live in Porto", Verdict.NONE, None),
        ("I live in Portugal", "I live in Porto, Portugal", Verdict.UPDATE, Change.REFINEMENT),
        ("I live in Porto", "Sorry, I live in Lisbon", Verdict.UPDATE, Change.CORRECTION),
        ("I'm 29", "I turned 30", Verdict.UPDATE, Change.SHIFT),
        ("My favourite colour is teal", "My favourite colour is red", Verdict.UPDATE, Change.SHIFT),
        ("My favourite colour is teal", "My favourite film is Alien", Verdict.ADD, None),
        # Work.
        ("User works in tech", "User works at Google as a senior engineer", Verdict.UPDATE,
         Change.REFINEMENT),
        ("I work at Acme as a tester", "I'm now at BigTech Inc", Verdict.UPDATE, Change.SHIFT),
        ("I work at Acme as a tester", "I'm a tester", Verdict.NONE, None),
        ("I work at Acme as a tester", "They promoted me to manager", Verdict.UPDATE, Change.SHIFT),
        ("I work at Acme as a tester", "I got laid off from Acme today", Verdict.DELETE, None),
        ("I'm a nurse", "I'm a nurse at Elm Hospital", Verdict.UPDATE, Change.REFINEMENT),
        # Of what there are many.
        ("I speak Dutch", "I speak Greek", Verdict.ADD, None),
        ("I have a dog", "My dog Rex snores", Verdict.UPDATE, Change.REFINEMENT),
        ("My dog Rex snores", "I have a dog", Verdict.NONE, None),
        ("I have a cat called Miso", "We got a cat named Tofu", Verdict.ADD, None),
        ("I take 50 mg of sertraline", "My doctor raised my sertraline to 100 mg", Verdict.UPDATE,
         Change.SHIFT),
        ("I use Flask 2.3", "I use Flask", Verdict.NONE, None),
        ("I use Flask", "I use Flask 2.3", Verdict.UPDATE, Change.REFINEMENT),
        ("I use Flask 2.3", "I use Flask 3.0", Verdict.UPDATE, Change.SHIFT),
        # Denials.
        ("I smoke", "I quit smoking", Verdict.DELETE, None),
        ("I drive an old Volvo", "I no longer have a car", Verdict.DELETE, None),
        ("My parrot Captain talks", "Captain died yesterday", Verdict.DELETE, None),
        ("I'm allergic to eggs", "I'm no longer allergic to eggs", Verdict.DELETE, None),
        ("User is vegetarian", "User started eating meat again", Verdict.UPDATE, Change.SHIFT),
        ("I don't eat pork", "I eat pork again", Verdict.UPDATE, Change.SHIFT),
        ("I do night calls on Fridays", "I don't do night calls", Verdict.UPDATE, Change.SHIFT),
        ("I don't do night calls", "I do yoga every morning", Verdict.ADD, None),
        ("I don't drink alcohol", "I'm having a beer with dinner again", Verdict.UPDATE,
         Change.SHIFT),
        ("I like tea", "I don't smoke", Verdict.ADD, None),
        ("I like tea", "I sold my car", Verdict.NONE, None),
        # What was.
        ("I live in Rome", "I used to live in Rome", Verdict.DELETE, None),
        ("I live in Oslo", "I used to live in Rome", Verdict.ADD, None),
        # Views.
        ("I like onions", "I don't like onions", Verdict.UPDATE, Change.SHIFT),
        ("I like onions", "I love onions", Verdict.NONE, None),
        ("TypeScript generics annoy me", "TypeScript is great for big projects", Verdict.COEXIST,
         None),
        ("TypeScript is great", "TypeScript is terrible", Verdict.UPDATE, Change.SHIFT),
        ("I love TypeScript", "TypeScript is terrible", Verdict.UPDATE, Change.SHIFT),
        ("I prefer tabs to spaces", "I prefer spaces to tabs", Verdict.UPDATE, Change.SHIFT),
        # Plans.
        ("We plan to buy a house", "We bought a house", Verdict.UPDATE, Change.SHIFT),
        ("I plan to walk the West Highland Way in May", "The West Highland Way is cancelled",
         Verdict.DELETE, None),
        # Names.
        ("We have a dog called Rusty", "Rusty is now called Comet", Verdict.UPDATE, Change.SHIFT),
        ("I live in Porto", "My name is Ana", Verdict.ADD, None),
    ],
)  # fmt: skip
def test_the_verdict(before, now, verdict, change):
    judgement = judged(now, before)
    assert judgement.verdict is verdict
    assert (judgement.fact is None) == (verdict in (Verdict.ADD, Verdict.COEXIST)) or (
        verdict is Verdict.NONE
    )
    if change:
        assert judgement.change is change
    assert judgement.why


def test_the_role_stays_where_only_the_employer_changes():
    judgement = judged("I'm now at BigTech Inc", "I work at Acme as a data scientist")
    assert judgement.text == "User works at BigTech Inc as a data scientist"


def test_the_employer_stays_where_only_the_role_changes():
    judgement = judged("They promoted me to manager", "I work at Acme as a tester")
    assert judgement.candidate.text == "User works at Acme as a manager"
    assert judgement.candidate.predicate == "works_at"


def test_another_persons_home_changes_too():
    judgement = judged("Dora lives in Bergen", "Dora lives in Oslo")
    assert (judgement.verdict, judgement.fact.object) == (Verdict.UPDATE, "Oslo")


def test_another_persons_fact_is_left_alone():
    assert judged("I live in Oslo", "my sister Anna lives in Rome").verdict is Verdict.ADD


def test_a_renamed_dog_is_still_had():
    judgement = judged("Rusty is now called Comet", "We have a dog called Rusty")
    assert judgement.candidate.text == "User has a dog named Comet"
    assert judgement.candidate.subject.name == "User"


def test_nearly_the_same_by_meaning_is_known_already():
    def statement(text):
        return Candidate(
            "event", Thing("User", "person"), "did", text, f"User {text}", (Words(0, 0, 1),)
        )

    one, other = statement("went to the sea with the family"), statement("visited the seaside")
    fact = known_fact(other)
    assert judge_by_rules(one, [Known(fact, 0.97)]).verdict is Verdict.NONE
    assert judge_by_rules(one, [Known(fact, 0.6)]).verdict is Verdict.ADD


def test_where_nothing_is_known_it_is_new():
    assert judge_by_rules(candidate("I live in Oslo"), []).verdict is Verdict.ADD


@pytest.mark.parametrize("names", [("C", "C++"), ("C++", "C#"), ("F#", "F"), ("C++", "C")])
def test_names_that_differ_by_a_sign_are_not_the_same(names):
    one, other = (f"I use {name} every day." for name in names)
    judgement = judged(other, one)
    assert judgement.verdict is Verdict.ADD
