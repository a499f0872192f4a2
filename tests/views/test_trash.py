from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from palace.curation.trash import batch_key, move_to_trash
from palace.models import Activity, Drawer, Palace
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.storage.transcript_filing import file_transcript
from palace.views.shared.query_params import PAGE_SIZE
from palace.views.trash import NOTHING_TO_UNDO
from tests.conversations import BATTERY
from tests.factories import (
    ClosetFactory,
    DrawerFactory,
    EntityFactory,
    EvidenceFactory,
    FactFactory,
    RoomFactory,
    WingFactory,
)

TRASH = "/memory/trash/"
HTMX = {"HX-Request": "true"}


def to_trash(place, kind):
    return reverse("trash_place", args=[kind, place.uuid])


def undo_address(response):
    return re.search(r'action="(/memory/trash/\d+/restore/)"', response.text)[1]


def from_page(address):
    """As htmx asks from a page, whose address may have a query."""
    return {**HTMX, "HX-Current-URL": f"http://testserver{address}?page=1"}


def test_a_drawer_goes_and_the_page_that_follows_offers_undo(alices, drawer):
    other = DrawerFactory(room=drawer.room, closet=drawer.closet)
    response = alices.post(to_trash(drawer, "drawer"), follow=True)
    assert response.redirect_chain == [(drawer.closet.get_absolute_url(), 302)]
    assert "Moved 1 message to the trash." in response.text
    assert drawer.text not in response.text
    response = alices.post(undo_address(response), {"next": drawer.get_absolute_url()}, follow=True)
    assert response.redirect_chain == [(drawer.get_absolute_url(), 302)]
    assert "1 drawer is back in place." in response.text
    assert set(Drawer.objects.kept()) == {drawer, other}


@pytest.mark.parametrize(
    "gone", ["closet", "room", "wing"], ids=lambda gone: f"the last of its {gone}"
)
def test_one_is_led_to_the_closest_place_that_still_holds_something(alices, drawer, gone):
    places = {"closet": drawer.closet, "room": drawer.room, "wing": drawer.room.wing}
    if gone == "closet":
        DrawerFactory(room=drawer.room, closet=None)
    elif gone == "room":
        DrawerFactory(room=RoomFactory(wing=drawer.room.wing))
    around = {"closet": places["room"].get_absolute_url(), "wing": reverse("memory")}
    around["room"] = places["wing"].get_absolute_url()
    response = alices.post(to_trash(drawer, "drawer"))
    assert response.url == around[gone]


def test_a_leaf_leads_back_to_its_list(alices, drawer, room):
    response = alices.post(to_trash(drawer, "drawer"), {"next": room.get_absolute_url()})
    assert response.url == room.get_absolute_url()


