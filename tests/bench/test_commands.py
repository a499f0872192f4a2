"""The benchmark commands from file to JSON line, on data of our own in the official forms."""

from __future__ import annotations

import gzip
import json
import threading

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from bench.schema import own_schema
from palace.models import Drawer
from palace.models.locks import held_if_free

LOCOMO = [
    {
        "sample_id": "talk-1",
        "conversation": {
            "speaker_a": "Nora",
            "speaker_b": "Ivo",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Nora", "dia_id": "D1:1", "text": "I adopted a parrot called Quill."},
                {"speaker": "Ivo", "dia_id": "D1:2", "text": "How lovely! Does he talk?"},
            ],
            "session_2_date_time": "9:05 am on 1 June, 2023",
            "session_2": [
                {"speaker": "Ivo", "dia_id": "D2:1", "text": "I sold my motorbike yesterday."},
                {
                    "speaker": "Nora",
                    "dia_id": "D2:2",
                    "text": "Ivo, look at this!",
                    "blip_caption": "a red kite over a field",
                },
            ],
            "session_3_date_time": "9:05 am on 2 June, 2023",
            "session_3": [],
        },
        "qa": [
            {"question": "Who is Quill?", "evidence": ["D1:1"], "category": 4},
            {"question": "What did Ivo sell?", "evidence": ["D2:01; D2:02"], "category": 1},
            {"question": "What flew over the field?", "evidence": ["D2:2"], "category": 3},
            {"question": "Where?", "evidence": ["D9:9"], "category": 2},
            {"question": "Why?", "evidence": [], "category": 5},
        ],
    }
]
LONGMEMEVAL = [
    {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "Which instrument am I learning?",
        "question_date": "2023/05/30 (Tue) 23:40",
        "answer": "the cello",
        "haystack_session_ids": ["s1", "s2"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "I started learning the cello.", "has_answer": True},
                {"role": "assistant", "content": "A noble instrument."},
            ],
            [{"role": "user", "content": "My bus was late again."}],
        ],
        "answer_session_ids": ["s1"],
    },
    {"question_id": "q2_abs"},
]
BEAM_CHAT = [
    {
        "batch_number": 1,
        "turns": [
            [
                {
                    "role": "user",
                    "id": 0,
                    "time_anchor": "March-15-2024",
                    "content": "My first sprint ends on March 29. ->-> 1,1",
                },
                {"role": "assistant", "id": 1, "content": "Noted, plan the login first."},
            ]
        ],
    },
    {"batch_number": 2, "turns": [[{"role": "user", "id": 2, "content": "I dislike ORMs."}]]},
]
BEAM_PROBES = {
    "information_extraction": [
        {"question": "When does my first sprint end?", "source_chat_ids": [0]},
        {"question": "Sprints and ORMs?", "source_chat_ids": {"all": [2, [0]]}},
        {"question": "Do I like ORMs?", "source_chat_ids": 2},
    ],
    "abstention": [{"question": "What is my cat called?"}],
}


@pytest.fixture
def run(transactional_db, capsys):
    def run(command, data, **options):
        call_command(command, "full", data=data, **options)
        return json.loads(capsys.readouterr().out.strip().splitlines()[-1])

    return run


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


def test_longmemeval_is_read_zipped_and_leaves_abstentions_out(run, tmp_path):
    path = tmp_path / "longmemeval.json.gz"
    path.write_bytes(gzip.compress(json.dumps(LONGMEMEVAL).encode()))
    report = run("longmemeval", path)
    assert report["questions"] == 1
    assert sum(report["skipped"].values()) == 1
    assert value(report, "session_recall_all@5") == 1
    assert value(report, "turn_recall@5") == 1


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


def test_a_run_leaves_nothing_behind(run, tmp_path):
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps(LOCOMO))
    first, second = run("locomo", path), run("locomo", path)
    assert first["metrics"] == second["metrics"]
    assert not Drawer.objects.exists()
    with connection.cursor() as cursor:
        cursor.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'bench%'")
        assert cursor.fetchall() == []


def test_a_missing_file_gets_a_sentence(tmp_path):
    with pytest.raises(CommandError, match="does not exist"):
        call_command("locomo", "full", data=tmp_path / "nowhere.json")


def test_a_run_id_that_is_no_name_gets_a_sentence(tmp_path):
    with pytest.raises(CommandError, match="small letters"):
        call_command("locomo", "full", "--data", str(tmp_path), "--run-id", "x; drop")


def test_mining_speed_is_measured_beside_the_bare_embedder(transactional_db, capsys):
    call_command("bench_mining", messages=60)
    report = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert report["messages"] >= 60
    assert 0 < report["mining_of_bare"]["overall"] < 10
    assert not Drawer.objects.exists()


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
    assert again["ingest"]["messages"] == 2
    assert run("locomo", path, keep=True, run_id="again")["ingest"]["messages"] == 0


@pytest.mark.usefixtures("kept_schema")
def test_what_was_kept_of_other_data_is_not_asked(run, tmp_path):
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps(LOCOMO))
    run("locomo", path, keep=True, run_id="again")
    path.write_text(json.dumps(LOCOMO, indent=1))
    with pytest.raises(CommandError, match="holds other data, kept by an earlier run; choose"):
        run("locomo", path, run_id="again")
