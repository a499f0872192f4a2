from __future__ import annotations

import json
import logging
from urllib.parse import urlsplit

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.urls import reverse

from bench.management.commands.bench_pages import Browser, Page, pages_of, pooled, session_of
from bench.mined_rows import mine_alike
from bench.synthetic_palace import conversations
from config.audit import audit_palace
from palace.mining.pipeline import mine_many
from palace.models import Drawer, Mention, Passage
from palace.recall import RecallRequest, recall
from settings_app.accounts import one_time_link, redeem
from settings_app.models import Session
from tests.factories import FactFactory


@pytest.fixture
def measured(transactional_db, capsys):
    call_command("bench_pages", drawers=120, repeats=2)
    said = capsys.readouterr()
    return json.loads(said.out.strip().splitlines()[-1]), said.err


@pytest.mark.exhaustive
def test_every_page_is_measured_with_its_queries(measured):
    report, table = measured
    pages = report["pages"]
    assert {
        "memory",
        "memory, searched",
        "wing_detail",
        "room_detail",
        "closet_detail",
        "drawer_detail",
        "activities",
        "trash",
        "imports",
        "import_detail",
        "inbox",
        "costs",
        "facts",
        "fact_detail",
        "entity_detail",
        "settings",
        "chat",
        "conversation_detail",
    } <= set(pages)
    for name, page in pages.items():
        assert 0 < page["p50_ms"] <= page["p95_ms"]
        assert page["queries"] > 0
        assert name in table
    budgets = report["budgets"]
    assert [budget["most"] for budget in budgets.values()] == [2.5, 1000, 120_000, 0, 60_000]
    for name, budget in budgets.items():
        assert budget["figure"] > 0 or budget["most"] == 0
        assert budget["met"] == (budget["figure"] <= budget["most"])
        assert name in table
    # All twenty messages shown, and not the thousand there are.
    assert 10_000 < pages["conversation_detail"]["bytes"] < 200_000
    assert not Drawer.objects.exists()


def test_nothing_is_measured_that_would_be_empty():
    with pytest.raises(CommandError, match="at least 100 drawers"):
        call_command("bench_pages", drawers=10)


@pytest.mark.exhaustive
def test_looking_at_pages_leaves_one_time_links_valid_and_no_session(alice, palace):
    fact = FactFactory(subject__palace=palace)
    link = one_time_link(alice)
    with session_of(alice) as key:
        found = {page.name: page.address for page in pages_of(Browser(key), palace)}
    assert found["fact_detail"] == reverse("fact_detail", args=[fact.memory])
    assert redeem(urlsplit(link).path.split("/")[-2]) == alice
    assert not Session.objects.exists()


def test_requests_share_a_connection_while_they_are_measured(transactional_db, alice):
    page, processes = Page("keyboard", reverse("keyboard")), set()
    with session_of(alice) as key, pooled():
        for _ in range(3):
            Browser(key).measure(page, page.address)
            processes.add(connection.connection.info.backend_pid)
    assert len(processes) == 1
    assert len(page.cpu_ms) == 3
    assert min(page.cpu_ms) > 0
    assert connection.pool is None


def test_what_was_logged_before_is_logged_after(alice, palace):
    logging.disable(logging.ERROR)
    try:
        with session_of(alice) as key:
            pages_of(Browser(key), palace)
        assert logging.root.manager.disable == logging.ERROR
    finally:
        logging.disable(logging.NOTSET)


def test_conversations_mined_alike_are_whole_and_found(palace):
    said = list(conversations(400))
    mine_many(palace, said[:5])
    mine_alike(palace, said[5:])
    assert [each for each in audit_palace(palace) if each.wrong] == []
    drawers = Drawer.objects.within(palace)
    assert drawers.count() == 400
    assert not drawers.unmined().exists()
    assert Passage.objects.filter(palace=palace, embedding__isnull=False).count() == 400
    assert Mention.objects.filter(palace=palace, drawer__room__number__gt=5).exists()
    last = drawers.order_by("pk").last()
    found = recall(palace, RecallRequest(last.text, recipe="default", rerank=False))
    assert any(hit.drawer.room.number > 5 for hit in found.hits)
