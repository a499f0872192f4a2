from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from language.english.dates import TimeIntent, read_time, time_scores
from language.english.dates.spans import easter
from tests.hypothesis_profiles import examples

NOW = datetime(2023, 11, 15, 14, 30, tzinfo=UTC)


def days_spoken_of(question, now=NOW):
    periods = read_time(question, now).periods
    return [(period.start.date().isoformat(), period.end.date().isoformat()) for period in periods]


@pytest.mark.parametrize(
    "question",
    [
        "Which book am I currently reading?",
        "What is my latest score?",
        "Where did I travel most recently?",
        "Does Ann still live in Ghent?",
        "What do I drink these days?",
        "What have I been cooking lately?",
        "How many laps have I swum so far?",
    ],
)
def test_a_question_about_what_holds_now_is_recent(question):
    assert read_time(question, NOW) == TimeIntent(recent=True)


@pytest.mark.parametrize(
    "question",
    [
        "What did I originally think of the plan?",
        "When did I first mention the allotment?",
        "What was the price the first time?",
        "Which colour had I initially chosen?",
    ],
)
def test_a_question_about_the_beginning_is_first(question):
    assert read_time(question, NOW) == TimeIntent(first=True)


def test_a_question_about_the_last_conversation_is_last():
    assert read_time("Which hostel did you name last time?", NOW) == TimeIntent(last=True)
    assert read_time("What did we settle in our last chat?", NOW) == TimeIntent(last=True)


@pytest.mark.parametrize(
    "question",
    [
        "Which of them knows Latin?",
        "How do I paint a still life?",
        "Who follows current events?",
        "What was my first job?",
        "Which came last in the race?",
    ],
)
def test_words_that_only_look_like_it_say_nothing_of_time(question):
    assert not read_time(question, NOW)


def test_a_date_in_digits_that_can_be_read_in_two_ways_gives_both():
    assert days_spoken_of("What did I buy on 3/4/2023?") == [
        ("2023-03-04", "2023-03-05"),
        ("2023-04-03", "2023-04-04"),
    ]


def test_of_two_readings_the_one_still_to_come_is_dropped():
    assert days_spoken_of("What did I buy on 5/12/2023?") == [("2023-05-12", "2023-05-13")]


def test_periods_joined_by_and_need_no_second_preposition():
    assert days_spoken_of("What grew in March and May?") == [
        ("2023-03-01", "2023-04-01"),
        ("2023-05-01", "2023-06-01"),
    ]
    assert days_spoken_of("What grew in 2019, 2020 or 2022?") == [
        ("2019-01-01", "2020-01-01"),
        ("2020-01-01", "2021-01-01"),
        ("2022-01-01", "2023-01-01"),
    ]


def test_two_phrases_give_two_periods_in_the_order_of_the_text():
    assert days_spoken_of("Did I run more last week than in May?") == [
        ("2023-11-06", "2023-11-13"),
        ("2023-05-01", "2023-06-01"),
    ]


def test_any_day_can_stand_for_now_so_messages_can_be_read_by_their_own_date():
    said_at = datetime(2021, 1, 1, 0, 5, tzinfo=UTC)

    assert days_spoken_of("I fell yesterday", said_at) == [("2020-12-31", "2021-01-01")]
    assert days_spoken_of("We met last month", said_at) == [("2020-12-01", "2021-01-01")]
    assert days_spoken_of("We met last Friday", said_at) == [("2020-12-25", "2020-12-26")]


def test_a_day_is_the_askers_day_even_where_the_clocks_change():
    brussels = ZoneInfo("Europe/Brussels")
    (period,) = read_time("Who rang yesterday?", datetime(2023, 10, 30, 9, tzinfo=brussels)).periods

    assert period.start == datetime(2023, 10, 28, 22, tzinfo=UTC)
    assert period.end - period.start == timedelta(days=1)  # On the wall; 25 hours in truth.
    assert period.end.timestamp() - period.start.timestamp() == 25 * 3600


def test_what_is_quoted_is_a_title_and_not_a_time():
    assert days_spoken_of("When did I read 'Last Summer in May' and \"Next Year\"?") == []
    assert days_spoken_of("Did I see 'Summer 2021' last week?") == [("2023-11-06", "2023-11-13")]


def test_of_a_very_long_text_both_ends_are_read():
    pasted = "lorem ipsum dolor " * 5000
    question = f"In March I wrote: {pasted} What came of it last week?"
    first, last = read_time(question, NOW).periods

    assert first.text == "In March"
    assert question[last.start_char : last.end_char] == last.text == "last week"


@pytest.mark.timeout(30)  # Milliseconds when linear, minutes when not.
@pytest.mark.parametrize(
    "part", ["the week before ", "may 5 ", "first week of ", "1" * 8, "a few or ", "'a ", " "]
)
def test_a_text_made_to_be_slow_is_read_to_its_end(part):
    assert isinstance(read_time(part * 50_000, NOW), TimeIntent)


