"""Importing in the browser: every file gets a preview or a sentence, every job a page."""

from __future__ import annotations

import gzip
import html
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from base64 import b64decode
from datetime import timedelta
from pathlib import Path

import pytest
import redis
from django.conf import settings as project
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test.client import encode_multipart
from django.urls import reverse
from django.utils import timezone

from palace import import_jobs
from palace.import_jobs.spools import spool_folder, spool_path
from palace.importers import files, formats
from palace.models import Drawer, ImportJob, Palace
from palace.models.locks import held_if_free
from palace.views.rendering import PAGE_SIZE
from settings_app.models import MemorySettings
from tests.importers.exports import chatgpt_talk, claude, claude_message, plain, write_zip
from tests.importers.processes import environment

HTMX = {"HX-Request": "true"}
TALKS = [
    plain("When does the ferry leave?", "At nine.", "", conversation_id=f"p{n}") for n in "abc"
]


@pytest.fixture(autouse=True)
def uploads(monkeypatch, tmp_path):
    """The folder of temporary files, which is empty after every test, whatever became of it."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []
    for path in spool_folder().glob("*.jsonl"):
        path.unlink()


def lines(talks):
    return "".join(json.dumps(talk) + "\n" for talk in talks).encode()


def send(client, content, name="talks.jsonl", **options):
    form = {"file": SimpleUploadedFile(name, content), "whole": "yes"}
    return client.post(reverse("imports"), form, **options)


def previewed(client, talks=TALKS):
    return ImportJob.objects.get(uuid=re.search("[0-9a-f-]{36}", send(client, lines(talks)).url)[0])


def act(client, job, action):
    return client.post(reverse(f"import_{action}", args=[job.uuid]), follow=True)


def run_to_the_end(job):
    import_jobs.start(job)
    while not import_jobs.run_slice(job):
        pass


def words(response):
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", response.text)).split())


def figures(response):
    rows = re.findall(r'<th scope="row">(.*?)</th>\s*<td class="number">(.*?)</td>', response.text)
    return {html.unescape(name): int(number.replace(",", "")) for name, number in rows}


def zipped(tmp_path, members):
    return write_zip(tmp_path / "export.zip", members).read_bytes()


CHATGPT = [chatgpt_talk("Which tea?", "Oolong.")]
CLAUDE = [claude(claude_message("1", "Which bread?"), claude_message("2", "Rye."))]


@pytest.mark.parametrize(
    ("name", "format_name", "content"),
    [
        ("chatgpt.zip", "ChatGPT export", lambda at: zipped(at, {"conversations.json": CHATGPT})),
        ("conversations.json", "ChatGPT export", lambda at: json.dumps(CHATGPT).encode()),
        ("claude.zip", "Claude export", lambda at: zipped(at, {"conversations.json": CLAUDE})),
        ("conversations.json", "Claude export", lambda at: json.dumps(CLAUDE).encode()),
        ("talks.jsonl", "Plain JSON Lines", lambda at: lines([plain("Q", "A")])),
        ("talks.jsonl.gz", "Plain JSON Lines", lambda at: gzip.compress(lines([plain("Q", "A")]))),
        ("wrong.pdf", "Plain JSON Lines", lambda at: lines([plain("Q", "A")])),
    ],
)
def test_a_file_of_every_kind_leads_to_its_preview(
    alices, palace, tmp_path, name, format_name, content
):
    response = send(alices, content(tmp_path), name)
    job = ImportJob.objects.get(palace=palace)
    assert response.url == job.get_absolute_url()
    page = alices.get(response.url)
    assert format_name in page.text
    assert name in page.text
    assert figures(page)["Messages"] == figures(page)["new"] == 2
    assert not Drawer.objects.exists()


def test_the_page_names_every_kind_of_file_there_is(alices):
    page = alices.get(reverse("imports"))
    for kind in formats.FORMATS.values():
        assert kind.name.lower() in page.text.lower()


def test_the_preview_says_what_is_new_what_is_there_and_what_is_skipped(alices, palace):
    run_to_the_end(previewed(alices, TALKS[:1]))
    newer = [*TALKS, plain("Q", conversation_id="odd")]
    newer[-1]["messages"][0]["role"] = "narrator"
    newer.append(plain(conversation_id="empty"))
    page = alices.get(send(alices, lines(newer)).url)
    assert figures(page) == {
        "Conversations": 5,
        "of these empty": 2,
        "Messages": 10,
        "new": 4,
        "already in your palace": 2,
        "will be skipped: empty message": 3,
        "will be skipped: its role is none of those we know": 1,
    }
    assert "Said on 1 June 2024" in words(page)
    assert "Start the import" in page.text
    assert "Discard" in page.text


def test_the_preview_says_from_when_to_when_it_was_said(alices):
    talk = plain("Q", "A")
    talk["messages"][1]["said_at"] = "2025-03-09T18:30:00Z"
    page = alices.get(send(alices, lines([talk])).url)
    assert "Said from 1 June 2024 to 9 March 2025" in words(page)


def test_the_preview_says_which_model_will_read_what_is_new(alices, palace):
    assert "will be read by" not in words(alices.get(previewed(alices).get_absolute_url()))
    address = "http://127.0.0.1:9/v1"
    MemorySettings.objects.create(owner=palace.owner, provider=address, model="small")
    job = previewed(alices)
    page = words(alices.get(job.get_absolute_url()))
    assert f"What is new will be read by {address} (small) : at least one call" in page
    job.preview["new"] = 0
    job.save()
    assert "will be read by" not in words(alices.get(job.get_absolute_url()))


def test_the_preview_says_what_is_left_out(alices):
    message = claude_message("1", "Look at this.", files=[{"file_name": "photo.jpg"}])
    page = alices.get(send(alices, json.dumps([claude(message)]).encode(), "c.json").url)
    assert [n for name, n in figures(page).items() if name.startswith("Left out")] == [1]


def test_through_htmx_the_preview_is_gone_to(alices, palace):
    response = send(alices, lines(TALKS), headers=HTMX)
    assert response.headers["HX-Redirect"] == ImportJob.objects.get().get_absolute_url()


def test_an_import_from_upload_to_receipt(alices, palace):
    job = previewed(alices)
    page = act(alices, job, "start")
    assert page.redirect_chain == [(job.get_absolute_url(), 302)]
    assert "0 of 9 messages" in words(page)
    assert "Pause" in page.text
    run_to_the_end(job)
    page = alices.get(job.get_absolute_url())
    assert figures(page) == {
        "Messages in the file": 9,
        "= new in your palace": 6,
        "+ already there": 0,
        "+ skipped": 3,
        "empty message": 3,
    }
    wing = Drawer.objects.select_related("room__wing").first().room.wing
    assert wing.get_absolute_url() in page.text
    assert "6 drawers" in page.text
    assert not spool_path(job).exists()


def test_the_figures_of_the_receipt_add_up_at_every_moment(alices, palace):
    job = previewed(alices, [*TALKS, TALKS[0]])
    import_jobs.start(job)
    shares = []
    is_done = False
    while not is_done:
        is_done = import_jobs.run_slice(job, seconds=0)
        if not is_done:
            import_jobs.pause(job)
        found = figures(alices.get(job.get_absolute_url()))
        parts = [number for name, number in found.items() if name[0] in "=+"]
        assert sum(parts) == found["Messages in the file"] == 12
        shares.append(found["= new in your palace"])
        import_jobs.start(job)
    assert shares == [2, 4, 6, 6, 6]


def test_the_bar_tells_how_many_messages_are_done(alices, palace):
    job = previewed(alices)
    import_jobs.start(job)
    import_jobs.run_slice(job, seconds=0)
    page = alices.get(job.get_absolute_url())
    assert re.search(r'<progress id="bar" max="9" value="3">33%</progress>', page.text)
    assert '<label for="bar">3 of 9 messages</label>' in page.text
    assert 'hx-trigger="every 1s"' in page.text
    assert '<noscript><meta http-equiv="refresh"' in page.text


def test_polling_ends_with_the_import(alices, palace):
    job = previewed(alices)
    import_jobs.start(job)
    part = alices.get(job.get_absolute_url(), headers=HTMX)
    assert part.text.lstrip().startswith('<div id="progress"')
    assert "every 1s" in part.text
    assert "HX-Retarget" not in part.headers
    run_to_the_end(job)
    part = alices.get(job.get_absolute_url(), headers=HTMX)
    assert part.headers["HX-Retarget"] == "#job"
    assert part.headers["HX-Reswap"] == "outerHTML"
    assert part.text.lstrip().startswith('<div id="job"')
    assert "every 1s" not in part.text
    assert "every 1s" not in alices.get(job.get_absolute_url()).text
    assert "http-equiv" not in alices.get(job.get_absolute_url()).text


def test_an_export_whose_conversations_are_all_empty_has_nothing_to_start(alices, palace):
    job = previewed(alices, [plain(), plain(conversation_id="p-2")])
    page = alices.get(job.get_absolute_url())
    assert "There is not one message in it" in page.text
    assert "Start the import" not in page.text
    import_jobs.start(job)
    assert "0 of 2 conversations" in words(alices.get(job.get_absolute_url()))


def test_started_twice_it_is_queued_once(alices, palace, queued):
    job = previewed(alices)
    act(alices, job, "start")
    act(alices, job, "start")
    assert queued() == [[job.pk, 0]]
    run_to_the_end(job)
    act(alices, job, "start")
    job.refresh_from_db()
    assert job.status == ImportJob.Status.DONE
    assert queued() == [[job.pk, 0]]


@pytest.fixture
def queued():
    """The arguments of what was really put into Redis for the worker, oldest first."""
    client = redis.Redis.from_url(project.REDIS_URL)
    client.delete("celery")

    def arguments():
        bodies = [json.loads(raw)["body"] for raw in reversed(client.lrange("celery", 0, -1))]
        return [json.loads(b64decode(body))[0] for body in bodies]

    yield arguments
    client.delete("celery")
    client.close()


def test_uploaded_again_while_it_runs_it_is_the_same_import(alices, palace):
    job = previewed(alices)
    import_jobs.start(job)
    response = send(alices, lines(TALKS))
    assert response.url == job.get_absolute_url()
    assert "on its way in already" in alices.get(response.url).text
    assert ImportJob.objects.count() == 1


def test_paused_it_keeps_what_it_has_and_goes_on(alices, palace):
    job = previewed(alices)
    import_jobs.start(job)
    import_jobs.run_slice(job, seconds=0)
    page = act(alices, job, "pause")
    assert "Paused" in page.text
    assert "Go on" in page.text
    assert figures(page)["+ not imported yet"] == 6
    assert import_jobs.run_slice(job, seconds=60)
    assert Drawer.objects.count() == 2
    page = act(alices, job, "start")
    assert "3 of 9 messages" in words(page)
    run_to_the_end(job)
    assert Drawer.objects.count() == 6


def test_pausing_what_has_ended_changes_nothing(alices, palace):
    job = previewed(alices)
    run_to_the_end(job)
    page = act(alices, job, "pause")
    assert "There was nothing to pause" in page.text
    assert "Done" in page.text


def test_a_discarded_preview_leaves_nothing(alices, palace):
    job = previewed(alices)
    page = act(alices, job, "discard")
    assert page.redirect_chain == [(reverse("imports"), 302)]
    assert "talks.jsonl is discarded. Nothing was imported." in words(page)
    assert not ImportJob.objects.exists()
    assert not spool_path(job).exists()
    assert act(alices, job, "discard").status_code == 404


def test_a_discarded_rest_leaves_what_was_filed(alices, palace):
    job = previewed(alices)
    import_jobs.start(job)
    import_jobs.run_slice(job, seconds=0)
    assert "Pause it first" in act(alices, job, "discard").text
    import_jobs.pause(job)
    assert "What it had filed stays in your palace." in act(alices, job, "discard").text
    assert Drawer.objects.count() == 2


def test_a_receipt_is_not_discarded(alices, palace):
    job = previewed(alices)
    run_to_the_end(job)
    assert "its receipt is kept" in act(alices, job, "discard").text
    assert ImportJob.objects.exists()


def test_a_failed_import_says_what_to_do(alices, palace):
    job = previewed(alices)
    import_jobs.start(job)
    import_jobs.run_slice(job, seconds=0)
    spool_path(job).unlink()
    import_jobs.run_slice(job)
    page = alices.get(job.get_absolute_url())
    assert job.error in html.unescape(page.text)
    assert "Give the file again" in page.text
    assert figures(page)["+ not imported"] == 6
    assert "Stopped by an error at 33%" in words(alices.get(reverse("imports")))
    again = previewed(alices)
    assert (again.preview["new"], again.preview["present"]) == (4, 2)
    act(alices, job, "discard")
    assert ImportJob.objects.get() == again


def test_an_import_nobody_is_at_says_that_it_waits(alices, palace):
    job = previewed(alices)
    import_jobs.start(job)
    assert "waits for a free worker" not in alices.get(job.get_absolute_url()).text
    ImportJob.objects.update(progress_at=timezone.now() - timedelta(seconds=30))
    assert "It waits for a free worker" in alices.get(job.get_absolute_url()).text
    ImportJob.objects.update(progress_at=timezone.now() - timedelta(hours=1), spool_offset=1)
    page = alices.get(job.get_absolute_url())
    assert "another goes on by itself" in page.text
    assert "see whether the worker and Redis are running" in page.text


def test_an_import_whose_worker_is_busy_does_not_wait(alices, palace):
    job = previewed(alices)
    import_jobs.start(job)
    ImportJob.objects.update(progress_at=timezone.now() - timedelta(hours=1))
    with held_if_free(f"import {job.pk}") as ours:
        assert ours
        assert "waits" not in alices.get(job.get_absolute_url()).text


def test_what_is_filed_and_not_mined_yet_is_told(alices, palace):
    job = previewed(alices)
    run_to_the_end(job)
    assert "to be mined" not in alices.get(job.get_absolute_url()).text
    Drawer.objects.filter(pk=Drawer.objects.first().pk).update(mined_at=None)
    page = words(alices.get(job.get_absolute_url()))
    assert "1 filed message still waits to be mined" in page
    Drawer.objects.filter(mined_at=None).update(filed_at=timezone.now())  # By another import.
    assert "to be mined" not in alices.get(job.get_absolute_url()).text


WITHOUT_REDIS = """
import sys
import django
django.setup()
from django.contrib.auth.models import User
from django.test import Client
client = Client(headers={"host": "localhost"})
client.force_login(User.objects.get(username="alice"))
page = client.post(sys.argv[1], follow=True)
print(page.status_code, page.text)
"""


@pytest.mark.django_db(transaction=True)
def test_with_the_queue_away_the_import_is_marked_and_taken_up_later(alices, palace):
    job = previewed(alices)
    nowhere = f"unix://{spool_folder()}/no-such-socket"
    said = subprocess.run(
        [sys.executable, "-c", WITHOUT_REDIS, reverse("import_start", args=[job.uuid])],
        env=environment() | {"REDIS_URL": nowhere},
        cwd=project.BASE_DIR,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said.startswith("200 ")
    assert "The queue (Redis) does not answer" in said
    assert "0 of 9 messages" in said
    assert list(import_jobs.standing_still(timezone.now())) == [job.pk]


def bomb():
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb") as file:
        file.write(b'[{"mapping": {}},')
        for _ in range(files.RATIO_MATTERS_FROM // files.CHUNK + 1):
            file.write(b" " * files.CHUNK)
    return packed.getvalue()


BAD = {
    "empty": (b"", "talks.jsonl is empty."),
    "not JSON": (b"Dear diary", "talks.jsonl is no export we know: it is not JSON."),
    "a web page": (b"<!DOCTYPE html>", "talks.jsonl is a web page;"),
    "another program's": (b'[{"a": 1}]', "talks.jsonl is no export we know."),
    "no conversations": (b"[]", "talks.jsonl holds no conversations."),
    "blank": (b"  \n \n", "talks.jsonl holds no conversations."),
    "broken zip": (b"PK\x03\x04 and nothing more", "talks.jsonl is damaged or was cut off;"),
    "cut off": (json.dumps(CHATGPT).encode()[:-9], "talks.jsonl breaks off"),
    "a broken line": (lines(TALKS) + b"{broken\n", "Line 4 of talks.jsonl is not valid JSON"),
    "not UTF-8": (b'[{"title": "\xff"}]', "talks.jsonl is not UTF-8 text"),
    "deeply nested": (b"[" * 200_000, "talks.jsonl is nested too deeply"),
    "a bomb": (bomb, "talks.jsonl unpacks to more than 256 MB"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("headers", [{}, HTMX])
def test_a_bad_file_gets_a_sentence_beside_the_field_and_leaves_nothing(
    alices, palace, name, headers
):
    content, sentence = BAD[name]
    response = send(alices, content() if callable(content) else content, headers=headers)
    assert response.status_code == 400
    error = re.search(r'<p class="error" id="file-error">(.*?)</p>', response.text)[1]
    assert html.unescape(error).startswith(sentence)
    assert 'aria-invalid="true"' in response.text
    assert 'aria-describedby="file-error file-help"' in response.text
    assert ("<html" in response.text) == (not headers)
    assert not ImportJob.objects.exists()
    assert not list(spool_folder().glob("*"))


def test_without_a_file_it_asks_for_one(alices, palace):
    response = alices.post(reverse("imports"), {"whole": "yes"})
    assert response.status_code == 400
    assert "Choose a file first" in response.text


def test_a_text_in_the_place_of_a_file_is_no_file(alices, palace):
    response = alices.post(reverse("imports"), {"file": "talks.jsonl", "whole": "yes"})
    assert response.status_code == 400
    assert "Choose a file first" in response.text


def test_an_upload_that_broke_off_is_not_taken_for_a_whole_file(alices, palace):
    """The last line that came is whole; only the end of the form is missing."""
    form = encode_multipart("edge", {"file": SimpleUploadedFile("talks.jsonl", lines(TALKS))})
    came, _, _ = form.rpartition(b"\r\n--edge")
    response = alices.post(reverse("imports"), came, "multipart/form-data; boundary=edge")
    assert response.status_code == 400
    assert "The file did not arrive whole" in response.text
    assert not ImportJob.objects.exists()


def test_a_program_may_send_the_file_alone(alices, palace):
    file = SimpleUploadedFile("talks.jsonl", lines(TALKS))
    assert alices.post(reverse("imports"), {"file": file}).status_code == 302


def test_a_file_larger_than_allowed_is_refused(alices, palace, settings):
    settings.MAX_UPLOAD_MB = 1
    response = send(alices, b" " * ((1 << 20) + 1))
    assert response.status_code == 400
    assert "talks.jsonl is larger than the 1 MB that may be uploaded here." in response.text
    assert send(alices, lines(TALKS).ljust(1 << 20, b"\n")).status_code == 302


@pytest.mark.parametrize(
    "name",
    [
        "<img src=x onerror=alert(1)>.jsonl",
        "Gespräche “März” – 会話.jsonl",
        "a" * 300 + ".jsonl",
        "../../etc/passwd",
        "talks\u202elnosj.jsonl",
        "%s{{ x }}.jsonl",
    ],
)
def test_a_file_may_be_called_anything(alices, palace, name):
    response = send(alices, lines(TALKS), name)
    job = ImportJob.objects.get()
    page = alices.get(response.url)
    assert page.status_code == 200
    assert "<img src=x" not in page.text
    assert html.escape(job.file_name) in page.text
    assert html.escape(job.file_name) in alices.get(reverse("imports")).text
    bad = send(alices, b"[]", name)
    assert bad.status_code == 400
    assert "<img src=x" not in bad.text


def test_the_same_broken_twice_and_then_mended_works(alices, palace):
    for _ in range(2):
        assert send(alices, lines(TALKS)[:-5]).status_code == 400
    assert send(alices, lines(TALKS)).status_code == 302


def test_earlier_imports_are_listed_with_their_state_newest_first(alices, palace):
    done, paused, running, fresh = [
        previewed(alices, [plain(str(n), "A", conversation_id=f"{n}-{m}") for m in range(4)])
        for n in range(4)
    ]
    run_to_the_end(done)
    for job in (paused, running):
        import_jobs.start(job)
        import_jobs.run_slice(job, seconds=0)
    import_jobs.pause(paused)
    page = alices.get(reverse("imports"))
    row = r'href="(/memory/import/[0-9a-f-]+/)".*?class="import-state[^>]*>(.*?)</span>'
    shown = re.findall(row, page.text, re.DOTALL)
    assert [(address, " ".join(state.split())) for address, state in shown] == [
        (fresh.get_absolute_url(), "Not started"),
        (running.get_absolute_url(), "Running, 25%"),
        (paused.get_absolute_url(), "Paused at 25%"),
        (done.get_absolute_url(), "Done: 8 new messages"),
    ]


def test_the_list_of_imports_comes_in_pages_with_few_queries(
    alices, palace, django_assert_max_num_queries
):
    for number in range(PAGE_SIZE + 3):
        ImportJob.objects.create(palace=palace, file_name=f"file {number}", preview={})
    with django_assert_max_num_queries(6):
        page = alices.get(reverse("imports"))
    assert page.text.count('class="name"') == PAGE_SIZE
    assert "Show 3 more of 53 imports" in page.text
    part = alices.get(reverse("imports"), {"page": "2"}, headers=HTMX)
    assert part.text.count('class="name"') == 3
    assert "<form" not in part.text


def test_nobody_sees_the_imports_of_others(alices, bobs, palace):
    previewed(alices)
    page = bobs.get(reverse("imports"))
    assert "talks.jsonl" not in page.text
    send(bobs, lines(TALKS))
    assert ImportJob.objects.exclude(palace=palace).count() == 1


def test_an_import_into_a_palace_kept_for_somebody_else_is_not_shown(alices, alice):
    for_others = Palace.objects.create(owner=alice, subject="a customer")
    job = ImportJob.objects.create(palace=for_others, file_name="theirs.jsonl")
    assert alices.get(job.get_absolute_url()).status_code == 404
    assert "theirs.jsonl" not in alices.get(reverse("imports")).text


def test_signed_out_nothing_is_kept_of_an_upload(client, db):
    assert send(client, lines(TALKS)).status_code == 302
    assert not ImportJob.objects.exists()
    assert not list(spool_folder().glob("*"))


def test_uploads_of_a_killed_process_are_swept(palace):
    spool_folder().mkdir(exist_ok=True)
    old, new = (Path(spool_folder()) / f"tmp{n}.upload.zip" for n in "ab")
    for path in (old, new):
        path.write_bytes(b"")
    os.utime(old, (0, 0))
    import_jobs.remove_orphans()
    assert (old.exists(), new.exists()) == (False, True)
    new.unlink()
