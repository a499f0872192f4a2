"""What the model's answer about facts comes to: every source goes, nothing unknown does."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from palace.curation.trash import move_to_trash
from palace.knowledge.dreaming.decisions import accept_all
from palace.knowledge.dreaming.dream_input import MOST_FEEDBACK, feedback_of
from palace.knowledge.dreaming.dream_run import dream
from palace.knowledge.facts.fact_edits import delete, rewrite
from palace.knowledge.facts.fact_extraction import Scope
from palace.models import Drawer, Fact, Proposal, RecallCase
from palace.models.recall import ExpectedDrawer
from tests.knowledge.dreaming.conftest import LONG_AGO, answers, dream_costs, held, numbers_in
from tests.knowledge.facts.conftest import said

NOW = timezone.now()


@pytest.fixture
def dreams(palace, model):
    """Dream with a model that answers what a function makes of the numbers it was shown."""

    def dreams(answer):
        answers(model, lambda request: json.dumps(answer(numbers_in(request))))
        return dream(palace)

    return dreams


def accept_everything(palace):
    waiting = Proposal.objects.within(palace).waiting()
    return accept_all(palace, list(waiting.values_list("uuid", flat=True)))


def test_every_source_of_a_merge_goes_though_the_model_forgets_to_delete_it(palace, hold, dreams):
    texts = ["User bakes rye bread", "User makes bread of rye at home", "User is a rye baker"]
    for text in texts:
        hold(text)
    hold("User said hello")
    dreams(
        lambda n: {
            "merged": [
                {
                    "source_ids": [n[text] for text in texts],
                    "text": "User bakes rye bread at home",
                    "category": "habits/baking",
                    "tags": ["bread"],
                }
            ],
            # Two of the three sources are forgotten here.
            "to_delete": [n[texts[0]], n["User said hello"]],
        }
    )
    kinds = Proposal.objects.order_by("pk").values_list("kind", flat=True)
    assert list(kinds) == ["merge", "drop"]
    assert len(accept_everything(palace).done) == 2
    assert held(palace) == ["User bakes rye bread at home"]
    fact = Fact.objects.within(palace).active().get()
    assert (fact.category, fact.tags) == ("habits/baking", ["bread"])
    assert fact.evidence.count() == 3


def test_numbers_that_were_not_shown_are_ignored_and_reported(palace, hold, dreams):
    hold("User bakes rye bread")
    dreamt = dreams(
        lambda n: {
            "merged": [{"source_ids": [88, 99], "text": "User is from Mars"}],
            "refined": [{"id": 77, "category": "x"}],
            "outdated": [{"id": -1}],
            "to_delete": [0, 4000],
        }
    )
    assert not Proposal.objects.exists()
    (note,) = [note for note in dreamt.notes if "not shown" in note]
    assert note.endswith("-1, 0, 77, 88, 99, 4000.")
    assert held(palace) == ["User bakes rye bread"]


def test_what_one_merge_has_taken_in_no_other_takes(palace, hold, dreams):
    one, two, three = (hold(f"User likes {what}", "likes") for what in ("figs", "kelp", "oats"))
    dreamt = dreams(
        lambda n: {
            "merged": [
                {"source_ids": [n[one.text], n[two.text]], "text": "User likes figs and kelp"},
                {"source_ids": [n[two.text], n[three.text]], "text": "User likes kelp and oats"},
            ],
            "to_delete": [n[one.text]],
        }
    )
    assert Proposal.objects.get().payload["after"]["text"] == "User likes figs and kelp"
    assert any("made no sense: 1" in note for note in dreamt.notes)


def test_facts_of_different_agents_are_not_merged(palace, hold, dreams):
    hold("User likes figs", "likes", agent="cook")
    hold("User is fond of figs", "likes", agent="gardener")
    dreams(lambda n: {"merged": [{"source_ids": list(n.values()), "text": "User likes figs"}]})
    assert not Proposal.objects.exists()


def test_what_is_outdated_says_by_what(palace, hold, dreams):
    old = hold("User is looking for a flat", "plans")
    new = hold("User rents a flat in Ghent", "lives_in", at=LONG_AGO + timedelta(days=30))
    dreams(lambda n: {"outdated": [{"id": n[old.text], "by": n[new.text]}]})
    accept_everything(palace)
    old.refresh_from_db()
    assert (old.fate, old.valid_to) == ("superseded", LONG_AGO + timedelta(days=30))


def test_categories_and_tags_are_refined(palace, hold, dreams):
    hold("User has a cat named Miso", "has_pet", category="things")
    dreams(lambda n: {"refined": [{"id": 1, "category": "home/pets", "tags": ["cat", "Miso"]}]})
    accept_everything(palace)
    fact = Fact.objects.within(palace).active().get()
    assert (fact.text, fact.category) == ("User has a cat named Miso", "home/pets")
    assert fact.tags == ["cat", "Miso"]


def test_an_anti_pattern_is_written_from_a_correction(palace, hold, dreams, model):
    hold("User likes figs", "likes")
    words = said(palace, "No, I said plain text! Stop using bold everywhere.", NOW)
    dreams(
        lambda n: {
            "anti_patterns": [
                {
                    "domain": "Text Formatting",
                    "dont": "use bold text",
                    "for_reason": "emphasis in plain messages",
                    "instead": "write plain text",
                    "feedback": [1, 60],
                },
                {"domain": "x", "dont": "a", "for_reason": "b", "instead": "c", "feedback": [60]},
            ]
        }
    )
    assert "Stop using bold everywhere" in model.requests[0].prompt
    accept_everything(palace)
    fact = Fact.objects.within(palace).active().get(category__startswith="anti-patterns/")
    assert fact.category == "anti-patterns/text-formatting"
    assert fact.tags == ["anti-pattern"]
    assert (
        fact.text == "Don't use bold text for emphasis in plain messages — instead write plain text"
    )
    assert [one.drawer_id for one in fact.evidence.all()] == [words.pk]


def test_an_anti_pattern_is_not_found_again_in_other_words(palace, hold, dreams):
    hold("User likes figs", "likes")
    said(palace, "No, I said plain text! Stop using bold everywhere.", NOW)
    for instead in ("write plain text", "just write in plain text"):
        dreams(
            lambda n, instead=instead: {
                "anti_patterns": [
                    {
                        "domain": "formatting",
                        "dont": "use bold text",
                        "for_reason": "emphasis",
                        "instead": instead,
                        "feedback": [1],
                    }
                ],
                "to_delete": [99] if "just" in instead else [],
            }
        )
        hold(f"User likes {instead}", "likes")
    assert Proposal.objects.filter(kind="anti_pattern").count() == 1


def test_feedback_is_what_was_found_wrong_in_the_last_days(palace, hold):
    said(palace, "You misunderstood me, it is 7.", NOW - timedelta(days=1))
    said(palace, "You misunderstood me, it is 8.", NOW - timedelta(days=8))
    said(palace, "What a lovely day.", NOW - timedelta(days=1))
    trashed = said(palace, "That's wrong, it is 9.", NOW)
    move_to_trash(trashed)
    wrong, gone = hold("User likes figs", "likes"), hold("User likes kelp", "likes")
    rewrite(palace, wrong.memory, "User likes dates", Scope("person"))
    delete(palace, gone.memory, Scope("person"))
    hold("User likes oats", "likes")
    case = RecallCase.objects.create(palace=palace, query="Which fruit?", now=NOW, day=NOW.date())
    drawer = Drawer.objects.get(text="User likes oats.")
    ExpectedDrawer.objects.create(palace=palace, case=case, drawer=drawer, place=None)
    found = feedback_of(palace, timezone.now())
    assert sorted(one.kind for one in found) == ["correction", "fact", "fact", "search"]
    joined = "\n".join(one.text for one in found)
    for words in ("it is 7", "changed it to: User likes dates", "It was deleted", "Which fruit?"):
        assert words in joined
    assert all(one.quotes for one in found)


def test_feedback_has_a_limit(palace):
    for minute in range(MOST_FEEDBACK + 5):
        said(palace, f"No, I meant {minute}.", NOW - timedelta(minutes=minute))
    found = feedback_of(palace, timezone.now())
    assert len(found) == MOST_FEEDBACK
    assert found[0].text == "No, I meant 0."


@pytest.mark.parametrize("reply", ["Nothing but words.", '{"merged": 3}', '{"merged": [{}]}'])
def test_nonsense_leaves_the_rules(palace, hold, model, reply):
    hold("User likes figs", "likes")
    hold("User enjoys figs", "likes")
    answers(model, reply)
    dreamt = dream(palace)
    assert any("of no help" in note for note in dreamt.notes)
    assert [one.payload["made_by"] for one in Proposal.objects.all()] == ["rules"]
    assert dream_costs().count() >= 1
