"""What a wing keeps, for how long, and what never."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from isolation import row_access
from palace.curation.retention import (
    Keeping,
    apply_keeping,
    keep_by_rules,
    months_before,
    preview_keeping,
    set_keeping,
)
from palace.curation.trash import Contents
from palace.models import Drawer, Wing
from tests.factories import (
    ClosetFactory,
    DrawerFactory,
    EntityFactory,
    EvidenceFactory,
    FactFactory,
    MentionFactory,
    RoomFactory,
    WingFactory,
)


@pytest.fixture
def wing(palace):
    return WingFactory(palace=palace, name="Health", slug="health")


def said(wing, text, *, days=0, **values):
    at = timezone.now() - timedelta(days=days)
    return DrawerFactory(room=RoomFactory(wing=wing), text=text, said_at=at, **values)


def texts():
    return set(Drawer.objects.kept().values_list("text", flat=True))


def test_what_is_too_old_goes_and_elsewhere_nothing(palace, wing):
    said(wing, "Old", days=200)
    said(wing, "New", days=20)
    said(WingFactory(palace=palace), "Old elsewhere", days=900)
    keeping = Keeping(months=6)
    assert preview_keeping(wing, keeping) == Contents(1, 1, 0)
    assert texts() == {"Old", "New", "Old elsewhere"}
    assert set_keeping(wing, keeping).drawers == 1
    assert texts() == {"New", "Old elsewhere"}
    wing.refresh_from_db()
    assert (wing.kept_months, wing.never) == (6, [])


def test_what_is_never_kept_goes_by_name_other_name_and_topic(palace, wing):
    ann = EntityFactory(palace=palace, name="Ann Berg", slug="ann-berg", aliases=["Annie"])
    by_mention = said(wing, "She called.")
    MentionFactory(entity=ann, drawer=by_mention)
    fact = FactFactory(subject=ann)
    EvidenceFactory(fact=fact, drawer=by_mention)
    said(wing, "annie, again!")
    said(wing, "C++ and more")
    room = RoomFactory(wing=wing)
    DrawerFactory(room=room, closet=ClosetFactory(room=room, slug="back-pain"), text="It hurts.")
    said(wing, "Annieland is no person")
    said(wing, "Kept")
    keeping = Keeping.read("", " Annie \n\nC++\nBack pain\nannie")
    assert keeping.never == ("Annie", "C++", "Back pain", "annie")
    assert preview_keeping(wing, keeping) == Contents(4, 4, 1)
    set_keeping(wing, keeping)
    assert texts() == {"Annieland is no person", "Kept"}
    fact.refresh_from_db()
    assert fact.retired_at is not None


def test_rules_hold_for_what_comes_later(palace, wing):
    set_keeping(wing, Keeping(never=("Ann",)))
    said(wing, "Ann called.")
    said(wing, "Nobody called.")
    assert apply_keeping(palace) == 1
    assert apply_keeping(palace) == 0
    assert texts() == {"Nobody called."}


def test_the_task_applies_the_rules_of_a_palace(palace, wing):
    said(wing, "Old", days=200)
    Wing.objects.filter(pk=wing.pk).update(kept_months=1)
    with row_access.deny_all():
        keep_by_rules(palace.pk)
    assert texts() == set()


@pytest.mark.parametrize(
    ("moment", "months", "before"),
    [
        (datetime(2026, 3, 31, 12, tzinfo=UTC), 1, datetime(2026, 2, 28, 12, tzinfo=UTC)),
        (datetime(2024, 1, 15, tzinfo=UTC), 14, datetime(2022, 11, 15, tzinfo=UTC)),
        (datetime(2024, 2, 29, tzinfo=UTC), 12, datetime(2023, 2, 28, tzinfo=UTC)),
    ],
)
def test_months_are_those_of_the_calendar(moment, months, before):
    assert months_before(moment, months) == before


def keeping_of(wing):
    return reverse("wing_keeping", args=[wing.uuid])


def test_the_page_previews_then_sets_and_undoes(client, alice, wing):
    client.force_login(alice)
    said(wing, "Old", days=200)
    assert f'href="{keeping_of(wing)}"' in client.get(wing.get_absolute_url()).text
    asked = client.post(keeping_of(wing), {"months": "6", "never": ""})
    assert "<strong>1 conversation, 1 message</strong> would go to the trash now" in asked.text
    assert Wing.objects.get(pk=wing.pk).kept_months is None
    assert texts() == {"Old"}
    key = re.search(r'name="set" value="(\w+)"', asked.text)[1]
    changed = client.post(keeping_of(wing), {"months": "1", "never": "", "set": key})
    assert "You changed the rule after the preview, so nothing was saved" in changed.text
    assert texts() == {"Old"}
    sent = {"months": "6", "never": "", "set": key}
    done = client.post(keeping_of(wing), sent, follow=True)
    assert "Moved 1 message to the trash" in done.text
    assert "What you restore goes to the trash again" not in done.text
    assert Wing.objects.get(pk=wing.pk).kept_months == 6
    assert texts() == set()
    # The wing has nothing left, and its rule can be changed still.
    assert "There is nothing in this wing any more." in done.text
    assert f'href="{keeping_of(wing)}"' in done.text
    assert "Move to the trash" not in done.text
    sent = {"months": "", "never": "", "set": Keeping().key}
    assert f'href="{keeping_of(wing)}"' not in client.post(keeping_of(wing), sent, follow=True).text


def keep(client, wing, **rule):
    """Preview and set a rule; the page that follows."""
    sent = {"months": "", "never": "", **rule}
    key = re.search(r'name="set" value="(\w+)"', client.post(keeping_of(wing), sent).text)[1]
    return client.post(keeping_of(wing), {**sent, "set": key}, follow=True)


def undo(client, page):
    form = re.search(r'<form [^>]*action="([^"]+/keeping/)">(.*?)</form>', page.text, re.DOTALL)
    sent = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form[2]))
    return client.post(form[1], sent, follow=True)


def test_one_undo_takes_back_the_rule_and_what_it_moved(client, alice, wing):
    client.force_login(alice)
    said(wing, "Old", days=200)
    said(wing, "Of Ann", days=2)
    keep(client, wing, never="Ann\nBob")
    changed = keep(client, wing, months="6", never="Ann")
    assert "Saved. Moved 1 message to the trash." in changed.text
    undone = undo(client, changed)
    assert "Undone: the rule is as it was before, and 1 message is back in place." in undone.text
    wing.refresh_from_db()
    assert (wing.kept_months, wing.never) == (None, ["Ann", "Bob"])
    assert apply_keeping(wing.palace) == 0
    assert texts() == {"Old"}
    # What moved nothing can be undone, too.
    undone = undo(client, keep(client, wing, months="900", never="Ann\nBob"))
    assert "Undone: the rule is as it was before." in undone.text
    wing.refresh_from_db()
    assert (wing.kept_months, wing.never) == (None, ["Ann", "Bob"])


def test_a_rule_that_was_changed_again_is_not_undone(client, alice, wing):
    client.force_login(alice)
    said(wing, "Old", days=200)
    first = keep(client, wing, months="6")
    keep(client, wing, months="5")
    refused = undo(client, first)
    assert "The rule was changed since, so nothing was undone." in refused.text
    assert Wing.objects.get(pk=wing.pk).kept_months == 5
    assert texts() == set()


@pytest.mark.parametrize("sent", [{"undo": "x"}, {"undo": "9" * 30}, {"undo": "1", "months": "-"}])
def test_an_undo_that_none_offered_is_not_found(client, alice, wing, sent):
    client.force_login(alice)
    assert client.post(keeping_of(wing), sent).status_code == 404


def test_where_the_rule_stays_it_takes_again_what_is_restored(client, alice, wing):
    client.force_login(alice)
    keep(client, wing, months="6")
    said(wing, "Old", days=200)
    again = keep(client, wing, months="6")
    assert "What you restore goes to the trash again while this rule stands." in again.text
    assert f'action="{keeping_of(wing)}"' not in again.text


def test_an_emptied_wing_with_a_rule_is_in_the_list(client, alice, wing):
    client.force_login(alice)
    link = f'<a href="{wing.get_absolute_url()}">Health</a>'
    line = f"Empty, with a keeping rule: {link}"
    said(WingFactory(palace=wing.palace, name="Other", slug="other"), "New")
    said(wing, "Old", days=200)
    set_keeping(wing, Keeping(months=12))
    assert "Empty, with" not in client.get("/memory/?view=list").text
    set_keeping(wing, Keeping(months=6))
    assert line in client.get("/memory/?view=list").text
    assert line not in client.get("/memory/").text
    Drawer.objects.update(trashed_at=timezone.now())
    assert line in client.get("/memory/").text


def test_what_goes_to_a_wing_with_a_rule_is_told_so_before(client, alice, wing):
    client.force_login(alice)
    drawer = said(WingFactory(palace=wing.palace, name="Other", slug="other"), "Old", days=200)
    other = drawer.room.wing
    merging = f"{reverse('wing_merge', args=[other.uuid])}?into={wing.uuid}"
    assert "does not keep everything" not in client.get(merging).text
    set_keeping(wing, Keeping(months=6, never=("Ann", "Bob")))
    line = "messages older than 6 months, and messages about Ann, Bob go to the trash there"
    assert line in client.get(merging).text
    moving = client.get(reverse("place_edit", args=["room", drawer.room.uuid]))
    assert f"{wing.name} (keeps 6 months)</option>" in moving.text
    set_keeping(wing, Keeping(never=("Ann",)))
    asked = client.post("/memory/selected/", {"do": "move", "drawer": [drawer.uuid]})
    assert f"{wing.name} (does not keep everything)</option>" in asked.text


@pytest.mark.parametrize(
    "sent",
    [
        {"months": "0"},
        {"months": "-3"},
        {"months": "soon"},
        {"months": "²"},
        {"never": "x\n" * 3 + "y" * 201},
        {"never": "\n".join(map(str, range(51)))},
    ],
)
def test_a_rule_that_is_none_is_refused_beside_its_field(client, alice, wing, sent):
    client.force_login(alice)
    response = client.post(keeping_of(wing), {**sent, "set": "1"})
    assert response.status_code == 400
    assert 'aria-invalid="true"' in response.text


def test_a_stranger_has_no_such_page(client, bob, wing):
    client.force_login(bob)
    assert client.get(keeping_of(wing)).status_code == 404
    assert client.post(keeping_of(wing), {"months": "1", "set": "1"}).status_code == 404


def test_in_the_unsorted_wing_only_what_has_waited_there_is_old(client, alice, palace):
    unsorted = WingFactory(palace=palace, number=Wing.UNSORTED, name="Unsorted")
    waited = said(unsorted, "Brought in a year ago", days=900)
    Drawer.objects.filter(pk=waited.pk).update(filed_at=timezone.now() - timedelta(days=365))
    said(unsorted, "Brought in today", days=900)
    said(unsorted, "Said today")
    client.force_login(alice)
    assert keeping_of(unsorted) in client.get(unsorted.get_absolute_url()).text
    page = client.post(keeping_of(unsorted), {"months": "6"}).text
    assert "those brought in lately do not count as old" in page
    assert "<strong>1 conversation, 1 message</strong> would go" in page
    set_keeping(unsorted, Keeping(months=6))
    assert texts() == {"Brought in today", "Said today"}
