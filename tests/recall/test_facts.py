"""What is known comes before a question; what was so before only where it is asked about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from isolation.raw_sql import BinaryStatements
from language.english.dates import read_time
from palace.models import EmbeddingSpace, Fact, FactVector, Palace
from palace.recall.context_builder import pack
from palace.recall.facts import ENTITY_BOOST, FactFloor, facts_for, known_facts
from palace.recall.query import Past, read_past, read_query
from palace.storage.indexing.fact_vectors import fill_missing
from palace.storage.indexing.spaces import active_space
from tests.factories import DrawerFactory, EntityFactory, EvidenceFactory, FactFactory, RoomFactory
from tests.isolation.statements import at_several, collected

JANUARY, MARCH, APRIL, MAY, JULY = (datetime(2024, n, 1, 12, tzinfo=UTC) for n in (1, 3, 4, 5, 7))
NOW = datetime(2024, 9, 1, 12, tzinfo=UTC)
SUPERSEDED, ENDED = Fact.Fate.SUPERSEDED, Fact.Fate.ENDED


@pytest.fixture
def space(db):
    return active_space()


@pytest.fixture
def user(palace):
    return EntityFactory(palace=palace, name="User", slug="user")


@pytest.fixture
def state(user, space):
    """Make a fact, with its vector and words that were said when it began."""

    def state(text, *, said_at=MARCH, subject=user, words=True, **values):
        values = {"valid_from": said_at, "recorded_at": said_at, **values}
        fact = FactFactory(subject=subject, text=text, **values)
        if words:
            room = RoomFactory(wing__palace=subject.palace)
            drawer = DrawerFactory(room=room, closet=None, text=text, said_at=said_at)
            EvidenceFactory(fact=fact, drawer=drawer)
        fill_missing(subject.palace, space, [fact])
        return fact

    return state


@pytest.fixture
def ask(palace, space):
    def ask(text, *, now=NOW, as_of=None, **scope):
        question = read_query(palace, space, text, now=now, as_of=as_of, by_meaning=True)
        return facts_for(palace, space, question, **scope)

    return ask


@pytest.fixture
def known(palace, space):
    """Whatever it is about; texts with their dates."""

    def known(**times):
        found = known_facts(palace, space, None, {}, **{"now": NOW, **times})
        return sorted(f"{one.text} ({one.dates})" if one.dates else one.text for one in found)

    return known


def test_the_closest_come_first_and_most_only(state, ask):
    state("User is allergic to walnuts", type="preference")
    state("User lives in Porto")
    state("User works as a nurse")
    found = ask("Which city is my home in?")
    assert found[0].text == "User lives in Porto"
    assert len(found) == 3
    assert [one.text for one in ask("Which nuts must I avoid?", limit=1)] == [
        "User is allergic to walnuts"
    ]


def test_whom_the_question_names_goes_first(palace, state, ask):
    dov = EntityFactory(palace=palace, name="Dov", slug="dov", aliases=["Dovie"])
    state("Eli plays tennis", subject=EntityFactory(palace=palace, name="Eli", slug="eli"))
    state("Dov plays chess", subject=dov)
    state("User taught him", object="Dov", object_entity=dov)
    found = ask("What does dovie play?")
    assert found[0].text == "Dov plays chess"
    assert found[0].score > ENTITY_BOOST
    assert {one.text for one in found[:2]} == {"Dov plays chess", "User taught him"}


def test_without_a_vector_the_named_come_first_then_the_newest(palace, space, user, state):
    dov = EntityFactory(palace=palace, name="Dov")
    state("First", said_at=JANUARY, subject=dov)
    state("Second", said_at=MARCH)
    state("Third", said_at=MAY)
    found = known_facts(palace, space, None, {dov.pk: 1.0}, now=NOW)
    assert [one.text for one in found] == ["First", "Third", "Second"]


def test_what_has_no_vector_yet_is_not_lost(state, ask, user):
    FactFactory(subject=user, text="User swims")
    state("User lives in Porto")
    assert {one.text for one in ask("Where do I live?")} == {"User swims", "User lives in Porto"}


def test_what_is_uncertain_happened_or_is_yet_to_come_is_left_out(state, known):
    state("Sure", confidence=0.7)
    state("Unsure", confidence=0.69)
    state("Happened", type="event")
    state("To come", valid_from=NOW + timedelta(days=1))
    state("Over", valid_to=NOW)
    assert known() == ["Sure"]


@pytest.mark.parametrize("fate", [fate for fate in Fact.Fate if fate])
def test_what_is_held_no_longer_is_left_out(state, known, fate):
    state("User lives in Porto", valid_to=MAY, retired_at=JULY, fate=fate)
    assert known() == []


def test_what_has_an_end_to_come_names_it(state, known):
    later = NOW + timedelta(days=60)
    state("User lives in Porto", valid_to=later, retired_at=JULY, fate=SUPERSEDED)
    state("User lives in Oslo", valid_from=later, said_at=JULY)
    assert known() == ["User lives in Porto (until October 2024)"]


@pytest.fixture
def moved(state):
    """In Porto from March to May, as was learnt in July; in Oslo since."""
    state("User lives in Porto", valid_to=MAY, retired_at=JULY, fate=SUPERSEDED)
    state("User lives in Oslo", said_at=JULY, valid_from=MAY)
    state("User lives in Rome", retired_at=MAY, fate=Fact.Fate.CORRECTED)


def test_of_the_past_what_was_so_comes_with_its_dates(moved, known):
    assert known() == ["User lives in Oslo"]
    assert known(past=Past()) == [
        "User lives in Oslo (since May 2024)",
        "User lives in Porto (from March 2024 until May 2024)",
    ]


def test_of_a_period_what_was_so_then(moved, state, known):
    state("User went to Rome", type="event", valid_from=APRIL)
    state("User went to Bonn", type="event", valid_from=JULY)
    [period] = read_time("In April 2024?", NOW).periods
    assert known(past=Past((period,))) == [
        "User lives in Porto (from March 2024 until May 2024)",
        "User went to Rome (April 2024)",
    ]


@pytest.mark.parametrize(
    ("times", "texts"),
    [
        # What was so then, as we know today and knew by then.
        ({"as_of": APRIL}, ["User lives in Porto (until May 2024)"]),
        ({"as_of": JANUARY}, []),
        ({"as_of": JULY}, ["User lives in Oslo"]),
        ({"as_of": MAY + timedelta(days=1)}, []),  # Said in July only.
    ],
)  # fmt: skip
def test_both_clocks(moved, known, times, texts):
    assert known(**times) == texts


def test_an_agent_gets_its_own_facts_and_a_call_without_one_gets_all(state, known):
    state("Anybody's")
    state("Cook's", agent="cook")
    state("Cook's today", agent="cook", run="today")
    state("Today's", run="today")
    assert known() == ["Anybody's", "Cook's"]
    assert known(agent="cook") == ["Anybody's", "Cook's"]
    assert len(known(run="today")) == 4
    assert len(known(agent="cook", run="today")) == 4
    assert known(agent="gardener") == ["Anybody's"]


def test_facts_of_another_palace_never_come(state, known, bob):
    theirs = EntityFactory(palace=Palace.objects.own(bob), name="User", slug="user")
    state("Bob lives in Rome", subject=theirs)
    assert known() == []


def test_a_fact_is_cited_by_the_words_said_last(state, ask):
    fact = state("User lives in Porto")
    later = EvidenceFactory(
        fact=fact, drawer=DrawerFactory(room=RoomFactory(wing__palace=fact.palace), said_at=JULY)
    ).drawer
    [one] = ask("Where do I live?")
    assert (one.pointer, one.drawer, one.memory) == (later.pointer, later.uuid, fact.memory)
    [then] = ask("Where do I live?", as_of=APRIL)
    assert then.drawer == fact.evidence.order_by("pk").first().drawer.uuid
    later.trash()
    [one] = ask("Where do I live?")
    assert one.drawer == then.drawer


def test_what_rests_on_the_trash_alone_is_left_out(state, known):
    fact = state("User lives in Porto", valid_to=MAY, retired_at=JULY, fate=ENDED)
    assert known(past=Past()) == ["User lives in Porto (from March 2024 until May 2024)"]
    fact.evidence.get().drawer.trash()
    assert known(past=Past()) == []


def test_those_behind_what_the_trash_holds_move_up(palace, space, state):
    for n in range(9):
        fact = state(f"Fact {n}", said_at=MARCH + timedelta(days=n))
        if n > 3:
            fact.evidence.get().drawer.trash()
    found = known_facts(palace, space, None, {}, now=NOW, limit=2)
    assert [one.text for one in found] == ["Fact 3", "Fact 2"]


def test_a_fact_without_words_needs_none(state, known):
    state("User lives in Porto", words=False)
    assert known() == ["User lives in Porto"]
    assert known(as_of=APRIL) == ["User lives in Porto"]
    assert known(as_of=JANUARY) == []


def test_one_statement_reads_them_however_many_there_are(palace, space, state, monkeypatch):
    sent = []
    fetch = BinaryStatements.fetch
    monkeypatch.setattr(
        BinaryStatements, "fetch", lambda self, *given: sent.append(given) or fetch(self, *given)
    )
    for n in range(5):
        state(f"Fact {n}")
    with CaptureQueriesContext(connection) as others:
        assert len(known_facts(palace, space, None, {}, now=NOW)) == 5
    assert (len(sent), len(others)) == (1, 0)


@pytest.mark.parametrize("past", [None, Past()])
@pytest.mark.parametrize("vector", [None, np.ones(384, np.float32)])
def test_the_statement_names_the_palace_of_each_table(space, palace, past, vector):
    floor = FactFloor(0.1, ("porto",), min_score_if_unmined=0.2)
    with collected(sweeps=True) as found:
        known_facts(
            *(palace, space, vector, {1: 1.0}),
            now=NOW, past=past, floor=floor, agent="cook", of_self=True,
        )  # fmt: skip
    assert len(found) == 1
    assert at_several(found) == []


def test_what_a_block_does_not_need_is_loaded_when_asked_for(state, ask):
    state("User lives in Porto", tags=["home"])
    [one] = ask("Where do I live?")
    assert "tags" in one.fact.get_deferred_fields()
    assert one.fact.tags == ["home"]


def test_a_known_fact_is_packed_with_its_pointer_and_dates(moved, ask):
    context = pack([], None, ask("Where did I use to live before?")).context
    assert context.count("- [§ W-") == 2
    assert "User lives in Porto (from March 2024 until May 2024)\n" in context


@pytest.mark.parametrize(
    ("question", "is_past"),
    [
        ("Where did I use to live? I used to know.", True),
        ("What was my previous job?", True),
        ("Where did I live before?", True),
        ("Where did I live before I moved?", True),
        ("What was I reading in April 2024?", True),
        ("What did I tell you the first time?", True),
        ("Where do I live?", False),
        ("What should I drink before bed?", False),
        ("What am I doing next week?", False),
        ("Do I have any plans today?", False),
    ],
)
def test_which_questions_are_about_the_past(question, is_past):
    assert (read_past(question, read_time(question, NOW), NOW) is not None) == is_past


def test_vectors_of_another_space_are_not_looked_at(palace, space, state, ask):
    fact = state("User lives in Porto")
    other = EmbeddingSpace.objects.create(provider="local", model="other", dimensions=2)
    FactVector.objects.create(palace=palace, space=other, fact=fact, embedding=[1, 0])
    assert len(ask("Where do I live?")) == 1


def test_the_users_own_facts_come_first_where_they_ask_about_themselves(palace, user, state, ask):
    aunt = EntityFactory(palace=palace, name="User's aunt", slug="user-s-aunt")
    own = state("User lives in Totterdown")
    hers = state("User's aunt lives in Görlitz", subject=aunt)
    assert [one.fact for one in ask("where do I live")] == [own, hers]
    assert ask("Where does my aunt live?")[0].fact == hers
