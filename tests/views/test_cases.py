"""The list of cases: how each did at the last try, and the ways to mend it."""

from __future__ import annotations

import pytest
from django.urls import reverse
from django.utils import timezone

from palace.models import Drawer, ExpectedDrawer, RecallCase, RecollectionTrace
from palace.recall.evaluation import expect
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.views.recalls import TRIED_AT_ONCE

CASES = "/memory/cases/"


def drawer_of(words):
    return Drawer.objects.with_place().get(text__contains=words)


def save(palace, question, *words):
    found = recall(palace, RecallRequest(question))
    trace = RecollectionTrace.objects.get(uuid=found.uuid)
    for each in words:
        case = expect(trace, drawer_of(each))
    return case


def test_without_cases_it_says_how_to_come_by_one(alices, palace):
    text = alices.get(CASES).text
    assert "There are no cases yet." in text
    assert "Try them now" not in text


def test_a_case_is_listed_with_what_it_expects(alices, lived_in):
    save(lived_in, "Which wire overheated?", "12-AWG")
    text = alices.get(CASES).text
    assert "Which wire overheated?" in text
    assert str(drawer_of("12-AWG").pointer) in text
    assert "Not tried yet" in text


def test_trying_says_where_each_drawer_came(alices, lived_in):
    save(lived_in, "Which wire overheated?", "12-AWG")
    save(lived_in, "zebra stripes wire", "We booked a flat in Alfama")
    before = RecollectionTrace.objects.count()
    response = alices.post(reverse("try_cases"), follow=True)
    assert response.redirect_chain == [(CASES, 302)]
    assert "Tried 2 cases." in response.text
    assert "came in place 1" in response.text
    assert "not among the first 20" in response.text
    assert '<span class="stage-number">50 %</span>' in response.text
    assert '<span class="stage-number">0.50</span>' in response.text
    assert RecollectionTrace.objects.count() == before


def test_many_cases_are_tried_in_turns(alices, lived_in):
    for number in range(TRIED_AT_ONCE + 1):
        save(lived_in, f"Which wire overheated, number {number}?", "12-AWG")
    response = alices.post(reverse("try_cases"), follow=True)
    assert f"Tried {TRIED_AT_ONCE} cases; press again" in response.text
    alices.post(reverse("try_cases"))
    assert not RecallCase.objects.filter(tried_at=None).exists()


def test_what_is_in_the_trash_is_said_to_be_left_out(alices, lived_in):
    save(lived_in, "Which wire overheated?", "12-AWG", "8-AWG")
    alices.post(reverse("try_cases"))
    drawer_of("12-AWG").trash()
    text = alices.get(CASES).text
    assert "in the trash, so it is left out" in text
    assert "silicone" not in text


def test_one_drawer_is_taken_out_and_with_the_last_one_the_case(alices, lived_in):
    case = save(lived_in, "Which wire overheated?", "12-AWG", "8-AWG")
    address = reverse("delete_case", args=[case.uuid])
    response = alices.post(address, {"drawer": drawer_of("12-AWG").uuid}, follow=True)
    assert "Removed from the case." in response.text
    assert ExpectedDrawer.objects.get().drawer == drawer_of("8-AWG")
    response = alices.post(address, {"drawer": drawer_of("8-AWG").uuid}, follow=True)
    assert "so the case is deleted" in response.text
    assert alices.post(address).status_code == 404


def test_a_case_is_deleted_and_its_drawers_stay(alices, lived_in):
    case = save(lived_in, "Which wire overheated?", "12-AWG")
    response = alices.post(reverse("delete_case", args=[case.uuid]), follow=True)
    assert "Deleted the case." in response.text
    assert not RecallCase.objects.exists()
    assert drawer_of("12-AWG").trashed_at is None


@pytest.mark.parametrize("drawer", ["", "x", "6f1f3f0e-0b1f-4c55-8f55-0d6f0c3a7d11"])
def test_what_is_no_drawers_id_is_not_found(alices, lived_in, drawer):
    case = save(lived_in, "Which wire overheated?", "12-AWG")
    address = reverse("delete_case", args=[case.uuid])
    assert alices.post(address, {"drawer": drawer}).status_code == 404
    assert RecallCase.objects.exists()


def test_a_stranger_tries_only_their_own(bobs, lived_in):
    save(lived_in, "Which wire overheated?", "12-AWG")
    assert "There are no cases to try." in bobs.post(reverse("try_cases"), follow=True).text
    assert RecallCase.objects.get().tried_at is None


def test_a_page_of_cases_costs_the_same_however_many(
    alices, lived_in, django_assert_max_num_queries
):
    now = timezone.now()
    for number in range(60):
        case = RecallCase.objects.create(
            palace=lived_in, query=f"Question {number}?", now=now, day=now.date()
        )
        ExpectedDrawer.objects.create(palace=lived_in, case=case, drawer=drawer_of("12-AWG"))
    with django_assert_max_num_queries(10):
        text = alices.get(CASES).text
    assert "Show 30 more of 60 cases" in text
    assert "Question 0?" in alices.get(CASES, {"page": 2}).text
