"""What the doors ask of the database names the palace: past one machine, that is where it goes."""

from __future__ import annotations

import json
import re

import pytest
from django.db import transaction
from django.urls import reverse

from chat.tasks import mine_proxied
from config.celery import TASKS, app
from isolation import row_access
from palace.curation.purge import Purge
from palace.curation.retention import keep_by_rules
from palace.curation.trash import trash_drawers
from palace.mining import tasks
from palace.models import Drawer, Fact
from palace.storage.indexing.postings import compact_postings
from palace.storage.own_answers import without_loci_answers
from palace.storage.transcript_filing import file_transcript
from palace.transfer import export, import_jobs
from palace.transfer.import_jobs import import_chats
from tests.api.rest import test_isolation as programs
from tests.api.rest.conftest import client_of, owner  # noqa: F401
from tests.api.rest.test_isolation import drawer as said  # noqa: F401
from tests.conversations import BATTERY
from tests.isolation.statements import (
    collected,
    distributed,
    is_of_given_palace,
    tables_without_palace,
)
from tests.views import test_isolation as pages
from tests.views.conftest import alices, closet, room, wing  # noqa: F401
from tests.views.conftest import drawer as furnished  # noqa: F401

# Statements that go to every machine, by what they look for, and why.
EXCEPTIONS = {
    r'"palace_palace"\."owner_id" = %s': "Which palaces somebody has, or in which of them it is.",
    r"SELECT id FROM palace_palace WHERE owner_id = %\(owner\)s": "The same, by hand.",
    r'IN \(SELECT U0\."id" FROM "palace_palace" U0 WHERE U0\."owner_id" = %s': "A fact's address "
    "does not say in which palace it is: it is looked for in all that somebody has.",
    r'^DELETE FROM "(\w+)" WHERE "\1"\."\w+" IN \(%s': "Django deletes rows and what hangs on them "
    "by their keys alone; seldom, and a few.",
    r'SET "agent_id" = NULL WHERE "chat_conversation"\."agent_id" IN \(': "The same, of an agent.",
    r'"palace_webhookdelivery"\."webhook_id" = %s': "Of no palace, but of an account.",
}


# What the clock's tasks change in all palaces at once, and why.
SWEPT = {
    r"^\s*UPDATE palace_webhookdelivery SET due_at": "Deliveries are of an account; taken as due.",
    r'^DELETE FROM "palace_webhookdelivery"': "Old deliveries, once a day.",
    r'^DELETE FROM "palace_importjob"': "Previews that nobody started.",
}


def unexplained(statements):
    """Statements with a table that is not held to a palace, by a condition or by each join.

    Also those whose tables are held to each other only.
    """
    columns = distributed()
    return [
        sql
        for sql in statements
        if (tables_without_palace(sql, columns) or not is_of_given_palace(sql, columns))
        and not any(re.search(pattern, sql, re.DOTALL) for pattern in EXCEPTIONS)
    ]


def test_a_statement_without_a_palace_is_seen():
    columns = distributed()
    assert columns["palace_drawer"] == "palace_id"
    for sql in (
        'SELECT "palace_drawer"."palace_id" FROM "palace_drawer" WHERE "palace_drawer"."text" = %s',
        "UPDATE palace_fact SET text = %s WHERE text = %s",
        'INSERT INTO "palace_wing" ("name") VALUES (%s)',
        "DELETE FROM palace_room r WHERE r.title = %s",
    ):
        assert tables_without_palace(sql, columns), sql
        assert unexplained([sql]) == [sql]
    for sql in (
        'SELECT 1 FROM "palace_drawer" WHERE "palace_drawer"."palace_id" = %s',
        "UPDATE palace_fact f SET text = %s WHERE f.palace_id = %s",
        'INSERT INTO "palace_wing" ("palace_id", "name") VALUES (%s, %s)',
        "SELECT 1 FROM palace_drawer d JOIN palace_room r ON r.palace_id = d.palace_id "
        "WHERE d.palace_id = %s",
    ):
        assert tables_without_palace(sql, columns) == set(), sql


