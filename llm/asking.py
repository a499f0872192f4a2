"""Calls to a chat model: made in its dialect, checked, metered. `llm.chat` is the way in."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from decimal import Decimal
from typing import Any, cast

import openai
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from llm import client, dialects, usage
from llm.errors import BadModelOutput, ModelUnavailable
from llm.messages import Ask, Completion, Message
from llm.providers import Endpoint
from llm.tokens import count_tokens

# More than a call can cost; beyond it the answer is nonsense, and no column would hold it.
MAX_COST_USD = 100_000


def ask(messages: Sequence[Message], how: Ask) -> Completion:
    """One whole answer; see `llm.chat.complete()`."""
    with _metered(how) as meter:
        answer = _request(messages, how, stream=False)
        if not isinstance(answer, ChatCompletion):
            raise ModelUnavailable(client.not_the_protocol(how.endpoint))
        if getattr(answer, "error", None):  # OpenRouter's way: status 200, and what went wrong.
            raise ModelUnavailable(f"{how.endpoint} broke off with an error; try again later.")
        text, finish_reason = _first_choice(answer)
        count(meter, answer.usage, messages, text)
        if not text:
            raise BadModelOutput(_wordless(how.endpoint, finish_reason))
        return Completion(
            text=text,
            model=answer.model or how.endpoint.model,
            tokens_in=meter.tokens_in,
            tokens_out=meter.tokens_out,
            finish_reason=finish_reason,
        )


def ask_for_stream(messages: Sequence[Message], how: Ask) -> Generator[str]:
    """Pieces of one answer; see `llm.chat.stream()`."""
    with _metered(how) as meter:
        reader = _StreamReader()
        try:
            chunks = _request(messages, how, stream=True)
            with chunks, client.translated(how.endpoint):
                yield from reader.read(chunks)
        finally:
            if reader.began:
                count(meter, reader.usage, messages, "".join(reader.pieces))
        reader.check(how.endpoint)


def _metered(how: Ask) -> AbstractContextManager[usage.Meter]:
    return usage.metered(
        purpose=how.purpose,
        provider=how.endpoint.provider,
        model=how.endpoint.model,
        owner_id=how.owner_id,
    )


class _StreamReader:
    """Keeps account of what has come while handing it on."""

    def __init__(self) -> None:
        self.began = False
        self.pieces: list[str] = []
        self.finish_reason = ""
        self.usage: Any = None

    def read(self, chunks: openai.Stream[ChatCompletionChunk]) -> Iterator[str]:
        self.began = True
        for chunk in chunks:
            self.usage = getattr(chunk, "usage", None) or self.usage
            for choice in getattr(chunk, "choices", None) or []:
                self.finish_reason = choice.finish_reason or self.finish_reason
                if piece := _clean(getattr(choice.delta, "content", None)):
                    self.pieces.append(piece)
                    yield piece

    def check(self, endpoint: Endpoint) -> None:
        """A server that just stops sending has not finished, whatever it has sent."""
        if not self.finish_reason:
            raise ModelUnavailable(f"{endpoint} broke off in the middle.")
        if not self.pieces:
            raise BadModelOutput(_wordless(endpoint, self.finish_reason))


def _request(messages: Sequence[Message], how: Ask, *, stream: bool) -> Any:
    """The library's answer, asked for in the endpoint's dialect."""
    dialect = dialects.of(how.endpoint)
    with client.translated(how.endpoint, timeout_s=how.timeout_s):
        library = client.connect(how.endpoint, max_retries=how.max_retries)
        create = cast(Any, library.chat.completions.create)
        # Ends: each refusal takes something away from the dialect, or is raised.
        while True:
            try:
                answer = create(
                    model=how.endpoint.model,
                    messages=_sendable(messages),
                    timeout=client.timeout(how.timeout_s),
                    **dialect.parameters(
                        max_tokens=how.max_tokens,
                        temperature=how.temperature,
                        json_schema=how.json_schema,
                        stream=stream,
                    ),
                )
            except (openai.BadRequestError, openai.UnprocessableEntityError) as refusal:
                simpler = dialect.after(refusal)
                if simpler is None:
                    raise
                dialect = simpler
            else:
                dialects.learn(how.endpoint, dialect)
                return answer


def _sendable(messages: Sequence[Message]) -> list[Message]:
    """With a question mark for half a surrogate pair, which has no UTF-8 form."""
    return [
        {
            "role": message["role"],
            "content": message["content"].encode("utf-8", "replace").decode(),
        }
        for message in messages
    ]


def _first_choice(answer: ChatCompletion) -> tuple[str, str]:
    """Text and finish reason. The library does not validate, so anything may be missing."""
    if not answer.choices:
        return "", ""
    choice = answer.choices[0]
    return _clean(getattr(choice.message, "content", None)), choice.finish_reason or ""


def _clean(text: str | None) -> str:
    """Without NUL, which a model may write and Postgres cannot store."""
    return (text or "").replace("\x00", "")


def _wordless(endpoint: Endpoint, finish_reason: str) -> str:
    if finish_reason == "length":
        return f"{endpoint} used up its tokens before the first word; allow it more."
    return f"{endpoint} answered without a word; try again or choose another model."


def count(meter: usage.Meter, told: Any, messages: Sequence[Message], text: str) -> None:
    """Fill the meter with what the provider says, or else with our own estimate."""
    tokens_in = getattr(told, "prompt_tokens", None)
    tokens_out = getattr(told, "completion_tokens", None)
    if tokens_in is None:
        tokens_in = sum(count_tokens(message["content"]) for message in messages)
    if tokens_out is None:
        tokens_out = count_tokens(text)
    meter.tokens_in, meter.tokens_out = int(tokens_in), int(tokens_out)
    meter.cost_usd = _told_cost(told)


def _told_cost(told: Any) -> Decimal | None:
    """OpenRouter says in `usage.cost` what it charged, in dollars."""
    cost = getattr(told, "cost", None)
    if not isinstance(cost, int | float) or not 0 <= cost < MAX_COST_USD:
        return None
    return round(Decimal(str(cost)), 8)
