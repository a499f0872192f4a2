"""Extraction of facts from messages: its options, and the reader, a model or local rules.

Scope and options are stored with messages until they are read. The owner's model reads if there is
one, else the rules. A model's answers are cached, so that a restarted process does not ask again.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

import redis
from django.conf import settings
from django.core.cache import cache
from django.utils.crypto import salted_hmac
from pydantic import BaseModel

from language.english.fact_prompt import (
    MOST_FACTS,
    SHOWN_CHARS,
    FactsAnswer,
    checked,
    messages,
    quoted,
)
from language.english.facts.fact_reading import read_facts
from language.facts import SURE, USER, Candidate
from language.slugs import slug_of
from language.transcripts import Turn
from llm import chat, sent
from llm.chat import Message
from llm.errors import LLMError
from llm.models import Usage
from llm.providers import Endpoint
from llm.tokens import count_tokens
from palace.models import Drawer, Entity, Fact, Palace, Telling
from settings_app.models import ModelUse, settings_of

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer", bound=BaseModel)

# Long enough to resume killed work, and no longer: answers are private.
KEPT_S = 3600
MOST_TOKENS = 4000
# The name, in the record of what was sent, of instructions that a caller gave instead of ours.
OF_THE_CALLER = "caller"
# The last memories that an extraction prompt has, as many as fit in these tokens.
MEMORIES, MEMORIES_TOKENS = 10, 240
# Names that are looked up for them.
MOST_NAMES = 200
_NAME = re.compile(r"[^\W\d_]*[A-ZÀ-ÖØ-Þ][\w'-]*(?: [A-ZÀ-ÖØ-Þ][\w'-]*)?")
BY_RULES = "Facts were found without the language model."


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose facts these are; facts are judged only against those of the same agent and run.

    Attributes:
        by: Who stores them, for the history: mining, api, sdk, person …
        metadata: The caller's own, stored with each new fact.
    """

    by: str
    agent: str = ""
    run: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExtractionOptions:
    """How messages are read and judged, where the caller overrides the defaults.

    Attributes:
        prompt: Replaces our instructions for extraction by a model.
        judging_prompt: Replaces our instructions for judging by a model.
        filters: Judge only against known facts that match; in the JSON form that
            `palace.knowledge.facts.filters` reads.
    """

    prompt: str = ""
    judging_prompt: str = ""
    filters: Mapping[str, Any] | None = None


DEFAULT_OPTIONS = ExtractionOptions()
ScopedOptions = tuple[Scope, ExtractionOptions]


def store_options(
    palace: Palace, drawers: Sequence[Drawer], scope: Scope, options: ExtractionOptions
) -> None:
    """Store scope and options of drawers; call it in the transaction that files them.

    Options stored for a drawer before stay.
    """
    rows = [
        Telling(
            palace=palace,
            drawer=drawer,
            by=scope.by,
            agent=scope.agent,
            run=scope.run,
            metadata=dict(scope.metadata),
            prompt=options.prompt,
            judging_prompt=options.judging_prompt,
            filters=options.filters,
        )
        for drawer in drawers
    ]
    Telling.objects.bulk_create(rows, ignore_conflicts=True)


def grouped_by_options(
    palace: Palace, drawers: Sequence[Drawer], default: Scope
) -> Iterator[tuple[Scope, ExtractionOptions, list[Drawer]]]:
    """Split drawers, in order, into stretches with the same scope and options.

    Args:
        default: The scope of drawers without stored options; their agent stays theirs.
    """
    rows = Telling.objects.filter(palace=palace, drawer__in=[drawer.pk for drawer in drawers])
    stored = {row.drawer_id: _read(row) for row in rows}

    def options_of(drawer: Drawer) -> ScopedOptions:
        plain = replace(default, agent=drawer.agent), DEFAULT_OPTIONS
        return stored.get(drawer.pk, plain)

    for (scope, options), stretch in groupby(drawers, options_of):
        yield scope, options, list(stretch)


def have_options(palace: Palace, drawers: Sequence[Drawer]) -> bool:
    """Whether any of the drawers has stored options, or belongs to an agent."""
    if any(drawer.agent for drawer in drawers):
        return True
    keys = [drawer.pk for drawer in drawers]
    return Telling.objects.filter(palace=palace, drawer__in=keys).exists()


def delete_options(palace: Palace, drawers: Collection[int]) -> None:
    """Delete the options of drawers; call it in the transaction that marks them as read."""
    Telling.objects.filter(palace=palace, drawer__in=drawers).delete()


def _read(row: Telling) -> ScopedOptions:
    return (
        Scope(row.by, row.agent, row.run, row.metadata),
        ExtractionOptions(row.prompt, row.judging_prompt, row.filters),
    )


def ask(
    messages: Sequence[Message],
    schema: type[Answer],
    *,
    endpoint: Endpoint,
    owner_id: int,
    purpose: str = Usage.Purpose.MEMORY_EXTRACT,
    max_tokens: int = MOST_TOKENS,
    timeout_s: float | None = None,
    max_retries: int | None = None,
    cached_as: Sequence[Message] | None = None,
) -> Answer:
    """The model's answer, or a cached one to the same question; without Redis none is cached.

    Args:
        cached_as: What counts as the question; the messages by default.
        purpose, max_tokens, timeout_s, max_retries: as `llm.chat.structured()`.

    Raises:
        LLMError: as `llm.chat.structured()`.
    """
    asking = partial(
        chat.structured,
        messages,
        schema,
        endpoint=endpoint,
        purpose=purpose,
        owner_id=owner_id,
        max_tokens=max_tokens,
        timeout_s=timeout_s,
        max_retries=max_retries,
    )
    key = _key(cached_as or messages, schema, endpoint, owner_id)
    try:
        kept = cache.get(key)
    except redis.RedisError as error:
        logger.warning("A model's answer is not cached, because Redis is away: %s", error)
        return asking()
    if kept is not None:
        return schema.model_validate_json(kept)
    answer = asking()
    with suppress(redis.RedisError):
        cache.set(key, answer.model_dump_json(), KEPT_S)
    return answer


