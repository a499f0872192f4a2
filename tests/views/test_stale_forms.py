"""Forms of a page that is older than the palace: another tab deleted, renamed, moved or changed
what they are about, or signed out. Each answers with a sentence, and loses or repeats nothing.
"""

from __future__ import annotations

import html
import re
import uuid

import pytest
from django.test import Client
from django.urls import reverse

from chat.models import Agent, Conversation
from palace.curation.refiling import BadMove, move_drawers, move_room
from palace.curation.wings import rename
from palace.models import Drawer, Entity, Palace, Room, Webhook, Wing
from settings_app.memory_form import ON_GENERAL_PAGE
from settings_app.models import MemorySettings, settings_of
from tests.factories import EntityFactory, WingFactory, rows_of_palace
from tests.settings_app.form import UNCHANGED
from tests.views.somebodys_rows import agent, entity, other_wing, talk
from tests.views.test_isolation import POSTED

NOT_HERE = "not here any more"
NO_ROW = "00000000-0000-4000-8000-000000000000"


def version_in(page, address):
    """The `version` in the form that is posted to the address."""
    forms = re.findall(r"<form.*?</form>", page.text, re.S)
    form = next(
        (each for each in forms if f'action="{address}"' in each),
        next((each for each in forms if "action=" not in each), ""),
    )
    (found,) = re.findall(r'name="version" value="(\w+)"', form)
    return found


def hidden_fields(page, button):
    """Address and hidden fields of the form with this button, without its token."""
    forms = re.findall(r"<form.*?</form>", page.text, re.S)
    form = next(each for each in forms if f">{button}<" in each)
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))
    fields.pop("csrfmiddlewaretoken", None)
    return re.search(r'action="([^"]+)"', form)[1], fields


def said(response):
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", response.text)))


@pytest.mark.some(9)
@pytest.mark.parametrize("name", POSTED)
def test_a_form_sent_twice_fails_nowhere_and_does_nothing_twice(alices, drawer, name):
    address, sent = POSTED[name](drawer)
    alices.post(address, sent, follow=True)
    rows = rows_of_palace(drawer.palace)
    again = alices.post(address, sent, follow=True)
    assert again.status_code in {200, 400, 404}
    assert (again.status_code == 404) <= (NOT_HERE in again.text)
    if name not in {"wing_keeping", "message_memory", "import_start"}:
        assert rows_of_palace(drawer.palace) == rows


@pytest.mark.some(9)
@pytest.mark.parametrize("name", POSTED)
def test_a_form_about_what_was_deleted_says_so(alices, drawer, name):
    address, sent = POSTED[name](drawer)
    gone = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", NO_ROW, address)
    if gone == address:
        pytest.skip("Its address names nothing.")
    rows = rows_of_palace(drawer.palace)
    response = alices.post(gone, sent)
    assert response.status_code == 404
    assert NOT_HERE in response.text
    assert rows_of_palace(drawer.palace) == rows


@pytest.mark.some(9)
@pytest.mark.parametrize("name", POSTED)
def test_a_form_after_sign_out_says_that_nothing_was_done(alices, drawer, name):
    address, sent = POSTED[name](drawer)
    alices.post(reverse("sign_out"))
    rows = rows_of_palace(drawer.palace)
    page = alices.post(address, sent, follow=True)
    assert "You were signed out, so nothing was done." in page.text
    assert rows_of_palace(drawer.palace) == rows


def test_a_form_from_before_another_sign_in_is_refused_with_a_sentence(alice, drawer):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(alice)
    page = browser.get(reverse("wing_edit", args=[drawer.room.wing.uuid]))
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)[1]
    browser.cookies["csrftoken"] = "x" * 32
    sent = {"name": "New", "kind": "topic", "csrfmiddlewaretoken": token}
    response = browser.post(reverse("wing_edit", args=[drawer.room.wing.uuid]), sent)
    assert response.status_code == 403
    assert "This form is out of date" in response.text


