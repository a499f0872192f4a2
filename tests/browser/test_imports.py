"""Importing as a person does it: choose a file, look, start, watch, read the receipt."""

from __future__ import annotations

import json
import re

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from palace.models import Drawer, ImportJob
from palace.transfer import import_jobs
from settings_app.accounts import one_time_link
from tests.browser.conversations import CONVERSATIONS
from tests.browser.page_checks import layout_faults, rule_faults
from tests.transfer.importers.exports import plain, write_lines

pytestmark = pytest.mark.browser

FIELD = "The file with your conversations"
BUTTON = "Preview file"


@pytest.fixture
def export(tmp_path):
    return write_lines(tmp_path / "talks.jsonl", CONVERSATIONS)


@pytest.fixture
def long_export(tmp_path):
    """More than a worker mines in one go, so that there is something to watch."""
    talks = [
        plain(*[f"Ferry {n} passed buoy {m}." for m in range(20)], conversation_id=f"p{n}")
        for n in range(40)
    ]
    return write_lines(tmp_path / "long.jsonl", talks)


def choose(page, path):
    page.goto(reverse("imports"))
    page.get_by_label(FIELD).set_input_files(path)
    page.get_by_role("button", name=BUTTON).click()


def previewed(page, path):
    choose(page, path)
    expect(page.get_by_role("heading", name="What is in it")).to_be_visible()
    return ImportJob.objects.get()


def row(page, name):
    return page.get_by_role("row", name=re.compile(rf"^{re.escape(name)}")).get_by_role("cell")


@pytest.mark.exhaustive
def test_from_a_file_to_its_receipt(signed_in, export, palace, loci_worker):
    page = signed_in()
    page.evaluate("window.sameDocument = true")
    choose(page, export)
    expect(page.get_by_role("heading", level=1)).to_have_text("talks.jsonl")
    total = sum(len(talk["messages"]) for talk in CONVERSATIONS)
    expect(row(page, "new")).to_have_text(str(total))
    assert not Drawer.objects.exists()

    page.get_by_role("button", name="Start the import").click()
    expect(page.get_by_role("heading", name="Done")).to_be_visible()
    expect(row(page, "Messages in the file")).to_have_text(str(total))
    expect(row(page, "= new in your palace")).to_have_text(str(total))
    expect(row(page, "+ already there")).to_have_text("0")
    expect(row(page, "+ skipped")).to_have_text("0")
    assert page.title().startswith("Done – talks.jsonl")
    expect(page.locator("#said")).to_have_text(f"The import is done: {total} new messages.")

    page.locator(".went").get_by_role("link").first.click()
    expect(page.get_by_text("Wing", exact=False).first).to_be_visible()
    loci_worker.finish()
    assert not Drawer.objects.unmined().exists()
    assert Drawer.objects.filter(palace=palace).count() == total


@pytest.mark.exhaustive
def test_the_bar_moves_by_itself_and_a_second_tab_shows_the_same(signed_in, long_export):
    page = signed_in()
    page.clock.install()
    job = previewed(page, long_export)
    page.get_by_role("button", name="Start the import").click()
    bar = page.get_by_role("progressbar", name="0 of 800 messages")
    expect(bar).to_be_visible()
    second = page.context.new_page()
    second.goto(job.get_absolute_url())
    for each in (page, second):
        each.evaluate("window.sameDocument = true")
        each.get_by_role("button", name="Pause").focus()

    while import_jobs.run_slice(job, seconds=0) is False and job.messages_stored < 300:
        pass
    done = job.messages_stored
    for each in (page, second):
        expect(each.get_by_label(f"{done} of 800 messages")).to_have_attribute("value", str(done))
        expect(each.get_by_role("button", name="Pause")).to_be_focused()
        expect(each.locator("#said")).to_have_text("A quarter is imported.")

    import_jobs.run_slice(job, seconds=600)
    for each in (page, second):
        expect(each.get_by_role("heading", name="Done")).to_be_focused()
        expect(row(each, "= new in your palace")).to_have_text("800")
        assert each.evaluate("window.sameDocument")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.clock.run_for(10_000)
    assert asked == []


@pytest.mark.exhaustive
def test_closing_the_tab_does_not_stop_it(signed_in, long_export, loci_worker):
    page = signed_in()
    choose(page, long_export)
    page.get_by_role("button", name="Start the import").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    page.close()
    loci_worker.finish()
    assert ImportJob.objects.get().status == ImportJob.Status.DONE
    assert Drawer.objects.count() == 800


@pytest.mark.exhaustive
def test_pause_go_on_and_discard_the_rest(signed_in, long_export):
    page = signed_in()
    job = previewed(page, long_export)
    page.get_by_role("button", name="Start the import").click()
    import_jobs.run_slice(job, seconds=0)
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("heading", name="Paused")).to_be_visible()
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_text("20 of 800 messages")).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Discard the rest").click()
    expect(page.get_by_text("What it had filed stays in your palace.")).to_be_visible()
    assert Drawer.objects.count() == 20


@pytest.mark.exhaustive
def test_a_page_whose_import_was_discarded_elsewhere_stops_asking(signed_in, long_export):
    page = signed_in()
    page.clock.install()
    choose(page, long_export)
    page.get_by_role("button", name="Start the import").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    ImportJob.objects.all().delete()
    expect(page.get_by_text("This import has been discarded.")).to_be_visible()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.clock.run_for(10_000)
    assert asked == []


