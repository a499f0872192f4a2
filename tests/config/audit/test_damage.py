"""Each check of a palace is tried on the damage that it is for."""

from __future__ import annotations

import pytest

from config.audit import audit_palace
from palace.knowledge.facts import Scope, fact_edits
from palace.mining.pipeline import mine
from palace.models import Drawer, Fact, Passage
from tests.config.audit.conftest import failed
from tests.conversations import transcript

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
    " WHERE palace_id = %(palace)s AND number = 0) WHERE palace_id = %(palace)s",
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
    "drawer-order": "UPDATE palace_drawer SET position = 1 WHERE palace_id = %(palace)s"
    f" AND id = {ONE_DRAWER}",
    "passage-order": "UPDATE palace_passage SET ordinal = 3 WHERE palace_id = %(palace)s"
    f" AND drawer_id = {ONE_DRAWER}",
    "episode-messages": "UPDATE palace_episode SET messages = messages + 1"
    " WHERE palace_id = %(palace)s",
    "fact-period": "UPDATE palace_fact SET valid_to = valid_from - interval '1 day'"
    " WHERE palace_id = %(palace)s AND valid_from IS NOT NULL",
    "fact-history": "DELETE FROM palace_factevent WHERE palace_id = %(palace)s AND event = 'ADD'",
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


@pytest.mark.parametrize(
    ("check", "damages"),
    [
        (
            "fact-history",
            "DELETE FROM palace_factevent WHERE palace_id = %(palace)s AND event = 'UPDATE'",
        ),
        (
            "fact-history",
            "DELETE FROM palace_factevent WHERE palace_id = %(palace)s AND event = 'DELETE'",
        ),
        (
            "fact-period",
            "UPDATE palace_fact SET recorded_at = retired_at + interval '1 day'"
            " WHERE palace_id = %(palace)s AND retired_at IS NOT NULL",
        ),
    ],
)
def test_a_single_wrong_place_or_missing_line_is_found(chatted, damage, check, damages):
    home = Fact.objects.within(chatted).active().get(text="User lives in Porto")
    fact_edits.delete(chatted, home.memory, Scope("person"))
    assert failed(chatted) == {}
    damage(chatted, damages)
    assert failed(chatted)[check] >= 1


def test_a_missing_posting_is_named(chatted, damage):
    damage(chatted, "DELETE FROM palace_posting WHERE palace_id = %(palace)s AND term = 'bee'")
    (found,) = [each for each in audit_palace(chatted) if each.wrong]
    assert (found.check, found.wrong, found.examples) == ("postings", 1, ("bee",))


def test_what_was_purged_before_purges_kept_ids_is_explained_by_its_number(chatted, damage):
    drawers = Drawer.objects.within(chatted).filter(source="chat")
    damage(chatted, "DELETE FROM palace_acceptedmessage WHERE palace_id = %(palace)s")
    lost = drawers.count()
    damage(chatted, DAMAGES["message-kept"])
    for known, found in ((lost - 1, lost), (lost, 0)):
        chatted.purged_unnamed = known
        assert failed(chatted).get("message-kept", 0) == found


def test_postings_of_an_older_analyzer_wait_for_a_rebuild(chatted, damage):
    damage(chatted, DAMAGES["postings"])
    assert "postings" in failed(chatted)
    chatted.analyzer -= 1
    assert failed(chatted) == {}