# What names a target that another tab has removed: the form, and what its answer says.
INTO_NOTHING = {
    "a room into a wing": (
        lambda drawer: reverse("place_edit", args=["room", drawer.room.uuid]),
        {"wing": NO_ROW},
        "That wing is no longer here",
    ),
    "a closet into a wing": (
        lambda drawer: reverse("place_edit", args=["closet", drawer.closet.uuid]),
        {"wing": NO_ROW},
        "That wing is no longer here",
    ),
    "selected drawers into a wing": (
        lambda drawer: reverse("selected"),
        lambda drawer: {"do": "move", "drawer": drawer.uuid, "wing": NO_ROW},
        "That wing is no longer here",
    ),
    "a room to review into a wing": (
        lambda drawer: reverse("review_room", args=[drawer.room.uuid, "file"]),
        {"wing": NO_ROW},
        "That wing is no longer here",
    ),
    "a wing into a wing": (
        lambda drawer: reverse("wing_merge", args=[drawer.room.wing.uuid]),
        {"into": NO_ROW},
        "That wing is no longer here",
    ),
    "a name into a name": (
        lambda drawer: reverse("entity_merge", args=[entity(drawer).uuid]),
        {"other": NO_ROW},
        "That name is no longer here",
    ),
    "names into a name": (
        lambda drawer: reverse("selected_entities"),
        lambda drawer: {
            "do": "merge",
            "entity": [entity(drawer).uuid, EntityFactory(palace=drawer.palace).uuid],
            "keep": NO_ROW,
        },
        "That name is no longer here",
    ),
    "words to an agent": (
        lambda drawer: reverse("chat"),
        lambda drawer: {"text": "Hello", "key": uuid.uuid4(), "agent": NO_ROW},
        "agent",
    ),
}


@pytest.mark.parametrize("name", INTO_NOTHING)
def test_a_target_that_is_gone_is_named_and_everything_stays(alices, drawer, name):
    where, sent, sentence = INTO_NOTHING[name]
    address, sent = where(drawer), sent(drawer) if callable(sent) else sent
    before = (drawer.room_id, drawer.room.wing_id)
    names = set(Entity.objects.values_list("uuid", flat=True))
    page = alices.post(address, sent, follow=True)
    assert page.status_code in {200, 400}
    assert sentence in page.text
    drawer.refresh_from_db()
    assert (drawer.room_id, drawer.room.wing_id) == before
    assert set(Entity.objects.values_list("uuid", flat=True)) == names
    assert not Conversation.objects.exists()


@pytest.mark.parametrize("name", ["place_edit", "rename_conversation", "wing_edit", "agent_detail"])
def test_a_form_of_something_that_was_moved_finds_it_still(alices, drawer, name):
    address, sent = POSTED[name](drawer)
    move_room(drawer.room, other_wing(drawer))
    status = alices.post(address, sent, follow=True).status_code
    # The emptied wing is gone with its last room.
    assert status == (404 if name == "wing_edit" else 200)


# Forms with fields that another tab may have changed meanwhile: address, what this tab sends,
# what the other tab does, and what is stored then.
def _wing(drawer):
    wing = drawer.room.wing
    return (
        reverse("wing_edit", args=[wing.uuid]),
        {"name": wing.name, "kind": "person"},
        lambda: Wing.objects.filter(pk=wing.pk).update(name="Boats", slug="boats"),
        lambda: Wing.objects.values_list("name", "kind").get(pk=wing.pk),
        ("Boats", wing.kind),
        (wing.name, "person"),
    )


def _keeping(drawer):
    wing = drawer.room.wing
    return (
        reverse("wing_keeping", args=[wing.uuid]),
        {"months": "12", "never": ""},
        lambda: Wing.objects.filter(pk=wing.pk).update(never=["Derek"]),
        lambda: Wing.objects.values_list("kept_months", "never").get(pk=wing.pk),
        (None, ["Derek"]),
        None,
    )


