"""Uploads that cannot be taken get a sentence, and leave nothing."""

from __future__ import annotations

import gzip
import html
import io
import json
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test.client import encode_multipart
from django.urls import reverse

from palace.models import ImportJob
from palace.transfer.importers import files
from palace.transfer.spools import spool_folder
from tests.views.uploads import CHATGPT, HTMX, TALKS, lines, send

pytestmark = pytest.mark.usefixtures("uploads")


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


@pytest.mark.some(5)
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.exhaustive) if n == "a bomb" else n for n in BAD],
)
@pytest.mark.parametrize("headers", [{}, pytest.param(HTMX, marks=pytest.mark.exhaustive)])
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


@pytest.mark.some(2)
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
