"""A newcomer's pages: three ways to begin, the sample in and out, an import seen on every page."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from palace.models import Drawer, ImportJob
from palace.transfer import import_jobs
from palace.views.shared import frame_tags
from palace.views.shared.frame_tags import time_left
from tests.views.uploads import HTMX, previewed, run_to_the_end, words

pytestmark = pytest.mark.usefixtures("uploads")

EVERY_PAGE = ("chat", "memory", "facts", "entities", "inbox", "imports", "settings")


def sample(client):
    response = client.post(reverse("sample_load"))
    assert response.url == reverse("memory")
    return ImportJob.objects.get(format=ImportJob.SAMPLE)


@pytest.mark.parametrize("name", ["chat", "memory"])
def test_an_empty_palace_offers_three_ways(alices, name):
    page = words(alices.get(reverse(name)))
    # In the chat one has begun a chat already.
    begins = "A new conversation" if name == "chat" else "Start a chat"
    for way in ("Import a file", "Try a sample palace", begins):
        assert way in page


@pytest.mark.parametrize("name", ["facts", "entities", "inbox"])
def test_other_empty_pages_lead_to_the_three_ways(alices, name):
    page = alices.get(reverse(name))
    assert f'href="{reverse("memory")}#first-steps-title"' in page.text
    assert 'id="first-steps-title"' in alices.get(reverse("memory")).text


def test_after_the_first_message_the_pages_say_that_it_is_being_read(alices, drawer, monkeypatch):
    assert "Three ways to begin" not in alices.get(reverse("memory")).text
    Drawer.objects.update(facts_read_at=None)
    page = words(alices.get(reverse("facts")))
    assert "1 message is being read right now. Look again" in page
    monkeypatch.setattr(frame_tags, "MOST_READ", 0)
    page = words(alices.get(reverse("facts")))
    assert "More than 0 messages are being read right now." in page
    Drawer.objects.update(facts_read_at=timezone.now())
    assert "being read" not in words(alices.get(reverse("facts")))


def test_the_sample_comes_in_by_one_click_and_says_what_it_is(alices, palace, queued):
    job = sample(alices)
    assert queued() == ["import_chats"]
    assert sample(alices) == job
    assert queued() == ["import_chats"]
    assert "This is a sample" not in alices.get(reverse("facts")).text
    import_jobs.run_slice(job, seconds=0)
    for name in EVERY_PAGE:
        page = alices.get(reverse(name))
        assert "This is a sample. A year of Clara, whom we invented." in words(page), name
        assert reverse("sample_remove") in page.text
        assert "Sample palace 2% 10 of 434 messages" in words(page), name


def test_and_goes_by_one_click(alices, palace):
    job = sample(alices)
    import_jobs.run_slice(job, seconds=0)
    page = alices.post(reverse("sample_remove"), follow=True)
    assert "The sample is gone: 1 conversation, 10 messages, 0 facts." in words(page)
    assert "Three ways to begin" in page.text
    assert "This is a sample" not in page.text
    assert "import-now" not in page.text
    page = alices.post(reverse("sample_remove"), follow=True)
    assert "There was no sample to remove." in words(page)


def test_what_says_that_it_is_gone_brings_it_back(alices, palace, queued):
    import_jobs.run_slice(sample(alices), seconds=0)
    page = alices.post(reverse("sample_remove"), follow=True)
    assert f'action="{reverse("sample_load")}"' in page.text.partition("The sample is gone")[2]
    assert "Load it again" in words(page)
    job = sample(alices)
    import_jobs.run_slice(job, seconds=0)
    assert queued() == ["import_chats", "import_chats"]
    assert "This is a sample" in words(alices.get(reverse("facts")))


def test_a_question_of_the_banner_leads_to_its_answer(alices, palace):
    import_jobs.run_slice(sample(alices), seconds=0)
    page = alices.get(reverse("facts"))
    links = re.findall(r'<li><a href="(/memory/\?q=[^"]+)">([^<]+)</a></li>', page.text)
    assert [text for _, text in links] == list(import_jobs.SAMPLE_QUESTIONS)
    assert alices.get(links[0][0]).context["query"] == import_jobs.SAMPLE_QUESTIONS[0]


def test_the_sample_of_one_is_nobody_elses(alices, bobs, palace):
    job = sample(alices)
    import_jobs.run_slice(job, seconds=0)
    page = bobs.get(reverse("memory"))
    assert "This is a sample" not in page.text
    assert "Three ways to begin" in page.text
    assert "import-now" not in page.text
    assert bobs.get(reverse("import_now"), {"job": job.uuid}).text.strip() == ""
    bobs.post(reverse("sample_remove"))
    assert Drawer.objects.filter(palace=palace).count() == 10


@pytest.mark.parametrize("name", ["sample_load", "sample_remove"])
def test_looking_at_the_address_changes_nothing(alices, name):
    assert alices.get(reverse(name)).status_code == 405
    assert not ImportJob.objects.exists()


def test_an_import_stands_on_every_page_until_it_has_ended(alices, palace):
    job = previewed(alices)
    assert "import-now" not in alices.get(reverse("facts")).text
    import_jobs.start(job)
    page = alices.get(reverse("facts"))
    assert "Import of talks.jsonl 0% 0 of 9 messages" in words(page)
    address = re.search(r'id="import-now"[^>]*hx-get="([^"]+)"', page.text)[1]
    assert "import-now" not in alices.get(job.get_absolute_url()).text
    run_to_the_end(job)
    part = alices.get(address.replace("&amp;", "&"), headers=HTMX)
    assert "Done: 6 new messages." in words(part)
    assert "hx-trigger" not in part.text
    assert part.headers["HX-Trigger"] == '{"palace-grew": {}}'
    assert "import-now" not in alices.get(reverse("facts")).text


def test_it_is_announced_when_a_quarter_is_done_and_not_with_each_message(alices, palace):
    job = previewed(alices)
    import_jobs.start(job)
    import_jobs.run_slice(job, seconds=0)

    def asked(said, done):
        address = reverse("import_now")
        return alices.get(address, {"job": job.uuid, "said": said, "done": done}, headers=HTMX)

    progress = "talks.jsonl: a quarter is imported."
    new = asked("talks.jsonl is being imported.", 0)
    assert f'<p hx-swap-oob="innerHTML:#import-said">{progress}</p>' in new.text
    again = asked(progress, 3)
    assert "hx-swap-oob" not in again.text
    assert "HX-Trigger" not in again.headers


def test_what_is_filed_counts_before_it_is_sorted(alices, palace):
    """The page beside it counts these messages, and grows as they come."""
    job = previewed(alices)
    import_jobs.start(job)
    import_jobs.run_slice(job, seconds=0)
    Drawer.objects.within(palace).update(mined_at=None)
    page = alices.get(reverse("memory"))
    assert "2 drawers" in words(page)
    assert "3 of 9 messages , 2 being sorted" in words(page)
    assert '<progress max="9" value="2"' in page.text
    assert "3 of 9 messages, 2 being sorted" in words(alices.get(job.get_absolute_url()))
    polled = alices.get(reverse("import_now"), {"job": job.uuid, "done": 0}, headers=HTMX)
    assert "palace-grew" in polled.headers["HX-Trigger"]


@pytest.mark.parametrize("text", ["", "no-uuid", "6d0ab36b-6a4f-4f2f-9c51-2a4f8f1d9f52"])
def test_an_import_that_is_gone_leaves_nothing_to_ask_for(alices, text):
    response = alices.get(reverse("import_now"), {"job": text})
    assert response.status_code == 200
    assert response.text.strip() == ""


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (3, "less than a minute"),
        (58, "about 1 minute"),
        (200, "about 3 minutes"),
        (5000, "about 83 minutes"),
        (7300, "about 2 hours"),
    ],
)
def test_time_left_is_said_in_round_words(seconds, said):
    assert time_left(seconds) == said


def test_the_page_of_an_import_says_how_long_it_takes_at_its_speed(alices, palace):
    job = previewed(alices, [long_talk(60)])
    import_jobs.start(job)
    page = words(alices.get(job.get_absolute_url()))
    assert "0 of 60 messages" in page
    assert "left" not in page
    # Half a minute ago it was filed; 40 of 60 messages are mined since.
    import_jobs.run_slice(job, seconds=0)
    ImportJob.objects.update(
        status=ImportJob.Status.RUNNING,
        progress_at=timezone.now(),
        finished_at=None,
        measured_from=timezone.now() - timedelta(seconds=60),
        measured_done=0,
    )
    late = Drawer.objects.filter(palace=palace).order_by("-position")[:20]
    Drawer.objects.filter(pk__in=late.values("pk")).update(mined_at=None)
    page = words(alices.get(job.get_absolute_url()))
    assert "60 of 60 messages, 20 being sorted" in page
    assert "Less than a minute left at the speed so far." in page


def long_talk(messages):
    return {
        "id": "long",
        "messages": [
            {"role": "user", "text": f"Ferry {number} passed the buoy."}
            for number in range(messages)
        ],
    }


def test_after_a_long_pause_the_speed_is_measured_from_there(palace, alices):
    job = previewed(alices)
    import_jobs.start(job)
    import_jobs.run_slice(job, seconds=0)
    first = ImportJob.objects.get().measured_from
    import_jobs.run_slice(job, seconds=0)
    assert ImportJob.objects.get().measured_from == first
    ImportJob.objects.update(progress_at=timezone.now() - timedelta(hours=1))
    import_jobs.run_slice(job, seconds=0)
    job = ImportJob.objects.get()
    assert job.measured_from > first
    assert job.measured_done == 6


def test_the_frame_asks_for_all_of_this_in_one_query(alices, palace, django_assert_num_queries):
    alices.get(reverse("keyboard"))
    with django_assert_num_queries(3):
        alices.get(reverse("keyboard"))
