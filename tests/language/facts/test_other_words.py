"""Everyday sentences that say by other words what the rules know, and what resembles them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from language.english.judging.rules import judge_by_rules
from language.facts import Verdict
from tests.language.facts.extracted import facts, known, texts

MONDAY = datetime(2025, 3, 3, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("Not much of a whisky drinker.", "User does not like whisky"),
        ("Opera isn't really my thing.", "User does not like Opera"),
        ("Liver tastes like chalk to me.", "User does not like Liver"),
        ("Big fan of night trains.", "User likes night trains"),
        ("I've got a soft spot for lighthouses.", "User likes lighthouses"),
        ("Buses over trams any day.", "User prefers Buses over trams"),
        ("I take my porridge with salt.", "User takes their porridge with salt"),
        ("I've never smoked.", "User does not smoke"),
        ("I've never been to Peru.", "User has never been to Peru"),
        ("I've never owned a car.", "User has never owned a car"),
        ("Been off gluten since Easter.", "User does not eat gluten"),
        ("I'm off caffeine.", "User does not drink caffeine"),
        ("I'm off beer for now.", "User does not drink beer"),
        ("I have pollen allergies.", "User is allergic to pollen"),
        ("They switched me to lisinopril.", "User takes lisinopril"),
        ("I'm on the 4th floor.", "User lives on the 4th floor"),
        ("I was wrong: the van is a hybrid.", "User's van runs on hybrid"),
        ("Our cottage has two bedrooms.", "User's cottage has two bedrooms"),
        ("My other half is a glazier.", "User's partner works as a glazier"),
        ("The kids are three and five.", "User has kids aged three and five"),
        ("They've put me on iron tablets.", "User takes iron tablets"),
        ("Diagnosed with gout last month.", "User has gout"),
        ("My right hip is shot.", "User has a bad right hip"),
        ("I'm up at six every day.", "User gets up at six"),
        ("I can hold a handstand for 40 seconds.", "User can hold a handstand for 40 seconds"),
        ("Please use she/her for me.", "User's pronouns are she/her"),
        ("My son is in year nine.", "User's son is in year nine"),
        ("We switched our internet to Lumo.", "User's internet is Lumo"),
        ("They made me shift lead.", "User works as a shift lead"),
        ("We were in Gdansk last week.", "User visited Gdansk"),
        ("I'm on staff at Tern Books now.", "User works at Tern Books"),
        ("Our boat's name is Dipper now.", "User's boat is called Dipper"),
        ("My aunt is in a care home in Hull.", "User's aunt lives in a care home in Hull"),
    ],
)
def test_the_same_in_other_words(said, text):
    assert text in texts(said)


@pytest.mark.parametrize(
    "said",
    [
        "The house is on fire.",
        "The car has four doors in the model I generated.",
        "This approach is not for me to judge.",
        "I'm off today.",
        "They have me on hold.",
        "They put me on the night shift.",
        "We were in Slack all week.",
        "I can run 3 tests in parallel.",
        "I've never done this before.",
        "I have never been able to fix it.",
        "I get up at six tomorrow.",
        "The kids in this novel are orphans.",
        "Not a nice person.",
        "I'm the second of three reviewers.",
        "Knocked the score down to 12.",
        "I will have the baby in May.",
        "I have not had the baby yet.",
        "I haven't given birth yet.",
        "We have a baby name picked out.",
        "We had the baby's room painted.",
        "I am on the dance floor.",
        "I'm on the shop floor today.",
        "I have seasonal allergies.",
        "I have terrible allergies.",
        "I'm off wine tasting on Saturday.",
        "I'm off chocolate shopping tomorrow.",
        "They moved me to the front row.",
        "I was in Surgery yesterday.",
        "I was in Maths yesterday.",
    ],
)
def test_what_only_sounds_like_these(said):
    assert [one.text for one in facts(said) if one.predicate] == []


@pytest.mark.parametrize(
    ("said", "right", "wrong"),
    [
        ("It's not Ravi who works at Arup, it's Lena.", "Lena", "Ravi"),
        ("It's Lena who works at Arup, not Ravi.", "Lena", "Ravi"),
        ("It's my aunt who works at Arup, not my uncle.", "User's aunt", "User's uncle"),
        ("It is my aunt who works at Arup, not me.", "User's aunt", "User"),
    ],
)
def test_whom_a_correction_means(said, right, wrong):
    found = {(one.subject.name, one.negated) for one in facts(said) if one.predicate == "works_at"}
    assert found == {(right, False), (wrong, True)}


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("I stopped the antihistamines.", "antihistamines"),
        ("I gave my saxophone to charity.", "saxophone"),
        ("I paid off my mortgage.", "mortgage"),
        ("I've moved off Trello.", "Trello"),
        ("We're not going to Malta after all.", "Malta"),
        ("I didn't get the job at Vestas.", "Vestas"),
        ("Paleo didn't work for me.", "Paleo"),
        ("The hens went to a good home.", "hens"),
        ("I didn't renew my railcard.", "railcard"),
        ("The Zumba thing fell through.", "Zumba"),
        ("No more squash for me.", "squash"),
        ("My hamster went to my cousin.", "hamster"),
        ("My fridge gave up.", "fridge"),
        ("I let my railcard lapse.", "railcard"),
        ("I had the baby on Monday.", "pregnant"),
        ("We had our twins last week!", "pregnant"),
    ],
)
def test_what_is_over(said, what):
    assert what in [one.object for one in facts(said) if one.negated]


@pytest.mark.parametrize(
    "said",
    [
        "My daughter went to a friend's house.",
        "My brother went to my mom's yesterday.",
        "My kids went to my parents for the weekend.",
        "My older brother moved to my parents.",
        "My husband gave up.",
        "My wife conked out.",
        "I let my boss know.",
        "I let my sister down.",
    ],
)
def test_what_goes_on(said):
    assert [one.text for one in facts(said) if one.negated] == []


def test_on_monday_is_in_a_week_if_it_is_monday():
    [plan] = [one for one in facts("I start at Bosch on Monday.", said_at=MONDAY) if one.predicate]
    assert plan.valid_from == MONDAY.replace(hour=0) + timedelta(days=7)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("I get up at five.", "I'm up at seven now."),
        ("I want to buy a sailing boat.", "We bought the boat!"),
        ("I weigh 91 kg.", "I'm down to 86 kilos."),
        ("I've never been to Peru.", "We were in Peru last week."),
        ("The car is a petrol.", "I was wrong: the car is a diesel."),
        ("My chess rating is 1450.", "Just cracked 1500 in chess."),
    ],
)
def test_what_takes_the_place_of_what_was_known(before, now):
    verdicts = [judge_by_rules(one, known(before)).verdict for one in facts(now)]
    assert verdicts == [Verdict.UPDATE]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("I want to buy a house with a garden.", "I bought a garden."),
        ("I want to buy a boat.", "I bought a toy boat."),
        ("I use Google Drive.", "Google rejected me."),
    ],
)
def test_what_leaves_standing_what_was_known(before, now):
    verdicts = {judge_by_rules(one, known(before)).verdict for one in facts(now)}
    assert verdicts <= {Verdict.ADD, Verdict.NONE}


def test_a_rejection_ends_the_hope():
    [over] = facts("Vestas rejected me.")
    judged = judge_by_rules(over, known("I want to work at Vestas."))
    assert judged.verdict is Verdict.DELETE
