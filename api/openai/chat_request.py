"""A program's chat request: its body, with the context put before its instructions and otherwise
unchanged; its messages as text; and the memory options from its headers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

from django.http import HttpRequest

from api.openai.access import BadRequest
from api.openai.client_tasks import is_client_task
from api.rest.parsing import check_whole, read_json
from api.rest.problems import Problem
from chat.prompt import BUILT_IN
from language.storable import digest
from language.transcripts import Role
from palace.models import Palace
from palace.storage import own_words, without_loci_answers
from settings_app.api_keys import ApiKey

# Enough for a few pictures. Each message is aligned with the filed ones.
MOST_BYTES = 32 << 20
MOST_MESSAGES = 2048
MODES = ("on", "recall", "remember", "off")
# The model names that stand for the owner's choice, with memory and without; so does no name.
OWN_MODEL, WITHOUT_MEMORY = "loci", "loci-off"
# What any model refuses, and a reply without a model would pass over in silence.
_NUMBERS = ("temperature", "top_p", "max_tokens", "max_completion_tokens", "n", "seed")
_SWITCHES, _OBJECTS = ("stream",), ("response_format", "stream_options")
# System prompts belong to the program; nobody said them.
_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """
    Attributes:
        mode: The memory mode that the program requests, one of `MODES`.
        user_id: Whose palace; None is the key's own.
        conversation: The program's id for it, if any.
        is_task: Nobody said it; the program asks about a conversation.
    """

    body: dict[str, Any]
    mode: str
    user_id: str | None
    conversation: str | None
    is_task: bool = False

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
        """The requested model, or the owner's choice if none is requested."""
        wish = self.body.get("model")
        return own if wish in (None, "", OWN_MODEL, WITHOUT_MEMORY) else str(wish)

    def check_without_model(self) -> None:
        """
        Raises:
            BadRequest: only a model could answer this.
        """
        wanted = self._needs_model()
        if wanted:
            said = (
                f"{wanted} needs a language model, and none is chosen here. The owner of this key "
                "chooses one on the page /settings/model/."
            )
            raise BadRequest(said[0].upper() + said[1:], code="model_required")

    def _needs_model(self) -> str:
        """Why the request needs a model; empty if quotes from the palace suffice."""
        body = self.body
        for name in ("tools", "functions"):
            choice = body.get("tool_choice" if name == "tools" else "function_call")
            if body.get(name) and choice != "none":
                return f"a call of {name}"
        form = body.get("response_format")
        if isinstance(form, dict) and form.get("type") in ("json_schema", "json_object"):
            return f"an answer in the response_format {form['type']}"
        return "a title, tags or the like" if self.is_task else ""

    def with_context(self, context: str, model: str) -> bytes:
        """The body to forward: the memories before the system prompt, all else unchanged."""
        sent = {**self.body, "model": model}
        if context:
            sent["messages"] = _led(self.messages, context)
        return json.dumps(sent).encode()


def read_request(request: HttpRequest, key: ApiKey) -> ChatRequest:
    """
    Raises:
        Problem: what is wrong with it.
    """
    return as_chat_request(request, key, read_body(request))


def read_body(request: HttpRequest) -> dict[str, Any]:
    """
    Raises:
        Problem: it is no JSON object, or cannot be stored.
    """
    sent = request.read(MOST_BYTES + 1)
    check_whole(request, sent)
    body = read_json(sent, most_bytes=MOST_BYTES)
    if not isinstance(body, dict):
        raise BadRequest("The body is not an object: send {“model”: …}, and what to answer.")
    return body


def as_chat_request(request: HttpRequest, key: ApiKey, body: dict[str, Any]) -> ChatRequest:
    """The body with the memory options of the request's headers.

    Raises:
        Problem: what is wrong with it.
    """
    _check_messages(body.get("messages"))
    if not isinstance(body.get("model"), str | None):
        raise BadRequest("model is a string: a model's name, or “loci”.", param="model")
    _check_options(body)
    wished = request.headers.get("X-Loci-Memory")
    mode = "on" if wished is None else wished.strip().lower()
    if mode not in MODES:
        raise BadRequest(f"X-Loci-Memory is one of {', '.join(MODES)}.")
    is_task = wished is None and is_client_task(body)
    if is_task or body.get("model") == WITHOUT_MEMORY:
        mode = "off"
    conversation = _conversation(request, key)
    return ChatRequest(body, mode, user_id_of(request, key, body), conversation, is_task)


def _check_messages(messages: Any) -> None:
    if not isinstance(messages, list) or not messages:
        raise BadRequest("messages is a list of at least one message.", param="messages")
    if len(messages) > MOST_MESSAGES:
        said = f"messages has up to {MOST_MESSAGES} messages; leave the oldest ones out."
        raise BadRequest(said, param="messages")
    for place, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            said = f"messages[{place}] is not a message: a message is an object with a role."
            raise BadRequest(said, param=f"messages[{place}]")
        if not _is_content(message):
            at = f"messages[{place}].content"
            raise BadRequest(f"{at} is a text, or a list of parts, which are objects.", param=at)


