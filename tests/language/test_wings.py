from __future__ import annotations

import itertools
from threading import Event, Thread

import numpy as np
import pytest

from language.english.topics import wings
from language.english.topics.wings import areas, prototypes
from language.extraction import KnownEntity, WingFound
from language.transcripts import Turn
from tests.conversations import START
from tests.language.conversations import FRIENDS, PORTO, SHED, asked, between, read
from tests.polling import PATIENCE_S, until


@pytest.mark.parametrize(
    ("question", "area"),
    [
        ("What can I cook with leeks and leftover rice tonight?", "Cooking & food"),
        ("Which neighbourhood of Naples is best to stay in for a weekend?", "Travel"),
        ("My knee hurts after running, should I see a doctor?", "Health & fitness"),
        ("How do I get rid of moss in the lawn?", "Home & garden"),
        ("Can I deduct my home office in my tax return?", "Money & taxes"),
        ("How do I answer questions about my weaknesses in a job interview?", "Work & career"),
        ("Why does my Python script raise a KeyError?", "Software & computers"),
        ("Please correct the grammar of this sentence for me.", "Writing & language"),
        ("Write a story in which a dragon loses its fire.", "Stories & role play"),
        ("Why do stars twinkle and planets do not?", "Science & nature"),
        ("How do I compute the derivative of a product?", "Maths & statistics"),
        ("Which series should we watch after the last season of that show?", "Film, TV & music"),
        ("My puppy chews the furniture when we are out.", "Pets & animals"),
        ("Who were the emperors of Rome after Augustus?", "History & politics"),
        ("How do I get more customers for my small online shop?", "Business & marketing"),
        ("I feel anxious every Sunday evening and cannot sleep.", "Mind & feelings"),
        ("What games can we play at my son's birthday party?", "Events & celebrations"),
        ("How often do I change the oil of my car?", "Cars & transport"),
    ],
)
def test_a_question_lands_in_its_area(question, area):
    wing = read(asked(question, "Good question! Let me think about that.")).wing
    assert (wing.kind, wing.name) == ("topic", area)


@pytest.mark.parametrize("text", ["Hello there!", "ok", "asdf qwer", "🎉", "lol same"])
def test_what_is_about_nothing_is_everyday_talk(text):
    assert read(asked(text)).wing == WingFound("topic", "Everyday talk")


def test_two_people_have_one_wing_in_any_order():
    one = read(FRIENDS).wing
    other = read(between("Philippa", "Nadia", "Hi Nadia, how are you?", "Well, and you?")).wing
    assert one == other
    assert (one.kind, one.name) == ("person", "Nadia & Philippa")
    assert "Philippa & Nadia" in one.aliases


def test_two_people_have_their_wing_also_where_only_one_is_in_the_window():
    wing = read(FRIENDS[:1], speakers=("Nadia", "Philippa")).wing
    assert wing.name == "Nadia & Philippa"


def test_a_named_person_and_the_user_have_the_persons_wing():
    window = [
        Turn("1", "user", "Did you sell the boat?", START),
        Turn("2", "user", "Not yet, somebody comes on Friday.", START, "Derek"),
    ]
    assert read(window).wing == WingFound("person", "Derek")


def test_the_users_own_name_is_no_subject():
    window = [
        Turn("1", "user", "How do I get rid of moss in the lawn?", START, "Nadia"),
        Turn("2", "assistant", "Rake it out and add lime.", START, "Claude"),
    ]
    assert read(window).wing.name == "Home & garden"


def test_a_known_subject_is_reused_where_it_is_named():
    known = (WingFound("project", "Efoil rebuild", ("efoil-rebuild", "efoil")),)
    window = asked(
        "The efoil motor runs hot.",
        "Check the current.",
        "The efoil draws 90 amps at full throttle.",
        "That is too much.",
    )
    assert read(window, wings=known).wing == known[0]
    assert read(SHED, wings=known).wing.name == "Home & garden"
    assert read(SHED, wings=known, title="Efoil rebuild, again").wing == known[0]


def test_a_subject_named_in_passing_is_not_what_it_is_about():
    known = (WingFound("person", "Tobias"),)
    window = asked("Tobias asks: how do I get rid of moss in the lawn?", "Rake it out.")
    assert read(window, wings=known).wing.name == "Home & garden"


def test_a_renamed_area_takes_nothing_by_its_new_name():
    known = (WingFound("topic", "Porto", ("travel",)),)
    assert read(PORTO, wings=known).wing.name == "Travel"


@pytest.mark.parametrize(
    ("title", "name"),
    [("Efoil rebuild", "Efoil rebuild"), ("The Harbour Mill Project", "Harbour Mill project")],
)
def test_a_project_in_the_title_has_its_wing(title, name):
    assert read(SHED, title=title).wing == WingFound("project", name)


@pytest.mark.parametrize("title", ["School project", "Project ideas", "Python project", "Shed"])
def test_any_project_is_no_wing(title):
    assert read(SHED, title=title).wing.kind == "topic"


def test_a_named_agent_has_its_wing_and_a_program_has_none():
    assert read(SHED, agent="Gardener Gus").wing == WingFound("agent", "Gardener Gus")
    for program in ("", "assistant", "gpt-4o", "Claude 3.5 Sonnet", "ChatGPT"):
        assert read(SHED, agent=program).wing.kind == "topic"


