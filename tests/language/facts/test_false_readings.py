"""What resembles a change of something known, or a fact, and is none."""

from __future__ import annotations

import pytest

from language.english import words
from language.english.facts.sentences import spelt_out
from language.english.judging.rules import judge_by_rules
from language.english.judging.unresolved_candidates import named_kin
from language.facts import Verdict
from tests.language.facts.extracted import facts, known, texts


def verdicts(before, now):
    return {judge_by_rules(one, known(before)).verdict for one in facts(now)}


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (r"I really like \LaTeX, now I love it.", r"User loves \LaTeX"),
        (r"I used to love \g<2>, now I can't stand it.", r"User dislikes \g<2>"),
    ],
)
def test_what_is_liked_may_have_a_backslash(said, text):
    assert text in texts(said)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        # Where somebody is for an hour.
        ("I work at Siemens", "I'm at IKEA now."),
        ("I work at Siemens", "I'm at Heathrow now, the flight is late."),
        ("I work at Siemens", "I'm at Costco now, what cheese should I buy?"),
        ("My brother works at Siemens", "My brother is at IKEA now, buying a bed."),
        ("I work at Siemens", "I'm at Tesco now, nights are quieter there"),
        ("I work at Siemens", "I'm at Costco actually"),
        # What is well, or elsewhere, is there.
        ("I own a car", "My car is fine again."),
        ("I own a car", "The car is gone, my wife took it to work."),
        ("I own a laptop", "My laptop is gone, I left it at work."),
        ("I own a bike", "My bike is as good as new."),
        ("I use Slack", "My slack is gone"),
        ("I use Slack", "Slack is fine again"),
        ("I own a boiler", "The boiler is ok again"),
        ("My wife Ann is a nurse", "my wife is gone"),
        ("I have a cat", "My cat has cleared up"),
        ("I have a dog", "I lost my dog in the park but found him."),
        ("I own a laptop", "My bank lost my laptop."),
        ("I own a camera", "We lost our camera for an hour."),
        ("I own a TV", "The TV is off."),
        ("I have a dog", "The dog is well again"),
        ("I have a dog", "The rash on my dog has cleared up"),
        # What is allowed again.
        ("My sister Kim is a nurse", "You may ask Kim again"),
        ("I swim in the lake every morning", "In summer you can swim in the lake again."),
        ("I like coffee", "you can have coffee again"),
        ("I use Slack", "You can use Slack again"),
        # One thing beside another.
        ("I own a Pixel 8", "I got a work phone."),
        ("I own a Pixel 8", "I bought an iPhone for work."),
        ("I own a Pixel 8", "I've got a spare phone now."),
        ("I own a MacBook", "I bought a Framework."),
        ("I own a MacBook", "I own a company laptop now."),
        ("I use Linux", "I have used Linux since 1999 and bought a Windows laptop."),
        ("I use Linux", "I've got a Windows laptop now."),
        ("I use Chrome", "I installed Firefox yesterday."),
        ("I use Windows", "I switched to Linux on my old laptop"),
        ("I use React", "I started using Vue"),
        ("I use Firefox", "I use Chrome for testing now"),
        ("I use Firefox", "I use Chrome at home now"),
        ("I own a Pixel 8", "I have a phone and a laptop now"),
        # Tastes of different things.
        ("I prefer dark chocolate", "I prefer light beer."),
        ("I prefer tea", "I prefer coffee in the morning."),
        ("I prefer light shoes", "I prefer dark mode."),
        # What is liked, done or learnt goes on when one of its times is over.
        ("I like summer", "The summer is over"),
        ("I like the Olympics", "The Olympics are over"),
        ("I do yoga every day", "Yoga is over, now dinner"),
        ("I speak Spanish", "The Spanish is finally over"),
        # A part of a thing, or the like of it that is somebody else's.
        ("I own a boat", "I sold my boat engine"),
        ("I own a piano", "I sold my piano bench"),
        ("I own a guitar", "I sold my guitar stand"),
        ("I own a bike", "I sold my bike rack"),
        ("I own a car", "I sold my car tyres"),
        ("I own a car", "I sold my dad's car"),
        # What comes back, and whoever does.
        ("I own an iPhone", "My iPhone was stolen but I got it back"),
        ("I own a bike", "My bike was stolen but the police found it"),
        ("I own a laptop", "My laptop died, forgot to charge it"),
        ("I own a car", "My car died this morning, the garage will fix it"),
        ("I live in Berlin", "I left Berlin this morning for a conference"),
        ("I live in Berlin", "I left Berlin for the weekend"),
        # A time that is over somewhere, and somebody who is away.
        ("I work at Tesco", "My shift at Tesco is over"),
        ("I work at Bosch", "My first week at Bosch is over"),
        ("I live in Berlin", "My weekend in Berlin is over"),
        ("I am married to Anna", "Anna is gone until Monday"),
        ("I have a cat called Miso", "Miso is gone to the vet"),
        ("I am married to Ben", "Ben and I broke up a fight"),
        ("I am married to Ben", "Ben and I split up at the mall to shop faster"),
        ("I am married to Ben", "Ben and I are not talking about money"),
        ("I am married to Anna", "Anna moved out of the office"),
        # Where somebody is on some days, a job beside the job, and one that is offered.
        ("I work at Bosch", "I'm at Tesco, weekends"),
        ("I work at Bosch", "I'm at the library, evenings"),
        ("I work at Bosch", "I'm at Dad's, weekends only"),
        ("I work at Bosch", "I have a second job at Lidl"),
        ("I work at Bosch", "I took a weekend job at Lidl"),
        ("I work at Bosch", "I got a job offer from Siemens"),
        ("I take metformin", "My metformin is gone, I need a refill"),
        # One thing beside another, or somebody else's.
        ("I own a MacBook", "I have a ThinkPad now to fix"),
        ("I use Windows", "I switched my router to Linux"),
        ("I use Windows", "I switched my mum to Linux"),
        ("I use Jira", "I switched from Trello to Linear"),
        ("I own an iPhone", "I own a Pixel and an iPhone now"),
        ("I use Vim", "I'm using Zed right now"),
        ("I use Vim", "I use Emacs now when I write Lisp"),
        ("I use React", "I now use Vue on a side project"),
        ("I use Windows", "I switched to Ubuntu in a VM"),
        ("I own an iPhone", "I bought a Pixel and replaced the screen"),
        # No to something else, or for an evening.
        ("I work at Google", "Google turned me down for the promotion"),
        ("I drink alcohol", "I'm not drinking tonight"),
        ("I eat meat", "I'm not eating meat tonight"),
    ],
)
def test_what_is_known_stays(before, now):
    assert verdicts(before, now) <= {Verdict.ADD, Verdict.NONE, Verdict.COEXIST}


