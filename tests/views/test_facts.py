"""The list of facts, one fact whole, and the ways to put it right."""

from __future__ import annotations

import html
import re
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.urls import reverse

from palace.facts.editing import delete, rewrite
from palace.facts.scope import Scope
from palace.models import Drawer, Evidence, Fact, FactEvent
from palace.views.rendering import PAGE_SIZE
from settings_app.models import MemorySettings
from tests.factories import (
    DrawerFactory,
    EntityFactory,
    EvidenceFactory,
    FactFactory,
    RoomFactory,
    WingFactory,
)

HTMX = {"HX-Request": "true"}
FACTS = "/memory/facts/"
LEARNT = datetime(2025, 3, 1, 12, tzinfo=UTC)
BY_PERSON = Scope("person")


def moment(year, month=1, day=1, hour=12):
    return datetime(year, month, day, hour, tzinfo=UTC)


@pytest.fixture
def user(palace):
    return EntityFactory(palace=palace, name="User", slug="user")


@pytest.fixture
def lisbon(palace):
    return EntityFactory(palace=palace, kind="place", name="Lisbon", slug="lisbon")


@pytest.fixture
def said(drawer):
    return DrawerFactory(
        room=drawer.room, text="Well: I live in Lisbon now,\r\nand <love> it.", said_at=LEARNT
    )


@pytest.fixture
def fact(user, lisbon, said):
    made = FactFactory(
        subject=user,
        predicate="lives_in",
        object="Lisbon",
        object_entity=lisbon,
        text="User lives in Lisbon",
        category="home/place",
        single=True,
        valid_from=LEARNT,
        recorded_at=LEARNT,
    )
    EvidenceFactory(fact=made, drawer=said, start=6, end=22)
    return made


def was_so(user, text="User lived in Porto", **values):
    """A fact that is held no longer, as something else took its place."""
    held = {"fate": Fact.Fate.SUPERSEDED, "retired_at": LEARNT, "valid_to": LEARNT}
    return FactFactory(subject=user, text=text, **{**held, **values})


def address(fact, action="fact_detail"):
    return reverse(action, args=[fact.memory])


def listed(response):
    found = re.findall(r'<p class="fact-text"><a href="[^"]+">(.*?)</a>', response.text)
    return [html.unescape(text) for text in found]


# The list.


def test_a_fact_is_listed_with_what_it_is_and_the_words_it_rests_on(alices, fact, said):
    text = alices.get(FACTS).text
    assert listed(alices.get(FACTS)) == ["User lives in Lisbon"]
    assert "home / place" in text
    assert "since 1 Mar 2025" in text
    assert "<q>I live in Lisbon</q>" in text
    assert f'href="{said.get_absolute_url()}?passage=6-22#text"' in text
    assert f'href="{reverse("entity_detail", args=[fact.subject.uuid])}"' in text


def test_what_was_learnt_last_comes_first(alices, user):
    for day in range(1, 4):
        FactFactory(subject=user, text=f"Day {day}", recorded_at=moment(2025, 1, day))
    assert listed(alices.get(FACTS)) == ["Day 3", "Day 2", "Day 1"]


def test_without_facts_the_page_says_where_they_come_from(alices):
    response = alices.get(FACTS)
    assert "There are no facts yet." in response.text
    assert "No fact is like that." in alices.get(FACTS, {"q": "Lisbon"}).text


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
    texts = {"lives": fact.text, "likes": "User likes tea", "lived": "User lived in Porto"}
    assert set(listed(alices.get(FACTS, asked))) == {texts[name] for name in found}


def test_all_about_one_entity_can_be_asked_for(alices, fact, lisbon):
    FactFactory(subject=fact.subject, text="User likes tea")
    response = alices.get(FACTS, {"entity": lisbon.uuid})
    assert listed(response) == [fact.text]
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
    for number in range(30):
        made = FactFactory(subject=EntityFactory(palace=fact.palace), text=f"Number {number}")
        for drawer in DrawerFactory.create_batch(2, room=Drawer.objects.first().room):
            EvidenceFactory(fact=made, drawer=drawer)
    with django_assert_max_num_queries(6):
        assert len(listed(alices.get(FACTS))) == 31


def test_words_in_the_trash_are_not_shown(alices, fact, said):
    said.trash()
    for page in (FACTS, address(fact)):
        text = alices.get(page).text
        assert "I live in Lisbon" not in text
        assert "a drawer in the trash" in text


# One fact.


def test_a_memory_shows_its_versions_as_they_followed_each_other(alices, fact):
    old = was_so(fact.subject, "User lives in Porto", memory=fact.memory, recorded_at=moment(2024))
    text = alices.get(address(fact)).text
    chain = re.findall(r'id="version-([^"]+)"', text)
    assert chain == [str(old.uuid), str(fact.uuid)]
    assert "Something else took its place" in text
    assert text.index("User lives in Porto") < text.index("Held today")


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


