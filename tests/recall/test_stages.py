"""Recipes taken apart: lists of stages, what each of them does, and how wrong ones are refused."""

from __future__ import annotations

import json
import re

import pytest
from django.conf import settings

from language.errors import BadRecipe, UnknownRecipe
from palace.models import Drawer, Entity, Fact, Mention, RecollectionTrace
from palace.recall.context_builder import TIERS
from palace.recall.recipes import RECIPES, SIGNALS
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.recall.stages import INLINE, STAGES, recipe_given, recipe_of, stages_of
from palace.recall.trace import STAGES_GIVEN
from tests.conversations import BATTERY, START

QUESTION = "silicone wire overheated"
NOWHERE = "Which volcano erupted in Iceland?"


def off(*names):
    return [{"stage": name, "on": False} for name in names]


def ask(palace, stages, question=QUESTION, **options):
    found = recall(palace, RecallRequest(question, recipe=stages, **options))
    return found, RecollectionTrace.objects.get(palace=palace, uuid=found.uuid)


def test_the_stages_are_those_of_the_design_in_the_order_in_which_they_run():
    assert " ".join(STAGES) == (
        "rewrite semantic keyword temporal preference graph fusion floor rerank packing"
    )


@pytest.mark.parametrize("name", set(RECIPES) - {"keyword"})
def test_a_named_recipe_is_a_list_of_stages_that_makes_it_again(name):
    recipe, made = RECIPES[name], recipe_of(stages_of(RECIPES[name]))
    assert stages_of(made) == [
        row if row["stage"] != "rerank" else {**row, "on": True} for row in stages_of(recipe)
    ]
    assert (made.weights, made.more) == (recipe.weights, recipe.more)
    for kinds in ((), ("times",), ("names", "survey")):
        assert made.weights_for(kinds) == recipe.weights_for(kinds)


def test_by_words_alone_has_the_weights_that_were_learnt_for_it():
    made, keyword = recipe_of(off("semantic")), RECIPES["keyword"]
    assert (made.weights, made.more, made.by_meaning) == (keyword.weights, keyword.more, False)


PAGE = (settings.BASE_DIR / "docs" / "recipes.md").read_text(encoding="utf-8")


def test_the_document_has_every_stage_and_tunable():
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]*) \|$", PAGE, re.MULTILINE)
    assert [name for name, _ in rows] == list(STAGES)
    for name, tunables in rows:
        assert set(re.findall(r"`(\w+)`", tunables)) == {t.name for t in STAGES[name].tunables}


def test_the_documents_example_is_a_recipe():
    [example] = re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    recipe = recipe_of(json.loads(example)["recipe"])
    assert (recipe.rewrite, recipe.hops, recipe.floor, recipe.facts) == (True, 2, False, 12)


def test_what_a_list_leaves_out_is_as_in_the_default():
    made, default = recipe_of([]), RECIPES["default"]
    assert stages_of(made) == stages_of(default)
    assert made.name == INLINE
    assert made.shares == TIERS


def test_a_caller_gives_a_name_or_a_list():
    assert recipe_given("fast") is RECIPES["fast"]
    assert recipe_given([{"stage": "fusion", "candidates": 60}]).best_each == 60
    with pytest.raises(UnknownRecipe, match="souffle"):
        recipe_given("souffle")


@pytest.mark.parametrize(
    ("stages", "why"),
    [
        (["graph"], "A stage is an object such as"),
        ([{}], "There is no stage None; choose from `rewrite`, `semantic`"),
        ([{"stage": "sieve"}], "no stage 'sieve'"),
        ([{"stage": ["graph"]}], "no stage"),
        ([{"stage": "graph"}, {"stage": "graph"}], "`graph` is there twice"),
        ([{"stage": "graph", "depth": 2}], "`graph` has no 'depth'; it has `on`, `hops`"),
        ([{"stage": "graph", "hops": 6}], "`hops` must be a whole number from 0 to 5, not 6"),
        ([{"stage": "graph", "hops": 1.5}], "`hops` must be a whole number"),
        ([{"stage": "graph", "hops": True}], "`hops` must be a whole number"),
        ([{"stage": "graph", "hops": "2"}], "not '2'"),
        ([{"stage": "graph", "from_hits": 1}], "`from_hits` must be true or false"),
        ([{"stage": "floor", "shift": float("nan")}], "`shift` must be a number"),
        ([{"stage": "floor", "on": None}], "`on` must be true or false"),
        ([{"stage": "fusion", "on": False}], "`fusion` cannot be off"),
        ([{"stage": "packing", "facts_share": 0.9}], "more than 1 together"),
        (off("semantic", "keyword"), "Nothing is searched"),
    ],
)
def test_a_wrong_list_says_what_is_allowed(palace, stages, why):
    with pytest.raises(BadRecipe, match=why):
        recall(palace, RecallRequest(QUESTION, recipe=stages))


def test_a_long_wrong_value_is_not_repeated_whole():
    with pytest.raises(BadRecipe) as caught:
        recipe_of([{"stage": "x" * 10_000}])
    assert len(str(caught.value)) < 300


