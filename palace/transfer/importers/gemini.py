"""Gemini's activity from Google Takeout: a list of prompts, newest first.

It has no conversations: the prompts of one day become one.
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
    derived_id,
)
from palace.transfer.importers.files import Format, Head, Part, named
from palace.transfer.importers.json_stream import list_items
from palace.transfer.importers.web_text import text_of

SOURCE = "gemini"

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


def conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    for day, items in groupby(list_items(part), lambda item: _time(item, latest).date()):
        yield _of_a_day(day.isoformat(), list(items)[::-1], latest)


def _recognises(head: Head) -> bool:
    return head.is_listed and is_activity(head.value) and is_of_gemini(head.value)


_activities = named(r"my ?activity\.json")


def _members(paths: Collection[str]) -> list[str]:
    """Gemini's activities; in an export without folders, all."""
    found = _activities(paths)
    folders = {path: path.rpartition("/")[0].lower() for path in found}
    of_gemini = [path for path in found if any(name in folders[path] for name in _NAMES)]
    return of_gemini or found


FORMAT = Format(
    SOURCE,
    "Gemini activity",
    where="In Google Takeout: only My Activity, of it only Gemini Apps, and as the format JSON. "
    "Give the zip as it is.",
    becomes="the prompts and answers of a day (UTC)",
    skips="activities that are no prompts, other products, files",
    recognises=_recognises,
    members=_members,
    conversations=conversations,
)


def _time(item: Any, latest: datetime) -> datetime:
    return as_time(as_mapping(item).get("time")) or latest


def _of_a_day(day: str, items: list[Any], latest: datetime) -> Conversation:
    gatherer = Gatherer()
    for item in items:
        _add(gatherer, item, _time(item, latest))
    return gatherer.conversation(
        Transcript(SOURCE, day, f"Gemini, {day}", gatherer.take_turns(), "Gemini")
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
