"""A palace, and statements about it as an extractor would find them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from django.db import transaction

from language.facts import Candidate, Thing, Words
from language.transcripts import Transcript, Turn
from palace.knowledge.facts.fact_extraction import Scope
from palace.knowledge.facts.fact_writer import Writer
from palace.knowledge.facts.judge import Judge
from palace.models import Drawer
from palace.storage.indexing.fact_vectors import embed_texts, fill_missing
from palace.storage.indexing.spaces import active_space
from palace.storage.transcript_filing import file_transcript

LONG_AGO = datetime(2024, 1, 10, 9, 0, tzinfo=UTC)


def said(palace, text, at=LONG_AGO):
    """A drawer with these words."""
    turn = Turn(str(uuid4()), "user", text, at)
    file_transcript(palace, Transcript("plain", str(uuid4()), "", (turn,)))
    return Drawer.objects.get(palace=palace, external_id=turn.external_id)


def statement(text, predicate="lives_in", object="", subject="User", **more):
    return Candidate(
        type=more.pop("type", "fact"),
        subject=Thing(subject, more.pop("kind", "person")),
        predicate=predicate,
        object=object or text.rpartition(" ")[2],
        text=text,
        words=(Words(0, 0, 5),),
        **more,
    )


@pytest.fixture
def tell(palace):
    """Judge a statement and write it down, as said at a moment; returns what became of it."""

    def tell(candidate, at=LONG_AGO, scope=None, words="These are the words."):
        scope, space = scope or Scope("mining"), active_space()
        drawer = said(palace, words, at)
        [vector] = embed_texts(palace, space, [candidate.text])
        judge = Judge(palace, space, scope, None)
        with transaction.atomic():
            palace.lock()
            writer = Writer(palace, space, scope, [drawer])
            line = writer.write(judge.judge(candidate, vector), candidate.text, vector)
        if line and line.fact:
            fill_missing(palace, space, [line.fact])
        return line

    return tell


@pytest.fixture
def model(settings, model_server):
    settings.LLM_PROVIDER = model_server.base_url
    settings.LLM_MODEL = "small-model"
    settings.LLM_API_KEY = "a-key"
    settings.LLM_MAX_RETRIES = 0
    settings.LLM_TIMEOUT_S = 1
    return model_server


def facts_answer(*facts):
    return json.dumps({"facts": list(facts)})


def judgements_answer(*judgements):
    return json.dumps({"judgements": list(judgements)})
