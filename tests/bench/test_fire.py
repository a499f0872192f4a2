"""`manage.py fire`: what is lost or doubled is found, and a short run goes through."""

from __future__ import annotations

import json
import random
from typing import Literal

import pytest
from django.core.management import CommandError, call_command
from pydantic import BaseModel

from bench.fire import CHANGED, EVERYTHING, MINED, Events, compare, schedule, scripted_model
from bench.fire.faults import BY_CLOCK, FAULTS, IN_UPGRADE, ON_DISK
from bench.fire.ledger import Ledger, Words
from bench.fire.recovery import _Read, _recovered_in
from bench.management.commands.fire import summary
from bench.model_server import Request
from bench.stub_servers import Heard

ONE, TWO = Words("ada", "one"), Words("ada", "two")


def test_what_was_acknowledged_and_is_not_there_is_lost():
    ledger = Ledger()
    for words in (ONE, TWO):
        ledger.offer(words)
    ledger.accept(ONE)
    assert ledger.compare({}).counts() == {"lost": 1, "doubled": 0, "returned": 0}
    assert ledger.compare({ONE: 1}).counts() == {"lost": 0, "doubled": 0, "returned": 0}
    # Nobody knows of the other one.
    assert ledger.compare({ONE: 1, TWO: 1}).counts() == {"lost": 0, "doubled": 0, "returned": 0}
    assert list(ledger.compare({}).examples()) == ["lost: ada: one"]


def test_in_another_palace_it_is_lost_as_well():
    ledger = Ledger()
    ledger.offer(ONE)
    ledger.accept(ONE)
    assert ledger.compare({Words("bob", "one"): 1}).lost == [ONE]


def test_what_is_there_twice_is_doubled_acknowledged_or_not():
    ledger = Ledger()
    for words in (ONE, TWO):
        ledger.offer(words)
    ledger.accept(ONE)
    assert ledger.compare({ONE: 2, TWO: 2}).doubled == [ONE, TWO]


def test_what_was_deleted_and_is_there_has_returned():
    ledger = Ledger()
    ledger.offer(ONE)
    ledger.accept(ONE)
    ledger.deleting([ONE])
    assert not any(ledger.compare({}).counts().values())
    assert not any(ledger.compare({ONE: 1}).counts().values())
    ledger.deleted([ONE])
    assert ledger.compare({ONE: 1}).returned == [ONE]


def test_what_is_sent_until_it_is_acknowledged_is_unfinished_work():
    ledger = Ledger()
    ledger.offer(ONE, until_accepted=True)
    ledger.offer(TWO)
    assert ledger.waiting_since(float("inf")) == {"write one"}
    assert ledger.waiting_since(0) == set()
    ledger.accept(ONE)
    assert ledger.waiting_since(float("inf")) == set()


def test_readers_are_back_with_the_first_good_answer_after_the_last_bad_one():
    answers = ((0, 1, "good"), (1, 3, ""), (3, 4, "good"), (4, 6, ""), (6, 7, "good"), (20, 21, ""))
    reads = [_Read(began, ended, good=bool(answer)) for began, ended, answer in answers]
    assert _recovered_in(reads, 2, until=10) == 5
    assert _recovered_in(reads, 6.5, until=10) == 0
    assert _recovered_in(reads[:4], 2, until=10) == 8


def test_a_seed_decides_what_comes_and_every_kind_comes_before_one_comes_again():
    names = [*FAULTS, *ON_DISK, *BY_CLOCK, *IN_UPGRADE]
    dealt = schedule(random.Random(3), 40, names)  # noqa: S311
    assert dealt == schedule(random.Random(3), 40, names)  # noqa: S311
    assert len(dealt) == 40
    assert set(dealt[: len(names)]) == set(names) == set(EVERYTHING)


