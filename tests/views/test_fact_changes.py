"""All changes of facts in one list: newest first, narrowed down, each with its words."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.urls import reverse

from palace.knowledge.facts.fact_edits import delete, forget, restore, rewrite
from palace.knowledge.facts.fact_extraction import Scope
from palace.knowledge.facts.fact_learning import remember
from palace.models import Entity, Fact, FactEvent, Palace
from palace.views.shared.query_params import PAGE_SIZE
from settings_app.models import MemorySettings
from tests.furnished_palaces import furnish

CHANGES = "/memory/facts/changes/"
HTMX = {"HX-Request": "true"}
JANUARY = datetime(2024, 1, 10, 9, 0, tzinfo=UTC)
BY_PERSON = Scope("person")


@pytest.fixture
def lived(palace):
    """She lived in Porto, moved to Lisbon, and has a cat."""

    def live(palace):
        for days, text in enumerate(("I live in Porto.", "I live in Lisbon now.", "I own a boat.")):
            remember(palace, text, now=JANUARY + timedelta(days=days))

    return furnish(palace, "lived", live)


def rows(response):
    return re.findall(r'<li>\s*<p class="when">(.*?)</li>', response.text, re.S)


def kinds(response):
    return re.findall(r"<strong>(\w+)</strong>", response.text)


def entity(name):
    return Entity.objects.get(name=name)


def test_changes_come_newest_first_with_old_and_new_text_and_the_words(alices, lived):
    page = alices.get(CHANGES)
    assert kinds(page) == ["Learnt", "Changed", "Learnt"]
    changed = rows(page)[1]
    assert "<del>You live in Porto</del>" in changed
    assert "<ins>You live in Lisbon</ins>" in changed
    # The heads say so already.
    assert not re.search("New fact|It has changed|by Loci", "".join(rows(page)))
    assert "<q>I live in Lisbon now" in changed
    fact = Fact.objects.active().get(predicate="lives_in")
    assert f'href="{fact.get_absolute_url()}"' in changed
    first = rows(page)[2]
    assert "<q>I live in Porto" in first
    assert "<del>" not in first


def test_one_is_led_there_from_the_facts_and_from_whom_they_are_about(alices, lived):
    assert f'href="{CHANGES}"' in alices.get(reverse("facts")).text
    user = entity("User")
    assert f'href="{CHANGES}?entity={user.uuid}"' in alices.get(user.get_absolute_url()).text


def test_what_was_dropped_and_restored_is_shown_with_who_did_it(alices, lived):
    fact = Fact.objects.active().get(predicate="owns")
    delete(lived, fact.memory, BY_PERSON)
    restore(lived, Fact.objects.get(memory=fact.memory), BY_PERSON)
    page = alices.get(CHANGES)
    assert kinds(page)[:3] == ["Learnt", "Dropped", "Learnt"]
    again, dropped, *_ = rows(page)
    assert "by you" in dropped
    assert "<q>I own a boat" in again
    assert "<q>I own a boat" in dropped


@pytest.mark.parametrize(
    ("kind", "headings"), [("ADD", ["Learnt", "Learnt"]), ("UPDATE", ["Changed"]), ("DELETE", [])]
)
def test_changes_of_one_kind(alices, lived, kind, headings):
    page = alices.get(CHANGES, {"kind": kind})
    assert kinds(page) == headings
    assert re.search(rf'href="{CHANGES}\?kind={kind}" aria-current="page"', page.text)


def test_changes_about_one_thing_or_of_one_matter(alices, lived):
    assert kinds(alices.get(CHANGES, {"entity": str(entity("Lisbon").uuid)})) == [
        "Changed",
        "Learnt",
    ], "The story of a memory that led there."
    assert kinds(alices.get(CHANGES, {"predicate": "Lives in"})) == ["Changed", "Learnt"]
    assert kinds(alices.get(CHANGES, {"about": "lisb"})) == ["Changed", "Learnt"]
    both = {"entity": str(entity("User").uuid), "predicate": "owns", "kind": "ADD"}
    assert kinds(alices.get(CHANGES, both)) == ["Learnt"]
    assert "No change matches." in alices.get(CHANGES, {"predicate": "speaks"}).text


def test_days_are_those_of_the_reader_and_both_are_included(alices, alice, lived):
    MemorySettings.objects.create(owner=alice, time_zone="Pacific/Auckland")
    event = FactEvent.objects.order_by("at").first()
    # In Auckland it is thirteen hours later: past midnight here, and not yet for the others.
    FactEvent.objects.filter(pk=event.pk).update(at=datetime(2024, 1, 31, 12, tzinfo=UTC))
    others = FactEvent.objects.exclude(pk=event.pk)
    others.update(at=datetime(2024, 1, 31, 9, tzinfo=UTC))
    assert len(kinds(alices.get(CHANGES, {"until": "2024-01-31"}))) == 2
    assert len(kinds(alices.get(CHANGES, {"since": "2024-02-01"}))) == 1
    assert len(kinds(alices.get(CHANGES, {"since": "2024-01-31", "until": "2024-02-01"}))) == 3


def test_a_bad_day_has_its_error_at_its_field(alices, lived):
    page = alices.get(CHANGES, {"since": "soon", "until": "2024-13-01"})
    assert page.status_code == 400
    headings = html.unescape(page.text)
    assert 'id="since-error">“soon” is no day.' in headings
    assert 'id="until-error">“2024-13-01” is no day.' in headings
    assert 'value="soon"' in headings


def test_a_long_list_goes_on_behind_a_change_of_the_same_moment(alices, palace):
    FactEvent.objects.bulk_create(
        FactEvent(
            palace=palace, memory=Fact().memory, event="ADD", new_text=f"No. {n}.", at=JANUARY
        )
        for n in range(PAGE_SIZE + 3)
    )
    first = alices.get(CHANGES)
    assert len(kinds(first)) == PAGE_SIZE
    onwards = html.unescape(re.search(r'hx-get="([^"]+)"', first.text)[1])
    rest = alices.get(onwards, headers=HTMX)
    assert "<h1>" not in rest.text
    assert re.findall(r"No. \d+\.", first.text + rest.text) == [
        f"No. {n}." for n in range(PAGE_SIZE + 2, -1, -1)
    ]
    assert "Back to the beginning" in alices.get(onwards).text
    assert len(kinds(alices.get(CHANGES, {"after": "nothing"}))) == PAGE_SIZE


def test_what_is_deleted_for_good_leaves_no_change(alices, lived):
    fact = Fact.objects.active().get(predicate="lives_in")
    forget(lived, Fact.objects.filter(memory=fact.memory))
    page = alices.get(CHANGES)
    assert kinds(page) == ["Learnt"]
    assert "Lisbon" not in page.text


def test_a_version_whose_words_are_gone_is_listed_without_them(alices, lived):
    fact = Fact.objects.active().get(predicate="lives_in")
    forget(lived, Fact.objects.filter(pk=fact.pk))
    changed = rows(alices.get(CHANGES))[1]
    assert "You live in Lisbon" not in changed
    event = FactEvent.objects.get(event="UPDATE")
    FactEvent.objects.filter(pk=event.pk).update(old_text=None)
    assert "What it said is deleted for good." in rows(alices.get(CHANGES))[1]


def test_without_any_change_it_says_where_facts_come_from(alices, palace):
    assert "Nothing was learnt yet." in alices.get(CHANGES).text


def test_a_stranger_sees_nothing_of_it(bobs, bob, lived):
    assert "Nothing was learnt yet." in bobs.get(CHANGES).text
    assert bobs.get(CHANGES, {"entity": str(entity("User").uuid)}).status_code == 404
    mark = FactEvent.objects.order_by("-at").first()
    remember(Palace.objects.own(bob), "I own a kite.")
    assert kinds(bobs.get(CHANGES, {"after": str(mark.uuid)})) == ["Learnt"]


def test_the_page_costs_the_same_however_much_it_shows(
    alices, lived, django_assert_max_num_queries
):
    fact = Fact.objects.active().get(predicate="owns")
    for number in range(6):
        rewrite(lived, fact.memory, f"User owns {number} boats", BY_PERSON)
    with django_assert_max_num_queries(14):
        assert len(kinds(alices.get(CHANGES))) == 9
