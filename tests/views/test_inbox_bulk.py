"""The inbox: many proposals decided on at once."""

from __future__ import annotations

import re
from uuid import uuid4

import pytest
from django.urls import reverse

from palace.knowledge.facts.fact_edits import rewrite
from palace.models import Proposal
from palace.views import inbox as inbox
from tests.factories import FactFactory
from tests.knowledge.dreaming.conftest import held, proposed
from tests.views.conftest import BY_PERSON

INBOX = "/memory/inbox/"
HTMX = {"HX-Request": "true"}


@pytest.fixture
def three(palace, user):
    """Three proposals to let something go."""
    return [
        proposed(palace, "drop", FactFactory(subject=user, text=f"Number {number}"))
        for number in range(3)
    ]


def decide(client, decision, proposals, *, part=False, query=""):
    sent = {"decision": decision, "chosen": [getattr(one, "uuid", one) for one in proposals]}
    headers = HTMX if part else {}
    target = reverse("decide_proposals") + query
    return client.post(target, sent, headers=headers, follow=not part)


def statuses():
    return list(Proposal.objects.order_by("pk").values_list("status", flat=True))


def undo_of(response):
    return re.search(r'name="chosen" value="([0-9a-f -]+)"', response.text)[1]


@pytest.mark.parametrize("part", [False, True])
def test_those_that_are_selected_are_accepted_and_undone(alices, palace, three, part):
    response = decide(alices, "accept", three[:2], part=part)
    assert response.status_code == 200
    assert "Accepted: 2 proposals." in response.text
    assert held(palace) == ["Number 2"]
    assert statuses() == ["accepted", "accepted", "proposed"]
    undone = decide(alices, "undo", [undo_of(response)], part=part)
    assert "Undone: 2 proposals." in undone.text
    assert 'value="undo"' not in undone.text
    assert held(palace) == ["Number 0", "Number 1", "Number 2"]


@pytest.mark.parametrize("part", [False, True])
def test_those_that_are_selected_are_rejected_and_wait_again(alices, palace, three, part):
    response = decide(alices, "reject", three, part=part)
    assert "Rejected: 3 proposals." in response.text
    assert statuses() == ["rejected"] * 3
    decide(alices, "undo", [undo_of(response)], part=part)
    assert statuses() == ["proposed"] * 3


def test_twice_is_as_once(alices, palace, three):
    for _ in range(2):
        assert "Accepted: 3 proposals." in decide(alices, "accept", three).text
    assert held(palace) == []


def test_one_that_went_stale_is_reported_and_the_others_are_done(alices, palace, user, three):
    changed = three[0].about.get().fact
    rewrite(palace, changed.memory, "Another", BY_PERSON)
    response = decide(alices, "accept", three, part=True)
    assert "Accepted: 2 proposals." in response.text
    assert "1 proposal could not be: What this was about has changed" in response.text
    assert statuses() == ["stale", "accepted", "accepted"]
    alone = decide(alices, "accept", three[:1])
    assert "Nothing was done." in alone.text


@pytest.mark.parametrize("part", [False, True])
@pytest.mark.parametrize(
    ("decision", "chosen", "sentence"),
    [
        ("accept", 0, "Nothing was selected."),
        ("burn", 1, "Choose what to do"),
        ("", 1, "Choose what to do"),
        ("reject", 3, "At most 2 can be decided on at once."),
    ],
)
def test_what_is_wrong_is_said(monkeypatch, alices, three, decision, chosen, sentence, part):
    monkeypatch.setattr(inbox, "MOST_AT_ONCE", 2)
    response = decide(alices, decision, three[:chosen], part=part)
    assert response.status_code == (400 if part else 200)
    assert sentence in response.text
    assert statuses() == ["proposed"] * 3


def test_what_is_not_ones_own_is_not_found(alices, bobs, three):
    assert decide(bobs, "accept", three).status_code == 404
    assert decide(alices, "accept", [uuid4()]).status_code == 404
    assert decide(alices, "accept", ["nonsense"]).status_code == 404
    assert statuses() == ["proposed"] * 3


def test_one_that_is_gone_does_not_keep_the_others(alices, three):
    assert "Accepted: 1 proposal." in decide(alices, "accept", [three[0], uuid4()]).text


def test_all_of_a_kind_can_be_selected_without_scripts(alices, palace, user, three):
    other = proposed(palace, "outdated", FactFactory(subject=user, text="Over"))
    text = alices.get(INBOX, {"select": "drop"}).text
    ticked = re.findall(r'id="choose-([0-9a-f-]+)"[^>]* checked', text)
    assert sorted(ticked) == sorted(str(one.uuid) for one in three)
    assert str(other.uuid) in text
    assert "Select these 3" in text


def test_decided_ones_are_undone_together(alices, palace, three):
    decide(alices, "accept", three)
    page = alices.get(INBOX, {"show": "decided"}).text
    assert page.count('name="chosen"') == 3
    response = decide(alices, "undo", three, query="?show=decided")
    assert response.redirect_chain == [(f"{INBOX}?show=decided", 302)]
    assert held(palace) == ["Number 0", "Number 1", "Number 2"]
