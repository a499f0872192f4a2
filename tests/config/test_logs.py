"""Log lines as JSON: what they say, and that no door lets content into them."""

from __future__ import annotations

import json
import logging

import httpx2
import pytest
import redis
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import IntegrityError, OperationalError
from django.test import Client
from django.urls import path, reverse
from mcp.shared.exceptions import MCPError

from config.celery import app
from config.json_formats import JsonFormatter
from config.urls import urlpatterns as usual
from palace.mining.tasks import mine_room
from palace.models import Palace, Room
from palace.webhooks import add
from settings_app import request_id
from settings_app.api_keys import issue
from settings_app.models import MemorySettings
from tests.api.mcp.conftest import Door
from tests.api.rest.conftest import client_of
from tests.asgi_server import AsgiServer
from tests.model_server import NotJson, Status
from tests.polling import until
from tests.transfer.importers.exports import plain

# No line may have it, nor its beginning; its end has a letter that is escaped here and there.
STEM = "Quokkazanzib"
MARK = f"{STEM}ärin"
SECRET = "sk-marked-key-0123456789"


class Lines(logging.Handler):
    def __init__(self):
        super().__init__(logging.DEBUG)
        self.setFormatter(JsonFormatter())
        self.written = []
        # What a line for people would say: by it a test knows that there was something to hide.
        self.plain = []

    def emit(self, record):
        self.plain.append(logging.Formatter("%(name)s %(message)s").format(record))
        self.written.append(self.format(record))

    @property
    def read(self):
        return [json.loads(line) for line in self.written]

    def of(self, logger):
        return [line for line in self.read if line["logger"] == logger]


@pytest.fixture
def lines(monkeypatch):
    handler = Lines()
    root, requests = logging.getLogger(), logging.getLogger("config.request_log")
    monkeypatch.setattr(requests, "level", logging.INFO)
    requests.manager._clear_cache()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.removeHandler(handler)
    root.setLevel(before)
    requests.manager._clear_cache()


def log_error(error):
    try:
        raise error
    except type(error):
        logging.getLogger("a.module").exception("It broke.")


# What a line says.


def test_a_line_says_when_how_grave_and_where(lines):
    with request_id.use("asked-1"):
        logging.getLogger("a.module").warning("%d of %s", 3, "them")
    (line,) = lines.of("a.module")
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "warning",
        "logger": "a.module",
        "message": "3 of them",
        "request_id": "asked-1",
    }


def test_an_error_is_its_type_and_where_it_was_raised(lines):
    log_error(ValueError(MARK))
    (line,) = lines.of("a.module")
    assert line["error"]["type"] == "builtins.ValueError"
    assert line["error"]["message"] == "ValueError"
    assert line["error"]["at"][-1].startswith("tests/config/test_logs.py:")
    assert line["error"]["at"][-1].endswith(" log_error")
    assert any(STEM in each for each in lines.plain)
    assert not any(STEM in each for each in lines.written)


def test_what_names_no_content_is_said_in_full(lines):
    log_error(OperationalError("connection refused"))
    logging.getLogger("a.module").warning("Not now: %s", OperationalError("server closed"))
    logging.getLogger("a.module").warning("Not now: %s", IntegrityError(f"Key ({MARK}) exists"))
    logging.getLogger("a.module").warning("Not now: %s", OSError(28, "No space left", MARK))
    said = [line["message"] for line in lines.of("a.module")]
    assert said == [
        "It broke.",
        "Not now: server closed",
        "Not now: IntegrityError",
        "Not now: OSError: No space left",
    ]
    assert lines.of("a.module")[0]["error"]["message"] == "connection refused"


@app.task(name="tests.fails")
def fails(text):
    raise ValueError(text)


@app.task(name="tests.answers")
def answers(text):
    logging.getLogger("a.module").info("At work.")
    return text


@pytest.mark.parametrize("task", [fails, answers])
def test_a_tasks_lines_hide_its_arguments_its_answer_and_its_error(lines, task):
    task.apply([MARK], headers={request_id.OF_TASK: "asked-2"})
    ours = [line for line in lines.read if task.name in line["message"]]
    assert ours
    assert all(line["request_id"] == "asked-2" for line in ours)
    assert any(STEM in each for each in lines.plain)
    assert not any(STEM in each for each in lines.written)
    assert request_id.current() == ""


def test_a_task_of_the_clock_has_its_own_id(lines):
    answers.apply(["x"], task_id="a-task")
    (line,) = lines.of("a.module")
    assert line["request_id"] == "a-task"


# The id of a request.


@pytest.fixture
def server(transactional_db):
    with AsgiServer() as server:
        yield server


def asked(server, **headers):
    answer = httpx2.get(f"{server.url}/health/live", headers=headers)
    return answer.headers[request_id.HEADER]


def test_the_id_that_was_sent_comes_back_and_is_in_the_line(server, lines):
    assert asked(server, **{request_id.HEADER: "proxy-7.a_b"}) == "proxy-7.a_b"
    # The answer comes before the line.
    until(lambda: lines.of("config.request_log"))
    (line,) = lines.of("config.request_log")
    assert line["message"] == "GET health_live 200"
    assert line["request_id"] == "proxy-7.a_b"
    assert (line["door"], line["status"]) == ("health", 200)


@pytest.mark.parametrize("sent", ["", "two words", "x" * 65, '"quoted"', "-dash", "ä"])
def test_an_id_that_is_not_fit_for_a_log_is_replaced(server, lines, sent):
    made = asked(server, **{request_id.HEADER: sent.encode()})
    assert made != sent
    assert len(made) == 32
    until(lambda: lines.of("config.request_log"))
    assert lines.of("config.request_log")[0]["request_id"] == made


