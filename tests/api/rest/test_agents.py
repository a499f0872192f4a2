"""What the fact API receives with an `agent_id`: for that agent, and for calls without one."""

from __future__ import annotations

import pytest

from palace.knowledge.episodes import write_episodes
from palace.mining.pipeline import mine_rooms
from palace.models import Drawer, Episode, Fact, Palace, RecollectionTrace, Room
from palace.recall import ConversationState, RecallRequest, recall
from tests.api.rest.conftest import client_of

KEY = "The spare key lies under the blue flowerpot."
HOME = "I live in Porto with my dog Rufus."
QUESTION = "Where does the spare key lie, and where does the user live?"


def say(program, text, **scope):
    answer = program.post("/v1/memories/", {"messages": text, **scope})
    assert answer.status_code in (200, 201), answer.content


@pytest.fixture
def palace(program, owner):
    """The butler knows two things, the cook one; one is everybody's."""
    say(program, KEY, agent_id="butler", run_id="r1")
    say(program, HOME, agent_id="butler")
    say(program, "The spare apron lies under the sink.", agent_id="cook", run_id="r1")
    turn = {"messages": [{"role": "user", "content": "The spare tyre lies in the barn."}]}
    answer = program.post("/turns", {"session_id": "s1", **turn})
    assert answer.status_code == 201
    palace = Palace.objects.own(owner)
    mine_rooms(list(Room.objects.within(palace)))
    return palace


def context(program, **asked):
    answer = program.post("/recall", {"query": QUESTION, **asked})
    assert answer.status_code == 200, answer.content
    return answer.data["context"]


def contents(program, **asked):
    answer = program.post("/search", {"query": QUESTION, **asked})
    assert answer.status_code == 200, answer.content
    return [each["content"] for each in answer.data["results"]]


@pytest.mark.parametrize("ask", [context, contents])
def test_an_agent_finds_its_own_words_and_everybodys(program, palace, ask):
    for agent in (None, "butler"):
        assert "blue flowerpot" in str(ask(program, agent_id=agent))
    for agent in ("cook", "another"):
        asked = str(ask(program, agent_id=agent))
        assert "tyre" in asked
        for secret in ("flowerpot", "Porto", "Rufus"):
            assert secret not in asked
    assert "apron" in str(ask(program, agent_id="cook"))
    assert "apron" not in str(ask(program, agent_id="butler"))
    everything = str(ask(program))
    assert all(word in everything for word in ("flowerpot", "apron", "tyre"))


def test_facts_go_with_the_words(program, palace):
    fact = Fact.objects.get(palace=palace, text__contains="Porto")
    assert fact.agent == "butler"
    assert fact.text in context(program)
    assert fact.text in context(program, agent_id="butler")
    assert fact.text not in context(program, agent_id="cook")


@pytest.mark.parametrize("ask", [context, contents])
@pytest.mark.parametrize("agent", ["a" * 250, " butler "])
def test_an_agent_of_any_name_finds_its_own_words(program, owner, ask, agent):
    say(program, KEY, agent_id=agent)
    mine_rooms(list(Room.objects.within(Palace.objects.own(owner))))
    assert "flowerpot" in str(ask(program, agent_id=agent))
    assert "flowerpot" not in str(ask(program, agent_id="butler"))


@pytest.mark.parametrize("path", ["/recall", "/search"])
def test_an_agent_is_named_by_text(program, palace, path):
    refused = program.post(path, {"query": QUESTION, "agent_id": 5})
    assert (refused.status_code, list(refused.data["errors"])) == (400, ["agent_id"])


def test_the_latest_turns_are_only_those_of_the_agent(program, palace):
    assert "apron" in context(program, session_id="r1", agent_id="cook").partition("Just now:")[2]
    assert "apron" not in context(program, session_id="r1", agent_id="butler")
    assert "flowerpot" not in context(program, session_id="r1", agent_id="cook")


def test_an_opening_message_brings_nothing_of_other_agents(palace):
    request = RecallRequest("hi", agent="cook", conversation=ConversationState("c1", 0))
    opening = recall(palace, request)
    assert opening.is_opening
    assert {hit.drawer.agent for hit in opening.hits} <= {"", "cook"}
    assert RecollectionTrace.objects.filter(palace=palace).exists()


def test_an_episode_of_a_shared_run_is_for_calls_without_an_agent(program, palace):
    write_episodes(palace, list(Room.objects.within(palace)))
    [shared] = Episode.objects.filter(palace=palace, conversation="r1")
    asked = {"query": "Where do the spare things lie?"}

    def found(**more):
        answer = program.post("/episodic/search", {**asked, **more})
        assert answer.status_code == 200, answer.content
        return [each["id"] for each in answer.data["results"]]

    assert str(shared.uuid) in found()
    for agent in ("butler", "cook"):
        assert str(shared.uuid) not in found(agent_id=agent)


def test_all_of_an_agent_can_be_deleted(program, palace):
    assert program.delete("/v1/memories/?agent_id=butler").status_code == 200
    left = Drawer.objects.within(palace).kept()
    assert sorted(left.values_list("agent", flat=True)) == ["", "cook"]
    assert "Porto" not in context(program)


def test_an_episode_is_found_across_the_people_that_an_agent_serves(program):
    for user in ("ada", "ben"):
        said = {"conversation_id": "1", "summary": f"We chose a night train for {user}."}
        assert program.post("/episodic/store", {**said, "user_id": user, "agent_id": "p"})
    other = {"conversation_id": "2", "summary": "We chose a night bus.", "user_id": "ada"}
    program.post("/episodic/store", {**other, "agent_id": "q"})

    def found(**more):
        answer = program.post("/episodic/search", {"query": "How do we travel?", **more})
        assert answer.status_code == 200, answer.content
        return answer.data["results"]

    everyone = found(agent_id="p")
    assert {each["user_id"] for each in everyone} == {"ada", "ben"}
    for each in everyone:
        assert each["score"] == pytest.approx((1 + each["similarity"]) / 2, abs=1e-6)
    assert [each["similarity"] for each in everyone] == sorted(
        (each["similarity"] for each in everyone), reverse=True
    )
    assert [each["user_id"] for each in found(agent_id="p", user_id="ada")] == ["ada"]
    assert found() == [], "Without an agent it is the owner's own palace."
    assert len(found(agent_id="p", limit=1)) == 1


def test_a_key_of_one_palace_asks_that_one(owner, stranger, program):
    for user in ("ada", "ben"):
        said = {"conversation_id": "1", "summary": "We chose a night train.", "user_id": user}
        program.post("/episodic/store", {**said, "agent_id": "p"})
    asked = {"query": "How do we travel?", "agent_id": "p"}
    bound = client_of(owner, subject="ada").post("/episodic/search", asked)
    assert [each["user_id"] for each in bound.data["results"]] == ["ada"]
    assert client_of(stranger).post("/episodic/search", asked).data["results"] == []
