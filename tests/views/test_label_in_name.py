"""What one hears, or says to press something, begins with what one sees (WCAG 2.5.3)."""

from __future__ import annotations

import re
from pathlib import Path

from django.conf import settings

TEMPLATES = Path(settings.BASE_DIR, "templates")
_NAMED = re.compile(
    r'<(?P<tag>a|button|summary)\b(?:[^>"]|"[^"]*")*?\saria-label="(?P<name>[^"]*)"'
    r'(?:[^>"]|"[^"]*")*>(?P<seen>.*?)</(?P=tag)>',
    re.DOTALL,
)
_UNSEEN = re.compile(r'<span class="unseen">.*?</span>|<kbd aria-hidden.*?</kbd>', re.DOTALL)
_TAGS = re.compile(r"<[^>]+>|{%.*?%}")


def named(template):
    """What each labelled link and button shows, and its name."""
    for found in _NAMED.finditer(template.read_text()):
        seen = _TAGS.sub("", _UNSEEN.sub("", found["seen"]))
        yield " ".join(seen.split()), found["name"]


def is_sign(seen):
    """A question mark and the number of a floor are no words."""
    return len(seen) < 2 or seen.startswith("{{")


def test_names_begin_with_the_visible_words():
    mismatches = [
        (template.name, seen, name)
        for template in TEMPLATES.rglob("*.html")
        for seen, name in named(template)
        if not is_sign(seen) and not name.startswith(seen)
    ]
    assert mismatches == []


def test_names_are_found_in_templates():
    assert sum(1 for template in TEMPLATES.rglob("*.html") for _ in named(template)) > 10