def test_a_task_that_a_request_queues_carries_its_id(server, alice, queued):
    _, key = issue(alice, "a program", scopes=("admin",))
    headers = {"Authorization": f"Bearer {key}", request_id.HEADER: "asked-9"}
    webhook, _secret = add(alice.pk, "https://example.org/x", ["mined"])
    address = f"{server.url}/v1/webhooks/{webhook.uuid}/test/"
    assert httpx2.post(address, headers=headers).status_code == 202
    assert queued() == ["deliver_webhooks"]
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        (message,) = client.lrange("celery", 0, -1)
    assert json.loads(message)["headers"][request_id.OF_TASK] == "asked-9"


# No content, through any door.


def breaks(request, text):
    raise ValueError(text)


urlpatterns = [*usual, path("breaks/<str:text>/", breaks)]


@pytest.fixture
def model(alice, model_server):
    chosen = MemorySettings(owner=alice, provider=model_server.base_url, model="test-model")
    chosen.set_key(SECRET)
    chosen.save()
    return model_server


def through_pages(alice):
    person = Client(raise_request_exception=False)
    person.force_login(alice)
    person.get("/memory/", {"q": MARK})
    person.get(f"/no-such-page/{MARK}/")
    person.get(f"/breaks/{MARK}/")
    person.post("/settings/try/", {"provider": "openai", "model": MARK, "api_key": SECRET})
    person.post(reverse("webhooks"), {"url": f"https://{MARK}:x/", "events": ["mined"]})
    talk = json.dumps(plain(MARK, MARK, MARK, conversation_id=MARK))
    person.post(reverse("imports"), {"file": SimpleUploadedFile(f"{MARK}.jsonl", talk.encode())})
    visitor = Client()
    visitor.post(reverse("sign_in"), {"username": MARK, "password": MARK})
    visitor.post(reverse("sign_up"), {"username": MARK, "password": MARK, "again": "other"})
    elsewhere = Client(enforce_csrf_checks=True)
    elsewhere.post(f"/sign-in/?next=/{MARK}", {"username": MARK})
    came_from = {"Referer": f"https://loci.example.org/memory/?q={MARK}"}
    elsewhere.post("/sign-in/", {"username": MARK}, secure=True, headers=came_from)


def through_programs(alice):
    program = client_of(alice)
    program.raise_request_exception = False
    said = [{"role": "user", "content": f"{MARK} is my cat. I live in {MARK}."}]
    turn = {"session_id": MARK, "user_id": MARK, "messages": said}
    assert program.post("/turns", turn).status_code == 201
    assert program.post("/recall", {"query": MARK, "user_id": MARK}).status_code == 200
    assert program.post("/v1/memories/", {"messages": said, "user_id": MARK}).status_code < 300
    program.post("/v1/memories/search/", {"query": MARK, "user_id": MARK})
    program.get(f"/v1/entities/{MARK}/timeline/")
    program.get(f"/users/{MARK}/memories", {"q": MARK})
    program.post("/turns", {"session_id": MARK, "messages": MARK})
    program.generic("POST", "/turns", f'{{"broken": "{MARK}', content_type="application/json")
    chat = {"model": "test-model", "messages": said}
    program.post("/v1/chat/completions", chat)
    program.post("/v1/responses", {"model": "test-model", "input": MARK})
    program.post("/v1/embeddings", {"model": "loci", "input": MARK})
    program.post("/v1/webhooks/", {"url": f"https://{MARK}.example/x", "events": [MARK]})
    program.credentials(HTTP_AUTHORIZATION=f"Bearer {SECRET}")
    assert program.post("/recall", {"query": MARK}).status_code == 401


def through_mcp(alice, server):
    door = Door(server.url)
    door.call(alice, "remember", {"text": MARK})
    door.call(alice, "recall", {"query": MARK})
    door.call(alice, "recall", {"question": MARK, "limit": MARK})

    async def unknown(client):
        with pytest.raises(MCPError):
            await client.call_tool(MARK, {MARK: MARK})

    door.run(alice, unknown)


def through_tasks(alice):
    for room in Room.objects.filter(palace__owner=alice):
        mine_room.apply([room.pk])


@pytest.mark.parametrize(
    "reply",
    [
        None,
        pytest.param(Status(500, MARK), marks=pytest.mark.exhaustive),
        pytest.param(NotJson(MARK), marks=pytest.mark.exhaustive),
    ],
    ids=lambda _: "",
)
def test_no_door_lets_content_into_the_log(server, alice, model, lines, monkeypatch, reply):
    monkeypatch.setattr(settings, "ROOT_URLCONF", "tests.config.test_logs")
    monkeypatch.setattr(settings, "LLM_MAX_RETRIES", 0)
    if reply is not None:
        model.answer(reply)
    through_pages(alice)
    through_programs(alice)
    through_mcp(alice, server)
    through_tasks(alice)
    assert Palace.objects.filter(owner=alice, subject=MARK).exists()
    # There was something to hide: a page that broke, and addresses with people's names.
    assert sum(STEM in line for line in lines.plain) > 2
    for line in lines.written:
        assert STEM.casefold() not in line.casefold(), line
        assert SECRET not in line
    assert {line["logger"] for line in lines.read} >= {"django.request", "config.request_log"}


def test_a_plain_start_is_as_before_and_json_replaces_the_servers_lines(read_settings):
    plain_ = read_settings().LOGGING
    assert plain_["handlers"]["console"]["formatter"] == "plain"
    assert "uvicorn" not in plain_["loggers"]
    as_json = read_settings(LOCI_LOG_FORMAT="json").LOGGING
    assert as_json["handlers"]["console"]["formatter"] == "json"
    assert as_json["loggers"]["uvicorn.access"] == {"handlers": [], "propagate": False}
