"""The timeline of a wing: its conversations, and what was learnt from them."""

from __future__ import annotations

import html
import re

import pytest
from django.urls import reverse

from palace.models import Fact
from palace.views.shared.moments import STORY_SIZE
from tests.factories import (
    DrawerFactory,
    EntityFactory,
    EvidenceFactory,
    FactFactory,
    RoomFactory,
    WingFactory,
)
from tests.views.conftest import moment

HTMX = {"HX-Request": "true"}


def timeline(wing):
    return reverse("wing_timeline", args=[wing.uuid])


def lines(response):
    """Title and texts of all moments, in order."""
    found = re.findall(r'class="fact-text"><a[^>]*>(.*?)</a>', response.text)
    return [html.unescape(text) for text in found]


@pytest.fixture
def learn(ann):
    """Something learnt from a message."""

    def learn(drawer, text, **values):
        fact = FactFactory(subject=ann, text=text, **values)
        EvidenceFactory(fact=fact, drawer=drawer)
        return fact

    return learn


@pytest.fixture
def talk(wing):
    """A conversation of one message in this wing."""

    def talk(year, title):
        said_at = moment(year)
        room = RoomFactory(wing=wing, title=title, started_at=said_at, ended_at=said_at)
        return DrawerFactory(room=room, said_at=said_at)

    return talk


def test_it_has_conversations_and_facts_by_year_the_latest_first(alices, wing, talk, learn):
    first, second = talk(2021, "The first ride"), talk(2024, "A new battery")
    learn(first, "Ann owns an efoil", valid_from=moment(2022))
    learn(
        second,
        "Ann rented a garage",
        valid_from=moment(2020),
        valid_to=moment(2023),
        retired_at=moment(2023),
        fate=Fact.Fate.ENDED,
    )
    learn(second, "Ann is tall")
    response = alices.get(timeline(wing))
    assert lines(response) == [
        "A new battery",
        "Ann rented a garage",
        "Ann owns an efoil",
        "The first ride",
        "Ann rented a garage",
        "Ann is tall",
    ]
    years = re.findall(r'class="year">(.*?)</h3>', response.text)
    assert years == ["2024", "2023", "2022", "2021", "2020", "Since when is not known"]


def test_it_says_where_an_opinion_turned_in_the_readers_person(alices, wing, talk, palace):
    you = EntityFactory(palace=palace, name="User", slug="user")
    opinion = {"subject": you, "type": "opinion", "predicate": "thinks_of"}
    was = FactFactory(
        **opinion,
        text="User loves foiling",
        stance="positive",
        valid_from=moment(2020),
        valid_to=moment(2023),
        retired_at=moment(2023),
        fate=Fact.Fate.SUPERSEDED,
    )
    now = FactFactory(
        **opinion,
        text="User is tired of foiling",
        stance="negative",
        valid_from=moment(2023),
        supersedes=was,
    )
    EvidenceFactory(fact=now, drawer=talk(2023, "Enough"))
    said = alices.get(timeline(wing)).text
    assert "Changed opinion" in said
    assert re.search(r"Before: <a [^>]+>You love foiling</a>", said)


def test_what_was_learnt_elsewhere_deleted_or_trashed_is_not_in_it(
    alices, wing, talk, learn, palace
):
    talk(2024, "Still here")
    gone = talk(2023, "Gone")
    learn(gone, "Ann sold the board")
    gone.trash()
    elsewhere = DrawerFactory(room=RoomFactory(wing=WingFactory(palace=palace), title="Elsewhere"))
    learn(elsewhere, "Ann lives in Rome")
    wrong = {"retired_at": moment(2024), "fate": Fact.Fate.DELETED}
    learn(talk(2022, "Also here"), "Ann hates water", **wrong)
    assert lines(alices.get(timeline(wing))) == ["Still here", "Also here"]


def test_a_long_one_comes_a_part_at_a_time(alices, wing, talk, learn):
    drawer = talk(1999, "The beginning")
    for number in range(STORY_SIZE + 2):
        learn(drawer, f"Number {number}", valid_from=moment(2000 + number))
    first = alices.get(timeline(wing))
    following = html.unescape(re.search(r'hx-get="([^"]+)"[^>]*>Show what was', first.text)[1])
    rest = alices.get(following, headers=HTMX)
    assert "<html" not in rest.text
    assert lines(rest) == ["Number 1", "Number 0", "The beginning"]
    assert "Back to the latest" in alices.get(following).text
    assert alices.get(f"{timeline(wing)}?story=999999999999").status_code == 200


def test_it_takes_the_same_few_queries_however_much_there_is(
    alices, wing, talk, learn, django_assert_max_num_queries
):
    for number in range(5):
        learn(talk(2000 + number, f"Talk {number}"), f"Number {number}", valid_from=moment(2020))
    with django_assert_max_num_queries(11):
        assert len(lines(alices.get(timeline(wing)))) == 10


def test_a_wings_page_leads_there_and_back(alices, wing, drawer):
    assert f'href="{timeline(wing)}"' in alices.get(wing.get_absolute_url()).text
    assert f'href="{wing.get_absolute_url()}"' in alices.get(timeline(wing)).text


def test_an_empty_wing_says_so_and_a_strangers_is_not_found(alices, bobs, wing):
    assert "nothing in this wing any more" in alices.get(timeline(wing)).text
    assert bobs.get(timeline(wing)).status_code == 404
