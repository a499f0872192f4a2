"""The ways to put a fact right."""

from __future__ import annotations

import re
import uuid

import pytest
from django.urls import reverse

from palace.knowledge.facts.fact_edits import delete, rewrite
from palace.models import Entity, Fact, FactEvent
from tests.factories import EntityFactory, EvidenceFactory, FactFactory
from tests.views.conftest import BY_PERSON, FACTS, LEARNT, address, listed, moment

ACTIONS = ["rewrite_fact", "reassign_fact", "end_fact", "wrong_fact", "undo_fact", "retire_fact"]
ACTIONS += ["restore_fact"]


def post(client, fact, action, **sent):
    return client.post(address(fact, action), sent, follow=True)


def test_a_fact_is_said_differently_and_back(alices, fact):
    response = post(
        alices, fact, "rewrite_fact", text=" User lives\n in Alfama ", version=fact.uuid
    )
    assert response.redirect_chain == [(address(fact), 302)]
    held = Fact.objects.active().get(memory=fact.memory)
    assert held.text == "User lives in Alfama"
    assert (held.object, held.object_entity.name) == ("Alfama", "Alfama")
    assert not held.evidence.exists()
    assert FactEvent.objects.get(memory=fact.memory).by == "person"
    where, fields = undo_of(response)
    alices.post(where, fields)
    back = Fact.objects.active().get(memory=fact.memory)
    assert (back.text, back.object_entity) == (fact.text, fact.object_entity)
    assert back.evidence.count() == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (" ", "Write what it should say."),
        ("x" * 2001, "This is too long for one statement."),
        ("a\0b", "a character that cannot be stored"),
    ],
)
def test_what_is_wrong_is_said_beside_the_field(alices, fact, text, sentence):
    response = post(alices, fact, "rewrite_fact", text=text)
    assert response.status_code == 400
    assert sentence in response.text
    assert 'aria-invalid="true"' in response.text
    assert Fact.objects.get(memory=fact.memory).text == fact.text


def test_a_change_of_what_changed_meanwhile_is_asked_about(alices, palace, fact):
    rewrite(palace, fact.memory, "User lives in Belém", BY_PERSON)
    sent = {"text": "You live in Alfama", "version": fact.uuid}
    response = post(alices, fact, "rewrite_fact", **sent)
    assert response.status_code == 400
    assert "It was changed meanwhile and says “You live in Belém” now." in response.text
    assert "You live in Alfama</textarea>" in response.text
    version = re.search(r'name="version" value="([^"]+)"', response.text)[1]
    assert post(alices, fact, "rewrite_fact", **{**sent, "version": version}).status_code == 200
    assert Fact.objects.active().get(memory=fact.memory).text == "User lives in Alfama"


def test_a_fact_is_deleted_stays_on_record_and_is_restored(alices, fact):
    response = post(alices, fact, "retire_fact")
    assert response.redirect_chain == [(address(fact), 302)]
    assert "Fact forgotten." in response.text
    assert "Deleted" in response.text
    assert listed(alices.get(FACTS)) == []
    assert listed(alices.get(FACTS, {"state": "dropped"})) == ["You live in Lisbon"]
    back = post(alices, fact, "restore_fact", version=fact.uuid)
    assert "Fact restored." in back.text
    assert listed(alices.get(FACTS)) == ["You live in Lisbon"]


def test_an_earlier_version_can_be_held_again(alices, palace, fact):
    rewrite(palace, fact.memory, "User lives in Belém", BY_PERSON)
    delete(palace, fact.memory, BY_PERSON)
    assert "Restore this version: You live in Lisbon" in alices.get(address(fact)).text
    post(alices, fact, "restore_fact", version=fact.uuid)
    assert Fact.objects.active().get(memory=fact.memory).text == "User lives in Lisbon"


