"""A model rewrites the question: its answers, its failures, what it is sent and what it costs."""

from __future__ import annotations

import json

import pytest

from llm.models import Usage
from palace.models import Drawer, RecollectionTrace
from palace.recall.evaluation import TOO_FAR, standing_of
from palace.recall.model_stages import NO_MODEL, fused
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from settings_app.models import MemorySettings, ModelUse
from tests.model_server import NO_CHOICES, CutOff, NotJson, Slow, Status

QUESTION = "What went wrong in the kitchen and in the garage?"
BREAD, WIRE = "Why did the sourdough bread not rise?", "Which silicone wire overheated?"
REWRITE = [{"stage": "rewrite"}]


def chooses(palace, model_server, **choices):
    of_own = {"provider": model_server.base_url, "model": "cheap"}
    return MemorySettings.objects.create(owner=palace.owner, **(of_own | choices))


def questions(*texts):
    return json.dumps({"questions": texts})


def ask(palace, question=QUESTION, stages=REWRITE, **options):
    return recall(palace, RecallRequest(question, recipe=stages, **{"top_k": 10} | options))


def pointers(found):
    return [hit.pointer for hit in found.hits]


def test_each_question_of_the_model_is_searched_too(lived_in, model_server):
    chooses(lived_in, model_server)
    model_server.answer(questions(BREAD, WIRE))
    found = ask(lived_in)
    texts = [hit.drawer.text for hit in found.hits]
    for question in (BREAD, WIRE):
        best = ask(lived_in, question, "default").hits[0].drawer.text
        assert best in texts[:8]
    assert pointers(found) != pointers(ask(lived_in, stages="default"))
    assert found.query == QUESTION
    assert found.notes == ()
    trace = RecollectionTrace.objects.get(uuid=found.uuid)
    assert trace.reading["rewritten"] == [BREAD, WIRE]
    assert trace.query == QUESTION


def test_the_model_reads_the_question_alone_and_is_metered(lived_in, model_server):
    chooses(lived_in, model_server, rerank_model="tiny")
    model_server.answer(questions(BREAD))
    ask(lived_in)
    [request] = model_server.requests
    assert request.body["model"] == "tiny"
    assert json.loads(request.body["messages"][-1]["content"]) == {"question": QUESTION}
    usage = Usage.objects.get(purpose="memory_rewrite")
    assert (usage.owner, usage.model, usage.outcome) == (lived_in.owner, "tiny", "ok")
    assert usage.references == ["instructions:rewrite"]


def test_no_more_questions_are_searched_than_the_stage_allows(lived_in, model_server):
    chooses(lived_in, model_server)
    model_server.answer(questions(QUESTION, BREAD, BREAD, "  ", WIRE))
    found = ask(lived_in, stages=[{"stage": "rewrite", "questions": 1}])
    trace = RecollectionTrace.objects.get(uuid=found.uuid)
    assert trace.reading["rewritten"] == [BREAD]


@pytest.mark.parametrize(
    "reply",
    [
        Status(500),
        Status(401),
        CutOff(),
        NotJson(),
        NO_CHOICES,
        "I would rather not.",
        questions(),
        questions(QUESTION),
        "",
    ],
)
def test_a_failing_model_leaves_the_question_as_it_is(lived_in, model_server, reply):
    chooses(lived_in, model_server)
    model_server.answer(reply)
    found = ask(lived_in)
    assert pointers(found) == pointers(ask(lived_in, stages="default"))
    [note] = found.notes
    assert note.startswith("The question was searched as it is, not rewritten: ")


def test_a_slow_model_is_not_waited_for(lived_in, model_server, settings):
    settings.RERANK_TIMEOUT_S = 0.3
    chooses(lived_in, model_server)
    model_server.answer(Slow(30))
    found = ask(lived_in)
    assert found.duration_ms < 5000
    assert "did not answer within 0.3 s" in found.notes[0]
    assert Usage.objects.get(purpose="memory_rewrite").outcome == "model_unavailable"


def test_without_a_model_a_note_says_so(lived_in):
    assert ask(lived_in).notes == (NO_MODEL,)


def test_a_model_that_may_not_order_is_not_asked(lived_in, model_server):
    uses = [use.value for use in ModelUse if use is not ModelUse.RERANK]
    chooses(lived_in, model_server, uses=uses)
    assert ask(lived_in).notes == (NO_MODEL,)
    assert not model_server.requests


def test_what_is_found_for_all_questions_is_reranked_once(lived_in, model_server):
    chooses(lived_in, model_server)
    model_server.script([questions(BREAD, WIRE), json.dumps({"order": [2, 1]})])
    found = ask(lived_in, stages=[*REWRITE, {"stage": "rerank"}])
    assert [hit.place_before for hit in found.hits[:2]] == [2, 1]
    assert len(model_server.requests) == 2


def test_the_standing_of_a_hit_is_its_place_among_the_hits_of_all_questions(lived_in, model_server):
    chooses(lived_in, model_server)
    model_server.answer(questions(BREAD, WIRE))
    found = ask(lived_in)
    asked = len(model_server.requests)
    request = RecallRequest(QUESTION, recipe=REWRITE, top_k=10)
    for place, hit in enumerate(found.hits, start=1):
        standing = standing_of(lived_in, request, hit.drawer, [BREAD, WIRE])
        assert (standing.place, standing.why, standing.is_hit) == (place, "", True)
        assert standing.score == pytest.approx(hit.score, abs=1e-3)
    assert [hit.pointer for hit in standing.hits] == pointers(found)
    assert len(model_server.requests) == asked  # A page asks no model.


def test_what_is_no_hit_of_any_of_the_questions_comes_after_all_hits(lived_in):
    request = RecallRequest(QUESTION, recipe=REWRITE, top_k=5)
    hits = {hit.drawer.pk for hit in ask(lived_in, top_k=60).hits}
    hits |= {hit.drawer.pk for hit in ask(lived_in, BREAD, "default", top_k=60).hits}
    other = Drawer.objects.within(lived_in).exclude(pk__in=hits).first()
    standing = standing_of(lived_in, request, other, [BREAD])
    assert not standing.is_hit
    assert standing.why == TOO_FAR or standing.place > 20


def test_hits_of_several_questions_come_first_and_the_others_take_turns(lived_in):
    def hits(question):
        return ask(lived_in, question, "default", top_k=50).hits

    own, other = hits(WIRE), hits(BREAD)
    together = fused([own, other])
    pointers_of = [{hit.pointer for hit in hits} for hits in (own, other)]
    both = pointers_of[0] & pointers_of[1]
    assert {hit.pointer for hit in together} == pointers_of[0] | pointers_of[1]
    alone = [hit for hit in together if hit.pointer not in both]
    ranks = [
        (hits.index(hit), at)
        for hit in alone
        for at, hits in enumerate((own, other))
        if hit in hits
    ]
    assert ranks == sorted(ranks)
    assert fused([own]) == own
