"""The official files' forms, their odd corners, and files that are broken."""

from __future__ import annotations

import gzip
import json

import pytest

from bench.datasets import BadData, long_chats, longmemeval
from bench.datasets.long_chats import load_beam, load_locomo
from tests.bench.conversations import BEAM_CHAT, BEAM_PROBES, LOCOMO, LONGMEMEVAL


@pytest.fixture
def write(tmp_path):
    def write(value, name="data.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(value).encode()
        path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
        return path

    return write


@pytest.fixture
def chat(write):
    """Write a chat of BEAM's; gives the folder all of them are in."""

    def chat(number, messages=BEAM_CHAT, probes=BEAM_PROBES, zipped=""):
        path = write(messages, f"beam/{number}/chat.json{zipped}")
        write(probes, f"beam/{number}/probing_questions/probing_questions.json{zipped}")
        return path.parent.parent

    return chat


def questions(dataset):
    return [question for case in dataset.cases for question in case.questions]


@pytest.mark.parametrize(
    ("evidence", "gold"),
    [
        (["D1:1"], {"D1/D1:1"}),
        (["D1:1; D2:01"], {"D1/D1:1", "D2/D2:1"}),
        (["D:1:2"], {"D1/D1:2"}),
        (["D1:1 D2:1", "D1:2"], {"D1/D1:1", "D2/D2:1", "D1/D1:2"}),
    ],
)
def test_locomos_evidence_is_found_however_it_is_written(write, evidence, gold):
    qa = [{"question": "Who?", "evidence": evidence, "category": 1}]
    [question] = questions(load_locomo(write([{**LOCOMO[0], "qa": qa}])))
    assert question.gold_turns == gold
    assert question.gold_sessions == {turn.split("/")[0] for turn in gold}


def test_locomos_evidence_that_leads_nowhere_is_counted(write):
    asked = [["D1:1", "D8:8"], ["D8:8"], []]
    qa = [{"question": "Who?", "evidence": each, "category": 5} for each in asked]
    dataset = load_locomo(write([{**LOCOMO[0], "qa": qa}]))
    assert len(questions(dataset)) == 1
    assert dataset.skipped == {long_chats.NO_EVIDENCE: 2, long_chats.ONE_MISSING: 1}


def test_longmemevals_gold_turns_are_the_users(write):
    [one, *_] = LONGMEMEVAL
    session = [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": "The cello it is.", "has_answer": True},
        {"role": "user", "content": "The cello.", "has_answer": True},
    ]
    item = {**one, "haystack_sessions": [session, session[:2]], "answer_session_ids": ["s1", "s2"]}
    [question] = questions(longmemeval.load(write([item])))
    assert question.gold_turns == {"s1/2"}
    assert question.gold_sessions == {"s1", "s2"}


def test_abstentions_are_read_where_they_are_wanted(write):
    [one, *_] = LONGMEMEVAL
    path = write([one, {**one, "question_id": "q2_abs", "answer": 3}])
    with_them = questions(longmemeval.load(path, abstentions=True))
    assert [(q.id, q.unanswerable, q.answer) for q in with_them] == [
        ("q1", False, "the cello"),
        ("q2_abs", True, "3"),
    ]
    without = longmemeval.load(path)
    assert [q.id for q in questions(without)] == ["q1"]
    assert without.skipped == {longmemeval.ABSTENTION: 1}


@pytest.mark.parametrize(
    ("gold", "ids"),
    [
        (0, {"1/0"}),
        ("2", {"2/2"}),
        ([0, [2]], {"1/0", "2/2"}),
        ({"first": [0], "then": 2}, {"1/0", "2/2"}),
        ([0, 77], {"1/0"}),
    ],
)
def test_beams_gold_comes_in_many_shapes(chat, gold, ids):
    probes = {"kind": [{"question": "When?", "source_chat_ids": gold}]}
    [question] = questions(load_beam(chat(1, probes=probes)))
    assert question.gold_turns == ids


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("It ends. ->-> 1,1", "It ends."),
        ("It ends.  ->-> 2,N/A ", "It ends."),
        ("An arrow ->-> in the middle", "An arrow ->-> in the middle"),
        ("x->->", "x"),
    ],
)
def test_beams_markers_are_taken_off_the_end(chat, written, kept):
    messages = [{"turns": [[{"role": "user", "id": 0, "content": written}]]}]
    [case] = load_beam(chat(1, messages)).cases
    assert case.transcripts[0].turns[0].text == kept


