"""Recall in a conversation: what its model has before it is held back, and comes again in time."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count

import pytest

from palace.curation.purge import Purge
from palace.curation.trash import move_to_trash
from palace.knowledge.facts.fact_edits import delete, rewrite
from palace.knowledge.facts.fact_extraction import Scope
from palace.mining.pipeline import mine
from palace.models import Drawer, Entity, Palace, RecollectionTrace
from palace.recall.deduplication import LEDGER_AWAY, ConversationState
from palace.recall.drawer_loader import NOTHING_FOUND
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.recall.trace import SHOWN
from palace.storage.indexing.fact_vectors import fill_missing
from palace.storage.indexing.spaces import active_space
from palace.storage.own_output import BLOCK_START
from palace.working.ledger import Ledger, LedgerEntry
from tests.conversations import EVERYTHING
from tests.factories import EvidenceFactory, FactFactory
from tests.furnished_palaces import furnish_with

WIRE = "Which wire overheated on the battery?"
BREAD = "What is wrong with my sourdough loaves?"
DEREK = "Where do I know Derek from?"
MARCH = datetime(2025, 3, 1, tzinfo=UTC)


@pytest.fixture
def lived_in(palace):
    return furnish_with(palace, *EVERYTHING)


@pytest.fixture
def fact(lived_in):
    """That rests on what Derek says."""
    drawer = Drawer.objects.get(text__startswith="Derek says")
    user = Entity.objects.get(palace=lived_in, slug="user")
    fact = FactFactory(subject=user, text="User knows Derek from Lisbon", recorded_at=MARCH)
    EvidenceFactory(fact=fact, drawer=drawer)
    fill_missing(lived_in, active_space(), [fact])
    return fact


@pytest.fixture
def ask(lived_in):
    """Ask at the next message of a conversation, two after the one before, and send what came."""
    turns = count(0, 2)

    def ask(question, *, window=20, sent=True, carries=False, palace=lived_in, **asked):
        turn = next(turns)
        talk = ConversationState("talk", turn, max(0, turn - window + 1), carries)
        asked = {"top_k": 3, "budget_tokens": 1500, **asked}
        found = recall(palace, RecallRequest(question, conversation=talk, **asked))
        if sent:
            found.injection.mark(palace)
        return found

    return ask


def trace_of(found):
    return RecollectionTrace.objects.get(uuid=found.uuid)


def shown(found):
    """The pointers that stand in the block, each of which may only do so once."""
    pointers = [str(each.pointer) for each in found.citations]
    assert len(pointers) == len(set(pointers)) == found.context.count("\n[§")
    return set(pointers)


def marked(palace):
    return set(Ledger(palace, "talk").get())


def test_what_was_shown_is_held_back_and_stays_on_record(ask):
    first, again = ask(WIRE), ask(WIRE)
    assert shown(first)
    assert again.context == ""
    assert [hit.drawer for hit in again.hits] == [hit.drawer for hit in first.hits]
    trace = trace_of(again)
    assert {hit["cut"] for hit in trace.hits} == {SHOWN}
    assert trace.figures["given"] == 0
    other = ask(BREAD)
    assert shown(other)
    assert shown(other).isdisjoint(shown(first))


def test_it_comes_again_when_its_message_has_left_the_window(ask, lived_in):
    first = ask(WIRE, window=4)
    held, left = ask(WIRE, window=4), ask(WIRE, window=4)
    assert (held.context, shown(left)) == ("", shown(first))
    assert {entry.turn for entry in Ledger(lived_in, "talk").get().values()} == {4}


def test_what_was_never_sent_is_not_held_back(ask):
    assert ask(WIRE, sent=False).context == ask(WIRE).context


def test_a_message_asked_again_finds_what_it_found(lived_in):
    talk = ConversationState("talk", turn=4)
    first = recall(lived_in, RecallRequest(WIRE, conversation=talk))
    first.injection.mark(lived_in)
    again = recall(lived_in, RecallRequest(WIRE, conversation=talk, top_k=1))
    assert shown(again) < shown(first)
    again.injection.mark(lived_in)
    assert len(marked(lived_in)) == 1, "What only the reply put aside was given is not before it."


def test_evicted_it_comes_again(ask, lived_in):
    first = ask(WIRE)
    Ledger(lived_in, "talk").evict(marked(lived_in))
    assert shown(ask(WIRE)) == shown(first)


def test_only_what_survived_the_budget_is_marked(ask, lived_in):
    whole = recall(lived_in, RecallRequest(WIRE, top_k=3, store_trace=False))
    found = ask(WIRE, budget_tokens=whole.context_tokens - 10)
    held = {f"drawer:{hit.drawer.uuid}" for hit in found.hits if str(hit.pointer) in shown(found)}
    assert 0 < len(held) < len(found.hits)
    assert marked(lived_in) == held
    assert shown(ask(WIRE)).isdisjoint(shown(found)), "What had no room comes now."


def test_carried_along_all_stands_in_each_block_once(ask):
    first = ask(WIRE, carries=True)
    second = ask(BREAD, carries=True)
    assert shown(first) < shown(second)
    third = ask(WIRE, carries=True)
    assert shown(third) == shown(second)
    assert third.context.startswith(BLOCK_START)
    assert third.injection.new == third.injection.gone == ()
    trace = trace_of(second)
    order = [str(hit.pointer) for hit in first.hits if str(hit.pointer) in shown(first)]
    assert [each["pointer"] for each in trace.carried] == order, "The best first, as it came."
    assert trace.context == second.context
    assert trace.figures["carried"] == len(shown(first))


def test_what_does_not_fit_any_more_goes_the_oldest_first(ask, lived_in):
    wire = ask(WIRE, carries=True)
    ask(BREAD, carries=True, top_k=2)
    lisbon = ask("What should we see in Lisbon?", carries=True, top_k=2, budget_tokens=270)
    new = {str(hit.pointer) for hit in lisbon.hits}
    assert new <= shown(lisbon)
    assert lisbon.injection.gone
    gone = {entry.item for entry in lisbon.injection.gone}
    assert gone.isdisjoint(marked(lived_in))
    assert 0 in {entry.turn for entry in lisbon.injection.gone}
    assert shown(wire).isdisjoint(shown(lisbon))
    assert shown(ask(WIRE, carries=True)) >= shown(wire), "There is room again, so they come again."


def test_what_is_put_in_the_trash_is_withdrawn_and_its_words_can_be_purged(ask, lived_in):
    first = ask(WIRE, carries=True, top_k=1)
    carrying = ask(BREAD, carries=True)
    drawer = first.hits[0].drawer
    assert drawer.text in trace_of(carrying).context
    move_to_trash(drawer)
    later = ask(BREAD, carries=True)
    assert drawer.text not in later.context
    assert f"drawer:{drawer.uuid}" not in marked(lived_in)
    Purge(lived_in).run(Drawer.objects.filter(pk=drawer.pk))
    texts = [trace.context for trace in RecollectionTrace.objects.filter(palace=lived_in)]
    assert not any(drawer.text in text for text in texts)
    assert trace_of(carrying).context, "The others' lines stay."


def test_a_fact_comes_again_once_it_was_corrected(ask, fact, lived_in):
    def facts(found):
        return [line for line in found.context.splitlines() if line.startswith("- ")]

    first, again = ask(DEREK, with_facts=True), ask(DEREK, with_facts=True)
    assert "knows Derek from Lisbon" in facts(first)[0]
    assert facts(again) == []
    assert trace_of(again).facts[0]["cut"] == SHOWN
    rewrite(lived_in, fact.memory, "User knows Derek from Porto", Scope("person"))
    corrected = ask(DEREK, with_facts=True)
    assert "knows Derek from Porto" in facts(corrected)[0]


def test_a_fact_that_is_wrong_or_gone_drops_out_of_what_is_carried(ask, fact, lived_in):
    assert "from Lisbon" in ask(DEREK, with_facts=True, carries=True).context
    assert "from Lisbon" in ask(BREAD, carries=True).context
    rewrite(lived_in, fact.memory, "User knows Derek from Porto", Scope("person"))
    assert "User knows" not in ask(BREAD, carries=True).context
    assert "from Porto" in ask(DEREK, with_facts=True, carries=True).context
    delete(lived_in, fact.memory, Scope("person"))
    assert "User knows" not in ask(BREAD, carries=True).context
    assert not any(item.startswith("fact:") for item in marked(lived_in))


def test_a_fact_goes_with_the_words_it_rests_on(ask, fact):
    assert "from Lisbon" in ask(DEREK, with_facts=True, carries=True).context
    move_to_trash(Drawer.objects.get(text__startswith="Derek says"))
    assert "from Lisbon" not in ask(BREAD, carries=True).context


def test_of_others_nothing_is_held_or_carried(ask, lived_in, bob):
    ask(WIRE)
    bobs = Palace.objects.own(bob)
    mine(bobs, EVERYTHING[0])
    found = recall(
        bobs, RecallRequest(WIRE, conversation=ConversationState("talk", 2, carries=True))
    )
    assert found.context
    assert not {hit["cut"] for hit in trace_of(found).hits if "cut" in hit}
    assert {drawer.palace for drawer in (hit.drawer for hit in found.hits)} == {bobs}


@pytest.mark.parametrize("item", ["drawer:", "drawer:x", "fact:1", "skill:rowing"])
def test_names_that_only_look_like_ours_do_no_harm(ask, lived_in, item):
    ask(WIRE)
    Ledger(lived_in, "talk").mark(LedgerEntry(item))
    ask(BREAD, carries=True)
    assert item in marked(lived_in), "Named without a message it stays until it is evicted."


def test_where_redis_is_away_recall_goes_on_and_says_so(lived_in, settings, tmp_path):
    settings.REDIS_URL = f"unix://{tmp_path}/none.sock"
    found = recall(lived_in, RecallRequest(WIRE, conversation=ConversationState("talk", 2)))
    assert found.context
    assert LEDGER_AWAY in found.notes
    outside = recall(lived_in, RecallRequest(WIRE))
    assert LEDGER_AWAY not in outside.notes, "It is not asked."
    assert outside.injection is None


def test_a_greeting_that_nothing_fits_opens_with_what_was_said_last(lived_in):
    assert (
        recall(
            lived_in,
            RecallRequest("Quetzalcoatl zyzzyva?", conversation=ConversationState("off-topic", 0)),
        ).hits
        == ()
    )
    question = "Hi, how are you?"
    assert recall(lived_in, RecallRequest(question)).hits == ()
    assert (
        recall(lived_in, RecallRequest(question, conversation=ConversationState("talk", 2))).hits
        == ()
    )
    found = recall(lived_in, RecallRequest(question, conversation=ConversationState("other", 0)))
    said = Drawer.objects.filter(role="user").order_by("-said_at")
    assert [hit.drawer for hit in found.hits] == list(said[:5])
    assert found.is_opening
    assert NOTHING_FOUND in found.notes
    assert shown(found)
    trace = trace_of(found)
    assert trace.figures["looked_at"] >= sum(trace.figures["cut"].values())


def test_an_opening_that_something_fits_is_answered_as_ever(lived_in):
    found = recall(lived_in, RecallRequest(WIRE, conversation=ConversationState("talk", 0)))
    assert [hit.drawer for hit in found.hits] == [
        hit.drawer for hit in recall(lived_in, RecallRequest(WIRE)).hits
    ]
    assert not found.is_opening


def test_in_an_empty_palace_there_is_nothing_to_open_with(palace):
    found = recall(palace, RecallRequest(WIRE, conversation=ConversationState("talk", 0)))
    assert (found.hits, found.context, found.is_opening) == ((), "", False)
    assert NOTHING_FOUND not in found.notes
