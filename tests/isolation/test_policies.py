"""The database's own rules: every table with an owner has them, and nobody gets around them."""

from __future__ import annotations

from contextlib import ExitStack

import psycopg
import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import ProgrammingError, connection, transaction

from isolation import row_access
from isolation.policies import ROLES, protect, unprotect, unprotected
from llm.models import Usage
from palace.models import Drawer, Palace, Webhook, Wing, open_palace
from settings_app.api_keys import issue
from settings_app.models import MemorySettings
from tests.factories import DrawerFactory, RoomFactory, WingFactory

pytestmark = pytest.mark.django_db


def belonging():
    """The tables of models that are of a palace or of an account."""
    for model in apps.get_models(include_auto_created=True):
        columns = {field.column for field in model._meta.concrete_fields}
        if columns & {"palace_id", "owner_id"}:
            yield model._meta.db_table


@pytest.fixture
def bobs(bob):
    return Palace.objects.own(bob)


@pytest.fixture
def drawer(palace):
    return DrawerFactory(room=RoomFactory(wing=WingFactory(palace=palace)))


def ask(statement, *parameters):
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall()


def change(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)


def refused():
    """The database refuses what is done in the block, and goes on."""
    refusal = pytest.raises(ProgrammingError, match="row-level security")
    stack = ExitStack()
    stack.enter_context(refusal)
    stack.enter_context(transaction.atomic())
    return stack


def test_tables_are_found():
    assert {"palace_drawer", "chat_message", "llm_usage", "settings_app_apikey"} <= set(belonging())


@pytest.mark.parametrize("table", sorted(belonging()))
def test_every_table_that_is_somebodys_has_forced_rules_for_every_role(table):
    enabled, forced = ask(
        "SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE oid = %s::regclass", table
    )[0]
    assert (enabled, forced) == (True, True)
    found = ask(
        "SELECT policyname::text, roles::text[] FROM pg_policies WHERE tablename = %s", table
    )
    assert sorted(found) == sorted((role, [role]) for role in ROLES)


@pytest.mark.parametrize("role", ROLES)
def test_no_role_can_bypass_them_or_owns_anything(role):
    [flags] = ask(
        "SELECT rolsuper, rolbypassrls, rolcanlogin, rolcreaterole, rolcreatedb, rolinherit"
        " FROM pg_roles WHERE rolname = %s",
        role,
    )
    assert flags == (False, False, False, False, False, True)
    assert ask("SELECT count(*) FROM pg_class WHERE relowner = %s::regrole", role) == [(0,)]
    member_of = "SELECT count(*) FROM pg_auth_members WHERE member = %s::regrole"
    assert ask(member_of, role) == [(0,)]


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE palace_drawer DISABLE ROW LEVEL SECURITY",
        "DROP POLICY loci_palace ON palace_drawer",
        "TRUNCATE palace_drawer CASCADE",
        "SET LOCAL session_replication_role = replica",
    ],
)
def test_what_is_running_cannot_take_them_away(palace, statement):
    with open_palace(palace), pytest.raises(ProgrammingError), transaction.atomic():
        change(statement)


def test_without_anything_opened_there_is_no_row(drawer, alice):
    Usage.objects.create(owner=alice, purpose="chat", provider="x", model="x", duration_ms=1)
    Webhook.objects.create(owner=alice, url="https://example.org/", events=["mined"])
    MemorySettings.objects.create(owner=alice)
    issue(alice, "a program")
    with row_access.deny_all():
        for table in belonging():
            assert ask(f"SELECT count(*) FROM {table}") == [(0,)], table  # noqa: S608
    assert Drawer.objects.count() == 1


def test_an_open_palace_shows_its_rows_and_no_others(drawer, palace, bobs):
    with open_palace(bobs):
        assert not Drawer.objects.exists()
        assert list(Palace.objects.all()) == [bobs]
        assert Drawer.objects.update(text="Taken over") == 0
        assert Drawer.objects.all()._raw_delete("default") == 0
    with open_palace(palace):
        assert list(Drawer.objects.all()) == [drawer]


