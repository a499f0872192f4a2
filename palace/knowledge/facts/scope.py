"""Who a fact is remembered for: everybody, or one agent, or one run; and how it is come by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Scope:
    """What facts are kept with, and judged beside: those of the same agent and run only.

    Attributes:
        by: Who remembers: mining, api, sdk, person …; for the history.
        metadata: The caller's own, kept with each fact that is made.
    """

    by: str
    agent: str = ""
    run: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExtractionOptions:
    """How messages are read and judged, where whoever tells them has it otherwise.

    Attributes:
        prompt: What a model is told to look for, in place of our own instructions.
        judging_prompt: How a model is told to judge, in place of our own instructions.
        filters: Of what is known, only what meets them is judged beside; as
            `palace.knowledge.facts.filters` has them, in what JSON can write.
    """

    prompt: str = ""
    judging_prompt: str = ""
    filters: Mapping[str, Any] | None = None


DEFAULT_OPTIONS = ExtractionOptions()
