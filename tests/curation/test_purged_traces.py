"""The traces of recalls after a purge: figures stay, the words of what was purged go."""

from __future__ import annotations

from palace.mining.pipeline import mine
from palace.models import RecollectionTrace
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from tests.conversations import SOURDOUGH, transcript
from tests.curation.conftest import purge


def test_a_trace_keeps_its_figures_and_the_other_drawers_words(lived_in):
    found = recall(lived_in, RecallRequest("Which wire is too thin for the battery?", top_k=3))
    gone, *others = found.hits
    trace = RecollectionTrace.objects.get()
    hits = trace.hits
    purge(lived_in, pk=gone.drawer.pk)
    trace.refresh_from_db()
    assert gone.drawer.text not in trace.context
    for other in others:
        assert other.drawer.text in trace.context
    assert trace.context.startswith("<memory_context>")
    assert trace.context.endswith("</memory_context>")
    assert trace.hits == hits
    purge(lived_in, pk__in=[other.drawer.pk for other in others])
    trace.refresh_from_db()
    assert trace.context == ""


def test_a_trace_gives_up_a_passage_it_showed_for_want_of_room(palace):
    sentences = [f"On day {n} the brass telescope showed a comet of its own." for n in range(90)]
    mine(palace, transcript(" ".join(sentences), "Lovely.", id="comet"))
    found = recall(palace, RecallRequest("What did the brass telescope show?", budget_tokens=400))
    assert "[…]" in found.context
    purge(palace, conversation="comet", position=0)
    assert "telescope" not in RecollectionTrace.objects.get().context


def test_a_block_in_words_that_are_no_longer_known_is_emptied(lived_in):
    found = recall(lived_in, RecallRequest("Which wire is too thin?", top_k=2))
    trace = RecollectionTrace.objects.get()
    gone = found.hits[0].drawer
    trace.context = trace.context.replace(gone.text, f"{gone.text[:30]} and so on")
    trace.save()
    purge(lived_in, pk=gone.pk)
    trace.refresh_from_db()
    assert trace.context == ""


def test_a_short_text_is_not_cut_out_of_others(palace):
    mine(palace, transcript("ok", "The book on the hook is about cooking ok?", id="ok"))
    recall(palace, RecallRequest("book about cooking, ok", top_k=5))
    purge(palace, text="ok")
    assert "The book on the hook is about cooking ok?" in RecollectionTrace.objects.get().context


def test_a_question_that_was_the_very_text_is_forgotten(lived_in):
    recall(lived_in, RecallRequest(f"  {SOURDOUGH.turns[0].text}\n"))
    recall(lived_in, RecallRequest("Why are my loaves flat?"))
    purge(lived_in, text=SOURDOUGH.turns[0].text)
    queries = RecollectionTrace.objects.order_by("pk").values_list("query", flat=True)
    assert list(queries) == ["", "Why are my loaves flat?"]
