"""What accepting, rejecting and undoing a proposal does to what is held."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from language.errors import FactConflict
from palace.curation.purge import Purge
from palace.curation.trash import move_to_trash, restore
from palace.knowledge.dreaming.decisions import (
    BadProposal,
    ChangedSince,
    StaleProposal,
    accept,
    accept_all,
    reject,
    reject_all,
    undo,
    undo_all,
)
from palace.knowledge.facts.fact_edits import rewrite
from palace.knowledge.facts.fact_extraction import Scope
from palace.models import Drawer, Evidence, Fact, FactVector, Palace, Proposal, ProposalFact
from palace.queries.facts import history
from tests.knowledge.dreaming.conftest import LONG_AGO, held, picture, proposed
from tests.knowledge.facts.conftest import said

LATER = LONG_AGO + timedelta(days=400)
TEA = "User drinks tea every morning"
ALSO_TEA = "User has tea each morning"


@pytest.fixture
def twins(hold):
    late = hold(ALSO_TEA, at=LATER, tags=["drinks"], metadata={"origin": "b"})
    early = hold(TEA, tags=["habits"], metadata={"origin": "a"})
    return early, late


@pytest.fixture
def merge(palace, twins):
    return proposed(
        palace, "merge", *twins, after=TEA, category="habits/tea", tags=("habits", "drinks")
    )


def words(fact):
    return set(Evidence.objects.filter(fact=fact).values_list("drawer_id", flat=True))


def test_a_merge_keeps_the_earliest_date_and_all_words(palace, twins, merge):
    early, late = twins
    accept(palace, merge)
    fact = Fact.objects.within(palace).active().get()
    assert (fact.text, fact.memory) == (TEA, early.memory)
    assert fact.valid_from == LONG_AGO
    assert fact.category == "habits/tea"
    assert fact.tags == ["habits", "drinks"]
    assert words(fact) == words(early) | words(late)
    assert FactVector.objects.filter(fact=fact).exists()


def test_nothing_is_overwritten_by_a_merge(palace, twins, merge):
    early, late = twins
    before = timezone.now()
    accept(palace, merge)
    assert {fact.text for fact in Fact.objects.within(palace).known_at(before)} == {TEA, ALSO_TEA}
    assert [(e.event, e.by) for e in history(palace, late.memory)] == [("DELETE", "dream")]
    assert [(e.event, e.new_text) for e in history(palace, early.memory)] == [("UPDATE", TEA)]


@pytest.mark.parametrize("times", [1, 2])
def test_accepting_twice_is_as_once(palace, merge, times):
    for _ in range(times):
        assert accept(palace, merge).status == "accepted"
    assert Fact.objects.within(palace).count() == 3


@pytest.mark.django_db(transaction=True)
def test_accepted_by_many_at_once_it_is_done_once(palace, merge):
    def go(_):
        try:
            return accept(palace, merge).status
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(go, range(6))) == {"accepted"}
    assert Fact.objects.within(palace).count() == 3
    assert ProposalFact.objects.filter(role="made").count() == 1


def test_undoing_a_merge_restores_to_the_byte(palace, twins, merge):
    before = picture(palace)
    accept(palace, merge)
    assert picture(palace) != before
    assert undo(palace, merge).status == "undone"
    assert picture(palace) == before
    assert undo(palace, merge).status == "undone"
    assert picture(palace) == before
    assert FactVector.objects.filter(fact__in=Fact.objects.active()).count() == 2


def test_words_learnt_since_a_merge_outlive_its_undoing(palace, twins, merge):
    accept(palace, merge)
    made = Fact.objects.within(palace).active().get()
    more = said(palace, "Tea again this morning.")
    Evidence.objects.create(palace=palace, fact=made, drawer=more, start=0, end=3)
    undo(palace, merge)
    kept = Fact.objects.within(palace).active().get(text=TEA)
    assert more.pk in words(kept)


def test_a_merge_that_was_built_on_is_not_undone(palace, merge):
    accept(palace, merge)
    made = Fact.objects.within(palace).active().get()
    rewrite(palace, made.memory, "User drinks green tea", Scope("person"))
    before = picture(palace)
    with pytest.raises(ChangedSince):
        undo(palace, merge)
    assert picture(palace) == before


def test_a_contradiction_ends_the_older_when_the_newer_began(palace, hold):
    porto = hold("User lives in Porto", "lives_in", aspect="old", valid_to=LATER)
    lisbon = hold("User lives in Lisbon", "lives_in", at=LATER - timedelta(days=9))
    before = picture(palace)
    one = proposed(palace, "contradiction", porto, beside=[lisbon])
    accept(palace, one)
    porto.refresh_from_db()
    assert (porto.fate, porto.valid_to) == ("superseded", lisbon.valid_from)
    assert held(palace) == ["User lives in Lisbon"]
    undo(palace, one)
    assert picture(palace) == before


@pytest.mark.parametrize(("kind", "fate"), [("drop", "deleted"), ("outdated", "ended")])
def test_what_is_let_go_or_over_comes_back_when_undone(palace, hold, kind, fate):
    fact = hold("User is looking for a flat", "plans", valid_to=LATER)
    before = picture(palace)
    one = proposed(palace, kind, fact)
    accept(palace, one)
    fact.refresh_from_db()
    assert (fact.fate, held(palace)) == (fate, [])
    undo(palace, one)
    assert picture(palace) == before


def test_filing_elsewhere_is_a_version_of_its_own(palace, hold):
    fact = hold("User has a cat named Miso", "has_pet", category="things")
    before = picture(palace)
    one = proposed(palace, "refine", fact, after=fact.text, category="home/pets", tags=("cat",))
    accept(palace, one)
    now = Fact.objects.within(palace).active().get()
    assert (now.category, now.tags, now.supersedes_id) == ("home/pets", ["cat"], fact.pk)
    undo(palace, one)
    assert picture(palace) == before


def test_a_preference_becomes_a_fact_on_the_words_it_was_inferred_from(palace):
    drawers = [said(palace, "Shorter, please."), said(palace, "Too long again!", LATER)]
    one = proposed(
        palace,
        "preference",
        after="User prefers short answers",
        quotes=drawers,
        category="user-preferences/inferred",
        tags=("inferred",),
        metadata={"source": "inferred"},
    )
    accept(palace, one)
    fact = Fact.objects.within(palace).active().get()
    assert (fact.type, fact.category) == ("preference", "user-preferences/inferred")
    assert (fact.tags, fact.metadata) == (["inferred"], {"source": "inferred"})
    assert (fact.valid_from, fact.subject.name) == (LONG_AGO, "User")
    assert words(fact) == {drawer.pk for drawer in drawers}
    assert FactVector.objects.filter(fact=fact).exists()
    undo(palace, one)
    assert held(palace) == []


def test_what_was_rejected_stays_and_is_not_proposed_again(palace, twins, merge):
    before = picture(palace)
    reject(palace, merge)
    assert picture(palace) == before
    assert proposed(palace, "merge", *twins, after="Said otherwise").status == "rejected"
    with pytest.raises(BadProposal, match="rejected"):
        accept(palace, merge)
    assert undo(palace, merge).status == "proposed"
    assert accept(palace, merge).status == "accepted"
    with pytest.raises(BadProposal, match="Undo it"):
        reject(palace, merge)


def test_what_was_undone_is_not_proposed_again(palace, merge):
    accept(palace, merge)
    undo(palace, merge)
    again = Fact.objects.within(palace).active().order_by("text")
    assert proposed(palace, "merge", *again, after=TEA).status == "undone"


def test_what_changed_meanwhile_is_stale(palace, twins, merge):
    rewrite(palace, twins[1].memory, "User has coffee each morning", Scope("person"))
    assert not Proposal.objects.within(palace).waiting().exists()
    before = picture(palace)
    for _ in range(2):
        with pytest.raises(StaleProposal):
            accept(palace, merge)
    merge.refresh_from_db()
    assert (merge.status, picture(palace)) == ("stale", before)


def test_many_are_decided_each_by_itself(palace, hold):
    one = proposed(palace, "drop", hold("User likes rain", "likes"))
    gone = hold("User likes snow", "likes")
    other = proposed(palace, "drop", gone)
    rewrite(palace, gone.memory, "User likes hail", Scope("person"))
    uuids = [one.uuid, other.uuid]
    decided = accept_all(palace, uuids)
    assert ([each.uuid for each in decided.done], len(decided.refused)) == ([one.uuid], 1)
    assert held(palace) == ["User likes hail"]
    assert len(undo_all(palace, uuids).done) == 1
    assert held(palace) == ["User likes hail", "User likes rain"]
    assert len(reject_all(palace, uuids).done) == 2


def test_undo_says_what_is_held_in_its_place(palace, hold):
    porto = hold("User lives in Porto", "lives_in")
    one = proposed(palace, "outdated", porto)
    accept(palace, one)
    hold("User lives in Lisbon", "lives_in", at=LATER)
    with pytest.raises(FactConflict, match="Lisbon"):
        undo(palace, one)
    assert held(palace) == ["User lives in Lisbon"]


def test_a_proposal_of_another_palace_is_not_here(bob, merge):
    with pytest.raises(BadProposal, match="not here"):
        accept(Palace.objects.own(bob), merge)


def test_words_in_the_trash_wait_with_what_rests_on_them(palace, merge):
    drawer = Drawer.objects.within(palace).first()
    move_to_trash(drawer)
    assert not Proposal.objects.within(palace).waiting().exists()
    with pytest.raises(StaleProposal):
        accept(palace, merge)
    restore(palace, Drawer.objects.within(palace))
    again = Fact.objects.within(palace).active().order_by("text")
    assert proposed(palace, "merge", *again, after=TEA).status == "proposed"
    assert accept(palace, merge).status == "accepted"


@pytest.mark.parametrize("decided", [False, True])
def test_what_rests_on_purged_words_vanishes_with_them(palace, twins, merge, decided):
    if decided:
        accept(palace, merge)
    quoting = proposed(
        palace, "preference", after="User is fond of tea", quotes=[Drawer.objects.last()]
    )
    assert Proposal.objects.count() == 2
    Drawer.objects.update(trashed_at=timezone.now())
    Purge(palace).run(Drawer.objects.within(palace))
    assert not Proposal.objects.exists()
    with pytest.raises(BadProposal, match="deleted"):
        accept(palace, quoting)