def test_opinions_are_told_by_aspect_and_drawn(alices, palace):
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
    assert text.index("Generics annoy User") < text.index("User likes generics now")
    assert text.count('class="stance positive"') == 2
    assert text.count('class="stance negative"') == 1
    assert "Never so" not in text


def test_history_tells_what_changed_by_whom_and_why(alices, palace, fact):
    rewrite(palace, fact.memory, "User lives in Lisbon, Portugal", BY_PERSON)
    delete(palace, fact.memory, Scope("mining"), why="moved away")
    text = alices.get(address(fact)).text
    assert re.findall(r"<strong>(\w+)</strong>", text) == ["Changed", "Dropped"]
    assert "<del>User lives in Lisbon</del>" in text
    assert "<ins>User lives in Lisbon, Portugal</ins>" in text
    assert "by you" in text
    assert "by Loci, reading what was said" in text
    assert "Moved away." in text


def test_the_number_of_queries_does_not_grow_with_the_versions(
    alices, fact, said, django_assert_max_num_queries
):
    for number in range(20):
        old = was_so(fact.subject, f"Version {number}", memory=fact.memory)
        EvidenceFactory(fact=old, drawer=DrawerFactory(room=said.room))
    with django_assert_max_num_queries(8):
        assert alices.get(address(fact)).text.count('id="version-') == 21


# Putting it right.


def post(client, fact, action, **sent):
    return client.post(address(fact, action), sent, follow=True)


def test_a_fact_is_said_differently_and_back(alices, fact):
    response = post(
        alices, fact, "rewrite_fact", text=" User lives\n in Alfama ", version=fact.uuid
    )
    assert response.redirect_chain == [(address(fact), 302)]
    held = Fact.objects.active().get(memory=fact.memory)
    assert held.text == "User lives in Alfama"
    assert held.evidence.count() == 1
    assert FactEvent.objects.get(memory=fact.memory).by == "person"
    undo = re.search(
        r'action="([^"]+/rewrite/)".*?name="text" value="([^"]+)"', response.text, re.S
    )
    alices.post(undo[1], {"text": undo[2]})
    assert Fact.objects.active().get(memory=fact.memory).text == fact.text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (" ", "Write what it should say."),
        ("x" * 2001, "This is too long for one statement."),
        ("a\0b", "a character that cannot be stored"),
    ],
)
def test_what_is_wrong_is_said_beside_the_field(alices, fact, text, sentence):
    response = post(alices, fact, "rewrite_fact", text=text)
    assert response.status_code == 400
    assert sentence in response.text
    assert 'aria-invalid="true"' in response.text
    assert Fact.objects.get(memory=fact.memory).text == fact.text


def test_a_change_of_what_changed_meanwhile_is_asked_about(alices, palace, fact):
    rewrite(palace, fact.memory, "User lives in Belém", BY_PERSON)
    sent = {"text": "User lives in Alfama", "version": fact.uuid}
    response = post(alices, fact, "rewrite_fact", **sent)
    assert response.status_code == 400
    assert "It was changed meanwhile and says “User lives in Belém” now." in response.text
    assert "User lives in Alfama</textarea>" in response.text
    version = re.search(r'name="version" value="([^"]+)"', response.text)[1]
    assert post(alices, fact, "rewrite_fact", **{**sent, "version": version}).status_code == 200
    assert Fact.objects.active().get(memory=fact.memory).text == "User lives in Alfama"


def test_a_fact_is_deleted_stays_on_record_and_is_restored(alices, fact):
    response = post(alices, fact, "retire_fact")
    assert response.redirect_chain == [(address(fact), 302)]
    assert "Deleted. Nothing goes by it any more." in response.text
    assert "Somebody deleted it" in response.text
    assert listed(alices.get(FACTS)) == []
    assert listed(alices.get(FACTS, {"state": "dropped"})) == [fact.text]
    back = post(alices, fact, "restore_fact", version=fact.uuid)
    assert "It is held again." in back.text
    assert listed(alices.get(FACTS)) == [fact.text]


def test_an_earlier_version_can_be_held_again(alices, palace, fact):
    rewrite(palace, fact.memory, "User lives in Belém", BY_PERSON)
    delete(palace, fact.memory, BY_PERSON)
    assert "Hold “User lives in Lisbon” again" in alices.get(address(fact)).text
    post(alices, fact, "restore_fact", version=fact.uuid)
    assert Fact.objects.active().get(memory=fact.memory).text == "User lives in Lisbon"