def test_the_form_names_the_fact_in_its_place(alices, palace, fact):
    delete(palace, fact.memory, BY_PERSON)
    other = FactFactory(
        subject=fact.subject, predicate="lives_in", single=True, text="User lives in Porto"
    )
    response = post(alices, fact, "restore_fact")
    assert response.status_code == 400
    assert "“You live in Porto” is active in its place; delete that first" in response.text
    assert f'href="{address(other)}"' in response.text
    assert not Fact.objects.active().filter(memory=fact.memory).exists()


def test_doing_it_twice_says_so_and_does_nothing(alices, fact):
    post(alices, fact, "retire_fact")
    events = FactEvent.objects.count()
    assert "There was nothing to forget" in post(alices, fact, "retire_fact").text
    assert "This fact is inactive" in post(alices, fact, "rewrite_fact", text="New").text
    assert FactEvent.objects.count() == events
    post(alices, fact, "restore_fact")
    assert post(alices, fact, "restore_fact").status_code == 400
    assert Fact.objects.active().filter(memory=fact.memory).count() == 1


@pytest.mark.parametrize("version", ["nonsense", "7e1f0a52-3a5c-4c6b-9f0e-5b8f2f1c9d10"])
def test_a_version_that_is_none_is_not_found(alices, fact, version):
    assert post(alices, fact, "restore_fact", version=version).status_code == 404


@pytest.mark.parametrize("action", ACTIONS)
def test_a_memory_that_is_none_is_not_found(alices, palace, action):
    made_up = reverse(action, args=[uuid.uuid4()])
    assert alices.post(made_up, {"text": "New"}).status_code == 404


def undo_of(response):
    """Address and fields of the form that undoes what was done just now."""
    form = re.search(
        r'<form method="post" action="([^"]+)">(?:(?!</form>).)*Undo', response.text, re.S
    )
    return form[1], dict(re.findall(r'name="([^"]+)" value="([^"]*)"', form[0]))


def test_a_fact_is_deleted_with_its_words_and_undo_brings_back_both(alices, fact, said):
    panel = alices.get(address(fact, "correct_fact"), {"do": "forget"})
    assert "Forget it and its message" in panel.text
    response = post(alices, fact, "retire_fact", words="1")
    assert "Fact forgotten, and 1 message it came from moved to the trash." in response.text
    assert "You live in Lisbon" in alices.get(reverse("trash")).text
    said.refresh_from_db()
    assert said.trashed_at is not None
    where, fields = undo_of(response)
    back = alices.post(where, fields, follow=True)
    assert "Fact restored, and 1 message with it from the trash." in back.text
    said.refresh_from_db()
    assert said.trashed_at is None
    assert Fact.objects.active().get(memory=fact.memory).evidence.get().drawer == said
    # The undoing can be undone in turn: both go again.
    where, fields = undo_of(back)
    alices.post(where, fields)
    said.refresh_from_db()
    assert said.trashed_at is not None
    assert not Fact.objects.active().exists()


def test_without_a_choice_the_words_stay(alices, fact, said):
    post(alices, fact, "retire_fact")
    said.refresh_from_db()
    assert said.trashed_at is None


def test_words_that_another_fact_rests_on_are_not_offered(alices, fact, said):
    EvidenceFactory(fact=FactFactory(subject=fact.subject), drawer=said)
    panel = alices.get(address(fact, "correct_fact"), {"do": "forget"})
    assert "Forget the fact" in panel.text
    assert 'name="words"' not in panel.text
    assert "Fact forgotten." in post(alices, fact, "retire_fact", words="1").text
    said.refresh_from_db()
    assert said.trashed_at is None


def test_the_trash_brings_the_fact_back_with_its_message(alices, fact, said):
    post(alices, fact, "retire_fact", words="1")
    alices.post(reverse("restore_drawer", args=[said.uuid]))
    assert Fact.objects.active().get(memory=fact.memory).text == fact.text


def test_a_sentence_that_cannot_be_read_is_said_so(alices, fact):
    response = post(alices, fact, "rewrite_fact", text="It is complicated")
    assert "could not be read as one statement" in response.text
    assert Fact.objects.active().get(memory=fact.memory).object == ""


