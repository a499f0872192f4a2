"""`manage.py ask "question"`: an answer from the palace."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone
from django.utils.formats import date_format

from chat.models import Message
from chat.prompt import (
    FAILED,
    LEAST_ALONE,
    NO_MODEL,
    NOTHING_FITS,
    QUOTE_LENGTH,
    QUOTED,
    prompt,
)
from chat.reply_writer import CONTEXT_TOKENS
from config.management.base import PalaceCommand, add_user_argument, palace_of
from language.english.grammatical_person import to_second_person
from language.errors import PalaceError
from llm import chat, sent
from llm.errors import LLMError
from llm.models import Usage
from llm.providers import Endpoint
from palace.recall import Hit, RecallRequest, Recollection, recall
from settings_app.models import MemorySettings, ModelUse, settings_of
from settings_app.time_zone import zone_named

# The facts that are shown where no model answers.
FACTS = 3


class Command(PalaceCommand):
    help = "Answer a question from the palace: by your model, or with quotes if there is none."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("question", metavar="QUESTION")
        add_user_argument(parser)
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")

    def handle(self, *, question: str, user: str, subject: str, **options: Any) -> None:
        palace = palace_of(user, subject)
        chosen = settings_of(palace.owner_id)
        timezone.activate(zone_named(chosen.time_zone))
        now = chosen.local_now()
        request = RecallRequest(question, now=now, budget_tokens=CONTEXT_TOKENS, with_facts=True)
        try:
            found = recall(palace, request)
        except PalaceError as error:
            raise CommandError(str(error)) from error
        answer, note = self._answer(question, chosen, found)
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(answer, note, found), ensure_ascii=False))
            return
        # Without a fact before them, quotes need no empty line at first.
        self.stdout.write(answer or "\n".join(_quotes(found)).lstrip("\n"))
        if note:
            self.stderr.write(note)

    def _answer(
        self, question: str, chosen: MemorySettings, found: Recollection
    ) -> tuple[str, str]:
        """The model's answer, empty if none answered; and a note about that."""
        try:
            endpoint = chosen.endpoint_for(ModelUse.REPLIES)
            if endpoint is None:
                return "", NO_MODEL
            return _asked(endpoint, question, chosen, found), ""
        except LLMError as error:
            return "", f"{FAILED} {error}"


def _asked(endpoint: Endpoint, question: str, chosen: MemorySettings, found: Recollection) -> str:
    messages = prompt(
        None, found.context, [Message(role="user", text=question)], chosen.local_now()
    )
    with sent.made_of([f"{sent.INSTRUCTIONS}:chat", *found.references]):
        return chat.complete(
            messages,
            endpoint=endpoint,
            purpose=Usage.Purpose.CHAT,
            owner_id=chosen.owner_id,
            temperature=None,
        ).text


def _quotes(found: Recollection) -> Iterator[str]:
    hits = _informative(found)
    facts = [known for known in found.facts if hits or known.score >= LEAST_ALONE]
    if not hits and not facts:
        yield NOTHING_FITS
    for known in facts[:FACTS]:
        yield f"{to_second_person(known.text)} {known.dates}".rstrip()
    for hit in hits:
        drawer = hit.drawer
        who = drawer.speaker or {"user": "You", "assistant": "Assistant"}.get(drawer.role, "")
        said = date_format(timezone.localtime(drawer.said_at), "j F Y")
        yield f"\n“{_passage(hit)}”\n  {who}, {said} [{hit.pointer}]"


def _informative(found: Recollection) -> list[Hit]:
    return [hit for hit in found.hits if hit.is_informative][:QUOTED]


def _passage(hit: Hit) -> str:
    start, end = hit.passage
    text = " ".join(hit.drawer.text[start:end].split())
    return text if len(text) <= QUOTE_LENGTH else f"{text[:QUOTE_LENGTH].rsplit(None, 1)[0]} …"


def _as_json(answer: str, note: str, found: Recollection) -> dict[str, Any]:
    return {
        "answer": answer or None,
        "note": note or None,
        "facts": [{"text": known.text, "dates": known.dates} for known in found.facts],
        "quotes": [
            {
                "text": hit.drawer.text,
                "pointer": str(hit.pointer),
                "speaker": hit.drawer.speaker,
                "role": hit.drawer.role,
                "said_at": hit.drawer.said_at.isoformat(),
            }
            for hit in _informative(found)
        ],
        "recollection": str(found.uuid),
    }
