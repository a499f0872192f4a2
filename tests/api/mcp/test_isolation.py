"""Every tool, resource and prompt, asked by a stranger and by a key for another palace.

One that has no case here fails the first test.
"""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import User

from api.mcp import prompts, resources
from api.mcp.registry import Caller, Tool, ToolRequest, ToolResponse
from api.mcp.server import BROKEN, call
from api.mcp.tools import TOOLS
from api.rest.problems import Problem
from language.transcripts import Transcript, Turn
from llm import request_admission
from palace.knowledge.episodes.episode_store import store_episode
from palace.mining.pipeline import mine_at_once
from palace.models import Drawer, Fact, Palace
from palace.sdk import Memory
from palace.working.entries import set_entry
from palace.working.redis_keys import Namespace
from settings_app.api_keys import issue
from tests.conversations import START
from tests.factories import rows_of_palace

WORD = "Goffriller"
SAID = f"I live in Lisbon. My sister Ada plays a cello by {WORD}."

# What a tool is asked for that holds the word, and whether it names something by an id of ours.
CASES = {
    "remember": lambda drawer: ({"messages": [{"content": "Taken"}]}, False),
    "save_memory": lambda drawer: ({"content": "Taken"}, False),
    "recall": lambda drawer: ({"query": WORD}, False),
    "search": lambda drawer: ({"query": WORD}, False),
    "get_drawer": lambda drawer: ({"id": str(drawer.uuid)}, True),
    "search_episodes": lambda drawer: ({}, False),
    "list_wings": lambda drawer: ({}, False),
    "timeline": lambda drawer: ({"entity": "Lisbon"}, True),
    "facts_as_of": lambda drawer: ({}, False),
    "list_categories": lambda drawer: ({}, False),
    "update_fact": lambda drawer: ({"id": str(fact(drawer).memory), "text": "Taken"}, True),
    "delete_fact": lambda drawer: (
        {"id": str(fact(drawer).memory), "confirm": fact(drawer).text},
        True,
    ),
    "save_to_working_memory": lambda drawer: ({"key": "other", "data": "Taken"}, False),
    "get_from_working_memory": lambda drawer: ({"key": "notes"}, True),
    "list_working_memory": lambda drawer: ({}, False),
    "search_working_memory": lambda drawer: ({"query": WORD}, False),
}
RESOURCES = {
    "loci://wings{?user_id}": lambda drawer: "loci://wings?user_id=ada",
    "loci://wing/{uuid}": lambda drawer: f"loci://wing/{drawer.room.wing.uuid}",
    "loci://drawer/{uuid}": lambda drawer: f"loci://drawer/{drawer.uuid}",
}
PROMPTS = {"what_do_you_know_about": {"subject": WORD}, "catch_me_up": {}}


def fact(drawer):
    return Fact.objects.within(drawer.palace).active().get(predicate="lives_in")


@pytest.fixture
def owner(db):
    return User.objects.create_user("owner")


@pytest.fixture
def drawer(owner):
    """Said in the palace of one whom the owner serves."""
    palace = Palace.objects.create(owner=owner, subject="ada")
    turn = Turn("1", "user", SAID, START)
    [drawer] = mine_at_once(palace, Transcript("plain", "one", "", (turn,)), seconds=30).drawers
    store_episode(palace, conversation="one", summary=f"About a {WORD}.")
    set_entry(palace, Namespace.read("session/mcp"), "notes", f"{WORD} notes")
    return Drawer.objects.with_place().get(pk=drawer.pk)


def caller(user, subject=None):
    key, _ = issue(user, "an assistant", scopes=["read", "write"], subject=subject)
    return Caller(key)


def everything_of(palace):
    """Every row of a palace but what recall writes down of itself, and its working memory."""
    rows = rows_of_palace(palace, without={"RecollectionTrace"})
    own = Caller.at_home(palace.owner, palace.subject)
    return rows, call(TOOLS["list_working_memory"], own, {}).structured_content["entries"][0][
        "value"
    ]


def test_everything_there_is_has_a_case():
    assert set(CASES) == set(TOOLS)
    assert set(RESOURCES) == {each.uri_template for each in resources.TEMPLATES}
    assert [each.uri for each in resources.LISTED] == ["loci://wings"]
    assert set(PROMPTS) == {each.name for each in prompts.shown()}


@pytest.mark.django_db
def test_a_stranger_and_a_key_for_another_palace_get_nothing_and_change_nothing(drawer, owner):
    stranger = User.objects.create_user("stranger")
    before = everything_of(drawer.palace)
    for name, case in CASES.items():
        arguments, by_id = case(drawer)
        for someone in (caller(stranger), caller(owner, subject="ben")):
            own = call(TOOLS[name], someone, arguments)
            assert bool(own.is_error) == by_id, (name, own)
            assert own.is_error is False or own.meta["problem"]["status"] == 404
            if name != "timeline":  # It says again what was asked for.
                assert not any(word in own.model_dump_json() for word in (WORD, "Lisbon"))
        named = call(TOOLS[name], caller(stranger), {**arguments, "user_id": "ada"})
        assert bool(named.is_error) == by_id, (name, named)
        closed = call(TOOLS[name], caller(owner, subject="ben"), {**arguments, "user_id": "ada"})
        assert closed.meta["problem"]["code"] == "wrong_palace"
    assert everything_of(drawer.palace) == before


