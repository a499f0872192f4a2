"""Add messages: validate them, file them verbatim, extract memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self
from uuid import uuid4

from django.utils import timezone

from language.transcripts import Turn
from palace.knowledge.facts.fact_learning import remember
from palace.knowledge.facts.ingestion_options import ExtractionOptions
from palace.models import Drawer, Palace
from palace.sdk import arguments, shown
from palace.sdk.arguments import Messages, Moment
from palace.sdk.results import AddResults
from palace.sdk.scope import BY, CallScope
from palace.tasks import enqueue_mining


@dataclass(frozen=True, slots=True)
class IngestionRequest:
    """
    Attributes:
        name: Makes the call idempotent: repeated under the same name, it files nothing twice and
            extracts only what is missing. Also the conversation's id if there is no run.
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
        """Validate the arguments of `Memory.add`.

        Raises:
            BadInput: an argument cannot be stored; BadFilter.
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


def add(palace: Palace, request: IngestionRequest) -> AddResults:
    """Implements `Memory.add` for a palace; call it outside of a transaction."""
    lines = remember(
        palace,
        request.turns,
        agent=request.scope.agent,
        run=request.scope.run,
        conversation=request.name,
        metadata=request.metadata,
        options=request.options,
        source=BY,
    )
    _have_mined(palace, request.turns)
    return {"results": [shown.event(line) for line in lines]}


def _have_mined(palace: Palace, turns: Sequence[Turn]) -> None:
    """Queue mining of the drawers."""
    waiting = Drawer.objects.within(palace).unmined().filter(source=BY)
    ids = [turn.external_id for turn in turns]
    room = waiting.filter(external_id__in=ids).values_list("room_id", flat=True).first()
    if room is not None:
        enqueue_mining([room])