def test_a_sentence_that_conflicts_is_refused_beside_the_field(alices, fact):
    work = FactFactory(subject=fact.subject, predicate="works_at", text="User works at Siemens")
    response = post(alices, work, "rewrite_fact", text="You live in Porto")
    assert response.status_code == 400
    assert "“You live in Lisbon” is active in its place" in response.text
    assert "You live in Porto</textarea>" in response.text
    assert set(Fact.objects.active()) == {fact, work}


def active(fact):
    return Fact.objects.active().filter(memory=fact.memory).first()


def test_each_way_opens_its_form_with_and_without_scripts(alices, fact):
    page = alices.get(address(fact)).text
    for do, field in (("edit", "text"), ("outdated", "on"), ("about", "about")):
        link = f"{address(fact, 'correct_fact')}?do={do}"
        assert f'href="{link}"' in page
        whole = alices.get(link).text
        part = alices.get(link, headers={"HX-Request": "true"}).text
        assert f'id="{field}"' in whole
        assert f'id="{field}"' in part
        assert "<h1" in whole
        assert "<h1" not in part
        assert f'id="{field}"' not in page


def test_the_days_of_a_fact_are_edited_and_undone(alices, fact):
    days = {"since": "2024-05-31", "until": "2024-12-01"}
    response = post(alices, fact, "rewrite_fact", text=fact.text, **days)
    edited = active(fact)
    assert (edited.valid_from.date(), edited.valid_to.date()) == (
        moment(2024, 5, 31).date(),
        moment(2024, 12, 1).date(),
    )
    assert (edited.text, edited.object_entity) == (fact.text, fact.object_entity)
    assert edited.evidence.count() == 1
    where, fields = undo_of(response)
    assert "Undone." in alices.post(where, fields, follow=True).text
    assert (active(fact).valid_from, active(fact).valid_to) == (LEARNT, None)
    # Once more changes nothing.
    versions = Fact.objects.filter(memory=fact.memory).count()
    alices.post(where, fields)
    assert Fact.objects.filter(memory=fact.memory).count() == versions


def test_days_that_stay_keep_their_hour_and_the_end_outlives_other_words(alices, palace, fact):
    Fact.objects.filter(pk=fact.pk).update(valid_to=moment(2030, 5, 5))
    days = {"since": LEARNT.date().isoformat(), "until": "2030-05-05"}
    post(alices, fact, "rewrite_fact", text="User lives in Alfama", **days)
    assert (active(fact).valid_from, active(fact).valid_to) == (LEARNT, moment(2030, 5, 5))


@pytest.mark.parametrize(
    ("days", "sentence"),
    [
        ({"since": "31 May"}, "“31 May” is no day."),
        ({"since": "2025-02-01", "until": "2025-01-01"}, "It cannot end before it begins."),
    ],
)
def test_wrong_days_are_refused_beside_their_field(alices, fact, days, sentence):
    response = post(alices, fact, "rewrite_fact", text=fact.text, **days)
    assert response.status_code == 400
    assert sentence in response.text
    assert 'value="2025-01-01"' in response.text or 'value="31 May"' in response.text
    assert Fact.objects.filter(memory=fact.memory).count() == 1


def test_an_undone_edit_never_overwrites_a_later_one(alices, palace, fact):
    response = post(alices, fact, "rewrite_fact", text="User lives in Alfama")
    where, fields = undo_of(response)
    rewrite(palace, fact.memory, "User lives in Belém", BY_PERSON)
    assert alices.post(where, fields).status_code == 400
    assert active(fact).text == "User lives in Belém"


