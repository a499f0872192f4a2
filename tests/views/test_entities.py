"""People, places and things: the list by kind, and the page of one of them."""

from __future__ import annotations

import html
import re
import uuid

import pytest
from django.urls import reverse

from palace.models import Fact
from palace.views.entities.views import MENTIONS_SIZE, OF_A_KIND
from palace.views.shared.moments import STORY_SIZE
from palace.views.shared.query_params import PAGE_SIZE
from tests.factories import (
    DrawerFactory,
    EntityFactory,
    EvidenceFactory,
    FactFactory,
    MentionFactory,
    RoomFactory,
)
from tests.views.conftest import moment
from tests.views.entity_pages import edge, known, names, page, section

HTMX = {"HX-Request": "true"}
ENTITIES = "/memory/people-and-things/"


# The list.


def test_they_are_shown_by_kind_with_how_much_is_known(alices, ann, acme, works, drawer):
    MentionFactory(entity=ann, drawer=drawer, end=3)
    MentionFactory(entity=ann, drawer=DrawerFactory(room=drawer.room), end=3)
    response = alices.get(ENTITIES)
    assert re.findall(r"<h2[^>]*>(.*?)</h2>", response.text) == ["People", "Organisations"]
    assert names(response) == ["Ann", "Acme & Co"]
    assert "also Annie, A. Berg" in response.text
    assert response.text.count("1 fact<") == 2
    assert "named 2 times" in response.text


def test_pets_have_a_list_and_an_icon_of_their_own(alices, ann, palace):
    biscuit = EntityFactory(palace=palace, name="Biscuit", slug="biscuit", kind="pet")
    response = alices.get(ENTITIES)
    assert re.findall(r"<h2[^>]*>(.*?)</h2>", response.text) == ["People", "Pets"]
    assert names(alices.get(ENTITIES, {"kind": "pet"})) == ["Biscuit"]
    assert "#pet" in response.text
    assert ">Pet<" in alices.get(biscuit.get_absolute_url()).text
    alike = EntityFactory(palace=palace, name="Biscuit Berg", slug="biscuit-berg")
    shown = alices.get(reverse("entity_edit", args=[alike.uuid])).text
    assert str(biscuit.uuid) in shown


def test_what_is_in_the_trash_is_not_counted(alices, ann, drawer):
    MentionFactory(entity=ann, drawer=drawer, end=3)
    drawer.trash()
    assert "named" not in alices.get(ENTITIES).text.partition("</nav>")[2].partition("<ul")[2]


def test_without_any_the_page_says_where_they_come_from(alices):
    text = alices.get(ENTITIES).text
    assert "No people or things yet." in text
    assert "Search by name" not in text
    searched = alices.get(ENTITIES, {"q": "Ann"}).text
    assert "No name matches." in searched
    assert "Search by name" in searched


def test_whom_you_spoke_of_as_yours_is_yours(alices, palace):
    dad = EntityFactory(palace=palace, name="User's dad", slug="user-s-dad")
    assert names(alices.get(ENTITIES)) == ["Your dad"]
    assert names(alices.get(ENTITIES, {"q": "your dad"})) == ["Your dad"]
    assert "<h1>Your dad</h1>" in alices.get(dad.get_absolute_url()).text


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"q": "ann"}, ["Ann"]),
        ({"q": "annie"}, ["Ann"]),
        ({"q": "co acme"}, ["Acme & Co"]),
        ({"q": "a\0b%"}, []),
        ({"kind": "organisation"}, ["Acme & Co"]),
        ({"kind": "organisation", "q": "ann"}, []),
        ({"kind": "nothing"}, ["Ann", "Acme & Co"]),
    ],
)
def test_they_are_found_by_name_and_kind(alices, ann, acme, asked, found):
    assert names(alices.get(ENTITIES, asked)) == found


def test_of_each_kind_the_first_are_shown_and_the_rest_a_page_at_a_time(alices, palace):
    for number in range(PAGE_SIZE + 2):
        EntityFactory(palace=palace, name=f"P{number:02}", slug=f"p{number:02}")
    overview = alices.get(ENTITIES)
    assert len(names(overview)) == OF_A_KIND
    assert f'href="{ENTITIES}?kind=person"' in overview.text
    first = alices.get(ENTITIES, {"kind": "person"})
    assert len(names(first)) == PAGE_SIZE
    following = html.unescape(re.search(r'hx-get="([^"]+)"', first.text)[1])
    rest = alices.get(following, headers=HTMX)
    assert "<html" not in rest.text
    assert names(rest) == [f"P{PAGE_SIZE}", f"P{PAGE_SIZE + 1}"]
    assert "Back to the beginning" in alices.get(following).text
    nowhere = alices.get(ENTITIES, {"kind": "person", "after": uuid.uuid4()})
    assert names(nowhere) == names(first)


