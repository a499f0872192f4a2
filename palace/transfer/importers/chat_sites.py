"""The exports of Grok, Perplexity and Gemini.

Grok: conversations as trees of responses; times are those of MongoDB.

Perplexity: the account's data, and threads as exporters of others save them. Both have entries,
each a question and its answer. In the account's data, which come on request, a file has all
threads. Exporters save what the site itself loads: a thread a file.

Gemini's activity from Google Takeout: a list of prompts, newest first. It has no conversations: the
prompts of one day become one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from itertools import groupby
from typing import Any

from language.transcripts import Transcript
from palace.transfer.importers.conversation import (
    UNKNOWN_FORM,
    Conversation,
    Gatherer,
    as_id,
    as_list,
    as_mapping,
    as_time,
    conversation_object,
    derived_id,
    label,
)
from palace.transfer.importers.files import Format, Head, Part, named
from palace.transfer.importers.json_stream import JsonReader, first_character, list_items
from palace.transfer.importers.message_forms import MessageTree, TreeReader, parent_of, text_of

GROK_SOURCE = "grok"
CONVERSATIONS, MESSAGES = "conversations", "responses"
ONLY_PIECES = "holds no words, only files, pictures or searches"
_PARENT = "parent_response_id"
# What a response has beside its words: (field, what it is). A list counts as so many.
_GROK_LEFT_OUT = (
    ("thinking_trace", "thinking"),
    ("agent_thinking_traces", "thinking"),
    ("web_search_results", "search result"),
    ("file_attachments", "file"),
    ("generated_image_urls", "image"),
)


def _is_grok(head: Head) -> bool:
    fields = as_mapping(head.value)
    first = next(iter(as_list(fields.get(CONVERSATIONS))), None)
    item = fields if head.is_listed else as_mapping(first)
    about = as_mapping(item.get("conversation"))
    # What is seen of a long file may end within the conversation, at a list in it.
    begins_so = not head.is_listed and {"id", "create_time"} <= about.keys()
    return "conversation" in item and (MESSAGES in item or begins_so)


def grok_conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    for item in _listed(part):
        yield _read(as_mapping(item), latest)


GROK_FORMAT = Format(
    GROK_SOURCE,
    "Grok export",
    where="On accounts.x.ai/data: Download account data. Give the zip as it is, or the "
    "prod-grok-backend.json in it.",
    becomes="each conversation; every other branch is one of its own",
    skips="reasoning, searches, pictures, files; projects, tasks and posts are not read",
    recognises=_is_grok,
    members=named(r"prod-grok-backend\.json"),
    conversations=grok_conversations,
)


def _listed(part: Part) -> Iterator[Any]:
    """The conversations, whether they stand alone or beside projects, tasks and posts."""
    if first_character(part) == "[":
        yield from list_items(part)
        return
    reader = JsonReader(part)
    for key in reader.fields():
        if key == CONVERSATIONS and reader.peek() == "[":
            for _ in reader.elements():
                yield reader.value()
        else:
            reader.value()
    if reader.peek():
        reader.fail("goes on after its object has ended")


def _read(raw: dict[str, Any], latest: datetime) -> Conversation:
    about = as_mapping(raw.get("conversation"))
    messages = _by_id(raw)
    gatherer = Gatherer()

    def add(key: str, said_at: datetime) -> None:
        _add_grok(gatherer, key, messages[key], said_at)

    def time_of(key: str) -> datetime | None:
        return _time(messages[key].get("create_time"))

    title, started = label(about.get("title")), about.get("create_time")
    name = as_id(about.get("id")) or derived_id(title, started, next(iter(messages), None))
    tree = MessageTree(_parents(messages), about.get("leaf_response_id"))
    reader = TreeReader(tree, gatherer, _time(started) or latest, time_of, add)
    return reader.conversation(GROK_SOURCE, title, lambda _: name)


def _by_id(raw: dict[str, Any]) -> dict[str, dict[str, Any]]:
    messages: dict[str, dict[str, Any]] = {}
    for place, item in enumerate(as_list(raw.get(MESSAGES))):
        message = as_mapping(as_mapping(item).get("response"))
        key = as_id(message.get("_id")) or f"~{place}"
        messages[f"{key}~{place}" if key in messages else key] = message
    return messages


def _parents(messages: dict[str, dict[str, Any]]) -> dict[str, str | None]:
    """As the export names them; early exports name none, then each follows the one before."""
    if any(parent_of(message, _PARENT) for message in messages.values()):
        return {key: parent_of(message, _PARENT) for key, message in messages.items()}
    return dict(zip(messages, [None, *messages], strict=False))


def _add_grok(gatherer: Gatherer, key: str, message: dict[str, Any], said_at: datetime) -> None:
    pieces = [what for field, what in _GROK_LEFT_OUT for _ in _counted(message.get(field))]
    for piece in pieces:
        gatherer.leave_out(piece)
    text = message.get("message")
    if not isinstance(text, str):
        gatherer.skip(UNKNOWN_FORM)
    elif pieces and not text.strip():
        gatherer.skip(ONLY_PIECES)
    else:
        gatherer.add(as_id(key) or "~", _role(message.get("sender")), text, said_at)


def _counted(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []


def _role(sender: object) -> str:
    """Grok's own words have the sender assistant, or the name of the model."""
    name = str(sender).lower()
    is_grok = name in ("assistant", "model") or name.startswith("grok")
    return "assistant" if is_grok else {"human": "user"}.get(name, name)


