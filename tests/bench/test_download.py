"""Fetching the published files, from a web server of our own."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.core.management import CommandError, call_command

from bench.datasets import longmemeval
from bench.datasets.longmemeval import Published, fetch
from bench.logs import BadRun, only_one

CONTENT = bytes(range(256)) * 9000


class IndexCache(ThreadingHTTPServer):
    """Serves `content` under every name.

    Attributes:
        breaks_off_after: Bytes of an answer before the connection is cut; None: never.
        parts: Whether it knows how to send the rest of a file.
    """

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Sender)
        self.content, self.breaks_off_after, self.parts, self.asked = CONTENT, None, True, []

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}/files/"


class Sender(BaseHTTPRequestHandler):
    def do_GET(self):
        shelf, wanted = self.server, self.headers.get("Range")
        shelf.asked.append((self.path, wanted))
        first = int(re.findall(r"\d+", wanted)[0]) if wanted and shelf.parts else 0
        if "missing" in self.path:
            self.send_error(404)
            return
        if "moved" in self.path:
            self.send_response(302)
            self.send_header("Location", "/files/here.json")
            self.end_headers()
            return
        if first >= len(shelf.content):
            self.send_error(416)
            return
        self.send_response(206 if first else 200)
        self.send_header("Content-Length", str(len(shelf.content) - first))
        self.end_headers()
        end = first + shelf.breaks_off_after if shelf.breaks_off_after else None
        self.wfile.write(shelf.content[first:end])

    def log_message(self, *_):
        """Nothing."""


@pytest.fixture
def shelf():
    with IndexCache() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def published():
    return Published("toy.json", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))


def test_a_file_is_fetched_and_checked_once(shelf, published, tmp_path):
    fetched = fetch(published, tmp_path, shelf.address)
    assert fetched.path.read_bytes() == CONTENT
    assert (fetched.was_there, fetched.checked) == (False, True)
    assert fetch(published, tmp_path, shelf.address).was_there
    assert shelf.asked == [("/files/toy.json", None)]
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("parts", [True, False])
def test_what_broke_off_is_gone_on_with(shelf, published, tmp_path, parts):
    shelf.breaks_off_after, shelf.parts = 1_500_000, parts
    with pytest.raises(BadRun, match=r"goes on where it stopped.*put it at .*SHA-256"):
        fetch(published, tmp_path, shelf.address)
    there = (tmp_path / "toy.json.part").stat().st_size
    assert 0 < there <= 1_500_000
    shelf.breaks_off_after = None
    assert fetch(published, tmp_path, shelf.address).path.read_bytes() == CONTENT
    assert shelf.asked[-1] == ("/files/toy.json", f"bytes={there}-")


def test_a_file_that_was_whole_before_the_process_was_killed_is_taken(shelf, published, tmp_path):
    (tmp_path / "toy.json.part").write_bytes(CONTENT)
    assert fetch(published, tmp_path, shelf.address).path.read_bytes() == CONTENT


def test_what_is_not_the_published_file_is_thrown_away(shelf, published, tmp_path):
    (tmp_path / "toy.json.part").write_bytes(b"of another file")
    with pytest.raises(BadRun, match="is not the published file: its SHA-256 is"):
        fetch(published, tmp_path, shelf.address)
    assert [path.name for path in tmp_path.iterdir()] == [".toy.json.lock"]
    assert fetch(published, tmp_path, shelf.address).checked


def test_a_file_of_ones_own_under_a_published_name_stays(shelf, published, tmp_path):
    (tmp_path / "toy.json").write_bytes(b"mine")
    with pytest.raises(BadRun, match="Move it away"):
        fetch(published, tmp_path, shelf.address)
    assert (tmp_path / "toy.json").read_bytes() == b"mine"
    assert shelf.asked == []


def test_two_do_not_fetch_into_one_file(shelf, published, tmp_path):
    with (
        only_one(tmp_path / ".toy.json.lock", "busy"),
        pytest.raises(BadRun, match="being fetched by another process"),
    ):
        fetch(published, tmp_path, shelf.address)


@pytest.fixture
def run(shelf, tmp_path, capsys):
    def run(*files, url=shelf.address):
        call_command("longmemeval", "download", file=list(files), url=url, out=tmp_path)
        said = capsys.readouterr()
        return json.loads(said.out)["files"], said.err

    return run


def test_an_unknown_files_checksum_is_written_down_and_holds(run, shelf, tmp_path):
    [first], said = run("older.json")
    assert "Nothing is known to check older.json against" in said
    assert (first["checked"], first["fetched"]) == (False, True)
    [again], said = run("older.json")
    assert (again["checked"], again["fetched"], said) == (True, False, "")
    (tmp_path / "longmemeval" / "older.json").unlink()
    shelf.content = CONTENT[:-1]
    with pytest.raises(CommandError, match="is not the published file"):
        run("older.json")
    shelf.content = CONTENT
    [third], _ = run("older.json")
    assert (third["checked"], third["fetched"]) == (True, True)


def test_redirects_are_followed(run, tmp_path):
    [moved], _ = run("moved.json")
    assert moved["bytes"] == len(CONTENT)


@pytest.mark.parametrize("name", ["s", "longmemeval_s_cleaned.json"])
def test_the_published_names_have_the_published_checksums(run, name):
    with pytest.raises(CommandError, match=f"should be {longmemeval.FILES['s'].sha256}"):
        run(name)


def test_offline_one_learns_what_to_put_where(run, tmp_path):
    with pytest.raises(CommandError) as error:
        run("oracle", url="http://127.0.0.1:9/files")
    said = str(error.value)
    assert "longmemeval_oracle.json could not be fetched" in said
    assert "http://127.0.0.1:9/files/longmemeval_oracle.json (15 MB)" in said
    assert str(tmp_path / "longmemeval" / "longmemeval_oracle.json") in said
    assert longmemeval.FILES["oracle"].sha256 in said


@pytest.mark.parametrize(
    ("name", "url", "said"),
    [
        ("missing.json", None, "the server answered 404"),
        ("toy.json", "ftp://127.0.0.1/", "could not be fetched"),
        ("toy.json", "not an address", "could not be fetched"),
        ("../toy.json", None, "no file's name"),
    ],
)
def test_a_bad_address_or_name_gets_a_sentence(run, shelf, name, url, said):
    with pytest.raises(CommandError, match=said):
        run(name, url=url or shelf.address)
