"""The admin site: accounts and costs, and nothing that anybody said, asked or is remembered by."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.urls import NoReverseMatch, get_resolver, reverse

from chat.models import Agent, Conversation, Message
from llm import usage
from llm.models import Usage
from palace.models import Activity, Palace, RecollectionTrace
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from settings_app.models import MemorySettings
from settings_app.sessions import Session
from tests.factories import ClosetFactory, DrawerFactory, RoomFactory, WingFactory

# Words that stand in every private field of Alice's, and in no name of a field or a page.
SECRET = "marzipan"


@pytest.fixture
def staff(db):
    return get_user_model().objects.create_superuser("root", password="root-password")


@pytest.fixture
def desk(client, staff):
    """The browser of somebody who runs the place."""
    client.force_login(staff)
    return client


@pytest.fixture
def full_palace(alice, palace):
    """Something of Alice's in every kind of table that holds what she said."""
    wing = WingFactory(palace=palace, name=f"{SECRET} wing")
    room = RoomFactory(wing=wing, title=f"{SECRET} room")
    closet = ClosetFactory(room=room, title=f"{SECRET} closet")
    DrawerFactory(room=room, closet=closet, text=f"I hide the {SECRET}.")
    recall(palace, RecallRequest(f"Where is the {SECRET}?"))
    Activity.objects.create(palace=palace, kind="memory_mined", summary=f"Mined {SECRET}.")
    agent = Agent.objects.create(palace=palace, name=f"{SECRET} agent", instructions=SECRET)
    talk = Conversation.objects.create(
        palace=palace, agent=agent, title=f"{SECRET} talk", spoke_at="2025-03-03T09:00Z"
    )
    Message.objects.create(
        palace=palace,
        conversation=talk,
        position=0,
        role="user",
        text=SECRET,
        said_at="2025-03-03T09:00Z",
    )
    Palace.objects.create(owner=alice, subject=f"{SECRET} person")
    MemorySettings.objects.create(owner=alice, provider="ollama", model=SECRET)
    usage.record(
        purpose="chat", provider="openai", model="gpt-4o-mini", duration_ms=5, owner_id=alice.pk
    )
    Client().force_login(alice)
    return palace


def rows_of(person):
    """Every row there is of somebody, by model, whichever way it belongs to them."""
    found = {}
    for model in apps.get_models():
        names = {field.name: field for field in model._meta.concrete_fields}
        if "palace" in names:
            found[model] = model._base_manager.filter(palace__owner=person).count()
        elif getattr(names.get("owner"), "related_model", None) is User:
            found[model] = model._base_manager.filter(owner=person).count()
    return {model: count for model, count in found.items() if count}


def admin_addresses(person):
    """Every page of the site that can be opened, with `person` for its subject."""
    patterns = get_resolver().url_patterns
    (site,) = [entry for entry in patterns if getattr(entry, "namespace", "") == "admin"]
    names = {entry.name for entry in flat(site.url_patterns) if entry.name}
    for name in sorted(names):
        for args in (
            [],
            [person.pk],
            ["auth"],
            [Usage.objects.filter(owner=person).latest("pk").pk],
        ):
            try:
                yield reverse(f"admin:{name}", args=args)
            except NoReverseMatch:
                continue


def flat(patterns):
    for entry in patterns:
        if hasattr(entry, "url_patterns"):
            yield from flat(entry.url_patterns)
        else:
            yield entry


# What may be seen.


def test_nothing_of_palace_chat_or_settings_has_a_page():
    assert set(admin.site._registry) == {User, Usage}


def test_no_page_of_the_site_shows_what_anybody_said(desk, alice, full_palace):
    opened = [address for address in admin_addresses(alice) if "logout" not in address]
    answers = {address: desk.get(address, {"q": "alice"}, follow=True) for address in opened}
    assert sum(answer.status_code == 200 for answer in answers.values()) > 9
    for address, answer in answers.items():
        assert answer.status_code in {200, 403, 404}, address
        assert SECRET not in answer.text, address


def test_rows_of_other_tables_cannot_even_be_asked_for(desk, full_palace):
    for model in (Palace, MemorySettings, Message):
        with pytest.raises(NoReverseMatch):
            reverse(f"admin:{model._meta.label_lower.replace('.', '_')}_changelist")
    assert desk.get("/admin/palace/drawer/").status_code == 404
    assert desk.get("/admin/r/1/1/").status_code == 404


@pytest.mark.parametrize(
    "lookup",
    [
        "palaces__subject__startswith=m",
        "memory_settings__model__startswith=m",
        "password__startswith=p",
        "sessions__session_key__startswith=a",
    ],
)
def test_a_filter_in_the_address_cannot_ask_for_private_fields(desk, full_palace, lookup):
    response = desk.get(f"{reverse('admin:auth_user_changelist')}?{lookup}")
    assert response.status_code == 400
    response = desk.get(f"{reverse('admin:llm_usage_changelist')}?owner__{lookup}")
    assert response.status_code == 400


