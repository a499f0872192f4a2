"""Whose memories, and which: headers, settings, strangers; programs that hang up."""

from __future__ import annotations

import json
import threading
from itertools import islice

import openai
import pytest

from api.openai import exchange
from chat.prompt import NO_MODEL, NOTED
from llm.models import Usage
from palace.mining.pipeline import mine_rooms
from palace.models import Drawer, Palace, Room
from palace.sdk import Memory
from settings_app.models import MemorySettings
from tests.api.openai.conftest import ask, assistant, kept, post, rooms, user
from tests.browser.conftest import database_sessions
from tests.chat.conftest import furnished  # noqa: F401 - a palace with something in it.
from tests.model_server import CHAT, Text
from tests.polling import PATIENCE_S, until

QUESTION = "What does Nora feed at the aquarium?"


def sent_to(model):
    return model.requests_to(CHAT)[-1].body["messages"]


def test_memory_can_be_left_out_by_halves(program, model, furnished, alice):  # noqa: F811
    before = len(kept(alice))
    for mode, recalls, remembers in (
        ("off", False, False),
        ("recall", True, False),
        ("remember", False, True),
    ):
        raw = program.chat.completions.with_raw_response.create(
            model="loci", messages=[user(QUESTION)], extra_headers={"X-Loci-Memory": mode}
        )
        assert raw.headers["X-Loci-Memory"] == mode
        assert ("X-Loci-Recollection" in raw.headers) is recalls
        assert ("otters" in str(sent_to(model))) is recalls
        assert (len(kept(alice)) > before) is remembers
    MemorySettings.objects.filter(owner=alice).update(enabled=False)
    before = len(kept(alice))
    ask(program, QUESTION)
    assert sent_to(model) == [user(QUESTION)]
    assert len(kept(alice)) == before


def test_each_user_has_a_palace(program, client_for, model, alice):
    ask(program, "I am Ann.", user="ann")
    said = {"messages": [user("I am Béla.")], "user": "ann"}
    post(program, json.dumps(said), **{"X-Loci-User": "Béla".encode()})
    assert kept(alice, "ann") == [("user", "I am Ann."), ("assistant", "OK.")]
    assert kept(alice, "Béla") == [("user", "I am Béla."), ("assistant", "OK.")]
    assert kept(alice) == []
    bound = client_for(alice, subject="ann")
    ask(bound, "Ann again.", user="whatever the program calls her")
    assert ("user", "Ann again.") in kept(alice, "ann")
    with pytest.raises(openai.PermissionDeniedError) as caught:
        ask(bound, "Who?", headers={"X-Loci-User": "bela"})
    assert caught.value.code == "wrong_palace"


def test_who_talks_is_as_open_webui_says_only_for_a_key_that_trusts_it(
    program, client_for, model, alice
):
    says = {"X-OpenWebUI-User-Id": "ann", "X-OpenWebUI-Chat-Id": "chat-7"}
    ask(program, "Whose is this?", headers=says)
    assert kept(alice)[0] == ("user", "Whose is this?")
    trusting = client_for(alice, trusts_open_webui=True)
    ask(trusting, "I am Ann.", headers=says, user="the key of the whole house")
    ask(trusting, "Another request of it.", headers=says)
    assert [text for _, text in kept(alice, "ann")][::2] == ["I am Ann.", "Another request of it."]
    assert rooms(alice)[1:] == ["chat-7"]
    ask(trusting, "I am Béla.", headers={**says, "X-Loci-User": "bela"})
    assert ("user", "I am Béla.") in kept(alice, "bela")
    ask(trusting, "Nobody says.", headers={"X-OpenWebUI-User-Id": ""})
    assert ("user", "Nobody says.") in kept(alice)
    bound = client_for(alice, trusts_open_webui=True, subject="cy")
    ask(bound, "I am Cy.", headers=says)
    assert kept(alice, "cy")[0] == ("user", "I am Cy.")


def test_a_strangers_conversation_is_another(program, client_for, model, alice, bob):
    MemorySettings.objects.create(owner=bob, provider=model.base_url, model="test-model")
    name = {"X-Loci-Conversation": "ours"}
    ask(program, "My sister Nora feeds the otters at the aquarium.", headers=name)
    ask(client_for(bob), QUESTION, headers=name)
    assert "otters" not in str(sent_to(model))
    assert [kept(bob)[0], len(kept(alice)), len(kept(bob))] == [("user", QUESTION), 2, 2]
    assert rooms(alice) == rooms(bob) == ["ours"]


def test_what_was_given_stays_before_the_model(program, model, furnished):  # noqa: F811
    model.answer("The otters.")
    ask(program, QUESTION)
    ask(program, QUESTION, assistant("The otters."), "Thank you very much indeed!")
    assert "She feeds the otters" in sent_to(model)[0]["content"]


def test_who_hangs_up_ends_the_models_stream_and_what_came_is_kept(program, model, alice):
    ended = threading.Event()

    class Endless:
        def send(self, handler, request):
            try:
                for event in Text("On and on it goes. " * 20_000, pause_s=0).events(request):
                    handler.send_event(event)
                    model.stopped.wait(0.01)
            finally:
                ended.set()

    model.answer(Endless())
    with ask(program, "Hello", stream=True) as stream:
        pieces = [chunk.choices[0].delta.content for chunk in islice(stream, 5)]
    assert ended.wait(PATIENCE_S)
    until(Usage.objects.filter(purpose="chat", outcome="cancelled").exists)
    reply = Drawer.objects.get(palace__owner=alice, role="assistant")
    assert reply.text.startswith("".join(pieces))
    assert reply.metadata["status"] == "stopped"


