"""Every address there is: none of them shows one person's palace to another."""

from __future__ import annotations

import pytest
from django.urls import URLPattern, get_resolver, reverse

from tests.factories import rows_of_palace
from tests.views.somebodys_rows import (
    agent,
    api_key,
    case,
    connected_app,
    drop,
    entity,
    fact,
    import_job,
    in_trash,
    ledger_item,
    merge,
    other_wing,
    question,
    recollection,
    reply,
    talk,
    webhook,
)

# What shows nobody's memories. A new address belongs here, or gets its test below.
WITHOUT_MEMORIES = {"home", "sign_in", "sign_in_once", "sign_out", "sign_up"} | {
    "health",
    "health_live",
    "health_ready",
    "metrics",
    "sign_in_code",
}
# What only does something with the settings of the signed-in user.
WITHOUT_MEMORIES |= {"try_model", "remove_key"}
# What shows how much a deleted account held, to the holder of its receipt.
WITHOUT_MEMORIES |= {"account_deleted"}
# What only adds or removes the sample of the signed-in user.
WITHOUT_MEMORIES |= {"sample_load", "sample_remove"}
# What asks the signed-in user about an app: tests/api/oauth.
WITHOUT_MEMORIES |= {"authorize"}
# What says the same to everybody.
WITHOUT_MEMORIES |= {"keyboard", "components"}
# What only does something with the cases of the signed-in user.
WITHOUT_MEMORIES |= {"try_cases"}
# What only deletes from the working memory of the signed-in user.
WITHOUT_MEMORIES |= {"delete_working"}
# What only sends the signed-in user their own palace: tests/transfer/test_export_endpoints.py.
WITHOUT_MEMORIES |= {"export_palace"}
# What only lets areas of life of the signed-in user have wings again: test_review_rooms.py.
WITHOUT_MEMORIES |= {"suggest_area"}
# Parts that a page asks for by itself, while somebody may be typing.
POLLED = {"import_now", "message_memory"}
# What shows the memories of the signed-in user, and has nobody else's in its address.
ONES_OWN = {
    "account",
    "second_step",
    "activities",
    "agents",
    "api_keys",
    "chat",
    "connected_apps",
    "costs",
    "data_settings",
    "delete_account",
    "dream_now",
    "dream_settings",
    "entities",
    "episodes",
    "fact_changes",
    "facts",
    "go",
    "import_now",
    "imports",
    "inbox",
    "memory",
    "model_settings",
    "model_uses",
    "recall_cases",
    "sent",
    "settings",
    "trash",
    "webhooks",
    "working_memory",
}
# What names something in a palace: its address, and the fixture it is made from.
SOMEBODYS = {
    "wing_detail": lambda drawer: drawer.room.wing.get_absolute_url(),
    "wing_timeline": lambda drawer: reverse("wing_timeline", args=[drawer.room.wing.uuid]),
    "room_detail": lambda drawer: drawer.room.get_absolute_url(),
    "closet_detail": lambda drawer: drawer.closet.get_absolute_url(),
    "drawer_detail": lambda drawer: drawer.get_absolute_url(),
    "fact_detail": lambda drawer: fact(drawer).get_absolute_url(),
    "correct_fact": lambda drawer: f"{reverse('correct_fact', args=[fact(drawer).memory])}?do=edit",
    "entity_detail": lambda drawer: reverse("entity_detail", args=[entity(drawer).uuid]),
    "entity_edit": lambda drawer: reverse("entity_edit", args=[entity(drawer).uuid]),
    "pointer": lambda drawer: f"{reverse('pointer')}?p={drawer.pointer}",
    "import_detail": lambda drawer: import_job(drawer).get_absolute_url(),
    "conversation_detail": lambda drawer: talk(drawer).get_absolute_url(),
    "reply_stream": lambda drawer: reverse("reply_stream", args=[reply(drawer).uuid]),
    "reply_memories": lambda drawer: reverse("reply_memories", args=[reply(drawer).uuid]),
    "message_text": lambda drawer: reverse("message_text", args=[reply(drawer).uuid]),
    "earlier_versions": lambda drawer: reverse("earlier_versions", args=[talk(drawer).uuid]),
    "webhook_detail": lambda drawer: reverse("webhook_detail", args=[webhook(drawer).uuid]),
    "pointer_path": lambda drawer: reverse("pointer_path", args=["W-9042/R-9011/D-9007"]),
}
# What only does something, when posted to: its address, and what is sent along.
ACTIONS = {
    "import_start": lambda drawer: (reverse("import_start", args=[import_job(drawer).uuid]), {}),
    "import_pause": lambda drawer: (reverse("import_pause", args=[import_job(drawer).uuid]), {}),
    "import_discard": lambda drawer: (
        reverse("import_discard", args=[import_job(drawer).uuid]),
        {},
    ),
    "restore_batch": lambda drawer: (reverse("restore_batch", args=[in_trash(drawer)]), {}),
    "restore_drawer": lambda drawer: (reverse("restore_drawer", args=[drawer.uuid]), {}),
    "purge_drawer": lambda drawer: (reverse("purge_drawer", args=[drawer.uuid]), {}),
    "rewrite_fact": lambda drawer: (
        reverse("rewrite_fact", args=[fact(drawer).memory]),
        {"text": "New"},
    ),
    "reassign_fact": lambda drawer: (
        reverse("reassign_fact", args=[fact(drawer).memory]),
        {"about": "Eve"},
    ),
    "end_fact": lambda drawer: (
        reverse("end_fact", args=[fact(drawer).memory]),
        {"on": "2025-06-30"},
    ),
    "selected_facts": lambda drawer: (
        reverse("selected_facts"),
        {"do": "forget", "fact": fact(drawer).memory},
    ),
    "wrong_fact": lambda drawer: (reverse("wrong_fact", args=[fact(drawer).memory]), {}),
    "undo_fact": lambda drawer: (reverse("undo_fact", args=[fact(drawer).memory]), {}),
    "selected_entities": lambda drawer: (
        reverse("selected_entities"),
        {"do": "trash", "sure": "1", "entity": entity(drawer).uuid},
    ),
    "selected_conversations": lambda drawer: (
        reverse("selected_conversations"),
        {"sure": "1", "conversation": talk(drawer).uuid},
    ),
    "selected": lambda drawer: (reverse("selected"), {"do": "trash", "drawer": drawer.uuid}),
    "review_room": lambda drawer: (reverse("review_room", args=[drawer.room.uuid, "trash"]), {}),
    "activity_undo": lambda drawer: (
        reverse("activity_undo", args=[merge(drawer, "wings_merged").uuid]),
        {},
    ),
    "entity_rename": lambda drawer: (
        reverse("entity_rename", args=[entity(drawer).uuid]),
        {"name": "New"},
    ),
    "retire_fact": lambda drawer: (reverse("retire_fact", args=[fact(drawer).memory]), {}),
    "restore_fact": lambda drawer: (reverse("restore_fact", args=[fact(drawer).memory]), {}),
    "entity_merge": lambda drawer: (
        reverse("entity_merge", args=[entity(drawer).uuid]),
        {"other": fact(drawer).subject.uuid},
    ),
    "entity_split": lambda drawer: (
        reverse("entity_split", args=[entity(drawer).uuid]),
        {"name": "New", "fact": fact(drawer).uuid},
    ),
    "entity_undo": lambda drawer: (reverse("entity_undo", args=[merge(drawer).uuid]), {}),
    "accept_proposal": lambda drawer: (reverse("accept_proposal", args=[drop(drawer).uuid]), {}),
    "reject_proposal": lambda drawer: (reverse("reject_proposal", args=[drop(drawer).uuid]), {}),
    "undo_proposal": lambda drawer: (reverse("undo_proposal", args=[drop(drawer).uuid]), {}),
    "decide_proposals": lambda drawer: (
        reverse("decide_proposals"),
        {"chosen": drop(drawer).uuid, "decision": "accept"},
    ),
    "webhook_try": lambda drawer: (reverse("webhook_try", args=[webhook(drawer).uuid]), {}),
    "webhook_secret": lambda drawer: (reverse("webhook_secret", args=[webhook(drawer).uuid]), {}),
    "webhook_switch": lambda drawer: (reverse("webhook_switch", args=[webhook(drawer).uuid]), {}),
    "delete_case": lambda drawer: (reverse("delete_case", args=[case(drawer).uuid]), {}),
    "say": lambda drawer: (reverse("say", args=[talk(drawer).uuid]), {"text": "Hi", "key": KEY}),
    "retry": lambda drawer: (reverse("retry", args=[talk(drawer).uuid]), {}),
    "stop_reply": lambda drawer: (reverse("stop_reply", args=[reply(drawer).uuid]), {}),
    "choose": lambda drawer: (reverse("choose", args=[talk(drawer).uuid]), {"off_record": "1"}),
    "message_fact": lambda drawer: (
        reverse("message_fact", args=[question(drawer).uuid, fact(drawer).memory]),
        {"do": "undo"},
    ),
    "remember_conversation": lambda drawer: (
        reverse("remember_conversation", args=[talk(drawer).uuid]),
        {},
    ),
}
# What is a page with a form, and takes what that sends: its address, and what is sent.
FORMS = {
    "rename_conversation": lambda drawer: (
        reverse("rename_conversation", args=[talk(drawer).uuid]),
        {"title": "New"},
    ),
    "delete_conversation": lambda drawer: (
        reverse("delete_conversation", args=[talk(drawer).uuid]),
        {"drawers": "1"},
    ),
    "message_memory": lambda drawer: (
        reverse("message_memory", args=[question(drawer).uuid]),
        {"do": "forget"},
    ),
    "edit_message": lambda drawer: (
        reverse("edit_message", args=[question(drawer).uuid]),
        {"text": "New", "key": KEY},
    ),
    "conversation_ledger": lambda drawer: (
        reverse("conversation_ledger", args=[talk(drawer).uuid]),
        {"item": ledger_item(drawer)},
    ),
    "trash_place": lambda drawer: (reverse("trash_place", args=["drawer", drawer.uuid]), {}),
    "empty_trash": lambda drawer: (reverse("empty_trash", args=[in_trash(drawer)]), {}),
    "wing_edit": lambda drawer: (
        reverse("wing_edit", args=[drawer.room.wing.uuid]),
        {"name": "New", "kind": "topic"},
    ),
    "wing_keeping": lambda drawer: (
        reverse("wing_keeping", args=[drawer.room.wing.uuid]),
        {"months": "1", "set": "1"},
    ),
    "place_edit": lambda drawer: (
        reverse("place_edit", args=["room", drawer.room.uuid]),
        {"name": "New"},
    ),
    "wing_merge": lambda drawer: (
        f"{reverse('wing_merge', args=[drawer.room.wing.uuid])}?into={other_wing(drawer).uuid}",
        {"into": other_wing(drawer).uuid},
    ),
    "recall_detail": lambda drawer: (
        reverse("recall_detail", args=[recollection(drawer).uuid]),
        {"drawer": drawer.uuid},
    ),
    "agent_detail": lambda drawer: (agent(drawer).get_absolute_url(), {"name": "New"}),
    "webhook_delete": lambda drawer: (reverse("webhook_delete", args=[webhook(drawer).uuid]), {}),
    "revoke_key": lambda drawer: (reverse("revoke_key", args=[api_key(drawer).uuid]), {}),
    "end_app": lambda drawer: (reverse("end_app", args=[connected_app(drawer).uuid]), {}),
    "delete_agent": lambda drawer: (reverse("delete_agent", args=[agent(drawer).uuid]), {}),
}
# All that can be looked at, and all that can be posted to.
SHOWN = SOMEBODYS | {
    name: lambda drawer, form=form: form(drawer)[0] for name, form in FORMS.items()
}
POSTED = ACTIONS | FORMS
KEY = "6f1f3f0e-0b1f-4c55-8f55-0d6f0c3a7d11"