def _agent(drawer):
    coach = agent(drawer)
    return (
        reverse("agent_detail", args=[coach.uuid]),
        {"name": "Coach", "instructions": "", "model": "", "recalls": ""},
        lambda: Agent.objects.filter(pk=coach.pk).update(instructions="Be kind.\nBe brief."),
        lambda: Agent.objects.values_list("instructions", "recalls").get(pk=coach.pk),
        ("Be kind.\nBe brief.", True),
        ("", False),
    )


def _title(drawer):
    spoken = talk(drawer)
    return (
        reverse("rename_conversation", args=[spoken.uuid]),
        {"title": "Mine"},
        lambda: Conversation.objects.filter(pk=spoken.pk).update(title="Another"),
        lambda: Conversation.objects.get(pk=spoken.pk).title,
        "Another",
        "Mine",
    )


def _record(drawer):
    """The boxes of this tab are those of before the conversation went off the record."""
    spoken = talk(drawer)
    return (
        reverse("choose", args=[spoken.uuid]),
        {"no_recall": "1"},
        lambda: Conversation.objects.filter(pk=spoken.pk).update(off_record=True),
        lambda: Conversation.objects.values_list("recalls", "off_record").get(pk=spoken.pk),
        (True, True),
        (False, False),
    )


def _settings(drawer):
    owner = drawer.palace.owner
    chosen = settings_of(owner.pk)
    chosen.save()
    return (
        reverse("settings"),
        {name: UNCHANGED[name] for name in ON_GENERAL_PAGE if name in UNCHANGED} | {"top_k": "9"},
        lambda: MemorySettings.objects.filter(owner=owner).update(auto_mine=False),
        lambda: MemorySettings.objects.values_list("auto_mine", "top_k").get(owner=owner),
        (False, chosen.top_k),
        (True, 9),
    )


def _uses(drawer):
    owner = drawer.palace.owner
    settings_of(owner.pk).save()
    return (
        reverse("model_uses"),
        {"uses": ["replies", "facts"]},
        lambda: MemorySettings.objects.filter(owner=owner).update(uses=["replies"]),
        lambda: sorted(MemorySettings.objects.get(owner=owner).uses),
        ["replies"],
        ["facts", "replies"],
    )


def _dreams(drawer):
    owner = drawer.palace.owner
    chosen = settings_of(owner.pk)
    chosen.save()
    return (
        reverse("dream_settings"),
        {"dreams": "off", "dream_limit_usd": "2", "dream_limit_tokens": "1000"},
        lambda: MemorySettings.objects.filter(owner=owner).update(dream_limit_usd="0.01"),
        lambda: float(MemorySettings.objects.get(owner=owner).dream_limit_usd),
        0.01,
        2.0,
    )


CHANGED_MEANWHILE = {
    "a wing's name and kind": _wing,
    "what a wing keeps": _keeping,
    "an agent": _agent,
    "a conversation's title": _title,
    "off the record": _record,
    "settings of memory": _settings,
    "uses of the model": _uses,
    "settings of dreams": _dreams,
}


@pytest.mark.parametrize("name", CHANGED_MEANWHILE)
def test_what_another_tab_changed_is_not_undone_silently(alices, drawer, name):
    address, sent, elsewhere, stored, theirs, ours = CHANGED_MEANWHILE[name](drawer)
    shown = talk(drawer).get_absolute_url() if "choose" in address else address
    sent = sent | {"version": version_in(alices.get(shown), address)}
    elsewhere()
    response = alices.post(address, sent, follow=True)
    assert response.status_code < 500
    assert "changed meanwhile" in said(response) or "renamed meanwhile" in said(response)
    assert stored() == theirs
    # Sent once more, from the page that says so, it is what the user wants.
    again = alices.post(address, sent | {"version": version_in(response, address)}, follow=True)
    assert again.status_code == 200
    assert "meanwhile" not in said(again)
    assert ours is None or stored() == ours
    # And the second of two clicks is no other tab; a preview saves nothing.
    assert ours is None or "meanwhile" not in said(alices.post(address, sent, follow=True))