def _is_content(message: dict[str, Any]) -> bool:
    """Only a user's message must have some: an assistant's may be calls of tools alone."""
    content = message.get("content")
    if isinstance(content, list):
        return all(isinstance(part, dict) for part in content)
    return isinstance(content, str) or (content is None and message["role"] != "user")


def _check_options(body: dict[str, Any]) -> None:
    for name in _NUMBERS:
        given = body.get(name)
        if isinstance(given, bool) or not isinstance(given, int | float | None):
            raise BadRequest(f"{name} is a number.", param=name)
    for name in _SWITCHES:
        if not isinstance(body.get(name), bool | None):
            raise BadRequest(f"{name} is true or false.", param=name)
    for name in _OBJECTS:
        if not isinstance(body.get(name), dict | None):
            raise BadRequest(f"{name} is an object.", param=name)


def _conversation(request: HttpRequest, key: ApiKey) -> str | None:
    named = _header(request, "X-Loci-Conversation")
    if named is not None and not named.strip():
        raise BadRequest("X-Loci-Conversation is blank; give an id, or leave it out.")
    return named or _forwarded(request, key, "X-OpenWebUI-Chat-Id")


def user_id_of(request: HttpRequest, key: ApiKey, body: dict[str, Any]) -> str | None:
    """Whose palace: the header's, else the body's `user`, by which programs identify their users.

    A key for one palace already determines it; what the program calls its user is then ignored.
    """
    user_id = body.get("user")
    if user_id is not None and not isinstance(user_id, str):
        raise BadRequest("user is a string: your id of the person who asks.", param="user")
    named = _header(request, "X-Loci-User")
    if named is not None or key.subject is not None:
        return named
    said = _forwarded(request, key, "X-OpenWebUI-User-Id") or user_id
    return said if said and said.strip() else None


def _forwarded(request: HttpRequest, key: ApiKey, name: str) -> str | None:
    """What Open WebUI says about its user, if the key's owner trusts it; None if it is blank."""
    said = _header(request, name) if key.trusts_open_webui else None
    return said if said and said.strip() else None


def _header(request: HttpRequest, name: str) -> str | None:
    """The header decoded as UTF-8, as programs send it; HTTP reads it as Latin-1.

    Raises:
        Problem: 400, it is not UTF-8.
    """
    value = request.headers.get(name)
    if value is None:
        return None
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        raise Problem(400, "bad_input", f"{name} is not in UTF-8.") from None


def _led(messages: list[dict[str, Any]], context: str) -> list[dict[str, Any]]:
    """Put the context first, inside the system prompt if any: some models accept only one."""
    first = messages[0]
    if first["role"] in ("system", "developer"):
        content = first.get("content")
        if isinstance(content, str):
            return [{**first, "content": f"{context}\n\n{content}"}, *messages[1:]]
        if isinstance(content, list):
            part = {"type": "text", "text": f"{context}\n\n"}
            return [{**first, "content": [part, *content]}, *messages[1:]]
    return [{"role": "system", "content": context}, *messages]


@dataclass(frozen=True, slots=True)
class Said:
    role: Role
    text: str
    speaker: str = ""

    @property
    def words(self) -> tuple[str, str]:
        """Its identity; stripped, because some programs trim whitespace."""
        return self.role, self.text.strip()

    @property
    def id(self) -> str:
        """A digest: equal words have equal ids."""
        return digest("\n".join(self.words))[:32]


@dataclass(frozen=True, slots=True)
class History:
    """The messages of a request.

    Attributes:
        said: In order.
        answered: The number of messages up to and including the last reply.
        opening: Whether there is no reply yet.
    """

    said: tuple[Said, ...]
    answered: int
    opening: bool

    @property
    def question(self) -> str:
        """The person's last message; empty if it has no words."""
        return next((each.text for each in reversed(self.said) if each.role == "user"), "")


def read_history(messages: Sequence[Mapping[str, Any]]) -> History:
    said: list[Said] = []
    answered, opening = 0, True
    for message in messages:
        role = _ROLES.get(message["role"])
        text = text_of(message.get("content"))
        if role:
            # Strip the block that an earlier recall inserted.
            text = own_words(role, text)
        quotes = role == "assistant" and text.startswith(BUILT_IN)
        # Quotes from the palace are filed already.
        if role and text.strip() and not quotes:
            name = message.get("name")
            said.append(Said(role, text, name if isinstance(name, str) else ""))
        if role == "assistant":
            answered, opening = len(said), False
    return History(tuple(said), answered, opening)


def without_our_answers(history: History, palace: Palace) -> History:
    """The history without Loci's own answers."""
    by_programs = {each.text for each in history.said if each.role != "user"}
    left = without_loci_answers(palace, by_programs)
    if not left:
        return history
    said = [
        each if each.role == "user" else replace(each, text=left.get(each.text, each.text))
        for each in history.said
    ]
    kept = [bool(each.text.strip()) for each in said]
    return replace(
        history,
        said=tuple(compress(said, kept)),
        answered=sum(kept[: history.answered]),
    )


def text_of(content: object) -> str:
    """The text of a message's content: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (part.get("text") for part in content if isinstance(part, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))
