"""What a program asks for: the request's body as it came, and what its headers say of memory."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from api.openai.errors import BadRequest
from api.rest.parsing import read_json
from api.rest.problems import Problem
from settings_app.api_keys import ApiKey

# With a few pictures. Each message is laid beside those that are kept.
MOST_BYTES = 32 << 20
MOST_MESSAGES = 2048
MODES = ("on", "recall", "remember", "off")
# Names of the owner's choice, beside none at all.
OWN_MODEL = "loci"


@dataclass(frozen=True, slots=True)
class Asked:
    """
    Attributes:
        mode: What the program wants of memory: one of `MODES`.
        user_id: Whose palace; None is the key's own.
        conversation: Its id, if the program gives one.
    """

    body: dict[str, Any]
    mode: str
    user_id: str | None
    conversation: str | None

    @property
    def messages(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = self.body["messages"]
        return messages

    @property
    def streams(self) -> bool:
        return self.body.get("stream") is True

    @property
    def wants_usage(self) -> bool:
        options = self.body.get("stream_options")
        return isinstance(options, dict) and options.get("include_usage") is True

    def model(self, own: str) -> str:
        """The program's wish, or the owner's own choice where it has none."""
        wish = self.body.get("model")
        return own if wish in (None, "", OWN_MODEL) else str(wish)

    def with_context(self, context: str, model: str) -> bytes:
        """The body to send on: the memories ahead of the system prompt, all else as it came."""
        sent = {**self.body, "model": model}
        if context:
            sent["messages"] = _led(self.messages, context)
        return json.dumps(sent).encode()


def read_request(request: HttpRequest, key: ApiKey) -> Asked:
    """
    Raises:
        Problem: what is wrong with it.
    """
    body = read_json(request.read(MOST_BYTES + 1), most_bytes=MOST_BYTES)
    if not isinstance(body, dict):
        raise BadRequest("The body is no object: send {“model”: …, “messages”: […]}.")
    _check_messages(body.get("messages"))
    mode = request.headers.get("X-Loci-Memory", "on").strip().lower()
    if mode not in MODES:
        raise BadRequest(f"X-Loci-Memory is one of {', '.join(MODES)}.")
    named = _header(request, "X-Loci-Conversation")
    if named is not None and not named.strip():
        raise BadRequest("X-Loci-Conversation is blank; give an id, or leave it out.")
    return Asked(body, mode, _user_id(request, key, body), named)


def _check_messages(messages: Any) -> None:
    if not isinstance(messages, list) or not messages:
        raise BadRequest("messages is a list of at least one message.", param="messages")
    if len(messages) > MOST_MESSAGES:
        said = f"messages has up to {MOST_MESSAGES} messages; leave the oldest ones out."
        raise BadRequest(said, param="messages")
    for place, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            said = f"messages[{place}] is no message: it is an object with a role."
            raise BadRequest(said, param=f"messages[{place}]")


def _user_id(request: HttpRequest, key: ApiKey, body: dict[str, Any]) -> str | None:
    """The header's, else the body's `user`, by which programs tell their users apart.

    A key for one palace says by itself whose it is; the body's own name for that user is no
    matter then.
    """
    named = _header(request, "X-Loci-User")
    if named is not None or key.subject is not None:
        return named
    told = body.get("user")
    return told if isinstance(told, str) and told.strip() else None


def _header(request: HttpRequest, name: str) -> str | None:
    """In UTF-8, as programs send it, although the protocol reads each byte as a letter.

    Raises:
        Problem: 400, it is not.
    """
    value = request.headers.get(name)
    if value is None:
        return None
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        raise Problem(400, "bad_input", f"{name} is not in UTF-8.") from None


def _led(messages: list[dict[str, Any]], context: str) -> list[dict[str, Any]]:
    """The block first, within the system prompt if there is one: some models take only one."""
    first = messages[0]
    if first["role"] in ("system", "developer"):
        content = first.get("content")
        if isinstance(content, str):
            return [{**first, "content": f"{context}\n\n{content}"}, *messages[1:]]
        if isinstance(content, list):
            part = {"type": "text", "text": f"{context}\n\n"}
            return [{**first, "content": [part, *content]}, *messages[1:]]
    return [{"role": "system", "content": context}, *messages]
