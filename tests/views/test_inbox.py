"""The inbox: what waits, shown with before and after, accepted, rejected and undone one by one."""

from __future__ import annotations

import html
import re
from uuid import uuid4

import pytest
from django.urls import reverse

from palace.curation.trash import move_to_trash
from palace.knowledge.dreaming.decisions import accept, reject
from palace.knowledge.facts.fact_edits import delete, rewrite
from palace.models import Drawer, Fact, Proposal
from palace.views.inbox import PROPOSALS_SHOWN
from tests.factories import DrawerFactory, EvidenceFactory, FactFactory
from tests.knowledge.dreaming.conftest import held, proposed
from tests.views.conftest import BY_PERSON, address, moment

INBOX = "/memory/inbox/"
DECIDED, STALE = f"{INBOX}?show=decided", f"{INBOX}?show=stale"
HTMX = {"HX-Request": "true"}
TEA, ALSO_TEA = "User drinks tea daily", "User has tea daily"


@pytest.fixture
def tea(user, said):
    """Two facts that say the same, each on words of its own."""
    early = FactFactory(
        subject=user, text=TEA, valid_from=moment(2024), category="things", tags=["hot"]
    )
    late = FactFactory(subject=user, text=ALSO_TEA, valid_from=moment(2025))
    EvidenceFactory(fact=early, drawer=said, start=0, end=5)
    words = DrawerFactory(room=said.room, text="Tea again, <as> always.")
    EvidenceFactory(fact=late, drawer=words)
    return early, late


@pytest.fixture
def merge(palace, tea):
    return proposed(
        palace, "merge", *tea, after="User drinks green tea daily", category="habits", tags=["tea"]
    )


@pytest.fixture
def drop(palace, fact):
    return proposed(palace, "drop", fact)


def decide(client, proposal, decision, *, part=False, query="", **options):
    target = reverse(f"{decision}_proposal", args=[proposal.uuid]) + query
    headers = HTMX if part else {}
    return client.post(target, headers=headers, follow=not part, **options)


def text_of(response):
    return html.unescape(re.sub(r"\s+", " ", response.text))


def status_of(proposal):
    return Proposal.objects.get(pk=proposal.pk).status


def shown(response):
    return re.findall(r'id="proposal-([0-9a-f-]+)"', response.text)


def test_without_proposals_it_says_what_will_come(alices, palace):
    text = text_of(alices.get(INBOX))
    assert "Nothing waits. While you are away, Loci looks for facts that say the same" in text
    assert "You have not decided anything yet." in text_of(alices.get(DECIDED))
    assert "Nothing is stale." in text_of(alices.get(STALE))


def test_a_merge_shows_before_and_after_dates_words_and_who_found_it(alices, merge, tea):
    early, late = tea
    text = text_of(alices.get(INBOX))
    assert "2 facts become one" in text
    assert f'<a href="{address(early)}">You drink tea daily</a>' in text
    assert f'<a href="{address(late)}">You <del>have</del> tea daily</a>' in text
    assert "You drink <ins>green</ins> tea daily" in text
    assert "since 1 Jan 2024" in text
    assert "since 1 Jan 2025" in text
    assert "<del>things</del> <ins>habits</ins>" in text
    assert "<ins>tea</ins> <del>hot</del>" in text
    drawer = late.evidence.get().drawer
    assert "<q>Tea again, <as> always.</q>" in text
    assert f"{drawer.get_absolute_url()}?passage=0-23#text" in text
    assert "Found by Loci, without a model" in text


def test_what_a_model_found_names_it(alices, merge):
    merge.dream.detail = {"model": "OpenAI (gpt-5-mini)"}
    merge.dream.save()
    merge.payload |= {"made_by": "model", "why": "one is a <b>wording</b> of the other"}
    merge.save()
    response = alices.get(INBOX)
    assert "Found by OpenAI (gpt-5-mini)" in response.text
    assert "One is a &lt;b&gt;wording&lt;/b&gt; of the other" in response.text


def test_a_preference_shows_its_quotations_and_that_it_asks_first(alices, palace, said):
    proposed(
        palace,
        "preference",
        after="User wants to be asked before paying",
        quotes=[said],
        category="user-preferences/inferred",
        metadata={"source": "inferred", "requires_user_permission": "true"},
    )
    text = text_of(alices.get(INBOX))
    assert "<ins>You want to be asked before paying</ins>" in text
    assert "Needs your permission." in text
    assert f"{said.get_absolute_url()}?passage=0-{len(said.text)}#text" in text


