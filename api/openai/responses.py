"""A reply in the format of `/v1/responses`, made from the chat format, whole or streamed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from uuid import uuid4

from api.openai import conversation_matching
from api.openai.conversation_matching import KeptResponse
from api.openai.exchange import Exchange
from api.openai.message_filing import Place
from api.openai.reply_relay import EventData, as_object, first_choice
from api.openai.responses_request import ResponsesRequest
from api.rest.problems import Problem
from llm.errors import LLMError, ModelUnavailable
from palace.models import Palace

# The most bytes stored for the next request; programs must resend longer conversations.
MOST_KEPT_BYTES = 2 << 20
NOT_A_REPLY = "The model's server answered something else than a reply in the chat format."
BROKEN_OFF = "The model's reply ended before it was complete."

Event = dict[str, Any]


class ResponsesFormat:
    """Turns a reply in the chat format into a response."""

    def __init__(self, wanted: ResponsesRequest, exchange: Exchange) -> None:
        messages = exchange.chat_request.messages
        # Instructions are for one response only.
        self._said = messages[1:] if wanted.body.get("instructions") else messages
        stores = wanted.stores and exchange.remembers
        self._reply = Response(
            wanted, stores=stores and len(json.dumps(self._said)) <= MOST_KEPT_BYTES
        )
        self._events = EventData()
        exchange.when_kept, exchange.response_id = self._keep, self._reply.id

    def whole(self, body: bytes) -> bytes:
        completion = as_object(body)
        choice = first_choice(completion)
        message = choice.get("message")
        if not isinstance(message, Mapping):
            raise Problem(502, ModelUnavailable.code, NOT_A_REPLY)
        # It is a stream of one step.
        step = {"delta": message, "finish_reason": choice.get("finish_reason") or "stop"}
        for _ in (*self._reply.read({**completion, "choices": [step]}), *self._reply.end()):
            pass
        return json.dumps(self._reply.as_json()).encode()

    def read(self, piece: bytes) -> Iterator[bytes]:
        for data in self._events.read(piece):
            if data == b"[DONE]":
                self._reply.is_done = True
            else:
                yield from _written(self._reply.read(as_object(data)))

    def end(self) -> Iterator[bytes]:
        yield from _written(self._reply.end())

    def fail(self, error: LLMError) -> Iterator[bytes]:
        yield from _written(self._reply.end(str(error)))

    def _keep(self, palace: Palace, place: Place) -> None:
        reply = self._reply
        if reply.stores and not reply.failure:
            said = [*self._said, *reply.as_messages()]
            kept = KeptResponse(said, place.conversation, reply.as_items())
            conversation_matching.keep(palace, reply.id, kept)


def _written(events: Iterable[Event]) -> Iterator[bytes]:
    for event in events:
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


class Response:
    """A response while its reply arrives; yields the events of a stream.

    Attributes:
        stores: Whether a program can continue it by its id.
        is_done: Whether the stream said that it has ended.
    """

    def __init__(self, wanted: ResponsesRequest, *, stores: bool) -> None:
        self.id = f"resp_{uuid4().hex}"
        self.stores = stores
        self._wanted = wanted
        self._created = int(time.time())
        self._model = str(wanted.body.get("model") or "")
        self.is_done = False
        self._status, self._error, self._reason = "in_progress", "", ""
        self._usage: Mapping[str, Any] = {}
        self._output: list[dict[str, Any]] = []
        # By the chat format's number of the call.
        self._calls: dict[int, dict[str, Any]] = {}
        self._sent = 0

    @property
    def failure(self) -> str:
        """Why it is of no use; empty if it is complete, as far as the model went."""
        return self._error or ("" if self._reason or self.is_done else BROKEN_OFF)

    def read(self, chunk: Mapping[str, Any]) -> Iterator[Event]:
        """The events of a step of the reply."""
        if not self._sent:
            yield self._event("response.created", response=self.as_json())
            yield self._event("response.in_progress", response=self.as_json())
        error = chunk.get("error")
        if error:
            said = error.get("message") if isinstance(error, Mapping) else error
            self._error = str(said)
        usage, model = chunk.get("usage"), chunk.get("model")
        self._usage = usage if isinstance(usage, Mapping) else self._usage
        self._model = model if isinstance(model, str) and model else self._model
        choice = first_choice(chunk)
        self._reason = str(choice.get("finish_reason") or self._reason)
        delta = choice.get("delta")
        if isinstance(delta, Mapping):
            yield from self._read_delta(delta)

    def _read_delta(self, delta: Mapping[str, Any]) -> Iterator[Event]:
        for kind, name in (("output_text", "content"), ("refusal", "refusal")):
            text = delta.get(name)
            if isinstance(text, str) and text:
                yield from self._read_text(kind, text)
        calls = delta.get("tool_calls")
        for place, call in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(call, Mapping):
                yield from self._read_call(call, place)

    def _read_text(self, kind: str, text: str) -> Iterator[Event]:
        message = next((each for each in self._output if each["type"] == "message"), None)
        if message is None:
            message = {"id": self._item_id("msg"), "type": "message", "role": "assistant"}
            message |= {"status": "in_progress", "content": []}
            yield self._added(message)
        parts = message["content"]
        part = next((each for each in parts if each["type"] == kind), None)
        if part is None:
            part = _empty_part(kind)
            parts.append(part)
            yield self._part_event("response.content_part.added", message, part, part=dict(part))
        part[_text_field(kind)] += text
        more = {"delta": text, **({"logprobs": []} if kind == "output_text" else {})}
        yield self._part_event(f"response.{kind}.delta", message, part, **more)

    def _read_call(self, sent: Mapping[str, Any], place: int) -> Iterator[Event]:
        function = sent.get("function")
        function = function if isinstance(function, Mapping) else {}
        number = sent.get("index")
        number = number if isinstance(number, int) else place
        call = self._calls.get(number)
        # Some servers give every call the same number.
        if call is None or (sent.get("id") and sent["id"] != call["call_id"]):
            call = {"id": self._item_id("fc"), "type": "function_call", "status": "in_progress"}
            call |= {"call_id": str(sent.get("id") or f"call_{uuid4().hex}"), "arguments": ""}
            call["name"] = str(function.get("name") or "")
            self._calls[number] = call
            yield self._added(call)
        arguments = function.get("arguments")
        if isinstance(arguments, str) and arguments:
            call["arguments"] += arguments
            yield self._item_event("response.function_call_arguments.delta", call, delta=arguments)

    def end(self, error: str = "") -> Iterator[Event]:
        """The last events.

        Args:
            error: Why there is nothing more to come; empty if the stream has ended.
        """
        self._error = error or self.failure
        ending = "incomplete" if self._error or self._cut_off() else "completed"
        for item in self._output:
            item["status"] = ending
            yield from self._closed(item)
        self._status = "failed" if self._error else ending
        yield self._event(f"response.{self._status}", response=self.as_json())

    def _cut_off(self) -> str:
        """Why the reply is not all there is to say; empty if it is."""
        reasons = {"length": "max_output_tokens", "content_filter": "content_filter"}
        return reasons.get(self._reason, "")

    def _closed(self, item: dict[str, Any]) -> Iterator[Event]:
        if item["type"] == "function_call":
            done = {"arguments": item["arguments"], "name": item["name"]}
            yield self._item_event("response.function_call_arguments.done", item, **done)
        for part in item.get("content", ()):
            kind, field = part["type"], _text_field(part["type"])
            more = {field: part[field], **({"logprobs": []} if kind == "output_text" else {})}
            yield self._part_event(f"response.{kind}.done", item, part, **more)
            yield self._part_event("response.content_part.done", item, part, part=part)
        place = self._output.index(item)
        yield self._event("response.output_item.done", output_index=place, item=item)

    def _item_id(self, kind: str) -> str:
        """It holds the response's, so that a reference to the item leads there."""
        return f"{kind}_{self.id.removeprefix('resp_')}_{len(self._output)}"

    def _added(self, item: dict[str, Any]) -> Event:
        self._output.append(item)
        shown = {**item, "content": []} if "content" in item else dict(item)
        place = len(self._output) - 1
        return self._event("response.output_item.added", output_index=place, item=shown)

    def _part_event(
        self, kind: str, item: dict[str, Any], about: dict[str, Any], **fields: Any
    ) -> Event:
        place = item["content"].index(about)
        return self._item_event(kind, item, content_index=place, **fields)

    def _item_event(self, kind: str, item: dict[str, Any], **fields: Any) -> Event:
        place = self._output.index(item)
        return self._event(kind, item_id=item["id"], output_index=place, **fields)

    def _event(self, kind: str, **fields: Any) -> Event:
        self._sent += 1
        return {"type": kind, "sequence_number": self._sent - 1, **fields}

    def as_json(self) -> dict[str, Any]:
        cut_off = self._cut_off() if self._status == "incomplete" else ""
        return {
            "id": self.id,
            "object": "response",
            "created_at": self._created,
            "status": self._status,
            "error": {"code": "server_error", "message": self._error} if self._error else None,
            "incomplete_details": {"reason": cut_off} if cut_off else None,
            "model": self._model,
            "output": list(self._output),
            "store": self.stores,
            "usage": _usage(self._usage),
            **self._wanted.repeated(),
        }

    def as_items(self) -> dict[str, dict[str, Any]]:
        """The items of the reply as messages in the chat format, by their ids."""
        return {item["id"]: _as_message(item) for item in self._output}

    def as_messages(self) -> list[dict[str, Any]]:
        """The reply as a message in the chat format; none if it is empty."""
        items = list(self.as_items().values())
        calls = [call for item in items for call in item.get("tool_calls", ())]
        text = "".join(item["content"] or "" for item in items)
        if not text and not calls:
            return []
        more = {"tool_calls": calls} if calls else {}
        return [{"role": "assistant", "content": text or None, **more}]


