"""Which of the palace's entities a window is read with."""

from __future__ import annotations

import pytest

from language.extraction import EntityFound, KnownEntity
from language.slugs import slug_of
from palace.curation.entities import rename_entity
from palace.knowledge.facts import find_entity
from palace.mining.pipeline import mine
from palace.mining.window_reader import PalaceEntities
from palace.models import Entity
from tests.conversations import transcript
from tests.factories import PalaceFactory


def entity(palace, name, *aliases, kind="person"):
    return Entity.objects.create(
        palace=palace, kind=kind, slug=slug_of(name), name=name, aliases=list(aliases)
    )


def test_an_entity_is_known_by_name_and_alias_in_whatever_case(palace):
    entity(palace, "Anastasia Weber", "Stasia")
    entity(palace, "Florence")
    weber = KnownEntity("person", "Anastasia Weber", ("Stasia",))
    known = PalaceEntities(palace)
    assert known.named(["STASIA", "Nobody"]) == {"stasia": weber, "anastasia weber": weber}
    assert known.named(["anastasia WEBER"]) == {"anastasia weber": weber}
    assert known.named(["Florence"])["florence"].kind == "person"


def test_whose_name_it_is_goes_before_whose_alias(palace):
    entity(palace, "Mel")
    entity(palace, "Melanie", "Mel")
    assert PalaceEntities(palace).named(["Mel"])["mel"].name == "Mel"


def test_what_was_found_is_known_until_it_is_written(palace):
    known = PalaceEntities(palace)
    known.learn([EntityFound("person", "Melanie", (), ("Mel",))])
    assert known.named(["mel"])["mel"].name == "Melanie"
    assert known.named(["Melanie"])["melanie"].aliases == ("Mel",)


def test_who_is_known_already_stays(palace):
    entity(palace, "Florence", kind="person")
    known = PalaceEntities(palace)
    known.named(["Florence"])
    known.learn([EntityFound("place", "Florence", ())])
    assert known.named(["Florence"])["florence"].kind == "person"


def test_of_a_person_and_a_pet_the_older_has_the_name(palace):
    entity(palace, "Max", kind="person")
    entity(palace, "Max", kind="pet")
    assert PalaceEntities(palace).named(["Max"])["max"].kind == "person"


def test_nobody_of_another_palace_is_known(palace):
    entity(PalaceFactory(), "Quillon", "Quill")
    assert PalaceEntities(palace).named(["Quillon", "Quill"]) == {}


def test_a_name_is_looked_up_once(palace, django_assert_num_queries):
    entity(palace, "Quillon")
    known = PalaceEntities(palace)
    with django_assert_num_queries(1):
        for _ in range(3):
            assert known.named(["Quillon", "Florence"])["quillon"].name == "Quillon"


@pytest.mark.parametrize("name", ["Ærø", "Straße", "李明", "C++", "🙂", "x" * 500])
def test_odd_names_are_found_again(palace, name):
    entity(palace, name[:200])
    assert PalaceEntities(palace).named([name[:200]])


def test_a_conversation_is_read_with_who_is_known(palace):
    """ "Quillon called" alone would not tell a name from any other first word."""
    quillon = entity(palace, "Quillon")
    mine(palace, transcript("Quillon called.", "What about?"))
    assert quillon.mentions.count() == 1


def test_what_is_mined_later_goes_to_a_renamed_person_by_both_names(palace):
    quillon = entity(palace, "Quillon")
    rename_entity(palace, quillon, "Quentin")
    mine(palace, transcript("Quillon called.", "What about?", id="old"))
    mine(palace, transcript("Quentin called.", "What about?", id="new"))
    assert quillon.mentions.count() == 2
    assert find_entity(palace, "Quillon") == find_entity(palace, "Quentin") == quillon
    assert Entity.objects.filter(kind=quillon.kind).count() == 1
