"""Earlier questions do not displace the answers, whichever way they come into the palace."""

from __future__ import annotations

from datetime import timedelta

import pytest

from api.rest.palace.record import LEFT_OUT
from chat.prompt import NO_MODEL, NOTHING_FITS, extractive_reply
from language.transcripts import Transcript, Turn
from palace.mining.pipeline import mine
from palace.models import RecollectionTrace
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from tests.conversations import BATTERY, EVERYTHING, LISBON, START, transcript
from tests.furnished_palaces import furnish

STATEMENT = "I'm allergic to nuts, and my doctor says that it will not go away."
TELLING = transcript(
    STATEMENT,
    "I will keep that in mind.",
    "My sister Nora moved to Lisbon in March; she feeds the otters at the aquarium.",
    "Lisbon in spring is lovely.",
    "We paint the kitchen green next week, if the weather stays dry.",
    "Open the windows while you do.",
    id="telling",
)
ASKED = (
    "What am I allergic to?",
    "Do I have any allergies?",
    "What am I allergic to?",
    "Can you tell me what I am allergic to?",
    "Which allergies do I have?",
    "what am i allergic to",
)
STATES_AND_ASKS = "I'm allergic to nuts, what can I eat?"


def ask(palace, *questions):
    """Each question in a chat of its own, with the reply that quotes what was found."""
    for number, question in enumerate(questions):
        start = START + timedelta(days=30, hours=number)
        reply = extractive_reply(
            recall(palace, RecallRequest(question, now=start)).hits, why=NO_MODEL
        )
        turns = (
            Turn("0", "user", question, start),
            Turn("1", "assistant", reply, start + timedelta(seconds=5)),
        )
        mine(palace, Transcript("chat", f"asked {number}", "", turns))


@pytest.fixture
def asked(palace):
    def live(palace):
        for one in (BATTERY, LISBON, TELLING):
            mine(palace, one)
        ask(palace, *ASKED)

    return furnish(palace, "asked", live)


def texts(palace, query, **options):
    return [
        hit.drawer.text for hit in recall(palace, RecallRequest(query, top_k=20, **options)).hits
    ]


@pytest.mark.parametrize(
    ("query", "recipe"),
    [
        ("What am I allergic to?", "default"),
        ("What am I allergic to?", "fast"),
        ("What am I allergic to?", "keyword"),  # By words alone, other words find other things.
        ("Please tell me my allergies.", "default"),
    ],
)
def test_what_was_stated_comes_before_all_that_was_asked(asked, query, recipe):
    found = texts(asked, query, recipe=recipe)
    assert found[0] == STATEMENT
    silent = [place for place, text in enumerate(found) if text in ASKED or NO_MODEL in text]
    others = [place for place in range(len(found)) if place not in silent]
    assert silent, "They are demoted, not excluded."
    assert max(others) < min(silent)


def test_the_block_does_without_what_only_asks_or_quotes(asked):
    found = recall(asked, RecallRequest("What am I allergic to?", top_k=20, budget_tokens=2000))
    assert "will not go away" in found.context
    for text in (*ASKED, NO_MODEL):
        assert text not in found.context
    assert any(not hit.is_informative for hit in found.hits)
    assert not any("did not fit" in note for note in found.notes)
    traced = RecollectionTrace.objects.get(uuid=found.uuid).hits
    fates = [LEFT_OUT[hit["cut"]] if "cut" in hit else "given" for hit in traced]
    assert fates == ["given" if hit.is_informative else "tells_nothing" for hit in found.hits]


def test_where_nothing_was_stated_the_questions_are_found_and_not_quoted(palace):
    mine(palace, transcript("What am I allergic to?", id="asked"))
    found = recall(palace, RecallRequest("What am I allergic to?"))
    assert [hit.drawer.text for hit in found.hits] == ["What am I allergic to?"]
    assert found.context == ""
    assert extractive_reply(found.hits, why=NO_MODEL) == f"{NO_MODEL} {NOTHING_FITS}"


@pytest.mark.parametrize(
    "query",
    [
        "What did I ask about allergies?",
        "Have I asked you what I am allergic to?",
        "Which questions about my allergies did I ask?",
    ],
)
def test_who_is_after_what_was_asked_finds_it(asked, query):
    found = recall(asked, RecallRequest(query, top_k=6))
    assert sum(hit.drawer.text in ASKED for hit in found.hits) >= 3
    assert any(question in found.context for question in ASKED)


def test_a_question_that_states_something_keeps_its_rank(asked):
    """As it ranks where nothing was asked: what only asks comes behind it, not before."""
    mine(asked, transcript(STATES_AND_ASKS, "Fruit, for one.", id="tells"))
    found = texts(asked, "What am I allergic to?")
    assert {STATEMENT, STATES_AND_ASKS} == set(found[:2])


def test_a_question_lifts_no_room(palace):
    """Two rooms tell the same; in one of them the question was asked as well."""
    statement = "Cashews close my throat within a minute."
    for one in EVERYTHING:
        mine(palace, one)
    mine(palace, transcript(statement, id="plain"))
    mine(palace, transcript(statement, "Noted.", "Which nuts close my throat?", id="asked"))
    room = {
        hit.drawer.conversation: hit.signals["room"]
        for hit in recall(palace, RecallRequest("Which nuts close my throat?", top_k=50)).hits
        if hit.drawer.text == statement
    }
    assert room["plain"] == pytest.approx(room["asked"])