def run_of(*faults, **figures):
    usual = {"lost": 0, "doubled": 0, "returned": 0, "audit_failed": 0, "never_finished": 0}
    injected = [{"fault": name, "readers_s": r, "unfinished_s": u} for name, r, u in faults]
    return {**usual, "refused": 0, "accepted": 10, "injected": injected, **figures}


def test_runs_are_summed():
    runs = [run_of(("web killed", 3.0, 9.0), ("web killed", 5.0, None), lost=1), run_of()]
    found = summary(runs)
    assert (found["runs"], found["faults"], found["lost"], found["accepted"]) == (2, 2, 1, 20)
    assert (found["readers_p95_s"], found["unfinished_p95_s"]) == (5.0, 9.0)
    assert found["kinds"]["web killed"] == {"faults": 2, "readers_s": 5.0, "unfinished_s": 9.0}


def test_a_lie_has_the_form_that_was_asked_for_and_says_what_nobody_said():
    class Found(BaseModel):
        subject: str
        drawer: int
        until: str | None
        stance: Literal["likes", "dislikes"]

    class Answer(BaseModel):
        found: list[Found]

    form = {"type": "json_schema", "json_schema": {"schema": Answer.model_json_schema()}}
    request = Request("/v1/chat/completions", {}, {"response_format": form, "messages": []})
    lies = Answer.model_validate_json(scripted_model.FAILURES["lying"](request)).found
    assert [lie.drawer for lie in lies] == [999, 999]
    assert {lie.stance for lie in lies} == {"likes", "dislikes"}
    assert {lie.subject for lie in lies} <= set(scripted_model.FALSEHOODS)


def test_only_later_runs_are_summed_where_that_is_asked(tmp_path, capsys):
    log = tmp_path / "runs.jsonl"
    runs = [{"at": f"2026-01-0{day}T00:00:00+00:00", **run_of()} for day in (1, 2)]
    log.write_text("".join(f"{json.dumps(run)}\n" for run in runs))
    call_command("fire", "--summary", "--log", log, "--since", "2026-01-02")
    assert json.loads(capsys.readouterr().out)["runs"] == 1


def delivered(about, message, *, kind=CHANGED, reply=204):
    data = {"change" if kind == CHANGED else "activity": about}
    body = json.dumps({"type": kind, "data": data}).encode()
    return Heard("/hook", {"webhook-id": message}, body, reply)


def test_an_event_that_neither_arrived_nor_waits_is_lost():
    heard = [delivered("a", "1"), delivered("b", "2", reply=500), delivered("c", "3", reply=500)]
    events = compare(["a", "b", "c", "d"], {"b"}, heard)
    assert events.lost == ["c", "d"]
    assert events.doubled == []
    assert events.counts()["events_arrived"] == 1


def test_a_change_that_arrives_under_two_ids_is_doubled():
    heard = [delivered("a", "1"), delivered("a", "1"), delivered("b", "2"), delivered("b", "3")]
    events = compare(["a", "b"], set(), heard)
    assert events.doubled == ["b"]
    assert events.again == 1
    # A run of mining grows, and each growth is an event.
    assert compare(
        ["m"], set(), [delivered("m", "1", kind=MINED), delivered("m", "2", kind=MINED)]
    ) == (Events(arrived=1, again=0, lost=[], doubled=[]))


def test_no_fault_is_no_run():
    with pytest.raises(CommandError, match="at least 1"):
        call_command("fire", faults=0)


@pytest.mark.lengthy
@pytest.mark.exhaustive
@pytest.mark.timeout(900)
def test_after_a_fault_nothing_is_lost(tmp_path, capsys):
    log = tmp_path / "runs.jsonl"
    call_command("fire", faults=1, seed=1, log=log)
    record = json.loads(capsys.readouterr().out)
    assert record == json.loads(log.read_text())
    assert record["accepted"] > 20
    assert record["faults"] == 1
    assert record["events_arrived"] > 0
    call_command("fire", summary=True, log=log)
    assert json.loads(capsys.readouterr().out)["faults"] == 1
