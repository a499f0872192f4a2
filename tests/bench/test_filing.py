"""How conversations are filed, measured on a data set."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from bench.logs import Log

TALK = """\
= mirek | en | Mirek, 58, keeps bees.

@ c01 | 2024-03-02T19:40+01:00 | assistant | A title that is withheld
user: I want to build a personal hive tracker in Python.
assistant: What should it store?
user: My hive tracker stores the weight of each hive, since yesterday.
assistant: Noted.

@ c02 | 2024-05-01T08:00+02:00 | friends
Mirek: Jana!
Jana: Mirek!
Mirek: I live in Brno.
"""


@pytest.fixture
def people(tmp_path):
    folder = tmp_path / "people" / "mirek"
    folder.mkdir(parents=True)
    (folder / "talk.txt").write_text(TALK, encoding="utf-8")
    (folder / "questions.jsonl").write_text("", encoding="utf-8")
    return folder.parent


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
def test_each_room_is_shown_and_counted(people, tmp_path, capsys):
    log, facts, proposals = (tmp_path / f"{what}.jsonl" for what in ("rooms", "facts", "dreams"))
    options = {"rooms": log, "facts": facts, "proposals": proposals}
    call_command("bench_filing", dataset="locibench", data=people, **options)
    report = json.loads(capsys.readouterr().out)
    first, second = Log(log).lines()
    assert (first["kind"], first["wing"]) == ("project", "Hive tracker")
    assert first["title"] != "A title that is withheld"
    assert second["wing"] == "Jana & Mirek"
    assert [drawer["beyond"] for drawer in second["drawers"]] == [False, False, True]
    assert report["wings"] == {"mirek": {"Hive tracker": 1, "Jana & Mirek": 1}}
    assert (report["rooms"], report["messages"], report["in_largest_wing"]["value"]) == (2, 7, 0.5)
    held = {fact["fact"]: fact for fact in Log(facts).lines()}
    assert held["Mirek lives in Brno"]["words"] in held["Mirek lives in Brno"]["message"]
    assert Log(proposals).lines() == []
    assert (report["dreams"]["proposed"], report["dreams"]["rooms"]) == ({}, 0)
    dated = [drawer["tags"].get("t") for drawer in first["drawers"]]
    assert dated[2] == ["2024-03-01"]


def test_a_folder_that_is_no_data_set_is_refused(tmp_path):
    with pytest.raises(CommandError, match="no part of the corpus"):
        call_command("bench_filing", dataset="locibench", data=tmp_path / "nowhere")
