"""Candidates that do not name what they are about: pronouns and amendments."""

from __future__ import annotations

import pytest

from language.english.judging.rules import judge_by_rules
from language.english.judging.unresolved_candidates import (
    has_pronoun_subject,
    named_kin,
    resolve_pronoun,
)
from language.facts import Change, Verdict
from tests.language.facts.extracted import facts, known


def resolved(now, *before):
    """The first candidate of a message, about the person that earlier messages name."""
    candidate = facts(now)[0]
    assert has_pronoun_subject(candidate)
    facts_before = [one.fact for one in reversed(known(*before))]
    return resolve_pronoun(candidate, facts_before, facts_before)


@pytest.mark.parametrize(
    ("before", "now", "text"),
    [
        (
            "My wife Ayaka works at Siemens.",
            "Her new job is at Bosch, much calmer.",
            "Ayaka works at Bosch",
        ),
        ("My sister Freya lives in Aarhus.", "She's moved to Odense.", "Freya lives in Odense"),
        ("My brother Anton lives in Graz.", "He's moved to Rome.", "Anton lives in Rome"),
    ],
)
def test_the_person_whom_the_conversation_names(before, now, text):
    elsewhere = [one.fact for one in known("My sister Eva lives in Ulm. My son Max is nine.")]
    here = [one.fact for one in known(before)]
    candidate = resolve_pronoun(facts(now)[0], here, [*here, *elsewhere])
    assert candidate.text == text
    assert candidate.subject.name == text.split()[0]


def test_nobody_whom_only_another_conversation_names():
    candidate = facts("She lives in Rome now.")[0]
    elsewhere = [one.fact for one in known("My sister Eva lives in Ulm.")]
    assert resolve_pronoun(candidate, [], elsewhere) is None


def test_the_only_sister_with_a_name_is_meant():
    moved = facts("My sister moved to Milan.")[0]
    sisters = [one.fact for one in known("My sister Kim works at Lidl.", "My son Max is nine.")]
    assert named_kin(moved, sisters).text == "Kim lives in Milan"
    two = [*sisters, *(one.fact for one in known("My sister Lea is a vet."))]
    assert named_kin(moved, two) == moved
    other = facts("My other sister moved to Milan.")[0]
    assert named_kin(other, sisters) == other


@pytest.mark.parametrize(
    "before",
    [
        (),
        ("My brother Anton lives in Graz.",),
        ("My dog Bella barks.",),
        ("My sisters Ada and Eva live in Ulm.",),
    ],
)
def test_nobody_where_no_woman_or_more_than_one_was_named(before):
    assert resolved("She lives in Rome now.", *before) is None


def judged(now, *before):
    """The first judgement that changes anything."""
    judgements = [judge_by_rules(one, known(*before)) for one in facts(now)]
    return next((one for one in judgements if one.verdict is not Verdict.NONE), None)


@pytest.mark.parametrize(
    ("before", "now", "text"),
    [
        ("I live in Rotterdam.", "Sorry, typo: Dordrecht.", "User lives in Dordrecht"),
        ("I'm 34.", "Scrap that, 35, birthday was last week.", "User is 35 years old"),
        ("I take 50 mg of sertraline.", "Make that 75 mg, I misread the box.",
         "User takes 75 mg of sertraline"),
        ("My rent is 850 euros.", "I misspoke, it's 950 euros.", "User's rent is 950 euros"),
        ("I work at Siemens.", "Not Siemens but Bosch.", "User works at Bosch"),
        ("My dog is called Benny.", "Oops, Benno. Autocorrect.", "User has a dog named Benno"),
        ("My birthday is 3 March.", "Correction: 13 March.", "User's birthday is 13 March"),
        ("I'm from Bergen.", "Did I say Bergen? I meant Bremen.", "User is from Bremen"),
        ("I'm allergic to cashews.", "i meant pistachios!!", "User is allergic to pistachios"),
        ("We have two cats.", "I said two cats earlier, it's three.", "User has three"),
    ],
)  # fmt: skip
def test_a_correction_takes_the_place_of_the_closest_fact_of_its_kind(before, now, text):
    judgement = judged(now, before)
    assert (judgement.verdict, judgement.change) == (Verdict.UPDATE, Change.CORRECTION)
    assert judgement.text.startswith(text)
    assert judgement.candidate.predicate == judgement.fact.predicate


