"""Jobs that stop: by damage, a pause, a discard, another process, or nobody going on."""

from __future__ import annotations

import json
import os
import tracemalloc
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from palace.models import Drawer, ImportJob
from palace.transfer import import_jobs
from palace.transfer.spools import spool_folder, spool_path
from tests.transfer.import_runs import counted, run_import, run_slice, run_to_the_end
from tests.transfer.importers.exports import (
    chatgpt_talk,
    plain,
    write_lines,
)

MB = 1 << 20


@pytest.mark.parametrize("damage", ["gone", "cut", "garbled"])
def test_a_lost_or_damaged_copy_stops_the_job_with_a_sentence(palace, tmp_path, damage):
    lines = [plain("Q", "A", conversation_id=f"p{n}") for n in range(3)]
    path = write_lines(tmp_path / "a", lines)
    job = import_jobs.preview(palace, path)
    run_slice(job, seconds=0)
    copy = spool_path(job)
    if damage == "gone":
        copy.unlink()
    else:
        content = copy.read_bytes()
        copy.write_bytes(content[: job.spool_offset + 20 * (damage == "garbled")])
    assert run_slice(job)
    assert job.status == ImportJob.Status.FAILED
    assert job.error.endswith("import it again.")
    assert counted(import_jobs.receipt(job))["waiting"] == 4
    again = run_import(palace, path)
    assert counted(again) == {"in": 6, "stored": 4, "present": 2, "skipped": 0, "waiting": 0}


def test_a_paused_job_waits_and_a_running_one_that_stands_still_is_found(
    palace, tmp_path, settings
):
    lines = [plain("Q", conversation_id=f"p{n}") for n in range(3)]
    job = import_jobs.preview(palace, write_lines(tmp_path / "a", lines))
    settings.TAKE_UP_AFTER_S = 0
    assert list(import_jobs.standing_still()) == []
    run_slice(job, seconds=0)
    assert list(import_jobs.standing_still()) == [job.pk]
    settings.TAKE_UP_AFTER_S = 60
    assert list(import_jobs.standing_still()) == []
    ImportJob.objects.update(progress_at=timezone.now() + timedelta(hours=2))
    assert list(import_jobs.standing_still()) == [job.pk], "The clock was ahead."
    import_jobs.pause(job)
    assert list(import_jobs.standing_still()) == []
    run_to_the_end(job)
    import_jobs.pause(job)
    assert job.status == ImportJob.Status.DONE


def test_a_discarded_job_leaves_nothing_but_what_it_filed(palace, tmp_path):
    lines = [plain("Q", conversation_id=f"p{n}") for n in range(3)]
    job = import_jobs.preview(palace, write_lines(tmp_path / "a", lines))
    run_slice(job, seconds=0)
    assert not import_jobs.discard(job)
    import_jobs.pause(job)
    assert import_jobs.discard(job)
    assert not ImportJob.objects.exists()
    assert not list(spool_folder().glob("*"))
    assert Drawer.objects.filter(palace=palace).count() == 1


def test_a_second_process_leaves_a_job_to_the_first(palace, tmp_path):
    job = import_jobs.preview(palace, write_lines(tmp_path / "a", [plain("Q")]))
    database = connection.settings_dict
    with psycopg.connect(
        dbname=database["NAME"],
        user=database["USER"],
        host=database["HOST"] or database["OPTIONS"].get("host"),
        port=database["PORT"] or None,
    ) as other:
        name = f"public import {job.pk}"
        other.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [name])
        assert run_slice(job)
        assert (job.status, job.conversations_done) == (ImportJob.Status.RUNNING, 0)
        other.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", [name])
    assert run_to_the_end(job)["stored"] == 1


@pytest.mark.exhaustive
def test_a_big_file_does_not_fill_memory(palace, tmp_path):
    small = tmp_path / "small.json"
    small.write_text(json.dumps([chatgpt_talk("ä word", conversation_id="small")]))
    assert run_import(palace, small)["stored"] == 1  # The model is loaded.
    path = tmp_path / "big.json"
    with path.open("w") as file:
        file.write("[")
        for number in range(1200):
            talk = chatgpt_talk(*["ä word " * 180] * 20, conversation_id=f"c{number}")
            file.write(("," if number else "") + json.dumps(talk))
        file.write("]")
    assert path.stat().st_size > 40 * MB
    tracemalloc.start()
    try:
        job = import_jobs.preview(palace, path)
        assert job.messages_total == 24_000
        run_slice(job, seconds=0)
        assert job.messages_stored == 20
        assert tracemalloc.get_traced_memory()[1] < 24 * MB
    finally:
        tracemalloc.stop()


def test_old_copies_that_belong_to_no_job_are_swept(palace, tmp_path):
    kept = spool_path(import_jobs.preview(palace, write_lines(tmp_path / "a", [plain("Q")])))
    orphan, recent = (Path(settings.LOCI_HOME) / "imports" / f"{n}.jsonl" for n in "ab")
    for path in (orphan, recent):
        path.write_text("")
    for path in (orphan, kept):
        os.utime(path, (0, 0))
    import_jobs.preview(palace, write_lines(tmp_path / "b", [plain("R")]))
    assert (kept.exists(), orphan.exists(), recent.exists()) == (True, False, True)


def test_a_conversation_that_cannot_be_mined_does_not_hold_up_the_others(palace, tmp_path, caplog):
    """The database refuses its passages, as it would if its disk had a bad block."""
    with connection.cursor() as cursor:
        cursor.execute("""
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF (SELECT text LIKE 'Bad%' FROM palace_drawer WHERE id = NEW.drawer_id)
            THEN RAISE EXCEPTION 'refused'; END IF; RETURN NEW; END $$;
            CREATE TRIGGER refuse BEFORE INSERT ON palace_passage
            FOR EACH ROW EXECUTE FUNCTION refuse()
        """)
    talks = [plain("Bad apples.", id="bad"), plain("Good pears.", id="good")]
    receipt = run_import(palace, write_lines(tmp_path / "a", talks))
    assert (receipt["status"], receipt["stored"]) == ("done", 2)
    assert [drawer.text for drawer in Drawer.objects.unmined()] == ["Bad apples."]
    assert "mining it failed; the periodic task tries it again" in caplog.text
    assert "Bad apples" not in caplog.text


def test_a_preview_nobody_starts_for_a_week_is_forgotten_with_its_copy(palace, tmp_path):
    job = import_jobs.preview(palace, write_lines(tmp_path / "a", [plain("Q")]))
    import_jobs.remove_orphans()
    assert spool_path(job).exists()
    last_week = timezone.now() - timedelta(days=8)
    ImportJob.objects.update(created_at=last_week)
    os.utime(spool_path(job), (last_week.timestamp(),) * 2)
    import_jobs.remove_orphans()
    assert not ImportJob.objects.exists()
    assert not spool_path(job).exists()


def test_an_import_that_was_begun_is_kept_until_somebody_goes_on(palace, tmp_path):
    job = import_jobs.preview(palace, write_lines(tmp_path / "a", [plain("Q"), plain("R")]))
    run_slice(job, seconds=0)
    import_jobs.pause(job)
    ImportJob.objects.update(created_at=timezone.now() - timedelta(days=8))
    import_jobs.remove_orphans()
    assert ImportJob.objects.exists()
