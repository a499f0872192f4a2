"""Times are shown in the zone their reader has chosen, and days are counted by it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from palace.mining.pipeline import mine
from palace.models import Drawer, RecollectionTrace
from settings_app.models import MemorySettings, settings_of
from settings_app.time_zone import grouped_zones, zone_named, zone_names
from tests.conversations import transcript
from tests.factories import DrawerFactory, RoomFactory, WingFactory

# Half past two in Tokyo of the following day.
LATE = datetime(2025, 3, 3, 17, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _utc_afterwards():
    yield
    timezone.deactivate()


@pytest.fixture
def drawer(palace):
    wing = WingFactory(palace=palace, name="Tea")
    room = RoomFactory(wing=wing, title="Late tea", started_at=LATE, ended_at=LATE)
    return DrawerFactory(room=room, said_at=LATE, text="The pot leaks.")


@pytest.fixture
def alices(client, alice):
    client.force_login(alice)
    return client


def choose(client, zone):
    return client.post(reverse("account"), {"do": "time_zone", "time_zone": zone})


def test_without_a_choice_times_are_in_utc_and_say_so(alices, drawer):
    page = alices.get(drawer.get_absolute_url()).text
    assert "3 March 2025, 17:30 UTC" in page


def test_times_and_days_are_in_the_zone_that_was_chosen(alices, drawer):
    assert choose(alices, "Asia/Tokyo").url == reverse("account")
    page = alices.get(drawer.get_absolute_url()).text
    assert "4 March 2025, 02:30 JST" in page
    assert "2025-03-04T02:30:00+09:00" in page
    assert "3 March" not in page
    assert "4 Mar 2025" in alices.get(drawer.room.get_absolute_url()).text


def test_the_choice_is_shown_and_can_be_taken_back(alices, alice):
    choose(alices, "America/Argentina/Buenos_Aires")
    page = alices.get(reverse("account")).text
    assert '<option value="America/Argentina/Buenos_Aires" selected>' in page
    assert "Argentina, Buenos Aires" in page
    choose(alices, "")
    assert settings_of(alice.pk).time_zone == ""
    assert '<option value="" selected>UTC</option>' in alices.get(reverse("account")).text


def test_no_request_has_the_zone_of_another(alices, bob, drawer):
    choose(alices, "Asia/Tokyo")
    alices.get(reverse("account"))
    bobs = Client()
    bobs.force_login(bob)
    assert " UTC" in bobs.get(reverse("account")).text
    Client().get(reverse("sign_in"))
    assert timezone.get_current_timezone_name() == "UTC"


def test_other_choices_stay_as_they_are(alices, alice):
    MemorySettings.objects.create(owner=alice, top_k=9, provider="none")
    choose(alices, "Europe/Berlin")
    kept = settings_of(alice.pk)
    assert (kept.top_k, kept.provider, kept.time_zone) == (9, "none", "Europe/Berlin")


@pytest.mark.parametrize(
    "zone", ["Mars/Base", "Europe", "../../etc/passwd", "Europe/Berlin\x00", "x" * 9000]
)
def test_a_zone_that_is_none_is_refused_in_a_sentence(alices, alice, zone):
    response = choose(alices, zone)
    assert response.status_code == 400
    assert "There is no such time zone." in response.text
    assert settings_of(alice.pk).time_zone == ""


@pytest.mark.parametrize("name", ["", "Europe", "Europe/Atlantis", "../etc/passwd"])
def test_a_name_that_has_become_none_means_utc(alices, alice, name):
    MemorySettings.objects.create(owner=alice, time_zone=name)
    assert alices.get(reverse("account")).status_code == 200
    assert zone_named(name).utcoffset(None) == timedelta(0)
    assert settings_of(alice.pk).local_now().utcoffset() == timedelta(0)


def yesterdays_of_two_zones():
    """A zone whose day is another than UTC's just now, a moment of its yesterday, one of UTC's."""
    now = datetime.now(UTC)
    zone, at = ("Pacific/Kiritimati", 23) if now.hour >= 10 else ("Pacific/Pago_Pago", 1)
    there = now.astimezone(ZoneInfo(zone)).replace(hour=at, minute=0) - timedelta(days=1)
    return zone, there, now.replace(hour=12, minute=0) - timedelta(days=1)


@pytest.mark.parametrize("chosen", [True, False])
def test_yesterday_in_the_search_box_is_counted_in_the_chosen_zone(alices, palace, chosen):
    zone, there, in_utc = yesterdays_of_two_zones()
    for name, moment in (("there", there), ("utc", in_utc)):
        mine(palace, transcript("The tea pot leaks.", id=name, start=moment))
    choose(alices, zone if chosen else "")
    alices.get(reverse("memory"), {"q": "What leaked yesterday?"})
    best = RecollectionTrace.objects.get(palace=palace).hits[0]
    assert Drawer.objects.get(uuid=best["drawer"]).conversation == ("there" if chosen else "utc")


def test_every_zone_of_the_list_has_a_clock_and_a_place_to_find_it():
    listed = [name for _region, zones in grouped_zones() for name, _place in zones]
    assert len(listed) == len(set(listed)) == len(zone_names()) > 300
    assert all(ZoneInfo(name).utcoffset(LATE) is not None for name in listed)
    assert dict(dict(grouped_zones())["Europe"])["Europe/Berlin"] == "Berlin"


def test_the_choice_costs_no_query_of_its_own(alices, alice, django_assert_num_queries):
    MemorySettings.objects.create(owner=alice, time_zone="Asia/Tokyo")
    with django_assert_num_queries(2):  # The session, and whose it is with their choices.
        alices.get(reverse("sign_in"))
