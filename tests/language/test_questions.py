from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from language.english.questions import Intent, read_intent

USER, ASSISTANT, ADVICE, SURVEY = "asks_user", "asks_assistant", "asks_advice", "asks_survey"

QUESTIONS = [
    ("What did I tell you about my knee?", {USER}),
    ("Where did I put the spare key?", {USER}),
    ("When is my dentist appointment?", {USER}),
    ("Which bus do I take to work?", {USER}),
    ("Have I ever been to Ghent?", {USER}),
    ("How long have I been learning Dutch?", {USER}),
    ("Remind me what I paid for the lamp.", {USER}),
    ("Who gave me the blue scarf?", {USER}),
    ("What did you suggest for the damp wall?", {ASSISTANT}),
    ("Remind me of the soup recipe you gave.", {ASSISTANT}),
    ("Going back to our previous chat, what was the third step?", {ASSISTANT}),
    ("Which three trails did you recommend?", {ASSISTANT, SURVEY}),
    ("You mentioned a museum near the harbour, what was it called?", {ASSISTANT}),
    ("What was in your last answer about taxes?", {ASSISTANT}),
    ("What was the name of the inn we talked about?", {ASSISTANT}),
    ("Can you recommend a film for tonight?", {ADVICE}),
    ("I have a free Sunday. Any tips?", {ADVICE}),
    ("What should I cook for six people?", {ADVICE}),
    ("Should I repot the fern?", {ADVICE}),
    ("How would you suggest I set this up?", {ADVICE}),
    ("Could you help me plan the garden?", {ADVICE}),
    ("How can I sleep better?", {ADVICE}),
    ("I'm not sure which bike to buy.", {ADVICE}),
    ("What do you think of a smaller car?", {ADVICE}),
    ("How many plants did Ann buy?", {SURVEY}),
    ("Which instruments does Ben play?", {SURVEY}),
    ("What kinds of bread has Ann baked?", {SURVEY}),
    ("What has Ben painted?", {SURVEY}),
    ("Give a summary of the move.", {SURVEY}),
    ("In what order were the rooms painted?", {SURVEY}),
    ("What do Ann and Ben have in common?", {SURVEY}),
    ("How many books have I read?", {USER, SURVEY}),
    ("List all the places I visited.", {USER, SURVEY}),
    ("What is the capital of Peru?", set()),
    ("Who painted the kitchen?", set()),
    ("When did Ann meet Ben?", set()),
    ("What does the boiler's red light mean?", set()),
    ("Which dress is Ann wearing?", set()),
    ("What does James do?", set()),
]  # fmt: skip


@pytest.mark.parametrize(("question", "expected"), QUESTIONS, ids=[row[0] for row in QUESTIONS])
def test_a_question_is_after_these_things(question, expected):
    intent = read_intent(question)

    assert {name for name in (USER, ASSISTANT, ADVICE, SURVEY) if getattr(intent, name)} == expected


def test_a_polite_opening_is_not_about_the_asker():
    question = "I was wondering if you could remind me which wine you suggested for the trip?"

    assert not read_intent(question).asks_user
    assert read_intent(question).asks_assistant


NAMES = [
    ("Where did Ann Baker meet Ben?", ("Ann Baker", "Ben")),
    ("What is Ann's dog called?", ("Ann",)),
    ("What is Ann’s dog called?", ("Ann",)),
    ("Ann moved where?", ("Ann",)),
    ("Did the Museum of Fine Arts close?", ("Museum of Fine Arts",)),
    ("Have I met Dr. Okafor or J. R. Lund?", ("Dr. Okafor", "J. R. Lund")),
    ("I went to Ghent. Was it raining there?", ("Ghent",)),
    ("Is O'Neill with Jean-Luc?", ("O'Neill", "Jean-Luc")),
    ("Does the iPad run Fitbit Charge 3?", ("iPad", "Fitbit Charge 3")),
    ("Did Zoë see Łukasz in Åre?", ("Zoë", "Łukasz", "Åre")),
    ("Ann, is Ann there?", ("Ann",)),
    ("Did I go on Friday, 5 May?", ()),
    ("What should I do? Where do I begin?", ()),
    ("where did ann go", ()),
]


@pytest.mark.parametrize(("question", "names"), NAMES, ids=[row[0] for row in NAMES])
def test_names_are_found_and_the_starts_of_sentences_are_not(question, names):
    assert read_intent(question).names == names


@pytest.mark.parametrize(
    ("question", "quoted"),
    [
        ('Have I read "The Long Way" yet?', ("The Long Way",)),
        ("Have I read 'The Baker's Son' yet?", ("The Baker's Son",)),
        ("Did I like “Rain” or ‘Snow’?", ("Rain", "Snow")),
        ("What does « bonjour » mean?", ("bonjour",)),
        ("Wasn't it Ann's and Ben's?", ()),
        ('An empty "" pair', ()),
    ],
)
def test_what_is_quoted_is_kept_whole(question, quoted):
    assert read_intent(question).quoted == quoted


def test_a_quotation_is_not_searched_for_names():
    assert read_intent("When did Ann read 'Letters to Marco'?").names == ("Ann",)


@given(st.text())
def test_anything_may_be_asked(question):
    assert isinstance(read_intent(question), Intent)


@pytest.mark.timeout(30)  # Milliseconds when linear, minutes when not.
@pytest.mark.parametrize("part", ["A ", "what a ", "Aa of ", "'a ", "A.B.", "how many "])
def test_a_text_made_to_be_slow_is_read_to_its_end(part):
    assert isinstance(read_intent(part * 50_000), Intent)
