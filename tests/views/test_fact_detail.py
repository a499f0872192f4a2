"""One fact whole: its versions, the words they rest on, its history."""

from __future__ import annotations

import re

from palace.knowledge.facts.fact_edits import delete, rewrite
from palace.knowledge.facts.fact_extraction import Scope
from palace.models import Evidence, Fact
from tests.factories import (
    DrawerFactory,
    EntityFactory,
    EvidenceFactory,
    FactFactory,
)
from tests.views.conftest import BY_PERSON, LEARNT, address, moment, was_so


def test_a_memory_shows_its_versions_as_they_followed_each_other(alices, fact):
    old = was_so(fact.subject, "User lives in Porto", memory=fact.memory, recorded_at=moment(2024))
    text = alices.get(address(fact)).text
    chain = re.findall(r'id="version-([^"]+)"', text)
    assert chain == [str(old.uuid), str(fact.uuid)]
    assert "Replaced by a newer fact" in text
    assert text.index("You live in Porto") < text.index('fate now">Active')


def test_the_words_lead_into_the_drawer_at_those_words(alices, fact, said):
    link = f"{said.get_absolute_url()}?passage=6-22"
    assert f'href="{link}#text"' in alices.get(address(fact)).text
    assert 'id="passage"' in alices.get(link).text


def test_words_are_shown_as_text_and_cut_when_they_are_very_long(alices, fact, said):
    Evidence.objects.update(start=0, end=len(said.text))
    long = DrawerFactory(room=said.room, text="x" * 5000, said_at=moment(2026))
    EvidenceFactory(fact=fact, drawer=long)
    text = alices.get(address(fact)).text
    assert "and &lt;love&gt; it." in text
    assert "x" * 600 in text
    assert "x" * 601 not in text


def test_opinions_are_listed_by_aspect_and_drawn(alices, palace):
    typescript = EntityFactory(palace=palace, kind="item", name="TypeScript", slug="typescript")
    matter = {"subject": typescript, "type": "opinion", "predicate": "opinion", "single": True}
    love = FactFactory(**matter, text="User loves it", stance="positive", valid_from=moment(2023))
    was_so(
        typescript,
        "Generics annoy User",
        **{name: value for name, value in matter.items() if name != "subject"},
        aspect="generics",
        stance="negative",
        valid_from=moment(2024),
    )
    FactFactory(
        **matter, text="User likes generics now", aspect="generics", stance="positive",
        valid_from=LEARNT,
    )  # fmt: skip
    was_so(typescript, "Never so", type="opinion", predicate="opinion", fate=Fact.Fate.CORRECTED)
    text = alices.get(address(love)).text
    assert "Opinions on TypeScript, by aspect" in text
    lanes = re.findall(r"<h3>(.*?)</h3>", text)
    assert lanes == ["As a whole", "generics"]
    assert text.index("Generics annoy you") < text.index("You like generics now")
    assert text.count('class="stance positive"') == 2
    assert text.count('class="stance negative"') == 1
    assert "Never so" not in text


def test_history_says_what_changed_by_whom_and_why(alices, palace, fact):
    rewrite(palace, fact.memory, "User lives in Lisbon, Portugal", BY_PERSON)
    delete(palace, fact.memory, Scope("mining"), why="moved away")
    text = alices.get(address(fact)).text
    assert re.findall(r"<strong>(\w+)</strong>", text) == ["Changed", "Dropped"]
    assert "<del>You live in Lisbon</del>" in text
    assert "<ins>You live in Lisbon, Portugal</ins>" in text
    assert "by you" in text
    assert "by Loci, reading what was said" in text
    assert "Moved away." in text


def test_the_number_of_queries_does_not_grow_with_the_versions(
    alices, fact, said, django_assert_max_num_queries
):
    for number in range(20):
        old = was_so(fact.subject, f"Version {number}", memory=fact.memory)
        EvidenceFactory(fact=old, drawer=DrawerFactory(room=said.room))
    with django_assert_max_num_queries(9):
        assert alices.get(address(fact)).text.count('id="version-') == 21
