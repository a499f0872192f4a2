"""Call a chat model in its dialect; check and meter the call. The public API is `llm.chat`.

OpenAI-compatible servers differ: some know `max_tokens` only by its newer name, some models allow
no temperature, some servers have no JSON schemas. Instead of a list, we send all parameters. If a
refusal names one, we repeat the call without it and remember that.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, cast

from llm import client, sent, usage
from llm.errors import BadModelOutput, ModelUnavailable
from llm.messages import Ask, Completion, Message
from llm.providers import Endpoint
from llm.secrets_in_text import mask, masks_toward
from llm.tokens import count_tokens, reported_tokens

if TYPE_CHECKING:
    import openai
    from openai.types.chat import ChatCompletion, ChatCompletionChunk


@dataclass(frozen=True)
class Dialect:
    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True
    response_format: Literal["json_schema", "json_object", "none"] = "json_schema"
    stream_usage: bool = True

    def after(self, refusal: openai.APIStatusError) -> Dialect | None:
        """The dialect to try next; None if the refusal has another cause."""
        words = f"{refusal.param or ''} {refusal.message}".lower()
        if "response_format" in words or "json_schema" in words or "json_object" in words:
            return self._with_less_format()
        if "max_tokens" in words and self.max_tokens_name == "max_tokens":
            return replace(self, max_tokens_name="max_completion_tokens")
        if "temperature" in words and self.temperature:
            return replace(self, temperature=False)
        if "stream_options" in words and self.stream_usage:
            return replace(self, stream_usage=False)
        return None

    def _with_less_format(self) -> Dialect | None:
        if self.response_format == "none":
            return None
        fewer: Literal["json_object", "none"] = (
            "json_object" if self.response_format == "json_schema" else "none"
        )
        return replace(self, response_format=fewer)

    def parameters(
        self,
        *,
        max_tokens: int | None,
        temperature: float | None,
        json_schema: dict[str, Any] | None,
        stream: bool,
    ) -> dict[str, Any]:
        """The request's parameters other than model and messages."""
        parameters: dict[str, Any] = {}
        if max_tokens is not None:
            parameters[self.max_tokens_name] = max_tokens
        if temperature is not None and self.temperature:
            parameters["temperature"] = temperature
        if json_schema and self.response_format != "none":
            parameters["response_format"] = {"type": self.response_format}
            if self.response_format == "json_schema":
                parameters["response_format"]["json_schema"] = json_schema
        if stream:
            parameters["stream"] = True
            if self.stream_usage:
                parameters["stream_options"] = {"include_usage": True}
        return parameters


# By address and model, for the life of the process. A lost update costs one refused request.
_learnt: dict[tuple[str, str], Dialect] = {}


def dialect_of(endpoint: Endpoint) -> Dialect:
    return _learnt.get((endpoint.base_url, endpoint.model), Dialect())


def learn_dialect(endpoint: Endpoint, dialect: Dialect) -> None:
    _learnt[endpoint.base_url, endpoint.model] = dialect


# More than a call can cost; a larger number is nonsense and does not fit the column.
MAX_COST_USD = 100_000


def ask(messages: Sequence[Message], how: Ask) -> Completion:
    """One whole answer; see `llm.chat.complete()`."""
    # Never a module of it first: threads that begin at different ones get in each other's way.
    import openai  # noqa: PLC0415 - see llm.client.

    with _metered(messages, how) as meter:
        answer = _request(messages, how, meter, stream=False)
        if not isinstance(answer, openai.types.chat.ChatCompletion):
            raise ModelUnavailable(client.not_the_protocol(how.endpoint))
        if getattr(answer, "error", None):  # OpenRouter reports errors with status 200.
            raise ModelUnavailable(f"{how.endpoint} stopped with an error; try again later.")
        text, finish_reason = _first_choice(answer)
        count(meter, answer.usage, messages, text, how.endpoint)
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
    with _metered(messages, how) as meter:
        reader = _StreamReader()
        try:
            chunks = _request(messages, how, meter, stream=True)
            with chunks, client.translated(how.endpoint):
                yield from reader.read(chunks)
        finally:
            if reader.began:
                count(meter, reader.usage, messages, "".join(reader.pieces), how.endpoint)
        reader.check(how.endpoint)


