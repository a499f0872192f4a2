"""Answers from memory and their judgement, by a model server that says what we tell it to."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from bench.logs import Folder
from bench.management.commands.longmemeval import accuracies, judge_prompt, verdict
from bench.runs import schemas
from llm.errors import BadModelOutput
from llm.models import Usage
from tests.bench.conversations import LONGMEMEVAL
from tests.model_server import CHAT, NotJson, Slow, Status, Text

USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110, "cost": 0.002}


@pytest.fixture
def instances(tmp_path):
    """Three questions, the last of which cannot be answered."""
    [one, *_] = LONGMEMEVAL
    three = [
        one,
        {**one, "question_id": "q3", "question_type": "knowledge-update", "answer": 15},
        {**one, "question_id": "q4_abs", "question": "Which flute do I play?", "answer": "None."},
    ]
    path = tmp_path / "longmemeval.json"
    path.write_text(json.dumps(three))
    return path


@pytest.fixture
def model(settings, model_server):
    settings.LLM_PROVIDER = model_server.base_url
    settings.LLM_MODEL = "test-model"
    settings.LLM_MAX_RETRIES = 0
    settings.LLM_TIMEOUT_S = 0.5
    return model_server


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "out" / "longmemeval" / "x")


@pytest.fixture
def ask(run, instances):
    return lambda step, **options: run("longmemeval", instances, step, run_id="x", **options)


def asked(model):
    return [request.prompt for request in model.requests_to(CHAT)]


@pytest.mark.exhaustive
def test_answers_are_given_from_memory_and_judged_by_type(ask, model, folder):
    model.script([Text("The cello.", usage=USAGE), Text("14.", usage=USAGE), "I do not know."])
    answered = ask("qa")
    assert (answered["answered"], answered["unanswered"]) == (3, 0)
    assert answered["usage"]["calls"] == 3
    assert answered["usage"]["tokens_in"] == 211
    assert answered["usage"]["cost_usd"] == pytest.approx(0.004)
    # Of the third call nobody knows the price.
    assert answered["usage"]["unpriced"] == 1
    first = asked(model)[0]
    assert "I started learning the cello." in first
    assert "Tuesday, 30 May 2023" in first
    # Three calls in all: conversations are taken in without a model.
    assert len(asked(model)) == 3

    model.script(["Yes.", Text("no", usage=USAGE), "**Yes**"])
    judged = ask("score-qa")
    overall, by_type = judged["metrics"]["overall"], judged["metrics"]["by_type"]
    assert overall["accuracy"]["value"] == pytest.approx(2 / 3, abs=1e-4)
    assert overall["accuracy"]["ci"][0] < 2 / 3 < overall["accuracy"]["ci"][1]
    assert overall["task_averaged_accuracy"]["value"] == 0.5
    assert overall["abstention_accuracy"]["value"] == 1
    assert by_type["single-session-user"]["accuracy"] == {"value": 1, "ci": [1, 1], "n": 2}
    assert by_type["knowledge-update"]["accuracy"]["value"] == 0
    assert judged["usage"]["score-qa"]["calls"] == judged["usage"]["qa"]["calls"] == 3
    assert "up-to-date" in asked(model)[4]
    assert "cannot be answered" in asked(model)[5]
    # As LongMemEval's own evaluation reads them.
    assert folder.generation.lines()[1]["hypothesis"] == "14."
    assert folder.generation.lines()[1]["question_id"] == "q3"
    assert not Usage.objects.exists()


@pytest.mark.exhaustive
def test_a_run_goes_on_with_what_is_missing(ask, model, folder):
    model.script(["The cello.", Status(500), NotJson()])
    first = ask("qa")
    assert (first["answered"], first["unanswered"]) == (1, 2)
    assert first["usage"]["failed"] == 2
    model.answer("No idea.")
    second = ask("qa")
    assert (second["answered"], second["unanswered"]) == (3, 0)
    assert (second["usage"]["calls"], second["usage"]["failed"]) == (5, 2)
    assert [line["hypothesis"] for line in folder.generation.lines()] == [
        "The cello.",
        "No idea.",
        "No idea.",
    ]
    assert [line["error"] for line in folder.failed.lines()] == ["model_unavailable"] * 2
    assert ask("qa")["usage"]["calls"] == 5

    # A judge that says neither is no judge; what it said counts for nothing.
    model.script(["yes", "Well, yes and no.", "Perhaps"])
    judged = ask("score-qa")
    assert (judged["questions"], judged["unjudged"]) == (1, 2)
    assert judged["metrics"]["overall"]["accuracy"]["value"] == 1
    model.answer("no")
    judged = ask("score-qa")
    assert (judged["questions"], judged["unjudged"]) == (3, 0)
    assert judged["usage"]["score-qa"]["calls"] == 5
    assert judged["metrics"]["overall"]["accuracy"]["value"] == pytest.approx(1 / 3, abs=1e-4)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Status(429), "busy|later"),
        (Status(401, "Incorrect API key provided."), "key"),
        (Slow(2), "seconds|in time|later"),
    ],
)
def test_a_model_that_keeps_failing_ends_the_step_with_a_sentence(ask, model, folder, reply, said):
    model.answer(reply)
    with pytest.raises(CommandError, match="3 questions in a row failed") as error:
        ask("qa")
    assert "goes on with what is missing" in str(error.value)
    assert any(word in str(error.value) for word in said.split("|")), error.value
    assert len(folder.failed.lines()) == 3
    assert folder.generation.lines() == []
    with pytest.raises(CommandError, match="holds no answer to judge"):
        ask("score-qa")


@pytest.mark.exhaustive
def test_another_model_does_not_go_on_with_answers_or_judgements(ask, model):
    ask("qa", model="one")
    with pytest.raises(CommandError, match="begun with model one, and is now asked for model two"):
        ask("qa", model="two")
    model.answer("yes")
    assert ask("score-qa", judge="strict")["judge"] == {"model": "strict"}
    with pytest.raises(CommandError, match="begun with model strict"):
        ask("score-qa", judge="kind")
    model.answer("no")
    again = ask("score-qa", judge="kind", fresh=True)
    assert again["metrics"]["overall"]["accuracy"]["value"] == 0
    assert {request.body["model"] for request in model.requests_to(CHAT)} == {
        "one",
        "strict",
        "kind",
    }


@pytest.mark.exhaustive
def test_judging_needs_neither_the_data_nor_what_was_taken_in(run, ask, model, instances):
    ask("qa", top_k=1, budget=200)
    instances.unlink()
    run("longmemeval", step="drop", run_id="x")
    model.answer("yes")
    judged = run("longmemeval", step="score-qa", run_id="x")
    assert judged["metrics"]["overall"]["accuracy"]["value"] == 1
    assert judged["reader"]["top_k"] == 1
    assert schemas("bench_") == []


@pytest.mark.parametrize("step", ["qa", "score-qa"])
def test_without_a_model_one_learns_how_to_set_one(step, longmemeval, settings):
    settings.LLM_PROVIDER = ""
    with pytest.raises(CommandError, match="set LOCI_LLM_PROVIDER, LOCI_LLM_MODEL"):
        call_command("longmemeval", step, data=longmemeval, run_id="x")


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("single-session-user", "only a part"),
        ("single-session-assistant", "only a part"),
        ("multi-session", "only a part"),
        ("temporal-reasoning", "wrong by one"),
        ("knowledge-update", "up-to-date answer"),
        ("single-session-preference", "need not touch every point"),
    ],
)
def test_each_type_is_judged_by_its_rule(kind, rule):
    answer = {
        "question_id": "1",
        "question_type": kind,
        "question": "How long?",
        "answer": "18 days",
        "hypothesis": "19 {days}",
        "unanswerable": False,
    }
    asked = judge_prompt(answer)
    assert rule in asked
    assert asked.index("How long?") < asked.index("18 days") < asked.index("19 {days}")
    unanswerable = judge_prompt({**answer, "unanswerable": True})
    assert rule not in unanswerable
    assert "Explanation: 18 days" in unanswerable


@pytest.mark.parametrize(
    ("said", "means"), [("Yes", True), ("no.", False), ("**NO**", False), ("Answer: yes\n", True)]
)
def test_a_yes_or_a_no_is_found(said, means):
    assert verdict(said) is means


@pytest.mark.parametrize("said", ["", "Maybe", "yes or no", "I know it is noted"])
def test_anything_else_is_no_judgement(said):
    with pytest.raises(BadModelOutput, match="neither yes nor no"):
        verdict(said)


def test_without_abstentions_there_is_no_figure_for_them():
    line = {"question_type": "multi-session", "correct": True, "unanswerable": False}
    assert "abstention_accuracy" not in accuracies([line])["overall"]