def test_a_row_cannot_be_written_into_the_palace_of_somebody_else(palace, bobs):
    with open_palace(bobs), refused():
        WingFactory(palace=palace)
    wing = WingFactory(palace=bobs)
    with open_palace(bobs), refused():
        Wing.objects.filter(pk=wing.pk).update(palace=palace)


def test_a_palace_cannot_be_made_for_somebody_else(alice, bob):
    with row_access.open_account(bob.pk), refused():
        Palace.objects.create(owner=alice, subject="ada")


def test_an_owner_sees_all_own_palaces_and_a_bound_key_one(alice, palace, bobs):
    ada = Palace.objects.create(owner=alice, subject="ada")
    with row_access.open_account(alice.pk):
        assert set(Palace.objects.all()) == {palace, ada}
    with row_access.open_account(alice.pk, subject="ada"):
        assert list(Palace.objects.all()) == [ada]
        WingFactory(palace=ada)
        assert list(Palace.objects.filter(subject="").all()) == []
    with row_access.open_account(alice.pk, subject=""):
        assert list(Palace.objects.all()) == [palace]
        assert not Wing.objects.filter(palace=ada).exists()


def test_what_is_nobodys_can_be_written_and_never_reveals_whose(alice, palace):
    with open_palace(palace):
        made = Usage.objects.create(purpose="chat", provider="x", model="x", duration_ms=1)
        assert Usage.objects.get() == made


def test_who_has_a_keys_text_is_shown_that_key(alice, bob):
    key, _ = issue(alice, "one")
    issue(alice, "another")
    with row_access.with_secret(key.digest):
        assert ask("SELECT id FROM settings_app_apikey") == [(key.pk,)]
        assert not Palace.objects.exists()


def test_a_sweep_that_is_not_listed_is_refused():
    with pytest.raises(ValueError, match="not listed"), row_access.sweep("everything"):
        pass


def test_rules_that_are_there_are_left_as_they_are():
    """Else each start would lock each table."""
    before = ask("SELECT oid FROM pg_policy ORDER BY 1")
    protect(connection)
    assert ask("SELECT oid FROM pg_policy ORDER BY 1") == before


def test_a_new_table_is_protected_and_an_older_version_finds_no_rules():
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE of_later (id int, palace_id bigint)")
    call_command("migrate", verbosity=0)
    assert ask("SELECT count(*) FROM pg_policies WHERE tablename = 'of_later'") == [(3,)]
    unprotect(connection)
    assert ask("SELECT count(*) FROM pg_policies") == [(0,)]
    assert ask("SELECT count(*) FROM pg_class WHERE relrowsecurity") == [(0,)]


def copy_nothing():
    with connection.cursor() as cursor, cursor.copy("COPY palace_wing (palace_id) FROM STDIN"):
        pass


def test_a_copy_is_refused_as_it_could_not_be_checked(palace):
    """Why rows are inserted many at once, and not copied in."""
    with (
        open_palace(palace),
        pytest.raises(psycopg.errors.FeatureNotSupported),
        transaction.atomic(),
    ):
        copy_nothing()


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        ("ALTER POLICY loci_palace ON palace_drawer USING (true)", "palace_drawer"),
        ("ALTER POLICY loci_palace ON palace_drawer TO loci_palace, loci_person", "palace_drawer"),
        ("CREATE POLICY more ON palace_drawer USING (true)", "palace_drawer"),
        ("DROP POLICY loci_person ON palace_fact", "palace_fact"),
        ("ALTER TABLE palace_fact NO FORCE ROW LEVEL SECURITY", "palace_fact"),
        ("GRANT loci_sweep TO loci_palace", "loci_palace"),
    ],
)
def test_what_opens_a_table_by_hand_is_noticed(damage, named):
    assert unprotected(connection) == []
    change(damage)
    assert unprotected(connection) == [named]


def test_a_policy_that_was_altered_is_made_again():
    change("ALTER POLICY loci_palace ON palace_drawer USING (true)")
    protect(connection)
    assert unprotected(connection) == []
