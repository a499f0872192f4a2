"""A quota, if one is set, holds at every door that files words; off, nothing is counted."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest
from django.urls import reverse

from api.mcp.registry import Caller
from api.mcp.tools.recall_tools import RememberRequest, remember
from chat.mining_queue import keep_waiting
from chat.models import Conversation, Message
from palace.knowledge.episodes import write_episodes
from palace.mining.pipeline import mine_room
from palace.models import Drawer, Episode, IdempotentWrite, ImportJob, Room
from palace.sdk import Memory, QuotaExceeded
from palace.storage import check_quota, file_transcript, usage_of
from palace.transfer import import_jobs
from settings_app.models import MemorySettings
from tests.api.rest.conftest import client_of
from tests.conversations import transcript
from tests.transfer.import_runs import run_to_the_end
from tests.transfer.importers.exports import chatgpt_talk, write_json

TURN = {"session_id": "s", "messages": [{"role": "user", "content": "Nora lives in Lisbon."}]}


@pytest.fixture
def full(palace, settings):
    """Alice's palace, which holds all it may."""
    file_transcript(palace, transcript("Good evening.", "Hello, Älice."))
    settings.QUOTA_MESSAGES = 2
    return palace


@pytest.fixture
def program(alice):
    return client_of(alice)


def texts(palace):
    return list(Drawer.objects.within(palace).order_by("pk").values_list("text", flat=True))


def test_without_a_quota_nothing_is_refused(palace, django_assert_num_queries):
    with django_assert_num_queries(0):
        check_quota(palace, ["a"] * 10_000)


def test_usage_is_messages_and_bytes_of_their_text(full, bob):
    assert usage_of(full).messages == 2
    assert usage_of(full).text_bytes == len("Good evening.Hello, Älice.".encode())
    Drawer.objects.within(full).update(trashed_at="2026-01-01T00:00Z")
    assert usage_of(full).messages == 2


def test_what_fits_is_filed_and_what_does_not_leaves_nothing(palace, settings):
    settings.QUOTA_MESSAGES = 3
    file_transcript(palace, transcript("One.", "Two."))
    with pytest.raises(QuotaExceeded, match="may hold 3 messages, and this one has 2"):
        file_transcript(palace, replace(transcript("Three.", "Four."), external_id="other"))
    assert texts(palace) == ["One.", "Two."]
    file_transcript(palace, transcript("One.", "Two.", "Three."))
    assert texts(palace) == ["One.", "Two.", "Three."]
    file_transcript(palace, transcript("One.", "Two.", "Three."))


def test_bytes_count_as_utf_8(palace, settings):
    settings.QUOTA_MB = 10 / (1 << 20)
    with pytest.raises(QuotaExceeded, match="bytes of text"):
        file_transcript(palace, transcript("ääääää"))
    file_transcript(palace, transcript("äääää"))


def test_a_stored_summary_counts_as_a_message_with_all_its_text(palace, alice, settings):
    memory = Memory(alice)
    memory.episodes().store("s", "Älice left.", tools=["ü"], entities=[{"name": "Nora"}])
    assert usage_of(palace).messages == 1
    bytes_of_all = len('Älice left.["ü"][{"name": "Nora"}][]'.encode())
    assert usage_of(palace).text_bytes == bytes_of_all
    settings.QUOTA_MB = (bytes_of_all + 9) / (1 << 20)
    with pytest.raises(QuotaExceeded, match="bytes of text"):
        memory.episodes().store("s", "Nora", tools=["a"])
    memory.episodes().store("s", "Bob")
    settings.QUOTA_MB, settings.QUOTA_MESSAGES = 0, 2
    with pytest.raises(QuotaExceeded, match="may hold 2 messages, and this one has 2"):
        memory.add("I live in Lisbon.", run_id="s")


def test_what_is_derived_of_messages_does_not_count(full):
    room = Room.objects.within(full).get()
    mine_room(room)
    write_episodes(full, [room])
    assert Episode.objects.within(full).derived().exists()
    assert usage_of(full).messages == 2