@pytest.mark.exhaustive
def test_a_bad_file_has_its_error_at_the_field(signed_in, tmp_path):
    page = signed_in()
    diary = tmp_path / "diary.json"
    diary.write_text("Dear diary")
    page.goto(reverse("imports"))
    page.evaluate("window.sameDocument = true")
    page.get_by_label(FIELD).set_input_files(diary)
    page.get_by_role("button", name=BUTTON).click()
    expect(page.get_by_text("diary.json is no export we know")).to_be_visible()
    expect(page.get_by_label(FIELD)).to_be_focused()
    assert page.evaluate("window.sameDocument")
    page.get_by_role("button", name=BUTTON).click()
    expect(page.get_by_text("Choose a file first")).to_be_visible()


@pytest.mark.exhaustive
def test_a_file_that_is_too_large_is_reported_before_it_is_sent(signed_in, tmp_path, settings):
    settings.MAX_UPLOAD_MB = 1
    page = signed_in()
    large = tmp_path / "large.json"
    large.write_bytes(b" " * ((1 << 20) + 1))
    sent = []
    page.on("request", lambda request: sent.append(request.method))
    choose(page, large)
    assert page.get_by_label(FIELD).evaluate("field => field.validationMessage") == (
        "A file may have 1 MB here; this one is larger."
    )
    assert "POST" not in sent


@pytest.mark.exhaustive
def test_a_dropped_file_is_chosen(signed_in):
    page = signed_in(at=reverse("imports"))
    dropped = page.evaluate_handle(
        """() => {
            const transfer = new DataTransfer();
            transfer.items.add(new File(["[]"], "dropped.json"));
            return transfer;
        }"""
    )
    page.dispatch_event("#file", "dragover", {"dataTransfer": dropped})
    expect(page.locator("#file.over")).to_be_visible()
    page.dispatch_event("#file", "drop", {"dataTransfer": dropped})
    expect(page.locator("#file.over")).to_have_count(0)


@pytest.mark.exhaustive
def test_the_page_shows_that_it_reads_the_file(signed_in, tmp_path):
    page = signed_in()
    texts = []
    page.expose_function("note", lambda text: texts.append(text))
    page.goto(reverse("imports"))
    page.evaluate(
        """new MutationObserver(() => note(document.getElementById("busy-text").textContent))
            .observe(document.getElementById("busy-text"), {childList: true})"""
    )
    talk = plain("When does the ferry leave? " * 400)
    lines = [talk | {"id": f"p{n}"} for n in range(1000)]
    file = tmp_path / "large.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    page.get_by_label(FIELD).set_input_files(file)
    page.get_by_role("button", name=BUTTON).click()
    expect(page.get_by_role("heading", name="What is in it")).to_be_visible()
    assert texts[0].startswith("Uploading")
    assert texts[-1].startswith("It has arrived and is being read")


@pytest.mark.exhaustive
def test_everything_works_without_javascript(
    open_context, alice, palace, long_export, tmp_path, loci_worker
):
    page = open_context(java_script_enabled=False).new_page()
    page.goto(one_time_link(alice))
    empty = tmp_path / "empty.json"
    empty.write_text("")
    choose(page, empty)
    expect(page.get_by_text("empty.json is empty")).to_be_visible()
    choose(page, long_export)
    page.get_by_role("button", name="Start the import").click()
    # The page is reloaded every other second until it is done.
    expect(page.get_by_role("heading", name="Done")).to_be_visible(timeout=60_000)
    expect(row(page, "= new in your palace")).to_have_text("800")
    page.get_by_role("link", name="Import another file").click()
    expect(page.get_by_text("Done: 800 new messages")).to_be_visible()


@pytest.mark.parametrize(("width", "columns"), [(1440, 4), (390, 1)])
def test_the_formats_stand_beside_each_other(signed_in, palace, width, columns):
    page = signed_in(at=reverse("imports"), viewport={"width": width, "height": 900})
    boxes = [each.bounding_box() for each in page.locator(".formats > details").all()]
    assert len({box["x"] for box in boxes}) == columns


@pytest.mark.exhaustive
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_fault_or_scrolls_sideways(
    signed_in, long_export, export, palace, scheme, width
):
    page = signed_in(color_scheme=scheme, viewport={"width": width, "height": 844})
    job, done = (import_jobs.preview(palace, path) for path in (long_export, export))
    import_jobs.start(done)
    import_jobs.run_slice(done, seconds=600)
    faults = {}

    def look(name, address):
        page.goto(address)
        faults[name] = [*rule_faults(page), *layout_faults(page)]

    look("a preview", job.get_absolute_url())
    import_jobs.start(job)
    import_jobs.run_slice(job, seconds=0)
    look("progress", job.get_absolute_url())
    import_jobs.pause(job)
    look("a pause", job.get_absolute_url())
    ImportJob.objects.filter(pk=job.pk).update(status="failed", error="The copy cannot be read.")
    look("a failure", job.get_absolute_url())
    look("a receipt", done.get_absolute_url())
    look("the list", reverse("imports"))
    page.get_by_role("button", name=BUTTON).click()
    expect(page.get_by_text("Choose a file first")).to_be_visible()
    faults["an error"] = rule_faults(page)
    assert {name: found for name, found in faults.items() if found} == {}
