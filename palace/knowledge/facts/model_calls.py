"""Asking a model about facts: each question once, also where the process died over the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from django.core.cache import cache
from django.utils.crypto import salted_hmac
from pydantic import BaseModel

from llm import chat
from llm.chat import Message
from llm.models import Usage
from llm.providers import Endpoint
from palace.working.redis_store import answering

Answer = TypeVar("Answer", bound=BaseModel)

# Long enough for work that was killed to be taken up again, and no longer: answers are private.
KEPT_S = 3600
MOST_TOKENS = 4000


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
    """The model's answer, or the one it gave to the very same question lately.

    Args:
        purpose, max_tokens, timeout_s, max_retries: as `llm.chat.structured()`.

    Raises:
        LLMError: as `llm.chat.structured()`.
    """
    key = _key(messages, schema, endpoint, owner_id)
    kept = cache.get(key)
    if kept is not None:
        return schema.model_validate_json(kept)
    answer = chat.structured(
        messages,
        schema,
        endpoint=endpoint,
        purpose=purpose,
        owner_id=owner_id,
        max_tokens=max_tokens,
        timeout_s=timeout_s,
        max_retries=max_retries,
    )
    cache.set(key, answer.model_dump_json(), KEPT_S)
    return answer


def forget_answers(owner_id: int) -> None:
    """Delete what models answered of late for an owner.

    Raises:
        WorkingMemoryAway: Redis does not answer; they go by themselves within the hour.
    """
    with answering() as client:
        for name in client.scan_iter(match=f"*:{_beginning(owner_id)}*", count=500):
            client.unlink(name)


def _key(
    messages: Sequence[Message], schema: type[BaseModel], endpoint: Endpoint, owner_id: int
) -> str:
    """Tells nothing of the messages, and is another for each owner, model and question."""
    asked = [str(owner_id), endpoint.provider, endpoint.model, schema.__name__]
    asked += [f"{message['role']} {message['content']}" for message in messages]
    told = "\0".join(f"{len(part)} {part}" for part in asked)
    digest = salted_hmac("facts asked", told, algorithm="sha256").hexdigest()
    return f"{_beginning(owner_id)}{digest}"


def _beginning(owner_id: int) -> str:
    return f"facts:{owner_id}:"
