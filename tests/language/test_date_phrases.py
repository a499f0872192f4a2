"""Labelled questions: which days each phrase of time means, asked on a Wednesday afternoon."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from language.english.dates import read_time

NOW = datetime(2023, 11, 15, 14, 30, tzinfo=UTC)

# The question, the phrase within it, its first day and its last day.
DAYS = [
    # Dates.
    ("Who rang on 5 May 2023?", "on 5 May 2023", "2023-05-05", "2023-05-05"),
    ("Who rang on May 5th?", "on May 5th", "2023-05-05", "2023-05-05"),
    ("What was decided May 5th, 2022?", "May 5th, 2022", "2022-05-05", "2022-05-05"),
    ("What was decided on the 5th of May?", "on the 5th of May", "2023-05-05", "2023-05-05"),
    ("Where was I on December 3?", "on December 3", "2022-12-03", "2022-12-03"),
    ("Where was I on 3 Dec. 2021?", "on 3 Dec. 2021", "2021-12-03", "2021-12-03"),
    ("what did we eat on march 2", "on march 2", "2023-03-02", "2023-03-02"),
    ("What did we plan on the third of June?", "on the third of June", "2023-06-03", "2023-06-03"),
    ("Who came on Wednesday, 5 July?", "on Wednesday, 5 July", "2023-07-05", "2023-07-05"),
    ("Who came on Sat, Aug 12?", "on Sat, Aug 12", "2023-08-12", "2023-08-12"),
    ("Which film on 2023-05-12?", "on 2023-05-12", "2023-05-12", "2023-05-12"),
    ("Which film on 2023/05/12?", "on 2023/05/12", "2023-05-12", "2023-05-12"),
    ("What was logged at 2023-05-12T08:15:00Z?", "at 2023-05-12T08:15:00Z", "2023-05-12",
     "2023-05-12"),
    ("What did I buy on 25/3/2023?", "on 25/3/2023", "2023-03-25", "2023-03-25"),
    ("What did I buy on 3/25/2023?", "on 3/25/2023", "2023-03-25", "2023-03-25"),
    ("What did I buy on 5/12/2023?", "on 5/12/2023", "2023-05-12", "2023-05-12"),
    ("What did I buy on 7.3.2023?", "on 7.3.2023", "2023-03-07", "2023-03-07"),
    ("What did I buy on 3/25/23?", "on 3/25/23", "2023-03-25", "2023-03-25"),
    ("What did I buy on 10/31?", "on 10/31", "2023-10-31", "2023-10-31"),
    ("Which visits fell on the 21st?", "on the 21st", "2023-10-21", "2023-10-21"),
    ("Which visits fell on the 9th?", "on the 9th", "2023-11-09", "2023-11-09"),
    ("Where was I on 29 February?", "on 29 February", "2020-02-29", "2020-02-29"),
    ("How long had I been ill as of 27 March, 2022?", "as of 27 March, 2022", "2022-03-27",
     "2022-03-27"),
    ("Which bills fell due in 2023-05?", "in 2023-05", "2023-05-01", "2023-05-31"),
    # Days counted from today.
    ("What did I cook today?", "today", "2023-11-15", "2023-11-15"),
    ("What did I cook yesterday?", "yesterday", "2023-11-14", "2023-11-14"),
    ("And the day before yesterday?", "the day before yesterday", "2023-11-13", "2023-11-13"),
    ("What is on tomorrow?", "on tomorrow", "2023-11-16", "2023-11-16"),
    ("What is due the day after tomorrow?", "the day after tomorrow", "2023-11-17", "2023-11-17"),
    ("What kitchen tool did I order 10 days ago?", "10 days ago", "2023-11-05", "2023-11-05"),
    ("Which bird did I see three days ago?", "three days ago", "2023-11-12", "2023-11-12"),
    ("What did I lose a couple of days ago?", "a couple of days ago", "2023-11-12", "2023-11-13"),
    ("What did I lose a few days back?", "a few days back", "2023-11-10", "2023-11-13"),
    ("What did you say the other day?", "the other day", "2023-11-05", "2023-11-14"),
    # Weekdays.
    ("Whom did I meet last Tuesday?", "last Tuesday", "2023-11-14", "2023-11-14"),
    ("Whom did I meet last Wednesday?", "last Wednesday", "2023-11-08", "2023-11-08"),
    ("Whom did I meet on Friday?", "on Friday", "2023-11-10", "2023-11-10"),
    ("Where did I eat Saturday?", "Saturday", "2023-11-11", "2023-11-11"),
    ("Whom do I meet next Friday?", "next Friday", "2023-11-17", "2023-11-17"),
    ("Whom do I meet this Friday?", "this Friday", "2023-11-17", "2023-11-17"),
    ("Where did I go the Saturday before last?", "the Saturday before last", "2023-11-04",
     "2023-11-04"),
    ("What hurt three Sundays ago?", "three Sundays ago", "2023-10-29", "2023-10-29"),
    ("What was on Tuesday of last week?", "on Tuesday of last week", "2023-11-07", "2023-11-07"),
    ("What was the plan last week Tuesday?", "last week Tuesday", "2023-11-07", "2023-11-07"),
    ("Who won the Friday before 14 June 2023?", "the Friday before 14 June 2023", "2023-06-09",
     "2023-06-09"),
    ("Who won the Sunday after 14 June 2023?", "the Sunday after 14 June 2023", "2023-06-18",
     "2023-06-18"),
    ("Who led the class on the last Friday of May?", "on the last Friday of May", "2023-05-26",
     "2023-05-26"),
    ("Who led it on the first Monday in October?", "on the first Monday in October", "2023-10-02",
     "2023-10-02"),
    # Weekends and weeks, from Monday.
    ("Which hill did I climb this past weekend?", "this past weekend", "2023-11-11", "2023-11-12"),
    ("Which hill did I climb last weekend?", "last weekend", "2023-11-11", "2023-11-12"),
    ("Which hill did I climb over the weekend?", "over the weekend", "2023-11-11", "2023-11-12"),
    ("Where do I go this weekend?", "this weekend", "2023-11-18", "2023-11-19"),
    ("Where was I the weekend before last?", "the weekend before last", "2023-11-04",
     "2023-11-05"),
    ("Where was I the weekend before 14 June 2023?", "the weekend before 14 June 2023",
     "2023-06-10", "2023-06-11"),
    ("Which runs did I do last week?", "last week", "2023-11-06", "2023-11-12"),
    ("Which runs did I do this week?", "this week", "2023-11-13", "2023-11-19"),
    ("Which runs come next week?", "next week", "2023-11-20", "2023-11-26"),
    ("What broke the week before last?", "the week before last", "2023-10-30", "2023-11-05"),
    ("What broke early last week?", "early last week", "2023-11-06", "2023-11-08"),
    ("Where was he in the week before 14 June 2023?", "in the week before 14 June 2023",
     "2023-06-07", "2023-06-13"),
    ("Where was he the week of May 5th?", "the week of May 5th", "2023-05-01", "2023-05-07"),
    ("What bloomed in the first week of April?", "in the first week of April", "2023-04-01",
     "2023-04-07"),
    ("Which port in the second week of November?", "in the second week of November", "2023-11-08",
     "2023-11-14"),
    ("Which port in the last two weeks of May?", "in the last two weeks of May", "2023-05-18",
     "2023-05-31"),
    ("What did I note four weeks ago?", "four weeks ago", "2023-10-14", "2023-10-22"),
    ("What did I note two weeks ago?", "two weeks ago", "2023-10-29", "2023-11-04"),
    ("What did I note a fortnight ago?", "a fortnight ago", "2023-10-28", "2023-11-05"),
    ("What did I note 2-3 weeks ago?", "2-3 weeks ago", "2023-10-24", "2023-11-02"),
    ("How far did I row in the past two weeks?", "in the past two weeks", "2023-11-01",
     "2023-11-15"),
    ("How far did I row over the last 10 days?", "over the last 10 days", "2023-11-05",
     "2023-11-15"),
    ("How far did I row in the past week?", "in the past week", "2023-11-08", "2023-11-15"),
    ("What got done two weeks before August 11, 2023?", "two weeks before August 11, 2023",
     "2023-07-25", "2023-07-31"),
    ("What is due a week from today?", "a week from today", "2023-11-20", "2023-11-24"),
    ("What is due in two weeks' time?", "in two weeks' time", "2023-11-26", "2023-12-02"),
    # Months.
    ("Which races did I skip in March?", "in March", "2023-03-01", "2023-03-31"),
    ("which races did i skip in may", "in may", "2023-05-01", "2023-05-31"),
    ("Which races did I skip in early March?", "in early March", "2023-03-01", "2023-03-10"),
    ("Which classes began mid-May?", "mid-May", "2023-05-11", "2023-05-21"),
    ("Which classes began in late October?", "in late October", "2023-10-22", "2023-10-31"),
    ("Which classes began at the start of June?", "at the start of June", "2023-06-01",
     "2023-06-06"),
    ("Which classes began at the end of June 2022?", "at the end of June 2022", "2022-06-25",
     "2022-06-30"),
    ("What happened in November?", "in November", "2023-11-01", "2023-11-30"),
    ("What happened in December?", "in December", "2022-12-01", "2022-12-31"),
    ("What happened in Sept 2021?", "in Sept 2021", "2021-09-01", "2021-09-30"),
    ("What happened last March?", "last March", "2023-03-01", "2023-03-31"),
    ("What happened last November?", "last November", "2022-11-01", "2022-11-30"),
    ("What happened in May of last year?", "in May of last year", "2022-05-01", "2022-05-31"),
    ("What happened in the month of February?", "in the month of February", "2023-02-01",
     "2023-02-28"),
    ("What happened the March before last?", "the March before last", "2022-03-01", "2022-03-31"),
    ("How much did I save last month?", "last month", "2023-10-01", "2023-10-31"),
    ("How much did I save this month?", "this month", "2023-11-01", "2023-11-30"),
    ("How much did I save the month before last?", "the month before last", "2023-09-01",
     "2023-09-30"),
    ("How much did I save over the past month?", "over the past month", "2023-10-15",
     "2023-11-15"),
    ("How much did I save in the last few months?", "in the last few months", "2023-06-15",
     "2023-11-15"),
    ("Where are we going next month?", "next month", "2023-12-01", "2023-12-31"),
    ("What broke a month ago?", "a month ago", "2023-10-04", "2023-10-26"),
    ("What broke about a month ago?", "about a month ago", "2023-10-04", "2023-10-26"),
    ("What broke six months ago?", "six months ago", "2023-04-15", "2023-06-14"),
    ("What broke half a year ago?", "half a year ago", "2023-04-15", "2023-06-14"),
    # Ranges.
    ("How often did I swim between March and May?", "between March and May", "2023-03-01",
     "2023-05-31"),
    ("How often did I swim from June to August 2022?", "from June to August 2022", "2022-06-01",
     "2022-08-31"),
    ("How often did I swim from June 2022 to August?", "from June 2022 to August", "2022-06-01",
     "2022-08-31"),
    ("How often did I swim from November to February 2022?", "from November to February 2022",
     "2021-11-01", "2022-02-28"),
    ("Where was Ann between August 11 and August 15 2023?",
     "between August 11 and August 15 2023", "2023-08-11", "2023-08-15"),
    ("Where was Ann August 11-15, 2023?", "August 11-15, 2023", "2023-08-11", "2023-08-15"),
    ("Where was Ann from 11 to 15 August?", "from 11 to 15 August", "2023-08-11", "2023-08-15"),
    ("Where was Ann between 11 and 15 August?", "between 11 and 15 August", "2023-08-11",
     "2023-08-15"),
    ("Where was Ann June 3 to July 5?", "June 3 to July 5", "2023-06-03", "2023-07-05"),
    ("What grew June-August 2022?", "June-August 2022", "2022-06-01", "2022-08-31"),
    ("What grew between 2019 and 2021?", "between 2019 and 2021", "2019-01-01", "2021-12-31"),
    ("What have I baked since January?", "since January", "2023-01-01", "2023-11-15"),
    ("What have I baked since last summer?", "since last summer", "2023-06-01", "2023-11-15"),
    ("What have I baked since two weeks ago?", "since two weeks ago", "2023-10-29", "2023-11-15"),
    ("What did I bake before July 2023?", "before July 2023", "1900-01-01", "2023-06-30"),
    ("What did I bake until the end of June?", "until the end of June", "1900-01-01",
     "2023-06-30"),
    ("What did I bake after the 3rd of June?", "after the 3rd of June", "2023-06-04",
     "2023-11-15"),
    # Seasons, quarters, years, decades.
    ("Which lake did we swim in last summer?", "in last summer", "2023-06-01", "2023-08-31"),
    ("Which lake did we swim in this summer?", "in this summer", "2023-06-01", "2023-08-31"),
    ("Which lake did we like during the summer?", "during the summer", "2023-06-01",
     "2023-08-31"),
    ("Where did we live in the fall of 2021?", "in the fall of 2021", "2021-09-01", "2021-11-30"),
    ("Where did we live in winter 2021?", "in winter 2021", "2021-12-01", "2022-02-28"),
    ("Where did we live last spring?", "last spring", "2023-03-01", "2023-05-31"),
    ("Where did we live two summers ago?", "two summers ago", "2022-06-01", "2022-08-31"),
    ("Where do we go next spring?", "next spring", "2024-03-01", "2024-05-31"),
    ("What came towards the end of summer 2023?", "towards the end of summer 2023", "2023-08-01",
     "2023-08-31"),
    ("What did we earn in Q3 2023?", "in Q3 2023", "2023-07-01", "2023-09-30"),
    ("What did we earn in the second quarter of 2022?", "in the second quarter of 2022",
     "2022-04-01", "2022-06-30"),
    ("What did we earn last quarter?", "last quarter", "2023-07-01", "2023-09-30"),
    ("What did we earn in the first half of 2022?", "in the first half of 2022", "2022-01-01",
     "2022-06-30"),
    ("What changed at the end of 2022?", "at the end of 2022", "2022-11-01", "2022-12-31"),
    ("What changed in early 2022?", "in early 2022", "2022-01-01", "2022-04-30"),
    ("What changed in 2021?", "in 2021", "2021-01-01", "2021-12-31"),
    ("What changed in the year 2000?", "in the year 2000", "2000-01-01", "2000-12-31"),
    ("What changed last year?", "last year", "2022-01-01", "2022-12-31"),
    ("What changed earlier this year?", "earlier this year", "2023-01-01", "2023-11-15"),
    ("What changed in the past year?", "in the past year", "2022-11-15", "2023-11-15"),
    ("What changed two years ago?", "two years ago", "2021-06-18", "2022-04-14"),
    ("What changed a year and a half ago?", "a year and a half ago", "2022-04-15", "2022-06-14"),
    ("Which songs of the 90s do I like?", "of the 90s", "1990-01-01", "1999-12-31"),
    ("Which songs of the nineties do I like?", "of the nineties", "1990-01-01", "1999-12-31"),
    ("Which songs came in the late 80s?", "in the late 80s", "1986-09-01", "1989-12-31"),
    ("Where did dad live in the summer of '69?", "in the summer of '69", "1969-06-01",
     "1969-08-31"),
    ("Where do we ski this winter?", "this winter", "2023-12-01", "2024-02-29"),
    ("What changed a year or two ago?", "a year or two ago", "2021-08-23", "2023-02-07"),
    ("What is planned later this year?", "later this year", "2023-11-15", "2023-12-31"),
    ("What did we earn in H1 2023?", "in H1 2023", "2023-01-01", "2023-06-30"),
    ("Where did he work from 2015-2018?", "from 2015-2018", "2015-01-01", "2018-12-31"),
    ("What did I do this time last year?", "this time last year", "2022-10-16", "2022-12-15"),
    ("What is due at the end of the month?", "at the end of the month", "2023-11-25",
     "2023-11-30"),
    # Holidays.
    ("Whom did we visit over Christmas?", "over Christmas", "2022-12-25", "2022-12-25"),
    ("Whom did we visit at Christmas 2020?", "at Christmas 2020", "2020-12-25", "2020-12-25"),
    ("Whom did we visit the day after Christmas?", "the day after Christmas", "2022-12-26",
     "2022-12-26"),
    ("What did I cook Valentine's Day?", "Valentine's Day", "2023-02-14", "2023-02-14"),
    ("What did I cook on Valentine’s Day?", "on Valentine’s Day", "2023-02-14", "2023-02-14"),
    ("What did I cook on New Year's Eve?", "on New Year's Eve", "2022-12-31", "2022-12-31"),
    ("What did I cook last Easter?", "last Easter", "2023-04-09", "2023-04-09"),
    ("What did I cook on Easter Monday 2022?", "on Easter Monday 2022", "2022-04-18",
     "2022-04-18"),
    ("What did I cook at Thanksgiving 2022?", "at Thanksgiving 2022", "2022-11-24", "2022-11-24"),
    ("What did I buy on Black Friday 2022?", "on Black Friday 2022", "2022-11-25", "2022-11-25"),
    ("What did I give for Mother's Day?", "for Mother's Day", "2023-05-14", "2023-05-14"),
    ("What did I wear for Halloween?", "for Halloween", "2023-10-31", "2023-10-31"),
    ("What did I sell a week after Easter?", "a week after Easter", "2023-04-14", "2023-04-18"),
    ("What will I cook for Thanksgiving?", "for Thanksgiving", "2023-11-23", "2023-11-23"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("question", "phrase", "first", "last"), DAYS, ids=[row[0] for row in DAYS]
)
def test_a_phrase_means_these_days(question, phrase, first, last):
    (period,) = read_time(question, NOW).periods[:1]

    last_day = (period.end - timedelta(microseconds=1)).date().isoformat()
    assert (period.text, period.start.date().isoformat(), last_day) == (phrase, first, last)
    assert question[period.start_char : period.end_char] == phrase


HOURS = [
    ("Who rang this morning?", "2023-11-15T05", "2023-11-15T12"),
    ("Who rang this afternoon?", "2023-11-15T12", "2023-11-15T18"),
    ("Who rang last night?", "2023-11-14T18", "2023-11-15T06"),
    ("Who rang yesterday evening?", "2023-11-14T17", "2023-11-15T00"),
    ("Who rang the night before last?", "2023-11-13T18", "2023-11-14T06"),
    ("Who rang on Saturday night?", "2023-11-11T18", "2023-11-12T06"),
    ("Who rang on the morning of 5 May?", "2023-05-05T05", "2023-05-05T12"),
    ("Who rang the evening before 5 May?", "2023-05-04T17", "2023-05-05T00"),
    ("Who rang the hour before last?", "2023-11-15T12", "2023-11-15T13"),
    ("What shall we watch tonight?", "2023-11-15T18", "2023-11-16T06"),
    ("Who rang three hours ago?", "2023-11-15T10", "2023-11-15T12"),
]


@pytest.mark.parametrize(("question", "start", "end"), HOURS, ids=[row[0] for row in HOURS])
def test_a_phrase_means_these_hours(question, start, end):
    (period,) = read_time(question, NOW).periods

    assert period.start.isoformat().startswith(start)
    assert period.end.isoformat().startswith(end)


NOTHING_OF_TIME = """
May I ask you for a favour?
You may be right about the boiler.
This may help with the leak.
Did April like the soup?
What did June say to August?
Who is Jan?
I march on regardless.
How do I march 2 miles without blisters?
may 5 people come to dinner
How do I make a spring roll?
Where does the spring water come from?
Why did the vase fall off the shelf?
I fall asleep on trains, what helps?
Can the sun damage leather?
The cat sat on the mat, did it not?
What does a second opinion cost?
Would the paint last two weeks outside?
The march 31 miles long, who led it?
Does it last 10 days in the fridge?
Which years are on the plate, 2003-1999?
Add 2 cups of flour and 3 eggs.
What happens after 10 days of rain?
Does version 2.0 support plugins?
Which changes came with v3.11.4?
Write an essay in 2000 words.
Can I walk in 2000 steps to the shop?
The flat costs 1950 euros, is that fair?
How do I reset my Peugeot 2008?
How long does it take to learn the cello?
How many days does the visa allow?
How many weeks ago did I start the course?
How many years are between the brothers?
Would a sofa last two weeks in the rain?
How is my dog Friday?
Do I have anything every Sunday?
What do I usually eat on Sundays?
Which songs does the band Blue Monday play?
How did I like 'Last Christmas'?
Who directed "The Day After Tomorrow"?
Have I read “One Hundred Years of Solitude”?
What was my rank in Taco Tuesday?
Which year of college was the hardest?
What was my last year of school like?
Where is the Christmas tree stand?
What was the score, 3-2 or 2-2?
Is it 24/7 open?
Mix them at a ratio of 1/2.
What is 15% of 640?
Which room is on the 2nd floor?
What was the third attempt?
Do I want the first or the last one?
What is the minute hand for?
What did the hour-long film say?
How do I learn about the week-old kittens?
Where do I put the day bed?
Which monthly fee did we agree on?
My number is 555-2019, is that right?
The password reset code was 4711?
Which is faster, a 486 or a Pentium?
Who said that a stitch saves nine?
What does Augustus think?
Which marching band played?
Do I have a decent winter coat?
What are Summer's favourite toys?
How old is the 12 year old Scotch?
Is my seat in row 20 or 21?
""".strip().split("\n")


@pytest.mark.parametrize("sentence", NOTHING_OF_TIME)
def test_a_sentence_that_names_no_time_has_no_period(sentence):
    assert read_time(sentence, NOW).periods == ()
