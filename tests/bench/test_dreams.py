"""What was planted is found, little else is, and the played model's slips do no harm."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from bench.management.commands import bench_dreams
from bench.management.commands.bench_dreams import measure, plant, read, scripted_model
from palace.models import Fact
from settings_app.models import MemorySettings


@pytest.mark.exhaustive
def test_the_rules_find_most_of_what_was_planted_and_nothing_else(palace):
    groups = read(40)
    plant(palace, groups)
    merges, contradictions = measure(palace, groups, with_model=False)
    assert merges.figures()["recall"] >= 0.8
    assert contradictions.figures()["recall"] >= 0.9
    assert merges.false == contradictions.false == ()


def test_with_the_played_model_all_of_it_is_found(palace):
    groups = read(12)
    with scripted_model(groups) as address:
        MemorySettings.objects.create(
            owner=palace.owner, provider=address, model="scripted", dream_limit_tokens=10**7
        )
        plant(palace, groups)
        found = measure(palace, groups, with_model=True)
    assert [one.figures()["recall"] for one in found] == [1.0, 1.0]
    assert Fact.objects.within(palace).active().count() == sum(len(g.facts) for g in groups)


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
def test_the_command_prints_both(capsys):
    call_command("bench_dreams", limit=4)
    output = capsys.readouterr()
    line = json.loads(output.out)
    assert line["rules"]["merge"]["planted"] == line["model"]["merge"]["found"] == 4
    assert "precision" in output.err


def test_a_line_that_is_none_is_said(monkeypatch, tmp_path):
    for kind in bench_dreams.KINDS:
        (tmp_path / f"{kind}.txt").write_text("likes | tea\n", encoding="utf-8")
    monkeypatch.setattr(bench_dreams, "FOLDER", tmp_path)
    with pytest.raises(CommandError, match=r"duplicates.txt:1"):
        call_command("bench_dreams")
