"""The search box: what recall found, as the page shows it."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime

import pytest

from language.transcripts import Transcript, Turn
from palace.models import RecollectionTrace
from palace.pipeline import mine
from palace.queries.signals import SIGNALS
from palace.recall.request import Hit
from palace.views.search import explained, hit_rows
from palace.views.shared.snippets import SNIPPET_LENGTH
from settings_app.models import MemorySettings
from tests.factories import DrawerFactory

HTMX = {"HX-Request": "true"}


@pytest.fixture
def mined(palace):
    texts = (
        "I tried a 12-AWG silicone wire from the battery to the controller and it <overheated>.",
        "Use 8 AWG and keep the run short.",
        "My sourdough starter hardly moves in a kitchen of 18 degrees.",
    )
    turns = tuple(
        Turn(str(number), "user", text, datetime(2025, 2, 11, 19, number, tzinfo=UTC))
        for number, text in enumerate(texts)
    )
    mine(palace, Transcript("plain", "efoil", "Wiring the efoil", turns))
    return palace


def test_the_best_drawer_comes_first_with_its_pointer_place_and_reasons(alices, mined):
    response = alices.get("/memory/", {"q": "which wire overheated?"})
    trace = RecollectionTrace.objects.get(palace=mined)
    first = response.text.split('<li class="hit">')[1]
    assert trace.hits[0]["pointer"] in first
    assert "<mark>wire</mark>" in first
    assert "&lt;<mark>overheated</mark>&gt;" in first
    assert "11 February 2025, 19:00" in first
    share = trace.hits[0]["signals"]["meaning"]
    assert f'<span class="figure">{share:+.2f}</span>' in first.split("<dt>Meaning</dt>")[1]
    assert f"score {trace.hits[0]['score']:.2f}" in first


def test_a_hit_leads_to_its_drawer_with_the_passage_marked(alices, mined):
    response = alices.get("/memory/", {"q": "wire"})
    address = html.unescape(re.search(r'<h3><a href="([^"]+)"', response.text)[1])
    assert re.search(r"\?passage=\d+-\d+$", address)
    assert "12-AWG" in alices.get(address).text


def test_the_block_for_a_model_is_shown_as_it_would_be_given(alices, mined):
    response = alices.get("/memory/", {"q": "wire"})
    assert "&lt;memory_context&gt;" in response.text
    trace = RecollectionTrace.objects.get(palace=mined)
    assert html.escape(trace.context) in response.text


def test_a_search_that_finds_nothing_says_what_to_try(alices, palace):
    response = alices.get("/memory/", {"q": "zebras"})
    assert "Nothing close" in response.text
    assert "Try other words" in response.text


def test_htmx_gets_the_results_without_the_page_around_them(alices, mined):
    response = alices.get("/memory/", {"q": "wire"}, headers=HTMX)
    assert response.text.lstrip().startswith('<div id="memory"')
    assert 'class="hits"' in response.text


def test_a_stranger_finds_nothing_of_it(bobs, mined):
    assert "12-AWG" not in bobs.get("/memory/", {"q": "which wire overheated?"}).text


def test_the_question_is_shown_as_it_was_typed(alices, mined):
    question = '"><script>alert(1)</script>'
    response = alices.get("/memory/", {"q": question})
    assert "<script>alert" not in response.text
    assert f'value="{html.escape(question)}"' in response.text


def test_without_the_embedder_keywords_answer_and_the_page_says_so(alices, palace, settings):
    # Nobody listens there: the connection is refused at once.
    settings.EMBEDDING_PROVIDER, settings.EMBEDDING_API_KEY = "http://127.0.0.1:9/v1", "none"
    settings.LLM_MAX_RETRIES = 0
    turn = Turn("1", "user", "The wire overheated.", datetime(2025, 2, 11, tzinfo=UTC))
    mine(palace, Transcript("plain", "efoil", "Wiring", (turn,)))
    response = alices.get("/memory/", {"q": "wire"})
    assert "The <mark>wire</mark> overheated." in response.text
    assert 'class="note"' in response.text


def test_a_hit_that_a_model_moved_says_so(alices, mined, model_server):
    assert "A model" not in alices.get("/memory/", {"q": "wire"}).text
    MemorySettings.objects.create(
        owner=mined.owner, provider=model_server.base_url, model="cheap", use_rerank=True
    )
    model_server.answer('{"order": [2, 1]}')
    first, second, third = alices.get("/memory/", {"q": "wire"}).text.split('<li class="hit">')[1:]
    assert "A model moved it from place 2 to 1." in first
    assert "A model moved it from place 1 to 2." in second
    assert "A model left it in place 3." in third


def hit(text, passage=None, signals=None):
    drawer = DrawerFactory(text=text)
    return Hit(drawer, drawer.pointer, 1.0, signals or {}, passage or (0, len(text)))


def snippet_of(text, query, passage=None):
    (row,) = hit_rows([hit(text, passage)], query)
    return row.snippet


def as_text(snippet):
    return "".join(piece for piece, _ in snippet)


@pytest.mark.django_db
def test_a_short_text_is_shown_whole_with_the_questions_words_marked():
    snippet = snippet_of("Two wires, one WIRE.", "the wire")
    assert as_text(snippet) == "Two wires, one WIRE."
    assert [piece for piece, marked in snippet if marked] == ["wires", "WIRE"]


@pytest.mark.django_db
def test_a_long_passage_is_cut_where_most_of_the_questions_words_are():
    filler = "nothing to see here " * 100
    text = f"wire {filler}the silicone wire overheated {filler}"
    snippet = snippet_of(text, "Which silicone wire overheated?")
    shown = as_text(snippet)
    assert "silicone wire overheated" in shown
    assert shown.startswith("… ")
    assert shown.endswith(" …")
    assert len(shown) <= SNIPPET_LENGTH + 4


@pytest.mark.django_db
def test_only_the_passage_is_shown_of_a_long_drawer():
    text = "First sentence here. Second sentence there. Third one."
    assert as_text(snippet_of(text, "x", (21, 43))) == "… Second sentence there. …"


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["x" * 5000, "字" * 5000, "\n" * 5000, " "])
def test_text_without_spaces_or_words_is_cut_all_the_same(text):
    shown = as_text(snippet_of(text, "字"))
    assert 0 < len(shown) <= SNIPPET_LENGTH + 4


@pytest.mark.django_db
def test_all_bars_of_a_recall_share_one_scale():
    rows = hit_rows(
        [
            hit("a", signals={"meaning": 3.0, "words": 0.5}),
            hit("b", signals={"meaning": 1.0, "words": -1.0}),
        ],
        "q",
    )
    drawn = [
        [(bar.label, bar.zero, bar.start, bar.width, bar.figure) for bar in row.bars]
        for row in rows
    ]
    assert drawn == [
        [("Meaning", 25.0, 25.0, 75.0, "+3.00"), ("Words", 25.0, 25.0, 12.5, "+0.50")],
        [("Meaning", 25.0, 25.0, 25.0, "+1.00"), ("Words", 25.0, 0.0, 25.0, "−1.00")],
    ]


@pytest.mark.django_db
def test_shares_too_small_to_draw_are_left_out_and_unknown_signals_are_named():
    (row,) = hit_rows([hit("a", signals={"time": 0.001, "new_signal": 0.2})], "q")
    assert [bar.label for bar in row.bars] == ["New signal"]


@pytest.mark.django_db
def test_only_signals_that_play_a_part_are_explained():
    assert explained([hit("a", signals={"words": 1.0, "time": 0.0})]) == [SIGNALS["words"]]


def test_every_signal_of_recall_has_a_name_for_people(alices, mined):
    alices.get("/memory/", {"q": "which wire overheated?"})
    trace = RecollectionTrace.objects.get(palace=mined)
    assert set(trace.hits[0]["signals"]) <= set(SIGNALS)
