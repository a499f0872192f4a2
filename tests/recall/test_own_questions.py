"""One's own questions come after what answers them, however they are spelt and in any language."""

from __future__ import annotations

import pytest

from language.english.message_traits import Trait, read_traits
from language.transcripts import Transcript, Turn
from palace.mining.pipeline import mine
from palace.models import Drawer
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from tests.conversations import START
from tests.furnished_palaces import furnish
from tests.recall.own_questions import MORE_ASKING, SPELLINGS, TELLING

ASKED = [spelling for spellings in SPELLINGS.values() for spelling in spellings]


@pytest.mark.parametrize("question", [*ASKED, *MORE_ASKING])
def test_a_question_is_one_however_it_is_spelt(question):
    assert Trait.ONLY_ASKS in read_traits(question)


@pytest.mark.parametrize("text", [*TELLING, *SPELLINGS])
def test_what_tells_something_is_no_question(text):
    assert Trait.ONLY_ASKS not in read_traits(text)


def file_each(palace, texts, name):
    turns = (Turn("0", "user", text, START) for text in texts)
    for number, turn in enumerate(turns):
        mine(palace, Transcript("chat", f"{name} {number}", "", (turn,)))


@pytest.fixture
def asked(palace):
    def live(palace):
        file_each(palace, SPELLINGS, "told")
        file_each(palace, ASKED, "asked")

    return furnish(palace, "told and asked", live)


def hits(palace, query, most=10):
    return recall(palace, RecallRequest(query, top_k=most, now=START, store_trace=False)).hits


@pytest.mark.some(1)
@pytest.mark.parametrize("part", range(4))
def test_no_question_of_ones_own_comes_first(asked, part):
    first = {query: hits(asked, query)[0] for query in ASKED[part::4]}
    assert {q: hit.drawer.text for q, hit in first.items() if hit.drawer.text in ASKED} == {}


def test_a_statement_typed_word_by_word_comes_first(asked):
    for statement in SPELLINGS:
        assert hits(asked, statement)[0].drawer.text == statement


@pytest.mark.exhaustive
def test_old_traits_do_not_lift_a_question_that_says_no_more_than_the_query(asked):
    """As versions read them that did not know these spellings."""
    Drawer.objects.update(traits=Trait.ENDS_ASKING | Trait.MOSTLY_ASKS)
    Drawer.objects.filter(text__in=SPELLINGS).update(traits=0)
    marked = [query for query in ASKED if query.endswith("?")]
    assert [q for q in marked if hits(asked, q)[0].drawer.text == q] == []


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("query", "question"),
    [
        ("what did I ask about the spare key?", "where is the spare key"),
        ("Which questions did I ask about the plumber?", "plumber's name?"),
        ("What did I ask you about Anna's wedding?", "when is Anna's wedding"),
    ],
)
def test_who_is_after_an_earlier_question_finds_it_first(asked, query, question):
    found = [hit.drawer.text for hit in hits(asked, query)]
    assert found[0] in ASKED
    assert question in found


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "spelt", ["when is the rent due", "Rent due date?", "How much is the rent?"]
)
def test_the_question_comes_before_what_answers_it_where_the_question_is_wanted(palace, spelt):
    rent = "The rent is nine hundred euros and due on the third."
    file_each(palace, [rent, *SPELLINGS], "told")
    file_each(palace, [spelt], "asked")
    assert hits(palace, spelt)[0].drawer.text == rent
    for query in ("what did I ask about the rent?", "What have I asked you about the rent?"):
        assert hits(palace, query)[0].drawer.text == spelt
