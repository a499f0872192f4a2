"""The questions asked a second time: what is filed, what is measured, and that it goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.asked_again import asked_again_report, respell, reword
from bench.logs import Folder
from bench.runs import own_schema
from chat.prompt import NO_MODEL
from language.english.message_traits import only_asks
from palace.models import Drawer


@pytest.mark.parametrize(
    ("question", "reworded"),
    [
        ("When did Nora Lee move?", "when Nora Lee did move"),
        ("What kind of movie did Ivo buy?", "what sort of film Ivo did purchase"),
        ("Where did Nora live in May 2023?", "In May 2023:"),
        ("Is Ivo happy?", "is Ivo glad?"),
        ("Where do I park?", "where I do park"),
        ("Why", "why"),
    ],
)
def test_a_question_is_put_in_other_words_and_always_in_the_same(question, reworded):
    found = reword(question)
    assert reworded in found
    assert found == reword(question) != question


@pytest.mark.parametrize(
    "question",
    [
        *("When did Nora Lee move?", "What kind of film did Ivo buy?", "Where do I park?"),
        *("Who is Quill?", "Is Ivo happy?", "How long has Nora lived in Lisbon?"),
        *("Which boat was Ivo selling?", "Why did Nora leave?", "What is Ivo's trade?"),
    ],
)
def test_a_question_is_typed_in_a_hurry_and_is_still_one(question):
    typed = respell(question)
    assert typed == respell(question) != question
    assert "?" not in typed
    assert only_asks(typed)


def line(question, gold, *hits, id="1"):
    found = [{"session": turn.rpartition("/")[0], "turn": turn} for turn in hits]
    return {
        "id": id,
        "question": question,
        "gold_turns": [gold],
        "gold_sessions": [gold.rpartition("/")[0]],
        "hits": found,
    }


def test_both_askings_are_compared_by_halves():
    own = ("asked before: 1/question", "asked before: 1/reply")
    others = [f"D2/D2:{number}" for number in range(8)]
    first = [line("Who?", "D1/D1:1", "D1/D1:1"), line("Why?", "D1/D1:2", "D1/D1:2", id="2")]
    reworded = [line("Say why.", "D1/D1:2", *others, "D3/D3:1", "D3/D3:2", "D1/D1:2", id="2")]
    second = [
        line("Who?", "D1/D1:1", *own, *others, "D1/D1:1"),
        line("Say why.", "D1/D1:2", "D1/D1:2", own[1], id="2"),
    ]
    report = asked_again_report(first, reworded, second)
    assert report["word_for_word"] == {
        "questions": 1,
        "turn_recall@10": {"before": 1, "after": 0, "loss": 1},
        "session_recall@10": {"before": 1, "after": 1, "loss": 0},
        "own_questions@10": 0.1,
        "own_replies@10": 0.1,
        "own_questions@1": 1,
        "own_replies@1": 0,
    }
    assert report["reworded"]["turn_recall@10"] == {"before": 0, "after": 1, "loss": -1}
    assert report["reworded"]["other_words"]["turn_recall@10"]["loss"] == 1
    assert report["reworded"]["own_replies@10"] == 0.5
    assert report["overall"]["turn_recall@10"]["loss"] == 0
    assert report["overall"]["questions"] == 2
    assert report["overall"]["own_questions@10"] == pytest.approx(1 / 12, abs=1e-4)


@pytest.mark.exhaustive
def test_what_was_asked_is_filed_as_chats_and_asked_again(run, locomo):
    report = run("locomo", locomo, asked_again=True, keep=True, run_id="again")
    assert report["questions"] == 3
    assert report["ingest"]["messages"] == 4
    again = report["asked_again"]
    assert [again[half]["questions"] for half in ("word_for_word", "reworded")] == [2, 1]
    assert again["overall"]["turn_recall@10"]["before"] == 1
    assert again["overall"]["own_questions@1"] == 0
    folder = Folder(Path(report["logs"]))
    with own_schema("bench_locomo_again", keep=True, data=report["sha256"]):
        chats = Drawer.objects.filter(source="chat")
        asked = chats.filter(role="user").order_by("pk").values_list("text", flat=True)
        third = respell("What flew over the field?")
        assert list(asked) == ["Who is Quill?", "What did Ivo sell?", third]
        replies = chats.filter(role="assistant")
        assert len(replies) == 3
        assert all(reply.text.startswith(NO_MODEL) for reply in replies)
        assert len({drawer.palace_id for drawer in Drawer.objects.all()}) == 2
    scored = run("locomo", step="score-retrieval", run_id="again")
    assert scored["asked_again"] == again
    # Half of the second asking is lost; the same command makes it whole, and files nothing twice.
    log = folder.again.retrieval
    kept = log.lines()[:1]
    log.delete()
    log.append(kept[0])
    folder.report.unlink()
    repeated = run("locomo", locomo, asked_again=True, keep=True, run_id="again")
    assert repeated["asked_again"] == again
    assert folder.again.retrieval.lines()[0] == kept[0]
    assert len(folder.again.ingest.lines()) == 1
    plain = run("locomo", locomo, run_id="again")
    assert "asked_again" not in plain