def test_what_stays_is_distinguished_from_what_ends(alices, palace, fact, user):
    newer = FactFactory(subject=user, text="User lives in Porto", valid_from=moment(2026))
    proposed(palace, "contradiction", fact, beside=[newer])
    text = text_of(alices.get(INBOX))
    assert "<del>You live in Lisbon</del>" in text
    assert '<span class="fate now">stays</span><span>since 1 Jan 2026' in text
    assert "It ends when the other one began; the other one stays." in text


@pytest.mark.parametrize("part", [False, True])
def test_it_is_accepted_and_undone(alices, palace, merge, part):
    before = held(palace)
    response = decide(alices, merge, "accept", part=part)
    assert response.status_code == 200
    assert "Accepted" in response.text
    assert reverse("undo_proposal", args=[merge.uuid]) in response.text
    assert held(palace) == ["User drinks green tea daily"]
    undone = decide(alices, merge, "undo", part=part)
    assert "Undone; it will not be proposed again" in undone.text
    assert held(palace) == before


@pytest.mark.parametrize("part", [False, True])
def test_it_is_rejected_and_waits_again_when_that_is_undone(alices, palace, drop, part):
    response = decide(alices, drop, "reject", part=part)
    assert "Rejected; it will not be proposed again" in response.text
    assert status_of(drop) == "rejected"
    again = decide(alices, drop, "undo", part=part)
    assert status_of(drop) == "proposed"
    assert reverse("accept_proposal", args=[drop.uuid]) in again.text


@pytest.mark.parametrize("decision", ["accept", "reject"])
@pytest.mark.parametrize("part", [False, True])
def test_twice_is_as_once(alices, palace, drop, decision, part):
    for _ in range(2):
        assert decide(alices, drop, decision, part=part).status_code == 200
    assert status_of(drop) == f"{decision}ed"
    assert Fact.objects.within(palace).count() == 1
    for _ in range(2):
        assert decide(alices, drop, "undo", part=part).status_code in (200, 400)
    assert held(palace) == ["User lives in Lisbon"]


def test_in_place_the_counts_follow_and_the_focus_goes_to_undo(alices, drop, merge):
    text = decide(alices, drop, "accept", part=True, query="?kind=drop").text
    assert '<div id="kinds" hx-swap-oob="true">' in text
    assert 'All <span class="count">1</span>' in text
    assert 'Remove noise <span class="count">0</span>' in text
    undone = decide(alices, drop, "undo", part=True, query="?show=decided")
    assert 'id="kinds"' not in undone.text
    assert re.search(r'data-key="u" autofocus', text)


def test_what_changed_meanwhile_is_said_to_be_stale(alices, palace, drop, fact):
    rewrite(palace, fact.memory, "User lives in Belém", BY_PERSON)
    assert shown(alices.get(INBOX)) == []
    response = decide(alices, drop, "accept", part=True)
    assert response.status_code == 400
    assert "Stale" in response.text
    assert reverse("accept_proposal", args=[drop.uuid]) not in response.text
    text = text_of(decide(alices, drop, "accept"))
    assert "What this was about has changed since it was proposed. Nothing was done" in text
    assert held(palace) == ["User lives in Belém"]
    kept = alices.get(STALE)
    assert shown(kept) == [str(drop.uuid)]
    assert "has changed since it was proposed, or lies in the trash" in kept.text


def test_what_cannot_be_undone_says_why_in_its_place(alices, palace, merge):
    accept(palace, merge)
    made = Fact.objects.within(palace).active().get()
    rewrite(palace, made.memory, "User drinks coffee", BY_PERSON)
    response = decide(alices, merge, "undo", part=True, query="?show=decided")
    assert response.status_code == 400
    assert "and was changed since" in response.text
    assert status_of(merge) == "accepted"


def test_decided_ones_stand_with_undo_the_last_first(alices, palace, drop, merge):
    reject(palace, drop)
    accept(palace, merge, by="dream")
    response = alices.get(DECIDED)
    assert shown(response) == [str(merge.uuid), str(drop.uuid)]
    assert "Accepted automatically, as you chose in the settings" in response.text
    assert "Rejected; it will not be proposed again" in response.text
    for one in (drop, merge):
        assert reverse("undo_proposal", args=[one.uuid]) in response.text
    decide(alices, merge, "undo")
    assert "Undone; it will not be proposed" in alices.get(DECIDED).text