def test_an_old_undo_of_a_rename_does_not_touch_a_later_name(alices, drawer):
    renamed = reverse("place_edit", args=["room", drawer.room.uuid])
    page = alices.post(renamed, {"name": "Second"}, follow=True)
    address, undo = hidden_fields(page, "Undo")
    alices.post(renamed, {"name": "Third"})
    response = alices.post(address, undo, follow=True)
    assert "It is called “Third” since, so nothing was undone." in said(response)
    assert Room.objects.get(pk=drawer.room.pk).title == "Third"


def test_an_old_undo_of_a_move_does_not_move_again(alices, drawer):
    room = drawer.room
    second, third = (WingFactory(palace=room.palace) for _ in range(2))
    moved = reverse("place_edit", args=["room", room.uuid])
    address, undo = hidden_fields(alices.post(moved, {"wing": second.uuid}, follow=True), "Undo")
    alices.post(moved, {"wing": third.uuid})
    response = alices.post(address, undo, follow=True)
    assert "since, so nothing was undone" in said(response)
    assert Room.objects.get(pk=room.pk).wing == third


def test_an_old_undo_of_a_names_change_does_not_touch_a_later_name(alices, drawer):
    renamed = reverse("entity_rename", args=[entity(drawer).uuid])
    page = alices.post(renamed, {"name": "Second"}, follow=True)
    address, undo = hidden_fields(page, "Undo")
    alices.post(renamed, {"name": "Third"})
    response = alices.post(address, undo, follow=True)
    assert "It is called “Third” since, so nothing was undone." in said(response)
    assert Entity.objects.get(pk=entity_key(renamed)).name == "Third"


def entity_key(address):
    return Entity.objects.get(uuid=address.split("/")[-3]).pk


def test_a_webhook_that_is_added_twice_is_one(alices, drawer):
    page = alices.get(reverse("webhooks"))
    (key,) = re.findall(r'name="webhook_id" value="([^"]+)"', page.text)
    sent = {"url": "https://example.org/loci", "events": "mined", "palaces": "all"}
    made = alices.post(reverse("webhooks"), sent | {"webhook_id": key})
    again = alices.post(reverse("webhooks"), sent | {"webhook_id": key}, follow=True)
    assert made.status_code == again.status_code == 200
    assert "was added already" in said(again)
    assert Webhook.objects.count() == 1


def test_a_second_click_leaves_the_new_secret_and_the_one_before(alices, drawer):
    address, _ = POSTED["webhook_secret"](drawer)
    detail = alices.get(address.removesuffix("secret/"))
    _, sent = hidden_fields(detail, "New secret")
    before = Webhook.objects.get().sealed_secret
    alices.post(address, sent)
    new = Webhook.objects.get()
    again = alices.post(address, sent, follow=True)
    assert "replaced already" in said(again)
    kept = Webhook.objects.get()
    assert (kept.sealed_secret, kept.former_sealed_secret) == (new.sealed_secret, before)


def test_what_is_deleted_at_the_same_moment_is_named(palace, drawer):
    """Between reading a row and locking its palace, another request may remove it."""
    room, wing = drawer.room, WingFactory(palace=palace)
    stale_wing = Wing.objects.get(pk=wing.pk)
    wing.delete()
    for move in (
        lambda: move_room(room, stale_wing),
        lambda: move_drawers(palace, Drawer.objects.within(palace), stale_wing),
    ):
        with pytest.raises(BadMove, match="no longer here"):
            move()
    stale = Room.objects.select_related("palace", "wing").get(pk=room.pk)
    Palace.objects.filter(pk=palace.pk).update(subject=palace.subject)
    Drawer.objects.filter(room=room).delete()
    Room.objects.filter(pk=room.pk).delete()
    for act in (lambda: rename(stale, "New"), lambda: move_room(stale, other_wing(drawer))):
        with pytest.raises(BadMove, match="no longer here"):
            act()
