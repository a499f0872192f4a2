"""Forms that messages have in several exports: trees of branches, and HTML.

In a tree, regenerated answers and edited questions are other branches. The path from the current
message up to the root is the conversation as its program shows it. The other branches are imported
too, each with the messages that are on no branch before it.

The text of an HTML fragment has lines and paragraphs as displayed. A page may be crafted to be slow
to parse. So tags are found in one pass, unlike in the standard library's parser, which searches for
the end of every unclosed tag again.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from language.transcripts import Transcript, Turn
from palace.transfer.importers.conversation import Conversation, Gatherer, as_mapping, branch_id

OTHER_BRANCH = "another branch"


def parent_of(node: Any, key: str = "parent") -> str | None:
    """The id of the parent that a node of an export names; None if it names none."""
    parent = as_mapping(node).get(key)
    return parent if isinstance(parent, str) else None


class MessageTree:
    """Paths through messages, by their ids.

    Args:
        parents: Each message's parent; None for one without.
        current: The last message that is shown; otherwise the last child of the last child…
    """

    def __init__(self, parents: Mapping[str, str | None], current: object) -> None:
        self._parents = {
            key: parent if parent in parents else None for key, parent in parents.items()
        }
        self._current = current if isinstance(current, str) else None
        self._used: set[str] = set()

    def paths(self) -> Iterator[list[str]]:
        """The path that is shown, then each other stretch, oldest message first.

        Visiting all messages also finds cycles without a leaf, which valid trees do not have.
        """
        yield self._unused_path(self._leaf())
        inner = set(self._parents.values())
        leaves = [key for key in self._parents if key not in inner]
        for key in [*leaves, *self._parents]:
            if path := self._unused_path(key):
                yield path

    def parent(self, key: str) -> str | None:
        return self._parents[key]

    def _unused_path(self, key: str | None) -> list[str]:
        """The path from the oldest unused ancestor to the message; stops at cycles."""
        path: dict[str, None] = {}
        while key is not None and key not in self._used and key not in path:
            path[key] = None
            key = self._parents[key]
        self._used.update(path)
        return list(path)[::-1]

    def _leaf(self) -> str | None:
        if self._current in self._parents:
            return self._current
        last_child = {parent: key for key, parent in self._parents.items()}
        seen: set[str | None] = set()
        key = None
        while key in last_child and key not in seen:
            seen.add(key)
            key = last_child[key]
        return key


@dataclass(frozen=True, slots=True)
class TreeReader:
    """Reads the messages of a tree.

    Attributes:
        start: The time of messages without a time that have no parent.
        time_of: A message's own time, by its id; without one it has that of its parent.
        add: Gives a message and its time to the gatherer.
    """

    tree: MessageTree
    gatherer: Gatherer
    start: datetime
    time_of: Callable[[str], datetime | None]
    add: Callable[[str, datetime], None]
    _times: dict[str, datetime] = field(default_factory=dict)

    def conversation(
        self, source: str, title: str, name: Callable[[list[str]], str]
    ) -> Conversation:
        """The conversation and its other branches.

        Args:
            name: The conversation's id, given the ids of the messages that are shown.
        """
        shown, *others = self.tree.paths()
        external_id = name(shown)
        transcript = Transcript(source, external_id, title, self._turns_of(shown))
        branches = [
            Transcript(
                source,
                branch_id(external_id, turns[-1].external_id),
                f"{title} ({OTHER_BRANCH})".lstrip(),
                turns,
            )
            for turns in map(self._turns_of, others)
            if turns
        ]
        return self.gatherer.conversation(transcript, tuple(branches))

    def _turns_of(self, path: list[str]) -> tuple[Turn, ...]:
        for key in path:
            before = self._times.get(self.tree.parent(key) or "", self.start)
            self._times[key] = self.time_of(key) or before
            self.add(key, self._times[key])
        return self.gatherer.take_turns()


_PARAGRAPHS = {"p", "div", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "pre", "table"}
_PARAGRAPHS |= {"blockquote", "section", "hr"}
_LINES = {"br", "li", "tr"}
_UNSEEN = {"script", "style", "head", "template"}
# Elements with raw text.
_RAW = {"script", "style"}
_SPACE = re.compile(r"\s+")
_NAME = re.compile(r"[a-zA-Z][^\s/>\0]*")
# A tag's rest, up to its end or to a quoted value, which may contain “>”.
_UP_TO_VALUE = re.compile(r"[^>\"']*")
_NUMBERED = re.compile(r"&#(?:([0-9]+)|[xX]([0-9a-fA-F]+));?")
# More digits than any code point has.
_MANY_DIGITS = 8


def text_of(page: str) -> str:
    """The page's text, with a blank line between paragraphs and “- ” before list items."""
    reader = _Reader(page)
    reader.read()
    return re.sub(r"\n{3,}", "\n\n", "".join(reader.pieces)).strip()