def test_the_number_of_queries_does_not_grow_with_the_list(
    alices, palace, django_assert_max_num_queries
):
    for number in range(30):
        kind = ("person", "place", "item")[number % 3]
        one = EntityFactory(palace=palace, kind=kind)
        FactFactory(subject=one)
    for asked in ({}, {"kind": "person"}):
        with django_assert_max_num_queries(9):
            assert alices.get(ENTITIES, asked).status_code == 200


# One of them.


def test_a_page_shows_names_and_what_is_known(alices, ann, works):
    FactFactory(subject=ann, text="Ann likes tea", type="preference")
    FactFactory(subject=ann, text="Ann visited Rome", type="event", valid_from=moment(2023))
    dropped = {"retired_at": moment(2024), "fate": Fact.Fate.CORRECTED}
    FactFactory(subject=ann, text="Ann likes coffee", **dropped)
    response = alices.get(page(ann))
    assert "Also called Annie, A. Berg." in response.text
    assert known(response) == ["Ann likes tea", "Ann works at Acme"]
    assert "Ann visited Rome" in section(response, "story")
    assert "Ann likes coffee" not in response.text


def test_facts_are_selected_on_the_page_of_a_person(alices, ann, works):
    text = alices.get(page(ann)).text
    assert f'form="selected" type="checkbox" name="fact" value="{works.memory}"' in text
    assert f'action="{reverse("selected_facts")}"' in text


def test_the_timeline_has_what_was_so_before_latest_first(alices, ann, works):
    ended = {"fate": Fact.Fate.ENDED, "retired_at": moment(2024)}
    FactFactory(
        subject=ann, text="Ann studied", valid_from=moment(2019), valid_to=moment(2022), **ended
    )
    FactFactory(subject=ann, text="Ann is tall")
    shown = section(alices.get(page(ann)), "story")
    years = re.findall(r'class="year">(.*?)</h3>', shown)
    assert years == ["2024", "2022", "2019", "Since when is not known"]
    order = [shown.index(text) for text in ("Ann works at Acme", "Ann studied", "Ann is tall")]
    assert order == sorted(order)
    assert re.findall(r"1 Jan \d+(?: – 1 Jan \d+)?", shown)[1:] == [
        "1 Jan 2022",
        "1 Jan 2019 – 1 Jan 2022",
    ]
    assert "Ended" in shown


def test_the_timeline_has_the_conversations_that_name_them(alices, ann, room):
    for said_at in (moment(2023, 5), moment(2023, 2)):
        MentionFactory(entity=ann, drawer=DrawerFactory(room=room, said_at=said_at), end=3)
    trashed = DrawerFactory(room=RoomFactory(wing=room.wing, title="Gone"))
    MentionFactory(entity=ann, drawer=trashed, end=3)
    trashed.trash()
    shown = section(alices.get(page(ann)), "story")
    assert shown.count("Evening by the lake") == 1
    assert "1 Feb 2023" in shown
    assert "Gone" not in shown


def test_the_timeline_says_where_an_opinion_turned(alices, ann):
    opinion = {"subject": ann, "type": "opinion", "predicate": "thinks_of"}
    was = FactFactory(
        **opinion,
        text="Ann loves jazz",
        stance="positive",
        valid_from=moment(2020),
        valid_to=moment(2023),
        retired_at=moment(2023),
        fate=Fact.Fate.SUPERSEDED,
    )
    FactFactory(
        **opinion,
        text="Ann is tired of jazz",
        stance="negative",
        valid_from=moment(2023),
        supersedes=was,
    )
    shown = section(alices.get(page(ann)), "story")
    assert "Changed opinion" in shown
    assert re.search(r"Before: <a [^>]+>Ann loves jazz</a>", shown)


def test_a_long_timeline_comes_a_part_at_a_time(alices, ann):
    for number in range(STORY_SIZE + 3):
        FactFactory(subject=ann, text=f"Number {number}", valid_from=moment(2000 + number))
    first = alices.get(page(ann))
    following = html.unescape(re.search(r'hx-get="([^"]+)"', section(first, "story"))[1])
    rest = alices.get(following, headers=HTMX)
    assert "<html" not in rest.text
    assert re.findall(r"Number \d+", rest.text) == ["Number 2", "Number 1", "Number 0"]
    assert "Back to the latest" in alices.get(following).text
    assert alices.get(f"{page(ann)}?story=999999999999").status_code == 200


def test_mentions_are_shown_with_the_words_and_lead_there(alices, ann, drawer):
    text = f"{'Long before. ' * 20}I met Ann <there>. {'And after. ' * 60}"
    start = text.index("Ann")
    said = DrawerFactory(room=drawer.room, text=text, said_at=moment(2025))
    for at in (start, start + 1):
        MentionFactory(entity=ann, drawer=said, start=at, end=at + 3)
    shown = section(alices.get(page(ann)), "mentions")
    assert shown.count("<mark>") == 1
    assert "I met <mark>Ann</mark> &lt;there&gt;." in shown
    # Cut between words, with the dots on the line of the word beside them.
    assert re.search(r">…\xa0(Long|before\.) ", shown)
    assert re.search(r"(And|after\.)\xa0…</p>", shown)
    assert f'href="{said.get_absolute_url()}?passage={start}-{start + 3}#passage"' in shown
    assert str(said.pointer) in shown
    said.trash()
    assert section(alices.get(page(ann)), "mentions") == ""


