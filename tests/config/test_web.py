from __future__ import annotations

import ctypes
import gzip
import os
import re
import subprocess
import sys
import threading
from typing import ClassVar

import pytest
from asgiref.sync import async_to_sync
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.templatetags.static import static
from django.utils.deprecation import MiddlewareMixin

from config.management.commands import run
from config.middleware import OneThreadHandler, match_at, yields_s
from llm.onnx_runtime import available_cores
from llm.request_admission import PAGES_YIELD_S, READS_YIELD_S, WRITES_YIELD_S
from tests.config.conftest import PROJECT
from tests.polling import PATIENCE_S

FILES = sorted((settings.BASE_DIR / "static").rglob("*.*"), key=str)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_static_files_are_served_whole_by_the_web_server_itself(client, path):
    response = client.get(f"/static/{path.relative_to(settings.BASE_DIR / 'static')}")
    assert response.status_code == 200
    assert not response.streaming
    assert response.content == path.read_bytes()
    assert "max-age" in response["Cache-Control"]


def test_a_static_file_that_has_not_changed_is_not_sent_again(client):
    address = f"/static/{FILES[0].relative_to(settings.BASE_DIR / 'static')}"
    seen = client.get(address)["Last-Modified"]
    again = client.get(address, headers={"If-Modified-Since": seen})
    assert (again.status_code, again.content) == (304, b"")


def test_a_static_file_is_kept_for_a_year_at_the_address_of_its_hash_alone(client):
    address = static("css/base.css")
    kept = client.get(address)
    assert kept["Cache-Control"] == "max-age=31536000, public, immutable"
    assert kept.content == (settings.BASE_DIR / "static/css/base.css").read_bytes()
    for other in ("/static/css/base.css", "/static/css/base.css?v=0000000000000000"):
        assert "immutable" not in client.get(other)["Cache-Control"]
    assert static("css/nothing.css") == "/static/css/nothing.css"


def test_what_style_sheets_name_is_there_at_the_address_of_its_hash(client):
    named = re.compile(r'url\("\.\./([^"?]+)\?v=([0-9a-f]+)"\)')
    sheets = "".join(path.read_text() for path in FILES if path.suffix == ".css")
    assert len(named.findall(sheets)) == sheets.count("url(") > 0
    for name, version in named.findall(sheets):
        address = static(name)
        assert address.endswith(f"?v={version}")
        assert "immutable" in client.get(address)["Cache-Control"]


def test_what_pages_are_made_of_weighs_little():
    weight = sum(len(gzip.compress(path.read_bytes(), mtime=0)) for path in FILES)
    assert weight < 120_000


