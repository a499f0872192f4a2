"""The sample palace: loaded as an import, answered by recall, and taken out without a trace."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings

from config.audit import audit_palace
from palace.curation.deletion import remove_sample
from palace.knowledge.episodes import write_due_episodes
from palace.knowledge.facts.fact_learning import learn_unread
from palace.mining.pipeline import mine
from palace.models import (
    AcceptedMessage,
    Activity,
    Change,
    Drawer,
    Entity,
    Fact,
    ImportJob,
    Palace,
    Room,
)
from palace.recall import RecallRequest, recall
from palace.transfer import import_jobs, importers
from palace.transfer.import_jobs.preparation import SAMPLE_FILE
from tests.conversations import transcript
from tests.furnished_palaces import furnish
from tests.transfer.import_runs import run_slice, run_to_the_end

# To each question, words of messages that answer it and are among the best five.
ANSWERS = {
    "Where does Mira’s brother live now?": ["Mira's brother lives in Porto now"],
    "What happened to the trip to Norway?": ["I've cancelled the trip to Norway"],
    "Do I eat fish?": ["I'm not eating fish", "I eat fish now"],
    "Why was the water at Upton two hours early?": ["UTC since 2019", "agrees with the model"],
    "Semolina or flour in the plum dumplings?": ["Flour, not semolina!"],
    "What do I think of working from home?": [
        "I love working from home",
        "I don't love working from home any more",
    ],
    "Wie viel Mohn kommt in Omas Mohnkuchen?": ["250 Gramm gemahlener Mohn"],
}

HISTORY = ("palace.Fact", "palace.FactEvent", "palace.FactVector", "palace.Evidence")


def load(palace):
    run_to_the_end(import_jobs.sample_job(palace))
    learn_unread(palace)
    write_due_episodes(palace)


@pytest.fixture
def sampled(palace):
    return furnish(palace, "sampled", load)


def rows(palace):
    """The number of rows of every table of palaces, except logs that outlive what they name."""
    counts = Counter()
    for model in apps.get_models(include_auto_created=True):
        if model in (AcceptedMessage, Change):
            continue
        if any(each.name == "palace" for each in model._meta.fields):
            counts[model._meta.label] = model._base_manager.filter(palace=palace).count()
    return +counts


def held(palace):
    return set(Fact.objects.within(palace).active().values_list("text", flat=True))


def broken(palace):
    return [each for each in audit_palace(palace) if each.wrong]


def test_it_is_plain_data_over_a_year_worth_reading():
    talks = [json.loads(line) for line in SAMPLE_FILE.read_text().splitlines()]
    assert 40 <= len(talks) <= 50
    lengths = [len(talk["messages"]) for talk in talks]
    assert min(lengths) >= 6
    assert max(lengths) <= 20
    days = [message["said_at"] for talk in talks for message in talk["messages"]]
    assert days == sorted(days)
    assert days[0][:7] == "2025-11"
    assert days[-1][:7] == "2026-11"
    assert {message["role"] for talk in talks for message in talk["messages"]} == {
        "user",
        "assistant",
    }
    assert importers.SAMPLE.source == ImportJob.SAMPLE


def test_the_page_that_offers_it_counts_its_conversations():
    offer = (Path(settings.BASE_DIR) / "templates/palace/_first_steps.html").read_text()
    [count] = re.findall(r"in (\d+) conversations", offer)
    assert int(count) == len(SAMPLE_FILE.read_text().splitlines())


@pytest.mark.exhaustive
def test_every_question_offered_is_answered_by_recall(sampled):
    assert set(import_jobs.SAMPLE_QUESTIONS) == set(ANSWERS)
    for question, answers in ANSWERS.items():
        best = [hit.drawer.text for hit in recall(sampled, RecallRequest(question, top_k=5)).hits]
        for words in answers:
            assert any(words in text for text in best), (question, words, best)


@pytest.mark.exhaustive
def test_facts_change_and_people_recur(sampled):
    active = held(sampled)
    assert {"User lives in Totterdown", "Arjun lives in Porto", "User eats fish"} <= active
    ended = Fact.objects.within(sampled).exclude(text__in=active)
    assert {"User lives in Bristol", "Arjun lives in Lisbon", "User hates mornings"} <= set(
        ended.values_list("text", flat=True)
    )
    mira = Entity.objects.get(palace=sampled, name="Mira")
    assert mira.mentions.values("drawer__conversation").distinct().count() >= 8
    assert Room.objects.within(sampled).values("wing").distinct().count() >= 5


def test_it_is_loaded_once_by_two_tabs(palace):
    first, second = import_jobs.sample_job(palace), import_jobs.sample_job(palace)
    assert first == second
    assert import_jobs.start(first)
    assert not import_jobs.start(second)
    while not import_jobs.run_slice(first):
        pass
    assert import_jobs.sample_job(palace) == first
    assert ImportJob.objects.count() == 1


def test_an_own_upload_of_the_same_file_is_no_sample(palace):
    own = import_jobs.preview(palace, SAMPLE_FILE)
    assert own.format == "plain"
    assert import_jobs.sample_job(palace).format == ImportJob.SAMPLE


@pytest.mark.exhaustive
def test_removal_leaves_no_row(palace):
    before = rows(palace)
    load(palace)
    assert sum(rows(palace).values()) > 2000
    assert broken(palace) == []
    removed = remove_sample(palace)
    assert (removed.conversations, removed.messages) == (46, 434)
    assert removed.facts > 20
    assert rows(palace) == before
    assert broken(palace) == []
    assert remove_sample(palace).messages == 0


@pytest.mark.exhaustive
def test_what_the_person_added_stays(palace, bob):
    own = transcript("I live in Oslo. My sister Mira works at Equinor.", "Noted.", id="own")
    mine(palace, own)
    learn_unread(palace)
    write_due_episodes(palace)
    before, facts = rows(palace), held(palace)
    names = set(Entity.objects.filter(palace=palace).values_list("name", flat=True))
    other = Palace.objects.own(bob)
    run_slice(import_jobs.sample_job(other), seconds=0)
    of_bob = rows(other)
    load(palace)
    remove_sample(palace)
    after = rows(palace)
    # What the sample ended is true again, as a new version: its history has rows of its own.
    for label in HISTORY:
        assert after.pop(label) >= before.pop(label)
    # With the sample's it was the third conversation of its area, whose wing it is in since then.
    [made] = Activity.objects.filter(palace=palace, kind=Activity.Kind.DRAWERS_MOVED)
    assert made.detail["wing"] == str(Room.objects.get(palace=palace, external_id="own").wing.uuid)
    after["palace.Activity"] -= 1
    assert after == before
    assert held(palace) == facts
    assert set(Fact.objects.within(palace).values_list("text", flat=True)) == facts
    assert set(Entity.objects.filter(palace=palace).values_list("name", flat=True)) == names
    assert broken(palace) == []
    assert rows(other) == of_bob


@pytest.mark.exhaustive
def test_removed_while_it_loads_it_stops_and_can_be_loaded_again(palace):
    job = import_jobs.sample_job(palace)
    run_slice(job, seconds=0)
    assert Drawer.objects.filter(palace=palace).exists()
    remove_sample(palace)
    with pytest.raises(ImportJob.DoesNotExist):
        import_jobs.run_slice(job)
    assert not Drawer.objects.filter(palace=palace).exists()
    assert run_to_the_end(import_jobs.sample_job(palace))["stored"] == 434
