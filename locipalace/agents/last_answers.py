"""What Loci said of itself last: its tools, its prompts, and how it speaks MCP.

Assistants ask that once, when they start. With the last answer, one that starts before Loci does
has its tools once Loci runs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from locipalace import place

ASKED_ONCE = {
    "initialize",
    "server/discover",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
}


def keep(request: Mapping[str, Any], version: str, result: Any) -> None:
    """
    Args:
        version: The revision of MCP that the answer is in, or that was asked for.
    """
    if request["method"] not in ASKED_ONCE:
        return
    kept = _read()
    if kept.get(_name(request, version)) != result:
        _write({**kept, _name(request, version): result})


def last(request: Mapping[str, Any], version: str) -> Any:
    """The result of the same request; None if there was none, or it is not asked only once."""
    return _read().get(_name(request, version)) if request["method"] in ASKED_ONCE else None


def _name(request: Mapping[str, Any], version: str) -> str:
    return f"{request['method']} {version}"


def _path() -> Path:
    return place.home() / "mcp-answers.json"


def _read() -> dict[str, Any]:
    # It saves a restart of the assistant, and nothing else: without the file all works.
    with suppress(OSError, ValueError):
        kept = json.loads(_path().read_text(encoding="utf-8"))
        return kept if isinstance(kept, dict) else {}
    return {}


def _write(answers: dict[str, Any]) -> None:
    aside = _path().with_name(f".{_path().name}.{os.getpid()}")
    with suppress(OSError):
        aside.write_text(json.dumps(answers), encoding="utf-8")
        aside.replace(_path())
