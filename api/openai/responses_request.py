"""A request to `/v1/responses`, translated to the chat format that every provider knows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from django.http import HttpRequest

from api.openai.access import BadRequest
from api.openai.chat_request import ChatRequest, as_chat_request
from api.openai.conversation_matching import previous_response, referenced_items
from api.rest.problems import Problem
from llm.chat_calls import dialect_of
from llm.providers import Endpoint
from settings_app.api_keys import ApiKey

# Fields that both formats have, under the same name.
_SAME = (
    "model",
    "parallel_tool_calls",
    "prompt_cache_key",
    "safety_identifier",
    "service_tier",
    "stream",
    "temperature",
    "top_p",
    "user",
)
# Fields that a response repeats as they were sent, and what they are if they were not.
_REPEATED: dict[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
    "truncation": "disabled",
    "user": None,
}
# Features of OpenAI's own servers.
_NOT_HERE = {
    "background": "Wait for the answer, or stream it",
    "conversation": "Send previous_response_id, or the header X-Loci-Conversation",
    "prompt": "Send its text as instructions",
}
# Roles of instructions. Many providers know only the first.
_SYSTEM = "system"
_ROLES = {"user": "user", "assistant": "assistant", "system": _SYSTEM, "developer": _SYSTEM}

# Hosts of models that refuse `max_tokens`.
_NEWER_NAMES = ("api.openai.com", ".openai.azure.com")

REFERENCE = "item_reference"
# A wish such as `"store": 0` must not be taken for its opposite, and what the response repeats has
# the kind that clients expect there. The chat request checks the others.
_KINDS: dict[str, tuple[type, str]] = {
    "instructions": (str, "a string"),
    "max_output_tokens": (int, "a whole number"),
    "metadata": (dict, "an object"),
    "parallel_tool_calls": (bool, "true or false"),
    "previous_response_id": (str, "a string"),
    "store": (bool, "true or false"),
    "truncation": (str, "a string"),
}

Chat = dict[str, Any]


class ResponsesRequest:
    """
    Attributes:
        messages: The input in the chat format.
    """

    def __init__(self, body: dict[str, Any], key: ApiKey, subject: str) -> None:
        """
        Args:
            subject: Whose palace it is for.

        Raises:
            Problem: what is wrong with the body, or cannot be translated.
        """
        for name, instead in _NOT_HERE.items():
            if body.get(name):
                raise BadRequest(f"{name} is not supported here. {instead}.", param=name)
        for name, (kind, what) in _KINDS.items():
            given = body.get(name)
            # Not `isinstance`: true is no whole number.
            if given is not None and type(given) is not kind:
                raise BadRequest(f"{name} is {what}.", param=name)
        self.body = body
        given, previous_id = body.get("input"), body.get("previous_response_id")
        self.messages = _messages(given, referenced_items(key, subject, _references(given)))
        self._previous = previous_response(key, subject, previous_id) if previous_id else None

    @property
    def stores(self) -> bool:
        """Whether the program may want to continue it by its id."""
        return self.body.get("store") is not False

    def repeated(self) -> dict[str, Any]:
        """The fields of the request that are part of the response."""
        return {
            name: default if self.body.get(name) is None else self.body[name]
            for name, default in _REPEATED.items()
        }

    def as_chat_request(
        self,
        request: HttpRequest,
        key: ApiKey,
        endpoint: Endpoint | None,
    ) -> ChatRequest:
        """
        Args:
            endpoint: The model, if there is one.

        Raises:
            Problem: 400, the request is invalid or not supported.
        """
        previous = self._previous
        said = [*(previous.messages if previous else ()), *self.messages]
        instructions = self.body.get("instructions")
        first = [{"role": _SYSTEM, "content": instructions}] if instructions else []
        options = self._options(endpoint)
        chat = as_chat_request(request, key, {**options, "messages": [*first, *said]})
        if previous is not None and chat.conversation is None:
            return replace(chat, conversation=previous.conversation)
        return chat

    def _options(self, endpoint: Endpoint | None) -> Chat:
        body = self.body
        options = {name: body[name] for name in _SAME if body.get(name) is not None}
        if body.get("max_output_tokens") is not None:
            options[_tokens_name(endpoint)] = body["max_output_tokens"]
        effort = _object(body, "reasoning").get("effort")
        if effort is not None:
            options["reasoning_effort"] = effort
        choice = _tool_choice(body.get("tool_choice"))
        if body.get("tools"):
            options |= {"tools": _tools(body["tools"]), **choice}
        options |= _text(_object(body, "text"))
        has_usage = endpoint is None or dialect_of(endpoint).stream_usage
        if body.get("stream") is True and has_usage:
            options["stream_options"] = {"include_usage": True}
        return options


def _tokens_name(endpoint: Endpoint | None) -> str:
    """Some models refuse the older name, and some servers do not know the newer one."""
    if endpoint is None or endpoint.host.endswith(_NEWER_NAMES):
        return "max_completion_tokens"
    return dialect_of(endpoint).max_tokens_name


def _references(given: Any) -> list[str]:
    """The ids of parts of earlier responses that the input refers to."""
    items = given if isinstance(given, list) else []
    ids = [item.get("id") for item in items if isinstance(item, dict) and _kind(item) == REFERENCE]
    return [each for each in ids if isinstance(each, str)]


def _kind(item: Chat) -> str:
    usual = REFERENCE if "id" in item and "role" not in item else "message"
    return str(item.get("type") or usual)


def _messages(given: Any, referenced: Mapping[str, Chat]) -> list[Chat]:
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    if not isinstance(given, list) or not given:
        raise BadRequest("input is a string, or a list of at least one item.", param="input")
    messages: list[Chat] = []
    for place, item in enumerate(given):
        at = f"input[{place}]"
        if not isinstance(item, dict):
            raise BadRequest(f"{at} is not an item: an item is an object.", param=at)
        for message in _read_item(item, at, referenced):
            _append(messages, message)
    return messages


def _read_item(item: Chat, at: str, referenced: Mapping[str, Chat]) -> Iterable[Chat]:
    kind = _kind(item)
    if kind == REFERENCE:
        return [_referenced(item, at, referenced)]
    read = _ITEMS.get(kind)
    if read is None:
        said = f"{at} is of type {kind}, which the chat models behind Loci do not know."
        raise BadRequest(f"{said} They know {', '.join(_ITEMS)}.", param=at)
    return read(item, at)


def _referenced(item: Chat, at: str, referenced: Mapping[str, Chat]) -> Chat:
    name = _field(item, "id", at)
    if name not in referenced:
        said = (
            f"{at} refers to {name[:80]}, and there is no such item: memory was off, or it was "
            "deleted. Send the item itself (with “store”: false programs do)."
        )
        raise Problem(404, "item_not_found", said)
    # A copy: calls may be added to it.
    return dict(referenced[name])


def _append(messages: list[Chat], message: Chat) -> None:
    """In the chat format calls of tools are part of the message before them."""
    last = messages[-1] if messages else {}
    if "tool_calls" in message and last.get("role") == "assistant":
        last["tool_calls"] = [*last.get("tool_calls", ()), *message["tool_calls"]]
    else:
        messages.append(message)


def _message(item: Chat, at: str) -> Iterator[Chat]:
    role = _ROLES.get(str(item.get("role")))
    if role is None:
        raise BadRequest(f"{at}.role is one of {', '.join(_ROLES)}.", param=f"{at}.role")
    yield {"role": role, "content": _content(item.get("content"), role, f"{at}.content")}


def _content(content: Any, role: str, at: str) -> str | list[Chat]:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise BadRequest(f"{at} is a string, or a list of parts.", param=at)
    parts = [_part(part, f"{at}[{place}]") for place, part in enumerate(content)]
    if role != "user" or len(parts) == 1:
        texts = [part["text"] for part in parts if "text" in part]
        if len(texts) == len(parts):
            return "".join(texts)  # Many providers accept parts from users only.
    return parts


def _part(part: Any, at: str) -> Chat:
    kind = part.get("type") if isinstance(part, dict) else None
    read = _PARTS.get(str(kind))
    made = read(part) if read else None
    if made is None:
        said = f"{at} is no part that can be passed on: text, or a picture or file with its data."
        raise BadRequest(said, param=at)
    return made


def _text_part(part: Chat) -> Chat | None:
    text = part.get("refusal") if part["type"] == "refusal" else part.get("text")
    return {"type": "text", "text": text} if isinstance(text, str) else None


def _picture(part: Chat) -> Chat | None:
    url = part.get("image_url")
    if not isinstance(url, str):
        return None
    detail = {"detail": part["detail"]} if part.get("detail") else {}
    return {"type": "image_url", "image_url": {"url": url, **detail}}


def _file(part: Chat) -> Chat | None:
    if not isinstance(part.get("file_data"), str):
        return None
    names = ("file_data", "filename")
    return {"type": "file", "file": {name: part[name] for name in names if name in part}}


def _sound(part: Chat) -> Chat | None:
    sound = part.get("input_audio")
    return {"type": "input_audio", "input_audio": sound} if isinstance(sound, dict) else None


def _call(item: Chat, at: str) -> Iterator[Chat]:
    call_id, name, arguments = (_field(item, each, at) for each in ("call_id", "name", "arguments"))
    function = {"name": name, "arguments": arguments}
    call = {"id": call_id, "type": "function", "function": function}
    yield {"role": "assistant", "content": None, "tool_calls": [call]}


def _result(item: Chat, at: str) -> Iterator[Chat]:
    output = item.get("output")
    content = _content(output, "tool", f"{at}.output")
    if not isinstance(content, str):
        content = json.dumps(output)
    yield {"role": "tool", "tool_call_id": _field(item, "call_id", at), "content": content}


def _field(item: Chat, name: str, at: str) -> str:
    value = item.get(name)
    if not isinstance(value, str):
        raise BadRequest(f"{at}.{name} is a string.", param=f"{at}.{name}")
    return value


def _nothing(item: Chat, at: str) -> Iterator[Chat]:
    """The chat format has no place for what a model thought."""
    yield from ()


_ITEMS: dict[str, Callable[[Chat, str], Iterator[Chat]]] = {
    "message": _message,
    "function_call": _call,
    "function_call_output": _result,
    "reasoning": _nothing,
}
_PARTS: dict[str, Callable[[Chat], Chat | None]] = {
    "text": _text_part,
    "input_text": _text_part,
    "output_text": _text_part,
    "refusal": _text_part,
    "input_image": _picture,
    "input_file": _file,
    "input_audio": _sound,
}


def _tools(tools: Any) -> list[Chat]:
    if not isinstance(tools, list):
        raise BadRequest("tools is a list of tools.", param="tools")
    return [_tool(tool, f"tools[{place}]") for place, tool in enumerate(tools)]


def _tool(tool: Any, at: str) -> Chat:
    kind = tool.get("type") if isinstance(tool, dict) else None
    if kind != "function" or not isinstance(tool.get("name"), str):
        said = f"{at} is not a function with a name. Other tools run at OpenAI only."
        raise BadRequest(said, param=at, code="unsupported_tool")
    names = ("name", "description", "parameters", "strict")
    function = {name: tool[name] for name in names if tool.get(name) is not None}
    return {"type": "function", "function": function}


def _tool_choice(choice: Any) -> Chat:
    if choice is None:
        return {}
    if choice in ("auto", "none", "required"):
        return {"tool_choice": choice}
    if isinstance(choice, dict) and choice.get("type") == "function":
        function = {"name": _field(choice, "name", "tool_choice")}
        return {"tool_choice": {"type": "function", "function": function}}
    said = "tool_choice is auto, none, required, or {“type”: “function”, “name”: …}."
    raise BadRequest(said, param="tool_choice")


def _text(text: Mapping[str, Any]) -> Chat:
    """The format of the answer, and its verbosity."""
    options: Chat = {} if text.get("verbosity") is None else {"verbosity": text["verbosity"]}
    form = _object(text, "format", "text.format")
    if form.get("type") == "json_schema":
        schema = {name: value for name, value in form.items() if name != "type"}
        options["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif form.get("type") == "json_object":
        options["response_format"] = {"type": "json_object"}
    return options


def _object(body: Mapping[str, Any], name: str, at: str = "") -> Mapping[str, Any]:
    value = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadRequest(f"{at or name} is an object.", param=at or name)
    return value