@pytest.mark.parametrize("bad", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_one_is_not_led_out_of_the_house(alices, drawer, bad):
    response = alices.post(to_trash(drawer, "drawer"), {"next": bad})
    assert response.url == reverse("memory")


@pytest.mark.parametrize("kind", ["closet", "room", "wing"])
def test_a_place_is_asked_about_and_goes_as_a_whole(alices, drawer, kind):
    DrawerFactory(room=drawer.room, closet=drawer.closet)
    places = {"closet": drawer.closet, "room": drawer.room, "wing": drawer.room.wing}
    place = places[kind]
    page = alices.get(place.get_absolute_url())
    assert "Move to the trash" in page.text
    asked = alices.get(to_trash(place, kind))
    assert f"Forget “{place}”?" in asked.text
    assert "<strong>1 conversation, 2 messages</strong> go to the trash" in asked.text
    assert "Move 2 messages to the trash" in asked.text
    assert Drawer.objects.kept().count() == 2
    done = alices.post(to_trash(place, kind), follow=True)
    assert "Moved 2 messages to the trash." in done.text
    assert not Drawer.objects.kept().exists()
    back = re.search(r'name="next" value="([^"]+)"', done.text)[1]
    assert alices.post(undo_address(done), {"next": back}).url == place.get_absolute_url()
    assert Drawer.objects.kept().count() == 2


@pytest.mark.parametrize("kind", ["closet", "room", "wing"])
def test_the_facts_that_go_along_are_named_before_and_after(alices, drawer, kind):
    other = DrawerFactory(room=drawer.room, closet=drawer.closet)
    places = {"closet": drawer.closet, "room": drawer.room, "wing": drawer.room.wing}
    fact = FactFactory(subject=EntityFactory(palace=drawer.palace), text="User owns a board")
    for words in (drawer, other):
        EvidenceFactory(fact=fact, drawer=words)
    elsewhere = FactFactory(subject=fact.subject, text="User owns a boat")
    EvidenceFactory(fact=elsewhere, drawer=drawer)
    EvidenceFactory(fact=elsewhere)
    asked = alices.get(to_trash(places[kind], kind)).text
    assert "<strong>1 conversation, 2 messages, 1 fact</strong> go to the trash" in asked
    assert "This fact has no other source" in asked
    assert f'<a href="{fact.get_absolute_url()}">You own a board</a>' in asked
    assert "You own a boat" not in asked
    done = alices.post(to_trash(places[kind], kind), follow=True)
    receipt = re.search(r'href="(/memory/trash/#[^"]+)">1 fact</a> with no other source', done.text)
    trash = alices.get(reverse("trash")).text
    assert f'id="{receipt[1].partition("#")[2]}"' in trash
    assert "1 fact had no other source, and is inactive:" in trash
    assert f'<a href="{fact.get_absolute_url()}">You own a board</a>' in trash
    alices.post(undo_address(done))
    assert "You own a board" not in alices.get(reverse("trash")).text


def test_of_many_facts_that_go_along_some_are_named_and_the_rest_counted(alices, drawer):
    DrawerFactory(room=drawer.room)
    about = EntityFactory(palace=drawer.palace)
    for number in range(14):
        EvidenceFactory(fact=FactFactory(subject=about, text=f"Fact {number}."), drawer=drawer)
    asked = alices.get(to_trash(drawer.room, "room")).text
    assert "2 messages, 14 facts</strong>" in asked
    assert "These facts have no other source" in asked
    assert "and 2 others" in asked
    assert asked.count("/memory/facts/") == 12 + asked.count('href="/memory/facts/"')


def test_a_leaf_that_goes_says_how_many_facts_went_along(alices, drawer):
    EvidenceFactory(fact=FactFactory(subject=EntityFactory(palace=drawer.palace)), drawer=drawer)
    gone = alices.post(to_trash(drawer, "drawer"), headers=HTMX)
    assert re.search(r', and with it <a href="[^"]+">1 fact</a>', gone.text)


def test_a_place_with_one_drawer_is_moved_without_a_question(alices, drawer):
    page = alices.get(drawer.closet.get_absolute_url())
    assert f'method="post" action="{to_trash(drawer.closet, "closet")}"' in page.text


def test_an_empty_place_has_nothing_to_move(alices, drawer):
    move_to_trash(drawer)
    for method in (alices.get, alices.post):
        response = method(to_trash(drawer.room, "room"), follow=True)
        assert "There was nothing" in response.text or "There is nothing" in response.text
    assert Activity.objects.count() == 1


def test_what_is_no_place_is_not_found(alices, drawer):
    assert alices.post(to_trash(drawer, "palace")).status_code == 404


def test_a_leaf_goes_in_place_with_an_undo_that_takes_the_focus(alices, drawer):
    response = alices.post(to_trash(drawer, "drawer"), headers=from_page("/memory/"))
    assert response.text.lstrip().startswith('<li class="leaf leaf-gone"')
    assert re.search(r'aria-describedby="gone-[^"]+" autofocus', response.text)
    assert drawer.text not in response.text
    back = alices.post(undo_address(response), headers=from_page("/memory/"))
    assert back.text.lstrip().startswith('<li class="leaf')
    assert drawer.text in back.text
    assert "autofocus" in back.text
    assert Drawer.objects.kept().get() == drawer


@pytest.mark.parametrize(
    ("page", "counts"),
    [
        ("/memory/", {"closet", "room", "wing", "totals"}),
        ("wing", {"closet", "room"}),
        ("room", {"closet"}),
        ("closet", {"closet"}),
        ("/elsewhere/", set()),
    ],
)
def test_the_counts_on_the_page_follow(alices, drawer, page, counts):
    DrawerFactory(room=drawer.room, closet=drawer.closet)
    places = {"closet": drawer.closet, "room": drawer.room, "wing": drawer.room.wing}
    address = places[page].get_absolute_url() if page in places else page
    response = alices.post(to_trash(drawer, "drawer"), headers=from_page(address))
    words = dict(re.findall(r'id="([^"]+)" hx-swap-oob="true">([^<]+)<', response.text))
    named = {f"count-{place.uuid}": name for name, place in places.items()}
    shown = {named.get(key, key): text for key, text in words.items()}
    wanted = {
        "closet": "1 drawer",
        "room": "1 drawer",
        "wing": "1 room, 1 drawer",
        "totals": "1 wing, 1 room and 1 drawer",
    }
    assert shown == {name: wanted[name] for name in counts}


def test_a_second_tab_says_that_it_is_in_the_trash_already(alices, drawer):
    alices.post(to_trash(drawer, "drawer"))
    response = alices.post(to_trash(drawer, "drawer"), follow=True)
    assert "There was nothing to move: it is in the trash already." in response.text
    response = alices.post(to_trash(drawer, "drawer"), headers=HTMX)
    assert "It is in the trash already." in response.text
    assert "Undo" not in response.text
    assert Activity.objects.count() == 1


@pytest.mark.parametrize("headers", [{}, HTMX])
@pytest.mark.parametrize("purged", [False, True])
def test_undoing_twice_or_too_late_is_a_sentence(alices, drawer, headers, purged):
    batch = move_to_trash(drawer)
    address = reverse("restore_batch", args=[batch.key])
    if purged:
        alices.post(reverse("purge_drawer", args=[drawer.uuid]))
    else:
        alices.post(address)
    response = alices.post(address, headers=headers, follow=True)
    assert response.status_code == 200
    assert NOTHING_TO_UNDO in response.text


@pytest.mark.parametrize("key", [0, 1, 10**25])
def test_a_batch_that_never_was_is_not_found(alices, drawer, key):
    assert alices.post(reverse("restore_batch", args=[key])).status_code == 404
    assert alices.get(reverse("empty_trash", args=[key])).status_code == 404


def test_a_strangers_batch_is_not_found_even_at_the_same_moment(bobs, bob, drawer):
    batch = move_to_trash(drawer)
    own = DrawerFactory(room=RoomFactory(wing=WingFactory(palace=Palace.objects.own(bob))))
    own.trash(batch.at)
    bobs.post(reverse("restore_batch", args=[batch.key]))
    assert list(Drawer.objects.trashed()) == [drawer]


def test_undo_restores_exactly_its_batch(alices, drawer):
    others = DrawerFactory.create_batch(2, room=drawer.room)
    first = move_to_trash(drawer)
    second = move_to_trash(drawer.room)
    alices.post(reverse("restore_batch", args=[first.key]))
    assert list(Drawer.objects.kept()) == [drawer]
    alices.post(reverse("restore_batch", args=[second.key]))
    assert set(Drawer.objects.kept()) == {drawer, *others}


def test_the_trash_is_grouped_by_batch_newest_first(alices, drawer):
    DrawerFactory.create_batch(2, room=drawer.room, text="Together.")
    old = DrawerFactory(room=drawer.room, text="Long ago.")
    old.trash(timezone.now() - timedelta(days=27, hours=1))
    move_to_trash(drawer)
    move_to_trash(drawer.room)
    text = alices.get(TRASH).text
    assert re.findall(r"(\d+ drawers?), <time", text) == ["2 drawers", "1 drawer", "1 drawer"]
    assert re.findall(r'class="days-left">([^<]+)<', text) == [
        "30 days left",
        "30 days left",
        "3 days left",
    ]
    assert text.index("Together.") < text.index(drawer.text) < text.index("Long ago.")
    assert "Restore all 2" in text
    assert "Efoil rebuild" in text


def test_an_empty_trash_says_what_it_is_for(alices, palace):
    assert "The trash is empty." in alices.get(TRASH).text


def test_a_full_trash_comes_a_page_at_a_time(alices, drawer, django_assert_max_num_queries):
    DrawerFactory.create_batch(PAGE_SIZE + 9, room=drawer.room)
    move_to_trash(drawer.room)
    with django_assert_max_num_queries(9):
        first = alices.get(TRASH)
    assert f"Show 10 more of {PAGE_SIZE + 10} drawers" in first.text
    assert f"Restore all {PAGE_SIZE + 10}" in first.text
    rest = alices.get(TRASH, {"page": 2}, headers=HTMX)
    assert rest.text.count('class="leaf"') == 10
    assert "<html" not in rest.text


def test_one_drawer_is_restored(alices, drawer):
    DrawerFactory(room=drawer.room)
    move_to_trash(drawer.room)
    response = alices.post(
        reverse("restore_drawer", args=[drawer.uuid]), {"next": TRASH}, follow=True
    )
    assert "1 drawer is back in place." in response.text
    assert Drawer.objects.kept().get() == drawer
    response = alices.post(reverse("restore_drawer", args=[drawer.uuid]), follow=True)
    assert "it is in its place already" in response.text


def test_one_drawer_is_deleted_for_good(alices, drawer):
    move_to_trash(drawer)
    response = alices.post(reverse("purge_drawer", args=[drawer.uuid]), follow=True)
    assert "The drawer is deleted for good." in response.text
    assert not Drawer.objects.exists()
    assert alices.get(drawer.get_absolute_url()).status_code == 404
    assert alices.post(reverse("purge_drawer", args=[drawer.uuid])).status_code == 404
    assert alices.post(reverse("restore_drawer", args=[drawer.uuid])).status_code == 404
    assert alices.post(to_trash(drawer, "drawer")).status_code == 404


def test_what_is_not_in_the_trash_is_not_deleted(alices, drawer):
    response = alices.post(reverse("purge_drawer", args=[drawer.uuid]), follow=True)
    assert "Move the drawer there first." in response.text
    assert Drawer.objects.get() == drawer


def test_the_trash_is_emptied_after_a_question(alices, drawer):
    DrawerFactory.create_batch(2, room=drawer.room)
    move_to_trash(drawer.room)
    address = re.search(r'href="([^"]+/empty/)"', alices.get(TRASH).text)[1]
    asked = alices.get(address)
    assert "<strong>1 conversation, 3 messages</strong> in the trash" in asked.text
    assert Drawer.objects.count() == 3
    done = alices.post(address, follow=True)
    assert "3 drawers are deleted for good." in done.text
    assert not Drawer.objects.exists()
    again = alices.post(address, follow=True)
    assert "There is nothing of that left in the trash." in again.text


def test_what_goes_there_after_the_question_stays(alices, drawer):
    later = DrawerFactory(room=drawer.room)
    move_to_trash(drawer)
    address = re.search(r'href="([^"]+/empty/)"', alices.get(TRASH).text)[1]
    move_to_trash(later)
    alices.post(address)
    assert Drawer.objects.get() == later


def test_emptying_leaves_other_palaces_alone(alices, drawer, bob):
    own = DrawerFactory(room=RoomFactory(wing=WingFactory(palace=Palace.objects.own(bob))))
    own.trash(timezone.now() - timedelta(days=1))
    batch = move_to_trash(drawer)
    alices.post(reverse("empty_trash", args=[batch.key]))
    assert Drawer.objects.get() == own


def test_what_was_trashed_unmined_is_queued_for_mining_once_restored(alices, palace, queued):
    room = file_transcript(palace, BATTERY).room
    batch = move_to_trash(room)
    alices.post(reverse("restore_batch", args=[batch.key]))
    assert queued() == ["mine_room"]


def test_it_leaves_every_list_count_and_search_at_once(alices, palace):
    room = file_transcript(palace, BATTERY).room
    move_to_trash(room)
    pages = ["/memory/", room.wing.get_absolute_url(), room.get_absolute_url()]
    for page in pages:
        assert "silicone" not in alices.get(page).text
    assert "Unsorted" not in alices.get("/memory/").text
    assert recall(palace, RecallRequest("silicone wire")).hits == ()
    assert alices.get("/memory/", {"q": "silicone wire"}).text.count("<mark>") == 0


def test_much_is_moved_and_restored_in_a_moment(alices, palace):
    room = RoomFactory(wing=WingFactory(palace=palace))
    closet = ClosetFactory(room=room)
    drawers = DrawerFactory.build_batch(1500, room=room, closet=closet, palace=palace)
    Drawer.objects.bulk_create(drawers)
    response = alices.post(to_trash(room.wing, "wing"), follow=True)
    assert "Moved 1,500 messages to the trash." in response.text
    key = batch_key(Drawer.objects.first().trashed_at)
    response = alices.post(reverse("restore_batch", args=[key]), follow=True)
    assert "1,500 drawers are back in place." in response.text
