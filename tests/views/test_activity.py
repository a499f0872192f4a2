from __future__ import annotations

import re
import uuid

import pytest
from django.urls import reverse

from palace.curation.trash import move_to_trash
from palace.models import Activity, ImportJob, Palace
from palace.views.activity import GROUPED, LINES, UNFOLDED, recent_activity
from palace.views.shared.query_params import PAGE_SIZE

ACTIVITY = "/memory/activity/"


def mined(palace, drawers, room=None):
    return Activity.objects.create(
        palace=palace,
        kind="memory_mined",
        summary=f"Remembered {drawers} messages of something.",
        detail={"room": str(room or uuid.uuid4()), "made": {"drawers": drawers}, "notes": []},
    )


def other(palace, summary="Restored a drawer from the trash.", **detail):
    return Activity.objects.create(
        palace=palace, kind="drawers_restored", summary=summary, detail=detail
    )


def test_a_run_of_minings_is_one_line(palace):
    for drawers in (100, 15, 5):
        mined(palace, drawers)
    line, *rest = recent_activity(palace)
    assert rest == []
    assert line.summary == "Remembered 120 messages in 3 conversations."
    assert [summary[11:14] for summary in line.folded] == ["5 m", "15 ", "100"]


def test_a_conversation_mined_twice_counts_once(palace):
    room = uuid.uuid4()
    for drawers in (4, 2):
        mined(palace, drawers, room)
    assert recent_activity(palace)[0].summary == "Remembered 6 messages in 1 conversation."


def test_one_mining_alone_stays_as_it_is(palace):
    other(palace, "First.")
    mined(palace, 4)
    other(palace, "Last.")
    lines = recent_activity(palace)
    assert [line.summary for line in lines] == [
        "Last.",
        "Remembered 4 messages of something.",
        "First.",
    ]
    assert all(line.folded == () for line in lines)


def test_what_comes_between_ends_a_run(palace):
    for _ in range(2):
        mined(palace, 1)
        mined(palace, 2)
        other(palace)
    assert [line.summary for line in recent_activity(palace)] == [
        "Restored a drawer from the trash.",
        "Remembered 3 messages in 2 conversations.",
    ] * 2


def test_long_runs_unfold_to_the_latest(alices, palace):
    Activity.objects.bulk_create(
        Activity(palace=palace, kind="memory_mined", summary="A run.", detail={})
        for _ in range(UNFOLDED + 120)
    )
    (line,) = recent_activity(palace)
    assert (len(line.folded), line.more) == (UNFOLDED, 120)
    text = alices.get("/memory/").text
    assert "and 120 more" in text
    assert f'href="{ACTIVITY}"' in text


@pytest.mark.parametrize("more", [0, 1])
def test_a_run_longer_than_what_is_counted_says_so(alices, palace, more):
    Activity.objects.bulk_create(
        Activity(
            palace=palace,
            kind="memory_mined",
            summary="A run.",
            detail={"room": str(uuid.uuid4()), "made": {"drawers": 6}},
        )
        for _ in range(GROUPED + more)
    )
    (line,) = recent_activity(palace)
    plus = "+" * more
    assert (
        line.summary
        == f"Remembered {6 * GROUPED:,}{plus} messages in {GROUPED}{plus} conversations."
    )
    assert f"and {GROUPED - UNFOLDED}{plus} more" in alices.get("/memory/").text


@pytest.mark.parametrize("before_it", [1, 2])
def test_a_run_that_ends_where_the_counting_ends_is_counted_whole(palace, before_it):
    for _ in range(before_it):
        other(palace)
    Activity.objects.bulk_create(
        Activity(
            palace=palace,
            kind="memory_mined",
            summary="A run.",
            detail={"room": str(uuid.uuid4()), "made": {"drawers": 1}},
        )
        for _ in range(GROUPED)
    )
    (line, *_) = recent_activity(palace)
    assert line.summary == f"Remembered {GROUPED} messages in {GROUPED} conversations."


def test_only_the_latest_lines_are_shown(palace, bob):
    for number in range(LINES + 3):
        other(palace, f"No {number}.")
    other(Palace.objects.own(bob), "A stranger's.")
    assert [line.summary for line in recent_activity(palace)] == [
        f"No {number}." for number in range(LINES + 2, 2, -1)
    ]


def test_all_activities_come_newest_first_with_figures_and_places(alices, palace, drawer):
    job = ImportJob.objects.create(palace=palace, file_name="talks.zip", preview={})
    mined(palace, 4, drawer.room.uuid)
    other(palace, "An import.", job=str(job.uuid), stored=1200, skipped=1)
    move_to_trash(drawer)
    text = alices.get(ACTIVITY).text
    assert re.findall(r'class="summary">([^<]+)<', text) == [
        "Moved a drawer to the trash.",
        "An import.",
        "Remembered 4 messages of something.",
    ]
    figures = re.findall(r"<dt>([^<]+)</dt>\s*<dd>([^<]+)</dd>", text)
    assert figures == [("drawer", "1"), ("stored", "1,200"), ("skipped", "1"), ("drawers", "4")]
    assert f'href="{job.get_absolute_url()}">See the import<' in text
    assert text.count(f'href="{drawer.room.get_absolute_url()}">Go to the room<') == 2


def test_places_that_are_gone_or_of_others_are_not_linked(alices, palace, bob, drawer):
    mined(palace, 4)
    mined(Palace.objects.own(bob), 4, drawer.room.uuid)
    assert "Go to the room" not in alices.get(ACTIVITY).text


def test_one_kind_alone_is_shown(alices, palace):
    mined(palace, 1)
    other(palace, "Restored.")
    text = alices.get(ACTIVITY, {"kind": "drawers_restored"}).text
    assert re.findall(r'class="summary">([^<]+)<', text) == ["Restored."]
    assert 'kind=drawers_restored" aria-current="page"' in text
    none = alices.get(ACTIVITY, {"kind": "wings_merged"}).text
    assert "There is nothing of this kind yet." in none


@pytest.mark.parametrize("kind", ["nonsense", "\x00", "memory_mined' OR 1=1"])
def test_a_kind_that_is_none_shows_all(alices, palace, kind):
    mined(palace, 1)
    assert "of something" in alices.get(ACTIVITY, {"kind": kind}).text


def test_notes_say_what_was_degraded(alices, palace):
    other(palace, notes=["The model did not answer."])
    assert "The model did not answer." in alices.get(ACTIVITY).text


def test_an_empty_list_says_what_comes(alices, palace):
    assert "Nothing has been done yet." in alices.get(ACTIVITY).text


def test_many_come_a_page_at_a_time_and_keep_the_kind(
    alices, palace, django_assert_max_num_queries
):
    for _ in range(PAGE_SIZE + 2):
        mined(palace, 1)
        other(palace)
    with django_assert_max_num_queries(8):
        first = alices.get(ACTIVITY, {"kind": "memory_mined"})
    assert f"Show 2 more of {PAGE_SIZE + 2} activities" in first.text
    address = re.search(r'hx-get="([^"]+)"', first.text)[1].replace("&amp;", "&")
    rest = alices.get(address, headers={"HX-Request": "true"})
    assert rest.text.count('class="summary"') == 2
    assert "Restored" not in rest.text
    back = alices.get(reverse("activities"), {"kind": "memory_mined", "page": 2})
    assert "Back to page 1 of 2" in back.text
