"""`manage.py fire`: what is lost or doubled is found, and a short run goes through."""

from __future__ import annotations

import json
import random
import time
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Literal

import httpx
import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone
from pydantic import BaseModel

from bench.fire import (
    CHANGED,
    EVERYTHING,
    MINED,
    TRIES,
    Events,
    _inject,
    compare,
    interrupted,
    schedule,
    surroundings,
)
from bench.fire.faults import Missed, in_disorder
from bench.fire.installation import Installation, SecondHome, differing
from bench.fire.interrupted import INTERRUPTED
from bench.fire.proof import FACTS, Ledger, Readers, Watch, Words, _Read, _recovered_in
from bench.management.commands.fire import summary
from bench.model_server import Request
from bench.stub_servers import Heard
from palace.knowledge.dreaming import dream_run
from palace.models import Drawer, ImportJob, Palace
from palace.models.concurrency import held_if_free
from palace.transfer.import_jobs import job_state
from tests import template_database
from tests.conversations import LISBON
from tests.furnished_palaces import furnish_with

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


def dealt(seed, number, names=tuple(EVERYTHING)):
    return schedule(random.Random(seed), number, names)  # noqa: S311


def test_a_seed_decides_what_comes_and_every_kind_comes_before_one_comes_again():
    assert dealt(3, 40) == dealt(3, 40) != dealt(4, 40)
    assert len(dealt(3, 40)) == 40
    assert set(dealt(3, 40)[: len(EVERYTHING)]) == set(EVERYTHING)


@pytest.mark.parametrize("seed", range(5))
def test_thirty_faults_have_each_sort_among_them(seed):
    """There are more kinds than thirty: of programs killed or stopped, and of failing models, some
    are left out, and of nothing else."""
    chosen = dealt(seed, 30)
    assert len(set(chosen)) == 30
    sorts = ("killed", "stopped", "model")
    for name in set(EVERYTHING) - set(chosen):
        assert any(sort in name for sort in sorts), name
    for sort in sorts:
        assert sum(sort in name for name in chosen) >= 5


def test_tasks_in_disorder_are_the_same_in_another_order():
    for seed in range(20):
        other = in_disorder([1, 2, 3], random.Random(seed))  # noqa: S311
        assert other != [1, 2, 3]
        assert sorted(other) == [1, 2, 3]


@pytest.fixture
def injecting(tmp_path, monkeypatch):
    """Injects a fault of the test's own; returns what came of it, and what counts as a fault."""
    watch = Watch(Installation(tmp_path / "home", {}, tmp_path / "log"), Ledger())
    readers = Readers((lambda *_, **__: httpx.Response(200),) * 2)

    def inject(fault):
        monkeypatch.setitem(EVERYTHING, "web killed", fault)
        with readers.asking():
            return [*_inject(SimpleNamespace(), "web killed", readers, watch)], watch.faults

    return inject


def test_what_was_not_at_work_is_tried_again_and_is_no_fault(injecting):
    over = iter([True, True, False])

    @contextmanager
    def fault(_ground):
        if next(over):
            raise Missed("It was over.")
        yield True

    outcomes, faults = injecting(fault)
    assert [str(each) for each in outcomes[:2]] == ["It was over."] * 2
    assert outcomes[2:] == faults
    assert [each.as_json(since=0)["under_way"] for each in faults] == [True]


def test_what_is_never_at_work_is_given_up_and_is_no_fault(injecting):
    @contextmanager
    def fault(_ground):
        raise Missed("It did not begin.")
        yield

    outcomes, faults = injecting(fault)
    assert len(outcomes) == TRIES
    assert faults == []


def test_what_follows_a_kill_does_not_move_the_moment_from_which_recovery_counts(injecting):
    ends = []

    @contextmanager
    def fault(_ground):
        yield True
        ends.append(time.time())

    _, [killed] = injecting(fault)
    assert killed.began <= killed.ended <= ends[0]


def rows(statement, parameters=None):
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall()


def test_a_dream_is_under_way_while_it_holds_its_lock(alice):
    palace = Palace.objects.create(owner=alice, subject=FACTS)
    assert rows(interrupted._DREAMS) == []
    with held_if_free(dream_run._lock_of(palace)):
        assert len(rows(interrupted._DREAMS)) == 1
    assert rows(interrupted._DREAMS) == []


def test_an_import_is_under_way_while_a_worker_holds_its_lock(alice):
    palace = Palace.objects.create(owner=alice, subject="restored")
    job = ImportJob.objects.create(palace=palace, file_name="one", status="running")
    asked = {"subject": "restored"}
    assert rows(interrupted._IMPORT, asked) == [(True, False)]
    with held_if_free(job_state.lock_name(job)):
        assert rows(interrupted._IMPORT, asked) == [(True, True)]
    ImportJob.objects.update(status="done")
    assert rows(interrupted._IMPORT, asked) == [(False, False)]