@pytest.mark.parametrize("field", ["outcome", "outcome__exact", "purpose__exact", "provider"])
def test_a_nul_in_the_address_of_a_list_is_a_bad_request(desk, field):
    address = reverse("admin:llm_usage_changelist")
    assert desk.get(f"{address}?{field}=a%00b").status_code == 400


def test_usage_is_to_be_looked_at_only(desk, alice, full_palace):
    row = Usage.objects.get(owner=alice, purpose="chat")
    page = desk.get(reverse("admin:llm_usage_change", args=[row.pk]))
    assert "gpt-4o-mini" in page.text
    assert '<input type="submit"' not in page.text
    for name, args in (("add", []), ("delete", [row.pk])):
        assert desk.get(reverse(f"admin:llm_usage_{name}", args=args)).status_code == 403
    sent = {"action": "delete_selected", "_selected_action": row.pk, "post": "yes"}
    desk.post(reverse("admin:llm_usage_changelist"), sent)
    assert Usage.objects.filter(pk=row.pk).exists()


def test_the_record_of_what_was_done_holds_names_of_users_only(desk, alice, full_palace):
    fields = {"username": "alicia", "email": "a@example.org", "is_active": "on"}
    desk.post(reverse("admin:auth_user_change", args=[alice.pk]), fields)
    desk.post(reverse("admin:auth_user_delete", args=[alice.pk]), {"post": "yes"})
    changed, deleted = LogEntry.objects.order_by("pk")
    assert (changed.object_repr, deleted.object_repr) == ("alicia", "alicia")
    assert SECRET not in changed.change_message + deleted.change_message


# Who may see it.


@pytest.mark.parametrize("address", ["/admin/", "/admin/auth/user/", "/admin/login/"])
def test_the_way_in_is_the_one_sign_in(client, staff, address):
    response = client.get(address, follow=True)
    assert response.redirect_chain[-1][0].startswith(reverse("sign_in"))
    assert "Sign in" in response.text
    where = re.search('name="next" value="([^"]+)"', response.text)[1]
    assert where.startswith("/admin/")
    sent = {"username": "root", "password": "root-password", "next": where}
    assert client.post(reverse("sign_in"), sent, follow=True).status_code == 200


def test_its_sign_in_leads_nowhere_else(client, staff):
    response = client.get("/admin/login/?next=https://elsewhere.example/")
    assert response.url == f"{reverse('sign_in')}?next=/admin/"


def test_its_sign_in_takes_no_passwords_of_its_own(client, staff):
    client.post("/admin/login/", {"username": "root", "password": "root-password"})
    assert "_auth_user_id" not in client.session


def test_one_who_is_not_staff_reads_so_and_is_not_sent_in_circles(client, alice):
    client.force_login(alice)
    response = client.get("/admin/", follow=True)
    assert response.status_code == 403
    assert "You cannot open this page" in response.text
    assert reverse("admin:index") not in client.get(reverse("account")).text


def test_staff_find_the_site_from_their_account(desk):
    assert f'href="{reverse("admin:index")}"' in desk.get(reverse("account")).text


def test_signing_out_and_the_own_password_are_the_houses(desk):
    assert desk.get("/admin/password_change/").url == reverse("account")
    assert desk.post("/admin/logout/").url == reverse("sign_in")
    assert "_auth_user_id" not in desk.session


def test_being_staff_alone_opens_no_page(client, alice):
    alice.is_staff = True
    alice.save()
    client.force_login(alice)
    assert client.get("/admin/").status_code == 200
    for name in ("auth_user", "llm_usage"):
        assert client.get(reverse(f"admin:{name}_changelist")).status_code == 403


@pytest.fixture
def helper(alice):
    """Staff who may see to users, but is no superuser."""
    alice.is_staff = True
    alice.save()
    names = ("view_user", "add_user", "change_user", "delete_user")
    alice.user_permissions.set(Permission.objects.filter(codename__in=names))
    client = Client()
    client.force_login(alice)
    return client


def test_a_helper_cannot_make_themselves_or_others_mightier(helper, alice, bob, staff):
    for person in (alice, bob):
        sent = {"username": person.username, "is_active": "on", "is_staff": "on"}
        sent |= {"is_superuser": "on", "user_permissions": [1, 2, 3]}
        before = list(person.user_permissions.all()), person.is_staff
        helper.post(reverse("admin:auth_user_change", args=[person.pk]), sent)
        person.refresh_from_db()
        assert not person.is_superuser
        assert (list(person.user_permissions.all()), person.is_staff) == before
    change = reverse("admin:auth_user_change", args=[staff.pk])
    assert helper.post(change, {"username": "fallen"}).status_code == 403
    delete = reverse("admin:auth_user_delete", args=[staff.pk])
    assert helper.post(delete, {"post": "yes"}).status_code == 403
    sent = {"action": "delete_selected", "_selected_action": [staff.pk], "post": "yes"}
    helper.post(reverse("admin:auth_user_changelist"), sent)
    assert User.objects.filter(pk=staff.pk, username="root").exists()