def test_the_order_of_mining_does_not_matter():
    windows = [SHED, PORTO, FRIENDS]
    alone = [read(window).wing for window in windows]
    for order in itertools.permutations(range(3)):
        wings: tuple[WingFound, ...] = ()
        for at in order:
            wing = read(windows[at], wings=wings).wing
            assert wing == alone[at]
            wings = (*wings, wing)


TRACKER = asked(
    "I want to build a personal budget tracker. Where do I begin?",
    "Begin with what it must store.",
    "My budget tracker app should import bank statements, as files.",
    "Then read CSV first.",
)


def test_a_project_named_as_ones_own_has_its_wing_at_once():
    found = read(TRACKER)
    assert (found.wing.kind, found.wing.name) == ("project", "Budget tracker")
    assert found.title.startswith("Budget tracker")


def test_somebody_elses_is_no_project_of_ones_own():
    window = asked(*(turn.text.replace("budget tracker", "brother's tracker") for turn in TRACKER))
    assert read(window).wing.kind != "project"


def test_a_project_is_known_again_by_another_form_of_its_name():
    known = (read(TRACKER).wing,)
    window = asked(
        "The login of my budget tracker application fails with a 500.",
        "What does the log say?",
        "Nothing at all, which is the odd part.",
        "Then turn on debugging.",
        "It shows a missing key in the session.",
        "Set SECRET_KEY.",
    )
    assert read(window, wings=known).wing == known[0]
    assert read(SHED, wings=known).wing.name == "Home & garden"


@pytest.mark.parametrize(
    "text",
    [
        "I use a habit tracker and my phone, nothing else, to keep my days in order.",
        "My app is slow. Why is my app so slow when it starts?",
    ],
)
def test_no_project_is_made_of_what_is_only_used_or_has_no_name(text):
    assert read(asked(text, "Hm.", "Any idea?", "Not yet.")).wing.kind == "topic"


BUDGETS = WingFound("project", "Budget tracker", ("budget-app",))


@pytest.mark.parametrize(
    ("said", "times", "is_own"),
    [
        ("The login of my budget tracker fails.", 1, True),
        ("Does the old Budget app still run?", 1, True),
        ("Which budget tracker is best?", 1, False),
        ("I keep my budget and a tracker.", 0, False),
    ],
)
def test_a_project_is_named_by_any_of_its_names(said, times, is_own):
    assert wings.naming([said, "And so on."], BUDGETS) == wings.Naming(times, is_own=is_own)


def test_a_project_of_one_word_is_named_with_a_capital():
    said = ["That is the main thing.", "Does the Main folder build?", "Maintain it."]
    assert wings.naming(said, WingFound("project", "main", ("/srv/main",))).times == 1


@pytest.mark.parametrize(
    ("said", "things", "is_told_of"),
    [
        # Named again and again.
        (["My budget tracker is slow.", "Cache it?", "The budget tracker still is."], 0, True),
        # Named once as one's own, among much else that is named there.
        (["My budget tracker is slow.", *["Why?"] * 9], 3, True),
        (["My budget tracker is slow.", *["Why?"] * 9], 2, False),
        (["Some budget tracker is slow.", *["Why?"] * 9], 9, False),
        # Named beside another project that one is at.
        (["My recipe website is slow, unlike my budget tracker.", *["Why?"] * 9], 9, False),
        (["Why?"] * 3, 9, False),
    ],
)
def test_a_whole_conversation_tells_of_a_project_by_its_name_and_by_what_else_it_names(
    said, things, is_told_of
):
    named = wings.naming(said, BUDGETS)
    assert wings.is_told_of(said, named, things, BUDGETS) == is_told_of


@pytest.mark.parametrize(
    "question",
    ["What did Caroline say about her adoption plans?", "Tell me about Caroline, please."],
)
def test_a_question_about_somebody_goes_to_their_wing(question):
    known = (WingFound("person", "Caroline & Melanie"), WingFound("person", "Bob"))
    assert read(asked(question, "She applied in May."), wings=known).wing == known[0]


def test_what_returns_in_talk_after_talk_has_a_wing():
    window = asked(
        "Pruning the roses in the garden again: how far do I cut back Albertine?",
        "By a third.",
        "And Albertine's climbing shoots, do they stay?",
        "They do.",
    )
    albertine = KnownEntity("item", "Albertine")
    assert read(window).wing.name == "Home & garden"
    assert read(window, returning=(albertine,)).wing == WingFound("topic", "Albertine")
    assert read(SHED, returning=(albertine,)).wing.name == "Home & garden"


def test_areas_are_few_and_well_described():
    assert 20 <= len(areas()) <= 32
    assert len({area.name for area in areas()}) == len(areas())
    for area in areas():
        assert len(area.examples) >= 8
        assert len(area.words) >= 10


def test_those_who_need_the_areas_at_once_embed_them_once(monkeypatch):
    monkeypatch.setattr(wings, "_made", [])
    begun, go_on = Event(), Event()
    embedded, found = [], []

    def embed(texts):
        embedded.append(len(texts))
        if len(texts) > 1:
            begun.set()
            assert go_on.wait(PATIENCE_S)
        return np.eye(1, 8).repeat(len(texts), axis=0)

    threads = [Thread(target=lambda: found.append(prototypes(embed))) for _ in range(3)]
    threads[0].start()
    assert begun.wait(PATIENCE_S)
    for thread in threads[1:]:
        thread.start()
    until(lambda: embedded.count(1) == len(threads))
    go_on.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sum(count > 1 for count in embedded) == 1
    assert all(vectors is found[0] for vectors in found)
    assert len(found) == len(threads)
