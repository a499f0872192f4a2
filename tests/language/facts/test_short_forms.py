"""What is said in passing without a plain clause is put as one."""

from __future__ import annotations

import pytest

from tests.language.facts.extracted import texts


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("They've put me on methotrexate.", "User takes methotrexate"),
        ("Back on insulin since the pills did nothing", "User takes insulin"),
        ("Started on ramipril.", "User takes ramipril"),
        ("My asthma is worse in spring.", "User has asthma"),
        ("Been diagnosed with ADHD at 36.", "User has ADHD"),
        ("Porto has been home since 2019.", "User lives in Porto"),
        ("We call Ghent home.", "User lives in Ghent"),
        ("Spanish is my mother tongue.", "User speaks Spanish"),
        ("My stammer's worse since the promotion to team lead", "User works as a team lead"),
        ("Been a paramedic for 17 years.", "User works as a paramedic"),
        ("Been vegetarian for ten years.", "User is vegetarian"),
        ("Day job: accountant.", "User works as an accountant"),
        ("Nurse here, night shifts mostly.", "User works as a nurse"),
        ("Left-handed, so the scissors are useless.", "User is left-handed"),
        ("Can't do dairy.", "User does not eat dairy"),
        ("Shellfish makes me come out in hives.", "User is allergic to shellfish"),
        ("Thinking of learning the cello at 46. Too old?", "User is 46 years old"),
        ("New flatmate: Goran.", "User has a flatmate named Goran"),
        ("Back in Leeds since Sunday.", "User lives in Leeds"),
    ],
)
def test_a_short_form_says_it_of_the_speaker(said, text):
    assert text in texts(said)


@pytest.mark.parametrize(
    "said",
    [
        "My cat is old and on insulin.",
        "The cat can't have dairy.",
        "I can't do nuts in the dugout area.",
        "Lars has been home since Monday.",
        "Anna is our home help.",
        "The promotion to team lead went to Lachlan.",
        "That song makes me break out in a cold sweat.",
        "They almost put me on statins.",
        "The doctor wants to put me on statins.",
        "If they put me on statins I'll cry.",
        "Mum here, the boys are asleep.",
        "Been a nightmare for weeks.",
        "My asthma is gone.",
    ],
)
def test_what_only_looks_like_one_says_nothing(said):
    assert [one for one in texts(said) if one.startswith("User ")] == []


def test_who_is_left_out_may_be_somebody_spoken_of():
    assert "User takes insulin" not in texts("My dad is ill. On insulin now.")
