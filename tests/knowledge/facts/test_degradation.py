"""What a model failed at is said in the answer, and the rules step in."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from django.urls import reverse

from language.transcripts import Transcript, Turn
from palace.knowledge.facts.fact_learning import remember
from palace.knowledge.facts.judge import CHANGED
from palace.mining import tasks
from palace.mining.pipeline import mine_at_once
from palace.mining.room_placement import Landed
from palace.mining.rooms import Report, save
from palace.models import Activity, Fact, Statement
from palace.storage import file_transcript
from tests.factories import DrawerFactory
from tests.knowledge.facts.conftest import LONG_AGO, facts_answer, judgements_answer
from tests.knowledge.facts.test_extraction import PORTO
from tests.model_server import Status

OFF_SCHEMA = [
    '{"memories": ["User lives in Porto"]}',
    "{}",
    '["User lives in Porto", 4711]',
    '{"facts": "User lives in Porto"}',
    '{"facts": ["User lives in Porto", 4711]}',
    '{"facts": [{"subject": "", "predicate": "", "text": ""}]}',
]


def homes(palace):
    facts = Fact.objects.within(palace).active().filter(predicate="lives_in")
    return [fact.object for fact in facts]


@pytest.mark.parametrize("answer", OFF_SCHEMA)
def test_rules_read_where_the_answer_has_another_form(palace, model, answer):
    model.answer(answer)
    learnt = remember(palace, "I live in Porto.", now=LONG_AGO)
    assert [line.fact.object for line in learnt] == ["Porto"]
    assert len(learnt.notes) == 1
    assert learnt.notes[0].startswith("Facts were found without the language model.")


def test_an_answer_without_facts_is_complete(palace, model):
    model.answer(facts_answer())
    learnt = remember(palace, "I live in Porto.", now=LONG_AGO)
    assert (list(learnt), learnt.notes) == ([], [])


def test_facts_that_are_left_out_are_noted(palace, model):
    model.answer(facts_answer(PORTO, PORTO | {"text": " "}))
    learnt = remember(palace, "I live in Porto.", now=LONG_AGO)
    assert homes(palace) == ["Porto"]
    assert "incomplete facts" in learnt.notes[0]


@pytest.mark.parametrize(
    "answer",
    [Status(500), "{}", judgements_answer(), judgements_answer({"new": 0, "verdict": "PERHAPS"})],
    ids=["down", "another form", "nothing judged", "no verdict"],
)
def test_rules_judge_where_the_judge_fails(palace, model, answer):
    lisbon = PORTO | {"object": "Lisbon", "text": "User lives in Lisbon", "quote": ""}
    model.script([facts_answer(PORTO), facts_answer(lisbon), answer, answer])
    assert remember(palace, "I live in Porto.", now=LONG_AGO).notes == []
    learnt = remember(palace, "I live in Lisbon.")
    assert homes(palace) == ["Lisbon"]
    assert learnt.notes[0].startswith("Facts were judged without the language model.")


def taste(text, thing):
    return PORTO | {"predicate": "likes", "object": thing, "text": text, "quote": ""}


def likings(palace):
    facts = Fact.objects.within(palace).active().filter(predicate="likes")
    return sorted(fact.text for fact in facts)


def judged_together(model, palace, facts, *judgements):
    """Two tastes are known; the model judges several new ones in one answer."""
    tastes = [taste("User likes tea", "tea"), taste("User likes jazz", "jazz")]
    model.script([facts_answer(*tastes)])
    remember(palace, "I like tea and jazz.", now=LONG_AGO)

    def reply(request):
        asked = request.body["messages"][-1]["content"]
        if "<facts>" not in asked:
            return facts_answer(*facts)
        known = json.loads(asked.partition("<facts>")[2].partition("</facts>")[0])
        number = {
            (one["new"], fact["text"]): fact["fact"] for one in known for fact in one["known"]
        }
        answers = [
            {"new": new, "verdict": "UPDATE", "fact": number[new, old], "text": ""}
            for new, old in enumerate(judgements)
        ]
        return judgements_answer(*answers)

    model.answer(reply)
    return remember(palace, "I like coffee and techno now.")


def test_a_judgement_counts_although_the_one_before_it_changed_another_fact(palace, model):
    new = [taste("User likes coffee", "coffee"), taste("User likes techno", "techno")]
    learnt = judged_together(model, palace, new, "User likes tea", "User likes jazz")
    assert [line.old_text for line in learnt] == ["User likes tea", "User likes jazz"]
    assert likings(palace) == ["User likes coffee", "User likes techno"]
    assert learnt.notes == []


def test_a_judgement_about_a_fact_that_has_gone_since_is_left_to_the_rules(palace, model):
    new = [taste("User likes coffee", "coffee"), taste("User likes mate", "mate")]
    learnt = judged_together(model, palace, new, "User likes tea", "User likes tea")
    assert [line.verdict for line in learnt] == ["UPDATE", "ADD"]
    assert likings(palace) == ["User likes coffee", "User likes jazz", "User likes mate"]
    assert learnt.notes == [CHANGED]
    counted = Statement.objects.exclude(judged=None).values_list("content__object", flat=True)
    assert list(counted) == ["coffee"]


def test_what_came_to_be_known_since_is_not_stored_twice(palace, model):
    again = taste("User likes coffee", "coffee") | {"confidence": 0.7}
    learnt = judged_together(
        model, palace, [taste("User likes coffee", "coffee"), again], *["User likes tea"] * 2
    )
    assert [line.verdict for line in learnt] == ["UPDATE", "NONE"]
    assert likings(palace) == ["User likes coffee", "User likes jazz"]
    assert learnt.notes == [CHANGED]


def at_once(palace, text="I live in Porto."):
    turn = Turn("t1", "user", text, LONG_AGO)
    return mine_at_once(palace, Transcript("api", "one", "", (turn,)), seconds=30)


@pytest.mark.parametrize(
    "answer",
    ["{}", '{"memories": []}', '{"title": "Home", "topics": []}', json.dumps({"facts": [{}]})],
)
def test_a_turn_says_that_the_answer_was_unusable(palace, model, answer):
    model.answer(answer)
    done = at_once(palace)
    assert homes(palace) == ["Porto"]
    assert any(note.startswith("Facts were found without") for note in done.notes)


def test_a_turn_says_that_the_judge_failed(palace, model, client):
    remember(palace, "I live in Lisbon.", now=LONG_AGO.replace(year=2023))
    window = {"title": "Home", "topics": [], "facts": [PORTO]}

    def reply(request):
        judging = "<facts>" in request.body["messages"][-1]["content"]
        return Status(500) if judging else json.dumps(window)

    model.answer(reply)
    done = at_once(palace)
    assert homes(palace) == ["Porto"]
    assert any(note.startswith("Facts were judged without") for note in done.notes)
    assert [note[:25] for note in shown_notes(client, palace)] == ["Facts were judged without"]


def shown_notes(client, palace):
    client.force_login(palace.owner)
    page = client.get(reverse("activities")).text
    notes = re.findall(r'<p class="note">.*?<span>(.*?)</span></p>', page)
    stored = Activity.objects.order_by("-pk").values_list("detail__notes", flat=True)
    assert notes == [note for each in stored for note in each]
    return notes


def test_what_failed_in_the_background_is_on_the_activity_page(palace, model, client):
    model.answer(Status(500))
    room = file_transcript(
        palace, Transcript("chat", "one", "", (Turn("t1", "user", "I live in Porto.", LONG_AGO),))
    ).room
    tasks.mine_room(room.pk)
    assert homes(palace) == []
    tasks.learn_facts(palace.pk)
    assert homes(palace) == ["Porto"]
    tasks.write_episodes(palace.pk)
    tasks.learn_facts(palace.pk)
    openings = [note.partition(" without")[0] for note in shown_notes(client, palace)]
    assert openings[-2:] == ["Facts were found", "The summary was written"]
    assert len(set(openings)) == len(openings) == 3, "Each once."
    assert Activity.objects.get().summary.startswith("Remembered 1 message")


@pytest.fixture
def drawer(palace):
    return DrawerFactory(room__wing__palace=palace)


def test_a_note_stays_when_the_same_run_goes_on(palace, drawer):
    report = Report(drawer.room)
    save([report.add(drawer.room, Landed(Counter(drawers=1)))])
    Activity.objects.note_degraded(drawer.room, ["The model did not answer."])
    save([report.add(drawer.room, Landed(Counter(drawers=1), ["Half a window."]))])
    [activity] = Activity.objects.all()
    assert activity.detail["notes"] == ["The model did not answer.", "Half a window."]
    assert activity.detail["made"] == {"drawers": 2}


def test_a_note_about_an_older_room_has_a_line_of_its_own(palace, drawer):
    Activity.objects.note_degraded(drawer.room, [])
    assert not Activity.objects.exists()
    Activity.objects.note_degraded(drawer.room, ["The model did not answer."])
    [activity] = Activity.objects.all()
    assert drawer.room.title in activity.summary


def test_a_turn_that_a_model_read_whole_is_complete(palace, model):
    model.answer(json.dumps({"title": "Home", "topics": [], "facts": [PORTO]}))
    assert at_once(palace).notes == ()
    assert homes(palace) == ["Porto"]
