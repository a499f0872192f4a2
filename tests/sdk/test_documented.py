"""docs/sdk.md names everything there is, and its programs run."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re

import pytest

from palace import sdk
from palace.knowledge.facts.filters import FIELDS, OPERATORS
from palace.sdk import (
    EntryItem,
    EpisodeItem,
    HistoryRecord,
    KeptWords,
    Memory,
    MemoryEvent,
    MemoryItem,
    UpdatedItem,
)
from palace.sdk.episodes import EpisodicMemory
from palace.sdk.working import ConversationMemory, WorkingMemory
from palace.storage.indexing.fact_vectors import VectorIndex
from tests.config.conftest import PROJECT

PAGE = (PROJECT / "docs" / "sdk.md").read_text()
RESULTS = (
    MemoryItem,
    UpdatedItem,
    KeptWords,
    MemoryEvent,
    HistoryRecord,
    EntryItem,
    EpisodeItem,
)
KEYS = {name for result in RESULTS for name in result.__annotations__}


def methods_of(kind):
    return [name for name, _ in inspect.getmembers(kind, inspect.isfunction) if name[0] != "_"]


METHODS, SEAM = methods_of(Memory), methods_of(VectorIndex)
HANDLES = {"working": WorkingMemory, "talk": ConversationMemory, "episodes": EpisodicMemory}
OF_HANDLES = [(name, call) for name, kind in HANDLES.items() for call in methods_of(kind)]


@pytest.mark.parametrize("name", [*sdk.__all__, *SEAM, *sorted(KEYS), *FIELDS, *OPERATORS])
def test_every_name_is_documented(name):
    assert f"`{name}`" in PAGE


@pytest.mark.parametrize("name", METHODS)
def test_every_call_is_documented_with_its_arguments(name):
    [documented] = re.findall(rf"^- \*\*`{name}\((.*?)\)`\*\*", PAGE, re.MULTILINE)
    assert named_in(documented) == arguments_of(getattr(Memory, name))


@pytest.mark.parametrize(("handle", "name"), OF_HANDLES)
def test_every_call_of_a_handle_is_documented_with_its_arguments(handle, name):
    [documented] = re.findall(rf"^\| .*`{handle}\.{name}\((.*?)\)`.* \|", PAGE, re.MULTILINE)
    assert named_in(documented) == arguments_of(getattr(HANDLES[handle], name))


def named_in(documented):
    names = [part.partition("=")[0].strip() for part in documented.replace("()", "").split(",")]
    return [part for part in names if part not in {"", "*"}]


def arguments_of(method):
    return list(inspect.signature(method).parameters)[1:]


def test_errors_are_documented_with_their_codes():
    for name in sdk.__all__:
        kind = getattr(sdk, name)
        if inspect.isclass(kind) and issubclass(kind, sdk.PalaceError) and "code" in vars(kind):
            assert kind in {sdk.PalaceError, sdk.LLMError} or f"`{name}` | `{kind.code}`" in PAGE


def test_the_first_program_does_what_it_shows(db):
    program = programs()[0]
    documented = {}
    exec(program.replace("memory.search", "found = memory.search"), documented)  # noqa: S102
    assert any("walnuts" in item["memory"] for item in documented["found"]["results"])


def test_the_program_of_working_memory_does_what_it_shows(db):
    [program] = [program for program in programs() if ".working(" in program]
    documented = {}
    exec(program.replace("working.search", "found = working.search"), documented)  # noqa: S102
    assert [one["key"] for one in documented["found"]] == ["session/abc/emails_inbox"]
    assert documented["talk"].get() == {"open": ["invoice"], "step": 3}


PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("program", PROGRAMS[1:], ids=[text[:40] for text in PROGRAMS[1:]])
def test_every_program_runs(program, model_server, monkeypatch, tmp_path):
    """Each as if the first one had run before it, with a language model of ours as OpenAI."""
    pytest.importorskip("faiss", reason="FAISS comes with the extra `faiss`.")
    model_server.answer('{"facts": []}')
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    monkeypatch.setenv("OPENAI_BASE_URL", model_server.base_url)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(PROGRAMS[0], names)  # noqa: S102
    code = compile(program, "docs/sdk.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    running = eval(code, names)  # noqa: S307
    if inspect.iscoroutine(running):
        asyncio.run(running)
    elif "from_config" in program or "open_vector_store" in program:
        names["memory"].add("I like tea.", user_id="alice")
        names["memory"].search("tea", user_id="alice")
        assert list((tmp_path / "vectors").rglob("*.faiss"))


def programs():
    return re.findall(r"```python\n(from locipalace.sdk import Memory\n.*?)```", PAGE, re.DOTALL)
