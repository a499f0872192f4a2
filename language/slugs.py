"""Slugs: names as they are matched."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache

MAX_SLUG_LENGTH = 200
_REMOVED = re.compile(r"[^\w\s-]")
_JOINED = re.compile(r"[-\s]+")
# Signs that tell names apart: C, C++ and C#; .NET and the net; AT&T and ATT. Elsewhere they are
# punctuation: "#general", "Luna & Max".
_TELLING = re.compile(r"(?<=[\w+#])[+#]|(?<=\w)&(?=\w)|(?<![\w.])\.(?=[^\W\d_])")
_SPELT = {"+": "-plus", "#": "-sharp", "&": "-and-", ".": "dot-"}


@lru_cache(maxsize=10_000)
def slug_of(name: str) -> str:
    """The name as it is matched; one made of signs alone gets a slug of its own."""
    normal = unicodedata.normalize("NFKC", name).lower()
    spelt = _TELLING.sub(lambda sign: _SPELT[sign.group()], normal)
    plain = _REMOVED.sub("", spelt)
    slug = _JOINED.sub("-", plain).strip("-_")[:MAX_SLUG_LENGTH]
    return slug or hashlib.sha256(name.encode()).hexdigest()[:12]
