"""A file becomes a job, the job becomes drawers, and every message is counted once."""

from __future__ import annotations

import json
import stat
from collections import Counter
from datetime import UTC, datetime

import pytest

from language.errors import BadImport
from language.storable import EMPTY, UNSTORABLE
from palace.models import Activity, Drawer, ImportJob, Palace, Room
from palace.storage.transcript_filing import DIFFERS, file_transcript
from palace.transfer import import_jobs, importers
from palace.transfer.spools import spool_folder, spool_path
from tests.transfer.import_runs import counted, drawers, run_import, run_slice, run_to_the_end
from tests.transfer.importers.exports import (
    chatgpt,
    chatgpt_talk,
    claude,
    claude_message,
    plain,
    root,
    said,
    write_json,
    write_lines,
    write_zip,
)

MB = 1 << 20


def test_a_preview_counts_everything_and_files_nothing(palace, tmp_path):
    talks = [
        chatgpt_talk("Which tea?", "Oolong.", "", "Green\0"),
        chatgpt(
            root(),
            said("q", "Q", parent="root"),
            said("old", "Old", parent="q", role="assistant"),
            said("new", "New", parent="q", role="assistant", at=1_735_689_600),
            current="new",
            conversation_id="c-2",
        ),
        chatgpt(root(), current="root", conversation_id="c-3"),
    ]
    job = import_jobs.preview(palace, write_zip(tmp_path / "x", {"conversations.json": talks}))
    assert job.preview == {
        "format": "ChatGPT export",
        "conversations": 3,
        "empty_conversations": 1,
        "branches": 1,
        "messages": 7,
        "new": 5,
        "present": 0,
        "skipped": {EMPTY: 1, UNSTORABLE: 1},
        "left_out": {},
        "first": "2024-06-01T10:00:00+00:00",
        "last": "2025-01-01T00:00:00+00:00",
    }
    assert (job.status, job.format, job.file_name) == ("ready", "chatgpt", "x")
    assert counted(import_jobs.receipt(job)) == {
        "in": 7,
        "stored": 0,
        "present": 0,
        "skipped": 0,
        "waiting": 7,
    }
    assert not Drawer.objects.exists()


def test_the_prepared_copy_is_private_and_gone_at_the_end(palace, tmp_path):
    job = import_jobs.preview(palace, write_lines(tmp_path / "a", [plain("Q", "A")]))
    assert stat.S_IMODE(spool_path(job).stat().st_mode) == 0o600
    assert stat.S_IMODE(spool_folder().stat().st_mode) == 0o700
    run_to_the_end(job)
    assert not spool_path(job).exists()


@pytest.mark.parametrize(
    "export",
    [
        [chatgpt_talk(" Which tea?\r\n", "Oolong.\t")],
        [claude(claude_message("1", " Which tea?\r\n"), claude_message("2", "Oolong.\t"))],
    ],
)
def test_messages_land_to_the_byte_in_order_and_with_their_times(palace, tmp_path, export):
    receipt = run_import(palace, write_json(tmp_path / "a.json", export))
    assert counted(receipt) == {"in": 2, "stored": 2, "present": 0, "skipped": 0, "waiting": 0}
    first, second = Drawer.objects.filter(palace=palace).in_order()
    assert (first.text, second.text) == (" Which tea?\r\n", "Oolong.\t")
    assert first.said_at == datetime(2024, 6, 1, 10, tzinfo=UTC)
    assert first.mined_at is not None
    assert second.mined_at is not None


def test_importing_twice_adds_nothing(palace, tmp_path):
    path = write_lines(tmp_path / "a", [plain("Q", "A", ""), plain("R", conversation_id="p-2")])
    first = run_import(palace, path)
    before = drawers(palace)
    job = import_jobs.preview(palace, path)
    assert (job.preview["new"], job.preview["present"]) == (0, 3)
    second = run_to_the_end(job)
    assert counted(first) == {"in": 4, "stored": 3, "present": 0, "skipped": 1, "waiting": 0}
    assert counted(second) == {"in": 4, "stored": 0, "present": 3, "skipped": 1, "waiting": 0}
    assert drawers(palace) == before
    assert Room.objects.filter(palace=palace).count() == 2


def test_a_conversation_twice_in_one_file_is_stored_once(palace, tmp_path):
    path = write_lines(tmp_path / "a", [plain("Q", "A"), plain("Q", "A"), plain("Q", "B")])
    receipt = run_import(palace, path)
    assert counted(receipt) == {"in": 6, "stored": 2, "present": 3, "skipped": 1, "waiting": 0}
    assert receipt["skipped_why"] == {DIFFERS: 1}
    assert [text for _, _, text in drawers(palace)] == ["Q", "A"]


def test_a_newer_export_adds_only_what_is_new(palace, tmp_path):
    run_import(palace, write_json(tmp_path / "a.json", [chatgpt_talk("Q", "A")]))
    newer = write_json(tmp_path / "b.json", [chatgpt_talk("Q", "A", "R", "B")])
    receipt = run_import(palace, newer)
    assert counted(receipt) == {"in": 4, "stored": 2, "present": 2, "skipped": 0, "waiting": 0}
    assert [text for _, _, text in drawers(palace)] == ["Q", "A", "R", "B"]