def _as_message(item: Mapping[str, Any]) -> dict[str, Any]:
    if item["type"] == "function_call":
        function = {"name": item["name"], "arguments": item["arguments"]}
        call = {"id": item["call_id"], "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    text = "".join(part[_text_field(part["type"])] for part in item["content"])
    return {"role": "assistant", "content": text}


def _empty_part(kind: str) -> dict[str, Any]:
    if kind == "refusal":
        return {"type": "refusal", "refusal": ""}
    return {"type": "output_text", "text": "", "annotations": [], "logprobs": []}


def _text_field(kind: str) -> str:
    return "refusal" if kind == "refusal" else "text"


def _usage(counted: Mapping[str, Any]) -> dict[str, Any] | None:
    """The usage reported by the provider; None without one."""
    if not counted:
        return None
    tokens_in, tokens_out = (_count(counted, f"{each}_tokens") for each in ("prompt", "completion"))
    details = [counted.get(f"{each}_tokens_details") for each in ("prompt", "completion")]
    known = [each if isinstance(each, Mapping) else {} for each in details]
    return {
        "input_tokens": tokens_in,
        "input_tokens_details": {
            "cache_write_tokens": 0,
            "cached_tokens": _count(known[0], "cached_tokens"),
        },
        "output_tokens": tokens_out,
        "output_tokens_details": {"reasoning_tokens": _count(known[1], "reasoning_tokens")},
        "total_tokens": _count(counted, "total_tokens") or tokens_in + tokens_out,
    }


def _count(counted: Mapping[str, Any], name: str) -> int:
    value = counted.get(name)
    return value if isinstance(value, int) else 0
