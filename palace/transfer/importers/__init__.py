"""Parsers of other programs' exports, which yield transcripts; they do not use the database.

Here are the supported formats, and how a file's format is detected: by content, not by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from language.errors import BadImport
from palace.transfer.importers import (
    agent_sessions,
    chat_sites,
    chatgpt,
    claude,
    code_editors,
    cursor_database,
    files,
    loci,
    mail,
    message_lists,
    messengers,
    self_hosted,
    team_chats,
    terminal_agents,
    text_files,
)
from palace.transfer.importers.conversation import Conversation
from palace.transfer.importers.files import Format, Head
from palace.transfer.importers.json_stream import (
    first_character,
    first_object,
    head_text,
    is_text,
    is_utf16,
    list_items,
)

# The most leading conversations without messages before detection gives up.
_LOOK_AT = 50

CHATGPT = chatgpt.CHATGPT_FORMAT
CLAUDE = claude.FORMAT
GEMINI = chat_sites.GEMINI_FORMAT
SLACK = team_chats.SLACK_FORMAT
MARKDOWN = text_files.MARKDOWN_FORMAT
LOCI = loci.EXPORT
PLAIN = message_lists.PLAIN_FORMAT
# The same lines; a source of its own lets one step take all of it out again. Never detected.
SAMPLE = replace(
    PLAIN,
    source="sample",
    name="sample palace",
    conversations=partial(message_lists.plain_conversations, source="sample"),
)
# Formats that are Markdown, which by itself looks like any text.
_IN_MARKDOWN = (code_editors.CURSOR_FORMAT, text_files.AIDER_FORMAT)
# The first that recognises a file reads it.
FORMATS = {
    each.source: each
    for each in (
        CHATGPT,
        CLAUDE,
        claude.PROJECTS_FORMAT,
        claude.MEMORIES_FORMAT,
        GEMINI,
        chatgpt.DEEPSEEK_FORMAT,
        chat_sites.GROK_FORMAT,
        chat_sites.PERPLEXITY_FORMAT,
        agent_sessions.CLAUDE_CODE_FORMAT,
        terminal_agents.CODEX_FORMAT,
        terminal_agents.GEMINI_CLI_FORMAT,
        code_editors.COPILOT_FORMAT,
        code_editors.CURSOR_FORMAT,
        cursor_database.FORMAT,
        code_editors.TRANSCRIPT_FORMAT,
        text_files.AIDER_FORMAT,
        self_hosted.OPEN_WEBUI_FORMAT,
        self_hosted.LIBRECHAT_FORMAT,
        self_hosted.SILLY_TAVERN_FORMAT,
        SLACK,
        team_chats.DISCORD_FORMAT,
        messengers.WHATSAPP_FORMAT,
        messengers.TELEGRAM_FORMAT,
        mail.FORMAT,
        MARKDOWN,
        text_files.NOTE_FORMAT,
        LOCI,
        message_lists.MEM0_FORMAT,
        message_lists.SHAREGPT_FORMAT,
        message_lists.OPENAI_FORMAT,
        PLAIN,
    )
}


def detect(path: Path, name: str = "") -> Format:
    """The format of the file, from its first conversations; messages call it `name`.

    Raises:
        BadImport: The format is unknown, or the file is broken at its beginning.
    """
    name = name or path.name
    require_file(path, name)
    with files.opened(path, name) as found:
        format_ = (
            _format_of_archive(found) if isinstance(found, files.Archive) else _format_of(found)
        )
    if format_ is None:
        raise BadImport(f"{name} holds no conversations.")
    return format_


def _format_of_archive(archive: files.Archive) -> Format | None:
    for format_ in FORMATS.values():
        if format_.is_archive(archive):
            return format_
    for name in _candidates(archive):
        with archive.part(name) as part:
            if found := _format_of(part):
                others = len(_members(archive, MARKDOWN)) - len(_members(archive, found))
                if found in _IN_MARKDOWN and others > len(_members(archive, found)):
                    return MARKDOWN  # A folder of notes, in which some are chats: none is lost.
                return found
    return None


def _candidates(archive: files.Archive) -> list[str]:
    """The files that may hold conversations: the first kind of names that is there.

    Of the loose kinds it is the one with the most files.
    """
    found = [(each.is_loose, _members(archive, each)) for each in FORMATS.values()]
    strict = [names for is_loose, names in found if names and not is_loose]
    loose = [names for is_loose, names in found if names and is_loose]
    if not strict and not loose:
        raise BadImport(files.nothing_inside(archive))
    return strict[0] if strict else max(loose, key=len)


def _members(archive: files.Archive, format_: Format) -> list[str]:
    return format_.members(archive.members)


def read(
    path: Path, format_: Format, *, name: str = "", progress: files.Progress | None = None
) -> Iterator[Conversation]:
    """Yield the conversations in order, with at most one in memory.

    `progress` is called with the bytes of the file read so far.

    Raises:
        BadImport: The file is broken; earlier conversations were yielded.
    """
    name = name or path.name
    require_file(path, name)
    latest = files.exported_at(path)
    with files.opened(path, name, progress) as found:
        if isinstance(found, files.Archive) and format_.of_archive:
            yield from format_.of_archive(found, latest)
        elif isinstance(found, files.Archive):
            for member in _members(found, format_):
                with found.part(member) as part:
                    yield from _read_part(part, format_, latest)
        else:
            yield from _read_part(found, format_, latest)


def _read_part(part: files.Part, format_: Format, latest: datetime) -> Iterator[Conversation]:
    reads_empty_files = format_ in (PLAIN, MARKDOWN, text_files.NOTE_FORMAT)
    if format_.conversations and (first_character(part) or reads_empty_files):
        yield from format_.conversations(part, latest)


def require_file(path: Path, name: str) -> None:
    if path.is_dir() and not any(path.iterdir()):
        raise BadImport(f"{name} is an empty folder; give the zip, or what was in it.")
    if not path.is_dir() and not path.is_file():
        raise BadImport(f"There is no file {path}.")


def _format_of(part: files.Part) -> Format | None:
    """None for a part without conversations, such as an empty list."""
    if text_files.is_markdown(part.name):
        head = Head(head_text(part))
        return next((each for each in _IN_MARKDOWN if each.recognises(head)), MARKDOWN)
    if format_ := _recognised(Head(head_text(part))):
        return format_
    if not text_files.is_plain_text(part.name):
        return _format_of_json(part)
    try:
        return _format_of_json(part)
    except BadImport:
        return text_files.NOTE_FORMAT


def _format_of_json(part: files.Part) -> Format | None:
    if is_utf16(part):
        raise BadImport(
            f"{part.name} is text in UTF-16, and JSON is read in UTF-8 only. Open it in a text "
            "editor, save it with the encoding UTF-8, and give that file."
        )
    match first_character(part):
        case "":
            return None
        case "[":
            return _format_of_list(part)
        case "{":
            return _format_of_object(part)
        case "<":
            raise BadImport(
                f"{part.name} is a web page; give the conversations.json that came with it. "
                "Of Gemini, export My Activity again and choose JSON."
            )
    what = "not JSON" if is_text(part) else "not text, but a picture or another binary file"
    raise BadImport(f"{part.name} is no export we know: it is {what}. {_what_we_read()}")


def _recognised(head: Head) -> Format | None:
    return next((each for each in FORMATS.values() if each.recognises(head)), None)


def _format_of_list(part: files.Part) -> Format | None:
    item = None
    for item in islice(list_items(part), _LOOK_AT):
        if not isinstance(item, dict):
            break
        if format_ := _recognised(Head(value=item, is_listed=True)):
            return format_
    if item is None:
        return None
    if isinstance(item, dict) and "messages" in item:
        raise BadImport(
            f"{part.name} is one list of conversations; in the plain format each is a line "
            "of its own, without a list around them."
        )
    raise BadImport(f"{part.name} is no export we know. {_what_we_read()}")


def _format_of_object(part: files.Part) -> Format:
    value = first_object(part)
    if format_ := _recognised(Head(value=value)):
        return format_
    if "messages" not in value and _is_single_conversation(value):
        raise BadImport(
            f"{part.name} holds a single conversation; give the whole export, which is a list "
            "of them."
        )
    return PLAIN


def _is_single_conversation(value: dict[str, Any]) -> bool:
    return chatgpt.MESSAGES in value or claude.MESSAGES in value


def _what_we_read() -> str:
    # The reader has no settings, so the name of the page is not in the form of this installation.
    return f"Loci reads {names_in_words()}; the documentation describes them under “importing”."


def names_in_words() -> str:
    """The names of the formats, in a sentence."""
    *names, last = [each.name for each in FORMATS.values()]
    return f"{', '.join(names)} and {last}"


def table_of_formats() -> str:
    """The formats as a Markdown table, for docs/importing.md."""
    rows = [(each.name, each.where, each.becomes, each.skips) for each in FORMATS.values()]
    head = ("format", "what to give", "a conversation is", "left out, and counted")
    table = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in table)
