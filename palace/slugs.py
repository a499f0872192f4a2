"""Slugs: names as they are matched."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from django.utils.text import slugify

from palace.storable import LABEL_LENGTH


@lru_cache(maxsize=10_000)
def slug_of(name: str) -> str:
    """The name as it is matched; one made of signs alone gets a slug of its own."""
    slug = slugify(name, allow_unicode=True)[:LABEL_LENGTH]
    return slug or hashlib.sha256(name.encode()).hexdigest()[:12]
