"""Texts that are made to be slow to read, and how much slower a longer one is."""

from __future__ import annotations

import gc
import time

from palace.storage.own_output import BLOCK_START

# What a text is made of, over and over.
REPEATED = [
    *"aA7[](){}<>\"'`*_#~-=+|!?.,;:/\\@$&%^§“”«’…·• \n\t\r",
    *(f"{sign} " for sign in "[(<\"'`*_#~-=|!?.,:§"),
    *(f"a{sign}" for sign in "[(<\"'`*_#~-=|!?.,:@"),
    *(f"{sign}a\n" for sign in "[(<\"'`*_#~-=|>"),
    *(
        f"{BLOCK_START}\n",
        "a\r\n",
        " \n",
        "  \n",
        "```\n",
        "~~~\n",
        "---\n",
        "> ",
        "- a\n",
        "1. ",
        "| a ",
        "**a ",
        "__a ",
    ),
    *(
        "<a",
        "<a ",
        '<a "',
        "<a '\">",
        "<!--",
        "<!",
        "</",
        "<div>",
        "<li>",
        "<pre> ",
        "<think>",
        "&#1",
    ),
    *(
        "<@U",
        "![a](",
        "[a]: b\n",
        "[![",
        "https://a",
        "www.a",
        "a@b",
        "a.a@",
        "a-b-",
        '{"a":',
        "[{",
    ),
    *("**You:** a\n", "## User\n", "title: a\n", "date: \t", "W-1/R-", "Prompted ", "def a("),
    *("I am a ", "I like A and ", "my wife ", "I'm ", "if I ", "said that ", "which is ", "A's "),
    *(
        "last ",
        "two ",
        "in May ",
        "on Monday and ",
        "between ",
        "from 2 to ",
        "2024-01-",
        "2/",
        "of ",
    ),
    *("A Name ", "Dr. ", "日", "é", "\u200b", "\U0001f600"),
]
# What stands at both ends of a long stretch of space, or of one letter.
AROUND = [
    "# a",
    "## User",
    "title:",
    "**You:**",
    "---",
    "```",
    "[",
    "§",
    "<a",
    "I am",
    "in",
    "> ",
    "| ",
]

# Four times as long may take four times the time, and somewhat more on a busy machine.
MOST_TIMES = 9
_TRIES = 4
# What is over sooner is not worth measuring.
_SOON_S = 0.004


def texts():
    """Makers of texts of about so many characters, by name."""
    made = {repr(piece): lambda n, piece=piece: piece * (n // len(piece)) for piece in REPEATED}
    for mark in AROUND:
        made[f"{mark!r}, then spaces"] = lambda n, mark=mark: f"{mark}{' ' * n}b"
        made[f"{mark!r}, then letters"] = lambda n, mark=mark: f"{mark}{'a' * n} {mark}"
    made["lines between words"] = lambda n: "a" + "\n" * n + "b"
    return made


def times_slower(read, make, size):
    """How often as long `read` takes for what `make` makes of four times the size; 0 for at once.

    Raises:
        AssertionError: it takes much longer than it may.
    """
    small, large = make(size), make(4 * size)
    read(small)  # What is made once only is made now.
    ratio = 0.0
    for _ in range(_TRIES):
        after = _seconds(read, large)
        if after < _SOON_S:
            return 0.0
        ratio = after / max(_seconds(read, small), _seconds(read, small), 1e-6)
        if ratio <= MOST_TIMES:
            return ratio
    raise AssertionError(f"four times as much takes {ratio:.0f} times as long")


def _seconds(read, what):
    # Looking for garbage takes time by all that other tests have made.
    gc.disable()
    try:
        begun = time.thread_time()
        read(what)
        return time.thread_time() - begun
    finally:
        gc.enable()
