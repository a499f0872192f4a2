"""What speaks for it that a name is that of a home, an employer or a spouse."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from language.english.facts.fact_reading import read_facts
from language.english.judging.object_kinds import is_place_name
from language.facts import UNSURE, is_unsure
from language.transcripts import Turn

SAID_AT = datetime(2026, 3, 2, tzinfo=UTC)


def read(said):
    return read_facts([Turn("1", "user", said, SAID_AT)])


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("We moved to Proxmox.", "Proxmox"),
        ("I moved to Zotero with my notes.", "Zotero"),
        ("We moved to Prefect from Dagster.", "Prefect"),
        ("i moved to ravenstonedale", "ravenstonedale"),
        ("i work at fjordkraft now", "fjordkraft"),
    ],
)
def test_a_bare_name_is_unsure(said, name):
    [found] = [one for one in read(said) if one.predicate]
    assert (found.object, found.confidence) == (name, UNSURE)
    assert is_unsure(found)


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("I live in Zwinkel.", "Zwinkel"),
        ("We relocated to Zwinkel.", "Zwinkel"),
        ("We moved to Zwinkel from Leeds.", "Zwinkel"),
        ("We moved to Zwinkel, Austria.", "Zwinkel, Austria"),
        ("I moved to a flat in Zwinkel.", "Zwinkel"),
        ("I moved to Ravenstonedale.", "Ravenstonedale"),
        ("i moved to hebden bridge", "hebden bridge"),
        ("I started a job at Fjordkraft.", "Fjordkraft"),
        ("i work for the council", "council"),
    ],
)
def test_words_speak_for_a_name(said, name):
    [found] = [one for one in read(said) if one.predicate in ("lives_in", "works_at")]
    assert name in found.object or found.object in name
    assert not is_unsure(found)


@pytest.mark.parametrize(
    "said", ["I moved to oat milk.", "i work at the bench", "I live in hoodies.", "I work at ease."]
)
def test_a_common_noun_says_nothing(said):
    assert read(said) == []


@pytest.mark.parametrize("name", ["Szeged", "Óbidos", "łódź", "Novi Sad", "the Netherlands", "NYC"])
def test_towns_and_countries_are_listed(name):
    assert is_place_name(name)


@pytest.mark.parametrize("name", ["Proxmox", "decaf", "", "|", "Szeged|Szeged", "sze"])
def test_what_is_no_town_is_not_listed(name):
    assert not is_place_name(name)