def test_the_default_taken_apart_and_put_together_finds_the_same_to_the_digit(lived_in):
    found, _ = ask(lived_in, "default")
    same, trace = ask(lived_in, stages_of(RECIPES["default"]), rerank=False)
    assert found.hits
    assert [(hit.pointer, hit.score, hit.signals) for hit in same.hits] == [
        (hit.pointer, hit.score, hit.signals) for hit in found.hits
    ]
    assert trace.recipe == INLINE


def test_the_trace_has_the_stages_as_they_were_given(lived_in):
    stages = [{"stage": "fusion", "candidates": 50, "room": 0}]
    found, trace = ask(lived_in, stages)
    assert trace.reading[STAGES_GIVEN] == stages
    assert "room" not in found.hits[0].signals
    _, named = ask(lived_in, "default")
    assert STAGES_GIVEN not in named.reading


@pytest.mark.parametrize(
    ("stage", "gone"),
    [
        ("keyword", {"words", "agreement"}),
        ("semantic", {"meaning", "agreement"}),
    ],
)
def test_a_stage_that_is_off_gives_no_signal(lived_in, stage, gone):
    found, _ = ask(lived_in, off(stage))
    assert found.hits[0].drawer.text == BATTERY.turns[0].text
    assert gone <= SIGNALS.keys()
    assert not gone & found.hits[0].signals.keys()


def test_without_the_stage_times_are_not_read(lived_in):
    question = "What did I say in March 2025?"
    _, read = ask(lived_in, "default", question)
    _, unread = ask(lived_in, off("temporal"), question)
    assert [period["text"] for period in read.reading["periods"]]
    assert "periods" not in unread.reading


def test_without_the_stage_no_advice_is_read(lived_in):
    question = "Can you recommend a cake for me?"
    _, read = ask(lived_in, "default", question)
    _, unread = ask(lived_in, off("preference"), question)
    assert "advice" in read.reading["asks"]
    assert "advice" not in unread.reading.get("asks", ())


def test_a_weight_multiplies_a_signals_share(lived_in):
    once, _ = ask(lived_in, "default", top_k=50)
    twice, _ = ask(lived_in, [{"stage": "keyword", "weight": 2}], top_k=50)
    shares = {hit.pointer: hit.signals for hit in once.hits}
    for hit in twice.hits:
        assert hit.signals["words"] == pytest.approx(2 * shares[hit.pointer]["words"], abs=1e-4)
        assert hit.signals["room"] == shares[hit.pointer]["room"]


def test_the_floor_refuses_less_or_more(lived_in):
    assert ask(lived_in, "default", NOWHERE)[0].hits == ()
    _, trace = ask(lived_in, off("floor"), NOWHERE)
    assert trace.figures["floor"]["exempt"] == "no floor"
    assert not trace.figures["floor"]["refused"]
    strict, trace = ask(lived_in, [{"stage": "floor", "shift": 20}])
    assert strict.hits == ()
    assert trace.figures["floor"]["refused"]


@pytest.fixture
def chain(lived_in):
    """Fern knows Gil, who lives in Porto; the message about wire mentions Gil."""

    def entity(name, kind):
        return Entity.objects.create(palace=lived_in, kind=kind, name=name, slug=name.lower())

    def fact(subject, predicate, other):
        return Fact.objects.create(
            palace=lived_in,
            subject=subject,
            object_entity=other,
            object=other.name,
            predicate=predicate,
            type=Fact.Type.FACT,
            text=f"{subject.name} {predicate} {other.name}",
            confidence=0.9,
            single=False,
            recorded_at=START,
        )

    fern, gil = entity("Fern", Entity.Kind.PERSON), entity("Gil", Entity.Kind.PERSON)
    porto = entity("Porto", Entity.Kind.PLACE)
    fact(fern, "knows", gil)
    lives = fact(gil, "lives in", porto)
    wire = Drawer.objects.within(lived_in).get(text=BATTERY.turns[0].text)
    Mention.objects.create(palace=lived_in, entity=gil, drawer=wire, start=0, end=3)
    return lives


def score_of(found, fact):
    return next((known.score for known in found.facts if known.fact.pk == fact.pk), None)


def test_hops_and_the_start_of_the_graph_decide_how_near_facts_are(lived_in, chain):
    def scored(question, *stages):
        packing = {"stage": "packing", "facts": 50}
        found, _ = ask(lived_in, [*stages, packing], question, with_facts=True)
        return score_of(found, chain)

    named = "Where is Fern’s friend living, in Porto?"
    own = scored(named, *off("graph"))
    assert scored(named, {"stage": "graph"}) == pytest.approx(own + 0.2)
    asked = "Which silicone wire overheated, and where does its owner live?"
    unconnected = scored(asked, {"stage": "graph"})
    connected = scored(asked, {"stage": "graph", "from_hits": True})
    assert connected == pytest.approx((unconnected or 0.0) + 0.2 * 0.6, abs=0.2)
    assert unconnected is None or connected > unconnected
