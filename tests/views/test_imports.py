"""An import from upload to receipt, paused and discarded, and the list of all."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from base64 import b64decode
from datetime import timedelta
from pathlib import Path

import pytest
import redis
from django.conf import settings as project
from django.urls import reverse
from django.utils import timezone

from language.english.topics.wings import EVERYDAY
from palace.models import Drawer, ImportJob, Palace, Room
from palace.models.concurrency import held_if_free
from palace.storage.intake import wing_for
from palace.transfer import import_jobs
from palace.transfer.spools import spool_folder, spool_path
from palace.views.inbox.filters import ROOMS
from palace.views.shared.query_params import PAGE_SIZE
from tests.transfer.importers.exports import plain
from tests.transfer.processes import environment
from tests.views.uploads import HTMX, TALKS, figures, lines, previewed, run_to_the_end, send, words

pytestmark = pytest.mark.usefixtures("uploads")


def act(client, job, action):
    return client.post(reverse(f"import_{action}", args=[job.uuid]), follow=True)


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


def test_the_receipt_leads_to_the_wings_that_could_be_made(alices, palace):
    job = previewed(alices)
    act(alices, job, "start")
    run_to_the_end(job)
    assert "more wing" not in words(alices.get(job.get_absolute_url()))
    together = wing_for(palace, EVERYDAY)
    Room.objects.within(palace).update(wing=together, area="Cooking & food")
    receipt = alices.get(job.get_absolute_url())
    assert "Loci suggests 1 more wing" in words(receipt)
    assert f'href="{reverse("inbox")}?show={ROOMS}"' in receipt.text


def test_the_page_says_of_every_format_where_its_file_is(alices):
    page = html.unescape(alices.get(reverse("imports")).text)
    assert all(format_.where in page for format_ in import_jobs.FORMATS.values())


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


def test_the_bar_says_how_many_messages_are_done(alices, palace):
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
    client.delete("bulk")

    def arguments():
        bodies = [json.loads(raw)["body"] for raw in reversed(client.lrange("bulk", 0, -1))]
        return [json.loads(b64decode(body))[0] for body in bodies]

    yield arguments
    client.delete("bulk")
    client.close()


def test_uploaded_again_while_it_runs_it_is_the_same_import(alices, palace):
    job = previewed(alices)
    import_jobs.start(job)
    response = send(alices, lines(TALKS))
    assert response.url == job.get_absolute_url()
    assert "being imported already" in alices.get(response.url).text
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
    assert "another continues" in page.text
    assert "see whether the worker and Redis are running" in page.text


def test_an_import_whose_worker_is_busy_does_not_wait(alices, palace):
    job = previewed(alices)
    import_jobs.start(job)
    ImportJob.objects.update(progress_at=timezone.now() - timedelta(hours=1))
    with held_if_free(f"import {job.pk}") as ours:
        assert ours
        assert "waits" not in alices.get(job.get_absolute_url()).text


def test_what_is_filed_and_not_mined_yet_is_shown(alices, palace):
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
from isolation import row_access
row_access.allow_all_by_default()
from django.contrib.auth.models import User
from django.test import Client
client = Client(headers={"host": "localhost"})
client.force_login(User.objects.get(username="alice"))
page = client.post(sys.argv[1], follow=True)
print(page.status_code, page.text)
"""


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
def test_with_the_queue_away_the_import_is_marked_and_taken_up_later(alices, palace, settings):
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
    settings.TAKE_UP_AFTER_S = 0
    assert list(import_jobs.standing_still()) == [job.pk]


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
    shown = re.findall(row, page.text.partition("<main")[2], re.DOTALL)
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
    assert f"Show 3 more of {PAGE_SIZE + 3} imports" in page.text
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
