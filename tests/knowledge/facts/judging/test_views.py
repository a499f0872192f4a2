"""Opinions shift within an aspect and stand beside each other across them; so do instructions."""

from __future__ import annotations

from datetime import timedelta

from palace.knowledge.facts.fact_learning import remember
from palace.models import Fact
from tests.knowledge.facts.conftest import LONG_AGO


def held(palace, *messages):
    for day, message in enumerate(messages):
        remember(palace, message, now=LONG_AGO + timedelta(days=day))
    return Fact.objects.active().order_by("pk")


def test_an_opinion_has_an_arc(palace):
    facts = held(
        palace,
        "I love TypeScript.",
        "Generics in TypeScript are a pain.",
        "These days I find TypeScript overhyped.",
    )
    views = {(fact.subject.name, fact.aspect, fact.stance) for fact in facts}
    assert views == {("TypeScript", "", "negative"), ("TypeScript", "generics", "negative")}
    [loved] = Fact.objects.filter(fate=Fact.Fate.SUPERSEDED)
    assert loved.stance == "positive"


def test_a_taste_takes_the_place_of_an_opinion_on_the_same(palace):
    [view] = held(palace, "Remote work is the best thing ever.", "I've gone off remote work.")
    assert (view.predicate, view.object, view.stance) == ("dislikes", "remote work", "negative")


def test_another_language_to_answer_in_replaces_the_one_before(palace):
    facts = held(
        palace,
        "Always answer me in German.",
        "Please, keep your answers short.",
        "English again from now on please.",
    )
    assert {(fact.aspect, fact.object) for fact in facts} == {
        ("length", "keep your answers short"),
        ("language", "answer in English"),
    }
