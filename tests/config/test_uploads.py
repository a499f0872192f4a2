"""Uploads through the product's own server: too large, broken off, or more than the disk holds."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.conf import settings as project
from django.test import Client
from django.urls import reverse

from palace.models import ImportJob
from palace.transfer.spools import BESIDES_THE_FILE, largest_request, spool_folder
from tests.asgi_server import AsgiServer
from tests.polling import until
from tests.transfer.importers.exports import plain

pytestmark = pytest.mark.django_db(transaction=True)

MB = 1 << 20
BOUNDARY = "-----a-boundary"


@pytest.fixture
def server(transactional_db):
    with AsgiServer() as server:
        yield server


@pytest.fixture
def uploads(monkeypatch, tmp_path):
    """The folder of temporary files, which is empty after every test, whatever became of it."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    until(lambda: list(folder.iterdir()) == [])


@pytest.fixture
def headers(alice):
    """Of a browser in which Alice is signed in."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    page = client.get(reverse("imports"))
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)[1]
    cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())
    return {"Cookie": cookies, "token": token}


def form(token, size):
    """The pieces of a form with a file of so many MB, each a line, each a conversation."""
    yield (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="csrfmiddlewaretoken"\r\n\r\n'
        f"{token}\r\n--{BOUNDARY}\r\n"
        'Content-Disposition: form-data; name="file"; filename="talks.jsonl"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    ).encode()
    for number in range(size // MB):
        line = json.dumps(plain("When does the ferry leave?", "", conversation_id=f"p{number}"))
        yield line.replace('""', '"At nine."').ljust(MB - 1).encode() + b"\n"
    yield (
        f'\r\n--{BOUNDARY}\r\nContent-Disposition: form-data; name="whole"\r\n\r\nyes\r\n'
        f"--{BOUNDARY}--\r\n"
    ).encode()


def post(server, headers, size):
    """Send a file of this many bytes. → status, page."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    sent = {
        "Cookie": headers["Cookie"],
        "Content-Type": f"multipart/form-data; boundary={BOUNDARY}",
        "Content-Length": str(sum(map(len, form(headers["token"], size)))),
    }
    connection.request("POST", reverse("imports"), form(headers["token"], size), sent)
    response = connection.getresponse()
    page = response.read().decode()
    connection.close()
    return response.status, page


def test_a_file_is_taken_in_and_nothing_of_it_stays_but_the_prepared_copy(server, uploads, headers):
    status, _page = post(server, headers, 5 * MB)
    assert status == 302
    assert ImportJob.objects.get().messages_total == 10


def test_a_file_that_is_too_large_is_refused_on_the_page(server, uploads, headers, settings):
    settings.MAX_UPLOAD_MB = 1
    status, page = post(server, headers, 20 * MB)
    assert status == 400
    assert "The file is larger than the 1 MB that may be uploaded here." in page
    assert not ImportJob.objects.exists()
    assert not list(spool_folder().glob("*.jsonl"))


def test_of_what_is_too_large_only_the_beginning_is_written(server, uploads, headers, settings):
    """Watched while it arrives: the server holds it in a file that has no name."""
    settings.MAX_UPLOAD_MB = 1
    pieces = form(headers["token"], 50 * MB)
    with open_request(server, headers, 60 * MB) as upload:
        for piece in pieces:
            upload.sendall(piece)
        assert written_in(uploads) <= BESIDES_THE_FILE


def test_what_declares_no_length_is_cut_at_the_limit(server, uploads, headers, settings):
    settings.MAX_UPLOAD_MB = 5
    with open_request(server, headers, None) as upload:
        for _ in range(20):
            upload.sendall(b"%x\r\n" % MB + b"x" * MB + b"\r\n")
        until(lambda: written_in(uploads) > 4 * MB)
        time.sleep(0.2)
        assert written_in(uploads) == largest_request()


def test_what_the_disk_has_no_room_for_is_refused_on_the_page(
    server, uploads, headers, settings, monkeypatch
):
    full = shutil.disk_usage(uploads)._replace(free=10 * MB)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: full)
    status, page = post(server, headers, 8 * MB)
    assert status == 400
    assert "The file did not arrive whole" in page
    assert "disk is full" in page


def test_a_connection_that_breaks_off_leaves_nothing(server, uploads, headers):
    with open_request(server, headers, 60 * MB) as upload:
        pieces = form(headers["token"], 50 * MB)
        for _ in range(20):
            upload.sendall(next(pieces))
        until(lambda: written_in(uploads) > 10 * MB)
    until(lambda: written_in(uploads) == 0)
    assert not ImportJob.objects.exists()
    assert not list(spool_folder().glob("*.jsonl"))


@pytest.mark.exhaustive
def test_a_file_of_200_mb_does_not_fill_memory(server, uploads, headers):
    assert post(server, headers, MB)[0] == 302  # What it is read with is loaded once.
    tracemalloc.start()
    try:
        assert post(server, headers, 200 * MB)[0] == 302
        assert tracemalloc.get_traced_memory()[1] < 32 * MB
    finally:
        tracemalloc.stop()


def open_request(server, headers, length):
    """A connection over which the head of a request has gone out, but not yet its body."""
    address = urlsplit(server.url)
    body = f"Content-Length: {length}" if length else "Transfer-Encoding: chunked"
    upload = socket.create_connection((address.hostname, address.port), timeout=30)
    upload.sendall(
        f"POST {reverse('imports')} HTTP/1.1\r\nHost: {address.netloc}\r\n"
        f"Cookie: {headers['Cookie']}\r\n{body}\r\n"
        f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n".encode()
    )
    return upload


def written_in(folder):
    """Bytes this process holds in files of that folder, named or not."""
    total = 0
    for held in Path("/proc/self/fd").iterdir():
        try:
            if str(held.readlink()).startswith(str(folder)):
                total += held.stat().st_size
        except OSError:  # Closed meanwhile.
            continue
    return total


@pytest.mark.parametrize(
    "value",
    ["0", *(pytest.param(value, marks=pytest.mark.exhaustive) for value in ("-5", "nan", "many"))],
)
def test_a_limit_that_makes_no_sense_stops_the_start(value):

    said = subprocess.run(
        [sys.executable, "-c", "import config.settings"],
        env=os.environ | {"LOCI_MAX_UPLOAD_MB": value},
        cwd=project.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode != 0
    assert "LOCI_MAX_UPLOAD_MB is" in said.stderr
