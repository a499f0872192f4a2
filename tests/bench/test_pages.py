from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from palace.models import Drawer


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