@pytest.mark.parametrize(
    ("before", "now", "verdict"),
    [
        ("I work at Siemens", "I'm at Bosch now, part-time", Verdict.UPDATE),
        ("I work at Siemens", "I took a job offer from Bosch", Verdict.UPDATE),
        ("I am married to Anna", "Anna is gone", Verdict.DELETE),
        ("I am married to Ben", "Ben and I broke up last week", Verdict.DELETE),
        ("I am married to Ben", "Ben and I are not talking any more", Verdict.DELETE),
        ("I have a flatmate called Anna", "Anna moved out of our flat", Verdict.DELETE),
        ("I have migraines", "My migraines are gone now", Verdict.DELETE),
        ("I use Windows", "I'm on Linux these days", Verdict.DELETE),
        ("I use Windows", "I use Linux nowadays", Verdict.DELETE),
        ("I have eczema", "My eczema is fully healed.", Verdict.DELETE),
        ("I have a bad knee", "My knee is fine again", Verdict.DELETE),
        ("I plan to visit Lisbon", "Lisbon's off.", Verdict.DELETE),
        ("I own a laptop", "My laptop is gone for good", Verdict.DELETE),
        ("I own a car", "I sold my old car", Verdict.DELETE),
        ("I own a boat", "I sold my boat to my neighbour", Verdict.DELETE),
        ("I own a Honda", "I sold my Honda Civic", Verdict.DELETE),
        ("I have a dog", "My dog died this morning", Verdict.DELETE),
        ("I want to work at Google", "Google turned me down", Verdict.DELETE),
        ("Never mention calories to me", "You can mention calories again", Verdict.DELETE),
        ("I own a Pixel 8", "I've got an iPhone now", Verdict.DELETE),
        ("I use Windows", "I'm on Linux now", Verdict.DELETE),
        ("I use Windows", "I switched over to Linux", Verdict.DELETE),
        ("I own an iPhone", "I bought a Pixel and replaced it", Verdict.DELETE),
        ("I prefer window seats", "I prefer aisle seats", Verdict.UPDATE),
    ],
)
def test_what_is_known_changes(before, now, verdict):
    assert verdict in verdicts(before, now)


