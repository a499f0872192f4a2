"""What the model can see in a long talk: each thing once, as long as its message is read."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from django.urls import reverse

from chat import live_reply, replies
from chat.views.ledger import LEDGER_AWAY
from language.transcripts import Transcript, Turn
from palace.curation.trash import move_to_trash
from palace.knowledge.facts.fact_edits import rewrite
from palace.knowledge.facts.fact_extraction import Scope
from palace.models import Drawer, RecollectionTrace
from palace.recall.trace import SHOWN
from palace.storage.indexing.fact_vectors import fill_missing
from palace.storage.indexing.spaces import active_space
from palace.working.ledger import Ledger, LedgerEntry
from tests.chat.conftest import current, finished, let_threads_end, say, start
from tests.chat.failures import Gate
from tests.factories import EntityFactory, EvidenceFactory, FactFactory
from tests.furnished_palaces import furnish_with
from tests.model_server import Status
from tests.polling import until

POINTER = re.compile(r"^\[(§ [^\]]+)\]", re.MULTILINE)
# Asked about by turns, so that each comes up again within the window and beyond it.
THINGS = {
    "canoe": "Nora painted the canoe green and keeps it behind the boathouse.",
    "piano": "The piano tuner comes every second autumn and is called Osgood.",
    "bees": "Our two bee hives stand under the pear tree at the allotment.",
    "passport": "My passport runs out next June and lies in the blue tin.",
    "boiler": "The boiler was serviced by Derek, who found a cracked valve.",
    "skis": "The skis were lent to my aunt, who broke a binding in Zermatt.",
}
ORDER = [*THINGS, "canoe", "canoe", "piano"] * 5


@pytest.fixture
def house(palace, choices):
    choices(auto_mine=False, top_k=1)
    turns = {
        thing: Turn("1", "user", text, datetime(2025, 5, 1 + number, 9, tzinfo=UTC))
        for number, (thing, text) in enumerate(THINGS.items())
    }
    return furnish_with(
        palace,
        *(Transcript("plain", thing, thing.title(), (turn,)) for thing, turn in turns.items()),
    )


@pytest.fixture
def fact(house):
    drawer = Drawer.objects.get(text=THINGS["boiler"])
    user = EntityFactory(palace=house, name="User", slug="user")
    fact = FactFactory(subject=user, text="User's boiler was serviced by Derek")
    EvidenceFactory(fact=fact, drawer=drawer)
    fill_missing(house, active_space(), [fact])
    return fact


def question(thing, number):
    return f"Question {number}: what about the {thing}?"


def blocks(model):
    return [request.body["messages"][0]["content"] for request in model.requests]


def newly_given(palace, reply):
    """What the trace of a reply says its model was not shown before."""
    trace = RecollectionTrace.objects.get(palace=palace, uuid=reply.recollection)
    return [hit["drawer"] for hit in trace.hits if "cut" not in hit]


@pytest.mark.exhaustive
def test_in_forty_turns_nothing_is_given_twice_while_it_is_before_the_model(house, model, settings):
    asked = [question(thing, number) for number, thing in enumerate(ORDER[:40])]
    conversation = start(house, asked[0])
    finished(conversation)
    for text in asked[1:]:
        say(conversation, text)
        finished(conversation)

    answers = [message for message in current(conversation) if message.role == "assistant"]
    assert len(answers) == len(model.requests) == 40
    given: dict[str, list[int]] = {}
    for reply, request in zip(answers, model.requests, strict=True):
        system, *said = request.body["messages"]
        assert len(said) <= settings.CHAT_TURNS
        assert said[-1]["content"] == asked[(reply.position - 1) // 2]
        trace = RecollectionTrace.objects.get(palace=house, uuid=reply.recollection)
        assert system["content"].startswith(trace.context)
        pointers = POINTER.findall(system["content"])
        assert len(pointers) == len(set(pointers)), "Each drawer stands in a block once."
        for drawer in newly_given(house, reply):
            given.setdefault(drawer, []).append(reply.position - 1)
        # All that was given with a message that is still read is before the model.
        first = reply.position - len(said)
        held = {d for d, turns in given.items() if turns[-1] >= first}
        assert {Drawer.objects.get(uuid=drawer).pointer for drawer in held} == {
            Drawer.objects.get(uuid=each["drawer"]).pointer
            for each in (*trace.hits, *trace.carried)
        }
    assert len(given) == len(THINGS)
    apart = [b - a for turns in given.values() for a, b in pairwise(turns)]
    assert apart, "What has left comes again where it fits."
    assert min(apart) >= settings.CHAT_TURNS


def test_a_fact_comes_again_once_it_was_corrected(house, fact, model):
    conversation = start(house, question("boiler", 1))
    finished(conversation)
    say(conversation, question("piano", 2))
    finished(conversation)
    rewrite(house, fact.memory, "User's boiler was serviced by Osgood", Scope("person"))
    say(conversation, question("boiler", 3))
    finished(conversation)
    # Between the second reply and the third, the model was asked to read the new sentence.
    before, still, *_, after = blocks(model)
    assert "serviced by Derek\n" in before
    assert still.count("User's boiler") == 1
    assert "boiler was serviced by Osgood" in after
    assert "User's boiler was serviced by Derek" not in after


def test_what_goes_to_the_trash_is_not_before_the_model_any_more(house, model):
    conversation = start(house, question("canoe", 1))
    finished(conversation)
    move_to_trash(Drawer.objects.get(text=THINGS["canoe"]))
    say(conversation, question("piano", 2))
    finished(conversation)
    assert THINGS["canoe"] in blocks(model)[0]
    assert THINGS["canoe"] not in blocks(model)[1]


def test_what_no_model_was_sent_is_not_marked(house, model, settings, choices):
    settings.LLM_MAX_RETRIES = 0
    model.answer(Status(500))
    conversation = start(house, question("canoe", 1))
    finished(conversation)
    let_threads_end()
    ledger = Ledger(house, str(conversation.uuid))
    assert ledger.get() == {}
    choices(provider="none")
    say(conversation, question("canoe", 2))
    finished(conversation)
    let_threads_end()
    assert ledger.get() == {}, "Without a model there is nothing before one."


def test_another_try_is_given_what_the_first_was(house, model):
    conversation = start(house, question("canoe", 1))
    replies.retry(conversation, finished(conversation).uuid)
    again = finished(conversation)
    first, second = blocks(model)
    assert POINTER.findall(first) == POINTER.findall(second)
    assert newly_given(house, again) == [str(Drawer.objects.get(text=THINGS["canoe"]).uuid)]


def test_a_reply_stopped_in_one_tab_marks_nothing_over_that_of_another(house, model):
    gate = Gate(model)
    conversation = start(house, question("canoe", 1))
    until(lambda: len(model.requests) == 1)
    live_reply.stop(current(conversation).last())
    say(conversation, question("canoe", 2))
    until(lambda: len(model.requests) == 2)
    gate.opened.set()
    let_threads_end()
    assert finished(conversation).text == "Late."
    (entry,) = Ledger(house, str(conversation.uuid)).get().values()
    assert entry.turn == current(conversation).last().position - 1


def test_redis_may_stop_in_the_middle_and_come_back_empty(house, model, own_redis):
    conversation = start(house, question("canoe", 1))
    finished(conversation)
    gate = Gate(model)
    say(conversation, question("piano", 2))
    until(lambda: len(model.requests) == 2)
    own_redis.kill()
    gate.opened.set()
    assert finished(conversation).text == "Late."
    own_redis.start()
    model.answer("Well.")
    say(conversation, question("canoe", 3))
    assert finished(conversation).text == "Well."
    let_threads_end()
    assert THINGS["canoe"] in blocks(model)[2], "Nobody knows of it any more, so it came as new."
    assert [entry.turn for entry in Ledger(house, str(conversation.uuid)).get().values()] == [4]


@pytest.fixture
def talk(house, fact, model):
    """About two things, with a reply that cites the first when asked about the second."""
    conversation = start(house, question("canoe", 1))
    finished(conversation)
    cited = Drawer.objects.get(text=THINGS["canoe"]).pointer
    model.answer(f"As I said [{cited}].")
    say(conversation, question("piano", 2))
    finished(conversation)
    let_threads_end()
    return conversation


def test_what_stays_from_earlier_stands_beside_the_reply_and_can_be_cited(client, alice, talk):
    client.force_login(alice)
    page = client.get(talk.get_absolute_url()).text
    assert "Still visible from earlier" in page
    drawer = Drawer.objects.get(text=THINGS["canoe"])
    last = page[page.rindex("<article") :]
    assert f'<a href="{drawer.get_absolute_url()}"' in last[last.index('class="prose"') :]
    assert "cited" in last


def test_the_page_shows_what_is_before_the_model_and_takes_it_out(client, alice, talk, house):
    client.force_login(alice)
    address = reverse("conversation_ledger", args=[talk.uuid])
    assert address in client.get(talk.get_absolute_url()).text
    Ledger(house, str(talk.uuid)).mark(LedgerEntry("skill:rowing"))
    page = client.get(address).text
    for text in (THINGS["canoe"], THINGS["piano"], "boiler was serviced by Derek", "skill:rowing"):
        assert text.replace("'", "&#x27;") in page
    assert "Question 1: what about the canoe?" in page
    assert "for 16 more messages at most" in page
    assert "Until you stop using it." in page

    drawer = Drawer.objects.get(text=THINGS["canoe"])
    sent = {"item": f"drawer:{drawer.uuid}"}
    assert "may come again" in client.post(address, sent, follow=True).text
    assert THINGS["canoe"] not in client.get(address).text
    assert "had stopped seeing it already" in client.post(address, sent, follow=True).text


def test_taken_out_it_comes_again_where_it_fits(talk, house, model):
    ledger = Ledger(house, str(talk.uuid))
    assert ledger.evict(list(ledger.get()))
    say(talk, question("canoe", 3))
    reply = finished(talk)
    assert newly_given(house, reply) == [str(Drawer.objects.get(text=THINGS["canoe"]).uuid)]
    assert THINGS["piano"] not in blocks(model)[-1]


def test_why_these_says_what_was_shown_before(client, alice, talk):
    client.force_login(alice)
    say(talk, question("canoe", 3))
    reply = finished(talk)
    trace = RecollectionTrace.objects.get(uuid=reply.recollection)
    assert [hit["cut"] for hit in trace.hits] == [SHOWN]
    page = client.get(reverse("recall_detail", args=[trace.uuid])).text
    assert "already shown in this conversation" in page
    assert "there still from earlier" in page


def test_without_redis_the_page_says_so(client, alice, talk, settings, tmp_path):
    client.force_login(alice)
    settings.REDIS_URL = f"unix://{tmp_path}/none.sock"
    response = client.get(reverse("conversation_ledger", args=[talk.uuid]))
    assert response.status_code == 503
    assert LEDGER_AWAY in response.text


def test_a_deleted_conversation_leaves_no_ledger(client, alice, talk, house):
    client.force_login(alice)
    ledger = Ledger(house, str(talk.uuid))
    assert ledger.get()
    client.post(reverse("delete_conversation", args=[talk.uuid]))
    assert ledger.get() == {}


def test_a_stranger_finds_no_ledger(client, bob, talk):
    client.force_login(bob)
    address = reverse("conversation_ledger", args=[talk.uuid])
    assert client.get(address).status_code == 404
    assert client.post(address, {"item": "skill:rowing"}).status_code == 404