def test_many_mentions_come_a_part_at_a_time_the_latest_first(alices, ann, drawer):
    for number in range(MENTIONS_SIZE + 2):
        said = DrawerFactory(room=drawer.room, text=f"Ann {number}.", said_at=moment(2000 + number))
        MentionFactory(entity=ann, drawer=said, end=3)
    first = section(alices.get(page(ann)), "mentions")
    assert first.count("<mark>") == MENTIONS_SIZE
    following = html.unescape(re.search(r'hx-get="([^"]+)"', first)[1])
    rest = alices.get(following, headers=HTMX).text
    assert re.findall(r"</mark> (\d+)", rest) == ["1", "0"]


# As of a day.


def test_a_day_changes_what_is_known_and_connected(alices, ann, acme, works, palace):
    beta = EntityFactory(palace=palace, kind="organisation", name="Beta", slug="beta")
    before = {
        "valid_from": moment(2020),
        "valid_to": moment(2024),
        "retired_at": moment(2024),
        "fate": Fact.Fate.SUPERSEDED,
    }
    edge(ann, beta, "Ann works at Beta", "works_at", **before)
    then = alices.get(page(ann), {"as_of": "2022-06-01"})
    assert "What was true on 1 June 2022" in then.text
    assert known(then) == ["Ann works at Beta"]
    assert "Acme" not in section(then, "connections")
    assert f'href="{page(beta)}?as_of=2022-06-01&amp;basis=true"' in section(then, "connections")
    assert known(alices.get(page(ann), {"as_of": "2024-01-01"})) == ["Ann works at Acme"]
    of_beta = alices.get(page(beta), {"as_of": "2022-06-01"}).text
    assert "Only the connections below." in of_beta
    assert "Nothing is known for that day." in alices.get(page(ann), {"as_of": "2019-01-01"}).text


@pytest.mark.parametrize("day", ["soon", "2024-02-30", "a\0b"])
def test_a_day_that_is_none_is_said_beside_the_field(alices, ann, works, day):
    response = alices.get(page(ann), {"as_of": day})
    assert response.status_code == 400
    assert "is no day. Write it like 2024-05-31." in response.text
    assert known(response) == ["Ann works at Acme"]


def test_on_a_day_only_words_said_by_then_may_count(alices, ann, palace, room):
    acme = EntityFactory(palace=palace, kind="organisation", name="Acme", slug="acme")
    work = edge(ann, acme, "Ann works at Acme", "works_at", valid_from=moment(2022))
    EvidenceFactory(fact=work, drawer=DrawerFactory(room=room, said_at=moment(2024)))
    day = {"as_of": "2023-01-01"}
    assert known(alices.get(page(ann), day)) == ["Ann works at Acme"]
    then = alices.get(page(ann), {**day, "basis": "said"})
    assert known(then) == []
    assert "connections-title" not in then.text


def test_the_number_of_queries_does_not_grow_with_what_is_known(
    alices, palace, ann, drawer, django_assert_max_num_queries
):
    for number in range(20):
        other = EntityFactory(palace=palace)
        made = edge(ann, other, f"Number {number}", valid_from=moment(2000 + number))
        said = DrawerFactory(room=drawer.room)
        EvidenceFactory(fact=made, drawer=said)
        MentionFactory(entity=ann, drawer=said, end=3)
    with django_assert_max_num_queries(18):
        assert alices.get(page(ann)).status_code == 200
    # Where the name is said, is known until the palace changes.
    with django_assert_max_num_queries(17):
        assert alices.get(page(ann)).status_code == 200


# The reader.


@pytest.fixture
def reader(palace):
    return EntityFactory(palace=palace, name="User", slug="user")


def test_the_reader_is_you_and_is_found_as_you(alices, reader, ann):
    edge(reader, ann, "User knows Ann")
    assert names(alices.get(ENTITIES)) == ["Ann", "You"]
    assert names(alices.get(ENTITIES, {"q": "you"})) == ["You"]
    assert "<h1>You</h1>" in alices.get(page(reader)).text
    facts = alices.get(reverse("facts"), {"about": "you"}).text
    assert "about </span>You</a>" in facts
    assert "You, knows, person: You know Ann" in alices.get(page(ann)).text


def test_a_thing_called_user_is_not_the_reader(alices, palace):
    thing = EntityFactory(palace=palace, kind="item", name="User", slug="user")
    assert "<h1>User</h1>" in alices.get(page(thing)).text
