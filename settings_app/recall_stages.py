"""The stages of recall with their measured costs and gains, for the settings page.

`manage.py ablate --stages --write` measures and stores them in a file, because settings must not
import recall.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

MEASURED = Path(__file__).with_name("recall_stages.json")


@dataclass(frozen=True, slots=True)
class StageShown:
    """
    Attributes:
        is_on: Whether the default recipe has it.
        ms: What it adds to a recall, in milliseconds; None if it was not measured.
        points: What it adds to the share of the messages found, in points of a hundred.
    """

    name: str
    help: str
    is_on: bool
    ms: float | None = None
    points: float | None = None

    @property
    def costs(self) -> str:
        """Milliseconds; what is measured as less than one is no more than the measuring is off."""
        if self.ms is None:
            return ""
        return f"{self.ms:.0f}" if self.ms >= 1 else "under 1"

    @property
    def gives(self) -> str:
        """Points; a minus is one that is printed as such."""
        return "" if self.points is None else f"{self.points:z.1f}".replace("-", "−")


@dataclass(frozen=True, slots=True)
class Measured:
    """
    Attributes:
        questions: How many were asked.
        ms: The median recall with all stages that are on.
    """

    questions: int
    ms: float
    stages: tuple[StageShown, ...]


@cache
def measured_stages() -> Measured:
    found = json.loads(MEASURED.read_text(encoding="utf-8"))
    stages = (
        StageShown(row["name"], row["help"], row["on"], row.get("ms"), row.get("points"))
        for row in found["stages"]
    )
    return Measured(found["questions"], found["ms"], tuple(stages))
