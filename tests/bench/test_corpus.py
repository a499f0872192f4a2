"""The corpus: its form, its checker, and the benchmark that asks its questions."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from bench.corpus import BadCorpus, load, read_talk
from bench.corpus.agreement import agreement, kappa
from bench.corpus.checks import everybody, faults, totals
from bench.datasets import BadData
from bench.management.commands import locibench
from palace.transfer.import_jobs.preparation import SAMPLE_FILE

TALK = """\
= mirek | en, cs | Mirek, 58, keeps bees.

@ c01 | 2024-03-02T19:40+01:00 | assistant | The hive that hummed
user: The queen is called Bohdana.
  She stays,

    whatever happens.
assistant: Noted.
+ 1d 2h 5m
user: no: she left

@ c02 | 2024-05-01T08:00+02:00 | friends
Mirek: Jana, the tram museum wants my old cap.
Jana: Give it to them.
"""
QUESTION = {
    "id": "q1",
    "type": "single",
    "text": "What is the queen called?",
    "asked": "2024-06-01T10:00+02:00",
    "answer": "Bohdana",
    "evidence": ["c01.1"],
}
FACT = {
    "id": "f1",
    "at": "c01.1",
    "words": "The queen is called Bohdana",
    "event": "begins",
    "subject": "the queen",
    "predicate": "name",
    "value": "Bohdana",
}
LEFT = {
    "id": "f2",
    "at": "c01.3",
    "words": "she left",
    "event": "ends",
    "subject": "me",
    "predicate": "owns",
    "value": "the queen",
    "closes": ["f1"],
}


@pytest.fixture
def corpus(tmp_path):
    """Writes a corpus of one person, and returns its folder."""

    def write(talk=TALK, questions=(QUESTION,), facts=(FACT, LEFT), second=(), name="mirek"):
        folder = tmp_path / "dev" / name
        folder.mkdir(parents=True, exist_ok=True)
        for part in ("train", "blind"):
            (tmp_path / part).mkdir(exist_ok=True)
        (folder / "talk.txt").write_text(talk, encoding="utf-8")
        for file, lines in (("questions", questions), ("facts", facts), ("second", second)):
            text = "".join(json.dumps(line) + "\n" for line in lines)
            (folder / f"{file}.jsonl").write_text(text, encoding="utf-8")
        return tmp_path

    return write


def test_a_talk_is_read_to_the_byte(corpus):
    talk = read_talk(corpus() / "dev" / "mirek" / "talk.txt")
    assert (talk.id, talk.part, talk.languages) == ("mirek", "dev", ("en", "cs"))
    first, second = talk.transcripts
    assert [turn.text for turn in first.turns] == [
        "The queen is called Bohdana.\nShe stays,\n\n  whatever happens.",
        "Noted.",
        "no: she left",
    ]
    assert first.turns[2].said_at - first.turns[1].said_at == timedelta(days=1, hours=2, minutes=6)
    assert [turn.role for turn in first.turns] == ["user", "assistant", "user"]
    assert [turn.speaker for turn in second.turns] == ["Mirek", "Jana"]
    assert list(talk.turns()) == ["c01.1", "c01.2", "c01.3", "c02.1", "c02.2"]


@pytest.mark.parametrize(
    ("talk", "complaint"),
    [
        (TALK.replace("= mirek |", "= mirek"), "the first line"),
        (TALK.replace("assistant: Noted", "Noted"), "'Noted.' is no line of a conversation"),
        (TALK.replace("+ 1d 2h 5m", "+ a while"), "'+ a while' is no line"),
    ],
)
def test_a_line_in_no_form_is_named(corpus, talk, complaint):
    with pytest.raises(BadCorpus, match=r"talk\.txt") as refused:
        read_talk(corpus(talk=talk) / "dev" / "mirek" / "talk.txt")
    assert complaint in str(refused.value)


def test_a_person_without_questions_is_refused(corpus):
    folder = corpus()
    (folder / "dev" / "mirek" / "questions.jsonl").unlink()
    with pytest.raises(BadData, match=r"questions\.jsonl"):
        list(load(folder / "dev").cases)


def test_a_person_without_fault_has_none(corpus):
    people = everybody(corpus())
    assert list(faults(people)) == []
    counted = totals(people)
    assert counted["messages"] == 5
    assert counted["facts about the owner"] == 1
    assert counted["people of dev"] == counted["people in en"] == 1


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"evidence": ["c09.1"]}, "there is no message c09.1"),
        ({"evidence": []}, "evidence belongs to all questions but unanswerable ones"),
        ({"type": "riddle"}, "riddle is no type"),
        ({"as_of": "2024-04-01"}, "belongs to questions of the type as-of"),
        ({"asked": "2024-01-01T10:00+01:00"}, "asked before its evidence was said"),
        ({"text": "Is Bohdana the queen’s name?"}, "the question holds its answer"),
        ({"type": "other-words"}, "shares called, queen with its evidence"),
    ],
)
def test_a_fault_of_a_question_is_found(corpus, changed, fault):
    assert any(fault in one for one in faults(everybody(corpus(questions=[QUESTION | changed]))))


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"at": "c09.1"}, "there is no message c09.1"),
        ({"words": "The king is called"}, "c01.1 does not say"),
        ({"event": "happens"}, "happens is no event"),
        ({"event": "none"}, "words that are no fact state nothing"),
        ({"event": "ends"}, "ends what?"),
        ({"closes": ["f7"]}, "closes f7, which is no earlier fact"),
        ({"value": ""}, "a fact has a subject, a predicate and a value"),
        ({"stance": "undecided"}, "undecided is no stance"),
        ({"since": "last May"}, "a date is the beginning of an ISO date"),
        ({"since": "2024-05", "until": "2023"}, "ends before it begins"),
        ({"at": "c02.1", "words": "old cap"}, "stands after one that is said later"),
        ({"id": "f2"}, "f2: stands 2 times"),
    ],
)
def test_a_fault_of_a_fact_is_found(corpus, changed, fault):
    found = list(faults(everybody(corpus(facts=[FACT | changed, LEFT]))))
    assert any(fault in one for one in found), found


@pytest.mark.parametrize(
    ("talk", "fault"),
    [
        (TALK.replace("friends", "quarrel"), "c02: quarrel is no kind"),
        (TALK.replace("@ c02", "@ c01"), "two conversations of one id"),
        (TALK.replace("2024-05-01", "2024-03-01"), "c02: begins before c01 ends"),
        (TALK.replace("+02:00", ""), "c02.1: has no offset from UTC"),
        (TALK.replace("Jana: Give it to them.", "Jana: "), "c02.2: has no text"),
        (TALK + "Jana: Jana, the tram museum wants my old cap.\n", "same message stands in"),
        (
            TALK + "Jana: I do not know what I can do.\n" * 6,
            "is used 6 times",
        ),
    ],
)
def test_a_fault_of_the_talk_is_found(corpus, talk, fault):
    found = list(faults(everybody(corpus(talk=talk, questions=[], facts=[]))))
    assert any(fault in one for one in found), found


def test_the_corpus_in_the_repository_has_no_fault():
    people = everybody()
    assert list(faults(people)) == []
    assert {person.talk.part for person in people} == {"train", "dev", "blind"}


def test_the_sample_palace_is_what_its_person_said(tmp_path, monkeypatch, capsys):
    assert locibench.SAMPLE_FILE == SAMPLE_FILE
    written = tmp_path / "sample.jsonl"
    monkeypatch.setattr(locibench, "SAMPLE_FILE", written)
    call_command("locibench", "sample")
    assert json.loads(capsys.readouterr().out) == {"conversations": 46}
    assert written.read_bytes() == SAMPLE_FILE.read_bytes(), "Run `make fix`."


@pytest.mark.exhaustive
def test_questions_without_an_answer_are_counted_apart(corpus, run):
    nothing = {"id": "q2", "type": "unanswerable", "evidence": [], "answer": ""}
    folder = corpus(questions=[QUESTION, QUESTION | nothing | {"text": "How deep is Lake Baikal?"}])
    report = run("locibench", folder / "dev")
    assert report["questions"] == 2
    assert report["metrics"]["overall"]["turn_recall@10"]["n"] == 1
    assert set(report["metrics"]["by_language"]) == {"en"}
    assert {kind: one["n"] for kind, one in report["refused"].items()} == {
        "answerable": 1,
        "unanswerable": 1,
    }


def test_the_check_counts_what_there_is(capsys):
    call_command("locibench", "check")
    assert json.loads(capsys.readouterr().out)["people"] > 0


@pytest.mark.exhaustive
def test_facts_learnt_are_compared_with_those_stated(corpus, run):
    talk = TALK.replace("user: The queen is called Bohdana.", "user: I live in Brno, with a queen.")
    home = {"at": "c01.1", "subject": "me", "predicate": "lives_in", "event": "begins"}
    facts = [
        {"id": "f1", **home, "words": "I live in Brno", "value": "Brno"},
        {"id": "f2", **home, "words": "with a queen", "value": "Atlantis"},
        {"id": "f3", "at": "c01.3", "words": "she left", "event": "none", "why": "somebody else"},
    ]
    folder = corpus(talk=talk, questions=[], facts=facts)
    report = run("locibench", folder / "dev", step="facts")
    assert report["people"] == 1
    assert report["overall"]["recall"]["value"] == 0.5
    assert report["by_language"]["en"]["recall"]["n"] == 2
    assert (report["taken"]["value"], report["taken"]["n"]) == (0, 1)
    assert report["read"]["facts"] == 1
    assert report["read"]["_predicate_alike"] == {"precision": 1.0, "recall": 0.5, "f1": 0.667}


def test_facts_are_not_compared_where_nobody_is_annotated(corpus, run):
    folder = corpus(facts=[])
    with pytest.raises(CommandError, match=r"has no facts\.jsonl yet"):
        run("locibench", folder / "dev", step="facts")


def test_two_annotations_are_compared_message_by_message(corpus):
    second = [
        FACT | {"id": "f1", "words": "queen is called Bohdana", "predicate": "name"},
        {"id": "f2", "at": "c01.3", "words": "no: she left", "event": "none", "why": "passing"},
    ]
    found = agreement(everybody(corpus(second=second)))
    assert (found["conversations"], found["messages"]) == (1, 3)
    assert (found["facts"]["first"], found["facts"]["second"]) == (2, 1)
    # One of two facts is shared: 2 · 1 / (2 + 1).
    assert found["facts"]["f1"] == 0.667
    # c01.1 both, c01.2 neither, c01.3 only the first.
    assert found["durable"] == {"agree": 0.667, "kappa": 0.4}
    assert found["no_fact"]["f1"] == 0.0


@pytest.mark.parametrize(
    ("changed", "f1"),
    [
        ({"predicate": "nickname"}, {"f1": 0.0, "f1_any_predicate": 1.0}),
        ({"predicate": "age"}, {"f1": 0.0, "f1_predicate_alike": 1.0}),
        ({"predicate": "lives_in"}, {"f1_predicate_alike": 0.0, "f1_any_predicate": 1.0}),
        ({"value": "the queen", "words": "The queen is called"}, {"f1_any_predicate": 0.0}),
        ({"subject": "queen"}, {"f1": 1.0}),
        ({"subject": "me"}, {"f1_any_predicate": 0.0}),
    ],
)
def test_what_must_agree_for_a_fact_to_count(corpus, changed, f1):
    facts = agreement(everybody(corpus(facts=[FACT], second=[FACT | changed])))["facts"]
    assert facts | f1 == facts


@pytest.mark.parametrize(
    ("subject", "f1"),
    [("Mirek's sister", 1.0), ("Jana", 1.0), ("Mirek's son", 0.0)],
)
def test_a_relative_is_known_by_name_and_by_role(corpus, subject, f1):
    sister = FACT | {"id": "f9", "subject": "me", "predicate": "has_sibling", "value": "Jana"}
    age = {"predicate": "age", "value": "forty", "at": "c02.1", "words": "Jana"}
    first = [sister, FACT | age | {"subject": "Jana"}]
    facts = agreement(everybody(corpus(facts=first, second=[FACT | age | {"subject": subject}])))
    assert facts["facts"]["f1"] == f1


def test_agreement_is_counted_beyond_chance():
    both = [(True, True)] * 4 + [(False, False)] * 4
    assert kappa(both) == 1.0
    assert kappa([*both, (True, False), (False, True)]) == 0.6
    assert kappa([(True, True)] * 3) is None


def test_a_second_annotation_is_checked_and_need_not_know_what_it_closes(corpus):
    alone = LEFT | {"closes": []}
    assert list(faults(everybody(corpus(second=[alone])))) == []
    wrong = list(faults(everybody(corpus(second=[alone | {"words": "she stayed"}]))))
    assert wrong == ["mirek second f2: c01.3 does not say 'she stayed'."]


def test_the_command_compares_the_annotations_in_the_repository(capsys):
    call_command("locibench", "agreement")
    found = json.loads(capsys.readouterr().out)
    assert found["conversations"] >= 20
    assert found["facts"]["f1"] <= found["facts"]["f1_predicate_alike"]
