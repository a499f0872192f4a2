"""The words of a piece of a web page, in lines and paragraphs as one sees them."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_PARAGRAPHS = {"p", "div", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "pre", "table"}
_PARAGRAPHS |= {"blockquote", "section", "hr"}
_LINES = {"br", "li", "tr"}
_UNSEEN = {"script", "style", "head", "template"}
_SPACE = re.compile(r"\s+")


def text_of(page: str) -> str:
    """Its text: a blank line between paragraphs, “- ” before what is in a list."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return re.sub(r"\n{3,}", "\n\n", reader.text).strip()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self._exact = 0
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._unseen += tag in _UNSEEN
        self._break(tag)
        self._exact += tag == "pre"
        if tag == "li":
            self.text += "- "
        elif tag in ("td", "th") and not self.text.endswith("\n"):
            self.text += " | "

    def handle_endtag(self, tag: str) -> None:
        self._unseen = max(0, self._unseen - (tag in _UNSEEN))
        self._exact = max(0, self._exact - (tag == "pre"))
        if tag in _PARAGRAPHS:
            self._break(tag)

    def handle_data(self, data: str) -> None:
        if self._unseen:
            return
        if not self._exact:
            data = _SPACE.sub(" ", data)
            if not self.text or self.text[-1] in "\n ":
                data = data.lstrip()
        self.text += data

    def _break(self, tag: str) -> None:
        if tag in _PARAGRAPHS:
            # What a list's point begins with stays on its line.
            if not self.text.endswith("- "):
                self.text = self.text.rstrip(" ") + "\n\n"
        elif tag in _LINES:
            self.text = self.text.rstrip(" ")
            if not self.text.endswith("\n") or tag == "br":
                self.text += "\n"
