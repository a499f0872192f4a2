"""What puts right or changes something known, without saying what."""

from __future__ import annotations

import pytest

from language.facts import HEARSAY, UNRESOLVED
from tests.language.facts.extracted import facts, texts


def amendments(*said):
    return [one for one in facts(*said) if one.predicate == UNRESOLVED]


@pytest.mark.parametrize(
    ("said", "new", "old"),
    [
        ("Sorry, typo: Dordrecht.", "Dordrecht", ""),
        ("*Anna", "Anna", ""),
        ("Make that 75 mg, I misread the box.", "75 mg", ""),
        ("Scrap that, 35, birthday was last week.", "35", ""),
        ("I misspoke, it's 950 euros.", "950 euros", ""),
        ("Correction: 13 March.", "13 March", ""),
        ("Actually it's 2019, I just checked.", "2019", ""),
        ("sorry i meant pistachios!!", "pistachios", ""),
        ("That was a typo. Luka.", "Luka", ""),
        ("Not Siemens but Bosch, I always mix them up.", "Bosch", "Siemens"),
        ("8 km, not 5 km.", "8 km", "5 km"),
        ("Did I say Bergen? I meant Bremen.", "Bremen", "Bergen"),
        ("I said two cats earlier, it's three.", "three", "two cats"),
        ("It wasn't chemistry, it was biochemistry.", "biochemistry", "chemistry"),
    ],
)
def test_a_correction_names_the_value_and_the_one_it_replaces(said, new, old):
    [one] = amendments(said)
    assert (one.object, one.aspect, one.corrects, one.negated) == (new, old, True, False)


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("They've put my rent up to 920 euros.", "920 euros"),
        ("I'm down to 76 kg!", "76 kg"),
        ("I'm up to 8k now, still running twice a week.", "8k"),
        ("My swimming day is Thursday now.", "Thursday"),
    ],
)
def test_a_change_names_the_new_figure(said, value):
    [one] = amendments(said)
    assert (one.object, one.corrects) == (value, False)


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("I'm done with keto.", "keto"),
        ("We got rid of the Opel.", "Opel"),
        ("I handed in my notice at Acme.", "Acme"),
        ("We had to put Rex down last week.", "Rex"),
        ("The doctor took me off metformin.", "metformin"),
        ("Lisbon's off.", "Lisbon"),
    ],
)
def test_what_is_given_up_is_denied_whatever_was_said_of_it(said, what):
    [one] = amendments(said)
    assert (one.object, one.negated) == (what, True)


@pytest.mark.parametrize(
    "said",
    [
        "I don't like onions",
        "Not sure why, but the second query fails.",
        "No, that does not work.",
        "Should I switch from Windows to Linux?",
        "If I gave up coffee, would I sleep?",
        "She said: 'not Siemens but Bosch'.",
        "I'm on step 4 now",
        "Don't tell Ana, but I'm her guest",
        "My aunt left for university",
    ],
)
def test_other_sentences_amend_nothing(said):
    assert amendments(said) == []


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Now that I've left Siemens, what becomes of my pension?",
         "User no longer works at Siemens"),
        ("We've settled into our new place in Graz, how do I register?", "User lives in Graz"),
        ("Since moving to Graz I cycle more.", "User lives in Graz"),
        ("My new job at Bosch starts at 7, how do I get up?", "User works at Bosch"),
        ("Back when I still smoked I coughed all day.", "User no longer smokes"),
        ("Since the divorce I sleep badly.", "User is no longer married"),
        ("Since I sold the Volvo I take the bus.", "User no longer owns the Volvo"),
        ("It's cashews I'm allergic to.", "User is allergic to cashews"),
    ],
)  # fmt: skip
def test_what_is_said_in_a_correction_is_read(said, expected):
    assert expected in texts(said)


def test_what_is_said_of_a_name_nobody_introduced_is_hearsay():
    [one] = facts("Pim is 1.18 m tall.")
    assert one.subject.name == "Pim"
    assert one.confidence <= HEARSAY


def test_what_was_said_of_something_is_taken_back():
    [one] = amendments("I take back what I said about the standing desk")
    assert (one.object, one.type, one.negated) == ("standing desk", "opinion", True)


def test_one_thing_traded_for_another():
    [one] = amendments("Traded the Corolla for an old Volvo")
    assert (one.object, one.aspect) == ("old Volvo", "Corolla")


@pytest.mark.parametrize(
    ("said", "ended"),
    [
        ("Finally parted with the Nikon.", "Nikon"),
        ("Some git nicked my Ribble from outside the gym.", "Ribble"),
        ("My bike was stolen.", "bike"),
        ("Gave the piano away to the school.", "piano"),
        ("I'm dropping spin.", "spin"),
        ("I dropped guitar.", "guitar"),
        ("I've dropped the guitar lessons.", "guitar lessons"),
        ("Femi is back from leave, so I can rest.", "leave"),
        ("Forget that about Everton.", "Everton"),
        ("The PhD was a joke.", "PhD"),
    ],
)
def test_every_verb_of_a_class_fits_its_frames(said, ended):
    assert [(one.object, one.negated) for one in amendments(said)] == [(ended, True)]


@pytest.mark.parametrize(
    ("said", "old", "new"),
    [
        ("I upgraded from the Pixel 6 to a Fairphone 5.", "Pixel 6", "Fairphone 5"),
        ("I've moved from Sublime Text to Zed.", "Sublime Text", "Zed"),
        ("GP has taken me off ramipril, its amlodipine now", "ramipril", "amlodipine"),
    ],
)
def test_what_takes_the_place_of_what(said, old, new):
    [one] = [one for one in amendments(said) if not one.negated]
    assert (one.aspect, one.object) == (old, new)


@pytest.mark.parametrize(
    "said", ["I'm selling the van.", "I sell insurance.", "Dad had his knee replaced last week."]
)
def test_what_is_had_still_is_not_given_up(said):
    assert amendments(said) == []


@pytest.mark.parametrize(
    "said",
    [
        "I swapped shifts with a colleague.",
        "I left Rex with Anna.",
        "I replaced my phone last week.",
        "My dad replaced my bike.",
        "I'm going to London from Leeds on Friday.",
        "I have not sold my car.",
        "Nobody stole my bike.",
        "I nearly crashed my car.",
        "The library is closed on Mondays.",
        "I'm back from yoga.",
        "Never forget what I told you about penicillin.",
        "I was wrong about Berlin, it is lovely.",
        "My car is a joke.",
        "My phone died on the way home.",
        "I dropped the guitar.",
        "I've dropped my phone.",
    ],
)
def test_what_sounds_like_an_end_changes_nothing(said):
    assert amendments(said) == []


@pytest.mark.parametrize(
    "said",
    [
        "I gave Rex to the vet for an hour.",
        "I gave Rex to my sister for the weekend.",
        "I got up late again.",
        "I picked up a cold again.",
        "The husband works at a bank.",
    ],
)
def test_what_sounds_like_a_habit_or_ones_own_people_is_no_fact(said):
    assert texts(said) == []
