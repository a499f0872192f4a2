"""A conversation that was filed elsewhere is suggested for the project that it is about."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from language.english.topics.wings import EVERYDAY
from palace.curation.refiling import move_drawers, move_room, undo_move
from palace.curation.trash import move_to_trash
from palace.curation.wings import change_wing, merge_wings, undo_merge_wings
from palace.knowledge.dreaming import dream, dream_input
from palace.knowledge.dreaming.dream_input import rooms_of_projects as find_rooms
from palace.knowledge.dreaming.dream_run import suggest_projects
from palace.mining.pipeline import make_wing, mine, mine_many, suggested_rooms, suggested_wings
from palace.models import Activity, Drawer, Palace, Room, Wing
from tests.conversations import transcript
from tests.curation.test_trash import at_once
from tests.factories import UserFactory, WingFactory

HIVES, RECIPES = "Hive tracker", "Recipe website"
HIVE_PLAN = transcript(
    "I'm building a hive tracker using Flask 2.3.1 and SQLite. How do I plan it?",
    "Begin with the tables.",
    "My hive tracker should draw weights using Chart.js. Where do the files go?",
    "Into a static folder.",
    "I deploy my hive tracker on Render.com, and Ludmila tests it. Is that free?",
    "For small services.",
    id="hive plan",
)
RECIPE_PLAN = transcript(
    "I'm building a recipe website using Django 5.1 and PostgreSQL. How do I plan it?",
    "Begin with the models.",
    "My recipe website should search using Meilisearch. How do I index it?",
    "With a signal.",
    "I deploy my recipe website on Hetzner, and Ottavio tests it. Is that cheap?",
    "Quite cheap.",
    id="recipe plan",
)
# It names the tracker once, in the midst of other questions.
HIVE_LOGS = transcript(
    "The release is on Friday, so what do I check the day before?",
    "Logs, backups, and the way back.",
    "I'm using Flask 2.3.1, where do its logs go?",
    "To standard error.",
    "On Render.com they vanish, can I keep them?",
    "With a log stream.",
    "Ludmila wants the graphs of the hive tracker in colours, I'm using Chart.js. How?",
    "Set borderColor.",
    id="hive logs",
)
# The same tools, for nothing in particular.
FLASK_LESSON = transcript(
    "I give a lesson on Friday, so what do beginners stumble over?",
    "Installing.",
    "I'm using Flask 2.3.1, where do its logs go?",
    "To standard error.",
    "On Render.com they vanish, can I keep them?",
    "With a log stream.",
    "I'm using Chart.js in the lesson, too. How do I show colours?",
    "Set borderColor.",
    id="lesson",
)
# It names both projects.
BOTH = transcript(
    "The holidays begin on Friday, so what do I switch off?",
    "Whatever nobody uses.",
    "The hive tracker runs on Render.com using Flask 2.3.1 and Chart.js. Can it sleep?",
    "Yes.",
    "The recipe website runs on Hetzner using Django 5.1, PostgreSQL and Meilisearch. Can it?",
    "No.",
    "What else costs money while I am away?",
    "Domains.",
    id="both",
)
LEEKS = transcript("What can I cook with leeks and rice?", "A risotto.", id="leeks")


def suggested(palace):
    rooms = suggested_rooms(palace).order_by("external_id")
    return dict(rooms.values_list("external_id", "suggested"))


def dreamt(palace):
    return dream(palace, with_model=False).rooms


def wing_of(conversation):
    return Room.objects.select_related("wing").get(external_id=conversation).wing.name


@pytest.fixture
def two_projects(palace):
    mine_many(palace, [HIVE_PLAN, RECIPE_PLAN, LEEKS, HIVE_LOGS])
    assert (wing_of("hive plan"), wing_of("recipe plan")) == (HIVES, RECIPES)
    assert wing_of("hive logs") == EVERYDAY.name
    return palace


def test_a_conversation_about_a_project_is_suggested_once_and_stays_until_one_accepts(
    two_projects,
):
    assert dreamt(two_projects) == 1
    assert suggested(two_projects) == {"hive logs": HIVES}
    assert wing_of("hive logs") == EVERYDAY.name
    record = Activity.objects.filter(palace=two_projects, kind=Activity.Kind.DREAMT).first()
    assert record.summary.endswith("; a project suggested for 1 conversation.")
    assert record.detail["rooms"] == 1
    assert dreamt(two_projects) == 0
    assert suggested(two_projects) == {"hive logs": HIVES}


@pytest.mark.django_db(transaction=True)
def test_dreams_at_once_suggest_it_once(palace):
    mine_many(palace, [HIVE_PLAN, RECIPE_PLAN, LEEKS, HIVE_LOGS])
    found = []
    at_once(*[lambda: found.append(dreamt(palace))] * 4)
    assert sum(found) == 1
    assert suggested(palace) == {"hive logs": HIVES}


def test_the_same_tools_alone_do_not_tell_of_a_project(two_projects):
    mine(two_projects, FLASK_LESSON)
    dreamt(two_projects)
    assert suggested(two_projects) == {"hive logs": HIVES}


def test_of_two_projects_that_are_named_as_often_neither_is_suggested(two_projects):
    mine(two_projects, BOTH)
    dreamt(two_projects)
    assert suggested(two_projects) == {"hive logs": HIVES}


def test_a_conversation_that_comes_to_a_project_later_is_suggested(palace):
    texts = (
        "How many days are there between the 3rd of March and the 9th of May?",
        "67.",
        "So many days are left until the fair where I show my hive tracker.",
        "Good luck!",
        "Who would buy a hive tracker?",
        "Beekeepers.",
    )
    mine(palace, transcript(*texts[:2], id="fair"))
    mine(palace, transcript(*texts, id="fair"))
    assert dreamt(palace) == 0
    mine(palace, HIVE_PLAN)
    assert wing_of("fair") == EVERYDAY.name
    assert dreamt(palace) == 1
    assert suggested(palace) == {"fair": HIVES}


def test_what_a_person_moved_is_not_suggested_unless_that_is_undone(two_projects):
    room = Room.objects.get(external_id="hive logs")
    before = room.wing
    for wing in (WingFactory(palace=two_projects, name="Mum"), before):
        move_room(Room.objects.get(pk=room.pk), wing)
    assert dreamt(two_projects) == 0
    moves = Activity.objects.filter(palace=two_projects, detail__has_key="undo")
    for activity in moves.order_by("-pk"):
        undo_move(two_projects, activity)
    assert dreamt(two_projects) == 1


def test_nothing_is_suggested_for_the_parts_of_what_a_person_divided(two_projects):
    drawers = Drawer.objects.filter(room__external_id="hive logs", position__lt=2)
    move_drawers(two_projects, drawers, WingFactory(palace=two_projects, name="Mum"))
    assert Room.objects.filter(external_id="hive logs", is_settled=True).count() == 2
    assert dreamt(two_projects) == 0


def test_what_a_person_moves_while_it_is_suggested_is_suggested_no_longer(two_projects):
    dreamt(two_projects)
    room = Room.objects.get(external_id="hive logs")
    move_room(room, WingFactory(palace=two_projects, name="Mum"))
    assert suggested(two_projects) == {}


def test_what_a_person_moves_while_a_dream_reads_is_not_suggested(two_projects):
    found = find_rooms(two_projects)
    [room] = Room.objects.filter(pk__in=found)
    catch_all = room.wing
    for wing in (WingFactory(palace=two_projects, name="Mum"), catch_all):
        move_room(Room.objects.get(pk=room.pk), wing)
    assert suggest_projects(two_projects, found) == 0
    assert suggested(two_projects) == {}


def test_out_of_a_merged_wing_nothing_is_suggested(two_projects):
    dreamt(two_projects)
    catch_all = Wing.objects.get(palace=two_projects, name=EVERYDAY.name)
    merged = merge_wings(catch_all, WingFactory(palace=two_projects, name="Mine"))
    assert suggested(two_projects) == {}
    assert dreamt(two_projects) == 0
    undo_merge_wings(two_projects, merged.activity)
    dreamt(two_projects)
    assert suggested(two_projects) == {"hive logs": HIVES}


def test_what_is_suggested_stays_however_much_comes_after_it(two_projects, monkeypatch):
    dreamt(two_projects)
    monkeypatch.setattr(dream_input, "MOST_ROOMS", 1)
    mine(two_projects, FLASK_LESSON)
    dreamt(two_projects)
    assert suggested(two_projects) == {"hive logs": HIVES}


def test_the_suggestion_follows_a_project_that_is_renamed_or_merged(two_projects):
    dreamt(two_projects)
    hives = change_wing(Wing.objects.get(name=HIVES), name="Bees", kind="project")
    assert suggested(two_projects) == {"hive logs": "Bees"}
    merge_wings(hives, WingFactory(palace=two_projects, name="Farm", kind="project"))
    assert suggested(two_projects) == {}
    dreamt(two_projects)
    assert suggested(two_projects) == {"hive logs": "Farm"}
    change_wing(Wing.objects.get(name="Farm"), name="Farm", kind="topic")
    assert suggested(two_projects) == {}


def test_what_no_longer_tells_of_a_project_is_suggested_no_longer(two_projects):
    dreamt(two_projects)
    Drawer.objects.get(room__external_id="hive logs", position=6).trash()
    dreamt(two_projects)
    assert suggested(two_projects) == {}
    move_to_trash(Room.objects.get(external_id="hive logs"))
    dreamt(two_projects)
    assert suggested(two_projects) == {}


def test_one_thing_is_suggested_for_a_conversation_at_a_time(two_projects):
    areas = {each.area: each.total for each in suggested_wings(two_projects)}
    assert areas == {"Cooking & food": 1, "Plans & routines": 1}
    dreamt(two_projects)
    assert [each.area for each in suggested_wings(two_projects)] == ["Cooking & food"]
    Room.objects.filter(external_id="hive logs").update(is_settled=True)
    assert {each.area: each.total for each in suggested_wings(two_projects)} == areas


def test_it_is_suggested_also_where_rules_have_moved_it_to_the_wing_of_an_area(two_projects):
    make_wing(two_projects, "Plans & routines", by_rules=True)
    assert wing_of("hive logs") == "Plans & routines"
    assert dreamt(two_projects) == 1


def test_where_a_person_has_accepted_the_wing_of_an_area_it_stays(two_projects):
    make_wing(two_projects, "Plans & routines")
    assert wing_of("hive logs") == "Plans & routines"
    assert dreamt(two_projects) == 0


def test_a_dream_sees_and_changes_one_palace(two_projects):
    other = Palace.objects.own(UserFactory())
    mine_many(other, [RECIPE_PLAN, HIVE_LOGS, LEEKS])
    assert dreamt(other) == 0
    mine(other, HIVE_PLAN)
    assert dreamt(other) == 1
    assert suggested(two_projects) == {}
    assert dreamt(two_projects) == 1
    Room.objects.within(other).update(is_settled=True)
    assert suggested(two_projects) == {"hive logs": HIVES}


def test_how_many_conversations_there_are_costs_no_more_queries(two_projects):
    def queries():
        with CaptureQueriesContext(connection) as seen:
            find_rooms(two_projects)
        return len(seen)

    before = queries()
    mine_many(two_projects, [FLASK_LESSON, BOTH])
    WingFactory(palace=two_projects, name="Farm", kind="project")
    assert queries() == before
