"""PUT /v1/memories/{id}/: what is answered, and what the graph answers afterwards."""

from __future__ import annotations

import pytest

from palace.knowledge.facts.fact_edits import delete, restore, rewrite
from palace.knowledge.facts.fact_extraction import Scope
from palace.knowledge.facts.fact_learning import remember
from palace.models import Fact

pytestmark = pytest.mark.django_db(transaction=True)
ALICE = "user_id=alice"


def say(program, text):
    answer = program.post("/v1/memories/", {"messages": text, "user_id": "alice"})
    return answer.data["results"]


def edges(program, name):
    answer = program.get(f"/v1/entities/{name}/relations/?{ALICE}")
    return [each["memory"] for each in answer.data.get("results", [])]


def test_everything_follows_the_sentence_and_the_answer_says_so(program):
    [made] = say(program, "I live in Berlin.")
    address = f"/v1/memories/{made['id']}/"
    answer = program.put(address, {"text": "User lives in Lisbon"})
    assert answer.status_code == 200
    assert answer.data["object"] == "Lisbon"
    assert answer.data["changed"] == ["memory", "object", "sources"]
    assert answer.data["note"] is None
    assert program.get(address).headers["ETag"] == answer.headers["ETag"]
    assert edges(program, "Lisbon") == ["User lives in Lisbon"]
    assert edges(program, "Berlin") == []
    shown = program.get("/users/alice/memories?active=true").data["memories"]
    assert [(each["value"], each["source_turn"]) for each in shown] == [("Lisbon", None)]
    assert [event["event"] for event in say(program, "I live in Lisbon.")] == ["NONE"]
    history = program.get(f"{address}history/").data
    assert [line["new_value"] for line in history] == [
        "User lives in Berlin",
        "User lives in Lisbon",
    ]


def test_what_cannot_follow_is_said(program):
    [made] = say(program, "I live in Berlin.")
    answer = program.put(f"/v1/memories/{made['id']}/", {"text": "It is complicated"})
    assert answer.status_code == 200
    assert "could not be read as one statement" in answer.data["note"]
    assert answer.data["object"] == ""
    assert edges(program, "Berlin") == []


def test_what_there_can_be_one_of_is_refused(program):
    [home] = say(program, "I live in Berlin.")
    [work] = say(program, "I work at Siemens.")
    answer = program.put(f"/v1/memories/{work['id']}/", {"text": "User lives in Lisbon"})
    assert (answer.status_code, answer.data["code"]) == (409, "fact_conflict")
    assert program.get(f"/v1/memories/{home['id']}/").data["object"] == "Berlin"


def test_the_same_sentence_changes_nothing(program):
    [made] = say(program, "I live in Berlin.")
    answer = program.put(f"/v1/memories/{made['id']}/", {"text": "User lives in Berlin"})
    assert (answer.data["changed"], answer.data["note"]) == ([], None)


def put(program, made, text):
    return program.put(f"/v1/memories/{made['id']}/", {"text": text})


def test_a_home_that_has_ended_leaves_room_for_another(program):
    [lima] = say(program, "I moved to Lima in 2019.")
    assert put(program, lima, "User lived in Lima until 2020").status_code == 200
    [other] = say(program, "I play the violin.")
    oslo = put(program, other, "User lives in Oslo")
    assert (oslo.status_code, oslo.data.get("object")) == (200, "Oslo")
    # A third home, at the time of the second, is refused.
    [third] = say(program, "I speak Dutch.")
    refused = put(program, third, "User lives in Rome")
    assert (refused.status_code, refused.data["code"]) == (409, "fact_conflict")
    assert "Oslo" in refused.data["detail"]
    # So is the first, once it has no end any more.
    assert put(program, lima, "User lives in Lima").status_code == 409
    # What is told takes the place of both.
    say(program, "I moved to Paris.")
    assert edges(program, "Paris") == ["User lives in Paris"]
    assert edges(program, "Oslo") == []


def test_a_home_of_former_times_may_be_written_beside_todays(program):
    say(program, "I live in Oslo.")
    [other] = say(program, "I play the violin.")
    quito = put(program, other, "User lived in Quito until 2015")
    assert (quito.status_code, quito.data.get("object")) == (200, "Quito")
    # It does not begin, as the violin did, after its end.
    assert quito.data["valid_from"] is None
    assert edges(program, "Oslo") == ["User lives in Oslo"]


def test_a_fact_that_is_over_can_be_restored_beside_what_followed(palace):
    said = remember(palace, "I moved to Lima in 2019.")[0].fact
    scope = Scope("person")
    lima = rewrite(palace, said.memory, "User lived in Lima until 2020", scope).fact
    delete(palace, lima.memory, scope)
    remember(palace, "I live in Oslo.")
    lima.refresh_from_db()
    assert restore(palace, lima, scope).text == "User lived in Lima until 2020"
    texts = set(Fact.objects.active().values_list("text", flat=True))
    assert texts == {"User lived in Lima until 2020", "User lives in Oslo"}


def test_a_name_in_place_of_another_is_the_object(program):
    [sister] = say(program, "My sister is called Anna.")
    berta = put(program, sister, "User's sister is Berta")
    assert (berta.data["object"], berta.data["note"]) == ("Berta", None)
    [car] = say(program, "I drive a Volvo.")
    saab = put(program, car, "User drives a Saab")
    assert (saab.data["object"], saab.data["note"]) == ("Saab", None)


def test_a_tool_is_no_home_when_it_is_written_either(program):
    [home] = say(program, "I live in Berlin.")
    answer = put(program, home, "User lives in Kubernetes")
    assert answer.data["object"] == ""
    assert "could not be read" in answer.data["note"]
