"""Cursor's "Export chat": Markdown; above each message a rule and `**User**` or `**Cursor**`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from language.transcripts import Role, Transcript
from palace.transfer.importers.conversation import (
    UNKNOWN_FORM,
    Conversation,
    Gatherer,
    derived_id,
    label,
)
from palace.transfer.importers.export_format import Format, Head, named
from palace.transfer.importers.files import Part
from palace.transfer.importers.markdown import read_text, without_margin

SOURCE = "cursor"
_HEAD = re.compile(r"# [^\n]*\n_Exported on [^\n]{1,80} from Cursor \([^\n)]{1,40}\)_\r?\n")
_MARKS: dict[str, Role] = {"**User**": "user", "**Cursor**": "assistant"}
_RULE = "---"


def _recognises(head: Head) -> bool:
    return bool(_HEAD.match(head.text))


def conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """The export has one time, in the form of its country: `latest` is used instead."""
    gatherer = Gatherer()
    text = read_text(part, gatherer)
    messages = _messages(text or "")
    title = (text or "").partition("\n")[0].strip().removeprefix("# ")
    if text is not None and not messages:
        gatherer.skip(UNKNOWN_FORM)
    seen: Counter[str] = Counter()
    for role, words in messages:
        # A chat may be taken up again further back: ids are of words, and of how often they came.
        key = derived_id(role, words)
        seen[key] += 1
        gatherer.add(f"{key}~{seen[key]}", role, words, latest)
    # A later export of the same chat begins in the same way.
    name = derived_id(title, messages[0][1] if messages else part.name)
    yield gatherer.conversation(
        Transcript(SOURCE, name, label(title), gatherer.take_turns(), "Cursor")
    )


FORMAT = Format(
    SOURCE,
    "Cursor chat",
    where="In Cursor, in the menu of a chat: Export chat. Give the cursor_….md, or a zip or folder "
    "of several.",
    becomes="each file",
    skips="files that are not UTF-8",
    recognises=_recognises,
    members=named(r"cursor_.+\.md"),
    conversations=conversations,
)


def _messages(text: str) -> list[tuple[Role, str]]:
    found: list[tuple[Role, list[str]]] = []
    lines: list[str] = []
    for line in text.split("\n"):
        role = _MARKS.get(line.strip())
        if role and _ends_with_rule(lines):
            lines = []
            found.append((role, lines))
        else:
            lines.append(line)
    said = [(role, "\n".join(without_margin(lines)).rstrip("\r")) for role, lines in found]
    return [(role, words) for role, words in said if words]


def _ends_with_rule(lines: list[str]) -> bool:
    """Whether a rule is last, which is then removed; blank lines around it go as well."""
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    if not end or lines[end - 1].strip() != _RULE:
        return False
    del lines[end - 1 :]
    return True
