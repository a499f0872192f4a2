"""The reply without a model: quotes from the palace, in OpenAI's format."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

from django.http import HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.utils import timezone

from api.openai.chat_request import OWN_MODEL
from api.openai.exchange import Exchange
from api.openai.message_text import text_of
from chat.extractive import NO_MODEL, extractive_reply
from llm.tokens import count_tokens
from settings_app.models import settings_of
from settings_app.time_zone import zone_named


def quoted(exchange: Exchange) -> HttpResponseBase:
    """Reply with the closest messages. The reply is not filed: the palace has them already."""
    text, chat_request = _text(exchange), exchange.chat_request
    if not chat_request.streams:
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return JsonResponse(
            {**_head("chat.completion"), "choices": [choice], "usage": _usage(exchange, text)}
        )
    events = _events(text, _usage(exchange, text) if chat_request.wants_usage else None)
    return StreamingHttpResponse(_sent(events), content_type="text/event-stream")


def _text(exchange: Exchange) -> str:
    found = exchange.found
    hits = found.hits if found else (() if exchange.recalls else None)
    chosen = settings_of(exchange.owner_id)
    with timezone.override(zone_named(chosen.time_zone)):
        # Hits that were not asked for are not an answer.
        return extractive_reply(() if found and found.is_opening else hits, why=NO_MODEL)


def _head(kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": OWN_MODEL,
    }


def _usage(exchange: Exchange, text: str) -> dict[str, int]:
    texts = (text_of(message.get("content")) for message in exchange.chat_request.messages)
    prompt, completion = sum(map(count_tokens, texts)), count_tokens(text)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def _events(text: str, usage: dict[str, int] | None) -> list[str]:
    head = _head("chat.completion.chunk")
    deltas: list[tuple[dict[str, str], str | None]] = [
        ({"role": "assistant", "content": ""}, None),
        ({"content": text}, None),
        ({}, "stop"),
    ]
    chunks = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
        for delta, end in deltas
    ]
    if usage:
        chunks.append({**head, "choices": [], "usage": usage})
    return [*map(json.dumps, chunks), "[DONE]"]


async def _sent(events: list[str]) -> AsyncIterator[str]:
    for event in events:
        yield f"data: {event}\n\n"
