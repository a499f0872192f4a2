"""The preview of an upload."""

from __future__ import annotations

import gzip
import json

import pytest
from django.urls import reverse

from palace.models import Drawer, ImportJob
from palace.transfer import importers
from settings_app.models import MemorySettings
from tests.transfer.importers.exports import claude, claude_message, plain, write_zip
from tests.views.uploads import (
    CHATGPT,
    HTMX,
    TALKS,
    figures,
    lines,
    previewed,
    run_to_the_end,
    send,
    words,
)

pytestmark = pytest.mark.usefixtures("uploads")


def zipped(tmp_path, members):
    return write_zip(tmp_path / "export.zip", members).read_bytes()


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
    for kind in importers.FORMATS.values():
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
