"""What the doors ask of the database goes to one machine, where tables are spread by the palace."""

from __future__ import annotations

import json
import re

import pytest
from django.db import connection, transaction
from django.urls import reverse

from chat.tasks import mine_proxied
from config.audit import audit
from config.celery import TASKS, app
from isolation import row_access
from palace.curation.purge import Purge
from palace.curation.retention import keep_by_rules
from palace.curation.trash import trash_drawers
from palace.mining import tasks
from palace.models import Drawer, Fact, Room
from palace.storage.indexing.postings import compact_postings
from palace.storage.own_answers import without_loci_answers
from palace.storage.transcript_filing import file_transcript
from palace.transfer import export, import_jobs
from palace.transfer.import_jobs import import_chats
from tests.api.rest import test_isolation as programs
from tests.api.rest.conftest import client_of, owner  # noqa: F401
from tests.api.rest.test_isolation import drawer as said  # noqa: F401
from tests.config.audit.conftest import chatted  # noqa: F401
from tests.conversations import BATTERY
from tests.isolation.statements import collected, prepare_keys, routes
from tests.views import test_isolation as pages
from tests.views.conftest import alices, closet, room, wing  # noqa: F401
from tests.views.conftest import drawer as furnished  # noqa: F401

# Statements that go to several machines, by what they look for, and why.
EXCEPTIONS = {
    r'"palace_palace"\."owner_id" = %s': "Which palaces somebody has, or in which of them it is.",
    r"FROM palace_palace p? ?WHERE (p\.)?owner_id = %": "The same, by hand.",
    r'IN \(SELECT U0\."id" FROM "palace_palace" U0 WHERE U0\."owner_id" = %s': "A fact's address "
    "does not say in which palace it is: it is looked for in all that somebody has.",
    r'^DELETE FROM "(\w+)" WHERE "\1"\."\w+" IN \(%s': "Django deletes rows and what hangs on them "
    "by their keys alone; seldom, and a few.",
    r'^UPDATE "(\w+)" SET "\w+" = NULL WHERE "\1"\."\w+" IN \(%s': "The same, of what stays.",
    r'"palace_webhookdelivery"\."webhook_id" = %s': "Of no palace, but of an account.",
}
# Tables in one place that are read or changed together with a palace's, and why.
BESIDE = {
    "settings_app_memorysettings": "A recall reads its owner's settings along with the rest.",
    "llm_usage": "A recall's trace is written along with the calls of models that it took.",
    "palace_webhookdelivery": "A delivery is shown with the name of its palace.",
}
# What the clock's tasks change in all palaces at once, and why.
SWEPT = {
    r'^DELETE FROM "palace_importjob"': "Previews that nobody started.",
}
# What the audit of one palace asks of all, and why.
AUDITED = {
    r"^SELECT \w+, palace_id FROM palace_\w+ WHERE \w+ = ANY": "Whose rows are those "
    "that a trace or a ledger names.",
    r"JOIN palace_drawer d ON d.id = named.id AND d.palace_id <> t.palace_id": "The same, of keys.",
}


def unexplained(statements, known=EXCEPTIONS):
    """Those that go to several machines, or to one and to a table elsewhere."""
    return [
        sql
        for sql, route in routes(statements).items()
        if len(route.machines) > 1 or route.beside - BESIDE.keys()
        if not any(re.search(pattern, sql, re.DOTALL) for pattern in known)
    ]


@pytest.fixture
def keys_with_palace(db):
    """The product works with them, too."""
    with connection.cursor() as cursor:
        prepare_keys(cursor)


HELD = [
    "SELECT FROM palace_drawer WHERE palace_id = 7",
    "SELECT FROM palace_palace WHERE id = 7 FOR NO KEY UPDATE",
    "UPDATE palace_fact f SET text = '' WHERE f.palace_id = 7",
    "DELETE FROM palace_room r USING palace_palace p WHERE p.id = r.palace_id AND p.id = 7",
    "INSERT INTO palace_wingalias (palace_id, wing_id, slug) VALUES (7, 1, 'a'), (7, 1, 'b')",
    "INSERT INTO palace_wingalias (palace_id, wing_id, slug) SELECT palace_id, id, slug "
    "FROM palace_wing WHERE palace_id = 7",
    "SELECT FROM palace_drawer d LEFT JOIN palace_room r ON r.palace_id = d.palace_id "
    "AND r.id = d.room_id WHERE d.palace_id = 7",
]
NOT_HELD = [
    "SELECT palace_id FROM palace_drawer WHERE text = ''",
    "SELECT FROM palace_palace WHERE owner_id = 7",
    "UPDATE palace_fact SET text = '' WHERE text = ''",
    "DELETE FROM palace_room r WHERE r.title = ''",
    "INSERT INTO palace_wingalias (palace_id, wing_id, slug) SELECT n, 1, 'a' "
    "FROM generate_series(1, 99) n",
    "INSERT INTO palace_wingalias (palace_id, wing_id, slug) SELECT wing_id, 1, 'b' "
    "FROM palace_wingalias WHERE palace_id = 7",
    "SELECT FROM palace_drawer d JOIN palace_room r ON r.id = d.room_id WHERE d.palace_id = 7",
    # Held to each other only.
    "SELECT FROM palace_drawer d JOIN palace_room r USING (palace_id) WHERE r.title = ''",
    # Each row of the one looks into another table by itself.
    "SELECT (SELECT count(*) FROM palace_drawer d WHERE d.palace_id = r.palace_id) "
    "FROM palace_room r WHERE r.palace_id = 7",
]


@pytest.mark.django_db
def test_a_statement_that_does_not_say_which_palace_is_seen():
    assert unexplained({sql: sql for sql in (*HELD, *NOT_HELD)}) == NOT_HELD


@pytest.mark.django_db
def test_a_table_that_is_in_one_place_is_seen():
    sql = "SELECT FROM palace_fact f JOIN api_token t ON t.id = f.id WHERE f.palace_id = 7"
    assert unexplained({sql: sql}) == [sql]
    of_no_palace = "SELECT FROM api_token t JOIN auth_user u ON u.id = t.owner_id"
    assert unexplained({of_no_palace: of_no_palace}) == []


@pytest.mark.exhaustive
@pytest.mark.django_db
def test_pages_go_to_one_machine(keys_with_palace, alices, furnished):  # noqa: F811
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
def test_programs_go_to_one_machine(keys_with_palace, owner, said):  # noqa: F811
    program = client_of(owner)
    Room.objects.update(recalled_at=None)  # A recall notes the rooms that it found, once a day.
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
def test_background_work_and_export_go_to_one_machine(
    keys_with_palace, alice, palace, tmp_path, queued
):
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
def test_the_clock_looks_everywhere_and_changes_what_it_found(keys_with_palace, palace, queued):
    file_transcript(palace, BATTERY)
    app.loader.import_default_modules()
    with collected(sweeps=True) as found:
        for name, _ in TASKS.values():
            app.tasks[name]()
    assert len(found) > 20
    assert [sql for sql in unexplained(found, SWEPT) if not sql.startswith("SELECT")] == []


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
def test_an_audit_goes_to_one_palace_after_another(chatted):  # noqa: F811
    with collected(sweeps=True) as found:
        audited = audit([chatted], everything=True)
    assert audited.checks > 40
    assert audited.wrong == 0
    assert len(found) > 20
    assert unexplained(found, AUDITED) == []
