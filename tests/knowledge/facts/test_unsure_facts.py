"""Facts that are not sure wait for their owner: they are not recalled and end nothing before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from language.facts import SURE
from palace.curation.purge import empty_trash
from palace.curation.trash import move_to_trash, restore
from palace.knowledge.dreaming import accept, accept_all, reject, reject_all, undo, undo_all
from palace.knowledge.dreaming.decisions import StaleProposal
from palace.knowledge.dreaming.dream_input import facts_to_look_at
from palace.knowledge.facts.fact_learning import remember
from palace.knowledge.facts.unsure_facts import effects_of
from palace.models import Drawer, Evidence, Fact, FactEvent, Proposal, Statement
from palace.recall.facts import MIN_CONFIDENCE
from tests.knowledge.facts.conftest import facts_answer, judgements_answer
from tests.knowledge.facts.test_extraction import PORTO

pytestmark = pytest.mark.django_db
START = datetime(2024, 1, 1, 9, 0, tzinfo=UTC)
BERLIN, PROXMOX = "User lives in Berlin", "User lives in Proxmox"
MOVED = "We moved to Proxmox."


def say(palace, text, day):
    return remember(palace, text, now=START + timedelta(days=day))


def held(palace):
    return sorted(Fact.objects.within(palace).active().values_list("text", flat=True))


def recalled(palace):
    sure = Fact.objects.within(palace).active().filter(confidence__gte=MIN_CONFIDENCE)
    return sorted(sure.values_list("text", flat=True))


def waiting(palace):
    rows = Proposal.objects.within(palace).waiting().order_by("pk")
    return [proposal.payload["after"]["text"] for proposal in rows]


def effect(palace):
    facts = Fact.objects.within(palace).unsure().select_related("subject", "opened_by__drawer")
    [found] = effects_of(palace, list(facts)).values()
    return found


def doubt(palace, said, **content):
    """Make the statement of a message unsure, or another one, and judge everything again."""
    statement = Statement.objects.get(palace=palace, drawer__text=said)
    statement.content |= {"confidence": 0.6, **content}
    statement.save()
    say(palace, "I have a dog.", -100)


@pytest.fixture
def moved(palace):
    """A certain home, and then words that may mean another one; the suggestion."""
    say(palace, "I live in Berlin.", 0)
    say(palace, MOVED, 30)
    return Proposal.objects.within(palace).get()


def test_what_recall_leaves_out_is_what_waits():
    assert MIN_CONFIDENCE == SURE


def test_it_waits_is_not_recalled_and_ends_nothing(palace, moved):
    assert held(palace) == [BERLIN, PROXMOX]
    assert recalled(palace) == [BERLIN]
    assert waiting(palace) == [PROXMOX]
    assert moved.kind == Proposal.Kind.UNSURE


def test_it_tells_what_it_would_end(palace, moved):
    assert effect(palace).ends.text == BERLIN


def test_said_twice_it_waits_once(palace, moved):
    say(palace, "As I said, we moved to Proxmox.", 40)
    assert waiting(palace) == [PROXMOX]
    assert Proposal.objects.count() == 1


def test_accepted_it_is_recalled_and_ends_what_it_contradicts(palace, moved):
    accept(palace, moved)
    assert recalled(palace) == [PROXMOX]
    before = Fact.objects.within(palace).get(text=BERLIN)
    assert (before.fate, before.valid_to) == (Fact.Fate.SUPERSEDED, START + timedelta(days=30))
    home = Fact.objects.within(palace).active().get()
    assert (home.single, home.supersedes is not None) == (True, True)
    assert list(home.evidence.values_list("drawer__text", flat=True)) == [MOVED]
    assert FactEvent.objects.filter(memory=home.memory, why="you accepted it").count() == 1
    assert waiting(palace) == []


def test_accepted_twice_it_is_accepted_once(palace, moved):
    accept(palace, moved)
    count = Fact.objects.count()
    accept(palace, moved)
    assert Fact.objects.count() == count


def test_undone_all_is_as_before_and_it_waits_again(palace, moved):
    accept(palace, moved)
    undone = undo(palace, moved)
    assert undone.status == Proposal.Status.PROPOSED
    assert held(palace) == [BERLIN, PROXMOX]
    assert recalled(palace) == [BERLIN]
    assert waiting(palace) == [PROXMOX]
    accept(palace, undone)
    assert recalled(palace) == [PROXMOX]


def test_rejected_it_is_forgotten_and_not_suggested_again(palace, moved):
    reject(palace, moved)
    assert held(palace) == [BERLIN]
    say(palace, "We moved to Proxmox.", 60)
    assert held(palace) == [BERLIN]
    assert waiting(palace) == []
    say(palace, "I live in Oslo.", 70)  # What is certain counts as ever.
    assert held(palace) == ["User lives in Oslo"]


def test_a_rejection_undone_lets_it_wait_again(palace, moved):
    reject(palace, moved)
    assert undo(palace, moved).status == Proposal.Status.PROPOSED
    assert waiting(palace) == [PROXMOX]
    accept(palace, moved)
    assert recalled(palace) == [PROXMOX]


def test_as_soon_as_it_is_certain_nobody_is_asked(palace, moved):
    say(palace, "I live in Proxmox now.", 60)
    assert recalled(palace) == [PROXMOX]
    assert waiting(palace) == []
    with pytest.raises(StaleProposal):
        accept(palace, moved)


def test_another_home_that_is_certain_ends_the_question(palace, moved):
    say(palace, "I live in Oslo now.", 60)
    assert held(palace) == ["User lives in Oslo"]
    assert waiting(palace) == []


def test_what_was_said_later_stays(palace):
    say(palace, "I live alone.", 0)
    doubt(palace, "I live alone.")
    say(palace, "I live with two flatmates now.", 60)
    assert effect(palace).stays.text == "User lives with two flatmates"
    accept(palace, Proposal.objects.within(palace).waiting().get())
    assert recalled(palace) == ["User has a dog", "User lives with two flatmates"]
    then = Fact.objects.within(palace).true_at(START + timedelta(days=45))
    assert "User lives alone" in set(then.values_list("text", flat=True))


def test_a_decision_lasts_when_older_words_are_read_later(palace, moved):
    accept(palace, moved)
    say(palace, "I live in Rome.", -100)
    assert recalled(palace) == [PROXMOX]
    assert waiting(palace) == []


def test_a_suggestion_follows_its_fact_when_older_words_are_read_later(palace, moved):
    say(palace, "I live in Rome.", -100)
    say(palace, MOVED, 10)
    assert waiting(palace) == [PROXMOX]
    [proposal] = Proposal.objects.within(palace).waiting()
    accept(palace, proposal)
    assert recalled(palace) == [PROXMOX]


def test_a_denial_that_is_unsure_ends_nothing_until_it_is_accepted(palace, moved):
    """As a model may find one."""
    text = "User does not live in Berlin"
    doubt(palace, MOVED, negated=True, object="Berlin", text=text, thing=None)
    assert recalled(palace) == ["User has a dog", BERLIN]
    assert waiting(palace) == [text]
    [proposal] = Proposal.objects.within(palace).waiting()
    accept(palace, proposal)
    assert held(palace) == ["User has a dog"]
    undo(palace, proposal)
    assert BERLIN in recalled(palace)
    assert waiting(palace) == [text]


def test_in_the_trash_it_does_not_wait_and_purged_it_is_gone(palace, moved):
    drawer = Drawer.objects.get(text=MOVED)
    move_to_trash(drawer)
    assert waiting(palace) == []
    restore(palace, Drawer.objects.filter(pk=drawer.pk))
    assert waiting(palace) == [PROXMOX]
    batch = move_to_trash(drawer)
    empty_trash(palace.pk, batch.key)
    assert not Proposal.objects.exists()


def test_several_are_judged_together(palace):
    say(palace, "I live in Berlin. I work at Bosch.", 0)
    say(palace, "We moved to Proxmox. I moved to Arch. We moved to Snowplow last year.", 30)
    uuids = list(Proposal.objects.within(palace).waiting().values_list("uuid", flat=True))
    assert len(uuids) == 3
    with CaptureQueriesContext(connection) as asked:
        decided = accept_all(palace, uuids)
    assert (len(decided.done), decided.refused) == (3, ())
    assert len([query for query in asked if '"last_said"' in query["sql"]]) == 1
    assert BERLIN not in held(palace)
    undone = undo_all(palace, uuids)
    assert (len(undone.done), undone.refused) == (3, ())
    assert len(waiting(palace)) == 3
    assert recalled(palace) == [BERLIN, "User works at Bosch"]
    assert len(reject_all(palace, uuids).done) == 3
    assert held(palace) == [BERLIN, "User works at Bosch"]


def test_what_a_model_is_unsure_of_waits_too(palace, model):
    berlin = PORTO | {"object": "Berlin", "text": BERLIN, "quote": ""}
    perhaps = PORTO | {"confidence": 0.5, "quote": ""}
    moves = judgements_answer({"new": 0, "verdict": "UPDATE", "fact": 0})
    model.script([facts_answer(berlin), facts_answer(perhaps), moves])
    say(palace, "I live in Berlin.", 0)
    say(palace, "Perhaps we are in Porto for good.", 30)
    assert recalled(palace) == [BERLIN]
    assert waiting(palace) == ["User lives in Porto"]


def test_a_dream_does_not_read_it(palace, moved):
    assert [fact.text for fact in facts_to_look_at(palace, 10)] == [BERLIN]


def test_the_words_of_a_suggestion_are_those_it_was_read_from(palace, moved):
    fact = moved.about.get().fact
    assert Evidence.objects.get(fact=fact).drawer.text == MOVED
