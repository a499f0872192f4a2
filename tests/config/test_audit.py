"""Each check passes on a palace that was lived in, and fails on the damage it is for."""

from __future__ import annotations

import json
import os
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import InternalError, connection, transaction
from django.db.models import Sum
from django.utils import timezone

from chat.mining_queue import remember
from chat.models import Conversation, Message
from config.audit import audit_palace, snapshot
from config.audit.references import check_ledgers, files_have_their_imports, read_ledgers
from isolation import row_access
from isolation.policies import protect
from palace.curation.purge import Purge
from palace.curation.refiling import move_drawers
from palace.curation.trash import restore, trash_drawers
from palace.curation.wings import wing_called
from palace.knowledge.episodes.episode_writer import write_due_episodes
from palace.knowledge.facts.fact_learning import learn_unread
from palace.mining.pipeline import mine
from palace.models import AcceptedMessage, Drawer, Fact, ImportJob, Palace, Passage, Room
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.storage.transcript_filing import file_transcript
from palace.transfer.spools import private_folder
from palace.working.ledger import Ledger, LedgerEntry
from tests.conversations import BATTERY, transcript
from tests.furnished_palaces import furnish


def failed(palace):
    return {each.check: each.wrong for each in audit_palace(palace) if each.wrong}


@pytest.fixture
def chatted(palace):
    """Alice's palace with imports, a mined chat, facts, an episode and a recall on record."""
    furnish(palace, "chatted", live)
    assert Fact.objects.within(palace).exclude(supersedes=None).exists()
    return palace


def live(palace):
    """A fact replaces another, which the audit follows."""
    for place, text in enumerate(("I live in Lisbon.", "I moved, and live in Porto now.")):
        mine(palace, transcript(text, "Noted.", id=f"home-{place}"))
        learn_unread(palace)
    mine(palace, BATTERY)
    recall(palace, RecallRequest("Where do I live?"))
    chat(palace, "Our bees swarmed — thrice.\n", "Check the queen cells.")
    write_due_episodes(palace)
    ImportJob.objects.create(palace=palace, status=ImportJob.Status.DONE)


def chat(palace, *texts):
    now = timezone.now()
    conversation = Conversation.objects.create(palace=palace, title="Bees", spoke_at=now)
    for place, text in enumerate(texts):
        Message.objects.create(
            palace=palace,
            conversation=conversation,
            position=place,
            role=("user", "assistant")[place % 2],
            text=text,
            said_at=now,
        )
    remember(conversation)


@pytest.fixture
def damage(db):
    """Writes what foreign keys and triggers would refuse; the test's transaction ends with it."""

    def write(palace, statements):
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute("SET LOCAL session_replication_role = replica")
            for statement in statements.split(";"):
                cursor.execute(statement, {"palace": palace.pk})
            assert cursor.rowcount
            cursor.execute("SET LOCAL session_replication_role = origin")

    yield write
    transaction.set_rollback(True)


def test_a_palace_that_was_lived_in_is_whole(chatted):
    assert failed(chatted) == {}


def test_it_stays_whole_after_a_purge(chatted):
    drawers = Drawer.objects.within(chatted).filter(source="chat")
    trash_drawers(chatted, drawers)
    assert failed(chatted) == {}
    Purge(chatted).run(Drawer.objects.within(chatted))
    assert not Drawer.objects.within(chatted).filter(source="chat").exists()
    assert failed(chatted) == {}