def page_names(patterns=None, at=""):
    """Names of every address of ours that is not a program's door (those have their own tests)."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        if isinstance(pattern, URLPattern):
            yield pattern.name or at + str(pattern.pattern)
        # tests/settings_app/test_admin.py and tests/api/rest/test_isolation.py walk through these.
        elif pattern.namespace not in ("admin", "api", "mem0", "proxy"):
            yield from page_names(pattern.url_patterns, at + str(pattern.pattern))


def test_every_address_is_tested_for_isolation():
    assert set(page_names()) == WITHOUT_MEMORIES | ONES_OWN | set(SHOWN) | set(ACTIONS)


@pytest.mark.parametrize("name", SHOWN)
def test_a_strangers_address_is_not_found(bobs, drawer, name):
    response = bobs.get(SHOWN[name](drawer))
    assert response.status_code == 404
    assert drawer.text not in response.text
    assert drawer.room.title not in response.text


@pytest.mark.parametrize("name", SHOWN)
def test_a_strangers_part_is_not_found(bobs, drawer, name):
    response = bobs.get(SHOWN[name](drawer), headers={"HX-Request": "true"})
    assert response.status_code == 404
    assert drawer.room.title not in response.text


@pytest.mark.parametrize("name", SHOWN)
def test_the_owner_gets_there(alices, drawer, name):
    assert alices.get(SHOWN[name](drawer), follow=True).status_code == 200


@pytest.mark.parametrize("name", ONES_OWN)
def test_ones_own_page_shows_nothing_of_others(bobs, drawer, name):
    response = bobs.get(reverse(name))
    assert response.status_code == 200
    assert drawer.room.wing.name not in response.text


@pytest.mark.parametrize("name", SHOWN)
def test_without_sign_in_one_is_asked_to(client, drawer, name):
    response = client.get(SHOWN[name](drawer))
    assert response.status_code == 302
    assert response.url.startswith(f"{reverse('sign_in')}?next=")


@pytest.mark.parametrize("name", sorted(set(SHOWN) - POLLED))
def test_without_sign_in_a_part_reloads_its_page(client, drawer, name):
    response = client.get(SHOWN[name](drawer), headers={"HX-Request": "true"})
    assert response.headers["HX-Refresh"] == "true"
    assert drawer.text not in response.text


@pytest.mark.parametrize("name", sorted(POLLED))
def test_without_sign_in_what_a_page_asks_by_itself_leaves_it_as_it_is(client, drawer, name):
    address = SHOWN[name](drawer) if name in SHOWN else reverse(name)
    response = client.get(address, headers={"HX-Request": "true"})
    assert (response.status_code, response.content) == (204, b"")
    assert "HX-Refresh" not in response.headers


@pytest.mark.parametrize("name", SOMEBODYS)
def test_no_page_is_changed_by_a_form(alices, drawer, name):
    assert alices.post(SOMEBODYS[name](drawer)).status_code == 405


@pytest.mark.parametrize("name", POSTED)
@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_a_stranger_can_do_nothing(bobs, drawer, name, headers):
    address, sent = POSTED[name](drawer)
    before = rows_of_palace(drawer.palace)
    response = bobs.post(address, sent, headers=headers)
    assert response.status_code == 404
    assert drawer.text not in response.text
    assert rows_of_palace(drawer.palace) == before


@pytest.mark.parametrize("name", POSTED)
def test_without_sign_in_nothing_is_done(client, drawer, name):
    address, sent = POSTED[name](drawer)
    before = rows_of_palace(drawer.palace)
    assert client.post(address, sent).url.startswith(reverse("sign_in"))
    assert client.post(address, sent, headers={"HX-Request": "true"}).status_code == 403
    assert rows_of_palace(drawer.palace) == before


@pytest.mark.parametrize("name", ACTIONS)
def test_what_does_something_is_not_done_by_a_link(alices, drawer, name):
    address, _sent = ACTIONS[name](drawer)
    assert alices.get(address).status_code == 405


def test_a_superuser_sees_no_more_than_others(client, admin_user, drawer):
    client.force_login(admin_user)
    assert client.get(drawer.get_absolute_url()).status_code == 404
