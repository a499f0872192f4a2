"""The text of an HTML fragment, in lines and paragraphs as displayed.

A page may be crafted to be slow to parse. So tags are found in one pass, unlike in the standard
library's parser, which searches for the end of every unclosed tag again.
"""

from __future__ import annotations

import html
import re

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
