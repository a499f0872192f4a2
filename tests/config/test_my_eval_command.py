"""`manage.py my_eval`: recipes scored on the owner's own cases."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from palace.models import Drawer, RecollectionTrace
from palace.recall.evaluation import expect, without_model
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from tests.conversations import EVERYTHING
from tests.furnished_palaces import furnish_with


@pytest.fixture
def saved(palace):
    """One case that recall gets right and one it cannot."""
    furnish_with(palace, *EVERYTHING)
    for question, words in (
        ("Which wire overheated?", "12-AWG"),
        ("What did we say about the wire?", "We booked a flat in Alfama"),
    ):
        found = recall(palace, RecallRequest(question))
        trace = RecollectionTrace.objects.get(uuid=found.uuid)
        expect(trace, Drawer.objects.get(text__contains=words))


def my_eval(capsys, **options):
    call_command("my_eval", owner="alice", **options)
    return capsys.readouterr().out


def test_every_recipe_without_a_model_is_scored(saved, capsys):
    said = my_eval(capsys)
    assert "2 of 2 cases count." in said
    lines = {line.split()[0]: line.split()[1:] for line in said.splitlines() if line[:1].isalpha()}
    for name in without_model():
        assert lines[name][:2] == ["0.500", "0.500"]


def test_it_lists_what_failed_and_where_it_came(saved, capsys):
    said = my_eval(capsys, recipes=["default"])
    failed = said.split("default: not among the first five")[1]
    assert "What did we say about the wire?" in failed
    assert str(Drawer.objects.get(text__contains="Alfama for our trip")) in failed
    assert "Which wire overheated?" not in failed


def test_one_line_for_programs(saved, capsys):
    (line,) = my_eval(capsys, recipes=["keyword", "keyword"], json=True).splitlines()
    said = json.loads(line)
    assert (said["cases"], said["scored"], list(said["recipes"])) == (2, 2, ["keyword"])
    assert said["recipes"]["keyword"]["metrics"]["any@5"] == 0.5
    (failed,) = said["recipes"]["keyword"]["failed"]
    assert failed["missed"][0]["pointer"].startswith("§ W-")


def test_no_trial_leaves_a_trace(saved, capsys):
    before = RecollectionTrace.objects.count()
    my_eval(capsys)
    assert RecollectionTrace.objects.count() == before


def test_what_is_in_the_trash_is_reported(saved, capsys):
    Drawer.objects.get(text__contains="Alfama for our trip").trash()
    said = my_eval(capsys, recipes=["default"])
    assert "1 of 2 cases count." in said
    assert "1 expected drawer is in the trash and left out." in said
    assert "default: all came among the first five." in said


def test_where_nothing_counts_there_are_no_figures(saved, capsys):
    for drawer in Drawer.objects.all():
        drawer.trash()
    assert "0 of 2 cases count." in my_eval(capsys)
    said = json.loads(my_eval(capsys, json=True))
    assert said["recipes"]["default"]["metrics"] == {}
    assert said["skipped"] == {"nothing left to find": 2}


def test_without_cases_it_says_how_to_save_one(palace, capsys):
    assert "say which drawer should have been found" in my_eval(capsys)
    assert json.loads(my_eval(capsys, json=True))["cases"] == 0


def test_an_unknown_recipe_is_refused_with_those_there_are(saved):
    with pytest.raises(CommandError, match="default"):
        call_command("my_eval", owner="alice", recipes=["secret"])


def test_another_owners_cases_are_not_scored(saved, bob, capsys):
    call_command("my_eval", owner="bob")
    assert "There are no cases yet." in capsys.readouterr().out
