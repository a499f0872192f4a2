"""From one entity to the next: how far, how much is left, and on which clock."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from language.slugs import slug_of
from palace.models import Entity, Fact, Palace
from palace.recall import entity_graph
from palace.recall.entity_graph import (
    Edge,
    expand,
    named_entities,
    near_entities,
    walk,
)
from tests.factories import EntityFactory, FactFactory

MARCH, MAY, JULY = (datetime(2024, month, 1, tzinfo=UTC) for month in (3, 5, 7))


def entity(palace, name, kind="person", aliases=()):
    slug = name.lower().replace(" ", "-")
    return EntityFactory(palace=palace, name=name, slug=slug, kind=kind, aliases=list(aliases))


def link(one, other, predicate="knows", **values):
    text = f"{one.name} {predicate} {other.name}"
    return FactFactory(
        subject=one, object=other.name, object_entity=other, predicate=predicate, text=text,
        **values,
    )  # fmt: skip


def test_names_that_differ_by_a_sign_are_distinguished(palace):
    c, plus, sharp = (
        EntityFactory(palace=palace, name=name, slug=slug_of(name), kind="item")
        for name in ("C", "C++", "C#")
    )
    assert named_entities(palace, "Do I like C++ more than C#?") == [plus.pk, sharp.pk]
    assert named_entities(palace, "Is it C?") == [c.pk]


def test_names_with_signs_are_found_in_questions(palace):
    found = [
        EntityFactory(palace=palace, name=name, slug=slug_of(name), kind="item")
        for name in ("Python 3.12", "A*", "TCP/IP", "C--", "Luna")
    ]
    question = "Do I run Python 3.12, did A* need TCP/IP, and was C-- for *Luna*?"
    assert named_entities(palace, question) == [each.pk for each in found]
    assert named_entities(palace, "Is Python 3.1.2 or 312 for A or TCPIP?") == []


@pytest.fixture
def chain(palace):
    """Ana – Biscuit – Cora – Dov – Eli, each with the next."""
    people = [entity(palace, name) for name in ("Ana", "Biscuit", "Cora", "Dov", "Eli")]
    for one, other in pairwise(people):
        link(one, other)
    return people


def test_each_hop_has_its_share_of_the_seed():
    edges = [Edge(10, 1, 2), Edge(11, 2, 3), Edge(12, 3, 4), Edge(13, 4, 5)]
    found = expand({1: 0.5}, edges)
    assert found.entities == pytest.approx({2: 0.3, 3: 0.18, 4: 0.108})
    assert found.facts == pytest.approx({10: 0.3, 11: 0.18, 12: 0.108})


def test_edges_are_followed_both_ways():
    assert expand({3: 1.0}, [Edge(10, 1, 3), Edge(11, 1, 2)]).entities == pytest.approx(
        {1: 0.6, 2: 0.36}
    )


def test_of_several_ways_the_best_counts():
    edges = [Edge(10, 1, 2), Edge(11, 2, 3), Edge(12, 9, 3)]
    assert expand({1: 1.0, 9: 0.1}, edges).entities[3] == pytest.approx(0.36)
    assert expand({1: 1.0, 9: 0.9}, edges).entities[3] == pytest.approx(0.54)


entities = st.integers(1, 12)
some_edges = st.lists(st.tuples(entities, entities), max_size=30).map(
    lambda ends: [Edge(100 + n, *pair) for n, pair in enumerate(ends) if pair[0] != pair[1]]
)
some_seeds = st.dictionaries(entities, st.floats(0.01, 1), min_size=1, max_size=4)


@given(some_seeds, some_edges)
def test_expansion_is_the_best_seed_times_its_share_by_distance(seeds, edges):
    found = expand(seeds, edges)
    assert not found.entities.keys() & seeds.keys()
    assert found.entities == pytest.approx(slowly(seeds, edges))


def slowly(seeds, edges):
    scores = {}
    for seed, score in seeds.items():
        reached, outermost = {seed}, {seed}
        for hop in (1, 2, 3):
            ends = {
                other
                for edge in edges
                for one, other in ((edge.subject, edge.object), (edge.object, edge.subject))
                if one in outermost
            }
            outermost = ends - reached
            reached |= outermost
            for key in outermost - seeds.keys():
                scores[key] = max(scores.get(key, 0), score * 0.6**hop)
    return scores


def reached(palace, entities, hops=1, **clocks):
    """Names and distances of what facts lead to, nearest first."""
    facts = Fact.objects.within(palace).as_of(**clocks)
    found = walk(facts, {one.pk for one in entities}, hops=hops).hops
    names = {one.pk: one.name for one in Entity.objects.filter(pk__in=found)}
    return sorted(
        ((names[key], hop) for key, hop in found.items() if hop), key=lambda one: one[::-1]
    )


def test_a_walk_goes_no_farther_than_asked(palace, chain):
    assert reached(palace, chain[:1], hops=2) == [("Biscuit", 1), ("Cora", 2)]
    assert reached(palace, chain[2:3]) == [("Biscuit", 1), ("Dov", 1)]


def test_a_walk_does_not_return_to_where_it_began(palace, chain):
    link(chain[0], chain[0])
    assert reached(palace, chain[:2]) == [("Cora", 1)]


def test_a_walk_takes_a_query_a_hop(palace, chain, django_assert_num_queries):
    with django_assert_num_queries(3):
        walk(Fact.objects.within(palace), {chain[0].pk}, hops=3)


def test_strangers_entities_lead_nowhere(palace, chain, bob):
    assert reached(Palace.objects.own(bob), chain[:1], hops=3) == []


@pytest.fixture
def moved(palace):
    """Lived in Porto from March, in Oslo from May, which was learnt in July."""
    ana = entity(palace, "Ana")
    porto, oslo = entity(palace, "Porto", "place"), entity(palace, "Oslo", "place")
    link(
        ana, porto, "lives_in", valid_from=MARCH, valid_to=MAY, recorded_at=MARCH,
        retired_at=JULY, fate=Fact.Fate.SUPERSEDED,
    )  # fmt: skip
    link(ana, oslo, "lives_in", valid_from=MAY, recorded_at=JULY)
    link(ana, oslo, "born_in", recorded_at=MARCH, retired_at=MAY, fate=Fact.Fate.CORRECTED)
    return ana


JUNE, APRIL = datetime(2024, 6, 1, tzinfo=UTC), datetime(2024, 4, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("clocks", "names"),
    [
        ({}, ["Oslo"]),
        ({"true_at": APRIL}, ["Porto"]),
        ({"true_at": JUNE}, ["Oslo"]),
        ({"known_at": APRIL}, ["Oslo", "Porto"]),
        ({"known_at": JUNE}, ["Porto"]),
        ({"true_at": JUNE, "known_at": JUNE}, ["Porto"]),
        ({"true_at": APRIL, "known_at": JULY}, ["Porto"]),
    ],
)
def test_a_walk_follows_both_clocks(palace, moved, clocks, names):
    assert reached(palace, [moved], **clocks) == [(name, 1) for name in names]


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Where does ana lopez's dog sleep?", ["Ana Lopez"]),
        ("Did Annie ask Dov?", ["Ana Lopez", "Dov"]),
        ("who does Dov know in new york", ["Dov", "New York"]),
        ("Is it done?", []),
        ("What will the user see?", []),
        ("", []),
    ],
)
def test_a_question_names_entities_by_name_or_alias(palace, question, names):
    known = [
        entity(palace, "Ana Lopez", aliases=["Annie"]),
        entity(palace, "Dov"),
        entity(palace, "New York", "place"),
        entity(palace, "York", "place"),
        entity(palace, "Ana"),
        entity(palace, "It"),
        entity(palace, "User"),
    ]
    by_key = {one.pk: one.name for one in known}
    assert [by_key[key] for key in named_entities(palace, question)] == names


def test_a_question_names_nobody_of_another_palace(palace, bob):
    entity(Palace.objects.own(bob), "Dov")
    assert named_entities(palace, "Where is Dov?") == []


def test_what_a_question_names_is_nearest_and_what_facts_lead_to_is_near(palace, chain):
    ana, biscuit, cora, dov, eli = chain
    near = near_entities(palace, "Where does Ana's dog live?")
    assert near == pytest.approx({ana.pk: 1.0, biscuit.pk: 0.6, cora.pk: 0.36, dov.pk: 0.216})
    assert eli.pk not in near
    assert near_entities(palace, "Where do I live?") == {}


def test_the_past_is_followed_as_of_then(palace, moved):
    porto = Fact.objects.get(object="Porto").object_entity
    assert porto.pk not in near_entities(palace, f"{moved.name}?")
    assert near_entities(palace, f"{moved.name}?", as_of=APRIL)[porto.pk] == pytest.approx(0.6)


def test_of_what_everything_is_about_the_newest_facts_are_followed(palace, chain, monkeypatch):
    monkeypatch.setattr(entity_graph, "MAX_EDGES", 1)
    link(chain[0], entity(palace, "Fay"), recorded_at=JULY.replace(year=2026))
    assert reached(palace, chain[:1]) == [("Fay", 1)]
