"""A sentence that is corrected by hand takes its statement along."""

from __future__ import annotations

import pytest

from language.errors import FactConflict
from language.facts import Verdict
from llm.embedding import embed
from palace.knowledge.facts.fact_edits import rewrite
from palace.knowledge.facts.fact_extraction import Scope
from palace.knowledge.facts.fact_learning import remember
from palace.knowledge.facts.row_conversion import find_entity
from palace.models import Evidence, Fact, FactEvent
from palace.queries.facts import relations
from palace.storage.indexing.fact_vectors import nearest
from palace.storage.indexing.spaces import active_space, model_of

BY_PERSON = Scope("person")


@pytest.fixture
def say(palace):
    """Says something, and returns the one fact it made."""

    def tell(text):
        [line] = remember(palace, text)
        return line.fact

    return tell


def relations_of(palace, name):
    entity = find_entity(palace, name)
    return [] if entity is None else list(relations(entity, Fact.objects.active()))


def test_object_edge_words_and_vector_follow(palace, say):
    old = say("I live in Berlin.")
    written = rewrite(palace, old.memory, "User lives in Lisbon", BY_PERSON)
    new = Fact.objects.active().get()
    assert written.fact == new
    assert written.is_read
    assert (new.object, new.object_entity.name, new.predicate) == ("Lisbon", "Lisbon", "lives_in")
    assert new.valid_from == old.valid_from
    assert relations_of(palace, "Berlin") == []
    assert relations_of(palace, "Lisbon") == [new]
    # "I live in Berlin." is no source of it.
    assert not Evidence.objects.filter(fact=new).exists()
    space = active_space()
    [vector] = embed(["User lives in Lisbon"], model_of(space), owner_id=palace.owner_id)
    [(closest, cosine)] = nearest(palace, space, vector, Fact.objects.active(), limit=1)
    assert closest == new
    assert cosine > 0.99
    texts = list(FactEvent.objects.filter(memory=old.memory).values_list("old_text", "new_text"))
    assert texts == [(None, "User lives in Berlin"), ("User lives in Berlin", new.text)]


def test_telling_it_again_is_no_update_and_gives_it_a_source(palace, say):
    old = say("I live in Berlin.")
    rewrite(palace, old.memory, "User lives in Lisbon", BY_PERSON)
    [line] = remember(palace, "I live in Lisbon.")
    assert (line.verdict, line.memory) == (Verdict.NONE, old.memory)
    [words] = Evidence.objects.filter(fact=line.fact)
    assert words.drawer.text == "I live in Lisbon."


@pytest.mark.parametrize("text", ["User lives in Berlin.", "user lives in BERLIN"])
def test_signs_and_case_change_nothing_else(palace, say, text):
    old = say("I live in Berlin.")
    new = rewrite(palace, old.memory, text, BY_PERSON).fact
    assert (new.text, new.object, new.object_entity) == (text, "Berlin", old.object_entity)
    assert Evidence.objects.filter(fact=new).count() == 1


def test_more_of_the_same_keeps_its_sources(palace, say):
    old = say("I live in Berlin.")
    written = rewrite(palace, old.memory, "User has lived in Berlin since 2020", BY_PERSON)
    assert written.is_read
    assert written.fact.valid_from.year == 2020
    assert Evidence.objects.filter(fact=written.fact).count() == 1


def test_going_back_brings_back_what_there_was(palace, say):
    old = say("I live in Berlin.")
    rewrite(palace, old.memory, "Gibberish about the matter", BY_PERSON)
    back = rewrite(palace, old.memory, old.text, BY_PERSON).fact
    assert (back.object, back.object_entity) == ("Berlin", old.object_entity)
    assert [each.drawer.text for each in back.evidence.all()] == ["I live in Berlin."]


def test_another_predicate_of_the_same_subject_follows(palace, say):
    old = say("I live in Berlin.")
    new = rewrite(palace, old.memory, "User works at Siemens", BY_PERSON).fact
    assert (new.predicate, new.object, new.category) == ("works_at", "Siemens", "work/employer")
    assert new.single


@pytest.mark.parametrize(
    "text",
    [
        "It is complicated where User lives",  # Nothing that the rules can read.
        "Anna lives in Porto",  # Somebody else.
        "User is allergic to nuts. User speaks French.",  # Two statements, and none of a home.
    ],
)
def test_what_cannot_be_read_leaves_nothing_stale(palace, say, text):
    old = say("I live in Berlin.")
    written = rewrite(palace, old.memory, text, BY_PERSON)
    new = written.fact
    assert not written.is_read
    assert (new.text, new.subject, new.predicate) == (text, old.subject, "lives_in")
    assert (new.object, new.object_entity, new.stance) == ("", None, "")
    assert relations_of(palace, "Berlin") == []
    assert not Evidence.objects.filter(fact=new).exists()


def test_a_denial_connects_nobody_with_anything(palace, say):
    old = say("I live in Berlin.")
    new = rewrite(palace, old.memory, "User does not live in Berlin", BY_PERSON).fact
    assert new.object_entity is None
    assert relations_of(palace, "Berlin") == []


def test_an_end_follows_the_sentence_both_ways(palace, say):
    old = say("I live in Berlin.")
    past = rewrite(palace, old.memory, "User used to live in Berlin", BY_PERSON).fact
    assert past.valid_to is not None
    assert rewrite(palace, old.memory, "User lives in Potsdam", BY_PERSON).fact.valid_to is None


def test_an_opinion_changes_its_matter_and_stance(palace, say):
    old = say("I love Python.")
    new = rewrite(palace, old.memory, "User hates Java", BY_PERSON).fact
    assert (new.subject.name, new.stance, new.type) == ("Java", "negative", "opinion")
    assert not Fact.objects.active().filter(subject=old.subject).exists()


def test_an_opinion_becomes_a_preference_and_back(palace, say):
    old = say("I love Python.")
    new = rewrite(palace, old.memory, "User prefers tea over coffee", BY_PERSON).fact
    assert (new.subject.name, new.predicate, new.type) == ("User", "prefers", "preference")
    again = rewrite(palace, old.memory, "User likes Rust", BY_PERSON)
    assert again.is_read
    assert (again.fact.subject.name, again.fact.type) == ("Rust", "opinion")


def test_what_there_is_one_of_is_not_said_twice(palace, say):
    home = say("I live in Berlin.")
    work = say("I work at Siemens.")
    with pytest.raises(FactConflict, match="User lives in Berlin"):
        rewrite(palace, work.memory, "User lives in Lisbon", BY_PERSON)
    assert set(Fact.objects.active()) == {home, work}