def _time(value: Any) -> datetime | None:
    """An ISO time, or {"$date": {"$numberLong": milliseconds}}."""
    stamp = as_mapping(value).get("$date", value)
    stamp = as_mapping(stamp).get("$numberLong", stamp)
    if isinstance(stamp, str) and stamp.isascii() and stamp.isdigit() and len(stamp) < 16:
        stamp = int(stamp)
    return as_time(stamp / 1000 if isinstance(stamp, int) and stamp > 1e11 else stamp)


PERPLEXITY_SOURCE = "perplexity"
_ENTRIES = "entries"
_ANSWER = "ask_text"
# Of an entry, one of which comes before its first list.
_MARKS = {"query", "query_str", "backend_uuid"}
# What an answer has beside its text.
_PERPLEXITY_LEFT_OUT = {
    "sources_answer_mode": "search",
    "web_results": "search",
    "pro_search_steps": "search",
    "plan": "thinking",
    "reasoning_plan": "thinking",
    "image_answer_mode": "image",
    "media_items": "image",
    "video_answer_mode": "video",
}


def _is_perplexity(head: Head) -> bool:
    """An object, not a list: the first list in it is of threads, or of entries."""
    fields = as_mapping(head.value)
    first = next(iter(as_list(fields.get("conversations"))), None)
    return not head.is_listed and (_is_thread(first) or _is_thread(fields))


def _is_thread(value: Any) -> bool:
    fields = as_mapping(value)
    entry = as_mapping(next(iter(as_list(fields.get(_ENTRIES))), None))
    return "context_title" in fields or bool(_MARKS & entry.keys())


def perplexity_conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    reader, alone, number = JsonReader(part), {}, 0
    for key in reader.fields():
        if key == "conversations" and reader.peek() == "[":
            for number, _ in enumerate(reader.elements(), start=1):
                yield _thread(reader.value(), number, part.name, latest)
        else:
            alone[key] = reader.value()
    if reader.peek():
        reader.fail("goes on after its object has ended")
    if _ENTRIES in alone:
        yield _thread(alone, number + 1, part.name, latest)


PERPLEXITY_FORMAT = Format(
    PERPLEXITY_SOURCE,
    "Perplexity data",
    where="Ask Perplexity for your account's data, and give the JSON file with conversations; or "
    "the JSON files of an exporter such as perplexport, or a zip of them.",
    becomes="each thread",
    skips="searches, sources, plans, images, videos",
    recognises=_is_perplexity,
    members=named(r".+\.json"),
    is_loose=True,
    conversations=perplexity_conversations,
)


def _thread(item: Any, number: int, name: str, latest: datetime) -> Conversation:
    raw = conversation_object(item, _ENTRIES, list, number, name)
    entries = list(map(as_mapping, as_list(raw.get(_ENTRIES))))
    first = entries[0] if entries else {}
    title = raw.get("context_title") or first.get("thread_title")
    said_at = as_time(raw.get("created_at")) or latest
    gatherer = Gatherer()
    for place, entry in enumerate(entries):
        said_at = _time_of(entry) or said_at
        _add_perplexity(gatherer, as_id(entry.get("uuid")) or str(place), entry, said_at)
    given = (raw.get("context_uuid"), first.get("context_uuid"), raw.get("uuid"))
    key = next(filter(None, map(as_id, given)), "") or derived_id(
        label(title), raw.get("created_at"), _question(first)
    )
    turns = gatherer.take_turns()
    return gatherer.conversation(
        Transcript(PERPLEXITY_SOURCE, key, label(title), turns, "Perplexity")
    )


def _add_perplexity(
    gatherer: Gatherer, name: str, entry: dict[str, Any], said_at: datetime
) -> None:
    for role, text in (("user", _question(entry)), ("assistant", _answer(gatherer, entry))):
        if isinstance(text, str):
            gatherer.add(as_id(f"{name}/{role}"), role, text, said_at)
        else:
            gatherer.skip(UNKNOWN_FORM)