def test_an_answer_regenerated_between_two_exports_is_not_stored_twice(palace, tmp_path):
    """What was the main branch in the first export is another branch in the second, and grew."""
    nodes = [
        root(),
        said("q", "Q", parent="root"),
        said("a1", "A1", parent="q", role="assistant"),
        said("r1", "R1", parent="a1"),
        said("side", "Side", parent="a1"),
    ]
    run_import(palace, write_json(tmp_path / "a.json", [chatgpt(*nodes, current="r1")]))
    nodes += [
        said("a2", "A2", parent="q", role="assistant"),
        said("on the side", "Further", parent="side", role="assistant"),
    ]
    newer = write_json(tmp_path / "b.json", [chatgpt(*nodes, current="a2")])
    job = import_jobs.preview(palace, newer)
    assert (job.preview["new"], job.preview["present"]) == (2, 4)
    receipt = run_to_the_end(job)
    assert counted(receipt) == {"in": 6, "stored": 2, "present": 4, "skipped": 0, "waiting": 0}
    assert Counter(text for _, _, text in drawers(palace)) == Counter(
        ["Q", "A1", "R1", "Side", "A2", "Further"]
    )


def test_two_people_import_the_same_file_each_for_themselves(palace, bob, tmp_path):
    path = write_lines(tmp_path / "a", [plain("Q", "A")])
    other = Palace.objects.own(bob)
    jobs = [import_jobs.preview(palace, path), import_jobs.preview(other, path)]
    receipts = [run_to_the_end(job) for job in jobs]
    assert [receipt["stored"] for receipt in receipts] == [2, 2]
    assert drawers(palace) == drawers(other)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"Dear diary",
        json.dumps([chatgpt_talk("Q", "A")] * 3).encode()[:-10],
        json.dumps(plain("Q")).encode() + b"\n{broken\n",
    ],
)
def test_a_broken_file_changes_nothing(palace, tmp_path, content):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(BadImport, match=r"upload\.json"):
        import_jobs.preview(palace, path, file_name="upload.json")
    assert not ImportJob.objects.exists()
    assert not list(spool_folder().glob("*"))


def test_the_same_file_gives_the_same_job_until_it_is_done(palace, tmp_path):
    lines = [plain("Q", "A", conversation_id=f"p{n}") for n in range(3)]
    path = write_lines(tmp_path / "a", lines)
    job = import_jobs.preview(palace, path)
    assert import_jobs.preview(palace, path).pk == job.pk
    assert not run_slice(job, seconds=0)
    again = import_jobs.preview(palace, path)
    assert (again.pk, again.conversations_done) == (job.pk, 1)
    run_to_the_end(again)
    assert import_jobs.preview(palace, path).pk != job.pk


def test_a_job_goes_on_conversation_by_conversation_and_always_sums_up(palace, tmp_path):
    lines = [plain("Q", "", "A", conversation_id=f"p{n}") for n in range(4)]
    lines.append(lines[0])
    job = import_jobs.preview(palace, write_lines(tmp_path / "a", lines))
    seen = []
    done = False
    while not done:
        done = run_slice(ImportJob.objects.get(pk=job.pk), seconds=0)
        receipt = import_jobs.receipt(ImportJob.objects.get(pk=job.pk))
        total = receipt["stored"] + receipt["present"] + receipt["skipped"] + receipt["waiting"]
        assert total == receipt["in"] == 15
        assert receipt["stored"] == Drawer.objects.filter(palace=palace).count()
        seen.append(receipt["waiting"])
    assert seen == [12, 9, 6, 3, 0, 0]
    assert counted(receipt) == {"in": 15, "stored": 8, "present": 2, "skipped": 5, "waiting": 0}


def test_what_was_filed_but_not_mined_is_mined_by_the_next_slice(palace, tmp_path):
    """As it is after a kill between filing a conversation and mining it."""
    path = write_lines(tmp_path / "a", [plain("Q", "A")])
    (conversation,) = importers.read(path, importers.PLAIN)
    file_transcript(palace, conversation.transcript)
    assert Drawer.objects.filter(palace=palace).unmined().count() == 2
    other = write_lines(tmp_path / "b", [plain("R", conversation_id="p-2")])
    run_import(palace, other)
    assert Drawer.objects.filter(palace=palace).count() == 3
    assert not Drawer.objects.filter(palace=palace).unmined().exists()


def test_a_finished_job_is_on_record(palace, tmp_path):
    path = write_lines(tmp_path / "a", [plain("Q", "A")])
    run_to_the_end(job := import_jobs.preview(palace, path, file_name="talks.jsonl"))
    job.refresh_from_db()
    assert job.status == ImportJob.Status.DONE
    assert job.finished_at is not None
    activity = Activity.objects.get(palace=palace, kind=Activity.Kind.CHATS_IMPORTED)
    assert activity.summary == "Imported 2 new messages from 1 conversation in talks.jsonl."
    assert counted(activity.detail) == counted(import_jobs.receipt(job))
    assert run_slice(job)
    assert Activity.objects.filter(kind=Activity.Kind.CHATS_IMPORTED).count() == 1