@pytest.mark.parametrize(
    ("before", "now", "text"),
    [
        ("I weigh 82 kg.", "I'm down to 76 kg!", "User weighs 76 kg"),
        ("My rent is 850 euros.", "The rent went up to 920.", "User's rent is 920 euros"),
        ("I run 5 km every morning.", "I'm up to 8 km every morning now.",
         "User runs 8 km every morning"),
        ("I get up at 6 am.", "I've been getting up at 6:45 am lately.", "User gets up at 6:45 am"),
        ("I go swimming every Tuesday.", "My swimming day is Thursday now.",
         "User goes swimming every Thursday"),
    ],
)  # fmt: skip
def test_a_new_figure_ends_the_one_with_its_unit_or_topic(before, now, text):
    judgement = judged(now, before)
    assert (judgement.verdict, judgement.change) == (Verdict.UPDATE, Change.SHIFT)
    assert judgement.text == text


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("I'm on a keto diet.", "I'm done with keto."),
        ("I drive an Opel.", "We got rid of the Opel."),
        ("I work at Acme as a tester.", "I handed in my notice at Acme."),
        ("I smoke.", "Back when I still smoked I coughed all day."),
        ("I'm married to Piet.", "Since the divorce I sleep badly."),
        ("I'm married to Piet.", "Since Piet died I cook for one."),
        ("I plan to move to Lisbon.", "We're not moving to Lisbon."),
    ],
)
def test_what_is_given_up_is_deleted(before, now):
    assert judged(now, before).verdict is Verdict.DELETE


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("I live in Berlin.", "No, Python."),
        ("I live in Berlin.", "Sorry, 45 minutes."),
        ("I weigh 82 kg.", "The train takes 45 minutes now."),
        ("My sister Anna lives in Rome.", "Correction: 13 March."),
        ("I like hard work.", "You put in the work and it definitely shows."),
        # A time of day is no number of times.
        ("I take pottery classes 3 times a week.", "I've been up at 6:45 am for my class lately."),
        ("I smoke.", "My sister Anna quit smoking."),
        ("I live in Berlin.", "Pim is 1.18 m tall."),
        # Something else is denied, shared or over than the relation.
        ("I'm married to Ana.", "Ana and I are not hungry."),
        ("I'm married to Ana.", "Ana and I no longer watch that show."),
        ("I'm married to Ana.", "Ana and I broke the vase."),
        ("I'm married to Ana.", "Ana and I split the bill."),
        ("I'm married to Ana.", "Ana and I separated the recycling."),
        ("I'm married to Ana.", "Ana and I called it a day at ten and went to bed."),
        ("I'm married to Ana.", "Ana is out."),
        ("I'm married to Ana.", "Ana has left me a note."),
        ("I'm married to Ana.", "I lost Ana in the crowd."),
        ("I'm married to Ana.", "I said goodbye to Ana at the station."),
        ("I have a dog called Rex.", "I put Rex down on the sofa."),
        # What is left is gone back to, or nobody has left it.
        ("I own a bike.", "I left the bike at home."),
        ("I own a bike.", "I thought I sold the bike, but it was in the shed."),
        ("I own a bike.", "Tell Ana I sold the bike."),
        ("I work at Bosch as an engineer.", "I left Bosch early today."),
        ("I work at Bosch as an engineer.", "I left Bosch at five."),
        ("I work at Bosch as an engineer.", "Never quit Bosch, my dad used to say."),
        ("I work at Bosch as an engineer.", "Write a mail saying that I quit Bosch."),
        ("I live in Leeds.", "I left Leeds at nine and was in London by noon."),
        # Of others, and words that only look like a correction.
        ("I live in Leeds.", "My brother moved from Leeds to York."),
        # A view stays, and so does what others do, or what only has the word in its name.
        ("I love train journeys.", "I switched from the train to the bus."),
        ("I think the train is overpriced.", "I switched from the train to the bus."),
        ("I collect train tickets.", "I switched from the train to the bus."),
        ("I own a model train.", "I switched from the train to the bus."),
        ("I took the train to Oslo in May.", "I switched from the train to the bus."),
        ("My brother takes the train to work.", "I switched from the train to the bus."),
        ("My brother uses Vim.", "I switched from vim to emacs."),
        ("I play the guitar.", "I dropped the guitar."),
        ("I have a dog called Rex.", "I gave Rex to the vet for an hour."),
        ("I'm 44.", "My mistake cost us 400 euros."),
        ("I'm 44.", "Wrong answers cost 40 points."),
    ],
)
def test_what_fits_no_fact_changes_none(before, now):
    judgement = judged(now, before)
    assert judgement is None or judgement.fact is None


@pytest.mark.parametrize(
    "now",
    [
        "Ana and I split up.",
        "Ana and I have separated.",
        "Ana and I split last year.",
        "Ana and I are no longer together.",
        "Ana and I called it quits.",
        "Ana moved out.",
        "I lost Ana in March.",
    ],
)
def test_the_end_of_a_relation_ends_it(now):
    assert judged(now, "I'm married to Ana.").verdict is Verdict.DELETE


def test_what_is_dropped_is_nobody():
    judgement = judged("Dropped Portuguese, it's Italian now.", "I'm learning Portuguese.")
    assert judgement.text == "User learns Italian"


def test_a_habit_changes_with_what_it_is_done_by():
    judgement = judged("I switched from the train to the bus.", "I take the train to work.")
    assert (judgement.verdict, judgement.change) == (Verdict.UPDATE, Change.SHIFT)
    assert judgement.text == "User takes the bus to work"


def test_the_latest_of_several_is_meant():
    judgement = judged("Sorry, typo: Dordrecht.", "I'm from Bergen.", "I live in Rotterdam.")
    assert judgement.fact.object == "Rotterdam"


def test_a_plan_brought_forward_keeps_its_name_and_gets_its_day():
    judgement = judged(
        "They've brought the shoulder operation forward, it's on 28 July now.",
        "My shoulder operation is on 12 August.",
    )
    # A later day never was so, and can have no end before it began.
    assert (judgement.verdict, judgement.change) == (Verdict.UPDATE, Change.CORRECTION)
    assert judgement.text == "User has a shoulder operation on 28 July"
    assert judgement.candidate.valid_from.day == 28


def test_taking_back_an_opinion_leaves_what_one_owns():
    before = known("I love espresso.", "I own an espresso machine.")
    [taken_back] = facts("I take back what I said about espresso")
    judged = judge_by_rules(taken_back, before)
    assert judged.verdict is Verdict.DELETE
    assert judged.fact.type == "preference"
