"""`manage.py load`: what a run says of its answers, and that a short run goes through."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from bench.management.commands.load import Answer, Memory, figures


def answers_of(kind, times, status=200, *, says_when=False):
    return [Answer(kind, 0.0, ms, status, says_when) for ms in times]


def test_times_are_of_good_answers_alone():
    found = figures(
        [*answers_of("recall", [10.0] * 98 + [40.0] * 2), *answers_of("recall", [1], 503)]
    )
    assert found["kinds"]["recall"]["answers"] == {"200": 100, "503": 1}
    assert (found["kinds"]["recall"]["p50_ms"], found["kinds"]["recall"]["p99_ms"]) == (10, 40)
    assert found["recall_p99_to_p50"] == 4


def test_a_refusal_has_to_say_when_to_come_again():
    said = answers_of("pages", [1, 1], 503, says_when=True)
    found = figures([*said, *answers_of("turns", [1], 429), *answers_of("turns", [1], 0)])
    assert (found["refused"], found["refused_without_retry_after"], found["failed"]) == (3, 1, 1)
    assert found["recall_p99_to_p50"] is None


def test_memory_that_grows_is_seen():
    memory = Memory(installation=None)
    memory.samples["web"] += [50.0, *[100.0] * 20, *[150.0] * 10]
    assert memory.growth()["web"] == {"early_mb": 100, "late_mb": 150, "times": 1.5}


def test_the_webs_memory_is_noted_beside_the_messages_of_that_minute():
    memory = Memory(installation=None)
    for minute, megabytes in enumerate([380.2, 401.6]):
        memory.samples["web"].append(megabytes)
        memory.note(minute, 500 * minute)
    assert memory.series == [
        {"minute": 0, "web_mb": 380, "drawers": 0},
        {"minute": 1, "web_mb": 402, "drawers": 500},
    ]


def test_without_the_load_tool_it_says_how_to_get_it(tmp_path):
    with pytest.raises(CommandError, match="`make load` installs it"):
        call_command("load", locust=tmp_path / "none")


def test_no_time_is_no_run():
    with pytest.raises(CommandError, match="above 0"):
        call_command("load", minutes=0)


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
def test_both_loads_are_run_and_measured(tmp_path, settings, capsys):
    locust = settings.BASE_DIR / ".loci" / "load" / "bin" / "locust"
    if not locust.is_file():
        pytest.skip("`make load` installs the load tool.")
    call_command("load", minutes=0.5, log=tmp_path / "runs.jsonl")
    record = json.loads(capsys.readouterr().out)
    assert record == json.loads((tmp_path / "runs.jsonl").read_text())
    for share in ("at_80", "at_200"):
        assert record[share]["kinds"]["recall"]["answers"]["200"] > 0
        assert record[share]["kinds"]["pages"]["answers"]["200"] > 0
        assert record[share]["refused_without_retry_after"] == 0
    assert record["memory"]["web"]["late_mb"] > 0
    assert record["web_by_minute"][0]["web_mb"] > 0
    assert record["web_by_minute"][0]["drawers"] > 0