@pytest.mark.parametrize(
    "question",
    [
        "in 99999 years ago",
        "what about 99999 decades ago and 99999 months from now",
        "on 31 June 2023",
        "2023-13-45 and 31/31/2023",
        "the fifth Friday of February 2023",
        "between May and",
        "from 2023 to 2019",
        "the end of the end of the end of the end of May",
        "29 February 2023",
        "before before before May",
    ],
)
def test_a_time_that_cannot_be_is_no_error(question):
    assert isinstance(read_time(question, NOW), TimeIntent)


WORDS = st.lists(
    st.sampled_from(
        "the last next this past May march June 5th 31 2023 '99 99999 ago week weeks of in on "
        "between and from to since before after early end first Friday summer Christmas a few "
        "half day night before now 5/12/2023 2023-05-12 , ? - an hour decade years quarter q3 90s "
        "yesterday morning or so back time 0 second".split()
    ),
    max_size=14,
).map(" ".join)


@settings(max_examples=examples(400), deadline=None)
@given(st.one_of(st.text(), WORDS), st.datetimes(timezones=st.just(UTC)))
def test_no_text_at_no_time_makes_it_raise(text, now):
    for period in read_time(text, now).periods:
        assert period.start < period.end
        assert text[period.start_char : period.end_char] == period.text


@pytest.mark.parametrize(
    ("year", "month", "day"),
    [(1961, 4, 2), (2000, 4, 23), (2023, 4, 9), (2024, 3, 31), (2038, 4, 25)],
)
def test_easter_falls_where_the_calendar_says(year, month, day):
    assert easter(year).date().isoformat() == f"{year}-{month:02}-{day:02}"


def scores_of(question, *days_before_now):
    said_at = np.array([NOW.timestamp() - days * 86_400 for days in days_before_now])
    return time_scores(said_at, read_time(question, NOW), NOW)


def test_without_a_word_of_time_all_score_nothing():
    assert scores_of("What colour is the door?", 0, 10, 500).tolist() == [0, 0, 0]
    assert time_scores(np.array([]), read_time("last week", NOW), NOW).shape == (0,)


def test_within_the_period_the_score_is_one_and_it_falls_off_on_both_sides():
    scores = scores_of("What did I cook 10 days ago?", 0, 5, 8, 10, 12, 20, 60)

    assert scores.dtype == np.float32
    assert scores[3] == 1
    assert list(scores[:4]) == sorted(scores[:4])
    assert list(scores[3:]) == sorted(scores[3:], reverse=True)
    assert scores[6] < 0.01


def test_a_month_forgives_more_than_a_day():
    a_day_and_a_week_earlier = scores_of("What came on 10 October?", 36 + 7)[0]
    a_month_and_a_week_earlier = scores_of("What came in October?", 45 + 7)[0]

    assert a_month_and_a_week_earlier > 3 * a_day_and_a_week_earlier


def test_talk_after_the_day_is_forgiven_more_than_talk_before_it():
    before, after = scores_of("What came on 10 October?", 38, 34)

    assert after > before


def test_of_two_periods_the_nearer_counts():
    assert scores_of("Did I run in May or in October?", 30, 180).tolist() == [1, 1]


def test_everything_before_an_open_beginning_is_within():
    scores = scores_of("What did I read before July 2023?", 4000, 200, 100)

    assert scores[:2].tolist() == [1, 1]
    assert scores[2] < 1


def test_plans_are_talked_of_before_their_day():
    scores = scores_of("What do we do next summer?", 1, 20, 300)

    assert scores[0] >= scores[1] > scores[2]
    assert scores[0] == 1


def test_what_is_asked_of_now_prefers_the_newest():
    scores = scores_of("Which book am I currently reading?", 400, 100, 10, 1)

    assert list(scores) == sorted(scores)
    assert scores[-1] == 1
    assert 0 < scores[0] < 0.1


def test_what_is_asked_of_the_beginning_prefers_the_oldest():
    scores = scores_of("What did I originally want?", 400, 100, 10, 1)

    assert scores[0] == 1
    assert list(scores) == sorted(scores, reverse=True)


@pytest.mark.parametrize("question", ["last week", "currently", "originally"])
def test_a_time_unknown_scores_nothing(question):
    said_at = np.array([np.nan, NOW.timestamp() - 5 * 86_400])

    unknown, known = time_scores(said_at, read_time(question, NOW), NOW)
    assert unknown == 0
    assert known == 1
    assert time_scores(np.array([np.nan]), read_time(question, NOW), NOW).tolist() == [0]


@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=8),
    st.sampled_from(["last week", "before 2020", "currently", "at first", "next year", "blue"]),
    st.integers(-12, 14).map(lambda hours: timezone(timedelta(hours=hours))),
)
def test_scores_stay_between_nothing_and_one(seconds, question, zone):
    now = NOW.astimezone(zone)
    scores = time_scores(np.array(seconds, np.float64), read_time(question, now), now)

    assert scores.shape == (len(seconds),)
    assert ((scores >= 0) & (scores <= 1)).all()
