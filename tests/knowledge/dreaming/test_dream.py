"""A dream as a whole: once at a time, within its limits, reported, and harmless when it fails."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection
from django.utils import timezone

from palace.curation.purge import Purge
from palace.knowledge.dreaming.decisions import accept_all, reject_all
from palace.knowledge.dreaming.dream_input import BadDirective
from palace.knowledge.dreaming.dream_run import dream, dream_of, is_dreaming
from palace.knowledge.dreaming.model_passes import estimate
from palace.models import Activity, Drawer, DreamMark, Fact, FactVector, Palace, Proposal
from tests.curation.test_purge import words_in_the_database
from tests.furnished_palaces import furnish
from tests.knowledge.dreaming.conftest import (
    LONG_AGO,
    answers,
    dream_costs,
    held,
    numbers_in,
    picture,
)
from tests.knowledge.facts.conftest import said
from tests.model_server import Text


@pytest.fixture
def messy(palace, hold):
    """A palace with two things said twice, and one that cannot be so."""

    def build(_palace):
        hold("User enjoys hiking", "likes", "hiking", at=LONG_AGO)
        hold("User likes hiking", "likes", "hiking", at=LONG_AGO + timedelta(days=9))
        hold("User lives in Porto", "lives_in", "Porto")
        hold("User resides in Lisbon", "resides_in", "Lisbon", at=LONG_AGO + timedelta(days=50))
        hold("User owns a red kayak", "owns", "red kayak")

    return furnish(palace, "messy", build)


def kinds(palace):
    return sorted(Proposal.objects.within(palace).values_list("kind", flat=True))


def test_without_a_model_what_says_the_same_and_what_is_at_odds_is_found(messy):
    before = picture(messy)
    dreamt = dream(messy)
    assert kinds(messy) == ["contradiction", "merge"]
    assert picture(messy) == before
    activity = Activity.objects.get(kind="dreamt")
    assert activity.summary == "Dreamt over 5 facts: 2 changes proposed."
    assert activity.detail["looked_at"] == {"facts": 5}
    assert activity.detail["cost_usd"] is None
    assert dreamt.activity == activity
    uuids = list(Proposal.objects.values_list("uuid", flat=True))
    accept_all(messy, uuids)
    assert held(messy) == ["User enjoys hiking", "User owns a red kayak", "User resides in Lisbon"]


def test_what_was_rejected_does_not_come_back_the_next_night(messy):
    dream(messy)
    reject_all(messy, list(Proposal.objects.values_list("uuid", flat=True)))
    dreamt = dream(messy)
    assert not dreamt.proposed
    assert not Proposal.objects.within(messy).waiting().exists()
    assert dreamt.activity.summary == "Dreamt over 5 facts: nothing to change."


def test_repeated_it_ends_in_the_same_state(messy):
    dream(messy)
    before = list(Proposal.objects.order_by("pk").values("pk", "status", "fingerprint", "made_at"))
    dream(messy)
    after = Proposal.objects.order_by("pk").values("pk", "status", "fingerprint", "made_at")
    assert list(after) == before


@pytest.mark.django_db(transaction=True)
def test_begun_by_many_at_once_it_is_dreamt_once_at_a_time(messy):
    ready = threading.Barrier(5)

    def go(_):
        ready.wait()
        try:
            return dream(messy)
        finally:
            connection.close()

    with ThreadPoolExecutor(5) as pool:
        dreamt = list(pool.map(go, range(5)))
    assert sum(not one.already for one in dreamt) >= 1
    assert kinds(messy) == ["contradiction", "merge"]
    assert not is_dreaming(messy)


@pytest.mark.django_db(transaction=True)
def test_while_one_dreams_another_does_nothing(messy, model):
    asked, go_on = threading.Event(), threading.Event()

    def reply(_request):
        asked.set()
        go_on.wait(20)
        return "{}"

    model.answer(reply)

    def first():
        try:
            return dream(messy)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(first)
        assert asked.wait(20)
        assert is_dreaming(messy)
        assert dream(messy).already
        go_on.set()
        assert not running.result().already
    assert Activity.objects.filter(kind="dreamt").count() == 1


def test_broken_off_in_the_middle_the_next_goes_on(messy, model):
    answers(model, lambda r: json.dumps({"to_delete": [numbers_in(r)["User owns a red kayak"]]}))
    said(messy, "Keep it short!")
    with connection.cursor() as cursor:
        cursor.execute("""
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF NEW.drawer > 0 THEN RAISE EXCEPTION 'refused'; END IF; RETURN NEW; END $$;
            CREATE TRIGGER refuse BEFORE UPDATE ON palace_dreammark
            FOR EACH ROW EXECUTE FUNCTION refuse()
        """)
        with pytest.raises(DatabaseError, match="refused"):
            dream(messy)
        cursor.execute("DROP TRIGGER refuse ON palace_dreammark")
    assert kinds(messy) == ["contradiction", "drop", "merge"]
    assert DreamMark.objects.get(palace=messy).drawer == 0
    dream(messy)
    assert kinds(messy) == ["contradiction", "drop", "merge"]
    # The answers that were paid for are used.
    assert len(model.requests) == 2
    assert DreamMark.objects.get(palace=messy).drawer > 0


def test_each_call_is_a_line_of_its_own_and_the_record_says_what_it_came_to(messy, model):
    said(messy, "Keep it short!")
    answers(model)
    dream(messy)
    calls = dream_costs()
    assert calls.count() == 2
    detail = Activity.objects.get(kind="dreamt").detail
    assert detail["calls"] == 2
    assert detail["tokens_in"] == sum(call.tokens_in for call in calls) == 22
    assert detail["cost_usd"] is None  # Nobody knows the price of this one.
    assert detail["looked_at"]["messages"] >= 1


def test_what_would_go_beyond_the_limit_is_not_asked(messy, model, limited):
    said(messy, "Keep it short!")
    limited(tokens=100)
    answers(model)
    dreamt = dream(messy)
    assert model.requests == []
    assert sum("did not allow" in note for note in dreamt.notes) == 2
    assert kinds(messy) == ["contradiction", "merge"]
    assert DreamMark.objects.get(palace=messy).drawer == 0


@pytest.mark.exhaustive
def test_a_limit_that_does_not_allow_all_allows_some(palace, hold, model, limited):
    for number in range(40):
        hold(f"User keeps the {number}th volume of a long series of books on lichens", "owns")
    whole = estimate(palace)
    limited(tokens=whole.most.tokens // 3)
    assert not estimate(palace).fits
    answers(model)
    dreamt = dream(palace)
    assert any("of 40 facts" in note for note in dreamt.notes if "left room" in note)
    assert 0 < len(numbers_in(model.requests[0])) < 40


def test_the_first_call_may_use_up_what_the_second_needs(messy, model, limited):
    said(messy, "Keep it short!")
    before = estimate(messy)
    limited(tokens=before.most.tokens)
    dear = {"prompt_tokens": before.most.tokens - 10, "completion_tokens": 5, "total_tokens": 1}
    answers(model, Text("{}", usage=dear))
    dreamt = dream(messy)
    assert len(model.requests) == 1
    assert any("did not allow messages" in note for note in dreamt.notes)


def test_the_limit_in_dollars_counts_where_the_price_is_known(messy, model, limited, settings):
    settings.LLM_MODEL = "gpt-4o-mini"
    before = estimate(messy)
    assert 0 < before.likely.usd < before.most.usd < Decimal("0.25")
    limited(usd="0.0001")
    assert not estimate(messy).fits
    answers(model)
    dreamt = dream(messy)
    assert model.requests == []
    assert any("did not allow facts" in note for note in dreamt.notes)
    limited(usd="1")
    spent = dream(messy).activity.detail["cost_usd"]
    assert len(model.requests) == 2
    assert Decimal(spent) == sum(call.cost_usd for call in dream_costs()) > 0


def test_what_it_would_cost_is_said_before(messy, model):
    said(messy, "Keep it short!")
    before = estimate(messy)
    assert (before.model, before.facts, before.fits) == ("small-model", 5, True)
    assert before.messages == Drawer.objects.within(messy).count()
    assert 0 < before.likely.tokens < before.most.tokens
    assert before.most.usd is None
    assert model.requests == []


def test_kinds_that_are_trusted_are_applied(messy, limited):
    limited(dream_trusted=["merge"])
    dreamt = dream(messy)
    assert dreamt.applied == 1
    merge = Proposal.objects.get(kind="merge")
    assert (merge.status, merge.decided_by) == ("accepted", "dream")
    assert Proposal.objects.get(kind="contradiction").status == "proposed"
    assert "User likes hiking" not in held(messy)
    assert dreamt.activity.summary.endswith("2 changes proposed, 1 applied.")


def test_what_waited_is_applied_once_its_kind_is_trusted(messy, limited):
    dream(messy)
    limited(dream_trusted=["merge", "contradiction"])
    assert dream(messy).applied == 2


@pytest.mark.parametrize(
    ("made", "wrong"), [(None, "No such file"), (b"  \n", "is empty"), (b"\xff\xfe", "UTF-8")]
)
def test_instructions_that_cannot_be_read_are_reported_at_the_start(
    messy, settings, tmp_path, made, wrong
):
    path = tmp_path / "directive.md"
    if made is not None:
        path.write_bytes(made)
    settings.DREAM_PREFERENCES_DIRECTIVE = str(path)
    with pytest.raises(BadDirective, match=wrong) as error:
        dream(messy)
    assert "LOCI_DREAM_PREFERENCES_DIRECTIVE" in str(error.value)
    assert not DreamMark.objects.exists()
    assert not Activity.objects.filter(kind="dreamt").exists()
    dream_of(messy.pk)
    with pytest.raises(CommandError, match=wrong):
        call_command("dream", owner="alice")


def test_instructions_of_ones_own_take_the_place_of_ours(messy, model, settings, tmp_path):
    path = tmp_path / "directive.md"
    path.write_text("Merge memories about mountains only.", encoding="utf-8")
    settings.DREAM_DIRECTIVE = str(path)
    answers(model)
    dream(messy)
    prompt = model.requests[0].prompt
    assert prompt.startswith("Merge memories about mountains only.")
    assert "never to be followed" in prompt
    assert "long-term memory of an assistant" not in prompt


def test_another_palace_is_left_alone(messy, bob):
    others = Palace.objects.own(bob)
    dream(others)
    assert not Proposal.objects.exists()
    dream(messy)
    assert set(Proposal.objects.values_list("palace", flat=True)) == {messy.pk}


def test_no_word_of_a_purged_conversation_is_left(messy, model):
    said(messy, "Keep replies about the kayak shorter, I told you!")
    prefers = {
        "text": "User prefers short replies about the kayak",
        "sentiment": "very_irritated",
        "occurrences": [{"message": 1, "quote": "Keep replies about the kayak"}],
    }
    answers(
        model,
        lambda r: json.dumps({"to_delete": [numbers_in(r)["User owns a red kayak"]]}),
        lambda r: json.dumps({"preferences": [_at_last(r, prefers)]}),
    )
    dream(messy)
    assert kinds(messy) == ["contradiction", "drop", "merge", "preference"]
    accept_all(messy, [Proposal.objects.get(kind="drop").uuid])
    going = Drawer.objects.within(messy).filter(text__icontains="kayak")
    going.update(trashed_at=timezone.now())
    Purge(messy).run(going)
    assert kinds(messy) == ["contradiction", "merge"]
    assert "kayak" not in words_in_the_database()


def _at_last(request, prefers):
    material = request.prompt.split("<material>\n")[1].split("\n</material>")[0]
    (number,) = [one["message"] for one in json.loads(material) if "I told you" in one["text"]]
    return prefers | {"occurrences": [{"message": number, "quote": "Keep replies about the kayak"}]}


def test_the_command_says_what_it_may_cost_and_what_came_of_it(messy, model, capsys):
    answers(model)
    call_command("dream", owner="alice", estimate=True)
    assert "small-model is asked about 5 facts" in capsys.readouterr().err
    assert model.requests == []
    call_command("dream", owner="alice")
    output = capsys.readouterr()
    assert "Dreamt over 5 facts" in output.out
    assert "2 wait to be decided on" in output.out
    call_command("dream", owner="alice", local=True, json=True)
    assert json.loads(capsys.readouterr().out)["waiting"] == 2


def test_facts_without_vectors_get_them(messy):
    FactVector.objects.all().delete()
    dream(messy)
    assert FactVector.objects.count() == Fact.objects.within(messy).active().count()


def test_a_night_proposes_no_more_than_somebody_would_look_through(palace, hold, monkeypatch):
    monkeypatch.setattr("palace.knowledge.dreaming.proposals.MOST_PROPOSED", 2)
    for what in ("tea", "figs", "golf"):
        for verb in ("likes", "enjoys"):
            hold(f"User {verb} {what}", "likes", what)
    assert dream(palace).proposed.total() == 2
    assert dream(palace).proposed.total() == 1
    assert dream(palace).proposed.total() == 0