def test_a_summary_too_many_is_refused_with_507_which_is_not_kept(full, program, settings):
    body = {"conversation_id": "s", "summary": "We chose the night train."}
    headers = {"Idempotency-Key": "once"}
    refused = program.post("/episodic/store", body, headers=headers)
    assert (refused.status_code, refused.data["code"]) == (507, "quota_exceeded")
    assert not Episode.objects.exists()
    assert not IdempotentWrite.objects.exclude(status=None).exists()
    settings.QUOTA_MESSAGES = 3
    assert program.post("/episodic/store", body, headers=headers).status_code == 201


@pytest.mark.parametrize(
    ("path", "body"),
    [("/turns", TURN), ("/v1/memories/", {"user_id": "", "messages": "I moved to Lisbon."})],
)
def test_programs_are_refused_with_507_which_is_not_kept(full, program, settings, path, body):
    body = {name: value for name, value in body.items() if value}
    scope = {} if path == "/turns" else {"user_id": "ada"}
    settings.QUOTA_MESSAGES = 2 if path == "/turns" else 0
    settings.QUOTA_MB = 0 if path == "/turns" else 4 / (1 << 20)
    headers = {"Idempotency-Key": "once"}
    refused = program.post(path, {**body, **scope}, headers=headers)
    assert refused.status_code == 507
    assert refused.data["code"] == "quota_exceeded"
    assert "ask who runs the server" in refused.data["detail"]
    assert not IdempotentWrite.objects.exclude(status=None).exists()
    settings.QUOTA_MESSAGES = settings.QUOTA_MB = 0
    assert program.post(path, {**body, **scope}, headers=headers).status_code in (200, 201)


def test_assistants_are_refused(full, alice):
    asked = RememberRequest.model_validate({"messages": [{"content": "Nora lives in Lisbon."}]})
    with pytest.raises(QuotaExceeded):
        remember(Caller.at_home(alice, None), asked)
    assert len(texts(full)) == 2


def test_the_chat_refuses_and_keeps_the_text_in_its_box(full, client, alice):
    client.force_login(alice)
    said = client.post(reverse("chat"), {"text": "Nora lives in Lisbon.", "key": uuid.uuid4()})
    assert said.status_code == 400
    assert "may hold 2 messages, and this one has 2." in said.text
    assert "Nora lives in Lisbon." in said.text
    assert not Message.objects.exists()


@pytest.fixture
def waiting(full):
    """A conversation whose message was accepted, with its reply."""
    conversation = Conversation.objects.create(palace=full, title="t", spoke_at="2026-01-01T00:00Z")
    for position, role in enumerate(("user", "assistant")):
        Message.objects.create(
            palace=full,
            conversation=conversation,
            position=position,
            role=role,
            text=f"Said by the {role}.",
            said_at="2026-01-01T00:00Z",
        )
    return conversation


def test_what_the_chat_accepted_is_kept_beyond_the_quota(waiting):
    assert keep_waiting(waiting).messages == 2
    assert len(texts(waiting.palace)) == 4


def test_what_is_remembered_by_hand_is_refused_with_a_sentence(waiting, client, alice):
    MemorySettings.objects.create(owner=alice, auto_mine=False)
    client.force_login(alice)
    address = reverse("remember_conversation", args=[waiting.uuid])
    page = client.post(address, follow=True)
    assert "may hold 2 messages" in page.text
    assert len(texts(waiting.palace)) == 2


def test_an_import_ends_with_a_sentence_and_keeps_what_fitted(full, settings, tmp_path):
    settings.QUOTA_MESSAGES = 4
    talks = [chatgpt_talk("Which tea?", "Oolong."), chatgpt_talk("Which bread?", "Rye.")]
    talks[1]["conversation_id"] = "another"
    job = import_jobs.preview(full, write_json(tmp_path / "x.json", talks))
    run_to_the_end(job)
    job.refresh_from_db()
    assert job.status == ImportJob.Status.FAILED
    assert "may hold 4 messages, and this one has 4." in job.error
    assert texts(full)[2:] == ["Which tea?", "Oolong."]
    assert not Drawer.objects.within(full).filter(mined_at=None, conversation="c-1").exists()


def test_a_page_shows_what_is_used(full, client, alice, program):
    client.force_login(alice)
    page = client.get(reverse("data_settings"))
    assert "What is used" in page.text
    assert "A palace on this server may hold 2 messages." in page.text
    assert ">27\N{NO-BREAK SPACE}bytes</td>" in page.text
