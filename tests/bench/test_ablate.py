"""`manage.py ablate`: what is lost without each signal."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from bench.management.commands import ablate as command
from bench.runs import drop_schema, schemas
from palace.models import Drawer
from palace.recall import STAGES
from palace.recall.recipes import RECIPES, SIGNALS
from tests.bench.conversations import LOCOMO

METRICS = {
    "session_recall_any@5",
    "session_recall_all@5",
    "session_recall@10",
    "turn_recall@10",
    "turn_recall@20",
}


@pytest.fixture
def talks(tmp_path):
    """Three people, each of whose questions goes by words alone to one of two talks."""
    path = tmp_path / "talks.json"
    path.write_text(json.dumps([{**LOCOMO[0], "sample_id": f"talk-{n}"} for n in range(3)]))
    return path


@pytest.fixture
def ablate(transactional_db, capsys):
    """The line for programs, and the table for people."""

    def run(path, **options):
        call_command("ablate", locomo=path, **options)
        said = capsys.readouterr()
        return json.loads(said.out.strip().splitlines()[-1]), said.err

    yield run
    for name in (*schemas("train_"), *schemas("bench_locomo_apart")):
        drop_schema(name)


@pytest.mark.exhaustive
def test_each_signal_is_taken_out_in_turn(ablate, talks):
    said, table = ablate(talks)
    assert (said["recipe"], said["refit"], set(said["data"])) == ("default", False, {"locomo"})
    assert said["all"]["locomo"].keys() == METRICS
    assert set(said["without"]) == set(SIGNALS)
    for signal, lost in said["without"].items():
        assert lost["locomo"].keys() == METRICS
        assert all(-1 <= value <= 1 for value in lost["locomo"].values())
        assert f"without {signal} " in table
    assert "all signals" in table
    assert not Drawer.objects.exists(), "The user's own palace is left alone."


@pytest.mark.exhaustive
def test_what_is_lost_is_the_difference(ablate, talks):
    """Of one signal after the other nothing is left: what is lost is never more than all."""
    said, _ = ablate(talks, features=True)
    assert set(said["without"]) == set(RECIPES["default"].weights)
    whole = said["all"]["locomo"]
    for lost in said["without"].values():
        assert all(0 <= whole[name] + value <= 1 for name, value in lost["locomo"].items())


@pytest.mark.exhaustive
def test_by_words_only_signals_of_words_are_taken_out(ablate, talks):
    said, _ = ablate(talks, recipe="keyword")
    assert not {"meaning", "agreement"} & set(said["without"])
    assert "words" in said["without"]


@pytest.mark.exhaustive
def test_weights_can_be_fitted_anew_without_the_signal(ablate, talks):
    said, _ = ablate(talks, refit=True)
    assert said["refit"] is True
    assert set(said["without"]) == set(SIGNALS)
    assert said["all"]["locomo"]["session_recall_any@5"] == 1


@pytest.mark.exhaustive
def test_stages_are_taken_out_of_whole_recalls(ablate, talks, tmp_path, monkeypatch):
    call_command("locomo", "ingest", data=talks, run_id="apart", out=tmp_path)
    monkeypatch.setattr(command, "MEASURED", tmp_path / "stages.json")
    said, table = ablate(talks, stages=True, run_id="apart", write=True)
    off = {"semantic", "keyword", "temporal", "preference", "graph", "floor"}
    assert said["stages"].keys() == {"all", *off}
    whole = said["stages"]["all"]
    assert (whole["turn_recall@10"], whole["ms_less"]) == (1, 0)
    assert all(row["questions"] == whole["questions"] for row in said["stages"].values())
    assert "temporal" in table
    kept = json.loads((tmp_path / "stages.json").read_text())["stages"]
    assert [row["name"] for row in kept] == list(STAGES)
    assert {row["name"] for row in kept if "ms" in row} == off


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"stages": True}, "Name at least one data set"),
        ({}, "Name at least one data set"),
        ({"beam": "/nowhere"}, "does not exist"),
        ({"recipe": "souffle"}, "no recipe 'souffle'"),
    ],
)
def test_what_cannot_be_measured_is_told_in_a_sentence(options, why):
    given = [
        f"--{name}" if value is True else f"--{name}={value}" for name, value in options.items()
    ]
    with pytest.raises(CommandError, match=why):
        call_command("ablate", *given)
