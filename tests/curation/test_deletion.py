"""A palace is deleted whole: its rows, its words wherever they were noted, its files."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, connection

from api.rest.problems import problem_of
from llm.embedding import cache as cached
from palace.curation.deletion import delete_palace
from palace.knowledge.facts.fact_learning import learn_unread
from palace.mining.pipeline import mine
from palace.models import Drawer, Fact, ImportJob, Palace
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.storage.indexing.spaces import active_space, model_of
from palace.transfer.spools import new_spool, spool_path
from tests.conversations import BATTERY, transcript
from tests.curation.test_purge import words_in_the_database

pytestmark = pytest.mark.django_db(transaction=True)
TALK = transcript(
    "My name is Zenobia, I live in Zanzibar, and I am allergic to walnuts.",
    "Walnuts are noted, Zenobia.",
    id="talk",
    title="Zanzibar",
)
WORDS = ("zenobia", "zanzibar", "walnut")


@pytest.fixture(autouse=True)
def cached_messages(settings):
    """As with a remote model, and in rows of earlier versions."""
    settings.EMBEDDING_CACHES_MESSAGES = True


@pytest.fixture
def anna(alice):
    """The palace of one of the people whom a program of Alice's serves."""
    anna = Palace.objects.create(owner=alice, subject="anna")
    mine(anna, TALK)
    assert learn_unread(anna)
    recall(anna, RecallRequest("Where does Zenobia live?", with_facts=True))
    return anna


def kept_vectors(texts):
    model = model_of(active_space())
    return len(cached.look_up(cached.keys(texts, model)))


def test_nothing_of_one_palace_is_left_and_nothing_of_another_goes(palace, anna):
    mine(palace, BATTERY)
    own = list(Drawer.objects.within(palace).values_list("text", flat=True))
    texts = list(Drawer.objects.within(anna).values_list("text", flat=True))
    facts = list(Fact.objects.within(anna).values_list("text", flat=True))
    assert facts
    assert kept_vectors(texts) == len(texts)
    assert kept_vectors(facts) == len(set(facts))
    delete_palace(anna)
    left = words_in_the_database()
    assert [word for word in (*WORDS, '"anna"') if word in left] == []
    assert kept_vectors(texts + facts) == 0
    assert kept_vectors(own) == len(own)
    assert Drawer.objects.within(palace).count() == len(own)
    delete_palace(anna)  # It may be asked for again.


def test_a_deletion_that_fails_has_deleted_nothing(anna):
    texts = list(Drawer.objects.within(anna).values_list("text", flat=True))
    job = ImportJob.objects.create(palace=anna, file_name="a", spool=new_spool().name)
    with refused("palace_room"), pytest.raises(DatabaseError, match="not now"):
        delete_palace(anna)
    assert Drawer.objects.within(anna).count() == len(texts)
    assert kept_vectors(texts) == len(texts)
    assert spool_path(job).is_file()
    delete_palace(anna)
    assert not spool_path(job).exists()


def test_an_account_that_operators_delete_leaves_no_trace_either(alice, anna):
    texts = list(Drawer.objects.within(anna).values_list("text", flat=True))
    job = ImportJob.objects.create(palace=anna, file_name="a", spool=new_spool().name)
    User.objects.filter(pk=alice.pk).delete()
    assert kept_vectors(texts) == 0
    assert not spool_path(job).exists()
    left = words_in_the_database()
    assert [word for word in (*WORDS, "alice") if word in left] == []


def test_a_request_overtaken_by_a_deletion_gets_an_error(anna):
    delete_palace(anna)
    with pytest.raises(Palace.DoesNotExist) as overtaken:
        mine(anna, TALK)
    problem = problem_of(overtaken.value)
    assert (problem.status_code, problem.code) == (410, "palace_deleted")


def test_a_recall_overtaken_by_a_deletion_gets_an_error(anna):
    delete_palace(anna)
    with pytest.raises(Palace.DoesNotExist):
        recall(anna, RecallRequest("What is there?"))


@contextmanager
def refused(table, what="DELETE"):
    """Deleting from the table, or what else is named, fails as long as the block lasts."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'not now'; END $$"
        )
        cursor.execute(
            f"CREATE TRIGGER refuse BEFORE {what} ON {table} FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION refuse CASCADE")