@pytest.mark.parametrize(
    ("said", "predicate"),
    [
        ("I do a job with care.", "works_at"),
        ("I got a good position from my boss.", "works_at"),
        ("I have done a job with Anna.", "works_at"),
        ("I have a job with benefits.", "works_at"),
        ("I do an internship with pride", "works_at"),
        ("I started a job with Tom", "works_at"),
        ("I got a new position from HR", "works_at"),
        ("I just got back from Slack", "visited"),
        ("I just came back from Boots with the milk", "visited"),
        ("I'm just back from Costco", "visited"),
        ("I just got back from Anna", "visited"),
        ("I bought a tablet of chocolate", "owns"),
        ("He is 90 pounds, a bargain", "weight"),
        ("My brother is 90 pounds, a bargain", "weight"),
        ("Give me longer answers", "prefers"),
        ("I love Rome, but this heat, I can't stand it.", "dislikes"),
        ("I like Rome. It rains and I hate it.", "dislikes"),
        ("I love Go and I hate Java and I use it", "dislikes"),
        ("I like Rust, and the people, and I hate it", "dislikes"),
        ("I like cake at my aunt's house but I hate it.", "dislikes"),
        # The rest of a sentence, or of a plan, is no thing.
        ("It was rewarding and reminded me why I'm passionate about baking.", "likes"),
        ("It's based on a book series that I love.", "likes"),
        ("Planning a trip there next month.", "plans"),
        ("I hope to work in the future.", "wants"),
        ("I don't plan to give up on it.", "plans"),
        ("I love making him happy.", "likes"),
    ],
)
def test_it_is_none_of_the_kind(said, predicate):
    assert predicate not in [one.predicate for one in facts(said)]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("I do an internship at Bosch", ["User works at Bosch"]),
        ("I got a job with Bosch", ["User works at Bosch"]),
        ("I like Rust; the compiler is slow and I hate it.", ["User likes Rust"]),
        ("I love my dog, and I bought a ball because he loves it.", ["User loves their dog"]),
        ("I like 80s music.", ["User likes 80s music"]),
        ("I like 90s rock and jazz.", ["User likes 90s rock and jazz"]),
        ("I like 3D printing.", ["User likes 3D printing"]),
        ("I like 2 player games.", ["User likes 2 player games"]),
        ("i have like 3 cats", ["User has 3 cats"]),
        ("i have a cat n a dog lol", ["User has a cat", "User has a dog"]),
        ("I just got back from Lisbon", ["User visited Lisbon"]),
        ("I just got back from Paris", ["User visited Paris"]),
        ("i like fish n chips", ["User likes fish and chips"]),
        ("I own a house of my own", ["User owns a house"]),
        ("I accepted an offer from Google", ["User works at Google"]),
        ("My sister is 90 pounds", ["User's sister weighs 90 pounds"]),
        ("Give me longer answers from now on",
         ["User wants the assistant to give User longer answers"]),
    ],
)  # fmt: skip
def test_it_is_this_and_nothing_else(said, expected):
    assert texts(said) == expected


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("I love Euclid's Elements Book I.", "User loves Euclid's Elements Book I"),
        ("I love the book I bought in Rome.", "User loves the book they bought in Rome"),
        ("I love user research.", "User loves user research"),
    ],
)
def test_i_is_a_number_only_after_a_name_and_a_user_may_be_anybody(said, text):
    assert texts(said) == [text]


def test_a_game_called_lol_is_no_laughter():
    [one] = texts("i play lol every day with my brother")
    assert one.startswith("User plays lol every day")


@pytest.mark.parametrize(
    "before",
    [
        ("I have two sisters.", "My sister Kim works at Lidl."),
        ("I have three siblings.", "My sister Kim works at Lidl."),
        ("I have two brothers and a sister.", "My sister Kim works at Lidl."),
        ("I have a sister.", "My sister Kim works at Lidl."),
    ],
)
def test_one_of_several_sisters_is_nobody_by_name(before):
    nurse = facts("My sister is a nurse")[0]
    assert named_kin(nurse, [one.fact for one in known(*before)]) == nurse


def test_a_variable_called_n_is_no_and():
    said = "the value of n in my loop, for n items, if n is odd"
    assert spelt_out(said) == said


def test_tools_of_two_words_are_whole():
    assert {"app engine", "pixel"} <= words("tools")
