"""The drawing of what is connected with a person, place or thing, and its list."""

from __future__ import annotations

import html

import pytest

from palace.views.entities.connections import NEIGHBOURS_SHOWN, ROW, best_connected, rows_of
from tests.factories import (
    EntityFactory,
)
from tests.views.entity_pages import edge, page, section


def test_connections_are_drawn_and_listed_alike(alices, palace, ann, acme, works):
    tom = EntityFactory(palace=palace, name="Tom <T>", slug="tom")
    edge(tom, ann, "Tom is a friend of Ann", "friend_of")
    edge(tom, acme, "Tom works at Acme", "works_at")
    shown = section(alices.get(page(ann)), "connections")
    drawing, _, listing = shown.partition("</svg>")
    assert '<title id="graph-name">Connections of Ann</title>' in drawing
    seen = ((acme, "works at", "Ann works at Acme"), (tom, "friend of", "Tom is a friend of Ann"))
    for other, predicate, said in seen:
        label = f"{html.escape(other.name)}, {predicate}, {other.kind}: {said}"
        assert f'href="{page(other)}" aria-label="{label}"' in drawing
        assert f'href="{page(other)}"' in listing
        assert said in listing
    assert drawing.count('class="spoke"') == 2
    assert drawing.count('class="chord"') == 1
    assert "Tom works at Acme" in listing
    assert "Between them" in listing


def test_who_is_connected_several_times_is_drawn_once(alices, ann, acme, works):
    edge(acme, ann, "Acme employs Ann", "employs")
    edge(ann, ann, "Ann knows herself")
    shown = section(alices.get(page(ann)), "connections")
    assert shown.count('class="node"') == 1
    assert ">employs +1<" in shown


def test_no_more_are_drawn_than_can_be_read(alices, palace, ann):
    for number in range(30):
        edge(ann, EntityFactory(palace=palace, name=f"A rather long name {number}"), "Text")
    shown = section(alices.get(page(ann)), "connections")
    assert shown.count('class="node"') == NEIGHBOURS_SHOWN
    assert "Those with the most said of them" in shown
    assert "A rather long name 29" in shown


def test_neighbours_of_neighbours_are_drawn_and_listed(alices, palace, ann, acme, works):
    tom = EntityFactory(palace=palace, name="Tom", slug="tom")
    cat = EntityFactory(palace=palace, name="Minka", slug="minka")
    edge(ann, tom, "Ann is a friend of Tom", "friend_of")
    edge(tom, cat, "Tom has a cat named Minka", "has_cat")
    shown = section(alices.get(page(ann)), "connections")
    drawing, _, listing = shown.partition("</svg>")
    name = "Minka, has cat, person: Tom has a cat named Minka"
    assert f'href="{page(cat)}" aria-label="{name}"' in drawing
    assert drawing.count('class="spoke"') == 3
    assert "Tom has a cat named Minka" in listing


def test_who_is_two_steps_away_by_two_ways_is_drawn_once(alices, palace, ann, acme, works):
    tom, eve = (EntityFactory(palace=palace, name=name, slug=name) for name in ("tom", "eve"))
    far = EntityFactory(palace=palace, name="Far", slug="far")
    for near in (tom, eve):
        edge(ann, near, "They meet")
        edge(near, far, "They know each other")
    drawing = section(alices.get(page(ann)), "connections").partition("</svg>")[0]
    assert drawing.count(f'href="{page(far)}"') == 1


@pytest.mark.parametrize("sizes", [[], [0], [0, 0, 0], [2], [0, 2, 0], [2] * NEIGHBOURS_SHOWN])
def test_every_neighbour_has_rows_of_its_own(sizes):
    middles = rows_of(sizes)
    bottoms = [y + max(size, 1) * ROW // 2 for y, size in zip(middles, sizes, strict=True)]
    tops = [y - max(size, 1) * ROW // 2 for y, size in zip(middles, sizes, strict=True)]
    assert all(top >= bottom for top, bottom in zip(tops[1:], bottoms, strict=False))
    assert min(tops, default=0) >= 0


def test_those_linked_with_each_other_stand_together():
    weights = {"a": 5, "b": 4, "c": 3, "d": 2, "e": 1}
    assert best_connected(weights, [("d", "a"), ("e", "a")], at_most=4) == ["a", "d", "b", "c"]
