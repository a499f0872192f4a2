from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from settings_app.models import MemorySettings
from tests.conversations import BATTERY, SOURDOUGH
from tests.furnished_palaces import furnish_with


@pytest.fixture
def alice_remembers(palace):
    furnish_with(palace, BATTERY, SOURDOUGH)


def ask(capsys, *arguments, **options):
    call_command("recall", *arguments, user="alice", **options)
    return capsys.readouterr().out


def test_it_prints_hits_signals_and_the_block(alice_remembers, capsys):
    said = ask(capsys, "Which wire overheated?", top_k=2)
    assert "1. § W-00" in said
    assert "words" in said
    assert "█" in said
    assert "<memory_context>" in said
    assert BATTERY.turns[0].text in said


def test_it_speaks_json_to_programs(alice_remembers, capsys):
    found = json.loads(ask(capsys, "Which wire overheated?", json=True))
    assert found["hits"][0]["text"] == BATTERY.turns[0].text
    assert found["context"].startswith("<memory_context>")


def test_a_model_can_put_the_hits_in_order(alice_remembers, alice, model_server, capsys):
    MemorySettings.objects.create(owner=alice, provider=model_server.base_url, model="cheap")
    model_server.answer('{"order": [2, 1]}')
    said = ask(capsys, "Which wire overheated?", "--rerank", "--top-k", "2")
    assert "A model moved it from place 2 to 1." in said
    found = json.loads(ask(capsys, "Which wire overheated?", "--rerank", json=True))
    assert [hit["place_before"] for hit in found["hits"][:2]] == [2, 1]
    assert "A model" not in ask(capsys, "Which wire overheated?", "--no-rerank")


def test_nothing_found_is_said(alice_remembers, capsys):
    assert "Nothing close" in ask(capsys, "lattice chromodynamics")


def test_the_past_can_be_asked_for(alice_remembers, capsys):
    said = ask(capsys, "bread", "--as-of", "2025-03-05")
    assert SOURDOUGH.turns[0].text not in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["  "], "question is empty"),
        (["wire", "--recipe", "nonsense"], "no recipe"),
        (["wire", "--now", "yesterday"], "invalid"),
    ],
)
def test_a_bad_request_gets_a_sentence(alice_remembers, capsys, arguments, says):
    with pytest.raises(CommandError, match=says):
        ask(capsys, *arguments)


def test_an_unknown_person_gets_a_sentence(db):
    with pytest.raises(CommandError, match="no user with the name or address 'zoe'"):
        call_command("recall", "wire", user="zoe")


def test_before_anybody_signed_up_it_says_what_to_do(db):
    with pytest.raises(CommandError, match="make run"):
        call_command("recall", "wire")