@contextmanager
def _metered(messages: Sequence[Message], how: Ask) -> Iterator[usage.Meter]:
    sent_record = sent.record_of(how.endpoint, (each["content"] for each in messages))
    with usage.metered(
        purpose=how.purpose,
        provider=how.endpoint.provider,
        model=how.endpoint.model,
        owner_id=how.owner_id,
    ) as meter:
        meter.sent_record = sent_record
        yield meter


class _StreamReader:
    """Passes on a stream's pieces and records them."""

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
        """A stream without a finish reason was interrupted."""
        if not self.finish_reason:
            raise ModelUnavailable(f"{endpoint} stopped in the middle of its answer.")
        if not self.pieces:
            raise BadModelOutput(_wordless(endpoint, self.finish_reason))


def _temperature(how: Ask) -> float | None:
    given = how.endpoint.temperature
    return how.temperature if given is None else given


def _request(messages: Sequence[Message], how: Ask, meter: usage.Meter, *, stream: bool) -> Any:
    """The library's response to a request in the endpoint's dialect."""
    import openai  # noqa: PLC0415 - see llm.client.

    dialect = dialect_of(how.endpoint)
    with (
        client.translated(how.endpoint, timeout_s=how.timeout_s),
        sent.counting(meter.sent_record),
    ):
        library = client.connect(how.endpoint, max_retries=how.max_retries)
        create = cast(Any, library.chat.completions.create)
        # Terminates: each refusal simplifies the dialect or is raised.
        while True:
            try:
                answer = create(
                    model=how.endpoint.model,
                    messages=_sendable(messages, how.endpoint),
                    timeout=client.timeout(how.timeout_s),
                    **dialect.parameters(
                        max_tokens=how.endpoint.max_tokens or how.max_tokens,
                        temperature=_temperature(how),
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
                learn_dialect(how.endpoint, dialect)
                return answer


def _sendable(messages: Sequence[Message], endpoint: Endpoint) -> list[Message]:
    """Replace lone surrogates, which cannot be encoded, by question marks, and mask secrets."""
    cover = mask if masks_toward(endpoint.base_url) else str
    return [
        {
            "role": message["role"],
            "content": cover(message["content"].encode("utf-8", "replace").decode()),
        }
        for message in messages
    ]


def _first_choice(answer: ChatCompletion) -> tuple[str, str]:
    """Text and finish reason. The library does not validate, so anything may be missing."""
    if not answer.choices:
        return "", ""
    choice = answer.choices[0]
    return _clean(getattr(choice.message, "content", None)), choice.finish_reason or ""


def _clean(content: Any) -> str:
    """The text, without NUL, which Postgres cannot store.

    Models that reason may send a list, with their thoughts in parts of another type.
    """
    if isinstance(content, list):
        parts = (part for part in content if isinstance(part, dict) and part.get("type") == "text")
        content = "".join(str(part.get("text") or "") for part in parts)
    return content.replace("\x00", "") if isinstance(content, str) else ""


def _wordless(endpoint: Endpoint, finish_reason: str) -> str:
    if finish_reason == "length":
        return f"{endpoint} used up its tokens before the first word; raise its limit."
    return f"{endpoint} returned an empty answer; try again or choose another model."


def count(
    meter: usage.Meter,
    reported: Any,
    messages: Sequence[Message],
    text: str,
    endpoint: Endpoint,
) -> None:
    """Fill the meter with the provider's counts, or our own estimates."""
    tokens_in = reported_tokens(getattr(reported, "prompt_tokens", None))
    tokens_out = reported_tokens(getattr(reported, "completion_tokens", None))
    if tokens_in is None:
        tokens_in = sum(count_tokens(message["content"]) for message in messages)
    if tokens_out is None:
        tokens_out = count_tokens(text)
    meter.tokens_in, meter.tokens_out = tokens_in, tokens_out
    meter.cost_usd = _reported_cost(reported)
    if meter.cost_usd is None and endpoint.price is not None:
        meter.cost_usd = usage.cost_at(endpoint, meter.tokens_in, meter.tokens_out)


def _reported_cost(reported: Any) -> Decimal | None:
    """The charge in dollars that OpenRouter reports as `usage.cost`."""
    cost = getattr(reported, "cost", None)
    if not isinstance(cost, int | float) or not 0 <= cost < MAX_COST_USD:
        return None
    return round(Decimal(str(cost)), 8)