def _question(entry: dict[str, Any]) -> Any:
    return entry.get("query", entry.get("query_str"))


def _answer(gatherer: Gatherer, entry: dict[str, Any]) -> Any:
    if "blocks" not in entry:
        return entry.get("answer")
    answer = None
    for block in map(as_mapping, as_list(entry["blocks"])):
        kind = str(block.get("intended_usage"))
        if kind == _ANSWER:
            answer = as_mapping(block.get("markdown_block")).get("answer")
        else:
            gatherer.leave_out(_PERPLEXITY_LEFT_OUT.get(kind, "block of another kind"))
    return answer


def _time_of(entry: dict[str, Any]) -> datetime | None:
    names = ("created_at", "entry_created_datetime", "entry_updated_datetime", "updated_datetime")
    return next(filter(None, (as_time(entry.get(name)) for name in names)), None)


GEMINI_SOURCE = "gemini"

NO_PROMPT = "is an activity, not a prompt"
OTHER_PRODUCT = "is of another of Google's products"
# English exports put it before each prompt; in other languages the title is kept whole.
PROMPTED = "Prompted "
_NAMES = ("gemini", "bard")


def is_activity(item: Any) -> bool:
    """Whether it looks like an activity item, of any product."""
    fields = as_mapping(item)
    return isinstance(fields.get("title"), str) and "header" in fields and "time" in fields


def is_of_gemini(item: Any) -> bool:
    fields = as_mapping(item)
    named = [fields.get("header"), *as_list(fields.get("products"))]
    return any(name in str(each).lower() for each in named for name in _NAMES)


def gemini_conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    for day, items in groupby(list_items(part), lambda item: _gemini_time(item, latest).date()):
        yield _of_a_day(day.isoformat(), list(items)[::-1], latest)


def _is_gemini(head: Head) -> bool:
    return head.is_listed and is_activity(head.value) and is_of_gemini(head.value)


_activities = named(r"my ?activity\.json")


def _members(paths: Collection[str]) -> list[str]:
    """Gemini's activities; in an export without folders, all."""
    found = _activities(paths)
    folders = {path: path.rpartition("/")[0].lower() for path in found}
    of_gemini = [path for path in found if any(name in folders[path] for name in _NAMES)]
    return of_gemini or found


GEMINI_FORMAT = Format(
    GEMINI_SOURCE,
    "Gemini activity",
    where="In Google Takeout: only My Activity, of it only Gemini Apps, and as the format JSON. "
    "Give the zip as it is.",
    becomes="the prompts and answers of a day (UTC)",
    skips="activities that are no prompts, other products, files",
    recognises=_is_gemini,
    members=_members,
    conversations=gemini_conversations,
)


def _gemini_time(item: Any, latest: datetime) -> datetime:
    return as_time(as_mapping(item).get("time")) or latest


def _of_a_day(day: str, items: list[Any], latest: datetime) -> Conversation:
    gatherer = Gatherer()
    for item in items:
        _add(gatherer, item, _gemini_time(item, latest))
    return gatherer.conversation(
        Transcript(GEMINI_SOURCE, day, f"Gemini, {day}", gatherer.take_turns(), "Gemini")
    )


def _add(gatherer: Gatherer, item: Any, said_at: datetime) -> None:
    title = as_mapping(item).get("title")
    if not isinstance(title, str):
        gatherer.skip(UNKNOWN_FORM)
        return
    pages = [as_mapping(each).get("html") for each in as_list(item.get("safeHtmlItem"))]
    answers = [page for page in pages if isinstance(page, str)]
    if not is_of_gemini(item):
        gatherer.skip(OTHER_PRODUCT)
    elif not (answers or title.startswith(PROMPTED)):
        gatherer.skip(NO_PROMPT)
    else:
        _leave_out_files(gatherer, item)
        # It has no id; its time is to the millisecond.
        name = as_id(item.get("time")) or derived_id(title)
        gatherer.add(name, "user", title.removeprefix(PROMPTED), said_at)
        for number, page in enumerate(answers):
            # A regenerated answer repeats the prompt.
            answer_id = as_id(f"{name}/{number}")
            gatherer.add(answer_id, "assistant", text_of(page), said_at, "Gemini", {"html": page})


def _leave_out_files(gatherer: Gatherer, item: dict[str, Any]) -> None:
    attached = as_list(item.get("attachedFiles"))
    for _ in attached or ([item["imageFile"]] if item.get("imageFile") else []):
        gatherer.leave_out("file")
