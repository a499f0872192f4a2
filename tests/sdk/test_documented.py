"""docs/sdk.md names everything there is, and its programs run."""

from __future__ import annotations

import inspect
import re

import pytest

from palace import sdk
from palace.facts.filters import FIELDS, OPERATORS
from palace.indexing.vector_index import VectorIndex
from palace.sdk import HistoryRecord, Memory, MemoryEvent, MemoryItem
from tests.config.conftest import PROJECT

PAGE = (PROJECT / "docs" / "sdk.md").read_text()
METHODS = [name for name, _ in inspect.getmembers(Memory, inspect.isfunction) if name[0] != "_"]
SEAM = [name for name, _ in inspect.getmembers(VectorIndex, inspect.isfunction) if name[0] != "_"]
KEYS = {*MemoryItem.__annotations__, *MemoryEvent.__annotations__, *HistoryRecord.__annotations__}


@pytest.mark.parametrize("name", [*sdk.__all__, *SEAM, *sorted(KEYS), *FIELDS, *OPERATORS])
def test_every_name_is_documented(name):
    assert f"`{name}`" in PAGE


@pytest.mark.parametrize("name", METHODS)
def test_every_call_is_documented_with_its_arguments(name):
    [told] = re.findall(rf"^- \*\*`{name}\((.*?)\)`\*\*", PAGE, re.MULTILINE)
    names = [part.partition("=")[0].strip() for part in told.split(",")]
    arguments = list(inspect.signature(getattr(Memory, name)).parameters)[1:]
    assert [part for part in names if part not in {"", "*"}] == arguments


def test_errors_are_documented_with_their_codes():
    for name in sdk.__all__:
        kind = getattr(sdk, name)
        if inspect.isclass(kind) and issubclass(kind, sdk.PalaceError) and "code" in vars(kind):
            assert kind in {sdk.PalaceError, sdk.LLMError} or f"`{name}` | `{kind.code}`" in PAGE


def test_the_first_program_does_what_it_shows(db):
    [program] = re.findall(r"```python\n(from palace.sdk import Memory\n.*?)```", PAGE, re.DOTALL)[
        :1
    ]
    told = {}
    exec(program.replace("memory.search", "found = memory.search"), told)  # noqa: S102
    assert any("walnuts" in item["memory"] for item in told["found"]["results"])