def test_what_is_held_in_its_place_is_told_in_the_form(alices, palace, fact):
    delete(palace, fact.memory, BY_PERSON)
    other = FactFactory(
        subject=fact.subject, predicate="lives_in", single=True, text="User lives in Porto"
    )
    response = post(alices, fact, "restore_fact")
    assert response.status_code == 400
    assert "“User lives in Porto” is held in its place; delete that first" in response.text
    assert f'href="{address(other)}"' in response.text
    assert not Fact.objects.active().filter(memory=fact.memory).exists()


def test_doing_it_twice_is_told_and_does_nothing(alices, fact):
    post(alices, fact, "retire_fact")
    events = FactEvent.objects.count()
    assert "There was nothing to delete" in post(alices, fact, "retire_fact").text
    assert "This is held no longer" in post(alices, fact, "rewrite_fact", text="New").text
    assert FactEvent.objects.count() == events
    post(alices, fact, "restore_fact")
    assert post(alices, fact, "restore_fact").status_code == 400
    assert Fact.objects.active().filter(memory=fact.memory).count() == 1


@pytest.mark.parametrize("version", ["nonsense", "7e1f0a52-3a5c-4c6b-9f0e-5b8f2f1c9d10"])
def test_a_version_that_is_none_is_not_found(alices, fact, version):
    assert post(alices, fact, "restore_fact", version=version).status_code == 404


@pytest.mark.parametrize("action", ["rewrite_fact", "retire_fact", "restore_fact"])
def test_a_memory_that_is_none_is_not_found(alices, palace, action):
    made_up = reverse(action, args=[uuid.uuid4()])
    assert alices.post(made_up, {"text": "New"}).status_code == 404


# The drawer's page.


def drawers_text(response):
    inner = re.search(r'id="text">(.*?)</div>', response.text, re.S)[1]
    bare = re.sub(r"</?(mark|a)\b[^>]*>", "", inner)
    return html.unescape(bare.replace("\r\n", "\n").replace("\r", "\n"))


def test_a_drawer_marks_the_words_and_names_the_facts_that_rest_on_them(alices, fact, said):
    response = alices.get(said.get_absolute_url())
    link = f'<a href="{address(fact)}" title="User lives in Lisbon">I live in Lisbon</a>'
    assert f'<mark class="rests">{link}</mark>' in response.text
    assert "Facts that rest on this" in response.text
    assert drawers_text(response) == said.text


@pytest.mark.parametrize("passage", ["", "0-8", "6-22", "9-12", "20-40", "6-900"])
@pytest.mark.parametrize("other", [(0, 3), (6, 22), (10, 30), (22, 30), (3, 900)])
def test_however_words_overlap_the_text_stays_to_the_character(alices, fact, said, passage, other):
    more = FactFactory(subject=fact.subject, text="Another")
    EvidenceFactory(fact=more, drawer=said, start=other[0], end=other[1])
    response = alices.get(said.get_absolute_url(), {"passage": passage})
    assert drawers_text(response) == said.text
    assert response.text.count('id="passage"') == (1 if passage else 0)


def test_versions_of_one_memory_are_one_line(alices, palace, fact, said):
    rewrite(palace, fact.memory, "User lives in Belém", BY_PERSON)
    text = alices.get(said.get_absolute_url()).text
    aside = text[text.index("Facts that rest on this") :]
    assert "User lives in Belém" in aside
    assert "User lives in Lisbon</a>" not in aside


def test_what_would_be_dropped_with_a_drawer_is_told_before(alices, fact, said):
    elsewhere = FactFactory(subject=fact.subject, text="User likes tea")
    EvidenceFactory(fact=elsewhere, drawer=said, start=0, end=4)
    EvidenceFactory(fact=elsewhere, drawer=DrawerFactory(room=said.room))
    text = alices.get(said.get_absolute_url()).text
    warning = re.search(r'id="rests-only">(.*?)</p>', text, re.S)[1]
    assert "1 fact rests on this drawer only" in warning
    assert fact.text in warning
    assert elsewhere.text not in warning


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
    with django_assert_max_num_queries(10):
        assert alices.get(said.get_absolute_url()).status_code == 200


def test_evidence_of_another_palace_is_never_reached(alices, bob, fact):
    strangers = DrawerFactory(
        room=RoomFactory(wing=WingFactory(palace__owner=bob)), text="A stranger's words"
    )
    EvidenceFactory(
        fact=FactFactory(subject=EntityFactory(palace=strangers.palace)), drawer=strangers
    )
    assert "stranger" not in alices.get(FACTS).text


def test_time_goes_by_the_day_it_is_read(alices, user):
    FactFactory(subject=user, text="To come", valid_from=datetime.now(UTC) + timedelta(days=900))
    over = {"valid_from": moment(2020), "valid_to": moment(2021)}
    FactFactory(subject=user, text="Over", **over)
    text = alices.get(FACTS).text
    assert "<span>from " in text
    assert "1 Jan 2020 – 1 Jan 2021" in text
    assert '<span class="fate">over</span>' in text
