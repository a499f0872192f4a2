"""A palace that was lived in passes every check, whatever happened to it; and the command."""

# ruff: noqa: S608 - all of it is written here.
from __future__ import annotations

import json
import os
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import InternalError, connection
from django.db.models import Sum

from config.audit import audit_palace, snapshot
from config.audit.facts_and_references import check_ledgers, files_have_their_imports, read_ledgers
from isolation import row_access
from isolation.policies import protect
from palace.curation.purge import Purge
from palace.curation.refiling import move_drawers
from palace.curation.trash import restore, trash_drawers
from palace.curation.wings import wing_called
from palace.mining.pipeline import mine
from palace.models import AcceptedMessage, Drawer, Palace, Passage, Room
from palace.storage.transcript_filing import file_transcript
from palace.transfer.spools import private_folder
from palace.working.ledger import Ledger, LedgerEntry
from tests.config.audit.conftest import failed
from tests.conversations import transcript


def test_a_palace_that_was_lived_in_is_whole(chatted):
    assert failed(chatted) == {}


def test_it_stays_whole_after_a_purge(chatted):
    drawers = Drawer.objects.within(chatted).filter(source="chat")
    trash_drawers(chatted, drawers)
    assert failed(chatted) == {}
    Purge(chatted).run(Drawer.objects.within(chatted))
    assert not Drawer.objects.within(chatted).filter(source="chat").exists()
    assert failed(chatted) == {}


def test_a_purge_explains_what_it_deleted_and_nothing_else(chatted, damage):
    drawers = Drawer.objects.within(chatted).filter(source="chat")
    lost, purged = drawers.in_order()
    trash_drawers(chatted, drawers.filter(pk=purged.pk))
    Purge(chatted).run(drawers)
    assert failed(chatted) == {}
    damage(chatted, f"DELETE FROM palace_drawer WHERE id = {lost.pk}")
    named = {each.check: each.examples for each in audit_palace(chatted)}
    assert named["message-kept"] == (lost.external_id,)
    assert named["accepted-kept"] == (str(lost.uuid),)


def test_of_a_purged_message_no_digest_is_left(chatted):
    drawers = Drawer.objects.within(chatted)
    trash_drawers(chatted, drawers)
    accepted = AcceptedMessage.objects.filter(palace=chatted)
    assert accepted.filter(digest=None).count() == 0
    Purge(chatted).run(drawers)
    assert accepted.exists()
    assert accepted.exclude(digest=None).count() == 0


def test_what_waits_for_the_worker_is_queued_and_no_fault(palace):
    file_transcript(palace, transcript("Not mined yet.", id="waits"))
    assert failed(palace) == {}
    mine(palace, transcript("Mined, and the embedder was down.", id="outage"))
    Passage.objects.filter(palace=palace).update(embedding=None)
    assert failed(palace) == {}


def test_a_ledger_may_name_what_is_there_and_nothing_of_a_stranger(chatted, bob, damage):
    drawer = Drawer.objects.within(chatted).first()
    ledger = Ledger(chatted, "talk")
    ledger.mark(
        LedgerEntry(f"drawer:{drawer.uuid}"),
        LedgerEntry("drawer:of no id"),
        LedgerEntry("skill:sewing"),
    )
    try:
        assert check_ledgers(chatted, read_ledgers(chatted)).wrong == 0
        strangers = Palace.objects.own(bob)
        moved = Drawer.objects.within(chatted).last()
        ledger.mark(LedgerEntry(f"drawer:{moved.uuid}"))
        damage(strangers, f"UPDATE palace_drawer SET palace_id = %(palace)s WHERE id = {moved.pk}")
        found = check_ledgers(chatted, read_ledgers(chatted))
        assert (found.wrong, found.examples) == (1, (str(moved.uuid),))
    finally:
        ledger.clear()


def audit(capsys, *arguments):
    try:
        call_command("audit", *arguments)
    except SystemExit as ended:
        return ended.code, capsys.readouterr().out
    return 0, capsys.readouterr().out


