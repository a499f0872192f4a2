"""The same life in this process, on a server, and awaited there: it comes to the same."""

from __future__ import annotations

import difflib
import inspect
import json
import re
from datetime import UTC, date, datetime
from typing import get_type_hints

import pytest

import locipalace.client
import palace.sdk
from locipalace.client import results
from palace.sdk import results as embedded_results

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)")
TALK = [
    {"role": "user", "content": "User lives in NYC. I have a cat called Miso."},
    {"role": "assistant", "content": "What a nice name. 🐈"},
    {"role": "user", "content": "User likes Python.", "name": "Nora"},
]


def alike(answers):
    """Ids numbered by when they are first met, times by name only, scores as far as they agree."""
    numbers = {}

    def number(match):
        return f"id {numbers.setdefault(match[0], len(numbers))}"

    text = json.dumps(answers, ensure_ascii=False, indent=1, default=str)
    text = re.sub(r"(\d\.\d{4})\d+", r"\1", text)
    text = re.sub(r"expires in \w+", "expires in a while", text)
    return TIME.sub("a time", UUID.sub(number, text))


def check_same(here, there):
    """Show the lines that differ, not all of them."""
    if lines := [*difflib.unified_diff(here.splitlines(), there.splitlines(), lineterm="")]:
        pytest.fail("\n".join(lines), pytrace=False)


def failing(call, *args, **kwargs):
    with pytest.raises((palace.sdk.PalaceError, locipalace.client.PalaceError)) as caught:
        call(*args, **kwargs)
    return type(caught.value).__name__, caught.value.code


def facts(memory):
    where = {"field": "level", "operator": "in", "value": [1, 2]}
    yield memory.add(
        TALK, user_id="alice", run_id="r/1", metadata={"level": 2}, timestamp="2024-05-01"
    )
    yield memory.add("User lives in NYC", user_id="alice", agent_id="ü", timestamp=date(2024, 1, 2))
    [kept] = memory.add("I speak French.", user_id="bob / ß")["results"]
    yield memory.get(kept["id"]), memory.get("fake-id"), memory.get("..")
    yield memory.update(kept["id"], "Bob speaks French and Breton"), memory.history(kept["id"])
    yield memory.search("languages", user_id="bob / ß", limit=3)
    yield memory.search("Where?", user_id="alice", filters=where, true_at=datetime.now(UTC))
    yield memory.get_all(user_id="alice", filters={"NOT": where}, known_at=datetime.now(UTC))
    yield memory.get_all(user_id="alice", run_id="r/1"), memory.get_all(user_id="nobody")
    yield memory.delete(kept["id"]), memory.get(kept["id"]), memory.history(kept["id"])
    yield memory.delete_all(user_id="alice", agent_id="ü"), memory.delete_all(user_id="alice")
    yield memory.reset(), memory.history(kept["id"])


def refused_facts(memory):
    alice = {"user_id": "alice"}
    unknown = "7c7b1d5e-9d4c-4d53-9ad6-0e3a3f1c0f2b"
    memory.add("hello", **alice)
    yield failing(memory.add, "hello"), failing(memory.get_all), failing(memory.delete_all)
    yield failing(memory.search, "Who?", user_id=" "), failing(memory.add, "hello", user_id=7)
    yield failing(memory.search, "  ", **alice), failing(memory.search, "Who?", limit=0, **alice)
    yield failing(memory.update, unknown, "text"), failing(memory.delete, "fake-id")
    yield memory.history(unknown), failing(memory.update, unknown, " ")
    yield failing(memory.add, [{"role": "nobody", "content": "hello"}], **alice)
    yield failing(memory.add, "half \ud83d", **alice), failing(memory.add, "NUL \0", **alice)
    yield failing(memory.add, "hello", metadata={"f": float("nan")}, **alice)
    yield failing(memory.add, "hello", metadata={"f": object()}, **alice)
    yield failing(memory.add, "hello", metadata={1: 2}, **alice)
    yield failing(memory.add, "hello", metadata=["a list"], **alice)
    yield failing(memory.add, "hello", timestamp="some day", **alice)
    yield failing(memory.get_all, true_at=7, **alice)
    yield failing(memory.get_all, filters={"field": "tags"}, **alice)
    yield failing(memory.search, "Who?", filters=["a list"], **alice)


def working(memory):
    own = memory.working("session/ä b", user_id="alice")
    yield own.set("mails/new", "12 unread\n", category="email/work", tags=["inbox", "new"])
    yield (
        own.set("last", "", ttl_seconds=60),
        memory.working("patrol/night", user_id="alice").set("a", "Nora"),
    )
    yield own.get("mails/new"), own.get("patrol/night/a"), own.get("none"), own.list(), own.list("")
    yield (
        own.search("unread"),
        own.search("Nora", prefix=""),
        own.search(category="email", tags=["new"], limit=1),
    )
    yield (
        own.inventory(),
        own.delete("last"),
        own.delete("last"),
        memory.working("session/none").list(),
    )
    talk = memory.conversation("42 ü", user_id="alice")
    yield (
        talk.get(),
        talk.put({"step": 3, "open": ["a", {"b": None}], "näme": "ß"}, ttl_seconds=60.5),
    )
    yield talk.get(), talk.get_field("step"), talk.get_field("none", 7), talk.get_field("none")
    yield talk.set_scratchpad("to do"), talk.get_scratchpad(), talk.get_entities()
    yield (
        talk.set_entities(["Nora"]),
        talk.get_entities(),
        memory.conversation("other").get_scratchpad(),
    )
    yield talk.delete([]), talk.delete(["step", "none"]), talk.delete(), talk.get(), talk.delete()


