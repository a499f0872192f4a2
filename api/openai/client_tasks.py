"""Recognise what chat programs ask about a conversation by themselves: for its title, its tags,
questions to go on with, queries for a search. Nobody said it, so nothing is to remember it.

They are known by their form, not by a sentence: one message that holds instructions and the
conversation as a transcript. A person who chats has replies among the messages, or writes no
transcript.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

# Characters. What is longer before the transcript is somebody's text.
MOST_INSTRUCTIONS, MOST_TITLE_INSTRUCTIONS = 20_000, 1_000
_OPENS, _CLOSES = "<chat_history>", "</chat_history>"
_HEADING = re.compile(r"\s*#{1,4} \S")
# The answer's form: an object with a name in quotes.
_OBJECT = re.compile(r'\{\s*"[^"\n]{1,40}"\s*:')
_UPPER_ROLE = re.compile(r"\s*(?:USER|ASSISTANT|SYSTEM|TOOL): ")
_QUERY = re.compile(r'(?:Query: )?History:\s*(?:USER|ASSISTANT): """')
_ASKED = re.compile(r"(?m)^[|>]{0,3} ?(?:User|Human):")
# Found in any length of text, and faster than by an expression.
_ANSWERED = ("\nAI:", "\nAssistant:", "\nTitle:", "\n||>Response:", "\n||>Title:")
_TITLE = re.compile(r"\btitle\b", re.IGNORECASE)
# An emoji for a message: a few tokens at most.
_FEW_TOKENS = 16


def is_client_task(body: Mapping[str, Any]) -> bool:
    """Whether a program asks this for its own use, of a conversation that it quotes."""
    instructions, text = _single_message(body["messages"])
    if not text:
        return False
    if _before_talk(text) and _asks_for_title(body):
        return True
    if body.get("stream") is True:
        return False  # Somebody reads along.
    return (
        _is_template(text)
        or _is_titling(text)
        or _is_tool_choice(instructions, text)
        or _is_emoji_wish(body, text)
    )


def _single_message(messages: Iterable[Mapping[str, Any]]) -> tuple[str, str]:
    """The system prompt, and the only message; empty if there are several, or files."""
    system: list[str] = []
    said: list[str] = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, list) and len(content) == 1 and isinstance(content[0], Mapping):
            content = content[0].get("text")
        if not isinstance(content, str) or message["role"] not in ("user", "system", "developer"):
            return "", ""
        (said if message["role"] == "user" else system).append(content)
    if len(said) > 1 or (not said and len(system) > 1):
        return "", ""
    return ("".join(system), said[0]) if said else ("", "".join(system))


def _is_template(text: str) -> bool:
    """Headings, the form of the answer, and a tagged transcript at the end: Open WebUI's."""
    instructions = _before_history(text)
    return bool(_HEADING.match(instructions) and _OBJECT.search(instructions))


def _before_history(text: str) -> str:
    """What comes before a tagged transcript at the end of the text; empty if there is none."""
    opens, closes = text.find(_OPENS, 0, MOST_INSTRUCTIONS), text.rfind(_CLOSES)
    if not 0 <= opens < closes:
        return ""
    history = text[opens + len(_OPENS) : closes]
    after = text[closes + len(_CLOSES) :].strip()
    is_filled = not history.strip() or _UPPER_ROLE.match(history) is not None
    is_end = not after or after.startswith("<type>")
    return text[:opens] if is_filled and is_end else ""


def _before_talk(text: str) -> str:
    """What comes before a transcript of lines `User: …` and `AI: …`; empty if there is none."""
    asked = _ASKED.search(text, 0, MOST_INSTRUCTIONS)
    if asked is None or not any(text.find(each, asked.end()) >= 0 for each in _ANSWERED):
        return ""
    return text[: asked.start()]


def _is_titling(text: str) -> bool:
    """A sentence or two about a title, and the transcript: LibreChat's, and Open WebUI's once."""
    instructions = _before_talk(text) or _before_history(text)
    is_short = len(instructions) <= MOST_TITLE_INSTRUCTIONS and "\n#" not in instructions
    return is_short and _TITLE.search(instructions) is not None


def _is_tool_choice(instructions: str, text: str) -> bool:
    """Which tools to call, as Open WebUI asks models without tool calls of their own."""
    return '"tool_calls"' in instructions and _QUERY.match(text) is not None


def _is_emoji_wish(body: Mapping[str, Any], text: str) -> bool:
    """A fenced message, and an answer of a few tokens: Open WebUI's, while it speaks."""
    most = body.get("max_completion_tokens") or body.get("max_tokens")
    is_tiny = isinstance(most, int) and most <= _FEW_TOKENS
    return is_tiny and text.rstrip().endswith("```") and ": ```" in text[:MOST_INSTRUCTIONS]


def _asks_for_title(body: Mapping[str, Any]) -> bool:
    """Whether the answer has a title as its only field, or a title and its language."""
    return any("title" in names and names <= {"title", "language"} for names in _schemas(body))


def _schemas(body: Mapping[str, Any]) -> list[set[str]]:
    """The properties of each schema that the answer may follow."""
    tools = body.get("tools")
    listed = [each.get("function") for each in _objects(tools)] if isinstance(tools, list) else []
    schemas = [_at(each, "parameters") for each in listed]
    schemas.append(_at(body, "response_format", "json_schema", "schema"))
    found = [_at(schema, "properties") for schema in schemas]
    return [set(properties) for properties in found if isinstance(properties, Mapping)]


def _objects(values: Iterable[Any]) -> list[Mapping[str, Any]]:
    return [each for each in values if isinstance(each, Mapping)]


def _at(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