def forget_model_answers(owner_id: int) -> None:
    """Delete the cached answers of an owner.

    Raises:
        RedisError: Redis does not answer; the answers expire within an hour.
    """
    patience = settings.REDIS_TIMEOUT_S
    with closing(redis.Redis.from_url(settings.REDIS_URL, socket_timeout=patience)) as client:
        for name in client.scan_iter(match=f"*:{_prefix(owner_id)}*", count=500):
            client.unlink(name)


def _key(
    messages: Sequence[Message], schema: type[BaseModel], endpoint: Endpoint, owner_id: int
) -> str:
    """The cache key: differs by owner, model and question, and does not reveal the messages."""
    asked = [str(owner_id), endpoint.provider, endpoint.model, schema.__name__]
    asked += [f"{message['role']} {message['content']}" for message in messages]
    question = "\0".join(f"{len(part)} {part}" for part in asked)
    digest = salted_hmac("facts asked", question, algorithm="sha256").hexdigest()
    return f"{_prefix(owner_id)}{digest}"


def _prefix(owner_id: int) -> str:
    return f"facts:{owner_id}:"


class FactReader:
    """
    Attributes:
        endpoint: The owner's model; None if there is none.
        notes: What was degraded, in sentences.
    """

    def __init__(self, palace: Palace, prompt: str = "") -> None:
        chosen = settings_of(palace.owner_id).chat_model(ModelUse.FACTS)
        self.endpoint = chosen.endpoint
        self.notes = [chosen.note] if chosen.note else []
        self._owner_id = palace.owner_id
        self._prompt = prompt

    def read(
        self, turns: Sequence[Turn], memories: Mapping[int, str] | None = None
    ) -> list[Candidate]:
        """Extract candidates, in the order of the messages.

        If the model fails, or none of its facts is usable, the local rules read instead. A note
        says so.

        Args:
            memories: What a model is told besides, as `memories_about` gives it.
        """
        if self.endpoint is None:
            return read_facts(turns)
        try:
            found, unusable = read_with_model(
                turns,
                memories or {},
                endpoint=self.endpoint,
                owner_id=self._owner_id,
                prompt=self._prompt,
            )
        except LLMError as error:
            self.notes.append(f"{BY_RULES} {error}")
            return read_facts(turns)
        if unusable and not found:
            self.notes.append(f"{BY_RULES} {self.endpoint} gave only incomplete facts.")
            return read_facts(turns)
        if unusable:
            self.notes.append(f"{self.endpoint} gave incomplete facts, which were left out.")
        return found


def memories_about(palace: Palace, turns: Sequence[Turn], scope: Scope) -> dict[int, str]:
    """The last memories about the user, those who speak and whom the messages name.

    By key, the latest first; of the same agent and run only, as for judging, and no unsure ones.
    """
    names = {USER, *(turn.speaker for turn in turns if turn.speaker)}
    names |= {found for turn in turns for found in _NAME.findall(turn.text[:SHOWN_CHARS])}
    slugs = sorted({slug_of(name) for name in names})[:MOST_NAMES]
    subjects = Entity.objects.filter(palace=palace, kind__in=Entity.Kind.values, slug__in=slugs)
    facts = Fact.objects.within(palace).active().filter(agent=scope.agent, run=scope.run)
    facts = facts.filter(confidence__gte=SURE)
    latest = facts.filter(subject__in=subjects.values("pk")).order_by("-recorded_at", "-pk")
    found: dict[int, str] = {}
    left = MEMORIES_TOKENS
    for key, text in latest.values_list("pk", "text")[:MEMORIES]:
        tokens = count_tokens(quoted(text)) + 1
        if tokens <= left:
            found[key] = text
            left -= tokens
    return found


def read_with_model(
    turns: Sequence[Turn],
    memories: Mapping[int, str],
    *,
    endpoint: Endpoint,
    owner_id: int,
    prompt: str | None = None,
) -> tuple[list[Candidate], int]:
    """Extract candidates, in the order of the messages, and count the facts that are unusable.

    Raises:
        LLMError: the model is not available, or its answer is invalid.
    """
    instructions = "facts" if not prompt else OF_THE_CALLER
    asked = messages(turns, prompt, list(memories.values()))
    with sent.made_of([f"{sent.INSTRUCTIONS}:{instructions}", *sent.references("fact", memories)]):
        # What was learnt since is no reason to ask about the same messages again.
        answer = ask(
            asked,
            FactsAnswer,
            endpoint=endpoint,
            owner_id=owner_id,
            cached_as=messages(turns, prompt),
        )
    unusable = sum(not checked([each], turns) for each in answer.facts[:MOST_FACTS])
    shown = {text.casefold() for text in memories.values()}
    found = [one for one in checked(answer.facts, turns) if not _is_echo(one, shown, turns)]
    return found, unusable


def _is_echo(one: Candidate, shown: Collection[str], turns: Sequence[Turn]) -> bool:
    """Whether it repeats a memory of the prompt that no message speaks of.

    Taken for new, it would end what has replaced it.
    """
    named = one.object.casefold()
    said = any(named in turn.text.casefold() for turn in turns)
    return one.text.casefold() in shown and not said
