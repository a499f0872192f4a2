from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import date
from decimal import Decimal

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.utils import timezone
from pydantic import ValidationError

from llm import usage
from llm.embedding import EmbeddingModel, deployment_model, embed
from llm.errors import ModelUnavailable
from llm.models import CachedEmbedding, Usage, hold_free_calls
from llm.usage import PriceTable

TABLE = usage.price_table()
TODAY = date(2026, 11, 20)


def test_the_table_is_whole_and_says_when_each_price_was_noted():
    assert len(TABLE.models) > 20
    for name, price in TABLE.models.items():
        assert price.input > 0
        assert price.output >= price.input or "embedding" in name
        assert date(2025, 1, 1) <= price.noted_on <= timezone.now().date()


def test_a_model_is_found_without_its_vendor_and_its_date():
    plain = TABLE.find("gpt-4o-mini", TODAY)
    assert plain == TABLE.find("openai/gpt-4o-mini", TODAY)
    assert plain == TABLE.find("gpt-4o-mini-2024-07-18", TODAY)
    assert TABLE.find("claude-sonnet-4-5-20250929", TODAY) == TABLE.find(
        "anthropic/claude-sonnet-4-5", TODAY
    )
    assert TABLE.find("gpt-4o-mini-turbo", TODAY) is None


def test_a_price_known_to_end_is_not_used_afterwards():
    assert TABLE.find("gemini-3.8-flash", date(2026, 12, 31)) is not None
    assert TABLE.find("gemini-3.8-flash", date(2027, 1, 1)) is None


@pytest.mark.parametrize(
    "row",
    [
        '{"input": "-1", "output": "1", "noted_on": "2026-01-01"}',
        '{"input": "1", "output": "1"}',
        '{"input": "1", "output": "1", "noted_on": "2026-01-01", "cents": "1"}',
    ],
)
def test_a_wrong_table_is_refused(row):
    text = '{"unit": "US dollars per million tokens", "models": {"m": ' + row + "}}"
    with pytest.raises(ValidationError):
        PriceTable.model_validate_json(text)


def record(**given):
    call = {"purpose": "chat", "provider": "openai", "model": "gpt-4o-mini", "duration_ms": 12.6}
    return usage.record(**(call | given))


@pytest.mark.django_db
def test_the_cost_is_counted_from_the_table():
    row = record(tokens_in=2_000_000, tokens_out=1_000_000)
    row.refresh_from_db()
    assert row.cost_usd == Decimal("0.90")
    assert row.duration_ms == 13


@pytest.mark.django_db
def test_a_price_not_known_is_left_open():
    assert record(model="something-new", tokens_in=5).cost_usd is None


@pytest.mark.django_db
def test_ones_own_models_cost_nothing():
    assert record(provider="ollama", model="gpt-4o-mini", tokens_in=5).cost_usd == 0


@pytest.mark.django_db
def test_an_address_is_kept_without_its_password():
    assert record(provider="https://me:secret@example.org/v1").provider == "https://example.org/v1"


@pytest.mark.django_db
def test_a_purpose_nobody_knows_is_refused():
    with pytest.raises(ValueError, match="gossip"):
        record(purpose="gossip")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("error", "outcome"),
    [(ModelUnavailable("Down."), "model_unavailable"), (KeyError("a bug"), "crashed")],
)
def test_a_failed_call_is_metered_too(error, outcome):
    def call():
        with usage.metered(purpose="chat", provider="openai", model="gpt-4o-mini") as meter:
            meter.tokens_in = 3
            raise error

    with pytest.raises(type(error)):
        call()
    row = Usage.objects.get()
    assert (row.outcome, row.tokens_in) == (outcome, 3)


def test_usage_goes_with_its_owner(alice):
    record(owner_id=alice.pk)
    alice.delete()
    assert not Usage.objects.exists()


def test_a_call_for_an_account_deleted_meanwhile_is_not_kept(alice, bob):
    gone = alice.pk
    with usage.metered(
        purpose="chat", provider="openai", model="gpt-4o-mini", owner_id=gone
    ) as meter:
        meter.tokens_in = 3
        alice.delete()
    assert not Usage.objects.exists()
    connection.check_constraints()  # No row of nobody's waits for the end of the transaction.
    record(owner_id=bob.pk)
    assert Usage.objects.get().owner == bob


def test_what_was_embedded_for_an_account_deleted_meanwhile_is_not_lost(alice):
    gone = alice.pk
    alice.delete()
    model = EmbeddingModel("local", "all-MiniLM-L6-v2", 384)
    assert embed(["The kettle is on."], model, owner_id=gone).shape == (1, 384)
    assert not Usage.objects.exists()
    assert CachedEmbedding.objects.count() == 1
    connection.check_constraints()


@pytest.mark.django_db(transaction=True)
def test_a_call_that_ends_while_its_account_is_deleted_waits_and_is_not_kept(alice):
    """The other way round each would undo the other: a row of nobody's, or an account kept."""

    def call():
        try:
            return record(owner_id=alice.pk)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as thread:
        with transaction.atomic():
            get_user_model().objects.select_for_update().get(pk=alice.pk)
            kept = thread.submit(call)
            with pytest.raises(TimeoutError):
                kept.result(timeout=0.3)
            get_user_model().objects.filter(pk=alice.pk).delete()
        assert kept.result(timeout=60) is None
    assert not Usage.objects.exists()


def test_free_calls_held_back_are_stored_as_the_block_ends(alice):
    with hold_free_calls():
        embed(["one"], deployment_model(), owner_id=alice.pk, is_question=True)
        embed(["two"], deployment_model(), owner_id=alice.pk, is_question=True)
        assert not Usage.objects.exists()
    assert Usage.objects.filter(owner=alice, purpose="memory_embed").count() == 2


def test_calls_held_back_are_stored_whatever_becomes_of_their_caller(alice):
    @hold_free_calls()
    def fail():
        embed(["one"], deployment_model(), owner_id=alice.pk, is_question=True)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert Usage.objects.filter(owner=alice).count() == 1


def test_a_call_that_costs_something_is_never_held_back(alice):
    with hold_free_calls():
        record(owner_id=alice.pk)
        assert Usage.objects.filter(owner=alice).count() == 1
