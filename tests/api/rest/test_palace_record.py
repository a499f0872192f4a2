from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from llm.models import Usage
from palace.mining.pipeline import mine
from palace.models import Activity, Palace
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from settings_app.models import MemorySettings, settings_of
from tests.api.rest.conftest import client_of
from tests.conversations import BATTERY, LISBON
from tests.factories import DrawerFactory, PalaceFactory, RoomFactory, WingFactory

PROVIDERS_KEY = "sk-secret-of-the-provider"


@pytest.fixture
def palace(owner):
    return PalaceFactory(owner=owner, subject="ada")


def test_a_recall_says_which_signals_add_up_to_each_score_and_what_was_cut(program, palace):
    for one in (BATTERY, LISBON):
        mine(palace, one)
    recall(palace, RecallRequest("Which battery?", top_k=2, budget_tokens=60))
    found = recall(palace, RecallRequest("Which battery?", top_k=2))
    row, short = program.get("/v1/recollections/?user_id=ada").json()["results"]
    assert (row["query"], row["hits"]) == ("Which battery?", 2)
    whole, short = (
        program.get(f"/v1/recollections/{each['id']}/?user_id=ada").json() for each in (row, short)
    )
    assert whole["context"] == found.context
    assert [hit["drawer"] for hit in whole["hits"]] == [str(h.drawer.uuid) for h in found.hits]
    assert whole["cut"], "More was said than came."
    for each in (*whole["hits"], *whole["cut"]):
        assert sum(each["signals"].values()) == pytest.approx(each["score"], abs=0.006)
    assert {each["why"] for each in whole["cut"]} <= {"ranked_lower", "too_far"}
    assert {hit["left_out"] for hit in whole["hits"]} == {None}
    assert {hit["left_out"] for hit in short["hits"]} == {"no_room"}
    assert whole["reading"]["terms"]
    assert whole["figures"]["tokens"] == found.context_tokens > short["figures"]["tokens"]


def test_what_was_done_is_listed_by_kind(program, palace):
    room = RoomFactory(wing=WingFactory(palace=palace))
    ids = [DrawerFactory(room=room).uuid for _ in range(2)]
    for each in ids:
        program.delete(f"/v1/drawers/{each}/?user_id=ada")
    program.post("/v1/trash/restore/?user_id=ada", {"drawers": [str(ids[0])]})
    done = program.get("/v1/activity/?user_id=ada").json()["results"]
    kinds = [each["kind"] for each in done]
    assert kinds == ["drawers_restored", "drawers_trashed", "drawers_trashed"]
    of_kind = program.get("/v1/activity/?user_id=ada&kind=drawers_restored").json()["results"]
    assert of_kind == done[:1]
    assert program.get("/v1/activity/?kind=nonsense").status_code == 400
    assert Activity.objects.count() == 3
    assert program.get("/v1/activity/").json()["results"] == []


def test_an_admin_of_all_palaces_reads_costs_by_month_and_purpose(owner, stranger, program):
    MemorySettings.objects.create(owner=owner, time_zone="Pacific/Auckland")
    for whose, cost in ((owner, "0.25"), (owner, None), (stranger, "9")):
        Usage.objects.create(
            owner=whose,
            purpose="chat",
            provider="p",
            model="m",
            tokens_in=10,
            duration_ms=1,
            cost_usd=cost and Decimal(cost),
        )
    # In Auckland it is the next month already.
    Usage.objects.filter(owner=owner).update(created_at=datetime(2026, 1, 31, 13, tzinfo=UTC))
    usage = program.get("/v1/usage/?year=2026").json()
    (month,) = usage["months"]
    assert (month["month"], month["purpose"], month["calls"]) == ("2026-02-01", "chat", 2)
    assert usage["total"] == {
        "calls": 2,
        "failed": 0,
        "tokens_in": 20,
        "tokens_out": 0,
        "cost_usd": "0.25000000",
        "unpriced": 1,
    }
    bound = client_of(owner, subject="")
    reader = client_of(owner, scopes=("read", "write"))
    for address in ("usage", "settings"):
        assert bound.get(f"/v1/{address}/").json()["code"] == "wrong_palace"
    for address in ("usage", "palaces"):
        assert reader.get(f"/v1/{address}/").json()["code"] == "missing_scope"


def test_settings_are_changed_as_on_the_page_and_never_tell_a_key(program, owner):
    before = program.get("/v1/settings/")
    assert (before.json()["provider"], before.json()["has_key"]) == ("server", False)
    change = {
        "provider": "openai",
        "model": "gpt-5-mini",
        "api_key": PROVIDERS_KEY,
        "top_k": 9,
        "dream_limit_usd": "0.5",
        "dream_trusted": [],
        "time_zone": "Europe/Berlin",
    }
    changed = program.patch("/v1/settings/", change, HTTP_IF_MATCH=before["ETag"])
    assert changed.status_code == 200, changed.content
    assert changed.json() == program.get("/v1/settings/").json()
    assert changed.json()["has_key"]
    assert (changed.json()["top_k"], changed.json()["dream_limit_usd"]) == (9, "0.5")
    assert PROVIDERS_KEY not in changed.content.decode()
    assert settings_of(owner.pk).endpoint().api_key == PROVIDERS_KEY
    late = program.patch("/v1/settings/", {"top_k": 3}, HTTP_IF_MATCH=before["ETag"])
    assert late.status_code == 412

    for wrong, field in (
        ({"top_k": 8, "provider": "address"}, "base_url"),
        ({"top_k": 8, "time_zone": "Nowhere/Land"}, "time_zone"),
        ({"top_k": 8, "dreams": "always"}, "dreams"),
    ):
        refused = program.patch("/v1/settings/", wrong)
        assert (refused.status_code, list(refused.json()["errors"])) == (400, [field])
    assert program.get("/v1/settings/").json() == changed.json()
    assert changed.json()["awaits_consent"]
    assert "its owner is asked first" in changed.json()["note"]
    refused = program.patch("/v1/settings/", {"uses": ["gossip"]})
    assert (refused.status_code, [*refused.json()["errors"]]) == (400, ["uses"])
    priced = {"price_input": "0.5", "price_output": "2"}
    assert program.patch("/v1/settings/", priced).json()["awaits_consent"]
    agreed = program.patch("/v1/settings/", {"uses": ["replies", "facts"]}).json()
    assert (agreed["awaits_consent"], agreed["uses"]) == (False, ["replies", "facts"])
    assert float(agreed["price_output"]) == 2
    assert agreed["note"] == ""
    gone = program.patch("/v1/settings/", {"provider": "none"}).json()
    assert (gone["provider"], gone["has_key"], gone["top_k"]) == ("none", False, 9)


def test_the_people_served_are_listed_and_a_bound_key_sees_its_own(program, owner, palace):
    RoomFactory(wing=WingFactory(palace=palace))
    Palace.objects.own(owner)
    PalaceFactory(subject="ada")  # Another owner's.
    listed = program.get("/v1/palaces/").json()["results"]
    assert [each["user_id"] for each in listed] == ["ada", None]
    bound = client_of(owner, subject="ada").get("/v1/palaces/").json()["results"]
    assert [each["id"] for each in bound] == [str(palace.uuid)]
