"""The floor: what was never spoken of brings nothing; other questions keep their answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bench.floor_questions import read_off_topic, read_people
from bench.floor_regression import ANSWERABLE, OFF_TOPIC, fit_all, read
from language.transcripts import Transcript, Turn
from palace.knowledge.facts.fact_learning import remember
from palace.mining.pipeline import mine, mine_many
from palace.models import Drawer, Fact, RecollectionTrace
from palace.recall import E5, MINILM
from palace.recall.deduplication import ConversationState
from palace.recall.facts import INSTRUCTIONS
from palace.recall.relevance import load_floor_weights
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from tests.conversations import EVERYTHING, long_transcript
from tests.furnished_palaces import furnish

NOW = datetime(2025, 6, 20, 18, 0, tzinfo=UTC)
LAST_WEEK = datetime(2025, 6, 11, 21, 0, tzinfo=UTC)
SAID = (
    ("I live in Berlin, on the fourth floor, without a lift.", NOW - timedelta(days=150)),
    ("My dog Biscuit howls at the tram.", NOW - timedelta(days=90)),
    ("I always prefer small guesthouses to big hotels.", NOW - timedelta(days=60)),
    ("def export_invoices(): return list(Invoice.objects.all())", NOW - timedelta(days=30)),
    ("The allergist tested my arm with birch and hazelnut.", LAST_WEEK),
)
OFF = (
    "What is the airspeed velocity of an unladen swallow?",
    "What is the capital of Mongolia?",
    "zzzz qqqq",
    "xkcdvbn mnbvcxz",
)


def tell(palace, said):
    turns = [Turn(str(at), "user", text, moment) for at, (text, moment) in enumerate(said)]
    remember(palace, turns, conversation="talk")
    mine(palace, Transcript("api", "talk", "", tuple(turns)))


@pytest.fixture
def furnished_talk(palace):
    furnish(palace, repr(SAID), lambda empty: tell(empty, SAID))
    assert Fact.objects.within(palace).exists()
    return palace


def asked(palace, question, **choices):
    return recall(palace, RecallRequest(question, now=NOW, with_facts=True, **choices))


def texts(found):
    return [hit.drawer.text for hit in found.hits]


@pytest.mark.parametrize("question", OFF)
@pytest.mark.parametrize("recipe", ["default", "keyword"])
def test_off_topic_questions_and_gibberish_bring_nothing(furnished_talk, question, recipe):
    found = asked(furnished_talk, question, recipe=recipe)
    assert (found.hits, found.facts, found.context, found.context_tokens) == ((), (), "", 0)


CODE = "def export_invoices_{0}(since): return [serialise(row) for row in invoices_{0}(since)]\n"


def test_nor_among_many_drawers_with_code_in_them(palace):
    turns = tuple(
        Turn(str(n), "assistant", CODE.format(n) * 3, NOW - timedelta(minutes=n)) for n in range(8)
    )
    mine_many(palace, [long_transcript(30), *EVERYTHING, Transcript("api", "code", "", turns)])
    found = {question: texts(asked(palace, question, top_k=20)) for question in OFF}
    assert not any(found.values())


def test_nor_do_they_open_a_conversation_with_what_was_said_last(furnished_talk):
    found = asked(furnished_talk, OFF[0], conversation=ConversationState("talk", 0))
    assert (found.hits, found.context, found.is_opening) == ((), "", False)


@pytest.mark.parametrize("opening", ["hi", "Good morning!", "Hello, how are you?"])
def test_a_greeting_opens_with_what_was_said_last(furnished_talk, opening):
    found = asked(furnished_talk, opening, conversation=ConversationState("talk", 0))
    assert found.is_opening
    assert texts(found)[0] == SAID[-1][0]
    assert not found.facts


@pytest.mark.parametrize("question", [*OFF, "How do I fold an origami crane?"])
def test_standing_instructions_hold_whatever_is_asked(furnished_talk, question):
    remember(furnished_talk, "From now on, always answer me in British spelling.", now=NOW)
    found = asked(furnished_talk, question)
    assert [one.fact.category for one in found.facts] == [INSTRUCTIONS]
    assert "British spelling" in found.context


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What did I do last week?", SAID[4][0]),
        ("Can you recommend me a hotel in Lisbon?", SAID[2][0]),
        ("Where do I live?", SAID[0][0]),
        ("Biscuit", SAID[1][0]),
        ("¿Quién es Biscuit?", SAID[1][0]),
        ("export_invoices", SAID[3][0]),
    ],
)
def test_what_was_said_is_found_however_it_is_asked_for(furnished_talk, question, answer):
    assert answer in texts(asked(furnished_talk, question))


@pytest.mark.parametrize("question", ["What have we talked about?", "What do you know about me?"])
def test_questions_about_the_memory_itself_are_not_refused(furnished_talk, question):
    found = asked(furnished_talk, question)
    assert found.facts
    assert found.hits


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What can't I stand?", "coriander"),
        ("What don’t I eat?", "coriander"),
        ("Recommend me a dinner recipe.", "coriander"),
        ("Where does she work?", "Lena"),
    ],
)
def test_who_asks_about_people_is_not_refused_for_want_of_names(palace, question, answer):
    tell(
        palace,
        [
            ("I can't stand coriander, I don't eat anything that has it.", LAST_WEEK),
            ("My sister Lena works at the tax office in Kassel.", LAST_WEEK),
            *SAID,
        ],
    )
    assert any(answer in text for text in texts(asked(palace, question)))


@pytest.mark.parametrize(
    "question",
    ["How do bees find their hive?", "Give me a regular expression for an IPv6 address."],
)
def test_a_pronoun_or_an_order_makes_no_question_personal(furnished_talk, question):
    assert not asked(furnished_talk, question).hits


def test_a_palace_of_three_drawers_is_judged_like_any_other(palace):
    tell(palace, SAID[:3])
    assert texts(asked(palace, "What is my dog called?"))[0] == SAID[1][0]
    assert asked(palace, OFF[1]).context == ""


def test_only_facts_that_are_close_come_beside_a_reply(furnished_talk):
    about_home = asked(furnished_talk, "Where do I live?")
    assert "Berlin" in about_home.facts[0].text
    about_code = asked(furnished_talk, "What does export_invoices return?")
    assert not [one for one in about_code.facts if "Berlin" in one.text]


def test_what_the_caller_has_already_is_no_evidence(furnished_talk):
    tell_again = Transcript("api", "asked", "", (Turn("0", "user", OFF[1], NOW),))
    mine(furnished_talk, tell_again)
    itself = Drawer.objects.within(furnished_talk).get(text=OFF[1])
    assert asked(furnished_talk, OFF[1], exclude_ids=[itself.pk]).context == ""


def test_the_trace_says_that_the_floor_refused_and_by_what_figures(furnished_talk):
    found = asked(furnished_talk, OFF[1])
    trace = RecollectionTrace.objects.get(uuid=found.uuid)
    floor = trace.figures["floor"]
    assert floor["refused"]
    assert floor["log_odds"] < floor["least"]
    assert {cut["cut"] for cut in trace.cut()} == {"too far from the question"}
    assert not RecollectionTrace.objects.get(uuid=asked(furnished_talk, "Biscuit").uuid).figures[
        "floor"
    ]["refused"]


def test_the_questions_are_as_many_as_a_calibration_needs():
    people = read_people()
    assert sum(len(each.answerable) for each in people) >= 200
    assert sum(len(each.near_misses) for each in people) >= 100
    assert len(read_off_topic()) >= 100


def test_the_models_kept_are_those_that_the_observations_give():
    fitted = fit_all(read(MINILM), MINILM) | fit_all(read(E5), E5)
    assert {name: model.model for name, model in fitted.items()} == load_floor_weights()["models"]
    chosen = fitted[MINILM]
    row = next(row for row in chosen.curve if row["least"] == chosen.least)
    assert row[OFF_TOPIC] >= 0.9
    assert row[ANSWERABLE] <= 0.02
