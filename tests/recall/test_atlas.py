"""A palace in memory: it says what the tables say, at every moment, whoever wrote to them."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from django.db import connection, transaction
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.scale_fill import palace_named
from bench.schema import own_schema
from llm.embedding import embed
from palace.curation.purge import Purge
from palace.curation.trash import move_to_trash, restore
from palace.filing.file import file_transcript
from palace.indexing.backfill import build_space, fill_missing
from palace.indexing.rebuild import rebuild_passages, rebuild_postings
from palace.indexing.spaces import active_space, model_of, space_for
from palace.mining.mine import mine
from palace.models import Change, Drawer, Palace, Passage, Room
from palace.recall import shelf, surveying
from palace.recall.candidates import find_candidates
from palace.recall.census import Census, take_census
from palace.recall.keyword import by_words
from palace.recall.query import read_query
from palace.recall.semantic import MANY_PASSAGES, by_meaning
from palace.recall.shelf import SHELF, atlas_of
from palace.recall.surveying import Place, survey
from tests.talk import BATTERY, EVERYTHING, LISBON, START, long_transcript, transcript


@pytest.fixture(autouse=True)
def _empty_shelf():
    SHELF.clear()
    yield
    SHELF.clear()


@pytest.fixture
def lived_in(palace):
    mine(palace, long_transcript(30))
    for one in EVERYTHING:
        mine(palace, one)
    return palace


def place_of(palace, space=None):
    space = space or active_space()
    return Place(take_census(palace).log, palace.pk, space.pk, space.dimensions)


def held(palace):
    """As a recall would have it."""
    return atlas_of(palace, active_space(), take_census(palace))


def is_as_read_anew(palace):
    """Whether the atlas on the shelf says what one that is read from the tables says."""
    ours, anew = held(palace), survey(place_of(palace))
    same_said = contents(ours) == contents(anew)
    np.testing.assert_array_equal(ours.survey.passages, anew.survey.passages)
    np.testing.assert_array_equal(ours.survey.vectors, anew.survey.vectors)
    return same_said and ours.revision == anew.revision


def contents(atlas):
    rows = np.arange(len(atlas.keys))
    names = [name for name in atlas.survey.messages.dtype.names if name != "voice"]
    return [
        *(atlas.survey.messages[name].tolist() for name in names),
        *(atlas.roles(rows).tolist(), atlas.speakers(rows).tolist()),
        *(atlas.before.tolist(), atlas.after.tolist()),
    ]


def is_read_again(palace):
    """Whether the next recall reads the whole palace."""
    before = SHELF.find(place_of(palace))
    after = held(palace)
    return before is None or before.survey.vectors is not after.survey.vectors


# What recall is told is the same by either way.


def large(palace):
    """As if it had too many passages for the memory."""
    census = take_census(palace)
    return Census(census.number, MANY_PASSAGES * 100, census.trash)


QUESTIONS = [
    "Which wire overheated near the shed?",
    'Who said "silicone wire" in March 2025?',
    "What bread did I bake last week?",
]


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("best_each", [4, 200])
@pytest.mark.parametrize("earlier", [False, True])
def test_the_tables_say_the_same(lived_in, question, best_each, earlier):
    long = Drawer.objects.filter(conversation="long")
    long.filter(position__in=[0, 7, 20, 21]).update(trashed_at=timezone.now())
    as_of = long.get(position=15).said_at if earlier else None
    space = active_space()
    query = read_query(lived_in, space, question, now=START, as_of=as_of, by_meaning=True)
    if not query.time.periods:  # What has no vector is no reason to look at it, in a large one.
        Passage.objects.filter(drawer=long.get(position=9)).update(embedding=None)
    words = by_words(lived_in, query.terms)
    both = [
        by_meaning(lived_in, space, query.aim, census, as_asked=query.vector)
        for census in (None, large(lived_in))
    ]
    memory, tables = (
        find_candidates(lived_in, query, meaning, words, best_each=best_each) for meaning in both
    )
    assert both[0].atlas is not None
    assert both[1].atlas is None
    assert len(memory) or earlier
    for field in dataclasses.fields(memory):
        ours, theirs = getattr(memory, field.name), getattr(tables, field.name)
        np.testing.assert_array_equal(ours, theirs, err_msg=field.name)
    for name in ("drawers", "best_passage", "passages"):
        np.testing.assert_array_equal(getattr(both[0], name), getattr(both[1], name))
    for name in ("first", "best", "as_asked"):
        np.testing.assert_allclose(getattr(both[0], name), getattr(both[1], name), atol=2e-6)
    assert both[0].mean == pytest.approx(both[1].mean, abs=1e-6)
    assert both[0].spread == pytest.approx(both[1].spread, abs=1e-6)


def test_a_message_of_several_passages_has_them_all(palace):
    mine(palace, transcript("My boat. " + "It is green and old. " * 300, "Short.", id="long one"))
    space = active_space()
    assert Passage.objects.count() > 4
    [vector] = embed(["a green boat"], model_of(space), cache=False)
    memory, tables = (by_meaning(palace, space, vector, census) for census in (None, large(palace)))
    assert memory.passages.tolist() == tables.passages.tolist() == [Passage.objects.count() - 1, 1]
    assert memory.best_passage.tolist() == tables.best_passage.tolist()
    np.testing.assert_allclose(memory.best, tables.best, atol=2e-6)


def test_the_same_words_are_as_close_wherever_they_lie(palace, monkeypatch):
    monkeypatch.setattr("palace.recall.semantic.PART", 7)
    mine(palace, transcript(*["Good night then."] * 40, id="nights"))
    space = active_space()
    [vector] = embed(["When do I sleep?"], model_of(space), cache=False)
    assert len(set(by_meaning(palace, space, vector).best.tolist())) == 1


# It keeps up with all that is written.


def test_what_was_not_written_to_is_not_read_again(lived_in):
    first = held(lived_in)
    assert held(lived_in) is first
    mine(lived_in, transcript("A new thing.", "And what is that?", id="new"))
    second = held(lived_in)
    assert len(second.keys) == len(first.keys) + 2
    assert is_as_read_anew(lived_in)


def test_a_conversation_that_comes_in_parts_stays_in_order(palace):
    whole = long_transcript(12)
    held(palace)
    for turns in (whole.turns[::2], whole.turns):
        mine(palace, dataclasses.replace(whole, turns=turns))
        assert is_as_read_anew(palace)
    # What was filed first stands between what was filed later.
    assert held(palace).after.tolist() == [6, 7, 8, 9, 10, 11, 1, 2, 3, 4, 5, -1]


def test_the_trash_is_not_in_it(lived_in):
    held(lived_in)
    room = Room.objects.get(external_id="long")
    batch = move_to_trash(room)
    assert is_as_read_anew(lived_in)
    assert len(held(lived_in).keys) == Drawer.objects.kept().count()
    restore(lived_in, Drawer.objects.filter(trashed_at=batch.at))
    assert is_as_read_anew(lived_in)


def test_what_is_purged_is_gone_with_the_name_of_who_said_it(lived_in):
    Drawer.objects.filter(conversation="long").update(speaker="Ann of Ely")
    assert any("Ann of Ely" in voice for voice in held(lived_in).survey.voices)
    move_to_trash(Room.objects.get(external_id="long"))
    Purge(lived_in).run(Drawer.objects.all())
    assert is_as_read_anew(lived_in)
    assert not any("Ann of Ely" in voice for voice in held(lived_in).survey.voices)


def test_a_purge_is_no_more_changes_than_it_has_statements(lived_in):
    move_to_trash(Room.objects.get(external_id="long"))
    before = Change.objects.count()
    Purge(lived_in).run(Drawer.objects.all())
    # The drawers, and the passages that went with them.
    assert Change.objects.count() == before + 2


def test_vectors_that_come_later_are_there(lived_in):
    Passage.objects.filter(drawer__conversation="long").update(embedding=None)
    lacking = len(held(lived_in).survey.passages)
    fill_missing()
    assert is_as_read_anew(lived_in)
    assert len(held(lived_in).survey.passages) == lacking + 30


def test_what_is_made_anew_is_read_anew(lived_in):
    held(lived_in)
    Drawer.objects.update(terms=0, traits=0)
    rebuild_postings(lived_in)
    assert is_as_read_anew(lived_in)
    for _ in rebuild_passages(lived_in):
        assert is_as_read_anew(lived_in)
    assert held(lived_in).survey.messages["terms"].min() > 0


def test_each_space_has_an_atlas_of_its_own(lived_in):
    old = active_space()
    mine(lived_in, BATTERY)
    other = dataclasses.replace(model_of(old), name="all-MiniLM-L6-v2-int8")
    new = space_for(other)
    census = take_census(lived_in)
    assert len(atlas_of(lived_in, old, census).survey.passages) == Passage.objects.count()
    assert not len(atlas_of(lived_in, new, census).survey.passages)
    assert len(SHELF) == 2


def test_a_palace_is_nobody_elses(lived_in, bob):
    other = Palace.objects.own(bob)
    mine(other, BATTERY)
    keys = set(Drawer.objects.within(other).values_list("pk", flat=True))
    assert set(held(other).keys.tolist()) == keys
    assert not keys & set(held(lived_in).keys.tolist())


def test_many_changes_at_once_are_read_as_a_whole(lived_in, monkeypatch):
    monkeypatch.setattr(surveying, "MANY_CHANGED", 3)
    held(lived_in)
    Drawer.objects.update(position=0)
    assert is_read_again(lived_in)
    assert is_as_read_anew(lived_in)


def test_of_the_changes_the_last_ones_are_kept(lived_in):
    held(lived_in)
    drawer = Drawer.objects.first()
    for preference in range(70):
        Drawer.objects.filter(pk=drawer.pk).update(preference=preference)
    assert Change.objects.filter(palace=lived_in).count() == 64
    assert is_read_again(lived_in)
    assert is_as_read_anew(lived_in)


def test_a_change_of_too_many_drawers_does_not_name_them(lived_in):
    drawers = Drawer.objects.all()
    template = drawers.first()
    Drawer.objects.bulk_create(
        Drawer(
            palace=lived_in,
            room=template.room,
            number=1000 + number,
            source="plain",
            conversation="bulk",
            external_id=str(number),
            position=number,
            role="user",
            text="One of many.",
            said_at=START,
        )
        for number in range(2001)
    )
    assert Change.objects.filter(palace=lived_in).latest("revision").drawers is None
    assert is_as_read_anew(lived_in)


def test_what_is_written_while_changes_are_read_is_not_missed(lived_in, monkeypatch):
    held(lived_in)
    first, second, *_ = Drawer.objects.order_by("pk")
    Drawer.objects.filter(pk=first.pk).update(preference=0.25)
    read = surveying._read

    def read_after_another_write(*arguments):
        Drawer.objects.filter(pk=second.pk).update(preference=0.75)
        return read(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(surveying, "_read", read_after_another_write)
        held(lived_in)
    assert is_as_read_anew(lived_in)
    assert held(lived_in).survey.messages["preference"][:2].tolist() == [0.25, 0.75]


# Transactions, other processes, and threads.


@pytest.mark.django_db(transaction=True)
def test_what_another_connection_commits_is_seen_at_once(lived_in):
    held(lived_in)

    def beside():
        mine(lived_in, transcript("Said elsewhere.", id="elsewhere"))
        connection.close()

    with ThreadPoolExecutor(1) as other:
        other.submit(beside).result()
    assert is_as_read_anew(lived_in)


@pytest.mark.django_db(transaction=True)
def test_what_was_rolled_back_was_never_there(lived_in):
    first = contents(held(lived_in))
    for _ in range(2):
        with transaction.atomic():
            file_transcript(lived_in, transcript("Never said.", id="never"))
            assert is_as_read_anew(lived_in)
            assert contents(held(lived_in)) != first
            transaction.set_rollback(True)
        assert is_as_read_anew(lived_in)
        assert contents(held(lived_in)) == first


@pytest.mark.django_db(transaction=True)
def test_what_is_rolled_back_within_a_transaction_was_never_there(lived_in):
    with transaction.atomic():
        file_transcript(lived_in, transcript("Said.", id="said"))
        first = contents(held(lived_in))
        with transaction.atomic():
            file_transcript(lived_in, transcript("Never said.", id="never"))
            held(lived_in)
            transaction.set_rollback(True)
        assert contents(held(lived_in)) == first
    assert is_as_read_anew(lived_in)


@pytest.mark.django_db(transaction=True)
def test_nobody_sees_what_another_has_not_committed(lived_in):
    first = contents(held(lived_in))

    def beside():
        try:
            return contents(held(lived_in))
        finally:
            connection.close()

    with transaction.atomic(), ThreadPoolExecutor(1) as other:
        file_transcript(lived_in, transcript("Not yet.", id="not yet"))
        assert contents(held(lived_in)) != first
        assert other.submit(beside).result() == first
        assert contents(held(lived_in)) != first
    assert other is not None
    assert is_as_read_anew(lived_in)


@pytest.mark.django_db(transaction=True)
def test_of_many_who_ask_at_once_one_reads(lived_in, monkeypatch):
    read = []
    whole = shelf.survey
    monkeypatch.setattr(shelf, "survey", lambda place: read.append(place) or whole(place))

    def ask(_):
        try:
            return held(lived_in)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        atlases = list(threads.map(ask, range(8)))
    assert len(read) == 1
    assert len(set(map(id, atlases))) == 1


def trash_and_restore(palace):
    for room in Room.objects.order_by("pk"):
        batch = move_to_trash(room)
        restore(palace, Drawer.objects.filter(trashed_at=batch.at))


def embed_again(palace):
    with transaction.atomic():
        palace.lock()
        Passage.objects.filter(drawer__conversation="long").update(embedding=None)
    fill_missing()


def mine_more(palace):
    for number in range(8):
        mine(palace, long_transcript(30 + number))


def build_another_space(palace):
    model = dataclasses.replace(model_of(active_space()), name="all-MiniLM-L6-v2-int8")
    list(build_space(space_for(model)))


def make_anew(palace):
    rebuild_postings(palace)
    list(rebuild_passages(palace))


def throw_away(palace):
    for drawer in Drawer.objects.filter(conversation="long", position__gte=25):
        move_to_trash(drawer)
        Purge(palace).run(Drawer.objects.filter(pk=drawer.pk))


def ask(palace):
    for _ in range(20):
        held(palace)


@pytest.mark.django_db(transaction=True)
def test_those_who_write_at_once_do_not_wait_for_each_other_for_ever(lived_in):
    """Each of them writes to drawers or passages of one palace in an order of its own."""
    jobs = [
        *(trash_and_restore, embed_again, mine_more, build_another_space),
        *(make_anew, throw_away, ask, ask),
    ]

    def run(job):
        try:
            job(lived_in)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(jobs)) as threads:
        for done in [threads.submit(run, job) for job in jobs]:
            done.result(120)
    assert is_as_read_anew(lived_in)


@pytest.mark.django_db(transaction=True)
def test_a_palace_that_is_deleted_leaves_no_changes(lived_in, bob):
    other = Palace.objects.own(bob)
    mine(other, BATTERY)
    held(lived_in)
    lived_in.owner.delete()
    assert not Change.objects.exclude(palace=other).exists()
    assert not len(held(lived_in).keys)
    assert is_as_read_anew(other)


def test_rows_loaded_without_triggers_are_noted_too(lived_in):
    held(lived_in)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        Drawer.objects.filter(conversation="long").update(preference=0.5)
        cursor.execute("SET LOCAL session_replication_role = origin")
    assert is_as_read_anew(lived_in)


@pytest.mark.django_db(transaction=True)
def test_a_schema_made_again_under_the_same_name_is_another(db):
    said = []
    for text in ("The first one.", "Quite another."):
        with own_schema("test_atlas", keep=False):
            there = palace_named("somebody")
            mine(there, transcript(text, id="talk"))
            atlas = held(there)
            said.append((take_census(there).revision, atlas.survey.vectors.tolist()))
            assert is_as_read_anew(there)
    assert said[0][0] == said[1][0]
    assert said[0][1] != said[1][1]


# How much of it is kept.


def test_what_was_not_asked_for_longest_makes_room(lived_in, alice, settings):
    others = [Palace.objects.create(owner=alice, subject=name) for name in ("ann", "ben")]
    for other in others:
        mine(other, LISBON)
    settings.RECALL_MEMORY_MB = (held(lived_in).bytes + held(others[0]).bytes + 1000) / 1024**2
    held(lived_in)
    held(others[1])
    assert SHELF.find(place_of(others[0])) is None
    assert SHELF.find(place_of(lived_in)) is not None
    assert SHELF.find(place_of(others[1])) is not None
    assert is_as_read_anew(others[0])


def test_without_memory_all_is_looked_up_in_the_tables(lived_in, settings):
    settings.RECALL_MEMORY_MB = 0
    space = active_space()
    [vector] = embed(["bread"], model_of(space), cache=False)
    meaning = by_meaning(lived_in, space, vector)
    assert meaning.atlas is None
    assert len(meaning.drawers) == Drawer.objects.count()
    assert not len(SHELF)


def test_an_atlas_cannot_be_written_to(lived_in):
    atlas = held(lived_in)
    for array in (atlas.survey.vectors, atlas.keys, atlas.said_at, atlas.survey.messages):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[-1]


# Whatever is done, in whatever order.


def trash_one(palace, number):
    drawers = list(Drawer.objects.within(palace).kept().order_by("pk"))
    if drawers:
        move_to_trash(drawers[number % len(drawers)])


def restore_one(palace, number):
    trashed = list(Drawer.objects.within(palace).trashed().order_by("pk"))
    if trashed:
        restore(palace, Drawer.objects.filter(pk=trashed[number % len(trashed)].pk))


def purge_all(palace, number):
    Purge(palace).run(Drawer.objects.all())


def mine_part(palace, number):
    whole = long_transcript(12, id=f"talk {number % 3}")
    mine(palace, dataclasses.replace(whole, turns=whole.turns[number % 5 :: 1 + number % 2]))


def lose_vector(palace, number):
    keys = list(Passage.objects.filter(palace=palace).values_list("drawer_id", flat=True))
    if keys:
        chosen = keys[number % len(keys)]
        Passage.objects.filter(palace=palace, drawer=chosen).update(embedding=None)


def fill(palace, number):
    fill_missing()


def rename(palace, number):
    Drawer.objects.within(palace).filter(number=number % 12).update(speaker=f"Ann {number}")


def think_better_of_it(palace, number):
    with transaction.atomic():
        mine_part(palace, number)
        trash_one(palace, number)
        held(palace)
        transaction.set_rollback(True)


DONE = st.sampled_from(
    [
        *(trash_one, restore_one, purge_all, mine_part, mine_part),
        *(lose_vector, fill, rename, think_better_of_it),
    ]
)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(DONE, st.integers(0, 40), st.booleans()), min_size=3, max_size=12))
def test_whatever_is_done_it_says_what_the_tables_say(palace, done):
    with transaction.atomic():
        mine(palace, long_transcript(12, id="talk 0"))
        for do, number, is_asked in done:
            do(palace, number)
            if is_asked:
                assert is_as_read_anew(palace)
        assert is_as_read_anew(palace)
        transaction.set_rollback(True)
