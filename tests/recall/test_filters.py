"""A filter never costs a hit: what it permits is found, however much else is closer."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from language.transcripts import Transcript, Turn
from palace.mining.pipeline import mine
from palace.models import Drawer, Mention, RecollectionTrace
from palace.recall.candidates import find_candidates
from palace.recall.evaluation import NOT_CHOSEN_FROM, standing_of
from palace.recall.keyword import by_words
from palace.recall.query import read_query
from palace.recall.request import Narrowing, RecallRequest
from palace.recall.retrieval import recall
from palace.recall.semantic import by_meaning
from palace.recall.trace import KNOWN, NARROWED_TO, REPEATS
from palace.storage.indexing.spaces import active_space
from tests.conversations import START
from tests.factories import EntityFactory, WingFactory
from tests.furnished_palaces import furnish

ABOUT = "The kettle whistles when its water boils."
OLD = "Our old kettle dripped on the stove."
MANY = 300


@pytest.fixture
def kettles(palace):
    """Many drawers about the kettle, and one before them that is about it less."""

    def fill(palace):
        mine(palace, Transcript("chat", "old", "", (Turn("0", "user", OLD, START),)))
        turns = (Turn(str(n), "user", ABOUT, START + timedelta(days=1 + n)) for n in range(MANY))
        mine(palace, Transcript("chat", "new", "", tuple(turns)))

    return furnish(palace, "kettles", fill)


def texts(palace, **options):
    found = recall(palace, RecallRequest("When does the kettle whistle?", top_k=3, **options))
    return [hit.drawer.text for hit in found.hits]


def test_without_a_filter_the_many_come_first(kettles):
    assert texts(kettles) == [ABOUT] * 3


def test_what_had_been_said_by_then_is_found(kettles):
    assert texts(kettles, as_of=START) == [OLD]


def test_of_some_drawers_the_best_are_found(kettles):
    [old] = Drawer.objects.filter(conversation="old").values_list("pk", flat=True)
    assert texts(kettles, only_ids=[old]) == [OLD]
    assert texts(kettles, only_ids=[]) == []


def test_what_the_prompt_has_makes_room_for_all_others(kettles):
    known = list(Drawer.objects.filter(conversation="new").values_list("pk", flat=True))
    assert texts(kettles, exclude_ids=known) == [OLD]
    assert texts(kettles, exclude_ids=known, as_of=START) == [OLD]


def test_what_the_filter_leaves_out_is_not_said_to_be_in_the_conversation(kettles):
    found = recall(kettles, RecallRequest("Does the kettle whistle?", as_of=START, only_ids=[]))
    trace = RecollectionTrace.objects.get(palace=kettles, uuid=found.uuid)
    assert trace.cut() == []


def test_only_what_is_in_the_prompt_is_said_to_be_in_the_conversation(lived_in):
    known, asked = Drawer.objects.filter(conversation="battery").order_by("position")[:2]
    question = RecallRequest(
        "Which wire overheated?", exclude_ids=[known.pk], repeats=[known.pk, asked.pk]
    )
    found = recall(lived_in, question)
    assert not {hit.drawer for hit in found.hits} & {known, asked}
    trace = RecollectionTrace.objects.get(palace=lived_in, uuid=found.uuid)
    why = {cut["drawer"]: cut["cut"] for cut in trace.cut()}
    assert (why[known.pk], why[asked.pk]) == (KNOWN, REPEATS)
    assert list(why.values()).count(KNOWN) == 1


def test_what_was_said_later_is_no_neighbour_either(lived_in):
    first, second = Drawer.objects.filter(conversation="battery").order_by("position")[:2]
    after = []
    for as_of in (None, first.said_at):
        question = read_query(
            lived_in, active_space(), first.text, now=START, as_of=as_of, by_meaning=True
        )
        meaning = by_meaning(lived_in, active_space(), question.adapted)
        words = by_words(lived_in, question.terms)
        found = find_candidates(lived_in, question, meaning, words)
        after.append(found.after[found.drawers == first.pk].tolist())
    assert after == [[second.pk], [0]]


@pytest.fixture
def apart(palace):
    """One drawer that is hidden behind many, and what tells it apart."""

    def fill(palace):
        old = (Turn("0", "assistant", OLD, START, "Anna"),)
        mine(palace, Transcript("plain", "old", "", old))
        turns = (Turn(str(n), "user", ABOUT, START + timedelta(days=1 + n)) for n in range(MANY))
        mine(palace, Transcript("chat", "new", "", tuple(turns)))

    furnish(palace, "kettles apart", fill)
    drawer = Drawer.objects.with_place().get(palace=palace, conversation="old")
    wing = WingFactory(palace=palace, name="Kitchen")
    drawer.room.wing = wing
    drawer.room.save()
    anna = EntityFactory(palace=palace, name="Anna", slug="anna")
    Mention.objects.create(palace=palace, entity=anna, drawer=drawer, start=0, end=3)
    return {
        "wing": Narrowing(wing=wing.uuid),
        "person": Narrowing(person=anna.uuid),
        "until": Narrowing(until=START),
        "since": Narrowing(since=START - timedelta(days=1), until=START),
        "role": Narrowing(speaker="assistant"),
        "speaker": Narrowing(speaker="anna"),
        "source": Narrowing(source="plain"),
        "all": Narrowing(wing.uuid, anna.uuid, START, START, "assistant", "plain"),
    }


@pytest.mark.parametrize(
    "by", ["wing", "person", "until", "since", "role", "speaker", "source", "all"]
)
def test_a_condition_applies_before_the_best_are_taken(apart, palace, by):
    assert texts(palace, narrowing=apart[by]) == [OLD]


def test_conditions_and_keys_hold_together(apart, palace):
    others = list(Drawer.objects.filter(conversation="new").values_list("pk", flat=True))
    assert texts(palace, narrowing=apart["wing"], only_ids=others) == []


def test_a_trace_keeps_the_conditions(apart, palace):
    found = recall(palace, RecallRequest("Does the kettle whistle?", narrowing=apart["all"]))
    trace = RecollectionTrace.objects.get(palace=palace, uuid=found.uuid)
    assert Narrowing.from_record(trace.reading[NARROWED_TO]) == apart["all"]


def test_the_nearest_come_on_demand_where_nothing_is_close(lived_in):
    question = "zygote phosphorylation kinetics"
    assert recall(lived_in, RecallRequest(question)).hits == ()
    assert len(recall(lived_in, RecallRequest(question, top_k=3, nearest=True)).hits) == 3


def test_any_drawer_has_a_standing(kettles):
    [old] = Drawer.objects.filter(conversation="old")
    question = RecallRequest("When does the kettle whistle?", top_k=3)
    standing = standing_of(kettles, question, old)
    assert not standing.is_hit
    assert standing.place > 3
    assert standing.score < standing.hits[-1].score
    assert sum(standing.signals.values()) == pytest.approx(standing.score, abs=1e-3)
    left_out = standing_of(kettles, replace(question, narrowing=Narrowing(source="slack")), old)
    assert left_out.why == NOT_CHOSEN_FROM
