"""The options a program sent with its messages last until these are read, by any process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
from django.conf import settings as django_settings
from django.utils import timezone

from language.transcripts import Transcript
from palace.curation.purge import Purge
from palace.knowledge.facts.fact_extraction import ExtractionOptions, Scope, store_options
from palace.knowledge.facts.fact_learning import learn_unread, remember
from palace.mining.pipeline import mine, mine_room
from palace.models import Drawer, Fact, FactEvent, Room, Telling
from palace.storage.transcript_filing import file_transcript
from tests.conversations import transcript
from tests.knowledge.facts.conftest import LONG_AGO, facts_answer, judgements_answer
from tests.model_server import CHAT, Slow
from tests.polling import until
from tests.transfer.processes import environment

ADD = """
import sys, django
django.setup()
from isolation import row_access
row_access.allow_all_by_default()
from palace.sdk import Memory
Memory("alice").add(
    "I live in Porto.", user_id="ana", agent_id="helper", run_id="r1", metadata={"tag": "home"},
    prompt="Read only homes.", judging_prompt="Judge only homes.",
    filters={"field": "tag", "operator": "eq", "value": "home"},
)
"""
PORTO = {"turn": 0, "subject": "User", "predicate": "lives_in", "object": "Porto"}
PORTO |= {"text": "User lives in Porto"}


def filed(palace, text="I live in Porto.", **scope):
    """Messages as they are when the process died right after it had filed them."""
    room = file_transcript(palace, transcript(text, id=text)).room
    drawers = list(Drawer.objects.filter(room=room))
    store_options(palace, drawers, Scope("sdk", **scope), ExtractionOptions())
    return room


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
def test_killed_while_the_model_reads_another_process_reads_the_same_way(alice, model):
    model.answer(Slow(60))
    program = subprocess.Popen(
        [sys.executable, "-c", ADD],
        env=environment()
        | {
            "LOCI_LLM_PROVIDER": model.base_url,
            "LOCI_LLM_MODEL": "small-model",
            "LOCI_LLM_API_KEY": "a-key",
        },
        cwd=django_settings.BASE_DIR,
    )
    until(lambda: model.requests_to(CHAT))
    program.send_signal(signal.SIGKILL)
    program.wait()
    assert not Fact.objects.exists()
    asked = len(model.requests_to(CHAT))

    model.answer(facts_answer(PORTO))
    room = Room.objects.get()
    mine_room(room)
    assert learn_unread(room.palace)
    fact = Fact.objects.get()
    assert (fact.agent, fact.run, fact.metadata) == ("helper", "r1", {"tag": "home"})
    assert (room.palace.subject, FactEvent.objects.get().by) == ("ana", "sdk")
    reading = model.requests_to(CHAT)[-1].body["messages"][0]["content"]
    assert reading.startswith("Read only homes.")
    assert len(model.requests_to(CHAT)) > asked
    assert not Telling.objects.exists()
    assert not Drawer.objects.unread().exists()


def test_what_was_read_at_once_leaves_nothing_behind(palace):
    remember(palace, "I live in Porto.", agent="helper")
    assert not Telling.objects.exists()
    for room in Room.objects.all():
        mine_room(room)
    learn_unread(palace)
    assert Fact.objects.get().agent == "helper"


def test_mining_with_a_model_leaves_what_is_to_be_read_otherwise(palace, model):
    """It reads for facts in the same call, and the process that filed this may still be at it."""
    room = filed(palace, agent="helper", metadata={"tag": "home"})
    found = facts_answer(PORTO)
    model.answer(found)
    mine_room(room)
    assert not Fact.objects.exists()
    learn_unread(palace)
    assert (Fact.objects.get().agent, Fact.objects.get().metadata) == ("helper", {"tag": "home"})


def test_in_one_conversation_each_message_is_read_with_its_own_options(palace):
    talk = transcript("I live in Porto.", "I am allergic to walnuts.", "I have a cat called Miso.")
    turns = tuple(replace(turn, role="user") for turn in talk.turns)
    talk = Transcript(talk.source, talk.external_id, "", turns)
    file_transcript(palace, talk)
    [second] = Drawer.objects.filter(position=1)
    store_options(palace, [second], Scope("sdk", "helper"), ExtractionOptions())
    mine(palace, talk)
    agents = dict(Fact.objects.values_list("predicate", "agent"))
    assert agents == {"lives_in": "", "allergic_to": "helper", "has_pet": ""}


def test_what_was_said_first_stays(palace):
    room = filed(palace, agent="first")
    store_options(
        palace, list(Drawer.objects.filter(room=room)), Scope("sdk", "second"), ExtractionOptions()
    )
    mine_room(room)
    learn_unread(palace)
    assert Fact.objects.get().agent == "first"


def test_it_goes_with_its_drawer_and_with_its_palace(palace):
    filed(palace, "I live in Porto.", metadata={"secret": "quince"})
    filed(palace, "I live in Lisbon.", metadata={"secret": "medlar"})
    Drawer.objects.filter(text__contains="Porto").update(trashed_at=timezone.now())
    Purge(palace).run(Drawer.objects.all())
    assert [row.metadata for row in Telling.objects.all()] == [{"secret": "medlar"}]
    palace.delete()
    assert not Telling.objects.exists()


def test_judging_by_ones_own_instructions(palace, model):
    judged = {"new": 0, "verdict": "COEXIST"}
    lisbon = PORTO | {"object": "Lisbon", "text": "User works in Lisbon", "predicate": "works_in"}
    model.script([facts_answer(PORTO), facts_answer(lisbon), judgements_answer(judged)])
    remember(palace, "I live in Porto.", now=LONG_AGO)
    options = ExtractionOptions(judging_prompt="All of it coexists.")
    remember(palace, "Lisbon it is.", now=LONG_AGO, options=options)
    *_, reading, judging = [request.body["messages"] for request in model.requests_to(CHAT)]
    assert reading[0]["content"].startswith("You note down")
    assert judging[0]["content"].startswith("All of it coexists.")
    assert json.loads(judging[1]["content"].split("\n")[1])[0]["text"] == "User works in Lisbon"
    assert Fact.objects.active().count() == 2


def test_only_what_meets_the_filters_is_judged_beside(palace):
    def add(text, tag, **options):
        return remember(palace, text, metadata={"tag": tag}, options=ExtractionOptions(**options))

    add("I like hiking.", "work")
    at_home = {"field": "tag", "operator": "eq", "value": "home"}
    at_work = {"field": "tag", "operator": "eq", "value": "work"}
    assert [line.verdict for line in add("I like hiking.", "home", filters=at_home)] == ["ADD"]
    assert [line.verdict for line in add("I like hiking.", "work", filters=at_work)] == ["NONE"]