def refused_working(memory):
    own, talk = memory.working("session/a"), memory.conversation("42")
    yield failing(own.set, "k", 7), failing(own.set, "a//b", "v"), failing(own.set, "..", "v")
    yield failing(own.set, "k", "v", ttl_seconds=-1), failing(own.set, "k", "v", tags="text")
    yield failing(own.set, "k", "v" * 300_000), failing(own.set, "patrol/x/y", "v")
    yield failing(own.delete, "patrol/x/y"), failing(own.list, "elsewhere"), failing(own.get, "")
    yield failing(own.search, limit=0), failing(memory.working, "session")
    yield failing(memory.working, "session/a", user_id=""), failing(memory.conversation, "")
    yield failing(talk.put, {"f": object()}), failing(talk.put, {1: 2}), failing(talk.put, ["f"])
    yield failing(talk.put, {"f": "v" * 70_000}), failing(talk.put, {"scratchpad": 7})
    yield failing(talk.get_field, ""), failing(talk.delete, [""]), talk.get()


def episodes(memory):
    episodes = memory.episodes(user_id="alice")
    yield episodes.store(
        "42 ü", "We chose the night train.", key_decisions=["Night train"], agent_id="p"
    )
    yield episodes.store("42 ü", "We ate.", started_at=date(2024, 1, 1), tools=({"name": "oven"},))
    yield episodes.search("How do we travel?"), episodes.search("How?", agent_id="p", limit=1)
    yield episodes.search("What?", as_of="2024-06-01"), episodes.of_conversation("42 ü")
    yield episodes.of_conversation("none"), memory.episodes().search("What?")
    yield (
        failing(episodes.store, "42", " "),
        failing(episodes.search, " "),
        failing(episodes.search, "a", limit=0),
    )
    yield (
        failing(episodes.store, "42", "a", tools="text"),
        failing(episodes.search, "a", agent_id=" "),
    )
    yield (
        failing(episodes.store, "42", "a", started_at="some day"),
        failing(memory.episodes, user_id=7),
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize("life", [facts, refused_facts, working, refused_working, episodes])
def test_it_comes_to_the_same_wherever_the_palace_is(life, embedded, memory, awaited):
    here, there, again = (alike(list(life(each))) for each in (embedded, memory, awaited))
    check_same(here, there)
    check_same(here, again)


def signatures(kind):
    named = inspect.getmembers(kind, callable)
    return {name: inspect.signature(made) for name, made in named if name[0] != "_"}


def arguments(signature):
    return [
        (each.name, each.kind, list(each.default) if each.default == () else each.default)
        for each in signature.parameters.values()
    ]


# What a program decides in its own process; a server has decided it.
DECIDED_BY_A_SERVER = {"from_config", "open_vector_store"}
KINDS = ["Memory", "WorkingMemory", "ConversationMemory", "EpisodicMemory"]


@pytest.mark.parametrize("name", KINDS)
def test_each_call_takes_the_same_arguments(name):
    kept_in = {
        "WorkingMemory": "working",
        "ConversationMemory": "working",
        "EpisodicMemory": "episodes",
    }
    module = __import__(f"palace.sdk.{kept_in.get(name, 'memory')}", fromlist=[name])
    here = signatures(getattr(module, name))
    there = signatures(getattr(locipalace.client.memory, name))
    awaited = signatures(getattr(locipalace.client.memory, f"Async{name}"))
    assert here
    assert here.keys() - DECIDED_BY_A_SERVER <= there.keys()
    assert there.keys() == awaited.keys()
    for call in here.keys() - DECIDED_BY_A_SERVER:
        signature = here[call]
        assert arguments(there[call]) == arguments(signature), call
    for call, signature in there.items():
        assert arguments(awaited[call]) == arguments(signature), call


def test_help_says_what_a_call_brings():
    assert (
        str(inspect.signature(locipalace.client.Memory.get))
        == "(self, memory_id: 'str') -> 'MemoryItem | None'"
    )
    assert inspect.iscoroutinefunction(locipalace.client.AsyncMemory.get)


def test_the_errors_are_the_same_tree():
    for name in set(palace.sdk.__all__) - DECIDED_BY_A_SERVER:
        here, there = getattr(palace.sdk, name), getattr(locipalace.client, name)
        if not issubclass(here, Exception):
            continue
        assert there.code == here.code
        assert [kind.__name__ for kind in there.__mro__] == [kind.__name__ for kind in here.__mro__]


def test_the_results_are_the_same():
    kinds = inspect.getmembers(embedded_results, lambda each: hasattr(each, "__total__"))
    assert kinds
    for name, kind in kinds:
        there = getattr(results, name)
        assert str(get_type_hints(there)).replace("locipalace.client.", "") == (
            str(get_type_hints(kind)).replace("palace.sdk.", "")
        )
        assert there.__optional_keys__ == kind.__optional_keys__