ONE_DRAWER = "(SELECT min(drawer_id) FROM palace_evidence WHERE palace_id = %(palace)s)"
# ruff: noqa: S608 - all of it is written here.
DAMAGES = {
    "message-kept": "DELETE FROM palace_drawer WHERE palace_id = %(palace)s AND source = 'chat'",
    "accepted-kept": "DELETE FROM palace_drawer WHERE palace_id = %(palace)s"
    f" AND id = {ONE_DRAWER}",
    "accepted-verbatim": "UPDATE palace_drawer SET text = text || ' ' WHERE palace_id = %(palace)s"
    f" AND id = {ONE_DRAWER}",
    "purged-gone": "UPDATE palace_acceptedmessage SET purged_at = now()"
    " WHERE palace_id = %(palace)s",
    "message-verbatim": "UPDATE palace_drawer SET text = text || ' ' WHERE palace_id = %(palace)s"
    " AND source = 'chat' AND role = 'user'",
    "drawer-place": "UPDATE palace_drawer SET room_id = 0 WHERE palace_id = %(palace)s"
    f" AND id = {ONE_DRAWER}",
    "room-place": "UPDATE palace_room SET wing_id = 0 WHERE palace_id = %(palace)s",
    "room-counts": "UPDATE palace_room SET kept_count = kept_count + 1"
    " WHERE palace_id = %(palace)s",
    "room-span": "UPDATE palace_room SET ended_at = started_at - interval '1 day'"
    " WHERE palace_id = %(palace)s",
    "mention-span": 'UPDATE palace_mention SET "end" = 100000 WHERE palace_id = %(palace)s',
    "drawer-embedded": "DELETE FROM palace_passage WHERE palace_id = %(palace)s"
    f" AND drawer_id = {ONE_DRAWER}",
    "passage-span": 'UPDATE palace_passage SET "end" = 100000 WHERE palace_id = %(palace)s',
    "passage-cover": 'UPDATE palace_passage SET "end" = start + 3 WHERE palace_id = %(palace)s',
    "passage-vector": "UPDATE palace_passage SET embedding = '[1,0]' WHERE palace_id = %(palace)s",
    "fact-vector": "UPDATE palace_factvector SET embedding = '[1,0]' WHERE palace_id = %(palace)s",
    "postings": "DELETE FROM palace_posting WHERE palace_id = %(palace)s AND term = ''",
    "drawer-terms": "UPDATE palace_drawer SET terms = terms + 1 WHERE palace_id = %(palace)s",
    "fact-supersedes": "UPDATE palace_fact SET supersedes_id = 0 WHERE palace_id = %(palace)s"
    " AND supersedes_id IS NOT NULL",
    "fact-closed-by": "UPDATE palace_fact SET closed_by_id = 0 WHERE palace_id = %(palace)s"
    " AND closed_by_id IS NOT NULL",
    "chain-end": "UPDATE palace_fact f SET supersedes_id = n.id FROM palace_fact n"
    " WHERE f.palace_id = %(palace)s AND n.supersedes_id = f.id",
    "chain-head": "UPDATE palace_fact SET supersedes_id = NULL WHERE palace_id = %(palace)s"
    " AND supersedes_id IS NOT NULL",
    "chain-whole": "UPDATE palace_fact SET supersedes_id = NULL WHERE palace_id = %(palace)s"
    " AND supersedes_id IS NOT NULL",
    "evidence-span": 'UPDATE palace_evidence SET "end" = 100000 WHERE palace_id = %(palace)s',
    "fact-grounds": "DELETE FROM palace_evidence WHERE palace_id = %(palace)s",
    "statement-words": "UPDATE palace_statement SET content = jsonb_set(content, '{words,0,2}',"
    " '100000') WHERE palace_id = %(palace)s",
    "empty-closet": "UPDATE palace_drawer SET closet_id = NULL WHERE palace_id = %(palace)s",
    "empty-room": "UPDATE palace_drawer SET room_id = (SELECT min(id) FROM palace_room),"
    " number = id WHERE palace_id = %(palace)s",
    "empty-wing": "UPDATE palace_room SET wing_id = (SELECT min(id) FROM palace_wing"
    " WHERE number > 0) WHERE palace_id = %(palace)s",
    "drawer-once": "ALTER TABLE palace_drawer DROP CONSTRAINT drawer_message;"
    "UPDATE palace_drawer SET external_id = '0' WHERE palace_id = %(palace)s",
    "drawer-pointer": "ALTER TABLE palace_drawer DROP CONSTRAINT drawer_number;"
    "UPDATE palace_drawer SET number = 1 WHERE palace_id = %(palace)s",
    "episode-vector": "UPDATE palace_episodevector SET embedding = '[1,0]'"
    " WHERE palace_id = %(palace)s",
    "fact-subject": "UPDATE palace_fact SET subject_id = 0 WHERE palace_id = %(palace)s",
    "fact-object-entity": "UPDATE palace_fact SET object_entity_id = 0"
    " WHERE palace_id = %(palace)s",
    "fact-opened-by": "UPDATE palace_fact SET opened_by_id = 0 WHERE palace_id = %(palace)s",
    "retired-for-a-reason": "ALTER TABLE palace_fact DROP CONSTRAINT fact_retired_with_a_reason;"
    "UPDATE palace_fact SET fate = '' WHERE palace_id = %(palace)s",
    "active-version": "DROP INDEX fact_one_active_version; DROP INDEX fact_one_at_a_time;"
    "UPDATE palace_fact SET retired_at = NULL, fate = '' WHERE palace_id = %(palace)s",
    "single-value": "DROP INDEX fact_one_active_version; DROP INDEX fact_one_at_a_time;"
    "UPDATE palace_fact SET retired_at = NULL, fate = '' WHERE palace_id = %(palace)s",
    "trace-ids": "UPDATE palace_recollectiontrace SET hits = jsonb_set(hits, '{0,drawer}',"
    " to_jsonb(gen_random_uuid())) WHERE palace_id = %(palace)s",
    "trace-candidates": "INSERT INTO palace_palace (id, uuid, owner_id, subject, highest_wing,"
    " highest_room, created_at) SELECT 0, gen_random_uuid(), owner_id, 'other', 0, 0, now()"
    " FROM palace_palace WHERE id = %(palace)s;"
    f"UPDATE palace_drawer SET palace_id = 0 WHERE palace_id = %(palace)s AND id = {ONE_DRAWER};"
    "UPDATE palace_recollectiontrace SET candidates = jsonb_set(candidates, '{drawers}',"
    " (SELECT jsonb_agg(id) FROM palace_drawer WHERE palace_id = 0))"
    " WHERE palace_id = %(palace)s",
    "import-file": "UPDATE palace_importjob SET status = 'running', spool = 'gone.jsonl'"
    " WHERE palace_id = %(palace)s",
    "unknown-entity": "DELETE FROM palace_mention WHERE palace_id = %(palace)s",
    "import-sums": "UPDATE palace_importjob SET messages_total = 7 WHERE palace_id = %(palace)s",
    "import-once": "UPDATE palace_activity SET kind = 'chats_imported',"
    """ detail = '{"job": "the same"}' WHERE palace_id = %(palace)s""",
    "reply-once": "DELETE FROM chat_message WHERE palace_id = %(palace)s AND role = 'assistant'",
}


