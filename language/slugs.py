"""Slugs: names as they are matched."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache

MAX_SLUG_LENGTH = 200
_REMOVED = re.compile(r"[^\w\s-]")
_JOINED = re.compile(r"[-\s]+")


@lru_cache(maxsize=10_000)
def slug_of(name: str) -> str:
    """The name as it is matched; one made of signs alone gets a slug of its own."""
    plain = _REMOVED.sub("", unicodedata.normalize("NFKC", name).lower())
    slug = _JOINED.sub("-", plain).strip("-_")[:MAX_SLUG_LENGTH]
    return slug or hashlib.sha256(name.encode()).hexdigest()[:12]
