"""The page of one recall: why these came, why others did not, and what should have been found."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime

import pytest
from django.urls import reverse
from django.utils import timezone

from llm.tokens import count_tokens
from palace.curation.purge import Purge
from palace.knowledge.facts.fact_edits import forget, rewrite
from palace.knowledge.facts.fact_extraction import Scope
from palace.mining.pipeline import mine
from palace.models import Drawer, ExpectedDrawer, Fact, RecallCase, RecollectionTrace
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.views.score_explanations import Scale
from tests.conversations import transcript
from tests.factories import DrawerFactory

HTMX = {"HX-Request": "true"}
QUESTION = "Which wire overheated last week?"
NOW = datetime(2025, 3, 12, 10, tzinfo=UTC)


@pytest.fixture
def trace(lived_in):
    found = recall(lived_in, RecallRequest(QUESTION, top_k=3, now=NOW))
    return RecollectionTrace.objects.get(uuid=found.uuid)


def address(trace):
    return reverse("recall_detail", args=[trace.uuid])


def drawer_of(words):
    return Drawer.objects.with_place().get(text__contains=words)


def cards(text):
    """The cards of the page, by the id of their drawer."""
    pieces = re.split(r'<li class="(?:recalled|cut)\b', text)[1:]
    named = [(re.match(r'[^>]* id="drawer-([^"]+)"', piece), piece) for piece in pieces]
    return {name[1]: piece for name, piece in named if name}


def figures(card):
    rows = re.findall(r'<th scope="row">([^<]+)</th>.*?<td class="number">([^<]+)</td>', card, re.S)
    return {label: float(figure.replace("−", "-")) for label, figure in rows}


def test_the_shares_shown_add_up_to_the_score_to_the_last_digit(alices, trace):
    text = alices.get(address(trace)).text
    shown = cards(text)
    assert len(shown) == len(trace.hits) + len(trace.cut())
    for hit in trace.hits:
        steps = figures(shown[hit["drawer"]])
        total = steps.pop("Score")
        assert total == round(hit["score"], 2)
        assert round(sum(steps.values()), 2) == total


def test_each_hit_has_its_place_its_pointer_and_the_questions_words(alices, trace):
    text = alices.get(address(trace)).text
    first = cards(text)[trace.hits[0]["drawer"]]
    assert 'aria-label="Place 1"' in first
    assert trace.hits[0]["pointer"] in first
    assert "<mark>wire</mark>" in first
    assert re.search(r'href="/memory/drawer/[^"]+\?passage=\d+-\d+"', first)


def test_it_shows_how_the_question_was_read(alices, trace):
    text = html.unescape(alices.get(address(trace)).text)
    assert "“last week” as" in text
    assert "Mon 3 Mar 2025 – Sun 9 Mar 2025" in text
    assert "<li>overheated</li>" in text
    assert "12 March 2025, 10:00" in text
    assert "by meaning and by words" in text


def test_the_stages_of_a_recipe_put_together_by_a_program_are_shown(alices, lived_in):
    stages = [{"stage": "floor", "on": False}, {"stage": "graph", "hops": 2, "from_hits": True}]
    found = recall(lived_in, RecallRequest(QUESTION, recipe=stages))
    text = alices.get(reverse("recall_detail", args=[found.uuid])).text
    assert "<li>floor off</li><li>graph, hops 2, from hits True</li>" in text


def test_it_says_what_was_left_out_as_said_later(alices, lived_in):
    found = recall(lived_in, RecallRequest(QUESTION, as_of=NOW))
    text = alices.get(reverse("recall_detail", args=[found.uuid])).text
    assert "what was said after" in text
    assert "12 March 2025, 10:00" in text


def test_those_that_were_cut_are_there_with_why(alices, trace):
    text = alices.get(address(trace)).text
    _, cut = text.split("What was cut, and why")
    for candidate in trace.cut():
        drawer = Drawer.objects.get(pk=candidate["drawer"])
        assert f'id="drawer-{drawer.uuid}"' in cut
    assert "Ranked lower" in cut


def test_what_is_cut_from_a_long_text_says_that_it_goes_on(alices, palace):
    mine(palace, transcript("The wire overheated.", "A wire. " * 100, id="long"))
    found = recall(palace, RecallRequest("Which wire overheated?", top_k=1))
    long = drawer_of("A wire. A wire.")
    card = cards(alices.get(reverse("recall_detail", args=[found.uuid])).text)[str(long.uuid)]
    words = re.sub(r"<[^>]+>", "", re.search(r'<p class="cut-words">(.*?)</p>', card, re.S)[1])
    assert words.startswith("A wire. A wire.")
    assert words.endswith("\u00a0…")


def test_a_hit_that_did_not_fit_says_so(alices, lived_in):
    whole = recall(lived_in, RecallRequest(QUESTION, top_k=3))
    found = recall(
        lived_in, RecallRequest(QUESTION, top_k=3, budget_tokens=whole.context_tokens - 10)
    )
    trace = RecollectionTrace.objects.get(uuid=found.uuid)
    left_out = [hit["drawer"] for hit in trace.hits if "cut" in hit]
    assert left_out
    text = alices.get(address(trace)).text
    for drawer, card in cards(text).items():
        assert ("did not fit the budget of tokens" in card) == (drawer in left_out)


def test_what_a_model_was_given_is_there_to_the_letter(alices, trace):
    text = alices.get(address(trace)).text
    assert html.escape(trace.context) in text
    assert f">{count_tokens(trace.context)} tokens</span>" in text


@pytest.fixture
def homes(palace):
    """A recall that was given where she lives, learnt from her own words."""
    mine(palace, transcript("I live in Porto.", "How nice.", id="home"))
    found = recall(palace, RecallRequest("Where do I live?", now=NOW, with_facts=True))
    return RecollectionTrace.objects.get(uuid=found.uuid)


def test_the_facts_it_was_given_are_listed_with_their_words(alices, homes):
    text = alices.get(address(homes)).text
    fact = Fact.objects.get()
    assert homes.facts[0]["memory"] == str(fact.memory)
    assert "1 known fact came before them" in text
    assert f'href="{fact.get_absolute_url()}"' in text
    words = fact.evidence.get()
    assert "<q>I live in Porto" in text
    assert f"?passage={words.start}-{words.end}#text" in text


def test_a_fact_it_was_given_stays_as_it_was_then(alices, homes, palace):
    fact = Fact.objects.get()
    rewrite(palace, fact.memory, "User lives in Braga", Scope("person"))
    _, text = alices.get(address(homes)).text.split('id="known-title"')
    text, _ = text.split('id="hits-title"')
    assert "You live in Porto" in text
    assert "Braga" not in text
    assert "Replaced by a correction" in text


def test_a_fact_it_was_given_that_is_gone_for_good_is_counted(alices, homes, palace):
    forget(palace, Fact.objects.all())
    text = alices.get(address(homes)).text
    assert "1 fact that was given has been deleted for good since." in text


def test_a_drawer_in_the_trash_is_named_but_not_quoted(alices, trace):
    wire = drawer_of("12-AWG")
    wire.trash()
    card = cards(alices.get(address(trace)).text)[str(wire.uuid)]
    assert "It is in the trash by now" in card
    assert "silicone" not in card
    assert "<form" not in card
    assert figures(card)["Score"] > 0


def test_a_purged_drawer_leaves_its_figures_only(alices, trace, lived_in):
    wire = drawer_of("12-AWG")
    wire.trash(timezone.now())
    Purge(lived_in).run(Drawer.objects.filter(pk=wire.pk))
    text = alices.get(address(trace)).text
    assert "A drawer that was deleted for good" in text
    assert "silicone" not in text


def test_a_question_that_was_purged_is_shown_as_purged(alices, lived_in):
    said = drawer_of("My sourdough starter smells")
    found = recall(lived_in, RecallRequest(said.text))
    said.trash(timezone.now())
    Purge(lived_in).run(Drawer.objects.filter(pk=said.pk))
    text = alices.get(reverse("recall_detail", args=[found.uuid])).text
    assert "A question that was deleted" in text
    assert "vinegar" not in text
    assert "Should have been found" not in text


def test_a_recall_that_found_nothing_says_so(alices, palace):
    found = recall(palace, RecallRequest("zebras"))
    text = alices.get(reverse("recall_detail", args=[found.uuid])).text
    assert "Nothing close" in text
    assert "There was nothing to look at" in text


def test_a_trace_from_before_all_this_still_has_its_page(alices, drawer):
    old = RecollectionTrace.objects.create(
        palace=drawer.palace,
        query="What overheated?",
        recipe="default",
        now=timezone.now(),
        hits=[
            {
                "drawer": str(drawer.uuid),
                "pointer": str(drawer.pointer),
                "score": 1.5,
                "signals": {"meaning": 2.0, "dreams": -0.25},
            }
        ],
        candidates={"signals": [], "rows": [[0, 1, "left for tomorrow", None]]},
        duration_ms=1,
    )
    text = alices.get(address(old)).text
    steps = figures(cards(text)[str(drawer.uuid)])
    assert steps == {"Meaning": 2.0, "Dreams": -0.25, "Other": -0.25, "Score": 1.5}
    assert "Left for tomorrow" in text


def test_a_long_question_is_no_heading(alices, lived_in):
    question = f"{QUESTION} {'I wonder. ' * 100}"
    found = recall(lived_in, RecallRequest(question))
    text = alices.get(reverse("recall_detail", args=[found.uuid])).text
    assert "<h1>A long question</h1>" in text
    assert question.strip() in html.unescape(text)


def test_what_was_asked_is_shown_as_it_was_typed(alices, lived_in):
    found = recall(lived_in, RecallRequest("<script>alert(1)</script> wire"))
    assert "<script>alert" not in alices.get(reverse("recall_detail", args=[found.uuid])).text


# What should have been found.


def test_a_row_is_marked_and_the_mark_taken_back(alices, trace):
    other = drawer_of("We booked a flat")
    response = alices.post(address(trace), {"drawer": other.uuid})
    assert response.url == f"{address(trace)}#drawer-{other.uuid}"
    case = RecallCase.objects.get()
    assert (case.query, str(case.day)) == (QUESTION, "2025-03-12")
    assert ExpectedDrawer.objects.get().drawer == other
    assert "Should have been found, saved" in alices.get(address(trace)).text
    alices.post(address(trace), {"drawer": other.uuid, "take_back": "1"})
    assert not RecallCase.objects.exists()


def test_a_buttons_name_contains_its_label(alices, trace):
    text = alices.get(address(trace)).text
    assert 'This is right<span class="unseen">: §' in text
    assert 'Should have been found<span class="unseen">: §' in text
    assert "aria-label" not in text[text.index('class="expect"') :].partition("</form>")[0]


def test_a_hit_is_said_to_be_right(alices, trace):
    first = trace.hits[0]["drawer"]
    assert "This is right" in cards(alices.get(address(trace)).text)[first]
    response = alices.post(address(trace), {"drawer": first}, headers=HTMX)
    assert response.text.lstrip().startswith("<form")
    assert "Right, saved" in response.text
    assert "It came in place 1." in alices.get(address(trace)).text


def test_a_pointer_is_taken_in_any_writing(alices, trace):
    wanted = drawer_of("grilled sardines")
    pointer = str(wanted.pointer).removeprefix("§ ").lower()
    response = alices.post(address(trace), {"pointer": f" {pointer} "}, follow=True)
    assert f"Saved: {wanted.pointer} is expected" in response.text
    assert ExpectedDrawer.objects.get().drawer == wanted
    assert ">Expected<" in response.text


@pytest.mark.parametrize(
    ("pointer", "sentence"),
    [
        ("", "There is no pointer here"),
        ("the one about wires", "is no pointer"),
        ("W-999/R-999/D-999", "There is no drawer § W-999/R-999/D-999."),
        ("W-999999999/R-999999999/D-999999999", "There is no drawer"),
    ],
)
def test_what_is_no_drawer_is_refused_beside_the_field(alices, trace, pointer, sentence):
    response = alices.post(address(trace), {"pointer": pointer})
    assert response.status_code == 400
    text = html.unescape(response.text)
    assert sentence in re.search(r'id="pointer-error">([^<]+)<', text)[1]
    assert f'value="{pointer}"' in text
    assert text.count(sentence) == 1
    assert not RecallCase.objects.exists()


def test_what_is_in_the_trash_is_refused_with_what_to_do(alices, trace):
    wire = drawer_of("12-AWG")
    wire.trash()
    response = alices.post(address(trace), {"pointer": str(wire.pointer)})
    assert response.status_code == 400
    assert "restore it first" in response.text
    response = alices.post(address(trace), {"drawer": wire.uuid}, headers=HTMX)
    assert response.status_code == 400
    assert "restore it first" in response.text


@pytest.mark.parametrize("drawer", ["", "x", "6f1f3f0e-0b1f-4c55-8f55-0d6f0c3a7d11"])
def test_what_is_no_drawers_id_is_not_found(alices, trace, drawer):
    assert alices.post(address(trace), {"drawer": drawer}).status_code == 404


def test_a_strangers_drawer_is_not_found(alices, trace):
    other = DrawerFactory(number=777)
    assert alices.post(address(trace), {"drawer": other.uuid}).status_code == 404
    pointer = str(other.pointer)
    assert alices.post(address(trace), {"pointer": pointer}).status_code == 400
    assert not RecallCase.objects.exists()


def test_it_says_what_became_of_an_expected_drawer(alices, lived_in):
    found = recall(lived_in, RecallRequest(QUESTION, top_k=1, now=NOW))
    trace = RecollectionTrace.objects.get(uuid=found.uuid)
    lower = next(each for each in trace.cut() if each["cut"] == "ranked lower")
    drawer = Drawer.objects.get(pk=lower["drawer"])
    alices.post(address(trace), {"drawer": drawer.uuid})
    text = alices.get(address(trace)).text
    below = round(trace.hits[0]["score"], 2) - round(lower["score"], 2)
    assert (
        f"It was cut: ranked lower, in place {lower['place']} by its score, "
        f"{below:.2f} below the last one shown." in text
    )


# The ways there.


def test_a_search_leads_there_and_can_name_what_is_missing(alices, lived_in):
    text = alices.get(reverse("memory"), {"q": "Which wire overheated?"}).text
    trace = RecollectionTrace.objects.get()
    assert f'href="{address(trace)}">Why these results?' in text
    form = text.split('<form class="missing"')[1].split("</form>")[0]
    assert f'action="{address(trace)}"' in form
    assert "csrfmiddlewaretoken" in form


def test_so_does_a_search_that_found_nothing(alices, palace):
    text = alices.get(reverse("memory"), {"q": "zebras"}).text
    assert f'href="{address(RecollectionTrace.objects.get())}">Why nothing?' in text


def test_the_page_costs_the_same_however_much_it_shows(
    alices, lived_in, django_assert_max_num_queries
):
    few = recall(lived_in, RecallRequest(QUESTION, top_k=1))
    many = recall(lived_in, RecallRequest(QUESTION, top_k=12))
    for found in (few, many):
        with django_assert_max_num_queries(12):
            alices.get(reverse("recall_detail", args=[found.uuid]))


# The account of a score.


@pytest.mark.parametrize(
    ("score", "signals"),
    [
        (0.0, {}),
        (1.0, {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}),
        (0.015, {"a": 0.005, "b": 0.005, "c": 0.005}),
        (-2.5, {"a": -1.25, "b": -1.25}),
        (0.0, {"a": 5.0, "b": -5.0}),
        (12.3456, {"a": 20.0004, "b": -7.6548}),
        (1e6, {"a": 1e6}),
    ],
)
def test_an_account_is_within_its_scale_and_adds_up(score, signals):
    scale = Scale([(score, signals), (1.0, {"a": 1.0})])
    account = scale.account(score, signals)
    assert sum(step.hundredths for step in account.steps) == round(score * 100)
    assert account.sum.hundredths == round(score * 100)
    for step in (*account.steps, account.sum):
        assert -0.01 <= step.start <= step.start + step.width <= 100.02


def test_each_step_begins_where_the_one_before_it_ended():
    account = Scale([(3.0, {"a": 4.0, "b": 1.0, "c": -2.0})]).account(
        3.0, {"a": 4.0, "b": 1.0, "c": -2.0}
    )
    a, b, c = account.steps
    assert (a.start, a.width) == (0, 80)
    assert (b.start, b.width) == (80, 20)
    assert (c.start, c.width, c.figure) == (60, 40, "−2.00")
    assert (account.sum.start, account.sum.width) == (0, 60)
