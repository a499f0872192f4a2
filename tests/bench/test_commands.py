"""The benchmark commands from file to JSON line, on data of our own in the official forms."""

from __future__ import annotations

import gzip
import json
import threading
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from bench.logs import Folder
from bench.runs import own_schema, schemas
from palace.models import Drawer
from palace.models.concurrency import held_if_free
from tests.bench.conversations import BEAM_CHAT, BEAM_PROBES, LOCOMO, LONGMEMEVAL


def value(report, name, kind=None):
    metrics = report["metrics"]
    return (metrics["by_type"][kind] if kind else metrics["overall"])[name]["value"]


def test_locomo_is_taken_in_asked_and_scored(run, tmp_path):
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps(LOCOMO))
    report = run("locomo", path)
    assert report["dataset"] == "locomo"
    assert report["questions"] == 3
    assert report["skipped"] == {"no evidence that resolves": 2}
    assert report["ingest"]["messages"] == 4
    assert value(report, "turn_recall@5") == 1
    assert value(report, "session_recall@5", "multi-hop") == 1
    assert report["latency_ms"]["p50"] <= report["latency_ms"]["p95"]


@pytest.mark.exhaustive
def test_longmemeval_is_read_zipped_and_leaves_abstentions_out(run, tmp_path):
    path = tmp_path / "longmemeval.json.gz"
    path.write_bytes(gzip.compress(json.dumps(LONGMEMEVAL).encode()))
    report = run("longmemeval", path)
    assert report["questions"] == 1
    assert sum(report["skipped"].values()) == 1
    assert value(report, "session_recall_all@5") == 1
    assert value(report, "turn_recall@5") == 1


@pytest.mark.exhaustive
def test_what_instances_share_is_embedded_once(run, tmp_path):
    [one, *_] = LONGMEMEVAL
    path, tokens = tmp_path / "longmemeval.json", []
    three = [one, {**one, "question_id": "q3"}, one]
    # The first of a process also embeds what the process keeps.
    for run_id, instances in (("first", [one]), ("one", [one]), ("three", three)):
        path.write_text(json.dumps(instances))
        report = run("longmemeval", path, step="ingest", run_id=run_id)
        assert report["ingest"]["messages"] == 3 * len(instances)
        with connection.cursor() as cursor:
            usage = f"bench_longmemeval_{run_id}.llm_usage"
            cursor.execute(f"SELECT sum(tokens_in) FROM {usage}")  # noqa: S608 - our own name.
            tokens += cursor.fetchone()
    assert tokens[1] == tokens[2] > 0


@pytest.mark.exhaustive
def test_a_name_that_comes_twice_stands_for_two(run, tmp_path):
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([LOCOMO[0], LOCOMO[0]]))
    report = run("locomo", path, run_id="twice")
    assert (report["questions"], report["ingest"]["messages"]) == (6, 8)
    ids = [line["id"] for line in Folder(Path(report["logs"])).retrieval.lines()]
    assert ids == ["talk-1/0", "talk-1/1", "talk-1/2", "talk-1/0~2", "talk-1/1~2", "talk-1/2~2"]


@pytest.mark.exhaustive
def test_beam_is_read_from_its_folder_of_chats(run, tmp_path):
    chat = tmp_path / "1"
    (chat / "probing_questions").mkdir(parents=True)
    (chat / "chat.json").write_text(json.dumps(BEAM_CHAT))
    (chat / "probing_questions" / "probing_questions.json").write_text(json.dumps(BEAM_PROBES))
    report = run("beam", tmp_path, keep=True, run_id="kept")
    assert report["questions"] == 3
    assert report["skipped"] == {"no gold message": 1}
    assert value(report, "turn_recall@5") == 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT text FROM bench_beam_kept.palace_drawer ORDER BY id")
        assert cursor.fetchone() == ("My first sprint ends on March 29.",)
        cursor.execute("DROP SCHEMA bench_beam_kept CASCADE")


@pytest.mark.exhaustive
def test_a_run_leaves_nothing_behind(run, tmp_path):
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps(LOCOMO))
    first, second = run("locomo", path), run("locomo", path)
    assert first["metrics"] == second["metrics"]
    assert not Drawer.objects.exists()
    assert schemas("bench") == []


def test_a_missing_file_gets_a_sentence(tmp_path):
    with pytest.raises(CommandError, match="does not exist"):
        call_command("locomo", "full", data=tmp_path / "nowhere.json")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--run-id", "x; drop"], "small letters"),
        (["--limit", "0"], "a number from 1"),
        (["--recipe", "souffle"], "no recipe 'souffle'; choose one of"),
    ],
)
def test_an_option_that_makes_no_sense_gets_a_sentence(tmp_path, options, said):
    with pytest.raises(CommandError, match=said):
        call_command("locomo", "full", "--data", str(tmp_path), *options)


def test_a_step_that_reads_data_asks_for_it():
    with pytest.raises(CommandError, match="--data"):
        call_command("beam", "ingest")


@pytest.mark.exhaustive
def test_mining_speed_is_measured_beside_the_bare_embedder(transactional_db, capsys):
    call_command("bench_mining", messages=60)
    report = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert report["messages"] >= 60
    assert 0 < report["mining_of_bare"]["overall"] < 10
    assert not Drawer.objects.exists()


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
def test_a_run_is_not_held_up_by_locks_of_the_same_name_elsewhere():
    """Else a room would be left out, unseen, while the user's room of that number is mined."""
    held, done = threading.Event(), threading.Event()

    def mine_the_users():
        with held_if_free("mine room 1"):
            held.set()
            done.wait(30)
        connection.close()

    beside = threading.Thread(target=mine_the_users)
    beside.start()
    held.wait(30)
    with held_if_free("mine room 1") as ours:
        assert not ours
    with own_schema("bench_locks", keep=False), held_if_free("mine room 1") as ours:
        assert ours
    done.set()
    beside.join()


@pytest.fixture
def kept_schema(transactional_db):
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP SCHEMA IF EXISTS bench_locomo_again CASCADE")


@pytest.mark.exhaustive
@pytest.mark.usefixtures("kept_schema")
def test_a_run_that_was_cut_short_is_completed_by_the_next(run, tmp_path):
    """Questions asked of half of the conversations would give figures that mean nothing."""
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps(LOCOMO))
    whole = run("locomo", path, keep=True, run_id="again")
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM bench_locomo_again.palace_room WHERE number = 2")
        cursor.execute("UPDATE bench_locomo_again.palace_drawer SET mined_at = NULL")
        cursor.execute("DELETE FROM bench_locomo_again.palace_posting")
        cursor.execute("DELETE FROM bench_locomo_again.palace_passage")
    again = run("locomo", path, keep=True, run_id="again")
    assert again["metrics"] == whole["metrics"]
    assert again["ingest"]["messages"] == whole["ingest"]["messages"] == 4
    assert again["ingest"]["seconds"] >= whole["ingest"]["seconds"]


@pytest.mark.exhaustive
@pytest.mark.usefixtures("kept_schema")
def test_what_was_kept_of_other_data_is_not_asked(run, tmp_path):
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps(LOCOMO))
    run("locomo", path, keep=True, run_id="again")
    path.write_text(json.dumps(LOCOMO, indent=1))
    with pytest.raises(CommandError, match=r"begun with data whose SHA-256 is .*another --run-id"):
        run("locomo", path, run_id="again")
    elsewhere = tmp_path / "elsewhere"
    with pytest.raises(CommandError, match="holds other data, kept by an earlier run; choose"):
        run("locomo", path, run_id="again", out=elsewhere)
    assert run("locomo", path, run_id="again", fresh=True)["questions"] == 3