@pytest.mark.django_db(transaction=True)
def test_the_command_says_what_it_checked_and_fails_where_something_is_wrong(
    django_user_model, capsys
):
    alice = django_user_model.objects.create_user("alice")
    palace = Palace.objects.own(alice)
    mine(palace, transcript("My sister Mia plays the cello.", "Lovely.", id="mia"))

    code, said = audit(capsys, "--user", "alice")
    assert code == 0
    assert f"alice ({palace.uuid}): whole; 2 drawers" in said

    Passage.objects.filter(palace=palace).delete()
    code, said = audit(capsys, "--all")
    assert code == 1
    assert "drawer-embedded: 2 wrong." in said
    code, said = audit(capsys, "--all", "--json")
    report = json.loads(said)
    assert (code, report["failed"]) == (1, 1)
    (found,) = [each for each in report["palaces"][0]["findings"] if each["wrong"]]
    assert found["check"] == "drawer-embedded"
    uuids = Drawer.objects.within(palace).values_list("uuid", flat=True)
    assert set(found["examples"]) == {str(uuid) for uuid in uuids}


@pytest.mark.django_db(transaction=True)
def test_an_audit_cannot_write(alice):
    with pytest.raises(InternalError, match="read-only"), snapshot():
        Palace.objects.own(alice)


@pytest.mark.django_db(transaction=True)
def test_it_sees_all_palaces_where_nothing_is_open(alice, bob, capsys):
    """As from a terminal: what it could not see it would call whole."""
    for person in (alice, bob):
        mine(Palace.objects.own(person), transcript("My sister Mia plays the cello.", id="mia"))
    Passage.objects.all().delete()
    with row_access.deny_all():
        code, said = audit(capsys, "--all")
    assert code == 1
    assert said.count("drawer-embedded: 1 wrong.") == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("damage", "mended"),
    [
        ("DROP POLICY loci_palace ON palace_wing", ""),
        ("ALTER TABLE palace_wing DISABLE ROW LEVEL SECURITY", ""),
        ("ALTER TABLE palace_wing NO FORCE ROW LEVEL SECURITY", ""),
        ("ALTER ROLE loci_palace BYPASSRLS", "ALTER ROLE loci_palace NOBYPASSRLS"),
    ],
)
def test_it_finds_a_table_that_the_database_does_not_protect(damage, mended, capsys):
    assert audit(capsys, "--all")[0] == 0
    try:
        with connection.cursor() as cursor:
            cursor.execute(damage)
        code, said = audit(capsys, "--all")
    finally:
        if mended:
            with connection.cursor() as cursor:
                cursor.execute(mended)
        protect(connection)
    assert code == 1
    assert "row-security: 1 wrong." in said
    assert audit(capsys, "--all")[0] == 0


@pytest.mark.django_db
def test_a_prepared_file_without_its_import_is_found():
    path = private_folder() / f"{uuid4()}.jsonl"
    path.touch()
    assert files_have_their_imports().wrong == 0  # It may be on its way to a job.
    os.utime(path, (0, 0))
    try:
        assert files_have_their_imports().examples == (path.name,)
    finally:
        path.unlink()


def test_one_user_or_all(db):
    with pytest.raises(CommandError, match="--all is everybody"):
        call_command("audit", "--all", "--user", "alice")


def test_rooms_count_on_whatever_happens_to_drawers(chatted):
    drawers = Drawer.objects.within(chatted)
    room = drawers.filter(source="chat").earliest("pk").room
    wing = wing_called(chatted, "Bee keeping")
    move_drawers(chatted, drawers.filter(room=room, position=0), wing)
    assert failed(chatted) == {}
    first = trash_drawers(chatted, drawers.filter(room__wing=wing))
    assert first
    trash_drawers(chatted, drawers.filter(pk=drawers.kept().earliest("pk").pk))
    assert failed(chatted) == {}
    restore(chatted, drawers.trashed())
    assert failed(chatted) == {}
    Purge(chatted).run(drawers.filter(room__wing=wing))
    assert failed(chatted) == {}
    sums = Room.objects.within(chatted).aggregate(Sum("stored_count"), Sum("stored_bytes"))
    texts = list(drawers.values_list("text", flat=True))
    written = sum(len(text.encode()) for text in texts)
    assert sums == {"stored_count__sum": len(texts), "stored_bytes__sum": written}
