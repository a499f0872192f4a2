"""The search box: what recall found, as the page shows it."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime

import pytest

from language.transcripts import Transcript, Turn
from llm.models import Usage
from palace.knowledge.facts.fact_learning import remember
from palace.mining.pipeline import mine
from palace.models import Drawer, Fact, Mention, Palace, RecollectionTrace
from palace.recall.recipes import SIGNALS
from palace.recall.request import Hit
from palace.storage.indexing.fact_vectors import fill_missing
from palace.storage.indexing.spaces import active_space
from palace.views.memory import explained, hit_rows
from palace.views.search import SNIPPET_LENGTH
from settings_app.models import MemorySettings
from tests.factories import DrawerFactory, EntityFactory, WingFactory
from tests.furnished_palaces import furnish_with

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
    return furnish_with(palace, Transcript("plain", "efoil", "Wiring the efoil", turns))


def test_the_best_drawer_comes_first_with_its_pointer_place_and_reasons(alices, mined):
    response = alices.get("/memory/", {"q": "which wire overheated?"})
    trace = RecollectionTrace.objects.get(palace=mined)
    first = response.text.split('<li class="hit">')[1]
    assert trace.hits[0]["pointer"] in first
    assert "<mark>wire</mark>" in first
    assert "&lt;<mark>overheated</mark>&gt;" in first
    assert "11 Feb 2025, 19:00" in first
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
    assert shown.startswith("…\u00a0")
    assert shown.endswith("\u00a0…")
    assert len(shown) <= SNIPPET_LENGTH + 4


@pytest.mark.django_db
def test_only_the_passage_is_shown_of_a_long_drawer():
    text = "First sentence here. Second sentence there. Third one."
    assert as_text(snippet_of(text, "x", (21, 43))) == "…\u00a0Second sentence there.\u00a0…"


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


LIVE = {**HTMX, "HX-Trigger": "q"}


def hits_in(text):
    """The ids of the drawers that are hits, in their order."""
    return re.findall(r'href="/memory/drawer/([^/?"]+)/\?passage', text)


def test_while_one_types_only_the_results_change_and_nothing_is_put_on_record(alices, mined):
    sent = {"q": "which wire", "wing": "", "by": ""}
    response = alices.get("/memory/", sent, headers=LIVE)
    assert response.text.lstrip().startswith('<div id="found"')
    assert 'id="q"' not in response.text
    status = re.search(r'<p hx-swap-oob="innerHTML:#search-status">([^<]+)</p>', response.text)
    assert re.fullmatch(r"\d drawers? found", status[1].strip())
    assert not RecollectionTrace.objects.exists()
    assert response.headers["HX-Replace-Url"] == "/memory/?q=which+wire"
    assert len(hits_in(response.text)) == len(
        hits_in(alices.get("/memory/", {"q": "which wire"}).text)
    )


def test_a_box_emptied_while_typing_shows_the_palace_again(alices, mined):
    response = alices.get("/memory/", {"q": ""}, headers=LIVE)
    assert response.status_code == 200
    assert 'id="results-title"' not in response.text
    assert 'id="palace-title"' in response.text


def test_a_pointer_being_typed_is_offered_and_not_followed(alices, drawer):
    response = alices.get("/memory/", {"q": str(drawer.pointer)}, headers=LIVE)
    assert "HX-Redirect" not in response.headers
    assert f'href="{drawer.get_absolute_url()}">Open {drawer.pointer}' in response.text


def test_why_these_results_leads_from_typing_to_the_record(alices, mined):
    response = alices.get("/memory/", {"q": "wire"}, headers=LIVE)
    address = html.unescape(re.search(r'href="(/memory/\?[^"]*why=1)"', response.text)[1])
    trace = alices.get(address)
    assert trace.url == f"/memory/recall/{RecollectionTrace.objects.get().uuid}/"


@pytest.mark.some(4)
@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"by": "user"}, 3),
        ({"by": "assistant"}, 0),
        ({"kind": "plain"}, 3),
        ({"kind": "slack"}, 0),
        ({"from": "2025-02-11", "to": "2025-02-11"}, 3),
        ({"from": "2025-02-12"}, 0),
        ({"to": "2025-02-10"}, 0),
        ({"person": "anna"}, 1),
        ({"person": "Anna", "by": "user"}, 1),
    ],
)
def test_filters_narrow_the_search_and_are_removed_as_chips(alices, mined, filters, found):
    anna = EntityFactory(palace=mined, name="Anna", slug="anna")
    wire = mined_drawer("12-AWG")
    Mention.objects.create(palace=mined, entity=anna, drawer=wire, start=0, end=1)
    text = alices.get("/memory/", {"q": "wire sourdough run", **filters}).text
    assert len(hits_in(text)) == found
    chips = re.findall(r"Remove the filter </span>", text)
    assert len(chips) == len(filters)
    removed = html.unescape(
        re.search(r'href="(/memory/\?[^"]*)"><span class="unseen">Remove', text)[1]
    )
    assert "q=wire+sourdough+run" in removed
    assert len(re.findall("Remove the filter", alices.get(removed).text)) == len(filters) - 1


def test_a_wing_narrows_too_and_its_choice_is_kept(alices, mined):
    wing = mined_drawer("12-AWG").room.wing
    text = alices.get("/memory/", {"q": "wire", "wing": wing.uuid}).text
    assert mined_drawer("12-AWG").room.wing == wing
    assert hits_in(text)
    assert f'<option value="{wing.uuid}" selected>' in text
    other = WingFactory(palace=mined)
    assert hits_in(alices.get("/memory/", {"q": "wire", "wing": other.uuid}).text) == []


@pytest.mark.parametrize(
    ("filters", "sentence"),
    [
        ({"person": "Nobody Atall"}, "Nobody here is called “Nobody Atall”."),
        ({"from": "someday"}, "“someday” is no day."),
    ],
)
def test_a_filter_that_is_wrong_is_refused_in_a_sentence(alices, mined, filters, sentence):
    for headers in ({}, HTMX, LIVE):
        response = alices.get("/memory/", {"q": "wire", **filters}, headers=headers)
        assert response.status_code == 400
        assert sentence in response.text


def test_what_filters_name_of_somebody_else_is_not_there(bobs, bob, mined):
    Palace.objects.own(bob)
    drawer = mined_drawer("12-AWG")
    person = EntityFactory(palace=mined, name="Anna", slug="anna")
    for theirs in ({"like": drawer.uuid}, {"wing": drawer.room.wing.uuid}, {"person": person.uuid}):
        assert bobs.get("/memory/", {"q": "wire", **theirs}).status_code == 404
    assert "Nobody here is called" in bobs.get("/memory/", {"q": "wire", "person": "Anna"}).text
    assert "12-AWG" not in bobs.get("/memory/", {"q": "wire", "by": "user"}).text


def test_more_like_a_hit_leaves_the_hit_itself_out(alices, mined):
    text = alices.get("/memory/", {"q": "wire"}).text
    drawer = mined_drawer("12-AWG")
    assert f'href="/memory/?like={drawer.uuid}"' in text
    like = alices.get("/memory/", {"like": drawer.uuid}).text
    assert str(drawer.uuid) not in hits_in(like)
    assert hits_in(like)[0] == str(mined_drawer("8 AWG").uuid)
    assert not RecollectionTrace.objects.filter(query__contains="silicone").exists()


def test_what_is_in_the_trash_is_like_nothing(alices, mined):
    drawer = mined_drawer("12-AWG")
    drawer.trash()
    assert alices.get("/memory/", {"like": drawer.uuid}).status_code == 404


def test_nothing_close_is_said_and_the_nearest_come_on_demand(alices, mined):
    text = alices.get("/memory/", {"q": "zygote phosphorylation"}).text
    assert "Nothing close" in text
    assert hits_in(text) == []
    address = html.unescape(re.search(r'href="([^"]+)">Show the nearest anyway', text)[1])
    nearest = alices.get(address).text
    assert len(hits_in(nearest)) == 3
    assert "These are the nearest all the same." in nearest


def test_each_hit_has_one_reason_and_its_bars_are_folded(alices, mined):
    text = alices.get("/memory/", {"q": "which wire overheated?"}).text
    for item in text.split('<li class="hit">')[1:]:
        assert item.count('class="reason"') == 1
        assert item.index('<details class="why">') < item.index('class="bars"')


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("query", "text", "signals", "reason"),
    [
        ("overheated wire", "The wire overheated.", {"meaning": 2}, "Says the words you typed"),
        ("What did Anna say?", "Tell Anna.", {"meaning": 2}, "Names Anna"),
        ("wire last week", "A wire.", {"time": 0.4, "meaning": 2}, "From the time you asked about"),
        ("hot cable", "The wire.", {"meaning": 2, "words": 1}, "Close in meaning"),
        ("hot wire", "The wire.", {"meaning": 1, "words": 2}, "Says “wire”"),
        ("hot cable", "Yes.", {"meaning": -1, "exchange": 1}, "Stands beside a message that fits"),
        ("hot cable", "Yes.", {"meaning": -1}, "The nearest there is"),
    ],
)
def test_the_reason_is_the_plainest_that_is_true(query, text, signals, reason):
    (row,) = hit_rows([hit(text, signals=signals)], query)
    assert row.reason == reason


@pytest.mark.django_db
def test_a_time_that_all_hits_share_is_no_reason():
    early, late = (hit(text, signals={"time": 0.4}) for text in ("A wire.", "A cable."))
    first, second = hit_rows([early, late], "wire last week")
    assert "time" not in first.reason
    assert "time" not in second.reason


@pytest.mark.django_db
def test_words_outside_the_closest_passage_are_shown():
    text = "First comes this. " * 20 + "Then the wire overheated."
    assert "wire overheated" in as_text(snippet_of(text, "overheated wire", (0, 17)))


def test_a_search_takes_no_more_queries_with_more_hits(
    alices, mined, django_assert_max_num_queries
):
    alices.get("/memory/", {"q": "wire"})
    with django_assert_max_num_queries(32):
        alices.get("/memory/", {"q": "wire sourdough run", "by": "user", "kind": "plain"})


def mined_drawer(words):
    return Drawer.objects.with_place().get(text__contains=words)


def test_the_closest_facts_stand_above_the_drawers(alices, mined):
    now = datetime(2025, 2, 12, tzinfo=UTC)
    for said in ("My aunt lives in Görlitz.", "I live in Porto.", "My sister works at Bosch."):
        remember(mined, said, now=now)
    fill_missing(mined, active_space(), list(Fact.objects.within(mined)))

    def known(**asked):
        page = alices.get("/memory/", asked).content.decode()
        return re.findall(r'class="fact-text"><a [^>]*>([^<]*)', page)

    assert known(q="Where does my aunt live?")[0] == "Your aunt lives in Görlitz"
    assert known(q="where do i live")[0] == "You live in Porto"
    assert known(q="zzzz qqqq") == known(q="which wire overheated?") == []
    assert known(q="Where does my aunt live?", by="user") == []
    calls = Usage.objects.count()
    assert known(q="Where does my sister work?")[0] == "Your sister works at Bosch"
    assert Usage.objects.count() == calls + 1  # Of facts it is asked in the third person.