@pytest.mark.django_db(transaction=True)
def test_a_purge_is_under_way_while_it_has_locked_the_trash(alice):
    palace = Palace.objects.create(owner=alice, subject=interrupted.PURGED)
    furnish_with(palace, LISBON)
    assert rows(interrupted._LEFT) == [(0, 0)]
    Drawer.objects.update(trashed_at=timezone.now())
    assert rows(interrupted._LEFT) == [(2, 0)]
    named = connection.settings_dict
    with psycopg.connect(host=named["HOST"], user=named["USER"], dbname=named["NAME"]) as purge:
        purge.execute("SELECT FROM palace_drawer FOR UPDATE")
        assert rows(interrupted._LEFT) == [(2, 2)]
        purge.rollback()
        assert rows(interrupted._LEFT) == [(2, 0)]


@pytest.mark.exhaustive
def test_the_content_of_a_second_home_is_told_from_another(tmp_path):
    template_database.furnish(tmp_path / "home")
    second = SecondHome(Installation(tmp_path / "home", {}, tmp_path / "log"))
    before = second.content()
    assert second.content() == before
    assert differing(before, before) == ""
    for statement, named in (
        ("DROP POLICY loci_palace ON palace_drawer", "keys and policies"),
        ("INSERT INTO auth_group (name) VALUES ('one')", "auth_group"),
    ):
        with second.loci.layout.services(), psycopg.connect(second.loci.layout.database_url) as it:
            it.execute(statement)
        assert named in differing(second.content(), before)


def run_of(*faults, **figures):
    usual = {"lost": 0, "doubled": 0, "returned": 0, "audit_failed": 0, "never_finished": 0}
    injected = [
        {"fault": name, "readers_s": r, "unfinished_s": u, **dict(more)}
        for name, r, u, *more in faults
    ]
    return {**usual, "refused": 0, "accepted": 10, "injected": injected, **figures}


def test_runs_are_summed():
    runs = [run_of(("web killed", 3.0, 9.0), ("web killed", 5.0, None), lost=1), run_of()]
    found = summary(runs)
    assert (found["runs"], found["faults"], found["lost"], found["accepted"]) == (2, 2, 1, 20)
    assert (found["readers_p95_s"], found["unfinished_p95_s"]) == (5.0, 9.0)
    kind = found["kinds"]["web killed"]
    assert (kind["faults"], kind["readers_s"], kind["unfinished_s"]) == (2, 5.0, 9.0)


def test_the_sum_says_which_kills_hit_running_work_and_what_takes_longest():
    runs = [
        run_of(("web killed", 0.0, 1.0), ("worker killed", 0.0, 4.0, ("under_way", False))),
        run_of(
            ("worker killed", 0.0, 9.0, ("under_way", True), ("slowest", "import")),
            ("worker killed", 0.0, 5.0),
            ("web killed", 0.0, 2.0, ("under_way", None)),
            missed=3,
            never_hit=1,
        ),
    ]
    found = summary(runs)
    assert found["under_way"] == {"of": 2, "hit": 1}
    assert (found["missed"], found["never_hit"]) == (3, 1)
    assert list(found["kinds"]) == ["worker killed", "web killed"]
    worker, web = found["kinds"].values()
    assert worker["under_way"] == {"of": 2, "hit": 1}
    assert (worker["unfinished_p50_s"], worker["unfinished_p95_s"]) == (5.0, 9.0)
    assert worker["done_last"] == {"import": 1}
    assert web["under_way"] == {"of": 0, "hit": 0}


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
    lies = Answer.model_validate_json(surroundings.FAILURES["lying"](request)).found
    assert [lie.drawer for lie in lies] == [999, 999]
    assert {lie.stance for lie in lies} == {"likes", "dislikes"}
    assert {lie.subject for lie in lies} <= set(surroundings.FALSEHOODS)


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
    assert record["never_hit"] == 0
    call_command("fire", summary=True, log=log)
    assert json.loads(capsys.readouterr().out)["faults"] == 1


@pytest.mark.lengthy
@pytest.mark.exhaustive
@pytest.mark.timeout(900)
def test_work_that_is_interrupted_was_under_way(tmp_path, capsys):
    call_command("fire", only=list(INTERRUPTED), seed=1, log=tmp_path / "runs.jsonl")
    record = json.loads(capsys.readouterr().out)
    assert {each["fault"] for each in record["injected"]} == set(INTERRUPTED)
    assert [each["under_way"] for each in record["injected"]] == [True] * len(INTERRUPTED)
    assert record["damaged"] == 0
