"""The list of facts."""

from __future__ import annotations

import html
import re
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.urls import reverse

from palace.knowledge.facts.fact_learning import remember
from palace.models import Drawer, Fact
from palace.views.shared.query_params import PAGE_SIZE
from settings_app.models import MemorySettings
from tests.factories import (
    DrawerFactory,
    EntityFactory,
    EvidenceFactory,
    FactFactory,
)
from tests.views.conftest import FACTS, LEARNT, address, listed, moment, was_so

HTMX = {"HX-Request": "true"}


def test_a_fact_is_listed_with_what_it_is_and_the_words_it_rests_on(alices, fact, said):
    text = alices.get(FACTS).text
    assert listed(alices.get(FACTS)) == ["You live in Lisbon"]
    assert "home / place" in text
    assert "since 1 Mar 2025" in text
    assert "<q>I live in Lisbon</q>" in text
    assert f'href="{said.get_absolute_url()}?passage=6-22#text"' in text
    assert f'href="{reverse("entity_detail", args=[fact.subject.uuid])}"' in text


def test_a_category_that_only_repeats_the_type_is_not_said(alices, user):
    tea = FactFactory(subject=user, type="preference", category="preferences")
    for page in (FACTS, tea.get_absolute_url()):
        text = alices.get(page).text
        assert "Preference" in text
        assert "category=preferences" not in text


def test_what_was_learnt_last_comes_first(alices, user):
    for day in range(1, 4):
        FactFactory(subject=user, text=f"Day {day}", recorded_at=moment(2025, 1, day))
    assert listed(alices.get(FACTS)) == ["Day 3", "Day 2", "Day 1"]


@pytest.mark.parametrize("words", ["where do I live", "Where do you live?", "my home town"])
def test_a_fact_is_found_by_its_meaning(alices, palace, words):
    for text in ("I live in Totterdown.", "I work at the River Trust.", "I love cold water."):
        remember(palace, text)
    page = alices.get(FACTS, {"q": words})
    assert "Close in meaning" in page.text
    assert listed(page)[0] == "You live in Totterdown"


def test_far_from_the_closest_nothing_is_close(alices, palace):
    for text in ("I live in Totterdown.", "I work at the River Trust.", "I love cold water."):
        remember(palace, text)
    near = listed(alices.get(FACTS, {"q": "where do I live"}))
    assert near[0] == "You live in Totterdown"
    assert "You love cold water" not in near
    assert listed(alices.get(FACTS, {"q": "quantum chromodynamics"})) == []


def test_without_facts_the_page_says_where_they_come_from(alices):
    response = alices.get(FACTS)
    assert "There are no facts yet." in response.text
    assert "Search your facts" not in response.text
    searched = alices.get(FACTS, {"q": "Lisbon"}).text
    assert "No fact matches." in searched
    assert "Search your facts" in searched


def test_where_none_is_active_the_others_can_be_searched(alices, user):
    FactFactory(subject=user, retired_at=moment(2025), fate=Fact.Fate.ENDED)
    page = alices.get(FACTS)
    assert listed(page) == []
    assert "Search your facts" in page.text
    assert "It may be inactive" in page.text


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, {"lives", "likes"}),
        ({"type": "preference"}, {"likes"}),
        ({"type": "nothing"}, {"lives", "likes"}),
        ({"q": "LISBON user"}, {"lives"}),
        ({"q": "100%"}, set()),
        ({"q": "a\0b"}, set()),
        ({"about": "lisb"}, {"lives"}),
        ({"about": "Olisipo"}, {"lives"}),
        ({"about": "nobody"}, set()),
        ({"category": "home"}, {"lives"}),
        ({"category": "home/place/"}, {"lives"}),
        ({"category": "home/pl"}, set()),
        ({"state": "dropped"}, {"lived"}),
        ({"state": "all"}, {"lives", "likes", "lived"}),
        ({"as_of": "2024-06-01"}, {"lived", "likes"}),
        ({"as_of": "2025-03-01"}, {"lives", "likes"}),
        ({"as_of": "2025-02-28", "clock": "known"}, {"lived"}),
        ({"as_of": "0001-01-01"}, {"likes"}),
        ({"as_of": "9999-12-31"}, {"lives", "likes"}),
    ],
)
def test_the_list_is_narrowed(alices, fact, lisbon, asked, found):
    lisbon.aliases = ["Olisipo"]
    lisbon.save()
    FactFactory(subject=fact.subject, type="preference", text="User likes tea", recorded_at=LEARNT)
    was_so(fact.subject, valid_from=moment(2020), recorded_at=moment(2020))
    texts = {"lives": "You live in Lisbon", "likes": "You like tea", "lived": "You lived in Porto"}
    assert set(listed(alices.get(FACTS, asked))) == {texts[name] for name in found}


