"""Labelled sentences: which state a lasting wish, and which only sound like it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from language.english.stated_preferences import preference_strength

LASTING = """
I prefer window seats on long flights.
I really prefer tea to coffee in the morning.
My favourite composer is Fauré.
My all-time favorite board game is Azul.
Dill is one of my favourite herbs.
I'm allergic to walnuts, so no pesto with them.
I have a severe peanut allergy.
I am lactose intolerant.
I'm a vegetarian and my partner is too.
I'm left-handed, which makes most scissors useless.
I don't eat pork.
I don't drink alcohol on weekdays.
I can't stand the smell of lilies.
I cannot tolerate loud restaurants.
I never fly if a train goes there.
I always take the stairs.
I usually swim before work.
I tend to read on paper rather than on screens.
I only buy second-hand furniture.
I avoid motorways whenever possible.
I love hiking in the rain.
I absolutely adore old maps.
I hate small talk at parties.
I enjoy cooking for large groups.
I'm a big fan of slow cinema.
I'm not a fan of horror films.
I've been into pottery lately.
I have been really enjoying rye bread these past weeks.
I'm trying to cut down on sugar.
I'm passionate about wild swimming.
I'd rather walk than drive.
I would prefer a smaller hotel over a resort.
I'm more of a mountain person.
Always answer in Dutch.
Please always show the units in calculations.
Never use emojis in your replies.
Please never shorten my quotations.
From now on, write dates as day, month, year.
Going forward, give me the short version first.
Keep your answers short.
Please keep the explanations free of jargon.
When I ask for a recipe, leave out the story.
Whenever I ask about code, include the version numbers.
Don't call me sir.
Please don't use bullet points.
Remember that I work night shifts.
Keep in mind that I have two toddlers.
Call me Fitz.
Quiet cafés work best for me.
Spicy food doesn't agree with me.
Privacy is very important to me.
As a complete beginner, I get lost in menus quickly.
I want you to always double-check the arithmetic.
Make sure to always cite the page.
I refuse to buy from that chain.
I stick to herbal tea after six.
I learn best with worked examples.
I'm picky about fonts.
I don't like coriander at all.
Prefer plain words over clever ones.
I'm planning a dinner. I don't eat shellfish. What could I serve?
""".strip().split("\n")

PASSING = """
I'd love to hear more about that.
I love that idea!
I like your suggestion, thanks.
I like the idea of a picnic, but the forecast is bad.
I love how you explained it.
I love it!
I'd like a table for four.
I would like to book a room for Tuesday.
Would you prefer the red or the blue one?
Do I prefer tea or coffee?
What do I usually eat for breakfast?
What is my favourite composer?
Should I always salt the water first?
How can I avoid traffic jams on the ring road?
Can you recommend a hotel in Ghent?
Which sauce goes with trout?
My sister said I always interrupt her.
If I prefer a cheaper one, which would it be?
She prefers cats and he prefers dogs.
The band has always played here.
It always rains in March.
Cats never come when called.
I had never heard of that town.
I never thought it would rain that much.
I always wanted to see the tall ships once.
The train was late again today.
I bought a bicycle yesterday.
We met at the station and walked home.
Please translate this letter into French.
Thanks, that works!
Write a poem about the sea.
What time does the museum open?
Never mind, I found it.
The recipe calls for two eggs.
He said "I prefer silence" and left the room.
Summarise this: "I always take the bus, I hate driving."
Fix this code: `const prefer = always || never`
How often should I water a fern?
What would you rather have, rain or snow?
It looks like the boiler is broken.
I have to catch the seven o'clock ferry.
I'm going to the market this afternoon.
I wonder whether I like it enough to buy it.
Call me back at six.
Could you call me when it is ready?
I just need one more example.
There are three ways to tie this knot.
Tell me about the history of tulips.
I was born in Antwerp.
My uncle hates boats.
Is it important to prune roses in winter?
Please help me with this form.
Can I always return it within a month?
Why do I never get a receipt?
I am at the airport.
Convert 20 miles to kilometres.
That is a great suggestion.
Which train should I take tomorrow?
I lost my keys this morning.
What did you mean by the second step?
The museum keeps your coat at the door.
""".strip().split("\n")


@pytest.mark.parametrize("sentence", LASTING)
def test_a_lasting_wish_is_heard(sentence):
    assert preference_strength(sentence, "user") >= 0.3


@pytest.mark.parametrize("sentence", PASSING)
def test_what_only_sounds_like_it_is_not(sentence):
    assert preference_strength(sentence, "user") < 0.3


@pytest.mark.parametrize("role", ["assistant", "system", "tool"])
def test_only_people_have_wishes(role):
    assert preference_strength("I prefer tea and I always answer in Dutch.", role) == 0


def test_an_order_weighs_more_than_a_habit():
    order = preference_strength("Always answer in Dutch.", "user")
    habit = preference_strength("I usually swim before work.", "user")

    assert order > habit


def test_hints_add_up_and_repeating_one_does_not():
    once = preference_strength("I love rye bread.", "user")
    twice = preference_strength("I love rye bread. I love rye bread.", "user")
    with_reason = preference_strength("I love rye bread. I'm allergic to wheat.", "user")

    assert once == twice < with_reason <= 1


def test_a_pasted_text_is_not_the_speakers_but_what_frames_it_is():
    pasted = "Then the captain spoke: I always hated the sea and I prefer the hills. " * 40
    filler = "The lease begins in March and ends when either side gives notice. " * 40

    assert preference_strength(f"Shorten this.\n{filler}{pasted}{filler}", "user") == 0
    assert preference_strength(f"I prefer short summaries.\n{filler}", "user") > 0.5
    assert preference_strength(f"{filler}\nFrom now on, answer in Dutch.", "user") > 0.5


def test_curly_apostrophes_are_apostrophes():
    assert preference_strength("I’m allergic to walnuts.", "user") > 0.5


@given(st.text())
def test_any_text_has_a_strength(text):
    assert 0 <= preference_strength(text, "user") <= 1


def test_it_costs_far_less_than_embedding():
    messages = [sentence * 3 for sentence in LASTING + PASSING]
    best = min(_seconds(messages) for _ in range(5)) / len(messages)

    assert best < 0.000_2  # A tenth of a short embedding; most of it is margin for a busy machine.


def _seconds(messages):
    started = time.process_time()
    for message in messages:
        preference_strength(message, "user")
    return time.process_time() - started