def test_beams_chats_may_be_one_or_many_and_zipped(chat):
    chat("100K/10", zipped=".gz")
    chat("100K/9")
    root = chat("500K/9").parent
    assert [case.id for case in load_beam(root).cases] == ["100K/9", "500K/9", "100K/10"]
    assert [case.id for case in load_beam(root / "100K").cases] == ["9", "10"]
    assert [case.id for case in load_beam(root / "100K" / "9").cases] == ["9"]
    assert [case.id for case in load_beam(root / "100K" / "10" / "chat.json.gz").cases] == ["10"]


def without(item, key):
    return {name: value for name, value in item.items() if name != key}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({}, "does not hold a list"),
        ([], "does not hold a list"),
        ([[]], "instance 1 is not in the official form"),
        ([without(LONGMEMEVAL[0], "haystack_dates")], r"\(q1\) lacks 'haystack_dates'"),
        ([{**LONGMEMEVAL[0], "question_date": "soon"}], "does not match format"),
        ([{**LONGMEMEVAL[0], "haystack_dates": []}], r"\(q1\) is not in the official form"),
        ([{**LONGMEMEVAL[0], "haystack_sessions": [[{"role": "user"}], []]}], "lacks 'content'"),
        (
            [{**LONGMEMEVAL[0], "haystack_sessions": [[{"role": "user", "content": None}], []]}],
            "a text is NoneType",
        ),
        (
            [{**LONGMEMEVAL[0], "haystack_sessions": [[{"role": "king", "content": "We"}], []]}],
            "'king' is no role",
        ),
    ],
)
def test_a_file_that_is_not_longmemevals_gets_a_sentence(write, value, said):
    with pytest.raises(BadData, match=said):
        questions(longmemeval.load(write(value)))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([without(LOCOMO[0], "conversation")], "conversation 1 lacks 'conversation'"),
        ([without(LOCOMO[0], "qa")], "lacks 'qa'"),
        ([{**LOCOMO[0], "conversation": {}}], "not in the official form"),
        ([{**LOCOMO[0], "qa": [{"question": "?", "evidence": ["D1:1"], "category": 9}]}], "9"),
        (["talk"], "not in the official form"),
    ],
)
def test_a_file_that_is_not_locomos_gets_a_sentence(write, value, said):
    with pytest.raises(BadData, match=said):
        questions(load_locomo(write(value)))


@pytest.mark.parametrize(
    ("messages", "probes", "said"),
    [
        ([{}], BEAM_PROBES, "lacks 'turns'"),
        ([{"turns": []}], BEAM_PROBES, "not in the official form"),
        (BEAM_CHAT, [], "does not hold questions by their kind"),
        (BEAM_CHAT, {"kind": [{"source_chat_ids": 0}]}, "lacks 'question'"),
        (BEAM_CHAT, {"kind": 3}, "not in the official form"),
    ],
)
def test_a_folder_that_is_not_beams_gets_a_sentence(chat, messages, probes, said):
    with pytest.raises(BadData, match=said):
        questions(load_beam(chat(1, messages, probes)))


def test_a_chat_without_questions_and_a_folder_without_chats_get_a_sentence(chat, tmp_path):
    root = chat(1)
    (root / "1" / "probing_questions" / "probing_questions.json").unlink()
    with pytest.raises(BadData, match="lacks probing_questions"):
        questions(load_beam(root))
    with pytest.raises(BadData, match=r"holds no chat\.json"):
        questions(load_beam(tmp_path / "beam" / "1" / "probing_questions"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("data.json", b'[{"question_id": "q1"'),
        ("data.json", b"\xff\xfe\x00"),
        ("data.json", b"[" * 100_000),
        ("data.json.gz", b"[]"),
        ("data.json.gz", gzip.compress(b"[1, 2, 3]", mtime=0)[:-9]),
        ("data.json.gz", gzip.compress(b"[1, 2, 3]" * 999, mtime=0)[:-20] + b"\x00" * 20),
    ],
)
def test_a_broken_file_gets_a_sentence(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(BadData, match=f"{name} is no whole"):
        questions(longmemeval.load(path))


def test_a_folder_in_a_files_place_gets_a_sentence(tmp_path):
    with pytest.raises(BadData, match="is a folder; name the file in it"):
        questions(load_locomo(tmp_path))