@pytest.mark.django_db
def test_the_owner_gets_there(drawer, owner):
    for name, case in CASES.items():
        arguments, _ = case(drawer)
        done = call(TOOLS[name], caller(owner), {**arguments, "user_id": "ada"})
        assert not done.is_error, (name, done)
        assert done.content[0].text != json.dumps({}), name


@pytest.mark.django_db
def test_resources_and_prompts_are_ones_own(drawer, owner):
    stranger = User.objects.create_user("stranger")
    for template, address in RESOURCES.items():
        uri = address(drawer)
        assert resources.read(caller(owner), uri).text
        for someone in (caller(stranger), caller(owner, subject="ben")):
            if template.startswith("loci://wings"):
                answered = refused_or_read(someone, uri)
                assert answered in ("wrong_palace", '{"wings":[],"total":0}')
            else:
                assert refused_or_read(someone, uri) == "no_such_resource"
    for name, given in PROMPTS.items():
        for someone in (caller(stranger), caller(owner, subject="ben"), caller(owner)):
            filled = prompts.fill(someone, name, given).messages[0].content.text
            assert "cello" not in filled
            assert "About a" not in filled
        ours = prompts.fill(caller(owner), name, {**given, "user_id": "ada"})
        word = "About a" if name == "catch_me_up" else "cello"
        assert word in ours.messages[0].content.text
    drawer.trash()
    assert refused_or_read(caller(owner), f"loci://drawer/{drawer.uuid}") == "no_such_resource"


def refused_or_read(someone, uri):
    try:
        return resources.read(someone, uri).text
    except Problem as problem:
        return problem.code


@pytest.mark.django_db
def test_a_fact_is_not_deleted_by_mistake(drawer, owner):
    held = fact(drawer)
    given = {"id": str(held.memory), "confirm": "User lives in Porto", "user_id": "ada"}
    refused = call(TOOLS["delete_fact"], caller(owner), given)
    assert refused.meta["problem"]["code"] == "not_confirmed"
    assert held.text in refused.content[0].text
    assert fact(drawer) == held


class Anything(ToolRequest):
    pass


@pytest.mark.django_db
def test_an_error_reveals_nothing_of_itself(owner, caplog):
    def breaks(caller: Caller, asked: Anything) -> ToolResponse:
        raise RuntimeError(WORD)

    tool = Tool("Break", "write", Anything, breaks, TOOLS["remember"].shown)
    broken = call(tool, caller(owner), {})
    assert broken.is_error
    assert broken.content[0].text == BROKEN
    assert WORD not in broken.model_dump_json()
    assert WORD in caplog.text


@pytest.mark.django_db
@pytest.mark.parametrize("asked", [{}, {"query": "train"}])
def test_an_agents_episodes_are_found_across_the_people_of_the_key(owner, asked):
    stranger = User.objects.create_user("stranger")
    for someone, user in ((owner, "ada"), (owner, "ben"), (stranger, "ada")):
        for agent in ("guide", "cook"):
            Memory(someone).episodes(user_id=user).store("1", f"A train, {agent}.", agent_id=agent)

    def found(caller, **arguments):
        answer = call(TOOLS["search_episodes"], caller, {**asked, **arguments})
        episodes = answer.structured_content["episodes"]
        assert {each["similarity"] is None for each in episodes} == {not asked}
        return {(each["user_id"], each["summary"]) for each in episodes}

    guide = {("ada", "A train, guide."), ("ben", "A train, guide.")}
    ada = {each for each in guide if each[0] == "ada"}
    assert found(caller(owner), agent_id="guide") == guide
    assert found(caller(owner), agent_id="guide", user_id="ada") == ada
    assert found(caller(owner, subject="ada"), agent_id="guide") == ada
    assert len(found(caller(owner), user_id="ada")) == 2


@pytest.mark.django_db
def test_a_key_that_only_writes_does_not_read_what_was_known(drawer, owner):
    key, _ = issue(owner, "a writer", scopes=["write"], subject="ada")
    known = fact(drawer)
    said = {"messages": [{"content": SAID}], "conversation_id": "one"}
    kept = call(TOOLS["remember"], Caller(key), said)
    assert not kept.is_error, kept
    assert kept.structured_content["facts"] == []
    for tool, arguments in (
        ("update_fact", {"text": "User lives in Faro"}),
        ("delete_fact", {"confirm": "What was it again?"}),
    ):
        refused = call(TOOLS[tool], Caller(key), {"id": str(known.memory), **arguments})
        assert refused.meta["problem"]["code"] == "missing_scope"
        assert known.text not in refused.model_dump_json()


@pytest.mark.django_db
def test_a_tool_that_is_called_while_too_many_wait_asks_to_come_again(owner, monkeypatch):
    monkeypatch.setattr(request_admission, "MOST_WAITING", 0)
    refused = call(TOOLS["recall"], caller(owner), {"query": "train"})
    assert refused.is_error
    assert refused.meta["problem"]["code"] == "too_busy"
