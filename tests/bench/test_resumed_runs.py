"""Runs that are killed, repeated, or begun twice at once."""

from __future__ import annotations

import json
import threading

import pytest
from django.core.management import CommandError, call_command

from bench.logs import BadRun, Folder, Log
from bench.runs import alone_in, schemas
from palace.models import Drawer
from tests.model_server import EMBEDDINGS, Status


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "out" / "locomo" / "x")


def forget_the_end(folder, lines):
    """As if the run had been killed while it wrote the line after these."""
    whole = folder.retrieval.path.read_bytes().splitlines(keepends=True)
    folder.retrieval.path.write_bytes(b"".join(whole[:lines]) + whole[lines][:30])
    folder.report.unlink()


def ids(log):
    return [line["id"] for line in log.lines()]


@pytest.mark.exhaustive
def test_a_killed_run_goes_on_where_it_stopped(run, locomo, folder):
    whole = run("locomo", locomo, run_id="x", keep=True)
    lines = folder.retrieval.lines()
    forget_the_end(folder, 1)
    again = run("locomo", locomo, run_id="x")
    assert again["metrics"] == whole["metrics"]
    assert again["questions"] == whole["questions"] == 3
    assert again["ingest"] == whole["ingest"]
    now = folder.retrieval.lines()
    assert [line["id"] for line in now] == [line["id"] for line in lines]
    # The first was not asked again, the others were.
    assert now[0]["recollection"] == lines[0]["recollection"]
    assert now[1]["recollection"] != lines[1]["recollection"]
    assert schemas("bench_") == []


@pytest.mark.exhaustive
def test_a_finished_run_starts_over(run, locomo, folder):
    run("locomo", locomo, run_id="x")
    before = folder.retrieval.lines()
    run("locomo", locomo, run_id="x")
    after = folder.retrieval.lines()
    assert ids(folder.retrieval) == [line["id"] for line in before]
    assert not {line["recollection"] for line in before} & {line["recollection"] for line in after}


@pytest.mark.exhaustive
def test_half_a_log_of_other_code_is_not_gone_on_with(run, locomo, folder, capsys):
    run("locomo", locomo, run_id="x", keep=True)
    forget_the_end(folder, 2)
    made = json.loads((folder.path / "run.json").read_text())
    made["retrieval"]["code"] = "of yesterday"
    (folder.path / "run.json").write_text(json.dumps(made))
    old = {line["recollection"] for line in folder.retrieval.lines()}
    call_command("locomo", "retrieve", data=locomo, run_id="x", out=folder.path.parent.parent)
    assert "starts over" in capsys.readouterr().err
    assert not old & {line["recollection"] for line in folder.retrieval.lines()}


@pytest.mark.exhaustive
def test_another_recipe_does_not_go_on_with_a_log(run, locomo):
    run("locomo", locomo, run_id="x")
    with pytest.raises(CommandError, match="begun with recipe default, and is now asked for"):
        run("locomo", locomo, run_id="x", recipe="keyword")
    assert run("locomo", locomo, run_id="x", recipe="keyword", fresh=True)["recipe"] == "keyword"


@pytest.mark.exhaustive
def test_runs_without_a_name_never_meet(run, locomo):
    default, keyword = run("locomo", locomo), run("locomo", locomo, recipe="keyword")
    smoke = run("locomo", locomo, step="smoke")
    assert len({default["run_id"], keyword["run_id"], smoke["run_id"]}) == 3


@pytest.mark.exhaustive
def test_single_steps_keep_what_they_took_in(run, locomo):
    taken = run("locomo", locomo, step="ingest", run_id="x")
    assert taken["ingest"]["messages"] == 4
    assert schemas("bench_") == ["bench_locomo_x"]
    found = run("locomo", locomo, step="retrieve", run_id="x")
    assert found["ingest"] == taken["ingest"]
    assert found["questions"] == 3
    assert run("locomo", step="drop", run_id="x") == {"dataset": "locomo", "dropped": "x"}
    assert schemas("bench_") == []
    assert not Drawer.objects.exists()


@pytest.mark.exhaustive
def test_nothing_is_asked_of_what_was_not_taken_in(run, locomo, folder):
    with pytest.raises(CommandError, match=r"nothing taken in; run `manage\.py locomo ingest"):
        run("locomo", locomo, step="retrieve", run_id="x")
    run("locomo", locomo, step="ingest", run_id="x")
    folder.ingest.delete()
    with pytest.raises(CommandError, match="talk-1 is not taken in, or only in part"):
        run("locomo", locomo, step="retrieve", run_id="x")


@pytest.mark.exhaustive
def test_what_is_not_kept_cannot_be_dropped(run, locomo):
    run("locomo", locomo, step="ingest", run_id="mine")
    with pytest.raises(CommandError, match="kept are: mine"):
        run("locomo", step="drop")
    with pytest.raises(CommandError, match="kept are: mine"):
        run("locomo", step="drop", run_id="yours")


