"""A drawer's page: the words that facts rest on, and those facts."""

from __future__ import annotations

import html
import re

import pytest

from palace.knowledge.facts.fact_edits import rewrite
from tests.factories import (
    DrawerFactory,
    EntityFactory,
    EvidenceFactory,
    FactFactory,
    RoomFactory,
    WingFactory,
)
from tests.views.conftest import BY_PERSON, FACTS, address


def drawers_text(response):
    inner = re.search(r'id="text">(.*?)</div>', response.text, re.S)[1]
    bare = re.sub(r"</?(mark|a)\b[^>]*>", "", inner)
    return html.unescape(bare.replace("\r\n", "\n").replace("\r", "\n"))


def test_a_drawer_marks_the_words_and_names_the_facts_that_rest_on_them(alices, fact, said):
    response = alices.get(said.get_absolute_url())
    link = f'<a href="{address(fact)}" title="You live in Lisbon">I live in Lisbon</a>'
    assert f'<mark class="rests">{link}</mark>' in response.text
    assert "Facts from this drawer" in response.text
    assert drawers_text(response) == said.text


@pytest.mark.some(8)
@pytest.mark.parametrize("passage", ["", "0-8", "6-22", "9-12", "20-40", "6-900"])
@pytest.mark.parametrize("other", [(0, 3), (6, 22), (10, 30), (22, 30), (3, 900)])
def test_however_words_overlap_the_text_stays_to_the_character(alices, fact, said, passage, other):
    more = FactFactory(subject=fact.subject, text="Another")
    EvidenceFactory(fact=more, drawer=said, start=other[0], end=other[1])
    response = alices.get(said.get_absolute_url(), {"passage": passage})
    assert drawers_text(response) == said.text
    assert response.text.count('id="passage"') == (1 if passage else 0)


def test_versions_of_one_memory_are_one_line(alices, palace, fact, said):
    rewrite(palace, fact.memory, "User lives in Lisbon!", BY_PERSON)
    text = alices.get(said.get_absolute_url()).text
    aside = text[text.index("Facts from this drawer") :]
    assert "You live in Lisbon!</a>" in aside
    assert "You live in Lisbon</a>" not in aside


def test_what_would_be_dropped_with_a_drawer_is_said_first(alices, fact, said):
    elsewhere = FactFactory(subject=fact.subject, text="User likes tea")
    EvidenceFactory(fact=elsewhere, drawer=said, start=0, end=4)
    EvidenceFactory(fact=elsewhere, drawer=DrawerFactory(room=said.room))
    text = alices.get(said.get_absolute_url()).text
    warning = re.search(r'id="rests-only">(.*?)</p>', text, re.S)[1]
    assert "1 fact has no other source" in warning
    assert "You live in Lisbon" in warning
    assert "tea" not in warning


def test_a_drawers_queries_do_not_grow_with_its_facts(
    alices, fact, said, django_assert_max_num_queries
):
    for start in range(20):
        EvidenceFactory(
            fact=FactFactory(subject=EntityFactory(palace=fact.palace)),
            drawer=said,
            start=start,
            end=start + 1,
        )
    with django_assert_max_num_queries(11):
        assert alices.get(said.get_absolute_url()).status_code == 200


def test_evidence_of_another_palace_is_never_reached(alices, bob, fact):
    strangers = DrawerFactory(
        room=RoomFactory(wing=WingFactory(palace__owner=bob)), text="A stranger's words"
    )
    EvidenceFactory(
        fact=FactFactory(subject=EntityFactory(palace=strangers.palace)), drawer=strangers
    )
    assert "stranger" not in alices.get(FACTS).text
