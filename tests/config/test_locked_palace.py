"""What others have locked for long, such as for a restore, a request waits for only so long."""

from __future__ import annotations

from contextlib import closing, contextmanager

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from api.openai import exchange
from chat.models import Conversation, Message
from config import environment
from llm.models import Usage
from palace.models import Drawer, Fact, Palace, Passage, Wing
from settings_app.models import MemorySettings
from tests.api.mcp.conftest import Door
from tests.api.rest.conftest import client_of
from tests.asgi_server import AsgiServer
from tests.chat.conftest import finished, let_threads_end, start
from tests.config.test_environment import A_SERVER
from tests.factories import DrawerFactory, RoomFactory, WingFactory

pytestmark = pytest.mark.django_db(transaction=True)

SAID = {"role": "user", "content": "I have a cat called Miso."}
SENTENCE = "What this changes is locked, such as for a restore. Send it again in a moment."
ALL_PALACES = "SELECT FROM palace_palace WHERE owner_id = %s FOR UPDATE"
# What stores a message: of our own clients, of mem0's, of an agent's hook, and of OpenAI's.
MESSAGES = {
    "/turns": {"user_id": "ada", "session_id": "1", "messages": [SAID]},
    "/v1/memories/": {"user_id": "ada", "messages": [SAID]},
    "/v3/memories/add/": {"user_id": "ada", "messages": [SAID]},
    "/v1/conversations/": {
        "user_id": "ada",
        "source": "plain",
        "conversation_id": "1",
        "messages": [{**SAID, "id": "1", "said_at": "2026-01-01T10:00:00Z"}],
    },
    "/v1/chat/completions": {"model": "loci", "user": "ada", "messages": [SAID]},
}


@contextmanager
def another_session(statement, parameters=()):
    """It has run the statement, and holds what that locks until its rollback."""
    with closing(connection.copy()) as other:
        other.set_autocommit(False)
        with other.cursor() as cursor:
            cursor.execute(statement, parameters)
        yield other
        other.rollback()


@pytest.fixture(autouse=True)
def _impatient(settings):
    settings.LOCK_WAIT_S = 0.02


@pytest.fixture
def wing(palace):
    wing = WingFactory(palace=palace, name="Board")
    DrawerFactory(room=RoomFactory(wing=wing))
    return wing


@pytest.fixture
def restore(alice, wing):
    """Of all of Alice's palaces."""
    Palace.objects.create(owner=alice, subject="ada")
    with another_session(ALL_PALACES, [alice.pk]) as session:
        yield session


@pytest.fixture
def browser(alice):
    browser = Client(raise_request_exception=False)
    browser.force_login(alice)
    return browser


@pytest.mark.parametrize(("serves_web", "wait_s"), [(False, None), (True, 5)])
def test_only_the_web_gives_up(read_settings, monkeypatch, serves_web, wait_s):
    monkeypatch.setattr(environment, "serves_web", serves_web)
    assert wait_s == read_settings(**A_SERVER).LOCK_WAIT_S


@pytest.mark.parametrize("path", MESSAGES)
def test_a_message_is_to_be_sent_again_and_then_stored_once(restore, alice, path):
    program = client_of(alice)
    refused = program.post(path, MESSAGES[path])
    assert (refused.status_code, refused["Retry-After"]) == (503, "5")
    problem = refused.json()
    error = problem["error"] if path == "/v1/chat/completions" else problem
    assert (error["code"], error.get("detail", error.get("message"))) == ("locked", SENTENCE)
    restore.rollback()
    assert program.post(path, MESSAGES[path]).status_code in (200, 201)
    assert Drawer.objects.filter(text=SAID["content"]).count() == 1


def test_an_edit_by_a_program_is_refused_until_it_is_free(restore, alice, wing, caplog):
    program, address = client_of(alice), f"/v1/wings/{wing.uuid}/"
    refused = program.patch(address, {"name": "Foil"})
    assert not [line for line in caplog.records if line.levelname == "ERROR"]
    assert (refused.status_code, refused.json()["code"]) == (503, "locked")
    assert refused["Retry-After"] == "5"
    assert Wing.objects.get(pk=wing.pk).name == "Board"
    restore.rollback()
    assert program.patch(address, {"name": "Foil"}).json()["name"] == "Foil"


def test_a_tool_of_mcp_says_so_to_the_model(restore, alice):
    with AsgiServer() as server:
        door, said = Door(server.url), {"content": SAID["content"]}
        refused = door.call(alice, "save_memory", said)
        assert refused.is_error
        assert refused.content[0].text == SENTENCE
        assert refused.meta["problem"]["code"] == "locked"
        assert not Drawer.objects.filter(text=SAID["content"]).exists()
        restore.rollback()
        assert not door.call(alice, "save_memory", said).is_error
    assert Drawer.objects.filter(text=SAID["content"]).count() == 1


