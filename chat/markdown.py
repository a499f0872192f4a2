"""Replies as pages show them: Markdown into HTML that holds no markup of the model's own.

Raw HTML is text here, addresses are checked by markdown-it's own list, and no picture is loaded:
its address could carry what was said to somebody else's server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from language.errors import BadPointer
from palace.models import Pointer

# Characters. Limits the rendering of a reply to about half a second.
LONGEST = 60_000
# The same for highlighted code: a growing reply is rendered again and again.
LONGEST_HIGHLIGHTED = 20_000

# A reply's headings begin below those of the page.
_LOWEST_HEADING, _HEADINGS_DOWN = 6, 2
_POINTER = re.compile(r"(?:§\s*)?W-\d{1,9}/R-\d{1,9}/D-\d{1,9}", re.IGNORECASE)


def render_markdown(text: str, places: Mapping[str, str] | None = None) -> SafeString:
    """Render a reply as safe HTML; text after `LONGEST` characters is shown as plain text.

    Args:
        places: Addresses by pointer, written in full; these pointers become links.
    """
    end = len(text) if len(text) <= LONGEST else text.rfind("\n", 0, LONGEST) + 1 or LONGEST
    html: str = _markdown().render(text[:end], {"places": places or {}})
    # An element that may scroll sideways must be reachable by keyboard.
    html = html.replace("<pre>", '<pre tabindex="0">')
    if end < len(text):
        html += format_html('<div class="unformatted">{}</div>', text[end:])
    return SafeString(html)


@cache
def _markdown() -> MarkdownIt:
    markdown = MarkdownIt(
        "js-default",
        {"html": False, "linkify": False, "maxNesting": 20, "highlight": _highlighted},
    )
    markdown.disable("image")
    markdown.core.ruler.push("loci", _adapt)
    markdown.add_render_rule("table_open", _scrollable_table)
    markdown.add_render_rule("table_close", _end_of_table)
    return markdown


def _highlighted(code: str, language: str, _attributes: str) -> str:
    """Highlighted code, escaped; empty if its language is unknown."""
    if not language or len(code) > LONGEST_HIGHLIGHTED:
        return ""
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return ""
    coloured: str = highlight(code, lexer, _formatter())
    return coloured


@cache
def _formatter() -> HtmlFormatter[str]:
    # Classes only: the content security policy forbids inline styles.
    return HtmlFormatter(nowrap=True, classprefix="code-")


def _adapt(state: Any) -> None:
    places = state.env["places"]
    for token in state.tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(int(token.tag[1]) + _HEADINGS_DOWN, _LOWEST_HEADING)}"
        if token.children:
            token.children = list(_with_links(token.children, places))


def _with_links(tokens: list[Token], places: Mapping[str, str]) -> list[Token]:
    adapted: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.type == "link_open":
            end = next(n for n in range(at, len(tokens)) if tokens[n].type == "link_close")
            adapted += _link(tokens[at : end + 1], places)
            at = end
        elif token.type == "text":
            adapted += _linked_pointers(token.content, places)
        else:
            adapted.append(token)
        at += 1
    return adapted


def _link(tokens: list[Token], places: Mapping[str, str]) -> list[Token]:
    """Link a pointer to its page, or to nothing; other links open outside, without a referrer."""
    start, *inside, end = tokens
    if _POINTER.search("".join(token.content for token in inside)):
        return _with_links(inside, places)
    start.attrSet("rel", "noopener noreferrer nofollow")
    return [start, *inside, end]


def _linked_pointers(text: str, places: Mapping[str, str]) -> list[Token]:
    tokens: list[Token] = []
    at = 0
    for match in _POINTER.finditer(text):
        address = places.get(_written_in_full(match[0]))
        if address is None:
            continue
        link = Token("link_open", "a", 1, attrs={"href": address, "class": "pointer"})
        tokens += [_text(text[at : match.start()]), link, _text(match[0])]
        tokens.append(Token("link_close", "a", -1))
        at = match.end()
    return [*tokens, _text(text[at:])]


def pointers_in(text: str) -> set[str]:
    """The pointers that a text names, each written in full."""
    return {_written_in_full(match[0]) for match in _POINTER.finditer(text)}


def _written_in_full(pointer: str) -> str:
    try:
        return str(Pointer.parse(pointer))
    except BadPointer:
        return ""


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def _scrollable_table(self: Any, tokens: list[Token], place: int, options: Any, env: Any) -> str:
    return '<div class="table" tabindex="0" role="region" aria-label="Table">\n<table>\n'


def _end_of_table(self: Any, tokens: list[Token], place: int, options: Any, env: Any) -> str:
    return "</table>\n</div>\n"
