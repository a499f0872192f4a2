"""Traits: what kind of thing a message says, read once and stored as bits."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection

from language.english.message_traits import Trait, read_traits
from palace.mining.pipeline import mine
from palace.models import Drawer
from tests.conversations import EVERYTHING, transcript

T = Trait


def test_a_bit_means_the_same_for_ever():
    stored = {
        "ENDS_ASKING": 1,
        "MOSTLY_ASKS": 2,
        "NUMBER": 4,
        "TIME": 8,
        "NAME": 16,
        "NAMES": 32,
        "SELF": 64,
        "MUCH_SELF": 128,
        "PLACE": 256,
        "REASON": 512,
        "GREETS": 1024,
        "ONLY_ASKS": 2048,
        "ONLY_QUOTES": 4096,
        "TAKES_UP": 8192,
    }
    found = {trait.name: trait.value for trait in Trait}
    assert {name: found.get(name) for name in stored} == stored
    assert max(found.values()) < 2**15, "It is stored in a small integer."


@pytest.mark.parametrize(
    ("text", "has", "has_not"),
    [
        ("Where do you live?", T.ENDS_ASKING | T.MOSTLY_ASKS, T.TIME | T.NUMBER),
        ("It broke. Why?", T.ENDS_ASKING, T.MOSTLY_ASKS),
        ("Why did it break so soon? Odd.", T.MOSTLY_ASKS | T.TIME, T.ENDS_ASKING),
        ("What? It works, and it has worked well.", T(0), T.ENDS_ASKING | T.MOSTLY_ASKS),
        ("Ends with blanks?  \n", T.ENDS_ASKING, T(0)),
        ("It weighs 12 kg.", T.NUMBER, T.TIME),
        ("Two cats we have.", T.NUMBER | T.SELF, T.MUCH_SELF),
        ("Someone is often gone.", T(0), T.NUMBER),
        ("It rained YESTERDAY.", T.TIME, T.NUMBER),
        ("It was built in 1987.", T.TIME | T.NUMBER, T.NAME),
        ("A fastidious and sooner loss.", T(0), T.TIME),
        ("Amira sang.", T(0), T.NAME | T.NAMES),
        ("the song Amira sang", T.NAME, T.NAMES),
        ("the song Amira and Derek sang", T.NAME | T.NAMES, T(0)),
        ("I think so.", T.SELF, T.MUCH_SELF),
        ("I think my sister told me.", T.SELF | T.MUCH_SELF, T(0)),
        ("It is theirs.", T(0), T.SELF),
        ("She lives in Lisbon.", T.PLACE | T.NAME, T(0)),
        ("She sat at the table.", T.PLACE, T.NAME),
        ("She sat down.", T(0), T.PLACE),
        ("It failed because of the rain.", T.REASON, T(0)),
        ("It motivated her.", T.REASON, T(0)),
        ("It failed.", T(0), T.REASON),
        ("Hey there", T.GREETS, T(0)),
        ("  thanks a lot!", T.GREETS, T(0)),
        ("That’s neat", T.GREETS, T(0)),
        ("That's neat", T.GREETS, T(0)),
        ("Hidden things", T(0), T.GREETS),
        ("She said hi", T(0), T.GREETS),
    ],
)
def test_each_trait_is_read_from_a_sentence(text, has, has_not):
    found = read_traits(text)
    assert found & has == has
    assert found & has_not == T(0)


@pytest.mark.parametrize("text", ["", " \n", "🙂", "?", "???", "的 是", "\ud800", "a" * 10**6])
def test_odd_texts_have_traits_too(text):
    assert 0 <= int(read_traits(text)) < 2**15


def test_of_a_long_text_both_ends_are_read_and_the_middle_is_not():
    filler = "blue. " * 1000
    assert T.NUMBER in read_traits(f"12 eggs. {filler}")
    assert T.NUMBER in read_traits(f"{filler} 12 eggs.")
    assert T.NUMBER not in read_traits(f"{filler} 12 eggs. {filler}")
    assert T.ENDS_ASKING in read_traits(f"{filler} Is it?")


def stored():
    return dict(Drawer.objects.order_by("pk").values_list("text", "traits"))


def test_mining_and_reindexing_store_the_same(palace):
    for one in EVERYTHING:
        mine(palace, one)
    mined = stored()
    assert mined == {text: int(read_traits(text)) for text in mined}
    assert any(mined.values())
    Drawer.objects.update(traits=0)
    call_command("reindex", user=palace.owner.username, verbosity=0)
    assert stored() == mined


@pytest.mark.parametrize("migration", ["0008_drawer_traits", "0022_asks_or_quotes_only"])
def test_drawers_from_before_there_were_traits_get_theirs(palace, migration):
    mine(palace, transcript("Where do I live?", "In Lisbon, since 2019."))
    first = Drawer.objects.order_by("pk")[0]
    # More than are read at once, one that waits to be mined, and one in the trash.
    texts = [f"I saw {number} swans?" for number in range(1005)]
    Drawer.objects.bulk_create(copies(first, texts))
    waits, trashed = Drawer.objects.order_by("-pk")[:2]
    Drawer.objects.filter(pk=waits.pk).update(mined_at=None)
    trashed.trash()
    Drawer.objects.update(traits=0)
    with connection.schema_editor() as editor:
        import_module(f"palace.migrations.{migration}").read_all(apps, editor)
    found = stored()
    assert found.pop(waits.text) == 0
    assert found == {text: int(read_traits(text)) for text in found}
    assert T.ENDS_ASKING in T(found[trashed.text])


def copies(drawer, texts):
    for number, text in enumerate(texts, start=1000):
        yield Drawer(
            palace=drawer.palace,
            room=drawer.room,
            closet=drawer.closet,
            number=number,
            source=drawer.source,
            conversation=drawer.conversation,
            external_id=f"copy-{number}",
            position=number,
            role="user",
            text=text,
            said_at=drawer.said_at,
            mined_at=drawer.mined_at,
        )