def test_words_in_the_trash_are_not_shown(alices, palace, drop, said):
    reject(palace, drop)
    assert "I live in Lisbon" in alices.get(DECIDED).text
    move_to_trash(Drawer.objects.get(pk=said.pk))
    text = alices.get(DECIDED).text
    assert "I live in Lisbon" not in text
    assert "a drawer in the trash" in text


def test_a_strangers_or_no_proposal_is_not_found(alices, bobs, drop):
    for decision in ("accept", "reject", "undo"):
        assert decide(bobs, drop, decision).status_code == 404
        nothing = reverse(f"{decision}_proposal", args=[uuid4()])
        assert alices.post(nothing).status_code == 404
    assert status_of(drop) == "proposed"
    assert shown(bobs.get(INBOX)) == []


def test_one_kind_one_dream_or_one_fact_can_be_asked_for(alices, bobs, palace, drop, merge, fact):
    assert shown(alices.get(INBOX)) == [str(merge.uuid), str(drop.uuid)]
    assert shown(alices.get(INBOX, {"kind": "drop"})) == [str(drop.uuid)]
    assert len(shown(alices.get(INBOX, {"kind": "nonsense"}))) == 2
    dream, memory = {"dream": drop.dream.uuid}, {"about": fact.memory}
    for asked in (dream, memory):
        assert shown(alices.get(INBOX, asked)) == [str(drop.uuid)]
        assert bobs.get(INBOX, asked).status_code == 404
    for nonsense in ({"dream": "x"}, {"about": uuid4()}, {"dream": uuid4()}):
        assert alices.get(INBOX, nonsense).status_code == 404
    assert "None of these waits." in alices.get(INBOX, {"kind": "outdated"}).text


def test_a_question_is_kept_when_something_is_decided(alices, drop):
    response = decide(alices, drop, "accept", query="?kind=drop")
    assert response.redirect_chain == [(f"{INBOX}?kind=drop", 302)]


def test_a_long_list_goes_on_behind_the_last_of_a_page(alices, palace, user, merge):
    for number in range(PROPOSALS_SHOWN + 2):
        proposed(palace, "drop", FactFactory(subject=user, text=f"Number {number}"))
    first = alices.get(INBOX)
    assert len(shown(first)) == PROPOSALS_SHOWN
    assert shown(first)[0] == str(merge.uuid)
    following = html.unescape(re.search(r'hx-get="([^"]+after=[^"]+)"', first.text)[1])
    rest = alices.get(following, headers=HTMX)
    assert "<html" not in rest.text
    assert len(shown(rest)) == 3
    # Decided on meanwhile, the last of the page still says where it goes on.
    last = Proposal.objects.get(uuid=shown(first)[-1])
    accept(palace, last)
    assert shown(alices.get(following)) == shown(rest)
    assert "Back to the beginning" in alices.get(following).text


def test_the_number_of_queries_does_not_grow_with_the_list(
    alices, palace, user, said, django_assert_max_num_queries
):
    for number in range(12):
        one = FactFactory(subject=user, text=f"Number {number}")
        EvidenceFactory(fact=one, drawer=said)
        proposed(palace, "drop", one)
    proposed(palace, "preference", after="User likes lists", quotes=[said])
    with django_assert_max_num_queries(15):
        assert len(shown(alices.get(INBOX))) == PROPOSALS_SHOWN


def test_a_decision_in_place_brings_the_new_count_of_the_rail(alices, palace, drop, merge):
    def count(response):
        return re.search(r'id="review-count" hx-swap-oob="true">(.*?)</span>', response.text)[1]

    assert 'id="review-count"><span class="badge">2<' in alices.get(INBOX).text
    assert '<span class="badge">1<' in count(decide(alices, drop, "accept", part=True))
    selected = {"decision": "reject", "chosen": [merge.uuid]}
    assert count(alices.post(reverse("decide_proposals"), selected, headers=HTMX)) == ""
    assert "hx-swap-oob" not in alices.get(INBOX).text.partition('id="kinds"')[0]


def test_other_pages_lead_here(alices, palace, fact, drop, merge):
    memory = alices.get(reverse("memory")).text
    assert f'href="{INBOX}"' in memory
    assert '<span class="badge">2<span class="unseen"> waiting</span></span>' in memory
    assert "2 proposals wait" in alices.get(reverse("facts")).text
    text = text_of(alices.get(address(fact)))
    assert "A proposal about it waits: Remove noise." in text
    assert f"{INBOX}?about={fact.memory}" in text
    delete(palace, fact.memory, BY_PERSON)
    assert "A proposal about it waits" not in alices.get(address(fact)).text
    assert "1 proposal waits" in alices.get(reverse("facts")).text
