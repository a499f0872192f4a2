"""Adding: what a program tells, checked, kept word by word, and read for memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self
from uuid import uuid4

from django.utils import timezone

from language.transcripts import Turn
from palace.knowledge.facts.remember import remember
from palace.knowledge.facts.scope import ExtractionOptions
from palace.models import Drawer, Palace
from palace.sdk import arguments, shown
from palace.sdk.arguments import Messages, Moment
from palace.sdk.results import AddResults
from palace.sdk.scope import BY, CallScope
from palace.tasks import enqueue_mining


@dataclass(frozen=True, slots=True)
class Told:
    """
    Attributes:
        name: Told again under the same name, messages are filed once, and what was not read of
            them is read; it is also their conversation's, where no run is named.
    """

    scope: CallScope
    name: str
    turns: Sequence[Turn]
    metadata: Mapping[str, Any]
    options: ExtractionOptions

    @classmethod
    def read(
        cls,
        scope: CallScope,
        messages: Messages,
        *,
        metadata: Mapping[str, Any] | None = None,
        filters: Mapping[str, Any] | None = None,
        prompt: str | None = None,
        judging_prompt: str | None = None,
        timestamp: Moment | None = None,
        name: str = "",
    ) -> Self:
        """Arguments as `Memory.add`.

        Raises:
            BadInput: something cannot be kept; BadFilter.
        """
        said_at = arguments.moment_of("timestamp", timestamp) or timezone.now()
        name = name or str(uuid4())
        return cls(
            scope,
            name,
            arguments.turns_of(messages, said_at, name),
            arguments.metadata_of(metadata),
            arguments.manner_of(prompt, judging_prompt, filters),
        )


def add(palace: Palace, told: Told) -> AddResults:
    """`Memory.add`, in a palace; call it outside of a transaction."""
    lines = remember(
        palace,
        told.turns,
        agent=told.scope.agent,
        run=told.scope.run,
        conversation=told.name,
        metadata=told.metadata,
        options=told.options,
        source=BY,
    )
    _have_mined(palace, told.turns)
    return {"results": [shown.event(line) for line in lines]}


def _have_mined(palace: Palace, turns: Sequence[Turn]) -> None:
    """Leave the drawers to the worker."""
    waiting = Drawer.objects.within(palace).unmined().filter(source=BY)
    ids = [turn.external_id for turn in turns]
    room = waiting.filter(external_id__in=ids).values_list("room_id", flat=True).first()
    if room is not None:
        enqueue_mining([room])