def test_a_join_that_leaves_the_palace_out_is_seen():
    sql = (
        "SELECT 1 FROM palace_drawer d JOIN palace_room r ON r.id = d.room_id "
        "WHERE d.palace_id = %s"
    )
    assert tables_without_palace(sql, distributed()) == {"palace_room"}
    assert unexplained([sql]) == [sql]


def test_tables_of_one_palace_whichever_it_is_are_seen():
    sql = str(Drawer.objects.filter(room__wing__slug="bees").query)
    assert unexplained([sql]) == [sql]
    assert unexplained([str(Drawer.objects.filter(palace=7, room__wing__slug="bees").query)]) == []


@pytest.mark.exhaustive
@pytest.mark.django_db
def test_pages_name_the_palace(alices, furnished):  # noqa: F811
    with collected() as found:
        for name in sorted(pages.ONES_OWN):
            alices.get(reverse(name), follow=True)
        for make in pages.SHOWN.values():
            assert alices.get(make(furnished), follow=True).status_code < 400
        # An import without its prepared copy cannot be discarded.
        for make in (pages.POSTED[name] for name in pages.POSTED if name != "import_discard"):
            path, body = make(furnished)
            before = transaction.savepoint()
            alices.post(path, body)
            transaction.savepoint_rollback(before)
    assert len(found) > 200
    assert unexplained(found) == []


@pytest.mark.exhaustive
@pytest.mark.django_db
def test_programs_name_the_palace(owner, said):  # noqa: F811
    program = client_of(owner)
    with collected() as found:
        for asked in programs.each(said):
            before = transaction.savepoint()
            assert programs.send(program, asked).status_code < 400
            transaction.savepoint_rollback(before)
        turn = {"role": "user", "content": "I live in Porto."}
        program.post("/turns", {"session_id": "s", "user_id": "ada", "messages": [turn]})
    assert len(found) > 100
    assert unexplained(found) == []


@pytest.mark.exhaustive
@pytest.mark.django_db
def test_background_work_and_export_name_the_palace(alice, palace, tmp_path, queued):
    file = tmp_path / "talk.jsonl"
    file.write_text(json.dumps({"id": "1", "messages": [{"role": "user", "text": "I like bees."}]}))
    with collected() as found, row_access.open_rows(palace.pk, alice.pk):
        room = file_transcript(palace, BATTERY).room
        job = import_jobs.preview(palace, file)
        import_jobs.start(job)
        tasks.mine_room(room.pk)
        import_chats(job.pk)
        tasks.learn_facts(palace.pk)
        tasks.write_episodes(palace.pk)
        compact_postings(palace.pk)
        keep_by_rules(palace.pk)
        mine_proxied(room.pk, 0)
        fact = Fact.objects.within(palace).values_list("uuid", flat=True)[0]
        answer = json.dumps({"id": str(fact), "memory": "x", "score": 1, "predicate": "y"})
        assert without_loci_answers(palace, [answer])
        assert b"".join(export.stream(palace))
        drawers = Drawer.objects.within(palace)
        trash_drawers(palace, drawers)
        Purge(palace).run(drawers)
    assert len(found) > 100
    assert unexplained(found) == []


@pytest.mark.exhaustive
@pytest.mark.django_db
def test_the_clock_looks_everywhere_and_changes_what_it_found(palace, queued):
    file_transcript(palace, BATTERY)
    app.loader.import_default_modules()
    with collected(sweeps=True) as found:
        for name, _ in TASKS.values():
            app.tasks[name]()
    changes = [sql for sql in unexplained(found) if not sql.startswith("SELECT")]
    assert len(found) > 20
    assert [sql for sql in changes if not any(re.search(known, sql) for known in SWEPT)] == []