def test_every_check_is_tried(chatted):
    assert {each.check for each in audit_palace(chatted)} == DAMAGES.keys()


@pytest.mark.some(15)
@pytest.mark.parametrize("check", sorted(DAMAGES))
def test_damage_is_found(check, chatted, damage):
    damage(chatted, DAMAGES[check])
    assert failed(chatted)[check] >= 1


@pytest.mark.parametrize(
    ("name", "damages"),
    [
        # Of a message of several passages, the first, one amid and the last.
        (
            "passage-cover",
            "DELETE FROM palace_passage WHERE palace_id = %(palace)s AND ordinal = 0",
        ),
        (
            "passage-cover",
            "DELETE FROM palace_passage WHERE palace_id = %(palace)s AND ordinal = 1",
        ),
        (
            "passage-cover",
            "DELETE FROM palace_passage p WHERE palace_id = %(palace)s AND ordinal = ("
            "SELECT max(ordinal) FROM palace_passage l WHERE l.palace_id = p.palace_id)",
        ),
        (
            "passage-vector",
            "UPDATE palace_passage SET embedding = embedding - embedding"
            " WHERE palace_id = %(palace)s",
        ),
    ],
)
def test_a_part_of_a_message_that_no_search_finds_is_told(palace, damage, name, damages):
    text = "\n \u3000\n".join(f"The hive {number} has swarmed twice. " * 60 for number in range(4))
    mine(palace, transcript(f"{text}\n\n \n", "\u2003 Noted."))
    assert Passage.objects.filter(ordinal__gte=3).exists()
    assert failed(palace) == {}
    damage(palace, damages)
    assert name in failed(palace)


def test_a_missing_posting_is_named(chatted, damage):
    damage(chatted, "DELETE FROM palace_posting WHERE palace_id = %(palace)s AND term = 'bee'")
    (found,) = [each for each in audit_palace(chatted) if each.wrong]
    assert (found.check, found.wrong, found.examples) == ("postings", 1, ("bee",))


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


def test_what_was_purged_before_purges_kept_ids_is_explained_by_its_number(chatted, damage):
    drawers = Drawer.objects.within(chatted).filter(source="chat")
    damage(chatted, "DELETE FROM palace_acceptedmessage WHERE palace_id = %(palace)s")
    lost = drawers.count()
    damage(chatted, DAMAGES["message-kept"])
    for known, found in ((lost - 1, lost), (lost, 0)):
        chatted.purged_unnamed = known
        assert failed(chatted).get("message-kept", 0) == found


def test_of_a_purged_message_no_digest_is_left(chatted):
    drawers = Drawer.objects.within(chatted)
    trash_drawers(chatted, drawers)
    accepted = AcceptedMessage.objects.filter(palace=chatted)
    assert accepted.filter(digest=None).count() == 0
    Purge(chatted).run(drawers)
    assert accepted.exists()
    assert accepted.exclude(digest=None).count() == 0


def test_postings_of_an_older_analyzer_wait_for_a_rebuild(chatted, damage):
    damage(chatted, DAMAGES["postings"])
    assert "postings" in failed(chatted)
    chatted.analyzer -= 1
    assert failed(chatted) == {}


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
