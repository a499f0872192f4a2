"""Conversations as lines of a spool, from which a job files."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from language.transcripts import Transcript, Turn
from palace.errors import BadImport
from palace.transfer.importers.conversation import Conversation


def to_line(conversation: Conversation) -> bytes:
    fields = {
        "transcripts": [_transcript_fields(each) for each in conversation.transcripts],
        "skipped": conversation.skipped,
        "left_out": conversation.left_out,
    }
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


def from_line(line: bytes) -> Conversation:
    """
    Raises:
        BadImport: The line is not one that `to_line` wrote; a half-written one, for example.
    """
    try:
        fields = json.loads(line)
        first, *branches = [_transcript(each) for each in fields["transcripts"]]
        return Conversation(
            first,
            skipped=tuple((reason, count) for reason, count in fields["skipped"]),
            branches=tuple(branches),
            left_out=tuple((what, count) for what, count in fields["left_out"]),
        )
    except (ValueError, TypeError, LookupError) as error:
        raise BadImport("The prepared copy of the file is damaged; import it again.") from error


def _transcript_fields(transcript: Transcript) -> dict[str, Any]:
    return {
        "source": transcript.source,
        "id": transcript.external_id,
        "title": transcript.title,
        "agent": transcript.agent,
        "turns": [
            (
                *(turn.external_id, turn.role, turn.text),
                *(turn.said_at.isoformat(), turn.speaker, turn.metadata),
            )
            for turn in transcript.turns
        ],
    }


def _transcript(fields: dict[str, Any]) -> Transcript:
    turns = tuple(
        Turn(external_id, role, text, datetime.fromisoformat(said_at), speaker, *metadata)
        # Spools of earlier versions have no metadata.
        for external_id, role, text, said_at, speaker, *metadata in fields["turns"]
    )
    return Transcript(fields["source"], fields["id"], fields["title"], turns, fields["agent"])