def test_all_about_one_entity_can_be_asked_for(alices, fact, lisbon):
    FactFactory(subject=fact.subject, text="User likes tea")
    response = alices.get(FACTS, {"entity": lisbon.uuid})
    assert listed(response) == ["You live in Lisbon"]
    assert "About everybody and everything" in response.text
    assert alices.get(FACTS, {"entity": "nonsense"}).status_code == 404


def test_a_strangers_entity_narrows_nothing(bobs, fact, lisbon):
    assert bobs.get(FACTS, {"entity": lisbon.uuid}).status_code == 404
    assert fact.text not in bobs.get(FACTS).text


@pytest.mark.parametrize("day", ["yesterday", "2024-13-01", "<b>"])
def test_a_day_that_is_none_is_said_beside_the_field(alices, fact, day):
    response = alices.get(FACTS, {"as_of": day})
    assert response.status_code == 400
    assert f"“{html.escape(day)}” is no day. Write it like 2024-05-31." in response.text
    assert 'aria-invalid="true"' in response.text


def test_a_day_ends_when_it_does_where_the_reader_lives(alices, alice, user):
    FactFactory(subject=user, text="Late", valid_from=datetime(2025, 5, 2, 3, tzinfo=UTC))
    assert listed(alices.get(FACTS, {"as_of": "2025-05-01"})) == []
    MemorySettings.objects.update_or_create(owner=alice, defaults={"time_zone": "America/New_York"})
    assert listed(alices.get(FACTS, {"as_of": "2025-05-01"})) == ["Late"]


def test_a_long_list_goes_on_behind_the_last_of_a_page(alices, user):
    for number in range(PAGE_SIZE + 2):
        FactFactory(subject=user, text=f"Number {number}", recorded_at=LEARNT)
    first = alices.get(FACTS, {"q": "Number"})
    following = html.unescape(re.search(r'hx-get="([^"]+)"', first.text)[1])
    rest = alices.get(following, headers=HTMX)
    assert "<html" not in rest.text
    assert len(listed(first)) == PAGE_SIZE
    assert listed(rest) == ["Number 1", "Number 0"]
    whole = alices.get(following)
    assert "Back to the beginning" in whole.text
    for none in ("nonsense", uuid.uuid4()):
        assert listed(alices.get(FACTS, {"after": none})) == listed(first)


def test_the_number_of_queries_does_not_grow_with_the_list(
    alices, fact, django_assert_max_num_queries
):
    for number in range(PAGE_SIZE - 1):
        made = FactFactory(subject=EntityFactory(palace=fact.palace), text=f"Number {number}")
        for drawer in DrawerFactory.create_batch(2, room=Drawer.objects.first().room):
            EvidenceFactory(fact=made, drawer=drawer)
    with django_assert_max_num_queries(7):
        assert len(listed(alices.get(FACTS))) == PAGE_SIZE


def test_words_in_the_trash_are_not_shown(alices, fact, said):
    said.trash()
    for page in (FACTS, address(fact)):
        text = alices.get(page).text
        assert "I live in Lisbon" not in text
        assert "a drawer in the trash" in text


def test_time_goes_by_the_day_it_is_read(alices, user):
    FactFactory(subject=user, text="To come", valid_from=datetime.now(UTC) + timedelta(days=900))
    over = {"valid_from": moment(2020), "valid_to": moment(2021)}
    FactFactory(subject=user, text="Over", **over)
    text = alices.get(FACTS).text
    assert "<span>from " in text
    assert "1 Jan 2020 – 1 Jan 2021" in text
    assert '<span class="fate">ended</span>' in text
