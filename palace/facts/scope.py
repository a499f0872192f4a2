"""Who a fact is remembered for: everybody who speaks for the palace, or one agent, or one run."""

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
