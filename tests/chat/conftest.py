"""Alice's chat: replies are written by real threads, so the tests' rows are committed."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.urls import reverse
from django.utils import timezone

from chat import live_reply, replies
from chat.mining_queue import remember, remember_if_due
from chat.models import Conversation, Message
from language.transcripts import Transcript, Turn
from palace.knowledge.facts.fact_learning import learn_unread
from settings_app.models import MemorySettings
from tests.chat.failures import OwnRedis
from tests.furnished_palaces import furnish_with
from tests.polling import PATIENCE_S

MOVED = "I just moved to Porto, near the aquarium."


@pytest.fixture(autouse=True)
def _no_thread_outlives_its_test(transactional_db):
    yield
    let_threads_end()


@pytest.fixture
def alices(client, alice):
    client.force_login(alice)
    return client


@pytest.fixture
def choices(alice):
    """Alice's settings, saved with what the test changes."""

    def save(**values):
        chosen, _ = MemorySettings.objects.get_or_create(owner=alice)
        key = values.pop("api_key", "")
        for name, value in values.items():
            setattr(chosen, name, value)
        chosen.set_key(key)
        chosen.save()
        return chosen

    return save


@pytest.fixture
def model(choices, model_server):
    """Alice has chosen the model that the test plays."""
    choices(provider=model_server.base_url, model="test-model")
    return model_server


@pytest.fixture
def furnished(palace):
    """A palace with one conversation in it."""
    said = [
        ("user", "My sister Nora moved to Lisbon in March and works at the aquarium there."),
        ("assistant", "Lisbon in spring is lovely. How does she like the aquarium?"),
        ("user", "She feeds the otters. I am allergic to peanuts, by the way."),
        ("assistant", "I will keep the peanuts in mind."),
    ]
    turns = tuple(
        Turn(str(place), role, text, datetime(2025, 4, 2, 18, place, tzinfo=UTC))
        for place, (role, text) in enumerate(said)
    )
    return furnish_with(palace, Transcript("plain", "nora", "Nora in Lisbon", turns))


@pytest.fixture
def moved(palace, model):
    """A question that states a fact, mined and learnt."""
    conversation = start(palace, MOVED)
    finished(conversation)
    remember(conversation)
    learn_unread(palace)
    return current(conversation).first()


@pytest.fixture
def gone_writer():
    """The id of a process that writes no more. That is believed once Redis has run for a while."""
    while live_reply._redis().info("server")["uptime_in_seconds"] < live_reply.GONE_S:
        time.sleep(0.1)
    return uuid.uuid4()


@pytest.fixture
def own_redis(settings):
    folder = Path(tempfile.mkdtemp(prefix="loci-"))  # A socket's path must be short.
    server = OwnRedis(folder)
    server.start()
    usual, settings.REDIS_URL = settings.REDIS_URL, server.url
    live_reply._redis.cache_clear()
    yield server
    let_threads_end()
    settings.REDIS_URL = usual
    live_reply._redis().close()
    live_reply._redis.cache_clear()
    server.kill()
    shutil.rmtree(folder)


def let_threads_end():
    """Replies are ended a moment before their threads are."""
    for thread in threading.enumerate():
        if thread.name.startswith("reply "):
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


def start(palace, text, *, agent=None, key=None):
    return replies.start(palace, agent, text, key=key or uuid.uuid4())


def say(conversation, text, *, key=None):
    return replies.say(conversation, text, key=key or uuid.uuid4())


def finished(conversation):
    """The conversation's last message, once nobody writes it any more."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        last = current(conversation).last()
        if not last.is_writing:
            return last
        time.sleep(0.01)
    pytest.fail("The reply did not come to an end.")


def current(conversation):
    return Message.objects.filter(conversation=conversation).current().order_by("position")


def rest(conversation):
    """The conversation has rested as long as it takes: what is due is mined."""
    conversation = Conversation.objects.select_related("palace", "agent").get(pk=conversation.pk)
    if conversation.mine_due_at:
        remember_if_due(conversation, max(timezone.now(), conversation.mine_due_at))
    conversation.refresh_from_db()
    return conversation


def memory_address(message):
    return reverse("message_memory", args=[message.uuid])


def do(client, message, what, **headers):
    return client.post(memory_address(message), {"do": what}, headers=headers or None)