def test_nobody_is_given_a_password_by_somebody_else(desk, alice):
    """With it they would sign in, and read."""
    with pytest.raises(NoReverseMatch):
        reverse("admin:auth_user_password_change", args=[alice.pk])
    form = desk.get(f"/admin/auth/user/{alice.pk}/password/", follow=True)
    assert 'type="password"' not in form.text
    page = desk.get(reverse("admin:auth_user_change", args=[alice.pk])).text
    assert 'name="password' not in page
    assert "md5" not in page
    sent = {"username": "alice", "password": "x", "password1": "x", "usable_password": "false"}
    desk.post(reverse("admin:auth_user_change", args=[alice.pk]), {**sent, "is_active": "on"})
    alice.refresh_from_db()
    assert alice.check_password("alice-password")


# What may be done.


def test_users_are_found_by_name_and_address(desk, alice, bob):
    for query in ("lic", "alice@example"):
        page = desk.get(reverse("admin:auth_user_changelist"), {"q": query}).text
        assert "alice@example.org" in page
        assert "bob@example.org" not in page


@pytest.mark.parametrize("usable", ["true", "false"])
def test_an_account_can_be_made_with_and_without_a_password(desk, usable):
    sent = {"username": "dora", "usable_password": usable}
    sent |= {"password1": "of dora's own", "password2": "of dora's own"}
    desk.post(reverse("admin:auth_user_add"), sent)
    assert User.objects.get(username="dora").has_usable_password() is (usable == "true")


def test_no_second_spelling_of_a_name_is_taken(desk, alice, bob):
    sent = {"username": "ALICE", "usable_password": "false"}
    assert "This name is taken." in desk.post(reverse("admin:auth_user_add"), sent).text
    change = reverse("admin:auth_user_change", args=[bob.pk])
    assert "This name is taken." in desk.post(change, {"username": "Alice"}).text
    change = reverse("admin:auth_user_change", args=[alice.pk])
    assert desk.post(change, {"username": "Alice", "is_active": "on"}).status_code == 302


def test_before_a_user_is_deleted_only_counts_are_shown(desk, alice, full_palace):
    page = desk.get(reverse("admin:auth_user_delete", args=[alice.pk]))
    assert page.status_code == 200
    assert SECRET not in page.text
    assert "Yes, I’m sure" in page.text
    for line in ("Palaces: 2", "Drawers: 1", "Messages: 1", "Usage: 2", "Sessions: 1"):
        assert f"<li>{line}</li>" in page.text
    for model, count in rows_of(alice).items():
        assert f"<li>{model._meta.verbose_name_plural.capitalize()}: {count}</li>" in page.text


@pytest.mark.parametrize("way", ["page", "action"])
def test_a_user_goes_with_everything_that_was_theirs(desk, alice, bob, full_palace, way):
    kept = DrawerFactory(room__wing__palace=Palace.objects.own(bob), closet=None)
    assert len(rows_of(alice)) > 10
    if way == "page":
        desk.post(reverse("admin:auth_user_delete", args=[alice.pk]), {"post": "yes"})
    else:
        sent = {"action": "delete_selected", "_selected_action": [alice.pk]}
        page = desk.post(reverse("admin:auth_user_changelist"), sent)
        assert SECRET not in page.text
        desk.post(reverse("admin:auth_user_changelist"), {**sent, "post": "yes"})
    connection.check_constraints()
    assert not User.objects.filter(username="alice").exists()
    assert rows_of(alice) == {}
    assert not Session.objects.filter(owner_id=alice.pk).exists()
    for model in apps.get_models():
        if "palace" in {field.name for field in model._meta.concrete_fields}:
            orphans = model._base_manager.exclude(palace__in=Palace.objects.all())
            assert not orphans.exists(), model
    kept.refresh_from_db()
    assert User.objects.filter(pk=bob.pk).exists()


@pytest.mark.django_db(transaction=True)
def test_a_user_can_be_deleted_while_models_work_for_them(desk, alice):
    """Rows written between the deleting of rows and the deleting of their owner would stop it."""

    def work():
        try:
            kept = True
            while kept:
                kept = usage.record(
                    purpose="chat", provider="local", model="m", duration_ms=1, owner_id=alice.pk
                )
        finally:
            connection.close()

    with ThreadPoolExecutor(3) as threads:
        working = [threads.submit(work) for _ in range(3)]
        while not Usage.objects.filter(owner=alice).count() > 20:
            pass
        desk.post(reverse("admin:auth_user_delete", args=[alice.pk]), {"post": "yes"})
        assert not User.objects.filter(pk=alice.pk).exists()
        for each in working:
            each.result(timeout=60)
    assert not Usage.objects.exists()


def test_traces_and_settings_are_among_what_is_counted(alice, full_palace):
    assert {RecollectionTrace, MemorySettings, Agent} <= set(rows_of(alice))