def test_a_form_is_answered_by_a_page_that_says_when(restore, browser, wing, caplog):
    address, form = reverse("wing_edit", args=[wing.uuid]), {"name": "Foil", "kind": "project"}
    refused = browser.post(address, form, headers={"Accept": "text/html"})
    assert not [line for line in caplog.records if line.levelname == "ERROR"]
    assert (refused.status_code, refused["Retry-After"]) == (503, "5")
    assert SENTENCE in refused.text
    assert Wing.objects.get(pk=wing.pk).name == "Board"
    restore.rollback()
    assert browser.post(address, form).status_code == 302
    assert Wing.objects.get(pk=wing.pk).name == "Foil"


def test_settings_wait_for_their_account_only_so_long(browser, alice):
    form = {"do": "time_zone", "time_zone": "Europe/Berlin"}
    MemorySettings.objects.create(owner=alice)
    row = "SELECT FROM settings_app_memorysettings WHERE owner_id = %s FOR UPDATE"
    with another_session(row, [alice.pk]):
        refused = browser.post(reverse("account"), form, headers={"Accept": "text/html"})
    assert (refused.status_code, refused["Retry-After"]) == (503, "5")
    assert MemorySettings.objects.get(owner=alice).time_zone != "Europe/Berlin"


@pytest.mark.parametrize("path", ["/turns", "/v1/memories/"])
@pytest.mark.parametrize("model", [Passage, Fact])
def test_what_is_stored_is_not_reported_as_failed(alice, path, model):
    """The message is stored before others lock: were it refused, it would be sent once more."""
    said = [{"role": "user", "content": "I moved to Lisbon."}]
    with another_session(f"LOCK TABLE {model._meta.db_table} IN SHARE MODE"):
        answer = client_of(alice).post(path, {**MESSAGES[path], "messages": said})
    assert answer.status_code in (200, 201), answer.content
    assert Drawer.objects.count() == 1
    # A fact of this API is read before its message is mined, which a worker does.
    waits_for_passages = path == "/v1/memories/" and model is Passage
    assert (answer.json().get("extraction") == "degraded") == (not waits_for_passages)


def test_a_message_that_is_remembered_is_mined_by_a_worker(browser, palace, queued):
    now = timezone.now()
    conversation = Conversation.objects.create(palace=palace, title="Cats", spoke_at=now)
    message = Message.objects.create(
        palace=palace,
        conversation=conversation,
        position=1,
        role=SAID["role"],
        text=SAID["content"],
        said_at=now,
    )
    with another_session(f"LOCK TABLE {Passage._meta.db_table} IN SHARE MODE"):
        browser.post(reverse("message_memory", args=[message.uuid]), {"do": "remember"})
    assert Drawer.objects.get().mined_at is None
    assert "mine_room" in queued()


def test_a_reply_goes_on_without_what_cannot_be_mined(palace):
    finished(start(palace, SAID["content"]))
    with another_session(f"LOCK TABLE {Passage._meta.db_table} IN SHARE MODE"):
        reply = finished(start(palace, "What is my cat called?"))
    let_threads_end()
    assert reply.status == Message.Status.DONE
    assert Drawer.objects.get(text=SAID["content"]).mined_at is None


def test_a_forwarded_reply_is_given_and_filed_with_the_next_request(
    alice, palace, model_server, monkeypatch
):
    monkeypatch.setattr(exchange, "REPLY_LOCK_WAIT_S", 0.02)
    MemorySettings.objects.create(owner=alice, provider=model_server.base_url, model="test-model")
    program, address = client_of(alice), "/v1/chat/completions"

    def texts():
        drawers = Drawer.objects.within(palace).order_by("position")
        return list(drawers.values_list("text", flat=True))

    with another_session("SELECT 1") as other:
        other.inc_thread_sharing()

        def lock_and_reply(_request):
            with other.cursor() as cursor:
                cursor.execute(ALL_PALACES, [alice.pk])
            return "A fine name."

        model_server.answer(lock_and_reply)
        answer = program.post(address, {"model": "loci", "messages": [SAID]})
        other.dec_thread_sharing()
    reply = answer.json()["choices"][0]["message"]
    assert (answer.status_code, reply["content"]) == (200, "A fine name.")
    assert texts() == [SAID["content"]]
    assert Usage.objects.filter(purpose=Usage.Purpose.CHAT).count() == 1
    model_server.answer("Indeed.")
    messages = [SAID, reply, {"role": "user", "content": "He likes it."}]
    assert program.post(address, {"model": "loci", "messages": messages}).status_code == 200
    assert texts() == [SAID["content"], "A fine name.", "He likes it.", "Indeed."]
