"""What a conversation is called until somebody renames it."""

from __future__ import annotations

import pytest

from chat.models import TITLE_LENGTH, one_line, title_of


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Hello", "Hello"),
        ("\n \n  First   line \nsecond", "First line"),
        ("\u200b\n\x0cseen", "seen"),
        ("\u200b", "Untitled"),
        ("🏛️", "🏛️"),
        ("a\0b", "a\ufffdb"),
        ("word " * 30, "word " * 12 + "…"),
        ("x" * 300, "x" * TITLE_LENGTH + " …"),
    ],
)
def test_the_first_line_is_the_title(text, title):
    assert title_of(text) == title


def test_what_cannot_be_seen_is_no_name():
    assert one_line(" \u200b \u2060 ") == ""
    assert one_line(" Coach \n Carter ") == "Coach Carter"
