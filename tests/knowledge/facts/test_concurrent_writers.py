"""Many who learn the same at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import IntegrityError, connection

from palace.knowledge.facts.fact_learning import remember
from palace.models import Drawer, Evidence, Fact, FactEvent


def in_threads(count, work):
    ready = threading.Barrier(count)

    def run(number):
        ready.wait()
        try:
            return work(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


@pytest.mark.django_db(transaction=True)
def test_fifty_who_say_the_same_leave_one_fact_and_all_their_words(palace):
    lines = in_threads(50, lambda _: remember(palace, "I live in Lisbon."))
    held = Fact.objects.within(palace).active()
    assert [fact.object for fact in held] == ["Lisbon"]
    assert Drawer.objects.filter(palace=palace).count() == 50
    assert Evidence.objects.filter(palace=palace, fact=held.get()).count() == 50
    assert sorted(line.verdict for written in lines for line in written) == ["ADD"] + ["NONE"] * 49
    assert FactEvent.objects.filter(palace=palace).count() == 1


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
def test_fifty_who_say_something_else_each_leave_one_fact_and_a_full_history(palace):
    cities = [f"Town{chr(65 + n % 26)}{chr(97 + n // 26)}" for n in range(50)]
    in_threads(50, lambda n: remember(palace, f"I live in {cities[n]}."))
    facts = Fact.objects.within(palace).filter(predicate="lives_in")
    assert facts.active().count() == 1
    assert {fact.object for fact in facts} == set(cities)
    assert FactEvent.objects.filter(palace=palace).count() == 50


def test_the_database_itself_holds_one_at_a_time(palace, tell):
    from tests.knowledge.facts.conftest import statement  # noqa: PLC0415

    line = tell(statement("User lives in Porto", object="Porto"))
    twin = Fact.objects.get(pk=line.fact.pk)
    twin.pk, twin.uuid, twin.memory = None, line.memory, line.memory
    with pytest.raises(IntegrityError):
        twin.save(force_insert=True)
