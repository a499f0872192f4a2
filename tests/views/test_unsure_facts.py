"""Review: facts that Loci is not sure of, with what they would change."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from palace.knowledge.facts import remember
from palace.models import Fact, Palace, Proposal, Statement

INBOX = "/memory/inbox/"
HTMX = {"HX-Request": "true"}
START = datetime(2024, 1, 1, 9, 0, tzinfo=UTC)


@pytest.fixture
def moved(palace):
    remember(palace, "I live in Berlin.", now=START)
    remember(palace, "We moved to Proxmox.", now=START + timedelta(days=30))
    return Proposal.objects.within(palace).get()


def text_of(response):
    return html.unescape(re.sub(r"\s+", " ", response.text))


def held(palace):
    sure = Fact.objects.within(palace).active().filter(confidence__gte=0.7)
    return list(sure.values_list("text", flat=True))


def decide(client, proposal, decision, *, part=False):
    target = reverse(f"{decision}_proposal", args=[proposal.uuid])
    return client.post(target, headers=HTMX if part else {}, follow=not part)


def test_it_shows_the_words_what_it_would_say_and_what_would_end(alices, moved):
    text = text_of(alices.get(INBOX))
    assert "Unsure facts" in text
    assert "You live in <del>Berlin</del>" in text
    assert "You live in <ins>Proxmox</ins>" in text
    assert "<q>We moved to Proxmox" in text
    assert "Not used before you accept it" in text


def test_where_nothing_would_end_it_is_all_new(alices, palace):
    remember(palace, "We moved to Proxmox.", now=START)
    text = text_of(alices.get(INBOX))
    assert "<ins>You live in Proxmox</ins>" in text
    assert "<dt>Now</dt>" not in text


def test_where_a_later_one_stays_it_says_so(alices, palace):
    remember(palace, "I live alone.", now=START)
    remember(palace, "I live with two flatmates now.", now=START + timedelta(days=60))
    statement = Statement.objects.get(palace=palace, drawer__text="I live alone.")
    statement.content["confidence"] = 0.6
    statement.save()
    remember(palace, "I have a dog.", now=START - timedelta(days=60))
    text = text_of(alices.get(INBOX))
    assert "It was so before that: the other one was said later, and stays." in text
    assert '<span class="fate now">stays</span>' in text


@pytest.mark.parametrize("part", [False, True])
def test_it_is_accepted_and_undone(alices, palace, moved, part):
    response = decide(alices, moved, "accept", part=part)
    assert "Accepted" in response.text
    assert held(palace) == ["User lives in Proxmox"]
    decided = text_of(alices.get(f"{INBOX}?show=decided"))
    assert "You live in <del>Berlin</del>" in decided
    again = decide(alices, moved, "undo", part=part)
    assert reverse("accept_proposal", args=[moved.uuid]) in again.text
    assert held(palace) == ["User lives in Berlin"]


@pytest.mark.parametrize("part", [False, True])
def test_it_is_rejected_and_undone(alices, palace, moved, part):
    response = decide(alices, moved, "reject", part=part)
    assert "Rejected; it will not be proposed again" in response.text
    assert Fact.objects.within(palace).active().count() == 1
    again = decide(alices, moved, "undo", part=part)
    assert reverse("reject_proposal", args=[moved.uuid]) in again.text
    assert Fact.objects.within(palace).active().count() == 2


def test_several_are_accepted_at_once(alices, palace, moved):
    remember(palace, "I moved to Arch.", now=START + timedelta(days=40))
    chosen = list(Proposal.objects.within(palace).values_list("uuid", flat=True))
    sent = {"decision": "accept", "chosen": chosen}
    response = alices.post(reverse("decide_proposals"), sent, follow=True)
    assert "Accepted: 2 proposals." in response.text
    assert held(palace) == ["User lives in Arch"]


def test_the_rail_counts_it(alices, moved):
    assert '<span class="badge">1<span class="unseen"> waiting' in alices.get("/memory/").text


def test_its_page_and_the_list_of_facts_say_that_it_is_not_used(alices, moved):
    fact = moved.about.get().fact
    page = alices.get(fact.get_absolute_url())
    assert "Loci is not sure of this, and does not use it before you accept it." in page.text
    assert f"{INBOX}?about={fact.memory}" in page.text
    assert '<span class="fate">not sure</span>' in alices.get("/memory/facts/").text


def test_a_stranger_gets_404_and_changes_nothing(bobs, palace, moved):
    for decision in ("accept", "reject", "undo"):
        assert decide(bobs, moved, decision).status_code == 404
    sent = {"decision": "accept", "chosen": [moved.uuid]}
    assert bobs.post(reverse("decide_proposals"), sent).status_code == 404
    assert held(palace) == ["User lives in Berlin"]


def test_many_take_no_more_queries_than_one(alices, palace, moved):
    def count():
        with CaptureQueriesContext(connection) as asked:
            assert alices.get(INBOX).status_code == 200
        return len(asked)

    count()
    one = count()
    for day, place in enumerate(("Arch", "Snowplow", "Zwinkel", "Grumbly")):
        remember(palace, f"We moved to {place}.", now=START + timedelta(days=40 + day))
    assert Proposal.objects.within(palace).count() == 5
    assert count() == one


def test_it_is_no_kind_that_dreams_are_trusted_with(alices):
    page = alices.get(reverse("dream_settings"))
    assert 'value="merge"' in page.text
    assert 'value="unsure"' not in page.text


def test_another_persons_palace_has_its_own(alices, alice, palace, moved):
    other = Palace.objects.create(owner=alice, subject="ann")
    remember(other, "We moved to Arch.", now=START)
    assert "Arch" not in alices.get(INBOX).text