def test_what_is_outdated_ends_on_its_day_and_undo_goes_on(alices, fact):
    Fact.objects.filter(pk=fact.pk).update(valid_to=moment(2035))
    response = post(alices, fact, "end_fact", on="2025-06-30")
    ended = Fact.objects.get(pk=fact.pk)
    assert (ended.fate, ended.valid_to.date()) == (Fact.Fate.ENDED, moment(2025, 6, 30).date())
    assert "It was true until 30 Jun 2025." in response.text
    where, fields = undo_of(response)
    for _ in range(2):
        alices.post(where, fields)
        assert active(fact).valid_to == moment(2035)
    assert Fact.objects.active().count() == 1


@pytest.mark.parametrize(
    ("on", "sentence"),
    [
        ("", "Choose the last day"),
        ("2999-01-01", "still to come"),
        ("2025-02-01", "It has been true only since 1 Mar 2025"),
        ("soon", "“soon” is no day."),
    ],
)
def test_a_day_on_which_it_cannot_have_ended_is_refused(alices, fact, on, sentence):
    response = post(alices, fact, "end_fact", on=on)
    assert response.status_code == 400
    assert sentence in response.text
    assert active(fact)


def test_what_is_wrong_goes_and_what_it_had_ended_is_not_touched(alices, fact):
    response = post(alices, fact, "wrong_fact")
    assert active(fact) is None
    assert FactEvent.objects.get(memory=fact.memory).why == "it is wrong"
    where, fields = undo_of(response)
    alices.post(where, fields)
    assert active(fact).text == fact.text


def test_a_fact_about_somebody_else_takes_its_words_and_sources_along(alices, palace, fact):
    derek = EntityFactory(palace=palace, name="Derek", slug="derek")
    assert (
        '<option value="Derek">' in alices.get(address(fact, "correct_fact"), {"do": "about"}).text
    )
    response = post(alices, fact, "reassign_fact", about="derek")
    moved = active(fact)
    assert (moved.subject, moved.text) == (derek, "Derek lives in Lisbon")
    assert (moved.object_entity, moved.evidence.count()) == (fact.object_entity, 1)
    where, fields = undo_of(response)
    alices.post(where, fields)
    assert (active(fact).subject, active(fact).text) == (fact.subject, fact.text)


def test_a_fact_about_somebody_new_makes_them_known(alices, fact):
    post(alices, fact, "reassign_fact", about="Ana  Silva")
    assert active(fact).text == "Ana Silva lives in Lisbon"
    assert Entity.objects.get(name="Ana Silva").kind == fact.subject.kind


@pytest.mark.parametrize(
    ("about", "sentence"), [(" ", "Write who"), ("you", "It is about You already")]
)
def test_nobody_and_the_same_person_are_refused(alices, fact, about, sentence):
    response = post(alices, fact, "reassign_fact", about=about)
    assert response.status_code == 400
    assert sentence in response.text
    assert active(fact).pk == fact.pk


def test_somebody_who_has_another_value_is_refused_and_nobody_is_made(alices, palace, fact):
    derek = EntityFactory(palace=palace, name="Derek", slug="derek")
    FactFactory(subject=derek, predicate="lives_in", single=True, text="Derek lives in Porto")
    response = post(alices, fact, "reassign_fact", about="Derek")
    assert response.status_code == 400
    assert "“Derek lives in Porto” is active in its place" in response.text
    assert active(fact).subject == fact.subject


def test_after_an_action_one_is_where_one_was(alices, fact):
    sent = {"next": "/memory/people-and-things/"}
    assert post(alices, fact, "wrong_fact", **sent).redirect_chain == [(sent["next"], 302)]
    for elsewhere in ("https://evil.example/", "//evil.example"):
        back = post(alices, fact, "restore_fact", next=elsewhere)
        assert back.redirect_chain in ([(address(fact), 302)], [])


@pytest.mark.parametrize("action", ACTIONS)
def test_a_stranger_finds_no_fact(bobs, fact, action):
    sent = {"text": "New", "on": "2025-06-30", "about": "Eve", "version": fact.uuid}
    assert bobs.post(address(fact, action), sent).status_code == 404
    assert Fact.objects.get(memory=fact.memory).retired_at is None
