"""What no longer holds is marked where it is shown, and what holds instead comes along."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from language.transcripts import Transcript, Turn
from palace.mining.pipeline import mine
from palace.models import Fact, RecollectionTrace
from palace.recall.context_builder import remove_hits
from palace.recall.deduplication import ConversationState
from palace.recall.outdated import Scope, find_outdated
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from tests.furnished_palaces import furnish

JANUARY, FEBRUARY, MARCH, JUNE = (datetime(2024, n, 5, 12, tzinfo=UTC) for n in (1, 2, 3, 6))
PORTO, LISBON = "I live in Porto, in the street with the tiled church.", "I moved to Lisbon."
NOTE = "(no longer so since March 2024: User lives in Porto)"


def tell(palace, text, said_at):
    mine(palace, Transcript("chat", f"{said_at:%m}", "", (Turn("0", "user", text, said_at),)))


@pytest.fixture
def moved(palace):
    def move(palace):
        tell(palace, PORTO, JANUARY)
        tell(palace, LISBON, MARCH)

    return furnish(palace, "moved", move)


def ask(palace, question="Where is the tiled church?", **options):
    options = {"now": JUNE, "top_k": 1, "with_facts": True, **options}
    return recall(palace, RecallRequest(question, **options))


def test_a_superseded_line_is_marked_and_its_successor_comes_along(moved):
    found = ask(moved)
    [hit] = found.hits
    assert hit.drawer.text == PORTO
    assert hit.outdated.since == MARCH
    assert f"{PORTO}\n{NOTE}\n" in found.context
    assert found.facts[0].text == "User lives in Lisbon"
    assert found.context.index("User lives in Lisbon") < found.context.index(PORTO)
    trace = RecollectionTrace.objects.get(palace=moved, uuid=found.uuid)
    assert trace.hits[0]["outdated_since"] == MARCH.isoformat()


def test_the_block_says_the_present_first_and_what_ended_once(palace):
    tell(palace, PORTO, JANUARY)
    tell(palace, "I live in Porto, where the tiled church is.", FEBRUARY)
    tell(palace, LISBON, MARCH)
    found = ask(palace, top_k=2)
    assert [hit.note for hit in found.hits] == [NOTE[1:-1]] * 2
    assert found.context.count("User lives in Porto") == 1
    assert found.context.count("(no longer so)") == 1
    present = found.context.index("User lives in Lisbon (since March 2024)")
    assert present < found.context.index(NOTE) < found.context.index("(no longer so)")


def test_the_page_of_results_addresses_its_reader(moved, client):
    client.force_login(moved.owner)
    page = client.get("/memory/", {"q": "Where is the tiled church?"}).text
    assert "No longer so since March 2024: You live in Porto" in page


def test_before_the_move_it_was_so(moved):
    found = ask(moved, as_of=JANUARY)
    assert found.hits[0].outdated is None
    assert "no longer" not in found.context


def test_what_is_said_again_is_true_again(moved):
    tell(moved, "I live in Porto again.", JUNE)
    assert ask(moved).hits[0].outdated is None


def test_the_words_that_ended_it_are_not_outdated(moved):
    found = ask(moved, "When did I move to Lisbon?", top_k=2)
    marked = {hit.drawer.text: hit.outdated is not None for hit in found.hits}
    assert marked.get(LISBON) is False


def test_a_fact_corrected_by_hand_says_nothing_of_the_words(moved):
    Fact.objects.filter(fate=Fact.Fate.SUPERSEDED).update(
        fate=Fact.Fate.CORRECTED, closed_by=None, valid_to=None
    )
    assert ask(moved).hits[0].outdated is None


def test_facts_of_another_agent_mark_nothing(moved):
    Fact.objects.update(agent="coach")
    assert ask(moved, agent="cook").hits[0].outdated is None
    for agent in ("coach", ""):
        assert ask(moved, agent=agent).hits[0].outdated is not None


def test_a_note_goes_with_its_line(moved):
    found = ask(moved)
    assert PORTO not in remove_hits(found.context, found.hits)
    assert NOTE not in remove_hits(found.context, found.hits)
    assert "Lisbon" in remove_hits(found.context, found.hits)


def test_a_line_that_is_carried_keeps_its_note(moved):
    state = ConversationState("talk", turn=0, carries=True)
    ask(moved, conversation=state).injection.mark(moved)
    later = ConversationState("talk", turn=2, carries=True)
    found = ask(moved, "Which tram goes up the hill?", conversation=later)
    assert found.carried
    assert f"{PORTO}\n{NOTE}\n" in found.context


def test_where_no_fact_has_ended_no_model_is_loaded(palace, django_assert_num_queries):
    tell(palace, PORTO, JANUARY)
    hits = ask(palace).hits
    assert [hit.ended for hit in hits] == [()]

    with django_assert_num_queries(0):
        assert find_outdated(palace, {}, Scope(JUNE)) == ({}, [])