def test_text_is_sent_compressed_to_browsers_that_read_it(client):
    plain, packed = (
        client.get("/static/icons.svg", headers={"Accept-Encoding": accepted})
        for accepted in ("identity", "gzip, br")
    )
    assert packed["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.content) == plain.content
    assert int(packed["Content-Length"]) == len(packed.content) < len(plain.content)
    assert packed["ETag"] != plain["ETag"]
    assert plain["Vary"] == packed["Vary"] == "Accept-Encoding"
    assert "Content-Encoding" not in plain


@pytest.mark.parametrize("accepted", ["identity", "gzip", "gzip;q=0, identity"])
def test_what_the_browser_has_is_not_sent_again(client, accepted):
    first = client.get("/static/icons.svg", headers={"Accept-Encoding": accepted})
    assert ("Content-Encoding" in first) is (accepted == "gzip")
    headers = {"Accept-Encoding": accepted, "If-None-Match": first["ETag"]}
    again = client.get("/static/icons.svg", headers=headers)
    assert (again.status_code, again.content, again["Vary"]) == (304, b"", "Accept-Encoding")


def test_the_head_of_a_static_file_has_its_whole_length(client):
    head = client.head(static("css/base.css"))
    assert (head.status_code, head.content) == (200, b"")
    size = (settings.BASE_DIR / "static/css/base.css").stat().st_size
    assert int(head["Content-Length"]) == size


def test_nothing_beside_the_static_files_can_be_reached(client, db):
    for path in ("../manage.py", "..%2fmanage.py", "%2e%2e/manage.py"):
        assert client.get(f"/static/{path}").status_code in {302, 404}


class Watched(MiddlewareMixin):
    """Notes how it is called, and may be called in either way."""

    calls: ClassVar[list[tuple[int, bool]]] = []

    def process_request(self, _request):
        self.calls.append((threading.get_ident(), self.async_mode))


def test_all_middleware_runs_in_one_thread_of_the_request(settings):
    watched = f"{__name__}.Watched"
    first, *others = settings.MIDDLEWARE
    settings.MIDDLEWARE = [first, watched, *others, watched]
    Watched.calls.clear()

    async def ask():
        scope = {"type": "http", "method": "GET", "path": "/health/live"}
        scope["headers"] = [(b"host", b"testserver")]
        server = ApplicationCommunicator(OneThreadHandler(), scope)
        await server.send_input({"type": "http.request"})
        start = await server.receive_output(PATIENCE_S)
        await server.wait(PATIENCE_S)
        return start

    assert async_to_sync(ask)()["status"] == 200
    assert len(Watched.calls) == 2
    [(thread, is_async)] = set(Watched.calls)
    assert not is_async
    assert thread != threading.get_ident()


def test_there_are_as_many_web_processes_as_are_set_or_one_for_two_cores(settings):
    settings.WEBS = 1
    assert run._webs() == []
    settings.WEBS = 3
    assert run._webs()[:2] == ["--workers", "3"]
    settings.WEBS = 0
    expected = max(1, min(available_cores() // 2, 4))
    assert run._webs()[1:2] == ([str(expected)] if expected > 1 else [])


def test_one_worker_takes_short_tasks_alone_and_the_other_takes_all():
    commands = {each.name: each.command for each in run._programs("127.0.0.1", 8000)}
    assert commands["worker"][-2:] == ["--queues", "celery"]
    assert "--queues" not in commands["long"]


# Whether garbage collections leave out what there is from the start. What the C library says of a
# web's memory with twelve threads: its arenas, and whether a larger piece gets pages of its own
# after one of 20 MB was freed.
ALLOCATOR = """
import ctypes, gc, pathlib, re, sys, threading
import config.asgi
for thread in threading.enumerate():
    if thread.name == "load models":
        thread.join()
print(gc.get_freeze_count() > 100_000, gc.get_threshold()[1:], flush=True)
everywhere = threading.Barrier(13)
def allocate():
    kept = [bytes(2000) for _ in range(100)]
    everywhere.wait()
    everywhere.wait()
for _ in range(12):
    threading.Thread(target=allocate, daemon=True).start()
everywhere.wait()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
def report():
    file = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
    libc.malloc_info(0, file)
    libc.fclose(file)
    return pathlib.Path(sys.argv[1]).read_text()
def mapped():
    return int(re.findall('type="mmap" count="([0-9]+)"', report())[-1])
bytes(20_000_000)
before = mapped()
kept = [bytes(200_000) for _ in range(100)]
print(report().count("<heap nr="), mapped() - before > 50, flush=True)
everywhere.wait()
"""


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_info"),
    reason="of the GNU C library",
)
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "2 True"),
        pytest.param(
            {"MALLOC_ARENA_MAX": "5", "MALLOC_MMAP_THRESHOLD_": "1000000"},
            "5 False",
            marks=pytest.mark.exhaustive,
        ),
    ],
)
def test_the_web_limits_what_the_allocator_keeps_unless_the_environment_does(tmp_path, given, said):
    without = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    ended = subprocess.run(
        [sys.executable, "-c", ALLOCATOR, str(tmp_path / "malloc.xml")],
        env=without | given,
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout == f"True (6, 6)\n{said}\n", ended.stderr


# Whether the start of a web process prepares pages, and makes later collections short; then what
# the first use of the model says.
START = """
import gc, threading
import config.asgi
for thread in threading.enumerate():
    if thread.name == "load models":
        thread.join()
from django.template import engines
[[cached]] = [loader.loaders for loader in engines["django"].engine.template_loaders]
print(len(cached.get_template_cache) > 100, gc.get_freeze_count() > 100_000)
try:
    config.asgi.embedding.load()
except ImportError as error:
    print(error)
"""
MISSING = "libgomp.so.1: cannot open shared object file"


def test_a_model_that_cannot_be_loaded_does_not_keep_pages_from_being_prepared(tmp_path):
    (tmp_path / "onnxruntime.py").write_text(f"raise ImportError({MISSING!r})")
    ended = subprocess.run(
        [sys.executable, "-c", START],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout == f"True True\n{MISSING}\n", ended.stderr
    said = f"Could not load the embedding model at the start: ImportError('{MISSING}')"
    assert ended.stderr == f"WARNING config.asgi: {said}\n"


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("POST", "/recall", READS_YIELD_S),
        ("POST", "/recall/", READS_YIELD_S),
        ("GET", "/v1/webhooks/", READS_YIELD_S),
        ("GET", "/memory/", PAGES_YIELD_S),
        ("GET", "/no-such-page/", PAGES_YIELD_S),
        ("POST", "/turns", WRITES_YIELD_S),
        ("POST", "/v1/chat/completions", WRITES_YIELD_S),
        ("POST", "/memory/import/", WRITES_YIELD_S),
    ],
)
def test_what_programs_read_comes_first_then_pages_then_writes(rf, method, path, expected):
    assert yields_s(rf.generic(method, path)) == expected


def test_only_an_address_without_a_part_that_varies_is_kept():
    fixed = match_at("/recall")
    assert fixed is not None
    assert match_at("/recall") is fixed
    varying = [match_at(f"/users/{name}/memories") for name in ("ada", "bob", "ada")]
    assert [found.kwargs["user_id"] for found in varying] == ["ada", "bob", "ada"]
    assert varying[0] is not varying[2]
    assert match_at("/nowhere") is None
