"""Turn and Transcript: what mining takes, from any source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

Role = Literal["user", "assistant", "system", "tool"]
ROLES: tuple[Role, ...] = ("user", "assistant", "system", "tool")


@dataclass(frozen=True, slots=True)
class Turn:
    """One message, to the byte.

    Attributes:
        external_id: Its id within its conversation; the same message always has the same one.
        speaker: Who said it, by name; empty where only the role is known.
        said_at: Aware time of speaking.
        metadata: What its source wants kept beside it, as JSON can write it.
        only_for: The one agent that may find it; empty: every agent.
    """

    external_id: str
    role: Role
    text: str
    said_at: datetime
    speaker: str = ""
    metadata: Mapping[str, Any] | None = None
    only_for: str = ""


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation in the order it was held.

    Attributes:
        source: Who brings it: `chat`, `chatgpt`, `claude`, `plain` …
        external_id: The conversation's id at that source.
        title: What the source calls it; may be empty.
        agent: The named agent that took part, where there was one.
        project: The project it belongs to, by name or by the path of its folder; its room gets the
            wing of that project.
        is_request: Its messages' ids are those of one request of a program. One that was deleted
            for good is not stored again: the request was repeated.
    """

    source: str
    external_id: str
    title: str
    turns: tuple[Turn, ...]
    agent: str = ""
    project: str = ""
    is_request: bool = False