@pytest.mark.exhaustive
def test_two_at_once_with_one_name_are_refused(run, locomo, folder):
    with folder.alone(), pytest.raises(CommandError, match="under way in another process"):
        run("locomo", locomo, run_id="x")
    # On another machine the folder is another one; the schema is the same.
    held, done = threading.Event(), threading.Event()

    def elsewhere():
        with alone_in("bench_locomo_x"):
            held.set()
            done.wait(30)

    beside = threading.Thread(target=elsewhere)
    beside.start()
    held.wait(30)
    try:
        with pytest.raises(CommandError, match="Another process works in schema bench_locomo_x"):
            run("locomo", locomo, run_id="x")
    finally:
        done.set()
        beside.join()
    assert run("locomo", locomo, run_id="x")["questions"] == 3


@pytest.mark.exhaustive
def test_scores_come_from_the_log_alone(run, locomo, tmp_path):
    whole = run("locomo", locomo, run_id="x")
    locomo.unlink()
    assert run("locomo", step="score-retrieval", run_id="x") == whole
    with pytest.raises(CommandError, match="there are: x"):
        run("locomo", step="score-retrieval")


def test_scoring_needs_no_database(folder, capsys):
    """This test may not open one."""
    folder.begin("run", {"dataset": "locomo", "sha256": "00", "run_id": "x"})
    folder.begin("retrieval", {"recipe": "default", "questions": 2, "skipped": {"odd": 1}})
    hits = [{"session": "s2", "turn": "s2/1"}, {"session": "s1", "turn": "s1/1"}]
    folder.retrieval.append(
        {
            "id": "1",
            "type": "easy",
            "gold_sessions": ["s1"],
            "gold_turns": [],
            "hits": hits,
            "latency_ms": 3.0,
        }
    )
    call_command("locomo", "score-retrieval", run_id="x", out=folder.path.parent.parent)
    said = capsys.readouterr()
    report = json.loads(said.out)
    assert "1 of 2 questions are not asked yet" in said.err
    assert report["metrics"]["by_type"]["easy"]["session_recall_any@5"]["value"] == 1
    assert "turn_recall@5" not in report["metrics"]["overall"]
    assert report["skipped"] == {"odd": 1}


def test_half_a_line_counts_as_not_written(tmp_path):
    log = Log(tmp_path / "log.jsonl")
    log.append({"id": 1})
    with log.path.open("a") as file:
        file.write('{"id": 2')
    assert log.lines() == [{"id": 1}]
    log.mend()
    log.append({"id": 3})
    assert log.lines() == [{"id": 1}, {"id": 3}]


def test_a_log_that_somebody_wrote_into_is_refused(tmp_path):
    log = Log(tmp_path / "log.jsonl")
    log.path.write_text('{"id": 1}\noh\n{"id": 2}\n')
    with pytest.raises(BadRun, match="Line 2"):
        log.lines()


def test_a_log_that_is_none_of_ours_is_not_scored(run, folder):
    folder.begin("run", {"dataset": "locomo", "sha256": "00", "run_id": "x"})
    folder.begin("retrieval", {"recipe": "default", "questions": 1, "skipped": {}})
    folder.retrieval.append({"id": "1"})
    with pytest.raises(CommandError, match="is not as `retrieve` writes it"):
        run("locomo", step="score-retrieval", run_id="x")


def test_logs_do_not_go_into_a_file(run, locomo):
    with pytest.raises(CommandError, match="--out is a folder"):
        run("locomo", locomo, out=locomo)


@pytest.mark.exhaustive
def test_nothing_is_asked_while_vectors_are_missing(run, locomo, model_server, settings):
    settings.EMBEDDING_PROVIDER = model_server.base_url
    settings.EMBEDDING_MODEL = "some-embedder"
    settings.LLM_MAX_RETRIES = 0
    model_server.script([Status(503)] * 4, path=EMBEDDINGS)
    with pytest.raises(CommandError, match="some-embedder"):
        run("locomo", locomo, run_id="x")
    model_server.recover(EMBEDDINGS)
    report = run("locomo", locomo, run_id="x")
    assert report["questions"] == 3
    assert "notes" not in report


@pytest.mark.exhaustive
def test_a_question_that_was_not_embedded_is_reported(run, locomo, model_server, settings):
    settings.EMBEDDING_PROVIDER = model_server.base_url
    settings.EMBEDDING_MODEL = "some-embedder"
    settings.LLM_MAX_RETRIES = 0
    run("locomo", locomo, step="ingest", run_id="x")
    model_server.script([Status(503)], path=EMBEDDINGS)
    report = run("locomo", locomo, step="retrieve", run_id="x")
    assert report["questions"] == 3
    assert sum(report["notes"].values()) == 1
