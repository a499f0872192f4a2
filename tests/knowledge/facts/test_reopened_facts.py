"""What was ended by words that go opens again, and is ended again when they come back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest
from django.db import connection

from language.errors import FactConflict
from language.transcripts import Turn
from palace.curation.deletion import delete_drawers
from palace.curation.purge import Purge
from palace.curation.trash import restore, trash_drawers
from palace.knowledge.facts.evidence_support import ENDED_AGAIN, OPEN_AGAIN, WORDS_ARE_BACK
from palace.knowledge.facts.fact_edits import ENDING_DELETED, delete, delete_all
from palace.knowledge.facts.fact_edits import restore as restore_fact
from palace.knowledge.facts.fact_extraction import Scope
from palace.knowledge.facts.fact_learning import remember
from palace.models import Drawer, Fact, FactEvent
from tests.knowledge.facts.test_concurrent_writers import in_threads

START = datetime(2024, 1, 1, 9, 0, tzinfo=UTC)


def say(palace, text, day):
    turn = Turn(f"m{day}", "user", text, START + timedelta(days=day))
    return remember(palace, [turn], conversation=f"day-{day}")


def held(palace):
    return sorted(Fact.objects.within(palace).active().values_list("object", flat=True))


def said_on(day):
    return Drawer.objects.filter(conversation=f"day-{day}")


def homes(palace, *days):
    found = []
    for day in days:
        facts = Fact.objects.within(palace).filter(predicate="lives_in")
        found.append(sorted(f.object for f in facts.true_at(START + timedelta(days=day))))
    return found


@pytest.mark.parametrize(
    "later", ["I moved to Porto.", "I no longer live in Berlin.", "Actually, I live in Bern."]
)
def test_in_the_trash_words_end_nothing(palace, later):
    say(palace, "I live in Berlin.", 0)
    say(palace, later, 9)
    ended = held(palace)
    assert "Berlin" not in ended
    trash_drawers(palace, said_on(9))
    assert held(palace) == ["Berlin"]
    fact = Fact.objects.within(palace).active().get()
    assert (fact.valid_from, fact.valid_to) == (START, None)
    last = FactEvent.objects.filter(palace=palace, memory=fact.memory).last()
    assert (last.event, last.new_text, last.why) == ("ADD", "User lives in Berlin", OPEN_AGAIN)
    restore(palace, said_on(9))
    assert held(palace) == ended
    assert not Fact.objects.active().filter(vectors=None).exists()


def test_restored_words_are_in_the_history(palace):
    say(palace, "I live in Berlin.", 0)
    say(palace, "I no longer live in Berlin.", 9)
    trash_drawers(palace, said_on(9))
    restore(palace, said_on(9))
    events = FactEvent.objects.filter(palace=palace).order_by("pk")
    assert [event.event for event in events] == ["ADD", "DELETE", "ADD", "DELETE"]
    assert events.last().why == ENDED_AGAIN
    trash_drawers(palace, said_on(0))
    restore(palace, said_on(0))
    assert held(palace) == []
    assert homes(palace, 5, 10) == [["Berlin"], []]


def test_a_deleted_session_leaves_the_home_there_was(palace):
    say(palace, "I live in Berlin.", 0)
    say(palace, "I moved to Porto.", 9)
    assert delete_drawers(palace, said_on(9)) == 1
    assert held(palace) == ["Berlin"]
    assert not Fact.objects.filter(object="Porto").exists()
    assert not FactEvent.objects.filter(new_text__contains="Porto").exists()


def test_a_false_correction_in_the_trash_brings_back_what_it_corrected(palace):
    say(palace, "I have a dog named Biscuit.", 0)
    say(palace, "Actually, it's not Biscuit but Authentication.", 9)
    wrong = held(palace)
    assert wrong != ["Biscuit"]
    trash_drawers(palace, said_on(9))
    assert held(palace) == ["Biscuit"]
    restore(palace, said_on(9))
    assert held(palace) == wrong
    event = FactEvent.objects.filter(palace=palace).last()
    assert event.why in (WORDS_ARE_BACK, ENDED_AGAIN)


@pytest.mark.some(4)
@pytest.mark.parametrize("order", list(permutations((0, 9, 18))))
@pytest.mark.parametrize("purged", [False, True])
def test_chains_come_out_right_in_any_order(palace, order, purged):
    for day, home in ((0, "Aarhus"), (9, "Berlin"), (18, "Cadiz")):
        say(palace, f"I live in {home}.", day)
    left = {0: "Aarhus", 9: "Berlin", 18: "Cadiz"}
    for day in order:
        trash_drawers(palace, said_on(day))
        del left[day]
        if purged:
            Purge(palace).run(said_on(day))
        assert held(palace) == ([left[max(left)]] if left else [])
        if left and max(left) != min(left):
            assert homes(palace, max(left) - 1, 20) == [[left[min(left)]], [left[max(left)]]]
    if purged:
        assert not Fact.objects.exists()
        return
    for count, day in enumerate(order, start=1):
        restore(palace, said_on(day))
        assert held(palace) == [{0: "Aarhus", 9: "Berlin", 18: "Cadiz"}[max(order[:count])]]
    assert homes(palace, 5, 10, 20) == [["Aarhus"], ["Berlin"], ["Cadiz"]]


def test_what_was_known_then_stays_known_then(palace):
    say(palace, "I live in Berlin.", 0)
    say(palace, "I moved to Porto.", 9)
    learnt = Fact.objects.order_by("-recorded_at").first().recorded_at
    trash_drawers(palace, said_on(9))
    facts = Fact.objects.within(palace)
    assert [fact.object for fact in facts.known_at(learnt)] == ["Porto"]
    for day, home in ((5, "Berlin"), (10, "Porto")):
        moment = START + timedelta(days=day)
        then = facts.known_and_true_at(learnt, moment)
        assert [fact.object for fact in then] == [home]
        assert [fact.object for fact in facts.true_at(moment)] == ["Berlin"]


@pytest.mark.django_db(transaction=True)
def test_deleting_while_others_learn_leaves_one_home(palace):
    say(palace, "I live in Aarhus.", 0)
    say(palace, "I live in Berlin.", 1)

    def work(number):
        if number % 2:
            trash_drawers(palace, said_on(1))
        else:
            say(palace, f"I live in Town{chr(65 + number)}.", 10 + number)
        connection.close()

    in_threads(6, work)
    assert held(palace) == ["TownE"]
    for day in (10, 12, 14):
        trash_drawers(palace, said_on(day))
    assert held(palace) == ["Aarhus"]


def test_deleting_what_ended_a_home_brings_it_back_as_a_memory_of_its_own(palace):
    say(palace, "I live in Berlin.", 0)
    [line] = say(palace, "I moved to Porto.", 9)
    delete(palace, line.memory, Scope("person"))
    assert held(palace) == ["Berlin"]
    again = Fact.objects.within(palace).active().get()
    assert again.memory != line.memory
    event = FactEvent.objects.get(palace=palace, memory=again.memory)
    assert (event.event, event.why) == ("ADD", ENDING_DELETED)
    say(palace, "I have a cat called Mia.", 3)  # Judges the scope again.
    assert held(palace) == ["Berlin", "Mia"]
    restore_fact(palace, Fact.objects.get(pk=line.fact.pk), Scope("person"))
    assert held(palace) == ["Mia", "Porto"]
    say(palace, "I have a dog called Rex.", 2)
    assert held(palace) == ["Mia", "Porto", "Rex"]


def test_deleting_everything_brings_nothing_back(palace):
    say(palace, "I live in Berlin.", 0)
    say(palace, "I moved to Porto.", 9)
    assert delete_all(palace, Fact.objects.all(), Scope("person")) == 1
    assert held(palace) == []
    say(palace, "I have a cat called Mia.", 3)
    assert held(palace) == ["Mia"]


def test_what_took_its_place_meanwhile_is_still_a_conflict(palace):
    say(palace, "I live in Berlin.", 0)
    [line] = say(palace, "I moved to Porto.", 9)
    delete(palace, line.memory, Scope("person"))
    say(palace, "I live in Rye.", 20)
    with pytest.raises(FactConflict, match="Rye"):
        restore_fact(palace, Fact.objects.get(pk=line.fact.pk), Scope("person"))
    assert held(palace) == ["Rye"]