def test_who_hangs_up_before_the_first_word_leaves_nothing_behind(client_for, model, alice):
    opened = threading.Event()
    model.answer(lambda request: opened.wait(PATIENCE_S) and Text("Too late. " * 500, pause_s=0.01))
    with pytest.raises(openai.APITimeoutError):
        ask(client_for(alice, timeout=0.5), "Hello", stream=True)
    opened.set()
    until(Usage.objects.filter(purpose="chat", outcome="cancelled").exists)
    assert not exchange._slots_taken


@pytest.mark.parametrize("stream", [False, True])
def test_models_that_pause_keep_no_connection_to_the_database(client_for, model, alice, stream):
    opened = threading.Event()

    class Pausing(Text):
        def events(self, request):
            first, *others = super().events(request)
            yield first
            opened.wait(PATIENCE_S)
            yield from others

        def body(self, request):
            opened.wait(PATIENCE_S)
            return super().body(request)

    model.answer(Pausing("At last."))
    before = database_sessions()
    begun = []

    def talk(client, place):
        answer = ask(client, f"Hi {place}", stream=stream)
        begun.extend([answer] if not stream else islice(answer, 1))
        list(answer)

    clients = [client_for(alice) for _ in range(6)]
    threads = [
        threading.Thread(target=talk, args=each) for each in zip(clients, range(6), strict=True)
    ]
    for thread in threads:
        thread.start()
    until(lambda: len(begun if stream else model.requests_to(CHAT)) == len(threads))
    until(lambda: database_sessions() <= before)
    opened.set()
    for thread in threads:
        thread.join()
    until(lambda: len(kept(alice)) == 2 * len(threads))


def test_more_at_once_than_may_wait_are_asked_to_come_again(program, model, alice):
    for _ in range(exchange.MOST_AT_ONCE):
        exchange.take_slot(alice.pk)
    with pytest.raises(openai.RateLimitError) as caught:
        ask(program, "Hello")
    assert caught.value.code == "too_many_at_once"
    exchange.give_back_slot(alice.pk)
    assert ask(program, "Hello")
    exchange._slots_taken.clear()


def test_a_model_within_this_network_is_not_called(program, model, alice, settings):
    settings.PRIVATE_PROVIDERS = False
    with pytest.raises(openai.InternalServerError) as caught:
        ask(program, "Hello")
    assert (caught.value.status_code, caught.value.code) == (503, "model_refused")
    assert model.requests == []


def test_without_a_model_the_palace_is_quoted(program, alice, furnished):  # noqa: F811
    MemorySettings.objects.create(owner=alice, provider="none")
    answer = ask(program, QUESTION)
    text = answer.choices[0].message.content
    assert text.startswith(NO_MODEL)
    assert "otters" in text
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    chunks = list(ask(program, QUESTION, stream=True, stream_options={"include_usage": True}))
    streamed = "".join(each.choices[0].delta.content or "" for each in chunks if each.choices)
    assert streamed == text
    assert chunks[-1].usage.completion_tokens == answer.usage.completion_tokens
    said = Drawer.objects.filter(palace=Palace.objects.own(alice), source="proxy")
    assert [each.text for each in said] == [QUESTION]
    assert [each.id for each in program.models.list()] == ["loci", "loci-off"]
    with pytest.raises(openai.NotFoundError):
        program.models.retrieve("gpt-5")


def test_a_program_without_an_agent_gets_what_every_agent_knows(program, model, palace):
    memory = Memory(palace.owner)
    memory.add("The spare key lies under the blue flowerpot.", agent_id="butler")
    memory.add("I live in Porto.", agent_id="butler")
    mine_rooms(list(Room.objects.within(palace)))
    ask(program, "Where does the spare key lie, and where do I live?")
    given = sent_to(model)[0]["content"]
    assert "blue flowerpot" in given
    assert "- " in given.partition("Known facts:")[2]
    assert "lives in Porto" in given


def test_without_a_model_what_a_question_takes_for_granted_is_noted_once(program, alice, furnished):  # noqa: F811
    MemorySettings.objects.create(owner=alice, provider="none")
    text = ask(program, "What should I get my sister Ada?").choices[0].message.content
    assert text.startswith(f"{NOTED}\n\n- You have a sister named Ada")
    text = ask(program, "Where does my sister Nora work?").choices[0].message.content
    assert text.startswith(NO_MODEL)


def test_without_a_model_what_was_noted_is_acknowledged(program, alice):
    MemorySettings.objects.create(owner=alice, provider="none")
    text = ask(program, "I just moved to Porto.").choices[0].message.content
    assert text == f"{NOTED}\n\n- You live in Porto"
    only_asked = ask(program, "I just moved to Rome.", headers={"X-Loci-Memory": "recall"})
    assert only_asked.choices[0].message.content.startswith(NO_MODEL)
