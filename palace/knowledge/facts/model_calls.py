"""Ask a model about facts; answers are cached, so that a restarted process does not ask again."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import closing, suppress
from functools import partial
from typing import TypeVar

import redis
from django.conf import settings
from django.core.cache import cache
from django.utils.crypto import salted_hmac
from pydantic import BaseModel

from llm import chat
from llm.chat import Message
from llm.models import Usage
from llm.providers import Endpoint

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer", bound=BaseModel)

# Long enough to resume killed work, and no longer: answers are private.
KEPT_S = 3600
MOST_TOKENS = 4000
# The name, in the record of what was sent, of instructions that a caller gave instead of ours.
OF_THE_CALLER = "caller"


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
) -> Answer:
    """The model's answer, or a cached one to the same question; without Redis none is cached.

    Args:
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
    key = _key(messages, schema, endpoint, owner_id)
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