def unescaped(text: str) -> str:
    """Decode entities, except for numbers that are too large."""
    return html.unescape(_NUMBERED.sub(_shortened, text))


def _shortened(code: re.Match[str]) -> str:
    """Strip leading zeros, which slow down parsing."""
    digits = (code[1] or code[2]).lstrip("0")
    if len(digits) > _MANY_DIGITS:
        return "\N{REPLACEMENT CHARACTER}"
    return f"&#{'x' if code[2] else ''}{digits or '0'};"


class _Reader:
    """Goes through a page once, from tag to tag.

    Attributes:
        pieces: The text so far, in non-empty pieces.
    """

    def __init__(self, page: str) -> None:
        self.pieces: list[str] = []
        self._page = page
        self._last_end = page.rfind(">")
        self._last_comment_end = page.rfind("-->")
        self._values_may_hold_ends = True
        self._exact = 0
        self._unseen = 0

    def read(self) -> None:
        at = 0
        while (sign := self._page.find("<", at)) >= 0:
            self._say(self._page[at:sign])
            at = self._after(sign)
        self._say(self._page[at:])

    def _after(self, sign: int) -> int:
        """The position after the tag or other markup that starts at `sign`."""
        page, closes = self._page, self._page.startswith("/", sign + 1)
        if page.startswith("<!--", sign) and sign + 4 <= self._last_comment_end:
            return page.find("-->", sign + 4) + 3
        if name := _NAME.match(page, sign + 1 + closes):
            return self._after_tag(sign, name, closes=closes)
        if page.startswith(("<!", "<?", "</"), sign) and sign < self._last_end:
            return page.find(">", sign) + 1
        self._say("<")
        return sign + 1

    def _after_tag(self, sign: int, name: re.Match[str], *, closes: bool) -> int:
        end = self._end_of_tag(name.end())
        if end < 0:  # No tag follows.
            self._say(self._page[sign:])
            return len(self._page)
        tag = name[0].lower()
        if closes:
            self._close(tag)
        else:
            self._open(tag)
            if tag in _RAW:
                return self._after_raw(tag, end)
            if self._page[end - 2] == "/":
                self._close(tag)
        return end

    def _end_of_tag(self, at: int) -> int:
        """The position after its “>” outside of quotes; -1 if there is none.

        After an unclosed quote, quotes are ignored, so that the page is not searched again
        for each of its tags.
        """
        while self._values_may_hold_ends and at < self._last_end:
            stop = _UP_TO_VALUE.match(self._page, at).end()  # type: ignore[union-attr]
            if self._page[stop] == ">":
                return stop + 1
            at = self._page.find(self._page[stop], stop + 1) + 1
            if not 0 < at <= self._last_end:
                self._values_may_hold_ends = False
                at = stop
        return self._page.find(">", at) + 1 or -1

    def _after_raw(self, tag: str, at: int) -> int:
        closing = re.compile(rf"</{tag}\s*>", re.IGNORECASE).search(self._page, at)
        return closing.start() if closing else len(self._page)

    def _open(self, tag: str) -> None:
        self._unseen += tag in _UNSEEN
        self._break(tag)
        self._exact += tag == "pre"
        if tag == "li":
            self._add("- ")
        elif tag in ("td", "th") and not self._ends("\n"):
            self._add(" | ")

    def _close(self, tag: str) -> None:
        self._unseen = max(0, self._unseen - (tag in _UNSEEN))
        self._exact = max(0, self._exact - (tag == "pre"))
        if tag in _PARAGRAPHS:
            self._break(tag)

    def _say(self, data: str) -> None:
        if self._unseen:
            return
        data = unescaped(data)
        if not self._exact:
            data = _SPACE.sub(" ", data)
            if not self.pieces or self._ends("\n", " "):
                data = data.lstrip()
        self._add(data)

    def _break(self, tag: str) -> None:
        if tag in _PARAGRAPHS:
            # A list item's text stays on the line of its bullet.
            if not self._ends("- "):
                self._drop_spaces()
                self._add("\n\n")
        elif tag in _LINES:
            self._drop_spaces()
            if not self._ends("\n") or tag == "br":
                self._add("\n")

    def _add(self, data: str) -> None:
        if data:
            self.pieces.append(data)

    def _ends(self, *ends: str) -> bool:
        """Whether the text ends with one of these, of up to two characters each."""
        tail = "".join(piece[-2:] for piece in self.pieces[-2:])
        return tail.endswith(ends)

    def _drop_spaces(self) -> None:
        while self.pieces:
            kept = self.pieces.pop().rstrip(" ")
            if kept:
                self.pieces.append(kept)
                return
